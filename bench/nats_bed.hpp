// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_NATS_BED_HPP
#define WEIR_BENCH_NATS_BED_HPP

#include "../test/integration/nats_process.hpp"
#include "bed.hpp"
#include "distance.hpp"
#include "weir/store/nats.hpp"

#include <boost/asio/detached.hpp>

#include <memory>
#include <string>

namespace weir_bench {

/// On a server of its own.
class nats_bed : public bed<weir::nats_store> {
 public:
  static constexpr char const* name = "nats";

  /// @param round_trip how far the server is away
  explicit nats_bed(weir::duration round_trip = {})
      : way_{far_from(server_.port(), round_trip)},
        store_{io().get_executor(), address()} {
    store_.async_run(boost::asio::detached);
  }
  ~nats_bed() override {
    store_.close();
    io().restart();
    io().run();
  }
  [[nodiscard]] weir::nats_store const& store() const noexcept override { return store_; }

 private:
  [[nodiscard]] weir::nats_address address() const {
    if (!way_) return server_.address();
    return weir::nats_address::parse("nats://127.0.0.1:" + std::to_string(way_->port())).value();
  }

  nats_test::server server_{};
  std::unique_ptr<distance> way_;
  weir::nats_store store_;
};

}  // namespace weir_bench

#endif
