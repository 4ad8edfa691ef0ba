// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_MODEL_BUCKETS_HPP
#define WEIR_TESTING_MODEL_BUCKETS_HPP

#include "weir/command/buckets.hpp"
#include "weir/decision.hpp"
#include "weir/detail/int128.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weir::testing {

/// What a bucket store has to answer to valid commands: of each quota of a key, when it is full
/// again. It shares no code with the rule (F66), and never forgets a bucket.
///
/// Of t tokens in p nanoseconds, one comes every p/t ns. So times are counted in t-ths of a
/// nanosecond, of which a token takes p: all numbers are whole, and nothing is rounded.
class bucket_model {
 public:
  result<decision> execute(command::take const& c, time_point now) {
    if (auto const ec = impossible(c)) return ec;
    auto b = with_quotas(c, now);
    auto const before = b.full;
    decision out;
    out.cost = c.cost;
    auto const wait = wait_of(b, c.cost, now);
    out.allowed = wait <= c.max_wait;
    if (out.allowed) {
      out.wait = wait;
      for (std::size_t i = 0; i < b.quotas.size(); ++i) {
        auto const& q = b.quotas[i];
        b.full[i] = std::max(b.full[i], ticks(q, now + wait)) + price(q, c.cost);
      }
      grants_.push_back({before, b.full});
      out.mark.arrival[0] = static_cast<std::int64_t>(grants_.size());
      buckets_[std::string{c.key}] = b;
    } else {
      out.retry_after = wait - c.max_wait;
    }
    describe(out, b, now);
    return out;
  }

  result<bucket_info> execute(command::peek_bucket const& c, time_point now) {
    if (auto const ec = impossible(c)) return ec;
    auto const b = with_quotas(c, now);
    bucket_info out;
    out.cost = c.cost;
    auto const wait = wait_of(b, c.cost, now);
    out.allowed = wait <= c.max_wait;
    (out.allowed ? out.wait : out.retry_after) = out.allowed ? wait : wait - c.max_wait;
    describe(out, b, now);
    for (std::size_t i = 0; i < b.quotas.size(); ++i) out.levels[i] = level(b, i, now);
    return out;
  }

  /// The last grant only: the bucket has to be as that grant left it.
  result<refund_receipt> execute(command::refund const& c, time_point now) {
    auto const found = buckets_.find(std::string{c.key});
    auto const number = static_cast<std::size_t>(c.mark.arrival[0]);
    if (found == buckets_.end() || number - 1 >= grants_.size() ||
        found->second.full != grants_[number - 1].after) {
      return refund_receipt{.credited = 0, .forfeited = c.cost};
    }
    auto& b = found->second;
    auto back = c.cost;
    for (std::size_t i = 0; i < b.quotas.size() && !c.before_instant; ++i) {
      auto const token = price(b.quotas[i], 1);
      auto const begun = (missing(b, i, now) + token - 1) / token;  // refilled in part or not at
                                                                    // all
      back = static_cast<std::uint64_t>(std::min(wide{back}, begun));
    }
    for (std::size_t i = 0; i < b.quotas.size(); ++i) {
      b.full[i] -= price(b.quotas[i], back);
      if (c.before_instant) b.full[i] = std::min(b.full[i], grants_[number - 1].before[i]);
    }
    return refund_receipt{.credited = back, .forfeited = c.cost - back};
  }

  result<hint> execute(command::reset_bucket const& c, time_point) {
    buckets_.erase(std::string{c.key});
    return hint{};
  }

 private:
  using wide = weir::detail::int128;
  using times = std::array<wide, limits::quotas>;

  static constexpr wide always = -(wide{1} << 100);  // full, at any time

  struct bucket {
    std::vector<quota> quotas;
    times full{always, always, always, always};
  };
  struct grant {
    times before;
    times after;
  };

  static wide ticks(quota const& q, time_point t) {
    return static_cast<wide>(t.time_since_epoch().count()) * static_cast<wide>(q.tokens());
  }
  static wide price(quota const& q, std::uint64_t tokens) {
    return static_cast<wide>(tokens) * q.period().count();
  }
  static duration rounded_up(quota const& q, wide n) {
    auto const t = static_cast<wide>(q.tokens());
    return duration{static_cast<duration::rep>((n + t - 1) / t)};
  }
  static wide missing(bucket const& b, std::size_t i, time_point now) {
    return std::max(b.full[i] - ticks(b.quotas[i], now), wide{0});
  }

