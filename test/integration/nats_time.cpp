// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The store on servers whose clocks are wrong (F99, F100, F102). Time in it does not end before its
// time, whatever a clock shows: other than on the other stores, also where one is ahead.

#include "clock_steps.hpp"
#include "integration/nats_crew.hpp"
#include "integration/nats_server.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace {

using namespace nats_test;
using weir_test::an_hour;
using weir_test::owner;

/// Looks at the server's clock often.
nats_options watchful() {
  auto o = brisk();
  o.health_check_interval = 20ms;
  return o;
}

/// A store on a server whose clock is moved.
struct moved {
  explicit moved(nats_options const& o = brisk()) : on{there, o} {}

  auto ask() {
    return [this](auto const& c) { return on(c); };
  }
  auto move() {
    return [this](std::int64_t seconds) { there.move_clock(seconds); };
  }

  server there{{}, {}, WEIR_TRACED_CLOCK};
  bed on;
};

/// A store lives on until it must have looked at the server's clock.
void let_look(bed& on) {
  on.io.restart();
  on.io.run_for(200ms);
}

/// An hour ahead, and right again: nobody loses anything, and nothing is stuck.
template <class Ask, class Move>
void ahead_for_a_moment(Ask ask, Move move) {
  owner before{ask, "before", 30min};
  owner gone{ask, "gone", 500ms};
  move(an_hour);
  before.has_it();
  gone.loses_it();
  owner meanwhile{ask, "meanwhile", 500ms};
  owner long_after{ask, "long after", 30min};
  move(0);
  before.has_it();
  long_after.has_it();
  meanwhile.loses_it();
  meanwhile.works();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_time)

BOOST_AUTO_TEST_CASE(F99_time_goes_on_when_the_clock_is_set_back) {
  for (auto const& o : {brisk(), watchful()}) {
    moved m{o};
    weir_test::set_back(m.ask(), [&](std::int64_t seconds) {
      m.there.move_clock(seconds);
      let_look(m.on);
    });
  }
}

BOOST_AUTO_TEST_CASE(F99_nobody_loses_anything_to_a_clock_that_was_ahead) {
  for (auto const& o : {brisk(), watchful()}) {
    moved m{o};
    ahead_for_a_moment(m.ask(), [&](std::int64_t seconds) {
      m.there.move_clock(seconds);
      let_look(m.on);
    });
  }
}

BOOST_AUTO_TEST_CASE(F99_nothing_ends_when_a_clock_that_was_behind_is_right_again) {
  for (auto const& o : {brisk(), watchful()}) {
    moved m{o};
    weir_test::behind_for_a_moment(m.ask(), [&](std::int64_t seconds) {
      m.there.move_clock(seconds);
      let_look(m.on);
    });
  }
}

// The server forgets a record when its clock says that it is over.
BOOST_AUTO_TEST_CASE(F99_a_server_that_is_ahead_does_not_forget_what_is_held) {
  moved m;
  auto const ask = m.ask();
  owner lives{ask, "lives", 30min};
  m.there.move_clock(an_hour);
  stranger who{m.there};
  who.publish("weir.k.x.short", "Nats-TTL: 1s\r\n", "x");  // has it look at what is over
  BOOST_TEST_REQUIRE(weir_test::happens(m.on.io, [&] {
    return who.ask("$JS.API.STREAM.MSG.GET.weir-keys", R"({"last_by_subj":"weir.k.x.short"})")
               .find("no message found") != std::string::npos;
  }));
  lives.has_it();
}

