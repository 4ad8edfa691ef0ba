// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_OPERATIONS_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_OPERATIONS_HPP

#include "weir/job.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/dice.hpp"
#include "weir/testing/histories.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::testing::conformance {

/// The id of the job with this number: ids are in the order of the numbers.
[[nodiscard]] inline job_id numbered_job(std::uint32_t n) noexcept {
  job_id id{};
  constexpr std::size_t last = 15;
  for (std::size_t i = 0; i < sizeof n; ++i)
    id.data[last - i] = static_cast<std::uint8_t>(n >> (8 * i));
  id.data[0] = 1;
  id.data[6] = 0x70;
  id.data[8] = 0x80;
  return id;
}

/// Another queue, in the shard of this one.
[[nodiscard]] inline std::string beside(std::string_view queue) {
  return std::string{companion_prefix} + std::string{queue};
}

/// One step of a generated history of queues. Jobs are named so that it means something whatever
/// else is left out.
struct job_op {
  enum class kind : std::uint8_t {
    enqueue,
    dequeue,
    dequeue_again,
    obtain,
    extend,
    start,
    complete,
    requeue,
    snooze,
    give_back,
    bury,
    cancel,
    find,
    peek,
    min_vesting,
    update_pointer,
    scan,
    collect,
    take_queue,
    release_queue,
    snooze_queue,
    pause,
    resume,
    stats,
    dead_letters,
    replay,
    purge,
    relay,
    list
  };

  kind what = kind::stats;
  std::uint8_t queue = 0;
  std::uint8_t holder = 0;
  std::uint8_t count = 1;    ///< jobs to enqueue, or the limit
  std::uint32_t number = 0;  ///< of the first job to enqueue, or the one meant
  std::uint8_t pick = 0;     ///< the job meant is this one of those that fit, if there are any
  bool any_job = false;      ///< the job meant is the one with the number, whether or not it fits
  bool stale = false;        ///< names the first lease that the job ever had
  bool flag = false;
  std::uint8_t priority = 100;
  std::uint32_t max_attempts = 3;
  std::uint8_t key = 0;
  unique_strategy strategy = unique_strategy::none;
  conflict_policy policy = conflict_policy::reject;
  duration time{};  ///< delay or lease
  duration deadline{};
  duration retention{};
  duration unique_ttl{};
  duration after{};  ///< time that passes before it
};

[[nodiscard]] inline std::vector<job_op> generate_job_ops(time_choices const& times,
                                                          capabilities const& can,
                                                          std::size_t steps, dice d) {
  using kind = job_op::kind;
  // Phases of one history: most of what happens to jobs, and now and then everything else.
  constexpr kind often[] = {kind::enqueue, kind::enqueue,   kind::enqueue,  kind::dequeue,
                            kind::dequeue, kind::dequeue,   kind::complete, kind::complete,
                            kind::requeue, kind::snooze,    kind::extend,   kind::start,
                            kind::start,   kind::give_back, kind::bury,     kind::cancel};
  constexpr kind seldom[] = {
      kind::dequeue_again, kind::obtain,       kind::obtain,      kind::find,
      kind::find,          kind::peek,         kind::min_vesting, kind::update_pointer,
      kind::scan,          kind::scan,         kind::collect,     kind::take_queue,
      kind::release_queue, kind::snooze_queue, kind::pause,       kind::resume,
      kind::resume,        kind::resume,       kind::stats,       kind::stats,
      kind::stats,         kind::dead_letters, kind::replay,      kind::replay,
      kind::purge,         kind::relay,        kind::relay,       kind::list};
  constexpr std::uint8_t priorities[] = {100, 0, 255, 101};
  auto const levels =
      std::min<std::uint64_t>(std::max(can.priority_levels, 1U), std::size(priorities));
  auto const queues = 1 + d.below(3);
  auto const holders = 1 + d.below(3);
  bool const unique = d.chance(70);
  std::uint32_t next_number = 1;

  std::vector<job_op> ops(steps);
  for (auto& o : ops) {
    o.what = d.chance(65) ? d.pick(often) : d.pick(seldom);
    o.queue = static_cast<std::uint8_t>(d.below(queues));
    o.holder = static_cast<std::uint8_t>(d.below(holders));
    o.count = static_cast<std::uint8_t>(1 + d.below(3));
    o.number = static_cast<std::uint32_t>(d.below(next_number));
    if ((o.what == kind::enqueue || o.what == kind::relay) && !d.chance(8)) {
      o.number = next_number;
      next_number += o.count;
    }
    o.pick = static_cast<std::uint8_t>(d.below(8));
    o.any_job = d.chance(15);
    o.stale = d.chance(10);
    o.flag = d.chance(40);
    o.priority = priorities[d.below(levels)];
    o.max_attempts = static_cast<std::uint32_t>(1 + d.below(3));
    o.key = static_cast<std::uint8_t>(d.below(2));
    if (unique && d.chance(70)) o.strategy = static_cast<unique_strategy>(1 + d.below(5));
    o.policy = static_cast<conflict_policy>(d.below(5));
    o.time = o.what == kind::dequeue || o.what == kind::dequeue_again || o.what == kind::obtain ||
                     o.what == kind::extend || o.what == kind::take_queue
                 ? times.ttl(d)
                 : times.wait(d);
    if (d.chance(15)) o.deadline = times.ttl(d);
    if (d.chance(50)) o.retention = times.ttl(d);
    o.unique_ttl = times.ttl(d);
    o.after = times.step(d);
  }
  return ops;
}

[[nodiscard]] inline std::vector<job_op> simpler_job_ops(job_op const& o) {
  std::vector<job_op> out;
  if (o.after != duration::zero()) out.emplace_back(o).after = duration::zero();
  if (o.count != 1) out.emplace_back(o).count = 1;
  if (o.queue != 0) out.emplace_back(o).queue = 0;
  if (o.holder != 0) out.emplace_back(o).holder = 0;
  if (o.what != job_op::kind::enqueue && o.what != job_op::kind::relay) return out;
  if (o.strategy != unique_strategy::none) out.emplace_back(o).strategy = unique_strategy::none;
  if (o.deadline != duration::zero()) out.emplace_back(o).deadline = duration::zero();
  if (o.retention != duration::zero()) out.emplace_back(o).retention = duration::zero();
  if (o.time != duration::zero()) out.emplace_back(o).time = duration::zero();
  if (o.priority != 100) out.emplace_back(o).priority = 100;
  return out;
}

}  // namespace weir::testing::conformance

#endif
