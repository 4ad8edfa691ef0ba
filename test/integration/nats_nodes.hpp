// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_NATS_NODES_HPP
#define WEIR_TEST_INTEGRATION_NATS_NODES_HPP

#include "integration/nats_process.hpp"
#include "integration/nats_stranger.hpp"
#include "integration/patience.hpp"
#include "integration/server_process.hpp"
#include "weir/store/nats/address.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace nats_test {

/// A cluster of three servers on the loopback interface.
class cluster {
 public:
  static constexpr std::size_t size = 3;

  /// @param configuration of each, beside what makes them a cluster
  /// @param clock as a server has it
  explicit cluster(std::string const& configuration = {}, std::string const& clock = {}) {
    std::array<std::uint16_t, size> ports{};
    std::string routes;
    for (auto& port : ports) {
      port = server_test::free_port();
      routes +=
          (routes.empty() ? "nats://127.0.0.1:" : ",nats://127.0.0.1:") + std::to_string(port);
    }
    for (std::size_t i = 0; i != size; ++i) {
      nodes_[i] = std::make_unique<server>(
          std::vector<std::string>{"--name", name(i), "--cluster_name", "weir", "--cluster",
                                   "nats://127.0.0.1:" + std::to_string(ports[i]), "--routes",
                                   routes},
          configuration, clock);
    }
    until_it_serves();
  }

  [[nodiscard]] static std::string name(std::size_t i) { return "n" + std::to_string(i); }
  [[nodiscard]] server& operator[](std::size_t i) { return *nodes_[i]; }
  [[nodiscard]] server const& operator[](std::size_t i) const { return *nodes_[i]; }

  /// Where all of them are.
  [[nodiscard]] weir::nats_address addresses() const {
    std::string urls;
    for (auto const& node : nodes_) {
      urls += (urls.empty() ? "nats://127.0.0.1:" : ",nats://127.0.0.1:") +
              std::to_string(node->port());
    }
    return weir::nats_address::parse(urls).value();
  }

 private:
  /// Until it has a leader that knows all of them, whoever asks for a stream on each is not heard.
  void until_it_serves() {
    nlohmann::json const wanted{
        {"name", "whole"}, {"subjects", {"whole"}}, {"storage", "memory"}, {"num_replicas", size}};
    auto const serves = [&] {
      try {
        stranger who{*nodes_[0], {}, 2s};
        auto const said = nlohmann::json::parse(
            who.ask("$JS.API.STREAM.CREATE.whole", wanted.dump()), nullptr, false);
        if (!said.is_object() || said.contains("error")) return false;
        (void)who.ask("$JS.API.STREAM.DELETE.whole");
        return true;
      } catch (std::exception const&) {  // nobody answers yet
        return false;
      }
    };
    if (!weir_test::happens(serves)) throw std::runtime_error{"the cluster has no leader"};
  }

  std::array<std::unique_ptr<server>, size> nodes_{};
};

/// The number of the server that leads a stream, which another one than `except` comes to do.
[[nodiscard]] inline std::size_t leader_of(cluster& c, std::string const& stream,
                                           std::size_t except = cluster::size) {
  auto const give_up = std::chrono::steady_clock::now() + 120s;
  while (std::chrono::steady_clock::now() < give_up) {
    for (std::size_t i = 0; i != cluster::size; ++i) {
      if (i == except) continue;
      try {
        stranger who{c[i], {}, 2s};  // another one may know better
        auto const said =
            nlohmann::json::parse(who.ask("$JS.API.STREAM.INFO." + stream), nullptr, false);
        if (!said.is_object() || !said.contains("cluster")) continue;
        auto const name = said["cluster"].value("leader", "");
        for (std::size_t n = 0; n != cluster::size; ++n) {
          if (n != except && name == cluster::name(n)) return n;
        }
      } catch (std::exception const&) {  // nobody answers at the moment
      }
    }
    std::this_thread::sleep_for(50ms);
  }
  throw std::runtime_error{stream + " has no leader"};
}

/// Asks the one that leads a stream to leave that to another one.
inline void step_down(cluster& c, std::string const& stream) {
  (void)stranger{c[leader_of(c, stream)]}.ask("$JS.API.STREAM.LEADER.STEPDOWN." + stream);
}

}  // namespace nats_test

#endif
