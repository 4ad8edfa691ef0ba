// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What a worker does with the ways in which a handler may end.

#include "unit/slow_store.hpp"
#include "worker_fixture.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace test {

constexpr std::string_view a_note = R"({"text":"","number":1})";

struct total {
  int sum = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(total, sum)

/// Its decoder has an opinion of its own.
struct choosy {};
inline void to_json(nlohmann::json& j, choosy const&) { j = 1; }
inline void from_json(nlohmann::json const&, choosy&) { throw std::runtime_error{"not for me"}; }

/// It cannot always be made.
struct moody {
  moody() {
    if (refusals > 0) {
      --refusals;
      if (gives_up) throw weir::give_up{"not made"};
      throw 7;
    }
  }
  int number = 0;
  static inline int refusals = 0;
  static inline bool gives_up = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(moody, number)
struct moody_limit {
  int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(moody_limit, number)

struct textless : std::exception {
  [[nodiscard]] char const* what() const noexcept override { return nullptr; }
};

inline int count_total(total const& t) noexcept { return t.sum; }

}  // namespace test

template <>
struct weir::job_traits<test::moody> {
  static constexpr std::string_view kind = "moody";
};
template <>
struct weir::job_traits<test::moody_limit> {
  static constexpr std::string_view kind = "moody limit";
  static constexpr std::uint32_t concurrency = 1;
  static std::string concurrency_key(test::moody_limit const&) { throw 7; }
};
template <>
struct weir::job_traits<test::total> {
  static constexpr std::string_view kind = "total";
};
template <>
struct weir::job_traits<test::choosy> {
  static constexpr std::string_view kind = "choosy";
};

using namespace test;
using kind = weir::worker_event_kind;

BOOST_FIXTURE_TEST_SUITE(worker_handlers, worker_fixture)

BOOST_AUTO_TEST_CASE(a_plain_function_runs_and_its_job_is_completed) {
  auto w = make_worker();
  std::vector<std::string> seen;
  w.handle<note>([&](note const& n) { seen.push_back(n.text); });
  auto const id = enqueue("note", R"({"text":"a","number":1})");
  start(w);
  BOOST_TEST(seen == std::vector<std::string>{"a"}, boost::test_tools::per_element());
  BOOST_TEST((find(id)->state == weir::job_state::completed));
  BOOST_TEST(find(id)->result == "");
  BOOST_TEST(events[kind::started] == 1);
  BOOST_TEST(events[kind::completed] == 1);
}

BOOST_AUTO_TEST_CASE(a_coroutines_text_is_stored_as_it_is) {
  auto w = make_worker();
  w.handle<note>([](note const& n, weir::job_context& c) -> asio::awaitable<std::string> {
    co_return n.text + " by attempt " + std::to_string(c.attempt()) + " of " +
        std::to_string(c.max_attempts());
  });
  auto const id = enqueue("note", R"({"text":"done","number":1})");
  start(w);
  BOOST_TEST(find(id)->result == "done by attempt 1 of 3");
}

BOOST_AUTO_TEST_CASE(a_structs_json_form_is_stored) {
  auto w = make_worker();
  w.handle<note>([](note const& n) { return total{n.number + 1}; });
  auto const id = enqueue("note", R"({"text":"","number":41})");
  start(w);
  BOOST_TEST(find(id)->result == R"({"sum":42})");
}

BOOST_AUTO_TEST_CASE(a_handler_that_is_noexcept_names_its_job_type) {
  auto w = make_worker();
  int sum = 0;
  w.handle([&](note const& n) noexcept { sum += n.number; });
  w.handle(&count_total);
  enqueue("note", a_note);
  enqueue("total", R"({"sum":2})");
  start(w);
  BOOST_TEST(sum == 1);
  BOOST_TEST(stats().completed == 2U);
}

BOOST_AUTO_TEST_CASE(F62_a_returned_json_value_is_stored_as_its_text) {
  auto w = make_worker();
  w.handle<note>([](note const& n) -> nlohmann::json {
    if (n.number == 0) return "a";
    return {{"sum", n.number}};
  });
  auto const object = enqueue("note", R"({"text":"","number":42})");
  auto const text = enqueue("note", R"({"text":"","number":0})");
  start(w);
  BOOST_TEST(find(object)->result == R"({"sum":42})");
  BOOST_TEST(weir::result_as<nlohmann::json>(*find(object)).value()["sum"] == 42);
  BOOST_TEST(find(text)->result == R"("a")");
  w.handle<note>([](note const& n) -> asio::awaitable<nlohmann::ordered_json> {
    co_return nlohmann::ordered_json{{"sum", n.number}};
  });
  auto const ordered = enqueue("note", R"({"text":"","number":43})");
  pass(1s);
  BOOST_TEST(find(ordered)->result == R"({"sum":43})");
}

BOOST_AUTO_TEST_CASE(F42_an_exception_requeues_its_job_and_the_worker_goes_on) {
  auto w = make_worker();
  int calls = 0;
  w.handle<note>([&](note const& n) {
    ++calls;
    if (n.number == 1) throw std::runtime_error{"no luck"};
    if (n.number == 2) throw 7;
  });
  auto const first = enqueue("note", a_note);
  auto const second = enqueue("note", R"({"text":"","number":2})");
  auto const third = enqueue("note", R"({"text":"","number":3})");
  start(w);
  BOOST_TEST(calls == 3);
  BOOST_TEST((find(first)->state == weir::job_state::pending));
  BOOST_TEST(find(first)->reason == "no luck");
  BOOST_TEST(find(first)->attempts == 1);
  BOOST_TEST(find(second)->reason == "an exception that is not a std::exception");
  BOOST_TEST((find(third)->state == weir::job_state::completed));
  BOOST_TEST(events[kind::retried] == 2);
}

BOOST_AUTO_TEST_CASE(F42_an_exception_without_a_text_fails_its_attempt) {
  for (bool const coroutine : {false, true}) {
    BOOST_TEST_CONTEXT("coroutine: " << coroutine) {
      auto w = make_worker();
      int calls = 0;
      auto const fails = [&calls] {
        if (++calls < 10) throw textless{};
      };
      if (coroutine) {
        w.handle<note>([&](note const&) -> asio::awaitable<void> {
          fails();
          co_return;
        });
      } else {
        w.handle<note>([&](note const&) { fails(); });
      }
      auto const id = enqueue("note", a_note);
      start(w);
      BOOST_TEST(calls == 1);
      BOOST_TEST((find(id)->state == weir::job_state::pending));
      BOOST_TEST(find(id)->attempts == 1U);
      cancel();
      ask(weir::command::cancel_job{"default", id});
    }
  }
}

BOOST_AUTO_TEST_CASE(F42_what_a_job_type_throws_while_it_is_decoded_fails_the_attempt) {
  for (bool const coroutine : {false, true}) {
    BOOST_TEST_CONTEXT("coroutine: " << coroutine) {
      auto w = make_worker();
      if (coroutine) {
        w.handle<moody>([](moody const&) -> asio::awaitable<void> { co_return; });
      } else {
        w.handle<moody>([](moody const&) {});
      }
      w.handle<moody_limit>([](moody_limit const&) {});
      auto const id = enqueue("moody", R"({"number":1})");
      auto const limited = enqueue("moody limit", R"({"number":1})");
      moody::refusals = 100;
      start(w);
      for (auto const& failed : {id, limited}) {
        BOOST_TEST((find(failed)->state == weir::job_state::pending));
        BOOST_TEST(find(failed)->attempts == 1U);
        BOOST_TEST(find(failed)->reason == "an exception that is not a std::exception");
      }
      BOOST_TEST(moody::refusals > 90);
      BOOST_TEST(events[kind::lease_lost] == 0);
      // Whatever is thrown before the handler is called has no say in what becomes of the job.
      moody::gives_up = true;
      pass(1h);
      BOOST_TEST((find(id)->state == weir::job_state::dead));
      BOOST_TEST(find(id)->attempts == 3U);
      moody::gives_up = false;
      moody::refusals = 0;
      cancel();
      for (auto const& failed : {id, limited}) ask(weir::command::cancel_job{"default", failed});
    }
  }
}

BOOST_AUTO_TEST_CASE(R4_a_failing_job_is_tried_exactly_max_attempts_times_and_then_dead_lettered) {
  auto w = make_worker();
  int calls = 0;
  w.handle<note>([&](note const&) {
    ++calls;
    throw std::runtime_error{"never"};
  });
  auto const id = enqueue("note", a_note);
  start(w);
  BOOST_TEST(calls == 1);
  pass(9s);
  BOOST_TEST(calls == 1);  // the backoff is 10 s
  pass(2s);
  BOOST_TEST(calls == 2);
  pass(1h);
  BOOST_TEST(calls == 3);
  BOOST_TEST((find(id)->state == weir::job_state::dead));
  BOOST_TEST(find(id)->attempts == 3);
  BOOST_TEST(dead().at(0).reason == "never");
  BOOST_TEST(events[kind::dead_lettered] == 1);
}

BOOST_AUTO_TEST_CASE(give_up_is_terminal_at_once_with_its_reason) {
  auto w = make_worker();
  w.handle<note>([](note const&) -> asio::awaitable<void> {
    throw weir::give_up{"no such customer"};
    co_return;
  });
  auto const id = enqueue("note", a_note);
  start(w);
  BOOST_TEST((find(id)->state == weir::job_state::dead));
  BOOST_TEST(find(id)->reason == "no such customer");
}

BOOST_AUTO_TEST_CASE(a_reason_that_is_too_long_is_not_cut_within_a_character) {
  auto w = make_worker();
  std::string const kept(weir::limits::reason_size - 1, 'x');
  bool gives_up = false;
  w.handle<note>([&](note const&) {
    if (std::exchange(gives_up, true)) throw weir::give_up{kept + "\u00e9"};
    throw std::runtime_error{kept + "\u00e9"};
  });
  auto const id = enqueue("note", a_note);
  start(w);
  BOOST_TEST((find(id)->reason == kept));
  BOOST_TEST((reasons.back() == kept));
  pass(1min);
  BOOST_TEST((find(id)->state == weir::job_state::dead));
  BOOST_TEST((find(id)->reason == kept));
}

BOOST_AUTO_TEST_CASE(F33_a_snoozing_handler_burns_no_attempt) {
  auto w = make_worker();
  int calls = 0;
  w.handle<note>([&](note const&) {
    if (++calls <= 5) throw weir::snooze_for{60s};
  });
  auto const id = enqueue("note", a_note);
  start(w);
  BOOST_TEST(find(id)->attempts == 0);
  BOOST_TEST(find(id)->snoozes == 1);
  pass(10min);
  BOOST_TEST(calls == 6);
  BOOST_TEST(find(id)->snoozes == 5);
  BOOST_TEST((find(id)->state == weir::job_state::completed));
}

BOOST_AUTO_TEST_CASE(an_undecodable_payload_is_dead_lettered_with_the_decoders_reason) {
  auto w = make_worker();
  int calls = 0;
  w.handle<note>([&](note const&) { ++calls; });
  auto const broken = enqueue("note", "{not json");
  auto const other = enqueue("note", R"({"text":7})");
  start(w);
  BOOST_TEST(calls == 0);
  BOOST_TEST((find(broken)->state == weir::job_state::dead));
  BOOST_TEST(find(broken)->reason.starts_with("undecodable payload: "));
  BOOST_TEST(find(broken)->reason.find("parse error") != std::string::npos);
  BOOST_TEST((find(other)->state == weir::job_state::dead));
}

BOOST_AUTO_TEST_CASE(a_decoder_that_throws_anything_dead_letters_its_job) {
  auto w = make_worker();
  w.handle<choosy>([](choosy const&) {});
  auto const id = enqueue("choosy", "1");
  start(w);
  BOOST_TEST((find(id)->state == weir::job_state::dead));
  BOOST_TEST(find(id)->reason == "undecodable payload: not for me");
}

BOOST_AUTO_TEST_CASE(F51_an_unknown_kind_waits_for_a_worker_that_knows_it) {
  auto w = make_worker();
  auto const id = enqueue("from_tomorrow", "{}");
  start(w);
  BOOST_TEST((find(id)->state == weir::job_state::pending));
  BOOST_TEST(find(id)->reason == "no handler for this kind of job here");
  cancel();
  auto newer = make_worker();
  int calls = 0;
  newer.handle<note>([&](note const&) { ++calls; });
  enqueue("note", a_note);
  start(newer);
  BOOST_TEST(calls == 1);
  pass(10min);  // nobody ever knows it: its attempts are spent
  BOOST_TEST((find(id)->state == weir::job_state::dead));
}

// One that is first at a queue stays first, as those who came in vain leave it alone for longer.
BOOST_AUTO_TEST_CASE(F51_each_worker_that_does_not_know_a_kind_spends_one_attempt_of_a_job) {
  constexpr std::uint32_t old_ones = 5;
  std::deque<worker_type> older;
  while (older.size() != old_ones) start(older.emplace_back(make_worker()));
  auto newer = make_worker();
  std::vector<std::uint32_t> attempts;
  newer.handle<note>([&](note const&, weir::job_context& c) { attempts.push_back(c.attempt()); });
  for (int i = 0; i != 40; ++i) enqueue("note", a_note, "default", old_ones + 1);
  pass(2s);
  start(newer);
  BOOST_TEST(attempts.empty());
  pass(15min);
  BOOST_TEST(attempts.size() == 40U);
  BOOST_TEST(std::ranges::max(attempts) <= old_ones + 1);
  // By now all of them know that there are such jobs.
  std::vector<weir::new_job> later(20);
  for (auto& job : later) {
    job.id = ids.job();
    job.kind = "note";
    job.payload = a_note;
    job.max_attempts = 1;
    job.delay = 2s + 100ms * (&job - later.data());
  }
  ask(weir::command::enqueue_jobs{"default", later});
  pass(4s);
  BOOST_TEST(attempts.size() == 60U);
  BOOST_TEST(dead().empty());
}

// Old workers claim from a long queue all the while, and the new one has work for ten minutes.
struct backlog_fixture : worker_fixture {
  explicit backlog_fixture(std::size_t old_ones) {
    while (older.size() != old_ones) start(older.emplace_back(make_worker()));
    newer.handle<note>([&](note const&) -> asio::awaitable<void> {
      ++calls;
      co_await sleep(2s);
    });
    start(newer);
    for (int i = 0; i != all; ++i) enqueue("note", a_note, "default", 8);
  }

