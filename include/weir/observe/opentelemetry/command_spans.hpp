// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_OPENTELEMETRY_COMMAND_SPANS_HPP
#define WEIR_OBSERVE_OPENTELEMETRY_COMMAND_SPANS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/job_headers.hpp"
#include "weir/observe/opentelemetry/messaging_spans.hpp"
#include "weir/rule/validate.hpp"
#include "weir/time.hpp"
#include "weir/trace_context.hpp"

#include <boost/uuid/uuid_io.hpp>
#include <opentelemetry/context/context.h>
#include <opentelemetry/context/runtime_context.h>
#include <opentelemetry/trace/default_span.h>
#include <opentelemetry/trace/span.h>
#include <opentelemetry/trace/span_context.h>
#include <opentelemetry/trace/span_metadata.h>
#include <opentelemetry/trace/span_startoptions.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The spans of commands: what accompanies them in an observed store.
namespace weir::detail {

/// The send span of an enqueue, and the create spans of its jobs, whose contexts go with them.
class enqueue_spans {
 public:
  using result = command::enqueue_jobs::result;

  enqueue_spans(std::shared_ptr<tracing_state const> in, command::enqueue_jobs const& c) noexcept
      : in_{std::move(in)},
        asked_{c} {
    if (is_kept_by_weir(c.queue)) return;  // what is in there are no messages
    try {
      begin();
    } catch (...) {  // no memory: this one is executed as it is, and not traced
      span_ = span_ptr{};
      jobs_.clear();
    }
  }

  [[nodiscard]] command::enqueue_jobs command() const noexcept {
    return {.queue = asked_.queue, .jobs = jobs_.empty() ? asked_.jobs : jobs_};
  }

  void executed(error_code ec, result const& answer, duration took) noexcept {
    if (!span_) return;
    try {
      auto const failure = failure_of(ec);
      tell_failure(*span_, failure);
      if (answer.size() == 1 && answer.front().outcome != enqueue_outcome::enqueued) {
        span_->SetAttribute("messaging.weir.outcome", otel_text(to_string(answer.front().outcome)));
      }
      destination const to{*in_, asked_.queue};
      measuring const m{to, enqueue_operation, failure.type};
      m.counted(*in_->sent, asked_.jobs.size());
      m.took(*in_->operation_duration, took);
    } catch (...) {  // no memory
    }
    span_->End();
  }

 private:
  void begin() {
    destination const to{*in_, asked_.queue};
    bool const many = asked_.jobs.size() > 1;
    std::vector<std::string> ids;
    std::vector<otel::trace::SpanContext> creations;
    link_list links;
    // One that is passed on with the headers of the job that is processed is none of its own.
    auto const passed_on = processed_creation();
    bool const creates = many && in_->create_spans && asked_.jobs.size() <= most_create_spans &&
                         !rule::validate(asked_);
    bool lends = false;  // is its own context to be the creation context of a job?
    for (auto const& job : asked_.jobs) ids.push_back(boost::uuids::to_string(job.id));
    for (std::size_t i = 0; i != ids.size(); ++i) {
      auto creation = creation_context_of(job_headers_view{asked_.jobs[i].headers});
      if (creation == passed_on) creation = otel::trace::SpanContext::GetInvalid();
      bool const given = creation.IsValid();
      if (!given && creates) creation = create(to, ids[i]);
      add_link(links, creation, many ? std::string_view{ids[i]} : std::string_view{});
      lends = lends || !creation.IsValid();
      creations.push_back(given ? otel::trace::SpanContext::GetInvalid() : creation);
      given_.push_back(given);
    }
    otel::trace::StartSpanOptions options;
    options.kind = lends ? otel::trace::SpanKind::kProducer : otel::trace::SpanKind::kClient;
    auto attributes = to.attributes(enqueue_operation);
    add_messages(attributes, ids);
    span_ = start_span(*in_, to.span_name(enqueue_operation), attributes, links, options);
    inject(creations);
  }

  /// More are more than a processor's queue has room for at a time.
  static constexpr std::size_t most_create_spans = 100;

