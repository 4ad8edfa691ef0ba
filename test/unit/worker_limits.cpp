// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A limit that refuses many jobs: how often they are claimed in vain, and whether its permits are
// used.
#include "unit/slow_store.hpp"
#include "unit/worker_fixture.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace test {

/// By a key of its own for each text, two at once.
struct by_text : note {};
/// One at once.
struct alone : note {};
/// By the same limit, of which it leaves more to others.
struct modest : note {};
/// Its limit is its queue's.
struct in_order : note {};
/// Enqueued again, it has another instant.
struct movable : note {};
/// Its key is another one each time that it is decoded.
struct wandering : note {
  static inline std::string key;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(by_text, text, number)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(alone, text, number)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(modest, text, number)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(in_order, text, number)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(movable, text, number)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(wandering, text, number)

}  // namespace test

template <>
struct weir::job_traits<test::by_text> {
  static constexpr std::string_view kind = "limited";
  static constexpr std::uint32_t concurrency = 2;
  static std::string concurrency_key(test::by_text const& l) { return "limit " + l.text; }
};
template <>
struct weir::job_traits<test::alone> {
  static constexpr std::string_view kind = "single";
  static constexpr std::uint32_t concurrency = 1;
};
template <>
struct weir::job_traits<test::modest> {
  static constexpr std::string_view kind = "modest";
  static constexpr std::uint32_t concurrency = 1;
  static std::string concurrency_key(test::modest const& l) { return "limit " + l.text; }
};
template <>
struct weir::job_traits<test::in_order> {
  static constexpr std::string_view kind = "in order";
  static constexpr std::uint32_t concurrency = 1;
  static constexpr std::string_view concurrency_key = "order";
  static constexpr auto concurrency_scope = weir::limit_scope::queue;
};
template <>
struct weir::job_traits<test::movable> {
  static constexpr std::string_view kind = "movable";
  static constexpr std::uint32_t concurrency = 1;
  static constexpr std::string_view concurrency_key = "single";
  static constexpr auto unique = weir::unique_strategy::until_executed;
  static constexpr std::string_view unique_key = "movable";
  static constexpr auto on_conflict = weir::conflict_policy::reschedule;
};
template <>
struct weir::job_traits<test::wandering> {
  static constexpr std::string_view kind = "wandering";
  static constexpr std::uint32_t concurrency = 1;
  static std::string concurrency_key(test::wandering const&) { return test::wandering::key; }
};

using namespace test;
using kind = weir::worker_event_kind;

namespace {

struct limits_fixture : worker_fixture {
  worker_type& worker(weir::worker_options options = {}, weir::duration length = 50ms) {
    auto& w = workers_.emplace_back(make_worker(options));
    w.handle<by_text>([this, length](by_text const& l) { return run(l.text, length); });
    w.handle<modest>([this, length](modest const& l) {
      others_of_modest = std::max(others_of_modest, running[l.text]);
      return run(l.text, length);
    });
    w.handle<alone>([this, length](alone const&) { return run("single", length); });
    w.handle<movable>([this, length](movable const&) { return run("single", length); });
    w.handle<note>([this](note const&) { ++plain; });
    return w;
  }
  asio::awaitable<void> run(std::string key, weir::duration length) {
    auto& now = running[key];
    most = std::max(most, ++now);
    ++started;
    co_await sleep(length);
    --now;
    ++ended_jobs;
  }
  template <class Job>
  void backlog(int n, Job const& job = {}) {
    for (int i = 0; i != n; ++i) enqueue(job);
  }
  /// How many jobs have been claimed in vain for each that has ended.
  [[nodiscard]] double refusals() {
    return double(events[kind::snoozed]) / std::max(ended_jobs, 1);
  }
  void expect_nothing_left(std::string const& key) {
    auto const census = ask(weir::command::inspect_permits{key, 10});
    BOOST_TEST(census.in_use == 0U);
    BOOST_TEST(census.waiting == 0U);
  }

