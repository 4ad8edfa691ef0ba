// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_JOB_MACHINE_HPP
#define WEIR_RULE_JOB_MACHINE_HPP

#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/rule/bytes.hpp"
#include "weir/rule/fence.hpp"
#include "weir/rule/job_cursor.hpp"
#include "weir/rule/job_fields.hpp"
#include "weir/rule/job_moves.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::rule {

/// What each command does to jobs and queues, for every store that keeps its rows in C++: the
/// tables in memory, and SQLite.
///
/// `Rows` says where rows are and decides nothing. It may throw; the machine catches nothing. Every
/// function that concerns a queue's jobs takes the queue first.
///
/// - *queues*: `find_queue(name)`; `make_queue(name)`; `hold(name, now)`: made if need be, for what
///   outlasts its jobs, null if too many such are remembered; `within(q, now, step)`: does a step
///   that may move the queue's pointer, give it a job, or take its last; `place(q, now)`: after a
///   change of pause or snooze; `no_later_than(q, t, now)`, `set_pointer(q, t, now)`.
/// - *shards*: `has_shard`; `together(queue, other)`: are they of one shard; `longest_due(shard)`;
/// `each_due(shard, from, to, most, f)` and
///   `each_name(c, f)`, until `f` returns false; `collect_pointers(c, now)`; `last_fence()`.
/// - *rows of jobs*: `find(q, id, now)`, and `find_whole` with the texts, never one that is gone;
///   `each(q, jobs, now, f)`: `f(job, row, erased)` for many that are finished: one that is leased,
///   without key or retention, may be erased without being read; `each_after(q, id, most, state,
///   f)`: `f(id, row)` by id, with the texts, until it returns false: whether there may be more;
///   the row may be left out of a job that is not in the state; `known(q, id, now)`: also one that
///   cannot be read; `add(q, job, now, loan)`, with its enqueue key, unless it is known;
///   `lift(q, r)` out of the order of those that wait, `put(q, r)` into it; `extend(q, r,
///   vesting)`: both in one; `retire` and `unretire`: the same with those that have ended; `erase`:
///   of one in no order.
/// - *orders of jobs*: `min_vesting(q, now)`; `each_visible(q, wants, now, f)`: `f` may claim or
///   end the job, and returns how many more it wants; null: a damaged record was set aside;
///   `peek(q, most, now, f)`; `each_dead(q, after, most, f)`: whether there may be more;
///   `waiting(q)`, `leased(q, now)`, `dead(q)`.
/// - *enqueue keys*: `possessor(q, key, now, id, row)`, `key_taken`, `hold_key`, `free_key`.
/// - *run locks*: `run_lock(q, r, now)`: is it the job's own, and which other leased job has it;
///   `take_run`, `free_run`.
/// - *holders*: `claimant_of(q, name)`; `prepare_claim`: what a claim needs that can fail;
/// `hand_to`
///   and `let_go`: whose the job is; `each_remembered(q, by, sequence, now, f)`: the leases that
///   live of that dequeue; `forget_dequeue(q, by)`; `tell_cancelled(name)`: a job that it has a
///   lease of is about to be cancelled.
/// - *room*: `loan{rows}` with `take(n)`, `use(n)` and `provide(q, jobs, now)`: adding these cannot
///   fail then, so that nothing is done by halves; `reap_all(now)`; `tidy(now, jobs)`: a little of
///   the work that time has made, for a step of so many jobs.
template <class Rows>
class job_machine : public job_moves<Rows> {
 protected:
  using moves = job_moves<Rows>;
  using moves::rows_;
  using typename moves::claimant;
  using typename moves::queue;
  using typename moves::record;
  using typename moves::row;

 public:
  using moves::moves;

  // ----------------------------------------------------------------------------------------- jobs

  result<command::enqueue_jobs::result> apply(command::enqueue_jobs const& c, time_point now) {
    rows_.tidy(now, c.jobs.size());
    auto* q = rows_.find_queue(c.queue);
    typename Rows::loan room{rows_};
    if (!borrow(q, c.jobs, now, room)) return errc::store_full;
    if (q == nullptr) q = &rows_.make_queue(c.queue);
    return rows_.within(*q, now, [&](queue& to) {
      command::enqueue_jobs::result out;
      out.reserve(c.jobs.size());
      if (c.jobs.size() != 1) room.provide(to, c.jobs, now);  // one by itself is all or nothing
      for (auto const& j : c.jobs) out.push_back(moves::enqueue(to, j, now, room));
      return out;
    });
  }

