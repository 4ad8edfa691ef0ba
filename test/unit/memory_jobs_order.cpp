// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "jobs_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

// What a queue gives out, and in which order; and what enqueueing answers.

namespace {

using namespace test;

new_job prioritised(std::uint64_t n, std::uint8_t priority, duration delay = {}) {
  auto j = make_job(n);
  j.priority = priority;
  j.delay = delay;
  return j;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_jobs_order)

BOOST_AUTO_TEST_CASE(R4_the_best_visible_job_comes_first) {
  jobs_bed b;
  b.enqueue(prioritised(1, 200));
  b.enqueue(prioritised(2, 0, 5s));
  b.enqueue(prioritised(3, 100, 2s));
  b.enqueue(prioritised(5, 100, 1s));
  b.enqueue(prioritised(4, 100, 1s));
  BOOST_TEST(b.claim_all(1) == list{1}, "only the least urgent one is visible yet");
  b.now += 2s;
  BOOST_TEST(b.claim_all(2) == (list{4, 5}));
  b.enqueue(prioritised(6, 255));
  b.now += 3s;
  BOOST_TEST(b.claim_all() == (list{2, 3, 6}));
}

BOOST_AUTO_TEST_CASE(R4_none_is_claimed_before_its_vesting_time) {
  jobs_bed b;
  b.enqueue(prioritised(1, 0, 10s));
  b.now += 10s - 1ns;
  auto const none = b.dequeue();
  BOOST_TEST(none.jobs.empty());
  BOOST_TEST(!none.more);
  BOOST_TEST(none.next_in == std::optional<duration>{1ns});
  BOOST_TEST(!b.get(command::obtain_lease{.queue = "q", .id = id_of(1), .holder = "h", .lease = 1s})
                  .has_value());
  b.now += 1ns;
  BOOST_TEST(b.claim_all() == list{1});
}

BOOST_AUTO_TEST_CASE(F30_future_and_leased_jobs_hide_no_ready_one) {
  jobs_bed b;
  for (std::uint64_t n = 0; n < 500; ++n) b.enqueue(prioritised(1000 + n, 0, 1h));
  for (std::uint64_t n = 0; n < 500; ++n) b.enqueue(prioritised(2000 + n, 1));
  BOOST_TEST(b.dequeue(500, 1h).jobs.size() == 500U);
  b.enqueue(prioritised(1, 1));
  b.enqueue(prioritised(2, 255));
  auto const got = b.dequeue(1);
  BOOST_TEST(b.numbers(got.jobs) == list{1});
  BOOST_TEST(got.more);
  BOOST_TEST(b.claim_all() == list{2});
}

BOOST_AUTO_TEST_CASE(all_256_levels_are_there) {
  jobs_bed b;
  std::vector<std::uint64_t> order(256);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random{7};
  std::shuffle(order.begin(), order.end(), random);
  for (auto const p : order) b.enqueue(prioritised(p + 1, static_cast<std::uint8_t>(p)));
  for (std::uint64_t p = 0; p < 256; p += 32) {
    list expected;
    for (std::uint64_t i = 0; i < 32; ++i) expected.push_back(p + i + 1);
    BOOST_TEST(b.claim_all(32) == expected);
  }
}

BOOST_AUTO_TEST_CASE(order_holds_among_random_priorities_and_times) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    jobs_bed b;
    std::mt19937 random{seed};
    std::vector<std::tuple<int, duration, std::uint64_t>> expected;
    for (std::uint64_t n = 1; n <= 300; ++n) {
      auto const priority = static_cast<std::uint8_t>(random() % 4 * 85);
      duration const delay = std::chrono::seconds{random() % 20};
      auto const id = random() % 2 == 0 ? n : 10'000 - n;
      b.enqueue(prioritised(id, priority, delay));
      expected.emplace_back(priority, delay, id);
    }
    b.now += 30s;
    std::sort(expected.begin(), expected.end());
    list ids;
    for (auto const& e : expected) ids.push_back(std::get<2>(e));
    list got;
    while (got.size() < ids.size()) {
      auto const some = b.claim_all(static_cast<std::uint32_t>(1 + random() % 40));
      got.insert(got.end(), some.begin(), some.end());
      b.now += 1ns;
    }
    BOOST_TEST(got == ids);
  }
}

