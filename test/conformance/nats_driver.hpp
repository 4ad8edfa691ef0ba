// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_NATS_DRIVER_HPP
#define WEIR_TEST_CONFORMANCE_NATS_DRIVER_HPP

#include "conformance/memory_driver.hpp"
#include "integration/nats_process.hpp"
#include "weir/store/nats.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/report.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace weir::testing {

/// Stores with prefixes, and so streams, of their own on one server, which goes with the driver.
class nats_driver {
 public:
  [[nodiscard]] static capabilities declared() {
    capabilities c;
    c.precision = std::chrono::milliseconds{10};  // what the server's time is not known by
    c.ends_are_final = false;                     // a step that only reads writes nothing down
    return c;
  }

  nats_store make(boost::asio::any_io_executor const& ex) { return make_with(ex, nats_options{}); }

 protected:
  nats_store make_with(boost::asio::any_io_executor const& ex, nats_options o) {
    auto const prefix = "test" + std::to_string(++made_);
    o.prefix = prefix;
    o.poll_interval = std::chrono::milliseconds{5};
    return nats_store{ex, server_.address(), o};
  }

 private:
  // A message has more than the largest payload of a job.
  nats_test::server server_{{}, "max_payload: 4194304\n"};
  std::size_t made_ = 0;
};

inline constexpr std::string_view forgets = "the store's engine forgets keys by itself";
inline constexpr std::string_view too_slow = "the store was too slow for its precision to judge";

/// Nothing fails, and what is left out is left out because time passes by itself, or because a
/// server has no such thing.
inline void require_nats(report const& r) {
  require_all(r, {no_hints, told_only, no_way_back, not_known, passes, no_bound, no_transactions,
                  forgets, too_slow});
}

}  // namespace weir::testing

#endif
