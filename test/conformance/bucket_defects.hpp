// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_BUCKET_DEFECTS_HPP
#define WEIR_TEST_CONFORMANCE_BUCKET_DEFECTS_HPP

#include "conformance/mutant_store.hpp"
#include "weir/command/buckets.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace weir::testing {

enum bucket_defect : int {
  check_then_act,
  backwards_credits,
  never_is_later,
  spent_is_forgotten,
  full_is_kept,
  whole_nanoseconds,
  whole_milliseconds,
  refunds_from_the_middle,
  refunds_always,
  late_refunds_are_whole,
  reservations_are_lost,
  retry_is_early,
  retry_is_the_window,
  short_debts_are_forgotten,
  keys_lose_case,
  denials_cost,
  quotas_one_by_one,
  peeks_take,
  peeks_as_if_taken,
  peeks_at_one_quota,
  changes_fill,
  nobody_queues,
  one_too_many,
  resets_do_nothing,
  reaps_everything,
  no_cost_is_free,
  reset_is_the_next_token,
};

inline constexpr mutant bucket_mutants[] = {
    {check_then_act, "F19", "tokens are counted in one step and taken in another"},
    {backwards_credits, "F52", "time that runs backwards counts as time that passes"},
    {never_is_later, "F20", "a cost above the capacity is denied with a retry_after"},
    {spent_is_forgotten, "F21", "at the bound a spent bucket is forgotten for a new one"},
    {full_is_kept, "F21", "at the bound full buckets are not forgotten"},
    {whole_nanoseconds, "F22", "a token costs a whole number of nanoseconds"},
    {whole_milliseconds, "F25", "time is counted in whole milliseconds"},
    {refunds_from_the_middle, "F23", "a grant is refunded although others came after it"},
    {refunds_always, "F23", "a refund says that it gave everything back"},
    {late_refunds_are_whole, "F23", "a late refund gives back what has refilled already"},
    {reservations_are_lost, "F23", "a cancelled waiter loses its reservation"},
    {retry_is_early, "F24", "retry_after rounds down"},
    {retry_is_the_window, "F24", "retry_after is the whole window"},
    {short_debts_are_forgotten, "F25", "a bucket that is full within a millisecond is forgotten"},
    {keys_lose_case, "F27", "keys are compared without case"},
    {denials_cost, "R3", "a denial takes what there is"},
    {quotas_one_by_one, "R3", "quotas are taken from one after the other"},
    {peeks_take, "R3", "a peek takes"},
    {peeks_as_if_taken, "R3", "a peek tells what a take would leave"},
    {peeks_at_one_quota, "R3", "a peek tells all quotas the level of the first"},
    {changes_fill, "R3", "a bucket is full after its quotas were changed"},
    {nobody_queues, "R3", "a reservation is told and not booked"},
    {one_too_many, "R3", "a bucket holds one token too many"},
    {resets_do_nothing, "R3", "a reset does nothing"},
    {reaps_everything, "F21", "reaping forgets spent buckets, too"},
    {no_cost_is_free, "R8", "a cost of 0 is accepted"},
    {reset_is_the_next_token, "F24", "reset_after is when one token is back"},
};

struct bucket_defects : no_defects {
  using no_defects::look;
  using no_defects::no_defects;
  using no_defects::splits;

  std::optional<time_point> last;
  duration credit{};
  std::set<std::string> keys;
  std::map<std::string, std::vector<quota>> quotas_of;

  bool splits(command::take const&) const { return which == check_then_act; }
  template <class Next>
  std::int64_t look(command::take const& c, time_point now, Next const& next) {
    if (which != check_then_act) return 0;
    auto const seen = next(command::peek_bucket{c.key, c.quotas, c.cost, c.max_wait}, now);
    return seen.has_value() && seen->allowed ? 1 : 0;
  }

  template <class C, class Next>
  result<typename C::result> step(C c, time_point now, Next const& next, std::int64_t looked) {
    if (which == backwards_credits) {
      if (last && now < *last) credit += 2 * (*last - now);
      last = now;
      now += credit;
    }
    if (which == whole_milliseconds) now = std::chrono::floor<std::chrono::milliseconds>(now);
    std::string key;
    std::vector<quota> quotas;
    if constexpr (requires { c.key; }) {
      key = which == keys_lose_case ? without_case(c.key) : std::string{c.key};
      c.key = key;
      keys.insert(key);
    }
    if constexpr (requires { c.quotas; }) {
      quotas.assign(c.quotas.begin(), c.quotas.end());
      for (auto& q : quotas) {
        if (q.tokens() == 0 || q.period() <= duration::zero() || q.capacity() == 0) continue;
        if (which == one_too_many && q.capacity() < 1'000'000) q = q.burst(q.capacity() + 1);
        auto const token =
            q.period() / static_cast<std::int64_t>(std::min<std::uint64_t>(q.tokens(), 1U << 30U));
        if (which == whole_nanoseconds)
          q = quota::per(1, std::max<duration>(token, duration{1})).burst(q.capacity());
      }
      c.quotas = quotas;
      if (which == changes_fill) {
        auto& before = quotas_of[key];
        if (!before.empty() && before != quotas) next(command::reset_bucket{key}, now);
        before = quotas;
      }
    }
    return act(c, now, next, looked);
  }

