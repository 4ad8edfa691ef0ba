// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The texts of the checksum manifest: a path comes back from each of its forms, no form does what
// it must not (break a line, move a cursor), and a command line is understood within its bounds or
// refused.

#include "../../example/manifest/checksum_lines.hpp"
#include "../../example/manifest/options.hpp"
#include "../../example/manifest/path_text.hpp"
#include "../../example/manifest/quantity_text.hpp"
#include "input.hpp"

#include <boost/locale/utf.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// Undoes C's escapes, of those that are allowed.
std::optional<std::string> unescape(std::string_view text, std::string_view allowed) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size() || allowed.find(text[i]) == std::string_view::npos) return std::nullopt;
    switch (text[i]) {
      case '\\': out += '\\'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      default: {
        if (text.size() - i < 3) return std::nullopt;
        auto const digits = std::string{text.substr(i + 1, 2)};
        out += static_cast<char>(std::stoi(digits, nullptr, 16));
        i += 2;
      }
    }
  }
  return out;
}

void check_path(std::string const& path) {
  auto const text = manifest::to_text(path);
  fuzz::require(is_utf8(text), "a path's text is UTF-8");
  fuzz::require(manifest::from_text(text) == path, "a path comes back from its text");
  if (auto const other = manifest::from_text(path)) {
    fuzz::require(manifest::to_text(*other) == path, "a path has one text only");
  }

  auto const shown = manifest::for_terminal(path);
  fuzz::require(is_utf8(shown), "a terminal is given UTF-8");
  auto const obeyed = [](char c) { return (c >= 0 && c < ' ') || c == '\x7F'; };
  fuzz::require(std::ranges::none_of(shown, obeyed), "and nothing that it obeys");
  fuzz::require(unescape(shown, "\\nrtx") == path, "two paths never look the same");
}

void check_lines(std::string const& path) {
  std::string const digest(64, 'd');
  std::string text;
  manifest::append_line(text, {path, digest});
  fuzz::require(std::ranges::count(text, '\n') == 1 && text.back() == '\n', "a path is one line");
  fuzz::require(text.find('\r') == std::string::npos, "that no other system breaks");
  bool const escaped = text.front() == '\\';
  std::string_view line{text};
  line.remove_prefix(escaped ? 1 : 0);
  line.remove_suffix(1);
  fuzz::require(line.substr(0, 66) == digest + "  ", "digest, two spaces, path");
  auto const named = line.substr(66);
  fuzz::require((escaped ? unescape(named, "\\nr") : std::string{named}) == path,
                "the path comes back from its line");
}

void check_options(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size() && words.size() < 32;) {
    auto const end = std::min(text.find('\n', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    std::erase(words.back(), '\0');
    at = end + 1;
  }
  std::vector<char const*> arguments;
  for (auto const& word : words) arguments.push_back(word.c_str());
  try {
    auto const o = manifest::parse_options(arguments);
    fuzz::require(!o.directory.empty() && !o.output.empty(), "names are not empty");
    fuzz::require(o.workers >= 1 && o.workers <= 256, "workers within their bounds");
    fuzz::require(o.open_files >= 1 && o.open_files <= 4096, "open files within their bounds");
    fuzz::require(o.attempts >= 1 && o.attempts <= 100, "attempts within their bounds");
    fuzz::require(o.rate <= 1'000'000'000'000, "a rate within its bounds");
  } catch (manifest::usage_error const& e) {
    fuzz::require(*e.what() != '\0', "a refusal says why");
  }
}

void check_rate(std::string_view text) {
  std::uint64_t rate = 0;
  try {
    rate = manifest::parse_rate(text);
  } catch (manifest::usage_error const&) {
    return;
  }
  std::string const number{text.substr(0, text.find_first_not_of("0123456789."))};
  auto const unit = text.substr(number.size());
  long double exact = std::strtold(number.c_str(), nullptr);
  auto const power = unit.empty() ? std::string_view::npos
                                  : std::string_view{"kMGT"}.find(unit[0] == 'K' ? 'k' : unit[0]);
  bool const binary = unit.find('i') != std::string_view::npos;
  for (std::size_t i = 0; power != std::string_view::npos && i <= power; ++i) {
    exact *= binary ? 1024 : 1000;
  }
  fuzz::require(std::fabs(exact - static_cast<long double>(rate)) < 1.5L, "a rate is what it says");
}

void check_quantities(fuzz::input in) {
  auto const count = in.bits<std::uint64_t>();
  auto plain = manifest::count_text(count);
  fuzz::require(plain.size() < 4 || plain[plain.size() - 4] == ',', "thousands are set apart");
  std::erase(plain, ',');
  fuzz::require(plain == std::to_string(count), "and the digits are those of the number");

  auto const bytes = manifest::bytes_text(static_cast<double>(count));
  auto const power = std::string_view{"BkMGTPE"}.find(bytes[bytes.find(' ') + 1]);
  auto const said = std::strtod(bytes.c_str(), nullptr) * std::pow(1000.0, power);
  fuzz::require(std::fabs(said - static_cast<double>(count)) <=
                    static_cast<double>(count) * 0.0051 + 1e-9,
                "three digits count");

  auto const time = manifest::time_text(manifest::seconds{static_cast<double>(in.bits()) / 1000});
  fuzz::require(!time.empty() && time.size() < 32, "a time is short");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const text = fuzz::text_of(data, size);
  std::string path{text};
  check_rate(path);
  check_options(path);
  check_quantities(fuzz::input{data, size});
  std::erase(path, '\0');  // no path has one
  check_path(path);
  check_lines(path);
  return 0;
}
