// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_OPTIONS_HPP
#define WEIR_STORE_REDIS_OPTIONS_HPP

#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir {

/// How a Redis store behaves. Durations and counts outside their ranges are held at the ends of
/// them. `prefix` and `shards` are properties of what is on the server: all stores that are to
/// share it agree on them.
struct redis_options {
  /// The beginning of all keys, in braces and with the number of a shard; copied by the store. From
  /// 1 to 64 letters, digits, `-`, `_`, `.` and `:`; otherwise commands are `invalid_option`.
  std::string_view prefix = "weir";

  /// From 1 to 1,024, for good: checked at connect, and now and then, since a server may be emptied
  /// and used with another number.
  std::uint32_t shards = 1;

  /// How long a command waits for a connection before it is `store_unavailable`; up to
  /// `limits::span`.
  duration offline_patience = std::chrono::seconds{5};

  /// Time for each of name look-up, connect, TLS and greeting; from 1 ms to 1 h. An execution
  /// context looks up one name at a time: a look-up that was given up still holds up later ones,
  /// until the system's resolver is done with it.
  duration connect_timeout = std::chrono::seconds{5};

  /// How often a silent connection is asked for a sign of life; after two of these without one it
  /// is given up. From 10 ms to 1 h.
  duration health_check_interval = std::chrono::seconds{2};

  duration least_reconnect_wait = std::chrono::milliseconds{50};  ///< doubles with each failure;
                                                                  ///< from 1 ms to 1 h
  duration longest_reconnect_wait = std::chrono::seconds{5};  ///< where the doubling ends, up to
                                                              ///< 1 h

  /// How often a wait for a hint looks whether there is reason for one, while no hints arrive; from
  /// 1 ms to 10 s. While they do, it looks every 2 s, or every `poll_interval` if that is longer:
  /// this bounds the wait when a hint is lost, and when a lease just ends. Each look is a command,
  /// for each waiter of a permit and each shard; a worker's own scan of a shard counts as one.
  duration poll_interval = std::chrono::milliseconds{100};

  /// How many replicas must have what a command has changed before it succeeds; up to 100. With 0
  /// they are not asked. Otherwise such commands have a connection of their own, since WAIT, by
  /// which the server is asked, holds up everything behind it; one WAIT serves all commands that
  /// were done by then. A command that the server has done, but too few replicas have within
  /// `replica_timeout`, is `outcome_unknown`: it stands unless a fail-over forgets it.
  ///
  /// This makes it less likely that a fail-over loses what was acknowledged, and does not rule it
  /// out: the successor of a server need not be a replica that had it, and a replica that has it
  /// need not have written it to its disk.
  std::uint32_t replicas = 0;
  /// At least 1 ms, and no more than `health_check_interval`.
  duration replica_timeout = std::chrono::seconds{1};

  /// Keys with a rate limit that are not full, in each shard; 0: as many as the server's memory
  /// holds. Where there are so many, a take or a peek of another key is shed (`decision::shed`),
  /// and nothing is changed; those that are there go on, and each that is full again makes room.
  /// For this the server has the shard's keys once more, in the order in which they will be full: a
  /// take that is granted costs it twice the time, and a key twice the memory. While a slot of a
  /// cluster moves key by key, commands about its keys wait until it has moved.
  ///
  /// Stores that share a prefix should agree. Keys that nobody but stores without a bound takes
  /// from are not counted. Where such a store has taken from another key, that is counted as full
  /// too early; where it has reset or refunded it, or the server has evicted it, too late.
  std::size_t max_buckets = 0;

  std::size_t max_pending = 100'000;  ///< commands under way or waiting; more are `store_full`

  /// May a server be used whose maxmemory-policy is not noeviction? When memory is short such a
  /// server forgets buckets, jobs and leases, which others are then given. Without this, commands
  /// are `store_evicts`; with it, the log says so (`log::topic::settings`). The policy is looked at
  /// whenever a connection is made, and without a cluster after every 15 `health_check_interval`,
  /// if weir's user has the right to INFO.
  bool allow_eviction = false;
};

namespace detail {

[[nodiscard]] constexpr redis_options bounded(redis_options o) noexcept {
  using namespace std::chrono_literals;
  constexpr std::size_t least = 1;
  o.shards = std::clamp(o.shards, std::uint32_t{1}, std::uint32_t{1024});
  o.offline_patience = std::clamp(o.offline_patience, duration::zero(), limits::span);
  o.connect_timeout = std::clamp<duration>(o.connect_timeout, 1ms, 1h);
  o.health_check_interval = std::clamp<duration>(o.health_check_interval, 10ms, 1h);
  o.least_reconnect_wait = std::clamp<duration>(o.least_reconnect_wait, 1ms, 1h);
  o.longest_reconnect_wait =
      std::clamp<duration>(o.longest_reconnect_wait, o.least_reconnect_wait, 1h);
  o.poll_interval = std::clamp<duration>(o.poll_interval, 1ms, 10s);
  o.replicas = std::min(o.replicas, std::uint32_t{100});
  o.replica_timeout = std::clamp<duration>(o.replica_timeout, 1ms, o.health_check_interval);
  o.max_pending = std::max(o.max_pending, least);
  return o;
}

[[nodiscard]] constexpr bool valid_prefix(std::string_view prefix) noexcept {
  constexpr std::size_t longest = 64;
  constexpr std::string_view others = "-_.:";
  auto const fits = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != others.npos;
  };
  return !prefix.empty() && prefix.size() <= longest && std::ranges::all_of(prefix, fits);
}

}  // namespace detail
}  // namespace weir

#endif
