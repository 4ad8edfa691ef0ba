// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Jobs of every fate, traced: traces.py says what has to come of it at the receiver. What only this
// process can see, the current span, is required here.
//
// usage: scenarios memory|FILE (a SQLite file)
#include "weir/backoff/constant.hpp"
#include "weir/job_queue.hpp"
#include "weir/observe/observed.hpp"
#include "weir/observe/opentelemetry.hpp"
#include "weir/store/memory.hpp"
#include "weir/store/sqlite.hpp"
#include "weir/trace_context.hpp"
#include "weir/worker.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <nlohmann/json.hpp>
#include <opentelemetry/exporters/otlp/otlp_http_exporter_factory.h>
#include <opentelemetry/exporters/otlp/otlp_http_metric_exporter_factory.h>
#include <opentelemetry/metrics/provider.h>
#include <opentelemetry/sdk/metrics/export/periodic_exporting_metric_reader_factory.h>
#include <opentelemetry/sdk/metrics/export/periodic_exporting_metric_reader_options.h>
#include <opentelemetry/sdk/metrics/meter_provider.h>
#include <opentelemetry/sdk/metrics/push_metric_exporter.h>
#include <opentelemetry/sdk/trace/batch_span_processor_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_options.h>
#include <opentelemetry/sdk/trace/processor.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>
#include <opentelemetry/trace/provider.h>
#include <opentelemetry/trace/scope.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace asio = boost::asio;
namespace otel = opentelemetry;
using namespace std::chrono_literals;

