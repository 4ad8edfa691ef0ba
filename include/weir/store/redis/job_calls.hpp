// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_JOB_CALLS_HPP
#define WEIR_STORE_REDIS_JOB_CALLS_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/job_record.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"

#include <boost/endian/conversion.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// How jobs travel between a script and here: see store/redis/script/shared.
namespace weir::detail {

/// Adds the keys that a queue has of its own.
inline void add_redis_queue(redis_call& to, redis_names const& names, std::uint32_t shard,
                            std::string_view queue) {
  for (char const* const kind : {"q", "i", "j", "k", "r", "d", "e", "c"}) {
    to.key(names, shard, kind, queue);
  }
}

/// A command by which a queue can become due.
template <class C>
inline constexpr bool redis_wakes =
    std::same_as<C, command::enqueue_jobs> || std::same_as<C, command::relay_job> ||
    std::same_as<C, command::extend_lease> || std::same_as<C, command::obtain_lease> ||
    std::same_as<C, command::replay_dead_letter> || std::same_as<C, command::requeue_job> ||
    std::same_as<C, command::resume_queue> || std::same_as<C, command::return_job> ||
    std::same_as<C, command::snooze_job> || std::same_as<C, command::snooze_queue>;

/// A call on one queue: its keys, that of those who wait in turn if the call wakes, perhaps one
/// more, or those of another queue of the shard, and the arguments that all of them have.
template <class C>
redis_call queue_call(redis_script const& script, redis_names const& names, C const& c,
                      redis_now now, std::string const& other = {}, std::string_view to = {}) {
  redis_call out{script};
  auto const shard = names.shard_of(c.queue);
  add_redis_queue(out, names, shard, c.queue);
  out.key(names, shard, "fence").key(names, shard, names.due(rule::holds_schedules(c.queue)));
  out.key(names, shard, "names");
  if constexpr (redis_wakes<C>) {
    out.key(names, shard, names.idle(rule::holds_schedules(c.queue)));
  }
  if (!other.empty()) out.key(other);
  if (!to.empty()) {
    add_redis_queue(out, names, shard, to);
    out.key(names, shard, names.due(rule::holds_schedules(to)));
    out.key(names, shard, names.idle(rule::holds_schedules(to)));
  }
  out.time(names, now).arg(c.queue).whole(names.head(shard), "hints");
  return out;
}

/// As bytes of a string.
[[nodiscard]] inline std::string_view redis_id(job_id const& id) noexcept {
  return {reinterpret_cast<char const*>(id.data()), id.size()};
}

/// Adds what never changes of a job, as scripts pass it on: the size of its kind, with `redis_more`
/// and the size of its headers if it has any; its kind, its headers, its payload.
inline void add_redis_body(redis_call& to, new_job const& j) {
  std::array<unsigned char, 4> sizes{};
  bool const more = !j.headers.empty();
  auto const kind = j.kind.size() + (more ? redis_more : 0);
  boost::endian::store_big_u16(sizes.data(), static_cast<std::uint16_t>(kind));
  boost::endian::store_big_u16(sizes.data() + 2, static_cast<std::uint16_t>(j.headers.size()));
  to.whole(std::string_view{reinterpret_cast<char const*>(sizes.data()), more ? 4U : 2U}, j.kind,
           j.headers, j.payload);
}

template <class Enum>
Enum read_enum(redis_reply& r, Enum last) {
  auto const n = r.number<std::uint8_t>();
  if (n > static_cast<std::uint8_t>(last)) r.fail();
  return r.good() ? static_cast<Enum>(n) : Enum{};
}

}  // namespace weir::detail

#endif
