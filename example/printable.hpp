// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_PRINTABLE_HPP
#define WEIR_EXAMPLE_PRINTABLE_HPP

#include <string>
#include <string_view>

namespace example {

/// Text of others for a terminal or a log: all but printable ASCII becomes `\xNN`, so that no
/// escape sequence and no line of its own is in it.
[[nodiscard]] inline std::string printable(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (char const c : text) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      auto const byte = static_cast<unsigned char>(c);
      out += "\\x";
      out += digits[byte >> 4U];
      out += digits[byte & 0xFU];
    }
  }
  return out;
}

/// A URL without the user and the password in it, and without all that may be a part of them where
/// it is no valid URL.
[[nodiscard]] inline std::string without_password(std::string_view url) {
  auto const scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string{url};
  auto const begin = scheme + std::string_view{"://"}.size();
  auto const at = url.rfind('@');
  if (at == std::string_view::npos || at < begin) return std::string{url};
  return std::string{url.substr(0, begin)} + std::string{url.substr(at + 1)};
}

}  // namespace example

#endif
