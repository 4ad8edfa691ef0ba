// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_MODEL_BUCKETS_HPP
#define WEIR_TESTING_MODEL_BUCKETS_HPP

#include "weir/command/buckets.hpp"
#include "weir/error.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/rule/validate.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace weir::testing {

/// What a bucket store has to answer: the rule, with a map of keys. It never forgets a bucket,
/// since a full one equals one that was never seen.
class bucket_model {
 public:
  result<decision> execute(command::take const& c, time_point now) { return ask(c, now); }
  result<bucket_info> execute(command::peek_bucket const& c, time_point now) { return ask(c, now); }

  result<refund_receipt> execute(command::refund const& c, time_point now) {
    if (auto const ec = rule::validate(c)) return ec;
    auto const found = buckets_.find(std::string{c.key});
    if (found == buckets_.end()) return refund_receipt{.credited = 0, .forfeited = c.cost};
    auto& b = found->second;
    auto const out = rule::refund(b.scales.span(), b.arrivals, c.mark, c.cost, c.before_instant,
                                  since_birth(now));
    b.arrivals = out.arrivals;
    return out.receipt;
  }

  result<hint> execute(command::reset_bucket const& c, time_point) {
    if (auto const ec = rule::validate(c)) return ec;
    buckets_.erase(std::string{c.key});
    return hint{};
  }

 private:
  struct bucket {
    rule::bucket_scales scales;
    rule::bucket_arrivals arrivals = rule::unseen_bucket;
    std::vector<quota> quotas;
  };

  template <class C>
  result<typename C::result> ask(C const& c, time_point now) {
    if (auto const ec = rule::validate(c)) return ec;
    auto const scales = rule::bucket_scales::of(c.quotas);
    if (!scales) return errc::quota_too_large;
    auto const time = since_birth(now);
    bucket b{*scales, rule::unseen_bucket, {c.quotas.begin(), c.quotas.end()}};
    auto const found = buckets_.find(std::string{c.key});
    if (found != buckets_.end()) {
      auto const& old = found->second;
      b.arrivals = old.quotas == b.quotas ? old.arrivals
                                          : rule::changed_quotas(old.scales.span(), old.arrivals,
                                                                 scales->span(), time);
    }
    auto const answer = rule::ask(scales->span(), b.arrivals, time, c);
    if constexpr (std::is_same_v<C, command::take>) {
      if (!answer.allowed) return answer;
      b.arrivals = rule::arrivals_in(answer.mark);
      buckets_.insert_or_assign(std::string{c.key}, std::move(b));
    }
    return answer;
  }

  duration since_birth(time_point now) {
    if (!birth_) birth_ = now;
    return saturating_sub(now, *birth_);
  }

  std::optional<time_point> birth_;
  std::map<std::string, bucket> buckets_;
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

  /// So many tokens of such a grant went back.
  void give_back(time_point instant, std::uint64_t tokens) {
    for (auto& e : entries_) {
      if (e.instant != instant || e.tokens < tokens) continue;
      e.tokens -= tokens;
      return;
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
  __extension__ using wide = __int128;  // two compilers have it, the language has not

  struct entry {
    time_point instant;
    std::uint64_t tokens;
  };
  std::vector<entry> entries_;
};

}  // namespace weir::testing

#endif
