// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_BUCKETS_HPP
#define WEIR_STORE_POSTGRES_BUCKETS_HPP

#include "weir/command/buckets.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/rows.hpp"
#include "weir/time.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::detail {

/// A take as the rule has it.
struct postgres_take {
  template <class C>
  explicit postgres_take(C const& c) noexcept
      : scales{rule::bucket_scales::of(c.quotas).value_or(rule::bucket_scales{})},
        cost{c.cost},
        max_wait{c.max_wait} {}

  rule::bucket_scales scales;
  std::uint64_t cost;
  duration max_wait;
};

template <>
struct postgres_note<command::take> : postgres_take {
  using postgres_take::postgres_take;
};
template <>
struct postgres_note<command::peek_bucket> : postgres_take {
  using postgres_take::postgres_take;
};

template <>
struct postgres_note<command::refund> {
  explicit postgres_note(command::refund const& c) noexcept : cost{c.cost} {}
  std::uint64_t cost;
};

/// The commands of buckets: how each is called, and how its answer is read. A function decides
/// whether, and says what it decided on; the rest of the answer follows from that by the rule.
struct postgres_buckets {
  template <class C>
  using of = postgres_note<C> const&;

  static postgres_call call(command::take const& c, postgres_scope const& in) {
    return ask(c, true, in);
  }
  static result<decision> answer(of<command::take> note, postgres_rows const& r) {
    return decided<command::take>(note, r);
  }

  static postgres_call call(command::peek_bucket const& c, postgres_scope const& in) {
    return ask(c, false, in);
  }
  static result<bucket_info> answer(of<command::peek_bucket> note, postgres_rows const& r) {
    return decided<command::peek_bucket>(note, r);
  }

  static postgres_call call(command::refund const& c, postgres_scope const& in) {
    postgres_call out{"refund"};
    out.add(c.key).add(c.cost);
    std::array<std::size_t, limits::quotas> each{};
    for (std::size_t i = 0; i != each.size(); ++i) each[i] = i;
    auto const arrival = [&](std::size_t i) { return rule::arrival_in(c.mark, i); };
    auto const before = [&](std::size_t i) { return rule::before_in(c.mark, i); };
    out.add_each<std::int64_t>(each, [&](std::size_t i) { return low_of(arrival(i)); })
        .add_each<std::int64_t>(each, [&](std::size_t i) { return high_of(arrival(i)); })
        .add_each<std::int64_t>(each, [&](std::size_t i) { return low_of(before(i)); })
        .add_each<std::int64_t>(each, [&](std::size_t i) { return high_of(before(i)); });
    out.add(c.before_instant).add(in.at);
    return out;
  }
  static result<refund_receipt> answer(of<command::refund> note, postgres_rows const& r) {
    auto const back = r.as<std::uint64_t>(0, 0);
    if (back > note.cost) throw postgres_malformed{};
    return refund_receipt{.credited = back, .forfeited = note.cost - back};
  }

  static postgres_call call(command::reset_bucket const& c, postgres_scope const& in) {
    postgres_call out{"reset_bucket"};
    out.add(c.key).add(in.at);
    return out;
  }
  static result<hint> answer(of<command::reset_bucket>, postgres_rows const&) { return hint{}; }

  static postgres_call call(command::reap_buckets const&, postgres_scope const& in) {
    postgres_call out{"reap_buckets"};
    out.add(in.at);
    return out;
  }
  static result<command::reaped> answer(of<command::reap_buckets>, postgres_rows const& r) {
    return command::reaped{.removed = r.as<std::uint64_t>(0, 0), .kept = r.as<std::uint64_t>(0, 1)};
  }

  /// Can the store represent the quotas? To be asked before a call is made.
  template <class C>
  [[nodiscard]] static bool can(C const& c) noexcept {
    if constexpr (requires { c.quotas; }) return rule::bucket_scales::of(c.quotas).has_value();
    return true;
  }

 private:
  static constexpr auto as_it_is = [](std::int64_t v) { return v; };

  // As the functions of these names in schema/buckets.sql.
  static constexpr rule::bucket_units bias = rule::bucket_units{1} << 95;
  static constexpr std::int64_t base = std::int64_t{1} << 62;
  static std::int64_t low_of(rule::bucket_units units) noexcept {
    return static_cast<std::int64_t>((units + bias) % base);
  }
  static std::int64_t high_of(rule::bucket_units units) noexcept {
    return static_cast<std::int64_t>((units + bias) / base);
  }
  static rule::bucket_units units_of(std::int64_t low, std::int64_t high) noexcept {
    return static_cast<rule::bucket_units>(high) * base + low - bias;
  }

  /// What tells quotas from others: one after the other, three numbers each.
  static std::string identity(std::span<quota const> quotas) {
    using number = postgres_type<std::int64_t>;
    std::string out;
    for (auto const& q : quotas) {
      number::put(out, static_cast<std::int64_t>(q.tokens()));
      number::put(out, q.period().count());
      number::put(out, static_cast<std::int64_t>(q.capacity()));
    }
    return out;
  }

  template <class C>
  static postgres_call ask(C const& c, bool takes, postgres_scope const& in) {
    std::vector<std::int64_t> numbers;
    auto const scales = rule::bucket_scales::of(c.quotas).value_or(rule::bucket_scales{});
    for (auto const& s : scales.span()) {
      numbers.insert(numbers.end(), {static_cast<std::int64_t>(s.capacity), s.gain, s.price});
    }
    postgres_call out{"take"};
    std::string const stored = identity(c.quotas);
    out.add(std::string_view{c.key}).add(std::string_view{stored});
    out.add_each<std::int64_t>(numbers, as_it_is).once();
    out.add_each<std::int64_t>(std::array{static_cast<std::int64_t>(c.cost)}, as_it_is);
    out.add_each<std::int64_t>(std::array{c.max_wait.count()}, as_it_is);
    out.add(takes).add(in.at);
    if (takes) {
      out.let_join(1, postgres_division::in_turn);
      out.share_a_lock();
    }
    return out;
  }

  template <class Command>
  static typename Command::result decided(postgres_take const& t, postgres_rows const& r) {
    auto const arrival = [&](int i) { return units_of(r.integer(0, 2 + i), r.integer(0, 6 + i)); };
    rule::bucket_arrivals const before{arrival(0), arrival(1), arrival(2), arrival(3)};
    auto const now = r.span(0, 0);
    for (auto const each : before) {
      if (each < rule::bucket_scale::never || each > -rule::bucket_scale::never) {
        throw postgres_malformed{};
      }
    }
    if (now != rule::within_horizon(now)) throw postgres_malformed{};
    auto out = rule::ask(t.scales.span(), before, now,
                         Command{.key = {}, .quotas = {}, .cost = t.cost, .max_wait = t.max_wait});
    if (out.allowed != r.yes(0, 1)) throw postgres_malformed{};
    return out;
  }
};

}  // namespace weir::detail

#endif
