// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_PERMITS_HPP
#define WEIR_STORE_REDIS_PERMITS_HPP

#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace weir::detail {

namespace lua {

/// A key's permits stand in two sorted sets, by their ends and by their fences, and its tickets in
/// two, by turn and by the instant at which they lapse; a hash has the limit of each ticket's last
/// asking. Permits are counted by their ends, so it does not matter how many of those that are over
/// are still there; of those, and of tickets, a step removes up to a thousand. Nearly always nobody
/// is in line.
inline constexpr char permits[] = R"lua(
local ends, fences, turns, lapses, limits = unpack(KEYS)
local holder = ARGV[2]
local function leave_line(...)  -- after `tickets`
  call('ZREM', lapses, ...)
  call('HDEL', limits, ...)
  call('ZREM', turns, ...)
end
-- How many wait. Where somebody does, a wrong type of any of these shows before something is written.
local function tickets()
  local n = call('ZCARD', turns)
  if n == 0 then return 0 end
  call('HLEN', limits)
  local over = call('ZRANGEBYSCORE', lapses, '-inf', decimal(now), 'LIMIT', 0, 1000)
  if #over == 0 then return n end
  leave_line(unpack(over))
  return call('ZCARD', turns)
end
local function held()
  local fence = call('ZSCORE', fences, holder)
  local till = fence and tonumber(call('ZSCORE', ends, holder) or 0)
  if fence and (not fence:match('^%d+$') or till > 9007199254740992) then
    error('CORRUPT weir: a permit')
  end
  if till and till > now then return tonumber(fence), till end
end
)lua";

/// Lets keys live until then and half of `slack` longer, or all of it: so it need not be said each
/// time.
inline constexpr char keep_all[] = R"lua(
local function keep_all(till, first, ...)
  local least = math.ceil((till - now) / 1000) + slack / 2
  if call('PTTL', first) >= least then return end
  for _, key in ipairs({first, ...}) do call('PEXPIRE', key, decimal(least + slack / 2)) end
end
)lua";

/// How nearly every permit is acquired: nobody is in line, none is over, there is one to be had,
/// and the holder has none.
inline constexpr char acquire_simply[] = R"lua(
if call('ZCARD', KEYS[3]) == 0 then
  local ends, fences, holder, at = KEYS[1], KEYS[2], ARGV[2], decimal(now)
  local live = call('ZCARD', fences)
  if live < tonumber(ARGV[3]) and call('ZCOUNT', ends, '-inf', at) == 0 then
    local fence, till = now, now + ARGV[4]
    local was = call('SET', KEYS[6], at, 'GET')
    local last = was and tonumber(was) or 0
    if was and (not was:match('^%d+$') or last >= 9007199254740992) then
      call('SET', KEYS[6], was)
      error('CORRUPT weir: a fence')
    end
    if last >= now then
      fence, at = last + 1, decimal(last + 1)
      call('SET', KEYS[6], at)
    end
    if call('ZADD', fences, 'NX', at, holder) == 1 then
      call('ZADD', ends, decimal(till), holder)
      local least = math.ceil((till - now) / 1000) + slack / 2
      if call('PTTL', ends) < least then
        for i = 1, 2 do call('PEXPIRE', KEYS[i], decimal(least + slack / 2)) end
      end
      return {1, fence, till - now, live + 1, 0, 0}
    end
  end
end
)lua";

inline constexpr char acquire_permit[] = R"lua(
local limit, ttl, patience = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local dead = call('ZCOUNT', ends, '-inf', decimal(now))
call('ZCARD', fences)
local line = tickets()
if dead > 0 then
  local over = call('ZRANGE', ends, 0, math.min(dead, 1000) - 1)
  call('ZREM', fences, unpack(over))
  call('ZREM', ends, unpack(over))
  dead = dead - #over
end
local live = call('ZCARD', ends) - dead
local fence, till = held()
if fence then return {1, fence, till - now, live, 0, 0} end

