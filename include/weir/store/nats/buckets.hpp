// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_BUCKETS_HPP
#define WEIR_STORE_NATS_BUCKETS_HPP

#include "weir/command/buckets.hpp"
#include "weir/decision.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/rule/bucket_scale.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/store/nats/bytes.hpp"
#include "weir/store/nats/errand.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::detail {

/// The record of a bucket. The rule decides on it.
class nats_bucket {
 public:
  static constexpr char kind = 'b';
  static constexpr auto matter = nats_matter::buckets;

  /// Empty: it is none.
  [[nodiscard]] static std::optional<nats_bucket> read(std::string_view bytes) {
    if (!bytes.starts_with(tag)) return std::nullopt;
    nats_reader from{bytes.substr(tag.size())};
    nats_bucket out;
    out.epoch_ = from.signed_number();
    auto const size = from.number();
    if (size > limits::quotas) return std::nullopt;
    for (std::uint64_t i = 0; i != size; ++i) {
      auto const tokens = from.number();
      duration const period{from.signed_number()};
      auto const capacity = from.number();
      auto const low = from.signed_number();
      auto const high = from.signed_number();
      constexpr std::int64_t most_high = std::int64_t{1} << 30;
      if (high < -most_high || high > most_high) return std::nullopt;
      out.arrivals_[i] = rule::units_of(low, static_cast<std::int32_t>(high));
      if (tokens == 0 || capacity == 0 || period <= duration::zero()) return std::nullopt;
      out.quotas_.push_back(quota::per(tokens, period).burst(capacity));
    }
    // Those whose time can be represented.
    constexpr std::int64_t first = -18;
    constexpr std::int64_t last = 14;
    if (!from.complete() || out.epoch_ < first || out.epoch_ > last) return std::nullopt;
    auto const scales = rule::bucket_scales::of(out.quotas_);
    if (!scales) return std::nullopt;
    out.scales_ = *scales;
    return out;
  }

  [[nodiscard]] std::string write() const {
    std::string out{tag};
    nats_writer to{out};
    to.number(epoch_);
    to.number(std::uint64_t{quotas_.size()});
    for (std::size_t i = 0; i != quotas_.size(); ++i) {
      to.number(quotas_[i].tokens());
      to.number(std::int64_t{quotas_[i].period().count()});
      to.number(quotas_[i].capacity());
      to.number(rule::low_of(arrivals_[i]));
      to.number(std::int64_t{rule::high_of(arrivals_[i])});
    }
    return out;
  }

  static void expire(time_point) noexcept {}

  /// Until it is full.
  [[nodiscard]] duration lasts(time_point now) const noexcept {
    if (quotas_.empty()) return duration::zero();
    auto const full = rule::full_from(scales_.span(), arrivals_);
    return std::max(saturating_sub(time_point{full}, time_point{since(now)}), duration::zero());
  }

  result<decision> apply(command::take const& c, time_point now, duration) {
    auto answer = ask(c, now);
    if (!answer.has_value() || !answer->allowed) return answer;
    if (quotas_.empty()) epoch_ = epoch_of(now);
    quotas_.assign(c.quotas.begin(), c.quotas.end());
    scales_ = *rule::bucket_scales::of(c.quotas);
    arrivals_ = rule::arrivals_in(answer->mark);
    return answer;
  }
  result<bucket_info> apply(command::peek_bucket const& c, time_point now, duration) {
    return ask(c, now);
  }
  /// The mark is in the units of the quotas that the bucket has, whichever the caller has by now.
  result<refund_receipt> apply(command::refund const& c, time_point now, duration) {
    if (quotas_.empty()) return refund_receipt{.credited = 0, .forfeited = c.cost};
    auto const out =
        rule::refund(scales_.span(), arrivals_, c.mark, c.cost, c.before_instant, since(now));
    if (out.receipt.credited != 0) arrivals_ = out.arrivals;
    return out.receipt;
  }
  result<hint> apply(command::reset_bucket const&, time_point, duration) {
    quotas_.clear();
    return hint{};
  }

  [[nodiscard]] static constexpr bool news() noexcept { return false; }

 private:
  static constexpr std::string_view tag = "weir:b2\n";

  // The rule's time is within thirty years of an epoch. They are sixteen years apart, so that any
  // time has one that is near, and only clocks that are set by years meet two of them.
  static constexpr duration epochs = std::chrono::hours{24 * 365 * 16};
  static constexpr duration first_epoch = std::chrono::hours{24 * 365 * 60};  // in 2029

  [[nodiscard]] static std::int64_t epoch_of(time_point now) noexcept {
    auto const since_first = now.time_since_epoch() - first_epoch;
    auto const halves = since_first / (epochs / 2);
    return (halves + (halves > 0 ? 1 : -1)) / 2;
  }
  [[nodiscard]] duration since(time_point now) const noexcept {
    time_point const epoch{first_epoch + (quotas_.empty() ? epoch_of(now) : epoch_) * epochs};
    return rule::within_horizon(saturating_sub(now, epoch));
  }

  template <class C>
  [[nodiscard]] result<typename C::result> ask(C const& c, time_point now) const {
    auto const scales = rule::bucket_scales::of(c.quotas);
    if (!scales) return make_error_code(errc::quota_too_large);
    auto const at = since(now);
    bool const same = std::ranges::equal(quotas_, c.quotas);
    auto const start = same ? arrivals_
                       : !quotas_.empty()
                           ? rule::changed_quotas(scales_.span(), arrivals_, scales->span(), at)
                           : rule::unseen_bucket;
    return rule::ask(scales->span(), start, at, c);
  }

  std::vector<quota> quotas_;  // none: it is full, or was never seen
  rule::bucket_scales scales_{};
  rule::bucket_arrivals arrivals_ = rule::unseen_bucket;
  std::int64_t epoch_ = 0;
};

}  // namespace weir::detail

#endif
