// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "jobs_bed.hpp"
#include "weir/rule/shards.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

// How a scan finds queues; holding them back; their leases; and what stays of an empty one.

namespace {

using namespace test;
using names = std::vector<std::string>;

new_job delayed(std::uint64_t n, duration delay) {
  auto j = make_job(n);
  j.delay = delay;
  return j;
}

void pause(jobs_bed& b) { b.get(command::pause_queue{.queue = b.queue}); }
void resume(jobs_bed& b) { b.get(command::resume_queue{.queue = b.queue}); }
void snooze_queue(jobs_bed& b, duration d) {
  b.get(command::snooze_queue{.queue = b.queue, .delay = d});
}
std::optional<duration> update(jobs_bed& b) {
  return b.get(command::update_queue_pointer{.queue = b.queue});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_jobs_pointers)

BOOST_AUTO_TEST_CASE(a_scan_lists_due_queues_the_longest_due_first) {
  jobs_bed b;
  for (auto const& [name, delay] :
       {std::pair{"c", 1s}, {"a", 3s}, {"b", 3s}, {"d", 2s}, {"e", 9s}}) {
    b.queue = name;
    b.enqueue(delayed(1, delay));
  }
  BOOST_TEST(b.scan().queues.empty());
  BOOST_TEST(b.scan().next_in == std::optional<duration>{1s});
  b.now += 3s;
  auto seen = b.scan();
  BOOST_TEST(seen.queues == (names{"c", "d", "a", "b"}));
  BOOST_TEST(seen.next_in == std::optional<duration>{6s});
  seen = b.scan(2);
  BOOST_TEST(seen.queues == (names{"c", "d"}));
  BOOST_TEST(seen.next_in == std::optional<duration>{0s}, "more are due now");
}

BOOST_AUTO_TEST_CASE(F39_a_busy_queue_hides_no_other) {
  jobs_bed b;
  b.queue = "tenant with much to do";
  for (std::uint64_t n = 1; n <= 5000; ++n) b.enqueue(n);
  b.now += 1s;
  b.queue = "other";
  b.enqueue(1);
  BOOST_TEST(b.scan(2).queues.size() == 2U, "a queue has one pointer, however many jobs");
  b.queue = "tenant with much to do";
  b.now += 1s;
  b.dequeue(1);
  b.snooze(b.claim(), 0s);
  BOOST_TEST(b.scan(2).queues.size() == 2U);
}

BOOST_AUTO_TEST_CASE(F39_a_scan_begins_where_its_entropy_says) {
  jobs_bed b;
  for (auto const* name : {"a", "b", "c", "d"}) {
    b.queue = name;
    b.enqueue(1);
    b.now += 1s;
  }
  b.queue = "future";
  b.enqueue(delayed(1, 9s));
  auto const scan = [&](std::uint32_t limit, std::uint64_t entropy) {
    return b.get(command::scan_visible_queues{.shard = 0, .limit = limit, .entropy = entropy});
  };
  // The longest due has been so for 4 s; half of the way is 2 s, when "c" came.
  constexpr auto half = std::uint64_t{1} << 63U;
  BOOST_TEST(scan(2, half).queues == (names{"c", "d"}));
  BOOST_TEST(scan(2, half).next_in == std::optional<duration>{-4s}, "a is left out, and due");
  BOOST_TEST(scan(1, half).next_in == std::optional<duration>{-1s}, "d is left out, and due");
  BOOST_TEST(scan(3, half).queues == (names{"c", "d", "a"}));
  BOOST_TEST(scan(9, half).queues == (names{"c", "d", "a", "b"}));
  BOOST_TEST(scan(9, half).next_in == std::optional<duration>{9s});
  BOOST_TEST(scan(9, ~std::uint64_t{0}).queues == (names{"a", "b", "c", "d"}));
  BOOST_TEST(scan(1, half + 1).queues == (names{"c"}), "to the nanosecond below");
}

BOOST_AUTO_TEST_CASE(F48_an_enqueue_makes_a_pointer_earlier_and_never_later) {
  jobs_bed b;
  b.enqueue(delayed(1, 100s));
  b.enqueue(delayed(2, 10s));
  b.enqueue(delayed(3, 50s));
  BOOST_TEST(b.scan().next_in == std::optional<duration>{10s});
  b.now += 10s;
  b.claim(5s);
  b.enqueue(delayed(4, 1s));
  BOOST_TEST(update(b) == std::optional<duration>{1s},
             "recomputed in its own step, whatever a caller believes");
  BOOST_TEST(b.scan().next_in == std::optional<duration>{1s});
}

BOOST_AUTO_TEST_CASE(F48_whatever_makes_a_job_earlier_brings_the_pointer_along) {
  auto const due = [](jobs_bed& b) { return b.scan().queues.size() == 1; };
  jobs_bed b;
  b.enqueue(1);
  auto l = b.claim(1h);
  update(b);
  BOOST_TEST(!due(b));
  b.requeue(l);
  BOOST_TEST(due(b));
  l = b.claim(1h);
  b.snooze(l);
  BOOST_TEST(due(b));
  l = b.claim(1h);
  BOOST_TEST(!due(b));
  b.give_back(l);
  BOOST_TEST(due(b));
  l = b.claim(1h);
  b.bury(l);
  update(b);
  BOOST_TEST(!due(b));
  b.replay(1);
  BOOST_TEST(due(b));
}

BOOST_AUTO_TEST_CASE(F28_the_pointer_of_leased_jobs_is_due_when_a_lease_ends) {
  jobs_bed b;
  b.enqueue(1);
  b.enqueue(2);
  b.dequeue(2, 30s);
  BOOST_TEST(b.scan().next_in == std::optional<duration>{30s});
  b.now += 30s;
  BOOST_TEST(b.scan().queues.size() == 1U);
}

BOOST_AUTO_TEST_CASE(F41_collecting_pointers_orphans_no_job) {
  jobs_bed b;
  b.enqueue(1);
  b.complete(b.claim(30s));
  BOOST_TEST(b.gc(60s) == 0U);
  b.now += 90s;
  BOOST_TEST(b.gc(60s) == 0U, "due for no longer than that");
  b.now += 1ns;
  b.enqueue(2);
  BOOST_TEST(b.gc(60s) == 0U, "it is not empty");
  BOOST_TEST(b.scan().queues.size() == 1U);
  b.complete(b.claim(30s));
  b.now += 200s;
  BOOST_TEST(b.gc(60s) == 1U);
  BOOST_TEST(b.gc(60s) == 0U);
  BOOST_TEST(b.scan().queues.empty());
  BOOST_TEST(!b.scan().next_in.has_value());
  b.enqueue(3);
  BOOST_TEST(b.scan().queues.size() == 1U);
  BOOST_TEST(b.claim_all() == list{3});
}

BOOST_AUTO_TEST_CASE(F41_collecting_passes_over_what_has_jobs) {
  jobs_bed b;
  for (int i = 0; i < 20; ++i) {
    auto const name = "q" + std::to_string(i);
    b.queue = name;
    b.enqueue(1);
    if (i % 2 == 1) b.cancel(1);
  }
  b.queue = "q";
  b.now += 1h;
  BOOST_TEST(b.get(command::gc_stale_pointers{.shard = 0, .limit = 3, .grace = 0s}) == 3U);
  BOOST_TEST(b.gc() == 7U);
  BOOST_TEST(b.scan().queues.size() == 10U);
}

BOOST_AUTO_TEST_CASE(updating_the_pointer_of_an_empty_queue_takes_it_out_of_the_scan) {
  jobs_bed b;
  b.enqueue(1);
  b.cancel(1);
  BOOST_TEST(b.scan().queues.size() == 1U);
  BOOST_TEST(!update(b).has_value());
  BOOST_TEST(b.scan().queues.empty());
  b.queue = "nowhere";
  BOOST_TEST(!update(b).has_value());
}

BOOST_AUTO_TEST_CASE(a_paused_queue_gives_nothing_out_and_leaves_the_scan) {
  jobs_bed b;
  b.enqueue(1);
  b.enqueue(2);
  auto const l = b.dequeue(1, 30s, "h", 7).jobs.front();
  pause(b);
  BOOST_TEST(b.stats().paused);
  BOOST_TEST(b.scan().queues.empty());
  auto const got = b.dequeue(10, 30s, "other");
  BOOST_TEST(got.held);
  BOOST_TEST(got.jobs.empty());
  BOOST_TEST(!got.more, "nobody is to ask again at once");
  BOOST_TEST(!b.get(command::obtain_lease{.queue = "q", .id = id_of(2), .holder = "h", .lease = 1s})
                  .has_value());
  b.enqueue(3);
  BOOST_TEST(b.scan().queues.empty(), "enqueueing goes on and does not end a pause");
  BOOST_TEST(b.numbers(b.dequeue(1, 30s, "h", 7).jobs) == list{1},
             "F54: what was given out before is");
  b.extend(l, 60s);
  b.requeue(l);
  BOOST_TEST(b.scan().queues.empty());
  b.now += 24h;
  BOOST_TEST(b.dequeue().held);
  resume(b);
  BOOST_TEST(!b.stats().paused);
  BOOST_TEST(b.scan().queues.size() == 1U);
  BOOST_TEST(b.claim_all() == (list{1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(a_snoozed_queue_comes_back_at_its_instant) {
  jobs_bed b;
  b.enqueue(1);
  snooze_queue(b, 10s);
  BOOST_TEST(b.scan().queues.empty());
  BOOST_TEST(b.scan().next_in == std::optional<duration>{10s});
  BOOST_TEST(b.dequeue().held);
  b.enqueue(2);
  BOOST_TEST(b.scan().next_in == std::optional<duration>{10s});
  b.now += 10s - 1ns;
  BOOST_TEST(b.dequeue().held);
  b.now += 1ns;
  BOOST_TEST(b.scan().queues.size() == 1U);
  BOOST_TEST(b.claim_all(1) == list{1});
  snooze_queue(b, 1h);
  snooze_queue(b, 0s);
  BOOST_TEST(b.scan().queues.size() == 1U, "0 ends a snooze");
  snooze_queue(b, 1h);
  pause(b);
  snooze_queue(b, 0s);
  BOOST_TEST(b.dequeue().held, "but not a pause");
  resume(b);
  snooze_queue(b, 1h);
  resume(b);
  BOOST_TEST(b.claim_all() == list{2}, "resuming ends both");
}

BOOST_AUTO_TEST_CASE(a_queue_may_be_held_before_it_has_jobs) {
  jobs_bed b;
  pause(b);
  b.enqueue(1);
  BOOST_TEST(b.dequeue().held);
  BOOST_TEST(b.scan().queues.empty());
  resume(b);
  BOOST_TEST(b.scan().queues.size() == 1U);
}

BOOST_AUTO_TEST_CASE(F32_a_queue_lease_lasts_until_it_is_given_back_or_over) {
  jobs_bed b;
  auto const obtain = [&](std::string_view holder) {
    return b.get(command::obtain_queue_lease{.queue = "q", .holder = holder, .lease = 10s});
  };
  auto const release = [&](std::string_view holder, std::uint64_t fence) {
    return b.get(command::release_queue_lease{.queue = "q", .holder = holder, .fence = fence})
        .freed;
  };
  auto const first = obtain("a");
  BOOST_TEST(first.granted);
  BOOST_TEST(first.expires_in == duration{10s});
  b.enqueue(1);
  b.dequeue(1, 1s, "a");
  b.now += 4s;
  auto const refused = obtain("b");
  BOOST_TEST(!refused.granted);
  BOOST_TEST(refused.fence == 0U);
  BOOST_TEST(refused.holder == "a");
  BOOST_TEST(refused.expires_in == duration{6s});
  auto const again = obtain("a");
  BOOST_TEST(again.granted);
  BOOST_TEST(again.fence == first.fence);
  BOOST_TEST(again.expires_in == duration{6s});
  BOOST_TEST(b.claim_all() == list{1}, "it is advisory");
  b.now += 6s;
  auto const second = obtain("b");
  BOOST_TEST(second.granted);
  BOOST_TEST(second.fence > first.fence);
  BOOST_TEST(!release("a", first.fence), "late, and harmless");
  BOOST_TEST(!release("b", first.fence));
  BOOST_TEST(!obtain("a").granted);
  BOOST_TEST(release("b", second.fence));
  BOOST_TEST(!release("b", second.fence));
  auto const third = obtain("a");
  BOOST_TEST(third.fence > second.fence);
  BOOST_TEST(release("a", 0), "by holder");
}

BOOST_AUTO_TEST_CASE(queues_are_listed_by_name_in_pages) {
  jobs_bed b;
  for (auto const* name : {"m", "b", "z", "a", "q"}) {
    b.queue = name;
    b.enqueue(1);
  }
  auto const page = [&](std::uint32_t limit, std::string_view cursor) {
    return b.get(command::list_queues{.shard = 0, .limit = limit, .cursor = cursor});
  };
  auto p = page(2, {});
  BOOST_TEST(p.queues == (names{"a", "b"}));
  p = page(2, p.cursor);
  BOOST_TEST(p.queues == (names{"m", "q"}));
  p = page(2, p.cursor);
  BOOST_TEST(p.queues == names{"z"});
  BOOST_TEST(p.cursor.empty());
  BOOST_TEST(page(5, {}).cursor.empty());
}

BOOST_AUTO_TEST_CASE(R4_the_counters_of_an_empty_queue_stay) {
  jobs_bed b;
  b.enqueue(1);
  b.complete(b.claim());
  b.now += 24h;
  b.gc();
  BOOST_TEST(b.stats().completed == 1U);
  BOOST_TEST(b.stats().enqueued == 1U);
}

BOOST_AUTO_TEST_CASE(R8_only_so_many_queues_without_jobs_are_remembered) {
  constexpr std::size_t remembered = 10;
  detail::job_budget budget{1000};
  detail::job_shard shard{detail::job_allowance{budget, 1000, 1}, remembered};
  time_point now{1'000s};
  auto const count = [&] {
    return shard.apply(command::list_queues{.shard = 0, .limit = 1000, .cursor = {}}, now)
        .value()
        .queues.size();
  };
  auto const j = make_job(1);
  for (int i = 0; i < 200; ++i) {
    auto const name = "q" + std::to_string(i);
    BOOST_TEST(shard.apply(command::enqueue_jobs{.queue = name, .jobs = {&j, 1}}, now).has_value());
    BOOST_TEST((shard.apply(command::cancel_job{.queue = name, .id = j.id}, now).value() ==
                cancel_outcome::cancelled));
  }
  BOOST_TEST(count() <= remembered + 1);
  BOOST_TEST(shard.apply(command::read_queue_stats{.queue = "q199"}, now).value().cancelled == 1U);
  BOOST_TEST(shard.apply(command::read_queue_stats{.queue = "q0"}, now).value().cancelled == 0U,
             "the oldest was forgotten");
  BOOST_TEST(shard.apply(command::scan_visible_queues{.shard = 0, .limit = 1000}, now)
                 .value()
                 .queues.size() <= remembered + 1);

  // What is held is not forgotten; and where only such are left, no more are held.
  for (int i = 0; i < 20; ++i) {
    auto const r = shard.apply(command::pause_queue{.queue = "p" + std::to_string(i)}, now);
    BOOST_TEST(r.has_value() == (i < 10));
    if (r.has_error()) BOOST_TEST(r.error() == errc::store_full);
  }
  for (int i = 0; i < 10; ++i) {
    BOOST_TEST(shard.apply(command::read_queue_stats{.queue = "p" + std::to_string(i)}, now)
                   .value()
                   .paused);
  }
  BOOST_TEST(shard.apply(command::obtain_queue_lease{.queue = "l", .holder = "h", .lease = 1s}, now)
                 .error() == errc::store_full);
  BOOST_TEST(shard.apply(command::pause_queue{.queue = "p1"}, now).has_value(), "asked again");
  BOOST_TEST(shard.apply(command::enqueue_jobs{.queue = "q", .jobs = {&j, 1}}, now).has_value(),
             "jobs always may");
  BOOST_TEST(shard.apply(command::resume_queue{.queue = "p3"}, now).has_value());
  BOOST_TEST(shard.apply(command::obtain_queue_lease{.queue = "l", .holder = "h", .lease = 1s}, now)
                 .has_value());
  BOOST_TEST(count() <= remembered + 1);
}

BOOST_AUTO_TEST_CASE(R4_R8_no_queue_is_forgotten_with_its_jobs) {
  detail::job_budget budget{1000};
  detail::job_shard shard{detail::job_allowance{budget, 1000, 1}, 3};
  time_point now{1'000s};
  std::uint64_t n = 0;
  for (int i = 0; i < 100; ++i) {
    auto const name = "q" + std::to_string(i);
    for (int k = 0; k < 2; ++k) {
      auto const j = make_job(++n);
      BOOST_TEST(
          shard.apply(command::enqueue_jobs{.queue = name, .jobs = {&j, 1}}, now).has_value());
    }
    auto const done =
        shard.apply(command::cancel_job{.queue = name, .id = id_of(n), .running = false}, now);
    BOOST_TEST((done.value() == cancel_outcome::cancelled));
  }
  for (int i = 0; i < 100; ++i) {
    auto const name = "q" + std::to_string(i);
    BOOST_TEST(shard.apply(command::read_queue_stats{.queue = name}, now).value().pending == 1U);
  }
}

// The shard of a queue is asked of the rule, too: to tell which worker serves it.
BOOST_AUTO_TEST_CASE(queues_spread_over_the_shards_as_the_rule_has_it) {
  jobs_bed b{memory_options{.shards = 4}};
  for (int i = 0; i < 200; ++i) {
    auto const j = make_job(1);
    auto const name = "q" + std::to_string(i);
    BOOST_TEST(
        b.jobs.apply(command::enqueue_jobs{.queue = name, .jobs = {&j, 1}}, b.now).has_value());
  }
  for (int round = 0; round < 2; ++round) {
    std::size_t total = 0;
    for (std::uint32_t s = 0; s < 4; ++s) {
      auto const seen = b.get(command::scan_visible_queues{.shard = s, .limit = 1000}).queues;
      BOOST_TEST(seen.size() > 20U);
      total += seen.size();
      for (auto const& name : seen) BOOST_TEST(rule::shard_of(name, 4) == s);
      auto listed = b.get(command::list_queues{.shard = s, .limit = 1000, .cursor = {}}).queues;
      auto sorted = seen;
      std::sort(sorted.begin(), sorted.end());
      BOOST_TEST(listed == sorted);
    }
    BOOST_TEST(total == 200U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
