// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The texts of the checksum manifest: a path comes back from each of its forms, and none breaks a
// line.

#include "../../example/manifest/path_text.hpp"
#include "input.hpp"

#include <boost/locale/utf.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

bool is_utf8(std::string_view text) {
  char const* at = text.data();
  auto const* const end = text.data() + text.size();
  while (at != end) {
    auto const c = boost::locale::utf::utf_traits<char>::decode(at, end);
    if (c == boost::locale::utf::illegal || c == boost::locale::utf::incomplete) return false;
  }
  return true;
}

/// Undoes the escapes of a line; empty: there are others.
std::optional<std::string> unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const at = text[i] == '\\' ? std::string_view{"\\nr"}.find(text.substr(++i, 1)) : 3;
    if (at > 3 || i == text.size()) return std::nullopt;
    out += at == 3 ? text[i] : "\\\n\r"[at];
  }
  return out;
}

void check_path(std::string const& path) {
  auto const text = manifest::to_text(path);
  fuzz::require(is_utf8(text), "a path's text is UTF-8");
  fuzz::require(manifest::from_text(text) == path, "a path comes back from its text");
  try {
    fuzz::require(manifest::to_text(manifest::from_text(path)) == path, "a path has one text only");
  } catch (std::invalid_argument const&) {
    return;
  }
}

void check_lines(std::string const& path) {
  std::string const digest(64, 'd');
  auto const text = manifest::checksum_line(digest, path);
  fuzz::require(std::ranges::count(text, '\n') == 1 && text.back() == '\n', "a path is one line");
  fuzz::require(text.find('\r') == std::string::npos, "that no other system breaks");
  bool const escaped = text.front() == '\\';
  std::string_view line{text};
  line.remove_prefix(escaped ? 1 : 0);
  line.remove_suffix(1);
  fuzz::require(line.substr(0, 66) == digest + "  ", "digest, two spaces, path");
  auto const named = line.substr(66);
  fuzz::require((escaped ? unescape(named) : std::string{named}) == path,
                "the path comes back from its line");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const text = fuzz::text_of(data, size);
  std::string path{text};
  std::erase(path, '\0');  // no path has one
  check_path(path);
  check_lines(path);
  return 0;
}
