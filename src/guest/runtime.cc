// What belljar-guest has in place of a C library.
//
// A static glibc program spends more time before main() than init needs for everything it does: it asks CPUID some
// eighty times for caches and vector units that init never uses, and each answer is a trap where the machine is
// virtual. It would also bring a locale, an allocator and stdio into the process that guards the guest. Here: start,
// relocation, a stack protector, the system calls that init makes, and memory that is never given back.
//
// Not for code that handles signals, uses threads, thread-local storage, exceptions or floating point. Functions have
// the C library's symbols by asm labels, so that the sources of base, linux and guest need not know.
#include <asm/prctl.h>
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

#include "guest/errno_names.h"

#ifndef __x86_64__
#error "belljar-guest's runtime is written for x86-64 only"
#endif

#pragma GCC visibility push(hidden)
extern "C" {
extern const Elf64_Ehdr __ehdr_start;  // NOLINT: the linker's name
extern Elf64_Dyn _DYNAMIC[];           // NOLINT: the linker's name
}
#pragma GCC visibility pop

// The program; main() may not be called (C++, [basic.start.main]).
extern "C" int guest_main(int count, char** words);

namespace {

// What %fs points at. The compiler reads the canary at offset 0x28 (psABI, "Stack protector").
struct ThreadBlock {
  ThreadBlock* self;
  std::array<uint64_t, 4> reserved;
  uint64_t canary;
};
static_assert(offsetof(ThreadBlock, canary) == 0x28);

constinit ThreadBlock g_thread{};
constinit int g_errno = 0;
constinit uint64_t g_page_size = 4096;

// Memory is handed out and never taken back: init allocates while it starts, and nothing once the agent runs.
constexpr size_t kChunk = size_t{128} << 10U;
constinit char* g_free_from = nullptr;
constinit char* g_free_to = nullptr;

[[gnu::always_inline]] inline long raw(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                                       long f = 0) {
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result;
}

// -4095 to -1 is an error of the call (syscall(2)).
long result_of(long result) {
  if (result < 0 && result >= -4095) {
    g_errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

void* allocate(size_t size) {
  size = (size + 15) & ~size_t{15};
  if (static_cast<size_t>(g_free_to - g_free_from) < size) {
    const size_t chunk = size > kChunk ? (size + 4095) & ~size_t{4095} : kChunk;
    const long got =
        raw(SYS_mmap, 0, static_cast<long>(chunk), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (got < 0 && got >= -4095) __builtin_trap();
    g_free_from = reinterpret_cast<char*>(got);
    g_free_to = g_free_from + chunk;
  }
  char* const out = g_free_from;
  g_free_from += size;
  return out;
}

// Only what a position-independent program without libraries has: its own addresses. Before this has run no address
// that is stored in data may be used, and no function with a canary.
[[gnu::no_stack_protector, gnu::always_inline]] inline void relocate() {
  const auto base = reinterpret_cast<uint64_t>(&__ehdr_start);
  uint64_t table = 0;
  uint64_t size = 0;
  for (const Elf64_Dyn* entry = _DYNAMIC; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_RELR || entry->d_tag == DT_JMPREL) __builtin_trap();
    if (entry->d_tag == DT_RELA) table = base + entry->d_un.d_ptr;
    if (entry->d_tag == DT_RELASZ) size = entry->d_un.d_val;
  }
  if (table == 0) return;
  const auto* relocation = reinterpret_cast<const Elf64_Rela*>(table);
  for (uint64_t i = 0; i < size / sizeof(Elf64_Rela); ++i) {
    if (ELF64_R_TYPE(relocation[i].r_info) != R_X86_64_RELATIVE) __builtin_trap();
    *reinterpret_cast<uint64_t*>(base + relocation[i].r_offset) = base + static_cast<uint64_t>(relocation[i].r_addend);
  }
}

// Read-only from here on, as the linker marked it (PT_GNU_RELRO).
[[gnu::no_stack_protector]] void protect_relocated() {
  const auto base = reinterpret_cast<uint64_t>(&__ehdr_start);
  const auto* header = reinterpret_cast<const Elf64_Phdr*>(base + __ehdr_start.e_phoff);
  for (int i = 0; i < __ehdr_start.e_phnum; ++i) {
    if (header[i].p_type != PT_GNU_RELRO) continue;
    const uint64_t first = (base + header[i].p_vaddr) & ~(g_page_size - 1);
    const uint64_t end = (base + header[i].p_vaddr + header[i].p_memsz) & ~(g_page_size - 1);
    if (end > first && raw(SYS_mprotect, static_cast<long>(first), static_cast<long>(end - first), PROT_READ) != 0) {
      __builtin_trap();
    }
  }
}

}  // namespace

// `stack` is as the kernel left it: argc, argv, null, environment, null, auxiliary vector (psABI, "Process
// Initialization").
extern "C" [[gnu::no_stack_protector, gnu::used, noreturn]] void start_guest(uint64_t* stack) {
  relocate();
  uint64_t* at = stack + 1 + stack[0] + 1;
  while (*at != 0) ++at;
  for (++at; *at != AT_NULL; at += 2) {
    if (*at == AT_PAGESZ) g_page_size = at[1];
    // The lowest byte is zero, which ends a string that would read or write the canary.
    if (*at == AT_RANDOM) g_thread.canary = *reinterpret_cast<const uint64_t*>(at[1]) & ~uint64_t{255};
  }
  g_thread.self = &g_thread;
  if (g_thread.canary == 0 || raw(SYS_arch_prctl, ARCH_SET_FS, reinterpret_cast<long>(&g_thread)) != 0) {
    __builtin_trap();
  }
  protect_relocated();
  raw(SYS_exit_group, guest_main(static_cast<int>(stack[0]), reinterpret_cast<char**>(stack + 1)));
  __builtin_trap();
}

asm(R"(
.globl _start
.type _start, @function
_start:
  xorl %ebp, %ebp
  movq %rsp, %rdi
  andq $-16, %rsp
  call start_guest
  hlt
)");

// The kernel reads no more of an argument than its type, so that one shape serves ints, sizes and pointers.
#define BELLJAR_DECLARE(name, ...) extern "C" long runtime_##name(__VA_ARGS__) asm(#name)
#define BELLJAR_CALL(name, number)                                      \
  BELLJAR_DECLARE(name, long, long, long, long, long, long);            \
  long runtime_##name(long a, long b, long c, long d, long e, long f) { \
    return result_of(raw(number, a, b, c, d, e, f));                    \
  }

BELLJAR_CALL(bind, SYS_bind)
BELLJAR_CALL(chdir, SYS_chdir)
BELLJAR_CALL(close, SYS_close)
BELLJAR_CALL(close_range, SYS_close_range)
BELLJAR_CALL(connect, SYS_connect)
BELLJAR_CALL(dup2, SYS_dup2)
BELLJAR_CALL(execve, SYS_execve)
BELLJAR_CALL(fchmod, SYS_fchmod)
BELLJAR_CALL(fcntl, SYS_fcntl)
BELLJAR_CALL(fstat, SYS_fstat)
BELLJAR_CALL(fstatat, SYS_newfstatat)
BELLJAR_CALL(getgid, SYS_getgid)
BELLJAR_CALL(getgroups, SYS_getgroups)
BELLJAR_CALL(getpid, SYS_getpid)
BELLJAR_CALL(getuid, SYS_getuid)
BELLJAR_CALL(ioctl, SYS_ioctl)
BELLJAR_CALL(kill, SYS_kill)
BELLJAR_CALL(listen, SYS_listen)
BELLJAR_CALL(lstat, SYS_lstat)
BELLJAR_CALL(memfd_create, SYS_memfd_create)
BELLJAR_CALL(mkdir, SYS_mkdir)
BELLJAR_CALL(open, SYS_open)
BELLJAR_CALL(openat, SYS_openat)
BELLJAR_CALL(poll, SYS_poll)
BELLJAR_CALL(prctl, SYS_prctl)
BELLJAR_CALL(read, SYS_read)
BELLJAR_CALL(readlink, SYS_readlink)
BELLJAR_CALL(recvmsg, SYS_recvmsg)
BELLJAR_CALL(sendmsg, SYS_sendmsg)
BELLJAR_CALL(setpgid, SYS_setpgid)
BELLJAR_CALL(setsid, SYS_setsid)
BELLJAR_CALL(socket, SYS_socket)
BELLJAR_CALL(stat, SYS_stat)
BELLJAR_CALL(symlink, SYS_symlink)
BELLJAR_CALL(umask, SYS_umask)
BELLJAR_CALL(uname, SYS_uname)
BELLJAR_CALL(unshare, SYS_unshare)
BELLJAR_CALL(write, SYS_write)

BELLJAR_DECLARE(syscall, long, long, long, long, long, long, long);
long runtime_syscall(long number, long a, long b, long c, long d, long e, long f) {
  return result_of(raw(number, a, b, c, d, e, f));
}

BELLJAR_DECLARE(waitpid, long, long, long);
long runtime_waitpid(long pid, long status, long options) {
  return result_of(raw(SYS_wait4, pid, status, options));
}

BELLJAR_DECLARE(getrlimit, long, long);
long runtime_getrlimit(long resource, long out) {
  return result_of(raw(SYS_prlimit64, 0, resource, 0, out));
}

BELLJAR_DECLARE(tcsetpgrp, long, int);
long runtime_tcsetpgrp(long fd, int group) {
  return result_of(raw(SYS_ioctl, fd, TIOCSPGRP, reinterpret_cast<long>(&group)));
}

// The kernel's signal set has 64 bits (sigaction(2), "C library/kernel differences").
BELLJAR_DECLARE(sigprocmask, long, long, long);
long runtime_sigprocmask(long how, long set, long old) {
  return result_of(raw(SYS_rt_sigprocmask, how, set, old, sizeof(uint64_t)));
}

BELLJAR_DECLARE(signalfd, long, long, long);
long runtime_signalfd(long fd, long mask, long flags) {
  return result_of(raw(SYS_signalfd4, fd, mask, sizeof(uint64_t), flags));
}

// A handler would need a way back that is not here.
extern "C" int runtime_sigaction(int signal, const struct sigaction* action, void* old) asm("sigaction");
int runtime_sigaction(int signal, const struct sigaction* action, void* old) {
  if (old != nullptr || action == nullptr || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN)) {
    g_errno = EINVAL;
    return -1;
  }
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    uint64_t mask;
  } const kernel{action->sa_handler, 0, nullptr, 0};
  return static_cast<int>(
      result_of(raw(SYS_rt_sigaction, signal, reinterpret_cast<long>(&kernel), 0, sizeof(uint64_t))));
}

