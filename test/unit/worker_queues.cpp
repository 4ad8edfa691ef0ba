// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The choice of queues that a worker serves, their shares, and claims of many of them at once.
#include "unit/slow_store.hpp"
#include "unit/worker_fixture.hpp"
#include "weir/worker/turns.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace test;
using kind = weir::worker_event_kind;
using slow = weir_test::slow_store<memory>;

namespace {

std::string const one = R"({"text":"a","number":1})";

struct queues_fixture : worker_fixture {
  /// One whose handlers take a while; what it runs is counted by queue.
  template <class Store = memory>
  auto counting(Store on, weir::worker_options options, weir::duration length = 10ms) {
    weir::worker<Store, weir::manual_clock, weir::constant_backoff> w{
        std::move(on), std::move(options), clock, weir::constant_backoff{10s},
        weir::id_source::seeded(++workers)};
    w.on_event([this](weir::worker_event const& e) { ++events[e.kind]; });
    w.template handle<note>(
        [this, length](note const&, weir::job_context& c) -> asio::awaitable<void> {
          std::string const queue{c.queue()};
          auto& now = running[queue];
          most[queue] = std::max(most[queue], ++now);
          most_at_once = std::max(most_at_once, ++at_once);
          ++ran[queue];
          auto const takes = length + stagger * (++handled % 7);
          co_await sleep(takes);
          --running[queue];
          --at_once;
        });
    return w;
  }
  template <class Worker>
  void begin(Worker& w) {
    w.async_run([this](weir::error_code ec) { ended = ec; });
    settle();
  }
  void fill(std::string const& queue, int n) {
    for (int i = 0; i != n; ++i) enqueue("note", one, queue);
  }
  int all() const {
    int out = 0;
    for (auto const& [queue, n] : ran) out += n;
    return out;
  }

