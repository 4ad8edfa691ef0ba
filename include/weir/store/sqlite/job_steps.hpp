// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_JOB_STEPS_HPP
#define WEIR_STORE_SQLITE_JOB_STEPS_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/os_entropy.hpp"
#include "weir/job.hpp"
#include "weir/rule/bytes.hpp"
#include "weir/rule/fence.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/job_keys.hpp"
#include "weir/store/sqlite/job_reader.hpp"
#include "weir/store/sqlite/job_rows.hpp"
#include "weir/store/sqlite/queue_rows.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// Every transition that a job can make.
///
/// They decide nothing: `rule/jobs.hpp` does. They keep the rows, orders, keys, locks, leases and
/// counters in step. Pointers are their caller's business (jobs.hpp).
class sqlite_job_steps : public sqlite_job_reader {
 public:
  explicit sqlite_job_steps(sqlite_scope& in) noexcept : sqlite_job_reader{in}, keys_{in} {}

  // ------------------------------------------------------------------------------------ enqueueing

  struct arrival {
    enqueued answer;
    std::optional<time_point> vests;  ///< a job of the queue vests then, since this step
  };

  arrival enqueue(sqlite_queue& q, new_job const& j, time_point now) {
    arrival out;
    if (!holds_while_waiting(j.strategy)) {
      if (!add(q, j, now)) {
        if (known(q, j.id, now)) return out;
        forget(q, j.id);  // a record that is gone by time, but still there
        if (!add(q, j, now)) throw sqlite_failure{SQLITE_CORRUPT};
      }
      out.vests = saturating_add(now, j.delay);
      return out;
    }
    if (known(q, j.id, now)) return out;
    forget(q, j.id);

    auto by = possessor_of(q, j.unique_key, now);
    auto const decision = rule::on_enqueue(j.strategy, j.on_conflict, by.does);
    out.answer.outcome = rule::outcome_of(decision);
    if (out.answer.outcome != enqueue_outcome::enqueued) out.answer.other = by.id;
    switch (decision) {
      case rule::enqueue_decision::duplicate: return out;
      case rule::enqueue_decision::reschedule: reschedule(q, *by.job, j, now); break;
      case rule::enqueue_decision::replace: end(q, *by.job, job_state::cancelled, now); break;
      case rule::enqueue_decision::bury: bury(q, *by.job, *unclaimable(*by.job, now), now); break;
      case rule::enqueue_decision::add: break;
    }
    if (decision != rule::enqueue_decision::reschedule) {
      add(q, j, now);
      keys_.hold(q, j.unique_key, j.id, rule::key_expiry(j.strategy, j.unique_ttl, now));
    }
    out.vests = saturating_add(now, j.delay);
    return out;
  }

  // ------------------------------------------------------------------------------------ claiming

  dequeued dequeue(sqlite_queue& q, command::dequeue_jobs const& c, time_point now) {
    dequeued out;
    out.held = q.held(now);
    repeat(q, c, now, out);
    if (out.jobs.empty() && !out.held) claim_visible(q, c, now, out);
    auto const rest = read_heads(q, now);
    out.more = !out.held && rest.any_visible;
    out.next_in = rest.next_in(now);
    q.pointer = rest.min_vesting;
    return out;
  }

  std::optional<leased_job> obtain(sqlite_queue& q, command::obtain_lease const& c,
                                   time_point now) {
    auto r = rows_.read_whole(q.number, c.id);
    if (!r || gone(*r, now)) return std::nullopt;
    auto const state = r->state(now);
    if (state == job_state::leased) {
      if (*r->holder != c.holder) return std::nullopt;
      return describe_lease(std::move(*r), now);
    }
    if (state != job_state::pending || q.held(now) || !rule::job_visible(r->vesting, now)) {
      return std::nullopt;
    }
    if (!claim(q, *r, c.holder, 0, c.lease, now)) return std::nullopt;
    return describe_lease(std::move(*r), now);
  }

  // ----------------------------------------------------------------------------- with a live lease

  void extend(sqlite_queue const& q, sqlite_job& r, duration lease, time_point now) {
    r.vesting = saturating_add(now, lease);
    rows_.extend(q.number, r.id, r.vesting);
  }

