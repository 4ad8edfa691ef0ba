// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_JOB_QUEUE_HPP
#define WEIR_STORE_MEMORY_JOB_QUEUE_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/rule/fence.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/memory/job_index.hpp"
#include "weir/store/memory/job_keys.hpp"
#include "weir/store/memory/job_pointers.hpp"
#include "weir/store/memory/job_record.hpp"
#include "weir/time.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

struct queue_name_tag;
struct jobless_tag;

/// One queue: its jobs' records, and every transition that a job can make.
///
/// The transitions decide nothing: `rule/jobs.hpp` does. They keep the orders, keys, locks, leases and counters in step,
/// and allocate before they change anything, so that running out of memory leaves no half of a step behind. Pointers are
/// the shard's business (job_shard.hpp).
class memory_queue
    : public scanned_queue,
      public boost::intrusive::set_base_hook<boost::intrusive::tag<queue_name_tag>>,
      public boost::intrusive::list_base_hook<boost::intrusive::tag<jobless_tag>> {
 public:
  using name_hook = boost::intrusive::set_base_hook<boost::intrusive::tag<queue_name_tag>>;
  using jobless_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<jobless_tag>>;

  explicit memory_queue(std::string_view n) : scanned_queue{n} {}
  memory_queue(memory_queue const&) = delete;
  memory_queue& operator=(memory_queue const&) = delete;

  // -------------------------------------------------------------------------------------- reading

  /// Has it neither a record nor a key, so that only its counters and holds are left?
  [[nodiscard]] bool jobless() const noexcept { return records_.empty() && keys_.empty(); }

  /// Has it no waiting and no leased job?
  [[nodiscard]] bool empty() const noexcept { return index_.empty(); }

  [[nodiscard]] std::optional<time_point> min_vesting() const noexcept { return index_.min_vesting(); }

  [[nodiscard]] std::optional<duration> next_in(time_point now) const noexcept {
    auto const least = min_vesting();
    if (!least) return std::nullopt;
    return saturating_sub(*least, now);
  }

  /// The job's record. One whose retention is over is none, whether or not it was reaped yet.
  [[nodiscard]] job_record* find(job_id const& id, time_point now) noexcept {
    auto const it = records_.find(id);
    if (it == records_.end()) return nullptr;
    auto& r = *it->second;
    return has_retention(r) && rule::record_gone(r.vesting, now) ? nullptr : &r;
  }

  /// The job, if this fence names its live lease.
  [[nodiscard]] job_record* leased(job_id const& id, std::uint64_t fence, time_point now) noexcept {
    auto* const r = find(id, now);
    return r != nullptr && rule::has_job_lease(r->state(now), r->fence, fence) ? r : nullptr;
  }

  void peek(std::uint32_t limit, time_point now, std::vector<job>& out) const {
    index_.for_each_visible(now, [&](job_record const& r) {
      out.push_back(describe(r, now));
      return out.size() < limit;
    });
  }

  [[nodiscard]] queue_stats stats(time_point now) const noexcept {
    queue_stats s;
    s.enqueued = enqueued_;
    for (auto const& r : claimed_) s.leased += r.state(now) == job_state::leased ? 1U : 0U;
    s.pending = index_.size() - s.leased;
    s.completed = completed_;
    s.dead = dead_.size();
    s.cancelled = cancelled_;
    s.purged = purged_;
    s.paused = paused;
    s.next_in = next_in(now);
    return s;
  }

  /// Dead letters that died after number `after`; the number of the last one, 0: there are no more.
  std::uint64_t dead_letters(
      std::uint64_t after, std::uint32_t limit, time_point now, std::vector<job>& out) const {
    auto it = dead_.upper_bound(after);
    for (; it != dead_.end() && out.size() < limit; ++it) out.push_back(describe(*it, now));
    return it == dead_.end() ? 0 : std::prev(it)->death;
  }

  // -------------------------------------------------------------------------------------- enqueueing

  struct arrival {
    enqueued answer;
    std::optional<time_point> vests;  ///< a job of the queue vests then, since this step
    std::size_t records = 0;          ///< how many it used of what was taken from the allowance
  };

  arrival enqueue(new_job const& j, time_point now, job_common& common) {
    arrival out;
    if (find(j.id, now) != nullptr) return out;
    forget(j.id, common);  // a record that is gone by time, but still there

    auto const* const key =
        holds_while_waiting(j.strategy) ? keys_.find(j.unique_key, now) : nullptr;
    auto* const other = key == nullptr ? nullptr : find(key->owner, now);
    auto const possessor =
        key == nullptr ? rule::possessor::nobody : rule::possessor_in(state_of(other, now));
    auto const decision = rule::on_enqueue(j.strategy, j.on_conflict, possessor);
    out.answer.outcome = rule::outcome_of(decision);
    if (key != nullptr) out.answer.other = key->owner;

    switch (decision) {
      case rule::enqueue_decision::duplicate: return out;
      case rule::enqueue_decision::reschedule: reschedule(*other, j, now); break;
      case rule::enqueue_decision::replace:
      case rule::enqueue_decision::add: out.records = add(j, now, common); break;
    }
    if (decision == rule::enqueue_decision::replace) end(*other, job_state::cancelled, now, common);
    out.vests = saturating_add(now, j.delay);
    return out;
  }

  // -------------------------------------------------------------------------------------- claiming

  dequeued dequeue(command::dequeue_jobs const& c, time_point now, job_common& common) {
    dequeued out;
    out.held = held(now);
    auto* holder = holders_.find(c.holder);
    if (holder != nullptr) repeat(*holder, c.sequence, now, out);
    if (out.jobs.empty() && !out.held) {
      out.jobs.reserve(std::min<std::size_t>(c.limit, index_.size()));
      std::uint8_t level = 0;  // what is leased cannot make an earlier level due
      while (out.jobs.size() < c.limit && out.dead_lettered < rule::burials_per_dequeue) {
        auto* const r = index_.first_visible(now, level);
        if (r == nullptr) break;
        level = r->priority;
        if (auto const reason = unclaimable(*r, now)) {
          bury(*r, *reason, now, common);
          holder = holders_.find(c.holder);  // that lease may have been its last
          ++out.dead_lettered;
          continue;
        }
        if (holder == nullptr) holder = &holders_.obtain(c.holder);
        auto const fence = rule::next_fence(common.last_fence, now);
        out.jobs.push_back(describe_lease(*r, fence, r->attempts + 1, c.lease, now));
        holder->remember(c.sequence, r->id, fence);
        claim(*r, *holder, fence, c.lease, now, common);
      }
    }
    out.more = !out.held && index_.first_visible(now) != nullptr;
    out.next_in = next_in(now);
    return out;
  }

  std::optional<leased_job> obtain(
      job_id const& id, std::string_view holder, duration lease, time_point now, job_common& common) {
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
      bury(*r, *reason, now, common);
      return std::nullopt;
    }
    auto const fence = rule::next_fence(common.last_fence, now);
    std::optional<leased_job> out = describe_lease(*r, fence, r->attempts + 1, lease, now);
    claim(*r, holders_.obtain(holder), fence, lease, now, common);
    return out;
  }

  // -------------------------------------------------------------------------------------- with a live lease

  void extend(job_record& r, duration lease, time_point now) noexcept {
    index_.erase(r);
    r.vesting = saturating_add(now, lease);
    index_.insert(r);
  }

  started start(job_record& r, time_point now, job_common& common) {
    auto const* const other = holds_while_running(r.strategy) ? locks_.other(r, now) : nullptr;
    started out;
    out.outcome = rule::on_start(r.strategy, other != nullptr);
    if (out.outcome == start_outcome::blocked) {
      out.retry_after = saturating_sub(other->vesting, now);
      return out;
    }
    if (holds_while_running(r.strategy)) locks_.take(r);
    if (rule::start_frees_key(r.strategy)) keys_.free(r.unique_key(), r.id, common);
    return out;
  }

  complete_outcome complete(finished_job const& f, time_point now, job_common& common) {
    auto* const r = find(f.id, now);
    auto const state = state_of(r, now);
    auto const outcome = rule::on_complete(state, r == nullptr ? 0 : r->fence, f.fence);
    if (outcome == complete_outcome::completed && state == job_state::leased) {
      if (!f.result.empty() && r->retention > duration::zero()) r->notes().result = f.result;
      end(*r, job_state::completed, now, common);
    }
    return outcome;
  }

  requeue_outcome requeue(
      job_record& r, duration delay, std::string_view reason, time_point now, job_common& common) {
    note(r, &job_notes::reason, rule::kept_reason(reason));
    auto const outcome = rule::on_failure(r.attempts, r.max_attempts);
    if (outcome == requeue_outcome::dead_lettered) {
      end(r, job_state::dead, now, common);
    } else {
      wait_again(r, saturating_add(now, delay), now, common);
    }
    return outcome;
  }

  void snooze(job_record& r, duration delay, std::string_view memo, time_point now, job_common& common) {
    note(r, &job_notes::memo, memo);
    wait_again(r, saturating_add(now, delay), now, common);
    r.attempts = rule::attempts_given_back(r.attempts);
    ++r.snoozes;
  }

  void give_back(job_record& r, time_point now, job_common& common) {
    wait_again(r, r.unclaimed_vesting, now, common);
    r.attempts = rule::attempts_given_back(r.attempts);
  }

  // -------------------------------------------------------------------------------------- endings

  void bury(job_record& r, std::string_view reason, time_point now, job_common& common) {
    note(r, &job_notes::reason, rule::kept_reason(reason));
    end(r, job_state::dead, now, common);
  }

  cancel_outcome cancel(job_id const& id, bool running_too, time_point now, job_common& common) {
    auto* const r = find(id, now);
    auto const state = state_of(r, now);
    auto const outcome = rule::on_cancel(state, running_too);
    if (outcome == cancel_outcome::cancelled && state != job_state::cancelled) {
      end(*r, job_state::cancelled, now, common);
    }
    return outcome;
  }

  replay_outcome replay(job_id const& id, duration delay, time_point now, job_common& common) {
    auto* const r = find(id, now);
    auto const* const key = r != nullptr && holds_while_waiting(r->strategy)
                                ? keys_.find(r->unique_key(), now)
                                : nullptr;
    auto const outcome = rule::on_replay(state_of(r, now), key == nullptr || key->owner == id);
    if (outcome != replay_outcome::replayed) return outcome;
    index_.prepare(r->priority);
    if (rule::replay_takes_key(r->strategy)) {
      keys_.hold(r->unique_key(), *this, id, time_point::max(), common);
    }
    dead_.erase(dead_.iterator_to(*r));
    r->ended = job_state::pending;
    r->attempts = 0;
    r->snoozes = 0;
    r->deadline_from = now;
    r->vesting = saturating_add(now, delay);
    index_.insert(*r);
    return outcome;
  }

  /// Forgets an ended job and counts it as purged.
  bool purge(job_id const& id, time_point now, job_common& common) noexcept {
    auto* const r = find(id, now);
    if (r == nullptr || !is_terminal(r->ended)) return false;
    if (r->ended == job_state::completed) --completed_;
    if (r->ended == job_state::cancelled) --cancelled_;
    ++purged_;
    drop(*r, common);
    return true;
  }

  /// Forgets a completed or cancelled job whose retention is over; its count stays.
  void reap(job_record& r, job_common& common) noexcept { drop(r, common); }
  void reap(enqueue_key& k, job_common& common) noexcept { keys_.erase(k, common); }

  /// Gives up memory that an empty queue does not need. Requires `jobless`.
  void shrink() noexcept {
    records_ = decltype(records_)();
    holders_.shrink();
    index_.shrink();
    keys_.shrink();
    locks_.shrink();
  }

  // The queue's advisory lease; over when its time is.
  std::string lease_holder;
  std::uint64_t lease_fence = 0;
  time_point lease_expiry = time_point::min();

 private:
  static bool has_retention(job_record const& r) noexcept {
    return r.ended == job_state::completed || r.ended == job_state::cancelled;
  }

  static std::optional<job_state> state_of(job_record const* r, time_point now) noexcept {
    if (r == nullptr) return std::nullopt;
    return r->state(now);
  }

  static std::optional<std::string_view> unclaimable(job_record const& r, time_point now) noexcept {
    switch (rule::on_claim(r.attempts, r.max_attempts, r.deadline_at(), now)) {
      case rule::claim_decision::bury_spent: return rule::reason_spent;
      case rule::claim_decision::bury_missed: return rule::reason_missed;
      case rule::claim_decision::lease: break;
    }
    return std::nullopt;
  }

  static void note(job_record& r, std::string job_notes::*what, std::string_view text) {
    if (r.rare || !text.empty()) r.notes().*what = text;
  }

  std::size_t add(new_job const& j, time_point now, job_common& common) {
    index_.prepare(j.priority);
    auto made = make_record(j, now, *this);
    auto& r = *made;
    auto const it = records_.emplace(j.id, std::move(made)).first;
    if (holds_while_waiting(j.strategy)) {
      try {
        keys_.hold(r.unique_key(), *this, r.id, rule::key_expiry(j.strategy, j.unique_ttl, now), common);
      } catch (...) {
        records_.erase(it);
        throw;
      }
    }
    index_.insert(r);
    ++enqueued_;
    return 1 + (j.strategy == unique_strategy::until_expired ? 1U : 0U);
  }

  void reschedule(job_record& r, new_job const& j, time_point now) {
    index_.prepare(j.priority);
    index_.erase(r);
    unclaim(r);
    r.vesting = saturating_add(now, j.delay);
    r.priority = j.priority;
    index_.insert(r);
  }

  void claim(job_record& r, job_holder& holder, std::uint64_t fence, duration lease, time_point now,
             job_common& common) noexcept {
    index_.erase(r);
    holders_.add_lease(holder);
    unclaim(r);  // from a holder that let its lease end
    common.last_fence = fence;
    r.fence = fence;
    r.holder = &holder;
    claimed_.push_back(r);
    ++r.attempts;
    r.unclaimed_vesting = r.vesting;
    r.vesting = saturating_add(now, lease);
    index_.insert(r);
  }

  /// Ends the lease, over or not, and with it the run lock. The job is in no place of the index that depends on it.
  void unclaim(job_record& r) noexcept {
    if (r.holder == nullptr) return;
    if (holds_while_running(r.strategy)) locks_.free(r);
    claimed_.erase(claimed_.iterator_to(r));
    holders_.remove_lease(*std::exchange(r.holder, nullptr));
  }

  /// Ends the lease; the job waits, with the enqueue key that its start gave up, if that is free.
  void wait_again(job_record& r, time_point vesting, time_point now, job_common& common) {
    if (rule::start_frees_key(r.strategy) && keys_.find(r.unique_key(), now) == nullptr) {
      keys_.hold(r.unique_key(), *this, r.id, time_point::max(), common);
    }
    index_.erase(r);
    unclaim(r);
    r.vesting = vesting;
    index_.insert(r);
  }

  /// Ends the job. Its record may be gone after this.
  void end(job_record& r, job_state how, time_point now, job_common& common) noexcept {
    index_.erase(r);
    unclaim(r);
    if (rule::end_frees_key(r.strategy)) keys_.free(r.unique_key(), r.id, common);
    r.ended = how;
    if (how == job_state::dead) {
      r.death = ++deaths_;
      dead_.insert(dead_.end(), r);
      return;
    }
    ++(how == job_state::completed ? completed_ : cancelled_);
    r.vesting = rule::kept_until(now, r.retention);
    if (rule::record_gone(r.vesting, now)) {
      erase_record(r, common);
    } else {
      common.kept.insert(common.kept.end(), r);
    }
  }

  void forget(job_id const& id, job_common& common) noexcept {
    auto const it = records_.find(id);
    if (it != records_.end()) drop(*it->second, common);
  }

  /// Forgets the record of an ended job.
  void drop(job_record& r, job_common& common) noexcept {
    if (r.ended == job_state::dead) {
      dead_.erase(dead_.iterator_to(r));
    } else {
      common.kept.erase(common.kept.iterator_to(r));
    }
    erase_record(r, common);
  }

  /// Requires that it is in no order any more.
  void erase_record(job_record& r, job_common& common) noexcept {
    records_.erase(records_.find(r.id));
    common.allowance.give(1);
    tighten();
  }

  /// What many jobs needed, few must not keep: the sum of what queues once had is not bounded.
  void tighten() noexcept {
    constexpr std::size_t small = 1024;
    constexpr std::size_t sparse = 8;
    if (records_.bucket_count() < small || records_.size() * sparse > records_.bucket_count()) return;
    try {
      records_.rehash(records_.size() * 2);
    } catch (std::bad_alloc const&) {  // then later
    }
  }

  /// Answers a dequeue that was asked again with what lives of its leases; forgets the last one's if this is another.
  void repeat(job_holder& h, std::uint64_t sequence, time_point now, dequeued& out) {
    if (sequence == 0) return;
    if (rule::repeats_dequeue(h.sequence, sequence)) {
      for (auto const& g : h.latest) {
        if (auto const* const r = leased(g.id, g.fence, now)) {
          out.jobs.push_back(describe_lease(*r, r->fence, r->attempts, saturating_sub(r->vesting, now), now));
        }
      }
    }
    if (out.jobs.empty()) h.forget();
  }

  boost::unordered_flat_map<job_id, std::unique_ptr<job_record>> records_;
  job_index index_;
  dead_jobs dead_;
  claimed_jobs claimed_;
  enqueue_keys keys_;
  run_locks locks_;
  job_holders holders_;
  std::uint64_t deaths_ = 0;

  // Of these, and of what the orders hold, R4's sum is made. `enqueued` is what came in, independently of them.
  std::uint64_t enqueued_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t cancelled_ = 0;
  std::uint64_t purged_ = 0;
};

}  // namespace weir::detail

#endif
