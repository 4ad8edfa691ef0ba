// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_OPENTELEMETRY_HPP
#define WEIR_OBSERVE_OPENTELEMETRY_HPP

#if !__has_include(<opentelemetry/trace/tracer.h>)
#error                                                                                             \
    "weir/observe/opentelemetry.hpp needs OpenTelemetry's C++ API 1.19 or later (CMake: weir::opentelemetry)"
#endif

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/job_context.hpp"
#include "weir/observe/opentelemetry/command_spans.hpp"
#include "weir/observe/opentelemetry/context_executor.hpp"
#include "weir/observe/opentelemetry/messaging_spans.hpp"
#include "weir/observe/opentelemetry/process_span.hpp"
#include "weir/rule/shards.hpp"
#include "weir/trace_context.hpp"
#include "weir/version.hpp"
#include "weir/worker/middleware.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <opentelemetry/metrics/meter.h>
#include <opentelemetry/metrics/provider.h>
#include <opentelemetry/nostd/shared_ptr.h>
#include <opentelemetry/trace/provider.h>
#include <opentelemetry/trace/span_context.h>
#include <opentelemetry/trace/tracer.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir {

/// Options of `opentelemetry_observer`.
struct opentelemetry_options {
  /// Makes the spans. Null: the tracer `weir` of the global provider, as it is at the construction.
  opentelemetry::nostd::shared_ptr<opentelemetry::trace::Tracer> tracer{};
  /// Makes the metrics. Null: the meter `weir` of the global provider, in the same way.
  opentelemetry::nostd::shared_ptr<opentelemetry::metrics::Meter> meter{};
  /// `messaging.destination.template` of a queue, in place of its name: for example `tenant/{id}`
  /// for every queue of a tenant, so that a thousand tenants are one destination. An empty text:
  /// the queue's name. Null: always. Called in any thread; must not throw.
  std::function<std::string(std::string_view queue)> destination_template{};
  /// Shards of the store, for `messaging.destination.partition.id`: 0…1,024. 0: it is left out.
  std::uint32_t shards = 0;
  /// Has each job of several that are enqueued together, up to 100, a create span of its own?
  /// Without it, and where there are more, all have the context of the enqueue's span.
  bool create_spans = true;
  /// Is the creation context of a job the parent of its process span, too, instead of only a link?
  /// Then the processing is part of the trace of the enqueue, however much later it is.
  bool creation_is_parent = false;
  /// Leases whose spans are kept in mind for the command that ends them: 1…10,000,000 of them, the
  /// latest. A settle span of an earlier one has no links.
  std::uint32_t most_leases = 10'000;
};

/// The place of OpenTelemetry's current span, to be written into headers by `write_trace_context`:
/// for what no observed store enqueues, such as a transaction. Not `valid`: there is no span.
[[nodiscard]] inline trace_context current_trace_context() {
  return detail::trace_context_of(::opentelemetry::trace::Tracer::GetCurrentSpan()->GetContext());
}

/// The same place in a trace for OpenTelemetry: as the parent of a span, or for a link.
[[nodiscard]] inline ::opentelemetry::trace::SpanContext to_span_context(
    trace_context const& context) {
  return detail::span_context_of(context);
}