  started start(sqlite_queue& q, sqlite_job const& r, time_point now) {
    started out;
    bool const runs = holds_while_running(r.strategy);
    auto const runner = runs ? keys_.runner(q, r.unique_key) : std::nullopt;
    std::optional<sqlite_job> other;
    if (runner && *runner != r.id) other = find(q, *runner, now);
    bool const other_runs = other && other->state(now) == job_state::leased;
    out.outcome = rule::on_start(r.strategy, other_runs);
    if (out.outcome == start_outcome::blocked) {
      out.retry_after = saturating_sub(other->vesting, now);
      out.other = other->id;
      return out;
    }
    if (runs && runner != r.id) keys_.take_run(q, r.unique_key, r.id);
    if (rule::start_frees_key(r.strategy)) keys_.free(q, r.unique_key, r.id);
    return out;
  }

  complete_outcome complete(sqlite_queue& q, finished_job const& f, time_point now) {
    std::optional<sqlite_job> r;
    try {
      r = find(q, f.id, now);
    } catch (sqlite_damage const&) {  // no matter of the others that are completed with it
      return complete_outcome::lease_lost;
    }
    auto const state = state_of(r, now);
    auto const outcome = rule::on_complete(state, r ? r->fence : 0, f.fence);
    if (outcome == complete_outcome::completed && state == job_state::leased) {
      if (!f.result.empty() && r->retention > duration::zero()) r->new_result = f.result;
      end(q, *r, job_state::completed, now);
    }
    return outcome;
  }

  requeue_outcome requeue(sqlite_queue& q, sqlite_job& r, duration delay, std::string_view reason,
                          time_point now) {
    auto const outcome = rule::on_failure(r.attempts, r.max_attempts);
    if (outcome == requeue_outcome::dead_lettered) {
      bury(q, r, reason, now);
    } else {
      r.new_reason = rule::kept_reason(reason);
      wait_again(q, r, saturating_add(now, delay), now);
    }
    return outcome;
  }

  void snooze(sqlite_queue& q, sqlite_job& r, duration delay, std::string_view memo,
              time_point now) {
    r.new_memo = memo;
    r.attempts = rule::attempts_given_back(r.attempts);
    ++r.snoozes;
    wait_again(q, r, saturating_add(now, delay), now);
  }

  void give_back(sqlite_queue& q, sqlite_job& r, time_point now) {
    r.attempts = rule::attempts_given_back(r.attempts);
    wait_again(q, r, r.unclaimed_vesting, now);
  }

  // ------------------------------------------------------------------------------------ endings

  void bury(sqlite_queue& q, sqlite_job& r, std::string_view reason, time_point now) {
    r.new_reason = rule::kept_reason(reason);
    end(q, r, job_state::dead, now);
  }

  cancel_outcome cancel(sqlite_queue& q, job_id const& id, bool running_too, time_point now) {
    auto r = find(q, id, now);
    auto const state = state_of(r, now);
    auto const outcome = rule::on_cancel(state, running_too);
    if (outcome == cancel_outcome::cancelled && state != job_state::cancelled) {
      end(q, *r, job_state::cancelled, now);
    }
    return outcome;
  }

  replayed replay(sqlite_queue& q, job_id const& id, duration delay, time_point now) {
    auto r = find(q, id, now);
    contender by;
    if (r && holds_while_waiting(r->strategy)) by = possessor_of(q, r->unique_key, now);
    bool const gives_way = by.does == rule::possessor::unclaimable;
    bool const free = by.does == rule::possessor::nobody || by.id == id || gives_way;
    replayed out{rule::on_replay(state_of(r, now), free)};
    if (out.outcome == replay_outcome::conflict) out.other = by.id;
    if (out.outcome != replay_outcome::replayed) return out;
    if (gives_way) bury(q, *by.job, *unclaimable(*by.job, now), now);
    if (rule::replay_takes_key(r->strategy)) {
      keys_.hold(q, r->unique_key, id, time_point::max());
    }
    sqlite_decrease(q.dead);
    ++q.waiting;
    r->ended = job_state::pending;
    r->attempts = 0;
    r->snoozes = 0;
    r->deadline_from = now;
    r->vesting = saturating_add(now, delay);
    rows_.write(q.number, *r);
    return out;
  }

  /// Forgets an ended job and counts it as purged.
  bool purge(sqlite_queue& q, job_id const& id, time_point now) {
    auto const r = find(q, id, now);
    if (!r || !is_terminal(r->ended)) return false;
    if (r->ended == job_state::completed) sqlite_decrease(q.completed);
    if (r->ended == job_state::cancelled) sqlite_decrease(q.cancelled);
    ++q.purged;
    drop(q, *r);
    return true;
  }

