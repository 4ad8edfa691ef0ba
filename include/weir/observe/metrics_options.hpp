// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_METRICS_OPTIONS_HPP
#define WEIR_OBSERVE_METRICS_OPTIONS_HPP

#include "weir/error.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

/// Bounds and labels of `prometheus_metrics`.
struct metrics_options {
  /// Upper bounds of the buckets of every histogram, growing; 1…100 of them.
  std::vector<duration> bounds{std::chrono::microseconds{100}, std::chrono::milliseconds{1},
                               std::chrono::milliseconds{5},   std::chrono::milliseconds{10},
                               std::chrono::milliseconds{25},  std::chrono::milliseconds{50},
                               std::chrono::milliseconds{100}, std::chrono::milliseconds{250},
                               std::chrono::milliseconds{500}, std::chrono::seconds{1},
                               std::chrono::seconds{5},        std::chrono::seconds{10},
                               std::chrono::seconds{60},       std::chrono::minutes{10}};
  /// How many queues, pairs of a queue and a kind, limits and schedules have series of their own:
  /// 1…100,000. Later ones are counted together, as `other`; later limits are left out.
  std::uint32_t most_series = 200;
  /// The label of a queue: for example `tenant/*` for every queue of a tenant, so that a thousand
  /// tenants are one series. Empty: its name. Called in any thread, and always has the same answer
  /// for a queue; must not throw.
  std::function<std::string(std::string_view queue)> queue_label{};
};

/// Are the options within their ranges? Error: `invalid_option`.
[[nodiscard]] inline error_code validate(metrics_options const& o) noexcept {
  auto const& bounds = o.bounds;
  bool const grow =
      std::ranges::adjacent_find(bounds, std::ranges::greater_equal{}) == bounds.end();
  bool const fit = !bounds.empty() && bounds.size() <= 100 && grow &&
                   bounds.front() > duration::zero() && o.most_series != 0 &&
                   o.most_series <= 100'000;
  return fit ? error_code{} : make_error_code(errc::invalid_option);
}

}  // namespace weir

#endif