  std::map<std::string, int> running;
  std::map<std::string, int> most;
  std::map<std::string, int> ran;
  weir::duration stagger{};  // so that handlers that begin together do not end together
  int handled = 0;
  int at_once = 0;
  int most_at_once = 0;
};

weir::error_code why_not(weir::worker_options o) { return weir::validate(o); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(worker_queues, queues_fixture)

BOOST_AUTO_TEST_CASE(a_worker_serves_the_queues_that_it_names_and_no_others) {
  fill("mail", 3);
  fill("reports", 3);
  auto w = counting(store, {.queues = {{.name = "mail"}}});
  begin(w);
  pass(10s);
  BOOST_TEST(ran["mail"] == 3);
  BOOST_TEST(ran["reports"] == 0);
  BOOST_TEST(stats("reports").pending == 3U);
  fill("mail", 1);
  pass(1s);
  BOOST_TEST(ran["mail"] == 4);
}

BOOST_AUTO_TEST_CASE(a_prefix_serves_all_queues_whose_names_begin_so) {
  for (int i = 0; i != 20; ++i) fill("tenant/" + std::to_string(i), 1);
  fill("tenan", 1);
  fill("mail", 1);
  auto w = counting(store, {.queues = {{.prefix = "tenant/"}}});
  begin(w);
  pass(10s);
  BOOST_TEST(all() == 20);
  BOOST_TEST(stats("tenan").pending + stats("mail").pending == 2U);
}

BOOST_AUTO_TEST_CASE(a_prefix_is_found_among_many_queues_of_others) {
  for (int i = 0; i != 2000; ++i) {
    fill("other/" + std::to_string(i), 1);
    if (i == 1000) fill("tenant/1", 1);
    clock.advance(1ms);
  }
  auto w = counting(store, {.scan_limit = 100, .queues = {{.prefix = "tenant/"}}});
  begin(w);
  pass(10s);
  BOOST_TEST(ran["tenant/1"] == 1);
  BOOST_TEST(all() == 1);
}

BOOST_AUTO_TEST_CASE(a_named_queue_is_found_at_once_among_any_number_of_others) {
  for (int i = 0; i != 2000; ++i) fill("other/" + std::to_string(i), 1);
  slow const far{store, clock, 1ms};
  auto w = counting(far, {.scan_limit = 1, .queues = {{.name = "mail"}}});
  begin(w);
  pass(10ms);
  fill("mail", 1);
  pass(200ms);  // hints are of no use while queues of others are due: a tenth of the poll interval
  BOOST_TEST(ran["mail"] == 1);
  BOOST_TEST(far.of<weir::command::scan_visible_queues>().asked == 0U);
  pass(10s);
  BOOST_TEST(far.of<weir::command::min_vesting_time>().asked < 300U);
}

BOOST_AUTO_TEST_CASE(a_name_goes_before_a_prefix_and_the_longer_prefix_before_the_shorter) {
  weir::detail::turns const t{
      {{.prefix = ""}, {.prefix = "a/"}, {.name = "a/b/c"}, {.prefix = "a/b"}}};
  BOOST_TEST(t.of("a/b/c") == 2U);
  BOOST_TEST(t.of("a/b/d") == 3U);
  BOOST_TEST(t.of("a/c") == 1U);
  BOOST_TEST(t.of("c") == 0U);
  BOOST_TEST(t.serves_all());
  weir::detail::turns const some{{{.prefix = "a/"}}};
  BOOST_TEST(some.of("a/x") == 0U);
  BOOST_TEST(some.of("b/a/x") == weir::detail::turns::nobody);
  BOOST_TEST(!some.serves_all());
}

BOOST_AUTO_TEST_CASE(entries_get_jobs_by_their_weights) {
  fill("urgent", 3000);
  fill("bulk", 3000);
  fill("rest", 3000);
  auto w = counting(
      store,
      {.concurrency = 10,
       .queues = {{.name = "urgent", .weight = 6}, {.name = "bulk", .weight = 3}, {.weight = 1}}});
  begin(w);
  pass(1s);
  // Never more than a claim of each from their shares.
  BOOST_TEST(all() >= 900);
  BOOST_TEST(std::abs(ran["urgent"] - 6 * ran["rest"]) <= 70);
  BOOST_TEST(std::abs(ran["bulk"] - 3 * ran["rest"]) <= 40);
}

BOOST_AUTO_TEST_CASE(by_weight_at_a_distance_and_by_name) {
  fill("urgent", 3000);
  fill("rest", 3000);
  stagger = 1ms;
  slow const far{store, clock, 4ms};
  auto w = counting(
      far, {.concurrency = 10, .queues = {{.name = "urgent", .weight = 9}, {.name = "rest"}}});
  begin(w);
  pass(3s);
  BOOST_TEST(all() >= 900);
  BOOST_TEST(std::abs(ran["urgent"] - 9 * ran["rest"]) <= 100);
}

BOOST_AUTO_TEST_CASE(by_weight_at_a_distance_too) {
  fill("urgent", 3000);
  fill("rest", 3000);
  stagger = 1ms;
  slow const far{store, clock, 4ms};
  auto w = counting(
      far, {.concurrency = 10, .queues = {{.name = "urgent", .weight = 9}, {.weight = 1}}});
  begin(w);
  pass(3s);
  BOOST_TEST(all() >= 900);
  BOOST_TEST(std::abs(ran["urgent"] - 9 * ran["rest"]) <= 100);
}

BOOST_AUTO_TEST_CASE(an_entry_without_jobs_saves_up_no_turns) {
  weir::detail::turns t{{{.name = "a"}, {.name = "b"}}};
  for (int i = 0; i != 1000; ++i) {
    t.add("a", 0);
    BOOST_TEST_REQUIRE(t.next({}).has_value());
    t.charge(0, 10);
  }
  t.add("a", 0);
  t.add("b", 1);
  int of_b = 0;
  for (int i = 0; i != 10; ++i) {
    auto const turn = t.next({});
    of_b += turn->by == 1 ? 1 : 0;
    t.charge(turn->by, 10);
    t.add(std::string{turn->queue}, turn->by);
  }
  BOOST_TEST(of_b >= 4);
  BOOST_TEST(of_b <= 6);
}

BOOST_AUTO_TEST_CASE(an_entry_has_a_concurrency_of_its_own) {
  for (int i = 0; i != 5; ++i) fill("slow/" + std::to_string(i), 20);
  fill("quick", 50);
  auto w = counting(
      store, {.concurrency = 10, .queues = {{.prefix = "slow/", .concurrency = 3}, {}}}, 100ms);
  begin(w);
  int most_slow = 0;
  for (int i = 0; i != 200; ++i) {
    int slow_ones = 0;
    for (auto const& [queue, n] : running) slow_ones += queue == "quick" ? 0 : n;
    most_slow = std::max(most_slow, slow_ones);
    pass(10ms);
  }
  BOOST_TEST(most_slow == 3);
  BOOST_TEST(most["quick"] == 10 - 3);
  BOOST_TEST(ran["quick"] == 50);
  pass(10s);
  BOOST_TEST(all() == 150);
}

BOOST_AUTO_TEST_CASE(a_full_entry_hides_no_queue_of_the_others) {
  fill("slow", 1000);
  slow const far{store, clock, 1ms};
  auto w =
      counting(far, {.concurrency = 10, .queues = {{.name = "slow", .concurrency = 1}, {}}}, 1h);
  begin(w);
  pass(5s);
  BOOST_TEST(ran["slow"] == 1);
  fill("quick", 1);
  pass(150ms);
  BOOST_TEST(ran["quick"] == 1);
  auto const before = far.of<weir::command::scan_visible_queues>().asked;
  pass(10s);
  BOOST_TEST(far.of<weir::command::scan_visible_queues>().asked - before <= 110U);
}

BOOST_AUTO_TEST_CASE(a_full_entry_is_not_asked_for_again_and_again) {
  for (auto const& others : {std::vector<weir::served_queues>{}, {{.prefix = "tenant/"}}}) {
    worker_fixture::events.clear();
    std::string const name = "slow " + std::to_string(others.size());
    fill(name, 100);
    slow const far{store, clock, 1ms};
    auto served = others;
    served.push_back({.name = name, .concurrency = 1});
    auto w = counting(far, {.concurrency = 10, .queues = served}, 1h);
    begin(w);
    pass(1s);
    BOOST_TEST(ran[name] == 1);
    auto const asked = [&] {
      return far.of<weir::command::scan_visible_queues>().asked +
             far.of<weir::command::min_vesting_time>().asked;
    };
    auto const before = asked();
    pass(10s);
    BOOST_TEST(asked() - before <= 220U);
    w.stop();
    pass(20s);
  }
}

BOOST_AUTO_TEST_CASE(a_named_queue_that_fails_is_not_asked_for_again_and_again) {
  fill("slow", 1);
  slow const far{store, clock, 1ms};
  far.claims_take("slow", 20s);
  auto w = counting(far, {.concurrency = 10, .queues = {{.name = "slow"}, {.prefix = "tenant/"}}});
  begin(w);
  pass(10s);
  BOOST_TEST(far.of<weir::command::scan_visible_queues>().asked <= 110U);
  fill("tenant/1", 1);
  pass(200ms);
  BOOST_TEST(ran["tenant/1"] == 1);
}

BOOST_AUTO_TEST_CASE(names_are_found_among_more_queues_than_a_look_finds) {
  for (int i = 0; i != 50; ++i) fill("tenant/" + std::to_string(i), 40);
  pass(10ms);
  fill("mail", 500);
  auto w = counting(
      store, {.concurrency = 10, .scan_limit = 5, .queues = {{.name = "mail", .weight = 9}, {}}});
  begin(w);
  pass(500ms);
  BOOST_TEST(all() >= 450);
  BOOST_TEST(ran["mail"] >= all() * 8 / 10);
}

BOOST_AUTO_TEST_CASE(a_paused_queue_that_is_named_is_not_asked_again_and_again) {
  fill("mail", 1);
  ask(weir::command::pause_queue{"mail"});
  slow const far{store, clock, 1ms};
  auto w = counting(far, {.queues = {{.name = "mail"}}});
  begin(w);
  pass(10s);
  BOOST_TEST(ran["mail"] == 0);
  BOOST_TEST(far.of<weir::command::dequeue_jobs>().asked <= 16U);
  ask(weir::command::resume_queue{"mail"});
  pass(1s);
  BOOST_TEST(ran["mail"] == 1);
}

BOOST_AUTO_TEST_CASE(F84_a_worker_by_name_listens_again_when_nothing_of_others_is_due) {
  slow const far{store, clock, 1ms};
  auto w = counting(far, {.poll = 1s, .queues = {{.name = "mail"}}});
  begin(w);
  for (int i = 0; i != 8; ++i) {
    fill("other", 1);
    pass(200ms);
  }
  auto const jobs = ask(weir::command::dequeue_jobs{
      .queue = "other", .holder = "another", .sequence = 1, .limit = 8, .lease = 1h});
  for (auto const& j : jobs.jobs) {
    weir::finished_job const done{.id = j.id, .fence = j.fence, .result = {}};
    ask(weir::command::complete_jobs{"other", {&done, 1}});
  }
  fill("mail", 1);
  pass(2s);
  BOOST_TEST(ran["mail"] == 1);
  auto const before = far.of<weir::command::min_vesting_time>().asked;
  pass(10s);
  BOOST_TEST(far.of<weir::command::min_vesting_time>().asked - before <= 20U);
}

BOOST_AUTO_TEST_CASE(a_worker_looks_in_the_shards_that_it_is_given) {
  memory const sharded{io.get_executor(), {.shards = 4}, clock};
  auto const add = [&](std::string const& queue) {
    weir::new_job job;
    job.id = ids.job();
    job.kind = "note";
    job.payload = one;
    BOOST_TEST_REQUIRE(sharded.execute(weir::command::enqueue_jobs{queue, {&job, 1}}).has_value());
  };
  for (int i = 0; i != 40; ++i) add(std::to_string(i));
  auto const due = [&](std::uint32_t shard) {
    return sharded.execute(weir::command::scan_visible_queues{.shard = shard})
        .value()
        .queues.size();
  };
  std::size_t const there[] = {due(0), due(1), due(2), due(3)};
  auto w = counting(sharded, {.shards = {1, 3}});
  begin(w);
  pass(3s);
  BOOST_TEST(static_cast<std::size_t>(all()) == there[1] + there[3]);
  BOOST_TEST(due(0) == there[0]);
  BOOST_TEST(due(2) == there[2]);

  auto none = counting(sharded, {.shards = {1, 4}});
  ended.reset();
  none.async_run([this](weir::error_code ec) { ended = ec; });
  settle();
  BOOST_TEST_REQUIRE(ended.has_value());
  BOOST_TEST((*ended == weir::errc::invalid_shard));
}

BOOST_AUTO_TEST_CASE(bad_entries_are_refused) {
  using weir::errc;
  BOOST_TEST((why_not({.queues = {{.weight = 0}}}) == errc::invalid_option));
  BOOST_TEST((why_not({.queues = {{.weight = 10'001}}}) == errc::invalid_option));
  BOOST_TEST((why_not({.queues = {{.name = "a", .prefix = "b"}}}) == errc::invalid_option));
  BOOST_TEST((why_not({.queues = {{.name = "a"}, {.name = "a"}}}) == errc::invalid_option));
  BOOST_TEST((why_not({.queues = {{}, {}}}) == errc::invalid_option));
  BOOST_TEST((why_not({.queues = {{.name = std::string(1025, 'a')}}}) == errc::invalid_option));
  BOOST_TEST((why_not({.queues = {{.concurrency = 10'001}}}) == errc::invalid_option));
  BOOST_TEST((why_not({.prefetch = 10'001}) == errc::invalid_option));
  BOOST_TEST((why_not({.queues = {{.name = "a"}, {.prefix = "a"}, {}}}) == weir::error_code{}));
}

BOOST_AUTO_TEST_CASE(F74_claims_of_many_queues_are_under_way_at_once) {
  constexpr int queues = 2000;
  for (int i = 0; i != queues; ++i) fill("tenant/" + std::to_string(i), 1);
  slow const far{store, clock, 4ms};
  auto w = counting(far, {.concurrency = 100}, 0ms);
  auto const begun = clock.steady_now();
  begin(w);
  while (events[kind::completed] != queues) {
    BOOST_TEST_REQUIRE(clock.next_deadline().has_value());
    clock.advance_to_next();
    settle();
    BOOST_TEST_REQUIRE((clock.steady_now() - begun < 60s));
  }
  // A claim and a completion are two round trips; a look finds a hundred of them.
  BOOST_TEST((clock.steady_now() - begun <= 20 * 12ms + 20ms));
  auto const claims = far.of<weir::command::dequeue_jobs>();
  BOOST_TEST(claims.most == 100U);
  BOOST_TEST(claims.asked == std::size_t{queues});
  BOOST_TEST(far.of<weir::command::scan_visible_queues>().asked <= 25U);
  BOOST_TEST(most_at_once <= 100);
}

BOOST_AUTO_TEST_CASE(a_quiet_tenant_waits_for_few_claims_of_a_busy_one) {
  // Ten hands, and jobs of 10 ms: a claim of a quantum is 10 ms of work. There is a look after
  // five.
  fill("busy", 12'000);
  auto const waits = [&](auto on, weir::duration most_wait, weir::worker_options const& options) {
    auto w = counting(std::move(on), options);
    begin(w);
    for (int i = 0; i != 20; ++i) {
      pass(37ms);
      auto const before = ran["quiet"];
      fill("quiet", 1);
      auto const enqueued = clock.steady_now();
      while (ran["quiet"] == before) {
        clock.advance_to_next();
        settle();
        BOOST_TEST_REQUIRE((clock.steady_now() - enqueued <= most_wait));
      }
    }
    w.stop();
    pass(11s);
  };
  weir::worker_options const equal{.concurrency = 10};
  waits(store, 8 * 10ms, equal);
  waits(slow{store, clock, 4ms}, 8 * 10ms + 3 * 4ms, equal);
  // A hundred of its jobs, ten claims, for each of the quiet one's.
  weir::worker_options const weighted{.concurrency = 10,
                                      .queues = {{.name = "busy", .weight = 100}, {}}};
  waits(store, (8 + 10) * 10ms, weighted);
  waits(slow{store, clock, 4ms}, (8 + 10) * 10ms + 3 * 4ms, weighted);
  BOOST_TEST(stats("busy").pending > 0U);
}

BOOST_AUTO_TEST_CASE(no_more_is_claimed_than_there_are_hands_and_outcomes_to_be_stored) {
  for (int i = 0; i != 50; ++i) fill("tenant/" + std::to_string(i), 30);
  slow const far{store, clock, 4ms};
  auto w = counting(far, {.concurrency = 7}, 5ms);
  begin(w);
  for (int i = 0; i != 100; ++i) {
    clock.advance_to_next();
    settle();
    std::uint64_t leased = 0;
    for (int q = 0; q != 50; ++q) leased += stats("tenant/" + std::to_string(q)).leased;
    BOOST_TEST_REQUIRE(leased <= 14U);
  }
  BOOST_TEST(most_at_once == 7);
  pass(60s);
  BOOST_TEST(all() == 1500);
}

BOOST_AUTO_TEST_CASE(a_queue_with_a_backlog_is_claimed_from_by_the_quantum) {
  fill("deep", 1000);
  slow const far{store, clock, 4ms};
  auto w = counting(far, {.concurrency = 10}, 0ms);
  begin(w);
  pass(30s);
  BOOST_TEST(all() == 1000);
  BOOST_TEST(far.of<weir::command::dequeue_jobs>().asked <= 120U);
}

BOOST_AUTO_TEST_CASE(a_claim_that_hangs_keeps_no_other_queue_waiting) {
  fill("hangs", 1);
  slow const far{store, clock, 1ms};
  far.claims_take("hangs", 20s);
  auto w = counting(far, {.concurrency = 10});
  begin(w);
  pass(1s);
  fill("other", 100);
  pass(3s);
  BOOST_TEST(ran["other"] == 100);
  BOOST_TEST(ran["hangs"] == 0);
  pass(20s);
  BOOST_TEST(ran["hangs"] == 1);
}

BOOST_AUTO_TEST_CASE(what_comes_of_a_claim_that_was_too_slow_is_given_back_if_there_are_no_hands) {
  fill("hangs", 10);
  slow const far{store, clock, 1ms};
  far.claims_take("hangs", 20s);
  auto w = counting(far, {.concurrency = 10}, 1min);
  begin(w);
  pass(1s);
  fill("other", 8);
  pass(24s);
  BOOST_TEST(ran["other"] == 8);
  BOOST_TEST(most_at_once == 10);
  BOOST_TEST(ran["hangs"] == 2);
  BOOST_TEST(stats("hangs").pending == 8U);
}

BOOST_AUTO_TEST_CASE(jobs_that_were_prefetched_start_without_a_round_trip) {
  fill("mail", 1000);
  slow const far{store, clock, 20ms};
  auto w = counting(far, {.concurrency = 10, .quantum = 100, .prefetch = 60}, 10ms);
  begin(w);
  pass(20ms + 20ms);  // a look, and a claim
  pass(200ms);
  BOOST_TEST(most_at_once == 10);
  BOOST_TEST(all() >= 190);
  auto const had = stats("mail").leased;
  BOOST_TEST(had > 10U);
  BOOST_TEST(had <= 70U);

  w.stop();
  pass(1s);
  BOOST_TEST_REQUIRE(ended.has_value());
  BOOST_TEST(stats("mail").leased == 0U);
  BOOST_TEST(std::uint64_t(all()) + stats("mail").pending == 1000U);
  BOOST_TEST(events[kind::returned] >= 20);
  auto const left = ask(weir::command::peek_jobs{"mail", 1000});
  BOOST_TEST(std::ranges::all_of(left, [](weir::job const& j) { return j.attempts == 0; }));
}

BOOST_AUTO_TEST_CASE(leases_of_prefetched_jobs_are_renewed) {
  fill("mail", 4);
  auto w = counting(store, {.concurrency = 1, .prefetch = 3, .lease = 3s}, 10s);
  begin(w);
  pass(41s);
  BOOST_TEST(all() == 4);
  BOOST_TEST(events[kind::completed] == 4);
  BOOST_TEST(events[kind::lease_lost] == 0);
  BOOST_TEST(most_at_once == 1);
}

BOOST_AUTO_TEST_CASE(a_prefetched_job_whose_lease_is_lost_waits_for_no_hand) {
  std::vector<weir::job_id> jobs;
  for (int i = 0; i != 4; ++i) jobs.push_back(enqueue("note", one, "mail"));
  auto w = counting(store, {.concurrency = 1, .prefetch = 3, .lease = 3s}, 1h);
  begin(w);
  BOOST_TEST(stats("mail").leased == 4U);
  for (auto const at : {1U, 3U}) ask(weir::command::cancel_job{"mail", jobs[at], true});
  fill("mail", 1);
  pass(2s);
  BOOST_TEST(events[kind::lease_lost] == 2);
  BOOST_TEST(stats("mail").leased == 3U);  // its place is another's
  BOOST_TEST(all() == 1);
}

BOOST_AUTO_TEST_CASE(F39_with_many_backlogs_there_is_a_look_in_each_poll_interval) {
  auto const waits = [&](auto on) {
    for (int i = 0; i != 30; ++i) fill("tenant/" + std::to_string(i), 60);
    auto w = counting(std::move(on), {.queues = {{.name = "urgent", .weight = 1000}, {}}}, 1s);
    begin(w);
    pass(1500ms);
    auto const before = ran["urgent"];
    fill("urgent", 1);
    pass(2100ms);  // a poll interval, and a hand gets free
    BOOST_TEST(ran["urgent"] == before + 1);
    w.stop();
    pass(11s);
  };
  waits(store);
  waits(slow{store, clock, 1ms});
}

BOOST_AUTO_TEST_CASE(a_poll_interval_that_is_over_at_once_lets_jobs_run) {
  fill("mail", 100);
  auto w = counting(store, {.poll = 1ns}, 0ms);
  begin(w);
  BOOST_TEST(ran["mail"] == 100);
}

/// Two shards, of which the second one answers looks late.
struct late_shard : queues_fixture {
  late_shard() {
    far.answers<weir::command::scan_visible_queues>(
        [this](weir::command::scan_visible_queues const& c) -> slow::answer {
          return {c.shard == 1 ? late_by : 1ms};
        });
    far.answers<weir::command::min_vesting_time>(
        [this](weir::command::min_vesting_time const& c) -> slow::answer {
          return {c.queue == late ? late_by : 1ms};
        });
  }
  void add(memory const& to, std::string const& queue) {
    weir::new_job job;
    job.id = ids.job();
    job.kind = "note";
    job.payload = one;
    BOOST_TEST_REQUIRE(to.execute(weir::command::enqueue_jobs{queue, {&job, 1}}).has_value());
  }
  std::string name_in(std::uint32_t shard) {
    memory const same{io.get_executor(), {.shards = 2}, clock};
    std::vector<std::string> queues;
    for (int i = 0; queues.empty(); ++i) {
      add(same, std::to_string(i));
      queues = same.execute(weir::command::scan_visible_queues{.shard = shard}).value().queues;
    }
    return queues.front();
  }

  memory sharded{io.get_executor(), {.shards = 2}, clock};
  slow far{sharded, clock, 1ms};
  weir::duration late_by = 10s;
  std::string quick = name_in(0);
  std::string late = name_in(1);
};

BOOST_FIXTURE_TEST_CASE(a_shard_that_does_not_answer_holds_up_no_other_one, late_shard) {
  for (auto const& served :
       {std::vector<weir::served_queues>{}, {{.name = quick}, {.name = late}}}) {
    auto w = counting(far, {.queues = served});
    begin(w);
    pass(11s);
    ran.clear();
    add(sharded, late);
    for (int i = 1; i != 20; ++i) {
      add(sharded, quick);
      pass(300ms);
      BOOST_TEST_REQUIRE(ran[quick] == i);
    }
    // It was asked once more, and not again before it has answered.
    BOOST_TEST(far.of<weir::command::scan_visible_queues>().under_way <= 1U);
    BOOST_TEST(far.of<weir::command::min_vesting_time>().under_way <= 1U);
    pass(20s);
    BOOST_TEST(ran[late] == 1);
    late_by = 1ms;
    pass(10s);
    add(sharded, late);
    pass(200ms);
    BOOST_TEST(ran[late] == 2);
    late_by = 10s;
    w.stop();
    pass(20s);
  }
}

// They take no hand, so nothing else ends a row of them.
BOOST_AUTO_TEST_CASE(claims_that_only_bury_jobs_let_others_get_on) {
  constexpr int queues = 10;
  std::vector<weir::new_job> late(700);
  for (int i = 0; i != queues; ++i) {
    for (auto& job : late) {
      job.id = ids.job();
      job.kind = "note";
      job.payload = one;
      job.deadline = 1s;
    }
    ask(weir::command::enqueue_jobs{"q" + std::to_string(i), late});
  }
  pass(2s);
  auto w = counting(store, {});
  int before = 0;
  int most_in_a_row = 0;
  std::function<void()> turn = [&] {
    int const now = events[kind::dead_lettered];
    most_in_a_row = std::max(most_in_a_row, now - std::exchange(before, now));
    if (now < queues * 7) asio::post(io, turn);
  };
  w.async_run([this](weir::error_code ec) { ended = ec; });
  asio::post(io, turn);
  settle();
  BOOST_TEST(before == queues * 7);
  BOOST_TEST(most_in_a_row <= 2);
  w.stop();
  settle();
}

// Whatever it is asked for when its worker has gone.
BOOST_FIXTURE_TEST_CASE(R7_a_shard_may_answer_after_the_worker_has_ended, late_shard) {
  {
    auto w = counting(far, {.queues = {{.name = late}, {}}});
    begin(w);
    pass(1s);
    w.stop();
    settle();
    BOOST_TEST(ended.has_value());
  }
  pass(20s);
}

BOOST_AUTO_TEST_SUITE_END()
