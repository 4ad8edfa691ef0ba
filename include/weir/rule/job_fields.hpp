// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_JOB_FIELDS_HPP
#define WEIR_RULE_JOB_FIELDS_HPP

#include "weir/job.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace weir::rule {

/// Counts down, and stops at 0: a count that was read may have been too low.
constexpr void decrease(std::uint64_t& count) noexcept { count -= count != 0 ? 1 : 0; }

/// The fields of a queue's record by which `job_machine` decides.
struct queue_fields {
  std::optional<time_point> pointer;  ///< never later than its min vesting time (F41, F48)
  time_point snoozed_until = time_point::min();
  bool paused = false;

  // The queue's advisory lease; over when its time is.
  std::string lease_holder;
  std::uint64_t lease_fence = 0;
  time_point lease_expiry = time_point::min();

  // Of these, and of what the orders hold, R4's sum is made. `enqueued` is what came in,
  // independently of them.
  std::uint64_t enqueued = 0;
  std::uint64_t completed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t purged = 0;
  std::uint64_t deaths = 0;  ///< the number of the last dead letter

  [[nodiscard]] bool held(time_point now) const noexcept {
    return queue_held(paused, snoozed_until, now);
  }
  /// Do its pause, its snooze or its lease have to be remembered, whether or not it has jobs?
  [[nodiscard]] bool outlasts_jobs(time_point now) const noexcept {
    return held(now) || now < lease_expiry;
  }

  friend bool operator==(queue_fields const&, queue_fields const&) = default;
};

/// The fields of a job's record by which `job_machine` decides. `Holder` names who has its lease,
/// over or not, and is false while nobody has claimed it.
template <class Holder>
struct job_fields {
  job_id id{};
  /// Not ended: when it vests, or its lease ends. Completed or cancelled: until when its record is
  /// kept. Dead letters: unused.
  time_point vesting{};
  std::uint64_t death = 0;  ///< dead letters: which one of the queue's
  Holder holder{};
  std::uint64_t fence = 0;         ///< of its last lease
  time_point unclaimed_vesting{};  ///< claimed: the vesting time that the lease took the place of
  std::uint32_t attempts = 0;
  std::uint32_t max_attempts = 0;
  std::uint32_t snoozes = 0;
  std::uint8_t priority = 0;
  job_state ended = job_state::pending;  ///< how it ended; pending: it has not
  unique_strategy strategy = unique_strategy::none;
  conflict_policy on_conflict = conflict_policy::reject;
  time_point enqueued{};
  time_point deadline_from{};
  duration deadline{};  ///< from `deadline_from`; 0: none
  duration retention{};

  [[nodiscard]] bool claimed() const noexcept { return static_cast<bool>(holder); }
  [[nodiscard]] job_state state(time_point now) const noexcept {
    return is_terminal(ended) ? ended : queued_state(claimed(), vesting, now);
  }
  /// Is its record kept for its retention?
  [[nodiscard]] bool retained() const noexcept {
    return ended == job_state::completed || ended == job_state::cancelled;
  }
  /// Is its retention over? Then there is no such job, whether or not it was reaped yet.
  [[nodiscard]] bool gone(time_point now) const noexcept {
    return retained() && record_gone(vesting, now);
  }
  /// What claiming it does, if it is visible.
  [[nodiscard]] claim_decision claim_at(time_point now) const noexcept {
    return on_claim(attempts, max_attempts, job_deadline(deadline, deadline_from), now);
  }
  [[nodiscard]] std::optional<duration> deadline_in(time_point now) const noexcept {
    auto const at = job_deadline(deadline, deadline_from);
    if (!at) return std::nullopt;
    return saturating_sub(*at, now);
  }
};

/// What a reader and a consumer see alike. A record's texts are views, or strings that can be moved
/// from.
template <class Out, class Record>
void describe_common(Record& r, time_point now, Out& out) {
  out.id = r.id;
  out.kind = r.kind();
  out.payload = r.payload();
  out.priority = r.priority;
  out.max_attempts = r.max_attempts;
  out.snoozes = r.snoozes;
  out.age = saturating_sub(now, r.enqueued);
  out.deadline_in = r.deadline_in(now);
  out.strategy = r.strategy;
  out.unique_key = r.unique_key();
  out.headers = r.headers();
  out.memo = r.memo();
  out.checkpoint = r.checkpoint();
}

/// What a reader sees of a job.
template <class Record>
[[nodiscard]] job describe(Record& r, time_point now) {
  job out;
  describe_common(r, now, out);
  out.state = r.state(now);
  out.attempts = r.attempts;
  if (!is_terminal(out.state)) out.vests_in = saturating_sub(r.vesting, now);
  out.on_conflict = r.on_conflict;
  out.progress = r.progress();
  out.result = r.result();
  out.reason = r.reason();
  if (out.state == job_state::leased) {
    out.holder = r.holder_name();
    out.fence = r.fence;
  }
  return out;
}

/// What a consumer gets that claims it: `attempt` and the lease's end are what the claim is about
/// to make them.
template <class Record>
void describe_lease(Record& r, std::uint64_t fence, std::uint32_t attempt, duration expires_in,
                    time_point now, leased_job& out) {
  describe_common(r, now, out);
  out.fence = fence;
  out.expires_in = expires_in;
  out.attempt = attempt;
}

/// The same of a lease that lives.
template <class Record>
void describe_lease(Record& r, time_point now, leased_job& out) {
  describe_lease(r, r.fence, r.attempts, saturating_sub(r.vesting, now), now, out);
}

}  // namespace weir::rule

#endif
