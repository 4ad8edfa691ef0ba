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
  /// The beginning of the streams' names and of all subjects; copied by the store. From 1 to 64
  /// letters, digits, `-` and `_`; otherwise commands are `invalid_option`.
  std::string_view prefix = "weir";

  /// Makes the stream where it is missing. An account that may not do that says false, and somebody
  /// else makes it, with `nats_stream_config`; until then commands are `schema_outdated`.
  bool create_stream = true;

  /// For a stream that is made here: the servers that keep it, from 1 to 5; whether they keep it in
  /// memory only; and the bytes that it may have, 0 being no limit of its own.
  std::uint32_t replicas = 1;
  bool in_memory = false;       ///< see above
  std::uint64_t max_bytes = 0;  ///< see above

  /// Bytes that are kept free for commands that empty the store, by records that say nothing: up to
  /// 1 GiB, an eighth of `max_bytes` at most, and the same in all processes. When an account or a
  /// server is full these records are removed, and nothing is added (`store_full`) until they are
  /// there again. Where a shard's image is larger than half of this, 1.4 times the room that its
  /// next image, and the log until then, will need is kept as well. 0: no room is kept, and a full
  /// store cannot be emptied. The servers of a cluster count each other's bytes up to three seconds
  /// late: near an account's limit, let this be more than is written meanwhile.
  std::size_t reserve = 1U << 20U;

  /// How long a command waits for a connection, or for a stream that can be served, before it is
  /// `store_unavailable`; up to `limits::span`.
  duration offline_patience = std::chrono::seconds{5};

  /// Time for connecting to one server, each of several its own; from 10 ms to 1 h.
  duration connect_timeout = std::chrono::seconds{5};

  /// How long a request waits for its reply; a write without one is `outcome_unknown`. From 10 ms
  /// to 1 h.
  duration request_timeout = std::chrono::seconds{5};

  /// How often the server is asked for its time, and a silent connection for a sign of life; from
  /// 10 ms to 1 min, and the same in all processes. A connection is given up after two of these
  /// without a sign of life, or after five in which JetStream served nothing on it, as where its
  /// server is cut off from the others of its cluster. Then another server is tried, or the same
  /// address again.
  duration health_check_interval = std::chrono::seconds{2};

  /// Before the next try to connect, or to read the log of a shard that could not be read; doubles
  /// with each failure, and half of it is random. Both from 1 ms to 1 h.
  duration least_reconnect_wait = std::chrono::milliseconds{50};
  duration longest_reconnect_wait = std::chrono::seconds{5};  ///< and no further than this

  /// How often a waiter for a hint looks whether there is reason for one; from 1 ms to 10 s.
  duration poll_interval = std::chrono::milliseconds{100};

  /// May own parts and shards, and so execute the commands of other processes: see `nats_store`.
  /// False for programs that live for a moment, and for those that only enqueue: they execute their
  /// commands themselves only where there is no owner to be asked.
  bool owner = true;

  /// Owns parts and shards for which it has no command itself, too: for a program that only serves
  /// others, which then have `owner = false` (`example/nats_owner.cpp`). Several of them share the
  /// parts. Means nothing where `owner` is false.
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
  /// jobs of it in memory. Take several where several processes are to share that work. One process
  /// alone does less with them: with 8 it did 0.4 of the enqueues a second and 0.6 of the dequeues
  /// and completions that it did with 1, and an idle worker sent 9.4 messages a second and not 2.7.
  std::uint32_t shards = 1;

  /// Jobs that each shard may keep, ended ones that are retained among them; from 1. Enqueueing
  /// more is `store_full`. What is under way at once in several processes may go beyond it.
  std::size_t max_jobs = 1'000'000;

  /// How many bytes of a shard's log are written before an image takes their place, at least; from
  /// 4 KiB. Images are as many bytes apart as the last one was large, or more.
  std::size_t image_interval = 8U << 20U;

  /// How often the servers synchronise their files with the disk, as `sync_interval` in their
  /// configuration has it, the same in all processes; zero if that is `always`; up to 1 h. The log
  /// of a shard is cut only behind an image that was written twice as long ago: power may fail
  /// before the disk has a later one.
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
