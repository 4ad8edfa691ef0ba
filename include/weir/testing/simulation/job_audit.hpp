// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_JOB_AUDIT_HPP
#define WEIR_TESTING_SIMULATION_JOB_AUDIT_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/simulation/job_book.hpp"
#include "weir/testing/simulation/world.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace weir::testing::simulation {

/// Holds every answer about queued jobs to R2, R4 and R5. It knows the answers only, and not how a
/// store comes by them.
class job_audit {
 public:
  /// How the audit looks at what no answer says.
  struct probe {
    std::function<std::optional<job>(std::string_view, job_id)> find;
  };

  explicit job_audit(world& in) : world_{in} {}

  void on(command::enqueue_jobs const& c, result<command::enqueue_jobs::result> const& a,
          time_point now, probe const& look) {
    if (a.has_error()) return;
    auto& q = queue(c.queue);
    std::size_t refused = 0;
    expect(a.value().size() == c.jobs.size(), "R4", c.queue, "an outcome for each job");
    for (std::size_t i = 0; i != std::min(a.value().size(), c.jobs.size()); ++i) {
      auto const& j = c.jobs[i];
      auto const& outcome = a.value()[i];
      switch (outcome.outcome) {
        case enqueue_outcome::enqueued: add(q, j, now, look); break;
        case enqueue_outcome::duplicate:
          ++refused;
          expect(q.possesses(j.unique_key, outcome.other, now), "R2", c.queue,
                 "a unique key is taken by a job that does not have it");
          break;
        case enqueue_outcome::replaced:
          world_.reach(rare_state::job_replaced);
          if (auto* const old = q.find(outcome.other)) {
            expect(!old->live(now), "R2", c.queue, "a running job was replaced");
            end(q, *old, job_state::cancelled, now);
          }
          std::erase_if(q.expiring, [&](auto const& e) { return e.id == outcome.other; });
          q.records.erase(j.id);  // it replaced something: so it was not there
          add(q, j, now, look);
          break;
        case enqueue_outcome::rescheduled:
          world_.reach(rare_state::job_rescheduled);
          if (auto* const old = q.find(outcome.other)) {
            expect(!old->live(now), "R2", c.queue, "a running job was rescheduled");
            q.wait(*old, now + j.delay);
            old->priority = j.priority;
          }
          break;
      }
    }
    if (refused != 0 && refused != c.jobs.size()) world_.reach(rare_state::batch_partly_refused);
  }

  void on(command::dequeue_jobs const& c, result<dequeued> const& a, time_point now,
          probe const& look) {
    if (a.has_error()) return;
    auto& q = queue(c.queue);
    auto const& d = a.value();
    expect(d.jobs.size() <= c.limit, "R4", c.queue, "more jobs than were asked for");
    if (d.held) {
      world_.reach(rare_state::queue_held);
      expect(q.paused || now < q.snoozed_until, "R6", c.queue, "held, and nobody holds it");
    }
    bool const repeat = q.is_repeat(c, now);
    std::size_t fresh = 0;
    for (auto const& j : d.jobs) fresh += claim(q, j, c, now) ? 1 : 0;
    if (fresh != d.jobs.size()) world_.reach(rare_state::dequeue_repeated);
    expect(!repeat || fresh == 0, "R4", c.queue, "a dequeue that was asked again leased more jobs");
    if (!repeat && c.sequence != 0) q.remember(c, d);
    if (d.dead_lettered != 0) find_buried(q, d.dead_lettered, now, look);
    if (fresh != 0) check_best_first(q, d, now);
  }

  void on(command::obtain_lease const& c, result<std::optional<leased_job>> const& a,
          time_point now, probe const& look) {
    if (a.has_error()) return;
    auto& q = queue(c.queue);
    if (a.value()) {
      claim(q, *a.value(), c, now, c.early);
    } else if (auto* const r = q.find(c.id)) {
      find_buried(q, c.id, *r, now, look);
    }
  }

  void on(command::extend_lease const& c, result<lease_renewal> const& a, time_point now,
          probe const&) {
    auto* const r = held(c, a, now);
    if (r == nullptr) return;
    lasts(c, a.value().expires_in);
    r->lease_until = now + a.value().expires_in;
    extended_.insert_or_assign({c.id, c.fence}, world_.now());
  }