  [[nodiscard]] otel::trace::SpanContext create(destination const& to,
                                                std::string const& id) const {
    otel::trace::StartSpanOptions options;
    options.kind = otel::trace::SpanKind::kProducer;
    auto attributes = to.attributes(create_operation);
    add(attributes, "messaging.message.id", id);
    auto const span =
        start_span(*in_, to.span_name(create_operation), attributes, link_list{}, options);
    auto out = span->GetContext();
    span->End();
    return out;
  }

  /// Gives each job its creation context: the one made for it, or that of the send span. A context
  /// that the application gave to a job is left alone. An enqueue that would be refused with them,
  /// since headers or all of it became too large, goes without.
  void inject(std::vector<otel::trace::SpanContext> const& creations) {
    auto const own = span_->GetContext();
    std::vector<new_job> jobs{asked_.jobs.begin(), asked_.jobs.end()};
    headers_.reserve(jobs.size());
    for (std::size_t i = 0; i != jobs.size(); ++i) {
      auto const& creation = creations[i].IsValid() ? creations[i] : own;
      if (given_[i] || !creation.IsValid()) continue;
      headers_.push_back(with(jobs[i].headers, trace_context_of(creation)));
      jobs[i].headers = headers_.back();
    }
    if (headers_.empty()) return;
    if (rule::validate(command::enqueue_jobs{.queue = asked_.queue, .jobs = jobs}) &&
        !rule::validate(asked_)) {
      span_->AddEvent("no room for the trace context");
      return;
    }
    jobs_ = std::move(jobs);
  }

  [[nodiscard]] static std::string with(std::string_view before, trace_context const& context) {
    job_headers headers{job_headers_view{before}};
    bool const is_whole = headers.text() == before;  // what is damaged is left as it is
    if (!is_whole || write_trace_context(headers, context)) return std::string{before};
    return headers.text();
  }

  std::shared_ptr<tracing_state const> in_;
  command::enqueue_jobs asked_;  ///< what it views lives until the answer
  span_ptr span_;
  std::vector<bool> given_;           ///< has the job a context of the application's?
  std::vector<std::string> headers_;  ///< those that were changed
  std::vector<new_job> jobs_;         ///< those with other headers; empty: as they were asked
};

template <class C>
inline constexpr bool is_receive =
    std::same_as<C, command::dequeue_jobs> || std::same_as<C, command::obtain_lease>;
template <class C>
inline constexpr bool is_settlement =
    std::same_as<C, command::complete_jobs> || std::same_as<C, command::requeue_job> ||
    std::same_as<C, command::snooze_job> || std::same_as<C, command::return_job> ||
    std::same_as<C, command::bury_job> || std::same_as<C, command::relay_job>;

/// How the conventions see a command that receives or settles.
template <class C>
[[nodiscard]] constexpr messaging_operation operation_of() noexcept {
  if constexpr (std::same_as<C, command::dequeue_jobs>) return {"dequeue", "receive"};
  if constexpr (std::same_as<C, command::obtain_lease>) return {"obtain_lease", "receive"};
  if constexpr (std::same_as<C, command::complete_jobs>) return {"complete", "settle"};
  if constexpr (std::same_as<C, command::requeue_job>) return {"requeue", "settle"};
  if constexpr (std::same_as<C, command::snooze_job>) return {"snooze", "settle"};
  if constexpr (std::same_as<C, command::return_job>) return {"return", "settle"};
  if constexpr (std::same_as<C, command::bury_job>) return {"bury", "settle"};
  if constexpr (std::same_as<C, command::relay_job>) return {"relay", "settle"};
}

/// The span of a command that receives or settles. It is made when the answer is there, with the
/// time of the call and the parent of then: most dequeues find nothing, and have none.
template <class C>
  requires is_receive<C> || is_settlement<C>
class late_span {
 public:
  using result = typename C::result;

  late_span(std::shared_ptr<tracing_state> in, C const& c) noexcept
      : in_{std::move(in)},
        asked_{c},
        parent_{otel::context::RuntimeContext::GetCurrent()},
        date_{std::chrono::system_clock::now()},
        began_{std::chrono::steady_clock::now()} {}

