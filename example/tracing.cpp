// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The traces of a service, by OpenTelemetry: sent by OTLP to http://localhost:4318, or where
// OTEL_EXPORTER_OTLP_ENDPOINT says.
#include "weir/job_queue.hpp"
#include "weir/observe/observed.hpp"
#include "weir/observe/opentelemetry.hpp"
#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>
#include <opentelemetry/exporters/otlp/otlp_http_exporter_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_options.h>
#include <opentelemetry/sdk/trace/processor.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>
#include <opentelemetry/trace/provider.h>

#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

namespace asio = boost::asio;
namespace otel = opentelemetry;

struct resize {
  std::string picture;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(resize, picture)

template <>
struct weir::job_traits<resize> {
  static constexpr std::string_view kind = "resize";
  static constexpr std::string_view queue = "pictures";
  static constexpr weir::duration retention = std::chrono::hours{1};
};

asio::awaitable<void> serve() {
  auto const executor = co_await asio::this_coro::executor;
  // begin: observe
  weir::opentelemetry_observer const tracing;
  weir::observed store{weir::memory_store{executor}, tracing};  // enqueues, dequeues, settlements
  weir::worker worker{store};
  worker.around(tracing.process_spans());  // handlers
  // end: observe
  worker.handle([](resize const& r) {
    otel::trace::Tracer::GetCurrentSpan()->AddEvent("resized");
    std::cout << r.picture << '\n';
  });
  worker.async_run([](weir::error_code) {});

  weir::job_queue const queue{store};
  resize const job{"a.png"};
  auto const enqueued = co_await queue.async_enqueue(job);
  co_await queue.async_wait("pictures", enqueued.id);
  worker.stop();
}

int main() {
  // begin: sdk
  namespace sdk = otel::sdk::trace;
  std::shared_ptr<sdk::TracerProvider> const provider =
      sdk::TracerProviderFactory::Create(sdk::BatchSpanProcessorFactory::Create(
          otel::exporter::otlp::OtlpHttpExporterFactory::Create(), {}));
  otel::trace::Provider::SetTracerProvider(
      otel::nostd::shared_ptr<otel::trace::TracerProvider>{provider});
  // end: sdk

  asio::io_context io;
  asio::co_spawn(io, serve(), [](std::exception_ptr e) {
    if (e) std::rethrow_exception(e);  // out of io.run()
  });
  io.run();
  provider->Shutdown();  // sends what is left
}