/// Makes spans and metrics by OpenTelemetry of what weir does with jobs, by its semantic
/// conventions for messaging (v1.44).
///
///     weir::opentelemetry_observer const tracing;
///     weir::observed store{weir::redis_store{…}, tracing};  // enqueues, dequeues, settlements
///     weir::worker worker{store};
///     worker.around(tracing.process_spans());  // handlers
///
/// | span | kind | of |
/// |---|---|---|
/// | `enqueue QUEUE` | producer; client where all jobs have a context already | an enqueue |
/// | `create QUEUE` | producer | each of several jobs that are enqueued together |
/// | `dequeue QUEUE`, `obtain_lease QUEUE` | client | a claim that found a job, or failed |
/// | `process QUEUE` | consumer | one run of a handler |
/// | `complete`, `requeue`, `snooze`, `return`, `bury`, `relay` | client | what ends a lease |
///
/// A job takes the context of its create span, or of the enqueue span, along in its headers, if it
/// has room for it and none of the application's. That is its creation context: the other spans
/// link to it. The span of the command that ends the lease of one job is a child of its process
/// span. `error.type` is the name of an `errc`, `operation_aborted`, a category and a number, or
/// the type of an exception.
///
/// It needs OpenTelemetry's API alone: in a program without an SDK nothing is recorded.
/// docs/operations.md has the attributes and the metrics.
///
/// A handle: copies share what they keep in mind. Make one for each meter: OpenTelemetry's SDK
/// (1.19) forgets the measurements of an instrument when another one is made under its name.
/// Thread-safe.
class opentelemetry_observer {
 public:
  /// @param options what spans are made of
  /// Throws `boost::system::system_error` (`invalid_option`) for options outside their ranges.
  explicit opentelemetry_observer(opentelemetry_options options = {}) {
    if (options.shards > rule::most_shards || options.most_leases == 0 ||
        options.most_leases > 10'000'000) {
      throw boost::system::system_error{make_error_code(errc::invalid_option)};
    }
    namespace otel = ::opentelemetry;
    if (!options.tracer) {
      options.tracer =
          otel::trace::Provider::GetTracerProvider()->GetTracer("weir", WEIR_VERSION_STRING);
    }
    if (!options.meter) {
      options.meter =
          otel::metrics::Provider::GetMeterProvider()->GetMeter("weir", WEIR_VERSION_STRING);
    }
    state_ = std::make_shared<detail::tracing_state>(std::move(options.tracer), options.meter,
                                                     options.most_leases);
    state_->destination_template = std::move(options.destination_template);
    state_->shards = options.shards;
    state_->create_spans = options.create_spans;
    state_->creation_is_parent = options.creation_is_parent;
  }

  /// Accompanies an enqueue: what `observed` calls.
  [[nodiscard]] detail::enqueue_spans begin(command::enqueue_jobs const& c) const noexcept {
    return {state_, c};
  }
  /// Accompanies a command that claims jobs, or ends leases: what `observed` calls.
  template <class C>
    requires detail::is_receive<C> || detail::is_settlement<C>
  [[nodiscard]] detail::late_span<C> begin(C const& c) const noexcept {
    return {state_, c};
  }

  /// A middleware for `worker::around` that makes a span of each run of a handler. The span is
  /// OpenTelemetry's current one in the handler, and in middleware that is added later: in a
  /// coroutine after each `co_await`, too, in whatever thread it goes on, as long as it goes on by
  /// its own executor. (`opentelemetry::trace::Scope` must not live across a `co_await`: it belongs
  /// to a thread.) Middleware that is added before it goes on with the ended span as the current
  /// one, until it suspends.
  [[nodiscard]] auto process_spans() const {
    return
        [state = state_](job_context& job, next_handler next) { return process(state, job, next); };
  }

 private:
  static boost::asio::awaitable<void> process(std::shared_ptr<detail::tracing_state> state,
                                              job_context& job, next_handler next) {
    namespace asio = boost::asio;
    std::optional<detail::process_span> span;
    try {
      span.emplace(std::move(state), job);
    } catch (...) {  // no memory, or a template that cannot be had: it runs, and is not traced
    }
    if (!span) {
      co_await next();
      co_return;
    }
    auto inner = co_await asio::this_coro::executor;
    detail::context_executor const executor{std::move(inner), span->context()};
    std::exception_ptr thrown;
    try {
      auto handler = next();
      auto running = asio::co_spawn(executor, std::move(handler), asio::use_awaitable);
      co_await std::move(running);
    } catch (...) {
      thrown = std::current_exception();
    }
    span->end(thrown);
    if (thrown) std::rethrow_exception(thrown);
  }

  std::shared_ptr<detail::tracing_state> state_;
};

}  // namespace weir

#endif
