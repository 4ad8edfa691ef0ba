// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Stores with connections of their own, as other processes would have, take turns on the same
// queues: what one knows of them it has read in the log, or in an image, of which there are many.

#include "conformance/nats_driver.hpp"
#include "conformance/nats_stores.hpp"
#include "conformance/suite.hpp"

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

  std::size_t image_interval = 0;  ///< in bytes; 0: as it is by itself

  nats_stores make(boost::asio::any_io_executor const& ex) {
    auto const prefix = "together" + std::to_string(++made_);
    nats_options o;
    o.prefix = prefix;
    if (image_interval != 0) o.image_interval = image_interval;
    nats_engine::never_gives_up(o);
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

// Whoever is behind by an image does not hear what became of its commands, as it says. Where many
// are under way, that is no promise broken, so there are images only where one is.
BOOST_AUTO_TEST_CASE(keep_every_promise) {
  nats_stores_driver driver;
  report found;
  settings hard;
  hard.concurrent = 8;
  hard.histories = 0;
  suite::of<job_commands>(driver, found, hard);
  require_nats(found);
}

BOOST_AUTO_TEST_CASE(keep_every_promise_with_an_image_every_few_commands) {
  nats_stores_driver driver;
  driver.image_interval = 4096;
  report found;
  settings calm;
  calm.concurrent = 0;
  calm.histories = 20;
  suite::of<job_commands>(driver, found, calm);
  require_nats(found);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace weir::testing