BOOST_AUTO_TEST_CASE(peeking_lists_the_visible_in_order_and_leases_none) {
  jobs_bed b;
  auto first = prioritised(1, 7);
  first.kind = "a kind";
  first.payload = "its payload";
  b.enqueue(prioritised(2, 9));
  b.enqueue(first);
  b.enqueue(prioritised(3, 0, 1s));
  command::peek_jobs const peek{.queue = "q", .limit = 10};
  auto const seen = b.get(peek);
  BOOST_TEST(b.numbers(seen) == (list{1, 2}));
  BOOST_TEST(seen[0].kind == "a kind");
  BOOST_TEST(seen[0].payload == "its payload");
  BOOST_TEST(seen[0].priority == 7);
  BOOST_TEST(seen[0].attempts == 0U);
  BOOST_TEST((seen[0].state == job_state::pending));
  BOOST_TEST(b.numbers(b.get(command::peek_jobs{.queue = "q", .limit = 1})) == list{1});
  BOOST_TEST(b.claim_all() == (list{1, 2}));
  BOOST_TEST(b.get(peek).empty());
}

BOOST_AUTO_TEST_CASE(a_dequeue_says_what_a_consumer_needs) {
  jobs_bed b;
  auto j = prioritised(1, 3);
  j.kind = "k";
  j.payload = "";
  j.max_attempts = 4;
  j.deadline = 100s;
  b.enqueue(j);
  b.enqueue(prioritised(2, 4, 40s));
  b.now += 10s;
  auto const got = b.dequeue(5, 20s);
  BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
  auto const& l = got.jobs.front();
  BOOST_TEST(number_of(l.id) == 1U);
  BOOST_TEST(l.kind == "k");
  BOOST_TEST(l.payload.empty());
  BOOST_TEST(l.priority == 3);
  BOOST_TEST(l.attempt == 1U);
  BOOST_TEST(l.max_attempts == 4U);
  BOOST_TEST(l.snoozes == 0U);
  BOOST_TEST(l.expires_in == duration{20s});
  BOOST_TEST(l.age == duration{10s});
  BOOST_TEST(l.deadline_in == std::optional<duration>{90s});
  BOOST_TEST(!got.more);
  BOOST_TEST(!got.held);
  BOOST_TEST(got.dead_lettered == 0U);
  BOOST_TEST(got.next_in == std::optional<duration>{20s},
             "the lease ends before the other job vests");
}

BOOST_AUTO_TEST_CASE(a_queue_that_is_not_there_is_empty) {
  jobs_bed b;
  b.queue = "nowhere";
  auto const got = b.dequeue();
  BOOST_TEST(got.jobs.empty());
  BOOST_TEST(!got.next_in.has_value());
  BOOST_TEST(!b.find(1).has_value());
  BOOST_TEST((b.cancel(1) == cancel_outcome::not_found));
  BOOST_TEST((b.replay(1) == replay_outcome::not_found));
  BOOST_TEST(!b.purge(1));
  BOOST_TEST(!b.min_vesting().has_value());
  BOOST_TEST(b.stats().enqueued == 0U);
  BOOST_TEST(b.get(command::list_queues{.shard = 0, .limit = 10, .cursor = {}}).queues.empty(),
             "and asking makes none");
}

BOOST_AUTO_TEST_CASE(enqueueing_a_known_id_again_changes_nothing) {
  jobs_bed b;
  b.enqueue(1);
  auto again = make_job(1);
  again.payload = "another";
  again.delay = 1h;
  BOOST_TEST((b.enqueue(again).outcome == enqueue_outcome::enqueued));
  BOOST_TEST(b.stats().enqueued == 1U);
  BOOST_TEST(b.require(1).payload == "payload");
  auto const l = b.claim();
  BOOST_TEST((b.enqueue(again).outcome == enqueue_outcome::enqueued), "nor while it runs");
  b.complete(l);
  BOOST_TEST((b.enqueue(again).outcome == enqueue_outcome::enqueued));
  BOOST_TEST(b.stats().enqueued == 2U, "its record is gone: it is another job");
  BOOST_TEST(b.require(1).payload == "another");
}

