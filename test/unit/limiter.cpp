// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/limiter.hpp"

#include "lease_bed.hpp"
#include "weir/backoff/constant.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/store/memory.hpp"
#include "weir/uniqueness.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace lease_test;

namespace {

struct limiters : ground {
  explicit limiters(limiter_options o = {.limit = 2, .ttl = 30s})
      : here{local, o, clock},
        away{remote, o, clock} {}

  template <class L>
  outcome<std::optional<permit>> try_acquire(L const& l, std::string key = "k") {
    outcome<std::optional<permit>> got;
    l.async_try_acquire(std::move(key), got.handler());
    BOOST_TEST(got.calls == 0);  // never inline
    settle();
    BOOST_TEST(got.calls == 1);
    return got;
  }
  template <class L>
  outcome<bool> release(L const& l, permit p) {
    outcome<bool> freed;
    l.async_release(std::move(p), freed.handler());
    settle();
    BOOST_TEST(freed.calls == 1);
    return freed;
  }

  limiter<local_store, manual_clock> here;
  limiter<remote_store, manual_clock> away;
};

template <class Test>
void on_both(limiters& b, Test test) {
  test(b.here);
  test(b.away);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(limiter_once)

BOOST_AUTO_TEST_CASE(a_store_without_an_executor_serves_calls_that_do_not_wait) {
  memory_store const store{memory_store::executor_type{}};
  limiter const l{store, {.limit = 1}};
  auto const p = l.try_acquire("k");
  BOOST_TEST((p.has_value() && p->has_value()));
  BOOST_TEST((uniqueness{store}.try_lock("k").has_value()));
}

BOOST_AUTO_TEST_CASE(R1_grants_up_to_the_limit) {
  limiters b;
  on_both(b, [&](auto const& l) {
    auto a = b.try_acquire(l);
    auto c = b.try_acquire(l);
    auto refused = b.try_acquire(l);
    BOOST_TEST(!a.ec);
    BOOST_TEST(a.value.has_value());
    BOOST_TEST(c.value->in_use() == 2u);
    BOOST_TEST(!refused.ec);
    BOOST_TEST(!refused.value.has_value());
    BOOST_TEST(b.try_acquire(l, "another").value.has_value());
    a.value.reset();
    b.settle();
    BOOST_TEST(b.try_acquire(l).value.has_value());
  });
}

BOOST_AUTO_TEST_CASE(deduces_and_defaults) {
  ground b;
  weir::limiter plain{b.local};
  static_assert(std::same_as<decltype(plain), limiter<local_store, system_clock>>);
  BOOST_TEST(plain.options().limit == 1u);
  BOOST_TEST((plain.options().ttl == 30s));
  weir::limiter named{b.local, {.limit = 10, .ttl = 5s}};
  BOOST_TEST(named.options().limit == 10u);
  weir::limiter full{b.local, {.limit = 10}, b.clock, constant_backoff{10ms}, id_source::seeded(1)};
  static_assert(std::same_as<decltype(full), limiter<local_store, manual_clock, constant_backoff>>);
  auto const copy = full;  // shares everything
  BOOST_TEST(copy.try_acquire("k").value().has_value());
}

BOOST_AUTO_TEST_CASE(try_acquire_is_for_stores_that_execute_now) {
  constexpr auto can_try = [](auto const& l) { return requires { l.try_acquire("k"); }; };
  limiters b;
  BOOST_TEST(can_try(b.here));
  BOOST_TEST(!can_try(b.away));
}

BOOST_AUTO_TEST_CASE(bad_input_is_a_typed_error_and_changes_nothing) {
  limiters b;
  on_both(b, [&](auto const& l) {
    BOOST_TEST(b.try_acquire(l, "").ec == code(errc::invalid_key));
    BOOST_TEST(b.try_acquire(l, std::string(limits::key_size + 1, 'k')).ec ==
               code(errc::invalid_key));
    BOOST_TEST(b.try_acquire(l, std::string(limits::key_size, 'k')).value.has_value());
    outcome<permit> got;
    l.async_acquire("", {.wait = 1s}, got.handler());
    b.settle();
    BOOST_TEST(got.ec == code(errc::invalid_key));
    outcome<permit> negative;
    l.async_acquire("k", {.wait = -1ns}, negative.handler());
    outcome<permit> endless;
    l.async_acquire("k", {.wait = limits::span + 1ns}, endless.handler());
    b.settle();
    BOOST_TEST(negative.ec == code(errc::invalid_wait));
    BOOST_TEST(endless.ec == code(errc::invalid_wait));
    outcome<permit_census> seen;
    l.async_inspect("k", limits::batch + 1, seen.handler());
    b.settle();
    BOOST_TEST(seen.ec == code(errc::invalid_batch));
  });
  BOOST_TEST(b.here.try_acquire("").error() == code(errc::invalid_key));
  BOOST_TEST(b.wire->seen["release"] == 1);  // of the one that was granted
}

BOOST_AUTO_TEST_CASE(bad_options_fail_every_operation_that_would_use_them) {
  std::vector<std::pair<limiter_options, errc>> const bad{
      {{.limit = 0}, errc::invalid_limit},
      {{.limit = limits::permits + 1}, errc::invalid_limit},
      {{.ttl = 0s}, errc::invalid_ttl},
      {{.ttl = -1s}, errc::invalid_ttl},
      {{.ttl = limits::span + 1ns}, errc::invalid_ttl},
      {{.poll = 0s}, errc::invalid_option},
      {{.poll = -1s}, errc::invalid_option},
      {{.poll = 24h + 1ns}, errc::invalid_option},
  };
  for (auto const& [options, expected] : bad) {
    limiters b{options};
    BOOST_TEST(b.here.try_acquire("k").error() == code(expected));
    on_both(b, [&, e = expected](auto const& l) {
      BOOST_TEST(b.try_acquire(l).ec == code(e));
      outcome<permit> got;
      l.async_acquire("k", got.handler());
      BOOST_TEST(got.calls == 0);
      error_code held;
      bool ran = false;
      auto body = [&]() -> asio::awaitable<void> {
        ran = true;
        co_return;
      };
      l.async_with_permit("k", body, [&](std::exception_ptr x) { held = detail::error_of(x); });
      b.settle();
      BOOST_TEST(got.ec == code(e));
      BOOST_TEST(held == code(e));
      BOOST_TEST(!ran);
    });
    BOOST_TEST(b.wire->seen.empty());
    BOOST_TEST(census(b.local, "k").in_use == 0u);
  }
}

BOOST_AUTO_TEST_CASE(F8_the_limit_is_the_one_asked_for_now) {
  limiters b;
  limiter wider{b.local, {.limit = 3}, b.clock};
  limiter narrower{b.local, {.limit = 1}, b.clock};
  auto const p = b.here.try_acquire("k").value();
  auto const q = b.here.try_acquire("k").value();
  BOOST_TEST(!b.here.try_acquire("k").value().has_value());
  auto const r = wider.try_acquire("k").value();
  BOOST_TEST(r.has_value());
  BOOST_TEST(!narrower.try_acquire("k").value().has_value());
  BOOST_TEST(census(b.local, "k").in_use == 3u);  // nothing was revoked
}

BOOST_AUTO_TEST_CASE(F9_a_ttl_below_a_second_is_kept) {
  limiters b{{.limit = 1, .ttl = 2ms}};
  auto const p = b.here.try_acquire("k").value();
  BOOST_TEST(p.has_value());
  b.clock.advance(2ms - 1ns);
  BOOST_TEST(!b.here.try_acquire("k").value().has_value());
  b.clock.advance(1ns);
  BOOST_TEST(b.here.try_acquire("k").value().has_value());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(limiter_unknown_outcomes)

BOOST_AUTO_TEST_CASE(F45_a_permit_that_was_granted_unheard_is_given_back) {
  limiters b;
  b.wire->next.push_back({.error = code(errc::outcome_unknown)});
  auto const got = b.try_acquire(b.away);
  BOOST_TEST(got.ec == code(errc::outcome_unknown));
  BOOST_TEST(!got.value.has_value());
  BOOST_TEST(b.wire->seen["release"] == 1);
  BOOST_TEST(census(*b.wire, "k").in_use == 0u);
}

BOOST_AUTO_TEST_CASE(an_error_of_the_client_library_is_as_good_as_unknown) {
  limiters b;
  b.wire->next.push_back({.error = asio::error::connection_reset});
  BOOST_TEST(b.try_acquire(b.away).ec == asio::error::connection_reset);
  BOOST_TEST(census(*b.wire, "k").in_use == 0u);
}

BOOST_AUTO_TEST_CASE(what_was_definitely_not_done_is_not_undone) {
  limiters b;
  for (auto const e : {errc::store_unavailable, errc::store_full, errc::closed}) {
    b.wire->next.push_back({.executes = false, .error = code(e)});
    BOOST_TEST(b.try_acquire(b.away).ec == code(e));
  }
  BOOST_TEST(b.wire->seen["release"] == 0);
}

BOOST_AUTO_TEST_CASE(F12_a_permit_that_is_over_when_it_comes_is_none) {
  limiters b;
  b.wire->usual.answers = false;
  outcome<std::optional<permit>> got;
  b.away.async_try_acquire("k", got.handler());
  b.wire->deliver();
  b.clock.advance(29s);  // not trusted any more
  b.settle();
  BOOST_TEST(got.ec == code(errc::lease_lost));
  BOOST_TEST(!got.value.has_value());
  b.wire->deliver_all();
  BOOST_TEST(census(*b.wire, "k").in_use == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(limiter_release_renew_inspect)

BOOST_AUTO_TEST_CASE(release_says_whether_it_freed) {
  limiters b;
  on_both(b, [&](auto const& l) {
    auto got = b.try_acquire(l);
    auto freed = b.release(l, std::move(*got.value));
    BOOST_TEST(!freed.ec);
    BOOST_TEST(freed.value);
    BOOST_TEST(!b.release(l, permit{}).value);
    auto late = b.try_acquire(l);
    b.clock.advance(30s);
    freed = b.release(l, std::move(*late.value));
    BOOST_TEST(!freed.ec);
    BOOST_TEST(!freed.value);
  });
  BOOST_TEST(b.wire->seen["release"] == 2);
}

BOOST_AUTO_TEST_CASE(a_release_that_failed_is_tried_once_more) {
  limiters b;
  auto got = b.try_acquire(b.away);
  b.wire->next.push_back({.executes = false, .error = code(errc::store_unavailable)});
  auto const freed = b.release(b.away, std::move(*got.value));
  BOOST_TEST(freed.ec == code(errc::store_unavailable));
  BOOST_TEST(census(*b.wire, "k").in_use == 0u);
}

BOOST_AUTO_TEST_CASE(a_permit_of_another_limiter_is_given_back_there) {
  limiters b;
  limiter other{b.local, {.limit = 1}, b.clock};
  auto p = other.try_acquire("k").value();
  BOOST_TEST(b.release(b.here, std::move(*p)).ec == code(errc::invalid_option));
  BOOST_TEST(census(b.local, "k").in_use == 0u);
  auto q = other.try_acquire("k").value();
  outcome<steady_time> renewed;
  b.here.async_renew(*q, renewed.handler());
  b.settle();
  BOOST_TEST(renewed.ec == code(errc::invalid_option));
}

BOOST_AUTO_TEST_CASE(renew_prolongs_from_now) {
  limiters b;
  on_both(b, [&](auto const& l) {
    auto got = b.try_acquire(l);
    b.clock.advance(20s);
    outcome<steady_time> renewed;
    l.async_renew(*got.value, renewed.handler());
    permit const moved = std::move(*got.value);  // while it is under way
    b.settle();
    BOOST_TEST(!renewed.ec);
    BOOST_TEST((renewed.value == b.clock.steady_now() + 30s));
    BOOST_TEST((moved.expires_at() == renewed.value));
    b.clock.advance(20s);
    outcome<permit_census> seen;
    l.async_inspect("k", 10, seen.handler());
    b.settle();
    BOOST_TEST(seen.value.in_use == 1u);
    BOOST_TEST(seen.value.holders.at(0).holder == moved.holder());
    BOOST_TEST((seen.value.holders.at(0).expires_in == 10s));
  });
}

BOOST_AUTO_TEST_CASE(R5_a_lost_permit_cannot_be_renewed) {
  limiters b;
  on_both(b, [&](auto const& l) {
    auto got = b.try_acquire(l);
    auto const before = got.value->expires_at();
    b.clock.advance(30s);
    auto const successor = b.try_acquire(l);
    outcome<steady_time> renewed;
    l.async_renew(*got.value, renewed.handler());
    outcome<steady_time> empty;
    l.async_renew(permit{}, empty.handler());
    b.settle();
    BOOST_TEST(renewed.ec == code(errc::lease_lost));
    BOOST_TEST(empty.ec == code(errc::lease_lost));
    BOOST_TEST((got.value->expires_at() == before));
    BOOST_TEST(successor.value->fence() > got.value->fence());
  });
}

BOOST_AUTO_TEST_SUITE_END()
