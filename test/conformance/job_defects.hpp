// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_JOB_DEFECTS_HPP
#define WEIR_TEST_CONFORMANCE_JOB_DEFECTS_HPP

#include "conformance/mutant_store.hpp"
#include "weir/command/jobs.hpp"
#include "weir/testing/conformance/jobs/operations.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir::testing {

enum job_defect : int {
  key_outlives_its_job,
  key_is_lost_on_requeue,
  run_lock_stays,
  enqueues_check_then_act,
  claims_check_then_act,
  conflicts_fail_batches,
  dead_holders_keep,
  extended_jobs_stay,
  bounded_look,
  counts_by_events,
  leases_have_no_end,
  queue_leases_do_not_last,
  snooze_is_failure,
  stale_completes,
  stale_acts,
  crashes_do_not_count,
  hints_for_nobody,
  scans_from_the_start,
  replay_keeps_attempts,
  letters_are_unlisted,
  purges_are_uncounted,
  collects_everyone,
  stale_pointers,
  enqueues_twice,
  dequeues_forget,
  priorities_are_ignored,
  delays_are_cut,
  pauses_are_ignored,
  returns_count,
  results_are_lost,
  records_stay_not,
  deadlines_are_ignored,
  cancels_the_running,
  end_frees_expiring_keys,
  running_are_replaced,
  queues_lose_case,
  ids_are_cut,
  duplicates_count,
  no_attempts_is_one,
  answers_are_unbounded,
  spent_jobs_keep_their_keys,
  late_jobs_keep_their_keys,
  last_attempts_give_way,
  replays_name_nobody,
  replays_keep_out,
  blocked_by_nobody,
  relays_in_two_steps,
  relays_whatever_it_is,
  relays_leave_the_job,
  schedules_among_jobs,
  lists_end_early,
  lists_mix_states,
  nothing_is_brought_forward,
  everything_is_brought_forward,
  headers_are_lost,
  checkpoints_are_lost,
  progress_takes_the_place,
  stale_checkpoints,
};

struct job_defects : no_defects {
  using no_defects::look;
  using no_defects::no_defects;
  using no_defects::splits;

  using place = std::pair<std::string, std::string>;  // queue and unique key
  using name = std::pair<std::string, job_id>;        // queue and job

  std::map<place, job_id> owners;
  std::map<place, job_id> dead_owners;
  std::set<place> lost_keys;
  std::set<place> stuck_locks;
  std::map<name, place> key_of;
  std::set<name> started_jobs;
  std::set<name> extended;
  std::map<name, std::uint32_t> max_attempts;
  std::map<name, std::uint32_t> spent;
  std::map<std::string, std::int64_t> leased;
  std::map<std::string, std::uint64_t> duplicates;
  std::map<std::string, time_point> stuck_pointers;
  std::set<std::string> collected;
  std::uint32_t copies = 0;

  [[nodiscard]] waiting wait() const {
    return which == hints_for_nobody ? waiting::never_told : waiting::as_it_should;
  }

  // ------------------------------------------------------------------------------------ races

  bool splits(command::enqueue_jobs const&) const { return which == enqueues_check_then_act; }
  bool splits(command::dequeue_jobs const&) const { return which == claims_check_then_act; }

  template <class Next>
  std::int64_t look(command::enqueue_jobs const& c, time_point now, Next const& next) {
    if (which != enqueues_check_then_act || c.jobs.size() != 1 ||
        !holds_while_waiting(c.jobs[0].strategy))
      return 0;
    auto const owner = owners.find({std::string{c.queue}, std::string{c.jobs[0].unique_key}});
    if (owner == owners.end()) return 1;
    auto const j = next(command::find_job{c.queue, owner->second}, now);
    return j.has_value() && (!*j || is_terminal((*j)->state)) ? 1 : 0;
  }
  template <class Next>
  std::int64_t look(command::dequeue_jobs const& c, time_point now, Next const& next) {
    if (which != claims_check_then_act || c.limit == 0) return 0;
    auto const best = next(command::peek_jobs{c.queue, 1}, now);
    if (best.has_error() || best->empty()) return 0;
    std::int64_t number = 0;
    for (std::size_t i = 12; i < 16; ++i) number = number << 8 | best->front().id.data[i];
    return number;
  }

