// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_NATS_CREW_HPP
#define WEIR_TEST_INTEGRATION_NATS_CREW_HPP

#include "integration/broken_network.hpp"
#include "integration/nats_nodes.hpp"
#include "integration/nats_server.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

namespace nats_test {

/// For a store whose streams are on all three, and go on when one of them dies.
[[nodiscard]] inline nats_options threefold() {
  auto o = brisk();
  o.replicas = cluster::size;
  o.request_timeout = 1s;  // whoever led took what it was asked with it
  o.longest_reconnect_wait = 100ms;
  return o;
}

/// Stores that begin at different servers of a cluster, and those who work with them.
class crew {
 public:
  crew(cluster& c, nats_options const& o) {
    for (std::size_t i = 0; i != cluster::size; ++i) {
      stores_.emplace_back(io_.get_executor(), c.addresses(), o);
      stores_.back().async_run([](error_code) {});
    }
  }

  [[nodiscard]] nats_store const& store(std::size_t i) const { return stores_[i % cluster::size]; }
  [[nodiscard]] std::size_t working() const noexcept { return working_; }

  void start(boost::asio::awaitable<void> work) {
    ++working_;
    boost::asio::co_spawn(io_, std::move(work), [this](std::exception_ptr e) {
      failed_ = failed_ || e;
      --working_;
    });
  }
  /// Runs until that is so, which it has to be in time.
  template <class Condition>
  void until(Condition const& so) {
    auto const give_up = std::chrono::steady_clock::now() + 120s;
    while (!so() && !failed_ && std::chrono::steady_clock::now() < give_up) {
      io_.run_one_for(100ms);
    }
    BOOST_TEST_REQUIRE(!failed_);
    BOOST_TEST_REQUIRE(so(), "they do not get on");
  }
  template <class C>
  [[nodiscard]] typename C::result ask(std::size_t i, C const& c) {
    return nats_test::ask(io_, store(i), c).value();
  }
  /// Once all work has ended.
  void close() {
    until([this] { return working_ == 0; });
    for (auto const& s : stores_) s.close();
    network_test::run_out(io_);
  }

 private:
  boost::asio::io_context io_{};
  std::vector<nats_store> stores_{};
  std::size_t working_ = 0;
  bool failed_ = false;
};

}  // namespace nats_test

#endif
