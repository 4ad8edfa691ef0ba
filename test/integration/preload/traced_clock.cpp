// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Runs a program whose date is what a test makes it, as preload/moved_clock.cpp does for programs
// that load libraries. One that is linked statically, as nats-server is, loads none: it is traced,
// and each time that it asks the kernel for the date it is answered here.
//
//     traced_clock CLOCK PROGRAM ARGUMENT...
//
// CLOCK is a file that has how many seconds the date is ahead, eight bytes, which may change while
// the program runs. The program ends with this one.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <elf.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#if !defined(__x86_64__)
#error "the registers of this processor are not known here"
#endif

namespace {

using word = unsigned long;

/// Has the kernel stop this process at each question for the date, and becomes the program.
int become(char** program) {
  std::array filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 3),
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog const all{filter.size(), filter.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) == 0) ::execv(*program, program);
  std::perror(*program);
  return 127;
}

word peek(pid_t of, word at) {
  return static_cast<word>(::ptrace(PTRACE_PEEKDATA, of, at, nullptr));
}

/// Without the page that the kernel lends to all programs they have to ask it. Behind a new
/// program's arguments and its environment is a list of what it was given; that page is in it.
void take_the_shared_page(pid_t from) {
  user_regs_struct r{};
  ::ptrace(PTRACE_GETREGS, from, nullptr, &r);
  auto at = r.rsp + sizeof(word) * (peek(from, r.rsp) + 2);
  while (peek(from, at) != 0) at += sizeof(word);
  for (at += sizeof(word); peek(from, at) != AT_NULL; at += 2 * sizeof(word)) {
    if (peek(from, at) == AT_SYSINFO_EHDR) ::ptrace(PTRACE_POKEDATA, from, at, word{AT_IGNORE});
  }
}

void answer(pid_t who, std::int64_t ahead) {
  user_regs_struct r{};
  ::ptrace(PTRACE_GETREGS, who, nullptr, &r);
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec += ahead;
  iovec const here{&now, sizeof(now)};
  iovec const there{reinterpret_cast<void*>(r.rsi), sizeof(now)};
  ::process_vm_writev(who, &here, 1, &there, 1, 0);
  r.orig_rax = ~0ULL;  // the kernel need not do it any more
  r.rax = 0;
  ::ptrace(PTRACE_SETREGS, who, nullptr, &r);
}

/// Traces the program until it ends. @return its exit code
int trace(pid_t program, std::int64_t const volatile& ahead) {
  for (;;) {
    int status = 0;
    auto const who = ::waitpid(-1, &status, __WALL);
    if (who < 0 && errno == EINTR) continue;
    if (who < 0) return 0;
    if (!WIFSTOPPED(status)) {
      if (who == program) return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
      continue;
    }
    auto const event = status >> 16;
    if (event == PTRACE_EVENT_SECCOMP) answer(who, ahead);
    if (event == PTRACE_EVENT_EXEC) take_the_shared_page(who);
    // A stop for none of these reasons is a signal of its own.
    ::ptrace(PTRACE_CONT, who, nullptr, event != 0 ? 0L : long{WSTOPSIG(status)});
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::array<int, 2> traced{};
  if (argc < 3 || ::pipe(traced.data()) != 0) return 2;
  int const file = ::open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0 || ::ftruncate(file, sizeof(std::int64_t)) != 0) return 2;
  auto* const clock = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (clock == MAP_FAILED) return 2;

  auto const program = ::fork();
  if (program < 0) return 2;
  char go = 0;
  if (program == 0) return ::read(traced[0], &go, 1) == 1 ? become(argv + 2) : 127;
  constexpr long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEEXEC |
                           PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
  if (::ptrace(PTRACE_SEIZE, program, nullptr, options) != 0) {
    std::perror("it cannot be traced");
    return 2;
  }
  if (::write(traced[1], &go, 1) != 1) return 2;
  return trace(program, *static_cast<std::int64_t const volatile*>(clock));
}
