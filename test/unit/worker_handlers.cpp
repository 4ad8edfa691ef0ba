// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What a worker does with the ways in which a handler may end.

#include "worker_fixture.hpp"

#include <nlohmann/json.hpp>

#include <memory>
#include <stdexcept>

namespace test {

struct total {
  int sum = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(total, sum)

/// Its decoder has an opinion of its own.
struct choosy {};
inline void to_json(nlohmann::json& j, choosy const&) { j = 1; }
inline void from_json(nlohmann::json const&, choosy&) { throw std::runtime_error{"not for me"}; }

}  // namespace test

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

BOOST_AUTO_TEST_CASE(F42_an_exception_requeues_its_job_and_the_worker_goes_on) {
  auto w = make_worker();
  int calls = 0;
  w.handle<note>([&](note const& n) {
    ++calls;
    if (n.number == 1) throw std::runtime_error{"no luck"};
    if (n.number == 2) throw 7;
  });
  auto const first = enqueue("note", R"({"text":"","number":1})");
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

BOOST_AUTO_TEST_CASE(R4_a_failing_job_is_tried_exactly_max_attempts_times_and_then_dead_lettered) {
  auto w = make_worker();
  int calls = 0;
  w.handle<note>([&](note const&) {
    ++calls;
    throw std::runtime_error{"never"};
  });
  auto const id = enqueue("note", R"({"text":"","number":1})");
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
  auto const id = enqueue("note", R"({"text":"","number":1})");
  start(w);
  BOOST_TEST((find(id)->state == weir::job_state::dead));
  BOOST_TEST(find(id)->reason == "no such customer");
}

BOOST_AUTO_TEST_CASE(F33_a_snoozing_handler_burns_no_attempt) {
  auto w = make_worker();
  int calls = 0;
  w.handle<note>([&](note const&) {
    if (++calls <= 5) throw weir::snooze_for{60s};
  });
  auto const id = enqueue("note", R"({"text":"","number":1})");
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
  enqueue("note", R"({"text":"","number":1})");
  start(newer);
  BOOST_TEST(calls == 1);
  pass(10min);  // nobody ever knows it: its attempts are spent
  BOOST_TEST((find(id)->state == weir::job_state::dead));
}

BOOST_AUTO_TEST_CASE(F62_a_result_that_cannot_be_stored_costs_the_work_nothing) {
  auto w = make_worker();
  int runs = 0;
  auto const run = [&](auto handler) {
    w.handle<note>(std::move(handler));
    auto const id = enqueue("note", R"({"text":"","number":1})");
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
  auto const id = enqueue("note", R"({"text":"","number":1})");
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
    co_await clock.async_wait_until(io.get_executor(), clock.steady_now() + 1s,
                                    asio::use_awaitable);
    --running;
  });
  for (int i = 0; i != 20; ++i) enqueue("note", R"({"text":"","number":1})");
  start(w);
  BOOST_TEST(running == 3);
  pass(20s);
  BOOST_TEST(calls == 20);
  BOOST_TEST(most == 3);
  BOOST_TEST(stats().completed == 20U);
}

BOOST_AUTO_TEST_SUITE_END()
