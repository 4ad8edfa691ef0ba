// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_SERVER_PROCESS_HPP
#define WEIR_TEST_INTEGRATION_SERVER_PROCESS_HPP

#include "directory.hpp"
#include "patience.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// What all servers that tests start have in common.
namespace server_test {

/// A port of the loopback interface that nobody has. It is below those that systems give to
/// connections, so that none gets it before the server does, or while the server is started again;
/// and other tests do not get it while this process lives: it keeps the port of the same number of
/// another protocol.
[[nodiscard]] inline std::uint16_t free_port() {
  static std::mt19937 chance{std::random_device{}()};
  std::uniform_int_distribution<int> any{10'000, 29'999};
  for (int attempt = 0; attempt != 1000; ++attempt) {
    auto const port = static_cast<std::uint16_t>(any(chance));
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto const got = [&at](int s) {
      return ::bind(s, reinterpret_cast<::sockaddr const*>(&at), sizeof(at)) == 0;
    };
    int const kept = ::socket(AF_INET, SOCK_DGRAM, 0);
    ::fcntl(kept, F_SETFD, FD_CLOEXEC);
    int const s = ::socket(AF_INET, SOCK_STREAM, 0);
    int const on = 1;  // as servers do: what was somebody's a minute ago is free
    ::setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    bool const free = got(kept) && got(s);
    ::close(s);
    if (free) return port;
    ::close(kept);
  }
  throw std::runtime_error{"no port is free"};
}

/// How many files and connections of this process a program would have that it starts; a mere copy
/// of it, by `fork`, has all.
[[nodiscard]] inline int inherited() {
  int out = 0;
  for (int fd = 0; fd != 1024; ++fd) {
    auto const flags = ::fcntl(fd, F_GETFD);
    out += flags >= 0 && (flags & FD_CLOEXEC) == 0 ? 1 : 0;
  }
  return out;
}

/// The end of what a server has written to its log, which says why it did not start.
[[nodiscard]] inline std::string last_words(std::filesystem::path const& log) {
  std::ifstream in{log};
  std::string all{std::istreambuf_iterator<char>{in}, {}};
  constexpr std::size_t most = 1000;
  return all.size() > most ? all.substr(all.size() - most) : all;
}

/// Has the clock of servers that have loaded preload/moved_clock.cpp, with this folder, show so
/// many seconds more than the date.
inline void move_clock(std::filesystem::path const& folder, std::int64_t seconds) {
  int const out = ::open((folder / "clock").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  bool const written = ::pwrite(out, &seconds, sizeof(seconds), 0) == sizeof(seconds);
  ::close(out);
  if (!written) throw std::runtime_error{"a clock cannot be moved"};
}

/// Has this process, which is about to become a program, load a library of preload/ first, which
/// does what files of this folder tell it. @param library empty: none
inline void load_first(std::string const& library, std::filesystem::path const& folder) {
  if (library.empty()) return;
  ::setenv("LD_PRELOAD", library.c_str(), 1);
  ::setenv("WEIR_TEST_FULL", (folder / "full").c_str(), 1);
  ::setenv("WEIR_TEST_CLOCK", (folder / "clock").c_str(), 1);
}

/// Starts the first of these programs that there is; it ends with the thread that starts it,
/// however that comes about.
/// @param words   its arguments, the first of which is what it is called
/// @param library as load_first has it, and the folder
/// @return        its process, which ends at once if there is none of them
[[nodiscard]] inline ::pid_t start(std::vector<char const*> const& programs,
                                   std::vector<std::string> words, std::string const& library = {},
                                   std::filesystem::path const& folder = {}) {
  std::vector<char*> arguments;
  for (auto& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  auto const pid = ::fork();
  if (pid < 0) throw std::runtime_error{"no process can be started"};
  if (pid != 0) return pid;
#if defined(__linux__)
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  load_first(library, folder);
  for (auto const* const program : programs) ::execvp(program, arguments.data());
  ::_exit(127);
}

/// A server of a test's own, on the loopback interface and with a directory of its own.
class server_process {
 public:
  server_process(server_process const&) = delete;
  server_process& operator=(server_process const&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Where it keeps its files.
  [[nodiscard]] std::string const& directory() const noexcept { return directory_; }

  /// Ends it as a crash would.
  void kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  /// Lets it do nothing until `resume`, as on a host that is suspended.
  void pause() const {
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }
  void resume() const { ::kill(pid_, SIGCONT); }

  /// Has its clock show so many seconds more than the date.
  void move_clock(std::int64_t seconds) const { server_test::move_clock(directory_, seconds); }

 protected:
  server_process(std::vector<std::string> options, std::string clock)
      : options_{std::move(options)},
        clock_{std::move(clock)} {}
  ~server_process() { kill(); }

  /// Starts it again on its port, or for the first time on one that is free.
  /// @param spawn starts it on a port, and says whether it runs
  template <class Spawn>
  void start_by(Spawn spawn, std::string const& complaint) {
    // A port that was free may be taken a moment later, and one that was this server's by
    // somebody's connection, which comes to an end.
    bool const again = port_ != 0;
    for (int attempt = 0; attempt != (again ? 300 : 10); ++attempt) {
      auto const port = again ? port_ : free_port();
      if (spawn(port)) {
        port_ = port;
        return;
      }
      if (again) std::this_thread::sleep_for(std::chrono::milliseconds{100});
    }
    throw std::runtime_error{complaint + '\n' + last_words(directory_ + "/log")};
  }
  /// Waits until what was started is ready; false: it has ended, since the port was taken.
  template <class Ready>
  [[nodiscard]] bool settles(::pid_t pid, Ready ready) {
    pid_ = pid;
    bool const settled = weir_test::happens([&] {
      if (::waitpid(pid_, nullptr, WNOHANG) == 0) return ready();
      pid_ = 0;
      return true;
    });
    if (!settled) kill();
    return pid_ != 0;
  }

  std::vector<std::string> options_;
  std::string clock_;
  weir_test::directory home_{};
  std::string directory_{home_.path()};
  std::uint16_t port_ = 0;
  ::pid_t pid_ = 0;
};

}  // namespace server_test

#endif
