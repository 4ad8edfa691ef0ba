// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_CONSOLE_ANY_STORE_HPP
#define WEIR_EXAMPLE_CONSOLE_ANY_STORE_HPP

#include "weir/command/list.hpp"
#include "weir/concept.hpp"
#include "weir/error.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

namespace console {

namespace asio = boost::asio;

template <class C>
using handler_of = asio::any_completion_handler<void(weir::error_code, typename C::result)>;

/// A store without its type: weir's primitives work on it as on any other. So the console's
/// commands are compiled once, and only the file that opens a store includes it.
template <class... Cs>
class erased_store {
  using ways = std::tuple<std::function<void(Cs const&, handler_of<Cs>)>...>;
  template <class C>
  using way = std::function<void(C const&, handler_of<C>)>;

 public:
  using executor_type = asio::any_io_executor;

  template <class Store>
  explicit erased_store(Store const& store)
      : executor_{store.get_executor()},
        shards_{store.shard_count()},
        ways_{std::make_shared<ways>(way<Cs>{[store](Cs const& c, handler_of<Cs> handler) {
          store.async_execute(c, std::move(handler));
        }}...)},
        close_{[store] { store.close(); }} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return shards_; }

  template <class C, class Token>
    requires(std::same_as<C, Cs> || ...)
  auto async_execute(C const& c, Token&& token) const {
    auto start = [](handler_of<C> handler, std::shared_ptr<ways> const& to, C const& command) {
      std::get<way<C>> (*to)(command, std::move(handler));
    };
    return asio::async_initiate<Token, void(weir::error_code, typename C::result)>(start, token,
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

namespace detail {
template <class... Cs>
erased_store<weir::command::inspect_permits, weir::command::inspect_lock, Cs...> store_for(
    weir::command::list_of<Cs...>);
}  // namespace detail

/// All commands about jobs, and those that read limits and locks.
using any_store = decltype(detail::store_for(weir::command::job_commands::list{}));
static_assert(weir::job_store<any_store>);

}  // namespace console

#endif
