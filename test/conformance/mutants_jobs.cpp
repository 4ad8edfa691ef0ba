// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/job_defects.hpp"
#include "conformance/mutant_store.hpp"
#include "weir/testing/conformance/jobs.hpp"

#include <boost/test/unit_test.hpp>

namespace weir::testing {
namespace {

constexpr mutant job_mutants[] = {
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
    {duplicates_count, "R4", "a duplicate counts as enqueued"},
    {no_attempts_is_one, "R8", "max_attempts of 0 is accepted and means 1"},
};

BOOST_AUTO_TEST_SUITE(mutants_jobs)

BOOST_AUTO_TEST_CASE(none_survives) {
  hunt<job_defects>(job_mutants, [](auto& driver, report& out, settings const& s) {
    conformance::jobs(driver, out, s);
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::testing