  // ------------------------------------------------------------------------------------ steps

  template <class C, class Next>
  result<typename C::result> step(C c, time_point now, Next const& next, std::int64_t looked) {
    std::string queue;
    if constexpr (requires { c.queue; }) {
      queue = which == queues_lose_case ? without_case(c.queue) : std::string{c.queue};
      c.queue = queue;
    }
    std::vector<new_job> cut;
    if constexpr (std::is_same_v<C, command::enqueue_jobs>) {
      if (which == ids_are_cut) {
        cut.assign(c.jobs.begin(), c.jobs.end());
        for (auto& j : cut) {
          if (!j.id.is_nil()) std::copy_n(conformance::numbered_job(0).begin(), 12, j.id.begin());
        }
        c.jobs = cut;
      }
    }
    if (which == stale_acts) {
      if constexpr (requires {
                      c.id;
                      c.fence;
                    }) {
        auto const j = next(command::find_job{c.queue, c.id}, now);
        if (j.has_value() && *j && (*j)->fence != 0 && c.fence != 0) c.fence = (*j)->fence;
      }
    }
    if (which == delays_are_cut) {
      if constexpr (requires { c.delay; })
        c.delay = std::chrono::floor<std::chrono::seconds>(c.delay);
    }
    return act(c, now, next, looked);
  }

