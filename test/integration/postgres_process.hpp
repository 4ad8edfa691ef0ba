// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_POSTGRES_PROCESS_HPP
#define WEIR_TEST_INTEGRATION_POSTGRES_PROCESS_HPP

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <sys/types.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#if __has_include(<sys/prctl.h>)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace postgres_test {

using namespace std::chrono_literals;

/// A PostgreSQL server of this test's own: on 127.0.0.1, in a directory that goes with it, run by
/// somebody without privileges. It does not outlive the test.
class server {
 public:
  /// @param settings as postgresql.conf has them
  /// @param where    the directory goes there
  explicit server(std::vector<std::string> settings = {"fsync=off"},
                  std::filesystem::path const& where = std::filesystem::temp_directory_path())
      : settings_{std::move(settings)} {
    auto name = (where / "weir-postgres-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no temporary directory"};
    home_ = name;
    if (::geteuid() == 0) {
      for (auto const* const user : {"postgres", "nobody"}) {
        if (auto const* const p = ::getpwnam(user)) {
          user_ = p->pw_uid;
          group_ = p->pw_gid;
          break;
        }
      }
      if (!user_ || ::chown(home_.c_str(), *user_, group_) != 0) {
        throw std::runtime_error{"nobody to run the server as"};
      }
    }
    auto const made = run({binary("initdb"), "-D", data(), "-U", "postgres", "-A", "trust", "-N",
                           "-E", "UTF8", "--locale=C"});
    int status = 0;
    ::waitpid(made, &status, 0);
    if (status != 0) throw std::runtime_error{"initdb failed"};
    start();
  }
  server(server const&) = delete;
  server& operator=(server const&) = delete;
  ~server() {
    kill(SIGQUIT);
    std::error_code ignored;
    std::filesystem::remove_all(home_, ignored);
  }

  /// Starts it on a free port, or on the one that it had.
  void start() {
    bool const again = port_ != 0;
    for (int attempt = 0; attempt < 100; ++attempt) {
      if (!again) port_ = free_port();
      std::vector<std::string> arguments{binary("postgres"),
                                         "-D",
                                         data(),
                                         "-k",
                                         home_.string(),
                                         "-p",
                                         std::to_string(port_),
                                         "-c",
                                         "listen_addresses=127.0.0.1",
                                         "-c",
                                         "max_connections=120",
                                         "-c",
                                         "autovacuum_naptime=5s"};
      for (auto const& s : settings_) arguments.insert(arguments.end(), {"-c", s});
      pid_ = run(std::move(arguments));
      if (answers()) return;
      kill(SIGQUIT);  // the port was taken, or what was killed is not quite gone
      std::this_thread::sleep_for(50ms);
    }
    throw std::runtime_error{"the server does not start"};
  }

  /// Ends it: SIGQUIT as soon as may be, SIGKILL at once.
  void kill(int how) noexcept {
    if (pid_ <= 0) return;
    ::kill(pid_, how);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }

  /// Where a program of PostgreSQL's is.
  static std::string binary(std::string const& name) {
    std::vector<std::filesystem::path> found;
    std::error_code ignored;
    for (auto const& version :
         std::filesystem::directory_iterator{"/usr/lib/postgresql", ignored}) {
      auto const path = version.path() / "bin" / name;
      if (std::filesystem::exists(path)) found.push_back(path);
    }
    return found.empty() ? name : std::ranges::max(found).string();
  }

  [[nodiscard]] std::filesystem::path const& home() const noexcept { return home_; }
  [[nodiscard]] unsigned short port() const noexcept { return port_; }
  [[nodiscard]] std::string conninfo(std::string const& database = "postgres") const {
    return conninfo_to(port_, database);
  }
  [[nodiscard]] static std::string conninfo_to(unsigned short port,
                                               std::string const& database = "postgres") {
    return "host=127.0.0.1 port=" + std::to_string(port) + " user=postgres dbname=" + database;
  }

 private:
  [[nodiscard]] std::string data() const { return home_ / "data"; }

  static unsigned short free_port() {
    boost::asio::io_context io;
    boost::asio::ip::tcp::acceptor const a{io, {boost::asio::ip::address_v4::loopback(), 0}};
    return a.local_endpoint().port();
  }

  ::pid_t run(std::vector<std::string> arguments) {
    std::vector<char*> pointers;
    for (auto& a : arguments) pointers.push_back(a.data());
    pointers.push_back(nullptr);
    auto const log = (home_ / "log").string();
    auto const pid = ::fork();
    if (pid != 0) return pid;
    int const out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    if (::chdir("/") != 0) ::_exit(1);
    if (user_ && (::setgroups(0, nullptr) != 0 || ::setgid(group_) != 0 || ::setuid(*user_) != 0)) {
      ::_exit(1);
    }
#if __has_include(<sys/prctl.h>)
    ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
#endif
    ::execvp(pointers[0], pointers.data());
    ::_exit(1);
  }

  bool answers() {
    for (int i = 0; i < 600; ++i) {
      if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        return false;
      }
      if (PQping(conninfo().c_str()) == PQPING_OK) return true;
      std::this_thread::sleep_for(20ms);
    }
    return false;
  }

  std::vector<std::string> const settings_;
  std::filesystem::path home_;
  std::optional<::uid_t> user_;
  ::gid_t group_ = 0;
  ::pid_t pid_ = -1;
  unsigned short port_ = 0;
};

}  // namespace postgres_test

#endif
