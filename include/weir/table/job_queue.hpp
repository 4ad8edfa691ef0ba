// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_QUEUE_HPP
#define WEIR_TABLE_JOB_QUEUE_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/rule/bytes.hpp"
#include "weir/rule/fence.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/table/job_holders.hpp"
#include "weir/table/job_keys.hpp"
#include "weir/table/job_pointers.hpp"
#include "weir/table/job_record.hpp"
#include "weir/table/queue_jobs.hpp"
#include "weir/time.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::detail {

struct queue_name_tag;
struct jobless_tag;

/// One queue: what each command does to its jobs, and what else it has: a pause or snooze, and a
/// lease. Pointers are the shard's business (job_shard.hpp).
template <class>
class basic_memory_queue
    : public scanned_queue,
      public queue_jobs,
      public boost::intrusive::set_base_hook<boost::intrusive::tag<queue_name_tag>>,
      public boost::intrusive::list_base_hook<boost::intrusive::tag<jobless_tag>> {
 public:
  using name_hook = boost::intrusive::set_base_hook<boost::intrusive::tag<queue_name_tag>>;
  using jobless_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<jobless_tag>>;

  basic_memory_queue(std::string_view n, job_common& common)
      : scanned_queue{n},
        queue_jobs{*this, common} {}

  // Enqueueing.

  struct arrival {
    enqueued answer;
    std::optional<time_point> vests;  ///< a job of the queue vests then, since this step
    std::size_t records = 0;          ///< how many it used of what was taken from the allowance
  };

  arrival enqueue(new_job const& j, time_point now) {
    arrival out;
    if (auto* const known = records_.find(j.id)) {
      if (!gone(*known, now)) return out;
      drop(*known);
    }

    auto const [owner, other, possessor] = possessor_of(j.strategy, j.unique_key, now);
    auto const decision = rule::on_enqueue(j.strategy, j.on_conflict, possessor);
    out.answer.outcome = rule::outcome_of(decision);

    switch (decision) {
      case rule::enqueue_decision::duplicate: out.answer.other = owner; return out;
      case rule::enqueue_decision::reschedule:
        out.answer.other = owner;
        reschedule(*other, j, now);
        break;
      case rule::enqueue_decision::replace:
        out.answer.other = owner;
        out.records = add(j, now);
        end(*other, job_state::cancelled, now);
        break;
      case rule::enqueue_decision::bury:
        bury(*other, *unclaimable(*other, now), now);
        [[fallthrough]];
      case rule::enqueue_decision::add: out.records = add(j, now); break;
    }
    out.vests = saturating_add(now, j.delay);
    return out;
  }

  // Claiming.

  dequeued dequeue(command::dequeue_jobs const& c, time_point now) {
    dequeued out;
    out.held = held(now);
    auto* holder = holders_.find(c.holder);
    if (holder != nullptr) repeat(*holder, c.sequence, now, out);
    if (out.jobs.empty() && !out.held) {
      out.jobs.reserve(std::min<std::size_t>(c.limit, index_.size()));
      rule::answer_room room;
      std::uint8_t level = 0;  // what is leased cannot make an earlier level due
      while (out.jobs.size() < c.limit && out.dead_lettered < rule::burials_per_dequeue) {
        auto* const r = index_.first_visible(now, level);
        if (r == nullptr) break;
        level = r->priority;
        if (auto const reason = unclaimable(*r, now)) {
          bury(*r, *reason, now);
          holder = holders_.find(c.holder);  // that lease may have been its last
          ++out.dead_lettered;
          continue;
        }
        if (!room.take(r->text_bytes())) break;
        if (holder == nullptr) holder = &holders_.obtain(c.holder);
        auto const fence = rule::next_fence(common_.last_fence, now);
        out.jobs.push_back(describe_lease(*r, fence, r->attempts + 1, c.lease, now));
        holder->remember(c.sequence, r->id, fence);
        claim(*r, *holder, fence, c.lease, now);
      }
    }
    out.more = !out.held && index_.first_visible(now) != nullptr;
    out.next_in = next_in(now);
    return out;
  }

  /// Would a dequeue change nothing, whenever until `latest` it came? Then it would give nothing
  /// out, too.
  [[nodiscard]] bool rests(command::dequeue_jobs const& c, time_point latest) noexcept {
    auto const* const holder = c.sequence == 0 ? nullptr : holders_.find(c.holder);
    if (holder != nullptr && holder->sequence != 0) return false;  // to be repeated, or forgotten
    if (pointer != min_vesting()) return false;
    return held(latest) || index_.first_visible(latest) == nullptr;
  }

  std::optional<leased_job> obtain(job_id const& id, std::string_view holder, duration lease,
                                   time_point now) {
    auto* const r = find(id, now);
    if (r == nullptr) return std::nullopt;
    auto const state = r->state(now);
    if (state == job_state::leased) {
      if (r->holder->name != holder) return std::nullopt;
      return describe_lease(*r, r->fence, r->attempts, saturating_sub(r->vesting, now), now);
    }
    if (state != job_state::pending || held(now) || !rule::job_visible(r->vesting, now)) {
      return std::nullopt;
    }
    if (auto const reason = unclaimable(*r, now)) {
      bury(*r, *reason, now);
      return std::nullopt;
    }
    auto const fence = rule::next_fence(common_.last_fence, now);
    std::optional<leased_job> out = describe_lease(*r, fence, r->attempts + 1, lease, now);
    claim(*r, holders_.obtain(holder), fence, lease, now);
    return out;
  }

  // With a live lease.

  void extend(job_record& r, duration lease, time_point now) noexcept {
    index_.erase(r);
    r.vesting = saturating_add(now, lease);
    index_.insert(r);
  }

  started start(job_record& r, time_point now) {
    auto const* const other = holds_while_running(r.strategy) ? locks_.other(r, now) : nullptr;
    started out;
    out.outcome = rule::on_start(r.strategy, other != nullptr);
    if (out.outcome == start_outcome::blocked) {
      out.retry_after = saturating_sub(other->vesting, now);
      out.other = other->id;
      return out;
    }
    if (holds_while_running(r.strategy)) locks_.take(r);
    if (rule::start_frees_key(r.strategy)) keys_.free(common_, r.unique_key(), r.id);
    return out;
  }

  complete_outcome complete(finished_job const& f, time_point now) {
    auto* const r = find(f.id, now);
    auto const state = state_of(r, now);
    auto const outcome = rule::on_complete(state, r == nullptr ? 0 : r->fence, f.fence);
    if (outcome == complete_outcome::completed && state == job_state::leased) {
      if (!f.result.empty() && r->retention > duration::zero()) r->notes().result = f.result;
      end(*r, job_state::completed, now);
    }
    return outcome;
  }

  requeue_outcome requeue(job_record& r, duration delay, std::string_view reason, time_point now) {
    note(r, &job_notes::reason, rule::kept_reason(reason));
    auto const outcome = rule::on_failure(r.attempts, r.max_attempts);
    if (outcome == requeue_outcome::dead_lettered) {
      end(r, job_state::dead, now);
    } else {
      wait_again(r, saturating_add(now, delay), now);
    }
    return outcome;
  }

  void snooze(job_record& r, duration delay, std::string_view memo, time_point now) {
    note(r, &job_notes::memo, memo);
    wait_again(r, saturating_add(now, delay), now);
    r.attempts = rule::attempts_given_back(r.attempts);
    ++r.snoozes;
  }

  void give_back(job_record& r, time_point now) {
    wait_again(r, r.unclaimed_vesting, now);
    r.attempts = rule::attempts_given_back(r.attempts);
  }

  // Endings.

  void bury(job_record& r, std::string_view reason, time_point now) {
    note(r, &job_notes::reason, rule::kept_reason(reason));
    end(r, job_state::dead, now);
  }

  cancel_outcome cancel(job_id const& id, bool running_too, time_point now) {
    auto* const r = find(id, now);
    auto const state = state_of(r, now);
    auto const outcome = rule::on_cancel(state, running_too);
    if (outcome == cancel_outcome::cancelled && state != job_state::cancelled) {
      end(*r, job_state::cancelled, now);
    }
    return outcome;
  }

  replayed replay(job_id const& id, duration delay, time_point now) {
    auto* const r = find(id, now);
    contender by;
    if (r != nullptr) by = possessor_of(r->strategy, r->unique_key(), now);
    bool const gives_way = by.does == rule::possessor::unclaimable;
    bool const free = by.does == rule::possessor::nobody || by.id == id || gives_way;
    replayed out{rule::on_replay(state_of(r, now), free)};
    if (out.outcome == replay_outcome::conflict) out.other = by.id;
    if (out.outcome != replay_outcome::replayed) return out;
    index_.prepare(r->priority);
    if (gives_way) bury(*by.job, *unclaimable(*by.job, now), now);
    if (rule::replay_takes_key(r->strategy)) {
      keys_.hold(common_, r->unique_key(), home_, id, time_point::max());
    }
    dead_.erase(dead_.iterator_to(*r));
    r->ended = job_state::pending;
    r->attempts = 0;
    r->snoozes = 0;
    r->deadline_from = now;
    r->vesting = saturating_add(now, delay);
    index_.insert(*r);
    return out;
  }

  /// Forgets an ended job and counts it as purged.
  bool purge(job_id const& id, time_point now) noexcept {
    auto* const r = find(id, now);
    if (r == nullptr || !is_terminal(r->ended)) return false;
    if (r->ended == job_state::completed) --completed_;
    if (r->ended == job_state::cancelled) --cancelled_;
    ++purged_;
    drop(*r);
    return true;
  }

  // The queue's advisory lease; over when its time is.
  std::string lease_holder;
  std::uint64_t lease_fence = 0;
  time_point lease_expiry = time_point::min();

 private:
  /// The job in possession of an enqueue key.
  struct contender {
    job_id id{};
    job_record* job = nullptr;  ///< null: nobody has the key, or no record is left of who has
    rule::possessor does = rule::possessor::nobody;
  };

  /// The possessor of the enqueue key that a job of this strategy takes, if it takes one.
  contender possessor_of(unique_strategy strategy, std::string_view text, time_point now) noexcept {
    contender out;
    auto const* const key = holds_while_waiting(strategy) ? keys_.find(text, now) : nullptr;
    if (key == nullptr) return out;
    out.id = key->owner;
    out.job = find(key->owner, now);
    out.does = rule::possessor::ended;
    if (auto const* const r = out.job) {
      auto const claim = rule::on_claim(r->attempts, r->max_attempts, r->deadline_at(), now);
      out.does = rule::possessor_in(r->state(now), claim, r->strategy);
    }
    return out;
  }

  static std::optional<std::string_view> unclaimable(job_record const& r, time_point now) noexcept {
    switch (rule::on_claim(r.attempts, r.max_attempts, r.deadline_at(), now)) {
      case rule::claim_decision::bury_spent: return rule::reason_spent;
      case rule::claim_decision::bury_missed: return rule::reason_missed;
      case rule::claim_decision::lease: break;
    }
    return std::nullopt;
  }

  static void note(job_record& r, std::string job_notes::* what, std::string_view text) {
    if (r.rare || !text.empty()) r.notes().*what = text;
  }

  /// Answers a dequeue that was asked again with what lives of its leases; forgets the last one's
  /// if this is another.
  void repeat(job_holder& h, std::uint64_t sequence, time_point now, dequeued& out) {
    if (sequence == 0) return;
    if (rule::repeats_dequeue(h.sequence, sequence)) {
      for (auto const& g : h.latest) {
        if (auto const* const r = leased(g.id, g.fence, now)) {
          out.jobs.push_back(
              describe_lease(*r, r->fence, r->attempts, saturating_sub(r->vesting, now), now));
        }
      }
    }
    if (out.jobs.empty()) h.forget();
  }
};

using memory_queue = basic_memory_queue<void>;

}  // namespace weir::detail

#endif