  result<std::vector<job>> apply(command::peek_jobs const& c, time_point now) {
    std::vector<job> out;
    answer_room room;
    if (auto* const q = rows_.find_queue(c.queue)) {
      rows_.peek(*q, c.limit, now, [&](auto& r) {
        if (!room.take(r.text_bytes())) return false;
        out.push_back(describe(r, now));
        return out.size() < c.limit;
      });
    }
    return out;
  }

  result<dequeued> apply(command::dequeue_jobs const& c, time_point now) {
    return on_queue<dequeued>(c, c.limit, now, [&](queue& q) {
      dequeued out;
      out.held = q.held(now);
      auto by = rows_.claimant_of(q, c.holder);
      if (c.sequence != 0) {
        rows_.each_remembered(q, by, c.sequence, now,
                              [&](auto& r) { describe_lease(r, now, out.jobs.emplace_back()); });
        if (out.jobs.empty()) rows_.forget_dequeue(q, by);
      }
      if (out.jobs.empty() && !out.held) claim_visible(q, by, c, now, out);
      auto const least = rows_.min_vesting(q, now);
      out.more = !out.held && least && job_visible(*least, now);
      out.next_in = moves::until(least, now);
      rows_.set_pointer(q, least, now);
      return out;
    });
  }

  result<std::optional<leased_job>> apply(command::obtain_lease const& c, time_point now) {
    using answer = std::optional<leased_job>;
    return on_queue<answer>(c, 1, now, [&](queue& q) -> answer {
      auto r = rows_.find_whole(q, c.id, now);
      if (!r) return std::nullopt;
      answer out{std::in_place};
      auto const state = r->state(now);
      if (state == job_state::leased) {
        if (r->holder_name() != c.holder) return std::nullopt;
        describe_lease(*r, now, *out);
        return out;
      }
      bool const visible = job_visible(r->vesting, now);
      if (state != job_state::pending || q.held(now) || !(visible || c.early)) {
        return std::nullopt;
      }
      if (auto const reason = moves::unclaimable(*r, now)) {
        moves::bury(q, *r, *reason, now);
        return std::nullopt;
      }
      auto const fence = next_fence(rows_.last_fence(), now);
      describe_lease(*r, fence, r->attempts + 1, c.lease, now, *out);
      auto by = rows_.claimant_of(q, c.holder);
      moves::claim(q, *r, by, 0, fence, c.lease, now);
      if (!visible) rows_.no_later_than(q, r->vesting, now);
      return out;
    });
  }

  result<lease_renewal> apply(command::extend_lease const& c, time_point now) {
    return on_lease(c, now, [&](queue& q, record& r) {
      auto const vesting = saturating_add(now, c.lease);
      r.note_progress(c.progress, c.checkpoint);
      rows_.extend(q, r, vesting);
      rows_.no_later_than(q, vesting, now);
      return lease_renewal{c.lease};
    });
  }

  result<started> apply(command::start_job const& c, time_point now) {
    return on_lease(c, now, [&](queue& q, record& r) {
      started out;
      bool const runs = holds_while_running(r.strategy);
      auto const lock = runs ? rows_.run_lock(q, r, now) : typename Rows::run_lock_of{};
      out.outcome = on_start(r.strategy, static_cast<bool>(lock.other));
      if (out.outcome == start_outcome::blocked) {
        out.retry_after = saturating_sub(lock.other->vesting, now);
        out.other = lock.other->id;
        return out;
      }
      if (runs && !lock.own) rows_.take_run(q, r);
      if (start_frees_key(r.strategy)) rows_.free_key(q, r);
      return out;
    });
  }

  result<command::complete_jobs::result> apply(command::complete_jobs const& c, time_point now) {
    rows_.tidy(now, c.jobs.size());
    auto* const q = rows_.find_queue(c.queue);
    command::complete_jobs::result out;
    out.resize(c.jobs.size(), complete_outcome::lease_lost);
    if (q == nullptr) return out;
    rows_.within(*q, now, [&](queue& of) {
      std::size_t i = 0;
      rows_.each(of, c.jobs, now, [&](finished_job const& f, row r, bool erased) {
        if (erased) {
          ++of.completed;
          out[i++] = complete_outcome::completed;
          return;
        }
        auto const state = moves::state_of(r, now);
        auto const outcome = on_complete(state, r ? r->fence : 0, f.fence);
        out[i++] = outcome;
        if (outcome != complete_outcome::completed || state != job_state::leased) return;
        complete(of, *r, f.result, now);
      });
      return hint{};
    });
    return out;
  }

