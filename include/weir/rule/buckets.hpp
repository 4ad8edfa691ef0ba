// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_BUCKETS_HPP
#define WEIR_RULE_BUCKETS_HPP

#include "weir/decision.hpp"
#include "weir/limits.hpp"
#include "weir/rule/bucket_scale.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

/// @file
/// When is a take granted? The rule is the generic cell rate algorithm in its form of virtual
/// scheduling (ITU-T I.371, annex A; ATM Forum Traffic Management 4.0, section 4.4.2): a bucket is
/// one number, its theoretical arrival time, at which it will be full. A take moves it on by the
/// price of its tokens, and conforms if it then lies no further ahead than a full bucket's worth.
/// It equals a token bucket that refills continuously, and stores no token count that could drift.
///
/// Arrivals are in the units of `bucket_scale`; `now` is the time since the epoch of the store, in
/// ticks of its clock. Both are whole numbers, and nothing is rounded.

namespace weir::rule {

/// One theoretical arrival time for each quota.
using bucket_arrivals = std::array<bucket_units, limits::quotas>;

/// Of a bucket that was never seen: full at any time.
inline constexpr bucket_arrivals unseen_bucket{bucket_scale::never, bucket_scale::never,
                                               bucket_scale::never, bucket_scale::never};

/// A mark that no bucket ever has.
inline constexpr auto no_mark = bucket_mark::none();

/// The low 64 bits of an arrival, as a signed number; an arrival that fits is that number.
[[nodiscard]] constexpr std::int64_t low_of(bucket_units units) noexcept {
  constexpr bucket_units low = std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(units & low));
}
/// Of one that fits anyhow.
[[nodiscard]] constexpr std::int64_t low_of(std::int64_t units) noexcept { return units; }
/// The rest of an arrival, in multiples of 2⁶⁴: 0 if it fits into the low bits.
[[nodiscard]] constexpr std::int32_t high_of(bucket_units units) noexcept {
  return static_cast<std::int32_t>((units - low_of(units)) >> 64);
}
/// Of one that fits anyhow.
[[nodiscard]] constexpr std::int32_t high_of(std::int64_t) noexcept { return 0; }
/// The arrival of both parts.
[[nodiscard]] constexpr bucket_units units_of(std::int64_t low, std::int32_t high) noexcept {
  return static_cast<bucket_units>(high) * (bucket_units{1} << 64) + low;
}

/// The arrival that a mark has for the quota at a position.
[[nodiscard]] constexpr bucket_units arrival_in(bucket_mark const& m, std::size_t i) noexcept {
  return units_of(m.arrival[i], m.arrival_high[i]);
}
/// The same, before the take. No earlier than `never`: a mark comes from a caller.
[[nodiscard]] constexpr bucket_units before_in(bucket_mark const& m, std::size_t i) noexcept {
  return std::max(units_of(m.before[i], m.before_high[i]), bucket_scale::never);
}
/// Writes both into the mark.
constexpr void set_mark(bucket_mark& m, std::size_t i, bucket_units arrival,
                        bucket_units before) noexcept {
  m.arrival[i] = low_of(arrival);
  m.arrival_high[i] = high_of(arrival);
  m.before[i] = low_of(before);
  m.before_high[i] = high_of(before);
}
/// The arrivals that a grant left behind, by its mark.
[[nodiscard]] constexpr bucket_arrivals arrivals_in(bucket_mark const& m) noexcept {
  bucket_arrivals out{};
  for (std::size_t i = 0; i != out.size(); ++i) out[i] = arrival_in(m, i);
  return out;
}

/// Is every quota full at `now`? Then the bucket equals one that was never seen.
template <std::size_t N>
[[nodiscard]] constexpr bool full_bucket(std::span<bucket_scale const, N> scales,
                                         bucket_arrivals const& arrivals, duration now) noexcept {
  for (std::size_t i = 0; i != scales.size(); ++i) {
    if (arrivals[i] > scales[i].units_at(within_horizon(now))) return false;
  }
  return true;
}

