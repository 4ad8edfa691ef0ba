// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_CONSOLE_ANY_STORE_HPP
#define WEIR_EXAMPLE_CONSOLE_ANY_STORE_HPP

#include "weir/console/any_store.hpp"

namespace console {

namespace asio = boost::asio;

using weir::detail::erased_store;

/// The store that the commands of weirctl are compiled for, once. Its `close` ends what keeps the
/// executor busy.
using any_store = weir::detail::console_store;

}  // namespace console

#endif
