# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""What may be wrong in a rule, and so alike in every store that uses it: the conformance suite, whose
models share no code with the rules, has to notice on each of these (F66). The same in Lua is in
redis.py, in SQL in conformance.postgres_*.

(name, what is wrong, header below include/weir, text that stands there once, how it is changed,
{program: [test cases]})"""

from run import instead, value

JOBS, MOVES, MACHINE = "rule/jobs.hpp", "rule/job_moves.hpp", "rule/job_machine.hpp"
PERMITS, LOCKS, FENCE = "rule/permits.hpp", "rule/locks.hpp", "rule/fence.hpp"
BUCKETS, SCALE = "rule/buckets.hpp", "rule/bucket_scale.hpp"


def everywhere(noun):
    """In the manual time of both stores that have the rule in the process."""
    return {f"conformance.{store}_{noun}": ["keep_every_promise_in_manual_time"]
            for store in ("memory", "sqlite")}


JOB_STORES = everywhere("jobs")
MANY_STORES = JOB_STORES | {"conformance.nats_jobs": ["keep_every_promise"]}

MUTANTS = [
    ("key_of_who_has_its_id", "a key is that of whoever has its owner's id", MOVES,
     "if (r && !possesses(r->strategy, r->unique_key(), key)) r = {};", instead(";"), MANY_STORES),
    ("late", "a job is visible a tick late", JOBS,
     "return vesting <= now;", instead("return vesting < now;"), JOB_STORES),
    ("brought_forward_untold", "a lease that was taken early is not found when it is over", MACHINE,
     "if (!visible) rows_.no_later_than(q, r->vesting, now);", instead(";"), MANY_STORES),
    ("any_fence", "any fence names the lease of a job", JOBS,
     "return state == job_state::leased && fence == asked;",
     instead("return state == job_state::leased;"), MANY_STORES),
    ("one_attempt_more", "a job is claimed once more than it may be", JOBS,
     "if (attempts >= max_attempts) return claim_decision::bury_spent;",
     instead("if (attempts > max_attempts) return claim_decision::bury_spent;"), JOB_STORES),
    ("one_failure_more", "a job may fail once more than it may be claimed", JOBS,
     "return attempts >= max_attempts ? requeue_outcome::dead_lettered : requeue_outcome::requeued;",
     instead("return attempts > max_attempts ? requeue_outcome::dead_lettered"
             " : requeue_outcome::requeued;"), JOB_STORES),
    ("attempts_are_kept", "a snooze costs an attempt", JOBS,
     "return attempts == 0 ? 0 : attempts - 1;", instead("return attempts;"), MANY_STORES),
    ("no_repeats", "a dequeue that is asked again gives others", JOBS,
     "return asked != 0 && last == asked;", instead("return false;"), {
         "conformance.memory_jobs": ["keep_every_promise_in_manual_time"]}),
    ("kept_longer", "a record stays a tick longer", JOBS,
     "return kept_until <= now;", instead("return kept_until < now;"), {  # SQLite's own SQL reaps it
         "conformance.memory_jobs": ["keep_every_promise_in_manual_time"]}),
    ("completed_by_anybody", "a job is completed under any fence", JOBS,
     "asked != 0 && fence == asked", value("asked != 0"), MANY_STORES),
    ("cancels_what_runs", "a job that runs is cancelled unasked", JOBS,
     "return running_too ? cancel_outcome::cancelled : cancel_outcome::running;",
     instead("return cancel_outcome::cancelled;"), JOB_STORES),
    ("cancel_tells_nobody", "who runs a job that is cancelled is not told", MACHINE,
     "if (state == job_state::leased) rows_.tell_cancelled(r->holder_name());", instead(""),
     JOB_STORES),
    ("end_frees_all_keys", "the end of its job frees a key held until_expired", JOBS,
     "return holds_while_waiting(s) && s != unique_strategy::until_expired;",
     instead("return holds_while_waiting(s);"), JOB_STORES),
    ("spent_jobs_keep_keys", "a job that cannot run keeps its key", JOBS,
     "return end_frees_key(possessors) ? possessor::unclaimable : possessor::ended;",
     instead("return possessor::ended;"), JOB_STORES),
    ("what_runs_gives_way", "a running job is replaced", JOBS,
     "p == possessor::waiting && policy == conflict_policy::replace",
     value("policy == conflict_policy::replace && p != possessor::ended"), JOB_STORES),
    ("keys_never_expire", "a key held until_expired is never free", JOBS,
     "saturating_add(enqueued, unique_ttl)", value("time_point::max()"), JOB_STORES),
    ("start_keeps_its_key", "a start does not free the key of until_and_while_executing", JOBS,
     "return s == unique_strategy::until_executing || "
     "s == unique_strategy::until_and_while_executing;",
     instead("return s == unique_strategy::until_executing;"), JOB_STORES),
    ("two_run", "two jobs of a key run", JOBS,
     "return holds_while_running(s) && other_runs ? start_outcome::blocked : start_outcome::started;",
     instead("return start_outcome::started;"), JOB_STORES),
    ("pointer_is_late", "a pointer does not become earlier", JOBS,
     "return pointer ? std::min(*pointer, vesting) : vesting;",
     instead("return pointer ? *pointer : vesting;"), JOB_STORES),
    ("shorter_hold_wins", "a hold for at least so long ends a longer one", MACHINE,
     "if (c.at_least) until = std::max(until, q->snoozed_until);", instead(";"), MANY_STORES),
    ("snoozed_gives_out", "a snoozed queue gives jobs out", JOBS,
     "return paused || now < snoozed_until;", instead("return paused;"), JOB_STORES),
    ("crashes_do_not_count", "a claim counts no attempt", MOVES,
     "++r.attempts;", instead(";"), JOB_STORES),
    ("key_is_not_taken_back", "a requeued job goes without its key", MOVES,
     "if (start_frees_key(r.strategy) && !rows_.key_taken(q, r, now)) rows_.hold_key(q, r);",
     instead(";"), JOB_STORES),
    ("key_outlives_its_job", "the end of a job keeps its key", MOVES,
     "if (end_frees_key(r.strategy)) rows_.free_key(q, r);", instead(";"), JOB_STORES),
    ("own_priority", "a rescheduled job keeps its priority", MOVES,
     "r.priority = priority;", instead(";"), {
         "conformance.memory_jobs": ["keep_every_promise_in_manual_time"]}),
    ("replays_are_spent", "a replayed job has no attempts left", MACHINE,
     "r->attempts = 0;", instead(";"), JOB_STORES),
    ("replays_are_late", "the deadline of a replayed job counts from its enqueue", MACHINE,
     "r->deadline_from = now;", instead(";"), JOB_STORES),
    ("queue_of_two", "a queue's lease is everybody's", MACHINE,
     "out.granted = now >= q->lease_expiry || q->lease_holder == c.holder;",
     instead("out.granted = true;"), JOB_STORES),
    ("one_more", "a permit is granted over the limit", PERMITS,
     "return line.permits.size() + ahead < limit;",
     instead("return line.permits.size() + ahead <= limit;"), everywhere("permits")),
    ("herd", "all who wait are told to come for the first permit that ends", PERMITS,
     "? line.permits.nth_end(k)", lambda condition, old: f"? line.permits.nth_end({condition} ? 0 : k)",
     everywhere("permits")),
    ("renewed_by_any_fence", "a permit is renewed under any fence", PERMITS,
     "held->number != c.fence", value("false"), everywhere("permits")),
    ("leaves_line", "a release by its fence gives the place in line up", PERMITS,
     "if (c.fence != 0) return released;", instead(";"), everywhere("permits")),
    ("released_by_any_fence", "a lock is released under any fence", LOCKS,
     "return lock.held() && lock.holder() == holder && (fence == 0 || lock.fence() == fence);",
     instead("return lock.held() && lock.holder() == holder;"), everywhere("locks")),
    ("held_longer", "a lock is held a tick longer", LOCKS,
     "if (lock.held() && now >= lock.expiry()) lock.free();",
     instead("if (lock.held() && now > lock.expiry()) lock.free();"), everywhere("locks")),
    ("fences_again", "a fence is given out again", FENCE,
     "last + static_cast<std::uint64_t>(last != std::uint64_t(-1))", value("last"),
     everywhere("locks") | everywhere("permits") | JOB_STORES),
    ("saved_for_ever", "a bucket saves what it cannot hold", BUCKETS,
     "return std::max(arrival, scale.units_at(at)) + scale.price_of(cost);",
     instead("return arrival + scale.price_of(cost);"), everywhere("buckets")),
    ("refilled_twice", "a refund gives back what has refilled", BUCKETS,
     "back = std::min(back, scale.tokens_in(ahead + scale.price - 1));", instead(";"),
     everywhere("buckets")),
    ("parts_are_lost", "a token that has refilled in part does not go back", BUCKETS,
     "scale.tokens_in(ahead + scale.price - 1)", value("scale.tokens_in(ahead)"),
     everywhere("buckets")),
    ("forgotten_by_change", "a change of quotas forgives what was spent", BUCKETS,
     "std::min<bucket_units>(missing, after[i].capacity)", value("bucket_units{0}"),
     everywhere("buckets")),
    ("too_early", "who comes back when told is refused", SCALE,
     "return duration{units / gain + static_cast<std::int64_t>(units % gain > 0)};",
     instead("return duration{units / gain};"), everywhere("buckets")),
]
