// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_SQLITE_HELPER_HPP
#define WEIR_TEST_INTEGRATION_SQLITE_HELPER_HPP

#include <boost/test/unit_test.hpp>
#include <sys/mman.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#if __has_include(<sys/prctl.h>)
#include <sys/prctl.h>
#endif

#include <cerrno>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace sqlite_test {

/// Another process: this program again, running one test case that is disabled otherwise. What it
/// is told is in its environment.
class helper {
 public:
  helper(std::string const& test_case, std::vector<std::string> told) {
    auto const& self = boost::unit_test::framework::master_test_suite().argv[0];
    std::string run = "--run_test=" + test_case;
    std::string quiet = "--log_level=error";
    std::string report = "--report_level=no";
    std::string signals = "--catch_system_errors=no";
    char* const arguments[] = {self,          run.data(),     quiet.data(),
                               report.data(), signals.data(), nullptr};
    std::vector<char*> environment;
    for (auto& variable : told) environment.push_back(variable.data());
    for (char** e = environ; *e != nullptr; ++e) environment.push_back(*e);
    environment.push_back(nullptr);
    if (::posix_spawn(&pid_, self, nullptr, nullptr, arguments, environment.data()) != 0) {
      throw std::runtime_error{"no other process"};
    }
  }
  helper(helper const&) = delete;
  helper& operator=(helper const&) = delete;
  ~helper() {
    kill();
    wait();
  }

  void kill() noexcept {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  /// Its exit status as `waitpid` gives it.
  int wait() noexcept {
    if (pid_ <= 0) return status_;
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status_;
  }
  [[nodiscard]] bool ended() noexcept {
    return pid_ <= 0 || (::waitpid(pid_, &status_, WNOHANG) == pid_ && (pid_ = -1) == -1);
  }

 private:
  ::pid_t pid_ = -1;
  int status_ = 0;
};

/// What a helper was told.
[[nodiscard]] inline std::string told(char const* name) {
  char const* const value = ::getenv(name);
  return value == nullptr ? "" : value;
}

/// For a helper to say first: it is not to outlive the test that started it, however that ends.
inline void end_with_the_test() noexcept {
#if __has_include(<sys/prctl.h>)
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

/// Memory that processes share, zero at first. `T` is made of lock-free atomics.
template <class T>
class shared_memory {
  static_assert(std::is_standard_layout_v<T>);

 public:
  explicit shared_memory(std::string const& file) {
    int const fd = ::open(file.c_str(), O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(T)) != 0) throw std::runtime_error{"no shared memory"};
    at_ = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (at_ == MAP_FAILED) throw std::runtime_error{"no shared memory"};
  }
  shared_memory(shared_memory const&) = delete;
  shared_memory& operator=(shared_memory const&) = delete;
  ~shared_memory() { ::munmap(at_, sizeof(T)); }

  [[nodiscard]] T* operator->() const noexcept { return static_cast<T*>(at_); }

 private:
  void* at_ = nullptr;
};

}  // namespace sqlite_test

#endif
