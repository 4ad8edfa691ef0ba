// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_QUEUE_JOBS_HPP
#define WEIR_TABLE_QUEUE_JOBS_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/rule/bytes.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/table/job_holders.hpp"
#include "weir/table/job_index.hpp"
#include "weir/table/job_keys.hpp"
#include "weir/table/job_record.hpp"
#include "weir/table/job_records.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace weir::detail {

/// The jobs of one queue, and the moves that they make.
///
/// A move keeps the orders, keys, locks, leases and counters in step, and allocates before it
/// changes anything, so that running out of memory leaves no half of it behind. Which move a
/// command makes is decided by `rule/jobs.hpp` and brought about by `memory_queue`.
template <class>
class basic_queue_jobs {
 public:
  basic_queue_jobs(memory_queue& home, job_common& common) noexcept
      : home_{home},
        common_{common} {}
  basic_queue_jobs(basic_queue_jobs const&) = delete;
  basic_queue_jobs& operator=(basic_queue_jobs const&) = delete;

  /// Has it neither a record nor a key, so that only its counters and holds are left?
  [[nodiscard]] bool jobless() const noexcept { return records_.empty() && keys_.empty(); }

  /// Has it no waiting and no leased job?
  [[nodiscard]] bool empty() const noexcept { return index_.empty(); }

  [[nodiscard]] std::optional<time_point> min_vesting() const noexcept {
    return index_.min_vesting();
  }

  [[nodiscard]] std::optional<duration> next_in(time_point now) const noexcept {
    auto const least = min_vesting();
    if (!least) return std::nullopt;
    return saturating_sub(*least, now);
  }

  /// The job's record. One whose retention is over is none, whether or not it was reaped yet.
  [[nodiscard]] job_record* find(job_id const& id, time_point now) noexcept {
    auto* const r = records_.find(id);
    return r == nullptr || gone(*r, now) ? nullptr : r;
  }

  /// The job, if this fence names its live lease.
  [[nodiscard]] job_record* leased(job_id const& id, std::uint64_t fence, time_point now) noexcept {
    auto* const r = find(id, now);
    return r != nullptr && rule::has_job_lease(r->state(now), r->fence, fence) ? r : nullptr;
  }

  void peek(std::uint32_t limit, time_point now, std::vector<job>& out) const {
    rule::answer_room room;
    index_.for_each_visible(now, [&](job_record const& r) {
      if (!room.take(r.text_bytes())) return false;
      out.push_back(describe(r, now));
      return out.size() < limit;
    });
  }

  /// All but whether it is paused.
  [[nodiscard]] queue_stats stats(time_point now) const noexcept {
    queue_stats s;
    s.enqueued = enqueued_;
    for (auto const& r : claimed_) s.leased += r.state(now) == job_state::leased ? 1U : 0U;
    s.pending = index_.size() - s.leased;
    s.completed = completed_;
    s.dead = dead_.size();
    s.cancelled = cancelled_;
    s.purged = purged_;
    s.next_in = next_in(now);
    return s;
  }

  /// Dead letters that died after number `after`; the number of the last one, 0: there are no more.
  std::uint64_t dead_letters(std::uint64_t after, std::uint32_t limit, time_point now,
                             std::vector<job>& out) const {
    auto it = dead_.upper_bound(after);
    rule::answer_room room;
    for (; it != dead_.end() && out.size() < limit && room.take(it->text_bytes()); ++it) {
      out.push_back(describe(*it, now));
    }
    return it == dead_.end() ? 0 : std::prev(it)->death;
  }

  /// Forgets a completed or cancelled job whose retention is over; its count stays.
  void reap(job_record& r) noexcept { drop(r); }
  void reap(enqueue_key& k) noexcept { keys_.erase(common_, k); }

  /// Gives up memory that an empty queue does not need. Requires `jobless`.
  void shrink() noexcept {
    holders_.shrink();
    index_.shrink();
    keys_.shrink();
    locks_.shrink();
  }

 protected:
  friend class job_image;

  ~basic_queue_jobs() = default;

