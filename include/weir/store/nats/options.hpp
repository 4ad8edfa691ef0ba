// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_OPTIONS_HPP
#define WEIR_STORE_NATS_OPTIONS_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir {

/// How a NATS store behaves. Durations and counts outside their ranges are held at the ends of
/// them.
struct nats_options {
  /// What the stream and all subjects begin with; copied by the store. From 1 to 64 letters,
  /// digits, `-` and `_`; otherwise commands are `invalid_option`.
  std::string_view prefix = "weir";

  /// Makes the stream where it is missing. An account that may not do that says false, and somebody
  /// else makes it, with `nats_stream_config`; until then commands are `schema_outdated`.
  bool create_stream = true;

  /// Of a stream that is made here: on how many servers it is kept, from 1 to 5; whether in memory
  /// only; and how many bytes it may have, 0 being no limit of its own.
  std::uint32_t replicas = 1;
  bool in_memory = false;       ///< see above
  std::uint64_t max_bytes = 0;  ///< see above

  /// Bytes that are kept free for what empties the store, by records that say nothing: up to 1 GiB,
  /// an eighth of `max_bytes` at most, and the same in all processes. Where an account or a server
  /// has no more room these records are removed, and before they are there again nothing is added
  /// (`store_full`). For the next image of a shard, and the log until then, 1.4 times as much is
  /// kept as that will need, beside this, where an image is larger than half of this. 0: no room is
  /// kept, and a store that is full cannot be emptied. The servers of a cluster count each other's
  /// bytes up to three seconds late: at an account's limit there, more than is written meanwhile is
  /// wanted.
  std::size_t reserve = 1U << 20U;

  /// How long a command waits for a connection, or for a stream that can be served, before it is
  /// `store_unavailable`; up to `limits::span`.
  duration offline_patience = std::chrono::seconds{5};

  /// Of a try to connect to one server, if there are several; from 10 ms to 1 h.
  duration connect_timeout = std::chrono::seconds{5};

  /// How long a request waits for its reply; a write without one is `outcome_unknown`. From 10 ms
  /// to 1 h.
  duration request_timeout = std::chrono::seconds{5};

  /// How often the server is asked for its time, in all processes alike, and a silent connection
  /// for a sign of life; after two of these without one it is given up. So it is after five in
  /// which JetStream served nothing on it, as where the server is cut off from the others of its
  /// cluster: another one is tried, or the same address again. From 10 ms to 1 min.
  duration health_check_interval = std::chrono::seconds{2};

  /// Before the next try to connect, or to read the log of a shard that could not be read; doubles
  /// with each failure, and half of it is random. Both from 1 ms to 1 h.
  duration least_reconnect_wait = std::chrono::milliseconds{50};
  duration longest_reconnect_wait = std::chrono::seconds{5};  ///< and no further than this

  /// How often who waits for a hint looks whether there is reason for one; from 1 ms to 10 s.
  duration poll_interval = std::chrono::milliseconds{100};

  /// Executes the commands of other processes, too, where nobody else does, or where others do so
  /// for more parts and shards: see `nats_store`. False for programs that live for a moment, and
  /// for those that only enqueue: where nobody is there to be asked, they do themselves what they
  /// want done.
  bool owner = true;

  /// Becomes an owner of parts and shards for which it has no command itself, too: for a program
  /// that is there for others and does nothing else, who then say `owner = false`
  /// (`example/nats_owner.cpp`). Several of them share the parts. Means nothing where `owner` is
  /// false.
  bool owns_unused = false;

  /// How long an owner that is asked may say nothing before somebody takes its place; from 100 ms
  /// to 1 h, the same in all processes. One whose connection has ended is found sooner: by the next
  /// command, or within a second.
  duration owner_patience = std::chrono::seconds{2};

  std::size_t max_pending = 100'000;  ///< commands under way or waiting; more are `store_full`

  /// Keys whose records are remembered, so that a command on one of them takes one round trip
  /// instead of two; from 1.
  std::size_t max_remembered = 10'000;

  /// How many shards the jobs are in, from 1 to 1,024: the same for all who use the prefix, or
  /// commands about jobs are `invalid_option`. Each has a stream, and an owner that keeps all
  /// jobs of it in memory.
  std::uint32_t shards = 1;

  /// Jobs that each shard may keep, ended ones that are retained among them; from 1. Enqueueing
  /// more is `store_full`. What is under way at once in several processes may go beyond it.
  std::size_t max_jobs = 1'000'000;

  /// How many bytes of a shard's log are written before an image takes their place, at least; from
  /// 4 KiB. Images are as many bytes apart as the last one was large, or more.
  std::size_t image_interval = 8U << 20U;

  /// How often the servers synchronise their files with the disk, as `sync_interval` in their
  /// configuration has it, the same in all processes; zero if that is `always`; up to 1 h. The log
  /// of a shard is cut behind an image that was written twice as long ago, and lasts so long: power
  /// may fail before.
  duration sync_interval = std::chrono::minutes{2};
};

namespace detail {

[[nodiscard]] inline error_code nats_bad_prefix() noexcept {
  return explained(errc::invalid_option,
                   "nats_options::prefix is from 1 to 64 letters, digits, - and _");
}

[[nodiscard]] constexpr nats_options bounded(nats_options o) noexcept {
  using namespace std::chrono_literals;
  constexpr std::size_t least = 1;
  o.replicas = std::clamp(o.replicas, std::uint32_t{1}, std::uint32_t{5});
  o.reserve = std::min(o.reserve, std::size_t{1} << 30U);
  o.offline_patience = std::clamp(o.offline_patience, duration::zero(), limits::span);
  o.connect_timeout = std::clamp<duration>(o.connect_timeout, 10ms, 1h);
  o.request_timeout = std::clamp<duration>(o.request_timeout, 10ms, 1h);
  o.health_check_interval = std::clamp<duration>(o.health_check_interval, 10ms, 1min);
  o.least_reconnect_wait = std::clamp<duration>(o.least_reconnect_wait, 1ms, 1h);
  o.longest_reconnect_wait =
      std::clamp<duration>(o.longest_reconnect_wait, o.least_reconnect_wait, 1h);
  o.owner_patience = std::clamp<duration>(o.owner_patience, 100ms, 1h);
  o.poll_interval = std::clamp<duration>(o.poll_interval, 1ms, 10s);
  o.max_pending = std::max(o.max_pending, least);
  o.max_remembered = std::max(o.max_remembered, least);
  o.shards = std::clamp(o.shards, std::uint32_t{1}, std::uint32_t{1024});
  o.max_jobs = std::max(o.max_jobs, least);
  o.image_interval = std::max(o.image_interval, std::size_t{4096});
  o.sync_interval = std::clamp<duration>(o.sync_interval, 0ms, 1h);
  return o;
}

}  // namespace detail
}  // namespace weir

#endif
