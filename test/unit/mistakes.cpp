// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F85, F86: what primitives and a worker say of mistakes.

#include "integration/mistakes.hpp"

#include "weir.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <regex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace mistakes_test {

struct letter {
  int n = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(letter, n)

struct parcel {
  int n = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(parcel, n)

}  // namespace mistakes_test

namespace {

using namespace std::chrono_literals;
using namespace weir;
using mistakes_test::letter;
using mistakes_test::parcel;
using weir_test::compare_row;
using weir_test::heard_log;
using weir_test::told;

}  // namespace

template <>
struct weir::job_traits<mistakes_test::letter> {
  static constexpr std::string_view kind = "letter";
  static constexpr std::uint32_t max_attempts = 1;
};
template <>
struct weir::job_traits<mistakes_test::parcel> {
  static constexpr std::string_view kind = "parcel";
};

namespace {

struct fixture {
  boost::asio::io_context io{};
  memory_store store{io.get_executor()};
  heard_log heard{};

  template <class Start>
  [[nodiscard]] error_code end(Start start) {
    std::optional<error_code> out;
    start([&](error_code ec, auto const&...) { out = ec; });
    BOOST_TEST_REQUIRE(weir_test::happens(io, [&] { return out.has_value(); }));
    return *out;
  }
  template <class Condition>
  void run_until(worker<memory_store>& busy, Condition so) {
    std::optional<error_code> ended;
    busy.async_run([&](error_code ec) { ended = ec; });
    BOOST_TEST_REQUIRE(weir_test::happens(io, so));
    busy.stop();
    BOOST_TEST_REQUIRE(weir_test::happens(io, [&] { return ended.has_value(); }));
  }
  template <class Job>
  void enqueue(Job const& job) {
    BOOST_TEST_REQUIRE(!end([&](auto h) {
      job_queue{store}.async_enqueue(job, {}, [h](error_code ec, enqueued_job const&) { h(ec); });
    }));
  }
  /// Without the ids of jobs, and numbers of milliseconds.
  [[nodiscard]] std::string first() const {
    auto const no_ids = std::regex_replace(
        heard.first(), std::regex{"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"}, "ID");
    return std::regex_replace(no_ids, std::regex{"[0-9]+ ms late"}, "N ms late");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(mistakes, fixture)

BOOST_AUTO_TEST_CASE(F86_an_option_that_is_wrong_is_named) {
  auto const acquire = [&](limiter_options o, std::string key = "key", duration wait = {}) {
    return told(end([&](auto h) {
      limiter{store, o}.async_acquire(key, {.wait = wait},
                                      [h](error_code ec, permit const&) { h(ec); });
    }));
  };
  compare_row("limiter.limit", acquire({.limit = 0}));
  compare_row("limiter.ttl", acquire({.ttl = 0s}));
  compare_row("limiter.poll", acquire({.poll = 48h}));
  compare_row("limiter.key", acquire({}, ""));
  compare_row("limiter.wait", acquire({}, "key", -1s));
  compare_row("uniqueness.on_conflict", told(end([&](auto h) {
                uniqueness{store, {.on_conflict = conflict_policy::replace}}.async_try_lock(
                    "key", [h](error_code ec, auto const&) { h(ec); });
              })));
  rate_limiter const nothing{store, quota{}};
  compare_row("rate.quota", told(nothing.try_take("key").error()));
  rate_limiter const few{store, quota::per_second(5)};
  compare_row("rate.cost", told(few.try_take("key", 6).error()));
  compare_row("rate.no_cost", told(few.try_take("key", 0).error()));
  std::vector<job_id> const ids(2);
  letter const any{};
  compare_row("queue.ids", told(end([&](auto h) {
                job_queue{store}.async_enqueue(any, {.ids = ids},
                                               [h](error_code ec, enqueued_job const&) { h(ec); });
              })));
  compare_row("queue.batch", told(end([&](auto h) {
                std::span<letter const> const none;
                job_queue{store}.async_enqueue_many(
                    none, {}, [h](error_code ec, std::vector<enqueued_job> const&) { h(ec); });
              })));
}

BOOST_AUTO_TEST_CASE(F85_a_worker_that_cannot_start_says_so) {
  worker idle{store, {.concurrency = 0}};
  BOOST_TEST((end([&](auto h) { idle.async_run(h); }) == errc::invalid_option));
  compare_row("worker.option", first());
}

BOOST_AUTO_TEST_CASE(F85_a_dead_letter_is_told) {
  worker busy{store};
  busy.handle([](letter const&) { throw std::runtime_error{"no such address"}; });
  enqueue(letter{});
  run_until(busy, [&] { return !heard.first().empty(); });
  compare_row("worker.dead_letter", first());
}

BOOST_AUTO_TEST_CASE(F85_a_kind_without_handler_is_told_once) {
  worker busy{store, {.unknown_kind_delay = 1ms}};
  busy.handle<letter>([](letter const&) {});
  std::uint32_t put_off = 0;
  busy.on_event([&](worker_event const& e) { put_off += e.kind == worker_event_kind::retried; });
  enqueue(parcel{});
  run_until(busy, [&] { return put_off == 3; });
  compare_row("worker.unknown_kind", first());
  BOOST_TEST(heard.count("no handler") == 1U, heard.all());
}

BOOST_AUTO_TEST_CASE(F85_an_observer_that_throws_is_told) {
  worker busy{store};
  busy.handle([](letter const&) {});
  busy.on_event([](worker_event const&) { throw std::runtime_error{"no room"}; });
  enqueue(letter{});
  run_until(busy, [&] { return !heard.first().empty(); });
  compare_row("worker.observer", first());
}

BOOST_AUTO_TEST_CASE(F85_a_handler_that_blocks_the_thread_is_told) {
  worker busy{store, {.lease = 3s}};
  busy.handle([](letter const&) { std::this_thread::sleep_for(1600ms); });
  enqueue(letter{});
  run_until(busy, [&] { return !heard.first().empty(); });
  compare_row("worker.blocked", first());
}

BOOST_AUTO_TEST_CASE(F85_a_sink_hears_what_is_told_in_place_of_standard_error) {
  worker idle{store, {.concurrency = 0}};
  log::set_level(log::level::error);
  for (int i = 0; i != 25; ++i) (void)end([&](auto h) { idle.async_run(h); });
  BOOST_TEST(heard.of(log::topic::worker).size() == 10U);  // in ten seconds
  log::set_sink({});
  (void)end([&](auto h) { idle.async_run(h); });
  BOOST_TEST(heard.of(log::topic::worker).size() == 10U);
  log::set_level(log::level::warning);
}

BOOST_AUTO_TEST_CASE(F98_what_is_told_is_one_printable_line) {
  worker busy{store};
  busy.handle([](letter const&) { throw std::runtime_error{"a\n\x1b[2Jb\xff"}; });
  enqueue(letter{});
  run_until(busy, [&] { return !heard.first().empty(); });
  BOOST_TEST(heard.first().ends_with("a \\x1B[2Jb\\xFF"), heard.first());
}

BOOST_AUTO_TEST_CASE(each_outcome_has_its_name) {
  BOOST_TEST(to_string(enqueue_outcome::rescheduled) == "rescheduled");
  BOOST_TEST(to_string(complete_outcome::lease_lost) == "lease_lost");
  BOOST_TEST(to_string(start_outcome::blocked) == "blocked");
  BOOST_TEST(to_string(requeue_outcome::dead_lettered) == "dead_lettered");
  BOOST_TEST(to_string(cancel_outcome::not_found) == "not_found");
  BOOST_TEST(to_string(replay_outcome::conflict) == "conflict");
  BOOST_TEST(to_string(unique_strategy::until_and_while_executing) == "until_and_while_executing");
  BOOST_TEST(to_string(conflict_policy::reschedule) == "reschedule");
  BOOST_TEST(to_string(limit_scope::queue) == "queue");
}

BOOST_AUTO_TEST_SUITE_END()
