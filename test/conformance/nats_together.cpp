// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Stores with connections of their own, as other processes would have, take turns on the same keys:
// what one remembers of a record is mostly not what it is by then.

#include "conformance/nats_driver.hpp"
#include "weir/testing/conformance/buckets.hpp"
#include "weir/testing/conformance/locks.hpp"
#include "weir/testing/conformance/permits.hpp"

#include <boost/asio/detached.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing {
namespace {

class nats_stores {
 public:
  using executor_type = nats_store::executor_type;
  using clock_type = nats_store::clock_type;

  explicit nats_stores(std::vector<nats_store> all) : all_{std::move(all)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return all_[0].get_executor(); }

  template <class Token>
  auto async_run(Token&& token) const {
    for (std::size_t i = 1; i < all_.size(); ++i) all_[i].async_run(boost::asio::detached);
    return all_[0].async_run(std::forward<Token>(token));
  }
  void close() const {
    for (auto const& s : all_) s.close();
  }

  template <class C, class Token>
    requires executes<nats_store, C>
  auto async_execute(C const& c, Token&& token) const {
    return all_[(*turn_)++ % all_.size()].async_execute(c, std::forward<Token>(token));
  }

 private:
  std::vector<nats_store> all_;
  std::shared_ptr<std::atomic<std::size_t>> turn_ = std::make_shared<std::atomic<std::size_t>>(0);
};

class nats_stores_driver {
 public:
  [[nodiscard]] static capabilities declared() { return nats_driver::declared(); }

  nats_stores make(boost::asio::any_io_executor const& ex) {
    std::vector<nats_store> all;
    for (std::size_t i = 0; i != 3; ++i) all.push_back(engine_.make(ex, i));
    return nats_stores{std::move(all)};
  }

 private:
  nats_engine engine_{};
};

struct run {
  nats_stores_driver driver;
  report found;
  settings hard = [] {
    settings s;
    s.concurrent = 12;
    return s;
  }();
  ~run() { require_nats(found); }
};

BOOST_FIXTURE_TEST_SUITE(nats_together, run)

BOOST_AUTO_TEST_CASE(permits_keep_every_promise) { conformance::permits(driver, found, hard); }
BOOST_AUTO_TEST_CASE(locks_keep_every_promise) { conformance::locks(driver, found, hard); }
BOOST_AUTO_TEST_CASE(buckets_keep_every_promise) { conformance::buckets(driver, found, hard); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::testing
