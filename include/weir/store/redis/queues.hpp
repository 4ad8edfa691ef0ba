// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_QUEUES_HPP
#define WEIR_STORE_REDIS_QUEUES_HPP

#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/job_calls.hpp"
#include "weir/store/redis/locks.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/store/redis/script/generated.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

// What concerns a queue as a whole, or all queues of a shard.
namespace weir::detail {

/// A call on a shard.
inline redis_call shard_call(redis_script const& script, redis_names const& names,
                             std::uint32_t shard, redis_now now) {
  redis_call out{script};
  out.key(names, shard, names.due(false)).key(names, shard, "names").time(names, now);
  return out;
}
/// A call on one of its scans.
inline redis_call scan_call(redis_script const& script, redis_names const& names,
                            std::uint32_t shard, bool schedules, redis_now now) {
  redis_call out{script};
  out.key(names, shard, names.due(schedules)).key(names, shard, names.idle(schedules));
  return std::move(out.time(names, now));
}

inline std::optional<duration> read_optional(redis_reply& r) {
  r.array(1);
  return r.optional_micros();
}

inline result<redis_call> encode(redis_names const& names, command::min_vesting_time const& c,
                                 redis_now now) {
  return queue_call(lua::min_vesting_time(), names, c, now);
}
inline result<std::optional<duration>> decode(command::min_vesting_time const&, redis_reply& r) {
  return read_optional(r);
}

inline result<redis_call> encode(redis_names const& names, command::update_queue_pointer const& c,
                                 redis_now now) {
  return queue_call(lua::update_queue_pointer(), names, c, now);
}
inline result<std::optional<duration>> decode(command::update_queue_pointer const&,
                                              redis_reply& r) {
  return read_optional(r);
}

inline result<redis_call> encode(redis_names const& names, command::read_queue_stats const& c,
                                 redis_now now) {
  return queue_call(lua::read_queue_stats(), names, c, now);
}
inline result<queue_stats> decode(command::read_queue_stats const&, redis_reply& r) {
  queue_stats s;
  r.array(9);
  for (auto* const n :
       {&s.enqueued, &s.pending, &s.leased, &s.completed, &s.dead, &s.cancelled, &s.purged}) {
    *n = r.number<std::uint64_t>();
  }
  s.paused = r.boolean();
  s.next_in = r.optional_micros();
  return s;
}

inline result<redis_call> encode(redis_names const& names, command::snooze_queue const& c,
                                 redis_now now) {
  auto out = queue_call(lua::snooze_queue(), names, c, now);
  out.arg(redis_ceil(c.delay));
  out.arg(c.at_least ? 1 : 0);
  return out;
}
inline result<redis_call> encode(redis_names const& names, command::pause_queue const& c,
                                 redis_now now) {
  return queue_call(lua::pause_queue(), names, c, now);
}
inline result<redis_call> encode(redis_names const& names, command::resume_queue const& c,
                                 redis_now now) {
  return queue_call(lua::resume_queue(), names, c, now);
}
template <class C>
  requires std::is_same_v<C, command::snooze_queue> || std::is_same_v<C, command::pause_queue> ||
           std::is_same_v<C, command::resume_queue>
result<hint> decode(C const&, redis_reply& r) {
  r.boolean();
  return hint{};
}

inline result<redis_call> encode(redis_names const& names, command::obtain_queue_lease const& c,
                                 redis_now now) {
  auto out = queue_call(lua::obtain_queue_lease(), names, c, now);
  out.arg(c.holder).arg(redis_ceil(c.lease));
  return out;
}
inline result<lock_grant> decode(command::obtain_queue_lease const&, redis_reply& r) {
  return decode(command::acquire_lock{}, r);  // it is answered as a lock is
}

inline result<redis_call> encode(redis_names const& names, command::release_queue_lease const& c,
                                 redis_now now) {
  auto out = queue_call(lua::release_queue_lease(), names, c, now);
  out.arg(c.holder).arg(c.fence);
  return out;
}
inline result<lease_release> decode(command::release_queue_lease const&, redis_reply& r) {
  return decode(command::release_lock{}, r);
}

/// Error: `invalid_shard`.
inline result<redis_call> encode(redis_names const& names, command::scan_visible_queues const& c,
                                 redis_now now) {
  if (c.shard >= names.shards()) return errc::invalid_shard;
  auto out = scan_call(lua::scan_visible_queues(), names, c.shard, c.schedules, now);
  constexpr unsigned dropped = 11;  // as many bits as a script cannot use
  out.arg(c.limit).arg(c.entropy >> dropped).arg(redis_exact);
  if (c.turn == command::hint_turn::taken) return std::move(out.arg(names.own_channel(c.shard)));
  return std::move(out.arg(c.turn == command::hint_turn::passed ? "next" : ""));
}
inline result<visible_queues> decode(command::scan_visible_queues const&, redis_reply& r) {
  visible_queues out;
  r.array(2);
  for (auto n = r.array(); n != 0 && r.good(); --n) out.queues.emplace_back(r.text());
  out.next_in = r.optional_micros();
  return out;
}

/// Error: `invalid_shard`.
inline result<redis_call> encode(redis_names const& names, command::gc_stale_pointers const& c,
                                 redis_now now) {
  if (c.shard >= names.shards()) return errc::invalid_shard;
  return shard_call(lua::gc_stale_pointers(), names, c.shard, now);
}
inline result<std::uint32_t> decode(command::gc_stale_pointers const&, redis_reply& r) {
  return r.number<std::uint32_t>();
}

/// Error: `invalid_shard`.
inline result<redis_call> encode(redis_names const& names, command::list_queues const& c,
                                 redis_now now) {
  if (c.shard >= names.shards()) return errc::invalid_shard;
  auto out = shard_call(lua::list_queues(), names, c.shard, now);
  out.arg(c.limit).arg(c.cursor);
  return out;
}
inline result<queue_page> decode(command::list_queues const& c, redis_reply& r) {
  queue_page out;
  r.array(2);
  auto const n = r.array();
  if (n > c.limit) r.fail();
  for (std::size_t i = 0; i != n && r.good(); ++i) out.queues.emplace_back(r.text());
  if (r.boolean() && !out.queues.empty()) out.cursor = out.queues.back();
  return out;
}

/// Answers whether there is a hint already. Error: `invalid_shard`.
inline result<redis_call> encode_wait(redis_names const& names, command::await_jobs const& c) {
  if (c.shard >= names.shards()) return errc::invalid_shard;
  auto out = scan_call(lua::await_jobs(), names, c.shard, c.schedules, redis_now{});
  return std::move(out.arg(c.in_turn ? names.own_channel(c.shard) : std::string{}));
}

}  // namespace weir::detail

#endif
