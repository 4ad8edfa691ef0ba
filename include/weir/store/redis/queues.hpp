// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_QUEUES_HPP
#define WEIR_STORE_REDIS_QUEUES_HPP

#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/job_calls.hpp"
#include "weir/store/redis/job_lua.hpp"
#include "weir/store/redis/locks.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

// What concerns a queue as a whole, or all queues of a shard.
namespace weir::detail {

namespace lua {

inline constexpr char min_vesting_time[] = R"lua(
local least = heads()
return {least and least - now or false}
)lua";

inline constexpr char update_queue_pointer[] = R"lua(
local least = heads()
point(least)
return {least and least - now or false}
)lua";

inline constexpr char read_queue_stats[] = R"lua(
local h = call('HMGET', queue, 'enqueued', 'completed', 'cancelled', 'purged')
for i = 1, 4 do  -- one that is damaged begins anew
  h[i] = tonumber((h[i] or ''):match('^%d+$')) or 0
  if h[i] > 9007199254740992 then h[i] = 0 end
end
local running = call('ZCOUNT', claimed, '(' .. decimal(now), '+inf')
local least = heads()
return {h[1], math.max(call('ZCARD', index) - running, 0), running, h[2], call('ZCARD', dead), h[3], h[4],
  paused and 1 or 0, least and least - now or false}
)lua";

/// ARGV: delay.
inline constexpr char snooze_queue[] = R"lua(
local delay, least = tonumber(ARGV[4]), heads()
call('ZCARD', due)
if delay > 0 then
  name_it()
end
snoozed = delay > 0 and now + delay or 0
if flags or delay > 0 then save_holds() end
point(least)
return 1
)lua";

inline constexpr char pause_queue[] = R"lua(
call('ZCARD', due)
name_it()
paused = true
save_holds()
call('ZREM', due, name)
return 1
)lua";

inline constexpr char resume_queue[] = R"lua(
paused, snoozed = false, 0
local least = heads()
call('ZCARD', due)
if flags then save_holds() end
point(least)
if least and least <= now then tell(ARGV[3], due) end
return 1
)lua";

/// ARGV: holder, lease.
inline constexpr char obtain_queue_lease[] = R"lua(
local holder = ARGV[4]
local has, by, till = unpack(call('HMGET', queue, 'holder', 'fence', 'until'))
by, till = lease_of(has, by, till)
if till > now and has ~= holder then return {0, 0, till - now, has} end
if till <= now then
  by, till = next_fences(fence, 1), now + ARGV[5]
  name_it()
  call('HSET', queue, 'holder', holder, 'fence', decimal(by), 'until', decimal(till))
end
return {1, by, till - now, ''}
)lua";

/// ARGV: holder, fence.
inline constexpr char release_queue_lease[] = R"lua(
local asked = tonumber(ARGV[5])
local has, by, till = unpack(call('HMGET', queue, 'holder', 'fence', 'until'))
by, till = lease_of(has, by, till)
if has ~= ARGV[4] or till <= now or (asked ~= 0 and asked ~= by) then
  return 0
end
call('HDEL', queue, 'holder', 'fence', 'until')
return 1
)lua";

// Of a shard. KEYS: the queues by the instant from which a scan finds them; their names.

/// As `limits` says; counted are the names.
inline constexpr char answer_bytes[] = R"lua(
local answer_bytes = 4194304
)lua";
static_assert(limits::answer_bytes == 4'194'304);

/// ARGV: limit, and how far between the longest due one and now the scan begins: a fraction.
inline constexpr char scan_visible_queues[] = R"lua(
local due, limit, way = KEYS[1], tonumber(ARGV[2]), ARGV[3] / ARGV[4]
local function range(from, to, n)
  return call('ZRANGEBYSCORE', due, from, to, 'WITHSCORES', 'LIMIT', 0, n)
end
local first = tonumber(range('-inf', '+inf', 1)[2] or nil)
if not first then return {{}, false} end
local start = decimal(first + math.floor(math.max(now - first, 0) * way))
local out, later, room = {}, nil, answer_bytes
local function list(from, to)
  local found = range(from, to, limit - #out + 1)
  for i = 1, #found, 2 do
    room = room - #found[i]
    if #out == limit or room < 0 then
      later = tonumber(found[i + 1])
      return
    end
    out[#out + 1] = found[i]
  end
end
list(start, decimal(now))
if not later then list('-inf', '(' .. start) end
if not later then later = tonumber(range('(' .. decimal(now), '+inf', 1)[2] or nil) end
return {out, later and math.min(later, 9007199254740992) - now or false}
)lua";

/// ARGV: limit, the last name of the page before. Answers the names, and whether there are more.
inline constexpr char list_queues[] = R"lua(
local from, limit, room = ARGV[3] == '' and '-' or '(' .. ARGV[3], tonumber(ARGV[2]), answer_bytes
local out = call('ZRANGEBYLEX', KEYS[2], from, '+', 'LIMIT', 0, limit + 1)
local n, all = 0, #out
while n < limit and n < all and #out[n + 1] <= room do
  n = n + 1
  room = room - #out[n]
end
for i = all, n + 1, -1 do out[i] = nil end
return {out, n < all and 1 or 0}
)lua";

