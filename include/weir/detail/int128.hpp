// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_INT128_HPP
#define WEIR_DETAIL_INT128_HPP

// Integers of 128 bits: the compiler's, where it has them (g++ and clang do, the language has not),
// and Boost's otherwise, which are slower. The macro WEIR_NO_INT128 has them tested.
#if defined(__SIZEOF_INT128__) && !defined(WEIR_NO_INT128)

namespace weir::detail {

__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;

}  // namespace weir::detail

#else

#include <boost/multiprecision/cpp_int.hpp>

namespace weir::detail {

using int128 = boost::multiprecision::int128_t;
using uint128 = boost::multiprecision::uint128_t;

}  // namespace weir::detail

#endif

#endif