  void on(command::start_job const& c, result<started> const& a, time_point now, probe const&) {
    auto* const r = held(c, a, now);
    if (r == nullptr) return;
    auto& q = queue(c.queue);
    auto const* const other = q.runner(r->unique_key, c.id, now);
    if (a.value().outcome == start_outcome::blocked) {
      world_.reach(rare_state::run_lock_blocked);
      expect(other != nullptr, "R2", c.queue, "blocked by a job that does not run");
      auto const* const named = q.find(a.value().other);
      expect(named != nullptr && named->unique_key == r->unique_key && named->started, "R2",
             c.queue, "blocked, and not by the job that was named");
      return;
    }
    if (holds_while_running(r->strategy)) {
      expect(other == nullptr || other->was_over, "R2", c.queue, "two jobs of one unique key run");
    }
    r->started = true;
    if (r->strategy != unique_strategy::until_executed) r->kept_key = false;
  }

  void on(command::complete_jobs const& c, result<command::complete_jobs::result> const& a,
          time_point now, probe const&) {
    if (a.has_error()) return;
    auto& q = queue(c.queue);
    for (std::size_t i = 0; i != std::min(a.value().size(), c.jobs.size()); ++i) {
      auto* const r = q.find(c.jobs[i].id);
      bool const live = r != nullptr && r->live(now) && r->fence == c.jobs[i].fence;
      if (a.value()[i] == complete_outcome::lease_lost) {
        world_.reach(rare_state::completion_too_late);
        expect(!live || r->was_over, "R5", c.queue, "a live lease was called lost");
        continue;
      }
      bool const again =
          r != nullptr && r->state == job_state::completed && r->fence == c.jobs[i].fence;
      expect(live || again, "R5", c.queue, "completed under a lease that was over");
      if (r != nullptr && !again) end(q, *r, job_state::completed, now);
    }
  }

  void on(command::relay_job const& c, result<relayed> const& a, time_point now,
          probe const& look) {
    auto& q = queue(c.queue);
    auto* r = q.find(c.id);
    if (c.fence != 0) {
      r = held(c, a, now);
      if (r == nullptr) return;
    } else if (a.has_error() || a.value().outcome != relay_outcome::relayed) {
      return;
    }
    auto const& jobs = a.value().jobs;
    expect(r != nullptr && !is_terminal(r->state), "R4", c.queue, "relayed a job that has ended");
    expect(jobs.size() == c.jobs.size() + c.next.size(), "R4", c.queue, "an outcome for each job");
    if (r == nullptr || jobs.size() != c.jobs.size() + c.next.size()) return;
    world_.reach(rare_state::job_relayed);
    auto const middle = jobs.begin() + static_cast<std::ptrdiff_t>(c.jobs.size());
    if (!c.jobs.empty()) {
      on(command::enqueue_jobs{c.to, c.jobs}, command::enqueue_jobs::result{jobs.begin(), middle},
         now, look);
    }
    end(q, *r, job_state::completed, now);
    on(command::enqueue_jobs{c.queue, c.next}, command::enqueue_jobs::result{middle, jobs.end()},
       now, look);
  }

  void on(command::requeue_job const& c, result<requeue_outcome> const& a, time_point now,
          probe const&) {
    auto* const r = held(c, a, now);
    if (r == nullptr) return;
    bool const spent = r->attempts >= r->max_attempts;
    expect(spent == (a.value() == requeue_outcome::dead_lettered), "R4", c.queue,
           "requeued with its attempts spent, or dead with attempts left");
    if (a.value() == requeue_outcome::dead_lettered) {
      world_.reach(rare_state::dead_by_failures);
      return end(queue(c.queue), *r, job_state::dead, now);
    }
    queue(c.queue).wait(*r, now + c.delay);
  }

  void on(command::snooze_job const& c, result<hint> const& a, time_point now, probe const&) {
    auto* const r = held(c, a, now);
    if (r == nullptr) return;
    if (r->attempts != 0) --r->attempts;
    queue(c.queue).wait(*r, now + c.delay);
  }

