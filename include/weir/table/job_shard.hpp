// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_SHARD_HPP
#define WEIR_TABLE_JOB_SHARD_HPP

#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/rule/bytes.hpp"
#include "weir/rule/fence.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/table/job_budget.hpp"
#include "weir/table/job_pointers.hpp"
#include "weir/table/job_queue.hpp"
#include "weir/table/queue_registry.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace weir::detail {

/// The jobs of one shard. Executes every command, for one thread at a time. The fence is the
/// shard's and never forgotten.
template <class>
class basic_job_shard {
 public:
  explicit basic_job_shard(job_allowance allowance, std::size_t remembered = remembered_queues)
      : common_{.allowance = allowance},
        queues_{remembered} {}
  basic_job_shard(basic_job_shard const&) = delete;
  basic_job_shard& operator=(basic_job_shard const&) = delete;
  ~basic_job_shard() {  // nothing may be in an order when it is destroyed
    pointers_.clear();
    common_.kept.clear();
    common_.expiring.clear();
  }

  /// Has some queue become due, or the first one due earlier, since this was asked last?
  [[nodiscard]] bool take_event() noexcept { return pointers_.take_event(); }
  [[nodiscard]] bool any_due(time_point now) const noexcept { return pointers_.any_due(now); }

  // What changes nothing, and so need not be done: the answer at `now`, if it is the same, but for
  // how long things take, until `latest`. Empty: it has to be done.

  [[nodiscard]] std::optional<dequeued> rests(command::dequeue_jobs const& c, time_point now,
                                              time_point latest) {
    dequeued out;
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return out;
    if (!q->rests(c, latest) || q->held(now) != q->held(latest)) return std::nullopt;
    out.held = q->held(now);
    out.next_in = q->next_in(now);
    return out;
  }

  [[nodiscard]] std::optional<std::optional<duration>> rests(command::update_queue_pointer const& c,
                                                             time_point now, time_point) {
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return std::optional<duration>{};
    if (q->pointer != q->min_vesting()) return std::nullopt;
    return q->next_in(now);
  }

  [[nodiscard]] std::optional<std::uint32_t> rests(command::gc_stale_pointers const& c, time_point,
                                                   time_point latest) {
    for (auto it = pointers_.begin(); it != pointers_.end(); ++it) {
      auto& q = static_cast<memory_queue&>(*it);
      if (!rule::pointer_stale(q.due, true, c.grace, latest)) break;
      if (q.empty()) return std::nullopt;
    }
    return 0U;
  }

  /// Is there anything that the next step will forget, because its time is over?
  [[nodiscard]] bool forgets(time_point now) const noexcept {
    auto const& kept = common_.kept;
    auto const& expiring = common_.expiring;
    return (!kept.empty() && rule::record_gone(kept.begin()->vesting, now)) ||
           (!expiring.empty() && expiring.begin()->expiry <= now);
  }

  /// How many of these jobs the queue has no record of.
  [[nodiscard]] std::size_t unknown(command::enqueue_jobs const& c, time_point now) {
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return c.jobs.size();
    return static_cast<std::size_t>(std::ranges::count_if(
        c.jobs, [&](new_job const& j) { return q->find(j.id, now) == nullptr; }));
  }

  /// A caller says what time it is, instead of the store's clock: what is live then is not tidied
  /// by steps at other times.
  void told(time_point t) noexcept { told_ = t; }

  // Jobs.

  result<command::enqueue_jobs::result> apply(command::enqueue_jobs const& c, time_point now) {
    tidy(now, c.jobs.size());
    auto* q = queues_.find(c.queue);
    loan room{common_.allowance};
    if (!borrow_room(q, c.jobs, now, room)) return errc::store_full;
    if (q == nullptr) q = &queues_.make(c.queue, common_);
    settling const at_end{*this, *q};
    command::enqueue_jobs::result out;
    out.reserve(c.jobs.size());
    for (auto const& j : c.jobs) {
      auto const arrival = q->enqueue(j, now);
      room.left -= arrival.records;
      if (arrival.vests) pointers_.no_later_than(*q, *arrival.vests, now);
      out.push_back(arrival.answer);
    }
    return out;
  }