local rank = line > 0 and call('ZRANK', turns, holder)
local ahead = rank or line
if live + ahead < limit then
  fence, till = next_fences(KEYS[6], 1), now + ttl
  call('ZADD', fences, decimal(fence), holder)
  call('ZADD', ends, decimal(till), holder)
  keep_all(till, ends, fences)
  if rank then leave_line(holder) end
  return {1, fence, ttl, live + 1, 0, 0}
end

-- Permits end one by one, and each end serves one more of the line.
local function retry_after(before)
  local k = live + before - limit
  if k < live then
    local nth = call('ZRANGE', ends, dead + k, dead + k, 'WITHSCORES')
    return math.min(tonumber(nth[2]), 9007199254740992) - now
  end
  local last = tonumber(call('ZREVRANGE', ends, 0, 0, 'WITHSCORES')[2] or 0)
  local tickets = call('ZREVRANGE', lapses, 0, 1, 'WITHSCORES')
  for i = 1, #tickets, 2 do
    if tickets[i] ~= holder then last = math.max(last, tonumber(tickets[i + 1])) end
  end
  return math.min(last, 9007199254740992) - now
end

if patience > 0 then
  -- Of these two, a wrong type has to show before anything is written.
  call('ZCARD', lapses)
  call('HLEN', limits)
  local after = retry_after(ahead)
  if not rank then
    local last = tonumber(call('ZREVRANGE', turns, 0, 0, 'WITHSCORES')[2] or 0)
    if last >= 9007199254740992 then error('CORRUPT weir: a line') end
    call('ZADD', turns, decimal(last + 1), holder)
  end
  call('ZADD', lapses, decimal(now + patience), holder)
  call('HSET', limits, holder, limit)
  keep_all(now + patience, turns, lapses, limits)
  return {0, 0, 0, live, ahead + 1, after}
end
local after = retry_after(rank and line - 1 or line)
if rank then leave_line(holder) end
return {0, 0, 0, live, 0, after}
)lua";

inline constexpr char renew_permit[] = R"lua(
local fence = held()
if not fence or fence ~= tonumber(ARGV[3]) then return 0 end
local till = now + ARGV[4]
call('ZADD', ends, decimal(till), holder)
keep_all(till, ends, fences)
return 1
)lua";

/// How nearly every permit is released: nobody is in line.
inline constexpr char release_simply[] = R"lua(
if call('ZCARD', KEYS[3]) == 0 then
  local ends, fences, holder, asked = KEYS[1], KEYS[2], ARGV[2], tonumber(ARGV[3])
  local fence = call('ZSCORE', fences, holder)
  local till = fence and tonumber(call('ZSCORE', ends, holder) or 0)
  if fence and (not fence:match('^%d+$') or till > 9007199254740992) then
    error('CORRUPT weir: a permit')
  end
  if not till or till <= now or (asked ~= 0 and asked ~= tonumber(fence)) then return {0, 0} end
  call('ZREM', fences, holder)
  call('ZREM', ends, holder)
  return {1, 0}
end
)lua";

inline constexpr char release_permit[] = R"lua(
local asked, line, freed, left = tonumber(ARGV[3]), tickets(), 0, 0
local fence = held()
if fence and (asked == 0 or asked == fence) then
  call('ZREM', fences, holder)
  call('ZREM', ends, holder)
  freed = 1
end
if asked == 0 and line > 0 and call('ZSCORE', turns, holder) then
  leave_line(holder)
  left = 1
end
if freed + left > 0 and line > left then tell(ARGV[4], ends) end
return {freed, left}
)lua";

inline constexpr char inspect_permits[] = R"lua(
local most = tonumber(ARGV[3])
local out = {call('ZCOUNT', ends, '(' .. decimal(now), '+inf'),
  call('ZCOUNT', lapses, '(' .. decimal(now), '+inf')}
if most == 0 then return out end
local by_fence = call('ZRANGE', fences, 0, most + 999, 'WITHSCORES')
for i = 1, #by_fence, 2 do
  local till = tonumber(call('ZSCORE', ends, by_fence[i]) or 0)
  if till > now and till <= 9007199254740992 and by_fence[i + 1]:match('^%d+$') then  -- what is damaged is skipped
    out[#out + 1] = {by_fence[i], tonumber(by_fence[i + 1]), till - now}
    if #out == most + 2 then break end
  end
end
return out
)lua";

