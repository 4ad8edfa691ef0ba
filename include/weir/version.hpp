// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_VERSION_HPP
#define WEIR_VERSION_HPP

#include "weir/detail/requirements.hpp"

#include <string_view>

/// @file
/// The version of weir.

// The version is written here only: CMakeLists.txt and conanfile.py read these three lines.
#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0

/// @def WEIR_VERSION_MAJOR
/// Before 1.0 the interface may change with the minor version.
/// @def WEIR_VERSION_MINOR
/// Grows with what is new.
/// @def WEIR_VERSION_PATCH
/// Grows with corrections.

/// For `#if`: two digits each for minor and patch, so that versions compare as numbers.
#define WEIR_VERSION (WEIR_VERSION_MAJOR * 10000 + WEIR_VERSION_MINOR * 100 + WEIR_VERSION_PATCH)

/// @cond
#define WEIR_DETAIL_STRINGIZE_(x) #x
#define WEIR_DETAIL_STRINGIZE(x) WEIR_DETAIL_STRINGIZE_(x)
/// @endcond

/// The same as text, "major.minor.patch".
#define WEIR_VERSION_STRING                                                                        \
  WEIR_DETAIL_STRINGIZE(WEIR_VERSION_MAJOR)                                                        \
  "." WEIR_DETAIL_STRINGIZE(WEIR_VERSION_MINOR) "." WEIR_DETAIL_STRINGIZE(WEIR_VERSION_PATCH)

namespace weir {

/// The version of the headers that this was compiled with, as "major.minor.patch".
inline constexpr std::string_view version = WEIR_VERSION_STRING;

}  // namespace weir

#endif