  void on(command::return_job const& c, result<hint> const& a, time_point now, probe const&) {
    auto* const r = held(c, a, now);
    if (r == nullptr) return;
    world_.reach(rare_state::job_returned);
    if (r->attempts != 0) --r->attempts;
    queue(c.queue).wait(*r, r->vesting);
  }

  void on(command::bury_job const& c, result<hint> const& a, time_point now, probe const&) {
    auto* const r = held(c, a, now);
    if (r == nullptr) return;
    world_.reach(rare_state::dead_by_giving_up);
    end(queue(c.queue), *r, job_state::dead, now);
  }

  void on(command::cancel_job const& c, result<cancel_outcome> const& a, time_point now,
          probe const&) {
    if (a.has_error()) return;
    auto& q = queue(c.queue);
    auto* const r = q.find(c.id);
    if (a.value() != cancel_outcome::cancelled || r == nullptr) return;
    bool const running = r->live(now);
    expect(!running || c.running, "R4", c.queue, "a running job was cancelled unasked");
    expect(!is_terminal(r->state) || r->state == job_state::cancelled, "R4", c.queue,
           "an ended job was cancelled");
    if (is_terminal(r->state)) return;
    world_.reach(running ? rare_state::running_cancelled : rare_state::job_cancelled);
    end(q, *r, job_state::cancelled, now);
  }

  void on(command::replay_dead_letter const& c, result<replayed> const& a, time_point now,
          probe const& look) {
    if (a.has_error()) return;
    auto& q = queue(c.queue);
    auto* const r = q.find(c.id);
    if (a.value().outcome == replay_outcome::conflict) {
      world_.reach(rare_state::replay_conflict);
      expect(r == nullptr || q.possesses(r->unique_key, a.value().other, now), "R2", c.queue,
             "not replayed for a job that does not have its key");
    }
    if (a.value().outcome != replay_outcome::replayed) return;
    expect(r != nullptr && r->state == job_state::dead, "R4", c.queue,
           "replayed what was no dead letter");
    if (r == nullptr) return;
    world_.reach(rare_state::dead_replayed);
    if (holds_while_waiting(r->strategy)) find_displaced(q, r->unique_key, c.id, now, look);
    expect(!holds_while_waiting(r->strategy) || !q.has_keeper(r->unique_key, c.id), "R2", c.queue,
           "a dead letter was replayed although its key is taken");
    --q.dead;
    ++q.waiting;
    r->state = job_state::pending;
    r->attempts = 0;
    r->count_from(now);
    q.wait(*r, now + c.delay);
  }

  void on(command::purge_job const& c, result<bool> const& a, time_point, probe const&) {
    if (a.has_error() || !a.value()) return;
    auto& q = queue(c.queue);
    auto* const r = q.find(c.id);
    expect(r != nullptr && is_terminal(r->state), "R4", c.queue, "purged what had not ended");
    if (r == nullptr) return;
    world_.reach(rare_state::job_purged);
    --q.ended(r->state);
    ++q.purged;
    q.records.erase(c.id);
    q.forgotten.insert(c.id);
  }

  void on(command::gc_stale_pointers const&, result<std::uint32_t> const& a, time_point,
          probe const&) {
    if (a.has_value() && a.value() != 0) world_.reach(rare_state::pointer_collected);
  }
  void on(command::pause_queue const& c, result<hint> const& a, time_point, probe const&) {
    if (a.has_value()) queue(c.queue).paused = true;
  }
  void on(command::resume_queue const& c, result<hint> const& a, time_point, probe const&) {
    if (a.has_error()) return;
    queue(c.queue).paused = false;
    queue(c.queue).snoozed_until = time_point::min();
  }
  void on(command::snooze_queue const& c, result<hint> const& a, time_point now, probe const&) {
    if (a.has_error()) return;
    auto& until = queue(c.queue).snoozed_until;
    until = c.at_least ? std::max(until, now + c.delay) : now + c.delay;
  }

