// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_WHOLE_NUMBER_HPP
#define WEIR_DETAIL_WHOLE_NUMBER_HPP

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace weir::detail {

/// The number that all of a text is, in decimal digits. Empty: it is none, or above `most`.
template <class Number>
[[nodiscard]] std::optional<Number> whole_number(
    std::string_view text, Number most = std::numeric_limits<Number>::max()) noexcept {
  Number out{};
  auto const* const end = text.data() + text.size();
  auto const [at, ec] = std::from_chars(text.data(), end, out);
  if (ec != std::errc{} || at != end || out > most) return std::nullopt;
  return out;
}

}  // namespace weir::detail

#endif
