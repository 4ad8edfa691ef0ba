// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_ANY_STORE_HPP
#define WEIR_CONSOLE_ANY_STORE_HPP

#include "weir/command/list.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/error.hpp"
#include "weir/posting.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/system/errc.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

namespace weir::detail {

/// A store of any kind that executes `Cs`: what uses it is compiled once for all stores. A command
/// that the store behind it does not have fails with `not_supported`.
template <class... Cs>
class erased_store {
  template <class C>
  using handler_of = boost::asio::any_completion_handler<void(error_code, typename C::result)>;
  template <class C>
  using way = std::function<void(C const&, handler_of<C>)>;
  using ways = std::tuple<way<Cs>...>;

 public:
  using executor_type = boost::asio::any_io_executor;

  template <class Store>
    requires(!std::same_as<Store, erased_store>)
  explicit erased_store(Store const& store)
      : executor_{store.get_executor()},
        shards_{store.shard_count()},
        ways_{std::make_shared<ways>(way<Cs>{[store](Cs const& c, handler_of<Cs> handler) {
          if constexpr (executes<Store const, Cs>) {
            store.async_execute(c, std::move(handler));
          } else {
            auto const ec = make_error_code(boost::system::errc::not_supported);
            post_completion(store.get_executor(), std::move(handler), ec, typename Cs::result{});
          }
        }}...)},
        close_{[store] {
          if constexpr (requires { store.close(); }) store.close();
        }} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return shards_; }

  template <class C, class Token>
    requires(std::same_as<C, Cs> || ...)
  auto async_execute(C const& c, Token&& token) const {
    auto start = [](handler_of<C> handler, std::shared_ptr<ways> const& to, C const& command) {
      std::get<way<C>> (*to)(command, std::move(handler));
    };
    return boost::asio::async_initiate<Token, void(error_code, typename C::result)>(start, token,
                                                                                    ways_, c);
  }

  /// Ends what keeps the executor busy.
  void close() const { close_(); }

 private:
  executor_type executor_;
  std::uint32_t shards_;
  std::shared_ptr<ways> ways_;
  std::function<void()> close_;
};

template <class... Cs>
erased_store<command::inspect_permits, command::inspect_lock, command::peek_bucket, Cs...>
    console_store_for(command::list_of<Cs...>);

/// The commands that a console asks a store.
using console_store = decltype(console_store_for(command::job_commands::list{}));
static_assert(job_store<console_store>);

}  // namespace weir::detail

#endif
