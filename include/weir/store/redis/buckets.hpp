// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_BUCKETS_HPP
#define WEIR_STORE_REDIS_BUCKETS_HPP

#include "weir/command/buckets.hpp"
#include "weir/error.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/store/redis/bucket_scale.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/store/redis/script/generated.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace weir::detail {

template <class C>
concept redis_asks_bucket =
    std::is_same_v<C, command::take> || std::is_same_v<C, command::peek_bucket>;

/// With a bucket's key, and that of the shard's buckets where these are bounded.
inline redis_call bucket_call(redis_names const& names, redis_script const& script,
                              std::string_view key) {
  redis_call out{script};
  auto const shard = names.shard_of(key);
  out.key(names, shard, "b", key);
  if (names.max_buckets() != 0) out.key(names, shard, "buckets");
  return out;
}

template <redis_asks_bucket C>
result<redis_call> encode(redis_names const& names, C const& c, redis_now now) {
  auto const scales = rule::bucket_scales::of(c.quotas, redis_tick);
  if (!scales) return errc::quota_too_large;
  bool const bounded = names.max_buckets() != 0;
  auto out = bucket_call(names, bounded ? lua::take_bounded() : lua::take(), c.key);
  out.time(names, now).arg(redis_quota_text(*scales));
  redis_numbers request;
  request.add(std::is_same_v<C, command::take> ? 1 : 0).add(c.max_wait);
  for (auto const& s : scales->span()) {
    auto const price = redis_units::of(s.price_of(c.cost), s);
    auto const room = redis_units::of(s.room(), s);
    request.add(s.gain).add(price.micros).add(price.rest).add(room.micros).add(room.rest);
  }
  out.arg(request.text());
  if (bounded) out.arg(names.max_buckets());
  return out;
}

/// There is no room for another bucket until the first of them is full.
template <redis_asks_bucket C>
result<typename C::result> no_room(C const& c, duration wait) {
  typename C::result d;
  d.shed = true;
  d.cost = c.cost;
  d.capacity = c.quotas[0].capacity();
  d.retry_after = std::max(wait, redis_tick);
  d.reset_after = d.retry_after;
  if constexpr (std::is_same_v<C, command::take>) d.mark = rule::no_mark;
  return d;
}

/// The script has decided; the rule says the rest, and has to agree.
template <redis_asks_bucket C>
result<typename C::result> decode(C const& c, redis_reply& r) {
  auto const scales = rule::bucket_scales::of(c.quotas, redis_tick);
  if (!scales) return errc::quota_too_large;
  auto arrivals = rule::unseen_bucket;
  auto const answers = r.array();
  if (answers == 1) return no_room(c, r.micros());
  if (answers != 2 + 2 * scales->size) r.fail();
  bool const allowed = r.boolean();
  auto const now = r.time();
  for (std::size_t i = 0; i != scales->size; ++i) {
    redis_units units;
    units.micros = r.template number<std::int64_t>();
    units.rest = r.template number<std::int64_t>();
    auto const arrival = units.after(now, scales->each[i]);
    if (!arrival) r.fail();
    arrivals[i] = arrival.value_or(0);
  }
  // A wait that the caller allows is counted in the server's microseconds, as the script counts.
  auto asked = c;
  asked.max_wait = duration{c.max_wait / redis_tick};
  auto d = rule::ask(scales->span(), arrivals, duration::zero(), asked);
  d.wait *= redis_tick.count();
  d.retry_after *= redis_tick.count();
  d.reset_after *= redis_tick.count();
  if (d.allowed != allowed) r.fail();
  if constexpr (std::is_same_v<C, command::peek_bucket>) {
    for (auto& level : d.levels) level.reset_after *= redis_tick.count();
  } else if (allowed) {
    // A mark has the arrival by the server's time, and how far back it was before the take.
    for (std::size_t i = 0; i != scales->size; ++i) {
      auto const after = rule::arrival_in(d.mark, i);
      rule::set_mark(d.mark, i, after + scales->each[i].units_at(duration{now}),
                     after - arrivals[i]);
    }
  }
  return d;
}

/// For what was asked without the shard's time, which may be hours ahead of the clock: who is
/// refused asks again soon.
template <class Decision>
void ask_again_soon(Decision& d) {
  d.retry_after = std::min(d.retry_after, duration{std::chrono::seconds{1}});
}

inline result<redis_call> encode(redis_names const& names, command::refund const& c,
                                 redis_now now) {
  auto const scales = rule::bucket_scales::of(c.quotas, redis_tick);
  if (!scales) return errc::quota_too_large;
  auto out = bucket_call(names, lua::refund(), c.key);
  out.time(names, now).arg(redis_quota_text(*scales));
  out.arg(c.cost).arg(c.before_instant ? 1 : 0);
  for (std::size_t i = 0; i != scales->size; ++i) {
    auto const& s = scales->each[i];
    auto const arrival = redis_units::of(rule::arrival_in(c.mark, i), s);
    auto const back = redis_units::of(rule::before_in(c.mark, i), s);
    out.arg(arrival.micros).arg(arrival.rest);
    out.arg(back.micros).arg(back.rest);
  }
  return out;
}
inline result<refund_receipt> decode(command::refund const& c, redis_reply& r) {
  auto const back = r.number<std::uint64_t>();
  if (back > c.cost) r.fail();
  return refund_receipt{.credited = back, .forfeited = c.cost - back};
}

inline result<redis_call> encode(redis_names const& names, command::reset_bucket const& c,
                                 redis_now) {
  auto out = bucket_call(names, lua::reset_bucket(), c.key);
  out.arg(0);
  return out;
}
inline result<hint> decode(command::reset_bucket const&, redis_reply& r) {
  r.number<std::int64_t>();
  return hint{};
}

}  // namespace weir::detail

#endif
