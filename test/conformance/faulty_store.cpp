// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/testing/faulty_store.hpp"

#include "conformance/memory_driver.hpp"
#include "conformance/suite.hpp"
#include "weir/clock/manual.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/ask.hpp"
#include "weir/testing/faults.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace weir;
using namespace weir::testing;

using memory = basic_memory_store<manual_clock>;
using faulty = faulty_store<memory, manual_clock>;

static_assert(permit_store<faulty> && lock_store<faulty> && bucket_store<faulty>);
static_assert(executes<faulty, command::await_permit> &&
              executes<faulty, command::at<command::acquire_lock>>);
static_assert(!executes_now<faulty, command::acquire_lock>);

struct bed {
  boost::asio::io_context io;
  manual_clock clock;
  fault_injector faults;
  memory store{io.get_executor(), {}, clock};
  faulty on_the_way{store, faults, clock};
  boost::asio::cancellation_signal cancel;

  bed() = default;
  explicit bed(fault_injector f) : faults{std::move(f)} {}

  struct answer {
    std::optional<error_code> ec;
    lock_grant grant;
  };

  /// Starts taking the lock; the answer is there once it came.
  std::shared_ptr<answer> take() {
    auto out = std::make_shared<answer>();
    command::acquire_lock const c{"key", "holder", 1h};
    auto handler = [out](error_code ec, lock_grant grant) {
      out->ec = ec;
      out->grant = std::move(grant);
    };
    on_the_way.async_execute(
        c, boost::asio::bind_cancellation_slot(
               cancel.slot(), boost::asio::bind_executor(io.get_executor(), handler)));
    BOOST_TEST(!out->ec.has_value());
    return out;
  }
  void run() {
    io.restart();
    io.poll();
  }
  bool held() { return store.execute(command::inspect_lock{"key"})->held; }
};

BOOST_AUTO_TEST_SUITE(a_faulty_store)

BOOST_FIXTURE_TEST_CASE(does_what_the_store_does_if_nothing_is_scripted, bed) {
  auto const a = take();
  run();
  BOOST_TEST((a->ec == error_code{}));
  BOOST_TEST(a->grant.granted);
  BOOST_TEST(faults.count(fault::none) == 1U);
}

BOOST_FIXTURE_TEST_CASE(delays_a_command, bed) {
  faults.next(fault::delay, 3s);
  auto const a = take();
  run();
  BOOST_TEST(!held());
  clock.advance(3s);
  run();
  BOOST_TEST(held());
  BOOST_TEST(a->grant.granted);
  BOOST_TEST(a->grant.expires_in == 1h);
}

BOOST_FIXTURE_TEST_CASE(delays_an_answer, bed) {
  faults.next(fault::late_answer, 3s);
  auto const a = take();
  run();
  BOOST_TEST(held());
  BOOST_TEST(!a->ec.has_value());
  clock.advance(3s);
  run();
  BOOST_TEST(a->grant.granted);
}

BOOST_FIXTURE_TEST_CASE(fails_before, bed) {
  faults.next(fault::fail_before);
  auto const a = take();
  run();
  BOOST_TEST((a->ec == errc::store_unavailable));
  BOOST_TEST(!held());
}

BOOST_FIXTURE_TEST_CASE(F45_applies_and_then_fails, bed) {
  faults.next(fault::fail_after);
  auto const a = take();
  run();
  BOOST_TEST((a->ec == errc::outcome_unknown));
  BOOST_TEST(!a->grant.granted);
  BOOST_TEST(held());
}

BOOST_FIXTURE_TEST_CASE(never_hides_bad_input, bed) {
  faults.next(fault::fail_after);
  auto const got = ask(io, on_the_way, command::acquire_lock{"", "holder", 1h});
  BOOST_TEST((got.error() == errc::invalid_key));
}

BOOST_FIXTURE_TEST_CASE(duplicates_what_is_repeatable_only, bed) {
  quota const q[] = {quota::per(1, 1h).burst(10)};
  faults.next(fault::duplicate);
  BOOST_TEST(ask(io, on_the_way, command::take{"bucket", q, 1, {}})->remaining == 9U);
  BOOST_TEST(faults.count(fault::duplicate) == 0U);
  ask(io, on_the_way, command::acquire_lock{"key", "holder", 1h}).value();
  faults.next(fault::duplicate);
  BOOST_TEST(ask(io, on_the_way, command::release_lock{"key", "holder", 0})->freed);  // the first
                                                                                      // answer
  BOOST_TEST(faults.count(fault::duplicate) == 1U);
  BOOST_TEST(!held());
}

BOOST_FIXTURE_TEST_CASE(scripts_commands_by_type_and_number, bed) {
  faults.next_of<command::renew_lock>(fault::fail_before, {}, 1);
  auto const grant = ask(io, on_the_way, command::acquire_lock{"key", "holder", 1h}).value();
  command::renew_lock const renew{"key", "holder", grant.fence, 1h};
  BOOST_TEST(ask(io, on_the_way, renew).has_value());
  BOOST_TEST((ask(io, on_the_way, renew).error() == errc::store_unavailable));
  BOOST_TEST(ask(io, on_the_way, renew).has_value());
}

BOOST_FIXTURE_TEST_CASE(hangs_until_it_is_cancelled, bed) {
  for (auto const f : {fault::never, fault::silence}) {
    faults.next(f);
    auto const a = take();
    run();
    clock.advance(30min);
    run();
    BOOST_TEST(!a->ec.has_value());
    BOOST_TEST(held() == (f == fault::silence));
    cancel.emit(boost::asio::cancellation_type::terminal);
    run();
    BOOST_TEST((a->ec == boost::asio::error::operation_aborted));
  }
}

