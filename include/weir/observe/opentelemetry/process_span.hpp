// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_OPENTELEMETRY_PROCESS_SPAN_HPP
#define WEIR_OBSERVE_OPENTELEMETRY_PROCESS_SPAN_HPP

#include "weir/job_context.hpp"
#include "weir/observe/opentelemetry/messaging_spans.hpp"

#include <boost/uuid/uuid_io.hpp>
#include <opentelemetry/context/context.h>
#include <opentelemetry/trace/span_metadata.h>
#include <opentelemetry/trace/span_startoptions.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace weir::detail {

/// The span of one run of a handler.
class process_span {
 public:
  process_span(std::shared_ptr<tracing_state> in, job_context const& job)
      : in_{std::move(in)},
        to_{*in_, job.queue()},
        began_{std::chrono::steady_clock::now()} {
    auto const creation = creation_context_of(job.headers());
    creation_ = creation;
    auto const id = boost::uuids::to_string(job.id());
    auto const kind = printable(job.kind());
    link_list links;
    add_link(links, creation, {});
    auto attributes = to_.attributes(process_operation);
    add(attributes, "messaging.message.id", id);
    add(attributes, "messaging.weir.job.kind", kind);
    add(attributes, "messaging.weir.job.attempt", std::int64_t{job.attempt()});
    otel::trace::StartSpanOptions options;
    options.kind = otel::trace::SpanKind::kConsumer;
    if (in_->creation_is_parent && creation.IsValid()) {
      options.parent = creation;
    } else {  // whatever is current in this thread has nothing to do with the job
      options.parent = otel::context::Context{otel::trace::kIsRootSpanKey, true};
    }
    span_ = start_span(*in_, to_.span_name(process_operation), attributes, links, options);
    if (!span_->GetContext().IsValid()) return;
    in_->contexts.remember(job.id(), job.fence(), [&](job_context_pair& known) {
      known.creation = creation;
      known.process = span_->GetContext();
    });
  }
  process_span(process_span const&) = delete;
  process_span& operator=(process_span const&) = delete;
  /// A run that is destroyed with its executor ends here.
  ~process_span() { span_->End(); }

  /// In which it is the current span.
  [[nodiscard]] otel::context::Context context() const {
    otel::context::Context const out{otel::trace::kSpanKey, span_};
    return with_processed_creation(out, creation_);
  }

  /// @param thrown out of the handler; null: it has succeeded
  void end(std::exception_ptr const& thrown) noexcept {
    try {
      auto const failure = failure_of_handler(thrown);
      tell_failure(*span_, failure);
      duration const took = std::chrono::steady_clock::now() - began_;
      measuring{to_, process_operation, failure.type}.took(*in_->process_duration, took);
    } catch (...) {  // no memory
    }
    span_->End();
  }

 private:
  /// To be asked again is no failure.
  [[nodiscard]] failure_text failure_of_handler(std::exception_ptr const& thrown) {
    if (!thrown) return {};
    try {
      std::rethrow_exception(thrown);
    } catch (snooze_for const&) {
      span_->SetAttribute("messaging.weir.outcome", "snoozed");
      return {};
    } catch (std::exception const& e) {
      return failure_of(e);
    } catch (...) {
      return {"_OTHER", "an exception that is not a std::exception"};
    }
  }

  std::shared_ptr<tracing_state> in_;
  destination to_;
  std::chrono::steady_clock::time_point began_;
  otel::trace::SpanContext creation_ = otel::trace::SpanContext::GetInvalid();
  span_ptr span_;
};

}  // namespace weir::detail

#endif
