// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Schedules and what fires them, in memory, at times that the test says.

#include "weir/scheduler.hpp"

#include "counting_store.hpp"
#include "integration/heard_log.hpp"
#include "unit/slow_store.hpp"
#include "weir/schedules.hpp"
#include "worker_fixture.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace test;

namespace {

struct report {
  std::string what;
  std::string tick;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(report, what, tick)

}  // namespace

template <>
struct weir::job_traits<report> {
  static constexpr std::string_view kind = "report";
  static constexpr std::string_view queue = "reports";
};

namespace {

/// A store that finds fault with every relay.
struct picky_store : weir_test::counting_store<memory> {
  using counting_store::counting_store;

  template <class C, class Token>
    requires weir::executes<memory const, C>
  auto async_execute(C c, Token&& token) const {
    static std::string const too_long(weir::limits::key_size + 1, 'x');
    if constexpr (std::same_as<C, weir::command::relay_job>) c.to = too_long;
    return counting_store::async_execute(c, std::forward<Token>(token));
  }
  template <class C>
  auto execute(C const&) const = delete;
};

/// The clock of a host whose date is wrong.
struct wrong_clock {
  weir::manual_clock right;
  weir::duration ahead;

  [[nodiscard]] weir::steady_time steady_now() const noexcept { return right.steady_now(); }
  [[nodiscard]] weir::time_point system_now() const noexcept { return right.system_now() + ahead; }
  template <class Token>
  auto async_wait_until(asio::any_io_executor executor, weir::steady_time t, Token&& token) const {
    return right.async_wait_until(std::move(executor), t, std::forward<Token>(token));
  }
};

struct scheduler_fixture : worker_fixture {
  using schedules_type = weir::schedules<memory, weir::manual_clock>;
  using scheduler_type = weir::scheduler<memory, weir::manual_clock>;

  weir::leased_job claim(std::string_view queue, std::string_view holder, weir::duration lease) {
    return ask(weir::command::dequeue_jobs{
                   .queue = queue, .holder = holder, .limit = 1, .lease = lease})
        .jobs.at(0);
  }

  /// Starts another scheduler.
  void run() {
    auto& s = *running.emplace_back(std::make_unique<scheduler_type>(
        store, weir::worker_options{.poll = 1h}, clock, weir::id_source::seeded(++workers)));
    s.on_event([this](weir::schedule_event const& e) {
      fired += e.fired;
      skipped += e.skipped;
      missed += e.missed;
      unserved += e.unserved ? 1 : 0;
    });
    s.async_run([](weir::error_code) {});
    settle();
  }

  /// What an operation of the schedules completes with.
  template <class T, class Start>
  T done(Start start) {
    std::optional<T> out;
    weir::error_code failed;
    start([&](weir::error_code ec, T value) {
      failed = ec;
      out = std::move(value);
    });
    settle();
    BOOST_TEST_REQUIRE(!failed, failed.message());
    BOOST_TEST_REQUIRE(out.has_value());
    return std::move(*out);
  }
  weir::put_outcome put(weir::schedule s, std::string const& what = "daily",
                        std::string_view queue = "reports") {
    report const job{what, ""};
    weir::enqueue_options options;
    options.queue = queue;
    return done<weir::put_outcome>(
        [&](auto handler) { schedules.async_put(s, job, options, std::move(handler)); });
  }
  weir::error_code put_fails(weir::schedule s, weir::enqueue_options options = {}) {
    report const job{"daily", ""};
    weir::error_code out;
    schedules.async_put(s, job, options, [&](weir::error_code ec, weir::put_outcome) { out = ec; });
    settle();
    return out;
  }
  std::optional<weir::stored_schedule> find(std::string const& name) {
    return done<std::optional<weir::stored_schedule>>(
        [&](auto handler) { schedules.async_find(name, std::move(handler)); });
  }
  bool remove(std::string const& name) {
    return done<bool>([&](auto handler) { schedules.async_remove(name, std::move(handler)); });
  }

  /// The first step of a move to another queue.
  /// @param ending it is being removed meanwhile
  void begin_move(weir::stored_schedule const& before, bool ending) {
    auto moved = before;
    moved.job.queue = "others";
    moved.moves = 1;
    moved.changes = before.changes + 1;
    moved.confirmed = true;
    moved.moved_from = "reports";
    moved.ending = ending;
    ++moved.progress.steps;
    auto const payload = weir::detail::encode_record(moved);
    auto const job = weir::detail::schedule_job(moved, payload, 10s);
    ask(weir::command::enqueue_jobs{"weir.schedules/others", {&job, 1}});
  }
  /// The second one: its name leads there.
  void move_name(weir::stored_schedule const& before) {
    weir::detail::schedule_place place{"reports", before.generation, 0,
                                       weir::detail::place_state::standing};
    auto const from = weir::detail::encode_record(place);
    place.queue = "others";
    place.moves = 1;
    auto const to = weir::detail::encode_record(place);
    weir::new_job name;
    name.id = weir::detail::id_of_schedule(before.definition.name);
    name.kind = weir::detail::place_kind;
    name.payload = to;
    name.delay = weir::limits::span;
    ask(weir::command::relay_job{
        .queue = "weir.schedules/", .id = name.id, .expected = from, .next = std::span{&name, 1}});
  }

  /// Writes a schedule as another version, or another host, might have.
  template <class Change>
  void rewrite(std::string const& name, Change change, weir::duration delay) {
    auto s = *find(name);
    auto const before = weir::detail::encode_record(s);
    change(s);
    auto const payload = weir::detail::encode_record(s);
    auto const job = weir::detail::schedule_job(s, payload, delay);
    ask(weir::command::relay_job{.queue = weir::detail::companion_of(s.job.queue),
                                 .id = job.id,
                                 .expected = before,
                                 .next = std::span{&job, 1}});
  }

