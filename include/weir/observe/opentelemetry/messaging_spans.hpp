// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_OPENTELEMETRY_MESSAGING_SPANS_HPP
#define WEIR_OBSERVE_OPENTELEMETRY_MESSAGING_SPANS_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/observe/opentelemetry/job_contexts.hpp"
#include "weir/rule/shards.hpp"
#include "weir/time.hpp"
#include "weir/trace_context.hpp"
#include "weir/version.hpp"

#include <boost/asio/error.hpp>
#include <boost/core/demangle.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <opentelemetry/common/attribute_value.h>
#include <opentelemetry/common/key_value_iterable_view.h>
#include <opentelemetry/context/context.h>
#include <opentelemetry/context/context_value.h>
#include <opentelemetry/context/runtime_context.h>
#include <opentelemetry/metrics/meter.h>
#include <opentelemetry/metrics/provider.h>
#include <opentelemetry/metrics/sync_instruments.h>
#include <opentelemetry/nostd/shared_ptr.h>
#include <opentelemetry/nostd/string_view.h>
#include <opentelemetry/nostd/unique_ptr.h>
#include <opentelemetry/nostd/variant.h>
#include <opentelemetry/trace/provider.h>
#include <opentelemetry/trace/span.h>
#include <opentelemetry/trace/span_context.h>
#include <opentelemetry/trace/span_context_kv_iterable_view.h>
#include <opentelemetry/trace/span_startoptions.h>
#include <opentelemetry/trace/tracer.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

// The messaging conventions of OpenTelemetry (v1.44), as far as they do not depend on a command.
namespace weir::detail {

namespace otel = ::opentelemetry;

[[nodiscard]] inline otel::nostd::string_view otel_text(std::string_view s) noexcept {
  return {s.data(), s.size()};
}

/// Views: what they view lives as long as they are used.
using attribute_list =
    std::vector<std::pair<otel::nostd::string_view, otel::common::AttributeValue>>;
using link_list = std::vector<std::pair<otel::trace::SpanContext, attribute_list>>;

inline void add(attribute_list& to, std::string_view key, std::string_view value) {
  to.emplace_back(otel_text(key), otel_text(value));
}
inline void add(attribute_list& to, std::string_view key, std::int64_t value) {
  to.emplace_back(otel_text(key), value);
}

/// An operation of the conventions. The name is that of weir's command.
struct messaging_operation {
  std::string_view name;
  std::string_view type;
};
inline constexpr messaging_operation create_operation{"create", "create"};
inline constexpr messaging_operation enqueue_operation{"enqueue", "send"};
inline constexpr messaging_operation process_operation{"process", "process"};

/// `error.type`: an error has one of few names.
[[nodiscard]] inline std::string error_type_of(error_code ec) {
  if (ec.category() == weir::error_category()) {
    return std::string{to_string(static_cast<errc>(ec.value()))};
  }
  if (ec == boost::asio::error::operation_aborted) return "operation_aborted";
  return std::string{ec.category().name()} + ":" + std::to_string(ec.value());
}

/// How something failed; the type is empty where it did not.
struct failure_text {
  std::string type;
  std::string message;
};

[[nodiscard]] inline failure_text failure_of(error_code ec) {
  if (!ec) return {};
  return {error_type_of(ec), printable(ec.message())};
}
[[nodiscard]] inline failure_text failure_of(std::exception const& e) {
  if (auto const* const system = dynamic_cast<boost::system::system_error const*>(&e)) {
    return {error_type_of(system->code()), printable(e.what())};
  }
  return {boost::core::demangle(typeid(e).name()), printable(e.what())};
}

/// Shared by all copies of an observer.
struct tracing_state {
  using tracer_ptr = otel::nostd::shared_ptr<otel::trace::Tracer>;
  using meter_ptr = otel::nostd::shared_ptr<otel::metrics::Meter>;
  template <class T>
  using instrument = otel::nostd::unique_ptr<T>;

  tracing_state(tracer_ptr by, meter_ptr const& meter, std::size_t most_leases)
      : tracer{std::move(by)},
        contexts{most_leases},
        operation_duration{meter->CreateDoubleHistogram(
            "messaging.client.operation.duration",
            "Duration of messaging operation initiated by a producer or consumer client.", "s")},
        process_duration{meter->CreateDoubleHistogram("messaging.process.duration",
                                                      "Duration of processing operation.", "s")},
        sent{meter->CreateUInt64Counter("messaging.client.sent.messages",
                                        "Number of messages producer attempted to send.",
                                        "{message}")},
        consumed{meter->CreateUInt64Counter(
            "messaging.client.consumed.messages",
            "Number of messages that were delivered to the application.", "{message}")} {}

  tracer_ptr tracer;
  std::function<std::string(std::string_view queue)> destination_template;
  std::uint32_t shards = 0;
  bool create_spans = true;
  bool creation_is_parent = false;
  job_contexts contexts;
  instrument<otel::metrics::Histogram<double>> operation_duration;
  instrument<otel::metrics::Histogram<double>> process_duration;
  instrument<otel::metrics::Counter<std::uint64_t>> sent;
  instrument<otel::metrics::Counter<std::uint64_t>> consumed;
};

/// A queue, as spans and measurements name it.
class destination {
 public:
  destination(tracing_state const& in, std::string_view queue) {
    if (in.destination_template) text_ = in.destination_template(queue);
    is_template_ = !text_.empty();
    text_ = printable(is_template_ ? std::string_view{text_} : queue, limits::key_size);
    if (in.shards != 0) partition_ = std::to_string(rule::shard_of(queue, in.shards));
  }

