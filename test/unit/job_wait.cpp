// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Waiting for the end of a job.
#include "unit/slow_store.hpp"
#include "unit/worker_fixture.hpp"
#include "weir/testing/faulty_store.hpp"

#include <boost/test/unit_test.hpp>

#include <optional>
#include <string>

using namespace test;
using weir_test::slow_store;

namespace {

std::string const one = R"({"text":"a","number":1})";

struct wait_fixture : worker_fixture {
  /// What a wait has come to.
  struct waiter {
    std::optional<weir::error_code> ec;
    std::optional<weir::job> job;
  };

  template <class Store>
  void wait(Store on, weir::job_id id, waiter& w, weir::job_wait_options options = {}) {
    weir::job_queue const queue{std::move(on), ids, clock};
    queue.async_wait("default", id, options,
                     asio::bind_cancellation_slot(
                         given_up.slot(), [&w](weir::error_code ec, std::optional<weir::job> job) {
                           w = {ec, std::move(job)};
                         }));
    settle();
  }
  weir::leased_job claim() {
    auto const got = ask(weir::command::dequeue_jobs{"default", "me", 0, 1, 1h});
    BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
    return got.jobs[0];
  }
  void complete(std::string_view result) {
    auto const j = claim();
    weir::finished_job const done{j.id, j.fence, result};
    ask(weir::command::complete_jobs{"default", {&done, 1}});
  }

  asio::cancellation_signal given_up;
  slow_store<memory> slow{store, clock, 4ms};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(job_wait, wait_fixture)

BOOST_AUTO_TEST_CASE(a_job_that_ends_is_given_with_its_result) {
  auto const id = enqueue("note", one);
  waiter near;
  waiter far;
  wait(store, id, near);
  wait(slow, id, far);
  pass(3s);
  BOOST_TEST((!near.ec && !far.ec));
  complete(R"({"text":"b","number":2})");
  pass(1s);
  for (auto const* const w : {&near, &far}) {
    BOOST_TEST_REQUIRE((w->ec == weir::error_code{} && w->job));
    BOOST_TEST((w->job->state == weir::job_state::completed));
    auto const typed = weir::result_as<note>(*w->job);
    BOOST_TEST_REQUIRE(typed.has_value());
    BOOST_TEST(typed->number == 2);
  }
}

BOOST_AUTO_TEST_CASE(it_is_looked_at_soon_and_then_less_and_less_often) {
  auto const id = enqueue("note", one);
  waiter w;
  wait(slow, id, w);
  auto const looks = [&] { return slow.of<weir::command::find_job>().asked; };
  pass(100ms);
  BOOST_TEST(looks() >= 4U);
  pass(100s);
  BOOST_TEST((looks() >= 90U && looks() <= 110U));
  BOOST_TEST(slow.of<weir::command::find_job>().most == 1U);
}

BOOST_AUTO_TEST_CASE(a_poll_of_ones_own_is_kept) {
  auto const id = enqueue("note", one);
  waiter w;
  wait(slow, id, w, {.poll = 1ms});
  pass(1s);
  auto const looks = slow.of<weir::command::find_job>().asked;
  BOOST_TEST((looks >= 150U && looks <= 210U));  // each takes 4 ms
}

BOOST_AUTO_TEST_CASE(every_end_is_an_end) {
  for (auto const how : {weir::job_state::dead, weir::job_state::cancelled}) {
    auto const id = enqueue("note", one);
    waiter w;
    wait(store, id, w);
    if (how == weir::job_state::dead) {
      auto const j = claim();
      ask(weir::command::bury_job{"default", j.id, j.fence, "hopeless"});
    } else {
      ask(weir::command::cancel_job{"default", id});
    }
    pass(1s);
    BOOST_TEST_REQUIRE((w.ec == weir::error_code{} && w.job));
    BOOST_TEST((w.job->state == how));
    BOOST_TEST(w.job->reason == (how == weir::job_state::dead ? "hopeless" : ""));
  }
}

BOOST_AUTO_TEST_CASE(where_there_is_no_record_there_is_no_job) {
  waiter w;
  wait(store, ids.job(), w);
  BOOST_TEST((w.ec == weir::error_code{} && !w.job));
}

BOOST_AUTO_TEST_CASE(it_goes_on_while_the_store_is_away) {
  weir::testing::fault_injector faults;
  weir::testing::faulty_store const away{store, faults, clock};
  for (int i = 0; i != 5; ++i) {
    faults.next_of<weir::command::find_job>(weir::testing::fault::fail_before);
  }
  auto const id = enqueue("note", one);
  complete("");
  waiter w;
  wait(away, id, w);
  BOOST_TEST(!w.ec);
  pass(1s);
  BOOST_TEST((w.ec == weir::error_code{} && w.job));
}

BOOST_AUTO_TEST_CASE(a_wait_can_be_given_up) {
  auto const id = enqueue("note", one);
  waiter w;
  wait(store, id, w);
  pass(2s);
  given_up.emit(asio::cancellation_type::terminal);
  settle();
  BOOST_TEST((w.ec == asio::error::operation_aborted));
  BOOST_TEST(!clock.next_deadline().has_value());
}

BOOST_AUTO_TEST_CASE(bad_input_is_told) {
  for (auto const poll : {weir::duration{0}, weir::duration{-1}, 2 * weir::limits::span}) {
    waiter w;
    wait(store, ids.job(), w, {.poll = poll});
    BOOST_TEST((w.ec == weir::errc::invalid_wait));
  }
  weir::job_queue const queue{store, ids, clock};
  std::optional<weir::error_code> told;
  queue.async_wait("", ids.job(), {},
                   [&](weir::error_code ec, std::optional<weir::job>) { told = ec; });
  settle();
  BOOST_TEST((told == weir::errc::invalid_queue));
}

BOOST_AUTO_TEST_CASE(a_result_of_another_type_says_why) {
  weir::job done;
  done.result = "no JSON";
  BOOST_TEST(weir::result_as<std::string>(done).value() == "no JSON");
  auto const refused = weir::result_as<note>(done);
  BOOST_TEST_REQUIRE(refused.has_error());
  BOOST_TEST((refused.error() == weir::errc::undecodable_payload));
  BOOST_TEST(refused.error().message().find("parse") != std::string::npos);
}

// Texts of error codes are kept for as long as the process lives, and there is room for so many.
BOOST_AUTO_TEST_CASE(F86_results_that_cannot_be_read_take_no_other_error_its_cause) {
  weir::job done;
  for (int i = 0; i != 1100; ++i) {
    done.result = "x" + std::to_string(i);
    BOOST_TEST(weir::result_as<note>(done).has_error());
    done.result = '"' + std::to_string(i) + '\xff';
    BOOST_TEST(weir::result_as<note>(done).has_error());
  }
  auto const other = weir::detail::explained(weir::errc::store_unavailable, "a cause of its own");
  BOOST_TEST(other.message().find("a cause of its own") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
