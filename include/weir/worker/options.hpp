// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_OPTIONS_HPP
#define WEIR_WORKER_OPTIONS_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <cstdint>

namespace weir {

/// How a worker works. Options outside their ranges end `worker::async_run` at once:
/// `invalid_option` for counts, `invalid_ttl` for the lease, `invalid_wait` for the other times.
struct worker_options {
  std::uint32_t concurrency = 10;  ///< handlers at once, 1…`limits::batch`
  std::uint32_t quantum = 10;      ///< jobs claimed from one queue before the next has its turn,
                                   ///< 1…`limits::batch`
  std::uint32_t scan_limit = 100;  ///< queues looked up at once, 1…`limits::batch`
  duration lease = std::chrono::seconds{30};  ///< of a claimed job; renewed while its handler runs
  duration poll = std::chrono::seconds{1};    ///< longest time without looking for jobs
  duration drain = std::chrono::seconds{10};  ///< how long handlers may go on when the worker stops
  duration max_reservation = std::chrono::minutes{1};     ///< how far ahead a rate-refused job may
                                                          ///< reserve
  duration unknown_kind_delay = std::chrono::minutes{1};  ///< until a job of unknown kind is
                                                          ///< offered again
  duration gc_interval = std::chrono::minutes{1};         ///< between collections of stale pointers
};

/// Are the options within their ranges? Errors: `invalid_option`, `invalid_ttl`, `invalid_wait`.
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
