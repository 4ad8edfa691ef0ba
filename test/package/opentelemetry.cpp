// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// There is no SDK here: what is shown is that a job is enqueued and no span is recorded.

#include "weir/observe/opentelemetry.hpp"

#include "weir/command/jobs.hpp"
#include "weir/id_source.hpp"
#include "weir/observe/observed.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <span>

int main() {
  boost::asio::io_context io;
  weir::opentelemetry_observer const tracing;
  weir::observed const store{weir::memory_store{io.get_executor()}, tracing};
  weir::new_job job;
  job.id = weir::id_source{}.job();
  job.kind = "kind";
  auto const enqueued =
      store.execute(weir::command::enqueue_jobs{.queue = "queue", .jobs = std::span{&job, 1}});
  auto const found = store.execute(weir::command::find_job{.queue = "queue", .id = job.id});
  bool const as_it_was = enqueued && found && *found && (*found)->headers.empty();
  std::printf("OpenTelemetry API %s: %s\n", OPENTELEMETRY_VERSION, as_it_was ? "no span" : "?");
  return as_it_was && !weir::current_trace_context().valid() ? 0 : 1;
}