/// From when on is every quota full, if nothing else is taken?
template <std::size_t N>
[[nodiscard]] constexpr duration full_from(std::span<bucket_scale const, N> scales,
                                           bucket_arrivals const& arrivals) noexcept {
  auto latest = duration::min();
  for (std::size_t i = 0; i != scales.size(); ++i) {
    if (arrivals[i] != bucket_scale::never) {
      latest = std::max(latest, scales[i].time_of(arrivals[i]));
    }
  }
  return latest;
}

namespace detail {

/// How long until a quota allows `cost` tokens; `now` within the horizon.
[[nodiscard]] constexpr duration wait_for(bucket_scale const& scale, bucket_units arrival,
                                          duration now, std::uint64_t cost) noexcept {
  auto const due = arrival + scale.price_of(cost) - scale.room();
  auto const missing = due - scale.units_at(now);
  return missing > 0 ? scale.time_of(missing) : duration{};
}

/// The arrival after a grant of `cost` tokens that counts from `at`.
[[nodiscard]] constexpr bucket_units booked(bucket_scale const& scale, bucket_units arrival,
                                            duration at, std::uint64_t cost) noexcept {
  return std::max(arrival, scale.units_at(at)) + scale.price_of(cost);
}

[[nodiscard]] constexpr quota_level level(bucket_scale const& scale, bucket_units arrival,
                                          duration now) noexcept {
  auto const ahead = std::max(arrival - scale.units_at(now), bucket_units{0});
  auto const units = std::max(scale.room() - ahead, bucket_units{0});
  return {scale.capacity, scale.tokens_in(units), scale.time_of(ahead)};
}

/// The level of the quota at position `i`, which binds if it is the lowest so far.
template <class Answer>
constexpr void describe(Answer& d, std::size_t i, quota_level const& at) noexcept {
  if (i == 0 || at.remaining < d.remaining) {
    d.binding = static_cast<std::uint8_t>(i);
    d.remaining = at.remaining;
    d.capacity = at.capacity;
  }
  d.reset_after = std::max(d.reset_after, at.reset_after);
}

/// Fills in what can still be taken, and when all can be taken again, for buckets with these
/// arrivals.
template <std::size_t N>
constexpr void describe(decision& d, std::span<bucket_scale const, N> scales,
                        bucket_arrivals const& arrivals, duration now) noexcept {
  for (std::size_t i = 0; i != scales.size(); ++i) {
    describe(d, i, level(scales[i], arrivals[i], now));
  }
}

}  // namespace detail

/// Takes `cost` tokens from every quota or from none. It decides and stores nothing: if the answer
/// is `allowed`, its mark holds the arrivals to store, and otherwise nothing changes.
///
/// @param scales   of the quotas; `cost` must be within the capacity of each
/// @param arrivals what is stored; `unseen_bucket` if nothing is
/// @param now      since the epoch of whoever stores them
/// @param cost     tokens, at least 1
/// @param max_wait how far ahead the tokens may lie. All quotas are booked at the one instant from
///        which all allow it, so each holds its promise when grants count from their instants.
template <std::size_t N>
[[nodiscard]] constexpr decision take(std::span<bucket_scale const, N> scales,
                                      bucket_arrivals const& arrivals, duration now,
                                      std::uint64_t cost, duration max_wait) noexcept {
  decision d;
  d.cost = cost;
  now = within_horizon(now);
  duration wait{};
  for (std::size_t i = 0; i != scales.size(); ++i) {
    wait = std::max(wait, detail::wait_for(scales[i], arrivals[i], now, cost));
  }
  if (wait > max_wait) {
    // Waiting longer moves neither the arrivals nor what they are compared with: so this is exact,
    // and the least.
    d.retry_after = wait - max_wait;
    detail::describe(d, scales, arrivals, now);
    d.mark = no_mark;
    return d;
  }
  d.allowed = true;
  d.wait = wait;
  auto after = arrivals;
  for (std::size_t i = 0; i != scales.size(); ++i) {
    after[i] = detail::booked(scales[i], arrivals[i], now + wait, cost);
    set_mark(d.mark, i, after[i], arrivals[i]);
  }
  detail::describe(d, scales, after, now);
  return d;
}

