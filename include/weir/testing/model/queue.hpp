// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_MODEL_QUEUE_HPP
#define WEIR_TESTING_MODEL_QUEUE_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/rule/locks.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing {

/// A job as the model keeps it.
struct model_job {
  job_id id{};
  std::string kind;
  std::string payload;
  std::string unique_key;
  std::string memo;
  std::string result;
  std::string reason;
  std::string holder;
  rule::job_rank rank{};   ///< its vesting time among it; claimed: the end of the lease
  time_point unclaimed{};  ///< claimed: its vesting time before
  time_point enqueued{};
  time_point deadline_from{};
  time_point kept_until{};  ///< completed or cancelled
  duration deadline{};
  duration retention{};
  std::uint64_t fence = 0;
  std::uint64_t death = 0;  ///< dead: which one of the queue's
  std::uint32_t attempts = 0;
  std::uint32_t max_attempts = 0;
  std::uint32_t snoozes = 0;
  job_state ended = job_state::pending;  ///< pending: it has not
  unique_strategy strategy = unique_strategy::none;
  conflict_policy on_conflict = conflict_policy::reject;
  bool claimed = false;  ///< a lease was given, over or not
  bool runs = false;     ///< started under that lease, and so in possession of the run lock

  [[nodiscard]] job_state state(time_point now) const noexcept {
    return is_terminal(ended) ? ended : rule::queued_state(claimed, rank.vesting, now);
  }
  [[nodiscard]] bool waits_or_runs() const noexcept { return !is_terminal(ended); }
  [[nodiscard]] bool visible(time_point now) const noexcept {
    return waits_or_runs() && rule::job_visible(rank.vesting, now);
  }
  [[nodiscard]] std::optional<time_point> deadline_at() const noexcept {
    return rule::job_deadline(deadline, deadline_from);
  }

  [[nodiscard]] job seen(time_point now) const {
    job out;
    out.id = id;
    out.kind = kind;
    out.payload = payload;
    out.priority = rank.priority;
    out.state = state(now);
    out.attempts = attempts;
    out.max_attempts = max_attempts;
    out.snoozes = snoozes;
    if (waits_or_runs()) out.vests_in = saturating_sub(rank.vesting, now);
    out.age = saturating_sub(now, enqueued);
    if (auto const at = deadline_at()) out.deadline_in = saturating_sub(*at, now);
    out.strategy = strategy;
    out.on_conflict = on_conflict;
    out.unique_key = unique_key;
    out.memo = memo;
    out.result = result;
    out.reason = reason;
    if (out.state == job_state::leased) {
      out.holder = holder;
      out.fence = fence;
    }
    return out;
  }

  [[nodiscard]] leased_job lease(time_point now) const {
    auto j = seen(now);
    leased_job out;
    out.id = id;
    out.fence = fence;
    out.expires_in = j.vests_in;
    out.kind = std::move(j.kind);
    out.payload = std::move(j.payload);
    out.priority = j.priority;
    out.attempt = attempts;
    out.max_attempts = max_attempts;
    out.snoozes = snoozes;
    out.age = j.age;
    out.deadline_in = j.deadline_in;
    out.strategy = strategy;
    out.unique_key = std::move(j.unique_key);
    out.memo = std::move(j.memo);
    return out;
  }
};

/// A queue as the model keeps it: a list of jobs, searched from its beginning for everything.
struct model_queue {
  struct key {
    job_id owner{};
    time_point expiry = time_point::max();
  };
  struct claims {
    std::uint64_t sequence = 0;
    std::vector<std::pair<job_id, std::uint64_t>> leases;
  };

  std::vector<model_job> jobs;
  std::map<std::string, key> keys;
  std::map<std::string, claims> last_claims;  // by holder
  rule::lock_state lease;
  time_point snoozed_until = time_point::min();
  bool paused = false;
  std::uint64_t deaths = 0;
  std::uint64_t enqueued = 0;
  std::uint64_t completed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t purged = 0;

