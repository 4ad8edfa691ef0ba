// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_JOB_RECORD_HPP
#define WEIR_STORE_REDIS_JOB_RECORD_HPP

#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <boost/endian/conversion.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
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
  /// A number that names one of those up to `last`.
  template <class Enum>
  Enum one_of(Enum last) noexcept {
    auto const n = number<std::uint8_t>();
    if (n > static_cast<std::uint8_t>(last)) good_ = false;
    return good_ ? static_cast<Enum>(n) : Enum{};
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

/// What `describe` sends of a job (store/redis/job_lua.hpp has the form of its record).
struct redis_job_record {
  job_id id{};
  std::uint8_t priority = 0;
  std::uint8_t ended = 0;
  unique_strategy strategy{};
  conflict_policy policy{};
  std::uint32_t attempts = 0;
  std::uint32_t max_attempts = 0;
  std::uint32_t snoozes = 0;
  // Microseconds; the first four since 1970.
  std::int64_t vesting = 0;
  std::int64_t enqueued = 0;
  std::int64_t deadline_from = 0;
  std::int64_t now = 0;  // of the step that sent it
  std::int64_t deadline = 0;
  std::uint64_t fence = 0;
  std::string_view key;
  std::string_view holder;
  std::string_view kind;
  std::string_view payload;
  std::string_view memo;
  std::string_view result;
  std::string_view reason;

  static redis_job_record read(redis_reply& r, std::int64_t now) noexcept {
    redis_job_record out;
    out.now = now;
    out.id = r.id();
    redis_packed p{r.text()};
    out.attempts = p.number<std::uint32_t>();
    out.vesting = p.number<std::int64_t>();
    p.number<std::int64_t>();  // when it was visible before it was claimed
    out.fence = p.number<std::uint64_t>();
    auto const holder = p.number<std::uint16_t>();
    out.priority = p.number<std::uint8_t>();
    out.ended = p.number<std::uint8_t>();
    auto const extras = p.number<std::uint8_t>();
    out.max_attempts = p.number<std::uint32_t>();
    out.deadline_from = p.number<std::int64_t>();
    out.deadline = p.number<std::int64_t>();
    auto const key = p.number<std::uint16_t>();
    out.strategy = p.one_of(unique_strategy::until_expired);
    out.policy = p.one_of(conflict_policy::reschedule);
    out.snoozes = p.number<std::uint32_t>();
    out.enqueued = p.number<std::int64_t>();
    p.number<std::int64_t>();   // its retention
    p.number<std::uint64_t>();  // which death it died
    out.key = p.text(key);
    out.holder = p.text(holder);
    bool const elsewhere = (extras & 2U) != 0;
    bool const noted = (extras & 1U) != 0;
    redis_packed body{elsewhere ? r.text() : p.rest()};
    out.kind = body.text(body.number<std::uint16_t>());
    out.payload = body.rest();
    redis_packed notes{noted ? r.text() : std::string_view{}};
    if (noted) {
      auto const memo = notes.number<std::uint16_t>();
      auto const result = notes.number<std::uint32_t>();
      out.memo = notes.text(memo);
      out.result = notes.text(result);
      out.reason = notes.rest();
    }
    bool const good = p.good() && body.good() && notes.good() && extras <= 3 && out.plausible();
    if (good) return out;
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
  /// Are all times such as scripts can count with?
  [[nodiscard]] bool plausible() const noexcept {
    constexpr std::int64_t exact = std::int64_t{1} << 53;
    auto const times = {vesting, enqueued, deadline_from, deadline};
    return std::ranges::all_of(times, [](auto t) { return t >= 0 && t <= exact; }) &&
           ended <= ended_states;
  }
  static constexpr std::uint8_t ended_states = static_cast<std::uint8_t>(job_state::cancelled);
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
  to.strategy = from.strategy;
  to.unique_key = from.key;
  to.kind = from.kind;
  to.payload = from.payload;
  to.memo = from.memo;
}

inline void assign(job& to, redis_job_record const& from) {
  to.id = from.id;
  to.state = static_cast<job_state>(from.ended);
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
  to.strategy = from.strategy;
  to.on_conflict = from.policy;
  to.unique_key = from.key;
  to.kind = from.kind;
  to.payload = from.payload;
  to.memo = from.memo;
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
