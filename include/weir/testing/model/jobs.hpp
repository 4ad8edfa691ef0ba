// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_MODEL_JOBS_HPP
#define WEIR_TESTING_MODEL_JOBS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace weir::testing {

/// What a job store has to answer to valid commands, said in the plainest way: one list of every
/// job that ever was, read from end to end for each question. It shares no code with the rule
/// (F66). Times must not run backwards.
class job_model {
 public:
  struct entry {
    std::string queue;
    job_id id{};
    std::string kind, payload, key, holder, headers, memo, progress, checkpoint, result, reason;
    std::uint8_t priority = 0;
    std::uint32_t attempts = 0, max_attempts = 0, snoozes = 0;
    time_point enqueued, vesting, before_claim, counted_from, kept_until,
        key_until = time_point::max();
    duration deadline{}, retention{};
    unique_strategy strategy{};
    conflict_policy policy{};
    job_state ended = job_state::pending;  // pending: it has not
    bool claimed = false;                  // a lease was given, over or not
    bool running = false;                  // start_job was called under it
    bool has_key = false;
    bool purged = false;
    bool forgotten = false;  // purged, or its retention is over and its id was used again
    std::uint64_t fence = 0;
    std::uint64_t death = 0;
  };
  struct queue_entry {
    std::optional<time_point> pointer;
    time_point snoozed_until = time_point::min();
    bool paused = false;
    std::string lease_holder;
    std::uint64_t lease_fence = 0;
    time_point lease_until = time_point::min();
  };

  std::vector<entry> jobs;
  std::map<std::string, queue_entry, std::less<>> queues;
  time_point now;               ///< of the last command
  std::uint64_t displaced = 0;  ///< jobs that could not run and gave their keys to others

  template <class C>
  result<typename C::result> execute(C const& c, time_point at) {
    now = at;
    return apply(c);
  }

  // ------------------------------------------------------------------------------------ questions

  job_state state(entry const& e) const {
    if (e.ended != job_state::pending) return e.ended;
    return e.claimed && now < e.vesting ? job_state::leased : job_state::pending;
  }
  bool stands(entry const& e) const {
    bool const kept = e.ended == job_state::completed || e.ended == job_state::cancelled;
    return !e.forgotten && (!kept || now < e.kept_until);
  }
  entry* find(std::string_view q, job_id id) {
    for (auto& e : jobs) {
      if (e.queue == q && e.id == id && stands(e)) return &e;
    }
    return nullptr;
  }
  entry* with_lease(std::string_view q, job_id id, std::uint64_t fence) {
    auto* e = find(q, id);
    return e != nullptr && state(*e) == job_state::leased && e->fence == fence ? e : nullptr;
  }
  std::optional<time_point> head(std::string_view q) const {
    std::optional<time_point> least;
    for (auto const& e : jobs) {
      if (e.queue != q || is_terminal(e.ended)) continue;
      least = std::min(least.value_or(e.vesting), e.vesting);
    }
    return least;
  }
  std::vector<entry*> visible(std::string_view q) {
    std::vector<entry*> out;
    for (auto& e : jobs) {
      if (e.queue == q && !is_terminal(e.ended) && e.vesting <= now) out.push_back(&e);
    }
    std::sort(out.begin(), out.end(), [](entry const* a, entry const* b) {
      return std::tie(a->priority, a->vesting, a->id) < std::tie(b->priority, b->vesting, b->id);
    });
    return out;
  }
  bool held(std::string_view q) const {
    auto const it = queues.find(q);
    return it != queues.end() && (it->second.paused || now < it->second.snoozed_until);
  }
  /// The number of the holder's last dequeue, if some of its leases live; otherwise 0.
  std::uint64_t last_dequeue(std::string const& q, std::string const& holder) {
    auto const& [sequence, leases] = latest_[{q, holder}];
    for (auto const& [id, fence] : leases) {
      if (with_lease(q, id, fence) != nullptr) return sequence;
    }
    return 0;
  }

 private:
  template <class T>
  using answer = weir::result<T>;

