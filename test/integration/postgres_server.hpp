// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_POSTGRES_SERVER_HPP
#define WEIR_TEST_INTEGRATION_POSTGRES_SERVER_HPP

#include "directory.hpp"
#include "patience.hpp"
#include "server_process.hpp"

#include <sys/types.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/mount.h>
#include <sys/prctl.h>

#include <sched.h>
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// The programs that tests start: each on 127.0.0.1, in a directory that goes with it, run by
// somebody without privileges, and not outliving the test.
namespace postgres_test {

using namespace std::chrono_literals;

/// A directory, and at most one program that is run in it at a time.
class program {
 public:
  program() {
    if (::geteuid() != 0) return;
    for (auto const* const user : {"postgres", "nobody"}) {
      if (auto const* const p = ::getpwnam(user)) {
        user_ = p->pw_uid;
        group_ = p->pw_gid;
        break;
      }
    }
    if (!user_ || ::chown(home().c_str(), *user_, group_) != 0) {
      throw std::runtime_error{"nobody to run the server as"};
    }
  }
  program(program const&) = delete;
  program& operator=(program const&) = delete;
  ~program() {
    kill(SIGQUIT);
#if defined(__linux__)
    if (!disk_.empty()) ::umount2(disk_.c_str(), MNT_DETACH);
#endif
  }

  [[nodiscard]] std::filesystem::path const& home() const noexcept { return home_.path(); }
  [[nodiscard]] unsigned short port() const noexcept { return port_; }
  [[nodiscard]] ::pid_t pid() const noexcept { return pid_; }
  void choose_port() { port_ = server_test::free_port(); }

  /// Puts a small disk, of memory, at a place in its directory. This process sees it, those that it
  /// starts from now on do, and nobody else; it is gone with them. False: that is not permitted.
  [[nodiscard]] bool mount([[maybe_unused]] std::string const& name,
                           [[maybe_unused]] unsigned megabytes) {
#if defined(__linux__)
    auto const at = home() / name;
    auto const user = ::geteuid();
    auto const group = ::getegid();
    if (::unshare(user == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) return false;
    if (user != 0) {  // who has no privilege has it in a namespace of their own
      std::ofstream{"/proc/self/setgroups"} << "deny";
      std::ofstream{"/proc/self/uid_map"} << user << ' ' << user << " 1";
      std::ofstream{"/proc/self/gid_map"} << group << ' ' << group << " 1";
    }
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    std::filesystem::create_directory(at);
    auto const options = "mode=0700,size=" + std::to_string(megabytes) +
                         "m,uid=" + std::to_string(user_.value_or(user)) +
                         ",gid=" + std::to_string(user_ ? group_ : group);
    if (::mount("none", at.c_str(), "tmpfs", 0, options.c_str()) != 0) return false;
    disk_ = at;
    return true;
#else
    return false;
#endif
  }

  /// Runs something to its end.
  void must(std::vector<std::string> arguments) {
    auto const what = arguments.front();
    start(std::move(arguments), {});
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    if (status != 0) throw std::runtime_error{what + " failed"};
  }

  /// Starts something that goes on. @param preload a library that it is to load first
  void start(std::vector<std::string> arguments, std::string const& preload) {
    std::vector<char*> pointers;
    for (auto& a : arguments) pointers.push_back(a.data());
    pointers.push_back(nullptr);
    auto const log = (home() / "log").string();
    pid_ = ::fork();
    if (pid_ != 0) return;
    int const out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    if (::chdir("/") != 0) ::_exit(1);
    if (user_ && (::setgroups(0, nullptr) != 0 || ::setgid(group_) != 0 || ::setuid(*user_) != 0)) {
      ::_exit(1);
    }
#if defined(__linux__)
    ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
#endif
    ::signal(SIGQUIT, SIG_DFL);  // what runs in the background of a shell was told to ignore it
    server_test::load_first(preload, home());
    ::execvp(pointers[0], pointers.data());
    ::_exit(1);
  }

  /// Ends it: SIGQUIT as soon as may be, SIGKILL at once.
  void kill(int how) noexcept {
    if (pid_ <= 0) return;
    ::kill(pid_, how);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }

  /// Has it not ended by itself?
  [[nodiscard]] bool alive() noexcept {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
    return pid_ > 0;
  }

  /// Waits until somebody answers at this place; false: the program has ended.
  [[nodiscard]] bool answers(std::string const& conninfo) {
    bool answered = false;
    return weir_test::happens([&] {
             answered = alive() && PQping(conninfo.c_str()) == PQPING_OK;
             return answered || !alive();
           }) &&
           answered;
  }

  /// Where a program of PostgreSQL's is: of the latest version that there is.
  [[nodiscard]] static std::string find(std::string const& name) {
    std::vector<std::filesystem::path> found;
    std::error_code ignored;
    for (auto const& version :
         std::filesystem::directory_iterator{"/usr/lib/postgresql", ignored}) {
      auto const path = version.path() / "bin" / name;
      if (std::filesystem::exists(path)) found.push_back(path);
    }
    for (std::filesystem::path const bin : {"/usr/sbin", "/usr/local/sbin"}) {
      if (found.empty() && std::filesystem::exists(bin / name)) found.push_back(bin / name);
    }
    return found.empty() ? name : std::ranges::max(found).string();
  }

 private:
  weir_test::directory home_{};
  std::filesystem::path disk_;
  std::optional<::uid_t> user_;
  ::gid_t group_ = 0;
  ::pid_t pid_ = -1;
  unsigned short port_ = 0;
};

[[nodiscard]] inline std::string conninfo_to(unsigned short port,
                                             std::string const& database = "postgres") {
  return "host=127.0.0.1 port=" + std::to_string(port) + " user=postgres dbname=" + database;
}

/// A PostgreSQL server.
class server {
 public:
  /// Thrown where no disk can be mounted for it.
  struct not_permitted : std::runtime_error {
    not_permitted() : runtime_error{"a disk cannot be mounted here"} {}
  };