  template <class C, class Next>
  result<typename C::result> act(C c, time_point now, Next const& next, std::int64_t) {
    using namespace command;
    if constexpr (std::is_same_v<C, list_dead_letters>) {
      if (which == letters_are_unlisted && !c.queue.empty() && c.limit > 0) return job_page{};
    }
    if constexpr (std::is_same_v<C, relay_job>) {
      if (which == relays_whatever_it_is && c.fence == 0) {
        auto const j = next(find_job{c.queue, c.id}, now);
        std::string const payload = j.has_value() && *j ? (*j)->payload : std::string{c.expected};
        c.expected = payload;
        return next(c, now);
      }
      if (which == relays_in_two_steps) {
        auto answer = next(c, now);
        if (!c.jobs.empty() && (answer.has_error() ? answer.error() == errc::lease_lost
                                                   : answer->outcome == relay_outcome::changed)) {
          next(enqueue_jobs{c.to, c.jobs}, now);
        }
        return answer;
      }
      if (which == relays_leave_the_job) {
        std::vector<new_job> others;
        for (auto const& j : c.next) {
          if (j.id != c.id) others.push_back(j);
        }
        if (others.size() != c.next.size()) c.next = others;
        auto answer = next(c, now);
        if (answer.has_value() && answer->outcome == relay_outcome::relayed) {
          answer->jobs.resize(c.jobs.size() + others.size() + 1);
        }
        return answer;
      }
    }
    if constexpr (std::is_same_v<C, extend_lease>) {
      if (which == checkpoints_are_lost) c.checkpoint = {};
      if (which == progress_takes_the_place && !c.progress.empty() && c.checkpoint.empty()) {
        c.checkpoint = c.progress;
      }
      auto const j = next(find_job{c.queue, c.id}, now);
      if (which == stale_checkpoints && !c.checkpoint.empty() && j.has_value() && *j &&
          (*j)->fence != 0 && (*j)->fence != c.fence) {
        next(extend_lease{c.queue, c.id, (*j)->fence, (*j)->vests_in, {}, c.checkpoint}, now);
      }
    }
    if constexpr (std::is_same_v<C, obtain_lease>) {
      if (which == nothing_is_brought_forward) c.early = false;
      if (which == everything_is_brought_forward) c.early = true;
    }
    if constexpr (std::is_same_v<C, list_jobs>) {
      if (which == lists_mix_states && c.state == job_state::leased) c.state = job_state::pending;
    }
    if constexpr (std::is_same_v<C, purge_job>) {
      if (which == purges_are_uncounted) {
        auto const j = next(find_job{c.queue, c.id}, now);
        if (j.has_value() && *j && is_terminal((*j)->state)) return true;
      }
    }
    if constexpr (std::is_same_v<C, cancel_job>) {
      if (which == cancels_the_running) c.running = true;
    }
    if constexpr (std::is_same_v<C, scan_visible_queues>) {
      if (which == scans_from_the_start) c.entropy = 0;
      if (which == schedules_among_jobs) c.schedules = false;
    }
    if constexpr (std::is_same_v<C, peek_jobs>) {
      if (which == bounded_look && crowded(c.queue, now, next)) return std::vector<job>{};
    }
    auto answer = next(c, now);
    if (answer.has_error()) return answer;
    if constexpr (std::is_same_v<C, scan_visible_queues>) {
      std::erase_if(answer->queues, [&](auto const& q) {
        auto const stuck = stuck_pointers.find(q);
        return collected.contains(q) || (stuck != stuck_pointers.end() && now < stuck->second);
      });
    } else if constexpr (std::is_same_v<C, gc_stale_pointers>) {
      if (which == collects_everyone) {
        auto const due = next(scan_visible_queues{c.shard, limits::batch, 0}, now);
        if (due.has_value()) collected.insert(due->queues.begin(), due->queues.end());
      }
    } else if constexpr (std::is_same_v<C, update_queue_pointer>) {
      if (which == stale_pointers && *answer)
        stuck_pointers[std::string{c.queue}] = saturating_add(now, **answer);
    } else if constexpr (std::is_same_v<C, min_vesting_time>) {
      auto const s = next(read_queue_stats{c.queue}, now);
      if (which == leases_have_no_end && s.has_value() && s->leased > 0 &&
          *answer > duration::zero())
        answer->reset();
    } else if constexpr (std::is_same_v<C, obtain_queue_lease>) {
      if (which == queue_leases_do_not_last) next(release_queue_lease{c.queue, c.holder, 0}, now);
    } else if constexpr (std::is_same_v<C, read_queue_stats>) {
      if (which == counts_by_events) {
        auto const n = std::max<std::int64_t>(leased[std::string{c.queue}], 0);
        auto const all = answer->leased + answer->pending;
        answer->leased = std::min(static_cast<std::uint64_t>(n), all);
        answer->pending = all - answer->leased;
      }
      if (which == duplicates_count) answer->enqueued += duplicates[std::string{c.queue}];
    } else if constexpr (std::is_same_v<C, extend_lease>) {
      if (which == extended_jobs_stay) extended.insert({std::string{c.queue}, c.id});
    } else if constexpr (std::is_same_v<C, bury_job>) {
      ended(c.queue, c.id);
    } else if constexpr (std::is_same_v<C, list_jobs>) {
      if (which == lists_end_early) answer->cursor.clear();
    }
    return answer;
  }

