// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "lease_bed.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/limiter.hpp"
#include "weir/uniqueness.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Every operation is stopped after each of its steps, by cancellation of every kind and by the end
// of its execution context, on a store that answers, one that answers late, and one that never
// does.
using namespace lease_test;

namespace {

struct scene : ground {
  scene() {
    command::acquire_permit const busy{.key = "busy", .holder = "x", .limit = 1, .ttl = 3s};
    command::acquire_lock const locked{.key = "busy", .holder = "x", .ttl = 3s};
    (void)local.execute(busy);
    (void)local.execute(locked);
    (void)wire->apply(busy);
    (void)wire->apply(locked);
  }

  /// Runs one handler, or lets the time pass to the next deadline. False: nothing can happen any
  /// more.
  bool step() {
    io.restart();
    if (io.poll_one() != 0) return true;
    return clock.advance_to_next();
  }

  asio::cancellation_signal signal;
  int done = 0;
  error_code ec;
  std::vector<std::shared_ptr<void>> kept;  ///< what operations need besides

  /// A handler that counts, whatever it is called with, and drops what it is given.
  auto handler() {
    return asio::bind_cancellation_slot(signal.slot(), [this](auto first, auto&&... rest) {
      ++done;
      if constexpr (std::same_as<decltype(first), error_code>) {
        ec = first;
      } else {
        ec = detail::error_of(first);
      }
      [](auto...) {}(std::move(rest)...);
    });
  }
};

using operation = std::function<void(scene&)>;

template <class Store>
std::vector<std::pair<std::string, operation>> operations_on(Store ground::* which) {
  auto const of = [which](scene& s) {
    return limiter{s.*which, {.limit = 1, .ttl = 30s}, s.clock};
  };
  auto const once = [which](scene& s) { return uniqueness{s.*which, {.ttl = 30s}, s.clock}; };
  auto const body = [](scene& s) {
    return [&s]() -> asio::awaitable<int> {
      for (int i = 0; i < 3; ++i) {
        co_await s.clock.async_wait_until(s.io.get_executor(), s.clock.steady_now() + 15s);
      }
      co_return 1;
    };
  };
  auto const held = [](scene& s, auto const& l) {
    auto const p = std::make_shared<permit>();
    l.async_try_acquire("free",
                        [p](error_code, std::optional<permit> got) { *p = std::move(*got); });
    s.settle();
    s.kept.push_back(p);
    return p;
  };
  return {
      {"try_acquire", [=](scene& s) { of(s).async_try_acquire("free", s.handler()); }},
      {"try_acquire, busy", [=](scene& s) { of(s).async_try_acquire("busy", s.handler()); }},
      {"acquire, not waiting", [=](scene& s) { of(s).async_acquire("free", s.handler()); }},
      {"acquire, waiting",
       [=](scene& s) { of(s).async_acquire("busy", {.wait = 4s}, s.handler()); }},
      {"acquire, waiting and timing out",
       [=](scene& s) { of(s).async_acquire("busy", {.wait = 2s}, s.handler()); }},
      {"with_permit", [=](scene& s) { of(s).async_with_permit("free", body(s), s.handler()); }},
      {"with_permit, waiting",
       [=](scene& s) { of(s).async_with_permit("busy", body(s), s.handler()); }},
      {"inspect", [=](scene& s) { of(s).async_inspect("busy", 10, s.handler()); }},
      {"drain", [=](scene& s) { of(s).async_drain(s.handler()); }},
      {"try_lock", [=](scene& s) { once(s).async_try_lock("free", s.handler()); }},
      {"lock, waiting", [=](scene& s) { once(s).async_lock("busy", {.wait = 4s}, s.handler()); }},
      {"with_lock", [=](scene& s) { once(s).async_with_lock("free", body(s), s.handler()); }},
      {"with_lock, waiting",
       [=](scene& s) { once(s).async_with_lock("busy", {.wait = 4s}, body(s), s.handler()); }},
      {"claim", [=](scene& s) { once(s).async_claim("claim", 10s, s.handler()); }},
      {"inspect lock", [=](scene& s) { once(s).async_inspect("busy", s.handler()); }},
      {"release",
       [=](scene& s) {
         auto const l = of(s);
         l.async_release(std::move(*held(s, l)), s.handler());
       }},
      {"renew",
       [=](scene& s) {
         auto const l = of(s);
         l.async_renew(*held(s, l), s.handler());
       }},
  };
}

struct behaviour {
  std::string name;
  treatment usual;
};

struct subject {
  std::string name;
  operation start;
  std::vector<behaviour> behaviours;
};

std::vector<subject> all_operations() {
  std::vector<behaviour> const always{{"answers", {}}};
  std::vector<behaviour> const any{
      {"answers", {}},
      {"hears but does not answer", {.answers = false}},
      {"deaf", {.answers = false, .deaf = true}},
      {"executes but does not answer",
       {.answers = false, .error = asio::error::connection_reset, .deaf = true}},
  };
  std::vector<subject> all;
  for (auto& [name, start] : operations_on(&ground::local)) all.push_back({name, start, always});
  for (auto& [name, start] : operations_on(&ground::remote))
    all.push_back({"remote " + name, start, any});
  return all;
}

/// After what has ended everything that a deaf engine held back is done; then nothing may be left.
void check_nothing_left(scene& s) {
  s.kept.clear();
  s.wire->usual = {};
  s.wire->deliver_all();
  s.pass(1s);
  BOOST_TEST(census(s.local, "free").in_use == 0u);
  BOOST_TEST(census(s.local, "busy").waiting == 0u);
  BOOST_TEST(census(*s.wire, "busy").waiting == 0u);
  BOOST_TEST(census(*s.wire, "free").in_use == 0u);
  BOOST_TEST(!s.wire->apply(command::inspect_lock{.key = "free"}).value().held);
  BOOST_TEST(!s.local.execute(command::inspect_lock{.key = "free"}).value().held);
}

constexpr int most_steps = 80;

}  // namespace

