// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_WARNING_HPP
#define WEIR_STORE_REDIS_WARNING_HPP

#include "weir/detail/config.hpp"

#include <iostream>
#include <string_view>

namespace weir::detail {

WEIR_DECL void warn_on_clog(std::string_view what) { std::clog << "weir: " << what << std::endl; }

}  // namespace weir::detail

#endif
