// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_STRING_HASH_HPP
#define WEIR_TABLE_STRING_HASH_HPP

#include <boost/container_hash/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <random>
#include <string_view>

namespace weir::detail {

/// Hashes users' texts (keys, queue names, holders) with a seed that every process draws anew: so
/// nobody can choose texts that all fall into one place of a table and make each step search them
/// all. What a store answers must not depend on it, or a simulated run could not be run again:
/// whoever goes through a table sorts what it finds.
struct string_hash {
  using is_avalanching = void;  // as boost::hash of a string is

  [[nodiscard]] std::size_t operator()(std::string_view text) const noexcept {
    auto hash = seed();
    boost::hash_range(hash, text.begin(), text.end());
    return hash;
  }

 private:
  [[nodiscard]] static std::size_t seed() noexcept {
    static std::size_t const drawn = draw();
    return drawn;
  }
  [[nodiscard]] static std::size_t draw() noexcept {
    try {
      std::random_device random;
      return static_cast<std::size_t>(std::uint64_t{random()} << 32 | random());
    } catch (std::exception const&) {  // without a source of entropy: where the program was loaded
      static char const somewhere = 0;
      return reinterpret_cast<std::uintptr_t>(&somewhere);
    }
  }
};

}  // namespace weir::detail

#endif
