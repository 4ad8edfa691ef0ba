// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SIMULATION_ENGINE_HPP
#define WEIR_TEST_SIMULATION_ENGINE_HPP

#include "weir/store/memory.hpp"
#include "weir/testing/simulation.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace weir::testing::simulation {

using memory_engine = basic_memory_store<simulated_clock>;

/// The store that the programs run on: the memory store, or one with a deliberate defect, to see
/// that the simulator finds it. Defects are what an author of a store might get wrong.
template <class Defects>
class engine_with {
 public:
  using executor_type = boost::asio::any_io_executor;

  engine_with(memory_engine store, int defect)
      : store_{std::move(store)},
        defects_{defect < 0 && !always ? nullptr : std::make_shared<Defects>(defect)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }
  [[nodiscard]] time_point now() const noexcept { return store_.now(); }

  template <class C>
    requires weir::detail::engine_step<C>
  result<typename C::result> execute(C const& c) const {
    if constexpr (requires { defects_->step(c, store_); }) {
      if (defects_) return defects_->step(c, store_);
    }
    return store_.execute(c);
  }

  template <class C, class Token>
    requires weir::command::waits_for_event<C>
  auto async_execute(C const& c, Token&& token) const {
    return store_.async_execute(c, std::forward<Token>(token));
  }

 private:
  /// Does it change something without any defect, too?
  static constexpr bool always = requires { Defects::always; };

  memory_engine store_;
  std::shared_ptr<Defects> defects_;
};

}  // namespace weir::testing::simulation

#endif
