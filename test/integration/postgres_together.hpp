// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_POSTGRES_TOGETHER_HPP
#define WEIR_TEST_INTEGRATION_POSTGRES_TOGETHER_HPP

#include "patience.hpp"
#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace postgres_test {

/// Commands, all of which are issued before any is answered.
template <class C>
class together {
 public:
  explicit together(bed& b) : bed_{b} {}

  void add(C const& c) {
    auto& place = answers_.emplace_back();
    bed_.store.async_execute(c, [&place](error_code ec, typename C::result r) {
      if (ec) {
        place.emplace(ec);
      } else {
        place.emplace(std::move(r));
      }
    });
  }

  [[nodiscard]] bool answered(std::size_t i) const { return answers_[i].has_value(); }

  /// The answers, in the order of the commands.
  [[nodiscard]] std::vector<result<typename C::result>> all() {
    std::vector<result<typename C::result>> out;
    for (auto& a : answers_) {
      BOOST_TEST_REQUIRE(weir_test::happens(bed_.io, [&] { return a.has_value(); }));
      out.push_back(*a);
    }
    return out;
  }
  /// The same, where none may fail.
  [[nodiscard]] std::vector<typename C::result> values() {
    std::vector<typename C::result> out;
    for (auto& a : all()) {
      BOOST_TEST_REQUIRE(a.has_value(), a.error().message());
      out.push_back(std::move(a).value());
    }
    return out;
  }

 private:
  bed& bed_;
  std::deque<std::optional<result<typename C::result>>> answers_;
};

}  // namespace postgres_test

#endif
