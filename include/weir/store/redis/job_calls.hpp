// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_JOB_CALLS_HPP
#define WEIR_STORE_REDIS_JOB_CALLS_HPP

#include "weir/job.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/unique.hpp"

#include <boost/endian/conversion.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// How jobs travel between a script and here: see store/redis/job_lua.hpp.
namespace weir::detail {

/// A call on one queue: its keys, perhaps with one more, and the arguments that all of them have.
template <class C>
redis_call queue_call(redis_script const& script, redis_names const& names, C const& c,
                      redis_now now, std::string const& other = {}) {
  redis_call out{script};
  auto const shard = names.shard_of(c.queue);
  for (char const* const kind : {"q", "i", "j", "k", "r", "d", "e", "c"}) {
    out.key(names, shard, kind, c.queue);
  }
  for (char const* const kind : {"fence", "due", "names"}) out.key(names, shard, kind);
  if (!other.empty()) out.key(other);
  out.arg(now).arg(c.queue).arg(names.channel());
  return out;
}

/// As bytes of a string.
[[nodiscard]] inline std::string_view redis_id(job_id const& id) noexcept {
  return {reinterpret_cast<char const*>(id.data()), id.size()};
}

/// Adds what never changes of a job, as scripts pass it on: the size of its kind, its kind, its
/// payload.
inline void add_redis_body(redis_call& to, std::string_view kind, std::string_view payload) {
  std::array<unsigned char, 2> size{};
  boost::endian::store_big_u16(size.data(), static_cast<std::uint16_t>(kind.size()));
  to.whole(std::string_view{reinterpret_cast<char const*>(size.data()), size.size()}, kind,
           payload);
}

template <class Job>
void read_body(redis_reply& r, Job& out) {
  auto const bytes = r.text();
  constexpr std::size_t header = 2;
  std::size_t size = 0;
  if (bytes.size() >= header) {
    size = boost::endian::load_big_u16(reinterpret_cast<unsigned char const*>(bytes.data()));
  }
  if (bytes.size() < header + size) return r.fail();
  out.kind = bytes.substr(header, size);
  out.payload = bytes.substr(header + size);
}

/// A job's memo, result and reason; most jobs have none.
template <class Job>
void read_notes(redis_reply& r, Job& out) {
  auto const bytes = r.text();
  if (bytes.empty()) return;
  constexpr std::size_t header = 6;
  if (bytes.size() < header) return r.fail();
  auto const* const at = reinterpret_cast<unsigned char const*>(bytes.data());
  std::size_t const memo = boost::endian::load_big_u16(at);
  std::size_t const result = boost::endian::load_big_u32(at + 2);
  if (bytes.size() < header + memo + result) return r.fail();
  out.memo = bytes.substr(header, memo);
  if constexpr (requires { out.result; }) {
    out.result = bytes.substr(header + memo, result);
    out.reason = bytes.substr(header + memo + result);
  }
}

template <class Enum>
Enum read_enum(redis_reply& r, Enum last) {
  auto const n = r.number<std::uint8_t>();
  if (n > static_cast<std::uint8_t>(last)) r.fail();
  return r.good() ? static_cast<Enum>(n) : Enum{};
}

inline leased_job read_lease(redis_reply& r) {
  leased_job out;
  r.array(13);
  out.id = r.id();
  out.fence = r.number<std::uint64_t>();
  out.expires_in = r.micros();
  out.priority = r.number<std::uint8_t>();
  out.attempt = r.number<std::uint32_t>();
  out.max_attempts = r.number<std::uint32_t>();
  out.snoozes = r.number<std::uint32_t>();
  out.age = r.micros();
  out.deadline_in = r.optional_micros();
  out.strategy = read_enum(r, unique_strategy::until_expired);
  out.unique_key = r.text();
  read_body(r, out);
  read_notes(r, out);
  return out;
}

inline job read_job(redis_reply& r) {
  job out;
  r.array(16);
  out.id = r.id();
  out.state = read_enum(r, job_state::cancelled);
  out.priority = r.number<std::uint8_t>();
  out.attempts = r.number<std::uint32_t>();
  out.max_attempts = r.number<std::uint32_t>();
  out.snoozes = r.number<std::uint32_t>();
  out.vests_in = r.micros();
  out.age = r.micros();
  out.deadline_in = r.optional_micros();
  out.strategy = read_enum(r, unique_strategy::until_expired);
  out.on_conflict = read_enum(r, conflict_policy::reschedule);
  out.unique_key = r.text();
  read_body(r, out);
  read_notes(r, out);
  out.holder = r.text();
  out.fence = r.number<std::uint64_t>();
  return out;
}

}  // namespace weir::detail

#endif
