// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_TURN_HPP
#define WEIR_STORE_NATS_TURN_HPP

#include "weir/clock/system.hpp"
#include "weir/time.hpp"

#include <chrono>

namespace weir::detail {

/// A turn of the strand, in which long work is done for a while; then it is everybody else's, and
/// the work goes on in another one. By time, since records and commands differ much in what they
/// take.
class nats_turn {
 public:
  [[nodiscard]] bool over() const { return system_clock{}.steady_now() >= until_; }

 private:
  static constexpr duration length = std::chrono::milliseconds{1};

  steady_time until_ = saturating_add(system_clock{}.steady_now(), length);
};

}  // namespace weir::detail

#endif