/// Pointers never become stale here: the step that empties a queue deletes its pointer.
inline constexpr char gc_stale_pointers[] = R"lua(
return 0
)lua";

/// Is a queue due? Otherwise, when the first one will be; null: none.
inline constexpr char await_jobs[] = R"lua(
local first = tonumber(call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or nil)
return {first and math.min(first, 9007199254740992) - now or false}
)lua";

}  // namespace lua

/// A call on a shard.
inline redis_call shard_call(redis_script const& script, redis_names const& names,
                             std::uint32_t shard, redis_now now) {
  redis_call out{script};
  out.key(names, shard, "due").key(names, shard, "names").arg(now);
  return out;
}

inline std::optional<duration> read_optional(redis_reply& r) {
  r.array(1);
  return r.optional_micros();
}

inline result<redis_call> encode(redis_names const& names, command::min_vesting_time const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::queue, lua::heads, lua::min_vesting_time};
  return queue_call(script, names, c, now);
}
inline result<std::optional<duration>> decode(command::min_vesting_time const&, redis_reply& r) {
  return read_optional(r);
}

inline result<redis_call> encode(redis_names const& names, command::update_queue_pointer const& c,
                                 redis_now now) {
  static redis_script const script{lua::common,
                                   lua::queue,
                                   lua::heads,
                                   lua::flags,
                                   lua::holds,
                                   lua::point,
                                   lua::update_queue_pointer};
  return queue_call(script, names, c, now);
}
inline result<std::optional<duration>> decode(command::update_queue_pointer const&,
                                              redis_reply& r) {
  return read_optional(r);
}

inline result<redis_call> encode(redis_names const& names, command::read_queue_stats const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::queue, lua::heads,
                                   lua::flags,  lua::holds, lua::read_queue_stats};
  return queue_call(script, names, c, now);
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
  static redis_script const script{lua::common, lua::queue,   lua::heads,
                                   lua::flags,  lua::holds,   lua::save_holds,
                                   lua::point,  lua::name_it, lua::snooze_queue};
  auto out = queue_call(script, names, c, now);
  out.arg(redis_ceil(c.delay));
  return out;
}
inline result<redis_call> encode(redis_names const& names, command::pause_queue const& c,
                                 redis_now now) {
  static redis_script const script{lua::common,     lua::queue,   lua::flags,      lua::holds,
                                   lua::save_holds, lua::name_it, lua::pause_queue};
  return queue_call(script, names, c, now);
}
inline result<redis_call> encode(redis_names const& names, command::resume_queue const& c,
                                 redis_now now) {
  static redis_script const script{lua::common,     lua::tell,  lua::queue,
                                   lua::heads,      lua::flags, lua::holds,
                                   lua::save_holds, lua::point, lua::resume_queue};
  return queue_call(script, names, c, now);
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
  static redis_script const script{lua::common,   lua::next_fences, lua::queue,
                                   lua::lease_of, lua::name_it,     lua::obtain_queue_lease};
  auto out = queue_call(script, names, c, now);
  out.arg(c.holder).arg(redis_ceil(c.lease));
  return out;
}
inline result<lock_grant> decode(command::obtain_queue_lease const&, redis_reply& r) {
  return decode(command::acquire_lock{}, r);  // it is answered as a lock is
}

inline result<redis_call> encode(redis_names const& names, command::release_queue_lease const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::queue, lua::lease_of,
                                   lua::release_queue_lease};
  auto out = queue_call(script, names, c, now);
  out.arg(c.holder).arg(c.fence);
  return out;
}
inline result<lease_release> decode(command::release_queue_lease const&, redis_reply& r) {
  return decode(command::release_lock{}, r);
}

/// Error: `invalid_shard`.
inline result<redis_call> encode(redis_names const& names, command::scan_visible_queues const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::answer_bytes, lua::scan_visible_queues};
  if (c.shard >= names.shards()) return errc::invalid_shard;
  auto out = shard_call(script, names, c.shard, now);
  // 53 bits are as many as a script can use.
  constexpr unsigned dropped = 11;
  constexpr std::uint64_t whole = std::uint64_t{1} << 53;
  out.arg(c.limit).arg(c.entropy >> dropped);
  out.arg(whole);
  return out;
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
  static redis_script const script{lua::common, lua::gc_stale_pointers};
  if (c.shard >= names.shards()) return errc::invalid_shard;
  return shard_call(script, names, c.shard, now);
}
inline result<std::uint32_t> decode(command::gc_stale_pointers const&, redis_reply& r) {
  return r.number<std::uint32_t>();
}

/// Error: `invalid_shard`.
inline result<redis_call> encode(redis_names const& names, command::list_queues const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::answer_bytes, lua::list_queues};
  if (c.shard >= names.shards()) return errc::invalid_shard;
  auto out = shard_call(script, names, c.shard, now);
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
  static redis_script const script{lua::common, lua::await_jobs};
  if (c.shard >= names.shards()) return errc::invalid_shard;
  return shard_call(script, names, c.shard, redis_now{});
}

}  // namespace weir::detail

#endif
