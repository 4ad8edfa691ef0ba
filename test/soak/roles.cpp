// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/plan.hpp"
#include "soak/process.hpp"
#include "soak/scenarios.hpp"
#include "weir/scheduler.hpp"
#include "weir/worker.hpp"

#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>

// The processes of the application. Each does its work through the primitives, and writes down what
// it wants before and what it got after.
namespace soak {
namespace {

void run_tick(process& p, tick_job const& job, weir::job_context& context) {
  auto r = tick_record(job, context.id());
  r.fence = context.fence();
  r.detail = std::to_string(weir::system_clock::system_now().time_since_epoch().count() - r.n);
  p.log.write(std::move(r));
}

void work(process& p, weir::worker<store>& worker) {
  auto const any = [&p](auto const&, weir::job_context& job) { return handle(p, job); };
  worker.handle<plain_job>(any).handle<unique_job>(any);
  // The version of before a deploy does not know these kinds yet, and leaves them to others.
  if (p.given.role != "old-worker") {
    worker.handle<limited_job>(any).handle<tick_job>(
        [&p](tick_job const& job, weir::job_context& context) { run_tick(p, job, context); });
  }
  worker.on_event([&p](weir::worker_event const& e) {
    using kind = weir::worker_event_kind;
    if (e.job == nullptr || e.job->kind == "tick") return;
    if (e.kind == kind::completed || e.kind == kind::result_dropped) {
      p.log.write({.kind = "completed", .key = text(e.job->id), .fence = e.job->fence});
    } else if (e.kind == kind::dead_lettered) {
      p.log.write({.kind = "dead", .key = text(e.job->id), .fence = e.job->fence});
    }
  });
  p.on_end = [&worker] { worker.stop(); };
}

}  // namespace

int play(assignment const& a) try {
  process p{a};
  std::optional<weir::worker<store>> worker;
  std::optional<weir::scheduler<store>> scheduler;
  auto const several = [&](int n, auto client) {
    for (int i = 0; i != n; ++i) p.client([&p, client] { return client(p); });
  };
  if (a.role == "limiter") {
    several(4, permit_client);
  } else if (a.role == "locker") {
    several(3, lock_client);
  } else if (a.role == "rater") {
    several(3, rate_client);
  } else if (a.role == "enqueuer") {
    several(2, enqueue_client);
  } else if (a.role == "administrator") {
    several(1, administrator);
  } else if (a.role == "inspector") {
    several(1, inspector);
  } else if (a.role == "crowd") {
    several(crowd, crowd_client);
    p.on_end = [&p] { p.io.stop(); };  // and all that waits is destroyed
  } else if (a.role == "key-flood") {
    several(16, key_flood_client);
  } else if (a.role == "sprawl") {
    several(1, sprawl_client);
  } else if (a.role == "outbox") {
    several(1, outbox_client);
  } else if (a.role == "worker" || a.role == "old-worker") {
    worker.emplace(p.at, weir::worker_options{.concurrency = 10,
                                              .lease = lease,
                                              .poll = poll,
                                              .drain = 5s,
                                              .unknown_kind_delay = 200ms});
    work(p, *worker);
    p.client([&]() -> awaitable<> { co_await worker->async_run(token); });
  } else if (a.role == "scheduler") {
    scheduler.emplace(p.at, weir::worker_options{.lease = lease, .poll = poll, .drain = 5s});
    p.on_end = [&scheduler] { scheduler->stop(); };
    p.client([&]() -> awaitable<> { co_await scheduler->async_run(token); });
    several(1, deploys);
  } else if (a.role == "scenario") {
    p.client([&]() -> awaitable<> { co_await play_scenario(a, p.at, p.log); });
  } else {
    throw std::runtime_error{"no role is called " + a.role};
  }
  p.io.run();
  return 0;
} catch (std::exception const& e) {
  std::fprintf(stderr, "weir_soak %s: %s\n", a.role.c_str(), e.what());
  return 1;
}

}  // namespace soak