BOOST_AUTO_TEST_CASE(queues_do_not_share_ids_or_order) {
  jobs_bed b;
  b.enqueue(1);
  b.queue = "r";
  b.enqueue(1);
  b.enqueue(2);
  BOOST_TEST(b.claim_all() == (list{1, 2}));
  b.queue = "q";
  BOOST_TEST(b.claim_all() == list{1});
}

BOOST_AUTO_TEST_CASE(a_batch_is_one_step_with_an_outcome_for_each) {
  jobs_bed b;
  b.enqueue(unique_job(1, unique_strategy::until_executed));
  std::vector<new_job> batch{make_job(2), unique_job(3, unique_strategy::until_executed),
                             make_job(4), make_job(2)};
  auto const out = b.get(command::enqueue_jobs{.queue = "q", .jobs = batch});
  BOOST_TEST_REQUIRE(out.size() == 4U);
  BOOST_TEST((out[0].outcome == enqueue_outcome::enqueued));
  BOOST_TEST((out[1].outcome == enqueue_outcome::duplicate),
             "F18: a conflict concerns its own job only");
  BOOST_TEST(number_of(out[1].other) == 1U);
  BOOST_TEST((out[2].outcome == enqueue_outcome::enqueued));
  BOOST_TEST((out[3].outcome == enqueue_outcome::enqueued), "the same id twice is one job");
  BOOST_TEST(b.stats().enqueued == 3U);
}

BOOST_AUTO_TEST_CASE(times_at_the_ends_of_the_range_do_not_overflow) {
  jobs_bed b;
  b.now = time_point::max() - 1s;
  auto j = make_job(1);
  j.delay = limits::span;
  j.deadline = limits::span;
  j.retention = limits::span;
  b.enqueue(j);
  b.enqueue(2);
  BOOST_TEST(b.claim_all(10, limits::span) == list{2});
  b.now = time_point::min();
  b.enqueue(3);
  BOOST_TEST(b.claim_all(10, 1s) == list{3});
  BOOST_TEST(b.stats().enqueued == 3U);
}

// R8

BOOST_AUTO_TEST_CASE(R8_a_full_store_refuses_the_whole_batch_and_changes_nothing) {
  jobs_bed b{memory_options{.max_jobs = 3}};
  b.enqueue(1);
  b.enqueue(2);
  std::vector<new_job> const two{make_job(3), make_job(4)};
  BOOST_TEST(b.error(command::enqueue_jobs{.queue = "q", .jobs = two}) == errc::store_full);
  BOOST_TEST(b.stats().enqueued == 2U);
  BOOST_TEST(b.error(command::enqueue_jobs{.queue = "elsewhere", .jobs = two}) == errc::store_full);
  b.enqueue(3);
  BOOST_TEST(b.error(command::enqueue_jobs{.queue = "q", .jobs = {two.data() + 1, 1}}) ==
             errc::store_full);
  b.enqueue(2);  // asked again: needs no room
  b.complete(b.claim());
  b.enqueue(4);
  BOOST_TEST(b.stats().pending == 3U);
}

