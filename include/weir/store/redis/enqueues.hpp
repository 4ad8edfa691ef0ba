// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_ENQUEUES_HPP
#define WEIR_STORE_REDIS_ENQUEUES_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/job_calls.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/store/redis/script/generated.hpp"
#include "weir/unique.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

// How jobs come.
namespace weir::detail {

/// Does none hold a unique key while it waits, and is none named twice?
[[nodiscard]] inline bool are_plain(std::span<new_job const> jobs) {
  if (std::ranges::any_of(jobs, holds_while_waiting, &new_job::strategy)) return false;
  if (jobs.size() == 1) return true;
  std::vector<job_id> ids;
  ids.reserve(jobs.size());
  for (auto const& j : jobs) ids.push_back(j.id);
  std::ranges::sort(ids);
  return std::ranges::adjacent_find(ids) == ids.end();
}

/// Four arguments for each.
inline void add_redis_jobs(redis_call& to, std::span<new_job const> jobs) {
  for (auto const& j : jobs) {
    redis_numbers numbers;
    numbers.add(unsigned{j.priority}).add(static_cast<unsigned>(j.strategy));
    numbers.add(static_cast<unsigned>(j.on_conflict)).add(j.max_attempts);
    numbers.add(redis_ceil(j.delay)).add(redis_ceil(j.deadline));
    numbers.add(redis_ceil(j.retention)).add(redis_ceil(j.unique_ttl));
    to.arg(redis_id(j.id)).arg(numbers.text()).arg(j.unique_key);
    add_redis_body(to, j);
  }
}

/// Adds what became of so many jobs. Nothing is said where all of them were simply enqueued.
inline void read_enqueued(redis_reply& r, std::size_t jobs, command::enqueue_jobs::result& out) {
  auto const told = r.array();
  if (told == 0 && r.good()) {
    out.resize(out.size() + jobs);
    return;
  }
  if (told != 2 * jobs) r.fail();
  for (std::size_t i = 0; i != jobs && r.good(); ++i) {
    enqueued e;
    e.outcome = read_enum(r, enqueue_outcome::rescheduled);
    if (r.empty_text()) {
      if (e.outcome != enqueue_outcome::enqueued) r.fail();
    } else {
      e.other = r.id();
    }
    out.push_back(e);
  }
}

inline result<redis_call> encode(redis_names const& names, command::enqueue_jobs const& c,
                                 redis_now now) {
  bool const plain = are_plain(c.jobs);
  auto out = queue_call(plain ? lua::enqueue_plain() : lua::enqueue_jobs(), names, c, now);
  if (plain && c.jobs.size() == 1) out.merges_from_here();
  add_redis_jobs(out, c.jobs);
  return out;
}
inline result<command::enqueue_jobs::result> decode(command::enqueue_jobs const& c,
                                                    redis_reply& r) {
  command::enqueue_jobs::result out;
  read_enqueued(r, c.jobs.size(), out);
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::relay_job const& c,
                                 redis_now now) {
  if (!c.to.empty() && names.shard_of(c.to) != names.shard_of(c.queue)) return errc::invalid_shard;
  auto out = queue_call(lua::relay_job(), names, c, now, {}, c.to);
  out.arg(redis_id(c.id)).arg(c.fence).arg(c.expected).arg(c.stored);
  out.arg(c.jobs.size()).arg(c.to);
  add_redis_jobs(out, c.jobs);
  add_redis_jobs(out, c.next);
  return out;
}
inline result<relayed> decode(command::relay_job const& c, redis_reply& r) {
  relayed out;
  bool const whole = r.array() == 3;
  auto const outcome = r.number<std::uint8_t>();
  if (outcome > static_cast<std::uint8_t>(relay_outcome::not_found)) return errc::lease_lost;
  out.outcome = static_cast<relay_outcome>(outcome);
  if (whole != (out.outcome == relay_outcome::relayed)) r.fail();
  if (whole) {
    read_enqueued(r, c.jobs.size(), out.jobs);
    read_enqueued(r, c.next.size(), out.jobs);
  }
  return out;
}

}  // namespace weir::detail

#endif
