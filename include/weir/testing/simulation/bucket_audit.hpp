// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_BUCKET_AUDIT_HPP
#define WEIR_TESTING_SIMULATION_BUCKET_AUDIT_HPP

#include "weir/command/buckets.hpp"
#include "weir/detail/int128.hpp"
#include "weir/error.hpp"
#include "weir/testing/simulation/world.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing::simulation {

/// Holds every answer about buckets to R3: in any window of the store's time, what is granted and
/// not refunded is at most capacity + rate·window, in exact arithmetic.
class bucket_audit {
 public:
  explicit bucket_audit(world& in) : world_{in} {}

  void on(command::take const& c, result<decision> const& a, time_point now) {
    if (a.has_error()) return;
    auto const& d = a.value();
    auto& b = find(c.key);
    if (!d.allowed) {
      world_.reach(d.shed ? rare_state::bucket_shed : rare_state::take_denied);
      expect(d.retry_after > duration::zero() || d.shed, "R3", "a denial without a retry_after");
      return;
    }
    expect(d.wait <= c.max_wait, "R3", "granted further ahead than was allowed");
    if (d.wait > duration::zero()) world_.reach(rare_state::take_reserved);
    grant const g{now + d.wait, static_cast<std::int64_t>(c.cost), d.mark};
    auto const after = [](grant const& x, grant const& y) { return x.instant < y.instant; };
    auto const at =
        b.grants.insert(std::upper_bound(b.grants.begin(), b.grants.end(), g, after), g);
    auto const place = static_cast<std::size_t>(at - b.grants.begin());
    for (auto const& q : c.quotas) check(b, place, q);
    if (b.grants.size() > most) b.grants.erase(b.grants.begin());
  }

  void on(command::refund const& c, result<refund_receipt> const& a, time_point) {
    if (a.has_error()) return;
    auto const& r = a.value();
    expect(r.credited + r.forfeited == c.cost, "R3", "a refund that does not add up");
    if (r.forfeited != 0) world_.reach(rare_state::refund_forfeited);
    if (r.credited == 0) return;
    world_.reach(rare_state::refund_credited);
    // Two takes may leave the very same mark, if one was refunded before the other: the latest.
    auto& b = find(c.key);
    auto const it = std::find_if(b.grants.rbegin(), b.grants.rend(),
                                 [&](grant const& g) { return g.mark == c.mark && g.cost > 0; });
    expect(it != b.grants.rend(), "R3", "credited what was not granted, or is refunded already");
    if (it == b.grants.rend()) return;
    it->cost -= static_cast<std::int64_t>(r.credited);
    expect(it->cost >= 0, "R3", "credited more than was granted");
  }

  void on(command::reset_bucket const& c, result<hint> const& a, time_point) {
    if (a.has_value()) find(c.key).grants.clear();
  }

 private:
  struct grant {
    time_point instant;
    std::int64_t cost;
    bucket_mark mark;
  };
  struct bucket {
    std::vector<grant> grants;  // by instant
  };

  static constexpr std::size_t most = 300;

  bucket& find(std::string_view key) {
    auto it = buckets_.find(key);
    if (it == buckets_.end()) it = buckets_.emplace(std::string{key}, bucket{}).first;
    return it->second;
  }

  /// Every window that holds this grant: the fullest is from a low of the line (granted so far less
  /// refilled so far) before it to a high after it.
  void check(bucket const& b, std::size_t place, quota const& q) {
    using wide = weir::detail::int128;
    wide const period = q.period().count();
    wide const tokens = static_cast<wide>(q.tokens());
    auto const& origin = b.grants.front().instant;
    auto const refilled = [&](std::size_t i) {
      return tokens * (b.grants[i].instant - origin).count();
    };
    wide sum = 0;
    wide low = 0;
    wide high = 0;
    for (std::size_t i = 0; i != b.grants.size(); ++i) {
      wide const before = sum * period - refilled(i);
      sum += b.grants[i].cost;
      wide const after = sum * period - refilled(i);
      if (i <= place) low = i == 0 ? before : std::min(low, before);
      if (i >= place) high = i == place ? after : std::max(high, after);
    }
    expect(high - low <= static_cast<wide>(q.capacity()) * period, "R3",  // F65: no tolerance
           "more was granted in a window than capacity and rate allow");
  }

  void expect(bool kept, std::string_view promise, std::string_view what) {
    world_.expect(kept, promise, [&] { return std::string{what}; });
  }

  world& world_;
  std::map<std::string, bucket, std::less<>> buckets_;
};

}  // namespace weir::testing::simulation

#endif
