// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_NATS_NODES_HPP
#define WEIR_TEST_INTEGRATION_NATS_NODES_HPP

#include "integration/nats_process.hpp"
#include "weir/store/nats/address.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace nats_test {

/// A cluster of three servers on the loopback interface.
class cluster {
 public:
  static constexpr std::size_t size = 3;

  cluster() {
    std::array<std::uint16_t, size> ports{};
    std::string routes;
    for (auto& port : ports) {
      port = server::free_port();
      routes +=
          (routes.empty() ? "nats://127.0.0.1:" : ",nats://127.0.0.1:") + std::to_string(port);
    }
    for (std::size_t i = 0; i != size; ++i) {
      nodes_[i] = std::make_unique<server>(std::vector<std::string>{
          "--name", name(i), "--cluster_name", "weir", "--cluster",
          "nats://127.0.0.1:" + std::to_string(ports[i]), "--routes", routes});
    }
  }

  [[nodiscard]] static std::string name(std::size_t i) { return "n" + std::to_string(i); }
  [[nodiscard]] server& operator[](std::size_t i) { return *nodes_[i]; }

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
  std::array<std::unique_ptr<server>, size> nodes_{};
};

}  // namespace nats_test

#endif
