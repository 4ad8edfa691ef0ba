// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_PATH_TEXT_HPP
#define WEIR_EXAMPLE_MANIFEST_PATH_TEXT_HPP

#include <boost/locale/utf.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// A path is any bytes but NUL. JSON wants valid UTF-8, and a terminal obeys control characters:
// each gets a form of the path that it can take.
namespace manifest {

namespace detail {

using utf8 = boost::locale::utf::utf_traits<char>;

inline constexpr std::string_view hex_digits = "0123456789ABCDEF";

/// The first code point of `text` and the bytes that it takes, or one byte that is not UTF-8.
struct utf8_piece {
  std::string_view bytes;
  std::optional<std::uint32_t> code_point;
};

[[nodiscard]] inline utf8_piece first_piece(std::string_view text) {
  char const* at = text.data();
  std::uint32_t const c = utf8::decode(at, text.data() + text.size());
  if (c == boost::locale::utf::illegal || c == boost::locale::utf::incomplete) {
    return {text.substr(0, 1), std::nullopt};
  }
  return {text.substr(0, static_cast<std::size_t>(at - text.data())), c};
}

inline void append_hex(std::string& out, unsigned char byte) {
  out += hex_digits[byte >> 4U];
  out += hex_digits[byte & 0xFU];
}

/// Characters that a terminal does not simply show: controls, line and paragraph separators, and
/// those that change the direction of text, by which one name can be made to look like another.
[[nodiscard]] constexpr bool unprintable(std::uint32_t c) noexcept {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x61C ||
         (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) ||
         (c >= 0xE0000 && c <= 0xE007F);
}

}  // namespace detail

/// The path as UTF-8: `%` and the bytes that are not UTF-8 become `%XX`, all else stays as it is.
/// Two paths never have the same text.
[[nodiscard]] inline std::string to_text(std::string_view path) {
  std::string text;
  text.reserve(path.size());
  while (!path.empty()) {
    auto const piece = detail::first_piece(path);
    if (piece.code_point && *piece.code_point != '%') {
      text += piece.bytes;
    } else {
      text += '%';
      detail::append_hex(text, static_cast<unsigned char>(piece.bytes.front()));
    }
    path.remove_prefix(piece.bytes.size());
  }
  return text;
}

/// The path of which `text` is the text. Empty: it is no path's text.
[[nodiscard]] inline std::optional<std::string> from_text(std::string_view text) {
  std::string path;
  path.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      path += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    auto const high = detail::hex_digits.find(text[i + 1]);
    auto const low = detail::hex_digits.find(text[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    path += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (to_text(path) != text) return std::nullopt;  // escaped what need not be
  return path;
}

/// The path for a terminal that shows UTF-8: nothing in it moves the cursor or changes colours.
/// Backslashes and what is not printable are escaped as in C.
[[nodiscard]] inline std::string for_terminal(std::string_view path) {
  std::string shown;
  shown.reserve(path.size());
  while (!path.empty()) {
    auto const piece = detail::first_piece(path);
    path.remove_prefix(piece.bytes.size());
    if (piece.bytes == "\\") {
      shown += "\\\\";
    } else if (piece.bytes == "\n") {
      shown += "\\n";
    } else if (piece.bytes == "\r") {
      shown += "\\r";
    } else if (piece.bytes == "\t") {
      shown += "\\t";
    } else if (piece.code_point && !detail::unprintable(*piece.code_point)) {
      shown += piece.bytes;
    } else {
      for (char const byte : piece.bytes) {
        shown += "\\x";
        detail::append_hex(shown, static_cast<unsigned char>(byte));
      }
    }
  }
  return shown;
}

}  // namespace manifest

#endif
