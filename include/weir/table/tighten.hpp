// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_TIGHTEN_HPP
#define WEIR_TABLE_TIGHTEN_HPP

#include <cstddef>
#include <new>

namespace weir::detail {

/// Makes a hash table smaller that has become sparse, to be called after an erasure. Of many tables
/// that were large in turn none gives its memory back by itself, and the sum of what they once
/// needed is not bounded. Amortised, it costs an erasure nothing.
template <class Table>
void tighten(Table& table) noexcept {
  constexpr std::size_t small = 1024;
  constexpr std::size_t sparse = 8;
  if (table.bucket_count() <= small || table.size() * sparse > table.bucket_count()) return;
  try {
    table.rehash(table.size() * 2);
  } catch (std::bad_alloc const&) {  // then later
  }
}

}  // namespace weir::detail

#endif
