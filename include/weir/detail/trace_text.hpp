// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_TRACE_TEXT_HPP
#define WEIR_DETAIL_TRACE_TEXT_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The grammar of the W3C recommendation Trace Context, below `trace_context`.
namespace weir::detail {

inline constexpr std::string_view traceparent_name = "traceparent";
inline constexpr std::string_view tracestate_name = "tracestate";

/// Is `name` this lower-case name, in any case?
[[nodiscard]] inline bool is_header(std::string_view name, std::string_view lower) noexcept {
  return std::ranges::equal(name, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

[[nodiscard]] constexpr int lower_hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// Reads two lower-case hexadecimal digits for each byte; false: there are others.
template <std::size_t N>
[[nodiscard]] bool read_hex(std::string_view text, std::array<std::uint8_t, N>& out) noexcept {
  if (text.size() != 2 * N) return false;
  for (std::size_t i = 0; i != N; ++i) {
    int const high = lower_hex_digit(text[2 * i]);
    int const low = lower_hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

template <std::size_t N>
void append_hex(std::string& to, std::array<std::uint8_t, N> const& bytes) {
  for (auto const b : bytes) {
    to += "0123456789abcdef"[b >> 4];
    to += "0123456789abcdef"[b & 15];
  }
}

template <std::size_t N>
[[nodiscard]] bool all_zero(std::array<std::uint8_t, N> const& bytes) noexcept {
  return std::ranges::all_of(bytes, [](std::uint8_t b) { return b == 0; });
}

/// Random bytes, not all zero.
template <std::size_t N, class Random>
void fill_id(std::array<std::uint8_t, N>& out, Random random) {
  do {
    for (std::size_t i = 0; i != N; i += 8) {
      auto const bits = random();
      for (std::size_t k = 0; k != 8; ++k) out[i + k] = static_cast<std::uint8_t>(bits >> 8 * k);
    }
  } while (all_zero(out));
}

/// A key may begin with a digit, and an `@` stand anywhere in it: the grammar of level 2, which
/// takes all that level 1 does.
[[nodiscard]] inline bool is_tracestate_key(std::string_view key) noexcept {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789_-*/@";
  return !key.empty() && key.size() <= 256 && allowed.find(key.front()) < 36 &&
         key.find_first_not_of(allowed) == std::string_view::npos;
}

[[nodiscard]] inline bool is_tracestate_value(std::string_view value) noexcept {
  return !value.empty() && value.size() <= 256 && value.back() != ' ' &&
         std::ranges::all_of(value,
                             [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

/// Its entries, without white space around them and without empty ones; none: it is malformed, has
/// more than 32 entries, or one key twice.
[[nodiscard]] inline std::optional<std::string> read_tracestate(std::string_view text) {
  std::string out;
  std::vector<std::string_view> keys;
  while (!text.empty()) {
    auto const comma = std::min(text.find(','), text.size());
    auto entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    entry.remove_prefix(std::min(entry.find_first_not_of(" \t"), entry.size()));
    entry.remove_suffix(entry.size() - (entry.find_last_not_of(" \t") + 1));
    if (entry.empty()) continue;
    auto const equals = entry.find('=');
    if (equals == std::string_view::npos || !is_tracestate_key(entry.substr(0, equals)) ||
        !is_tracestate_value(entry.substr(equals + 1)) || keys.size() == 32 ||
        std::ranges::find(keys, entry.substr(0, equals)) != keys.end()) {
      return std::nullopt;
    }
    keys.push_back(entry.substr(0, equals));
    out.append(out.empty() ? "" : ",").append(entry);
  }
  return out;
}

}  // namespace weir::detail

#endif
