// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_OPTIONS_HPP
#define WEIR_STORE_SQLITE_OPTIONS_HPP

#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weir {

/// The failures that an acknowledged command survives.
enum class durability : std::uint8_t {
  /// The end of the process, of the system, and of the power, as far as the disk keeps what it says
  /// that it has written: each group of commands waits for one fsync (SQLite's synchronous=FULL).
  power_loss,
  /// The end of the process, however it ends. After a power loss, or a crash of the operating
  /// system, the latest commands may be missing, all of them from some point on; what is before it
  /// is whole (synchronous=NORMAL).
  process_crash,
};

/// How a SQLite store behaves. Durations and counts outside their ranges are held at the ends of
/// them. `in_application_database`, `shards`, `reserve` and all `max_…` but `max_group` and
/// `max_pending` are of the file, so that its stores should agree on them; the others are a store's
/// own.
struct sqlite_options {
  durability durable = durability::power_loss;  ///< what an acknowledged command survives

  /// How long a group of commands waits for other processes' transactions to end before it is
  /// `store_unavailable`; up to `limits::span`.
  duration busy_timeout = std::chrono::seconds{5};

  /// How often the file is asked, while somebody waits for a hint, whether others have changed it;
  /// from 1 ms to 10 s. On Linux a store tells those of other processes at once that it has
  /// committed, and a `sqlite_transaction` that it is about to. Then this holds for a second after
  /// such a message, and otherwise ten times as much, up to a second. If a store cannot tell or
  /// hear, for want of descriptors say, the log says so.
  duration poll_interval = std::chrono::milliseconds{10};

  /// Commands in one transaction, at most; from 1. It also ends when the jobs in its commands and
  /// answers have `limits::batch_bytes` together.
  std::uint32_t max_group = 256;

  /// May a brief command be executed by the thread that starts it, when nothing else is to be done?
  /// Only commands that do not wait for the disk are: those that read, and, with `process_crash`,
  /// those that write a few rows. It takes tens of microseconds, and more where a page of the file
  /// is not in the memory, or where the log begins anew after another process has written it back.
  /// false: that thread does no more than to hand over its command.
  bool in_place = true;

  /// Commands that wait for their turn; more are `store_full`.
  std::size_t max_pending = 100'000;

  /// May the file be an application's own database? Then weir's tables, whose names all begin with
  /// weir_, are made in it beside the application's, and the file's application_id and user_version
  /// stay the application's. Otherwise such a file is `store_foreign`. The application's tables are
  /// welcome in weir's own file in either case.
  bool in_application_database = false;

  std::uint32_t shards = 1;               ///< of the job queues, from 1 to 1,024; for good
  std::size_t max_buckets = 1'000'000;    ///< keys with a rate limit that are not full
  std::size_t max_permits = 1'000'000;    ///< permits and tickets of all keys together
  std::size_t max_locks = 1'000'000;      ///< held locks
  std::size_t max_jobs = 100'000'000;     ///< records of jobs in every state, over all queues
  std::size_t max_idle_queues = 100'000;  ///< queues without jobs that are remembered
  std::uint64_t max_bytes = 0;            ///< of the file, beyond which it is `disk_full`; 0: none

  /// Bytes that are kept free for what empties the store: claims, ends, renewals, releases,
  /// cancels. They are in a file beside the database, whose name ends in `-reserve`, and beyond
  /// `max_bytes`. When the disk is full they are given up; what makes records (an enqueue, a new
  /// permit, lock or bucket) is `disk_full` until there is as much room again, on the disk or
  /// within the file. 0: none is kept, and a store on a full disk can change nothing. The default
  /// is what the log and the file may need until the log is written back. Where there is no POSIX,
  /// none is kept.
  std::uint64_t reserve = std::uint64_t{8} << 20U;
};

namespace detail {

[[nodiscard]] constexpr sqlite_options bounded(sqlite_options o) noexcept {
  using namespace std::chrono_literals;
  constexpr std::size_t least = 1;
  o.busy_timeout = std::clamp(o.busy_timeout, duration::zero(), limits::span);
  o.poll_interval = std::clamp<duration>(o.poll_interval, 1ms, 10s);
  o.max_group = std::max(o.max_group, std::uint32_t{1});
  o.max_pending = std::max(o.max_pending, least);
  o.shards = std::clamp(o.shards, std::uint32_t{1}, std::uint32_t{1024});
  o.max_buckets = std::max(o.max_buckets, least);
  o.max_permits = std::max(o.max_permits, least);
  o.max_locks = std::max(o.max_locks, least);
  o.max_jobs = std::max(o.max_jobs, least);
  o.max_idle_queues = std::max(o.max_idle_queues, least);
  return o;
}

}  // namespace detail
}  // namespace weir

#endif
