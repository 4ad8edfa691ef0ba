// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// R8: the input of every command on jobs is checked before anything is done.

#include "validate_checks.hpp"
#include "weir/command/jobs.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

using namespace std::chrono_literals;
using namespace weir::test;
namespace command = weir::command;
namespace limits = weir::limits;
using weir::errc;
using weir::new_job;
using weir::unique_strategy;

namespace {

weir::job_id some_id() {
  weir::job_id id{};
  id.data[0] = 1;
  return id;
}

new_job good_job() {
  new_job j{};
  j.id = some_id();
  j.kind = "k";
  return j;
}

/// The job is asked about alone, and as the last of a batch.
void expect_job(new_job const& j, weir::error_code const& expected) {
  BOOST_TEST((weir::rule::validate(j) == expected), weir::rule::validate(j).message());
  std::vector<new_job> const batch{good_job(), j};
  command::enqueue_jobs const c{.queue = "q", .jobs = batch};
  BOOST_TEST((weir::rule::validate(c) == expected), weir::rule::validate(c).message());
}

template <class C>
C on_queue() {
  C c{};
  c.queue = "q";
  return c;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(R8_validate_jobs)

BOOST_AUTO_TEST_CASE(commands_of_which_only_the_queue_is_checked) {
  auto const all =
      std::tuple<command::start_job, command::return_job, command::bury_job, command::cancel_job,
                 command::find_job, command::min_vesting_time, command::update_queue_pointer,
                 command::pause_queue, command::resume_queue, command::read_queue_stats,
                 command::purge_job>{};
  std::apply(
      [](auto... c) {
        static_assert((weir::command_type<decltype(c)> && ...));
        (check_queue(on_queue<decltype(c)>()), ...);
      },
      all);
}

BOOST_AUTO_TEST_CASE(commands_that_check_nothing) { expect_good(command::await_jobs{}); }

BOOST_AUTO_TEST_CASE(enqueue_jobs) {
  std::vector<new_job> jobs{good_job()};
  command::enqueue_jobs c{.queue = "q", .jobs = jobs};
  check_queue(c);
  jobs.assign(limits::batch, good_job());
  c.jobs = jobs;
  expect_good(c);
  jobs.push_back(good_job());
  c.jobs = jobs;
  expect_bad(c, errc::invalid_batch);
  c.jobs = {};
  expect_bad(c, errc::invalid_batch);
}

BOOST_AUTO_TEST_CASE(new_job_fields) {
  new_job const good = good_job();
  expect_job(good, {});
  auto j = good;
  j.id = {};
  expect_job(j, errc::invalid_option);

  check_text(good, &new_job::kind, errc::invalid_kind, limits::key_size);

  std::string const large(limits::payload_size + 1, 'x');
  check_field<new_job, std::string_view>(good, &new_job::payload, errc::payload_too_large,
                                         {"", "{}", std::string_view{large}.substr(1)},
                                         {std::string_view{large}});
  check_wait(good, &new_job::delay);
  check_wait(good, &new_job::deadline);
  check_wait(good, &new_job::retention);
  check_field<new_job, std::uint32_t>(good, &new_job::max_attempts, errc::invalid_attempts,
                                      {1, limits::attempts}, {0, limits::attempts + 1, UINT32_MAX});
  check_field<new_job, std::uint8_t>(good, &new_job::priority, errc::invalid_option, {0, 255}, {});
}

BOOST_AUTO_TEST_CASE(F18_one_bad_job_is_found_wherever_it_stands) {
  for (std::size_t const bad : {0U, 1U, 2U}) {
    std::vector<new_job> jobs(3, good_job());
    jobs[bad].max_attempts = 0;
    expect_bad(command::enqueue_jobs{.queue = "q", .jobs = jobs}, errc::invalid_attempts);
  }
}

BOOST_AUTO_TEST_CASE(a_unique_key_and_its_strategy_belong_together) {
  auto j = good_job();
  j.unique_key = "u";
  expect_job(j, errc::invalid_unique_key);  // a key without strategy
  for (auto const strategy :
       {unique_strategy::until_executed, unique_strategy::until_executing,
        unique_strategy::while_executing, unique_strategy::until_and_while_executing}) {
    j = good_job();
    j.strategy = strategy;
    expect_job(j, errc::invalid_unique_key);  // a strategy without key
    std::string const longest(limits::key_size, 'u');
    j.unique_key = longest;
    expect_job(j, {});
    j.unique_ttl = 1s;  // this strategy has none
    expect_job(j, errc::invalid_ttl);
    j.unique_ttl = 0s;
    std::string const too_long(limits::key_size + 1, 'u');
    j.unique_key = too_long;
    expect_job(j, errc::invalid_unique_key);
  }
}

BOOST_AUTO_TEST_CASE(only_until_expired_has_a_time) {
  auto j = good_job();
  j.unique_ttl = 1s;
  expect_job(j, errc::invalid_ttl);
  j.strategy = unique_strategy::until_expired;
  j.unique_key = "u";
  expect_job(j, {});
  check_ttl(j, &new_job::unique_ttl);
}

BOOST_AUTO_TEST_CASE(peek_jobs) {
  auto const good = on_queue<command::peek_jobs>();
  check_queue(good);
  check_batch(good);
}

BOOST_AUTO_TEST_CASE(dequeue_jobs) {
  using c = command::dequeue_jobs;
  c const good{.queue = "q", .holder = "h", .sequence = 0, .limit = 10, .lease = 1s};
  check_queue(good);
  check_holder(good);
  check_batch(good);
  check_ttl(good, &c::lease);
}

BOOST_AUTO_TEST_CASE(obtain_and_extend_lease) {
  command::obtain_lease const obtain{.queue = "q", .id = some_id(), .holder = "h", .lease = 1s};
  check_queue(obtain);
  check_holder(obtain);
  check_ttl(obtain, &command::obtain_lease::lease);
  command::extend_lease const extend{.queue = "q", .id = some_id(), .fence = 1, .lease = 1s};
  check_queue(extend);
  check_ttl(extend, &command::extend_lease::lease);
}

BOOST_AUTO_TEST_CASE(complete_jobs) {
  std::string const large(limits::payload_size + 1, 'x');
  weir::finished_job done{.id = some_id(), .fence = 1, .result = {}};
  std::vector<weir::finished_job> jobs{done};
  command::complete_jobs c{.queue = "q", .jobs = jobs};
  check_queue(c);
  c.jobs = {};
  expect_bad(c, errc::invalid_batch);
  jobs.assign(limits::batch, done);
  c.jobs = jobs;
  expect_good(c);
  jobs.back().result = std::string_view{large}.substr(1);
  expect_good(c);
  jobs.back().result = large;
  expect_bad(c, errc::payload_too_large);
  jobs.assign(limits::batch + 1, done);
  c.jobs = jobs;
  expect_bad(c, errc::invalid_batch);
}

BOOST_AUTO_TEST_CASE(requeue_and_snooze_job) {
  std::string const large(limits::reason_size * 2, 'x');
  auto requeue = on_queue<command::requeue_job>();
  requeue.reason = large;  // it is cut, and no reason to lose a job
  check_queue(requeue);
  check_wait(requeue, &command::requeue_job::delay);

  auto const snooze = on_queue<command::snooze_job>();
  check_queue(snooze);
  check_wait(snooze, &command::snooze_job::delay);
  check_field<command::snooze_job, std::string_view>(
      snooze, &command::snooze_job::memo, errc::payload_too_large,
      {"", std::string_view{large}.substr(0, limits::memo_size)},
      {std::string_view{large}.substr(0, limits::memo_size + 1)});

  auto bury = on_queue<command::bury_job>();
  bury.reason = large;
  expect_good(bury);
}

BOOST_AUTO_TEST_CASE(scans_and_listings) {
  check_batch(command::scan_visible_queues{});
  check_batch(command::list_queues{});
  check_batch(command::gc_stale_pointers{});
  check_wait(command::gc_stale_pointers{}, &command::gc_stale_pointers::grace);
  auto const dead = on_queue<command::list_dead_letters>();
  check_queue(dead);
  check_batch(dead);
  auto const list = on_queue<command::list_jobs>();
  check_queue(list);
  check_batch(list);
}

BOOST_AUTO_TEST_CASE(relays) {
  auto const job = good_job();
  std::span const one{&job, 1};
  command::relay_job const good{.queue = "q", .id = some_id(), .next = one, .to = "r", .jobs = one};
  expect_good(good);
  check_queue(good);
  auto const expect = [&](auto change, weir::error_code const& expected) {
    auto c = good;
    change(c);
    auto const ec = weir::rule::validate(c);
    BOOST_TEST((ec == expected), ec.message());
  };
  std::string const large(limits::payload_size + 1, 'x');
  expect([&](auto& c) { c.expected = std::string_view{large}.substr(1); }, {});
  expect([&](auto& c) { c.expected = large; }, errc::payload_too_large);
  expect([&](auto& c) { c.stored = std::string_view{large}.substr(1); }, {});
  expect([&](auto& c) { c.stored = large; }, errc::payload_too_large);
  expect([&](auto& c) { c.fence = 1; }, {});
  expect(
      [&](auto& c) {
        c.fence = 1;
        c.expected = "payload";
      },
      errc::invalid_option);
  expect([&](auto& c) { c.to = "q"; }, errc::invalid_queue);
  expect([&](auto& c) { c.to = {}; }, errc::invalid_queue);
  expect([&](auto& c) { c.jobs = {}; }, errc::invalid_queue);
  expect(
      [&](auto& c) {
        c.next = c.jobs = {};
        c.to = {};
      },
      {});
  std::vector<new_job> const many(limits::batch, job);
  expect([&](auto& c) { c.next = many; }, errc::invalid_batch);
  expect(
      [&](auto& c) {
        c.next = many;
        c.jobs = {};
        c.to = {};
      },
      {});
  std::vector<new_job> heavy(limits::batch_bytes / limits::payload_size / 2 + 1, job);
  for (auto& j : heavy) j.payload = std::string_view{large}.substr(1);
  expect([&](auto& c) { c.next = heavy; }, {});
  expect([&](auto& c) { c.next = c.jobs = heavy; }, errc::invalid_batch);
  auto nameless = job;
  nameless.kind = {};
  expect([&](auto& c) { c.next = {&nameless, 1}; }, errc::invalid_kind);
  expect([&](auto& c) { c.jobs = {&nameless, 1}; }, errc::invalid_kind);
}

BOOST_AUTO_TEST_CASE(whole_queues) {
  command::obtain_queue_lease const obtain{.queue = "q", .holder = "h", .lease = 1s};
  check_queue(obtain);
  check_holder(obtain);
  check_ttl(obtain, &command::obtain_queue_lease::lease);
  command::release_queue_lease const release{.queue = "q", .holder = "h"};
  check_queue(release);
  check_holder(release);
  auto const snooze = on_queue<command::snooze_queue>();
  check_queue(snooze);
  check_wait(snooze, &command::snooze_queue::delay);
}

BOOST_AUTO_TEST_CASE(replay_dead_letter) {
  auto const good = on_queue<command::replay_dead_letter>();
  check_queue(good);
  check_wait(good, &command::replay_dead_letter::delay);
}

BOOST_AUTO_TEST_SUITE_END()
