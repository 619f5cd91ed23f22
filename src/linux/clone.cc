#include "linux/clone.h"

#include <linux/sched.h>
#include <sys/syscall.h>

#include <csignal>

namespace belljar::linux {

#ifndef __x86_64__
#error "clone_sharing_memory is written for x86-64 only"
#endif

namespace {

// The child starts after the syscall instruction with the stack the call names and the same registers; it never comes
// back out of the asm. The kernel clobbers rcx and r11 only.
int64_t clone_call(int64_t number, uint64_t first, uint64_t second, uint64_t third, int (*entry)(void*),
                   void* argument) {
  int64_t result = number;
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
      : "D"(first), "S"(second),
        "d"(third), [entry] "r"(entry), [argument] "r"(argument), [exit_group] "i"(SYS_exit_group)
      : "rcx", "r11", "memory");
  return result;
}

}  // namespace

int64_t clone_sharing_memory(uint64_t flags, int* pidfd, int cgroup, void* stack, size_t stack_size,
                             int (*entry)(void*), void* argument) {
  // The psABI wants the stack 16-byte aligned at a call.
  const auto top = (reinterpret_cast<uint64_t>(stack) + stack_size) & ~uint64_t{15};
  flags |= CLONE_VM;
  if (pidfd != nullptr) flags |= CLONE_PIDFD;
  if (cgroup < 0) {
    // clone(2) says it all, and unlike clone3(2) a system-call filter can read its flags: init's answers ENOSYS there.
    return clone_call(SYS_clone, flags | SIGCHLD, top, reinterpret_cast<uint64_t>(pidfd), entry, argument);
  }
  clone_args args{};
  args.flags = flags | CLONE_INTO_CGROUP;
  args.pidfd = reinterpret_cast<uint64_t>(pidfd);
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<uint64_t>(stack);
  args.stack_size = top - args.stack;
  args.cgroup = static_cast<uint64_t>(cgroup);
  return clone_call(SYS_clone3, reinterpret_cast<uint64_t>(&args), sizeof args, 0, entry, argument);
}

}  // namespace belljar::linux
