// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULE_EVENT_HPP
#define WEIR_SCHEDULE_EVENT_HPP

#include "weir/time.hpp"

#include <cstdint>
#include <functional>
#include <string_view>

namespace weir {

/// A firing: the ticks of a schedule that had come, and how a scheduler dealt with them.
struct schedule_event {
  std::string_view name;      ///< the schedule's
  std::uint32_t fired = 0;    ///< jobs that are enqueued in this step
  std::uint64_t skipped = 0;  ///< ticks that the overlap policy left out
  std::uint64_t missed = 0;   ///< ticks that came too late for the catch-up policy
  bool unserved = false;  ///< ticks are skipped for a job that waits, or whose lease is over, and
                          ///< that nobody claims: its queue is not served, or too slowly
  duration lateness{};    ///< how long after its tick, and its jitter, the last job came
};

/// Is told of each firing, before it is stored: if the scheduler dies then, or the schedule has
/// changed, the firing is done, and told, once more. Called by one thread at a time, not always the
/// same. Must not throw.
using schedule_observer = std::function<void(schedule_event const&)>;

}  // namespace weir

#endif