  entry* possessor(std::string_view q, std::string_view key) {
    for (auto& e : jobs) {
      if (e.queue == q && e.key == key && e.has_key && now < e.key_until) return &e;
    }
    return nullptr;
  }
  static bool keyed_waiting(unique_strategy s) {
    return s != unique_strategy::none && s != unique_strategy::while_executing;
  }
  static bool keyed_until_start(unique_strategy s) {
    return s == unique_strategy::until_executing || s == unique_strategy::until_and_while_executing;
  }
  std::optional<duration> head_in(std::string_view q) const {
    auto const h = head(q);
    return h ? std::optional<duration>{*h - now} : std::nullopt;
  }
  static std::optional<time_point> deadline(entry const& e) {
    if (e.deadline == duration::zero()) return std::nullopt;
    return e.counted_from + e.deadline;
  }
  job describe(entry const& e) const {
    job j;
    j.id = e.id;
    j.kind = e.kind;
    j.payload = e.payload;
    j.priority = e.priority;
    j.state = state(e);
    j.attempts = e.attempts;
    j.max_attempts = e.max_attempts;
    j.snoozes = e.snoozes;
    if (!is_terminal(j.state)) j.vests_in = e.vesting - now;
    j.age = now - e.enqueued;
    if (auto const d = deadline(e)) j.deadline_in = *d - now;
    j.strategy = e.strategy;
    j.on_conflict = e.policy;
    j.unique_key = e.key;
    j.headers = e.headers;
    j.memo = e.memo;
    j.progress = e.progress;
    j.checkpoint = e.checkpoint;
    j.result = e.result;
    j.reason = e.reason;
    if (j.state == job_state::leased) {
      j.holder = e.holder;
      j.fence = e.fence;
    }
    return j;
  }
  leased_job describe_lease(entry const& e) const {
    auto const j = describe(e);
    return {e.id,         e.fence,        e.vesting - now, j.kind,      j.payload,     j.priority,
            j.attempts,   j.max_attempts, j.snoozes,       j.age,       j.deadline_in, j.strategy,
            j.unique_key, j.headers,      j.memo,          j.checkpoint};
  }

  // ------------------------------------------------------------------------------------ changes

