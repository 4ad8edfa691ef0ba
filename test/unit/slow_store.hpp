// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_UNIT_SLOW_STORE_HPP
#define WEIR_TEST_UNIT_SLOW_STORE_HPP

#include "weir/clock/manual.hpp"
#include "weir/command/list.hpp"
#include "weir/concept.hpp"
#include "weir/error.hpp"
#include "weir/posting.hpp"
#include "weir/time.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>

namespace weir_test {

/// A store at a distance: each command is executed, and answered, after a round trip; any number
/// of them are under way at once. It counts them. All of it in one thread.
template <class Store>
class slow_store {
 public:
  using executor_type = typename Store::executor_type;

  slow_store(Store store, weir::manual_clock clock, weir::duration round_trip)
      : store_{std::move(store)},
        clock_{std::move(clock)},
        round_trip_{round_trip} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }

  template <class C, class Token>
    requires weir::executes<Store const, C>
  auto async_execute(C const& c, Token&& token) const {
    if constexpr (weir::command::waits_for_event<C>) {
      auto initiate = [self = *this](auto handler, C const& command) {
        auto const how = self.how_is_answered(command);
        if (!how.error) return self.store_.async_execute(command, std::move(handler));
        weir::post_completion(self.get_executor(), std::move(handler), how.error, weir::hint{});
      };
      return boost::asio::async_initiate<Token, void(weir::error_code, weir::hint)>(
          std::move(initiate), token, c);
    } else {
      auto initiate = [self = *this](auto handler, C const& command) {
        auto& n = (*self.counts_)[typeid(C)];
        ++n.asked;
        n.most = std::max(n.most, ++n.under_way);
        auto const how = self.how_is_answered(command);
        auto then = [self, command, failed = how.error,
                     handler = std::move(handler)](weir::error_code) mutable {
          --(*self.counts_)[typeid(C)].under_way;
          if (!failed) {
            self.store_.async_execute(command, std::move(handler));
          } else {
            boost::asio::dispatch(
                boost::asio::append(std::move(handler), failed, typename C::result{}));
          }
        };
        self.clock_.async_wait_until(self.get_executor(), self.clock_.steady_now() + how.after,
                                     std::move(then));
      };
      return boost::asio::async_initiate<Token, void(weir::error_code, typename C::result)>(
          std::move(initiate), token, c);
    }
  }

  /// When a command is answered, and whether it fails instead of being executed.
  struct answer {
    weir::duration after;
    weir::error_code error{};
  };
  /// Decides that for each command of this type.
  template <class C>
  void answers(std::function<answer(C const&)> how) const {
    (*answers_)[typeid(C)] = [how = std::move(how)](void const* c) {
      return how(*static_cast<C const*>(c));
    };
  }
  /// Claims of this queue take so long instead.
  void claims_take(std::string const& queue, weir::duration d) const { (*slower_)[queue] = d; }

  struct count {
    std::size_t asked = 0;
    std::size_t under_way = 0;
    std::size_t most = 0;  ///< under way at once
  };
  template <class C>
  [[nodiscard]] count of() const {
    return (*counts_)[typeid(C)];
  }

 private:
  template <class C>
  [[nodiscard]] answer how_is_answered(C const& c) const {
    if (auto const own = answers_->find(typeid(C)); own != answers_->end()) return own->second(&c);
    if constexpr (std::is_same_v<C, weir::command::dequeue_jobs>) {
      if (auto const own = slower_->find(c.queue); own != slower_->end()) return {own->second};
    }
    return {round_trip_};
  }

  Store store_;
  weir::manual_clock clock_;
  weir::duration round_trip_;
  std::shared_ptr<std::map<std::string, weir::duration, std::less<>>> slower_ =
      std::make_shared<std::map<std::string, weir::duration, std::less<>>>();
  std::shared_ptr<std::map<std::type_index, std::function<answer(void const*)>>> answers_ =
      std::make_shared<std::map<std::type_index, std::function<answer(void const*)>>>();
  std::shared_ptr<std::map<std::type_index, count>> counts_ =
      std::make_shared<std::map<std::type_index, count>>();
};

}  // namespace weir_test

#endif
