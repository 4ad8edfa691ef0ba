// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_JOB_RECORD_HPP
#define WEIR_STORE_REDIS_JOB_RECORD_HPP

#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <boost/endian/arithmetic.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

// A job as the server keeps it travels as it is: so a script has nothing to do but to pass it on.
namespace weir::detail {

/// Takes numbers off the beginning of some bytes, as scripts pack them: the highest byte first.
/// Where there are not enough, it gives zeros from then on, and `good` says so in the end.
class redis_packed {
 public:
  explicit redis_packed(std::string_view bytes) noexcept : rest_{bytes} {}

  template <class T>
  T number() noexcept {
    auto const bytes = text(sizeof(T));
    if (!good_) return T{};
    return boost::endian::endian_load<T, sizeof(T), boost::endian::order::big>(
        reinterpret_cast<unsigned char const*>(bytes.data()));
  }
  std::string_view text(std::size_t size) noexcept {
    if (rest_.size() < size) good_ = false;
    if (!good_) return {};
    auto const out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }
  std::string_view rest() noexcept { return std::exchange(rest_, {}); }

  [[nodiscard]] bool good() const noexcept { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

/// Numbers of a job's record, as its server keeps them: scripts pack and read them by this
/// (`weir.redis_record` there). Its unique key, its holder and, unless that is elsewhere, its body
/// follow. What a claim changes comes first. Times are microseconds since 1970.
struct redis_record {
  boost::endian::big_uint32_t attempts;
  boost::endian::big_int64_t vesting;
  boost::endian::big_int64_t unclaimed;  // when it was visible before it was claimed
  boost::endian::big_uint64_t fence;
  boost::endian::big_uint16_t holder_size;
  boost::endian::big_uint8_t priority;
  boost::endian::big_uint8_t ended;   // how; 0: it has not
  boost::endian::big_uint8_t extras;  // 1: it has notes, 2: its body is elsewhere
  boost::endian::big_uint32_t max_attempts;
  boost::endian::big_int64_t deadline_from;
  boost::endian::big_int64_t deadline;  // from then on; 0: none
  boost::endian::big_uint16_t key_size;
  boost::endian::big_uint8_t strategy;
  boost::endian::big_uint8_t policy;
  boost::endian::big_uint32_t snoozes;
  boost::endian::big_int64_t enqueued;
  boost::endian::big_int64_t retention;
  boost::endian::big_uint64_t death;  // which death it died
};

/// A size of which this is a part says that another size follows it.
inline constexpr std::uint32_t redis_more = 1 << 15;
static_assert(limits::key_size < redis_more && limits::memo_size < redis_more);

/// What `describe` sends of a job (store/redis/script/shared/jobs.lua).
struct redis_job_record : redis_record {
  job_id id{};
  std::int64_t now = 0;  // of the step that sent it
  std::string_view key;
  std::string_view holder;
  std::string_view kind;
  std::string_view payload;
  std::string_view headers;
  std::string_view memo;
  std::string_view progress;
  std::string_view checkpoint;
  std::string_view result;
  std::string_view reason;

  static redis_job_record read(redis_reply& r, std::int64_t now) noexcept {
    redis_job_record out{};
    out.now = now;
    out.id = r.id();
    redis_packed p{r.text()};
    redis_record& numbers = out;
    auto const fixed = p.text(sizeof(numbers));
    if (p.good()) std::memcpy(&numbers, fixed.data(), sizeof(numbers));
    out.key = p.text(numbers.key_size);
    out.holder = p.text(numbers.holder_size);
    bool const elsewhere = (out.extras & 2U) != 0;
    bool const noted = (out.extras & 1U) != 0;
    redis_packed body{elsewhere ? r.text() : p.rest()};
    auto const kind = body.number<std::uint16_t>();
    std::size_t const headers = kind >= redis_more ? body.number<std::uint16_t>() : 0U;
    out.kind = body.text(kind % redis_more);
    out.headers = body.text(headers);
    out.payload = body.rest();
    redis_packed notes{noted ? r.text() : std::string_view{}};
    if (noted) {
      auto const memo = notes.number<std::uint16_t>();
      auto const result = notes.number<std::uint32_t>();
      bool const more = memo >= redis_more;
      std::size_t const progress = more ? notes.number<std::uint16_t>() : 0U;
      std::size_t const checkpoint = more ? notes.number<std::uint32_t>() : 0U;
      out.memo = notes.text(memo % redis_more);
      out.result = notes.text(result);
      out.progress = notes.text(progress);
      out.checkpoint = notes.text(checkpoint);
      out.reason = notes.rest();
    }
    if (p.good() && body.good() && notes.good() && out.plausible()) return out;
    r.fail();
    return {};  // no times that nobody can count with
  }

  /// From the step to then.
  [[nodiscard]] duration until(std::int64_t then) const noexcept {
    constexpr auto most = std::chrono::duration_cast<std::chrono::microseconds>(duration::max());
    return std::chrono::microseconds{std::clamp(then - now, -most.count(), most.count())};
  }
  [[nodiscard]] std::optional<duration> deadline_in() const noexcept {
    if (deadline == 0) return std::nullopt;
    return until(deadline_from + deadline);
  }

 private:
  /// Are all times such as scripts can count with, and all else what a script writes?
  [[nodiscard]] bool plausible() const noexcept {
    auto const times = {vesting.value(), enqueued.value(), deadline_from.value(), deadline.value(),
                        now};
    return std::ranges::all_of(times, [](auto t) { return t >= 0 && t <= redis_exact; }) &&
           ended <= static_cast<std::uint8_t>(job_state::cancelled) && extras <= 3 &&
           strategy <= static_cast<std::uint8_t>(unique_strategy::until_expired) &&
           policy <= static_cast<std::uint8_t>(conflict_policy::reschedule);
  }
};

inline void assign(leased_job& to, redis_job_record const& from) {
  to.id = from.id;
  to.fence = from.fence;
  to.expires_in = from.until(from.vesting);
  to.priority = from.priority;
  to.attempt = from.attempts;
  to.max_attempts = from.max_attempts;
  to.snoozes = from.snoozes;
  to.age = -from.until(from.enqueued);
  to.deadline_in = from.deadline_in();
  to.strategy = static_cast<unique_strategy>(from.strategy.value());
  to.unique_key = from.key;
  to.kind = from.kind;
  to.payload = from.payload;
  to.headers = from.headers;
  to.memo = from.memo;
  to.checkpoint = from.checkpoint;
}

inline void assign(job& to, redis_job_record const& from) {
  to.id = from.id;
  to.state = static_cast<job_state>(from.ended.value());
  bool const waits = to.state == job_state::pending;
  bool const leased = waits && !from.holder.empty() && from.vesting > from.now;
  if (leased) to.state = job_state::leased;
  to.priority = from.priority;
  to.attempts = from.attempts;
  to.max_attempts = from.max_attempts;
  to.snoozes = from.snoozes;
  to.vests_in = waits ? from.until(from.vesting) : duration::zero();
  to.age = -from.until(from.enqueued);
  to.deadline_in = from.deadline_in();
  to.strategy = static_cast<unique_strategy>(from.strategy.value());
  to.on_conflict = static_cast<conflict_policy>(from.policy.value());
  to.unique_key = from.key;
  to.kind = from.kind;
  to.payload = from.payload;
  to.headers = from.headers;
  to.memo = from.memo;
  to.progress = from.progress;
  to.checkpoint = from.checkpoint;
  to.result = from.result;
  to.reason = from.reason;
  if (leased) {
    to.holder = from.holder;
    to.fence = from.fence;
  }
}

/// Of a reply: the time, how many jobs, and what `describe` says of them.
template <class Job>
std::vector<Job> read_jobs(redis_reply& r) {
  auto const now = r.time();
  auto const n = r.number<std::size_t>();
  auto const pieces = r.array();
  if (n > pieces || n > limits::batch) r.fail();
  std::vector<Job> out;
  if (r.good()) out.reserve(n);
  while (out.size() != n && r.good()) {
    assign(out.emplace_back(), redis_job_record::read(r, now));
  }
  return out;
}

/// The same, where there is one at most, and nothing else is in the reply.
template <class Job>
std::optional<Job> read_optional_job(redis_reply& r) {
  r.array(3);
  auto all = read_jobs<Job>(r);
  if (all.size() > 1) r.fail();
  if (all.empty() || !r.good()) return std::nullopt;
  return std::move(all.front());
}

}  // namespace weir::detail

#endif
