// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/memory/permits.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr time_point start{1'000'000s};

struct table : detail::memory_permits {
  table() : detail::memory_permits{memory_options{}} {}
  using detail::memory_permits::lines;

  std::size_t parked(std::string_view key) {
    return lines().visit(key, start, [](detail::awaited_line* line, auto&) {
      return line == nullptr ? std::size_t{0} : line->parked_count();
    });
  }
};

struct bed {
  asio::io_context io;
  std::shared_ptr<table> permits = std::make_shared<table>();
  time_point now = start;
  std::vector<std::string> told;     // who was told to ask again, in that order
  std::vector<std::string> aborted;  // whose wait ended otherwise

  permit_grant acquire(std::string_view holder, std::uint32_t limit, duration patience = 1h,
                       duration ttl = 1h) {
    return permits->apply(command::acquire_permit{"k", holder, limit, ttl, patience}, now).value();
  }
  void release(std::string_view holder) {
    permits->apply(command::release_permit{"k", holder, 0}, now).value();
  }
  void await(std::string const& holder, asio::cancellation_slot slot = {}) {
    permits->await(
        command::await_permit{"k", holder}, now,
        asio::bind_cancellation_slot(
            slot, [this, holder](error_code ec, hint) { (ec ? aborted : told).push_back(holder); }),
        io.get_executor());
  }
  // Refused with a ticket, and waiting for its turn.
  void line_up(std::string const& holder, std::uint32_t limit, duration patience = 1h) {
    BOOST_TEST(!acquire(holder, limit, patience).granted);
    await(holder);
  }
  void poll() {
    io.restart();
    io.poll();
  }
  std::vector<std::string> told_now() {
    told.clear();
    poll();
    return told;
  }
};

using names = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_permits_waiting)

BOOST_AUTO_TEST_CASE(completes_at_once_but_never_inline_where_there_is_nothing_to_wait_for) {
  bed b;
  b.await("a");  // no such key
  BOOST_TEST(b.told.empty());
  BOOST_TEST((b.told_now() == names{"a"}));
  b.acquire("a", 1);
  b.await("b");  // no ticket
  BOOST_TEST((b.told_now() == names{"b"}));
  b.await("a");  // a permit already
  BOOST_TEST((b.told_now() == names{"a"}));
  b.acquire("b", 1);
  b.release("a");
  b.await("b");  // its turn
  BOOST_TEST((b.told_now() == names{"b"}));
  b.acquire("a", 1, 5s);  // behind b
  b.now += 5s;
  b.await("a");  // its ticket has lapsed
  BOOST_TEST((b.told_now() == names{"a"}));
  BOOST_TEST(b.permits->parked("k") == 0u);
}

BOOST_AUTO_TEST_CASE(R1_freed_permits_are_handed_over_first_come_first_served) {
  bed b;
  b.acquire("a", 2);
  b.acquire("b", 2);
  names const line{"c", "d", "e", "f", "g"};
  for (auto const& h : line) b.line_up(h, 2);
  BOOST_TEST(b.told_now().empty());
  std::string before = "a";
  for (auto const& h : line) {
    b.release(before);
    BOOST_TEST((b.told_now() == names{h}));
    BOOST_TEST(b.acquire(h, 2).granted);
    before = h;
  }
  BOOST_TEST(b.told_now().empty());
}

BOOST_AUTO_TEST_CASE(F10_one_freed_permit_wakes_one_of_a_hundred_and_once) {
  bed b;
  b.acquire("a", 1);
  b.acquire("b", 2);
  for (int i = 0; i < 100; ++i) b.line_up("w" + std::to_string(i), 2);
  b.release("a");
  BOOST_TEST((b.told_now() == names{"w0"}));
  // Until it asks again nobody is told anything, whatever others do.
  BOOST_TEST(!b.acquire("w7", 2).granted);
  b.release("nobody");
  b.permits->apply(command::inspect_permits{"k"}, b.now).value();
  BOOST_TEST(b.told_now().empty());
  b.release("b");
  BOOST_TEST((b.told_now() == names{"w1"}));
  BOOST_TEST(b.permits->parked("k") == 98u);
}

BOOST_AUTO_TEST_CASE(who_is_told_together_is_told_in_order) {
  bed b;
  for (int i = 0; i < 40; ++i) b.acquire("p" + std::to_string(i), 40, 1h, 1min);
  names expected;
  for (int i = 0; i < 50; ++i) {
    b.line_up("w" + std::to_string(i), 40);
    if (i < 40) expected.push_back("w" + std::to_string(i));
  }
  b.now += 1min;  // all forty expire; the next step on the key comes across it
  BOOST_TEST(b.told_now().empty());
  b.release("nobody");
  BOOST_TEST((b.told_now() == expected));
}

