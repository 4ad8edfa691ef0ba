// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_MODEL_JOBS_HPP
#define WEIR_TESTING_MODEL_JOBS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/rule/fence.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/rule/locks.hpp"
#include "weir/rule/validate.hpp"
#include "weir/testing/model/queue.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing {

/// What a job store has to answer: the decisions of the rule on plain lists. Pointers are not kept:
/// what a scan has to find is asked of the jobs themselves (`must_be_scanned`). Times must not run
/// backwards.
class job_model {
 public:
  template <class C>
  result<typename C::result> execute(C const& c, time_point now) {
    if (auto const ec = rule::validate(c)) return ec;
    now_ = now;
    auto& q = queues_[std::string{c.queue}];
    q.expire(now);
    return apply(c, q);
  }

  [[nodiscard]] std::map<std::string, model_queue>& queues() noexcept { return queues_; }

  /// Must a scan at `now` list this queue?
  [[nodiscard]] bool must_be_scanned(std::string const& name, time_point now) {
    auto& q = queues_[name];
    return !q.held(now) && !q.visible(now).empty();
  }

  /// When a scan has to list this queue if nothing else happens; empty: never.
  [[nodiscard]] std::optional<time_point> scanned_from(std::string const& name) {
    auto const& q = queues_[name];
    auto const least = q.min_vesting();
    if (!least || q.paused) return std::nullopt;
    return rule::scanned_from(*least, q.snoozed_until);
  }

 private:
  template <class T>
  using answer = result<T>;

  std::uint64_t next_fence() { return last_fence_ = rule::next_fence(last_fence_, now_); }

  answer<command::enqueue_jobs::result> apply(command::enqueue_jobs const& c, model_queue& q) {
    command::enqueue_jobs::result out;
    for (auto const& j : c.jobs) out.push_back(add(j, q));
    return out;
  }

  struct contender {
    job_id id{};
    model_job* job = nullptr;
    rule::possessor does = rule::possessor::nobody;
  };

  /// The possessor of the enqueue key that a job of this strategy takes, if it takes one.
  contender possessor_of(unique_strategy strategy, std::string const& key, model_queue& q) const {
    contender out;
    auto const* const k = holds_while_waiting(strategy) ? q.possession(key) : nullptr;
    if (k == nullptr) return out;
    out = {k->owner, q.find(k->owner), rule::possessor::ended};
    if (auto const* const j = out.job) {
      auto const claim = rule::on_claim(j->attempts, j->max_attempts, j->deadline_at(), now_);
      out.does = rule::possessor_in(j->state(now_), claim, j->strategy);
    }
    return out;
  }

  enqueued add(new_job const& n, model_queue& q) {
    enqueued out;
    if (q.find(n.id) != nullptr) return out;
    std::string const unique_key{n.unique_key};
    auto const [owner, other, possessor] = possessor_of(n.strategy, unique_key, q);
    auto const decision = rule::on_enqueue(n.strategy, n.on_conflict, possessor);
    out.outcome = rule::outcome_of(decision);
    if (out.outcome != enqueue_outcome::enqueued) out.other = owner;
    auto const vesting = saturating_add(now_, n.delay);
    if (decision == rule::enqueue_decision::duplicate) return out;
    if (decision == rule::enqueue_decision::reschedule) {
      other->claimed = other->runs = false;
      other->rank.vesting = vesting;
      other->rank.priority = n.priority;
      return out;
    }
    if (decision == rule::enqueue_decision::bury) q.bury_unclaimable(*other, now_);
    if (decision == rule::enqueue_decision::replace) {
      q.end(*other, job_state::cancelled, now_);
      q.expire(now_);
    }
    if (holds_while_waiting(n.strategy)) {
      q.keys[unique_key] = {n.id, rule::key_expiry(n.strategy, n.unique_ttl, now_)};
    }
    ++q.enqueued;
    model_job j;
    j.id = n.id;
    j.kind = n.kind;
    j.payload = n.payload;
    j.unique_key = unique_key;
    j.rank = {n.priority, vesting, n.id};
    j.enqueued = j.deadline_from = now_;
    j.deadline = n.deadline;
    j.retention = n.retention;
    j.max_attempts = n.max_attempts;
    j.strategy = n.strategy;
    j.on_conflict = n.on_conflict;
    q.jobs.push_back(std::move(j));
    return out;
  }

  answer<std::vector<job>> apply(command::peek_jobs const& c, model_queue& q) {
    std::vector<job> out;
    for (auto const* j : q.visible(now_)) {
      if (out.size() < c.limit) out.push_back(j->seen(now_));
    }
    return out;
  }

