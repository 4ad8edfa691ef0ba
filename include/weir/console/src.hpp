// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_SRC_HPP
#define WEIR_CONSOLE_SRC_HPP

// The console's pages, compiled: for one translation unit of a program that defines
// WEIR_SEPARATE_COMPILATION in all of them.

#if !defined(WEIR_SEPARATE_COMPILATION)
#error "weir/console/src.hpp is for programs that define WEIR_SEPARATE_COMPILATION"
#endif

#include "weir/console/site.hpp"

#endif
