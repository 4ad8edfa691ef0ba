// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_ENGINE_CALL_HPP
#define WEIR_DETAIL_ENGINE_CALL_HPP

#include "weir/command/list.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

// The seam of a store on an engine. In front of it is the store that users name, a handle; behind
// it its *engine*, a class that the store's header only declares, with a member
//
//     template <class C>
//     void execute(C const& c, call_terms const& terms, erased_handler<C> handler);
//
// NAME/engine.hpp defines it: it is part of the store's header, or is compiled once.
namespace weir::detail {

/// The handler of a command, whoever waits for it.
template <class C>
using erased_handler = boost::asio::any_completion_handler<void(error_code, typename C::result)>;

/// When a command is to be executed, where its caller says so; otherwise the store's time.
using told_time = std::optional<time_point>;

/// How long a handle's calls may take: 1 ms at least; 0, as long as the store's options say, from
/// `limits::span` on.
[[nodiscard]] constexpr duration bounded_patience(duration most) noexcept {
  if (most >= limits::span) return duration::zero();
  return std::max<duration>(most, std::chrono::milliseconds{1});
}

/// What a call says besides its command.
struct call_terms {
  told_time at{};
  duration patience{};  ///< how long it may take; 0: as long as the store's options say
};

template <class C, class... Lists>
inline constexpr bool is_listed = false;
template <class C, class... Cs, class... Lists>
inline constexpr bool is_listed<C, command::list_of<Cs...>, Lists...> =
    (std::is_same_v<C, Cs> || ...) || is_listed<C, Lists...>;

/// One of the commands that a store on an engine executes.
template <class C>
concept engine_command = is_listed<C, command::permit_commands::list, command::lock_commands::list,
                                   command::bucket_commands::list, command::job_commands::list>;

/// One of those that are steps.
template <class C> concept engine_step = engine_command<C> && !command::waits_for_event<C>;

/// Those that an engine executes: all, unless it says otherwise.
template <class Engine, class C>
inline constexpr bool engine_executes = engine_step<C>;

/// From the store to its engine, which is not known to callers in a program that compiles it apart.
template <class Engine, class C>
struct engine_way {
  static void execute(Engine& on, C const& c, call_terms const& terms, erased_handler<C> handler);
};

/// The same to what executes steps in the calling thread.
template <class Engine, class C, class When>
struct step_way {
  static result<typename C::result> execute(Engine& on, C const& c, When at);
};

/// Gives a command to an engine, and completes with its answer.
template <class C, class Engine, class Token>
auto async_engine_call(boost::asio::any_io_executor executor, std::shared_ptr<Engine> engine,
                       C const& c, call_terms const& terms, Token&& token) {
  auto initiate = [](erased_handler<C> handler, std::shared_ptr<Engine> const& on, C const& command,
                     call_terms const& with) {
    engine_way<Engine, C>::execute(*on, command, with, std::move(handler));
  };
  return boost::asio::async_initiate<Token, void(error_code, typename C::result)>(
      bound_initiation{std::move(executor), initiate}, token, std::move(engine), c, terms);
}

}  // namespace weir::detail

#endif
