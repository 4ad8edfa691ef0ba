// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_LOCKS_HPP
#define WEIR_STORE_REDIS_LOCKS_HPP

#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/store/redis/script/generated.hpp"

#include <cstdint>

namespace weir::detail {

template <class C>
redis_call lock_call(redis_script const& script, redis_names const& names, C const& c,
                     redis_now now) {
  redis_call out{script};
  auto const shard = names.shard_of(c.key);
  out.key(names, shard, "l", c.key).key(names, shard, "fence").time(names, now);
  if constexpr (requires { c.holder; }) out.arg(c.holder);
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::acquire_lock const& c,
                                 redis_now now) {
  auto out = lock_call(lua::acquire_lock(), names, c, now);
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
  auto out = lock_call(lua::renew_lock(), names, c, now);
  out.arg(c.fence).arg(redis_ceil(c.ttl));
  return out;
}
inline result<lease_renewal> decode(command::renew_lock const& c, redis_reply& r) {
  if (!r.boolean()) return errc::lease_lost;
  return lease_renewal{redis_ceil(c.ttl)};
}

inline result<redis_call> encode(redis_names const& names, command::release_lock const& c,
                                 redis_now now) {
  auto out = lock_call(lua::release_lock(), names, c, now);
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
  return lock_call(lua::inspect_lock(), names, c, now);
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
