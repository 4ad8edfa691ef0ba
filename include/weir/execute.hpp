// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXECUTE_HPP
#define WEIR_EXECUTE_HPP

#include "weir/concept.hpp"
#include "weir/detail/config.hpp"

#include <boost/asio/default_completion_token.hpp>
#include <boost/asio/deferred.hpp>

#include <utility>

namespace weir {

/// Executes one command on a store: the one corridor through which every primitive goes.
///
/// @param store   a store that executes the command; it must live until the operation completes (a
/// copy does: stores
///                are handles)
/// @param command what is asked; its views must live until the handler is invoked or destroyed
/// @param token   completes with `void(error_code, Command::result)`
///
/// Errors: those of the command, bad input before any I/O, `store_unavailable`, `outcome_unknown`,
/// and `operation_aborted` when cancelled. What a cancelled command leaves behind is the store's to
/// say: done or not done, never half.
template <class Store, class Command, class Token = boost::asio::deferred_t>
  requires executes<Store, Command>
WEIR_OPERATION auto async_execute(Store& store, Command const& command, Token&& token = {}) {
  return store.async_execute(command, std::forward<Token>(token));
}

}  // namespace weir

#endif
