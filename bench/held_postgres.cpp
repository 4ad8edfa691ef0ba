// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A step through a store after many of its kind beside a transaction that stays open (F79): one
// that has read, as a backup does, or one that has written. Beside those before it was begun.
//
//     bench_held_postgres [uses]

#include "postgres_plain.hpp"
#include "postgres_rig.hpp"
#include "report.hpp"
#include "weir/quota.hpp"
#include "weir/store/postgres.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace weir;
using namespace std::chrono_literals;
using namespace weir_bench;
using boost::asio::awaitable;
using boost::asio::use_awaitable;

constexpr int measured = 1000;

struct step {
  std::string what;
  int share;  // of the uses: what grows with each would take for ever
  std::function<awaitable<void>(postgres_store const&, int)> make;
};

awaitable<void> take(postgres_store const& s, int) {
  std::array const quotas{quota::per(1'000'000'000, 1h)};
  command::take const c{.key = "key", .quotas = quotas};
  (void)co_await s.async_execute(c, use_awaitable);
}

awaitable<void> lock(postgres_store const& s, int) {
  command::acquire_lock const acquire{"key", "holder", 1h};
  (void)co_await s.async_execute(acquire, use_awaitable);
  command::release_lock const release{"key", "holder"};
  (void)co_await s.async_execute(release, use_awaitable);
}

/// Of a new holder each time, as a limiter asks.
awaitable<void> permit(postgres_store const& s, int n) {
  auto const holder = std::to_string(n);
  command::acquire_permit const acquire{.key = "key", .holder = holder, .ttl = 1h};
  (void)co_await s.async_execute(acquire, use_awaitable);
  command::release_permit const release{"key", holder};
  (void)co_await s.async_execute(release, use_awaitable);
}

awaitable<void> cycle_of(postgres_store const& s, int n, std::string_view unique_key) {
  new_job j;
  auto at = j.id.begin();
  for (int rest = n; rest != 0; rest /= 256) *at++ = static_cast<std::uint8_t>(rest % 256);
  j.kind = "kind";
  j.payload = job_payload;
  j.unique_key = unique_key;
  if (!unique_key.empty()) j.strategy = unique_strategy::until_executed;
  std::array const jobs{j};
  command::enqueue_jobs const enqueue{"queue", jobs};
  (void)co_await s.async_execute(enqueue, use_awaitable);
  command::dequeue_jobs const dequeue{"queue", "holder", 0, 1, 1h};
  auto const got = co_await s.async_execute(dequeue, use_awaitable);
  std::array const ended{finished_job{got.jobs.at(0).id, got.jobs[0].fence, {}}};
  command::complete_jobs const complete{"queue", ended};
  (void)co_await s.async_execute(complete, use_awaitable);
}
awaitable<void> cycle(postgres_store const& s, int n) { return cycle_of(s, n, {}); }
awaitable<void> unique_cycle(postgres_store const& s, int n) { return cycle_of(s, n, "key"); }

/// Makes so many, one after the other: microseconds of each.
samples run(rig& r, step const& one, int& made, int times) {
  samples out;
  auto const all = [&]() -> awaitable<void> {
    for (int i = 0; i != times; ++i) {
      auto const start = std::chrono::steady_clock::now();
      co_await one.make(r.store(), ++made);
      std::chrono::duration<double, std::micro> const took =
          std::chrono::steady_clock::now() - start;
      out.push_back(took.count());
    }
  };
  std::optional<std::exception_ptr> ended;
  boost::asio::co_spawn(r.io(), all, [&](std::exception_ptr e) { ended = e; });
  r.io().restart();
  while (!ended) r.io().run_one();
  if (*ended) std::rethrow_exception(*ended);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  int const uses = argc > 1 ? std::atoi(argv[1]) : 20'000;
  // Not in /tmp, which may be memory, unless somebody says so.
  ::setenv("TMPDIR", "/var/tmp", 0);
  postgres_test::server const server{{.settings = {"synchronous_commit=off"}}};
  report out{"held_postgres"};
  int databases = 0;
  for (std::string const does : {"has read", "has written"}) {
    out.section("beside a transaction that " + does);
    for (auto const& one :
         {step{"a take of one bucket", 1, take}, step{"one lock, and its release", 1, lock},
          step{"a permit of one limiter, and its release", 1, permit},
          step{"a job enqueued, dequeued and completed", 1, cycle},
          step{"the same of one unique key", 10, unique_cycle}}) {
      auto const name = "held" + std::to_string(++databases);
      rig r{server, name, 4};
      int made = 0;
      run(r, one, made, measured / 10);
      auto before = run(r, one, made, measured);
      session holds{server, name};
      holds.ask("BEGIN ISOLATION LEVEL REPEATABLE READ");
      holds.ask(does == "has read" ? "SELECT count(*) FROM weir.state"
                                   : "SELECT pg_current_xact_id()");
      auto const many = std::max(uses / one.share, measured);
      run(r, one, made, many - measured);
      out.add({.name = one.what + ", after " + std::to_string(many) +
                       " beside a transaction that " + does,
               .unit = "us",
               .ours = run(r, one, made, measured),
               .reference_name = "before it",
               .reference = std::move(before),
               .goal = ratio_at_most(1.3)});
    }
  }
  out.finish();
}