  template <class Next>
  result<command::enqueue_jobs::result> act(command::enqueue_jobs const& c, time_point now,
                                            Next const& next, std::int64_t looked) {
    std::vector<new_job> jobs{c.jobs.begin(), c.jobs.end()};
    std::string const queue{c.queue};
    collected.erase(queue);
    for (auto& j : jobs) {
      place const key{queue, std::string{j.unique_key}};
      if (which == priorities_are_ignored) j.priority = 100;
      if (which == records_stay_not) j.retention = duration::zero();
      if (which == headers_are_lost) j.headers = {};
      if (which == deadlines_are_ignored) j.deadline = duration::zero();
      if (which == no_attempts_is_one) j.max_attempts = std::max(j.max_attempts, 1U);
      if (which == delays_are_cut) j.delay = std::chrono::floor<std::chrono::seconds>(j.delay);
      if (which == crashes_do_not_count && j.max_attempts > 0) {
        max_attempts.try_emplace({queue, j.id}, j.max_attempts);
        j.max_attempts = limits::attempts;
      }
      if (which == enqueues_twice) {
        auto const old = next(command::find_job{queue, j.id}, now);
        if (old.has_value() && *old) j.id.data[1] = static_cast<std::uint8_t>(++copies);
      }
      if (which == end_frees_expiring_keys && j.strategy == unique_strategy::until_expired) {
        j.strategy = unique_strategy::until_executed;
        j.unique_ttl = duration::zero();
      }
      if (j.strategy == unique_strategy::none) continue;
      bool const takes = looked == 1 && look(c, now, next) == 0;
      if ((which == key_is_lost_on_requeue && lost_keys.contains(key)) || takes) {
        j.strategy = unique_strategy::none;
        j.unique_key = {};
      }
      auto const dead = dead_owners.find(key);
      if (which == key_outlives_its_job && dead != dead_owners.end() && dead->second != j.id) {
        return command::enqueue_jobs::result(jobs.size(),
                                             enqueued{enqueue_outcome::duplicate, dead->second});
      }
      if (auto const stuck = dead_end(key, now, next)) {
        return command::enqueue_jobs::result(jobs.size(),
                                             enqueued{enqueue_outcome::duplicate, *stuck});
      }
      if (which == last_attempts_give_way && owners.contains(key)) {
        auto const owner = next(command::find_job{queue, owners[key]}, now);
        if (owner.has_value() && *owner && (*owner)->state == job_state::leased &&
            (*owner)->attempts >= (*owner)->max_attempts) {
          next(command::bury_job{queue, (*owner)->id, (*owner)->fence, "spent"}, now);
        }
      }
      if (which == running_are_replaced && j.on_conflict == conflict_policy::replace &&
          owners.contains(key)) {
        next(command::cancel_job{queue, owners[key], true}, now);
      }
    }
    auto answer = next(command::enqueue_jobs{c.queue, jobs}, now);
    if (answer.has_error()) return answer;
    bool conflict = false;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      bool const added = (*answer)[i].outcome == enqueue_outcome::enqueued ||
                         (*answer)[i].outcome == enqueue_outcome::replaced;
      conflict = conflict || (*answer)[i].outcome == enqueue_outcome::duplicate;
      duplicates[queue] += added ? 0 : 1;
      place const key{queue, std::string{c.jobs[i].unique_key}};
      if (added && !key.second.empty()) owners[key] = c.jobs[i].id;
      if (added) key_of[{queue, c.jobs[i].id}] = key;
    }
    if (which == conflicts_fail_batches && conflict && jobs.size() > 1)
      return errc::unique_conflict;
    return answer;
  }

  template <class Next>
  result<dequeued> act(command::dequeue_jobs c, time_point now, Next const& next,
                       std::int64_t looked) {
    if (which == bounded_look && crowded(c.queue, now, next)) return dequeued{};
    if (which == dequeues_forget) c.sequence = 0;
    bool paused = false;
    if (which == pauses_are_ignored && !c.queue.empty()) {
      auto const s = next(command::read_queue_stats{c.queue}, now);
      paused = s.has_value() && s->paused;
      if (paused) next(command::resume_queue{c.queue}, now);
    }
    auto const lease = c.lease;
    bool const valid = lease > duration::zero() && lease <= limits::span;
    if (which == dead_holders_keep && valid) c.lease = limits::span;
    auto answer = next(c, now);
    if (paused) next(command::pause_queue{c.queue}, now);
    if (answer.has_error()) return answer;
    if (which == answers_are_unbounded && c.sequence == 0) {
      auto rest = c;
      while (answer->more && answer->jobs.size() < c.limit) {
        rest.limit = c.limit - static_cast<std::uint32_t>(answer->jobs.size());
        auto further = next(rest, now);
        if (further.has_error()) return further;
        std::move(further->jobs.begin(), further->jobs.end(), std::back_inserter(answer->jobs));
        answer->dead_lettered += further->dead_lettered;
        answer->more = further->more;
        answer->next_in = further->next_in;
      }
    }
    for (auto& j : answer->jobs) {
      name const id{std::string{c.queue}, j.id};
      if (which == dead_holders_keep) j.expires_in = lease;
      if (which == crashes_do_not_count) j.max_attempts = max_attempts[id];
      if (which == replay_keeps_attempts) j.attempt += spent[id];
      ++leased[id.first];
    }
    if (which == claims_check_then_act && looked != 0 && answer->jobs.size() < c.limit) {
      auto const id = conformance_id(static_cast<std::uint32_t>(looked));
      auto const j = next(command::find_job{c.queue, id}, now);
      bool const mine = std::any_of(answer->jobs.begin(), answer->jobs.end(),
                                    [&](auto const& l) { return l.id == id; });
      if (j.has_value() && *j && !mine && (*j)->state == job_state::leased &&
          (*j)->holder != c.holder) {
        leased_job twice;
        twice.id = id;
        twice.fence = (*j)->fence;
        twice.expires_in = c.lease;
        twice.attempt = (*j)->attempts;
        twice.max_attempts = (*j)->max_attempts;
        answer->jobs.push_back(twice);
      }
    }
    return answer;
  }

  template <class Next>
  result<command::complete_jobs::result> act(command::complete_jobs const& c, time_point now,
                                             Next const& next, std::int64_t) {
    std::vector<finished_job> jobs{c.jobs.begin(), c.jobs.end()};
    for (auto& f : jobs) {
      auto const j = next(command::find_job{c.queue, f.id}, now);
      if (which == results_are_lost && f.result.size() <= limits::payload_size) f.result = {};
      if (which == stale_completes && j.has_value() && *j && (*j)->fence != 0)
        f.fence = (*j)->fence;
      --leased[std::string{c.queue}];
      if (extended.contains({std::string{c.queue}, f.id}) && j.has_value() && *j &&
          (*j)->fence == f.fence) {
        next(command::return_job{c.queue, f.id, f.fence}, now);
        return command::complete_jobs::result(c.jobs.size(), complete_outcome::completed);
      }
    }
    return next(command::complete_jobs{c.queue, jobs}, now);
  }

  template <class Next>
  result<started> act(command::start_job const& c, time_point now, Next const& next, std::int64_t) {
    name const id{std::string{c.queue}, c.id};
    auto answer = next(c, now);
    if (which == blocked_by_nobody && answer.has_value()) answer->other = {};
    if (answer.has_error() || answer->outcome == start_outcome::blocked) return answer;
    if (stuck_locks.contains(key_of[id]))
      return started{start_outcome::blocked, std::chrono::seconds{1}};
    started_jobs.insert(id);
    return answer;
  }

  template <class Next>
  result<requeue_outcome> act(command::requeue_job const& c, time_point now, Next const& next,
                              std::int64_t) {
    name const id{std::string{c.queue}, c.id};
    auto const j = next(command::find_job{c.queue, c.id}, now);
    bool const own = j.has_value() && *j && (*j)->fence == c.fence && c.fence != 0;
    auto const attempts = own ? (*j)->attempts : 0;
    bool const last =
        own && ((which == crashes_do_not_count && attempts >= max_attempts[id]) ||
                (which == replay_keeps_attempts && attempts + spent[id] >= (*j)->max_attempts));
    if (last && c.delay >= duration::zero()) {
      next(command::bury_job{c.queue, c.id, c.fence, c.reason}, now);
      return requeue_outcome::dead_lettered;
    }
    auto const answer = next(c, now);
    if (answer.has_error()) return answer;
    --leased[id.first];
    if (*answer == requeue_outcome::dead_lettered) {
      ended(c.queue, c.id);
    } else {
      lost_keys.insert(key_of[id]);
    }
    if (which == run_lock_stays && started_jobs.contains(id)) stuck_locks.insert(key_of[id]);
    return answer;
  }

  template <class Next>
  result<hint> act(command::snooze_job const& c, time_point now, Next const& next, std::int64_t) {
    if (which != snooze_is_failure || c.memo.size() > limits::memo_size) return next(c, now);
    return as_hint(next(command::requeue_job{c.queue, c.id, c.fence, c.delay, c.memo}, now));
  }

  template <class Next>
  result<hint> act(command::return_job const& c, time_point now, Next const& next, std::int64_t) {
    if (which != returns_count) return next(c, now);
    return as_hint(next(command::requeue_job{c.queue, c.id, c.fence, {}, {}}, now));
  }

  template <class Next>
  result<replayed> act(command::replay_dead_letter const& c, time_point now, Next const& next,
                       std::int64_t) {
    auto const j = next(command::find_job{c.queue, c.id}, now);
    if (which == replays_keep_out && j.has_value() && *j) {
      auto const owner = owners.find({std::string{c.queue}, (*j)->unique_key});
      if (owner != owners.end() && owner->second != c.id) {
        auto const other = next(command::find_job{c.queue, owner->second}, now);
        if (other.has_value() && *other && !is_terminal((*other)->state)) {
          return replayed{replay_outcome::conflict, owner->second};
        }
      }
    }
    auto answer = next(c, now);
    if (which == replays_name_nobody && answer.has_value()) answer->other = {};
    if (answer.has_value() && answer->outcome == replay_outcome::replayed) {
      spent[{std::string{c.queue}, c.id}] += (*j)->attempts;
    }
    return answer;
  }

 private:
  /// The job in possession of a key that waits and that nobody can claim any more, if that is the
  /// defect: a dequeue would bury it, and nothing else does.
  template <class Next>
  std::optional<job_id> dead_end(place const& key, time_point now, Next const& next) {
    bool const by_attempts = which == spent_jobs_keep_their_keys;
    if (!by_attempts && which != late_jobs_keep_their_keys) return std::nullopt;
    auto const owner = owners.find(key);
    if (owner == owners.end()) return std::nullopt;
    auto const j = next(command::find_job{key.first, owner->second}, now);
    if (j.has_error() || !*j || (*j)->state != job_state::pending) return std::nullopt;
    bool const late = (*j)->deadline_in && *(*j)->deadline_in < duration::zero();
    bool const ends = by_attempts ? (*j)->attempts >= (*j)->max_attempts : late;
    return ends ? std::optional{owner->second} : std::nullopt;
  }

  static job_id conformance_id(std::uint32_t n) noexcept {
    job_id id{};
    for (std::size_t i = 0; i < 4; ++i) id.data[15 - i] = static_cast<std::uint8_t>(n >> (8 * i));
    id.data[0] = 1;
    id.data[6] = 0x70;
    id.data[8] = 0x80;
    return id;
  }

  template <class Answer>
  static result<hint> as_hint(Answer const& a) {
    if (a.has_error()) return a.error();
    return hint{};
  }

  template <class Next>
  bool crowded(std::string_view queue, time_point now, Next const& next) {
    auto const s = next(command::read_queue_stats{queue}, now);
    auto const visible = next(command::peek_jobs{queue, limits::batch}, now);
    return s.has_value() && visible.has_value() && s->leased + s->pending > visible->size() + 100;
  }

  void ended(std::string_view queue, job_id const& id) {
    auto const key = key_of.find({std::string{queue}, id});
    if (key != key_of.end() && !key->second.second.empty()) dead_owners[key->second] = id;
  }
};

