// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_REDIS_DRIVER_HPP
#define WEIR_TEST_CONFORMANCE_REDIS_DRIVER_HPP

#include "conformance/memory_driver.hpp"
#include "integration/redis_nodes.hpp"
#include "integration/redis_server.hpp"
#include "weir/store/redis.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/report.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing {

/// Stores with prefixes of their own on one server, or, if WEIR_TEST_REDIS_CLUSTER is set, on one
/// cluster, which goes with the driver.
class redis_driver {
 public:
  redis_driver() {
    if (std::getenv("WEIR_TEST_REDIS_CLUSTER") != nullptr) {
      cluster_.emplace();
    } else {
      server_.emplace();
      server_->ask("acl setuser weir reset on '>secret' " + redis_test::least_rights("test*"));
    }
  }
  redis_driver(redis_driver const&) = delete;
  redis_driver& operator=(redis_driver const&) = delete;
  /// Nothing was tried that the user of the stores may not do: also not what may fail.
  ~redis_driver() {
    if (server_) BOOST_TEST(server_->ask("acl log") == "");
  }

  [[nodiscard]] static capabilities declared() {
    capabilities c;
    c.precision = std::chrono::microseconds{1};
    c.ends_are_final = false;  // a step that only reads writes nothing down
    return c;
  }

  redis_store make(boost::asio::any_io_executor const& ex) { return make_with(ex, 0); }

 protected:
  redis_store make_with(boost::asio::any_io_executor const& ex, std::size_t max_buckets) {
    auto const prefix = "test" + std::to_string(++made_);
    auto o = redis_test::unhurried();
    o.prefix = prefix;
    o.poll_interval = std::chrono::milliseconds{5};
    o.max_buckets = max_buckets;
    if (cluster_) {
      o.shards = max_buckets == 0 ? 4 : 1;  // on several nodes, nearly always
      return redis_store{ex, cluster_->address(made_ % redis_test::cluster::size), o};
    }
    return redis_store{ex, server_->address().authenticate("secret", "weir"), o};
  }

 private:
  std::optional<redis_test::server> server_;
  std::optional<redis_test::cluster> cluster_;
  std::size_t made_ = 0;
};

/// The same, with a bound for the only noun that has one.
struct bounded_redis_driver : redis_driver {
  redis_store make(boost::asio::any_io_executor const& ex) { return make_with(ex, 1'000'000); }
  redis_store make_bounded(boost::asio::any_io_executor const& ex, std::size_t n) {
    return make_with(ex, n);
  }
};

inline constexpr std::string_view forgets = "the store's engine forgets keys by itself";
inline constexpr std::string_view several_shards = "the store has several shards";
inline constexpr std::string_view too_slow = "the store was too slow for its precision to judge";

/// Nothing fails, and what is left out is left out because time passes by itself, or because a
/// server has no such thing.
inline void require_redis(report const& r) {
  std::vector<std::string_view> allowed{no_hints, told_only, no_way_back,     not_known, passes,
                                        no_bound, forgets,   no_transactions, too_slow};
  if (std::getenv("WEIR_TEST_REDIS_CLUSTER") != nullptr) allowed.push_back(several_shards);
  require_all(r, allowed);
}

}  // namespace weir::testing

#endif