  result<std::vector<job>> apply(command::peek_jobs const& c, time_point now) {
    std::vector<job> out;
    if (auto const* const q = queues_.find(c.queue)) q->peek(c.limit, now, out);
    return out;
  }

  result<dequeued> apply(command::dequeue_jobs const& c, time_point now) {
    tidy(now, c.limit);
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return dequeued{};
    settling const at_end{*this, *q};
    // Whatever the dequeue throws, the pointer is then earlier than it need be.
    auto out = q->dequeue(c, now);
    pointers_.set(*q, q->min_vesting(), now);
    return out;
  }

  result<std::optional<leased_job>> apply(command::obtain_lease const& c, time_point now) {
    tidy(now, 1);
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return std::optional<leased_job>{};
    settling const at_end{*this, *q};
    return q->obtain(c.id, c.holder, c.lease, now);
  }

  result<lease_renewal> apply(command::extend_lease const& c, time_point now) {
    auto const at = leased(c, now);
    if (!at) return errc::lease_lost;
    at.queue->extend(*at.job, c.lease, now);
    pointers_.no_later_than(*at.queue, at.job->vesting, now);
    return lease_renewal{c.lease};
  }

  result<started> apply(command::start_job const& c, time_point now) {
    auto const at = leased(c, now);
    if (!at) return errc::lease_lost;
    return at.queue->start(*at.job, now);
  }

  result<command::complete_jobs::result> apply(command::complete_jobs const& c, time_point now) {
    tidy(now, c.jobs.size());
    auto* const q = queues_.find(c.queue);
    command::complete_jobs::result out;
    out.resize(c.jobs.size(), complete_outcome::lease_lost);
    if (q == nullptr) return out;
    settling const at_end{*this, *q};
    std::size_t i = 0;
    for (auto const& f : c.jobs) out[i++] = q->complete(f, now);
    return out;
  }

  result<requeue_outcome> apply(command::requeue_job const& c, time_point now) {
    auto const at = leased(c, now);
    if (!at) return errc::lease_lost;
    auto const outcome = at.queue->requeue(*at.job, c.delay, c.reason, now);
    if (outcome == requeue_outcome::requeued)
      pointers_.no_later_than(*at.queue, at.job->vesting, now);
    return outcome;
  }

  result<hint> apply(command::snooze_job const& c, time_point now) {
    auto const at = leased(c, now);
    if (!at) return errc::lease_lost;
    at.queue->snooze(*at.job, c.delay, c.memo, now);
    pointers_.no_later_than(*at.queue, at.job->vesting, now);
    return hint{};
  }

  result<hint> apply(command::return_job const& c, time_point now) {
    auto const at = leased(c, now);
    if (!at) return errc::lease_lost;
    at.queue->give_back(*at.job, now);
    pointers_.no_later_than(*at.queue, at.job->vesting, now);
    return hint{};
  }

  result<hint> apply(command::bury_job const& c, time_point now) {
    auto const at = leased(c, now);
    if (!at) return errc::lease_lost;
    at.queue->bury(*at.job, c.reason, now);
    return hint{};
  }

  result<cancel_outcome> apply(command::cancel_job const& c, time_point now) {
    tidy(now, 1);
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return cancel_outcome::not_found;
    settling const at_end{*this, *q};
    return q->cancel(c.id, c.running, now);
  }

  result<std::optional<job>> apply(command::find_job const& c, time_point now) {
    auto* const q = queues_.find(c.queue);
    auto const* const r = q == nullptr ? nullptr : q->find(c.id, now);
    std::optional<job> out;
    if (r != nullptr) out = describe(*r, now);
    return out;
  }

  result<job_page> apply(command::list_dead_letters const& c, time_point now) {
    std::uint64_t after = 0;
    auto const* const end = c.cursor.data() + c.cursor.size();
    if (!c.cursor.empty()) {
      auto const [at, ec] = std::from_chars(c.cursor.data(), end, after);
      if (ec != std::errc{} || at != end) return errc::invalid_option;
    }
    job_page page;
    if (auto const* const q = queues_.find(c.queue)) {
      if (auto const last = q->dead_letters(after, c.limit, now, page.jobs))
        page.cursor = std::to_string(last);
    }
    return page;
  }