BOOST_AUTO_TEST_SUITE(lease_cancellation)

BOOST_AUTO_TEST_CASE(R7_cancellation_after_every_step) {
  using type = asio::cancellation_type;
  for (auto const& [name, start, behaviours] : all_operations()) {
    for (auto const& how : behaviours) {
      for (auto const kind : {type::terminal, type::partial, type::total}) {
        bool goes_on = true;
        for (int steps = 0; goes_on && steps < most_steps; ++steps) {
          BOOST_TEST_CONTEXT(name << ", " << how.name << ", " << static_cast<int>(kind) << ", step "
                                  << steps) {
            scene s;
            start(s);
            s.wire->usual = how.usual;
            for (int i = 0; i < steps && goes_on; ++i) goes_on = s.done == 0 && s.step();
            bool const before = s.done != 0;
            s.signal.emit(kind);
            s.settle();
            // What is one command ends when the store lets it.
            bool const composed =
                name.find("with_") != name.npos || name.find("waiting") != name.npos;
            if (composed || !how.usual.deaf) {
              BOOST_TEST(s.done == 1);
              // Its end may have been decided already.
              bool const decided = s.ec == errc::timed_out || s.ec == errc::unique_conflict ||
                                   s.ec == errc::store_unavailable;
              if (!before && s.ec && !decided) {
                BOOST_TEST(s.ec == asio::error::operation_aborted);
              }
            }
            check_nothing_left(s);
            BOOST_TEST(s.done <= 1);
          }
        }
        if (how.usual.deaf) break;  // the kind makes no difference to it
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(R7_the_context_ends_after_every_step) {
  for (auto const& [name, start, behaviours] : all_operations()) {
    for (auto const& how : behaviours) {
      bool goes_on = true;
      for (int steps = 0; goes_on && steps < most_steps; ++steps) {
        BOOST_TEST_CONTEXT(name << ", " << how.name << ", step " << steps) {
          manual_clock clock;
          std::shared_ptr<engine> wire;
          std::optional<local_store> local;
          {
            scene s;
            clock = s.clock;
            wire = s.wire;
            local = s.local;
            start(s);
            s.wire->usual = how.usual;
            for (int i = 0; i < steps && goes_on; ++i) goes_on = s.done == 0 && s.step();
          }
          // What a store that executes at once was given, it has back; the remote one has only its
          // TTLs.
          BOOST_TEST(census(*local, "free").in_use == 0u);
          BOOST_TEST(census(*local, "busy").waiting == 0u);
          wire->held.clear();
          clock.advance(31s);
          BOOST_TEST(census(*wire, "free").in_use == 0u);
          BOOST_TEST(census(*wire, "busy").waiting == 0u);
          BOOST_TEST(clock.waiters() == 0u);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(R7_an_erased_handler_dies_with_the_context) {
  scene s;
  limiter of{s.remote, {.limit = 1, .ttl = 30s}, s.clock};
  s.wire->usual = {.answers = false};
  of.async_try_acquire(
      "free", asio::any_completion_handler<void(error_code, std::optional<permit>)>{s.handler()});
  of.async_acquire("free", asio::any_completion_handler<void(error_code, permit)>{s.handler()});
  s.settle();
  BOOST_TEST(s.wire->held.size() == 2u);
}

BOOST_AUTO_TEST_CASE(R7_a_signal_that_outlives_the_context) {
  asio::cancellation_signal late;
  {
    scene s;
    limiter of{s.remote, {.limit = 1, .ttl = 30s}, s.clock};
    of.async_acquire("busy",
                     asio::bind_cancellation_slot(late.slot(), [](error_code, permit const&) {}));
    s.settle();
  }
  late.emit(asio::cancellation_type::all);
  asio::cancellation_signal later;
  {
    scene s;
    limiter of{s.local, {.limit = 1, .ttl = 30s}, s.clock};
    auto body = []() -> asio::awaitable<void> { co_return; };
    of.async_with_permit("free", body,
                         asio::bind_cancellation_slot(later.slot(), [](std::exception_ptr) {}));
    s.settle();
  }
  later.emit(asio::cancellation_type::all);
}

BOOST_AUTO_TEST_SUITE_END()
