// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_LOCKS_HPP
#define WEIR_STORE_REDIS_LOCKS_HPP

#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"

#include <cstdint>

namespace weir::detail {

namespace lua {

/// The fence and the end of a lease, of which all is there, or nothing.
inline constexpr char lease_of[] = R"lua(
local function lease_of(holder, fence, till)
  if not holder and not fence and not till then return 0, 0 end
  if not holder or not fence or not till or not (fence .. till):match('^%d+$') or
      math.max(tonumber(fence) or 0, tonumber(till) or 0) > 9007199254740992 then
    error('CORRUPT weir: a lease')
  end
  return tonumber(fence) or 0, tonumber(till) or 0
end
)lua";

/// A lock is a hash with its holder, fence and end. After `lease_of`.
inline constexpr char locks[] = R"lua(
local lock, holder = KEYS[1], ARGV[2]
local has, fence, till = unpack(call('HMGET', lock, 'holder', 'fence', 'until'))
fence, till = lease_of(has, fence, till)
local held = till > now
local function named(asked) return held and has == holder and (asked == 0 or asked == fence) end
)lua";

inline constexpr char acquire_lock[] = R"lua(
if held and has ~= holder then return {0, 0, till - now, has} end
if not held then
  fence, till = next_fences(KEYS[2], 1), now + ARGV[3]
  call('HSET', lock, 'holder', holder, 'fence', decimal(fence), 'until', decimal(till))
  keep(lock, till)
end
return {1, fence, till - now, ''}
)lua";

inline constexpr char renew_lock[] = R"lua(
local asked = tonumber(ARGV[3])
if asked == 0 or not named(asked) then return 0 end
till = now + ARGV[4]
call('HSET', lock, 'until', decimal(till))
keep(lock, till)
return 1
)lua";

inline constexpr char release_lock[] = R"lua(
if not named(tonumber(ARGV[3])) then return 0 end
call('DEL', lock)
return 1
)lua";

inline constexpr char inspect_lock[] = R"lua(
if not held then return {0, '', 0, 0} end
return {1, has, fence, till - now}
)lua";

}  // namespace lua

template <class C>
redis_call lock_call(redis_script const& script, redis_names const& names, C const& c,
                     redis_now now) {
  redis_call out{script};
  auto const shard = names.shard_of(c.key);
  out.key(names, shard, "l", c.key).key(names, shard, "fence").arg(now);
  if constexpr (requires { c.holder; }) out.arg(c.holder);
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::acquire_lock const& c,
                                 redis_now now) {
  static redis_script const script{lua::common,   lua::next_fences, lua::keep,
                                   lua::lease_of, lua::locks,       lua::acquire_lock};
  auto out = lock_call(script, names, c, now);
  out.arg(redis_ceil(c.ttl));
  return out;
}
inline result<lock_grant> decode(command::acquire_lock const&, redis_reply& r) {
  lock_grant g;
  r.array(4);
  g.granted = r.boolean();
  g.fence = r.number<std::uint64_t>();
  g.expires_in = r.micros();
  g.holder = r.text();
  return g;
}

inline result<redis_call> encode(redis_names const& names, command::renew_lock const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::keep, lua::lease_of, lua::locks,
                                   lua::renew_lock};
  auto out = lock_call(script, names, c, now);
  out.arg(c.fence).arg(redis_ceil(c.ttl));
  return out;
}
inline result<lease_renewal> decode(command::renew_lock const& c, redis_reply& r) {
  if (!r.boolean()) return errc::lease_lost;
  return lease_renewal{redis_ceil(c.ttl)};
}

inline result<redis_call> encode(redis_names const& names, command::release_lock const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::lease_of, lua::locks, lua::release_lock};
  auto out = lock_call(script, names, c, now);
  out.arg(c.fence);
  return out;
}
inline result<lease_release> decode(command::release_lock const&, redis_reply& r) {
  lease_release out;
  out.freed = r.boolean();
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::inspect_lock const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::lease_of, lua::locks, lua::inspect_lock};
  return lock_call(script, names, c, now);
}
inline result<lock_info> decode(command::inspect_lock const&, redis_reply& r) {
  lock_info info;
  r.array(4);
  info.held = r.boolean();
  info.holder = r.text();
  info.fence = r.number<std::uint64_t>();
  info.expires_in = r.micros();
  return info;
}

}  // namespace weir::detail

#endif