  /// The conservation law, and what the answers say, against one snapshot of the store.
  void compare(std::string_view name, queue_stats const& s) {
    auto& q = queue(name);
    expect(s.enqueued == s.pending + s.leased + s.completed + s.dead + s.cancelled + s.purged, "R4",
           name, "enqueued = pending + leased + completed + dead + cancelled + purged");
    auto const agree = [&](std::uint64_t store, std::uint64_t answers, std::string_view what) {
      if (store == answers) return;
      expect(false, "R4", name,
             std::to_string(store) + " " + std::string{what} + ", by the answers " +
                 std::to_string(answers));
    };
    agree(s.enqueued, q.enqueued, "enqueued");
    agree(s.pending + s.leased, q.waiting, "pending or leased");
    agree(s.completed, q.completed, "completed");
    agree(s.dead, q.dead, "dead");
    agree(s.cancelled, q.cancelled, "cancelled");
    agree(s.purged, q.purged, "purged");
  }

  /// A queue with a visible job is found by the scan, unless it is held.
  void compare_scan(visible_queues const& found, time_point now) {
    for (auto const& [name, q] : queues_) {
      auto const* const id = q.visible(now);
      if (id == nullptr || q.paused || now < q.snoozed_until) continue;
      bool const listed =
          std::find(found.queues.begin(), found.queues.end(), name) != found.queues.end();
      world_.expect(listed, "R4", [&, of = name] {
        return of + ": its pointer is later than its visible job " + to_text(*id);
      });
    }
  }

  /// To be called with each step's time: what it finds over may stay over.
  void pass(time_point now) {
    for (auto& [name, q] : queues_) q.pass(now);
  }

  [[nodiscard]] queue_book const* find(std::string_view name) const {
    auto const it = queues_.find(name);
    return it == queues_.end() ? nullptr : &it->second;
  }
  [[nodiscard]] auto const& queues() const noexcept { return queues_; }

  /// When, in the world's time, the store last gave or extended this lease.
  [[nodiscard]] duration extended_at(job_id id, std::uint64_t fence) const {
    auto const it = extended_.find({id, fence});
    return it == extended_.end() ? duration::zero() : it->second;
  }

 private:
  queue_book& queue(std::string_view name) {
    auto it = queues_.find(name);
    if (it == queues_.end()) it = queues_.emplace(std::string{name}, queue_book{}).first;
    return it->second;
  }

  void add(queue_book& q, new_job const& j, time_point now, probe const& look) {
    if (auto* const old = q.find(j.id)) {
      if (!is_terminal(old->state) || old->state == job_state::dead) return;  // asked again
      // Once its record is gone, this is another enqueue.
      auto const found = look.find(name_of(q), j.id);
      if (old->kept_until > now && found && is_terminal(found->state)) return;
      q.records.erase(j.id);
    }
    if (holds_while_waiting(j.strategy)) {
      find_displaced(q, j.unique_key, j.id, now, look);
      expect(!q.has_keeper(j.unique_key, j.id), "R2", name_of(q),
             "two jobs that have not ended share a key");
    }
    if (j.strategy == unique_strategy::until_expired) {
      if (q.key_expired(j.unique_key, now)) world_.reach(rare_state::key_expired);
      expect(!q.key_lives(j.unique_key, now), "R2", name_of(q),
             "a key was given out before it expired");
    }
    q.add(j, now);
  }

  template <class C>
  bool claim(queue_book& q, leased_job const& j, C const& c, time_point now, bool early = false) {
    auto const& [holder, name] = std::tie(c.holder, c.queue);
    auto* const r = q.find(j.id);
    expect(r != nullptr && !is_terminal(r->state), "R4", name, "claimed a job that is not waiting");
    if (r == nullptr || is_terminal(r->state)) return false;
    world_.mix(j.fence);
    if (r->fence == j.fence && r->holder == holder) {
      expect(j.attempt == r->attempts, "R4", name, "a repeated claim counted another attempt");
      return false;
    }
    expect(!q.paused && now >= q.snoozed_until, "R4", name, "a held queue gave a job out");
    expect(!r->live(now) || r->was_over, "R5", name, "a job has two holders");
    // One that was claimed before has vested before, whatever the clock has done since.
    expect(early || r->state == job_state::leased || now >= r->vesting, "R4", name,
           "claimed before its vesting time");
    expect(j.attempt == r->attempts + 1, "R4", name, "the attempt was not counted when claimed");
    expect(j.attempt <= r->max_attempts, "R4", name, "more attempts than it may have");
    expect(j.fence > q.last_fence, "R5", name, "a fence that does not grow");
    lasts(c, j.expires_in);
    q.last_fence = std::max(q.last_fence, j.fence);
    r->vesting = r->visible_at();  // giving it back restores its place
    r->attempts = j.attempt;
    r->fence = j.fence;
    r->holder = holder;
    r->lease_until = now + j.expires_in;
    extended_.insert_or_assign({j.id, j.fence}, world_.now());
    r->state = job_state::leased;
    r->was_over = false;
    r->started = false;
    return true;
  }

