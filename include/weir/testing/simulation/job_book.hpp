// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_JOB_BOOK_HPP
#define WEIR_TESTING_SIMULATION_JOB_BOOK_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing::simulation {

/// What the answers so far say of one job.
struct job_record {
  job_state state = job_state::pending;
  std::string kind;
  std::string unique_key;
  unique_strategy strategy = unique_strategy::none;
  std::uint8_t priority = 0;
  std::uint32_t attempts = 0;
  std::uint32_t max_attempts = 0;
  time_point vesting{};
  duration may_take{};  ///< from its enqueue or replay to its deadline; 0: as long as it likes
  std::optional<time_point> deadline;
  duration retention{};
  time_point kept_until{};  ///< ended well: how long its record stays
  std::string holder;
  std::uint64_t fence = 0;
  time_point lease_until{};
  bool was_over = false;  ///< a step has seen the end of this lease: it may stay over
  bool started = false;
  bool kept_key = false;  ///< has had its key without a break since its enqueue

  [[nodiscard]] bool live(time_point now) const noexcept {
    return state == job_state::leased && now < lease_until;
  }
  /// Its deadline counts from here.
  void count_from(time_point now) noexcept {
    if (may_take != duration::zero()) deadline = now + may_take;
  }
  [[nodiscard]] time_point visible_at() const noexcept {
    return state == job_state::leased ? lease_until : vesting;
  }
};

/// What the answers so far say of one queue.
struct queue_book {
  struct key_hold {
    std::string key;
    job_id id;
    time_point until;
    bool over = false;  ///< a step has seen its end: it may stay over
  };

  struct numbered_dequeue {
    std::uint64_t sequence = 0;
    std::vector<std::pair<job_id, std::uint64_t>> given;
  };

  std::map<job_id, job_record> records;
  std::map<std::string, numbered_dequeue, std::less<>> dequeues;  ///< each holder's latest
  std::vector<key_hold> expiring;  ///< keys that are held until_expired
  std::uint64_t enqueued = 0;
  std::uint64_t waiting = 0;
  std::uint64_t completed = 0;
  std::uint64_t dead = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t purged = 0;
  std::set<job_id> forgotten;  ///< those that were purged
  std::uint64_t last_fence = 0;
  bool paused = false;
  time_point snoozed_until = time_point::min();

  [[nodiscard]] job_record* find(job_id id) {
    auto const it = records.find(id);
    return it == records.end() ? nullptr : &it->second;
  }

  /// The number of a holder's latest dequeue again gives the same leases, and no more, as long as
  /// one of them lives (F54). Is this one such? To be asked before they are claimed.
  [[nodiscard]] bool is_repeat(command::dequeue_jobs const& c, time_point now) {
    auto const it = dequeues.find(c.holder);
    if (c.sequence == 0 || it == dequeues.end() || it->second.sequence != c.sequence) return false;
    auto const& given = it->second.given;
    return std::any_of(given.begin(), given.end(), [&](auto const& lease) {
      auto const* const r = find(lease.first);
      return r != nullptr && r->live(now) && !r->was_over && r->fence == lease.second;
    });
  }
  void remember(command::dequeue_jobs const& c, dequeued const& d) {
    auto& latest = dequeues[std::string{c.holder}];
    latest = {c.sequence, {}};
    for (auto const& j : d.jobs) latest.given.emplace_back(j.id, j.fence);
  }

  /// How many have ended so.
  [[nodiscard]] std::uint64_t& ended(job_state s) noexcept {
    if (s == job_state::completed) return completed;
    return s == job_state::dead ? dead : cancelled;
  }

  void add(new_job const& j, time_point now) {
    job_record r;
    r.kind = j.kind;
    r.unique_key = j.unique_key;
    r.strategy = j.strategy;
    r.priority = j.priority;
    r.max_attempts = j.max_attempts;
    r.vesting = now + j.delay;
    r.retention = j.retention;
    r.kept_key = holds_while_waiting(j.strategy) && j.strategy != unique_strategy::until_expired;
    r.may_take = j.deadline;
    r.count_from(now);
    if (j.strategy == unique_strategy::until_expired) {
      expiring.push_back({r.unique_key, j.id, now + j.unique_ttl, false});
    }
    records.insert_or_assign(j.id, std::move(r));
    ++enqueued;
    ++waiting;
  }

  /// It has not ended, and vests then.
  void wait(job_record& r, time_point vesting) {
    if (is_terminal(r.state)) return;
    r.state = job_state::pending;
    r.vesting = vesting;
    r.fence = 0;
    r.holder.clear();
    r.started = false;
  }

  void end(job_record& r, job_state s, time_point now) {
    r.kept_until = now + r.retention;
    --waiting;
    ++ended(s);
    r.state = s;
    r.started = false;
  }

  /// Is the key this job's to have? One that has ended has it only until_expired.
  [[nodiscard]] bool possesses(std::string_view key, job_id id, time_point now) {
    for (auto const& e : expiring) {
      if (e.id == id && e.key == key && now < e.until) return true;
    }
    auto const* const r = find(id);
    return r != nullptr && r->unique_key == key && !is_terminal(r->state);
  }
  [[nodiscard]] bool key_lives(std::string_view key, time_point now) const {
    return std::any_of(expiring.begin(), expiring.end(),
                       [&](key_hold const& e) { return e.key == key && now < e.until && !e.over; });
  }
  [[nodiscard]] bool key_expired(std::string_view key, time_point now) const {
    return std::any_of(expiring.begin(), expiring.end(),
                       [&](key_hold const& e) { return e.key == key && e.until <= now; });
  }

  /// Is there another job that has not ended and has kept this key since its enqueue?
  [[nodiscard]] bool has_keeper(std::string_view key, job_id but) const {
    return std::any_of(records.begin(), records.end(), [&](auto const& at) {
      auto const& r = at.second;
      return at.first != but && r.kept_key && r.unique_key == key && !is_terminal(r.state);
    });
  }

  /// Another job of the key that runs under it.
  [[nodiscard]] job_record const* runner(std::string_view key, job_id but, time_point now) const {
    for (auto const& [id, r] : records) {
      if (id != but && r.unique_key == key && holds_while_running(r.strategy) && r.started &&
          r.live(now)) {
        return &r;
      }
    }
    return nullptr;
  }

  /// A job that is visible; null: none is.
  [[nodiscard]] job_id const* visible(time_point now) const {
    for (auto const& [id, r] : records) {
      if (!is_terminal(r.state) && r.visible_at() <= now) return &id;
    }
    return nullptr;
  }

  void pass(time_point now) {
    for (auto& [id, r] : records) {
      if (r.state == job_state::leased && r.lease_until <= now) r.was_over = true;
    }
    for (auto& e : expiring) e.over = e.over || e.until <= now;
  }
};

}  // namespace weir::testing::simulation

#endif
