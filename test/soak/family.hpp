// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_FAMILY_HPP
#define WEIR_TEST_SOAK_FAMILY_HPP

#include "integration/server_process.hpp"
#include "soak/audit.hpp"
#include "soak/plan.hpp"
#include "soak/witness.hpp"

#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace soak {

/// What is started from now on gets no connection of this process: it would keep it open. Asio does
/// not see to that.
inline void keep_connections() {
  for (auto const& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    auto const fd = std::stoi(entry.path().filename().string());
    if (fd > STDERR_FILENO) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

/// The processes of the application: started, watched, read, and killed.
class family {
 public:
  /// @param preload a library that each process loads first
  /// @param beside  this program, of another version: it plays every other process; empty: none
  /// does
  family(std::string directory, std::string preload, auditor& judge, std::string beside = {})
      : directory_{std::move(directory)},
        preload_{std::move(preload)},
        beside_{std::move(beside)},
        judge_{judge} {}
  family(family const&) = delete;
  family& operator=(family const&) = delete;
  ~family() {
    for (auto& c : children_) {
      if (c.pid > 0) {
        ::kill(c.pid, SIGKILL);
        ::waitpid(c.pid, nullptr, 0);
      }
    }
  }

  /// Starts a process of this role.
  void start(assignment a) {
    child c;
    c.number = static_cast<std::uint32_t>(children_.size());
    a.log = directory_ + "/" + a.role + "-" + std::to_string(c.number) + ".log";
    a.seed = a.seed * 1000 + c.number;
    c.given = a;
    std::vector<std::string> words{"weir_soak",
                                   "--child",
                                   a.role,
                                   "--log",
                                   a.log,
                                   "--url",
                                   a.at.url,
                                   "--prefix",
                                   a.at.prefix,
                                   "--max-bytes",
                                   std::to_string(a.at.max_bytes),
                                   "--shards",
                                   std::to_string(a.at.shards),
                                   "--replicas",
                                   std::to_string(a.at.replicas),
                                   "--defect",
                                   a.defect,
                                   "--scenario",
                                   a.scenario,
                                   "--jobs",
                                   a.jobs,
                                   "--seed",
                                   std::to_string(a.seed)};
    std::vector<char*> pointers;
    for (auto& w : words) pointers.push_back(w.data());
    pointers.push_back(nullptr);
    keep_connections();
    c.pid = ::fork();
    if (c.pid < 0) throw std::system_error{errno, std::generic_category(), "fork"};
    if (c.pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      server_test::load_first(preload_, directory_);
      // When a schedule is due the date says, and this one's stays right.
      if (a.role == "scheduler") ::unsetenv("WEIR_TEST_CLOCK");
      bool const here = beside_.empty() || c.number % 2 == 0 || a.role == "inspector";
      ::execv(here ? "/proc/self/exe" : beside_.c_str(), pointers.data());
      ::_exit(127);
    }
    children_.push_back(std::move(c));
  }

  /// Kills one at random, of a role if one is named, and starts another in its place.
  void replace_one(std::uint64_t chance) {
    auto const c = pick(chance);
    if (!c) return;
    auto& victim = children_[*c];
    ::kill(victim.pid, SIGKILL);
    ::waitpid(std::exchange(victim.pid, 0), nullptr, 0);
    auto again = victim.given;
    auto const number = victim.number;
    read();
    judge_.ended(number, boot_now());
    start(std::move(again));
  }
  /// Lets one at random stand still until `resume`.
  void stop_one(std::uint64_t chance) {
    auto const c = pick(chance);
    if (!c) return;
    ::kill(children_[*c].pid, SIGSTOP);
    children_[*c].still_since = boot_now();
  }
  void resume() {
    for (auto& c : children_) {
      if (c.still_since == 0) continue;
      if (c.pid > 0) ::kill(c.pid, SIGCONT);
      judge_.stood_still(c.number, std::exchange(c.still_since, 0), boot_now());
    }
  }
  /// Asks all of these roles to end in order, and the others to go on.
  void end(std::vector<std::string> const& roles) {
    for (auto& c : children_) {
      if (c.pid > 0 && !c.ending && std::ranges::count(roles, c.given.role) != 0) {
        c.ending = true;
        c.ending_since = boot_now();
        ::kill(c.pid, SIGTERM);
      }
    }
  }
  /// Those of which nobody has ended or asked the end.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::string>> at_work() const {
    std::vector<std::pair<std::uint32_t, std::string>> out;
    for (auto const& c : children_) {
      if (c.pid > 0 && !c.ending) out.emplace_back(c.number, c.given.role);
    }
    return out;
  }
  [[nodiscard]] bool alive(std::string const& role) const {
    return std::ranges::any_of(children_,
                               [&](child const& c) { return c.pid > 0 && c.given.role == role; });
  }

  /// Reads what they wrote, and notes those that have ended.
  void read() {
    for (auto& c : children_) {
      bool ended = false;
      int status = 0;
      if (c.pid > 0 && ::waitpid(c.pid, &status, WNOHANG) == c.pid) {
        c.pid = 0;
        ended = true;
      }
      if (c.pid > 0 || ended || c.last_read) read(c);
      // While it does, too: it may stand still for longer than an operation may take.
      if (c.still_since != 0) {
        auto const now = boot_now();
        judge_.stood_still(c.number, std::exchange(c.still_since, now), now);
      }
      c.last_read = c.pid > 0;
      if (c.pid > 0 && c.ending && !c.end_told && c.still_since == 0 &&
          boot_now() > c.ending_since + ns_of(hang)) {
        c.end_told = true;
        judge_.report("R7", c.given.role + " " + std::to_string(c.number) + " does not end",
                      boot_now());
      }
      if (!ended) continue;
      judge_.ended(c.number, boot_now());
      bool const inspector = c.given.role == "inspector" || c.given.role == "scenario";
      if (status != 0 || !(c.ending || inspector)) {
        judge_.report("process",
                      c.given.role + " " + std::to_string(c.number) +
                          (WIFSIGNALED(status)
                               ? " ended by signal " + std::to_string(WTERMSIG(status))
                               : " ended with status " + std::to_string(WEXITSTATUS(status))),
                      boot_now());
      }
    }
  }

  /// Notes how much memory they have. @param bound above which it is a finding
  void weigh(std::uint64_t bound) {
    for (auto& c : children_) {
      if (c.pid <= 0) continue;
      auto const bytes = resident(c.pid);
      auto& most = most_[c.given.role];
      most = std::max(most, bytes);
      if (bytes <= bound || c.told) continue;
      c.told = true;
      judge_.report("R8",
                    c.given.role + " " + std::to_string(c.number) + " has " +
                        std::to_string(bytes >> 20U) + " MiB",
                    boot_now());
    }
  }
  [[nodiscard]] std::map<std::string, std::uint64_t> const& most() const noexcept { return most_; }

  /// Is the process one of them?
  [[nodiscard]] bool has(::pid_t pid) const {
    return std::ranges::any_of(children_, [&](child const& c) { return c.pid == pid; });
  }
  [[nodiscard]] static std::uint64_t resident(::pid_t pid) { return memory(pid).first; }
  /// The same of a server and of what it has started, in which its own is not counted again.
  [[nodiscard]] static std::uint64_t resident_with_children(::pid_t pid) {
    auto bytes = resident(pid);
    for (auto const child : children_of(pid)) {
      auto const [all, shared] = memory(child);
      bytes += all - std::min(all, shared);
    }
    return bytes;
  }
  /// What the process has started.
  [[nodiscard]] static std::vector<::pid_t> children_of(::pid_t parent) {
    std::vector<::pid_t> out;
    std::ifstream in{"/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                     "/children"};
    for (::pid_t pid = 0; in >> pid;) out.push_back(pid);
    return out;
  }
  /// The records of kind `verdict` that were read.
  [[nodiscard]] std::vector<record> const& verdicts() const noexcept { return verdicts_; }

 private:
  struct child {
    std::uint32_t number = 0;
    ::pid_t pid = 0;
    assignment given{};
    std::streamoff at = 0;
    std::int64_t still_since = 0;
    bool ending = false;
    std::int64_t ending_since = 0;
    bool told = false;
    bool end_told = false;
    bool last_read = true;
  };

  [[nodiscard]] std::optional<std::size_t> pick(std::uint64_t chance) const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i != children_.size(); ++i) {
      auto const& c = children_[i];
      if (c.pid > 0 && c.still_since == 0 && !c.ending) all.push_back(i);
    }
    if (all.empty()) return std::nullopt;
    return all[chance % all.size()];
  }

  /// What is in memory, and what of it is shared with others.
  [[nodiscard]] static std::pair<std::uint64_t, std::uint64_t> memory(::pid_t pid) {
    std::ifstream in{"/proc/" + std::to_string(pid) + "/statm"};
    std::uint64_t size = 0;
    std::uint64_t pages = 0;
    std::uint64_t shared = 0;
    in >> size >> pages >> shared;
    return {pages * 4096, shared * 4096};
  }

  void read(child& c) {
    std::ifstream in{c.given.log};
    in.seekg(c.at);
    for (std::string line; std::getline(in, line) && !in.eof();) {
      c.at = in.tellg();
      auto const r = record::parse(line);
      if (r.kind == "verdict") {
        verdicts_.push_back(r);
      } else {
        judge_.feed(c.number, r);
      }
    }
  }

  std::string directory_;
  std::string preload_;
  std::string beside_;
  auditor& judge_;
  std::vector<child> children_;
  std::vector<record> verdicts_;
  std::map<std::string, std::uint64_t> most_;
};

}  // namespace soak

#endif
