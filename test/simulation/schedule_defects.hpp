// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SIMULATION_SCHEDULE_DEFECTS_HPP
#define WEIR_TEST_SIMULATION_SCHEDULE_DEFECTS_HPP

#include "driver.hpp"
#include "weir/command/jobs.hpp"
#include "weir/error.hpp"

namespace weir::testing::simulation {

/// What a store might get wrong that schedules suffer from.
struct schedule_defects {
  explicit schedule_defects(int w) : which{w} {}

  template <class Store>
  result<relayed> step(command::relay_job c, Store& s) {
    if (which == 0 && c.fence != 0) {  // by what the job is now
      auto const j = s.execute(command::find_job{c.queue, c.id});
      if (j.has_value() && *j && (*j)->state == job_state::leased) c.fence = (*j)->fence;
    }
    if (which == 1 && !c.jobs.empty()) {
      auto const added = s.execute(command::enqueue_jobs{c.to, c.jobs});
      if (added.has_error()) return added.error();
    }
    if (which == 2 && !c.jobs.empty()) {
      auto const to = c.to;
      auto const jobs = c.jobs;
      c.to = {};
      c.jobs = {};
      auto a = s.execute(c);
      if (a.has_value() && a->outcome == relay_outcome::relayed) {
        auto const next = a->jobs;
        a->jobs.assign(jobs.size(), enqueued{});
        a->jobs.insert(a->jobs.end(), next.begin(), next.end());
        if (++lost % 8 != 0) (void)s.execute(command::enqueue_jobs{to, jobs});
      }
      return a;
    }
    return s.execute(c);
  }

  int which;
  int lost = 0;
};

inline constexpr defect known_schedule_defects[] = {
    {0, "R5", "a relay obeys a lease that is over"},
    {1, "R4", "a relay adds its jobs before it looks at the lease"},
    {2, "R4", "a tick is booked, and now and then its job is not enqueued (River #1304)"},
};

}  // namespace weir::testing::simulation

#endif