  answer<dequeued> apply(command::dequeue_jobs const& c, model_queue& q) {
    dequeued out;
    out.held = q.held(now_);
    auto& last = q.last_claims[std::string{c.holder}];
    if (rule::repeats_dequeue(last.sequence, c.sequence)) {
      for (auto const& [id, fence] : last.leases) {
        if (auto const* const j = q.leased(id, fence, now_)) out.jobs.push_back(j->lease(now_));
      }
    }
    if (out.jobs.empty() && c.sequence != 0) last = {c.sequence, {}};
    if (out.jobs.empty() && !out.held) {
      for (auto* j : q.visible(now_)) {
        if (out.jobs.size() == c.limit || out.dead_lettered == rule::burials_per_dequeue) break;
        if (q.bury_unclaimable(*j, now_)) {
          ++out.dead_lettered;
          continue;
        }
        q.claim(*j, c.holder, c.lease, next_fence(), now_);
        if (c.sequence != 0) last.leases.emplace_back(j->id, j->fence);
        out.jobs.push_back(j->lease(now_));
      }
    }
    out.more = !out.held && !q.visible(now_).empty();
    out.next_in = q.next_in(now_);
    return out;
  }

  answer<std::optional<leased_job>> apply(command::obtain_lease const& c, model_queue& q) {
    std::optional<leased_job> out;
    auto* const j = q.find(c.id);
    if (j == nullptr) return out;
    if (j->state(now_) == job_state::leased) {
      if (j->holder == c.holder) out = j->lease(now_);
      return out;
    }
    if (q.held(now_) || !j->visible(now_) || q.bury_unclaimable(*j, now_)) return out;
    q.claim(*j, c.holder, c.lease, next_fence(), now_);
    out = j->lease(now_);
    return out;
  }

  answer<lease_renewal> apply(command::extend_lease const& c, model_queue& q) {
    auto* const j = q.leased(c.id, c.fence, now_);
    if (j == nullptr) return errc::lease_lost;
    j->rank.vesting = saturating_add(now_, c.lease);
    return lease_renewal{c.lease};
  }

  answer<started> apply(command::start_job const& c, model_queue& q) {
    auto* const j = q.leased(c.id, c.fence, now_);
    if (j == nullptr) return errc::lease_lost;
    auto const other = std::find_if(q.jobs.begin(), q.jobs.end(), [&](model_job const& o) {
      return o.id != j->id && o.unique_key == j->unique_key && o.runs &&
             o.state(now_) == job_state::leased;
    });
    started out;
    out.outcome = rule::on_start(j->strategy, other != q.jobs.end());
    if (out.outcome == start_outcome::blocked) {
      out.retry_after = saturating_sub(other->rank.vesting, now_);
      out.other = other->id;
      return out;
    }
    j->runs = holds_while_running(j->strategy);
    auto const* const k = q.possession(j->unique_key);
    if (rule::start_frees_key(j->strategy) && k != nullptr && k->owner == j->id)
      q.keys.erase(j->unique_key);
    return out;
  }

  answer<command::complete_jobs::result> apply(command::complete_jobs const& c, model_queue& q) {
    command::complete_jobs::result out;
    for (auto const& f : c.jobs) {
      auto* const j = q.find(f.id);
      auto const state = j == nullptr ? std::nullopt : std::optional{j->state(now_)};
      out.push_back(rule::on_complete(state, j == nullptr ? 0 : j->fence, f.fence));
      if (out.back() != complete_outcome::completed || state != job_state::leased) continue;
      j->result = f.result;
      q.end(*j, job_state::completed, now_);
      q.expire(now_);
    }
    return out;
  }

  answer<requeue_outcome> apply(command::requeue_job const& c, model_queue& q) {
    auto* const j = q.leased(c.id, c.fence, now_);
    if (j == nullptr) return errc::lease_lost;
    auto const outcome = rule::on_failure(j->attempts, j->max_attempts);
    if (outcome == requeue_outcome::dead_lettered) {
      q.bury(*j, c.reason, now_);
    } else {
      j->reason = rule::kept_reason(c.reason);
      q.wait_again(*j, saturating_add(now_, c.delay));
    }
    return outcome;
  }

  answer<hint> apply(command::snooze_job const& c, model_queue& q) {
    auto* const j = q.leased(c.id, c.fence, now_);
    if (j == nullptr) return errc::lease_lost;
    j->memo = c.memo;
    j->attempts = rule::attempts_given_back(j->attempts);
    ++j->snoozes;
    q.wait_again(*j, saturating_add(now_, c.delay));
    return hint{};
  }

  answer<hint> apply(command::return_job const& c, model_queue& q) {
    auto* const j = q.leased(c.id, c.fence, now_);
    if (j == nullptr) return errc::lease_lost;
    j->attempts = rule::attempts_given_back(j->attempts);
    q.wait_again(*j, j->unclaimed);
    return hint{};
  }

