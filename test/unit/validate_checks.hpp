// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_UNIT_VALIDATE_CHECKS_HPP
#define WEIR_TEST_UNIT_VALIDATE_CHECKS_HPP

#include "weir/concept.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/rule/validate.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

// Each check takes a command that is good, spoils one of its fields, and looks at both sides of the
// field's bounds.
namespace weir::test {

template <class C>
void expect_good(C const& c) {
  BOOST_TEST_CONTEXT(typeid(C).name()) {
    auto const ec = rule::validate(c);
    BOOST_TEST(!ec, ec.message());
  }
}

template <class C>
void expect_bad(C const& c, errc expected) {
  BOOST_TEST_CONTEXT(typeid(C).name() << ", " << make_error_code(expected).message()) {
    auto const ec = rule::validate(c);
    BOOST_TEST((ec == expected), ec.message());
  }
}

/// `field` may have the values of `good` and not those of `bad`, which are `expected`.
template <class C, class V>
void check_field(C c, V C::* field, errc expected, std::vector<V> const& good,
                 std::vector<V> const& bad) {
  expect_good(c);
  for (auto const& value : good) {
    c.*field = value;
    expect_good(c);
  }
  for (auto const& value : bad) {
    c.*field = value;
    expect_bad(c, expected);
  }
}

/// A string of bytes that must not be empty or longer than `most`, and may be any bytes (F27).
template <class C>
void check_text(C const& c, std::string_view C::* field, errc expected, std::size_t most) {
  static std::string const long_text(limits::payload_size + 1, 'x');
  std::string_view const all{long_text};
  using namespace std::string_view_literals;
  check_field<C, std::string_view>(c, field, expected,
                                   {"a", "\0"sv, "\xff\xfe", "'; DROP TABLE jobs; --", "a\r\nb",
                                    "{tag}", "*", ">", " ", all.substr(0, most)},
                                   {"", all.substr(0, most + 1), all.substr(0, 65'536)});
}

template <class C>
void check_key(C const& c) {
  check_text(c, &C::key, errc::invalid_key, limits::key_size);
}

template <class C>
void check_queue(C const& c) {
  check_text(c, &C::queue, errc::invalid_queue, limits::key_size);
}

template <class C>
void check_holder(C const& c) {
  check_text(c, &C::holder, errc::invalid_holder, limits::holder_size);
}

template <class C>
void check_ttl(C const& c, duration C::* field) {
  check_field<C, duration>(
      c, field, errc::invalid_ttl, {duration{1}, limits::span},
      {duration{0}, duration{-1}, duration::min(), limits::span + duration{1}, duration::max()});
}

template <class C>
void check_wait(C const& c, duration C::* field) {
  check_field<C, duration>(
      c, field, errc::invalid_wait, {duration{0}, duration{1}, limits::span},
      {duration{-1}, duration::min(), limits::span + duration{1}, duration::max()});
}

/// A number of rows or jobs.
template <class C>
void check_batch(C const& c) {
  check_field<C, std::uint32_t>(c, &C::limit, errc::invalid_batch, {1, limits::batch},
                                {0, limits::batch + 1, UINT32_MAX});
}

}  // namespace weir::test

#endif
