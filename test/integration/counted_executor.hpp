// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_COUNTED_EXECUTOR_HPP
#define WEIR_TEST_INTEGRATION_COUNTED_EXECUTOR_HPP

#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

namespace weir::test {

/// An executor that shows whether anybody still has a copy of it: what a store leaves behind has
/// one, whatever it is. And it counts how often other threads than its maker's give it something.
template <class Inner>
class counted_executor {
 public:
  counted_executor(Inner inner, std::shared_ptr<std::atomic<int>> count)
      : inner_{std::move(inner)},
        count_{std::move(count)} {}

  template <class F>
  void execute(F&& f) const {
    if (std::this_thread::get_id() != home_) ++*count_;
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
    counted_executor<Other> out{std::move(inner), count_};
    out.home_ = home_;
    return out;
  }

  template <class>
  friend class counted_executor;

  Inner inner_;
  std::shared_ptr<std::atomic<int>> count_;
  std::thread::id home_ = std::this_thread::get_id();
};

}  // namespace weir::test

#endif
