// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Stores with connections of their own, as other processes would have, take turns on the same
// queues: what one knows of them it has read in the log, or in an image, of which there are many.

#include "conformance/nats_driver.hpp"
#include "conformance/nats_stores.hpp"
#include "weir/testing/conformance/jobs.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing {
namespace {

class nats_stores_driver {
 public:
  [[nodiscard]] static capabilities declared() { return nats_driver::declared(); }

  nats_stores make(boost::asio::any_io_executor const& ex) {
    auto const prefix = "together" + std::to_string(++made_);
    nats_options o;
    o.prefix = prefix;
    o.image_interval = 4096;
    std::vector<nats_store> all;
    for (int i = 0; i != 3; ++i) all.emplace_back(ex, server_.address(), o);
    return nats_stores{std::move(all)};
  }

 private:
  nats_test::server server_{{}, "max_payload: 4194304\n"};
  std::size_t made_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_jobs_together)

BOOST_AUTO_TEST_CASE(keep_every_promise) {
  nats_stores_driver driver;
  report found;
  settings hard;
  hard.concurrent = 8;
  hard.histories = 20;
  conformance::jobs(driver, found, hard);
  require_nats(found);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace weir::testing