  result<replayed> apply(command::replay_dead_letter const& c, time_point now) {
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return replayed{replay_outcome::not_found};
    auto const answer = q->replay(c.id, c.delay, now);
    if (answer.outcome == replay_outcome::replayed) {
      pointers_.no_later_than(*q, saturating_add(now, c.delay), now);
    }
    return answer;
  }

  result<bool> apply(command::purge_job const& c, time_point now) {
    tidy(now, 1);
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return false;
    settling const at_end{*this, *q};
    return q->purge(c.id, now);
  }

  // Queues.

  result<std::optional<duration>> apply(command::min_vesting_time const& c, time_point now) {
    auto const* const q = queues_.find(c.queue);
    return q == nullptr ? std::optional<duration>{} : q->next_in(now);
  }

  result<queue_stats> apply(command::read_queue_stats const& c, time_point now) {
    auto const* const q = queues_.find(c.queue);
    if (q == nullptr) return queue_stats{};
    auto stats = q->stats(now);
    stats.paused = q->paused;
    return stats;
  }

  result<visible_queues> apply(command::scan_visible_queues const& c, time_point now) {
    visible_queues out;
    auto const first = pointers_.begin();
    if (first == pointers_.end()) return out;
    auto const start = pointers_.from(rule::scan_start(first->due, now, c.entropy));
    rule::answer_room room;
    // Lists what is due from there on; false: something was left out, and stands at `at`.
    auto const list = [&](job_pointers::iterator& at, job_pointers::iterator const to) {
      for (; at != to && rule::job_visible(at->due, now); ++at) {
        if (out.queues.size() == c.limit || !room.take(at->name.size())) return false;
        out.queues.push_back(at->name);
      }
      return true;
    };
    auto next = start;
    auto again = first;
    if (list(next, pointers_.end()) && !list(again, start)) next = again;
    if (next != pointers_.end()) out.next_in = saturating_sub(next->due, now);
    return out;
  }

  result<std::optional<duration>> apply(command::update_queue_pointer const& c, time_point now) {
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return std::optional<duration>{};
    pointers_.set(*q, q->min_vesting(), now);
    return q->next_in(now);
  }

  result<std::uint32_t> apply(command::gc_stale_pointers const& c, time_point now) {
    tidy(now, c.limit);
    std::uint32_t deleted = 0;
    for (auto it = pointers_.begin(); it != pointers_.end() && deleted < c.limit;) {
      auto& q = static_cast<memory_queue&>(*it++);
      if (!rule::pointer_stale(q.due, true, c.grace, now)) break;  // nor is any after it
      if (!rule::pointer_stale(q.due, q.empty(), c.grace, now)) continue;
      pointers_.set(q, std::nullopt, now);
      if (q.jobless()) q.shrink();
      ++deleted;
    }
    return deleted;
  }

  result<hint> apply(command::snooze_queue const& c, time_point now) {
    auto* q = queues_.find(c.queue);
    if (c.delay == duration::zero()) {
      if (q == nullptr) return hint{};
      q->snoozed_until = time_point::min();
    } else {
      q = queues_.hold(c.queue, now, common_, pointers_);
      if (q == nullptr) return errc::store_full;
      q->snoozed_until = saturating_add(now, c.delay);
    }
    pointers_.place(*q, now);
    return hint{};
  }

  result<hint> apply(command::pause_queue const& c, time_point now) {
    auto* const q = queues_.hold(c.queue, now, common_, pointers_);
    if (q == nullptr) return errc::store_full;
    q->paused = true;
    pointers_.place(*q, now);
    return hint{};
  }

  result<hint> apply(command::resume_queue const& c, time_point now) {
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return hint{};
    q->paused = false;
    q->snoozed_until = time_point::min();
    pointers_.place(*q, now);
    return hint{};
  }