  [[nodiscard]] std::string span_name(messaging_operation const& op) const {
    return std::string{op.name} + (text_.empty() ? "" : " " + text_);
  }
  /// Attributes of every span and every measurement of the operation. Views of this object.
  [[nodiscard]] attribute_list attributes(messaging_operation const& op) const {
    attribute_list out;
    out.reserve(12);
    add(out, "messaging.system", "weir");
    add(out, "messaging.operation.name", op.name);
    add(out, "messaging.operation.type", op.type);
    add(out, is_template_ ? "messaging.destination.template" : "messaging.destination.name", text_);
    if (!partition_.empty()) add(out, "messaging.destination.partition.id", partition_);
    return out;
  }

 private:
  std::string text_;
  std::string partition_;
  bool is_template_ = false;
};

using span_ptr = otel::nostd::shared_ptr<otel::trace::Span>;

[[nodiscard]] inline span_ptr start_span(tracing_state const& in, std::string_view name,
                                         attribute_list const& attributes, link_list const& links,
                                         otel::trace::StartSpanOptions const& options) {
  return in.tracer->StartSpan(
      otel_text(name), otel::common::KeyValueIterableView<attribute_list>{attributes},
      otel::trace::SpanContextKeyValueIterableView<link_list>{links}, options);
}

inline void tell_failure(otel::trace::Span& span, failure_text const& failure) {
  if (failure.type.empty()) return;
  span.SetAttribute("error.type", otel_text(failure.type));
  span.SetStatus(otel::trace::StatusCode::kError, otel_text(failure.message));
}

/// Adds measurements of one operation, which has failed in this way, or has not.
class measuring {
 public:
  measuring(destination const& to, messaging_operation const& op, std::string_view error_type)
      : attributes_{to.attributes(op)} {
    if (!error_type.empty()) add(attributes_, "error.type", error_type);
  }

  void took(otel::metrics::Histogram<double>& in, duration d) const {
    in.Record(std::chrono::duration<double>(d).count(), view(), otel::context::Context{});
  }
  void counted(otel::metrics::Counter<std::uint64_t>& in, std::uint64_t n) const {
    in.Add(n, view(), otel::context::Context{});
  }

 private:
  [[nodiscard]] otel::common::KeyValueIterableView<attribute_list> view() const noexcept {
    return otel::common::KeyValueIterableView<attribute_list>{attributes_};
  }

  attribute_list attributes_;
};

/// The same place in a trace, as OpenTelemetry has it; invalid: the other is none.
[[nodiscard]] inline otel::trace::SpanContext span_context_of(trace_context const& context) {
  return {otel::trace::TraceId{context.trace_id}, otel::trace::SpanId{context.span_id},
          otel::trace::TraceFlags{static_cast<std::uint8_t>(context.sampled ? 1 : 0)}, true,
          otel::trace::TraceState::FromHeader(otel_text(context.state))};
}
[[nodiscard]] inline trace_context trace_context_of(otel::trace::SpanContext const& context) {
  trace_context out;
  context.trace_id().CopyBytesTo(out.trace_id);
  context.span_id().CopyBytesTo(out.span_id);
  out.sampled = context.IsSampled();
  out.state = context.trace_state()->ToHeader();
  return out;
}

/// The creation context in a job's headers; invalid: there is none, or a malformed one, which the
/// recommendation wants to be passed over.
[[nodiscard]] inline otel::trace::SpanContext creation_context_of(job_headers_view headers) {
  auto const context = read_trace_context(headers);
  return context ? span_context_of(*context) : otel::trace::SpanContext::GetInvalid();
}

inline constexpr char const* processed_creation_key = "weir.processed_creation";

/// The context in which a job is processed that has this creation context.
[[nodiscard]] inline otel::context::Context with_processed_creation(
    otel::context::Context const& in, otel::trace::SpanContext const& creation) {
  otel::nostd::shared_ptr<otel::trace::SpanContext> kept{new otel::trace::SpanContext{creation}};
  otel::context::Context out = in;
  return out.SetValue(processed_creation_key, kept);
}
/// The creation context of the job that is being processed; invalid: none is.
[[nodiscard]] inline otel::trace::SpanContext processed_creation() {
  using kept = otel::nostd::shared_ptr<otel::trace::SpanContext>;
  auto const current = otel::context::RuntimeContext::GetCurrent();
  auto const value = current.GetValue(processed_creation_key);
  auto const* const found = otel::nostd::get_if<kept>(&value);
  return found != nullptr && *found ? **found : otel::trace::SpanContext::GetInvalid();
}

/// Adds a link to a message's creation context, if it has one.
inline void add_link(link_list& to, otel::trace::SpanContext const& creation,
                     std::string_view message_id) {
  if (!creation.IsValid()) return;
  to.emplace_back(creation, attribute_list{});
  if (!message_id.empty()) add(to.back().second, "messaging.message.id", message_id);
}

/// Many messages are counted, and each has its id in its link; one has it in the span.
inline void add_messages(attribute_list& to, std::vector<std::string> const& ids) {
  if (ids.size() == 1) {
    add(to, "messaging.message.id", ids.front());
  } else {
    add(to, "messaging.batch.message_count", static_cast<std::int64_t>(ids.size()));
  }
}

}  // namespace weir::detail

#endif
