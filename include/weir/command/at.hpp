// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_COMMAND_AT_HPP
#define WEIR_COMMAND_AT_HPP

#include "weir/time.hpp"

namespace weir::command {

/// A command together with the time at which the store is to believe that it runs: for tests and
/// replays. A store that executes it trusts its caller's clock for that one step, so it is never
/// for production on a shared store.
template <class Command>
struct at {
  using result = typename Command::result;                 ///< the command's own
  static constexpr bool repeatable = Command::repeatable;  ///< if the command is

  Command command;  ///< what is executed
  time_point time;  ///< when, as far as this step is concerned; it does not set the store's time
};

}  // namespace weir::command

#endif