BOOST_FIXTURE_TEST_CASE(cancels_a_delay_before_the_command_is_executed, bed) {
  faults.next(fault::delay, 3s);
  auto const a = take();
  run();
  cancel.emit(boost::asio::cancellation_type::total);
  run();
  BOOST_TEST((a->ec == boost::asio::error::operation_aborted));
  clock.advance(1h);
  run();
  BOOST_TEST(!held());
}

BOOST_FIXTURE_TEST_CASE(R7_is_cancelled_before_the_other_store_has_answered, bed) {
  for (auto const f : {fault::late_answer, fault::silence}) {
    faults.next(f, 3s);
    auto const a = take();
    cancel.emit(boost::asio::cancellation_type::total);
    run();
    BOOST_TEST((a->ec == boost::asio::error::operation_aborted));
    BOOST_TEST(held());
  }
}

BOOST_FIXTURE_TEST_CASE(R7_is_cancelled_when_its_delay_has_just_ended, bed) {
  faults.next(fault::delay, 3s);
  auto const a = take();
  clock.advance(3s);
  cancel.emit(boost::asio::cancellation_type::total);
  run();
  BOOST_TEST((a->ec == boost::asio::error::operation_aborted));
  BOOST_TEST(!held());
}

BOOST_AUTO_TEST_CASE(R7_dies_with_its_context) {
  for (auto const f : {fault::none, fault::delay, fault::late_answer, fault::fail_before,
                       fault::fail_after, fault::duplicate, fault::never, fault::silence}) {
    auto b = std::make_unique<bed>();
    b->faults.next(f, 3s);
    auto const before = b->take();
    auto const kept = b->faults;  // outlives the context
    b.reset();
    b = std::make_unique<bed>();
    b->faults.next(f, 3s);
    b->take();
    b->run();
  }
}

BOOST_AUTO_TEST_CASE(does_the_same_for_the_same_seed) {
  fault_rates const rates{.delay = 100,
                          .late_answer = 50,
                          .fail_before = 100,
                          .fail_after = 100,
                          .duplicate = 100,
                          .never = 0,
                          .silence = 0,
                          .longest_delay = 10s};
  auto const fates = [&](std::uint64_t seed) {
    bed b{fault_injector{seed, rates}};
    std::vector<int> out;
    for (int i = 0; i < 300; ++i) {
      auto const a = b.take();
      b.run();
      b.clock.advance(10s);
      b.run();
      BOOST_REQUIRE(a->ec.has_value());
      out.push_back(a->ec->value());
    }
    for (auto const f : {fault::none, fault::delay, fault::late_answer, fault::fail_before,
                         fault::fail_after, fault::duplicate}) {
      BOOST_TEST(b.faults.count(f) > 0U);
      out.push_back(static_cast<int>(b.faults.count(f)));
    }
    BOOST_TEST(b.faults.count(fault::never) == 0U);
    return out;
  };
  BOOST_TEST((fates(1) == fates(1)));
  BOOST_TEST((fates(1) != fates(2)));
}

BOOST_AUTO_TEST_CASE(heals) {
  bed b{fault_injector{1, fault_rates{.fail_before = 1000}}};
  BOOST_TEST(
      (ask(b.io, b.on_the_way, command::inspect_lock{"key"}).error() == errc::store_unavailable));
  b.faults.heal();
  BOOST_TEST(ask(b.io, b.on_the_way, command::inspect_lock{"key"}).has_value());
}

/// Makes memory stores whose commands meet with faults.
struct faulty_driver {
  fault_rates rates;
  manual_clock clock{};
  std::uint64_t seed = 0;

  auto make(boost::asio::any_io_executor const& ex) {
    return faulty{memory{ex, {}, clock}, fault_injector{++seed, rates}, clock};
  }
  void advance(duration d) { clock.advance(d); }
};

BOOST_AUTO_TEST_CASE(keeps_every_promise_without_faults) {
  faulty_driver driver{.rates = {}};
  report found;
  settings s;
  s.histories = 10;
  suite::of<lock_commands>(driver, found, s);
  require_all(found, {told_only, not_known, no_way_back, no_bound});
}

BOOST_AUTO_TEST_CASE(histories_with_unknown_outcomes_have_a_legal_order) {
  faulty_driver driver{.rates = {.fail_before = 100, .fail_after = 150}};
  report found;
  settings s;
  s.operations = 30;
  s.clients = 5;
  s.concurrent = 8;
  suite::concurrency(factory<lock_commands>{driver}, found, s);
  require_all(found);
}

/// A memory store that throws once it was asked for so many commands.
struct throwing_store {
  using executor_type = boost::asio::any_io_executor;

  memory store;
  std::shared_ptr<std::atomic<int>> left;

  executor_type get_executor() const noexcept { return store.get_executor(); }

  template <class C, class Token>
    requires executes<memory, C>
  auto async_execute(C const& c, Token&& token) const {
    if (--*left < 0) throw std::out_of_range{"a defect of the store"};
    return store.async_execute(c, std::forward<Token>(token));
  }
};
struct throwing_driver {
  manual_clock clock{};

  throwing_store make(boost::asio::any_io_executor const& ex) {
    return {memory{ex, {}, clock}, std::make_shared<std::atomic<int>>(40)};
  }
  void advance(duration d) { clock.advance(d); }
};

BOOST_AUTO_TEST_CASE(a_store_that_throws_among_several_clients_is_found_out) {
  throwing_driver driver;
  report found;
  suite::concurrency(factory<lock_commands>{driver}, found, {});
  BOOST_REQUIRE(found.findings().size() == 1U);
  BOOST_TEST((found.findings()[0].outcome == verdict::failed));
  BOOST_TEST(found.findings()[0].detail == "a defect of the store");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