BOOST_AUTO_TEST_CASE(R8_a_job_that_comes_again_in_the_batch_that_replaces_it_counts) {
  jobs_bed b{memory_options{.max_jobs = 4}};
  auto first = make_job(1);
  first.strategy = unique_strategy::until_executed;
  first.unique_key = "key";
  BOOST_TEST(b.ask(command::enqueue_jobs{.queue = "q", .jobs = {&first, 1}})->size() == 1U);
  b.enqueue(2);
  b.enqueue(3);
  std::vector<new_job> two{make_job(4), make_job(1)};
  two[0].strategy = unique_strategy::until_executed;
  two[0].unique_key = "key";
  two[0].on_conflict = conflict_policy::replace;
  two[1].strategy = unique_strategy::until_expired;
  two[1].unique_key = "another";
  two[1].unique_ttl = 1h;
  BOOST_TEST(b.ask(command::enqueue_jobs{.queue = "q", .jobs = two})->size() == 2U);
  std::vector<new_job> const more{make_job(10)};
  BOOST_TEST(b.error(command::enqueue_jobs{.queue = "q", .jobs = more}) == errc::store_full);
  command::relay_job const end{.queue = "q", .id = id_of(2), .expected = "payload"};
  BOOST_TEST(!b.error(end), "what only ends a job needs no room");
}

BOOST_AUTO_TEST_CASE(R8_ended_records_count_until_they_go) {
  jobs_bed b{memory_options{.max_jobs = 2}};
  auto kept = make_job(1);
  kept.retention = 10s;
  b.enqueue(kept);
  b.complete(b.claim());
  b.enqueue(2);
  auto const l = b.claim();
  b.bury(l);
  auto const next = make_job(3);
  command::enqueue_jobs const more{.queue = "q", .jobs = {&next, 1}};
  BOOST_TEST(b.error(more) == errc::store_full);
  b.now += 10s;
  BOOST_TEST(!b.error(more), "the retention of the first is over");
  BOOST_TEST(b.purge(2));
  b.enqueue(4);
  BOOST_TEST(b.stats().enqueued == 4U);
}

BOOST_AUTO_TEST_CASE(R8_keys_held_until_expired_count_after_their_jobs) {
  jobs_bed b{memory_options{.max_jobs = 3}};
  b.enqueue(unique_job(1, unique_strategy::until_expired, conflict_policy::discard, "a"));
  b.complete(b.claim());
  auto const next = unique_job(2, unique_strategy::until_expired, conflict_policy::discard, "b");
  b.enqueue(next);
  auto const third = make_job(3);
  BOOST_TEST(b.error(command::enqueue_jobs{.queue = "q", .jobs = {&third, 1}}) == errc::store_full);
  b.now += 60s;
  b.enqueue(third);
  BOOST_TEST(b.stats().pending == 2U);
}

BOOST_AUTO_TEST_CASE(R8_the_bound_is_over_all_shards_and_never_exceeded) {
  constexpr std::size_t most = 4096;
  jobs_bed b{memory_options{.max_jobs = most, .shards = 8}};
  std::size_t taken = 0;
  std::vector<std::string> names;
  for (int i = 0; i < 64; ++i) names.push_back("queue-" + std::to_string(i));
  for (std::uint64_t n = 1; n <= 2 * most; ++n) {
    auto const j = make_job(n);
    auto const r = b.jobs.apply(
        command::enqueue_jobs{.queue = names[n % names.size()], .jobs = {&j, 1}}, b.now);
    if (r.has_value()) ++taken;
    if (r.has_error()) BOOST_TEST(r.error() == errc::store_full);
  }
  BOOST_TEST(taken <= most);
  BOOST_TEST(taken >= most - most / 64);
}

BOOST_AUTO_TEST_CASE(R8_a_shard_that_is_not_there_is_an_error) {
  jobs_bed b{memory_options{.shards = 2}};
  BOOST_TEST(b.jobs.shard_count() == 2U);
  BOOST_TEST(b.error(command::scan_visible_queues{.shard = 2, .limit = 1}) == errc::invalid_shard);
  BOOST_TEST(b.error(command::gc_stale_pointers{.shard = 2, .limit = 1}) == errc::invalid_shard);
  BOOST_TEST(b.error(command::list_queues{.shard = 7, .limit = 1, .cursor = {}}) ==
             errc::invalid_shard);
  BOOST_TEST(!b.error(command::list_queues{.shard = 1, .limit = 1, .cursor = {}}));
}

BOOST_AUTO_TEST_SUITE_END()
