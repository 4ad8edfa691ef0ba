// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_FAILURE_HPP
#define WEIR_FAILURE_HPP

#include "weir/error.hpp"
#include "weir/time.hpp"

#include <string>

namespace weir {

/// The last failure of a store as a whole, as its `last_failure()` tells: it was away, or refused
/// whoever asked. Commands that fail because of it have the same error, and its text in their
/// `message()`. What concerns one command only is not here.
struct store_failure {
  error_code error{};  ///< empty: the store has not failed so far
  std::string text{};  ///< the cause, for people: where, and what the engine or the system said;
                       ///< printable ASCII, without passwords
  time_point since{};  ///< by this host's date: when it began
  bool over = false;   ///< the store has answered since
};

}  // namespace weir

#endif
