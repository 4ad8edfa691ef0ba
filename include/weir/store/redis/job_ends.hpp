// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_JOB_ENDS_HPP
#define WEIR_STORE_REDIS_JOB_ENDS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/rule/job_cursor.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/job_calls.hpp"
#include "weir/store/redis/job_record.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/store/redis/script/generated.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

// What holders do with their leases, and how jobs end.
namespace weir::detail {

template <class C>
redis_call lease_call(redis_script const& script, redis_names const& names, C const& c,
                      redis_now now) {
  auto out = queue_call(script, names, c, now);
  out.arg(redis_id(c.id)).arg(c.fence);
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::extend_lease const& c,
                                 redis_now now) {
  auto out = lease_call(lua::extend_lease(), names, c, now);
  out.arg(redis_ceil(c.lease));
  if (!c.progress.empty() || !c.checkpoint.empty()) out.arg(c.progress).arg(c.checkpoint);
  return out;
}
inline result<lease_renewal> decode(command::extend_lease const& c, redis_reply& r) {
  if (!r.boolean()) return errc::lease_lost;
  return lease_renewal{redis_ceil(c.lease)};
}

inline result<redis_call> encode(redis_names const& names, command::start_job const& c,
                                 redis_now now) {
  return lease_call(lua::start_job(), names, c, now);
}
inline result<started> decode(command::start_job const&, redis_reply& r) {
  if (r.is_array()) {
    r.array(2);
    started out{start_outcome::blocked, r.micros()};
    out.other = r.id();
    return out;
  }
  if (!r.boolean()) return errc::lease_lost;
  return started{};
}

inline result<redis_call> encode(redis_names const& names, command::requeue_job const& c,
                                 redis_now now) {
  auto out = lease_call(lua::requeue_job(), names, c, now);
  out.arg(redis_ceil(c.delay)).arg(rule::kept_reason(c.reason));
  return out;
}
inline result<requeue_outcome> decode(command::requeue_job const&, redis_reply& r) {
  auto const n = r.number<std::uint8_t>();
  if (n > 2) r.fail();
  if (n == 0) return errc::lease_lost;
  return n == 1 ? requeue_outcome::requeued : requeue_outcome::dead_lettered;
}

inline result<redis_call> encode(redis_names const& names, command::snooze_job const& c,
                                 redis_now now) {
  auto out = lease_call(lua::snooze_job(), names, c, now);
  out.arg(redis_ceil(c.delay)).arg(c.memo);
  return out;
}
inline result<redis_call> encode(redis_names const& names, command::return_job const& c,
                                 redis_now now) {
  return lease_call(lua::return_job(), names, c, now);
}
inline result<redis_call> encode(redis_names const& names, command::bury_job const& c,
                                 redis_now now) {
  auto out = lease_call(lua::bury_job(), names, c, now);
  out.arg(rule::kept_reason(c.reason));
  return out;
}
template <class C>
  requires std::is_same_v<C, command::snooze_job> || std::is_same_v<C, command::return_job> ||
           std::is_same_v<C, command::bury_job>
result<hint> decode(C const&, redis_reply& r) {
  if (!r.boolean()) return errc::lease_lost;
  return hint{};
}

inline result<redis_call> encode(redis_names const& names, command::complete_jobs const& c,
                                 redis_now now) {
  auto out = queue_call(lua::complete_jobs(), names, c, now);
  if (c.jobs.size() == 1) out.merges_from_here();
  for (auto const& j : c.jobs) out.arg(redis_id(j.id)).arg(j.fence).arg(j.result);
  return out;
}
inline result<command::complete_jobs::result> decode(command::complete_jobs const& c,
                                                     redis_reply& r) {
  command::complete_jobs::result out;
  r.array(c.jobs.size());
  for (std::size_t i = 0; i != c.jobs.size() && r.good(); ++i) {
    out.push_back(read_enum(r, complete_outcome::completed_without_result));
  }
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::cancel_job const& c,
                                 redis_now now) {
  auto out = queue_call(lua::cancel_job(), names, c, now);
  out.arg(redis_id(c.id)).arg(c.running ? 1 : 0).arg(names.cancels());
  return out;
}
inline result<cancel_outcome> decode(command::cancel_job const&, redis_reply& r) {
  return read_enum(r, cancel_outcome::not_found);
}

/// Error: `invalid_option` for a cursor that no page gave.
inline result<redis_call> encode(redis_names const& names, command::list_dead_letters const& c,
                                 redis_now now) {
  auto const after = rule::number_of_cursor(c.cursor);
  if (!after) return errc::invalid_option;
  auto out = queue_call(lua::list_dead_letters(), names, c, now);
  out.arg(*after).arg(c.limit);
  return out;
}
inline result<job_page> decode(command::list_dead_letters const&, redis_reply& r) {
  job_page out;
  r.array(4);
  out.jobs = read_jobs<job>(r);
  if (auto const last = r.number<std::uint64_t>()) out.cursor = std::to_string(last);
  return out;
}

/// A cursor is the score and the member after which it goes on. Error: `invalid_option` for one
/// that no page gave.
inline result<redis_call> encode(redis_names const& names, command::list_jobs const& c,
                                 redis_now now) {
  auto const size = c.cursor.size();
  auto const colon = std::min(c.cursor.find(':'), size);
  auto const score = rule::number_of_cursor(c.cursor.substr(0, colon));
  auto const after = rule::cursor_bytes(c.cursor.substr(std::min(colon + 1, size)));
  bool const whole = score && after && (size == 0 || (colon != 0 && !after->empty()));
  if (!whole) return errc::invalid_option;
  auto out = queue_call(lua::list_jobs(), names, c, now);
  out.arg(static_cast<unsigned>(c.state)).arg(c.limit).arg(*score).arg(*after);
  return out;
}
inline result<job_page> decode(command::list_jobs const&, redis_reply& r) {
  job_page out;
  r.array(5);
  out.jobs = read_jobs<job>(r);
  auto const score = r.number<std::uint64_t>();
  if (auto const member = r.text(); !member.empty()) {
    out.cursor = std::to_string(score) + ":" + rule::cursor_text(member);
  }
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::replay_dead_letter const& c,
                                 redis_now now) {
  auto out = queue_call(lua::replay_dead_letter(), names, c, now);
  out.arg(redis_id(c.id)).arg(redis_ceil(c.delay));
  return out;
}
inline result<replayed> decode(command::replay_dead_letter const&, redis_reply& r) {
  if (r.is_array()) {
    r.array(1);
    return replayed{replay_outcome::conflict, r.id()};
  }
  return replayed{r.boolean() ? replay_outcome::replayed : replay_outcome::not_found};
}

inline result<redis_call> encode(redis_names const& names, command::purge_job const& c,
                                 redis_now now) {
  auto out = queue_call(lua::purge_job(), names, c, now);
  out.arg(redis_id(c.id));
  return out;
}
inline result<bool> decode(command::purge_job const&, redis_reply& r) { return r.boolean(); }

}  // namespace weir::detail

#endif