  template <class C>
  static error_code impossible(C const& c) {
    for (auto const& q : c.quotas) {
      if (c.cost > q.capacity()) return errc::cost_exceeds_capacity;
    }
    return {};
  }

  /// The key's bucket, with these quotas: each misses as many tokens, rounded up, as the one that
  /// was in its place.
  template <class C>
  bucket with_quotas(C const& c, time_point now) const {
    bucket out{{c.quotas.begin(), c.quotas.end()}};
    auto const found = buckets_.find(std::string{c.key});
    if (found == buckets_.end()) return out;
    auto const& old = found->second;
    if (old.quotas == out.quotas) return old;
    for (std::size_t i = 0; i < std::min(old.quotas.size(), out.quotas.size()); ++i) {
      auto const token = price(old.quotas[i], 1);
      auto const spent = static_cast<std::uint64_t>((missing(old, i, now) + token - 1) / token);
      auto const& q = out.quotas[i];
      out.full[i] = ticks(q, now) + price(q, std::min(spent, q.capacity()));
    }
    return out;
  }

  /// Until every quota has so many tokens.
  static duration wait_of(bucket const& b, std::uint64_t cost, time_point now) {
    duration out{};
    for (std::size_t i = 0; i < b.quotas.size(); ++i) {
      auto const& q = b.quotas[i];
      auto const lacks = missing(b, i, now) + price(q, cost) - price(q, q.capacity());
      if (lacks > 0) out = std::max(out, rounded_up(q, lacks));
    }
    return out;
  }

  static quota_level level(bucket const& b, std::size_t i, time_point now) {
    auto const& q = b.quotas[i];
    auto const left = std::max(price(q, q.capacity()) - missing(b, i, now), wide{0});
    return {q.capacity(), static_cast<std::uint64_t>(left / price(q, 1)),
            rounded_up(q, missing(b, i, now))};
  }

  /// The quota with the fewest tokens binds, the first one of several.
  template <class Answer>
  static void describe(Answer& out, bucket const& b, time_point now) {
    for (std::size_t i = 0; i < b.quotas.size(); ++i) {
      auto const l = level(b, i, now);
      out.reset_after = std::max(out.reset_after, l.reset_after);
      if (i != 0 && l.remaining >= out.remaining) continue;
      out.binding = static_cast<std::uint8_t>(i);
      out.capacity = l.capacity;
      out.remaining = l.remaining;
    }
  }

  std::map<std::string, bucket> buckets_;
  std::vector<grant> grants_;
};

/// Holds R3 without knowing the rule: it writes down what was granted for when, and adds up.
class bucket_ledger {
 public:
  /// A grant of this many tokens that counts from `instant`.
  void grant(time_point instant, std::uint64_t tokens) {
    auto const later = std::find_if(entries_.begin(), entries_.end(),
                                    [&](entry const& e) { return e.instant > instant; });
    entries_.insert(later, {instant, tokens});
  }

  /// So many tokens of grants of that instant went back.
  void give_back(time_point instant, std::uint64_t tokens) {
    for (auto& e : entries_) {
      if (e.instant != instant) continue;
      auto const of_it = std::min(e.tokens, tokens);
      e.tokens -= of_it;
      tokens -= of_it;
    }
  }

  void forget() noexcept { entries_.clear(); }

  /// Was more granted in some window than the quota allows? Then by how many tokens in which
  /// window.
  [[nodiscard]] std::optional<std::string> excess(quota const& q) const {
    for (std::size_t last = 0; last < entries_.size(); ++last) {
      wide sum = 0;
      for (std::size_t first = last + 1; first-- > 0;) {
        sum += entries_[first].tokens;
        auto const window = (entries_[last].instant - entries_[first].instant).count();
        auto const over = (sum - static_cast<wide>(q.capacity())) * q.period().count() -
                          static_cast<wide>(q.tokens()) * window;
        if (over > 0) {
          return std::to_string(static_cast<std::int64_t>(sum)) + " tokens were granted within " +
                 std::to_string(window) + " ns";
        }
      }
    }
    return std::nullopt;
  }

 private:
  using wide = weir::detail::int128;

  struct entry {
    time_point instant;
    std::uint64_t tokens;
  };
  std::vector<entry> entries_;
};

}  // namespace weir::testing

#endif
