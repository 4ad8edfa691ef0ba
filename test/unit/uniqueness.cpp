// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/uniqueness.hpp"

#include "lease_bed.hpp"
#include "weir/detail/spawn.hpp"

#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace lease_test;

static_assert(std::is_trivially_destructible_v<uniqueness_options>);

namespace {

struct keys : ground {
  explicit keys(uniqueness_options o = {.ttl = 30s})
      : here{local, o, clock},
        away{remote, o, clock} {}

  template <class U>
  outcome<std::optional<lock>> try_lock(U const& u, std::string key = "k") {
    outcome<std::optional<lock>> got;
    u.async_try_lock(std::move(key), got.handler());
    BOOST_TEST(got.calls == 0);
    settle();
    BOOST_TEST(got.calls == 1);
    return got;
  }
  template <class U>
  outcome<bool> claim(U const& u, std::string key, duration ttl) {
    outcome<bool> got;
    u.async_claim(std::move(key), ttl, got.handler());
    settle();
    BOOST_TEST(got.calls == 1);
    return got;
  }
  [[nodiscard]] bool held(std::string_view key = "k") const {
    return local.execute(command::inspect_lock{.key = key}).value().held ||
           wire->apply(command::inspect_lock{.key = key}).value().held;
  }

  uniqueness<local_store, manual_clock> here;
  uniqueness<remote_store, manual_clock> away;
};

template <class Test>
void on_both(keys& b, Test test) {
  test(b.here);
  test(b.away);
}

struct ran {
  auto handler() {
    return [this](std::exception_ptr e, bool did) {
      ++calls;
      ec = detail::error_of(e);
      yes = did;
      try {
        if (e) std::rethrow_exception(e);
      } catch (unique_conflict_error const& conflict) {
        other = conflict.holder();
      } catch (...) {
      }
    };
  }
  int calls = 0;
  error_code ec;
  std::string other;  // who has the key, if that is why it failed
  bool yes = false;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(locks)

BOOST_AUTO_TEST_CASE(R2_one_holder_at_a_time) {
  keys b;
  on_both(b, [&](auto const& u) {
    auto first = b.try_lock(u);
    auto second = b.try_lock(u);
    BOOST_TEST(first.value.has_value());
    BOOST_TEST(!second.ec);
    BOOST_TEST(!second.value.has_value());
    outcome<lock_info> info;
    u.async_inspect("k", info.handler());
    b.settle();
    BOOST_TEST(info.value.held);
    BOOST_TEST(info.value.holder == first.value->holder());
    BOOST_TEST(info.value.fence == first.value->fence());
    auto const fence = first.value->fence();
    first.value.reset();
    b.settle();
    auto third = b.try_lock(u);
    BOOST_TEST(third.value->fence() > fence);
  });
  BOOST_TEST(!b.held());
}

BOOST_AUTO_TEST_CASE(try_lock_is_for_stores_that_execute_now) {
  constexpr auto can_try = [](auto const& u) { return requires { u.try_lock("k"); }; };
  keys b;
  BOOST_TEST(can_try(b.here));
  BOOST_TEST(!can_try(b.away));
  auto const l = b.here.try_lock("k").value();
  BOOST_TEST(l.has_value());
  BOOST_TEST(!b.here.try_lock("k").value().has_value());
}

BOOST_AUTO_TEST_CASE(F13_releasing_late_leaves_the_successor_alone) {
  keys b;
  on_both(b, [&](auto const& u) {
    auto late = b.try_lock(u);
    b.clock.advance(30s);
    auto const successor = b.try_lock(u);
    BOOST_TEST(successor.value.has_value());
    outcome<bool> freed;
    u.async_release(std::move(*late.value), freed.handler());
    b.settle();
    BOOST_TEST(!freed.ec);
    BOOST_TEST(!freed.value);
    outcome<steady_time> renewed;
    u.async_renew(*successor.value, renewed.handler());
    b.settle();
    BOOST_TEST(!renewed.ec);
  });
}

BOOST_AUTO_TEST_CASE(waits_until_it_is_free) {
  keys b;
  on_both(b, [&](auto const& u) {
    auto first = b.try_lock(u);
    outcome<lock> second;
    u.async_lock("k", second.handler());
    b.pass(10s);
    BOOST_TEST(!second.done());
    first.value.reset();
    b.pass(1s);
    BOOST_TEST(second.done());
    BOOST_TEST(bool{second.value});
  });
}

BOOST_AUTO_TEST_CASE(the_others_expiry_is_not_slept_through) {
  keys b;
  on_both(b, [&](auto const& u) {
    auto const first = b.try_lock(u);
    outcome<lock> second;
    u.async_lock("k", {.wait = 1h}, second.handler());
    b.pass(30s - 1ns);
    BOOST_TEST(!second.done());
    b.pass(1ns);
    BOOST_TEST(second.done());
  });
}

BOOST_AUTO_TEST_CASE(times_out_exactly_when_the_wait_is_over) {
  keys b;
  on_both(b, [&](auto const& u) {
    auto const first = b.try_lock(u);
    outcome<lock> second;
    u.async_lock("k", {.wait = 3s}, second.handler());
    b.pass(3s - 1ns);
    BOOST_TEST(second.calls == 0);
    b.pass(1ns);
    BOOST_TEST(second.ec == code(errc::timed_out));
  });
  BOOST_TEST(b.wire->seen["release"] == 1);  // of the first: the second left nothing to be cleaned
                                             // up
}

BOOST_AUTO_TEST_CASE(bad_input_is_a_typed_error) {
  keys b;
  on_both(b, [&](auto const& u) {
    BOOST_TEST(b.try_lock(u, "").ec == code(errc::invalid_key));
    BOOST_TEST(b.claim(u, "", 1s).ec == code(errc::invalid_key));
    BOOST_TEST(b.claim(u, "k", 0s).ec == code(errc::invalid_ttl));
    BOOST_TEST(b.claim(u, "k", limits::span + 1ns).ec == code(errc::invalid_ttl));
  });
  std::vector<std::pair<uniqueness_options, errc>> const bad{
      {{.ttl = 0s}, errc::invalid_ttl},
      {{.poll = 0s}, errc::invalid_option},
      {{.on_conflict = conflict_policy::replace}, errc::invalid_option},
      {{.on_conflict = conflict_policy::reschedule}, errc::invalid_option},
      {{.on_conflict = conflict_policy{99}}, errc::invalid_option},
  };
  for (auto const& [options, expected] : bad) {
    keys c{options};
    BOOST_TEST(c.try_lock(c.away).ec == code(expected));
    BOOST_TEST(c.claim(c.away, "k", 1s).ec == code(expected));
    BOOST_TEST(c.here.try_lock("k").error() == code(expected));
    BOOST_TEST(c.wire->seen.empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(claims)

BOOST_AUTO_TEST_CASE(are_granted_once_within_their_time) {
  keys b;
  on_both(b, [&](auto const& u) {
    BOOST_TEST(b.claim(u, "c", 10s).value);
    BOOST_TEST(!b.claim(u, "c", 10s).value);
    BOOST_TEST(b.claim(u, "d", 10s).value);
    b.pass(10s - 1ns);
    BOOST_TEST(!b.claim(u, "c", 10s).value);
    b.pass(1ns);
    BOOST_TEST(b.claim(u, "c", 10s).value);
  });
  BOOST_TEST(b.wire->seen["release"] == 0);
}

BOOST_AUTO_TEST_CASE(F45_one_that_nobody_heard_of_can_be_made_again) {
  keys b;
  b.wire->next.push_back({.error = code(errc::outcome_unknown)});
  BOOST_TEST(b.claim(b.away, "c", 1h).ec == code(errc::outcome_unknown));
  BOOST_TEST(b.claim(b.away, "c", 1h).value);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(with_lock)

BOOST_AUTO_TEST_CASE(runs_the_body_and_returns_its_value) {
  keys b;
  auto body = [&](lock const& l) -> asio::awaitable<std::string> {
    BOOST_TEST(b.held());
    co_return std::string{l.key()};
  };
  on_both(b, [&](auto const& u) {
    std::optional<std::string> got;
    u.async_with_lock("k", body,
                      [&](std::exception_ptr, std::optional<std::string> v) { got = v; });
    b.settle();
    BOOST_TEST(got.value() == "k");
    BOOST_TEST(!b.held());
  });
}

BOOST_AUTO_TEST_CASE(a_conflict_is_what_the_policy_says) {
  for (auto const policy :
       {conflict_policy::reject, conflict_policy::discard, conflict_policy::log}) {
    keys b{{.ttl = 30s, .on_conflict = policy}};
    std::vector<std::string> told;
    b.here.on_conflict([&](std::string_view k, std::string_view h) {
      told.push_back(std::string{k} + " " + std::string{h});
      throw 1;  // nobody cares
    });
    b.away.on_conflict([&](std::string_view k, std::string_view h) {
      told.push_back(std::string{k} + " " + std::string{h});
    });
    bool never = false;
    auto body = [&]() -> asio::awaitable<void> {
      never = true;
      co_return;
    };
    on_both(b, [&](auto const& u) {
      told.clear();
      auto const taken = b.try_lock(u);
      ran r;
      u.async_with_lock("k", body, r.handler());
      b.settle();
      BOOST_TEST(r.calls == 1);
      BOOST_TEST(!r.yes);
      BOOST_TEST(r.ec ==
                 (policy == conflict_policy::reject ? code(errc::unique_conflict) : error_code{}));
      BOOST_TEST(told.size() == (policy == conflict_policy::log ? 1u : 0u));
      std::string const holder{taken.value->holder()};
      if (!told.empty()) BOOST_TEST(told[0] == "k " + holder);
      BOOST_TEST(r.other == (policy == conflict_policy::reject ? holder : ""));
    });
    BOOST_TEST(!never);
  }
}

BOOST_AUTO_TEST_CASE(can_wait_before_it_is_a_conflict) {
  keys b;
  on_both(b, [&](auto const& u) {
    auto taken = b.try_lock(u);
    auto body = []() -> asio::awaitable<void> { co_return; };
    ran in_time;
    ran too_late;
    u.async_with_lock("k", {.wait = 2s}, body, too_late.handler());
    u.async_with_lock("k", {.wait = 10s}, body, in_time.handler());
    b.pass(3s);
    BOOST_TEST(too_late.ec == code(errc::unique_conflict));
    taken.value.reset();
    b.pass(1s);
    BOOST_TEST(in_time.yes);
    BOOST_TEST(!in_time.ec);
  });
}

BOOST_AUTO_TEST_CASE(F16_is_free_again_when_the_body_fails) {
  keys b;
  auto body = [&]() -> asio::awaitable<void> {
    throw std::runtime_error{"no"};
    co_return;
  };
  on_both(b, [&](auto const& u) {
    std::exception_ptr failure;
    u.async_with_lock("k", body, [&](std::exception_ptr e, bool) { failure = e; });
    b.settle();
    BOOST_CHECK_THROW(std::rethrow_exception(failure), std::runtime_error);
    BOOST_TEST(!b.held());
  });
}

BOOST_AUTO_TEST_CASE(F6_is_renewed_and_lost_aloud) {
  keys b;
  auto body = [&]() -> asio::awaitable<void> {
    co_await b.clock.async_wait_until(b.io.get_executor(), b.clock.steady_now() + 5min,
                                      asio::use_awaitable);
  };
  ran good;
  b.away.async_with_lock("k", body, good.handler());
  b.pass(5min);
  BOOST_TEST(good.yes);
  ran bad;
  b.away.async_with_lock("k", body, bad.handler());
  b.settle();
  b.wire->usual = {.executes = false, .error = code(errc::store_unavailable)};
  b.pass(29s);
  BOOST_TEST(bad.ec == code(errc::lease_lost));
  BOOST_TEST(!bad.yes);
}

BOOST_AUTO_TEST_SUITE_END()
