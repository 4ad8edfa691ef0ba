// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Middleware around handlers, handlers bound to executors, and the time that a handler has.
#include "unit/worker_fixture.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace test {

/// Has a time-out.
struct hurried : note {};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(hurried, text, number)

}  // namespace test

template <>
struct weir::job_traits<test::hurried> {
  static constexpr std::string_view kind = "timed";
  static constexpr duration timeout = std::chrono::seconds{10};
};

using namespace test;
using kind = weir::worker_event_kind;

namespace {

std::string const one = R"({"text":"a","number":1})";

struct around_fixture : worker_fixture {
  using words = std::vector<std::string>;

  /// A middleware that says when it begins and when it ends.
  auto saying(std::string name) {
    return [this, name](weir::job_context&, weir::next_handler next) -> asio::awaitable<void> {
      said.push_back(name + " begins");
      co_await next();
      said.push_back(name + " ends");
    };
  }
  auto plain() {
    return [this](note const&) {
      said.emplace_back("handler");
      return std::string{"result"};
    };
  }
  auto coroutine() {
    return [this](note const&) -> asio::awaitable<std::string> {
      co_await asio::post(io, asio::use_awaitable);
      said.emplace_back("handler");
      co_return "result";
    };
  }
  /// Runs one job, and gives its record.
  weir::job run_one(worker_type& w) {
    auto const id = enqueue("note", one);
    start(w);
    pass(1s);
    return find(id).value();
  }