  result<requeue_outcome> apply(command::requeue_job const& c, time_point now) {
    return on_lease(c, now, [&](queue& q, record& r) {
      auto const outcome = on_failure(r.attempts, r.max_attempts);
      if (outcome == requeue_outcome::dead_lettered) {
        moves::bury(q, r, c.reason, now);
      } else {
        r.note_reason(kept_reason(c.reason));
        moves::retake_key(q, r, now);
        moves::wait_again(q, r, saturating_add(now, c.delay), now);
      }
      return outcome;
    });
  }

  result<hint> apply(command::snooze_job const& c, time_point now) {
    return on_lease(c, now, [&](queue& q, record& r) {
      r.note_memo(c.memo);
      moves::retake_key(q, r, now);
      r.attempts = attempts_given_back(r.attempts);
      ++r.snoozes;
      moves::wait_again(q, r, saturating_add(now, c.delay), now);
      return hint{};
    });
  }

  result<hint> apply(command::return_job const& c, time_point now) {
    return on_lease(c, now, [&](queue& q, record& r) {
      moves::retake_key(q, r, now);
      r.attempts = attempts_given_back(r.attempts);
      moves::wait_again(q, r, r.unclaimed_vesting, now);
      return hint{};
    });
  }

  result<hint> apply(command::bury_job const& c, time_point now) {
    return on_lease(c, now, [&](queue& q, record& r) {
      moves::bury(q, r, c.reason, now);
      return hint{};
    });
  }

  result<relayed> apply(command::relay_job const& c, time_point now) {
    rows_.tidy(now, c.next.size() + c.jobs.size());
    if (!c.jobs.empty() && !rows_.together(c.queue, c.to)) return errc::invalid_shard;
    auto* const found = rows_.find_queue(c.queue);
    if (c.fence == 0) {
      auto const outcome =
          found == nullptr ? relay_outcome::not_found : has_payload(*found, c, now);
      if (outcome != relay_outcome::relayed) return relayed{outcome, {}};
    }
    auto r = found == nullptr ? row{} : rows_.find(*found, c.id, now);
    if (!r || (c.fence != 0 && !has_job_lease(r->state(now), r->fence, c.fence))) {
      return errc::lease_lost;
    }
    auto* to = c.jobs.empty() ? nullptr : rows_.find_queue(c.to);
    typename Rows::loan room_there{rows_};
    typename Rows::loan room_here{rows_};
    if (!borrow(to, c.jobs, now, room_there) || !borrow(found, c.next, now, room_here)) {
      return errc::store_full;
    }
    room_here.provide(*found, c.next, now);
    relayed out;
    out.jobs.reserve(c.jobs.size() + c.next.size());
    if (!c.jobs.empty()) {
      if (to == nullptr) to = &rows_.make_queue(c.to);
      rows_.within(*to, now, [&](queue& q) {
        for (auto const& j : c.jobs) out.jobs.push_back(moves::enqueue(q, j, now, room_there));
        return hint{};
      });
    }
    rows_.within(*found, now, [&](queue& q) {
      complete(q, *r, c.stored, now);
      for (auto const& j : c.next) out.jobs.push_back(moves::enqueue(q, j, now, room_here));
      return hint{};
    });
    return out;
  }

  result<cancel_outcome> apply(command::cancel_job const& c, time_point now) {
    auto const step = [&](queue& q) {
      auto r = rows_.find(q, c.id, now);
      auto const state = moves::state_of(r, now);
      auto const outcome = on_cancel(state, c.running);
      if (outcome == cancel_outcome::cancelled && state != job_state::cancelled) {
        if (state == job_state::leased) rows_.tell_cancelled(r->holder_name());
        moves::end(q, *r, job_state::cancelled, now);
      }
      return outcome;
    };
    return on_queue<cancel_outcome>(c, 1, now, step, cancel_outcome::not_found);
  }

