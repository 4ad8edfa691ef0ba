// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TRACE_CONTEXT_HPP
#define WEIR_TRACE_CONTEXT_HPP

#include "weir/detail/explained.hpp"
#include "weir/detail/trace_text.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/job_headers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// The trace that a job belongs to, in its headers `traceparent` and `tracestate`, as the W3C
/// recommendation Trace Context writes them (version 00). No tracing library is needed for it, and
/// a handler in any language can read it.
///
///     // the producer
///     weir::job_headers headers;
///     weir::write_trace_context(headers, weir::trace_context::root());
///     co_await queue.async_enqueue(job, {.headers = headers});
///
///     // the handler
///     auto const creation = weir::read_trace_context(context.headers());
///     auto const mine = creation ? creation->child() : weir::trace_context::root();

namespace weir {

/// A place in a trace: the trace, and the span that is the parent of what comes next.
///
/// Thread-safety: that of a value.
struct trace_context {
  std::array<std::uint8_t, 16> trace_id{};  ///< of the whole trace; all zero: there is none
  std::array<std::uint8_t, 8> span_id{};    ///< of the parent; all zero: there is none
  bool sampled = false;                     ///< has the parent been recorded, as far as is known?
  std::string state{};  ///< `tracestate`: what tracing systems noted for themselves; may be empty

  /// Begins a trace.
  ///
  /// @param ids     where its numbers come from
  /// @param sampled is it to be recorded?
  [[nodiscard]] static trace_context root(id_source const& ids = id_source{}, bool sampled = true) {
    trace_context out;
    detail::fill_id(out.trace_id, [&] { return ids.entropy(); });
    detail::fill_id(out.span_id, [&] { return ids.entropy(); });
    out.sampled = sampled;
    return out;
  }

  /// Reads the two headers. A later version than 00 is read as far as 00 goes. A `tracestate` that
  /// is malformed, or has more than 32 entries, is left out; it says nothing about `traceparent`.
  ///
  /// @param traceparent its value, without white space around it
  /// @param tracestate  its value, or of several the values in their order, with a comma in between
  /// Errors: `invalid_option`, with what is wrong with `traceparent`: then the trace is to be
  /// restarted.
  [[nodiscard]] static result<trace_context> parse(std::string_view traceparent,
                                                   std::string_view tracestate = {}) {
    trace_context out;
    if (auto const* const wrong = out.read_parent(traceparent)) {
      return detail::explained(errc::invalid_option, wrong);
    }
    if (auto state = detail::read_tracestate(tracestate)) out.state = std::move(*state);
    return out;
  }

  /// Can it be written? It has both ids then.
  [[nodiscard]] bool valid() const noexcept {
    return !detail::all_zero(trace_id) && !detail::all_zero(span_id);
  }

  /// The place of a new span in the same trace.
  ///
  /// @param ids where its number comes from
  [[nodiscard]] trace_context child(id_source const& ids = id_source{}) const {
    auto out = *this;
    detail::fill_id(out.span_id, [&] { return ids.entropy(); });
    return out;
  }

  /// As the header `traceparent` has it, of version 00.
  [[nodiscard]] std::string traceparent() const {
    std::string out = "00-";
    detail::append_hex(out, trace_id);
    out += '-';
    detail::append_hex(out, span_id);
    out += sampled ? "-01" : "-00";
    return out;
  }

  /// Are they the same place, noted in the same way?
  friend bool operator==(trace_context const&, trace_context const&) = default;

 private:
  /// @return null, or what is wrong with it
  [[nodiscard]] char const* read_parent(std::string_view text) noexcept {
    constexpr std::size_t size = 55;  // of version 00
    std::array<std::uint8_t, 1> form{};
    std::array<std::uint8_t, 1> flags{};
    if (text.size() < size) return "traceparent: it is too short";
    if (!detail::read_hex(text.substr(0, 2), form) || form[0] == 0xff) {
      return "traceparent: its version is none";
    }
    if (text.size() > size && (form[0] == 0 || text[size] != '-')) {
      return "traceparent: it is too long";
    }
    if (text[2] != '-' || text[35] != '-' || text[52] != '-') {
      return "traceparent: its fields are not divided by dashes";
    }
    if (!detail::read_hex(text.substr(3, 32), trace_id) || detail::all_zero(trace_id)) {
      return "traceparent: its trace id is not 32 lower-case hexadecimal digits, or zero";
    }
    if (!detail::read_hex(text.substr(36, 16), span_id) || detail::all_zero(span_id)) {
      return "traceparent: its parent id is not 16 lower-case hexadecimal digits, or zero";
    }
    if (!detail::read_hex(text.substr(53, 2), flags)) {
      return "traceparent: its flags are not 2 lower-case hexadecimal digits";
    }
    sampled = (flags[0] & 1) != 0;
    return nullptr;
  }
};

/// The trace that a job belongs to. Header names are read in any case, as the recommendation wants.
///
/// Errors: `not_found`: the job has no `traceparent`; `invalid_option`: it has several, or one that
/// is malformed (see `trace_context::parse`).
[[nodiscard]] inline result<trace_context> read_trace_context(job_headers_view headers) {
  std::optional<std::string_view> parent;
  std::string state;
  for (auto const& [name, value] : headers) {
    if (detail::is_header(name, detail::traceparent_name)) {
      if (parent) return detail::explained(errc::invalid_option, "traceparent: there are several");
      parent = value;
    } else if (detail::is_header(name, detail::tracestate_name)) {
      state.append(state.empty() ? "" : ",").append(value);
    }
  }
  if (!parent) return detail::explained(errc::not_found, "the job has no traceparent");
  return trace_context::parse(*parent, state);
}

/// Sets the trace that a job belongs to, in place of another one. Other headers stay.
///
/// @param headers of a job that is to be enqueued
/// @param context as a rule the place of the span that enqueues it
/// Errors: `invalid_option`, and the headers stay as they are: the context is not `valid`, or its
/// `state` is no `tracestate`.
[[nodiscard]] inline error_code write_trace_context(job_headers& headers,
                                                    trace_context const& context) {
  if (!context.valid())
    return detail::explained(errc::invalid_option, "traceparent: an id is zero");
  auto const state = detail::read_tracestate(context.state);
  if (!state) return detail::explained(errc::invalid_option, "tracestate: it is malformed");
  std::string kept;
  for (auto const& [name, value] : job_headers_view{headers}) {
    bool const replaced = detail::is_header(name, detail::traceparent_name) ||
                          detail::is_header(name, detail::tracestate_name);
    if (!replaced) kept += job_headers{{name, value}}.text();
  }
  job_headers out{job_headers_view{kept}};
  out.set(detail::traceparent_name, context.traceparent());
  if (!state->empty()) out.set(detail::tracestate_name, *state);
  headers = std::move(out);
  return {};
}

}  // namespace weir

#endif
