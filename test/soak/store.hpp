// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_STORE_HPP
#define WEIR_TEST_SOAK_STORE_HPP

#include "soak/engine.hpp"
#include "weir/detail/async_lift.hpp"

#include <boost/asio/async_result.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace soak {

/// The store of every process: a handle of an engine.
class store {
 public:
  using executor_type = boost::asio::any_io_executor;

  explicit store(std::shared_ptr<engine> e) : engine_{std::move(e)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return engine_->get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return engine_->shard_count(); }
  void close() const { engine_->close(); }
  /// Commands so far, by all handles of it.
  [[nodiscard]] std::uint64_t executed() const noexcept { return *executed_; }

  template <class C, class Token>
    requires(engine::has<C>)
  auto async_execute(C const& c, Token&& token) const {
    ++*executed_;
    auto initiate = [](handler_of<C> handler, std::shared_ptr<engine> const& e, C command) {
      e->run(command, std::move(handler));
    };
    return boost::asio::async_initiate<Token, void(weir::error_code, typename C::result)>(
        weir::detail::bound_initiation{get_executor(), initiate}, token, engine_, c);
  }

 private:
  std::shared_ptr<engine> engine_;
  std::shared_ptr<std::atomic<std::uint64_t>> executed_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace soak

#endif
