// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What goes with a job as text: its headers, and its progress.
#include "weir/job_headers.hpp"

#include "weir/job_progress.hpp"
#include "weir/limits.hpp"

#include <boost/test/unit_test.hpp>

#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using weir::job_headers;
using weir::job_headers_view;
using weir::job_progress;

namespace {

using pairs = std::vector<std::pair<std::string, std::string>>;

pairs all_of(job_headers_view headers) {
  pairs out;
  for (auto const& [name, value] : headers) out.emplace_back(name, value);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(job_headers_and_progress)

BOOST_AUTO_TEST_CASE(headers_are_netstrings) {
  job_headers const headers{{"tenant", "acme"}, {"traceparent", "00-4bf9"}};
  BOOST_TEST(headers.text() == "6:tenant,4:acme,11:traceparent,7:00-4bf9,");
  job_headers_view const view = headers;
  BOOST_TEST((view.find("tenant") == "acme"));
  BOOST_TEST((view.find("traceparent") == "00-4bf9"));
  BOOST_TEST(!view.find("Tenant"));
  BOOST_TEST(!view.empty());
  BOOST_TEST((all_of(view) == pairs{{"tenant", "acme"}, {"traceparent", "00-4bf9"}}));
  BOOST_TEST(std::next(view.begin())->first == "traceparent");
}

BOOST_AUTO_TEST_CASE(there_may_be_none) {
  BOOST_TEST(job_headers{}.text().empty());
  BOOST_TEST(job_headers_view{}.empty());
  BOOST_TEST(!job_headers_view{}.find(""));
}

BOOST_AUTO_TEST_CASE(names_and_values_are_any_bytes) {
  std::string every;
  for (int i = 0; i != 256; ++i) every += static_cast<char>(i);
  job_headers const headers{{every, ""}, {"", every}, {"7:tenant,", ",,::"}};
  BOOST_TEST((all_of(headers) == pairs{{every, ""}, {"", every}, {"7:tenant,", ",,::"}}));
}

BOOST_AUTO_TEST_CASE(a_name_is_there_once) {
  job_headers headers{{"a", "1"}, {"b", "2"}, {"a", "3"}};
  BOOST_TEST((all_of(headers) == pairs{{"b", "2"}, {"a", "3"}}));
  headers.set("b", "4");
  BOOST_TEST((all_of(headers) == pairs{{"a", "3"}, {"b", "4"}}));
  job_headers const passed_on{job_headers_view{headers}};
  BOOST_TEST(passed_on.text() == headers.text());
}

BOOST_AUTO_TEST_CASE(of_a_damaged_text_what_is_before_the_damage_is_seen) {
  auto const seen = [](std::string_view text) { return all_of(job_headers_view{text}).size(); };
  BOOST_TEST(seen("1:a,1:b,") == 1U);
  BOOST_TEST(seen("1:a,1:b,1:c,") == 1U);      // a name alone
  BOOST_TEST(seen("1:a,1:b,1:c,2:d,") == 1U);  // longer than what is there
  BOOST_TEST(seen("1:a,1:b,1:c,1:d;") == 1U);  // no comma
  BOOST_TEST(seen("1:a,1:b") == 0U);           // nor its end
  BOOST_TEST(seen("1:a,-1:b,") == 0U);
  BOOST_TEST(seen("18446744073709551615:a,1:b,") == 0U);
  BOOST_TEST(seen("18446744073709551616:a,1:b,") == 0U);
  BOOST_TEST(seen("{\"a\":1}") == 0U);
  BOOST_TEST(seen("1") == 0U);
}

BOOST_AUTO_TEST_CASE(no_text_is_read_beyond_its_end) {
  std::mt19937 random{7};
  for (int i = 0; i != 20'000; ++i) {
    std::string text = job_headers{{"abc", "defghijklmno"}, {"p", ""}}.text();
    auto const changed = random() % text.size();
    text[changed] = "0123456789:,x"[random() % 13];
    text.resize(random() % 4 == 0 ? random() % (text.size() + 1) : text.size());
    std::vector<char> const exact{text.begin(), text.end()};  // nothing is behind it
    std::size_t bytes = 0;
    for (auto const& [name, value] : job_headers_view{{exact.data(), exact.size()}}) {
      bytes += name.size() + value.size();
    }
    BOOST_TEST_REQUIRE(bytes <= text.size());
  }
}

BOOST_AUTO_TEST_CASE(progress_is_readable_text) {
  job_progress const third{3, 10, "the third page"};
  BOOST_TEST(third.text() == "3/10 the third page");
  BOOST_TEST((job_progress::of(third.text()) == third));
  BOOST_TEST((job_progress{7, 0}.text() == "7/0"));
  BOOST_TEST((job_progress::of("7/0") == job_progress{7, 0}));
  constexpr auto most = ~std::uint64_t{0};
  BOOST_TEST(
      (job_progress::of(job_progress{most, most, " x"}.text()) == job_progress{most, most, " x"}));
  for (char const* const other : {"", "7", "7/", "/7", "-1/7", "1/7x", "1 /7", "half of it"}) {
    BOOST_TEST_CONTEXT(other) { BOOST_TEST(!job_progress::of(other)); }
  }
}

BOOST_AUTO_TEST_CASE(a_long_note_is_cut_between_characters) {
  std::string note;
  while (note.size() < 2 * weir::limits::progress_size) note += "\u00fc";
  for (std::uint64_t const done : {1U, 10U}) {
    auto const text = job_progress{done, 20, note}.text();
    BOOST_TEST(text.size() <= weir::limits::progress_size);
    BOOST_TEST(text.size() + 2 > weir::limits::progress_size);
    auto const kept = job_progress::of(text).value().note;
    BOOST_TEST(kept.size() % 2 == 0U);
    BOOST_TEST(note.starts_with(kept));
  }
}

BOOST_AUTO_TEST_SUITE_END()