// One store stands still while another one lives, and the clock is set.
BOOST_AUTO_TEST_CASE(F100_who_stood_still_gets_nothing_that_another_one_has) {
  for (auto const step : {-an_hour, an_hour}) {
    moved m{watchful()};
    bed still{m.there, watchful()};
    bool first = false;
    auto const ask = [&](auto const& c) { return first ? m.on(c) : still(c); };
    let_look(m.on);
    owner early{ask, "early", 30min};
    let_look(still);
    m.there.move_clock(step);
    let_look(m.on);
    first = true;
    owner lives{ask, "lives", 30min};
    owner gone{ask, "gone", 500ms};
    first = false;  // it has not heard of the step
    lives.has_it();
    early.has_it();
    gone.loses_it();
    let_look(still);  // now it has
    lives.has_it();
    early.has_it();
    gone.works();
    first = true;
    lives.has_it();
    gone.works();
    // And who comes now.
    first = true;
    owner const brief{ask, "brief", 30min};
    bed late{m.there, watchful()};
    BOOST_TEST(!late(command::acquire_lock{"brief", "other", 1h})->granted);
    owner const other{[&](auto const& c) { return late(c); }, "other", 30min};
    BOOST_TEST(!late(command::acquire_lock{"lives", "other", 1h})->granted);
    BOOST_TEST(!late(command::acquire_permit{"lives", "other", 1, 1h, duration{}})->granted);
    BOOST_TEST(late(command::dequeue_jobs{"lives", "other", 1, 10, 1h})->jobs.empty());
  }
}

// Nobody lives through the step.
BOOST_AUTO_TEST_CASE(F99_a_newcomer_goes_on_from_what_was_stored_last) {
  moved m;
  auto const now = std::make_unique<std::unique_ptr<bed>>();
  auto const ask = [&](auto const& c) {
    if (!*now) *now = std::make_unique<bed>(m.there, watchful());
    return (**now)(c);
  };
  owner lives{ask, "lives", 30min};
  owner gone{ask, "gone", 500ms};
  now->reset();
  m.there.move_clock(-an_hour);
  lives.has_it();
  gone.loses_it();
  gone.works();
  now->reset();
  lives.has_it();
  m.there.move_clock(-2 * an_hour);
  now->reset();
  lives.has_it();
  gone.works();
}

// A fence is not in the record alone, which is forgotten (R5).
BOOST_AUTO_TEST_CASE(F64_a_forgotten_fence_does_not_go_back_with_the_clock) {
  moved m;
  auto const first = m.on(command::acquire_lock{"key", "me", 1min});
  BOOST_TEST_REQUIRE(first->granted);
  auto const permit = m.on(command::acquire_permit{"key", "me", 1, 1min, duration{}});
  BOOST_TEST_REQUIRE(permit->granted);
  stranger who{m.there};
  for (std::string const kind : {"l", "p"}) {
    (void)who.ask("$JS.API.STREAM.PURGE.weir-keys", R"({"filter":"weir.k.)" + kind + R"(.key"})");
  }
  m.there.move_clock(-an_hour);
  bed late{m.there};
  auto const second = late(command::acquire_lock{"key", "other", 1min});
  BOOST_TEST_REQUIRE(second->granted);
  BOOST_TEST(second->fence > first->fence);
  auto const other = late(command::acquire_permit{"key", "other", 1, 1min, duration{}});
  BOOST_TEST_REQUIRE(other->granted);
  BOOST_TEST(other->fence > permit->fence);
}

BOOST_AUTO_TEST_CASE(F102_time_goes_on_at_a_leader_whose_clock_shows_something_else) {
  for (auto const step : {-an_hour, an_hour}) {
    cluster c{{}, WEIR_TRACED_CLOCK};
    auto o = threefold();
    o.health_check_interval = 50ms;
    boost::asio::io_context io;
    nats_store const store{io.get_executor(), c.addresses(), o};
    store.async_run([](error_code) {});
    auto const ask_there = [&](auto const& command) { return nats_test::ask(io, store, command); };
    owner lives{ask_there, "lives", 30min};
    owner gone{ask_there, "gone", 500ms};
    for (std::string const stream : {"weir-keys", "weir-jobs-0"}) {
      auto const leads = leader_of(c, stream);
      for (std::size_t i = 0; i != cluster::size; ++i) {
        if (i != leads) c[i].move_clock(step);
      }
      step_down(c, stream);
      (void)leader_of(c, stream, leads);
      lives.has_it();
    }
    gone.loses_it();
    gone.works();
    lives.has_it();
    store.close();
    io.restart();
    io.run();
  }
}

BOOST_AUTO_TEST_SUITE_END()
