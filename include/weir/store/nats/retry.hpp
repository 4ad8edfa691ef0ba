// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_RETRY_HPP
#define WEIR_STORE_NATS_RETRY_HPP

#include "weir/backoff/capped.hpp"
#include "weir/backoff/exponential.hpp"
#include "weir/backoff/jittered.hpp"
#include "weir/id_source.hpp"
#include "weir/store/nats/options.hpp"
#include "weir/time.hpp"

#include <cstdint>

namespace weir::detail {

/// How long to wait before something is tried again: twice as long each time it failed in a row,
/// and some of that drawn, so that not all processes come back at once.
class nats_retry {
 public:
  explicit nats_retry(nats_options const& o)
      : backoff_{capped_backoff{exponential_backoff{o.least_reconnect_wait},
                                o.longest_reconnect_wait}} {}

  [[nodiscard]] duration next() {
    waited_ = backoff_(failures_++, waited_, ids_.entropy());
    return waited_;
  }
  void succeeded() noexcept {
    failures_ = 0;
    waited_ = {};
  }

 private:
  jittered_backoff<capped_backoff<exponential_backoff>, equal_jitter> backoff_;
  id_source ids_;
  std::uint32_t failures_ = 0;
  duration waited_{};
};

}  // namespace weir::detail

#endif