  /// The jobs that wait in a queue, as `report`s.
  std::vector<report> reports(std::string const& queue = "reports") {
    std::vector<report> out;
    auto const page = ask(weir::command::list_jobs{.queue = queue, .limit = 10'000});
    for (auto const& j : page.jobs) out.push_back(weir::decode<report>(j.payload).value);
    std::ranges::sort(out, {}, &report::tick);
    return out;
  }
  std::uint64_t enqueued(std::string const& queue = "reports") { return stats(queue).enqueued; }

  weir::schedule hourly(std::string name = "hourly") {
    return {.name = std::move(name),
            .when = weir::every{1h},
            .overlap = weir::overlap_policy::allow,
            .tick_member = "tick"};
  }

  schedules_type schedules{store, clock, weir::id_source::seeded(77)};
  std::vector<std::unique_ptr<scheduler_type>> running;
  std::uint64_t fired = 0;
  std::uint64_t skipped = 0;
  std::uint64_t missed = 0;
  std::uint64_t unserved = 0;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(scheduler, scheduler_fixture)

BOOST_AUTO_TEST_CASE(each_tick_becomes_one_job_that_knows_its_tick) {
  BOOST_TEST((put(hourly()) == weir::put_outcome::created));
  run();
  pass(3h + 30min);
  auto const jobs = reports();
  BOOST_TEST_REQUIRE(jobs.size() == 3U);
  auto const first = std::chrono::ceil<std::chrono::hours>(clock.system_now() - 3h - 30min);
  BOOST_TEST(jobs[0].what == "daily");
  BOOST_TEST(jobs[0].tick.size() == 20U);
  BOOST_TEST(jobs[0].tick < jobs[1].tick);
  BOOST_TEST(fired == 3U);
  auto const s = find("hourly");
  BOOST_TEST_REQUIRE(s.has_value());
  BOOST_TEST(s->progress.fired == 3U);
  BOOST_TEST((s->progress.last == first + 2h || s->progress.last == first + 3h));
}

BOOST_AUTO_TEST_CASE(an_observer_that_throws_keeps_no_tick_back) {
  put(hourly());
  run();
  running.front()->on_event(
      [](weir::schedule_event const&) { throw std::runtime_error{"observer"}; });
  pass(3h + 30min);
  BOOST_TEST(enqueued() == 3U);
}

// Oban #1290 and oban-py #17 (leaders), pg-boss #914 (a tick lost between two that poll).
BOOST_AUTO_TEST_CASE(many_schedulers_fire_each_tick_once) {
  put(hourly());
  for (int i = 0; i != 8; ++i) run();
  pass(24h);
  BOOST_TEST(enqueued() == 24U);
}

// Oban #1250 and oban-py #32: all are the leader, since they have one name.
BOOST_AUTO_TEST_CASE(schedulers_of_one_name_fire_each_tick_once) {
  put(hourly());
  for (int i = 0; i != 3; ++i) {
    workers = 0;  // and so they draw the same names
    run();
  }
  pass(24h);
  BOOST_TEST(enqueued() == 24U);
}

// River #827: each new leader inserts what is to run at its start. River #1184, #1205, #1207 and
// #1213: what a leader's beginning does to the others.
BOOST_AUTO_TEST_CASE(schedulers_that_come_and_go_fire_each_tick_once) {
  put(hourly());
  for (int i = 0; i != 24 * 6; ++i) {
    run();
    pass(10min);
    if (running.size() < 3) continue;
    running.front()->stop();
    settle();
    running.erase(running.begin());
  }
  BOOST_TEST(enqueued() == 24U);
}

// River #658 and #724, Sidekiq #4078: only what the leader knows is run.
BOOST_AUTO_TEST_CASE(what_another_process_puts_is_fired_by_those_that_run_already) {
  run();
  pass(30min);
  weir::schedules<memory, weir::manual_clock> const other{store, clock};
  report const job{"theirs", ""};
  weir::error_code failed;
  other.async_put(hourly(), job, {}, [&](weir::error_code ec, weir::put_outcome) { failed = ec; });
  settle();
  BOOST_TEST(!failed);
  pass(1h);
  auto const jobs = reports();
  BOOST_TEST_REQUIRE(jobs.size() == 1U);
  BOOST_TEST(jobs[0].what == "theirs");
}

// Oban #1488, River #1251, YugabyteDB #24365, and whatever else a stale leader does: a scheduler
// that was held up fires nothing twice, and another goes on.
BOOST_AUTO_TEST_CASE(a_scheduler_whose_lease_is_over_fires_nothing) {
  put(hourly());
  auto const companion = weir::detail::companion_of("reports");
  pass(1h);
  auto const stale = claim(companion, "stale", 30s);
  run();
  pass(1min);
  BOOST_TEST(enqueued() == 1U);
  auto const answer = store.execute(
      weir::command::relay_job{.queue = companion, .id = stale.id, .fence = stale.fence});
  BOOST_TEST((answer.error() == weir::errc::lease_lost));
  BOOST_TEST(find("hourly").has_value());
}

// A host that has begun in 1970 books the next tick by its date: decades later.
BOOST_AUTO_TEST_CASE(a_host_whose_date_is_behind_puts_no_tick_off_for_others) {
  put(hourly());
  weir::scheduler<memory, wrong_clock> behind{store, weir::worker_options{.poll = 1h},
                                              wrong_clock{clock, -24h * 365 * 50},
                                              weir::id_source::seeded(99)};
  weir_test::heard_log const log;
  behind.async_run([](weir::error_code) {});
  pass(1h);  // it has come to the schedule first
  BOOST_TEST(log.count("is that right?") == 1U);
  BOOST_TEST(enqueued() == 0U);
  run();
  pass(10min);  // the other comes to it first now and then
  BOOST_TEST(enqueued() == 1U);
  pass(1h);
  BOOST_TEST(enqueued() == 2U);
  behind.stop();
  settle();
}

// A host that takes local time for UTC when it starts, until its date is set right.
BOOST_AUTO_TEST_CASE(a_host_whose_date_is_ahead_fires_nothing_that_has_not_come) {
  put(hourly());
  weir::scheduler<memory, wrong_clock> ahead{store, weir::worker_options{.poll = 1h},
                                             wrong_clock{clock, 12h}, weir::id_source::seeded(99)};
  weir_test::heard_log const log;
  ahead.async_run([](weir::error_code) {});
  auto const tick = *find("hourly")->progress.next;
  pass(tick - clock.system_now());
  BOOST_TEST(log.count("is that right?") == 1U);
  BOOST_TEST(enqueued() == 0U);
  run();
  pass(10min);
  BOOST_TEST((find("hourly")->progress.last == tick));
  pass(3h);
  BOOST_TEST(enqueued() == 4U);
  BOOST_TEST(missed == 0U);
  ahead.stop();
  settle();
}

BOOST_AUTO_TEST_CASE(a_host_whose_date_is_ahead_is_not_believed_for_what_one_behind_has_doubted) {
  put(hourly());
  {
    weir::scheduler<memory, wrong_clock> behind{store, weir::worker_options{.poll = 1h},
                                                wrong_clock{clock, -24h * 365 * 50},
                                                weir::id_source::seeded(98)};
    behind.async_run([](weir::error_code) {});
    pass(*find("hourly")->progress.next - clock.system_now());
    for (auto const wait : {1min, 2min, 3min, 4min}) pass(wait);
    behind.stop();
    settle();
  }
  weir::scheduler<memory, wrong_clock> ahead{store, weir::worker_options{.poll = 1h},
                                             wrong_clock{clock, 12h}, weir::id_source::seeded(99)};
  weir_test::heard_log const log;
  ahead.async_run([](weir::error_code) {});
  for (int minutes = 0; minutes != 14; ++minutes) pass(1min);
  BOOST_TEST(enqueued() == 0U);
  BOOST_TEST(log.count("is that right?") >= 1U);
  ahead.stop();
  settle();
}

// The date by which a tick was booked may be the wrong one.
BOOST_AUTO_TEST_CASE(a_host_whose_date_is_ahead_of_the_others_is_believed_in_the_end) {
  put(hourly());
  auto const by_a_host_that_began_in_1970 = [](weir::stored_schedule& s) {
    s.progress.booked = weir::time_point{1s};
  };
  auto const in = *find("hourly")->progress.next - clock.system_now();
  rewrite("hourly", by_a_host_that_began_in_1970, in);
  run();
  weir_test::heard_log const quiet;
  pass(in + 14min);
  BOOST_TEST(enqueued() == 0U);
  pass(1min);
  BOOST_TEST(enqueued() == 1U);
  pass(1h);
  BOOST_TEST(enqueued() == 2U);
}

// Hosts without its zone's data snooze it six times a minute.
BOOST_AUTO_TEST_CASE(a_host_whose_date_is_ahead_is_not_believed_for_what_others_have_snoozed) {
  put(hourly());
  auto const tick = *find("hourly")->progress.next;
  pass(tick - clock.system_now());
  auto const queue = weir::detail::companion_of("reports");
  for (std::uint64_t n = 1; n != 20; ++n) {
    auto const got = ask(weir::command::dequeue_jobs{queue, "others", n, 1, 1h});
    BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
    ask(weir::command::snooze_job{queue, got.jobs[0].id, got.jobs[0].fence, {}, {}});
  }
  weir::scheduler<memory, wrong_clock> ahead{store, weir::worker_options{.poll = 1h},
                                             wrong_clock{clock, 12h}, weir::id_source::seeded(99)};
  weir_test::heard_log const log;
  ahead.async_run([](weir::error_code) {});
  settle();
  BOOST_TEST(log.count("is that right?") == 1U);
  BOOST_TEST(enqueued() == 0U);
  pass(14min);
  BOOST_TEST(enqueued() == 0U);
  BOOST_TEST(log.count("is that right?") == 5U);
  pass(2min);
  BOOST_TEST(enqueued() > 0U);
  ahead.stop();
  settle();
}

BOOST_AUTO_TEST_CASE(a_host_whose_date_is_behind_fires_when_its_date_has_come) {
  put(hourly());
  wrong_clock const late{clock, -150min};
  weir::scheduler<memory, wrong_clock> behind{store, weir::worker_options{.poll = 1h}, late,
                                              weir::id_source::seeded(99)};
  behind.async_run([](weir::error_code) {});
  auto const tick = *find("hourly")->progress.next;
  pass(tick - late.system_now() - 1s);
  BOOST_TEST(enqueued() == 0U);
  pass(2s);
  BOOST_TEST(enqueued() == 1U);
  behind.stop();
  settle();
}

// River #1304: a tick is booked though its insert failed. Here both are one step.
BOOST_AUTO_TEST_CASE(what_cannot_be_enqueued_is_not_booked) {
  memory small{io.get_executor(), {.max_jobs = 3}, clock};
  weir::schedules<memory, weir::manual_clock> own{small, clock};
  report const job{"daily", ""};
  own.async_put(hourly(), job, {}, [](weir::error_code ec, weir::put_outcome) { BOOST_TEST(!ec); });
  settle();
  weir::scheduler<memory, weir::manual_clock> s{small, {}, clock};
  s.async_run([](weir::error_code) {});
  pass(5h);
  auto const stats = small.execute(weir::command::read_queue_stats{"reports"}).value();
  BOOST_TEST(stats.enqueued == 1U);
  std::optional<weir::stored_schedule> found;
  own.async_find("hourly", [&](weir::error_code, std::optional<weir::stored_schedule> f) {
    found = std::move(f);
  });
  settle();
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST(found->progress.fired == 1U);
  s.stop();
}

// Temporal #4866: at every deploy the tick that is pending is lost.
BOOST_AUTO_TEST_CASE(an_unchanged_schedule_is_left_alone) {
  auto s = hourly();
  s.jitter = 50min;
  put(s);
  auto const before = find("hourly");
  pass(30min);
  BOOST_TEST((put(s) == weir::put_outcome::unchanged));
  BOOST_TEST((find("hourly") == before));
}

BOOST_AUTO_TEST_CASE(a_jitter_longer_than_the_time_between_two_ticks_loses_none) {
  auto s = hourly();
  s.overlap = weir::overlap_policy::allow;
  s.jitter = 3h;
  put(s);
  run();
  pass(100h);
  auto const found = find("hourly");
  BOOST_TEST(found->progress.missed == 0U);
  BOOST_TEST(found->progress.fired >= 98U);
}

BOOST_AUTO_TEST_CASE(a_tick_that_is_put_off_is_not_lost_when_the_jitter_is_changed) {
  auto s = hourly();
  s.jitter = 50min;
  put(s);
  run();
  pass(*find("hourly")->progress.next - clock.system_now());
  BOOST_TEST(enqueued() == 0U);  // its time has come, and it is put off
  s.jitter = {};
  BOOST_TEST((put(s) == weir::put_outcome::changed));
  pass(1min);
  BOOST_TEST(enqueued() == 1U);
}

// River #791: a week's interval with daily deploys. River PR #934: one that nobody puts again is
// removed.
BOOST_AUTO_TEST_CASE(daily_deploys_do_not_put_off_a_weekly_tick) {
  weir::schedule s{
      .name = "weekly", .when = weir::every{168h}, .overlap = weir::overlap_policy::allow};
  run();
  for (int day = 0; day != 15; ++day) {
    put(s, "version " + std::to_string(day));  // the job changes, and its ticks do not
    pass(24h);
  }
  BOOST_TEST(enqueued() == 2U);
}

// Kubernetes #63371, #65457, #57853 and #130838, argo-workflows #7182: an edited expression fires
// the past of its new self.
BOOST_AUTO_TEST_CASE(a_changed_definition_fires_none_of_its_past) {
  run();
  put({.name = "s", .when = weir::every{24h * 365}});
  pass(100h);
  put({.name = "s", .when = weir::every{1h}});
  BOOST_TEST(enqueued() == 0U);
  pass(1h);
  BOOST_TEST(enqueued() == 1U);
  BOOST_TEST(missed == 0U);
}

// BullMQ #2790 and #3063, quantum-core #416: the ticks of the time in which it was gone, or ids
// that meet an earlier life.
BOOST_AUTO_TEST_CASE(a_name_that_is_made_again_is_another_schedule) {
  run();
  put(hourly());
  pass(2h);
  auto const before = find("hourly")->generation;
  BOOST_TEST(remove("hourly"));
  BOOST_TEST(!remove("hourly"));
  BOOST_TEST(!find("hourly").has_value());
  pass(5h);
  BOOST_TEST(enqueued() == 2U);
  put(hourly());
  BOOST_TEST((find("hourly")->generation != before));
  pass(1h);
  BOOST_TEST(enqueued() == 3U);
  BOOST_TEST(missed == 0U);
}

BOOST_AUTO_TEST_CASE(an_older_version_does_not_undo_a_newer_one) {
  auto s = hourly();
  s.version = 2;
  put(s);
  auto older = s;
  older.version = 1;
  older.when = weir::every{2h};
  BOOST_TEST((put(older) == weir::put_outcome::kept_newer));
  BOOST_TEST((find("hourly")->definition == s));
  auto same = older;
  same.version = 2;
  BOOST_TEST((put(same) == weir::put_outcome::changed));
}

// BullMQ #2876, #3048, #3095, #3262, #3378, #3381, #3430, #4222 and #4299: upserts that meet.
BOOST_AUTO_TEST_CASE(puts_that_meet_leave_one_schedule) {
  run();
  // Their steps alternate: none is answered at once.
  using remote = weir_test::counting_store<memory>;
  weir::schedules<remote, weir::manual_clock> const meeting{remote{store}, clock};
  for (int round = 0; round != 50; ++round) {
    std::vector<weir::error_code> ends;
    for (int i = 0; i != 4; ++i) {
      auto s = hourly();
      if (i % 2 == 1) s.when = weir::every{30min};
      report const job{"put " + std::to_string(i), ""};
      weir::enqueue_options options;
      options.queue = i < 2 ? "reports" : "others";
      meeting.async_put(s, job, options,
                        [&](weir::error_code ec, weir::put_outcome) { ends.push_back(ec); });
    }
    settle();
    BOOST_TEST_REQUIRE(ends.size() == 4U);
    for (auto const ec : ends) BOOST_TEST(!ec, ec.message());
  }
  BOOST_TEST((put(hourly()) != weir::put_outcome::created));
  auto const page = done<weir::schedule_page>(
      [&](auto handler) { schedules.async_list(100, {}, std::move(handler)); });
  BOOST_TEST(page.schedules.size() == 1U);
  auto const before = enqueued() + enqueued("others");
  pass(24h);
  BOOST_TEST(enqueued() + enqueued("others") == before + 24U);
}

BOOST_AUTO_TEST_CASE(a_schedule_that_moves_to_another_queue_loses_and_doubles_no_tick) {
  run();
  put(hourly());
  pass(2h + 30min);
  BOOST_TEST((put(hourly(), "daily", "others") == weir::put_outcome::changed));
  BOOST_TEST(find("hourly")->job.queue == "others");
  BOOST_TEST(find("hourly")->moved_from.empty());
  BOOST_TEST(enqueued("reports") == 2U);
  pass(2h);
  BOOST_TEST(enqueued("reports") == 2U);
  BOOST_TEST(enqueued("others") == 2U);
  BOOST_TEST(find("hourly")->progress.fired == 4U);
}

// It is looked for where its name stood a moment ago.
BOOST_AUTO_TEST_CASE(a_schedule_that_moves_meanwhile_is_found_all_the_same) {
  using remote = weir_test::slow_store<memory>;
  weir::schedules<remote, weir::manual_clock> const far{remote{store, clock, 4ms}, clock};
  put(hourly());
  std::optional<bool> found;
  std::optional<bool> removed;
  far.async_find("hourly", [&](weir::error_code ec, std::optional<weir::stored_schedule> s) {
    found = !ec && s.has_value();
  });
  pass(6ms);
  put(hourly(), "daily", "others");
  pass(1s);
  BOOST_TEST((found == true));
  far.async_remove("hourly", [&](weir::error_code ec, bool was) { removed = !ec && was; });
  pass(6ms);
  put(hourly());
  pass(1s);
  BOOST_TEST((removed == true));
  BOOST_TEST(!find("hourly").has_value());
}

BOOST_AUTO_TEST_CASE(a_schedule_changes_its_ticks_and_its_queue_at_once_while_time_goes_on) {
  weir::schedules<memory> const real{store};
  auto const put_now = [&](weir::duration period, std::string_view queue) {
    auto const s = weir::schedule{.name = "any", .when = weir::every{period}};
    report const job{"daily", ""};
    weir::enqueue_options options;
    options.queue = queue;
    return done<weir::put_outcome>(
        [&](auto handler) { real.async_put(s, job, options, std::move(handler)); });
  };
  BOOST_TEST((put_now(1h, "reports") == weir::put_outcome::created));
  BOOST_TEST((put_now(2h, "others") == weir::put_outcome::changed));
  auto const moved = find("any");
  BOOST_TEST_REQUIRE(moved.has_value());
  BOOST_TEST((std::get<weir::every>(moved->definition.when).period == 2h));
  BOOST_TEST(moved->job.queue == "others");
  BOOST_TEST(moved->moved_from == "");
}

BOOST_AUTO_TEST_CASE(a_removal_that_was_begun_is_completed_by_whoever_comes_next) {
  put(hourly());
  auto const begin = [&] {  // what the first step of a removal does
    auto s = *find("hourly");
    auto const before = weir::detail::encode_record(s);
    s.ending = true;
    auto const after = weir::detail::encode_record(s);
    auto const job = weir::detail::schedule_job(s, after, {});
    auto const set = ask(weir::command::relay_job{.queue = "weir.schedules/reports",
                                                  .id = job.id,
                                                  .expected = before,
                                                  .next = std::span{&job, 1}});
    BOOST_TEST_REQUIRE((set.outcome == weir::relay_outcome::relayed));
  };
  auto const first = find("hourly");
  begin();
  BOOST_TEST(!find("hourly").has_value());
  BOOST_TEST((put(hourly()) == weir::put_outcome::created));
  BOOST_TEST(find("hourly")->generation != first->generation);
  begin();
  BOOST_TEST(remove("hourly"));
  BOOST_TEST(!remove("hourly"));
  put(hourly());
  begin();
  run();
  pass(2h);
  BOOST_TEST(enqueued() == 0U);
  BOOST_TEST(stats("weir.schedules/reports").pending == 0U);
  pass(25h);  // no command of its life is under way any more
  BOOST_TEST(stats("weir.schedules/").pending == 0U);
}

BOOST_AUTO_TEST_CASE(a_late_enqueue_does_not_bring_a_removed_schedule_back) {
  put(hourly());
  auto const s = *find("hourly");
  BOOST_TEST(remove("hourly"));
  auto const payload = weir::detail::encode_record(s);
  auto const job = weir::detail::schedule_job(s, payload, {});
  auto made = s;
  made.confirmed = false;
  weir::detail::schedule_place const place{"reports", s.generation, 0,
                                           weir::detail::place_state::making};
  auto const text = weir::detail::encode_record(place);
  weir::new_job name;
  name.id = job.id;
  name.kind = weir::detail::place_kind;
  name.payload = text;
  auto const unconfirmed = weir::detail::encode_record(made);
  auto const late = weir::detail::schedule_job(made, unconfirmed, {});
  ask(weir::command::enqueue_jobs{"weir.schedules/", {&name, 1}});
  ask(weir::command::enqueue_jobs{"weir.schedules/reports", {&late, 1}});
  run();
  pass(5h);
  BOOST_TEST(enqueued() == 0U);
  BOOST_TEST(!find("hourly").has_value());
}

BOOST_AUTO_TEST_CASE(a_schedule_that_cannot_be_read_is_left_alone_and_can_be_removed) {
  put(hourly());
  auto const before = weir::detail::encode_record(*find("hourly"));
  weir::new_job job;
  job.id = weir::detail::id_of_schedule("hourly");
  job.kind = weir::schedule_kind;
  job.payload = R"({"schedule":2})";
  ask(weir::command::relay_job{.queue = "weir.schedules/reports",
                               .id = job.id,
                               .expected = before,
                               .next = std::span{&job, 1}});
  BOOST_TEST((put_fails(hourly()) == weir::errc::store_corrupt));
  run();
  {
    weir_test::heard_log const log;
    pass(2h);
    BOOST_TEST(log.count("a schedule that cannot be read here, in queue weir.schedules/reports: " +
                         boost::uuids::to_string(job.id)) >= 1U);
  }
  BOOST_TEST(dead("weir.schedules/reports").empty());
  BOOST_TEST((put_fails(hourly()) == weir::errc::store_corrupt));
  BOOST_TEST(remove("hourly"));
  BOOST_TEST((put(hourly()) == weir::put_outcome::created));
  pass(1h);
  BOOST_TEST(enqueued() == 1U);
}

BOOST_AUTO_TEST_CASE(a_dead_letter_in_the_place_of_a_schedule_is_purged) {
  weir::new_job job;
  job.id = weir::detail::id_of_schedule("hourly");
  job.kind = weir::schedule_kind;
  job.payload = "{}";
  for (auto const* const queue : {"weir.schedules/", "weir.schedules/reports"}) {
    ask(weir::command::enqueue_jobs{queue, {&job, 1}});
    auto const got = claim(queue, "h", 1min);
    ask(weir::command::bury_job{queue, got.id, got.fence, "damaged"});
  }
  BOOST_TEST((put(hourly()) == weir::put_outcome::created));
  run();
  pass(1h);
  BOOST_TEST(enqueued() == 1U);
}

BOOST_AUTO_TEST_CASE(what_was_changed_while_a_move_was_under_way_is_kept) {
  put(hourly());
  auto const before = *find("hourly");
  begin_move(before, false);  // by somebody who knows an older job
  auto newer = hourly();
  newer.version = 2;
  BOOST_TEST((put(newer, "newer") == weir::put_outcome::changed));
  move_name(before);
  run();
  pass(1h);
  auto const now = find("hourly");
  BOOST_TEST_REQUIRE(now.has_value());
  BOOST_TEST(now->definition.version == 2U);
  BOOST_TEST(now->moved_from == "");
  BOOST_TEST_REQUIRE(reports("others").size() == 1U);
  BOOST_TEST(reports("others").front().what == "newer");
  BOOST_TEST(reports("reports").empty());
}

BOOST_AUTO_TEST_CASE(a_removal_in_the_midst_of_a_move_needs_no_zone_and_is_completed_by_others) {
  for (bool const dies : {false, true}) {
    scheduler_fixture f;
    f.put(hourly());
    auto const abroad = [](weir::stored_schedule& s) {
      s.definition.when = weir::cron{"0 * * * *", "Nowhere/Nothing"};
    };
    f.rewrite("hourly", abroad, 1h);
    auto const before = *f.find("hourly");
    // By somebody who knows the zone; and one who died in the removal after its first step.
    f.begin_move(before, dies);
    f.move_name(before);
    if (dies) {
      f.run();
      f.pass(1min);
    } else {
      BOOST_TEST(f.remove("hourly"));
    }
    BOOST_TEST(f.stats("weir.schedules/reports").pending == 0U);
    BOOST_TEST(f.stats("weir.schedules/others").pending == 0U);
    BOOST_TEST(!f.remove("hourly"));
    f.put(hourly());
    f.run();
    f.pass(1h);
    BOOST_TEST(f.enqueued() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(a_tick_that_is_put_off_for_longer_than_the_window_is_not_missed) {
  auto s = hourly();
  s.jitter = 30min;
  s.catch_up = weir::catch_up_policy::skip();
  put(s);
  run();
  pass(10h + 31min);
  BOOST_TEST(missed == 0U);
  BOOST_TEST(enqueued() == 10U);
}

// A server of NATS takes messages of 1 MiB.
BOOST_AUTO_TEST_CASE(a_step_has_no_more_jobs_than_a_message_holds) {
  auto s = hourly();
  s.catch_up = weir::catch_up_policy::all(20, 48h);
  put(s, std::string(100'000, 'x'));
  pass(20h + 30min);
  std::uint32_t most = 0;
  auto& one = *running.emplace_back(std::make_unique<scheduler_type>(
      store, weir::worker_options{.poll = 1h}, clock, weir::id_source::seeded(++workers)));
  one.on_event([&](weir::schedule_event const& e) {
    most = std::max(most, e.fired);
    missed += e.missed;
  });
  one.async_run([](weir::error_code) {});
  pass(1min);
  BOOST_TEST(enqueued() == 20U);
  BOOST_TEST(missed == 0U);
  BOOST_TEST(most == 3U);
  one.stop();
  settle();
}

BOOST_AUTO_TEST_CASE(ticks_that_are_replaced_before_their_jobs_are_enqueued_end_no_step) {
  auto s = hourly();
  s.overlap = weir::overlap_policy::replace;
  s.catch_up = weir::catch_up_policy::all(20, 48h);
  put(s, std::string(100'000, 'x'));
  pass(20h + 30min);
  run();
  pass(1min);
  BOOST_TEST(fired == 1U);
  BOOST_TEST(skipped == 19U);
}

// hermes-agent PR #101129, Lebanon 2023: two hosts with different zone data must not book one tick
// twice.
BOOST_AUTO_TEST_CASE(what_newer_zone_data_has_booked_is_left_to_those_who_have_it) {
  weir::schedule s{.name = "at night",
                   .when = weir::cron{"30 2 * * *", "America/New_York"},
                   .overlap = weir::overlap_policy::allow};
  put(s);
  auto const sooner = *find("at night")->progress.next - 1h;
  auto const in = sooner - clock.system_now();
  auto const book = [&](weir::stored_schedule& booked) {
    booked.progress.zone_data = "9999z";
    booked.progress.next = sooner;
  };
  rewrite("at night", book, in);
  BOOST_TEST((put(s, "another") == weir::put_outcome::changed));
  auto const kept = *find("at night");
  BOOST_TEST(kept.progress.zone_data == "9999z");
  BOOST_TEST((kept.progress.next == sooner));
  run();
  weir_test::heard_log const log;
  pass(in + 9min);
  BOOST_TEST(enqueued() == 0U);
  BOOST_TEST(log.count("is left to others: its next tick is of the time zone database 9999z") >=
             1U);
  BOOST_TEST((find("at night")->progress.next == sooner));
}

// A host with newer data has booked it, and is gone: an update was taken back.
BOOST_AUTO_TEST_CASE(what_newer_zone_data_has_booked_is_fired_if_nobody_has_them) {
  weir::schedule s{.name = "at night",
                   .when = weir::cron{"30 2 * * *", "America/New_York"},
                   .overlap = weir::overlap_policy::allow};
  for (auto const apart : {-1h, 0h, 1h}) {
    BOOST_TEST_CONTEXT(apart.count()) {
      scheduler_fixture f;
      f.put(s);
      auto const by_older = *f.find("at night")->progress.next;
      auto const booked = by_older + apart;
      auto const in = booked - f.clock.system_now();
      auto const book = [&](weir::stored_schedule& there) {
        there.progress.zone_data = "9999z";
        there.progress.next = booked;
      };
      f.rewrite("at night", book, in);
      f.run();
      weir_test::heard_log const quiet;
      f.pass(in + 2h);
      BOOST_TEST(f.enqueued() == 1U);
      auto const now = f.find("at night")->progress;
      BOOST_TEST((now.last >= std::max(booked, by_older)));
      BOOST_TEST((now.next == by_older + 24h));
      f.pass(24h);
      BOOST_TEST(f.enqueued() == 2U);
    }
  }
}

// Egypt 2014: clocks are changed at a few days' notice, and an update comes in time.
BOOST_AUTO_TEST_CASE(what_older_zone_data_has_booked_is_booked_anew_when_it_is_put_again) {
  weir::schedule s{.name = "at night",
                   .when = weir::cron{"30 2 * * *", "America/New_York"},
                   .overlap = weir::overlap_policy::allow,
                   .catch_up = weir::catch_up_policy::skip()};
  put(s);
  auto const before = find("at night")->progress;
  auto const in = *before.next - clock.system_now();
  auto const later = [](weir::stored_schedule& booked) {
    booked.progress.zone_data = "2000a";
    *booked.progress.next += 1h;
  };
  rewrite("at night", later, in + 1h);
  BOOST_TEST((put(s) == weir::put_outcome::unchanged));
  BOOST_TEST((find("at night")->progress.next == before.next));
  BOOST_TEST(find("at night")->progress.zone_data == before.zone_data);
  run();
  pass(in);
  BOOST_TEST(enqueued() == 1U);
  BOOST_TEST(missed == 0U);
}

// A container may have no zone data at all, and needs none for these.
BOOST_AUTO_TEST_CASE(what_needs_no_zone_data_is_fired_by_every_host) {
  for (std::string const zone : {"UTC", "+01:00"}) {
    weir::schedule s{.name = zone,
                     .when = weir::cron{"30 2 * * *", zone},
                     .overlap = weir::overlap_policy::allow};
    put(s);
    BOOST_TEST(find(zone)->progress.zone_data.empty());
    auto const by_an_earlier_version = [](weir::stored_schedule& booked) {
      booked.progress.zone_data = "9999z";
    };
    rewrite(zone, by_an_earlier_version, *find(zone)->progress.next - clock.system_now());
  }
  run();
  pass(48h);
  BOOST_TEST(enqueued() == 4U);
}

BOOST_AUTO_TEST_CASE(overlap_is_kept_when_a_schedule_moves) {
  auto s = hourly();
  s.overlap = weir::overlap_policy::skip;
  put(s);
  run();
  pass(1h);
  auto const job = claim("reports", "h", 24h);
  put(s, "daily", "others");
  pass(2h);
  BOOST_TEST(enqueued("others") == 0U);
  weir::finished_job const done{job.id, job.fence, {}};
  ask(weir::command::complete_jobs{"reports", {&done, 1}});
  pass(1h);
  BOOST_TEST(enqueued("others") == 1U);
}

// A job that begins waits only for those of its queue that were enqueued to be waited for.
BOOST_AUTO_TEST_CASE(overlap_buffer_one_starts_nothing_beside_a_job_that_nobody_waits_for) {
  for (bool const moves : {true, false}) {
    BOOST_TEST_CONTEXT((moves ? "another queue" : "another policy")) {
      scheduler_fixture f;
      auto s = hourly();
      s.overlap = moves ? weir::overlap_policy::buffer_one : weir::overlap_policy::allow;
      f.put(s);
      f.run();
      f.pass(1h);
      auto const job = f.claim("reports", "h", 24h);
      s.overlap = weir::overlap_policy::buffer_one;
      std::string const queue = moves ? "others" : "reports";
      auto const before = f.enqueued(queue);
      f.put(s, "daily", queue);
      f.pass(2h);
      BOOST_TEST(f.enqueued(queue) == before);
      weir::finished_job const done{job.id, job.fence, {}};
      f.ask(weir::command::complete_jobs{"reports", {&done, 1}});
      f.pass(1h);
      BOOST_TEST(f.enqueued(queue) == before + 1);
    }
  }
}

// Kubernetes #42649, #73169 and #79995, k3d #523: what was off for long stops for ever, or says
// nothing.
BOOST_AUTO_TEST_CASE(after_a_night_off_the_last_tick_is_fired_and_the_others_are_told) {
  put(hourly());
  pass(9h + 30min);
  run();
  pass(1min);
  BOOST_TEST(enqueued() == 1U);
  BOOST_TEST(fired == 1U);
  BOOST_TEST(missed == 8U);
  BOOST_TEST(find("hourly")->progress.missed == 8U);
}

// All that are caught up with come at once, and the overlap policy holds for them, too.
BOOST_AUTO_TEST_CASE(several_ticks_are_caught_up_with_only_where_jobs_may_overlap) {
  using enum weir::overlap_policy;
  std::pair<weir::overlap_policy, std::uint64_t> const expected[] = {
      {allow, 7}, {skip, 1}, {buffer_one, 1}, {replace, 1}};
  for (auto const& [policy, jobs] : expected) {
    auto s = hourly();
    s.name = to_string(policy);
    s.overlap = policy;
    s.catch_up = weir::catch_up_policy::all(7, 24h);
    put(s);
  }
  pass(9h + 30min);
  run();
  pass(1min);
  for (auto const& [policy, jobs] : expected) {
    auto const p = find(std::string{to_string(policy)})->progress;
    BOOST_TEST(p.fired == jobs);
    BOOST_TEST(p.skipped == 7 - jobs);
    BOOST_TEST(p.missed == 2U);
  }
}

// glific #5769: seven jobs of one schedule at once. Quartz.NET #2697 and #2915: so in a cluster.
BOOST_AUTO_TEST_CASE(overlap_skip_waits_for_the_end_of_the_job_before) {
  auto s = hourly();
  s.overlap = weir::overlap_policy::skip;
  put(s);
  run();
  pass(3h);
  BOOST_TEST(enqueued() == 1U);
  BOOST_TEST(skipped == 2U);
  auto const job = claim("reports", "h", 24h);
  BOOST_TEST(unserved == 2U);  // it waited to be claimed
  pass(1h);
  BOOST_TEST(unserved == 2U);
  BOOST_TEST(enqueued() == 1U);
  weir::finished_job const done{job.id, job.fence, {}};
  ask(weir::command::complete_jobs{"reports", {&done, 1}});
  pass(1h);
  BOOST_TEST(enqueued() == 2U);
}

// payload PR #17220, Kubernetes #58748: the predecessor's process died, and nobody serves the
// queue.
BOOST_AUTO_TEST_CASE(overlap_skip_counts_a_lease_that_is_over_as_running_until_somebody_ends_it) {
  auto s = hourly();
  s.overlap = weir::overlap_policy::skip;
  put(s);
  run();
  pass(1h);
  auto const id = claim("reports", "died", 30s).id;
  BOOST_TEST(unserved == 0U);
  pass(1h);
  BOOST_TEST(enqueued() == 1U);
  BOOST_TEST(unserved == 1U);
  ask(weir::command::cancel_job{"reports", id});
  pass(1h);
  BOOST_TEST(enqueued() == 2U);
}

BOOST_AUTO_TEST_CASE(overlap_buffer_one_lets_one_wait) {
  auto s = hourly();
  s.overlap = weir::overlap_policy::buffer_one;
  put(s);
  run();
  pass(2h);
  BOOST_TEST(enqueued() == 1U);
  BOOST_TEST(unserved == 1U);  // nobody claims it
  auto const first = claim("reports", "h", 24h);
  ask(weir::command::start_job{"reports", first.id, first.fence});
  pass(3h);
  BOOST_TEST(enqueued() == 2U);  // one waits
  BOOST_TEST(unserved == 1U);
  auto const second = claim("reports", "h2", 1h);
  auto const blocked = ask(weir::command::start_job{"reports", second.id, second.fence});
  BOOST_TEST((blocked.outcome == weir::start_outcome::blocked));
  pass(20h);
  BOOST_TEST(unserved == 1U);  // the first runs
  pass(3h);
  BOOST_TEST(unserved > 1U);  // its lease is over
}

BOOST_AUTO_TEST_CASE(overlap_replace_cancels_the_job_before) {
  auto s = hourly();
  s.overlap = weir::overlap_policy::replace;
  put(s);
  run();
  pass(1h);
  auto const first = claim("reports", "h", 24h);
  pass(1h);
  BOOST_TEST(enqueued() == 2U);
  BOOST_TEST(stats("reports").cancelled == 1U);
  auto const lost =
      store.execute(weir::command::extend_lease{"reports", first.id, first.fence, 1h});
  BOOST_TEST((lost.error() == weir::errc::lease_lost));
}

// Cadence PR #8267: paused before its first tick, the watermark is the epoch.
BOOST_AUTO_TEST_CASE(a_pause_lets_ticks_go_by) {
  put(hourly());
  auto const pause = [&](bool on) {
    return done<bool>([&](auto handler) {
      if (on) {
        schedules.async_pause("hourly", std::move(handler));
      } else {
        schedules.async_resume("hourly", std::move(handler));
      }
    });
  };
  BOOST_TEST(pause(true));
  run();
  pass(5h);
  BOOST_TEST(enqueued() == 0U);
  BOOST_TEST((put(hourly()) == weir::put_outcome::unchanged));
  BOOST_TEST(find("hourly")->paused);
  BOOST_TEST(pause(false));
  BOOST_TEST(enqueued() == 0U);
  pass(1h);
  BOOST_TEST(enqueued() == 1U);
  BOOST_TEST(missed == 0U);
}

// michelangelo PR #2047: what is filled in sees today's date instead of its tick.
BOOST_AUTO_TEST_CASE(backfilled_jobs_know_their_ticks_and_come_once) {
  put(hourly());
  auto const now = clock.system_now();
  auto const fill = [&] {
    return done<std::uint32_t>([&](auto handler) {
      schedules.async_backfill("hourly", now - 5h, now - 1ns, std::move(handler));
    });
  };
  auto const n = fill();
  BOOST_TEST((n == 5U || n == 6U));
  BOOST_TEST(enqueued() == n);
  fill();
  BOOST_TEST(enqueued() == n);
  BOOST_TEST(reports().front().tick < reports().back().tick);
  auto const id = done<std::optional<weir::job_id>>(
      [&](auto handler) { schedules.async_trigger("hourly", std::move(handler)); });
  BOOST_TEST(id.has_value());
  BOOST_TEST(enqueued() == n + 1);
}

// What an idle scheduler asks for in a day of polls does not depend on how many schedules there
// are.
BOOST_AUTO_TEST_CASE(a_hundred_thousand_schedules_cost_an_idle_scheduler_no_more_than_ten) {
  using counted = weir_test::counting_store<memory>;
  auto const asked_with = [&](int count) {
    constexpr int queues = 100;
    memory const many{io.get_executor(), {}, clock};
    weir::stored_schedule s;
    s.definition = hourly();
    s.definition.when = weir::every{weir::limits::span};
    s.job.kind = "report";
    s.job.payload = R"({"what":"x","tick":""})";
    auto const payload = weir::detail::encode_record(s);
    for (int queue = 0; queue != queues; ++queue) {
      s.job.queue = "queue " + std::to_string(queue);
      std::vector<weir::new_job> jobs;
      for (int i = queue; i < count; i += queues) {
        s.definition.name = "schedule " + std::to_string(i);
        jobs.push_back(weir::detail::schedule_job(s, payload, 48h));
      }
      if (jobs.empty()) continue;
      many.execute(weir::command::enqueue_jobs{weir::detail::companion_of(s.job.queue), jobs})
          .value();
    }
    counted const counts{many};
    weir::scheduler<counted, weir::manual_clock> idle{counts, weir::worker_options{.poll = 1min},
                                                      clock, weir::id_source::seeded(3)};
    bool stopped = false;
    idle.async_run([&](weir::error_code) { stopped = true; });
    pass(24h);
    auto const asked = counts.asked();
    idle.stop();
    settle();
    BOOST_TEST(stopped);
    return asked;
  };
  auto const few = asked_with(10);
  auto const many = asked_with(100'000);
  BOOST_TEST(few >= 24U * 60U);
  BOOST_TEST(many <= few);
}

BOOST_AUTO_TEST_CASE(a_firing_that_the_store_refuses_is_told) {
  weir_test::heard_log const heard;
  put(hourly());
  picky_store const picky{store};
  weir::scheduler<picky_store, weir::manual_clock> refused{
      picky, weir::worker_options{.poll = 1min}, clock, weir::id_source::seeded(3)};
  refused.async_run([](weir::error_code) {});
  pass(1h + 1min);
  BOOST_TEST(enqueued() == 0U);
  BOOST_TEST(heard.count("in queue weir.schedules/reports is refused, and it is tried again") >=
             1U);
  refused.stop();
  settle();
  run();
  pass(1h);
  BOOST_TEST(enqueued() >= 1U);  // nothing is lost
}

BOOST_AUTO_TEST_CASE(schedules_are_listed_page_by_page) {
  for (int i = 0; i != 250; ++i) {
    put(hourly("schedule " + std::to_string(i)), "daily", i % 2 == 0 ? "even" : "odd");
  }
  std::vector<std::string> names;
  std::string cursor;
  do {
    auto const page = done<weir::schedule_page>(
        [&](auto handler) { schedules.async_list(100, cursor, std::move(handler)); });
    for (auto const& s : page.schedules) names.push_back(s.definition.name);
    cursor = page.cursor;
  } while (!cursor.empty());
  std::ranges::sort(names);
  BOOST_TEST(names.size() == 250U);
  BOOST_TEST((std::ranges::adjacent_find(names) == names.end()));
}

BOOST_AUTO_TEST_CASE(R8_bad_jobs_of_schedules_are_refused_before_anything_is_done) {
  auto const refused = [&](report const& job, std::string_view queue,
                           weir::job_headers const& headers = {}) {
    weir::enqueue_options options;
    options.queue = queue;
    options.headers = headers;
    weir::error_code out;
    schedules.async_put(hourly(), job, options,
                        [&](weir::error_code ec, weir::put_outcome) { out = ec; });
    settle();
    return out;
  };
  BOOST_TEST((refused({"x", ""}, "weir.schedules/reports") == weir::errc::invalid_queue));
  report const large{std::string(weir::limits::scheduled_payload_size, 'x'), ""};
  BOOST_TEST((refused(large, "reports") == weir::errc::payload_too_large));
  BOOST_TEST((refused({"x", ""}, "reports", {{"tenant", "acme"}}) == weir::errc::invalid_option));
  BOOST_TEST(!find("hourly").has_value());
}

BOOST_AUTO_TEST_CASE(R8_bad_schedules_are_refused_before_anything_is_done) {
  BOOST_TEST(
      (put_fails({.name = "a", .when = weir::cron{"61 * * * *"}}) == weir::errc::invalid_option));
  BOOST_TEST((put_fails({.name = "a", .when = weir::cron{"* * * * *", "No/Where"}}) ==
              weir::errc::invalid_option));
  auto s = hourly();
  s.tick_member = "nothing";
  BOOST_TEST((put_fails(s) == weir::errc::invalid_option));
  auto const id = ids.job();
  BOOST_TEST((put_fails(hourly(), {.delay = 1s}) == weir::errc::invalid_option));
  BOOST_TEST((put_fails(hourly(), {.ids = {&id, 1}}) == weir::errc::invalid_option));
  BOOST_TEST(
      (put_fails({.name = "\xff", .when = weir::every{1h}}) == weir::errc::unencodable_payload));
  BOOST_TEST(!find("a").has_value());
}

BOOST_AUTO_TEST_CASE(a_worker_leaves_schedules_alone) {
  put(hourly());
  auto w = make_worker({.poll = 1min});
  w.handle<note>([](note const&) {});
  start(w);
  weir_test::heard_log const log;
  pass(1h);
  BOOST_TEST(log.count("is a weir::scheduler running?") == 0U);  // it is due, but not for long
  pass(2min);
  BOOST_TEST(log.count("a schedule of jobs in queue reports is due for") >= 1U);
  BOOST_TEST(log.count("is a weir::scheduler running?") >= 1U);
  pass(58min);
  BOOST_TEST(enqueued() == 0U);
  run();
  pass(1min);
  BOOST_TEST(enqueued() == 1U);
}

BOOST_AUTO_TEST_CASE(ticks_come_at_the_times_of_a_zone) {
  // 2026-11-01 06:00 UTC is the second 01:00 in New York.
  clock.set_system(weir::time_point{std::chrono::sys_days{std::chrono::year{2026} / 10 / 31}});
  put({.name = "night",
       .when = weir::cron{"30 1 * * *", "America/New_York"},
       .overlap = weir::overlap_policy::allow,
       .tick_member = "tick"});
  run();
  pass(72h);
  auto const jobs = reports();
  BOOST_TEST_REQUIRE(jobs.size() == 3U);
  BOOST_TEST(jobs[0].tick == "2026-10-31T05:30:00Z");
  BOOST_TEST(jobs[1].tick == "2026-11-01T05:30:00Z");
  BOOST_TEST(jobs[2].tick == "2026-11-02T06:30:00Z");
}

BOOST_AUTO_TEST_SUITE_END()
