// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_NATS_STORES_HPP
#define WEIR_TEST_CONFORMANCE_NATS_STORES_HPP

#include "weir/concept.hpp"
#include "weir/store/nats.hpp"

#include <boost/asio/detached.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weir::testing {

/// Stores with connections of their own, as other processes would have, that take turns.
class nats_stores {
 public:
  using executor_type = nats_store::executor_type;
  using clock_type = nats_store::clock_type;

  explicit nats_stores(std::vector<nats_store> all) : all_{std::move(all)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return all_[0].get_executor(); }

  template <class Token>
  auto async_run(Token&& token) const {
    for (std::size_t i = 1; i < all_.size(); ++i) all_[i].async_run(boost::asio::detached);
    return all_[0].async_run(std::forward<Token>(token));
  }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return all_[0].shard_count(); }
  void close() const {
    for (auto const& s : all_) s.close();
  }

  template <class C, class Token>
    requires executes<nats_store, C>
  auto async_execute(C const& c, Token&& token) const {
    return all_[(*turn_)++ % all_.size()].async_execute(c, std::forward<Token>(token));
  }

 private:
  std::vector<nats_store> all_;
  std::shared_ptr<std::atomic<std::size_t>> turn_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace weir::testing

#endif
