// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "output.hpp"

#include "../printable.hpp"

#include <boost/algorithm/hex.hpp>
#include <boost/locale/utf.hpp>
#include <sys/ioctl.h>

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

namespace console {

namespace {

constexpr std::size_t gap = 2;     // between two columns
constexpr std::size_t narrow = 6;  // no column is cut to less, as long as others can be

/// How many columns standard output has; as many as one likes where it is no terminal.
std::size_t terminal_width() {
  struct winsize size{};
  if (::isatty(STDOUT_FILENO) == 0) return std::numeric_limits<std::size_t>::max();
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

bool is_utf8(std::string_view text) {
  using utf8 = boost::locale::utf::utf_traits<char>;
  auto const* const end = text.data() + text.size();
  for (auto const* at = text.data(); at != end;) {
    auto const character = utf8::decode(at, end);
    if (character == boost::locale::utf::illegal || character == boost::locale::utf::incomplete) {
      return false;
    }
  }
  return true;
}

/// Are all texts of it, and the names of its members?
bool all_is_utf8(json const& value) {
  if (value.is_string()) return is_utf8(value.get_ref<std::string const&>());
  if (!value.is_structured()) return true;
  auto const items = value.items();
  return std::all_of(items.begin(), items.end(), [&](auto const& item) {
    return (!value.is_object() || is_utf8(item.key())) && all_is_utf8(item.value());
  });
}

std::string hex_of(std::string_view bytes) {
  std::string out;
  boost::algorithm::hex_lower(bytes.begin(), bytes.end(), std::back_inserter(out));
  return out;
}
/// The same with hexadecimal digits for each text, and for the names of members.
json hex_of(json const& value) {
  if (value.is_string()) return hex_of(std::string_view{value.get_ref<std::string const&>()});
  if (!value.is_structured()) return value;
  json out = value.is_object() ? json::object() : json::array();
  for (auto const& [name, each] : value.items()) {
    if (value.is_object()) {
      out[hex_of(std::string_view{name})] = hex_of(each);
    } else {
      out.push_back(hex_of(each));
    }
  }
  return out;
}

std::string title_of(std::string name) {
  if (name == "attempts") return "TRIES";  // so that other columns have more room
  for (auto& c : name) c = c == '_' ? ' ' : static_cast<char>(std::toupper(c));
  return name;
}

/// Columns from left to right, each as wide as its widest cell, and, where they do not fit into the
/// line, the widest ones less.
std::vector<std::size_t> widths_of(std::vector<row> const& table, std::size_t line) {
  std::vector<std::size_t> out;
  for (auto const& c : table.front()) out.push_back(c.name.size());
  for (auto const& r : table) {
    for (std::size_t i = 0; i != r.size(); ++i) out[i] = std::max(out[i], r[i].text.size());
  }
  for (bool const whole : {false, true}) {  // if nothing else helps, what should stay whole
    while (std::accumulate(out.begin(), out.end(), gap * (out.size() - 1)) > line) {
      std::size_t widest = out.size();
      for (std::size_t i = 0; i != out.size(); ++i) {
        bool const may = out[i] > narrow && (whole || !table.front()[i].whole);
        if (may && (widest == out.size() || out[i] > out[widest])) widest = i;
      }
      if (widest == out.size()) break;
      --out[widest];
    }
  }
  return out;
}

}  // namespace

cell text_cell(std::string name, std::string_view text) {
  return {std::move(name), std::string{text}, std::string{text}};
}
cell word_cell(std::string name, std::string_view text) {
  return {std::move(name), std::string{text}, std::string{text}, true};
}
cell number_cell(std::string name, std::uint64_t number) {
  return {std::move(name), number, count_text(number), true};
}
cell flag_cell(std::string name, bool flag) {
  return {std::move(name), flag, flag ? "yes" : "", true};
}
cell time_cell(std::string name, std::optional<weir::duration> time) {
  if (!time) return {std::move(name), nullptr, "", true};
  return {std::move(name), std::chrono::duration<double>{*time}.count(), time_text(*time), true};
}
cell due_cell(std::string name, std::optional<weir::duration> in,
              std::string (*to_text)(weir::duration)) {
  auto out = time_cell(std::move(name), in);
  if (in) out.text = weir::detail::due_text(*in, to_text);
  return out;
}
cell hidden(cell c) {
  c.hidden = true;
  return c;
}

json json_of(row const& cells) {
  auto out = json::object();
  for (auto const& c : cells) add_member(out, c.name, c.value);
  return out;
}

void add_member(json& to, std::string const& name, json value) {
  if (all_is_utf8(value)) {
    to[name] = std::move(value);
    return;
  }
  auto hex = hex_of(value);
  if (value.is_object()) {
    for (auto at = value.begin(); at != value.end();) {
      at = is_utf8(at.key()) ? std::next(at) : value.erase(at);
    }
  }
  to[name] = std::move(value);
  to[name + "_hex"] = std::move(hex);
}

output::output(bool as_json) : json_{as_json}, width_{terminal_width()} {}

void output::print(json const& object) {
  std::cout << object.dump(-1, ' ', true, json::error_handler_t::replace) << std::endl;
}

std::string output::cut(std::string text, std::size_t width) const {
  if (text.size() <= width) return text;
  return text.substr(0, width - 1) + "\u2026";
}

void output::add(row cells) {
  if (json_) return print(json_of(cells));
  std::erase_if(cells, [](cell const& c) { return c.hidden; });
  for (auto& c : cells) c.text = example::printable(c.text);
  table_.push_back(std::move(cells));
}

void output::end_table() {
  auto const rows = std::exchange(table_, {});
  if (rows.empty()) return;
  auto const widths = widths_of(rows, width_);
  auto const print_row = [&](row const& cells, auto text_of) {
    std::string line;
    for (std::size_t i = 0; i != cells.size(); ++i) {
      auto const text = text_of(cells[i]);
      std::string const space(widths[i] - std::min(widths[i], text.size()), ' ');
      bool const right = cells[i].value.is_number_integer();
      line +=
          (i == 0 ? "" : "  ") + (right ? space : "") + cut(text, widths[i]) + (right ? "" : space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << '\n';
  };
  print_row(rows.front(), [](cell const& c) { return title_of(c.name); });
  for (auto const& r : rows) print_row(r, [](cell const& c) { return c.text; });
  std::cout.flush();
}

void output::show(row const& cells) {
  if (json_) return print(json_of(cells));
  std::size_t widest = 0;
  for (auto const& c : cells) widest = std::max(widest, c.name.size());
  for (auto const& c : cells) {
    if (c.text.empty()) continue;
    auto name = c.name;
    std::ranges::replace(name, '_', ' ');
    paragraph(name + std::string(widest - name.size() + gap, ' '), c.text);
  }
}

void output::line(std::string_view text, json const& object) {
  if (json_) return print(object);
  std::cout << cut(example::printable(text), width_) << std::endl;
}

void output::paragraph(std::string_view mark, std::string_view text) {
  auto rest = example::printable(text);
  std::string begin{mark};
  auto const line = std::max(width_, begin.size() + narrow);  // a narrower terminal folds it itself
  for (; begin.size() + rest.size() > line; begin.assign(mark.size(), ' ')) {
    auto const room = line - begin.size();
    auto const space = rest.rfind(' ', room);
    bool const words = space != rest.npos && space != 0;  // a word may be longer than a line
    std::cout << begin << rest.substr(0, words ? space : room) << '\n';
    rest.erase(0, words ? space + 1 : room);
  }
  std::cout << begin << rest << std::endl;
}

void output::more(std::string const& cursor) {
  if (cursor.empty()) return;
  if (json_) return print(json{{"cursor", cursor}});
  std::cout << "more: --cursor " << cursor << std::endl;
}

}  // namespace console