  result<std::optional<job>> apply(command::find_job const& c, time_point now) {
    std::optional<job> out;
    if (auto* const q = rows_.find_queue(c.queue)) {
      if (auto r = rows_.find_whole(*q, c.id, now)) out = describe(*r, now);
    }
    return out;
  }

  /// Error: `invalid_option` for a cursor that no page gave.
  result<job_page> apply(command::list_dead_letters const& c, time_point now) {
    auto const after = rule::number_of_cursor(c.cursor);
    if (!after) return errc::invalid_option;
    job_page page;
    auto* const q = rows_.find_queue(c.queue);
    if (q == nullptr) return page;
    auto last = *after;
    answer_room room;
    bool const rest = rows_.each_dead(*q, *after, c.limit, [&](std::uint64_t death, auto&& r) {
      if (page.jobs.size() == c.limit || (r && !room.take(r->text_bytes()))) return false;
      if (r) page.jobs.push_back(describe(*r, now));
      last = std::max(last, death);
      return true;
    });
    if (rest && last != after) page.cursor = std::to_string(last);
    return page;
  }

  /// Error: `invalid_option` for a cursor that no page gave.
  result<job_page> apply(command::list_jobs const& c, time_point now) {
    auto const after = id_of_cursor(c.cursor);
    if (!after) return errc::invalid_option;
    job_page page;
    auto* const q = rows_.find_queue(c.queue);
    if (q == nullptr) return page;
    auto last = *after;
    answer_room room;
    bool const rest =
        rows_.each_after(*q, *after, records_per_page, c.state, [&](job_id const& id, auto&& r) {
          if (page.jobs.size() == c.limit) return false;
          if (r && !r->gone(now) && r->state(now) == c.state) {
            if (!room.take(r->text_bytes())) return false;
            page.jobs.push_back(describe(*r, now));
          }
          last = id;
          return true;
        });
    if (rest) page.cursor = cursor_after(last);
    return page;
  }

  result<replayed> apply(command::replay_dead_letter const& c, time_point now) {
    auto* const found = rows_.find_queue(c.queue);
    if (found == nullptr) return replayed{replay_outcome::not_found};
    return rows_.within(*found, now, [&](queue& q) { return replay(q, c, now); });
  }

  result<bool> apply(command::purge_job const& c, time_point now) {
    return on_queue<bool>(c, 1, now, [&](queue& q) {
      auto r = rows_.find(q, c.id, now);
      if (!r || !is_terminal(r->ended)) return false;
      if (r->ended == job_state::completed) decrease(q.completed);
      if (r->ended == job_state::cancelled) decrease(q.cancelled);
      ++q.purged;
      rows_.unretire(q, *r);
      rows_.erase(q, *r);
      return true;
    });
  }

  // --------------------------------------------------------------------------------------- queues

  result<std::optional<duration>> apply(command::min_vesting_time const& c, time_point now) {
    auto* const q = rows_.find_queue(c.queue);
    if (q == nullptr) return std::optional<duration>{};
    return moves::until(rows_.min_vesting(*q, now), now);
  }

  result<queue_stats> apply(command::read_queue_stats const& c, time_point now) {
    queue_stats s;
    auto* const q = rows_.find_queue(c.queue);
    if (q == nullptr) return s;
    s.enqueued = q->enqueued;
    s.leased = rows_.leased(*q, now);
    s.pending = rows_.waiting(*q) - s.leased;
    s.completed = q->completed;
    s.dead = rows_.dead(*q);
    s.cancelled = q->cancelled;
    s.purged = q->purged;
    s.paused = q->paused;
    s.next_in = moves::until(rows_.min_vesting(*q, now), now);
    return s;
  }

  result<visible_queues> apply(command::scan_visible_queues const& c, time_point now) {
    if (!rows_.has_shard(c.shard)) return errc::invalid_shard;
    visible_queues out;
    auto const first = rows_.longest_due(c.shard, c.schedules);
    if (!first) return out;
    std::optional<time_point> next = first;  // of the first that is left out
    if (job_visible(*first, now)) {
      next.reset();
      answer_room room;
      auto const list = [&](time_point from, time_point to) {
        if (next) return;
        auto const most = std::size_t{c.limit} - out.queues.size() + 1;
        rows_.each_due(c.shard, c.schedules, from, to, most,
                       [&](std::string_view name, time_point due) {
                         if (out.queues.size() == c.limit || !room.take(name.size())) {
                           next = due;
                           return false;
                         }
                         out.queues.emplace_back(name);
                         return true;
                       });
      };
      auto const start = scan_start(*first, now, c.entropy);
      auto const later = saturating_add(now, duration{1});
      list(start, later);
      list(*first, start);
      if (!next) {
        rows_.each_due(c.shard, c.schedules, later, time_point::max(), 1,
                       [&](std::string_view, time_point due) {
                         next = due;
                         return false;
                       });
      }
    }
    out.next_in = moves::until(next, now);
    return out;
  }