  static constexpr int all = 3000;
  std::deque<worker_type> older;
  worker_type newer = make_worker();
  int calls = 0;
};
struct one_old_worker : backlog_fixture {
  one_old_worker() : backlog_fixture{1} { pass(30min); }
};
struct many_old_workers : backlog_fixture {
  many_old_workers() : backlog_fixture{8} { pass(20min); }
};

BOOST_FIXTURE_TEST_CASE(F51_a_worker_without_the_kind_stops_no_other_one, one_old_worker) {
  BOOST_TEST(calls == all);
  BOOST_TEST(dead().empty());
}

BOOST_FIXTURE_TEST_CASE(F51_many_workers_without_the_kind_bury_none, many_old_workers) {
  BOOST_TEST(calls > 500);
  BOOST_TEST(dead().empty());
}

BOOST_AUTO_TEST_CASE(F51_two_workers_with_a_kind_each_take_turns_at_a_queue) {
  using slow = weir_test::slow_store<memory>;
  weir::worker<slow, weir::manual_clock, weir::constant_backoff> near{
      slow{store, clock, 1ms}, {}, clock, weir::constant_backoff{10s}, weir::id_source::seeded(1)};
  weir::worker<slow, weir::manual_clock, weir::constant_backoff> far{
      slow{store, clock, 5ms}, {}, clock, weir::constant_backoff{10s}, weir::id_source::seeded(2)};
  int notes = 0;
  int totals = 0;
  near.handle<note>([&](note const&) { ++notes; });
  far.handle<total>([&](total const&) { ++totals; });
  start(near);
  start(far);
  for (int i = 0; i != 40; ++i) {
    enqueue("note", a_note, "default", 16);
    enqueue("total", R"({"sum":1})", "default", 16);
    pass(61s);
  }
  pass(4h);
  BOOST_TEST(notes == 40);
  BOOST_TEST(totals == 40);
  BOOST_TEST(dead().empty());
}

BOOST_AUTO_TEST_CASE(F51_a_busy_worker_comes_back_to_a_queue_with_an_unknown_kind) {
  auto w = make_worker({.concurrency = 2});
  int here = 0;
  w.handle<note>([&](note const&, weir::job_context& c) -> asio::awaitable<void> {
    if (c.queue() == "mixed") ++here;
    co_await sleep(300ms);
  });
  enqueue("from_tomorrow", "{}", "mixed");
  start(w);
  for (int i = 0; i != 1000; ++i) enqueue("note", a_note, "busy");
  pass(1s);
  enqueue("note", a_note, "mixed");
  pass(5s);
  BOOST_TEST(here == 1);
}

BOOST_AUTO_TEST_CASE(F51_jobs_of_known_kinds_wait_little_beside_an_unknown_one) {
  auto w = make_worker();
  int calls = 0;
  w.handle<note>([&](note const&) { ++calls; });
  auto const id = enqueue("from_tomorrow", "{}", "default", 100);
  start(w);
  for (int i = 0; i != 600; ++i) {
    enqueue("note", a_note);
    pass(62500us);
    BOOST_TEST_REQUIRE(calls == i + 1);
    pass(i % 7 * 50ms);
  }
  // Nobody else is there: it is asked for in vain each minute, and each time is an attempt.
  auto const at = find(id);
  BOOST_TEST_REQUIRE(at.has_value());
  BOOST_TEST(at->attempts >= 2U);
  BOOST_TEST((at->state == weir::job_state::pending));
}

BOOST_AUTO_TEST_CASE(F62_a_result_that_cannot_be_stored_costs_the_work_nothing) {
  auto w = make_worker();
  int runs = 0;
  auto const run = [&](auto handler) {
    w.handle<note>(std::move(handler));
    auto const id = enqueue("note", a_note);
    start(w);
    pass(1min);
    BOOST_TEST_REQUIRE(find(id).has_value());
    BOOST_TEST((find(id)->state == weir::job_state::completed));
    BOOST_TEST(find(id)->result == "");
    cancel();
  };
  run([&](note const&) { return ++runs, std::string(weir::limits::payload_size + 1, 'x'); });
  run([&](note const&) { return ++runs, note{"not UTF-8: \xff", 1}; });
  run([&](note const&) -> asio::awaitable<note> {
    ++runs;
    note const bad{"nor this: \xff", 1};
    co_return bad;
  });
  BOOST_TEST(runs == 3);
  BOOST_TEST(events[kind::result_dropped] == 3);
  BOOST_TEST(events[kind::completed] == 3);
  BOOST_TEST(events[kind::retried] == 0);
  BOOST_TEST(dead().empty());
}

BOOST_AUTO_TEST_CASE(an_observer_that_throws_does_not_end_the_worker) {
  auto w = make_worker();
  w.on_event([](weir::worker_event const&) { throw std::runtime_error{"observer"}; });
  w.handle<note>([](note const&) {});
  auto const id = enqueue("note", a_note);
  start(w);
  BOOST_TEST((find(id)->state == weir::job_state::completed));
}

BOOST_AUTO_TEST_CASE(more_jobs_than_hands_all_run_and_never_more_at_once_than_allowed) {
  weir::worker_options const options{.concurrency = 3, .quantum = 2};
  auto w = make_worker(options);
  int running = 0;
  int most = 0;
  int calls = 0;
  w.handle<note>([&](note const&) -> asio::awaitable<void> {
    most = std::max(most, ++running);
    ++calls;
    co_await sleep(1s);
    --running;
  });
  for (int i = 0; i != 20; ++i) enqueue("note", a_note);
  start(w);
  BOOST_TEST(running == 3);
  pass(20s);
  BOOST_TEST(calls == 20);
  BOOST_TEST(most == 3);
  BOOST_TEST(stats().completed == 20U);
}

BOOST_AUTO_TEST_SUITE_END()
