// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Two processes on one store, of which prometheus_alerts.py makes Prometheus'
// samples: every 15 s their metrics as they are scraped. Both have their everyday troubles, and
// from minute 10 on the one that is named.
//
// usage: states healthy|WeirJobsWaitTooLong|…
#include "weir/backoff/constant.hpp"
#include "weir/clock/manual.hpp"
#include "weir/job_queue.hpp"
#include "weir/limiter.hpp"
#include "weir/log.hpp"
#include "weir/observe/observed.hpp"
#include "weir/observe/prometheus.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/faulty_store.hpp"
#include "weir/worker.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using weir::testing::fault;

namespace {

/// A job: what its handler is to do, and for how long.
struct task {
  std::string does;
  int seconds = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(task, does, seconds)

}  // namespace

template <>
struct weir::job_traits<task> {
  static constexpr std::string_view kind = "task";
  static constexpr std::string_view queue = "mail";
  static constexpr std::uint32_t max_attempts = 1000;
};

namespace {

using memory = weir::basic_memory_store<weir::manual_clock>;
using faulty = weir::testing::faulty_store<memory, weir::manual_clock>;
using observed = weir::observed<faulty, weir::prometheus_metrics, weir::manual_clock>;

constexpr auto scrape_interval = 15s;
constexpr int steps_a_minute = 4;

/// For an operation that may fail, or whose result nobody looks at.
constexpr auto ignore = [](auto const&...) {};

struct world {
  weir::manual_clock clock;
  asio::io_context io;
  memory store{io.get_executor(), {.max_buckets = 100}, clock};
  std::uint64_t seeds = 0;
  bool hopeless = true;  ///< what "try" needs is broken

  /// Runs what can run without time passing.
  void settle() {
    io.restart();
    while (io.poll() != 0) {
    }
  }
  /// Lets time pass, deadline by deadline. A handler may move it further, as one that blocks does.
  void pass_until(weir::steady_time end) {
    settle();
    while (clock.next_deadline() && *clock.next_deadline() <= end) {
      clock.advance_to_next();
      settle();
    }
    if (clock.steady_now() < end) clock.set(end);
    settle();
  }
};

/// A process: its metrics, its way to the store, and its worker.
struct process {
  process(world& w, weir::worker_options options)
      : in{w},
        worker{store, std::move(options), w.clock, weir::constant_backoff{10s},
               weir::id_source::seeded(++w.seeds)} {
    worker.on_event(metrics.watch_worker());
    worker.handle<task>([&w](task const& t,
                             weir::job_context const& context) -> asio::awaitable<void> {
      if (t.does == "fail once" && context.attempt() == 1) throw std::runtime_error{"failed"};
      if (t.does == "try" && w.hopeless) throw weir::give_up{"hopeless"};
      if (t.does == "block") w.clock.advance(std::chrono::seconds{t.seconds});
      auto const executor = co_await asio::this_coro::executor;
      co_await w.clock.async_wait_until(
          executor, w.clock.steady_now() + std::chrono::seconds{t.seconds}, asio::use_awaitable);
    });
    worker.async_run(ignore);
  }
  process(process const&) = delete;
  process& operator=(process const&) = delete;
  ~process() {
    worker.stop();
    in.settle();
  }

  void enqueue(std::string_view does, int seconds = 0, weir::enqueue_options const& options = {}) {
    task const job{std::string{does}, seconds};
    queue.async_enqueue(job, options, ignore);
  }

  world& in;
  weir::testing::fault_injector faults;
  weir::prometheus_metrics metrics{{.bounds = {1s}}};  // no alert looks at how long things took
  observed store{faulty{in.store, faults, in.clock}, metrics, in.clock};
  weir::job_queue<observed, weir::manual_clock> queue{store, weir::id_source::seeded(++in.seeds),
                                                      in.clock};
  weir::limiter<observed, weir::manual_clock> limiter{store, {.limit = 2}, in.clock};
  weir::rate_limiter<observed, weir::manual_clock> rate{store, weir::quota::per_minute(4),
                                                        in.clock};
  weir::worker<observed, weir::manual_clock, weir::constant_backoff> worker;
};

/// Process "a" has trouble, or makes it; "b" serves only "mail", and reads the queues.
struct deployment : world {
  std::vector<weir::permit> permits;  // a process that ends may still get some
  std::optional<process> a;
  std::optional<process> b;

  deployment() {
    start_a();
    b.emplace(*this, weir::worker_options{.queues = {{.name = "mail"}}});
    b->queue.async_pause("paused", ignore);
    for (int i = 0; i != 200; ++i) b->enqueue("nothing", 0, {.queue = "paused"});
  }
  void start_a() {
    a.emplace(*this, weir::worker_options{});
    settle();
  }

  void hold(std::size_t n) {
    for (std::size_t i = 0; i != n; ++i) {
      b->limiter.async_acquire("model", {.wait = 1min},
                               [this](weir::error_code ec, weir::permit p) {
                                 if (!ec) permits.push_back(std::move(p));
                               });
    }
    settle();
  }

  /// No process is without these.
  void everyday(int step) {
    if (step == 5 * steps_a_minute) {  // a restart: its counters begin at 0
      a.reset();
      start_a();
    }
    for (int i = 0; i != 4; ++i) b->enqueue("nothing");
    if (step % 4 == 0) b->enqueue("fail once");
    if (step % 4 == 0) b->enqueue("wait", 40);
    for (int i = 0; i != 8; ++i) b->enqueue("nothing", 0, {.delay = 10h});
    for (int i = 0; i != 2; ++i) b->rate.async_try_take("tenant", ignore);
    permits.clear();
    settle();
    hold(step % 4 == 0 ? 3 : 1);  // one of three waits
    if (step == 30 * steps_a_minute) {
      b->faults.next_of<weir::command::dequeue_jobs>(fault::fail_before);
      b->faults.next_of<weir::command::extend_lease>(fault::never);
    }
  }

