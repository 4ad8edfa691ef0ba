// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Stores with connections of their own, as other processes would have, take turns on the same keys:
// what one remembers of a record is mostly not what it is by then.

#include "conformance/nats_driver.hpp"
#include "conformance/nats_stores.hpp"
#include "conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace weir::testing {
namespace {

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

BOOST_AUTO_TEST_CASE(permits_keep_every_promise) {
  suite::of<permit_commands>(driver, found, hard);
}
BOOST_AUTO_TEST_CASE(locks_keep_every_promise) { suite::of<lock_commands>(driver, found, hard); }
BOOST_AUTO_TEST_CASE(buckets_keep_every_promise) {
  suite::of<bucket_commands>(driver, found, hard);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::testing