  [[nodiscard]] C command() const noexcept { return asked_; }

  void executed(error_code ec, result const& answer, duration took) noexcept {
    if (is_kept_by_weir(asked_.queue)) return;
    try {
      if constexpr (is_receive<C>) {
        received(ec, answer, took);
      } else {
        settled(ec, answer, took);
      }
    } catch (...) {  // no memory
    }
  }

 private:
  static constexpr auto operation = operation_of<C>();

  void received(error_code ec, result const& answer, duration took) {
    std::vector<leased_job const*> jobs;
    if constexpr (std::same_as<C, command::dequeue_jobs>) {
      for (auto const& job : answer.jobs) jobs.push_back(&job);
    } else {
      if (answer) jobs.push_back(&*answer);
    }
    if (!ec && jobs.empty()) return;
    link_list links;
    std::vector<std::string> ids;
    for (auto const* const job : jobs) {
      auto const creation = creation_context_of(job_headers_view{job->headers});
      ids.push_back(boost::uuids::to_string(job->id));
      add_link(links, creation,
               jobs.size() > 1 ? std::string_view{ids.back()} : std::string_view{});
      if (!creation.IsValid()) continue;
      in_->contexts.remember(job->id, job->fence,
                             [&](job_context_pair& known) { known.creation = creation; });
    }
    make(failure_of(ec), ids, links, {}, took);
  }

  void settled(error_code ec, result const& answer, duration took) {
    link_list links;
    std::vector<std::string> ids;
    job_context_pair known;
    bool const ends = !ec || ec == errc::lease_lost;  // otherwise it may be asked again
    auto const note = [&](job_id id, std::uint64_t fence, bool many) {
      ids.push_back(boost::uuids::to_string(id));
      known = in_->contexts.find(id, fence, ends);
      add_link(links, known.creation, many ? std::string_view{ids.back()} : std::string_view{});
    };
    std::string_view outcome;
    if constexpr (std::same_as<C, command::complete_jobs>) {
      for (auto const& job : asked_.jobs) note(job.id, job.fence, asked_.jobs.size() > 1);
      for (auto const each : answer) {
        if (each == complete_outcome::lease_lost) ec = ec ? ec : make_error_code(errc::lease_lost);
      }
    } else {
      note(asked_.id, asked_.fence, false);
      if constexpr (std::same_as<C, command::requeue_job>) {
        if (!ec) outcome = to_string(answer);
      } else if constexpr (std::same_as<C, command::relay_job>) {
        if (!ec) outcome = to_string(answer.outcome);
      }
    }
    if (ids.size() == 1 && known.process.IsValid()) {
      parent_ = in_context_of(known.process);
    }
    make(failure_of(ec), ids, links, outcome, took);
  }

  [[nodiscard]] static otel::context::Context in_context_of(
      otel::trace::SpanContext const& context) {
    return {otel::trace::kSpanKey, span_ptr{new otel::trace::DefaultSpan{context}}};
  }

  void make(failure_text const& failure, std::vector<std::string> const& ids,
            link_list const& links, std::string_view outcome, duration took) {
    destination const to{*in_, asked_.queue};
    otel::trace::StartSpanOptions options;
    options.kind = otel::trace::SpanKind::kClient;
    options.parent = parent_;
    options.start_system_time = otel::common::SystemTimestamp{date_};
    options.start_steady_time = otel::common::SteadyTimestamp{began_};
    auto attributes = to.attributes(operation);
    if (!ids.empty()) add_messages(attributes, ids);
    if (!outcome.empty()) add(attributes, "messaging.weir.outcome", outcome);
    auto const span = start_span(*in_, to.span_name(operation), attributes, links, options);
    tell_failure(*span, failure);
    span->End();
    measuring const m{to, operation, failure.type};
    m.took(*in_->operation_duration, took);
    if (is_receive<C> && !ids.empty()) m.counted(*in_->consumed, ids.size());
  }

  std::shared_ptr<tracing_state> in_;
  C asked_;  ///< what it views lives until the answer
  otel::context::Context parent_;
  std::chrono::system_clock::time_point date_;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace weir::detail

#endif