  result<std::optional<duration>> apply(command::update_queue_pointer const& c, time_point now) {
    auto* const found = rows_.find_queue(c.queue);
    if (found == nullptr) return std::optional<duration>{};
    return rows_.within(*found, now, [&](queue& q) {
      auto const least = rows_.min_vesting(q, now);
      rows_.set_pointer(q, least, now);
      return moves::until(least, now);
    });
  }

  result<std::uint32_t> apply(command::gc_stale_pointers const& c, time_point now) {
    if (!rows_.has_shard(c.shard)) return errc::invalid_shard;
    return rows_.collect_pointers(c, now);
  }

  /// Error: `store_full`.
  result<hint> apply(command::snooze_queue const& c, time_point now) {
    bool const ends = c.delay == duration::zero();
    auto* const q = ends ? rows_.find_queue(c.queue) : rows_.hold(c.queue, now);
    if (q == nullptr) return ends ? result<hint>{hint{}} : errc::store_full;
    auto until = ends ? time_point::min() : saturating_add(now, c.delay);
    if (c.at_least) until = std::max(until, q->snoozed_until);
    return hold_back(*q, q->paused, until, now);
  }

  /// Error: `store_full`.
  result<hint> apply(command::pause_queue const& c, time_point now) {
    auto* const q = rows_.hold(c.queue, now);
    if (q == nullptr) return errc::store_full;
    return hold_back(*q, true, q->snoozed_until, now);
  }

  result<hint> apply(command::resume_queue const& c, time_point now) {
    auto* const q = rows_.find_queue(c.queue);
    if (q == nullptr) return hint{};
    return hold_back(*q, false, time_point::min(), now);
  }

  /// Error: `store_full`.
  result<lock_grant> apply(command::obtain_queue_lease const& c, time_point now) {
    auto* const q = rows_.hold(c.queue, now);
    if (q == nullptr) return errc::store_full;
    lock_grant out;
    out.granted = now >= q->lease_expiry || q->lease_holder == c.holder;
    if (now >= q->lease_expiry) {
      q->lease_holder = c.holder;
      q->lease_fence = rows_.last_fence() = next_fence(rows_.last_fence(), now);
      q->lease_expiry = saturating_add(now, c.lease);
    }
    out.expires_in = saturating_sub(q->lease_expiry, now);
    if (out.granted) {
      out.fence = q->lease_fence;
    } else {
      out.holder = q->lease_holder;
    }
    return out;
  }

  result<lease_release> apply(command::release_queue_lease const& c, time_point now) {
    lease_release out;
    auto* const q = rows_.find_queue(c.queue);
    out.freed = q != nullptr && now < q->lease_expiry && q->lease_holder == c.holder &&
                (c.fence == 0 || c.fence == q->lease_fence);
    if (out.freed) q->lease_expiry = time_point::min();
    return out;
  }

  result<queue_page> apply(command::list_queues const& c, time_point) {
    if (!rows_.has_shard(c.shard)) return errc::invalid_shard;
    queue_page page;
    answer_room room;
    rows_.each_name(c, [&](std::string_view name) {
      if (page.queues.size() == c.limit || !room.take(name.size())) {
        page.cursor = page.queues.back();
        return false;
      }
      page.queues.emplace_back(name);
      return true;
    });
    return page;
  }

 protected:
  ~job_machine() = default;

 private:
  /// Does a step on a queue that is there. `absent` makes the answer where it is not.
  template <class Answer, class C, class Step, class... Absent>
  result<Answer> on_queue(C const& c, std::size_t jobs, time_point now, Step const& step,
                          Absent... absent) {
    rows_.tidy(now, jobs);
    auto* const q = rows_.find_queue(c.queue);
    if (q == nullptr) return Answer{absent...};
    return rows_.within(*q, now, step);
  }

