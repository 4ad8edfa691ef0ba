// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// How to test code of your own that uses weir: with `manual_clock` no test sleeps, and an hour
// passes in no time.

#include "weir.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

using namespace std::chrono_literals;

// ---- What is tested: three wrong passwords in ten minutes, and one export at a time. ------------

template <class Store, class Clock = weir::system_clock>
class account_guard {
 public:
  explicit account_guard(Store store, Clock clock = Clock{})
      : attempts_{store, weir::quota::per(3, 10min), clock},
        exports_{store, {.limit = 1, .ttl = 1min}, clock} {}

  bool may_try(std::string_view user) const { return attempts_.try_take(user).value().allowed; }

  template <class Handler>  // void(weir::error_code, weir::permit)
  void export_data(std::string_view user, Handler handler) const {
    exports_.async_acquire(std::string{user}, {.wait = 5min}, std::move(handler));
  }

 private:
  weir::rate_limiter<Store, Clock> attempts_;
  weir::limiter<Store, Clock> exports_;
};

// ---- Its tests. ---------------------------------------------------------------------------------

#define CHECK(condition)                                                                           \
  if (!(condition)) {                                                                              \
    std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                   \
    std::exit(1);                                                                                  \
  }

// begin: fixture
struct fixture {
  boost::asio::io_context io{};
  weir::manual_clock clock{};
  weir::basic_memory_store<weir::manual_clock> store{io.get_executor(), {}, clock};
  account_guard<weir::basic_memory_store<weir::manual_clock>, weir::manual_clock> guard{store,
                                                                                        clock};

  /// Lets time pass, one deadline after the other, and all that waits for them run.
  void pass(weir::duration d) {
    auto const end = clock.steady_now() + d;
    io.restart();  // it has stopped if it once had nothing to do
    for (io.poll(); clock.next_deadline() && *clock.next_deadline() <= end; io.poll()) {
      clock.advance_to_next();
    }
    clock.set(end);
    io.poll();
  }
};
// end: fixture

// begin: test
void a_fourth_attempt_has_to_wait() {
  fixture f;
  for (int i = 0; i != 3; ++i) CHECK(f.guard.may_try("ann"));
  CHECK(!f.guard.may_try("ann"));
  CHECK(f.guard.may_try("bob"));
  f.pass(200s - 1ns);
  CHECK(!f.guard.may_try("ann"));
  f.pass(1ns);  // a third of ten minutes: one attempt has come back
  CHECK(f.guard.may_try("ann"));
  CHECK(!f.guard.may_try("ann"));
}
// end: test

void a_second_export_waits_for_the_first() {
  fixture f;
  std::optional<weir::permit> first, second;
  f.guard.export_data("ann", [&](weir::error_code ec, weir::permit p) {
    CHECK(!ec);
    first = std::move(p);
  });
  f.guard.export_data("ann", [&](weir::error_code ec, weir::permit p) {
    CHECK(!ec);
    second = std::move(p);
  });
  f.pass(30s);
  CHECK(first && !second);
  first.reset();  // gives it back
  f.pass(1s);
  CHECK(second);
}

void an_export_after_a_quiet_hour() {
  fixture f;
  f.pass(1h);
  std::optional<weir::permit> got;
  f.guard.export_data("ann", [&](weir::error_code, weir::permit p) { got = std::move(p); });
  f.pass(1s);
  CHECK(got);
}

void an_export_that_hangs_is_missed_for_a_minute() {
  fixture f;
  std::optional<weir::permit> first, second;
  f.guard.export_data("ann", [&](weir::error_code, weir::permit p) { first = std::move(p); });
  f.guard.export_data("ann", [&](weir::error_code, weir::permit p) { second = std::move(p); });
  f.pass(59s);
  CHECK(!second);
  f.pass(1s);  // the lease of the first is over
  CHECK(second);
  CHECK(second->fence() > first->fence());
}

int main() {
  a_fourth_attempt_has_to_wait();
  a_second_export_waits_for_the_first();
  an_export_after_a_quiet_hour();
  an_export_that_hangs_is_missed_for_a_minute();
  std::puts("four tests: ok");
}