  template <class C>
  void lasts(C const& c, duration expires_in) {
    expect(lasts_as_asked(expires_in, c.lease), "R5", c.queue,
           "a lease that is not as long as it was asked for");
  }

  /// What this command names has a live lease, and the store agrees; null where both do not.
  template <class C, class R>
  job_record* held(C const& c, result<R> const& a, time_point now) {
    auto* const r = queue(c.queue).find(c.id);
    bool const live = r != nullptr && r->live(now) && r->fence == c.fence;
    if (a.has_error()) {
      expect(!live || r->was_over || a.error() != errc::lease_lost, "R5", c.queue,
             "a live lease was called lost");
      return nullptr;
    }
    expect(live, "R5", c.queue, "a lease that was over was obeyed");
    return live ? r : nullptr;
  }

  void end(queue_book& q, job_record& r, job_state state, time_point now) {
    expect(!is_terminal(r.state), "R4", name_of(q), "a job ended twice");
    q.end(r, state, now);
  }

  /// Jobs that a dequeue ended: their attempts were spent by crashes, or their deadline missed.
  void find_buried(queue_book& q, std::uint32_t n, time_point now, probe const& look) {
    std::uint32_t found = 0;
    for (auto& [id, r] : q.records) found += find_buried(q, id, r, now, look) ? 1 : 0;
    expect(found == n, "R4", name_of(q), "not as many dead letters as the dequeue said");
  }
  /// Jobs of this key that gave it up to another one because nobody could claim them any more.
  void find_displaced(queue_book& q, std::string_view key, job_id by, time_point now,
                      probe const& look) {
    for (auto& [id, r] : q.records) {
      if (id == by || r.unique_key != key || r.live(now)) continue;
      find_buried(q, id, r, now, look, false);
    }
  }
  bool find_buried(queue_book& q, job_id id, job_record& r, time_point now, probe const& look,
                   bool visible_only = true) {
    if (is_terminal(r.state) || (visible_only && now < r.visible_at())) return false;
    auto const kept = look.find(name_of(q), id);
    if (!kept || kept->state != job_state::dead) return false;
    bool const spent = r.attempts >= r.max_attempts;
    bool const missed = r.deadline && *r.deadline < now;
    expect(spent || missed, "R4", name_of(q), "dead-lettered with attempts left and in time");
    world_.reach(spent ? rare_state::dead_by_crashes : rare_state::dead_by_deadline);
    end(q, r, job_state::dead, now);
    return true;
  }

  void check_best_first(queue_book& q, dequeued const& d, time_point now) {
    // Nothing that is left may be better than the last that was given out.
    auto const order = [](job_id id, job_record const& r, time_point vesting) {
      return std::tuple{r.priority, vesting, id};
    };
    auto const& id_of_last = d.jobs.back().id;
    auto const* const last = q.find(id_of_last);
    if (last == nullptr) return;
    for (auto const& [id, r] : q.records) {
      if (is_terminal(r.state) || now < r.visible_at()) continue;
      expect(order(id, r, r.visible_at()) > order(id_of_last, *last, last->vesting), "R4",
             name_of(q), "a better visible job was left");
    }
  }

  [[nodiscard]] std::string_view name_of(queue_book const& q) const {
    for (auto const& [name, book] : queues_) {
      if (&book == &q) return name;
    }
    return {};
  }

  void expect(bool kept, std::string_view promise, std::string_view queue, std::string_view what) {
    world_.expect(kept, promise, [&] { return std::string{queue}.append(": ").append(what); });
  }

  world& world_;
  std::map<std::string, queue_book, std::less<>> queues_;
  std::map<std::pair<job_id, std::uint64_t>, duration> extended_;
};

}  // namespace weir::testing::simulation

#endif