  answer<hint> apply(command::bury_job const& c, model_queue& q) {
    auto* const j = q.leased(c.id, c.fence, now_);
    if (j == nullptr) return errc::lease_lost;
    q.bury(*j, c.reason, now_);
    return hint{};
  }

  answer<cancel_outcome> apply(command::cancel_job const& c, model_queue& q) {
    auto* const j = q.find(c.id);
    auto const state = j == nullptr ? std::nullopt : std::optional{j->state(now_)};
    auto const outcome = rule::on_cancel(state, c.running);
    if (outcome == cancel_outcome::cancelled && state != job_state::cancelled) {
      q.end(*j, job_state::cancelled, now_);
    }
    return outcome;
  }

  answer<std::optional<job>> apply(command::find_job const& c, model_queue& q) {
    auto const* const j = q.find(c.id);
    if (j == nullptr) return std::optional<job>{};
    return std::optional{j->seen(now_)};
  }

  answer<replayed> apply(command::replay_dead_letter const& c, model_queue& q) {
    auto* const j = q.find(c.id);
    auto const state = j == nullptr ? std::nullopt : std::optional{j->state(now_)};
    contender by;
    if (j != nullptr) by = possessor_of(j->strategy, j->unique_key, q);
    bool const gives_way = by.does == rule::possessor::unclaimable;
    bool const free = by.does == rule::possessor::nobody || by.id == c.id || gives_way;
    replayed out{rule::on_replay(state, free)};
    if (out.outcome == replay_outcome::conflict) out.other = by.id;
    if (out.outcome != replay_outcome::replayed) return out;
    if (gives_way) q.bury_unclaimable(*by.job, now_);
    if (rule::replay_takes_key(j->strategy)) q.keys[j->unique_key] = {j->id};
    j->ended = job_state::pending;
    j->attempts = 0;
    j->snoozes = 0;
    j->deadline_from = now_;
    j->rank.vesting = saturating_add(now_, c.delay);
    return out;
  }

  answer<bool> apply(command::purge_job const& c, model_queue& q) {
    auto const* const j = q.find(c.id);
    if (j == nullptr || j->waits_or_runs()) return false;
    if (j->ended == job_state::completed) --q.completed;
    if (j->ended == job_state::cancelled) --q.cancelled;
    ++q.purged;
    std::erase_if(q.jobs, [&](model_job const& o) { return o.id == c.id; });
    return true;
  }

  answer<job_page> apply(command::list_dead_letters const&, model_queue& q) {
    std::vector<model_job const*> dead;
    for (auto const& j : q.jobs) {
      if (j.ended == job_state::dead) dead.push_back(&j);
    }
    std::sort(dead.begin(), dead.end(),
              [](auto const* a, auto const* b) { return a->death < b->death; });
    job_page out;
    for (auto const* j : dead) out.jobs.push_back(j->seen(now_));
    return out;
  }

  answer<queue_stats> apply(command::read_queue_stats const&, model_queue& q) {
    queue_stats out;
    for (auto const& j : q.jobs) {
      auto const state = j.state(now_);
      out.pending += state == job_state::pending ? 1U : 0U;
      out.leased += state == job_state::leased ? 1U : 0U;
      out.dead += state == job_state::dead ? 1U : 0U;
    }
    out.enqueued = q.enqueued;
    out.completed = q.completed;
    out.cancelled = q.cancelled;
    out.purged = q.purged;
    out.paused = q.paused;
    out.next_in = q.next_in(now_);
    return out;
  }

  answer<std::optional<duration>> apply(command::min_vesting_time const&, model_queue& q) {
    return q.next_in(now_);
  }
  answer<std::optional<duration>> apply(command::update_queue_pointer const&, model_queue& q) {
    return q.next_in(now_);
  }

  answer<hint> apply(command::snooze_queue const& c, model_queue& q) {
    q.snoozed_until =
        c.delay == duration::zero() ? time_point::min() : saturating_add(now_, c.delay);
    return hint{};
  }
  answer<hint> apply(command::pause_queue const&, model_queue& q) {
    q.paused = true;
    return hint{};
  }
  answer<hint> apply(command::resume_queue const&, model_queue& q) {
    q.paused = false;
    q.snoozed_until = time_point::min();
    return hint{};
  }

  answer<lock_grant> apply(command::obtain_queue_lease const& c, model_queue& q) {
    command::acquire_lock const taken{c.queue, c.holder, c.lease};
    return rule::apply(q.lease, taken, now_, last_fence_);
  }
  answer<lease_release> apply(command::release_queue_lease const& c, model_queue& q) {
    command::release_lock const released{c.queue, c.holder, c.fence};
    return rule::apply(q.lease, released, now_);
  }

  time_point now_{};
  std::uint64_t last_fence_ = 0;
  std::map<std::string, model_queue> queues_;
};

}  // namespace weir::testing

#endif
