// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_REDIS_SENTINELS_HPP
#define WEIR_TEST_INTEGRATION_REDIS_SENTINELS_HPP

#include "integration/directory.hpp"
#include "integration/patience.hpp"
#include "integration/redis_nodes.hpp"
#include "integration/redis_process.hpp"
#include "integration/server_process.hpp"
#include "weir/store/redis/address.hpp"

#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redis_test {

/// A server and its replica, and three sentinels that watch over them, on the loopback interface.
class watched {
 public:
  static constexpr std::size_t sentinels = 3;
  static constexpr char const* service = "mymaster";

  /// @param options of both servers
  /// @param more    of each sentinel: lines of its configuration
  /// @param clock   the library by which the servers' clocks are moved; empty: they are the
  /// machine's
  /// @param open    may anybody ask? It is not waited for otherwise
  explicit watched(std::vector<std::string> options = {}, std::string const& more = {},
                   std::string const& clock = {}, bool open = true) {
    options.insert(options.end(), {"--repl-diskless-sync-delay", "0"});
    servers_[0] = std::make_unique<server>(options, clock);
    options.insert(options.end(), {"--replicaof", "127.0.0.1 " + std::to_string(port(0))});
    servers_[1] = std::make_unique<server>(options, clock);
    for (auto& s : sentinels_) s = std::make_unique<sentinel>(port(0), more);
    if (open) wait_for_replica();
  }

  [[nodiscard]] server& operator[](std::size_t i) { return *servers_[i]; }
  [[nodiscard]] std::uint16_t port(std::size_t i) const { return servers_[i]->port(); }
  [[nodiscard]] std::uint16_t sentinel_port(std::size_t i) const { return sentinels_[i]->port; }
  [[nodiscard]] std::string url() const {
    std::string out = "redis+sentinel://";
    for (auto const& s : sentinels_) {
      out += (out.ends_with('/') ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(s->port);
    }
    return out + "/" + service;
  }
  [[nodiscard]] weir::redis_address address() const {
    return weir::redis_address::parse(url()).value();
  }

  /// The number of the one that serves, as a sentinel knows it.
  [[nodiscard]] std::size_t serving(std::size_t i = 0) const {
    auto const said = ask_sentinel("sentinel get-master-addr-by-name " + std::string{service}, i);
    return said.ends_with(std::to_string(port(0))) ? 0 : 1;
  }

  /// Ends a sentinel.
  void kill_sentinel(std::size_t i) { sentinels_[i]->kill(); }

  /// Has the other one serve. It may lack what was written last.
  void fail_over() {
    wait_for_replica();
    auto const from = serving();
    cluster::wait("fail-over that begins", [&] {
      return ask_sentinel("sentinel failover " + std::string{service}).starts_with("OK");
    });
    until_it_serves(1 - from);
  }

  /// Until all sentinels that live say that it does.
  void until_it_serves(std::size_t which) const {
    cluster::wait("successor", [&] {
      for (std::size_t i = 0; i != sentinels; ++i) {
        if (sentinels_[i]->pid != 0 && serving(i) != which) return false;
      }
      return servers_[which]->ask("role").starts_with("master");
    });
  }

  /// Until what serves has a replica that is up to date, and the sentinels know of it and of each
  /// other.
  void wait_for_replica() const {
    cluster::wait("replica that is up to date", [&] {
      auto const& replica = *servers_[1 - serving()];
      return replica.ask("info replication").find("master_link_status:up") != std::string::npos;
    });
    cluster::wait("sentinels that know each other", [&] {
      for (std::size_t i = 0; i != sentinels; ++i) {
        if (sentinels_[i]->pid == 0) continue;
        auto const said = ask_sentinel("sentinel ckquorum " + std::string{service}, i);
        auto const known = ask_sentinel("sentinel replicas " + std::string{service}, i);
        if (!said.starts_with("OK 3") || known.find("master-link-status\nok") == known.npos) {
          return false;
        }
      }
      return true;
    });
  }

  std::string ask_sentinel(std::string const& words, std::size_t i = 0) const {
    return server::ask_at(sentinels_[i]->port, words);
  }

 private:
  struct sentinel {
    sentinel(std::uint16_t master, std::string const& more) {
      auto const file = (home.path() / "conf").string();
      std::ofstream{file} << "port " << port << "\nbind 127.0.0.1\nprotected-mode no\ndir "
                          << home.path().string() << "\nlogfile log\nsentinel monitor " << service
                          << " 127.0.0.1 " << master << " 2\nsentinel down-after-milliseconds "
                          << service << " 1000\nsentinel failover-timeout " << service << " 6000\n"
                          << more << '\n';
      auto const* const asked = std::getenv("WEIR_TEST_REDIS_SERVER");
      std::vector<char const*> programs{"redis-server", "redis-check-rdb"};
      if (asked != nullptr) programs = {asked};
      pid = server_test::start(programs, {"redis-server", file, "--sentinel"});
      cluster::wait("sentinel", [&] {
        auto const said = server::ask_at(port, "ping");
        return said == "PONG" || said.starts_with("NOAUTH");
      });
    }
    sentinel(sentinel const&) = delete;
    sentinel& operator=(sentinel const&) = delete;
    ~sentinel() { kill(); }
    void kill() {
      if (pid == 0) return;
      ::kill(pid, SIGKILL);
      ::waitpid(std::exchange(pid, 0), nullptr, 0);
    }

    weir_test::directory home;
    std::uint16_t port = server_test::free_port();
    ::pid_t pid = 0;
  };

  std::array<std::unique_ptr<server>, 2> servers_;
  std::array<std::unique_ptr<sentinel>, sentinels> sentinels_;
};

}  // namespace redis_test

#endif