BOOST_AUTO_TEST_CASE(whoever_leaves_the_line_lets_the_next_ones_up) {
  bed b;
  b.acquire("a", 1);
  for (auto const* h : {"b", "c", "d", "e"}) b.line_up(h, 1);
  b.release("c");  // in the middle: its own wait is over, nobody else's
  BOOST_TEST((b.told_now() == names{"c"}));
  b.release("a");
  BOOST_TEST((b.told_now() == names{"b"}));
  b.release("b");  // it was told, and goes instead
  BOOST_TEST((b.told_now() == names{"d"}));
  BOOST_TEST(b.acquire("d", 1).granted);
  BOOST_TEST(!b.acquire("e", 1, 0s).granted);  // gives its place up
  BOOST_TEST((b.told_now() == names{"e"}));
  BOOST_TEST(b.permits->parked("k") == 0u);
}

BOOST_AUTO_TEST_CASE(F10_a_lapsed_ticket_lets_the_next_ones_up) {
  bed b;
  b.acquire("a", 1);
  b.line_up("b", 1, 5s);
  b.line_up("c", 1);
  b.release("a");
  BOOST_TEST((b.told_now() == names{"b"}));
  b.now += 5s;  // it does not come
  b.release("nobody");
  BOOST_TEST((b.told_now() == names{"c"}));
}

BOOST_AUTO_TEST_CASE(expiry_is_noticed_by_steps_on_other_keys_too) {
  bed b;
  b.acquire("a", 1, 1h, 1min);
  b.line_up("b", 1);
  b.now += 1min;
  for (int i = 0; i < 2'000; ++i) {
    b.permits->apply(command::inspect_permits{"another"}, b.now).value();
  }
  BOOST_TEST((b.told_now() == names{"b"}));
}

BOOST_AUTO_TEST_CASE(F8_every_waiter_waits_for_its_own_limit) {
  bed b;
  b.acquire("a", 3);
  b.acquire("b", 3);
  b.acquire("c", 3);
  b.line_up("low", 1);
  b.line_up("high", 4);  // 3 permits and 1 ahead
  b.release("a");
  BOOST_TEST((b.told_now() == names{"high"}));
  BOOST_TEST(b.acquire("high", 4).granted);
  b.release("b");
  b.release("c");
  BOOST_TEST(b.told_now().empty());
  b.release("high");
  BOOST_TEST((b.told_now() == names{"low"}));
}

BOOST_AUTO_TEST_CASE(F8_a_waiters_limit_may_be_raised_while_it_waits) {
  bed b;
  for (auto const* h : {"a", "b", "c"}) b.acquire(h, 3);
  b.line_up("d", 1);
  b.line_up("e", 1);
  BOOST_TEST(!b.acquire("e", 4).granted);  // the same ticket
  b.release("a");
  BOOST_TEST((b.told_now() == names{"e"}));
}

BOOST_AUTO_TEST_CASE(two_operations_of_one_holder_both_end) {
  bed b;
  b.acquire("a", 1);
  b.line_up("b", 1);
  b.await("b");
  b.release("a");
  BOOST_TEST((b.told_now() == names{"b", "b"}));
}

BOOST_AUTO_TEST_CASE(R7_cancelled_waits_are_aborted_and_pruned) {
  bed b;
  b.acquire("a", 1);
  for (int i = 0; i < 100; ++i) {  // it polls: each wait ends by a timeout of its own
    BOOST_TEST(!b.acquire("b", 1).granted);
    asio::cancellation_signal signal;
    b.await("b", signal.slot());
    b.poll();
    BOOST_TEST(b.aborted.size() == static_cast<std::size_t>(i));
    signal.emit(asio::cancellation_type::total);
    b.poll();
    BOOST_TEST(b.permits->parked("k") == 1u);
  }
  BOOST_TEST(b.aborted.size() == 100u);
  BOOST_TEST(b.told.empty());
  b.release("b");
  BOOST_TEST(b.permits->parked("k") == 0u);
  BOOST_TEST(b.told_now().empty());
}

BOOST_AUTO_TEST_CASE(R7_a_cancelled_wait_leaves_the_ticket_and_its_turn) {
  bed b;
  b.acquire("a", 1);
  BOOST_TEST(!b.acquire("b", 1).granted);
  asio::cancellation_signal signal;
  b.await("b", signal.slot());
  b.line_up("c", 1);
  signal.emit(asio::cancellation_type::terminal);
  b.release("a");
  BOOST_TEST(b.told_now().empty());  // c would be refused: the permit is b's for now
  BOOST_TEST((b.aborted == names{"b"}));
  b.release("b");
  BOOST_TEST((b.told_now() == names{"c"}));
}