  std::deque<worker_type> workers_;
  std::map<std::string, int> running;
  int most = 0;
  int others_of_modest = 0;
  int started = 0;
  int ended_jobs = 0;
  int plain = 0;
};

struct load {
  std::chrono::milliseconds length;
  int workers;
  double refusals;  // a completion, at most
};
std::ostream& operator<<(std::ostream& out, load const& l) {
  return out << l.length.count() << " ms, " << l.workers << " workers";
}

load const loads[] = {{2ms, 1, 2}, {50ms, 1, 2}, {500ms, 1, 2},
                      {5s, 1, 6},  {50ms, 3, 2}, {5s, 3, 8}};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(worker_limits, limits_fixture)

BOOST_DATA_TEST_CASE_F(limits_fixture, F73_a_limits_permits_are_used_and_few_jobs_are_refused,
                       boost::unit_test::data::make(loads), l) {
  backlog(2000, by_text{});
  for (int i = 1; i != l.workers; ++i) worker({}, l.length).async_run([](weir::error_code) {});
  start(worker({}, l.length));
  auto const whole = 200 * l.length;  // of 400 jobs
  pass(whole);
  BOOST_TEST(most == 2);
  BOOST_TEST(ended_jobs >= 396);
  pass(4 * whole + 10 * l.length);
  BOOST_TEST(ended_jobs == 2000);
  BOOST_TEST(refusals() <= l.refusals);
  expect_nothing_left("limit ");
}

BOOST_AUTO_TEST_CASE(F73_one_at_a_time_for_ten_seconds) {
  backlog(2000, alone{});
  start(worker());
  pass(10s);
  BOOST_TEST(most == 1);
  BOOST_TEST(ended_jobs >= 199);
  BOOST_TEST(refusals() <= 2);
}

BOOST_AUTO_TEST_CASE(F73_limits_of_many_keys_are_all_used) {
  for (int i = 0; i != 2000; ++i) enqueue(by_text{{.text = std::to_string(i % 50), .number = i}});
  start(worker({.concurrency = 200, .quantum = 100}, 500ms));
  pass(20 * 500ms + 100ms);
  BOOST_TEST(most == 2);
  BOOST_TEST(ended_jobs == 2000);
  BOOST_TEST(refusals() <= 2);
}

BOOST_AUTO_TEST_CASE(F73_what_is_behind_the_refused_is_found) {
  backlog(500, by_text{});
  backlog(20, note{});
  start(worker({}, 5s));
  pass(1min);
  BOOST_TEST(plain == 20);
}

// The lines need hands, and so does everything else.
BOOST_AUTO_TEST_CASE(F73_neither_the_lines_nor_new_claims_starve) {
  auto const other = ask(weir::command::acquire_permit{
      .key = "single", .holder = "other", .limit = 1, .ttl = 1h, .patience = {}});
  backlog(200, alone{});
  auto& w = worker({.concurrency = 1});
  w.handle<note>([&](note const&) -> asio::awaitable<void> {
    co_await sleep(50ms);
    ++plain;
  });
  start(w);
  pass(20s);
  for (int i = 0; i != 200; ++i) enqueue(note{.text = "plain", .number = i}, {.queue = "other"});
  ask(weir::command::release_permit{"single", "other", other.fence});
  pass(2s);  // of 40 jobs
  BOOST_TEST(plain >= 10);
  BOOST_TEST(ended_jobs >= 10);
  pass(40s);
  BOOST_TEST(plain == 200);
  BOOST_TEST(ended_jobs == 200);
  expect_nothing_left("single");
}

// Nobody tells the other worker what the first one knew.
BOOST_AUTO_TEST_CASE(F73_what_waits_needs_nobody_who_remembers_it) {
  backlog(2000, by_text{});
  start(worker());
  pass(5s);
  auto const before = ended_jobs;
  BOOST_TEST(before >= 190);
  cancel();
  pass(1s);
  BOOST_TEST(ended.has_value());
  expect_nothing_left("limit ");
  auto const rest = ended_jobs;
  start(worker());
  pass(5s);
  BOOST_TEST(ended_jobs - rest >= 150);
}

BOOST_AUTO_TEST_CASE(F73_the_first_in_line_starts_when_the_permit_is_free) {
  auto const other = ask(weir::command::acquire_permit{
      .key = "single", .holder = "other", .limit = 1, .ttl = 1h, .patience = {}});
  enqueue(alone{});
  start(worker({.poll = 1min}));
  BOOST_TEST(started == 0);
  pass(5s);
  ask(weir::command::release_permit{"single", "other", other.fence});
  pass(1ms);
  BOOST_TEST(started == 1);
}

// Nobody gives back the place of a process that has died, or stands still.
BOOST_AUTO_TEST_CASE(R6_a_worker_that_died_in_line_holds_up_the_others_for_no_lease) {
  asio::io_context process;
  auto const other = ask(weir::command::acquire_permit{
      .key = "single", .holder = "other", .limit = 1, .ttl = 1h, .patience = {}});
  enqueue(alone{});
  auto& dying = worker({.lease = 10min});
  dying.bookkeeping_on(process.get_executor());
  dying.async_run(asio::bind_executor(process.get_executor(), [](weir::error_code) {}));
  while (process.poll() != 0) process.restart();
  BOOST_TEST(ask(weir::command::inspect_permits{"single", 10}).waiting == 1U);
  enqueue(alone{});
  start(worker({.lease = 10min}));
  pass(1s);
  ask(weir::command::release_permit{"single", "other", other.fence});
  pass(5s);
  BOOST_TEST(started != 0);
}

// A line that ends and begins again while the job that it brought forward runs.
BOOST_AUTO_TEST_CASE(R1_each_permit_of_a_line_has_a_holder_of_its_own) {
  start(worker());
  for (int i = 0; i != 20; ++i) {
    enqueue(alone{});
    pass(30ms);
  }
  pass(2s);
  BOOST_TEST(most == 1);
  BOOST_TEST(ended_jobs == 20);
  expect_nothing_left("single");
}

BOOST_AUTO_TEST_CASE(F73_what_others_have_moved_is_not_brought_forward) {
  auto const other = ask(weir::command::acquire_permit{
      .key = "single", .holder = "other", .limit = 1, .ttl = 1h, .patience = {}});
  auto const failed = enqueue("single", R"({"text":"","number":0})");
  enqueue(movable{});
  start(worker());
  auto const leased = ask(weir::command::obtain_lease{"default", failed, "another", 1min, true});
  ask(weir::command::requeue_job{"default", failed, leased->fence, 10min, "it failed"});
  enqueue(movable{}, {.delay = 1h});
  ask(weir::command::release_permit{"single", "other", other.fence});
  pass(9min);
  BOOST_TEST(started == 0);
  BOOST_TEST(find(failed)->attempts == 1U);
  pass(2min);
  BOOST_TEST(started == 1);
  pass(50min);
  BOOST_TEST(started == 2);
}

BOOST_AUTO_TEST_CASE(F73_what_waits_in_a_held_queue_keeps_its_place) {
  auto const other = ask(weir::command::acquire_permit{
      .key = "single", .holder = "other", .limit = 1, .ttl = 1h, .patience = {}});
  backlog(20, alone{});
  start(worker());
  pass(5s);
  ask(weir::command::snooze_queue{"default", 500ms});
  ask(weir::command::release_permit{"single", "other", other.fence});
  pass(100ms);
  BOOST_TEST(started == 0);
  pass(1400ms);
  BOOST_TEST(started >= 1);
  pass(1500ms);
  BOOST_TEST(ended_jobs == 20);
}

BOOST_AUTO_TEST_CASE(F73_a_job_that_was_brought_forward_and_is_given_back_waits_for_nothing) {
  auto const other = ask(weir::command::acquire_permit{
      .key = "single", .holder = "other", .limit = 1, .ttl = 1h, .patience = {}});
  auto const job = enqueue("single", R"({"text":"","number":0})");
  start(worker({.drain = 1s}, 1h));
  pass(50s);
  BOOST_TEST((find(job)->vests_in > 5s));
  ask(weir::command::release_permit{"single", "other", other.fence});
  pass(1s);
  BOOST_TEST(started == 1);
  cancel();
  pass(2s);
  BOOST_TEST(ended.has_value());
  BOOST_TEST((find(job)->state == weir::job_state::pending));
  BOOST_TEST((find(job)->vests_in <= 0s));
  BOOST_TEST(find(job)->attempts == 0U);
  expect_nothing_left("single");
}

BOOST_AUTO_TEST_CASE(R1_jobs_that_wait_for_one_key_are_each_held_to_their_own_limit) {
  start(worker({}, 1s));
  for (int i = 0; i != 10; ++i) {
    for (int n = 0; n != 3; ++n) enqueue(by_text{});
    enqueue(modest{});
    pass(200ms);
  }
  pass(10min);
  BOOST_TEST(ended_jobs == 40);
  BOOST_TEST(most == 2);
  BOOST_TEST(others_of_modest == 0);
  expect_nothing_left("limit ");
}

BOOST_AUTO_TEST_CASE(a_refusal_for_the_whole_queue_ends_nobody_s_longer_hold) {
  ask(weir::command::acquire_permit{
      .key = "order", .holder = "other", .limit = 1, .ttl = 1h, .patience = {}});
  enqueue(in_order{});
  using slow = weir_test::slow_store<memory>;
  slow const far{store, clock, 10ms};
  weir::worker<slow, weir::manual_clock, weir::constant_backoff> w{
      far, {}, clock, weir::constant_backoff{1s}, weir::id_source::seeded(7)};
  w.handle<in_order>([this](in_order const&) { ++started; });
  w.async_run([this](weir::error_code ec) { ended = ec; });
  while (stats().leased == 0) pass(1ms);  // and it asks for the permit
  ask(weir::command::snooze_queue{"default", 1h});
  auto const claims = far.of<weir::command::dequeue_jobs>().asked;
  pass(59min);
  BOOST_TEST(far.of<weir::command::dequeue_jobs>().asked <= claims + 1);
  pass(2min);
  BOOST_TEST(far.of<weir::command::dequeue_jobs>().asked > claims + 1);
}

BOOST_AUTO_TEST_CASE(F73_jobs_that_have_ended_are_skipped) {
  auto const other = ask(weir::command::acquire_permit{
      .key = "single", .holder = "other", .limit = 1, .ttl = 1h, .patience = {}});
  std::vector<weir::job_id> jobs;
  for (int i = 0; i != 5; ++i) jobs.push_back(enqueue("single", R"({"text":"","number":0})"));
  start(worker({.poll = 1h}));
  for (int i = 0; i != 4; ++i) ask(weir::command::cancel_job{"default", jobs[std::size_t(i)]});
  ask(weir::command::release_permit{"single", "other", other.fence});
  pass(1s);
  BOOST_TEST(started == 1);
  BOOST_TEST((find(jobs[4])->state == weir::job_state::completed));
  expect_nothing_left("single");
}

// Its place is looked at for a minute, and in vain; meanwhile it is claimed, and refused again.
BOOST_AUTO_TEST_CASE(R5_a_job_that_joins_its_line_twice_is_run_once) {
  using slow = weir_test::slow_store<memory>;
  slow const far{store, clock, 1ms};
  far.answers<weir::command::obtain_lease>(
      [first = true](weir::command::obtain_lease const&) mutable -> slow::answer {
        if (!std::exchange(first, false)) return {1ms};
        return {1min, weir::make_error_code(weir::errc::store_unavailable)};
      });
  weir::worker<slow, weir::manual_clock, weir::constant_backoff> w{
      far, {}, clock, weir::constant_backoff{1s}, weir::id_source::seeded(7)};
  std::map<int, int> runs;
  w.handle<by_text>([&](by_text const& l) {
    ++runs[l.number];
    return run(l.text, 20s);
  });
  auto const acquire = [&](std::string_view holder) {
    return ask(weir::command::acquire_permit{
        .key = "limit ", .holder = holder, .limit = 2, .ttl = 1h, .patience = {}});
  };
  auto const one = acquire("one");
  auto const two = acquire("two");
  enqueue(by_text{{.text = "", .number = 1}});
  w.async_run([](weir::error_code) {});
  pass(25s);
  ask(weir::command::release_permit{"limit ", "one", one.fence});
  pass(59s);
  BOOST_TEST(runs[1] == 0);
  for (int i = 0; i != 120 && runs[1] == 0; ++i) pass(1s);
  BOOST_TEST(runs[1] == 1);
  enqueue(by_text{{.text = "", .number = 2}});
  pass(1s);
  ask(weir::command::release_permit{"limit ", "two", two.fence});
  pass(5min);
  BOOST_TEST(runs[1] == 1);
  BOOST_TEST(runs[2] == 1);
  expect_nothing_left("limit ");
}

BOOST_AUTO_TEST_CASE(R5_a_line_gives_back_no_lease_of_a_job_that_runs_here) {
  auto const acquire = [&](std::string_view key) {
    return ask(weir::command::acquire_permit{
        .key = key, .holder = "other", .limit = 1, .ttl = 1h, .patience = {}});
  };
  auto const first = acquire("first");
  auto const second = acquire("second");
  auto& w = worker();
  w.handle<wandering>([&](wandering const& j) { return run(j.text, 20s); });
  wandering::key = "first";
  enqueue(wandering{});
  start(w);
  wandering::key = "second";
  pass(1min);
  BOOST_TEST(events[kind::snoozed] >= 2);  // it stands in both lines
  ask(weir::command::release_permit{"second", "other", second.fence});
  pass(5s);
  BOOST_TEST(started == 1);
  ask(weir::command::release_permit{"first", "other", first.fence});
  pass(1min);
  BOOST_TEST(started == 1);
  BOOST_TEST(events[kind::lease_lost] == 0);
  expect_nothing_left("first");
}

BOOST_AUTO_TEST_CASE(F73_a_job_that_has_no_room_holds_up_no_other_one_of_its_limit) {
  auto const other = ask(weir::command::acquire_permit{
      .key = "single", .holder = "other", .limit = 1, .ttl = 1h, .patience = {}});
  auto& w = worker({.queues = {{.name = "full", .concurrency = 1}, {}}});
  w.handle<note>([&](note const&) -> asio::awaitable<void> { co_await sleep(1min); });
  enqueue(alone{}, {.queue = "full"});
  start(w);
  enqueue(note{}, {.queue = "full"});
  settle();
  enqueue(alone{});
  settle();
  ask(weir::command::release_permit{"single", "other", other.fence});
  pass(3s);
  BOOST_TEST(started == 1);
  pass(1min);
  BOOST_TEST(started == 2);
}

BOOST_AUTO_TEST_CASE(F73_a_job_whose_queue_fails_holds_up_no_other_one_of_its_limit) {
  auto const other = ask(weir::command::acquire_permit{
      .key = "single", .holder = "other", .limit = 1, .ttl = 1h, .patience = {}});
  using slow = weir_test::slow_store<memory>;
  slow const far{store, clock, 1ms};
  bool away = true;
  far.answers<weir::command::obtain_lease>(
      [&](weir::command::obtain_lease const& c) -> slow::answer {
        if (c.queue != "bad" || !away) return {1ms};
        return {1ms, weir::make_error_code(weir::errc::store_unavailable)};
      });
  weir::worker<slow, weir::manual_clock, weir::constant_backoff> w{
      far, {}, clock, weir::constant_backoff{1s}, weir::id_source::seeded(7)};
  w.handle<alone>([this](alone const&) { return run("single", 50ms); });
  for (int i = 0; i != 5; ++i) enqueue(alone{}, {.queue = "bad"});
  w.async_run([](weir::error_code) {});
  pass(1s);
  enqueue(alone{});
  pass(1s);
  ask(weir::command::release_permit{"single", "other", other.fence});
  pass(3s);
  BOOST_TEST(started == 1);
  BOOST_TEST(far.of<weir::command::obtain_lease>().asked <= 5U);
  away = false;
  pass(5s);
  BOOST_TEST(started == 6);
}

/// Jobs of another kind that take all hands.
struct busy_fixture : limits_fixture {
  worker_type& busy_worker(weir::worker_options options) {
    auto& w = worker(std::move(options));
    w.handle<note>([this](note const&) -> asio::awaitable<void> {
      auto const length = 5s + 500ms * (++plain % 7);
      co_await sleep(length);
    });
    for (int i = 0; i != 2000; ++i) enqueue(note{}, {.queue = "busy"});
    return w;
  }
};

BOOST_FIXTURE_TEST_CASE(F73_a_worker_without_a_free_hand_comes_to_its_turn, busy_fixture) {
  auto& other = worker({.queues = {{.name = "theirs"}}}, 100ms);
  for (int i = 0; i != 3000; ++i) enqueue(alone{}, {.queue = "theirs"});
  start(other);
  auto& w = busy_worker({.queues = {{.name = "ours"}, {.name = "busy"}}});
  w.async_run([](weir::error_code) {});
  pass(2s);
  for (int i = 0; i != 10; ++i) enqueue(alone{}, {.queue = "ours"});
  pass(2min);
  BOOST_TEST(stats("ours").completed == 10U);
  BOOST_TEST(most == 1);
}

// Their turns come every ten seconds, and find no hand.
BOOST_FIXTURE_TEST_CASE(F73_lines_that_wait_for_their_turn_keep_few_hands, busy_fixture) {
  for (int i = 0; i != 2000; ++i) {
    modest const theirs{{.text = std::to_string(i % 10), .number = i}};
    enqueue(theirs, {.queue = "theirs"});
    if (i < 500) enqueue(theirs, {.queue = "ours"});
  }
  start(worker({.concurrency = 10, .queues = {{.name = "theirs"}}}, 10s));
  for (std::uint32_t const hands : {1U, 4U}) {
    plain = 0;
    auto& w = busy_worker({.concurrency = hands, .queues = {{.name = "ours"}, {.name = "busy"}}});
    w.async_run([](weir::error_code) {});
    pass(10min);
    BOOST_TEST(plain >= static_cast<int>(hands) * 600 / 6.5 * 0.6);
    w.stop();
    pass(1min);
  }
  BOOST_TEST(stats("ours").completed > 0U);
}

BOOST_AUTO_TEST_SUITE_END()
