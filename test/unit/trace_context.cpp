// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The trace that a job belongs to, by the W3C recommendation Trace Context.
#include "weir/trace_context.hpp"

#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/job_headers.hpp"

#include <boost/test/unit_test.hpp>

#include <set>
#include <string>
#include <string_view>

using weir::errc;
using weir::job_headers;
using weir::job_headers_view;
using weir::trace_context;

namespace {

// The examples of the recommendation.
constexpr std::string_view trace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr std::string_view parent = "00f067aa0ba902b7";
std::string const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

trace_context read(std::string_view text, std::string_view state = {}) {
  auto const out = trace_context::parse(text, state);
  BOOST_TEST_REQUIRE(out.has_value(), "read: " << text);
  return out.value();
}

/// The message for a malformed one.
std::string refusal(std::string_view text) {
  auto const out = trace_context::parse(text);
  BOOST_TEST_REQUIRE(out.has_error(), "refused: " << text);
  BOOST_TEST((out.error() == errc::invalid_option));
  return out.error().message();
}

bool says(std::string const& message, std::string_view what) {
  return message.find(what) != std::string::npos;
}

std::string state_of(std::string_view state) { return read(good, state).state; }

/// A list of this many entries.
std::string entries(int n) {
  std::string out;
  for (int i = 0; i != n; ++i) out += (i == 0 ? "k" : ",k") + std::to_string(i) + "=v";
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(trace_contexts)

BOOST_AUTO_TEST_CASE(what_is_read_is_written_again) {
  auto const context = read(good);
  BOOST_TEST(context.sampled);
  BOOST_TEST(context.trace_id[0] == 0x4b);
  BOOST_TEST(context.trace_id[15] == 0x36);
  BOOST_TEST(context.span_id[1] == 0xf0);
  BOOST_TEST(context.span_id[7] == 0xb7);
  BOOST_TEST(context.valid());
  BOOST_TEST(context.traceparent() == good);
  auto const unsampled = "00-" + std::string{trace} + "-" + std::string{parent} + "-00";
  BOOST_TEST(!read(unsampled).sampled);
  BOOST_TEST(read(unsampled).traceparent() == unsampled);
}

BOOST_AUTO_TEST_CASE(of_the_flags_only_the_one_that_is_known_is_passed_on) {
  auto const with = [](std::string_view flags) {
    return read("00-" + std::string{trace} + "-" + std::string{parent} + "-" + std::string{flags});
  };
  BOOST_TEST(with("ff").sampled);
  BOOST_TEST(!with("fe").sampled);
  BOOST_TEST(with("09").traceparent().ends_with("-01"));
  BOOST_TEST(with("08").traceparent().ends_with("-00"));
}

BOOST_AUTO_TEST_CASE(only_lower_case_hexadecimal_digits_are_ids) {
  BOOST_TEST(says(refusal("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"), "trace id"));
  BOOST_TEST(says(refusal("00-4bf92f3577b34da6a3ce929d0e0e473.-00f067aa0ba902b7-01"), "trace id"));
  BOOST_TEST(says(refusal("00-4bf92f3577b34da6a3ce929d0e0e4736-00F067AA0BA902B7-01"), "parent id"));
  BOOST_TEST(says(refusal("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902bg-01"), "parent id"));
  BOOST_TEST(says(refusal("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0A"), "flags"));
  BOOST_TEST(says(refusal("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-.0"), "flags"));
  BOOST_TEST(says(refusal("0A-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), "version"));
  BOOST_TEST(says(refusal(".0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), "version"));
}

BOOST_AUTO_TEST_CASE(an_id_of_zeros_is_none) {
  BOOST_TEST(says(refusal("00-00000000000000000000000000000000-00f067aa0ba902b7-01"), "trace id"));
  BOOST_TEST(says(refusal("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"), "parent id"));
}

BOOST_AUTO_TEST_CASE(version_00_has_55_characters) {
  BOOST_TEST(says(refusal(""), "too short"));
  BOOST_TEST(says(refusal(std::string_view{good}.substr(0, 54)), "too short"));
  BOOST_TEST(says(refusal(good + "."), "too long"));
  BOOST_TEST(says(refusal(good + "-what-the-future-will-be-like"), "too long"));
  BOOST_TEST(says(refusal(" " + good), "version"));
  BOOST_TEST(says(refusal("00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01"), "dashes"));
  BOOST_TEST(says(refusal("00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), "dashes"));
  BOOST_TEST(says(refusal("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01"), "dashes"));
}

BOOST_AUTO_TEST_CASE(a_later_version_is_read_as_far_as_00_goes) {
  auto const rest = good.substr(2);
  BOOST_TEST(read("cc" + rest).traceparent() == good);
  BOOST_TEST(read("01" + rest + "-what-the-future-will-be-like").traceparent() == good);
  BOOST_TEST(read("fe" + rest + "-").traceparent() == good);
  BOOST_TEST(says(refusal("cc" + rest + ".what-the-future-will-be-like"), "too long"));
  BOOST_TEST(says(refusal("cc" + rest.substr(0, 52)), "too short"));
  BOOST_TEST(says(refusal("ff" + rest), "version"));
}

BOOST_AUTO_TEST_CASE(a_tracestate_is_passed_on) {
  BOOST_TEST(state_of("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE") ==
             "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
  BOOST_TEST(state_of("foo=1 \t , \t bar=2, \t baz=3") == "foo=1,bar=2,baz=3");
  BOOST_TEST(state_of("foo= 1") == "foo= 1");
  BOOST_TEST(state_of("") == "");
  BOOST_TEST(state_of(" , ,foo=1,,") == "foo=1");
  BOOST_TEST(state_of("fw529a3039@dt=FfAAAA,0a/_-*=~!{}") == "fw529a3039@dt=FfAAAA,0a/_-*=~!{}");
  auto const longest = std::string(256, 'k') + "=" + std::string(256, 'v');
  BOOST_TEST(state_of(longest) == longest);
  BOOST_TEST(state_of(entries(32)) == entries(32));
}

BOOST_AUTO_TEST_CASE(a_malformed_tracestate_says_nothing_about_the_traceparent) {
  for (std::string const& state :
       {entries(33), std::string{"foo"}, std::string{"foo="}, std::string{"=1"},
        std::string{"foo=1=2"}, std::string{"Foo=1"}, std::string{"_foo=1"}, std::string{"foo =1"},
        std::string{"foo=1,foo=2"}, std::string{"foo=\x7f"}, std::string{"foo=\xc3\xa9"},
        std::string(257, 'k') + "=v", "k=" + std::string(257, 'v')}) {
    BOOST_TEST(state_of(state) == "", state);
    BOOST_TEST(read(good, state).traceparent() == good);
  }
}

BOOST_AUTO_TEST_CASE(a_job_carries_its_trace) {
  job_headers headers{{"tenant", "acme"}};
  auto const context = read(good, "congo=t61rcWkgMzE");
  BOOST_TEST(!weir::write_trace_context(headers, context));
  BOOST_TEST((job_headers_view{headers}.find("traceparent") == good));
  BOOST_TEST((job_headers_view{headers}.find("tracestate") == "congo=t61rcWkgMzE"));
  BOOST_TEST((job_headers_view{headers}.find("tenant") == "acme"));
  BOOST_TEST((weir::read_trace_context(headers).value() == context));
  auto const missing = weir::read_trace_context(job_headers{}).error();
  BOOST_TEST((missing == errc::not_found));
  BOOST_TEST(missing.message() == "it is not there: the job has no traceparent");  // F86
}

BOOST_AUTO_TEST_CASE(one_trace_takes_the_place_of_another) {
  job_headers headers{{"Traceparent", "nonsense"}, {"TRACESTATE", "a=b"}, {"x", "y"}};
  BOOST_TEST(!weir::write_trace_context(headers, read(good)));
  BOOST_TEST(headers.text() == job_headers({{"x", "y"}, {"traceparent", good}}).text());
}

BOOST_AUTO_TEST_CASE(header_names_are_read_in_any_case) {
  auto const context = weir::read_trace_context(
      job_headers{{"TraceParent", good}, {"tracestate", "a=1"}, {"TraceState", "b=2"}});
  BOOST_TEST_REQUIRE(context.has_value());
  BOOST_TEST(context->traceparent() == good);
  BOOST_TEST(context->state == "a=1,b=2");
}

BOOST_AUTO_TEST_CASE(of_two_traces_none_counts) {
  auto const both =
      weir::read_trace_context(job_headers{{"traceparent", good}, {"Traceparent", good}});
  BOOST_TEST((both.error() == errc::invalid_option));
  BOOST_TEST(says(both.error().message(), "several"));
  auto const wrong = weir::read_trace_context(job_headers{{"traceparent", "00-"}});
  BOOST_TEST((wrong.error() == errc::invalid_option));
}

BOOST_AUTO_TEST_CASE(what_is_no_place_in_a_trace_is_not_written) {
  job_headers headers{{"traceparent", good}};
  auto const before = headers.text();
  BOOST_TEST((weir::write_trace_context(headers, trace_context{}) == errc::invalid_option));
  auto context = read(good);
  context.state = "a=1\r\nx: y";
  BOOST_TEST((weir::write_trace_context(headers, context) == errc::invalid_option));
  context = read(good);
  context.span_id = {};
  BOOST_TEST(!context.valid());
  BOOST_TEST((weir::write_trace_context(headers, context) == errc::invalid_option));
  BOOST_TEST(headers.text() == before);
}

BOOST_AUTO_TEST_CASE(a_child_is_a_new_span_of_the_same_trace) {
  auto const ids = weir::id_source::seeded(1);
  auto const root = trace_context::root(ids);
  BOOST_TEST(root.valid());
  BOOST_TEST(root.sampled);
  BOOST_TEST(!trace_context::root(ids, false).sampled);
  std::set<std::string> seen{root.traceparent()};
  for (int i = 0; i != 100; ++i) {
    auto const child = root.child(ids);
    BOOST_TEST(child.trace_id == root.trace_id);
    BOOST_TEST(seen.insert(child.traceparent()).second);
    BOOST_TEST(seen.insert(trace_context::root(ids).traceparent()).second);
  }
  auto const later = read(good, "a=1").child(ids);
  BOOST_TEST(later.state == "a=1");
  BOOST_TEST(later.sampled);
  BOOST_TEST(later.valid());
}

BOOST_AUTO_TEST_SUITE_END()
