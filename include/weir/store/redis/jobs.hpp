// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_JOBS_HPP
#define WEIR_STORE_REDIS_JOBS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/job_calls.hpp"
#include "weir/store/redis/job_record.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/store/redis/script/generated.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Jobs are claimed and looked at. How they come: store/redis/enqueues.hpp. What a holder does with
// its lease, and how jobs end otherwise: store/redis/job_ends.hpp.
namespace weir::detail {

inline result<redis_call> encode(redis_names const& names, command::peek_jobs const& c,
                                 redis_now now) {
  auto out = queue_call(lua::peek_jobs(), names, c, now);
  out.arg(c.limit);
  return out;
}
inline result<std::vector<job>> decode(command::peek_jobs const&, redis_reply& r) {
  r.array(3);
  return read_jobs<job>(r);
}

inline result<redis_call> encode(redis_names const& names, command::dequeue_jobs const& c,
                                 redis_now now) {
  auto latest = names.key(names.shard_of(c.queue), "h", std::to_string(c.queue.size()));
  latest.append(":").append(c.queue).append(c.holder);
  auto out = queue_call(lua::dequeue_jobs(), names, c, now, latest);
  out.arg(c.holder).arg(c.sequence).arg(c.limit).arg(redis_ceil(c.lease));
  return out;
}
inline result<dequeued> decode(command::dequeue_jobs const&, redis_reply& r) {
  dequeued out;
  r.array(8);
  out.jobs = read_jobs<leased_job>(r);
  out.dead_lettered = r.number<std::uint32_t>();
  out.damaged = r.number<std::uint32_t>();
  out.more = r.boolean();
  out.held = r.boolean();
  out.next_in = r.optional_micros();
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::obtain_lease const& c,
                                 redis_now now) {
  auto out = queue_call(lua::obtain_lease(), names, c, now);
  out.arg(redis_id(c.id)).arg(c.holder).arg(redis_ceil(c.lease)).arg(c.early ? 1 : 0);
  return out;
}
inline result<std::optional<leased_job>> decode(command::obtain_lease const&, redis_reply& r) {
  return read_optional_job<leased_job>(r);
}

inline result<redis_call> encode(redis_names const& names, command::find_job const& c,
                                 redis_now now) {
  auto out = queue_call(lua::find_job(), names, c, now);
  out.arg(redis_id(c.id));
  return out;
}
inline result<std::optional<job>> decode(command::find_job const&, redis_reply& r) {
  return read_optional_job<job>(r);
}

}  // namespace weir::detail

#endif