  void scrape(int step) {
    b->metrics.async_collect(b->store, ignore);
    b->limiter.async_inspect("model", 0, [this](weir::error_code ec, weir::permit_census const& c) {
      if (!ec) b->metrics.set_limit("model", c);
    });
    settle();
    for (auto const& [name, p] : {std::pair{"a", &a}, std::pair{"b", &b}}) {
      if (*p) std::cout << "# " << step << " " << name << "\n" << (*p)->metrics.text();
    }
  }
};

/// A trouble: how long it lasts, what happens in each of its steps, and at its end.
struct trouble {
  int minutes = 0;
  std::function<void(deployment&, int step)> goes_on;
  std::function<void(deployment&)> ends = [](deployment&) {};
};

/// `n` of the commands of type `C`, or of any, that process "a" asks for next meet with `f`.
template <class... C>
void fail_next(deployment& d, fault f, int n = 5000) {
  for (int i = 0; i != n; ++i) {
    if constexpr (sizeof...(C) == 0) {
      d.a->faults.next(f);
    } else {
      (d.a->faults.next_of<C>(f), ...);
    }
  }
}

std::map<std::string_view, trouble> const troubles{
    {"healthy", {.minutes = 30, .goes_on = [](deployment&, int) {}}},
    {"WeirJobsWaitTooLong",
     {.minutes = 15,
      .goes_on =
          [](deployment& d, int step) {
            if (step == 0) d.a.reset();
            if (step == 0) d.b->enqueue("nothing", 0, {.queue = "pictures"});
          },
      .ends = [](deployment& d) { d.start_a(); }}},
    {"WeirBacklogGrows",
     {.minutes = 20,
      .goes_on =  // more than twenty hands do in a step
      [](deployment& d, int) {
        for (int i = 0; i != 23; ++i) d.b->enqueue("wait", 15);
      }}},
    {"WeirDeadLetters",
     {.minutes = 5,
      .goes_on =
          [](deployment& d, int step) {
            if (step == 0) d.b->enqueue("try", 0, {.queue = "pictures"});
          },
      .ends =
          [](deployment& d) {
            d.hopeless = false;
            d.b->queue.async_list_dead_letters(
                "pictures", 1, {}, [&d](weir::error_code, weir::job_page const& page) {
                  d.b->queue.async_replay("pictures", page.jobs.at(0).id, {}, ignore);
                });
          }}},
    {"WeirJobsFail",
     {.minutes = 20,
      .goes_on = [](deployment& d, int) { d.b->enqueue("fail once", 0, {.queue = "pictures"}); }}},
    {"WeirLeasesLost",
     {.minutes = 5,
      .goes_on =  // the store answers all but renewals
      [](deployment& d, int step) {
        if (step == 0) fail_next<weir::command::extend_lease>(d, fault::never);
      },
      .ends = [](deployment& d) { d.a->faults.heal(); }}},
    {"WeirLeasesStarved",
     {.minutes = 1,
      .goes_on =
          [](deployment& d, int step) {
            if (step == 0) d.b->enqueue("wait", 60, {.queue = "pictures"});
            if (step == 1) d.b->enqueue("block", 27, {.queue = "pictures"});
          }}},
    {"WeirWorkersWithoutStore",
     {.minutes = 3,
      .goes_on =
          [](deployment& d, int step) {
            if (step == 0) fail_next(d, fault::fail_before);
          },
      .ends = [](deployment& d) { d.a->faults.heal(); }}},
    {"WeirStoreCommandsFail",
     {.minutes = 20,
      .goes_on =
          [](deployment& d, int) {
            d.b->faults.next_of<weir::command::enqueue_jobs>(fault::fail_before);
            d.b->faults.next_of<weir::command::enqueue_jobs>(fault::fail_after);
          }}},
    {"WeirLimitWaitersPileUp", {.minutes = 15, .goes_on = [](deployment& d, int) { d.hold(5); }}},
    {"WeirRateLimitSheds", {.minutes = 2, .goes_on = [](deployment& d, int step) {
                              for (int i = 0; i != 200; ++i) {
                                auto const key = std::to_string(step) + " " + std::to_string(i);
                                d.b->rate.async_try_take(key, ignore);
                              }
                            }}}};

void run(trouble const& t) {
  constexpr int begins = 10 * steps_a_minute;
  auto const ends = begins + t.minutes * steps_a_minute;
  deployment d;
  auto const start = d.clock.steady_now();
  for (int step = 0; step <= ends + 20 * steps_a_minute; ++step) {
    auto const due = start + step * scrape_interval;
    d.pass_until(due);
    // A process that is blocked is not scraped.
    if (d.clock.steady_now() == due) d.scrape(step);
    d.everyday(step);
    if (step >= begins && step < ends) t.goes_on(d, step - begins);
    if (step == ends) t.ends(d);
    d.settle();
  }
}

}  // namespace

int main(int argc, char** argv) {
  auto const named = argc == 2 ? troubles.find(argv[1]) : troubles.end();
  if (named == troubles.end()) {
    std::cerr << "usage: states healthy|ALERT\n";
    return 2;
  }
  weir::log::set_sink({});  // trouble is wanted
  run(named->second);
}
