// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The time in a NATS store whose server's clock is set (F99, F100, F102).

#include "weir/store/nats/store_time.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace {

using namespace weir;
using namespace weir::detail;
using namespace std::chrono_literals;

/// After so long, by a clock that nobody sets.
time_point at(duration d) { return time_point{1'700'000'000s + d}; }

/// A server and what is noted there.
struct server {
  [[nodiscard]] time_point clock() const { return at(passed + ahead); }

  duration passed{};
  duration ahead{};
  nats_found_note found{};
  std::optional<time_point> last{};
};

/// A process, which asks as a store does.
struct process {
  /// Looks at the clock and at the note, and notes the time where that is due. The clock is read at
  /// the beginning of what that takes.
  void look(server& s) {
    auto const sent = here(s);
    auto const clock = s.clock();
    s.passed += takes;
    time.heard(clock, sent, here(s));
    if (meanwhile) meanwhile();
    time.looked(s.found, s.last, 500ms, here(s));
    if (auto const note = time.due(here(s))) {
      if (time.noted() != s.found.sequence) return;
      s.found = {nats_time_note::read(note->write()), s.clock(), s.found.sequence + 1};
      s.last = s.clock();
    }
  }
  /// The time, as it knows it.
  [[nodiscard]] duration now(server const& s) const { return time.now(here(s)).earliest - at(0s); }
  [[nodiscard]] steady_time here(server const& s) const {
    return steady_time{1h + s.passed - stood_still};
  }

  /// It is not earlier, nor later, than that.
  [[nodiscard]] bool knows(server const& s, duration true_time) const {
    auto const n = time.now(here(s));
    return n.earliest <= at(true_time) && n.latest() >= at(true_time);
  }

  nats_store_time time;
  duration stood_still{};             // its clock
  duration takes{};                   // an answer
  std::function<void()> meanwhile{};  // between the clock and the note
};

/// All of them look twice a second.
void pass(server& s, duration how_long, std::vector<process*> const& all) {
  for (auto const until = s.passed + how_long; s.passed < until; s.passed += 500ms) {
    for (auto* const p : all) p->look(s);
  }
  for (auto* const p : all) p->look(s);
}

bool is(duration a, duration b) { return a < b + 10ms && b < a + 100ms; }

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_store_times)

BOOST_AUTO_TEST_CASE(F19_time_does_not_run_backwards_from_one_process_to_another) {
  nats_now const now{at(100ms), 10ms};
  auto const later = nats_agreed(now, at(104ms), 5s);  // as another one knew, who wrote
  BOOST_TEST((later.earliest == at(104ms)));
  BOOST_TEST((later.latest() == now.latest()));
  BOOST_TEST((nats_agreed(now, at(50ms), 5s).earliest == now.earliest));
  // A process that is behind goes on from there.
  auto const behind = nats_agreed(now, at(1h), 5s);
  BOOST_TEST((behind.earliest == at(1h + 5s)));
  BOOST_TEST((behind.doubt == 0s));
  // It cannot be that late.
  BOOST_TEST((nats_agreed(now, time_point::min(), 5s).earliest == now.earliest));
  BOOST_TEST((nats_agreed(now, time_point::max(), 5s).earliest == now.earliest));
}

BOOST_AUTO_TEST_CASE(F99_the_time_of_a_message_is_within_what_its_sender_knew) {
  nats_stamp const stamp{{at(10s), 20ms}, 1h};
  BOOST_TEST((stamp.at(at(-1h + 10s + 5ms)) == at(10s + 5ms)));
  BOOST_TEST((stamp.at(at(-1h + 12s)) == at(10s + 20ms)));  // it was long on its way
  BOOST_TEST((stamp.at(at(12s)) == at(10s + 20ms)));        // the clock was set since
  BOOST_TEST((stamp.at(at(-2h)) == at(10s)));
}

BOOST_AUTO_TEST_CASE(F97_a_note_that_is_damaged_is_none) {
  nats_time_note const note{at(5s), -1h};
  auto const bytes = note.write();
  auto const read = nats_time_note::read(bytes);
  BOOST_TEST_REQUIRE(read.has_value());
  BOOST_TEST((read->seen == note.seen));
  BOOST_TEST((read->offset == note.offset));
  for (std::size_t i = 0; i != bytes.size(); ++i) {
    auto damaged = bytes;
    damaged[i] ^= 1;
    BOOST_TEST(!nats_time_note::read(damaged).has_value());
    BOOST_TEST(!nats_time_note::read(bytes.substr(0, i)).has_value());
  }
  BOOST_TEST(!nats_time_note::read(bytes + "x").has_value());
  for (auto const& wrong :
       {nats_time_note{time_point::max(), {}}, nats_time_note{time_point::min(), {}},
        nats_time_note{at(0s), duration::max()}, nats_time_note{at(0s), duration::min()}}) {
    BOOST_TEST(!nats_time_note::read(wrong.write()).has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_store_goes_by_the_clock_of_its_server_as_long_as_nobody_sets_it) {
  server s;
  process a;
  process b;
  BOOST_TEST(!a.time.known());
  pass(s, 1min, {&a, &b});
  BOOST_TEST(is(a.now(s), s.passed));
  BOOST_TEST(is(b.now(s), s.passed));
  BOOST_TEST((s.found.note->offset == 0s));
  // One of them notes it every two seconds.
  BOOST_TEST(s.found.sequence >= 28U);
  BOOST_TEST(s.found.sequence <= 32U);
}

BOOST_AUTO_TEST_CASE(F99_F100_time_goes_on_however_a_clock_is_set) {
  for (auto const step : std::vector<duration>{-1h, 1h, -24h * 400, 24h * 400, -200ms, 200ms}) {
    server s;
    process a;
    process b;
    pass(s, 10s, {&a, &b});
    s.ahead = step;
    BOOST_TEST(is(a.now(s), s.passed));  // before it looks
    pass(s, 10s, {&a, &b});
    BOOST_TEST(is(a.now(s), s.passed));
    BOOST_TEST(is(b.now(s), s.passed));
    process late;
    pass(s, 3s, {&late, &a, &b});
    BOOST_TEST(is(late.now(s), s.passed));
    s.ahead = {};
    pass(s, 10s, {&b, &late, &a});
    for (auto const* const p : {&a, &b, &late}) BOOST_TEST(is(p->now(s), s.passed));
  }
}

// However long the answer takes that shows it, time is not ahead of what it was.
BOOST_AUTO_TEST_CASE(F100_a_slow_answer_does_not_set_the_time) {
  for (duration const step : {duration{-1h}, duration{1h}, duration{2s}, duration{-2s}}) {
    server s;
    process a;
    process b;
    a.takes = b.takes = 1ms;
    pass(s, 10s, {&a, &b});
    s.ahead = step;
    a.takes = 3s;
    a.look(s);
    BOOST_TEST(a.knows(s, s.passed));
    a.takes = 1ms;
    a.look(s);
    BOOST_TEST((a.time.now(a.here(s)).earliest <= at(s.passed)));
    pass(s, 5s, {&b, &a});
    for (auto const* const p : {&a, &b}) {
      auto const n = p->time.now(p->here(s));
      BOOST_TEST((n.earliest <= at(s.passed + 1ms)));
      BOOST_TEST((n.earliest > at(s.passed - 4s)));
    }
    BOOST_TEST((a.now(s) - b.now(s) < 5ms));
    BOOST_TEST((b.now(s) - a.now(s) < 5ms));
  }
}

// A clock that is corrected again and again ends nothing early.
BOOST_AUTO_TEST_CASE(F100_small_steps_forward_are_taken_back) {
  server s;
  process a;
  a.takes = 1ms;
  pass(s, 10s, {&a});
  for (int i = 0; i != 50; ++i) {
    s.ahead += 20ms;
    pass(s, 1s, {&a});
    BOOST_TEST((a.time.now(a.here(s)).earliest <= at(s.passed + 3ms)));
  }
}

// However each of them has seen what has become of the clock, they come to one time.
BOOST_AUTO_TEST_CASE(F100_all_come_to_one_time) {
  auto const one_time = [](server const& s, process const& a, process const& b) {
    return a.now(s) - b.now(s) < 1ms && b.now(s) - a.now(s) < 1ms;
  };
  for (duration const step : {duration{-80ms}, duration{-99ms}, duration{80ms}, duration{3ms}}) {
    server s;
    process a;
    process b;
    a.takes = b.takes = 1ms;
    pass(s, 10s, {&a, &b});
    s.ahead += step;
    pass(s, 1s, {&a});
    s.ahead += step;
    pass(s, 12s, {&b, &a});
    BOOST_TEST(one_time(s, a, b));
    auto const noted = s.found.note->offset;
    pass(s, 20s, {&a, &b});
    BOOST_TEST((s.found.note->offset == noted));
  }
}

// One was cut off for long, and knows its own clock no better than that drifts.
BOOST_AUTO_TEST_CASE(F100_who_was_away_takes_nobody_ahead) {
  server s;
  process a;
  process b;
  a.takes = b.takes = 1ms;
  pass(s, 10s, {&a, &b});
  s.ahead = 1s;
  for (int i = 0; i != 3600; ++i) pass(s, 500ms, {&a});
  pass(s, 10s, {&b, &a});
  BOOST_TEST((a.time.now(a.here(s)).earliest <= at(s.passed + 3ms)));
  BOOST_TEST((b.time.now(b.here(s)).earliest <= at(s.passed + 3ms)));
}

// A newcomer sees the step that those who are there have not noted yet.
BOOST_AUTO_TEST_CASE(F100_a_newcomer_that_sees_a_step_takes_nobody_with_it) {
  server s;
  process a;
  pass(s, 10s, {&a});
  process late;
  s.passed += 100ms;
  late.look(s);
  s.passed += 2s;
  a.look(s);  // notes as always
  s.passed += 100ms;
  s.ahead = 1h;
  late.look(s);
  BOOST_TEST(is(late.now(s), s.passed));
  pass(s, 10s, {&a, &late});
  BOOST_TEST(is(a.now(s), s.passed));
  BOOST_TEST(is(late.now(s), s.passed));
}

// It does not know how far they are who are there; they do.
BOOST_AUTO_TEST_CASE(F100_a_newcomer_after_a_step_back_comes_to_the_time_of_the_others) {
  server s;
  process a;
  pass(s, 10s, {&a});
  s.passed += 1500ms;
  s.ahead = -1h;
  process late;
  late.look(s);
  BOOST_TEST(late.knows(s, s.passed));
  pass(s, 20s, {&a, &late});
  BOOST_TEST(is(late.now(s), s.passed));
  BOOST_TEST((late.time.now(late.here(s)).doubt < 100ms));
  BOOST_TEST(is(a.now(s), s.passed));
}

BOOST_AUTO_TEST_CASE(F100_a_newcomer_to_a_small_step_takes_nobody_with_it) {
  for (auto const step : std::vector<duration>{1s, 3s, 5s}) {
    server s;
    process a;
    pass(s, 10s, {&a});
    s.passed += 1s;
    s.ahead = step;
    process early;
    early.look(s);
    s.passed += 500ms;
    early.look(s);
    pass(s, 5s, {&a, &early});
    BOOST_TEST(is(a.now(s), s.passed));
    BOOST_TEST(is(early.now(s), s.passed));
  }
}

BOOST_AUTO_TEST_CASE(F100_who_stood_still_meanwhile_knows_the_time) {
  for (duration const step : {duration{-1h}, duration{1h}}) {
    server s;
    process a;
    process b;
    pass(s, 10s, {&a, &b});
    s.ahead = step;
    pass(s, 75s, {&a});
    BOOST_TEST(is(b.now(s), s.passed));  // it has not looked since
    pass(s, 5s, {&b, &a});
    BOOST_TEST(is(b.now(s), s.passed));
    BOOST_TEST(is(a.now(s), s.passed));
  }
}

// It has heard of the clock, and before it reads the note the clock is set, and that is noted.
BOOST_AUTO_TEST_CASE(F100_a_note_from_after_a_step_counts_for_the_clock_after_it) {
  for (bool const newcomer : {false, true}) {
    for (duration const step : {duration{-1h}, duration{1h}}) {
      server s;
      process a;
      process b;
      pass(s, 10s, newcomer ? std::vector{&a} : std::vector{&a, &b});
      b.look(s);
      b.meanwhile = [&] {
        s.ahead = step;
        s.passed += 1s;
        a.look(s);
      };
      b.look(s);
      BOOST_TEST(is(b.now(s), s.passed));
      b.meanwhile = {};
      b.look(s);
      BOOST_TEST(is(b.now(s), s.passed));
      pass(s, 5s, {&b, &a});
      BOOST_TEST(is(a.now(s), s.passed));
      BOOST_TEST(is(b.now(s), s.passed));
    }
  }
}

// A virtual machine that is stopped takes its clocks with it.
BOOST_AUTO_TEST_CASE(F100_whose_own_clock_stood_still_learns_the_time_of_the_others) {
  server s;
  process a;
  process b;
  process c;
  pass(s, 10s, {&a, &b, &c});
  pass(s, 75s, {&a, &c});
  b.stood_still = 75s;
  pass(s, 500ms, {&b, &a, &c});
  BOOST_TEST(is(b.now(s), s.passed));
  BOOST_TEST(is(a.now(s), s.passed));
  BOOST_TEST(is(c.now(s), s.passed));
}

BOOST_AUTO_TEST_CASE(F99_a_newcomer_goes_on_from_what_was_stored_last) {
  server s;
  {
    process gone;
    pass(s, 10s, {&gone});
  }
  auto const seen = s.passed;
  s.last = s.clock() + 1s;  // and somebody has stored something since
  s.passed += 20s;
  s.ahead = -1h;
  process first;
  first.look(s);
  BOOST_TEST(is(first.now(s), seen + 1s));
  BOOST_TEST((s.found.note->offset > 59min));  // for the next one
  s.passed += 1s;
  process second;
  second.look(s);
  BOOST_TEST(is(second.now(s), first.now(s)));
  BOOST_TEST(is(second.now(s), seen + 2s));
}

BOOST_AUTO_TEST_CASE(F99_a_newcomer_to_what_has_no_note_goes_on_from_what_was_stored_last) {
  server s;
  s.last = at(1h);
  process p;
  p.look(s);
  BOOST_TEST(is(p.now(s), 1h));
  BOOST_TEST(s.found.sequence == 1U);
}

// A damaged note takes nobody astray, and is written anew.
BOOST_AUTO_TEST_CASE(F97_a_note_that_cannot_be_read_is_noted_anew) {
  server s;
  s.found = {std::nullopt, s.clock(), 7};
  s.last = s.clock();
  process p;
  p.look(s);
  BOOST_TEST(is(p.now(s), s.passed));
  BOOST_TEST(s.found.sequence == 8U);
}

// Whether nobody was there, or the clock was set forward a moment ago, a newcomer cannot know.
BOOST_AUTO_TEST_CASE(F100_a_newcomer_believes_those_who_are_there) {
  server s;
  process a;
  pass(s, 10s, {&a});
  s.ahead = 1h;
  process early;
  early.look(s);  // before anybody who is there
  s.passed += 1s;
  early.look(s);
  BOOST_TEST(is(early.now(s), s.passed + 1h));
  pass(s, 1s, {&a, &early});
  BOOST_TEST(is(a.now(s), s.passed));
  BOOST_TEST(is(early.now(s), s.passed));
}

BOOST_AUTO_TEST_CASE(a_store_that_nobody_has_used_for_a_day_goes_by_the_clock_again) {
  for (duration const step : {duration{-1h}, duration{1h}}) {
    server s;
    {
      process p;
      pass(s, 10s, {&p});
      s.ahead = step;
      pass(s, 10s, {&p});
    }
    s.passed += 20h;
    {
      process p;
      pass(s, 10s, {&p});
      BOOST_TEST(is(p.now(s), s.passed));
    }
    s.passed += 26h;
    process p;
    pass(s, 10s, {&p});
    BOOST_TEST(is(p.now(s), s.passed + step));
  }
}

BOOST_AUTO_TEST_CASE(a_newcomer_who_is_alone_goes_by_the_clock_and_says_so_later) {
  server s;
  process gone;
  pass(s, 10s, {&gone});
  auto const noted = s.found.sequence;
  s.passed += 10min;
  process p;
  p.look(s);
  BOOST_TEST(is(p.now(s), s.passed));
  BOOST_TEST(s.found.sequence == noted);
  pass(s, 3s, {&p});
  BOOST_TEST(s.found.sequence == noted);
  pass(s, 4s, {&p});
  BOOST_TEST(s.found.sequence == noted + 1);
}

BOOST_AUTO_TEST_SUITE_END()