/// The answer to a peek; the parameters are those of `take`.
template <std::size_t N>
[[nodiscard]] constexpr bucket_info peek(std::span<bucket_scale const, N> scales,
                                         bucket_arrivals const& arrivals, duration now,
                                         std::uint64_t cost, duration max_wait) noexcept {
  auto const asked = take(scales, arrivals, now, cost, max_wait);
  bucket_info out;
  out.allowed = asked.allowed;
  out.cost = cost;
  out.wait = asked.wait;
  out.retry_after = asked.retry_after;
  now = within_horizon(now);
  for (std::size_t i = 0; i != scales.size(); ++i) {
    out.levels[i] = detail::level(scales[i], arrivals[i], now);
    detail::describe(out, i, out.levels[i]);
  }
  return out;
}

/// `take` for a command that takes, `peek` for one that looks.
template <class Command, std::size_t N>
[[nodiscard]] constexpr typename Command::result ask(std::span<bucket_scale const, N> scales,
                                                     bucket_arrivals const& arrivals, duration now,
                                                     Command const& c) noexcept {
  if constexpr (std::is_same_v<typename Command::result, bucket_info>) {
    return peek(scales, arrivals, now, c.cost, c.max_wait);
  } else {
    return take(scales, arrivals, now, c.cost, c.max_wait);
  }
}

/// A take from a bucket with one quota, in two halves: what to store, and what to tell. Together
/// they are `take`; a store that swaps arrivals in place tells only once it has.
///
/// @tparam Units of the arrival: 64 bits if the scale is narrow, `bucket_units` otherwise
template <class Units>
class single_take {
 public:
  /// As for `take`.
  constexpr single_take(bucket_scale const& scale, Units arrival, duration now, std::uint64_t cost,
                        duration max_wait) noexcept
      : scale_{scale},
        cost_{cost},
        before_{arrival},
        now_{within_horizon(now)},
        units_{units_at(now_)},
        max_wait_{max_wait} {
    auto const paid = price_of(cost);
    auto const due = arrival + paid - room();
    if (due <= units_) [[likely]] {
      after_ = std::max(arrival, units_) + paid;
    } else {
      wait_ = scale_.time_of(due - units_);
      if (allowed()) after_ = std::max(arrival, units_at(now_ + wait_)) + paid;
    }
  }

  /// Is it granted? Otherwise nothing changes.
  [[nodiscard]] constexpr bool allowed() const noexcept { return wait_ <= max_wait_; }

  /// The arrival to store, if it is granted.
  [[nodiscard]] constexpr Units arrival() const noexcept { return after_; }

  /// The answer of `take`. Every field is named once, and every number of the mark: a compiler that
  /// is asked for a blank answer first spends more on that than on all the rest.
  [[nodiscard]] constexpr decision answer() const noexcept {
    auto const ahead = std::max(after_ - units_, Units{0});
    auto const remaining = scale_.tokens_in(std::max(room() - ahead, Units{0}));
    auto const reset_after = scale_.time_of(ahead);
    if (!allowed()) {
      return decision{.allowed = false,
                      .shed = false,
                      .binding = 0,
                      .cost = cost_,
                      .capacity = scale_.capacity,
                      .remaining = remaining,
                      .wait = {},
                      .retry_after = wait_ - max_wait_,
                      .reset_after = reset_after,
                      .mark = no_mark};
    }
    return decision{.allowed = true,
                    .shed = false,
                    .binding = 0,
                    .cost = cost_,
                    .capacity = scale_.capacity,
                    .remaining = remaining,
                    .wait = wait_,
                    .retry_after = {},
                    .reset_after = reset_after,
                    .mark = {.arrival = {low_of(after_), 0, 0, 0},
                             .before = {low_of(before_), 0, 0, 0},
                             .arrival_high = {high_of(after_), 0, 0, 0},
                             .before_high = {high_of(before_), 0, 0, 0}}};
  }