  /// Does a step with the live lease that the command names.
  template <class C, class Step>
  result<typename C::result> on_lease(C const& c, time_point now, Step const& step) {
    auto* const found = rows_.find_queue(c.queue);
    if (found == nullptr) return errc::lease_lost;
    auto r = rows_.find(*found, c.id, now);
    if (!r || !has_job_lease(r->state(now), r->fence, c.fence)) return errc::lease_lost;
    return rows_.within(*found, now, [&](queue& q) { return step(q, *r); });
  }

  /// Its record may be gone after this.
  void complete(queue& q, record& r, std::string_view with, time_point now) {
    if (!with.empty() && r.retention > duration::zero()) r.note_result(with);
    moves::end(q, r, job_state::completed, now);
  }

  /// Has a job that has not ended the payload by which it is to be relayed?
  relay_outcome has_payload(queue& q, command::relay_job const& c, time_point now) {
    auto r = rows_.find_whole(q, c.id, now);
    if (!r || is_terminal(r->ended)) return relay_outcome::not_found;
    return r->payload() == c.expected ? relay_outcome::relayed : relay_outcome::changed;
  }

  /// Takes room for what the jobs need. False: there is not enough.
  bool borrow(queue* q, std::span<new_job const> jobs, time_point now, typename Rows::loan& room) {
    std::size_t need = 0;
    for (auto const& j : jobs) need += moves::needs(j);
    if (room.take(need)) return true;
    rows_.reap_all(now);
    need = 0;
    for (auto const& j : jobs) {
      if (q == nullptr || !rows_.known(*q, j.id, now)) need += moves::needs(j);
    }
    return room.take(need);
  }

  void claim_visible(queue& q, claimant& by, command::dequeue_jobs const& c, time_point now,
                     dequeued& out) {
    std::size_t wants = c.limit;
    out.jobs.reserve(std::min<std::size_t>(wants, rows_.waiting(q)));
    answer_room room;
    rows_.each_visible(q, wants, now, [&](auto* r) {
      if (r == nullptr) {
        ++out.damaged;
      } else if (auto const reason = moves::unclaimable(*r, now)) {
        moves::bury(q, *r, *reason, now);
        by = rows_.claimant_of(q, c.holder);  // that lease may have been its last
        ++out.dead_lettered;
      } else {
        if (!room.take(r->text_bytes())) return std::size_t{0};
        auto const fence = next_fence(rows_.last_fence(), now);
        describe_lease(*r, fence, r->attempts + 1, c.lease, now, out.jobs.emplace_back());
        moves::claim(q, *r, by, c.sequence, fence, c.lease, now);
        return --wants;
      }
      return out.dead_lettered + out.damaged < burials_per_dequeue ? wants : 0;
    });
  }

  replayed replay(queue& q, command::replay_dead_letter const& c, time_point now) {
    auto r = rows_.find(q, c.id, now);
    typename moves::contender by;
    if (r) by = moves::possessor_of(q, r->strategy, r->unique_key(), now);
    bool const gives_way = by.does == possessor::unclaimable;
    bool const free = by.does == possessor::nobody || by.id == c.id || gives_way;
    replayed out{on_replay(moves::state_of(r, now), free)};
    if (out.outcome == replay_outcome::conflict) out.other = by.id;
    if (out.outcome != replay_outcome::replayed) return out;
    rows_.prepare(q, r->priority);
    if (gives_way) moves::bury(q, *by.job, *moves::unclaimable(*by.job, now), now);
    if (replay_takes_key(r->strategy)) rows_.hold_key(q, *r);
    rows_.unretire(q, *r);
    r->ended = job_state::pending;
    r->attempts = 0;
    r->snoozes = 0;
    r->deadline_from = now;
    r->vesting = saturating_add(now, c.delay);
    rows_.put(q, *r);
    rows_.no_later_than(q, r->vesting, now);
    return out;
  }

  hint hold_back(queue& found, bool paused, time_point snoozed_until, time_point now) {
    return rows_.within(found, now, [&](queue& q) {
      q.paused = paused;
      q.snoozed_until = snoozed_until;
      rows_.place(q, now);
      return hint{};
    });
  }
};

}  // namespace weir::rule

#endif
