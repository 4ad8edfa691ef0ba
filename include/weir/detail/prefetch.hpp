// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_PREFETCH_HPP
#define WEIR_DETAIL_PREFETCH_HPP

namespace weir::detail {

/// Has memory fetched that is soon read, where the compiler can say so.
inline void prefetch([[maybe_unused]] void const* at) noexcept {
#if defined(__GNUC__)
  __builtin_prefetch(at);
#endif
}

}  // namespace weir::detail

#endif
