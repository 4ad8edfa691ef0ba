// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_COUNTING_STORE_HPP
#define WEIR_TEST_COUNTING_STORE_HPP

#include "weir/concept.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <typeindex>
#include <utility>

namespace weir_test {

/// A store, and how often it was asked for what: on an engine, each is a round trip. All of it in
/// one thread.
template <class Store>
class counting_store {
 public:
  using executor_type = typename Store::executor_type;

  explicit counting_store(Store store) : store_{std::move(store)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }

  template <class C, class Token>
    requires weir::executes<Store const, C>
  auto async_execute(C const& c, Token&& token) const {
    ++(*asked_)[typeid(C)];
    return store_.async_execute(c, std::forward<Token>(token));
  }

  /// A worker asks a store in the calling thread if it can, which is another way through it.
  template <class C>
    requires weir::executes_now<Store const, C>
  auto execute(C const& c) const {
    ++(*asked_)[typeid(C)];
    return store_.execute(c);
  }

  /// Of all commands.
  [[nodiscard]] std::uint64_t asked() const {
    std::uint64_t out = 0;
    for (auto const& [what, n] : *asked_) out += n;
    return out;
  }
  template <class C>
  [[nodiscard]] std::uint64_t asked_for() const {
    auto const found = asked_->find(typeid(C));
    return found == asked_->end() ? 0 : found->second;
  }
  void forget() const { asked_->clear(); }

 private:
  Store store_;
  std::shared_ptr<std::map<std::type_index, std::uint64_t>> asked_ =
      std::make_shared<std::map<std::type_index, std::uint64_t>>();
};

}  // namespace weir_test

#endif
