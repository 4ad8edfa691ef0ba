// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SIMULATION_WORKER_DEFECTS_HPP
#define WEIR_TEST_SIMULATION_WORKER_DEFECTS_HPP

#include "driver.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

namespace weir::testing::simulation {

/// What a store might get wrong that only whole workers notice.
struct worker_defects {
  static constexpr bool always = true;  ///< for the order of checkpoints

  explicit worker_defects(int w) : which{w} {}

  template <class Store>
  result<permit_grant> step(command::acquire_permit c, Store& s) {
    if (which == 0) c.limit += 1;
    if (which == 1) c.ttl = std::chrono::hours{24};
    return s.execute(c);
  }
  template <class Store>
  result<lease_release> step(command::release_permit const& c, Store& s) {
    if (which == 1) return lease_release{};
    return s.execute(c);
  }
  template <class Store>
  result<dequeued> step(command::dequeue_jobs c, Store& s) {
    if (which == 2) c.lease /= 4;
    auto a = s.execute(c);
    if (which == 2 && a.has_value()) {
      for (auto& j : a.value().jobs) j.expires_in *= 4;
    }
    return a;
  }
  template <class Store>
  result<lease_renewal> step(command::extend_lease c, Store& s) {
    if (which == 5) c.checkpoint = {};
    // Of two renewals under one lease a store does not know which was sent first: one that was on
    // its way for long puts an older checkpoint back. That is left out here; the rest is checked.
    if (!c.checkpoint.empty()) {
      auto const number = std::stoull(std::string{c.checkpoint});
      auto& last = last_checkpoint[{std::string{c.queue}, c.id}];
      if (number < last) c.checkpoint = {};
      last = std::max(last, number);
    }
    return s.execute(c);
  }
  template <class Store>
  result<requeue_outcome> step(command::requeue_job c, Store& s) {
    if (which == 3) c.delay = std::chrono::hours{24};
    return s.execute(c);
  }
  template <class Store>
  result<command::complete_jobs::result> step(command::complete_jobs const& c, Store& s) {
    if (which == 4) {
      return command::complete_jobs::result(c.jobs.size(), complete_outcome::completed);
    }
    return s.execute(c);
  }

  int which;
  std::map<std::pair<std::string, job_id>, unsigned long long> last_checkpoint;
};

inline constexpr defect known_worker_defects[] = {
    {0, "R1", "the concurrency limit is one too high"},
    {1, "F11", "permits of jobs are never given back"},
    {2, "F4", "leases end after a quarter of their time"},
    {3, "R6", "a failed job waits for a day"},
    {4, "F14", "a completion is acknowledged and not done"},
    {5, "F104", "a renewal stores no checkpoint"},
};

}  // namespace weir::testing::simulation

#endif
