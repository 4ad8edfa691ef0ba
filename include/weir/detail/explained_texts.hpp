// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_EXPLAINED_TEXTS_HPP
#define WEIR_DETAIL_EXPLAINED_TEXTS_HPP

#include "weir/detail/config.hpp"
#include "weir/error.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace weir::detail {

/// weir's category: it has the same id, by which Boost compares categories. All of its messages end
/// with one text.
class explained_category final : public error_category {
 public:
  explicit explained_category(std::string_view text) : text_{text} {}

  [[nodiscard]] std::string_view text() const noexcept { return text_; }

  [[nodiscard]] std::string message(int value) const override {
    return error_category::message(value) + ": " + text_;
  }
  [[nodiscard]] char const* message(int value, char* to, std::size_t size) const noexcept override {
    if (size == 0) return to;
    std::size_t used = 0;
    auto const add = [&](std::string_view part) {
      auto const n = std::min(part.size(), size - 1 - used);
      std::copy_n(part.begin(), n, to + used);
      used += n;
    };
    add(message_of(static_cast<errc>(value)));
    add(": ");
    add(text_);
    to[used] = 0;
    return to;
  }

 private:
  std::string const text_;
};

WEIR_DECL std::string printable(std::string_view text, std::size_t most) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  bool gap = false;
  for (char const c : text) {
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      gap = !out.empty();
      continue;
    }
    if (std::exchange(gap, false)) out += ' ';
    if (c > ' ' && c <= '~') {
      out += c;
    } else {
      auto const byte = static_cast<unsigned char>(c);
      out += "\\x";
      out += digits[byte >> 4U];
      out += digits[byte & 0xFU];
    }
    if (out.size() > most) {
      out.resize(most);
      return out += "...";
    }
  }
  return out;
}

WEIR_DECL std::string_view explanation_of(error_code const& ec) noexcept {
  if (ec.category() != weir::error_category()) return {};
  auto const* const of = dynamic_cast<explained_category const*>(&ec.category());
  return of == nullptr ? std::string_view{} : of->text();
}

WEIR_DECL error_code explained(error_code ec, std::string_view text) noexcept {
  if (!ec || ec.category() != weir::error_category() || !explanation_of(ec).empty()) return ec;
  try {
    struct texts {
      std::mutex mutex{};
      std::map<std::string, explained_category, std::less<>> all{};
    };
    static auto& known = *new texts;  // never destroyed: errors refer to it
    // Strangers choose what is wrong with their input: it leaves the causes of others half of it.
    std::size_t const most = ec == condition::bad_input ? 500 : 1000;
    constexpr std::size_t longest = 300;
    auto const key = printable(text, longest);
    if (key.empty()) return ec;
    std::lock_guard const lock{known.mutex};
    auto found = known.all.find(key);
    if (found == known.all.end()) {
      if (known.all.size() >= most) return ec;
      found = known.all
                  .emplace(std::piecewise_construct, std::forward_as_tuple(key),
                           std::forward_as_tuple(key))
                  .first;
    }
    return {ec.value(), found->second};
  } catch (...) {  // out of memory: without it then
    return ec;
  }
}

}  // namespace weir::detail

#endif