  /// Forgets some of the jobs and keys whose time is over; counts stay. Returns how many there
  /// were.
  std::size_t reap(sqlite_queues& queues, time_point now, std::size_t most) {
    std::size_t n = 0;
    while (n != most) {
      auto const over = sqlite_first<3>(in_.db, sql::kept_job, now);
      if (!over) break;
      auto const& [number, id, body] = *over;
      if (!rows_.erase(number, id, body)) break;
      ++n;
      sqlite_decrease(in_.ledger.jobs);
      if (auto* const q = queues.by_number(number)) {
        sqlite_decrease(q->kept);
        queues.settle(*q);
      }
    }
    return n + keys_.reap(queues, now, most);
  }

 private:
  /// The job in possession of an enqueue key.
  struct contender {
    job_id id{};
    std::optional<sqlite_job> job;  ///< empty: nobody has the key, or no record is left of who has
    rule::possessor does = rule::possessor::nobody;
  };

  contender possessor_of(sqlite_queue& q, std::string_view text, time_point now) {
    contender out;
    auto const key = keys_.find(q, text, now);
    if (!key) return out;
    out.id = key->owner;
    out.does = rule::possessor::ended;
    try {
      out.job = find(q, key->owner, now);
    } catch (sqlite_damage const&) {
      set_aside(q, key->owner, now);
      if (key->until) return out;
      keys_.free(q, text, key->owner);
      return {};
    }
    if (auto const& r = out.job) {
      auto const claim = rule::on_claim(r->attempts, r->max_attempts, r->deadline_at(), now);
      out.does = rule::possessor_in(r->state(now), claim, r->strategy);
    }
    return out;
  }

  static std::optional<std::string_view> unclaimable(sqlite_job const& r, time_point now) noexcept {
    switch (rule::on_claim(r.attempts, r.max_attempts, r.deadline_at(), now)) {
      case rule::claim_decision::bury_spent: return rule::reason_spent;
      case rule::claim_decision::bury_missed: return rule::reason_missed;
      case rule::claim_decision::lease: break;
    }
    return std::nullopt;
  }

  bool add(sqlite_queue& q, new_job const& j, time_point now) {
    if (!rows_.insert(q.number, j, now)) return false;
    ++q.enqueued;
    ++q.waiting;
    ++in_.ledger.jobs;
    return true;
  }

  void reschedule(sqlite_queue& q, sqlite_job& r, new_job const& j, time_point now) {
    unclaim(q, r);
    r.vesting = saturating_add(now, j.delay);
    r.priority = j.priority;
    rows_.write(q.number, r);
  }

  void claim_visible(sqlite_queue& q, command::dequeue_jobs const& c, time_point now,
                     dequeued& out) {
    constexpr std::size_t page_size = 256;
    rule::answer_room room;
    bool full = false;
    auto const wants = [&] {
      return !full && out.jobs.size() < c.limit &&
             out.dead_lettered + out.damaged < rule::burials_per_dequeue;
    };
    auto const is_damaged = [&](auto const& id) {
      set_aside(q, id, now);
      ++out.damaged;
    };
    for (auto h = first_head(q); h && wants();) {
      if (h->damaged) {
        is_damaged(*h->damaged);
        h = first_head(q);
        continue;
      }
      for (bool rest = rule::job_visible(h->vesting, now); rest && wants();) {
        auto const most = std::min(c.limit - out.jobs.size(), page_size);
        auto const found = visible(q, h->priority, now, most);
        rest = found.ids.size() == most || found.damaged;
        for (auto const& id : found.ids) {
          if (!wants()) break;
          std::optional<sqlite_whole_job> r;
          try {
            r = rows_.read_whole(q.number, id);
          } catch (sqlite_damage const&) {
            is_damaged(id);
            continue;
          }
          if (!r) throw sqlite_failure{SQLITE_CORRUPT};
          full = !unclaimable(*r, now) && !room.take(r->text_bytes());
          if (full) break;
          if (claim(q, *r, c.holder, c.sequence, c.lease, now)) {
            out.jobs.push_back(describe_lease(std::move(*r), now));
          } else {
            ++out.dead_lettered;
          }
        }
        if (found.damaged && wants()) is_damaged(*found.damaged);
      }
      h = head_after(q, *h);
    }
  }

  /// Puts a dead letter in the place of a record that cannot be read.
  template <class Id>
  void set_aside(sqlite_queue& q, Id const& id, time_point now) {
    auto const found = rows_.read_remains(q.number, id);
    if (!rows_.erase(q.number, id, found.body)) throw sqlite_failure{SQLITE_CORRUPT};
    if (found.id && !found.unique_key.empty()) keys_.free_all(q, found.unique_key, *found.id);
    new_job letter;
    letter.id = found.id ? *found.id : made_id();
    letter.kind = found.kind.empty() ? std::string_view{"damaged"} : found.kind;
    letter.payload = found.payload;
    rows_.insert(q.number, letter, now);
    auto r = rows_.read(q.number, letter.id);
    if (!r) throw sqlite_failure{SQLITE_CORRUPT};
    r->new_reason = damaged_record;
    end(q, *r, job_state::dead, now);
  }

