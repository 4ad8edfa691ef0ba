// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_PARTS_HPP
#define WEIR_CONSOLE_PARTS_HPP

#include "weir/console/html.hpp"
#include "weir/console/options.hpp"
#include "weir/error.hpp"
#include "weir/schedules.hpp"

#include <boost/beast/http/status.hpp>
#include <boost/uuid/string_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

// The parts that pages are made of: cells, facts, and the words of actions.
namespace weir::detail::web {

using status = boost::beast::http::status;

/// A page, before what is around each page.
struct page {
  page() = default;
  page(status with, std::string_view called) : code{with}, title{called} {}

  status code = status::ok;
  std::string title;
  html main;
  std::string location;  ///< not empty: there is nothing here, the browser is to go there
};

/// A page that says what went wrong.
[[nodiscard]] inline page problem(status code, std::string_view title, std::string_view text) {
  page out{code, title};
  out.main << "<h1>"_html << title << "</h1><p class=problem role=alert>"_html << text
           << "</p>"_html;
  return out;
}
[[nodiscard]] inline page failed(error_code const& ec) {
  bool const asked = ec == condition::bad_input;
  return problem(asked ? status::bad_request : status::service_unavailable,
                 asked ? "This cannot be asked" : "The store cannot be asked", ec.message());
}

/// How an action is called on buttons and afterwards, and what it is.
struct action_words {
  console_action action;
  std::string_view verb, past, about;
};
inline constexpr action_words words_of_actions[] = {
    {console_action::replay, "Replay", "replayed",
     "Makes it pending again, with no attempts spent. Its handler runs again."},
    {console_action::cancel, "Cancel", "cancelled", "Ends it before it runs. This is final."},
    {console_action::cancel_running, "Cancel", "cancelled",
     "Ends it while a worker runs it: the worker loses its lease. This is final."},
    {console_action::purge, "Purge", "purged",
     "Forgets it, with its payload and its reason. This is final."},
    {console_action::pause, "Pause", "paused",
     "Gives out none of its jobs until it is resumed. Running jobs go on."},
    {console_action::resume, "Resume", "resumed", "Gives out its jobs again."},
    {console_action::pause_schedule, "Pause", "paused", "Lets its ticks pass without a job."},
    {console_action::resume_schedule, "Resume", "resumed", "Enqueues a job at each tick again."},
    {console_action::trigger_schedule, "Run now", "triggered",
     "Enqueues one of its jobs at once, beside those of its ticks."},
};
[[nodiscard]] inline action_words const* find_action(std::string_view name) noexcept {
  auto const* const found = std::ranges::find(
      words_of_actions, name, [](action_words const& w) { return to_string(w.action); });
  return found == std::end(words_of_actions) ? nullptr : found;
}
[[nodiscard]] constexpr bool is_of_schedules(console_action a) noexcept {
  return a >= console_action::pause_schedule;
}
[[nodiscard]] constexpr bool is_of_jobs(console_action a) noexcept {
  return a <= console_action::purge;
}

[[nodiscard]] constexpr bool is_final(console_action a) noexcept {
  return is_of_jobs(a) && a != console_action::replay;
}

inline constexpr std::array job_states{job_state::pending, job_state::leased, job_state::dead,
                                       job_state::completed, job_state::cancelled};
[[nodiscard]] inline std::optional<job_state> state_of(std::string_view name) noexcept {
  auto const* const found =
      std::ranges::find(job_states, name, [](job_state s) { return to_string(s); });
  if (found == job_states.end()) return std::nullopt;
  return *found;
}
[[nodiscard]] inline std::optional<job_id> id_of(std::string const& text) {
  try {
    return boost::uuids::string_generator{}(text);
  } catch (std::exception const&) {
    return std::nullopt;
  }
}

/// The action that a job in a state is open to.
[[nodiscard]] constexpr console_action action_for(job_state state) noexcept {
  switch (state) {
    case job_state::pending: return console_action::cancel;
    case job_state::leased: return console_action::cancel_running;
    case job_state::dead: return console_action::replay;
    default: return console_action::purge;
  }
}
/// May the action be done to all jobs in the state?
[[nodiscard]] constexpr bool goes_with(console_action a, job_state state) noexcept {
  return a == action_for(state) || (a == console_action::purge && is_terminal(state));
}

// ---------------------------------------------------------------------------- parts of pages

template <class Text>
[[nodiscard]] html link(std::string const& target, Text const& text) {
  html out;
  out << "<a href=\""_html << target << "\">"_html << text << "</a>"_html;
  return out;
}
/// A cell, which on a narrow screen names its column.
template <class Content>
void cell(html& out, std::string_view column, Content const& content, markup kind = "text"_html) {
  out << "<td data-label=\""_html << column << "\" class="_html << kind << ">"_html << content
      << "</td>"_html;
}
inline void number_cell(html& out, std::string_view column, std::uint64_t n) {
  if (n == 0) return cell(out, column, "0", "\"num none\""_html);
  cell(out, column, n, "num"_html);
}
/// The beginning of a text of any length, whole characters of it.
[[nodiscard]] inline std::string_view beginning(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  auto const inside = [text](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  for (int i = 0; i != 3 && most != 0 && inside(most); ++i) --most;
  return text.substr(0, most);
}
inline void note_cell(html& out, std::string_view column, std::string_view text) {
  html some;
  if (!text.empty()) {
    some << "<span>"_html << beginning(text, 300) << (text.size() > 300 ? "…" : "")
         << "</span>"_html;
  }
  cell(out, column, some, "\"text note\""_html);
}
[[nodiscard]] inline html badge(std::string_view name) {
  html out;
  out << "<span class=\"state "_html << name << "\">"_html << name << "</span>"_html;
  return out;
}
/// A column of numbers is one whose name begins with `#`.
inline void begin_table(html& out, std::initializer_list<std::string_view> columns) {
  out << "<table><thead><tr>"_html;
  for (auto column : columns) {
    bool const number = column.starts_with('#');
    if (number) column.remove_prefix(1);
    out << "<th scope=col class="_html << (number ? "num" : "text") << ">"_html << column
        << "</th>"_html;
  }
  out << "</tr></thead><tbody>"_html;
}
inline void end_table(html& out) { out << "</tbody></table>"_html; }
inline void fact(html& out, std::string_view name, html const& value) {
  out << "<div><dt>"_html << name << "</dt><dd>"_html << value << "</dd></div>"_html;
}
inline void fact(html& out, std::string_view name, std::string_view value) {
  if (!value.empty()) fact(out, name, html{} << value);
}
/// Bytes of a job, up to 4 KiB of them: what is no text is shown by its number.
[[nodiscard]] inline html bytes(std::string_view all) {
  constexpr std::size_t most = 4096;
  auto const some = beginning(all, most);
  html out;
  out << "<pre tabindex=0>"_html;
  out.lines(some) << "</pre>"_html;
  if (some.size() != all.size()) {
    out << "<p class=hint>"_html << some.size() << " of "_html << all.size() << " bytes</p>"_html;
  }
  return out;
}

}  // namespace weir::detail::web

#endif
