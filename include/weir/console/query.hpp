// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_QUERY_HPP
#define WEIR_CONSOLE_QUERY_HPP

#include "weir/detail/whole_number.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail::web {

inline constexpr std::size_t target_size = 8192;  // bytes of a request's target
inline constexpr std::size_t most_parameters = 16;

using parameter = std::pair<std::string_view, std::string_view>;

/// Percent-encodes any bytes.
[[nodiscard]] inline std::string encoded(std::string_view text) {
  constexpr std::string_view plain = "-._~";
  std::string out;
  for (char const c : text) {
    bool const letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || plain.find(c) != plain.npos) {
      out += c;
    } else {
      auto const byte = static_cast<unsigned char>(c);
      out += '%';
      out += "0123456789ABCDEF"[byte >> 4U];
      out += "0123456789ABCDEF"[byte & 0xFU];
    }
  }
  return out;
}

/// Decodes what is percent-encoded, as a form sends it. Empty: it is not well-formed.
[[nodiscard]] inline std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i != text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned byte = 0;
    if (text.size() - i < 3) return std::nullopt;
    auto const* const end = text.data() + i + 3;
    if (std::from_chars(text.data() + i + 1, end, byte, 16).ptr != end) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

/// A target within the page: where, and with which parameters. Those that are empty are left out.
[[nodiscard]] inline std::string target_of(std::string_view path,
                                           std::initializer_list<parameter> parameters) {
  std::string out{path};
  char separator = '?';
  for (auto const& [name, value] : parameters) {
    if (value.empty()) continue;
    out.append(1, separator).append(name).append(1, '=').append(encoded(value));
    separator = '&';
  }
  return out;
}

/// A target, read: its path and its parameters.
class query {
 public:
  /// Reads a target. Empty: it is too long, not well-formed, or ambiguous.
  [[nodiscard]] static std::optional<query> parse(std::string_view target) {
    if (target.size() > target_size || !target.starts_with('/')) return std::nullopt;
    auto const mark = target.find('?');
    query out;
    out.path_ = target.substr(0, mark);
    auto rest = mark == target.npos ? std::string_view{} : target.substr(mark + 1);
    while (!rest.empty()) {
      auto const one = rest.substr(0, rest.find('&'));
      rest.remove_prefix(one.size() == rest.size() ? one.size() : one.size() + 1);
      auto const equal = one.find('=');
      if (equal == one.npos || out.values_.size() == most_parameters) return std::nullopt;
      auto value = decoded(one.substr(equal + 1));
      std::string name{one.substr(0, equal)};
      if (!value || !out.at(name).empty()) return std::nullopt;
      out.values_.emplace_back(std::move(name), std::move(*value));
    }
    return out;
  }

  [[nodiscard]] std::string const& path() const noexcept { return path_; }
  /// A parameter; empty: there is none.
  [[nodiscard]] std::string const& at(std::string_view name) const noexcept {
    static std::string const none;
    for (auto const& [own, value] : values_) {
      if (own == name) return value;
    }
    return none;
  }
  /// A parameter that is a number; 0: it is none.
  [[nodiscard]] std::uint64_t number(std::string_view name) const noexcept {
    return whole_number<std::uint64_t>(at(name)).value_or(0);
  }

 private:
  std::string path_;
  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace weir::detail::web

#endif
