// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_COUNTED_EXECUTOR_HPP
#define WEIR_TEST_INTEGRATION_COUNTED_EXECUTOR_HPP

#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace weir::test {

/// An executor that shows whether anybody still has a copy of it. What a store leaves behind has
/// one, whatever it is.
template <class Inner>
class counted_executor {
 public:
  counted_executor(Inner inner, std::shared_ptr<int> count)
      : inner_{std::move(inner)},
        count_{std::move(count)} {}

  template <class F>
  void execute(F&& f) const {
    inner_.execute(std::forward<F>(f));
  }

  template <class Property>
    requires boost::asio::can_query_v<Inner const&, Property>
  [[nodiscard]] decltype(auto) query(Property const& p) const {
    return boost::asio::query(inner_, p);
  }
  template <class Property>
    requires boost::asio::can_require_v<Inner const&, Property>
  [[nodiscard]] auto require(Property const& p) const {
    return like(boost::asio::require(inner_, p));
  }
  template <class Property>
    requires boost::asio::can_prefer_v<Inner const&, Property>
  [[nodiscard]] auto prefer(Property const& p) const {
    return like(boost::asio::prefer(inner_, p));
  }

  friend bool operator==(counted_executor const& a, counted_executor const& b) noexcept {
    return a.inner_ == b.inner_;
  }

 private:
  template <class Other>
  counted_executor<Other> like(Other inner) const {
    return {std::move(inner), count_};
  }

  Inner inner_;
  std::shared_ptr<int> count_;
};

}  // namespace weir::test

#endif