/// Has this holder reason to ask again: its turn has come, or it is not in line (any more)?
inline constexpr char await_permit[] = R"lua(
tickets()
local ahead = call('ZRANK', turns, holder)
if not ahead then return 1 end
local live = call('ZCOUNT', ends, '(' .. decimal(now), '+inf')
return live + ahead < tonumber(call('HGET', limits, holder) or 0) and 1 or 0
)lua";

}  // namespace lua

template <class C>
concept redis_permit_command =
    std::is_same_v<C, command::acquire_permit> || std::is_same_v<C, command::renew_permit> ||
    std::is_same_v<C, command::release_permit> || std::is_same_v<C, command::inspect_permits> ||
    std::is_same_v<C, command::await_permit>;

/// Adds the keys of a permit command, and begins its arguments.
template <redis_permit_command C>
redis_call permit_call(redis_script const& script, redis_names const& names, C const& c,
                       redis_now now) {
  redis_call out{script};
  auto const shard = names.shard_of(c.key);
  for (char const* const kind : {"pe", "pf", "pt", "pl", "pm"}) {
    out.key(names, shard, kind, c.key);
  }
  out.key(names, shard, "fence");
  out.arg(now);
  if constexpr (requires { c.holder; }) {
    out.arg(c.holder);
  } else {
    out.arg("");
  }
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::acquire_permit const& c,
                                 redis_now now) {
  static redis_script const script{lua::common,  lua::acquire_simply, lua::next_fences,
                                   lua::permits, lua::keep_all,       lua::acquire_permit};
  auto out = permit_call(script, names, c, now);
  out.arg(c.limit).arg(redis_ceil(c.ttl)).arg(redis_ceil(c.patience));
  return out;
}
inline result<permit_grant> decode(command::acquire_permit const&, redis_reply& r) {
  permit_grant g;
  r.array(6);
  g.granted = r.boolean();
  g.fence = r.number<std::uint64_t>();
  g.expires_in = r.micros();
  g.in_use = r.number<std::uint32_t>();
  g.place = r.number<std::uint32_t>();
  g.retry_after = r.micros();
  return g;
}

inline result<redis_call> encode(redis_names const& names, command::renew_permit const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::permits, lua::keep_all, lua::renew_permit};
  auto out = permit_call(script, names, c, now);
  out.arg(c.fence).arg(redis_ceil(c.ttl));
  return out;
}
inline result<lease_renewal> decode(command::renew_permit const& c, redis_reply& r) {
  if (!r.boolean()) return errc::lease_lost;
  return lease_renewal{redis_ceil(c.ttl)};
}

inline result<redis_call> encode(redis_names const& names, command::release_permit const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::release_simply, lua::tell, lua::permits,
                                   lua::release_permit};
  auto out = permit_call(script, names, c, now);
  out.arg(c.fence).arg(names.channel());
  return out;
}
inline result<lease_release> decode(command::release_permit const&, redis_reply& r) {
  lease_release out;
  r.array(2);
  out.freed = r.boolean();
  out.left_line = r.boolean();
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::inspect_permits const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::permits, lua::inspect_permits};
  auto out = permit_call(script, names, c, now);
  out.arg(c.limit);
  return out;
}
inline result<permit_census> decode(command::inspect_permits const& c, redis_reply& r) {
  permit_census out;
  auto const n = r.array();
  out.in_use = r.number<std::uint32_t>();
  out.waiting = r.number<std::uint32_t>();
  if (n > 2 + std::size_t{c.limit}) r.fail();
  for (std::size_t i = 2; i < n && r.good(); ++i) {
    permit_info info;
    r.array(3);
    info.holder = r.text();
    info.fence = r.number<std::uint64_t>();
    info.expires_in = r.micros();
    out.holders.push_back(std::move(info));
  }
  return out;
}

/// Answers whether there is a hint already.
inline result<redis_call> encode_wait(redis_names const& names, command::await_permit const& c) {
  static redis_script const script{lua::common, lua::permits, lua::await_permit};
  return permit_call(script, names, c, redis_now{});
}

}  // namespace weir::detail

#endif
