// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_PERMITS_HPP
#define WEIR_STORE_REDIS_PERMITS_HPP

#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/store/redis/script/generated.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace weir::detail {

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
  out.time(names, now);
  if constexpr (requires { c.holder; }) {
    out.arg(c.holder);
  } else {
    out.arg("");
  }
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::acquire_permit const& c,
                                 redis_now now) {
  auto out = permit_call(lua::acquire_permit(), names, c, now);
  out.arg(c.limit).arg(redis_ceil(c.ttl)).arg(redis_ceil(c.patience));
  if (c.patience > duration::zero()) out.arg(names.own_channel(names.shard_of(c.key)));
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
  auto out = permit_call(lua::renew_permit(), names, c, now);
  out.arg(c.fence).arg(redis_ceil(c.ttl));
  return out;
}
inline result<lease_renewal> decode(command::renew_permit const& c, redis_reply& r) {
  if (!r.boolean()) return errc::lease_lost;
  return lease_renewal{redis_ceil(c.ttl)};
}

inline result<redis_call> encode(redis_names const& names, command::release_permit const& c,
                                 redis_now now) {
  auto out = permit_call(lua::release_permit(), names, c, now);
  out.arg(c.fence);
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
  auto out = permit_call(lua::inspect_permits(), names, c, now);
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
  return permit_call(lua::await_permit(), names, c, redis_now{});
}

}  // namespace weir::detail

#endif