  /// What is special about one.
  struct kind {
    server const* primary = nullptr;  ///< of which it is a hot standby
    std::string preload{};            ///< a library that is loaded into it
    unsigned megabytes = 0;           ///< of the disk that its data are on; 0: that of all others
    std::vector<std::string> settings{};
  };

  server() : server{kind{}} {}
  explicit server(kind k) : kind_{std::move(k)} {
    if (kind_.megabytes != 0 && !program_.mount("data", kind_.megabytes)) throw not_permitted{};
    move_clock(0);
    if (kind_.primary != nullptr) {
      copy(*kind_.primary);
    } else {
      program_.must({program::find("initdb"), "-D", data(), "-U", "postgres", "-A", "trust", "-N",
                     "-E", "UTF8", "--locale=C"});
    }
    start();
  }

  /// Starts it on a free port, or on the one that it had.
  void start() {
    bool const again = port() != 0;
    for (int attempt = 0; attempt < 100; ++attempt) {
      if (!again) program_.choose_port();
      std::vector<std::string> command{
          program::find("postgres"), "-D", data(), "-k", program_.home().string(), "-p",
          std::to_string(port())};
      for (std::string const setting : {"listen_addresses=127.0.0.1", "fsync=off",
                                        "max_connections=120", "autovacuum_naptime=5s"}) {
        command.insert(command.end(), {"-c", setting});
      }
      for (auto const& setting : kind_.settings) command.insert(command.end(), {"-c", setting});
      program_.start(std::move(command), kind_.preload);
      if (program_.answers(conninfo())) return;
      kill(SIGQUIT);  // the port was taken, or what was killed is not quite gone
      std::this_thread::sleep_for(50ms);
    }
    throw std::runtime_error{"the server does not start"};
  }

  /// Becomes a hot standby of another one, and forgets all that it had.
  void follow(server const& primary) {
    kill(SIGQUIT);
    std::filesystem::remove_all(data());
    copy(primary);
    start();
  }

  /// Has its clock show so many seconds more than the date, if it was loaded with what moves it.
  void move_clock(std::int64_t seconds) const { server_test::move_clock(home(), seconds); }

  /// Ends it: SIGQUIT as soon as may be, SIGKILL at once.
  void kill(int how) noexcept { program_.kill(how); }

  /// Starts it again if it has ended by itself.
  void revive() {
    if (!program_.alive()) start();
  }

  [[nodiscard]] std::filesystem::path const& home() const noexcept { return program_.home(); }
  [[nodiscard]] unsigned short port() const noexcept { return program_.port(); }
  [[nodiscard]] ::pid_t pid() const noexcept { return program_.pid(); }
  [[nodiscard]] std::string conninfo(std::string const& database = "postgres") const {
    return conninfo_to(port(), database);
  }
  [[nodiscard]] static std::string conninfo_to(unsigned short port,
                                               std::string const& database = "postgres") {
    return postgres_test::conninfo_to(port, database);
  }

 private:
  void copy(server const& primary) {
    program_.must({program::find("pg_basebackup"), "-D", data(), "-R", "-X", "stream", "-c", "fast",
                   "-d", primary.conninfo()});
  }
  [[nodiscard]] std::string data() const { return program_.home() / "data"; }

  kind kind_;
  program program_;
};

/// The one of this program.
inline server& the_server() {
  static server s;
  return s;
}

}  // namespace postgres_test

#endif