  words said;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(worker_around, around_fixture)

BOOST_AUTO_TEST_CASE(middleware_is_around_every_handler_the_first_outermost) {
  words const expected{"outer begins", "inner begins", "handler", "inner ends", "outer ends"};
  for (bool const is_coroutine : {false, true}) {
    said.clear();
    auto w = make_worker();
    if (is_coroutine) {
      w.handle<note>(coroutine());
    } else {
      w.handle<note>(plain());
    }
    w.around(saying("outer")).around(saying("inner"));
    auto const job = run_one(w);
    BOOST_TEST(said == expected, boost::test_tools::per_element());
    BOOST_TEST((job.state == weir::job_state::completed));
    BOOST_TEST(job.result == "result");
  }
}

BOOST_AUTO_TEST_CASE(what_middleware_throws_ends_the_attempt) {
  auto w = make_worker();
  w.handle<note>(plain());
  w.around([](weir::job_context&, weir::next_handler next) -> asio::awaitable<void> {
    co_await next();
    throw weir::give_up{"the middleware says so"};
  });
  auto const job = run_one(w);
  BOOST_TEST((job.state == weir::job_state::dead));
  BOOST_TEST(job.reason == "the middleware says so");
}

BOOST_AUTO_TEST_CASE(middleware_sees_what_a_handler_throws_and_may_translate_it) {
  auto w = make_worker();
  w.handle<note>([](note const&) { throw std::runtime_error{"no such address"}; });
  w.around([this](weir::job_context&, weir::next_handler next) -> asio::awaitable<void> {
    try {
      co_await next();
    } catch (std::runtime_error const& e) {
      said.emplace_back(e.what());
      throw weir::give_up{"given up"};
    }
  });
  auto const job = run_one(w);
  BOOST_TEST(said == words{"no such address"}, boost::test_tools::per_element());
  BOOST_TEST((job.state == weir::job_state::dead));
}

BOOST_AUTO_TEST_CASE(middleware_may_leave_a_job_out_or_run_it_again) {
  auto w = make_worker();
  int runs = 0;
  w.handle<note>([&](note const& n) {
    if (++runs == 1) throw std::runtime_error{"the first time"};
    return n.text + std::to_string(runs);
  });
  bool leave_out = true;
  w.around([&](weir::job_context&, weir::next_handler next) -> asio::awaitable<void> {
    if (leave_out) co_return;
    bool failed = false;
    try {
      co_await next();
    } catch (std::runtime_error const&) {
      failed = true;
    }
    if (failed) co_await next();
  });
  auto const id = enqueue("note", one);
  start(w);
  pass(1s);
  BOOST_TEST(runs == 0);
  BOOST_TEST((find(id)->state == weir::job_state::completed));
  BOOST_TEST(find(id)->result.empty());
  leave_out = false;
  auto const again = enqueue("note", one);
  pass(1s);
  BOOST_TEST(find(again)->result == "a2");
}

BOOST_AUTO_TEST_CASE(a_cancelled_handler_is_cancelled_through_its_middleware) {
  auto w = make_worker();
  w.handle<hurried>([this](hurried const&) -> asio::awaitable<void> { co_await sleep(1h); });
  bool thrown = false;
  w.around([&](weir::job_context&, weir::next_handler next) -> asio::awaitable<void> {
    try {
      co_await next();
    } catch (boost::system::system_error const&) {
      thrown = true;
      throw;
    }
  });
  enqueue("timed", one);
  start(w);
  pass(11s);
  BOOST_TEST(thrown);
  BOOST_TEST(reasons.back() == "timed out");
}

BOOST_AUTO_TEST_CASE(one_handler_is_put_into_another_at_compile_time) {
  auto w = make_worker();
  auto inner = weir::around(
      [this](note const& n, weir::job_context&, auto next) {
        said.push_back("inner, " + n.text);
        return next() + ", and more";
      },
      plain());
  w.handle(weir::around(
      [this](weir::job_context& c, auto next) {
        said.push_back("outer, " + std::string{c.kind()});
        return next();
      },
      [inner](note const& n, weir::job_context& c) mutable { return inner(n, c); }));
  auto const job = run_one(w);
  BOOST_TEST((said == words{"outer, note", "inner, a", "handler"}));
  BOOST_TEST(job.result == "result, and more");
}

BOOST_AUTO_TEST_CASE(around_a_coroutine_the_middleware_is_one_too) {
  auto w = make_worker();
  w.handle<note>(weir::around(
      [this](weir::job_context&, auto next) -> asio::awaitable<std::string> {
        said.emplace_back("begins");
        auto result = co_await next();
        said.emplace_back("ends");
        co_return result;
      },
      coroutine()));
  auto const job = run_one(w);
  BOOST_TEST((said == words{"begins", "handler", "ends"}));
  BOOST_TEST(job.result == "result");
}

BOOST_AUTO_TEST_CASE(a_handler_that_is_bound_to_an_executor_runs_there) {
  asio::thread_pool pool{1};
  std::atomic<int> there = 0;
  std::atomic<int> elsewhere = 0;
  auto const here = std::this_thread::get_id();
  auto const note_thread = [&] { ++(std::this_thread::get_id() == here ? elsewhere : there); };
  auto w = make_worker();
  w.handle(asio::bind_executor(pool, [&](note const&) { note_thread(); }));
  w.handle<hurried>(
      weir::around([](weir::job_context&, auto next) { return next(); },
                   asio::bind_executor(pool, [&](hurried const&) -> asio::awaitable<void> {
                     note_thread();
                     co_await asio::post(asio::use_awaitable);
                     note_thread();
                   })));
  enqueue("note", one);
  enqueue("timed", one);
  start(w);
  auto const work = asio::make_work_guard(io);
  io.restart();
  while (events[kind::completed] != 2) io.run_one_for(10s);
  BOOST_TEST(there == 3);
  BOOST_TEST(elsewhere == 0);
}

BOOST_AUTO_TEST_CASE(a_handler_knows_how_much_time_it_has) {
  std::vector<std::optional<weir::duration>> left;
  auto w = make_worker();
  w.handle<hurried>([&](hurried const&, weir::job_context& c) -> asio::awaitable<void> {
    left.push_back(c.time_left());
    co_await sleep(4s);
    left.push_back(c.time_left());
  });
  w.handle<note>([&](note const&, weir::job_context& c) { left.push_back(c.time_left()); });
  for (auto const deadline : {weir::duration{1h}, weir::duration{3s}}) {
    weir::new_job job;
    job.id = ids.job();
    job.kind = "timed";
    job.payload = one;
    job.deadline = deadline;
    ask(weir::command::enqueue_jobs{"default", {&job, 1}});
  }
  enqueue(note{});
  start(w);
  pass(5s);
  BOOST_TEST_REQUIRE(left.size() == 5U);
  BOOST_TEST((left[0] == 10s));
  BOOST_TEST((left[1] == 3s));
  BOOST_TEST(!left[2]);
  BOOST_TEST((left[3] == 6s));
  BOOST_TEST((left[4] == -1s));
}

BOOST_AUTO_TEST_SUITE_END()