  void vests(std::string_view q, time_point vesting) {
    auto& p = queues.find(q)->second.pointer;
    p = std::min(p.value_or(vesting), vesting);
  }
  /// A text that is too long ends before the character that does not fit whole.
  static std::string cut(std::string_view reason) {
    auto n = std::min(reason.size(), limits::reason_size);
    auto const inside = [&](std::size_t i) {
      return i < reason.size() && (static_cast<unsigned char>(reason[i]) & 0xC0U) == 0x80U;
    };
    for (int back = 0; back < 3 && inside(n); ++back) --n;
    return std::string{reason.substr(0, inside(n) ? limits::reason_size : n)};
  }
  /// Takes room in an answer for a job's texts; false: it ends before that one.
  static bool fits(std::size_t& room, entry const& e, bool leased) {
    auto n = e.kind.size() + e.payload.size() + e.key.size() + e.headers.size() + e.memo.size() +
             e.checkpoint.size();
    if (!leased) n += e.progress.size() + e.result.size() + e.reason.size();
    if (n > room) return false;
    room -= n;
    return true;
  }
  static void unclaim(entry& e) { e.claimed = e.running = false; }
  void end(entry& e, job_state how) {
    unclaim(e);
    e.ended = how;
    if (e.strategy != unique_strategy::until_expired) e.has_key = false;
    e.kept_until = now + e.retention;
    if (how == job_state::dead) e.death = ++deaths_;
  }
  void wait_until(entry& e, time_point vesting) {
    if (keyed_until_start(e.strategy) && possessor(e.queue, e.key) == nullptr) e.has_key = true;
    unclaim(e);
    e.vesting = vesting;
    vests(e.queue, vesting);
  }
  bool can_run(entry const& e) const {
    return e.attempts < e.max_attempts && now <= deadline(e).value_or(now);
  }
  bool bury_if_it_must(entry& e) {
    if (can_run(e)) return false;
    e.reason = e.attempts >= e.max_attempts
                   ? "its attempts are spent: the last holder let its lease end"
                   : "its deadline was missed";
    end(e, job_state::dead);
    return true;
  }
  /// The possessor of a key. One that waits and can never run is buried for it, and nobody is.
  entry* contender(std::string_view q, std::string_view key) {
    auto* p = possessor(q, key);
    if (p == nullptr || p->strategy == unique_strategy::until_expired ||
        state(*p) != job_state::pending || !bury_if_it_must(*p)) {
      return p;
    }
    ++displaced;
    return nullptr;
  }
  void claim(entry& e, std::string_view holder, duration lease) {
    unclaim(e);
    e.claimed = true;
    e.holder = holder;
    e.fence = next_fence();
    ++e.attempts;
    e.before_claim = e.vesting;
    e.vesting = now + lease;
  }
  std::uint64_t next_fence() {
    auto const micros =
        std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch()).count();
    return last_fence_ = std::max(last_fence_ + 1, static_cast<std::uint64_t>(micros));
  }

  // ------------------------------------------------------------------------------------ commands

  enqueued add(std::string_view q, new_job const& n) {
    if (find(q, n.id) != nullptr) return {};
    bool const takes_key = keyed_waiting(n.strategy);
    enqueued out;
    if (auto* const p = takes_key ? contender(q, n.unique_key) : nullptr) {
      out.other = p->id;
      bool const gives_way = stands(*p) && state(*p) == job_state::pending && can_run(*p);
      if (gives_way && n.on_conflict == conflict_policy::reschedule) {
        out.outcome = enqueue_outcome::rescheduled;
        unclaim(*p);
        p->vesting = now + n.delay;
        p->priority = n.priority;
        vests(q, p->vesting);
        return out;
      }
      if (!gives_way || n.on_conflict != conflict_policy::replace) {
        out.outcome = enqueue_outcome::duplicate;
        return out;
      }
      out.outcome = enqueue_outcome::replaced;
      end(*p, job_state::cancelled);
      p->has_key = false;
    }
    for (auto& e : jobs) {
      if (e.queue != q) continue;
      if (e.id == n.id) e.forgotten = true;
      if (takes_key && e.key == n.unique_key) e.has_key = false;  // its time is over
    }
    entry e;
    e.queue = q;
    e.id = n.id;
    e.kind = n.kind;
    e.payload = n.payload;
    e.headers = n.headers;
    e.key = n.unique_key;
    e.priority = n.priority;
    e.max_attempts = n.max_attempts;
    e.enqueued = e.counted_from = now;
    e.vesting = now + n.delay;
    e.deadline = n.deadline;
    e.retention = n.retention;
    e.strategy = n.strategy;
    e.policy = n.on_conflict;
    e.has_key = takes_key;
    if (n.strategy == unique_strategy::until_expired) e.key_until = now + n.unique_ttl;
    vests(q, e.vesting);
    jobs.push_back(std::move(e));
    return out;
  }

  answer<command::enqueue_jobs::result> apply(command::enqueue_jobs const& c) {
    queues.try_emplace(std::string{c.queue});
    command::enqueue_jobs::result out;
    for (auto const& n : c.jobs) out.push_back(add(c.queue, n));
    return out;
  }
  answer<std::vector<job>> apply(command::peek_jobs const& c) {
    std::vector<job> out;
    auto room = limits::answer_bytes;
    for (auto const* e : visible(c.queue)) {
      if (out.size() == c.limit || !fits(room, *e, false)) break;
      out.push_back(describe(*e));
    }
    return out;
  }
  answer<dequeued> apply(command::dequeue_jobs const& c) {
    dequeued out;
    auto const q = queues.find(c.queue);
    if (q == queues.end()) return out;
    out.held = held(c.queue);
    auto& last = latest_[{std::string{c.queue}, std::string{c.holder}}];
    if (c.sequence != 0 && last.first == c.sequence) {
      for (auto const& [id, fence] : last.second) {
        if (auto const* e = with_lease(c.queue, id, fence)) out.jobs.push_back(describe_lease(*e));
      }
    }
    if (c.sequence != 0 && out.jobs.empty()) last = {};
    if (out.jobs.empty() && !out.held) {
      auto room = limits::answer_bytes;
      for (auto* e : visible(c.queue)) {
        if (out.jobs.size() == c.limit || out.dead_lettered == 100) break;
        if (bury_if_it_must(*e)) {
          ++out.dead_lettered;
          continue;
        }
        if (!fits(room, *e, true)) break;
        claim(*e, c.holder, c.lease);
        out.jobs.push_back(describe_lease(*e));
        if (c.sequence != 0) {
          last.first = c.sequence;
          last.second.emplace_back(e->id, e->fence);
        }
      }
    }
    out.more = !out.held && !visible(c.queue).empty();
    out.next_in = head_in(c.queue);
    q->second.pointer = head(c.queue);
    return out;
  }
  answer<std::optional<leased_job>> apply(command::obtain_lease const& c) {
    std::optional<leased_job> none;
    auto* e = find(c.queue, c.id);
    if (e == nullptr || is_terminal(e->ended)) return none;
    if (state(*e) == job_state::leased) {
      if (e->holder == c.holder) return std::optional{describe_lease(*e)};
      return none;
    }
    bool const visible = now >= e->vesting;
    if (held(c.queue) || !(visible || c.early) || bury_if_it_must(*e)) return none;
    claim(*e, c.holder, c.lease);
    if (!visible) vests(c.queue, e->vesting);
    return std::optional{describe_lease(*e)};
  }
  answer<lease_renewal> apply(command::extend_lease const& c) {
    auto* e = with_lease(c.queue, c.id, c.fence);
    if (e == nullptr) return errc::lease_lost;
    if (!c.progress.empty()) e->progress = c.progress;
    if (!c.checkpoint.empty()) e->checkpoint = c.checkpoint;
    e->vesting = now + c.lease;
    vests(c.queue, e->vesting);
    return lease_renewal{c.lease};
  }
  answer<started> apply(command::start_job const& c) {
    auto* e = with_lease(c.queue, c.id, c.fence);
    if (e == nullptr) return errc::lease_lost;
    bool const locks = e->strategy == unique_strategy::while_executing ||
                       e->strategy == unique_strategy::until_and_while_executing;
    for (auto const& o : jobs) {
      if (locks && &o != e && o.queue == c.queue && o.key == e->key && o.running &&
          state(o) == job_state::leased) {
        return started{start_outcome::blocked, o.vesting - now, o.id};
      }
    }
    e->running = locks;
    if (keyed_until_start(e->strategy)) e->has_key = false;
    return started{};
  }
  answer<command::complete_jobs::result> apply(command::complete_jobs const& c) {
    command::complete_jobs::result out;
    for (auto const& f : c.jobs) {
      if (auto* e = with_lease(c.queue, f.id, f.fence)) {
        e->result = f.result;
        end(*e, job_state::completed);
        out.push_back(complete_outcome::completed);
        continue;
      }
      auto const* e = find(c.queue, f.id);
      bool const before =
          e != nullptr && e->ended == job_state::completed && f.fence != 0 && e->fence == f.fence;
      out.push_back(before ? complete_outcome::completed : complete_outcome::lease_lost);
    }
    return out;
  }
  answer<relayed> apply(command::relay_job const& c) {
    bool const leased = c.fence != 0;
    auto const* e = leased ? with_lease(c.queue, c.id, c.fence) : find(c.queue, c.id);
    if (e == nullptr && leased) return errc::lease_lost;
    if (e == nullptr || is_terminal(e->ended)) return relayed{relay_outcome::not_found, {}};
    if (!leased && e->payload != c.expected) return relayed{relay_outcome::changed, {}};
    relayed out;
    if (!c.jobs.empty()) queues.try_emplace(std::string{c.to});
    for (auto const& n : c.jobs) out.jobs.push_back(add(c.to, n));
    auto& ends = *find(c.queue, c.id);
    ends.result = c.stored;
    end(ends, job_state::completed);
    for (auto const& n : c.next) out.jobs.push_back(add(c.queue, n));
    return out;
  }
  answer<requeue_outcome> apply(command::requeue_job const& c) {
    auto* e = with_lease(c.queue, c.id, c.fence);
    if (e == nullptr) return errc::lease_lost;
    e->reason = cut(c.reason);
    if (e->attempts >= e->max_attempts) {
      end(*e, job_state::dead);
      return requeue_outcome::dead_lettered;
    }
    wait_until(*e, now + c.delay);
    return requeue_outcome::requeued;
  }
  answer<hint> apply(command::snooze_job const& c) {
    auto* e = with_lease(c.queue, c.id, c.fence);
    if (e == nullptr) return errc::lease_lost;
    e->memo = c.memo;
    --e->attempts;
    ++e->snoozes;
    wait_until(*e, now + c.delay);
    return hint{};
  }
  answer<hint> apply(command::return_job const& c) {
    auto* e = with_lease(c.queue, c.id, c.fence);
    if (e == nullptr) return errc::lease_lost;
    --e->attempts;
    wait_until(*e, e->before_claim);
    return hint{};
  }
  answer<hint> apply(command::bury_job const& c) {
    auto* e = with_lease(c.queue, c.id, c.fence);
    if (e == nullptr) return errc::lease_lost;
    e->reason = cut(c.reason);
    end(*e, job_state::dead);
    return hint{};
  }
  answer<cancel_outcome> apply(command::cancel_job const& c) {
    auto* e = find(c.queue, c.id);
    if (e == nullptr) return cancel_outcome::not_found;
    if (e->ended == job_state::cancelled) return cancel_outcome::cancelled;
    if (is_terminal(e->ended)) return cancel_outcome::ended;
    if (state(*e) == job_state::leased && !c.running) return cancel_outcome::running;
    end(*e, job_state::cancelled);
    return cancel_outcome::cancelled;
  }
  answer<std::optional<job>> apply(command::find_job const& c) {
    auto const* e = find(c.queue, c.id);
    return e == nullptr ? std::optional<job>{} : std::optional{describe(*e)};
  }
  answer<std::optional<duration>> apply(command::min_vesting_time const& c) {
    return head_in(c.queue);
  }
  answer<queue_stats> apply(command::read_queue_stats const& c) {
    queue_stats s;
    for (auto const& e : jobs) {
      if (e.queue != c.queue) continue;
      ++s.enqueued;
      std::uint64_t* const by_state[] = {&s.pending, &s.leased, &s.completed, &s.dead,
                                         &s.cancelled};
      ++(e.purged ? s.purged : *by_state[static_cast<std::size_t>(state(e))]);
    }
    auto const q = queues.find(c.queue);
    s.paused = q != queues.end() && q->second.paused;
    s.next_in = head_in(c.queue);
    return s;
  }
  /// When each queue is due to a scan, in order.
  std::vector<std::pair<time_point, std::string>> scanned() const {
    std::vector<std::pair<time_point, std::string>> due;
    for (auto const& [name, q] : queues) {
      if (q.pointer && !q.paused) due.emplace_back(std::max(*q.pointer, q.snoozed_until), name);
    }
    std::sort(due.begin(), due.end());
    return due;
  }
  /// Pointers are as late as they may be: a store may list more than this, unless that is held.
  answer<visible_queues> apply(command::scan_visible_queues const& c) {
    visible_queues out;
    for (auto const& [at, name] : scanned()) {
      if (name.starts_with("weir.schedules/") != c.schedules) continue;
      if (at > now || out.queues.size() == c.limit) {
        out.next_in = at - now;
        break;
      }
      out.queues.push_back(name);
    }
    return out;
  }
  answer<std::optional<duration>> apply(command::update_queue_pointer const& c) {
    if (auto const q = queues.find(c.queue); q != queues.end()) q->second.pointer = head(c.queue);
    return head_in(c.queue);
  }
  answer<std::uint32_t> apply(command::gc_stale_pointers const& c) {
    std::uint32_t n = 0;
    for (auto const& [at, name] : scanned()) {
      if (n == c.limit || at + c.grace >= now || head(name)) continue;
      queues.find(name)->second.pointer.reset();
      ++n;
    }
    return n;
  }
  answer<queue_page> apply(command::list_queues const&) const {
    queue_page out;
    for (auto const& [name, q] : queues) out.queues.push_back(name);
    return out;
  }
  answer<hint> apply(command::snooze_queue const& c) {
    auto const known = queues.find(c.queue);
    bool const lasts_longer = known != queues.end() && known->second.snoozed_until > now + c.delay;
    if (c.at_least && (lasts_longer || c.delay == duration::zero())) return hint{};
    if (c.delay != duration::zero()) {
      queues[std::string{c.queue}].snoozed_until = now + c.delay;
    } else if (known != queues.end()) {
      known->second.snoozed_until = time_point::min();
    }
    return hint{};
  }
  answer<hint> apply(command::pause_queue const& c) {
    queues[std::string{c.queue}].paused = true;
    return hint{};
  }
  answer<hint> apply(command::resume_queue const& c) {
    if (auto const q = queues.find(c.queue); q != queues.end()) {
      q->second.paused = false;
      q->second.snoozed_until = time_point::min();
    }
    return hint{};
  }
  answer<lock_grant> apply(command::obtain_queue_lease const& c) {
    auto& q = queues[std::string{c.queue}];
    if (now < q.lease_until) {
      bool const own = q.lease_holder == c.holder;
      return lock_grant{own, own ? q.lease_fence : 0, q.lease_until - now,
                        own ? std::string{} : q.lease_holder};
    }
    q.lease_holder = c.holder;
    q.lease_fence = next_fence();
    q.lease_until = now + c.lease;
    return lock_grant{true, q.lease_fence, c.lease, {}};
  }
  answer<lease_release> apply(command::release_queue_lease const& c) {
    auto const it = queues.find(c.queue);
    if (it == queues.end()) return lease_release{};
    auto& q = it->second;
    bool const own = now < q.lease_until && q.lease_holder == c.holder &&
                     (c.fence == 0 || c.fence == q.lease_fence);
    if (own) q.lease_until = time_point::min();
    return lease_release{own, false};
  }
  answer<replayed> apply(command::replay_dead_letter const& c) {
    auto* e = find(c.queue, c.id);
    if (e == nullptr || e->ended != job_state::dead) return replayed{replay_outcome::not_found};
    bool const takes_key = keyed_waiting(e->strategy);
    auto const* const p = takes_key ? contender(c.queue, e->key) : nullptr;
    if (p != nullptr && p != e) return replayed{replay_outcome::conflict, p->id};
    e->ended = job_state::pending;
    e->attempts = e->snoozes = 0;
    e->counted_from = now;
    e->vesting = now + c.delay;
    if (takes_key && e->strategy != unique_strategy::until_expired) e->has_key = true;
    vests(c.queue, e->vesting);
    return replayed{};
  }
  answer<bool> apply(command::purge_job const& c) {
    auto* e = find(c.queue, c.id);
    if (e == nullptr || !is_terminal(e->ended)) return false;
    e->purged = e->forgotten = true;
    return true;
  }
  /// All of them, by id: a store's pages are compared together, and it has an order of its own.
  answer<job_page> apply(command::list_jobs const& c) const {
    job_page out;
    for (auto const& e : jobs) {
      if (e.queue == c.queue && stands(e) && state(e) == c.state) out.jobs.push_back(describe(e));
    }
    std::ranges::sort(out.jobs, {}, &job::id);
    return out;
  }
  /// All of them: a store's pages are compared together.
  answer<job_page> apply(command::list_dead_letters const& c) const {
    std::vector<entry const*> dead;
    for (auto const& e : jobs) {
      if (e.queue == c.queue && e.ended == job_state::dead && stands(e)) dead.push_back(&e);
    }
    std::sort(dead.begin(), dead.end(),
              [](auto const* a, auto const* b) { return a->death < b->death; });
    job_page out;
    for (auto const* e : dead) out.jobs.push_back(describe(*e));
    return out;
  }

  std::uint64_t last_fence_ = 0;
  std::uint64_t deaths_ = 0;
  std::map<std::pair<std::string, std::string>,
           std::pair<std::uint64_t, std::vector<std::pair<job_id, std::uint64_t>>>>
      latest_;  // dequeues, by queue and holder
};

}  // namespace weir::testing

#endif
