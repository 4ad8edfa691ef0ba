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

inline result<redis_call> encode(redis_names const& names, command::enqueue_jobs const& c,
                                 redis_now now) {
  auto out =
      queue_call(are_plain(c.jobs) ? lua::enqueue_plain() : lua::enqueue_jobs(), names, c, now);
  for (auto const& j : c.jobs) {
    redis_numbers numbers;
    numbers.add(unsigned{j.priority}).add(static_cast<unsigned>(j.strategy));
    numbers.add(static_cast<unsigned>(j.on_conflict)).add(j.max_attempts);
    numbers.add(redis_ceil(j.delay)).add(redis_ceil(j.deadline));
    numbers.add(redis_ceil(j.retention)).add(redis_ceil(j.unique_ttl));
    out.arg(redis_id(j.id)).arg(numbers.text()).arg(j.unique_key);
    add_redis_body(out, j.kind, j.payload);
  }
  return out;
}
/// Nothing: all of them were simply enqueued.
inline result<command::enqueue_jobs::result> decode(command::enqueue_jobs const& c,
                                                    redis_reply& r) {
  command::enqueue_jobs::result out;
  auto const told = r.array();
  if (told == 0 && r.good()) {
    out.resize(c.jobs.size());
    return out;
  }
  if (told != 2 * c.jobs.size()) r.fail();
  for (std::size_t i = 0; i != c.jobs.size() && r.good(); ++i) {
    enqueued e;
    e.outcome = read_enum(r, enqueue_outcome::rescheduled);
    if (r.empty_text()) {
      if (e.outcome != enqueue_outcome::enqueued) r.fail();
    } else {
      e.other = r.id();
    }
    out.push_back(e);
  }
  return out;
}

}  // namespace weir::detail

#endif
