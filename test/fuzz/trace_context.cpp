// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The headers `traceparent` and `tracestate`, whatever is in them: the first line of the input and
// the rest of it. What is read is valid, is written in the recommendation's form, and is read again
// as the same.

#include "weir/trace_context.hpp"

#include "input.hpp"
#include "weir/error.hpp"
#include "weir/job_headers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

/// A `traceparent` of version 00, by its grammar and nothing else.
bool well_formed(std::string_view text) {
  constexpr std::string_view form = "00-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-0f";
  return std::ranges::equal(text, form, [](char c, char wanted) {
    switch (wanted) {
      case 'h': return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      case 'f': return c == '0' || c == '1';
      default: return c == wanted;
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const text = fuzz::text_of(data, size);
  auto const line = std::min(text.find('\n'), text.size());
  auto const parent = text.substr(0, line);
  auto const state = text.substr(std::min(line + 1, text.size()));
  weir::job_headers headers{{"traceparent", parent}, {"tracestate", state}, {"tenant", text}};
  auto const before = headers.text();

  auto const context = weir::read_trace_context(headers);
  if (context.has_error()) {
    fuzz::require(context.error() == weir::errc::invalid_option, "what is wrong is said");
    fuzz::require(!well_formed(parent) || parent.find("-0000000000000000") != parent.npos ||
                      parent.substr(3, 32) == std::string(32, '0'),
                  "what is well-formed is read");
    fuzz::require(bool{weir::write_trace_context(headers, {})} && headers.text() == before,
                  "nothing is written of none");
    return 0;
  }
  fuzz::require(context->valid(), "what is read has both ids");
  fuzz::require(parent.substr(3, 49) == context->traceparent().substr(3, 49), "as they stand");
  fuzz::require(well_formed(context->traceparent()), "it is written in the recommendation's form");
  fuzz::require(!weir::write_trace_context(headers, *context), "what is read can be written");
  auto const again = weir::read_trace_context(headers);
  fuzz::require(again.has_value() && *again == *context, "and is read again as the same");
  fuzz::require(weir::job_headers_view{headers}.find("tenant") == text, "other headers stay");
  fuzz::require(context->state.find_first_of("\r\n\t") == std::string::npos, "no line is broken");
  return 0;
}