  static job_id made_id() {
    auto const bits = os_entropy();
    job_id out;
    static_assert(sizeof(out) == sizeof(bits));
    std::memcpy(out.begin(), &bits, sizeof(out));
    return out;
  }

  /// Leases a visible job, or buries it. Returns whether it was leased.
  bool claim(sqlite_queue& q, sqlite_job& r, std::string_view holder, std::uint64_t sequence,
             duration lease, time_point now) {
    if (auto const reason = unclaimable(r, now)) {
      bury(q, r, *reason, now);
      return false;
    }
    unclaim(q, r);  // from a holder that let its lease end
    in_.ledger.fence = rule::next_fence(in_.ledger.fence, now);
    r.fence = in_.ledger.fence;
    r.holder = holder;
    r.sequence = sequence;
    ++r.attempts;
    r.unclaimed_vesting = r.vesting;
    r.vesting = saturating_add(now, lease);
    rows_.write(q.number, r);
    return true;
  }

  /// Ends the lease, over or not, and with it the run lock. To be followed by a write.
  void unclaim(sqlite_queue const& q, sqlite_job& r) {
    if (!r.holder) return;
    if (holds_while_running(r.strategy)) keys_.free_run(q, r.unique_key, r.id);
    r.holder.reset();
    r.sequence = 0;
  }

  /// Ends the lease; the job waits, with the enqueue key that its start gave up, if that is free.
  void wait_again(sqlite_queue& q, sqlite_job& r, time_point vesting, time_point now) {
    if (rule::start_frees_key(r.strategy) && !keys_.find(q, r.unique_key, now)) {
      keys_.hold(q, r.unique_key, r.id, time_point::max());
    }
    unclaim(q, r);
    r.vesting = vesting;
    rows_.write(q.number, r);
  }

  /// Ends the job. Its record may be gone after this.
  void end(sqlite_queue& q, sqlite_job& r, job_state how, time_point now) {
    unclaim(q, r);
    if (rule::end_frees_key(r.strategy)) keys_.free(q, r.unique_key, r.id);
    r.ended = how;
    sqlite_decrease(q.waiting);
    if (how == job_state::dead) {
      r.death = static_cast<std::int64_t>(++q.deaths);
      ++q.dead;
      rows_.write(q.number, r);
      return;
    }
    ++(how == job_state::completed ? q.completed : q.cancelled);
    r.kept_until = rule::kept_until(now, r.retention);
    if (rule::record_gone(r.kept_until, now)) {
      erase(q, r);
    } else {
      ++q.kept;
      rows_.write(q.number, r);
    }
  }

  void forget(sqlite_queue& q, job_id const& id) {
    if (auto const r = rows_.read(q.number, id)) drop(q, *r);
  }

  /// Forgets the record of an ended job.
  void drop(sqlite_queue& q, sqlite_job const& r) {
    sqlite_decrease(r.ended == job_state::dead ? q.dead : q.kept);
    erase(q, r);
  }

  void erase(sqlite_queue const& q, sqlite_job const& r) {
    rows_.erase(q.number, r.id, r.body);
    sqlite_decrease(in_.ledger.jobs);
  }

  /// Answers a dequeue that was asked again with what lives of its leases; forgets the last one's
  /// if this is another.
  void repeat(sqlite_queue const& q, command::dequeue_jobs const& c, time_point now,
              dequeued& out) {
    if (c.sequence == 0) return;
    std::vector<job_id> ids;
    {
      sqlite_query again{in_.db, sql::jobs_of_dequeue, q.number, c.holder, c.sequence, now};
      while (again.next()) {
        auto const id = again.anything(0);
        if (id.size() == sizeof(job_id)) std::memcpy(&ids.emplace_back(), id.data(), id.size());
      }
    }
    for (auto const& id : ids) {
      if (auto r = readable(q, id)) {
        out.jobs.push_back(describe_lease(std::move(*r), now));
      }
    }
    if (out.jobs.empty()) sqlite_run(in_.db, sql::forget_dequeue, q.number, c.holder);
  }

  sqlite_job_keys keys_;
};

}  // namespace weir::detail

#endif