  [[nodiscard]] bool held(time_point now) const noexcept {
    return rule::queue_held(paused, snoozed_until, now);
  }

  [[nodiscard]] model_job* find(job_id const& id) noexcept {
    auto const it =
        std::find_if(jobs.begin(), jobs.end(), [&](model_job const& j) { return j.id == id; });
    return it == jobs.end() ? nullptr : &*it;
  }
  [[nodiscard]] model_job* leased(job_id const& id, std::uint64_t fence, time_point now) noexcept {
    auto* const j = find(id);
    return j != nullptr && rule::has_job_lease(j->state(now), j->fence, fence) ? j : nullptr;
  }
  [[nodiscard]] key const* possession(std::string const& unique_key) const {
    auto const it = keys.find(unique_key);
    return it == keys.end() ? nullptr : &it->second;
  }

  /// The visible jobs, best first.
  [[nodiscard]] std::vector<model_job*> visible(time_point now) {
    std::vector<model_job*> out;
    for (auto& j : jobs) {
      if (j.visible(now)) out.push_back(&j);
    }
    std::sort(out.begin(), out.end(),
              [](auto const* a, auto const* b) { return a->rank < b->rank; });
    return out;
  }

  [[nodiscard]] std::optional<time_point> min_vesting() const {
    std::optional<time_point> least;
    for (auto const& j : jobs) {
      if (j.waits_or_runs()) least = rule::pointer_with(least, j.rank.vesting);
    }
    return least;
  }
  [[nodiscard]] std::optional<duration> next_in(time_point now) const {
    auto const least = min_vesting();
    if (!least) return std::nullopt;
    return saturating_sub(*least, now);
  }

  /// Forgets what time has ended: records whose retention is over, and keys that have expired.
  void expire(time_point now) {
    std::erase_if(keys, [&](auto const& k) { return k.second.expiry <= now; });
    std::erase_if(jobs, [&](model_job const& j) {
      bool const kept = j.ended == job_state::completed || j.ended == job_state::cancelled;
      return kept && rule::record_gone(j.kept_until, now);
    });
  }

  void claim(model_job& j, std::string_view by, duration for_long, std::uint64_t new_fence,
             time_point now) {
    j.claimed = true;
    j.runs = false;
    j.holder = by;
    j.fence = new_fence;
    ++j.attempts;
    j.unclaimed = j.rank.vesting;
    j.rank.vesting = saturating_add(now, for_long);
  }

  /// Ends the lease; the job waits, with the enqueue key that its start gave up, if that is free.
  void wait_again(model_job& j, time_point vesting) {
    if (rule::start_frees_key(j.strategy)) keys.try_emplace(j.unique_key, key{j.id});
    j.claimed = j.runs = false;
    j.rank.vesting = vesting;
  }

  void end(model_job& j, job_state how, time_point now) {
    j.claimed = j.runs = false;
    j.ended = how;
    auto const* const k = possession(j.unique_key);
    if (rule::end_frees_key(j.strategy) && k != nullptr && k->owner == j.id)
      keys.erase(j.unique_key);
    if (how == job_state::dead) {
      j.death = ++deaths;
      return;
    }
    ++(how == job_state::completed ? completed : cancelled);
    j.kept_until = rule::kept_until(now, j.retention);
  }

  void bury(model_job& j, std::string_view why, time_point now) {
    j.reason = rule::kept_reason(why);
    end(j, job_state::dead, now);
  }

  /// Ends a visible job that may not be claimed any more. Returns whether it did.
  bool bury_unclaimable(model_job& j, time_point now) {
    switch (rule::on_claim(j.attempts, j.max_attempts, j.deadline_at(), now)) {
      case rule::claim_decision::lease: return false;
      case rule::claim_decision::bury_spent: bury(j, rule::reason_spent, now); break;
      case rule::claim_decision::bury_missed: bury(j, rule::reason_missed, now); break;
    }
    return true;
  }
};

}  // namespace weir::testing

#endif