extern "C" {

int* runtime_errno() asm("__errno_location");
int* runtime_errno() {
  return &g_errno;
}

int sigemptyset(sigset_t* set) noexcept {
  *set = sigset_t{};
  return 0;
}
int sigfillset(sigset_t* set) noexcept {
  for (auto& word : set->__val) word = ~0UL;
  return 0;
}
int sigaddset(sigset_t* set, int signal) noexcept {
  set->__val[0] |= 1UL << static_cast<unsigned>(signal - 1);
  return 0;
}

int statvfs(const char* path, struct statvfs* out) noexcept {
  struct statfs found{};
  const long error = raw(SYS_statfs, reinterpret_cast<long>(path), reinterpret_cast<long>(&found));
  if (error != 0) return static_cast<int>(result_of(error));
  *out = {};
  out->f_bsize = static_cast<unsigned long>(found.f_bsize);
  out->f_frsize = static_cast<unsigned long>(found.f_frsize != 0 ? found.f_frsize : found.f_bsize);
  out->f_blocks = found.f_blocks;
  out->f_files = found.f_files;
  out->f_flag = static_cast<unsigned long>(found.f_flags);  // ST_RDONLY and its like have the kernel's values
  return 0;
}

long sysconf(int name) noexcept {
  return name == _SC_PAGESIZE ? static_cast<long>(g_page_size) : -1;
}

// getdents64(2) and readdir(3) have the same struct on x86-64.
struct __dirstream {  // NOLINT: DIR is this
  int fd;
  long filled;
  long at;
  alignas(16) std::array<char, 2048> bytes;
};

DIR* opendir(const char* path) {
  const long fd = result_of(raw(SYS_open, reinterpret_cast<long>(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd < 0) return nullptr;
  auto* out = static_cast<DIR*>(allocate(sizeof(DIR)));
  out->fd = static_cast<int>(fd);
  out->filled = out->at = 0;
  return out;
}
struct dirent* readdir(DIR* folder) {
  if (folder->at >= folder->filled) {
    folder->at = 0;
    folder->filled = result_of(raw(SYS_getdents64, folder->fd, reinterpret_cast<long>(folder->bytes.data()),
                                   static_cast<long>(folder->bytes.size())));
    if (folder->filled <= 0) return nullptr;
  }
  auto* entry = reinterpret_cast<struct dirent*>(folder->bytes.data() + folder->at);
  folder->at += entry->d_reclen;
  return entry;
}
int dirfd(DIR* folder) noexcept {
  return folder->fd;
}
int closedir(DIR* folder) {
  return static_cast<int>(result_of(raw(SYS_close, folder->fd)));
}

const char* strerrorname_np(int code) noexcept {
  return belljar::guest::errno_name(code);
}

void* memcpy(void* to, const void* from, size_t size) noexcept {
  void* const out = to;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
  return out;
}
void* memmove(void* to, const void* from, size_t size) noexcept {
  auto* t = static_cast<char*>(to);
  const auto* f = static_cast<const char*>(from);
  if (t <= f || t >= f + size) return memcpy(to, from, size);
  for (size_t i = size; i > 0; --i) {
    t[i - 1] = f[i - 1];
    asm volatile("" : : : "memory");  // else the compiler makes this loop a call of memmove
  }
  return to;
}
void* memset(void* to, int value, size_t size) noexcept {
  void* at = to;
  asm volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(value) : "memory");
  return to;
}
int memcmp(const void* one, const void* other, size_t size) noexcept {
  const auto* a = static_cast<const unsigned char*>(one);
  const auto* b = static_cast<const unsigned char*>(other);
  for (size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return a[i] - b[i];
  }
  return 0;
}
// What clang makes of a memcmp() that only asks for equality.
int runtime_bcmp(const void* one, const void* other, size_t size) asm("bcmp");
int runtime_bcmp(const void* one, const void* other, size_t size) {
  return memcmp(one, other, size);
}
void* runtime_memchr(const void* text, int wanted, size_t size) asm("memchr");
void* runtime_memchr(const void* text, int wanted, size_t size) {
  const auto* at = static_cast<const unsigned char*>(text);
  for (size_t i = 0; i < size; ++i) {
    if (at[i] == static_cast<unsigned char>(wanted)) return const_cast<unsigned char*>(at + i);
  }
  return nullptr;
}
size_t strlen(const char* text) noexcept {
  size_t size = 0;
  while (text[size] != '\0') {
    ++size;
    asm volatile("" : : : "memory");
  }
  return size;
}

[[noreturn]] void runtime_smashed() asm("__stack_chk_fail");
void runtime_smashed() {
  __builtin_trap();
}
}

// _FORTIFY_SOURCE: the size of the buffer comes last.
#define BELLJAR_CHECKED_CALL(name, number, sized)                    \
  BELLJAR_DECLARE(__##name##_chk, long, long, long, size_t);         \
  long runtime___##name##_chk(long a, long b, long c, size_t most) { \
    if (static_cast<size_t>(sized) > most) __builtin_trap();         \
    return result_of(raw(number, a, b, c));                          \
  }
BELLJAR_CHECKED_CALL(read, SYS_read, c)
BELLJAR_CHECKED_CALL(readlink, SYS_readlink, c)
BELLJAR_CALL(__open_2, SYS_open)
BELLJAR_DECLARE(__poll_chk, long, unsigned long, long, size_t);
long runtime___poll_chk(long fds, unsigned long count, long timeout, size_t most) {
  if (count > most / 8) __builtin_trap();
  return result_of(raw(SYS_poll, fds, static_cast<long>(count), timeout));
}
extern "C" void* runtime_memcpy_chk(void* to, const void* from, size_t size, size_t most) asm("__memcpy_chk");
void* runtime_memcpy_chk(void* to, const void* from, size_t size, size_t most) {
  if (size > most) __builtin_trap();
  return memcpy(to, from, size);
}

void* operator new(size_t size) {
  return allocate(size);
}
void operator delete(void* /*memory*/) noexcept {}
void operator delete(void* /*memory*/, size_t /*size*/) noexcept {}

// Bugs, and memory that is not there: init ends, and the launcher refuses.
namespace std {
void __throw_bad_alloc() {
  __builtin_trap();
}  // NOLINT: libstdc++'s names
void __throw_bad_array_new_length() {
  __builtin_trap();
}  // NOLINT
void __throw_logic_error(const char* /*text*/) {
  __builtin_trap();
}  // NOLINT
void __throw_length_error(const char* /*text*/) {
  __builtin_trap();
}  // NOLINT
void __throw_out_of_range_fmt(const char* /*text*/, ...) {
  __builtin_trap();
}  // NOLINT
}  // namespace std
