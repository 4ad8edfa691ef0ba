// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_HTML_HPP
#define WEIR_CONSOLE_HTML_HPP

#include "weir/console/text.hpp"

#include <boost/locale/utf.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::detail::web {

class markup;
inline namespace literals {
consteval markup operator""_html(char const* text, std::size_t size);
}  // namespace literals

/// A text that is HTML as it stands. Only a literal can be one: `"<td>"_html`.
class markup {
 public:
  [[nodiscard]] constexpr std::string_view view() const noexcept { return text_; }

 private:
  friend consteval markup literals::operator""_html(char const* text, std::size_t size);
  consteval explicit markup(std::string_view text) : text_{text} {}
  std::string_view text_;
};

inline namespace literals {
consteval markup operator""_html(char const* text, std::size_t size) {
  return markup{std::string_view{text, size}};
}
}  // namespace literals

/// Does a character show what is not there, hide what is, or end a line? Then its number is shown.
[[nodiscard]] constexpr bool misleads(std::uint32_t c) noexcept {
  auto const within = [c](std::uint32_t from, std::uint32_t to) { return c >= from && c <= to; };
  return c < 0x20 || within(0x7F, 0xA0) || c == 0xAD || c == 0x34F || c == 0x61C ||
         within(0x115F, 0x1160) || c == 0x1680 || within(0x17B4, 0x17B5) ||
         within(0x180B, 0x180F) || within(0x2000, 0x200F) || within(0x2028, 0x202F) ||
         within(0x205F, 0x206F) || c == 0x2800 || c == 0x3000 || c == 0x3164 ||
         within(0xFE00, 0xFE0F) || c == 0xFEFF || c == 0xFFA0 || within(0xFFF9, 0xFFFB) ||
         within(0xE0000, 0xE0FFF);
}

/// HTML that is being written. Everything that is put into it is escaped, so that it means itself
/// in an element and in a quoted attribute, unless it is a literal or HTML already. There is no
/// other way into it.
class html {
 public:
  html& operator<<(markup literal) {
    out_ += literal.view();
    return *this;
  }
  html& operator<<(html const& other) {
    out_ += other.out_;
    return *this;
  }
  html& operator<<(std::string_view text) {
    escape(text, {});
    return *this;
  }
  html& operator<<(std::integral auto number) {
    out_ += count_text(static_cast<std::uint64_t>(number));
    return *this;
  }

  /// Text whose lines and tabs stay what they are, as in a `<pre>`.
  html& lines(std::string_view text) {
    escape(text, "\n\t");
    return *this;
  }

  [[nodiscard]] std::string const& text() const noexcept { return out_; }
  [[nodiscard]] bool empty() const noexcept { return out_.empty(); }

 private:
  void escape(std::string_view text, std::string_view as_it_is) {
    namespace utf = boost::locale::utf;
    auto const* const end = text.data() + text.size();
    for (auto const* at = text.data(); at != end;) {
      auto const* const begin = at;
      auto const character = utf::utf_traits<char>::decode(at, end);
      if (character == utf::illegal || character == utf::incomplete) {
        at = begin + 1;
        code("\\x", static_cast<unsigned char>(*begin), 2);
      } else if (misleads(character) && as_it_is.find(*begin) == as_it_is.npos) {
        code(character < 0x100 ? "\\x" : "\\u", character, character < 0x100 ? 2 : 4);
      } else if (at - begin == 1) {
        put(*begin);
      } else {
        out_.append(begin, at);
      }
    }
  }
  void put(char c) {
    switch (c) {
      case '&': out_ += "&amp;"; break;
      case '<': out_ += "&lt;"; break;
      case '>': out_ += "&gt;"; break;
      case '"': out_ += "&quot;"; break;
      case '\'': out_ += "&#39;"; break;
      default: out_ += c;
    }
  }
  void code(std::string_view mark, std::uint32_t number, int digits) {
    out_ += mark;
    for (int shift = (number > 0xFFFF ? 5 : digits) * 4 - 4; shift >= 0; shift -= 4) {
      out_ += "0123456789ABCDEF"[number >> static_cast<unsigned>(shift) & 0xFU];
    }
  }

  std::string out_;
};

}  // namespace weir::detail::web

#endif