 private:
  // As those of the scale, in as many bits as are needed.
  [[nodiscard]] constexpr Units price_of(std::uint64_t cost) const noexcept {
    return static_cast<Units>(cost) * scale_.price;
  }
  [[nodiscard]] constexpr Units room() const noexcept { return price_of(scale_.capacity); }
  [[nodiscard]] constexpr Units units_at(duration now) const noexcept {
    return static_cast<Units>(now.count()) * scale_.gain;
  }

  bucket_scale scale_;
  std::uint64_t cost_;
  Units before_;
  Units after_ = before_;
  duration now_;
  Units units_;
  duration wait_{};
  duration max_wait_;
};

/// What a refund does: the arrivals to store, if something was credited.
struct refund_outcome {
  bucket_arrivals arrivals{};  ///< what the bucket is after it
  refund_receipt receipt{};    ///< what went back, and what did not
};

/// Gives a grant back. Only the latest one can be: as long as nothing was taken after it, the
/// bucket stands as if the grant had been for fewer tokens, or had not been at all. Taking it out
/// from below a later one would book that one's time twice.
///
/// @param scales         of the quotas
/// @param arrivals       what is stored
/// @param mark           the grant's
/// @param cost           the grant's, in tokens
/// @param before_instant the whole grant goes back, as if it had not been. Otherwise only tokens do
///        that have not refilled by now. One that has in part goes back whole: were it rounded
///        down, a take from a full bucket that is given back at once would cost a token.
/// @param now            since the epoch of whoever stores them
/// @return the arrivals to store, if something was credited
template <std::size_t N>
[[nodiscard]] constexpr refund_outcome refund(std::span<bucket_scale const, N> scales,
                                              bucket_arrivals const& arrivals,
                                              bucket_mark const& mark, std::uint64_t cost,
                                              bool before_instant, duration now) noexcept {
  refund_outcome out{arrivals, {.credited = 0, .forfeited = cost}};
  now = within_horizon(now);
  auto back = cost;
  for (std::size_t i = 0; i != scales.size(); ++i) {
    auto const& scale = scales[i];
    if (arrivals[i] != arrival_in(mark, i) || cost > scale.capacity) return out;
    if (before_instant) continue;
    auto const ahead = std::clamp(arrivals[i] - scale.units_at(now), bucket_units{0}, scale.room());
    back = std::min(back, scale.tokens_in(ahead + scale.price - 1));
  }
  for (std::size_t i = 0; i != scales.size(); ++i) {
    auto const without = arrivals[i] - scales[i].price_of(back);
    out.arrivals[i] = before_instant ? std::min(before_in(mark, i), without) : without;
  }
  out.receipt = {.credited = back, .forfeited = cost - back};
  return out;
}

/// The arrivals of a bucket whose quotas were changed: what was spent stays spent. Each new quota
/// starts with the tokens that the old one at its position missed, rounded up and capped at its own
/// capacity; one without a predecessor is full.
template <std::size_t N, std::size_t M>
[[nodiscard]] constexpr bucket_arrivals changed_quotas(std::span<bucket_scale const, N> before,
                                                       bucket_arrivals const& arrivals,
                                                       std::span<bucket_scale const, M> after,
                                                       duration now) noexcept {
  auto out = unseen_bucket;
  now = within_horizon(now);
  for (std::size_t i = 0; i != std::min(before.size(), after.size()); ++i) {
    auto const ahead = std::max(arrivals[i] - before[i].units_at(now), bucket_units{0});
    auto const missing =
        ahead / before[i].price + static_cast<bucket_units>(ahead % before[i].price != 0);
    auto const spent = std::min<bucket_units>(missing, after[i].capacity);
    out[i] = after[i].units_at(now) + after[i].price_of(static_cast<std::uint64_t>(spent));
  }
  return out;
}

/// The arrivals of a bucket about which only this is known: it was full from `then` on. For one
/// that a store has forgotten, when time has run backwards since.
template <std::size_t N>
[[nodiscard]] constexpr bucket_arrivals forgotten_bucket(std::span<bucket_scale const, N> scales,
                                                         duration then) noexcept {
  auto out = unseen_bucket;
  for (std::size_t i = 0; i != scales.size(); ++i)
    out[i] = scales[i].units_at(within_horizon(then));
  return out;
}

}  // namespace weir::rule

#endif
