// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_OPTIONS_HPP
#define WEIR_WORKER_OPTIONS_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir {

/// Queues that a worker serves, and their share of it: an entry of `worker_options::queues`.
///
///     weir::worker worker{store, {.queues = {{.name = "mail", .weight = 3},
///                                            {.prefix = "tenant/", .concurrency = 5},
///                                            {}}}};  // and all others
struct served_queues {
  std::string name{};        ///< the queue of this name, up to `limits::key_size` bytes
  std::string prefix{};      ///< all queues whose names begin so; with `name` empty, both empty:
                             ///< every queue that no other entry serves
  std::uint32_t weight = 1;  ///< its share: jobs claimed for each job of an entry with weight 1,
                             ///< while both have jobs that wait: 1…`max_weight`
  std::uint32_t concurrency = 0;  ///< handlers of its jobs at once, up to `limits::batch`; 0: as
                                  ///< many as the worker has

  static constexpr std::uint32_t max_weight = 10'000;  ///< the largest weight
};

/// How a worker works. Options outside their ranges end `worker::async_run` at once:
/// `invalid_option` for counts and queues, `invalid_shard`, `invalid_ttl` for the lease,
/// `invalid_wait` for the other times.
struct worker_options {
  std::uint32_t concurrency = 10;  ///< handlers at once, 1…`limits::batch`
  std::uint32_t quantum = 10;      ///< jobs claimed from one queue before the next has its turn,
                                   ///< 1…`limits::batch`
  std::uint32_t scan_limit = 100;  ///< queues looked up at once, 1…`limits::batch`
  std::uint32_t prefetch = 0;  ///< jobs claimed beyond those that run, so that a hand need not wait
                               ///< for a round trip, 0…`limits::batch`; given back on `stop`
  duration lease = std::chrono::seconds{30};  ///< of a claimed job, (0, `limits::span`]; renewed
                                              ///< while its handler runs
  duration poll = std::chrono::seconds{1};    ///< longest time without looking for jobs,
                                              ///< (0, `limits::span`]
  duration drain = std::chrono::seconds{10};  ///< how long handlers may go on when the worker
                                              ///< stops, [0, `limits::span`]
  duration max_reservation = std::chrono::minutes{1};     ///< how far ahead a refused job may
                                                          ///< reserve, [0, `limits::span`]
  duration unknown_kind_delay = std::chrono::minutes{1};  ///< until a job of unknown kind is
                                                          ///< offered again, [0, `limits::span`]:
                                                          ///< so long after its first attempt,
                                                          ///< twice as long after the second, …
  duration gc_interval = std::chrono::minutes{1};         ///< between two rounds of housekeeping in
                                                          ///< the store, (0, `limits::span`]
  std::vector<served_queues> queues{};  ///< which it serves, up to 1,000 entries, none twice;
                                        ///< empty: all. Of several that fit a queue, the one with
                                        ///< its name serves it, otherwise the one with the longest
                                        ///< prefix
  std::vector<std::uint32_t> shards{};  ///< in which it looks for queues, each below the store's
                                        ///< `shard_count()`; empty: in all. A queue that is served
                                        ///< by its name is found in any
  std::string name{};  ///< under which it stands in the register of workers, with what it serves
                       ///< and runs: see `registered_worker`. Up to `limits::holder_size` bytes;
                       ///< empty: it does not stand there
};

namespace detail {

[[nodiscard]] inline bool is_entry(served_queues const& s) noexcept {
  return s.weight > 0 && s.weight <= served_queues::max_weight && s.concurrency <= limits::batch &&
         s.name.size() <= limits::key_size && s.prefix.size() <= limits::key_size &&
         (s.name.empty() || s.prefix.empty());
}

/// Is there one entry for each name and prefix?
[[nodiscard]] inline bool is_selection(std::vector<served_queues> const& all) noexcept {
  constexpr std::size_t most = 1000;
  if (all.size() > most || !std::ranges::all_of(all, is_entry)) return false;
  for (auto at = all.begin(); at != all.end(); ++at) {
    auto const same = [&](served_queues const& other) {
      return other.name == at->name && other.prefix == at->prefix;
    };
    if (std::any_of(all.begin(), at, same)) return false;
  }
  return true;
}

}  // namespace detail

/// Are the options within their ranges? Errors: `invalid_option`, `invalid_ttl`, `invalid_wait`.
/// Whether the store has the shards, it does not know.
[[nodiscard]] inline error_code validate(worker_options const& o) noexcept {
  error_code out;
  auto const require = [&out](bool fits, errc e, char const* name) {
    if (!fits && !out) out = detail::explained(e, name);
  };
  auto const count = [](std::uint32_t n) { return n > 0 && n <= limits::batch; };
  auto const positive = [](duration d) { return d > duration::zero() && d <= limits::span; };
  auto const wait = [](duration d) { return d >= duration::zero() && d <= limits::span; };
  require(count(o.concurrency), errc::invalid_option, "worker_options::concurrency");
  require(count(o.quantum), errc::invalid_option, "worker_options::quantum");
  require(count(o.scan_limit), errc::invalid_option, "worker_options::scan_limit");
  require(o.name.size() <= limits::holder_size, errc::invalid_option, "worker_options::name");
  require(o.prefetch <= limits::batch, errc::invalid_option, "worker_options::prefetch");
  require(detail::is_selection(o.queues), errc::invalid_option, "worker_options::queues");
  require(positive(o.lease), errc::invalid_ttl, "worker_options::lease");
  require(positive(o.poll), errc::invalid_wait, "worker_options::poll");
  require(positive(o.gc_interval), errc::invalid_wait, "worker_options::gc_interval");
  require(wait(o.drain), errc::invalid_wait, "worker_options::drain");
  require(wait(o.max_reservation), errc::invalid_wait, "worker_options::max_reservation");
  require(wait(o.unknown_kind_delay), errc::invalid_wait, "worker_options::unknown_kind_delay");
  return out;
}

}  // namespace weir

#endif