namespace {

struct task {
  std::string fate;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(task, fate)

struct walk {
  int steps = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(walk, steps)

struct stall {
  bool for_ever = true;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(stall, for_ever)

/// Enqueues another job, with the headers of its own.
struct baton {
  bool passed = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(baton, passed)

}  // namespace

template <>
struct weir::job_traits<task> {
  static constexpr std::string_view kind = "task";
  static constexpr std::uint32_t max_attempts = 2;
  static constexpr weir::duration retention = 1h;
  static constexpr weir::constant_backoff backoff{1ms};
};
template <>
struct weir::job_traits<walk> {
  static constexpr std::string_view kind = "walk";
  static constexpr std::string_view queue = "walks";
  static constexpr weir::duration retention = 1h;
};
template <>
struct weir::job_traits<stall> {
  static constexpr std::string_view kind = "stall";
  static constexpr std::string_view queue = "stalls";
  static constexpr std::uint32_t max_attempts = 1;
  static constexpr weir::duration timeout = 5ms;
};
template <>
struct weir::job_traits<baton> {
  static constexpr std::string_view kind = "baton";
  static constexpr std::string_view queue = "batons";
};

namespace {

void require(bool holds, char const* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::exit(1);
}

auto tracer() { return otel::trace::Provider::GetTracerProvider()->GetTracer("scenarios"); }
auto current() { return otel::trace::Tracer::GetCurrentSpan()->GetContext(); }

/// A handler that goes on in other threads, beside others of its kind.
asio::awaitable<void> take_steps(walk const& job) {
  auto const mine = current();
  require(mine.IsValid(), "a coroutine begins in its span");
  asio::steady_timer timer{co_await asio::this_coro::executor};
  for (int i = 0; i != job.steps; ++i) {
    timer.expires_after(1ms);
    co_await timer.async_wait(asio::use_awaitable);
    require(current() == mine, "its span is current after each suspension");
    tracer()->StartSpan("step")->End();
  }
}

/// A handler that ends by its time-out: what cancels it has to reach it.
asio::awaitable<void> stand_still(stall const&) {
  asio::steady_timer timer{co_await asio::this_coro::executor, 24h};
  co_await timer.async_wait(asio::use_awaitable);
}

void meet(task const& t, weir::job_context const& job) {
  require(current().IsValid(), "a plain handler runs in its span");
  if (t.fate == "fails once" && job.attempt() == 1) throw std::runtime_error{"the first time"};
  if (t.fate == "fails") throw std::out_of_range{"always"};
  if (t.fate == "is buried") throw weir::give_up{"never"};
  if (t.fate == "is snoozed" && job.snoozes() == 0) throw weir::snooze_for{1ms};
  if (t.fate == "is refused") throw boost::system::system_error{weir::errc::store_full};
}

std::string tenants(std::string_view queue) {
  return queue.starts_with("tenant/") ? "tenant/{id}" : "";
}

asio::awaitable<void> pause() {
  asio::steady_timer timer{co_await asio::this_coro::executor, 2ms};
  co_await timer.async_wait(asio::use_awaitable);
}

/// Well or not.
template <class Queue>
asio::awaitable<void> wait_for_end(Queue const& queue, std::string name, weir::job_id id) {
  for (;;) {
    auto const found = co_await queue.async_find(name, id);
    if (found && weir::is_terminal(found->state)) co_return;
    co_await pause();
  }
}

template <class Queue>
asio::awaitable<void> see_through(Queue const& queue, std::string_view fate) {
  task const job{std::string{fate}};
  auto const added = co_await queue.async_enqueue(job, {.queue = fate});
  co_await wait_for_end(queue, std::string{fate}, added.id);
}

template <class Queue>
asio::awaitable<void> wait_for(Queue const& queue, std::string name, std::uint64_t completed) {
  for (;;) {
    auto const stats = co_await queue.async_stats(name);
    if (stats.completed == completed) co_return;
    co_await pause();
  }
}

template <class Store>
asio::awaitable<void> play(Store plain) {
  weir::opentelemetry_observer const tracing{
      {.destination_template = tenants, .shards = plain.shard_count()}};
  weir::observed store{plain, tracing};
  weir::job_queue const queue{store};
  weir::worker worker{store, {.poll = 5ms}};
  worker.around(tracing.process_spans());
  worker.handle(meet);
  worker.handle(take_steps);
  worker.handle(stand_still);
  worker.handle([&queue](baton const&, weir::job_context& job) -> asio::awaitable<void> {
    task const next{"is done"};
    weir::job_headers const headers{job.headers()};  // outlives the view of it
    weir::enqueue_options options{.queue = "passed"};
    options.headers = headers;
    co_await queue.async_enqueue(next, options);
  });

  // One job in a request of the application's.
  {
    auto const request = tracer()->StartSpan("request");
    task const job{"is done"};
    auto operation = [&] {
      otel::trace::Scope const scope{request};
      auto started = queue.async_enqueue(job, {.queue = "request"}, asio::use_future);
      return started;
    }();
    co_await asio::post(asio::use_awaitable);
    while (operation.wait_for(0s) != std::future_status::ready) {
      co_await asio::post(asio::use_awaitable);
    }
    request->End();
  }

  // Several: one has a context of the application's, and one has no room for another header.
  std::vector<task> const several(3, task{"is done"});
  co_await queue.async_enqueue_many(several, {.queue = "several"});
  weir::job_headers given;
  auto const refusal = weir::write_trace_context(
      given,
      weir::trace_context::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=b")
          .value());
  require(!refusal, "a context can be written");
  task const done{"is done"};
  co_await queue.async_enqueue(done, {.queue = "given", .headers = given});
  weir::job_headers const full{{"note", std::string(4080, 'x')}};
  co_await queue.async_enqueue(done, {.queue = "full", .headers = full});
  co_await queue.async_enqueue(done, {.queue = "tenant/zeta"});
  auto const [refused, nothing] =
      co_await queue.async_enqueue(done, {.queue = ""}, asio::as_tuple(asio::use_awaitable));
  require(refused == weir::errc::invalid_queue, "an enqueue is refused");

  // By hand, without a worker: nothing, one job, and a lease that is not there.
  auto const none = co_await queue.async_dequeue("empty", "me", {});
  require(none.jobs.empty(), "it is empty");
  auto claimed = co_await queue.async_dequeue("several", "me", {.limit = 3});
  require(claimed.jobs.size() == 3, "all are claimed");
  for (auto const& job : claimed.jobs) co_await queue.async_return("several", job.id, job.fence);
  auto const [lost, hinted] = co_await queue.async_return("several", weir::id_source{}.job(), 7,
                                                          asio::as_tuple(asio::use_awaitable));
  require(lost == weir::errc::lease_lost, "there is no such lease");

  worker.async_run([](weir::error_code ec) { require(!ec, "the worker runs"); });
  for (auto const* const fate : {"fails once", "fails", "is buried", "is snoozed", "is refused"}) {
    co_await see_through(queue, fate);
  }
  baton const first;
  co_await queue.async_enqueue(first);
  co_await wait_for(queue, "passed", 1);
  walk const two{5};
  std::vector<walk> const walks(4, two);
  auto const begun = co_await queue.async_enqueue_many(walks);
  for (auto const& one : begun) co_await queue.async_wait("walks", one.id);
  for (auto const* const name : {"request", "given", "full", "tenant/zeta"}) {
    co_await wait_for(queue, name, 1);
  }
  co_await wait_for(queue, "several", 3);
  stall const still;
  auto const stalled = co_await queue.async_enqueue(still);
  co_await wait_for_end(queue, "stalls", stalled.id);
  worker.stop();

  // Once more, with the enqueue as the parent of the processing.
  weir::opentelemetry_observer const direct{
      {.meter = otel::metrics::Provider::GetMeterProvider()->GetMeter("second"),
       .create_spans = false,
       .creation_is_parent = true}};
  weir::observed other{plain, direct};
  weir::job_queue const children{other};
  weir::worker second{other, {.poll = 5ms}};
  second.around(direct.process_spans());
  second.handle(meet);
  std::vector<task> const pair(2, task{"is done"});
  co_await children.async_enqueue_many(pair, {.queue = "direct"});
  second.async_run([](weir::error_code ec) { require(!ec, "the second worker runs"); });
  co_await wait_for(children, "direct", 2);
  second.stop();
}

template <class Store>
void play_all(asio::thread_pool& pool, Store store) {
  auto played = asio::co_spawn(pool, play(std::move(store)), asio::use_future);
  played.get();
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 2, "a store is named");
  namespace traces = otel::sdk::trace;
  namespace metrics = otel::sdk::metrics;
  std::shared_ptr<traces::TracerProvider> const spans =
      traces::TracerProviderFactory::Create(traces::BatchSpanProcessorFactory::Create(
          otel::exporter::otlp::OtlpHttpExporterFactory::Create(), {}));
  otel::trace::Provider::SetTracerProvider(
      otel::nostd::shared_ptr<otel::trace::TracerProvider>{spans});
  auto const counts = std::make_shared<metrics::MeterProvider>();
  counts->AddMetricReader(metrics::PeriodicExportingMetricReaderFactory::Create(
      otel::exporter::otlp::OtlpHttpMetricExporterFactory::Create(), {}));
  otel::metrics::Provider::SetMeterProvider(
      otel::nostd::shared_ptr<otel::metrics::MeterProvider>{counts});

  std::string const name = argv[1];
  {
    asio::thread_pool pool{4};
    if (name == "memory") {
      play_all(pool, weir::memory_store{pool.get_executor()});
    } else {
      weir::sqlite_store store{pool.get_executor(), name};
      play_all(pool, store);
    }
    pool.join();
  }
  require(spans->ForceFlush(30s) && counts->ForceFlush(30s), "everything is sent");
  spans->Shutdown();
}
