// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_CONSOLE_OUTPUT_HPP
#define WEIR_EXAMPLE_CONSOLE_OUTPUT_HPP

#include "weir/console/text.hpp"
#include "weir/time.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace console {

using json = nlohmann::ordered_json;  // members stay in their order

/// A value of the output: for programs by its name, for people by its text.
struct cell {
  std::string name;  ///< as JSON has it; "first_due" is FIRST DUE above a column
  json value;
  std::string text;     ///< made printable when it is printed
  bool whole = false;   ///< cut only if nothing else helps
  bool hidden = false;  ///< in no table
};
using row = std::vector<cell>;

using weir::detail::brief_text;
using weir::detail::count_text;
using weir::detail::time_text;

/// Text of others: any bytes.
[[nodiscard]] cell text_cell(std::string name, std::string_view text);
/// An id, or a word of ours.
[[nodiscard]] cell word_cell(std::string name, std::string_view text);
[[nodiscard]] cell number_cell(std::string name, std::uint64_t number);
[[nodiscard]] cell flag_cell(std::string name, bool flag);
[[nodiscard]] cell time_cell(std::string name, std::optional<weir::duration> time);
/// The same, for people as "in 5s" or "5s ago".
[[nodiscard]] cell due_cell(std::string name, std::optional<weir::duration> in,
                            std::string (*to_text)(weir::duration) = time_text);
/// For programs only, in a table.
[[nodiscard]] cell hidden(cell c);

/// As JSON. What is not UTF-8 has U+FFFD in its place, and a member with such texts has one more
/// beside it, NAME_hex, where hexadecimal digits stand for each text, and for names of members: a
/// name that is not UTF-8 stands there only.
[[nodiscard]] json json_of(row const& cells);
/// A member of such an object.
void add_member(json& to, std::string const& name, json value);

/// Standard output: a JSON object for each row, or tables for people. A table fits into the
/// terminal, if there is one.
class output {
 public:
  explicit output(bool as_json);

  /// A row of a table, which `end_table` prints.
  void add(row cells);
  void end_table();
  /// One thing, a paragraph for each of its cells. Those that are empty are left out for people.
  void show(row const& cells);
  /// A line for people, cut where the terminal ends, or a JSON object.
  void line(std::string_view text, json const& object);
  /// A text for people, on as many lines as it needs, the first of which begins with `mark`.
  void paragraph(std::string_view mark, std::string_view text);
  /// How to go on; nothing where there is no more.
  void more(std::string const& cursor);

  [[nodiscard]] bool is_json() const noexcept { return json_; }

 private:
  void print(json const& object);
  [[nodiscard]] std::string cut(std::string text, std::size_t width) const;

  bool json_;
  std::size_t width_;  ///< of the terminal
  std::vector<row> table_;
};

}  // namespace console

#endif
