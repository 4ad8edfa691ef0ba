// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_JOB_MOVES_HPP
#define WEIR_RULE_JOB_MOVES_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/rule/fence.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace weir::rule {

/// The moves that a job makes, over the rows of a store (job_machine.hpp). A move keeps the orders,
/// keys, run locks, leases and counters in step.
///
/// Whatever can fail comes before the first change, so that a store without transactions is left
/// with no half of a move.
template <class Rows>
class job_moves {
 public:
  using queue = typename Rows::queue;    ///< derived from `queue_fields`
  using record = typename Rows::record;  ///< derived from `job_fields`
  using row = typename Rows::row;        ///< points to a record, or to none
  using claimant = typename Rows::claimant;

  template <class... Args>
  explicit job_moves(Args&&... args) : rows_{std::forward<Args>(args)...} {}

 protected:
  ~job_moves() = default;

  /// Records that a new job needs: its own, and one for a key that may outlive it.
  static constexpr std::size_t needs(new_job const& j) noexcept {
    return std::size_t{1} + (j.strategy == unique_strategy::until_expired ? 1U : 0U);
  }

  static std::optional<job_state> state_of(row const& r, time_point now) noexcept {
    if (!r) return std::nullopt;
    return r->state(now);
  }

  static std::optional<duration> until(std::optional<time_point> t, time_point now) noexcept {
    if (!t) return std::nullopt;
    return saturating_sub(*t, now);
  }

  /// Why a claim would bury the job. Empty: it would lease it.
  static std::optional<std::string_view> unclaimable(record const& r, time_point now) noexcept {
    switch (r.claim_at(now)) {
      case claim_decision::bury_spent: return reason_spent;
      case claim_decision::bury_missed: return reason_missed;
      case claim_decision::lease: break;
    }
    return std::nullopt;
  }

  /// The job in possession of an enqueue key.
  struct contender {
    job_id id{};
    row job{};  ///< none: nobody has the key, or no record is left of who has
    possessor does = possessor::nobody;
  };

  /// The possessor of the enqueue key that a job of this strategy takes, if it takes one.
  contender possessor_of(queue& q, unique_strategy strategy, std::string_view key, time_point now) {
    contender out;
    if (!holds_while_waiting(strategy) || !rows_.possessor(q, key, now, out.id, out.job)) {
      return {};
    }
    out.does = possessor::ended;
    auto& r = out.job;
    if (r && !possesses(r->strategy, r->unique_key(), key)) r = {};
    if (r) out.does = possessor_in(r->state(now), r->claim_at(now), r->strategy);
    return out;
  }

  /// `room` is what the queue may grow by.
  template <class Room>
  enqueued enqueue(queue& q, new_job const& j, time_point now, Room& room) {
    enqueued out;
    if (holds_while_waiting(j.strategy) && rows_.known(q, j.id, now)) return out;
    auto by = possessor_of(q, j.strategy, j.unique_key, now);
    auto const decision = on_enqueue(j.strategy, j.on_conflict, by.does);
    out.outcome = outcome_of(decision);
    if (out.outcome != enqueue_outcome::enqueued) out.other = by.id;
    auto const vesting = saturating_add(now, j.delay);
    switch (decision) {
      case enqueue_decision::duplicate: return out;
      case enqueue_decision::reschedule: reschedule(q, *by.job, j.priority, vesting); break;
      case enqueue_decision::bury:
        bury(q, *by.job, *unclaimable(*by.job, now), now);
        [[fallthrough]];
      case enqueue_decision::replace:
      case enqueue_decision::add:
        if (!rows_.add(q, j, now, room)) return out;
        room.use(needs(j));
        ++q.enqueued;
        if (decision == enqueue_decision::replace) end(q, *by.job, job_state::cancelled, now);
    }
    rows_.no_later_than(q, vesting, now);
    return out;
  }

  void reschedule(queue& q, record& r, std::uint8_t priority, time_point vesting) {
    rows_.prepare(q, priority);
    rows_.lift(q, r);
    unclaim(q, r);
    r.vesting = vesting;
    r.priority = priority;
    rows_.put(q, r);
  }

  /// Leases a visible job under this fence.
  void claim(queue& q, record& r, claimant& by, std::uint64_t sequence, std::uint64_t fence,
             duration lease, time_point now) {
    rows_.prepare_claim(q, by, sequence, r.id, fence);
    rows_.lift(q, r);
    if (r.claimed()) free_run(q, r);  // by a holder that let its lease end
    rows_.hand_to(q, r, by, sequence);
    rows_.last_fence() = r.fence = fence;
    ++r.attempts;
    r.unclaimed_vesting = r.vesting;
    r.vesting = saturating_add(now, lease);
    rows_.put(q, r);
  }

  /// Ends the lease, over or not, and with it the run lock. The job is in no order.
  void unclaim(queue& q, record& r) {
    if (!r.claimed()) return;
    free_run(q, r);
    rows_.let_go(q, r);
  }

  void free_run(queue& q, record const& r) {
    if (holds_while_running(r.strategy)) rows_.free_run(q, r);
  }

  /// Takes again the enqueue key that the start of the job gave up, if that is free; otherwise the
  /// job goes without.
  void retake_key(queue& q, record const& r, time_point now) {
    if (start_frees_key(r.strategy) && !rows_.key_taken(q, r, now)) rows_.hold_key(q, r);
  }

  /// Ends the lease; the job waits.
  void wait_again(queue& q, record& r, time_point vesting, time_point now) {
    rows_.lift(q, r);
    unclaim(q, r);
    r.vesting = vesting;
    rows_.put(q, r);
    rows_.no_later_than(q, vesting, now);
  }

  void bury(queue& q, record& r, std::string_view reason, time_point now) {
    r.note_reason(kept_reason(reason));
    end(q, r, job_state::dead, now);
  }

  /// Ends the job. Its record may be gone after this.
  void end(queue& q, record& r, job_state how, time_point now) {
    rows_.lift(q, r);
    unclaim(q, r);
    if (end_frees_key(r.strategy)) rows_.free_key(q, r);
    r.ended = how;
    if (how == job_state::dead) {
      r.death = ++q.deaths;
    } else {
      ++(how == job_state::completed ? q.completed : q.cancelled);
      r.vesting = kept_until(now, r.retention);
      if (record_gone(r.vesting, now)) return rows_.erase(q, r);
    }
    rows_.retire(q, r);
  }

  Rows rows_;
};

}  // namespace weir::rule

#endif
