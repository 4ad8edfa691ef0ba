// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_NATS_BED_HPP
#define WEIR_BENCH_NATS_BED_HPP

#include "../test/integration/nats_process.hpp"
#include "bed.hpp"
#include "weir/store/nats.hpp"

#include <boost/asio/detached.hpp>

namespace weir_bench {

/// On a server of its own.
class nats_bed : public bed<weir::nats_store> {
 public:
  static constexpr char const* name = "nats";

  nats_bed() : store_{io().get_executor(), server_.address()} {
    store_.async_run(boost::asio::detached);
  }
  ~nats_bed() override {
    store_.close();
    io().restart();
    io().run();
  }
  [[nodiscard]] weir::nats_store const& store() const noexcept override { return store_; }

 private:
  nats_test::server server_{};
  weir::nats_store store_;
};

}  // namespace weir_bench

#endif
