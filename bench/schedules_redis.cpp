// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// How long after a tick its job starts, on a Redis server: one process, with a scheduler and a
// worker on one thread. All schedules have their ticks at the same instants.

#include "redis_bed.hpp"
#include "report.hpp"
#include "weir/job_traits.hpp"
#include "weir/scheduler.hpp"
#include "weir/schedules.hpp"
#include "weir/worker.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/system_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct tick_job {
  std::string schedule;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(tick_job, schedule)

}  // namespace

template <>
struct weir::job_traits<tick_job> {
  static constexpr std::string_view kind = "tick";
  static constexpr std::string_view queue = "ticks";
};

namespace {

/// A store that gives no hints.
template <class Store>
class silent_store {
 public:
  using executor_type = typename Store::executor_type;

  explicit silent_store(Store store) : store_{std::move(store)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }

  template <class C, class Token>
    requires(weir::executes<Store const, C> && !std::same_as<C, weir::command::await_jobs>)
  auto async_execute(C const& c, Token&& token) const {
    return store_.async_execute(c, std::forward<Token>(token));
  }

 private:
  Store store_;
};

/// Ticks are at whole seconds.
double since_the_second() {
  auto const now = std::chrono::system_clock::now();
  return std::chrono::duration<double, std::milli>{now -
                                                   std::chrono::floor<std::chrono::seconds>(now)}
      .count();
}

constexpr int schedules = 25;
constexpr auto measured = 20s;

asio::awaitable<void> put_schedules(weir::redis_store store) {
  weir::schedules const all{store};
  for (int i = 0; i != schedules; ++i) {
    tick_job const job{"schedule " + std::to_string(i)};
    weir::schedule const s{
        .name = job.schedule, .when = weir::every{1s}, .overlap = weir::overlap_policy::allow};
    co_await all.async_put(s, job, {}, asio::use_awaitable);
  }
}

/// The reference: a timer for each second.
asio::awaitable<void> tick_by_timer(weir_bench::samples& out) {
  asio::system_timer timer{co_await asio::this_coro::executor};
  auto next = std::chrono::ceil<std::chrono::seconds>(std::chrono::system_clock::now());
  for (auto const end = next + measured; next < end; next += 1s) {
    timer.expires_at(next);
    co_await timer.async_wait(asio::use_awaitable);
    out.push_back(since_the_second());
  }
}

struct lateness {
  weir_bench::samples ours;
  weir_bench::samples timer;
};

/// From a tick to the start of its job's handler.
template <class Store>
lateness measure(weir_bench::redis_bed& on, Store const& store, weir::duration poll) {
  lateness out;
  int running = 2;
  weir::worker<Store> worker{store, {.poll = poll}};
  weir::scheduler<Store> scheduler{store, {.poll = poll}};
  worker.handle([&](tick_job const&) { out.ours.push_back(since_the_second()); });
  auto const ended = [&](weir::error_code) { --running; };
  worker.async_run(ended);
  scheduler.async_run(ended);
  on.io().restart();
  on.io().run_for(2s);  // what is warmed up by then
  out.ours = {};
  asio::co_spawn(on.io(), tick_by_timer(out.timer), [&](std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
    scheduler.stop();
    worker.stop();
  });
  on.run_until([&] { return running == 0; });
  return out;
}

/// From a tick to its firing: nobody runs jobs.
lateness measure_firing(weir_bench::redis_bed& on) {
  lateness out;
  bool running = true;
  weir::scheduler<weir::redis_store> scheduler{on.store()};
  scheduler.on_event([&](weir::schedule_event const& e) {
    if (e.fired == 1)
      out.ours.push_back(std::chrono::duration<double, std::milli>{e.lateness}.count());
  });
  scheduler.async_run([&](weir::error_code) { running = false; });
  on.io().restart();
  on.io().run_for(2s);
  out.ours = {};
  asio::co_spawn(on.io(), tick_by_timer(out.timer), [&](std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
    scheduler.stop();
  });
  on.run_until([&] { return !running; });
  return out;
}

void add(weir_bench::report& to, std::string const& name, lateness const& l, double bar) {
  auto const figure = [&](std::string_view which, double share) {
    to.add({.name = name + ", " + std::string{which},
            .unit = "ms",
            .ours = l.ours.quantile(share),
            .reference_name = "a timer",
            .reference = l.timer.quantile(share),
            .goal = share > 0.9 ? std::optional{weir_bench::at_most(bar)} : std::nullopt});
  };
  figure("median", 0.5);
  figure("p99", 0.99);
}

/// Queues with a job that is due, and that nobody serves.
void add_backlog(weir_bench::redis_bed& on, int queues) {
  for (int i = 0; i != queues; ++i) {
    weir::new_job job;
    job.id = weir::id_source{}.job();
    job.kind = "unserved";
    job.payload = "{}";
    on.ask(weir::command::enqueue_jobs{"backlog " + std::to_string(i), {&job, 1}});
  }
}

/// Schedules whose ticks are far away.
void add_idle_schedules(weir_bench::redis_bed& on, int count) {
  weir::stored_schedule s;
  s.definition = {.name = "idle", .when = weir::every{weir::limits::span}};
  s.job.kind = "tick";
  s.job.payload = "{}";
  constexpr int batch = 1000;
  for (int first = 0; first < count; first += batch) {
    s.job.queue = "idle " + std::to_string(first / batch);
    auto const payload = weir::detail::encode_record(s);
    std::vector<weir::new_job> jobs;
    for (int i = 0; i != batch; ++i) {
      s.definition.name = "idle " + std::to_string(first + i);
      jobs.push_back(weir::detail::schedule_job(s, payload, 24h));
    }
    on.ask(weir::command::enqueue_jobs{weir::detail::companion_of(s.job.queue), jobs});
  }
}

}  // namespace

int main() {
  weir_bench::report out{"schedules_redis"};
  weir_bench::redis_bed on;
  bool put = false;
  asio::co_spawn(on.io(), put_schedules(on.store()), [&](std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
    put = true;
  });
  on.run_until([&] { return put; });
  out.section("from a tick to the start of its job's handler: 25 schedules, each second");
  add(out, "with hints", measure(on, on.store(), 1s), 50);
  constexpr auto poll = 200ms;
  add(out, "without hints, polling each 200 ms", measure(on, silent_store{on.store()}, poll), 200);
  add_idle_schedules(on, 100'000);
  add(out, "beside 100,000 schedules", measure(on, on.store(), 1s), 50);
  out.section("from a tick to the enqueue of its job");
  add_backlog(on, 2'000);
  add(out, "beside 2,000 queues with jobs that nobody runs", measure_firing(on), 50);
  out.finish();
}