inline constexpr mutant job_mutants[] = {
    {key_outlives_its_job, "F14", "a dead-lettered job keeps its unique key"},
    {key_is_lost_on_requeue, "F15", "a requeued job loses its unique key"},
    {run_lock_stays, "F16", "a failed attempt keeps its run lock"},
    {enqueues_check_then_act, "F17", "a unique key is looked at in one step and taken in another"},
    {claims_check_then_act, "F17", "a job is looked at in one step and leased in another"},
    {conflicts_fail_batches, "F18", "one conflict fails the whole batch"},
    {dead_holders_keep, "F28", "a lease does not end by time"},
    {extended_jobs_stay, "F29", "completing a job whose lease was extended leaves it there"},
    {bounded_look, "F30", "only the first hundred jobs are looked at"},
    {counts_by_events, "F31", "leased jobs are counted by events, not by time"},
    {leases_have_no_end, "F31", "min_vesting_time does not know of leases"},
    {queue_leases_do_not_last, "F32", "a queue lease is given back in the step that took it"},
    {snooze_is_failure, "F33", "a snooze counts as a failure"},
    {stale_completes, "F34", "a completion looks at the job and not at the lease"},
    {stale_acts, "F35", "whoever once had a lease may end or extend its successor's"},
    {crashes_do_not_count, "F36", "attempts count when they fail, not when they are claimed"},
    {hints_for_nobody, "F38", "nobody is told of a job"},
    {scans_from_the_start, "F39", "a scan always begins with the longest due"},
    {replay_keeps_attempts, "F40", "a replayed job keeps its attempts"},
    {letters_are_unlisted, "F40", "dead letters cannot be listed"},
    {purges_are_uncounted, "F40", "a purge says yes and does nothing"},
    {collects_everyone, "F41", "pointers of queues with jobs are collected"},
    {stale_pointers, "F48", "an updated pointer passes later enqueues by"},
    {enqueues_twice, "F45", "an enqueue asked again adds the job again"},
    {dequeues_forget, "F54", "a repeated dequeue gives more jobs"},
    {priorities_are_ignored, "R4", "priorities are ignored"},
    {delays_are_cut, "R4", "delays are cut to whole seconds"},
    {pauses_are_ignored, "R4", "a paused queue gives jobs out"},
    {returns_count, "R4", "a returned job has spent its attempt"},
    {results_are_lost, "R4", "results are not stored"},
    {records_stay_not, "R4", "records are not kept"},
    {deadlines_are_ignored, "R4", "deadlines are ignored"},
    {cancels_the_running, "R4", "cancelling ends what runs, unasked"},
    {end_frees_expiring_keys, "R2", "the end of the job frees a key held until_expired"},
    {running_are_replaced, "R2", "a running job is replaced"},
    {queues_lose_case, "F27", "queues are compared without case"},
    {ids_are_cut, "F27", "jobs are told apart by the last bytes of their ids"},
    {duplicates_count, "R4", "a duplicate counts as enqueued"},
    {answers_are_unbounded, "F60", "a dequeue gives as many jobs as asked for, however large"},
    {spent_jobs_keep_their_keys, "F14",
     "a job keeps its unique key although its attempts are spent"},
    {late_jobs_keep_their_keys, "F14",
     "a job keeps its unique key although its deadline is missed"},
    {last_attempts_give_way, "F14", "a last attempt that runs counts as spent"},
    {replays_name_nobody, "F40", "a replay that is refused does not say for which job"},
    {replays_keep_out, "F14", "a replay waits for a job that nobody can claim any more"},
    {blocked_by_nobody, "F16", "a start that is refused does not say for which job"},
    {relays_in_two_steps, "R4", "a relay that comes too late adds its jobs all the same"},
    {relays_whatever_it_is, "R4", "a relay does not look at the job's payload"},
    {relays_leave_the_job, "R4", "a relay loses the successor that has the job's own id"},
    {schedules_among_jobs, "F39", "a scan of schedules lists the queues of jobs"},
    {lists_end_early, "R4", "a list ends with its first page"},
    {lists_mix_states, "R4", "a list of what is leased has what waits"},
    {nothing_is_brought_forward, "F73", "a job cannot be obtained before its vesting time"},
    {everything_is_brought_forward, "R4", "a job is obtained before its vesting time, unasked"},
    {headers_are_lost, "R4", "headers are not stored"},
    {checkpoints_are_lost, "F104", "checkpoints are not stored"},
    {progress_takes_the_place, "F104", "progress is noted where the checkpoint was"},
    {stale_checkpoints, "F104", "whoever lost its lease may still write a checkpoint"},
    {no_attempts_is_one, "R8", "max_attempts of 0 is accepted and means 1"},
};

}  // namespace weir::testing

#endif
