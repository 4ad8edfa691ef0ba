// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_CONFIG_HPP
#define WEIR_DETAIL_CONFIG_HPP

// weir is header-only unless a program defines WEIR_SEPARATE_COMPILATION in all of its translation
// units. Then headers only declare what stands behind their seams, and one translation unit
// includes weir/src.hpp, store/NAME/src.hpp of each engine that is used, and console/src.hpp if the
// console is.

/// Before the definition of a function that is no template and stands behind a seam.
#if defined(WEIR_SEPARATE_COMPILATION)
#define WEIR_DECL
#else
#define WEIR_DECL inline
#endif

/// Before an operation. Without a completion token it begins when it is awaited, and never if it is
/// not.
#define WEIR_OPERATION                                                                             \
  [[nodiscard("it begins when it is awaited: co_await it, or give it a completion token")]]

#endif
