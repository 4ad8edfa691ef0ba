// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_JOBS_HPP
#define WEIR_RULE_JOBS_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

/// @file
/// The decisions about a job: every store makes them, in its own language, and is tested against
/// these.
///
/// A job that has not ended has a vesting time, by which its queue finds it. A claim keeps that
/// time aside and puts the end of the lease in its place, so that a job whose holder died is
/// visible again by itself (F28-F31): nobody has to rescue it, and "leased" is not a state that
/// anybody sets but what the time says. Ended jobs are in no order but their own: dead letters by
/// their time of death, the others by the end of their retention.

namespace weir::rule {

// ---------------------------------------------------------------------------------- order and time

/// Where a job stands in its queue: the lowest rank goes first.
struct job_rank {
  std::uint8_t priority = 0;  ///< first
  time_point vesting{};       ///< then the earlier
  job_id id{};                ///< then the lower

  /// The same place: the same job.
  friend bool operator==(job_rank const&, job_rank const&) = default;
  /// Which goes first?
  friend std::strong_ordering operator<=>(job_rank const& a, job_rank const& b) noexcept {
    if (auto const c = a.priority <=> b.priority; c != 0) return c;
    if (auto const c = a.vesting <=> b.vesting; c != 0) return c;
    return a.id == b.id  ? std::strong_ordering::equal
           : a.id < b.id ? std::strong_ordering::less
                         : std::strong_ordering::greater;
  }
};

/// Has its time come?
[[nodiscard]] constexpr bool job_visible(time_point vesting, time_point now) noexcept {
  return vesting <= now;
}

/// The state of a job that has not ended. `claimed`: some lease was given and nobody has ended it;
/// over or not, the vesting time is when it ends.
[[nodiscard]] constexpr job_state queued_state(bool claimed, time_point vesting,
                                               time_point now) noexcept {
  return claimed && !job_visible(vesting, now) ? job_state::leased : job_state::pending;
}

/// Does this fence name the live lease of a job? Commands with another one change nothing, and are
/// `lease_lost` (R5, F35).
[[nodiscard]] constexpr bool has_job_lease(job_state state, std::uint64_t fence,
                                           std::uint64_t asked) noexcept {
  return state == job_state::leased && fence == asked;
}

// ---------------------------------------------------------------------------------------- attempts

/// The most jobs that one dequeue ends. It answers `more` where it stopped for that.
inline constexpr std::uint32_t burials_per_dequeue = 100;

/// The number of stale pointers after which a store may stop deleting. A caller whose answer is
/// this number asks again.
inline constexpr std::uint32_t pointers_per_step = 100;

/// The reason of a dead letter whose last holder neither completed nor failed it.
inline constexpr std::string_view reason_spent =
    "its attempts are spent: the last holder let its lease end";
/// The reason of a dead letter that nobody claimed in time.
inline constexpr std::string_view reason_missed = "its deadline was missed";

/// The decision about a visible job that somebody claims.
enum class claim_decision : std::uint8_t {
  lease,       ///< an attempt is counted, now, so that a crash counts too (F36)
  bury_spent,  ///< dead letter with `reason_spent`: the last attempt's holder neither completed nor
               ///< failed it
  bury_missed,  ///< dead letter with `reason_missed`
};

/// Decides what a claim does to a visible job.
[[nodiscard]] constexpr claim_decision on_claim(std::uint32_t attempts, std::uint32_t max_attempts,
                                                std::optional<time_point> deadline,
                                                time_point now) noexcept {
  if (attempts >= max_attempts) return claim_decision::bury_spent;
  if (deadline && *deadline < now) return claim_decision::bury_missed;
  return claim_decision::lease;
}

/// Decides what a failed attempt does to its job.
[[nodiscard]] constexpr requeue_outcome on_failure(std::uint32_t attempts,
                                                   std::uint32_t max_attempts) noexcept {
  return attempts >= max_attempts ? requeue_outcome::dead_lettered : requeue_outcome::requeued;
}

/// The attempts of a job that was snoozed or returned: the claim does not count (F33).
[[nodiscard]] constexpr std::uint32_t attempts_given_back(std::uint32_t attempts) noexcept {
  return attempts == 0 ? 0 : attempts - 1;
}

/// Is this the dequeue that was answered last? Then the answer is what still lives of its leases
/// (F54).
[[nodiscard]] constexpr bool repeats_dequeue(std::uint64_t last, std::uint64_t asked) noexcept {
  return asked != 0 && last == asked;
}

/// When a job must be claimed by; enqueueing and replaying count it from `now`.
[[nodiscard]] constexpr std::optional<time_point> job_deadline(duration deadline,
                                                               time_point now) noexcept {
  if (deadline == duration::zero()) return std::nullopt;
  return saturating_add(now, deadline);
}

/// As much of a reason as is kept, not cut within a UTF-8 character.
[[nodiscard]] constexpr std::string_view kept_reason(std::string_view reason) noexcept {
  if (reason.size() <= limits::reason_size) return reason;
  auto n = limits::reason_size;
  constexpr std::size_t longest_character = 4;
  auto const continues = [&](std::size_t i) {
    return (static_cast<unsigned char>(reason[i]) & 0xC0U) == 0x80U;
  };
  while (n > limits::reason_size - longest_character && continues(n)) --n;
  return reason.substr(0, continues(n) ? limits::reason_size : n);
}

// ----------------------------------------------------------------------------------------- endings

/// When the record of a completed or cancelled job goes. Its count stays. A dead letter stays until
/// replay or purge.
[[nodiscard]] constexpr time_point kept_until(time_point ended, duration retention) noexcept {
  return saturating_add(ended, retention);
}
/// Is it gone?
[[nodiscard]] constexpr bool record_gone(time_point kept_until, time_point now) noexcept {
  return kept_until <= now;
}

/// The answer to completing a job under the fence `asked`. `state`: empty if there is no record.
[[nodiscard]] constexpr complete_outcome on_complete(std::optional<job_state> state,
                                                     std::uint64_t fence,
                                                     std::uint64_t asked) noexcept {
  bool const its_own = asked != 0 && fence == asked;
  return its_own && (state == job_state::leased || state == job_state::completed)
             ? complete_outcome::completed
             : complete_outcome::lease_lost;
}

/// The answer to cancelling a job in this state; empty: there is no record. `running_too`: a lease
/// does not protect it.
[[nodiscard]] constexpr cancel_outcome on_cancel(std::optional<job_state> state,
                                                 bool running_too) noexcept {
  if (!state) return cancel_outcome::not_found;
  switch (*state) {
    case job_state::pending:
    case job_state::cancelled: return cancel_outcome::cancelled;
    case job_state::leased:
      return running_too ? cancel_outcome::cancelled : cancel_outcome::running;
    default: return cancel_outcome::ended;
  }
}

/// `key_free`: nobody else has the job's unique key, or only one that is `possessor::unclaimable`
/// and is then buried, or its strategy holds none while it waits. A replayed job has no attempts
/// and no snoozes spent, and its deadline counts from the replay (F40).
[[nodiscard]] constexpr replay_outcome on_replay(std::optional<job_state> state,
                                                 bool key_free) noexcept {
  if (state != job_state::dead) return replay_outcome::not_found;
  return key_free ? replay_outcome::replayed : replay_outcome::conflict;
}

// ------------------------------------------------------------------------------------- unique keys
//
// A queue has two kinds of them. The *enqueue key* is taken by a newcomer and held by its job
// (`holds_while_waiting`); the *run lock* is taken by `start_job` and held by that lease
// (`holds_while_running`). Both change in the same step as the job does, so that neither outlives
// its job nor is lost while it is merely requeued (F14-F17).

/// The job in possession of an enqueue key. `ended` is only met where the key is held
/// until_expired.
enum class possessor : std::uint8_t {
  nobody,       ///< the key is free
  waiting,      ///< it is pending
  running,      ///< it is leased
  unclaimable,  ///< it is pending, and the next claim will bury it: its end frees the key
  ended,        ///< it is over, or as good as that, and the key is not free yet
};

/// Is the job that a key names the one that took it? A key held until_expired may outlive the
/// record of its job; the id may be another job's then.
[[nodiscard]] constexpr bool possesses(unique_strategy s, std::string_view unique_key,
                                       std::string_view key) noexcept {
  return holds_while_waiting(s) && unique_key == key;
}

/// Does the end of its job, of whichever kind, free the enqueue key?
[[nodiscard]] constexpr bool end_frees_key(unique_strategy s) noexcept {
  return holds_while_waiting(s) && s != unique_strategy::until_expired;
}

/// The state of the possessor of a key. `state` is empty if its record is gone: it has ended.
/// `claim`: what a claim would do to it now, whether or not its queue is held. A job that no claim
/// can lease any more does not keep its key until somebody comes to claim it: in a queue that is
/// paused nobody does (F14).
[[nodiscard]] constexpr possessor possessor_in(std::optional<job_state> state, claim_decision claim,
                                               unique_strategy possessors) noexcept {
  if (state == job_state::leased) return possessor::running;
  if (state != job_state::pending) return possessor::ended;
  if (claim == claim_decision::lease) return possessor::waiting;
  return end_frees_key(possessors) ? possessor::unclaimable : possessor::ended;
}

/// The decision about a newcomer.
enum class enqueue_decision : std::uint8_t {
  add,        ///< the newcomer is added and holds the key
  duplicate,  ///< nothing changes; the policy says how the caller is told
  replace,    ///< the possessor ends as cancelled, the newcomer is added and holds the key
  bury,       ///< the possessor, which is unclaimable, ends as a dead letter with the reason that a
              ///< claim would give it; the newcomer is added and holds the key
  reschedule,  ///< the possessor takes the newcomer's vesting time and priority; the newcomer is
               ///< not added
};

/// The decision for a job that the queue does not have yet. Only a possessor that waits gives way,
/// and under every policy one that is unclaimable.
[[nodiscard]] constexpr enqueue_decision on_enqueue(unique_strategy newcomer,
                                                    conflict_policy policy, possessor p) noexcept {
  if (!holds_while_waiting(newcomer) || p == possessor::nobody) return enqueue_decision::add;
  if (p == possessor::unclaimable) return enqueue_decision::bury;
  if (p == possessor::waiting && policy == conflict_policy::replace)
    return enqueue_decision::replace;
  if (p == possessor::waiting && policy == conflict_policy::reschedule) {
    return enqueue_decision::reschedule;
  }
  return enqueue_decision::duplicate;
}

/// The outcome that the caller gets.
[[nodiscard]] constexpr enqueue_outcome outcome_of(enqueue_decision d) noexcept {
  switch (d) {
    case enqueue_decision::add:
    case enqueue_decision::bury: return enqueue_outcome::enqueued;
    case enqueue_decision::duplicate: return enqueue_outcome::duplicate;
    case enqueue_decision::replace: return enqueue_outcome::replaced;
    case enqueue_decision::reschedule: return enqueue_outcome::rescheduled;
  }
  return enqueue_outcome::duplicate;
}

/// When an enqueue key is free again by time alone: only until_expired, and then whatever happens
/// to the job.
[[nodiscard]] constexpr time_point key_expiry(unique_strategy s, duration unique_ttl,
                                              time_point enqueued) noexcept {
  return s == unique_strategy::until_expired ? saturating_add(enqueued, unique_ttl)
                                             : time_point::max();
}

/// Does the start of its handler free the enqueue key? If so, requeueing, snoozing and returning
/// the job take it back, unless a newcomer has it meanwhile: then the job waits without.
[[nodiscard]] constexpr bool start_frees_key(unique_strategy s) noexcept {
  return s == unique_strategy::until_executing || s == unique_strategy::until_and_while_executing;
}

/// Does a replayed dead letter take its enqueue key again? Not until_expired: its time counts from
/// the enqueue.
[[nodiscard]] constexpr bool replay_takes_key(unique_strategy s) noexcept {
  return end_frees_key(s);
}

/// May the handler start? `other_runs`: another job has the run lock, its lease lives, and it was
/// started under it. The end of that lease, by command or by time, is the end of the lock (F16).
[[nodiscard]] constexpr start_outcome on_start(unique_strategy s, bool other_runs) noexcept {
  return holds_while_running(s) && other_runs ? start_outcome::blocked : start_outcome::started;
}

// ---------------------------------------------------------------------------------------- pointers

/// A queue's pointer after a job vests at `vesting`: it only gets earlier, so no stale value can
/// pass a job by (F48).
[[nodiscard]] constexpr time_point pointer_with(std::optional<time_point> pointer,
                                                time_point vesting) noexcept {
  return pointer ? std::min(*pointer, vesting) : vesting;
}

/// When a scan finds the queue: not before its snooze ends.
[[nodiscard]] constexpr time_point scanned_from(time_point pointer,
                                                time_point snoozed_until) noexcept {
  return std::max(pointer, snoozed_until);
}

/// Where a scan begins: the instant between the longest due pointer and now that is `entropy` /
/// 2^64 of the way (F39).
[[nodiscard]] constexpr time_point scan_start(time_point longest_due, time_point now,
                                              std::uint64_t entropy) noexcept {
  if (now <= longest_due) return longest_due;
  auto const way = static_cast<std::uint64_t>(saturating_sub(now, longest_due).count());
  // The upper half of the product: with both factors halved into words, its parts fit.
  constexpr unsigned word = 32;
  constexpr std::uint64_t low = 0xffffffffU;
  auto const middle = (way & low) * (entropy >> word) + (((way & low) * (entropy & low)) >> word);
  auto const other = (way >> word) * (entropy & low) + (middle & low);
  auto const part = (way >> word) * (entropy >> word) + (middle >> word) + (other >> word);
  return longest_due + duration{static_cast<duration::rep>(part)};
}

/// Does a paused or snoozed queue give nothing out?
[[nodiscard]] constexpr bool queue_held(bool paused, time_point snoozed_until,
                                        time_point now) noexcept {
  return paused || now < snoozed_until;
}

/// May this pointer be collected? Only where the very step that deletes it sees no waiting or
/// leased job (F41).
[[nodiscard]] constexpr bool pointer_stale(time_point pointer, bool queue_empty, duration grace,
                                           time_point now) noexcept {
  return queue_empty && saturating_add(pointer, grace) < now;
}

}  // namespace weir::rule

#endif
