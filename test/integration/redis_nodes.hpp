// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_REDIS_NODES_HPP
#define WEIR_TEST_INTEGRATION_REDIS_NODES_HPP

#include "integration/patience.hpp"
#include "integration/redis_process.hpp"
#include "integration/server_process.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/cluster_map.hpp"

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redis_test {

/// How far a server has written, or its replica has got.
inline std::string replication_offset(server const& s) {
  auto const said = s.ask("info replication");
  constexpr std::string_view field = "\nmaster_repl_offset:";
  auto const at = said.find(field);
  return at == said.npos ? said
                         : said.substr(at + field.size(), said.find('\r', at) - at - field.size());
}

/// For a cluster whose masters are succeeded: soon, but not because a machine is slow.
inline std::vector<std::string> succeeded() { return {"--cluster-node-timeout", "5000"}; }

/// A cluster of three masters, each with a replica unless told otherwise, all on the loopback
/// interface. Nobody is succeeded, unless they are told to: what a master that is only slow had not
/// passed on would be lost.
class cluster {
 public:
  static constexpr std::size_t masters = 3;
  static constexpr std::size_t size = 2 * masters;

  /// @param options  for each of them
  /// @param replicas of each master, 0 or 1
  /// @param clock    as a server has it
  explicit cluster(std::vector<std::string> const& options = {}, std::size_t replicas = 1,
                   std::string const& clock = {})
      : nodes_(masters * (1 + replicas)) {
    std::string places;
    for (auto& node : nodes_) {
      std::vector<std::string> words{"--cluster-enabled",
                                     "yes",
                                     "--cluster-node-timeout",
                                     "60000",
                                     "--cluster-port",
                                     std::to_string(server_test::free_port()),
                                     "--repl-diskless-sync-delay",
                                     "0"};
      words.insert(words.end(), options.begin(), options.end());
      node = std::make_unique<server>(std::move(words), clock);
      places += " 127.0.0.1:" + std::to_string(node->port());
    }
    auto const said =
        nodes_[0]->ask("--cluster create" + places + " --cluster-yes --cluster-replicas " +
                       std::to_string(replicas));
    if (said.find("All 16384 slots covered") == said.npos) throw std::runtime_error{said};
    wait("replicas that are up to date", [&] {
      for (std::size_t i = masters; i != nodes_.size(); ++i) {
        if (nodes_[i]->ask("info replication").find("master_link_status:up") == std::string::npos) {
          return false;
        }
      }
      return everybody_says("cluster_state:ok");
    });
  }

  [[nodiscard]] server& operator[](std::size_t i) { return *nodes_[i]; }
  [[nodiscard]] server const& operator[](std::size_t i) const { return *nodes_[i]; }

  /// Where one of them is.
  [[nodiscard]] weir::redis_address address(std::size_t i = 0) const {
    return nodes_[i]->address().cluster();
  }
  /// Where all of them are.
  [[nodiscard]] weir::redis_address addresses() const {
    auto out = address();
    for (std::size_t i = 1; i != nodes_.size(); ++i)
      out.cluster_with("127.0.0.1", nodes_[i]->port());
    return out;
  }

  /// The number of the master that serves this tag.
  [[nodiscard]] std::size_t serves(std::string_view tag) const {
    auto const slot = std::to_string(weir::detail::redis_slot(tag));
    for (std::size_t i = 0; i != nodes_.size(); ++i) {
      if (nodes_[i]->ask("get '{" + std::string{tag} + "}:nothing'").empty()) return i;
    }
    throw std::runtime_error{"nobody serves " + slot};
  }

  [[nodiscard]] std::string id_of(std::size_t i) const { return nodes_[i]->ask("cluster myid"); }

  /// The number of the replica that follows this master.
  [[nodiscard]] std::size_t replica_of(std::size_t master) const {
    auto const port = "master_port:" + std::to_string(nodes_[master]->port());
    for (std::size_t i = 0; i != nodes_.size(); ++i) {
      if (nodes_[i]->ask("info replication").find(port) != std::string::npos) return i;
    }
    throw std::runtime_error{"no replica"};
  }

  [[nodiscard]] bool everybody_says(std::string_view what) const {
    for (auto const& node : nodes_) {
      if (node->ask("cluster info").find(what) == std::string::npos) return false;
    }
    return true;
  }

  /// How often all of them have refused a command with this code.
  [[nodiscard]] int refusals(std::string const& code) const {
    int out = 0;
    for (auto const& node : nodes_) {
      auto const said = node->ask("info errorstats");
      auto const at = said.find("errorstat_" + code + ":count=");
      if (at != said.npos) out += std::stoi(said.substr(said.find('=', at) + 1));
    }
    return out;
  }

  template <class Condition>
  static void wait(std::string const& what, Condition condition) {
    if (!weir_test::happens(std::move(condition))) throw std::runtime_error{"no " + what};
  }

 private:
  std::vector<std::unique_ptr<server>> nodes_;
};

}  // namespace redis_test

#endif
