// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/rule/jobs.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

// The semantics of jobs, case by case.

namespace {

using namespace weir;
using namespace std::chrono_literals;

constexpr time_point t0{1'000s};
constexpr std::array strategies{unique_strategy::none,
                                unique_strategy::until_executed,
                                unique_strategy::until_executing,
                                unique_strategy::while_executing,
                                unique_strategy::until_and_while_executing,
                                unique_strategy::until_expired};
constexpr std::array policies{conflict_policy::reject, conflict_policy::discard,
                              conflict_policy::log, conflict_policy::replace,
                              conflict_policy::reschedule};

job_id id_of(std::uint8_t n) {
  job_id id;
  id.data[15] = n;
  return id;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rule_jobs)

BOOST_AUTO_TEST_CASE(order_is_priority_then_vesting_time_then_id) {
  std::vector<rule::job_rank> const sorted{{0, t0 + 9s, id_of(9)},
                                           {1, t0, id_of(7)},
                                           {1, t0 + 1ns, id_of(1)},
                                           {1, t0 + 1ns, id_of(2)},
                                           {255, t0, id_of(0)}};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t k = 0; k < sorted.size(); ++k) {
      BOOST_TEST((sorted[i] < sorted[k]) == (i < k));
      BOOST_TEST((sorted[i] == sorted[k]) == (i == k));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_job_is_visible_from_its_vesting_time_on) {
  static_assert(!rule::job_visible(t0, t0 - 1ns));
  static_assert(rule::job_visible(t0, t0));
}

BOOST_AUTO_TEST_CASE(R4_leased_is_derived_from_time) {
  using rule::queued_state;
  static_assert(queued_state(true, t0, t0 - 1ns) == job_state::leased);
  static_assert(queued_state(true, t0, t0) == job_state::pending);
  static_assert(queued_state(false, t0, t0 - 1ns) == job_state::pending);
}

BOOST_AUTO_TEST_CASE(R5_only_the_live_lease_and_its_own_fence_count) {
  using rule::has_job_lease;
  static_assert(has_job_lease(job_state::leased, 7, 7));
  static_assert(!has_job_lease(job_state::leased, 7, 6));
  static_assert(!has_job_lease(job_state::pending, 7, 7));
  static_assert(!has_job_lease(job_state::completed, 7, 7));
}

BOOST_AUTO_TEST_CASE(F36_a_claim_buries_what_has_no_attempts_left_or_missed_its_deadline) {
  using rule::claim_decision;
  using rule::on_claim;
  static_assert(on_claim(0, 1, std::nullopt, t0) == claim_decision::lease);
  static_assert(on_claim(1, 1, std::nullopt, t0) == claim_decision::bury_spent);
  static_assert(on_claim(2, 1, std::nullopt, t0) == claim_decision::bury_spent);
  static_assert(on_claim(0, 1, t0, t0) == claim_decision::lease,
                "claimed at its deadline is not later");
  static_assert(on_claim(0, 1, t0, t0 + 1ns) == claim_decision::bury_missed);
  static_assert(on_claim(1, 1, t0, t0 + 1ns) == claim_decision::bury_spent);
}

BOOST_AUTO_TEST_CASE(a_failure_buries_when_the_attempts_are_spent) {
  static_assert(rule::on_failure(1, 2) == requeue_outcome::requeued);
  static_assert(rule::on_failure(2, 2) == requeue_outcome::dead_lettered);
}

BOOST_AUTO_TEST_CASE(F33_a_snooze_gives_the_attempt_back) {
  static_assert(rule::attempts_given_back(3) == 2);
  static_assert(rule::attempts_given_back(0) == 0);
}

BOOST_AUTO_TEST_CASE(F54_a_dequeue_is_repeated_by_its_number) {
  static_assert(rule::repeats_dequeue(5, 5));
  static_assert(!rule::repeats_dequeue(5, 6));
  static_assert(!rule::repeats_dequeue(0, 0), "0 is no number");
}

BOOST_AUTO_TEST_CASE(a_deadline_of_zero_is_none) {
  static_assert(!rule::job_deadline(0s, t0));
  static_assert(rule::job_deadline(5s, t0) == t0 + 5s);
}

BOOST_AUTO_TEST_CASE(a_reason_is_cut_at_its_limit_and_not_within_a_character) {
  std::string const fits(limits::reason_size, 'x');
  BOOST_TEST(rule::kept_reason(fits) == fits);
  BOOST_TEST(rule::kept_reason(fits + "y") == fits);
  for (std::size_t inside = 1; inside < 4; ++inside) {  // a four-byte character across the limit
    std::string text(limits::reason_size - inside, 'x');
    auto const whole = text;
    text += "\xF0\x9F\x8C\x8A and more";
    BOOST_TEST(rule::kept_reason(text) == whole);
  }
  std::string const broken(limits::reason_size + 8, '\x80');
  BOOST_TEST(rule::kept_reason(broken).size() == limits::reason_size);
}

BOOST_AUTO_TEST_CASE(a_record_goes_when_its_retention_is_over) {
  static_assert(rule::record_gone(rule::kept_until(t0, 0s), t0));
  static_assert(!rule::record_gone(rule::kept_until(t0, 5s), t0 + 5s - 1ns));
  static_assert(rule::record_gone(rule::kept_until(t0, 5s), t0 + 5s));
  static_assert(rule::kept_until(time_point::max(), 5s) == time_point::max());
}

BOOST_AUTO_TEST_CASE(completing_again_is_completed_for_the_same_lease_only) {
  using enum complete_outcome;
  static_assert(rule::on_complete(job_state::leased, 7, 7) == completed);
  static_assert(rule::on_complete(job_state::completed, 7, 7) == completed);
  static_assert(rule::on_complete(job_state::completed, 7, 6) == lease_lost);
  static_assert(rule::on_complete(job_state::pending, 7, 7) == lease_lost);
  static_assert(rule::on_complete(job_state::dead, 7, 7) == lease_lost);
  static_assert(rule::on_complete(job_state::cancelled, 7, 7) == lease_lost);
  static_assert(rule::on_complete(std::nullopt, 0, 0) == lease_lost);
}

BOOST_AUTO_TEST_CASE(cancelling_leaves_a_running_job_alone_unless_told_otherwise) {
  using enum cancel_outcome;
  static_assert(rule::on_cancel(job_state::pending, false) == cancelled);
  static_assert(rule::on_cancel(job_state::leased, false) == running);
  static_assert(rule::on_cancel(job_state::leased, true) == cancelled);
  static_assert(rule::on_cancel(job_state::cancelled, false) == cancelled);
  static_assert(rule::on_cancel(job_state::completed, true) == ended);
  static_assert(rule::on_cancel(job_state::dead, true) == ended);
  static_assert(rule::on_cancel(std::nullopt, true) == not_found);
}

BOOST_AUTO_TEST_CASE(F40_only_the_dead_are_replayed_and_only_into_a_free_key) {
  static_assert(rule::on_replay(job_state::dead, true) == replay_outcome::replayed);
  static_assert(rule::on_replay(job_state::dead, false) == replay_outcome::conflict);
  static_assert(rule::on_replay(job_state::completed, true) == replay_outcome::not_found);
  static_assert(rule::on_replay(std::nullopt, true) == replay_outcome::not_found);
}

BOOST_AUTO_TEST_CASE(a_possessor_is_what_its_job_does) {
  using rule::possessor;
  using enum rule::claim_decision;
  constexpr auto s = unique_strategy::until_executed;
  static_assert(rule::possessor_in(job_state::pending, lease, s) == possessor::waiting);
  for (auto const claim : {lease, bury_spent, bury_missed}) {
    for (auto const each : strategies) {
      BOOST_TEST((rule::possessor_in(job_state::leased, claim, each) == possessor::running));
      BOOST_TEST((rule::possessor_in(job_state::completed, claim, each) == possessor::ended));
      BOOST_TEST((rule::possessor_in(job_state::dead, claim, each) == possessor::ended));
      BOOST_TEST((rule::possessor_in(std::nullopt, claim, each) == possessor::ended));
    }
  }
}

BOOST_AUTO_TEST_CASE(F14_a_possessor_that_no_claim_can_lease_gives_its_key_up) {
  using enum rule::claim_decision;
  using rule::possessor;
  for (auto const claim : {bury_spent, bury_missed}) {
    for (auto const s : strategies) {
      if (!holds_while_waiting(s)) continue;
      bool const expires = s == unique_strategy::until_expired;
      BOOST_TEST((rule::possessor_in(job_state::pending, claim, s) ==
                  (expires ? possessor::ended : possessor::unclaimable)));
    }
  }
  for (auto const policy : policies) {
    BOOST_TEST((rule::on_enqueue(unique_strategy::until_executed, policy, possessor::unclaimable) ==
                rule::enqueue_decision::bury));
  }
  static_assert(rule::outcome_of(rule::enqueue_decision::bury) == enqueue_outcome::enqueued);
}

BOOST_AUTO_TEST_CASE(R2_a_newcomer_is_added_into_a_free_key_only) {
  using rule::enqueue_decision;
  using rule::possessor;
  for (auto const s : strategies) {
    for (auto const policy : policies) {
      BOOST_TEST((rule::on_enqueue(s, policy, possessor::nobody) == enqueue_decision::add));
      for (auto const p : {possessor::waiting, possessor::running, possessor::ended}) {
        auto const d = rule::on_enqueue(s, policy, p);
        if (!holds_while_waiting(s)) {
          BOOST_TEST((d == enqueue_decision::add));
        } else if (p == possessor::waiting && policy == conflict_policy::replace) {
          BOOST_TEST((d == enqueue_decision::replace));
        } else if (p == possessor::waiting && policy == conflict_policy::reschedule) {
          BOOST_TEST((d == enqueue_decision::reschedule));
        } else {
          BOOST_TEST((d == enqueue_decision::duplicate));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(each_strategy_holds_its_key_for_its_time) {
  struct row {
    unique_strategy strategy;
    bool waiting, running, end_frees, start_frees, expires;
  };
  constexpr std::array rows{
      row{unique_strategy::none, false, false, false, false, false},
      row{unique_strategy::until_executed, true, false, true, false, false},
      row{unique_strategy::until_executing, true, false, true, true, false},
      row{unique_strategy::while_executing, false, true, false, false, false},
      row{unique_strategy::until_and_while_executing, true, true, true, true, false},
      row{unique_strategy::until_expired, true, false, false, false, true}};
  for (auto const& r : rows) {
    BOOST_TEST(holds_while_waiting(r.strategy) == r.waiting);
    BOOST_TEST(holds_while_running(r.strategy) == r.running);
    BOOST_TEST(rule::end_frees_key(r.strategy) == r.end_frees);
    BOOST_TEST(rule::replay_takes_key(r.strategy) == r.end_frees);
    BOOST_TEST(rule::start_frees_key(r.strategy) == r.start_frees);
    BOOST_TEST((rule::key_expiry(r.strategy, 5s, t0) == t0 + 5s) == r.expires);
    BOOST_TEST((rule::on_start(r.strategy, true) == start_outcome::blocked) == r.running);
    BOOST_TEST((rule::on_start(r.strategy, false) == start_outcome::started));
  }
}

BOOST_AUTO_TEST_CASE(F48_a_pointer_only_gets_earlier_by_a_job) {
  static_assert(rule::pointer_with(std::nullopt, t0) == t0);
  static_assert(rule::pointer_with(t0, t0 + 1s) == t0);
  static_assert(rule::pointer_with(t0, t0 - 1s) == t0 - 1s);
}

BOOST_AUTO_TEST_CASE(F39_a_scan_begins_as_far_on_the_way_as_its_entropy_says) {
  constexpr auto all = ~std::uint64_t{0};
  static_assert(rule::scan_start(t0, t0 + 8s, 0) == t0);
  static_assert(rule::scan_start(t0, t0 + 8s, all / 2 + 1) == t0 + 4s);
  static_assert(rule::scan_start(t0, t0 + 8s, all / 4 + 1) == t0 + 2s);
  static_assert(rule::scan_start(t0, t0 + 8s, all) == t0 + 8s - 1ns);
  static_assert(rule::scan_start(t0, t0 - 1ns, all) == t0);
  static_assert(rule::scan_start(time_point::min(), time_point::max(), all) <= time_point::max());
  static_assert(rule::scan_start(t0, t0 + 3ns, all) == t0 + 2ns);
}

BOOST_AUTO_TEST_CASE(a_snoozed_queue_is_scanned_from_the_end_of_its_snooze) {
  static_assert(rule::scanned_from(t0, t0 + 5s) == t0 + 5s);
  static_assert(rule::scanned_from(t0, time_point::min()) == t0);
  static_assert(rule::queue_held(true, time_point::min(), t0));
  static_assert(rule::queue_held(false, t0 + 1ns, t0));
  static_assert(!rule::queue_held(false, t0, t0));
}

BOOST_AUTO_TEST_CASE(F41_only_an_empty_queues_pointer_goes_stale) {
  static_assert(!rule::pointer_stale(t0, false, 0s, t0 + 100s));
  static_assert(!rule::pointer_stale(t0, true, 60s, t0 + 60s));
  static_assert(rule::pointer_stale(t0, true, 60s, t0 + 60s + 1ns));
}

BOOST_AUTO_TEST_SUITE_END()