  result<lock_grant> apply(command::obtain_queue_lease const& c, time_point now) {
    auto* const q = queues_.hold(c.queue, now, common_, pointers_);
    if (q == nullptr) return errc::store_full;
    lock_grant out;
    if (now < q->lease_expiry) {
      out.granted = q->lease_holder == c.holder;
      out.expires_in = saturating_sub(q->lease_expiry, now);
      if (out.granted) {
        out.fence = q->lease_fence;
      } else {
        out.holder = q->lease_holder;
      }
      return out;
    }
    q->lease_holder = c.holder;
    q->lease_fence = common_.last_fence = rule::next_fence(common_.last_fence, now);
    q->lease_expiry = saturating_add(now, c.lease);
    out.granted = true;
    out.fence = q->lease_fence;
    out.expires_in = c.lease;
    return out;
  }

  result<lease_release> apply(command::release_queue_lease const& c, time_point now) {
    lease_release out;
    auto* const q = queues_.find(c.queue);
    out.freed = q != nullptr && now < q->lease_expiry && q->lease_holder == c.holder &&
                (c.fence == 0 || c.fence == q->lease_fence);
    if (out.freed) q->lease_expiry = time_point::min();
    return out;
  }

  result<queue_page> apply(command::list_queues const& c, time_point) {
    return queues_.page(c.limit, c.cursor);
  }

 private:
  friend class job_image;

  /// What was taken from the allowance and not used goes back.
  struct loan {
    job_allowance& from;
    std::size_t left = 0;
    ~loan() { from.give(left); }
  };

  /// Notes at the end of a step whether the queue has become jobless, or is so no more.
  struct settling {
    basic_job_shard& shard;
    memory_queue& queue;
    ~settling() { shard.queues_.settle(queue); }
  };

  struct leased_at {
    memory_queue* queue = nullptr;
    job_record* job = nullptr;
    explicit operator bool() const noexcept { return job != nullptr; }
  };

  template <class C>
  [[nodiscard]] leased_at leased(C const& c, time_point now) noexcept {
    leased_at at;
    at.queue = queues_.find(c.queue);
    if (at.queue != nullptr) at.job = at.queue->leased(c.id, c.fence, now);
    return at;
  }

  /// A little of the work that time has made: on average as much as steps make, and never much at
  /// once.
  void tidy(time_point now, std::size_t jobs) noexcept {
    now = std::min(now, told_);
    auto const most = 2 * jobs + 2;
    reap(now, most);
    queues_.trim(most, now, pointers_);
  }

  void reap(time_point now, std::size_t most) noexcept {
    auto& kept = common_.kept;
    for (auto n = most; n > 0 && !kept.empty() && rule::record_gone(kept.begin()->vesting, now);
         --n) {
      auto& home = *kept.begin()->home;
      home.reap(*kept.begin());
      queues_.settle(home);
    }
    auto& expiring = common_.expiring;
    for (auto n = most; n > 0 && !expiring.empty() && expiring.begin()->expiry <= now; --n) {
      auto& home = *expiring.begin()->home;
      home.reap(*expiring.begin());
      queues_.settle(home);
    }
  }

  /// Room for what the jobs need: a record each, and one for a key that may outlive it.
  bool borrow_room(memory_queue* q, std::span<new_job const> jobs, time_point now,
                   loan& room) noexcept {
    auto const needs = [](new_job const& j) {
      return std::size_t{1} + (j.strategy == unique_strategy::until_expired ? 1U : 0U);
    };
    std::size_t need = 0;
    for (auto const& j : jobs) need += needs(j);
    if (!common_.allowance.take(need)) {
      reap(now, std::numeric_limits<std::size_t>::max());
      need = 0;
      for (auto const& j : jobs) {
        if (q == nullptr || q->find(j.id, now) == nullptr) need += needs(j);
      }
      if (!common_.allowance.take(need)) return false;
    }
    room.left = need;
    return true;
  }

  time_point told_ = time_point::max();
  job_common common_;
  queue_registry queues_;
  job_pointers pointers_;
};

using job_shard = basic_job_shard<void>;

}  // namespace weir::detail

#endif
