// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_PATH_TEXT_HPP
#define WEIR_EXAMPLE_MANIFEST_PATH_TEXT_HPP

#include <boost/locale/utf.hpp>

#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

// A path is any bytes but NUL. JSON is made of characters, and a manifest of lines: each has a form
// of the path that gives the same bytes back.
namespace manifest {

using utf8 = boost::locale::utf::utf_traits<char>;

/// The path as UTF-8: each byte becomes the character of that number.
[[nodiscard]] inline std::string to_text(std::string_view path) {
  std::string text;
  for (char const c : path) {
    utf8::encode(static_cast<unsigned char>(c), std::back_inserter(text));
  }
  return text;
}

/// The path of which `text` is the text. Throws `std::invalid_argument` if it is no path's.
[[nodiscard]] inline std::string from_text(std::string_view text) {
  std::string path;
  for (auto const* at = text.data(); at != text.data() + text.size();) {
    auto const character = utf8::decode(at, text.data() + text.size());
    if (character > 0xFF) throw std::invalid_argument{"not the text of a path"};
    path += static_cast<char>(character);
  }
  return path;
}

/// One line as coreutils' `sha256sum` 9 prints it: digest, two spaces, path. A path with a
/// backslash, newline or carriage return has these escaped, and then the line begins with a
/// backslash.
[[nodiscard]] inline std::string checksum_line(std::string_view digest, std::string_view path) {
  std::string line = path.find_first_of("\\\n\r") == std::string_view::npos ? "" : "\\";
  line.append(digest).append("  ");
  for (char const c : path) {
    switch (c) {
      case '\\': line += "\\\\"; break;
      case '\n': line += "\\n"; break;
      case '\r': line += "\\r"; break;
      default: line += c;
    }
  }
  return line + '\n';
}

}  // namespace manifest

#endif