  template <class C, class Next>
  result<typename C::result> act(C const& c, time_point now, Next const& next, std::int64_t) {
    return next(c, now);
  }

  template <class C>
  [[nodiscard]] std::optional<typename C::result> lenient(C const& c) const {
    if (c.key.empty() || c.key.size() > limits::key_size || !rule::valid_quotas(c.quotas))
      return std::nullopt;
    typename C::result d;
    d.cost = c.cost;
    if (which == never_is_later && c.cost > 0 && !rule::within_capacity(c.quotas, c.cost)) {
      d.retry_after = std::chrono::hours{1};
      return d;
    }
    if (which == no_cost_is_free && c.cost == 0) {
      d.allowed = true;
      return d;
    }
    return std::nullopt;
  }

  template <class Answer>
  void spoil(Answer& d, std::span<quota const> quotas) const {
    if (!d.allowed && !d.shed) {
      if (which == retry_is_early && d.retry_after > duration{1}) d.retry_after -= duration{1};
      if (which == retry_is_the_window) d.retry_after = quotas[d.binding].period();
    }
    if (which == reset_is_the_next_token && d.reset_after > duration::zero()) {
      d.reset_after = std::min<duration>(d.reset_after, quotas[0].period());
    }
  }

  template <class Next>
  result<bucket_info> act(command::peek_bucket const& c, time_point now, Next const& next,
                          std::int64_t) {
    if (auto const d = lenient(c)) return *d;
    auto d = next(c, now);
    if (which == peeks_take) next(command::take{c.key, c.quotas, c.cost, c.max_wait}, now);
    if (which == peeks_as_if_taken && d.has_value() && d->allowed) d->remaining -= c.cost;
    if (which == peeks_at_one_quota && d.has_value()) d->levels[1] = d->levels[0];
    if (d.has_value()) spoil(*d, c.quotas);
    return d;
  }

  template <class Next>
  result<decision> act(command::take const& c, time_point now, Next const& next,
                       std::int64_t looked) {
    if (auto const d = lenient(c)) return *d;
    if (which == quotas_one_by_one && c.quotas.size() > 1) {
      auto const first = next(command::take{c.key, c.quotas.first(1), c.cost, c.max_wait}, now);
      if (first.has_error() || !first->allowed) return first;
      std::string const second{std::string{c.key.substr(0, 1000)} + "#2"};
      auto d = next(command::take{second, c.quotas.subspan(1), c.cost, c.max_wait}, now);
      if (d.has_value()) ++d->binding;
      return d;
    }
    if (which == nobody_queues && c.max_wait > duration::zero()) {
      auto d = next(command::peek_bucket{c.key, c.quotas, c.cost, c.max_wait}, now);
      if (d.has_value() && d->allowed && d->wait > duration::zero())
        return static_cast<decision>(*d);
    }
    auto d = next(c, now);
    if (d.has_error()) return d;
    if (which == check_then_act && looked == 1 && !d->allowed) {
      d->allowed = true;
      d->retry_after = {};
    }
    if (which == denials_cost && !d->allowed && d->remaining > 0) {
      next(command::take{c.key, c.quotas, d->remaining, {}}, now);
    }
    if (which == spent_is_forgotten && d->shed) {
      next(command::reset_bucket{*keys.begin()}, now);
      d = next(c, now);
    }
    if (which == full_is_kept && keys.size() > 8) {
      decision shed;
      shed.shed = true;
      shed.cost = c.cost;
      shed.retry_after = shed.reset_after = std::chrono::seconds{1};
      return shed;
    }
    if (which == short_debts_are_forgotten && d->reset_after < std::chrono::milliseconds{1}) {
      next(command::reset_bucket{c.key}, now);
    }
    spoil(*d, c.quotas);
    return d;
  }

  template <class Next>
  result<refund_receipt> act(command::refund c, time_point now, Next const& next, std::int64_t) {
    if (which == late_refunds_are_whole) c.before_instant = true;
    if (which == reservations_are_lost && c.before_instant) {
      return refund_receipt{.credited = 0, .forfeited = c.cost};
    }
    auto r = next(c, now);
    if (r.has_error()) return r;
    if (which == refunds_always) return refund_receipt{.credited = c.cost, .forfeited = 0};
    if (which == refunds_from_the_middle && r->credited == 0) {
      auto const seen = next(command::peek_bucket{c.key, c.quotas, 1, {}}, now);
      auto const spent = seen->capacity - seen->remaining;
      if (spent < c.cost) return r;
      next(command::reset_bucket{c.key}, now);
      if (spent > c.cost) next(command::take{c.key, c.quotas, spent - c.cost, {}}, now);
      return refund_receipt{.credited = c.cost, .forfeited = 0};
    }
    return r;
  }

  template <class Next>
  result<hint> act(command::reset_bucket const& c, time_point now, Next const& next, std::int64_t) {
    if (which == resets_do_nothing && !c.key.empty()) return hint{};
    return next(c, now);
  }

  template <class Next>
  result<command::reaped> act(command::reap_buckets const& c, time_point now, Next const& next,
                              std::int64_t) {
    if (which == reaps_everything) {
      for (auto const& key : keys) next(command::reset_bucket{key}, now);
    }
    return next(c, now);
  }
};

}  // namespace weir::testing

#endif
