// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A primitive is composed of policies: where its state lives, how it waits, how long before it
// tries again, and what the store gets to see of keys. Each is a type and a value, chosen at
// compile time; what is not named has a default. Other stores, such as weir::redis_store, stand
// here as well.

#include "weir.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <string_view>

using namespace std::chrono_literals;

// store: in this process, by a clock that moves only when it is told to
using store_type = weir::basic_memory_store<weir::manual_clock>;

// backoff: 100 ms, doubling, never above 5 s, each drawn between half of that and all
using patient =
    weir::jittered_backoff<weir::capped_backoff<weir::exponential_backoff>, weir::equal_jitter>;

// Names for what a program uses in many places.
using turns_type = weir::limiter<store_type, weir::manual_clock, patient>;
using rate_type = weir::rate_limiter<store_type, weir::manual_clock, weir::hmac_key>;

int main() {
  boost::asio::io_context io;
  weir::manual_clock clock;
  store_type store{io.get_executor(), {}, clock};

  patient const backoff{weir::capped_backoff{weir::exponential_backoff{100ms}, 5s}};
  turns_type turns{store, {.limit = 2, .ttl = 30s}, clock, backoff};

  // begin: quotas
  // Two quotas, of which a take needs both; keys are stored as their HMAC, so who can read the
  // store cannot try guesses either.
  weir::quota const limits[] = {weir::quota::per_second(2).burst(4), weir::quota::per_hour(5)};
  rate_type rate{store, limits, clock, weir::hmac_key{"a secret of 32 bytes, kept elsewhere"}};
  // end: quotas

  auto ask = [&](std::string_view user) {
    auto const d = rate.try_take(user).value();
    std::printf("%s, %u left by the quota of %s\n", d.allowed ? "allowed" : "denied",
                static_cast<unsigned>(d.remaining), d.binding == 0 ? "a second" : "an hour");
  };
  for (int i = 0; i != 5; ++i) ask("ann");
  clock.advance(1s);  // no time passes but this
  for (int i = 0; i != 2; ++i) ask("ann");

  weir::permit const first = turns.try_acquire("gpt").value().value();
  weir::permit const second = turns.try_acquire("gpt").value().value();
  std::printf("a third permit: %s\n", turns.try_acquire("gpt").value() ? "yes" : "no");
  std::printf("waits by the backoff:");
  for (unsigned i = 0; i != 8; ++i) {
    auto const wait = backoff(i, {}, 0);
    std::printf(" %d ms", static_cast<int>(wait / 1ms));
  }
  std::printf("\n");
}