BOOST_AUTO_TEST_CASE(R7_the_context_may_go_before_the_store) {
  auto const permits = std::make_shared<table>();
  auto const alive = std::make_shared<int>();
  {
    asio::io_context io;
    for (auto const* h : {"a", "b", "c"}) {
      permits->apply(command::acquire_permit{"k", h, 1, 1h, 1h}, start).value();
      permits->await(
          command::await_permit{"k", h}, start,
          [alive, permits](error_code, hint) { BOOST_ERROR("called"); }, io.get_executor());
    }
    BOOST_TEST(alive.use_count() == 4);
  }
  BOOST_TEST(alive.use_count() == 1);
  for (auto const* h : {"a", "b", "c"}) {
    permits->apply(command::release_permit{"k", h, 0}, start).value();
  }
  BOOST_TEST(permits->lines().keys() == 0u);
}

BOOST_AUTO_TEST_CASE(R7_the_store_may_go_before_the_context) {
  bed b;
  b.acquire("a", 1);
  b.line_up("b", 1);
  b.line_up("c", 1);
  b.permits.reset();
  b.poll();
  BOOST_TEST(b.told.empty());
  BOOST_TEST((b.aborted == names{"b", "c"} || b.aborted == names{"c", "b"}));
}

BOOST_AUTO_TEST_CASE(R7_a_handler_may_own_the_store) {
  std::weak_ptr<table> gone;
  {
    asio::io_context io;
    auto permits = std::make_shared<table>();
    gone = permits;
    permits->apply(command::acquire_permit{"k", "a", 1, 1h, 1h}, start).value();
    permits->apply(command::acquire_permit{"k", "b", 1, 1h, 1h}, start).value();
    auto& s = *permits;
    s.await(
        command::await_permit{"k", "b"}, start, [permits](error_code, hint) {}, io.get_executor());
    permits.reset();
    BOOST_TEST(!gone.expired());
  }
  BOOST_TEST(gone.expired());
}

// Whoever waits is told in the very step in which its turn comes, and nobody is told before.
BOOST_AUTO_TEST_CASE(R1_F10_generated_histories) {
  std::uint64_t hints = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    std::mt19937_64 random{seed};
    auto const upto = [&](std::uint64_t n) { return random() % n; };
    bed b;
    rule::permit_line line;
    std::uint64_t fence = 0;
    struct wait {
      std::string holder;
      bool done = false;
    };
    std::list<wait> waits;
    bool const one_limit = seed % 2 == 0;
    auto const holders = seed % 3 == 0 ? 40u : 8u;
    for (int step = 0; step < 300; ++step) {
      auto const holder = "h" + std::to_string(upto(holders));
      if (upto(3) == 0) b.now += 1ms * static_cast<int>(upto(10));
      auto const limit = static_cast<std::uint32_t>(one_limit ? 3 : 1 + upto(4));
      std::string asked;
      switch (upto(4)) {
        case 0: {
          asked = holder;
          command::acquire_permit const c{"k", holder, limit, 1ms * static_cast<int>(1 + upto(90)),
                                          1ms * static_cast<int>(upto(90))};
          b.permits->apply(c, b.now).value();
          (void)rule::apply(line, c, b.now, fence).value();
          break;
        }
        case 1: {
          command::release_permit const c{"k", holder, 0};
          b.permits->apply(c, b.now).value();
          rule::apply(line, c, b.now);
          break;
        }
        default: {
          auto& w = waits.emplace_back(wait{holder});
          b.permits->await(
              command::await_permit{"k", holder}, b.now, [&w](error_code, hint) { w.done = true; },
              b.io.get_executor());
        }
      }
      b.poll();
      rule::expire(line, b.now);
      for (auto it = waits.begin(); it != waits.end();) {
        bool const should = rule::should_ask(line, command::await_permit{"k", it->holder}, b.now);
        // Who asked after its ticket had lapsed was told of that, and has a new one now.
        bool const again = it->done && it->holder == asked;
        if (it->done != should && !again) {
          BOOST_FAIL("seed " << seed << ", step " << step << ", " << it->holder << ": told "
                             << it->done << ", should ask " << should);
        }
        hints += it->done ? 1 : 0;
        it = it->done ? waits.erase(it) : std::next(it);
      }
    }
  }
  BOOST_TEST(hints > 10'000u);
}

BOOST_AUTO_TEST_SUITE_END()
