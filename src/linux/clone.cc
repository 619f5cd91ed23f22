#include "linux/clone.h"

#include <linux/sched.h>
#include <sys/syscall.h>

#include <csignal>

namespace belljar::linux {

#ifndef __x86_64__
#error "clone_sharing_memory is written for x86-64 only"
#endif

int64_t clone_sharing_memory(uint64_t flags, int* pidfd, int cgroup, void* stack, size_t stack_size,
                             int (*entry)(void*), void* argument) {
  clone_args args{};
  args.flags = flags | CLONE_VM;
  args.exit_signal = SIGCHLD;
  // The psABI wants the stack 16-byte aligned at a call.
  args.stack = reinterpret_cast<uint64_t>(stack);
  args.stack_size = stack_size & ~size_t{15};
  if (pidfd != nullptr) {
    args.flags |= CLONE_PIDFD;
    args.pidfd = reinterpret_cast<uint64_t>(pidfd);
  }
  if (cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(cgroup);
  }
  int64_t result = SYS_clone3;
  // The child starts after the syscall instruction with its own stack and the same registers; it never comes back out
  // of the asm. The kernel clobbers rcx and r11 only.
  asm volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "movq %[argument], %%rdi\n\t"
      "callq *%[entry]\n\t"
      "movl %%eax, %%edi\n\t"
      "movl %[exit_group], %%eax\n\t"
      "syscall\n\t"
      "hlt\n"
      "1:\n\t"
      : "+a"(result)
      : "D"(&args), "S"(sizeof args), [entry] "r"(entry), [argument] "r"(argument), [exit_group] "i"(SYS_exit_group)
      : "rcx", "r11", "memory");
  return result;
}

}  // namespace belljar::linux