  static bool gone(job_record const& r, time_point now) noexcept {
    bool const retained = r.ended == job_state::completed || r.ended == job_state::cancelled;
    return retained && rule::record_gone(r.vesting, now);
  }

  static std::optional<job_state> state_of(job_record const* r, time_point now) noexcept {
    if (r == nullptr) return std::nullopt;
    return r->state(now);
  }

  std::size_t add(new_job const& j, time_point now) {
    index_.prepare(j.priority);
    auto made = make_record(j, now, home_);
    auto& r = *made;
    if (holds_while_waiting(j.strategy)) {
      keys_.hold(common_, r.unique_key(), home_, r.id,
                 rule::key_expiry(j.strategy, j.unique_ttl, now));
    }
    records_.add(std::move(made));
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

  void claim(job_record& r, job_holder& holder, std::uint64_t fence, duration lease,
             time_point now) noexcept {
    index_.erase(r);
    holders_.add_lease(holder);
    unclaim(r);  // from a holder that let its lease end
    common_.last_fence = fence;
    r.fence = fence;
    r.holder = &holder;
    claimed_.push_back(r);
    ++r.attempts;
    r.unclaimed_vesting = r.vesting;
    r.vesting = saturating_add(now, lease);
    index_.insert(r);
  }

  /// Ends the lease, over or not, and with it the run lock. The job is in no place of the index
  /// that depends on it.
  void unclaim(job_record& r) noexcept {
    if (r.holder == nullptr) return;
    if (holds_while_running(r.strategy)) locks_.free(r);
    claimed_.erase(claimed_.iterator_to(r));
    auto& holder = *std::exchange(r.holder, nullptr);
    holders_.remove_lease(holder, [&](job_holder::grant const& g) {
      auto const* const still = records_.find(g.id);
      return still != nullptr && still->holder == &holder && still->fence == g.fence;
    });
  }

  /// Ends the lease; the job waits, with the enqueue key that its start gave up, if that is free.
  void wait_again(job_record& r, time_point vesting, time_point now) {
    if (rule::start_frees_key(r.strategy) && keys_.find(r.unique_key(), now) == nullptr) {
      keys_.hold(common_, r.unique_key(), home_, r.id, time_point::max());
    }
    index_.erase(r);
    unclaim(r);
    r.vesting = vesting;
    index_.insert(r);
  }

  /// Ends the job. Its record may be gone after this.
  void end(job_record& r, job_state how, time_point now) noexcept {
    index_.erase(r);
    unclaim(r);
    if (rule::end_frees_key(r.strategy)) keys_.free(common_, r.unique_key(), r.id);
    r.ended = how;
    if (how == job_state::dead) {
      r.death = ++deaths_;
      dead_.insert(dead_.end(), r);
      return;
    }
    ++(how == job_state::completed ? completed_ : cancelled_);
    r.vesting = rule::kept_until(now, r.retention);
    if (rule::record_gone(r.vesting, now)) {
      erase_record(r);
    } else {
      common_.kept.insert(common_.kept.end(), r);
    }
  }

  /// Forgets the record of an ended job.
  void drop(job_record& r) noexcept {
    if (r.ended == job_state::dead) {
      dead_.erase(dead_.iterator_to(r));
    } else {
      common_.kept.erase(common_.kept.iterator_to(r));
    }
    erase_record(r);
  }

  /// Requires that it is in no order any more.
  void erase_record(job_record& r) noexcept {
    records_.remove(r);
    common_.allowance.give(1);
  }

  memory_queue& home_;
  job_common& common_;

  job_records records_;
  job_index index_;
  dead_jobs dead_;
  claimed_jobs claimed_;
  enqueue_keys keys_;
  run_locks locks_;
  job_holders holders_;
  std::uint64_t deaths_ = 0;

  // Of these, and of what the orders hold, R4's sum is made. `enqueued` is what came in,
  // independently of them.
  std::uint64_t enqueued_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t cancelled_ = 0;
  std::uint64_t purged_ = 0;
};

using queue_jobs = basic_queue_jobs<void>;

}  // namespace weir::detail

#endif
