// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_REDIS_BED_HPP
#define WEIR_BENCH_REDIS_BED_HPP

#include "../test/integration/redis_process.hpp"
#include "bed.hpp"
#include "distance.hpp"
#include "weir/store/redis.hpp"

#include <boost/asio/detached.hpp>

#include <chrono>
#include <memory>

namespace weir_bench {

/// On a server of its own.
class redis_bed : public bed<weir::redis_store> {
 public:
  static constexpr char const* name = "redis";

  /// @param round_trip how far the server is away
  explicit redis_bed(weir::duration round_trip = {})
      : way_{far_from(server_.port(), round_trip)},
        store_{io().get_executor(),
               way_ ? weir::redis_address{"127.0.0.1", way_->port()} : server_.address(),
               options()} {
    store_.async_run(boost::asio::detached);
  }
  ~redis_bed() override {
    store_.close();
    io().restart();
    io().run();
  }
  [[nodiscard]] weir::redis_store const& store() const noexcept override { return store_; }

 private:
  static weir::redis_options options() {
    weir::redis_options o;
    // A bed that is not measured does not run, and would take its connection for a dead one.
    o.health_check_interval = std::chrono::hours{1};
    return o;
  }

  redis_test::server server_{};
  std::unique_ptr<distance> way_;
  weir::redis_store store_;
};

}  // namespace weir_bench

#endif
