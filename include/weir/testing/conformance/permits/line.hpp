// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_PERMITS_LINE_HPP
#define WEIR_TESTING_CONFORMANCE_PERMITS_LINE_HPP

#include "weir/command/permits.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/conformance/permits/steps.hpp"
#include "weir/testing/fields.hpp"

#include <boost/asio/error.hpp>

// What is promised about waiting in line for a permit, and about hints.
namespace weir::testing::conformance {

inline void need_line(permit_bench& b) {
  b.need(b.can().line, "declared: refused holders keep no place in line");
}

inline void line_is_kept(permit_bench& b) {
  need_line(b);
  take_permit(b, "key", "x", 1, b.lasting);
  expect_place(b, "key", "a", 1, 1);
  expect_place(b, "key", "b", 1, 2);
  expect_place(b, "key", "c", 1, 3);
  expect_place(b, "key", "a", 1, 1);
  expect(b.must(command::inspect_permits{"key", 0}).waiting == 3, "three wait");
  b.must(command::release_permit{"key", "x", 0});
  expect_refused(b, "key", "newcomer", 1);
  expect_place(b, "key", "c", 1, 3);
  expect_place(b, "key", "b", 1, 2);
  take_permit(b, "key", "a", 1, b.lasting);
  expect_place(b, "key", "b", 1, 1);
  b.must(command::release_permit{"key", "a", 0});
  expect_place(b, "key", "a", 1, 3);
  take_permit(b, "key", "b", 1, b.lasting);
  auto const census = b.must(command::inspect_permits{"key", 0});
  expect(census.in_use == 1 && census.waiting == 2, "one has it, two wait; got " + to_text(census));
}

inline void tickets_lapse(permit_bench& b) {
  need_line(b);
  take_permit(b, "key", "x", 1, b.lasting);
  expect_refused(b, "key", "a", 1, b.brief());
  expect_place(b, "key", "b", 1, 2);
  b.eventually([&] { return b.must(command::inspect_permits{"key", 0}).waiting == 1; },
               "a ticket lapses");
  expect_place(b, "key", "b", 1, 1);
  expect_place(b, "key", "a", 1, 2);
  b.must(command::release_permit{"key", "x", 0});
  expect_place(b, "key", "a", 1, 2);
  take_permit(b, "key", "b", 1, b.lasting);
}

inline void places_are_given_up(permit_bench& b) {
  need_line(b);
  auto const grant = take_permit(b, "key", "x", 1, b.lasting);
  expect_place(b, "key", "a", 1, 1);
  expect_place(b, "key", "b", 1, 2);
  expect(expect_refused(b, "key", "a", 1).place == 0, "who asks without patience keeps no place");
  expect_place(b, "key", "b", 1, 1);
  expect(!b.must(command::release_permit{"key", "b", grant.fence}).left_line,
         "a release by fence ends no ticket");
  expect_place(b, "key", "b", 1, 1);
  auto const released = b.must(command::release_permit{"key", "b", 0});
  expect(released.left_line && !released.freed,
         "a release by holder gives up the place; got " + to_text(released));
  expect(!b.must(command::release_permit{"key", "b", 0}).left_line, "once");
  b.must(command::release_permit{"key", "x", grant.fence});
  take_permit(b, "key", "newcomer", 1, b.lasting);
}

inline void retry_after_is_not_too_early(permit_bench& b) {
  need_line(b);
  b.need(b.exact(), "time passes by itself");
  take_permit(b, "key", "x", 2, 2 * b.brief());
  take_permit(b, "key", "y", 2, b.brief());
  auto const a = expect_refused(b, "key", "a", 2, b.lasting);
  auto const c = expect_refused(b, "key", "c", 2, b.lasting);
  auto const about = [&](duration told, duration should) {
    return told >= should && told <= should + b.slack();
  };
  expect(about(a.retry_after, b.brief()),
         "the first in line waits for the first expiry; got " + to_text(a));
  expect(about(c.retry_after, 2 * b.brief()),
         "the second waits for the second: no herd; got " + to_text(c));
  b.pass(a.retry_after - b.slack() - b.grain());
  expect_refused(b, "key", "a", 2, b.lasting);
  b.pass(b.slack() + b.grain());
  take_permit(b, "key", "a", 2, b.lasting);
}

inline void need_hints(permit_bench& b) {
  need_line(b);
  b.need(b.executes<command::await_permit>(), "the store does not execute await_permit");
  b.need(b.source() != time_source::told, "hints come by the store's own time");
}

inline void one_permit_wakes_one(permit_bench& b) {
  need_hints(b);
  take_permit(b, "key", "x", 1, b.lasting);
  expect_place(b, "key", "a", 1, 1);
  expect_place(b, "key", "b", 1, 2);
  command::await_permit const of_a{"key", "a"};
  command::await_permit const of_b{"key", "b"};
  auto const first = b.start(of_a);
  auto const second = b.start(of_b);
  b.pass(b.brief() / 2);
  expect(!first.done() && !second.done(), "nobody is told while nothing is free");
  b.must(command::release_permit{"key", "x", 0});
  b.eventually([&] { return first.done(); }, "the next in line is told that a permit is free");
  b.pass(b.brief() / 2);
  expect(!second.done(), "one freed permit wakes one waiter");
  take_permit(b, "key", "a", 1, b.lasting);
  b.pass(b.brief() / 2);
  expect(!second.done(), "nobody is told of a permit that was taken");
  b.must(command::release_permit{"key", "a", 0});
  b.eventually([&] { return second.done(); }, "the next in line is told of the next permit");
  auto const late = b.start(of_b);
  b.eventually([&] { return late.done(); }, "and at once when one is free already");
}

inline void waiting_can_be_cancelled(permit_bench& b) {
  need_hints(b);
  take_permit(b, "key", "x", 1, b.lasting);
  command::await_permit const no_ticket{"key", "stranger"};
  auto const at_once = b.start(no_ticket);
  b.eventually([&] { return at_once.done(); }, "who has no ticket does not wait");
  expect_place(b, "key", "a", 1, 1);
  command::await_permit const c{"key", "a"};
  auto p = b.start(c);
  b.pass(b.brief() / 2);
  p.cancel();
  b.eventually([&] { return p.done(); }, "a cancelled wait ends");
  expect(p.answer().has_error() && p.answer().error() == boost::asio::error::operation_aborted,
         "a cancelled wait ends with operation_aborted");
  expect_place(b, "key", "a", 1, 1);
  // What still waits when the store and its context end must simply go.
  static_cast<void>(b.start(c));
}

}  // namespace weir::testing::conformance

#endif
