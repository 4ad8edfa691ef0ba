// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Something ends, or is to begin, and there is no memory to say so.

#include "failing_allocations.hpp"
#include "weir/codec.hpp"
#include "worker_fixture.hpp"

#include <boost/asio/bind_executor.hpp>

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>

namespace test {

/// Of these one at a time runs. It is not JSON, whose library ends a program without memory.
struct alone {
  std::int32_t number = 0;
};

}  // namespace test

template <>
struct weir::job_traits<test::alone> {
  static constexpr std::string_view kind = "alone";
  static constexpr std::uint32_t concurrency = 1;
  static constexpr raw_codec codec{};
};

using namespace test;
using kind = weir::worker_event_kind;
using weir_test::all_fail;
using weir_test::allocations_left;

namespace {

struct short_of_memory_fixture : worker_fixture {
  void start_apart(worker_type& w) {
    w.async_run(
        asio::bind_executor(handlers.get_executor(), [this](weir::error_code ec) { ended = ec; }));
    settle();
  }
  /// Runs the handlers that wait for their thread.
  void run_handlers() {
    handlers.restart();
    handlers.poll();
    allocations_left = -1;
    settle();
  }

  asio::io_context handlers;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(worker_out_of_memory, short_of_memory_fixture)

BOOST_AUTO_TEST_CASE(R4_a_handler_that_ends_without_memory_is_heard_of_with_the_next_renewal) {
  for (int left = 0; left != 3; ++left) {
    BOOST_TEST_CONTEXT("allocations that succeed: " << left) {
      auto w = make_worker({.lease = 30s});
      w.handle<note>([&](note const& n) {
        if (n.number == 0) allocations_left = left;
      });
      auto const id = enqueue("note", R"({"text":"","number":0})");
      start_apart(w);
      run_handlers();
      pass(11s);
      BOOST_TEST((find(id)->state == weir::job_state::completed));
      BOOST_TEST(find(id)->attempts == 1U);
      w.stop();
      settle();
      run_handlers();
      BOOST_TEST(ended.has_value());
      ended.reset();
    }
  }
}

BOOST_AUTO_TEST_CASE(R4_so_is_one_that_ends_so_after_its_lease) {
  auto w = make_worker({.lease = 30s});
  w.handle<note>([&](note const&, weir::job_context& c) {
    ask(weir::command::cancel_job{"default", c.id(), true});
    pass(31s);
    allocations_left = 0;
  });
  enqueue("note", R"({"text":"","number":0})");
  start_apart(w);
  run_handlers();
  w.stop();
  pass(11s);
  run_handlers();
  BOOST_TEST(events[kind::lease_lost] == 1);
  BOOST_TEST(ended.has_value());
}

BOOST_AUTO_TEST_CASE(R4_jobs_are_given_up_without_memory_for_a_reason) {
  auto w = make_worker({.concurrency = 2});
  std::string const too_large(weir::limits::payload_size + 1, 'x');
  w.handle<note>([&](note const&) { return too_large; });
  int dropped = 0;
  int lost = 0;
  w.on_event([&](weir::worker_event const& e) {
    if (e.kind == kind::result_dropped && ++dropped == 4) {
      all_fail = true;
      allocations_left = 0;
    }
    if (e.kind == kind::lease_lost) {
      ++lost;
      allocations_left = -1;
    }
  });
  auto run_two = [&] {
    for (int i = 0; i != 2; ++i) enqueue("note", R"({"text":"","number":0})");
    settle();
    run_handlers();
  };
  start_apart(w);
  run_two();  // there is room for two from now on
  bool escaped = false;
  try {
    run_two();
  } catch (std::bad_alloc const&) {
    escaped = true;
  }
  all_fail = false;
  allocations_left = -1;
  BOOST_TEST(!escaped);
  BOOST_TEST(lost == 2);
  w.stop();
  pass(1s);
  run_handlers();
  BOOST_TEST(ended.has_value());
}

BOOST_AUTO_TEST_CASE(R7_a_worker_that_is_destroyed_without_memory_drains_all_the_same) {
  auto w = std::make_unique<worker_type>(make_worker());
  start(*w);
  all_fail = true;
  allocations_left = 0;
  w.reset();
  all_fail = false;
  allocations_left = -1;
  pass(1s);
  BOOST_TEST(ended.has_value());
}

BOOST_AUTO_TEST_CASE(F73_an_allocation_that_fails_leaves_no_line_dead_and_no_hand_lost) {
  bool failed = true;
  for (int left = 0; failed; ++left) {
    BOOST_TEST_CONTEXT("allocations that succeed: " << left) {
      worker_fixture f;
      auto w = f.make_worker({.concurrency = 1, .lease = 3s});
      int runs = 0;
      int others = 0;
      w.handle<alone>([&](alone const&) { ++runs; });
      w.handle<note>([&](note const&) { ++others; });
      auto const other = f.ask(weir::command::acquire_permit{
          .key = "alone", .holder = "other", .limit = 1, .ttl = 1h, .patience = {}});
      for (int i = 0; i != 3; ++i) f.enqueue(alone{});
      f.start(w);
      f.pass(100ms);
      allocations_left = left;
      try {
        f.ask(weir::command::release_permit{"alone", "other", other.fence});
        f.pass(500ms);
      } catch (std::bad_alloc const&) {  // of what runs the context
      }
      failed = allocations_left < 0;
      allocations_left = -1;
      f.pass(10s);
      f.enqueue("note", R"({"text":"","number":0})");
      f.pass(1min);
      if (f.ended) continue;  // it could not go on itself, and has said so
      BOOST_TEST(runs >= 3);
      BOOST_TEST(others == 1);
      w.stop();
      f.pass(1min);
      BOOST_TEST(f.ended.has_value());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
