// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_PAGES_HPP
#define WEIR_CONSOLE_PAGES_HPP

#include "weir/command/buckets.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/console/asking.hpp"
#include "weir/console/explain.hpp"
#include "weir/console/html.hpp"
#include "weir/console/options.hpp"
#include "weir/console/query.hpp"
#include "weir/console/text.hpp"
#include "weir/detail/erased.hpp"
#include "weir/execute.hpp"
#include "weir/job_headers.hpp"
#include "weir/key_policy.hpp"
#include "weir/quota.hpp"
#include "weir/schedules.hpp"
#include "weir/time.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/uuid/string_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

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

/// What went wrong, as a page.
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
  while (most != 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}
inline void note_cell(html& out, std::string_view column, std::string_view text) {
  html some;
  if (!text.empty()) some << "<span>"_html << beginning(text, 300) << "</span>"_html;
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

// ---------------------------------------------------------------------------- the pages

/// What became of some jobs.
struct tally {
  tally() = default;
  std::uint64_t done = 0;
  std::uint64_t refused = 0;
  std::uint64_t gone = 0;
  std::vector<std::pair<job_id, std::string>> refusals;
};

/// Makes every page of a console, of what the store says at that moment.
class pages {
 public:
  pages(console_store store, any_clock clock, std::function<time_point()> date, console_options o)
      : options{std::move(o)},
        clock_{std::move(clock)},
        date_{std::move(date)},
        queue_{store},
        schedules_{std::move(store)} {}

  using answer = boost::asio::awaitable<page>;

  /// Is there a page of this path that changes nothing?
  [[nodiscard]] static bool is_one(std::string_view path) { return ways().contains(path); }
  /// Such a page. Empty: there is none there.
  [[nodiscard]] std::optional<answer> find(query const& q) {
    auto const found = ways().find(q.path());
    if (found == ways().end()) return std::nullopt;
    return (this->*found->second)(q);
  }

  [[nodiscard]] bool allows(console_action a) const {
    return std::ranges::find(options.allow, a) != options.allow.end();
  }
  [[nodiscard]] std::string at(std::string_view path,
                               std::initializer_list<parameter> parameters = {}) const {
    return options.prefix + target_of(path, parameters);
  }
  [[nodiscard]] console_store const& store() const noexcept { return queue_.get_store(); }
  [[nodiscard]] any_clock const& clock() const noexcept { return clock_; }

  /// Asks whether an action is meant.
  answer confirm(query q);
  /// Carries an action out, of many jobs up to 500.
  answer act(query q, std::string who);

  /// Notes that an action was refused before it was looked at.
  void refuse(std::string_view action, std::string_view who, std::string_view why) const {
    auto const* const words = find_action(action);
    if (words != nullptr) note(words->action, who, {}, {}, "refused: " + std::string{why});
  }

  console_options const options;

 private:
  static constexpr std::uint32_t most_queues = 100;     // that one page is about
  static constexpr std::size_t most_records = 1000;     // that one page looks at
  static constexpr std::size_t most_bytes = 8U << 20U;  // of their texts
  static constexpr std::uint32_t step_size = 500;       // jobs that one request acts on

  using way = answer (pages::*)(query);
  [[nodiscard]] static std::map<std::string_view, way> const& ways() {
    static std::map<std::string_view, way> const all{
        {"/", &pages::overview},       {"/queues", &pages::list_all},
        {"/dead", &pages::list_dead},  {"/queue", &pages::queue},
        {"/job", &pages::job_page_of}, {"/leases", &pages::leases},
        {"/limits", &pages::limits},   {"/schedules", &pages::list_schedules},
    };
    return all;
  }

  answer overview(query q);
  answer list_all(query q);
  answer list_dead(query q);
  answer queue(query q);
  answer job_page_of(query q);
  answer leases(query q);
  answer limits(query q);
  answer list_schedules(query q);
  answer act_on_schedule(action_words const& words, std::string name, std::string who);
  answer act_on_queue(action_words const& words, std::string name, std::string who);
  answer act_on_job(action_words const& words, std::string name, job_id id, std::string who);
  answer act_on_all(action_words const& words, query q, std::string who);
  boost::asio::awaitable<error_code> act_on(console_action a, std::string name,
                                            std::vector<job_id> ids, tally& t);

  /// The queue that is meant. A form cannot send any bytes, so there it is percent-encoded twice.
  [[nodiscard]] static std::string queue_in(query const& q) {
    auto const& twice = q.at("queue_encoded");
    return twice.empty() ? q.at("queue") : decoded(twice).value_or("");
  }
  [[nodiscard]] html due(duration in) const {
    html out;
    out << "<time title=\""_html << date_text(date_() + in) << "\">"_html
        << due_text(in, brief_text) << "</time>"_html;
    return out;
  }
  [[nodiscard]] html button(console_action a, std::initializer_list<parameter> of,
                            std::string_view more = {}) const {
    html out;
    if (!allows(a)) return out;
    auto const& words = words_of_actions[static_cast<std::size_t>(a)];
    auto target = at("/confirm", of);
    target.append(target.find('?') == target.npos ? "?" : "&")
        .append("action=")
        .append(to_string(a));
    out << "<a class=\"button"_html << (is_final(a) ? " final" : "")
        << "\" data-confirm href=\""_html << target << "\">"_html << words.verb << more
        << "</a> "_html;
    return out;
  }
  void queue_rows(html& out, std::vector<std::pair<std::string, queue_stats>> const& queues) const;
  [[nodiscard]] std::string redacted(job const& j, std::string_view field, std::string text) const {
    if (!options.redact || text.empty()) return text;
    try {
      return options.redact(j, field, std::move(text));
    } catch (...) {  // an operator's function that fails must show nothing
      return "(redacted)";
    }
  }
  /// What of a job may be shown.
  [[nodiscard]] job shown(job const& j) const {
    auto out = j;
    out.payload = redacted(j, "payload", j.payload);
    out.result = redacted(j, "result", j.result);
    out.reason = redacted(j, "reason", j.reason);
    out.memo = redacted(j, "memo", j.memo);
    out.progress = redacted(j, "progress", progress_text(j.progress));
    out.unique_key = redacted(j, "unique_key", j.unique_key);
    return out;
  }
  void note(console_action a, std::string_view who, std::string_view on, std::string_view job,
            std::string_view outcome) const {
    console_audit const what{a, who, on, job, outcome};
    if (options.audit) return options.audit(what);
    html line;  // makes one line of whatever strangers write
    line << "weir: console: "_html << (who.empty() ? "somebody" : who) << ": "_html << to_string(a)
         << " "_html << on << (job.empty() ? "" : " ") << job << ": "_html << outcome << "\n"_html;
    std::fputs(line.text().c_str(), stderr);
  }

  struct sample {
    steady_time at;
    std::uint64_t enqueued, completed, dead;
  };
  [[nodiscard]] std::vector<sample> sampled(sample const& now) {
    std::scoped_lock const lock{mutex_};
    using namespace std::chrono_literals;
    if (samples_.empty() || now.at - samples_.back().at >= 900ms) samples_.push_back(now);
    if (samples_.size() > 60) samples_.pop_front();
    return {samples_.begin(), samples_.end()};
  }

  any_clock clock_;
  std::function<time_point()> date_;
  console_queue queue_;
  schedules<console_store> schedules_;
  std::mutex mutex_;
  std::deque<sample> samples_;  ///< of the overview: what its rates are made of
};

inline void pages::queue_rows(
    html& out, std::vector<std::pair<std::string, queue_stats>> const& queues) const {
  begin_table(out,
              {"Queue", "#Pending", "#Running", "#Dead", "#Completed", "#Cancelled", "Due", ""});
  for (auto const& [name, q] : queues) {
    out << "<tr>"_html;
    auto named = link(at("/queue", {{"queue", name}}), name);
    if (q.paused) named << " "_html << badge("paused");
    cell(out, "Queue", named, "name"_html);
    number_cell(out, "Pending", q.pending);
    number_cell(out, "Running", q.leased);
    cell(out, "Dead",
         q.dead == 0 ? html{} << "0"
                     : link(at("/queue", {{"queue", name}, {"state", "dead"}}), q.dead),
         q.dead == 0 ? "\"num none\""_html : "\"num bad\""_html);
    number_cell(out, "Completed", q.completed);
    number_cell(out, "Cancelled", q.cancelled);
    cell(out, "Due", q.next_in ? due(*q.next_in) : html{});
    auto const action = q.paused ? console_action::resume : console_action::pause;
    cell(out, "", button(action, {{"queue", name}}), "act"_html);
    out << "</tr>"_html;
  }
  end_table(out);
}

/// A curve of what came in each interval.
[[nodiscard]] inline html curve(std::vector<double> const& rates, std::string_view label) {
  html out;
  if (rates.size() < 2) return out;
  auto const top = std::max(*std::ranges::max_element(rates), 1e-9);
  std::string points;
  for (std::size_t i = 0; i != rates.size(); ++i) {
    points += std::to_string(i * 120 / (rates.size() - 1)) + "," +
              std::to_string(30 - static_cast<int>(28 * rates[i] / top)) + " ";
  }
  out << "<svg viewBox=\"0 0 120 32\" preserveAspectRatio=none role=img aria-label=\""_html << label
      << "\"><polyline points=\""_html << points << "\"/></svg>"_html;
  return out;
}
[[nodiscard]] inline std::string rate_text(double rate) {
  if (rate >= 100) return count_text(static_cast<std::uint64_t>(rate + 0.5));
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", rate);
  return text;
}

inline pages::answer pages::overview(query) {
  auto const listed = co_await list_queues(queue_, "", most_queues, "");
  if (listed.has_error()) co_return failed(listed.error());
  queue_stats all;
  for (auto const& [name, q] : listed->queues) {
    all.enqueued += q.enqueued;
    all.pending += q.pending;
    all.leased += q.leased;
    all.completed += q.completed;
    all.dead += q.dead;
  }
  auto const samples = sampled({clock_.steady_now(), all.enqueued, all.completed, all.dead});
  page out{status::ok, "Overview"};
  auto& m = out.main;
  m << "<h1>Overview</h1><section data-live id=now><div class=cards>"_html;
  auto const card = [&m](std::string_view name, html const& value, markup kind) {
    m << "<div class=\"card "_html << kind << "\"><h2>"_html << name << "</h2>"_html << value
      << "</div>"_html;
  };
  auto const count = [](std::uint64_t n) {
    html h;
    h << "<p class=big>"_html << n << "</p>"_html;
    return h;
  };
  card("Pending", count(all.pending), "pending"_html);
  card("Running", count(all.leased), "leased"_html);
  card("Dead letters", count(all.dead), all.dead == 0 ? "quiet"_html : "dead"_html);
  auto const rate = [&](std::uint64_t sample::* what) {
    std::vector<double> rates;
    for (std::size_t i = 1; i < samples.size(); ++i) {
      auto const before = samples[i - 1].*what;
      auto const now = samples[i].*what;
      std::chrono::duration<double> const took = samples[i].at - samples[i - 1].at;
      rates.push_back(now > before ? static_cast<double>(now - before) / took.count() : 0);
    }
    html h;
    h << "<p class=big>"_html << (rates.empty() ? "–" : rate_text(rates.back()))
      << "<small>/s</small></p>"_html << curve(rates, "over the last minutes");
    return h;
  };
  card("Enqueued", rate(&sample::enqueued), "pending"_html);
  card("Completed", rate(&sample::completed), "completed"_html);
  m << "</div>"_html;
  if (!listed->cursor.empty()) {
    m << "<p class=hint>Of the first "_html << listed->queues.size()
      << " queues, by name. There are more.</p>"_html;
  }
  auto busiest = listed->queues;
  std::ranges::sort(busiest, {}, [](auto const& each) {
    auto const& [name, q] = each;
    return std::tuple{!q.paused, q.dead == 0, ~(q.pending + q.leased), std::string_view{name}};
  });
  if (busiest.size() > 15) busiest.resize(15);
  m << "<h2>Queues to look at</h2>"_html;
  if (busiest.empty()) {
    m << "<p class=empty>There is no queue in this store yet.</p>"_html;
  } else {
    queue_rows(m, busiest);
    m << "<p>"_html << link(at("/queues"), "All queues") << "</p>"_html;
  }
  m << "</section>"_html;
  co_return out;
}

inline pages::answer pages::list_all(query q) {
  auto const under = q.at("under");
  auto const listed = co_await list_queues(queue_, under, options.page_size, q.at("cursor"));
  if (listed.has_error()) co_return failed(listed.error());
  page out{status::ok, "Queues"};
  auto& m = out.main;
  m << "<h1>Queues</h1><form class=filter method=get action=\""_html << at("/queues")
    << "\"><label>Begins with <input name=under type=search value=\""_html << under
    << "\"></label><button>Filter</button></form><section data-live id=rows>"_html;
  if (listed->queues.empty()) {
    m << "<p class=empty>No queue here.</p>"_html;
  } else {
    queue_rows(m, listed->queues);
  }
  if (!listed->cursor.empty()) {
    m << "<p class=more>"_html
      << link(at("/queues", {{"under", under}, {"cursor", listed->cursor}}), "Next page")
      << "</p>"_html;
  }
  m << "</section>"_html;
  co_return out;
}

inline pages::answer pages::list_dead(query q) {
  auto listed = co_await list_queues(queue_, "", most_queues, q.at("cursor"));
  if (listed.has_error()) co_return failed(listed.error());
  page out{status::ok, "Dead letters"};
  auto& m = out.main;
  auto const looked = listed->queues.size();
  std::erase_if(listed->queues, [](auto const& each) { return each.second.dead == 0; });
  m << "<h1>Dead letters</h1><section data-live id=rows>"_html;
  if (listed->queues.empty()) {
    m << "<p class=empty>No dead letters in "_html << looked << " queues.</p>"_html;
  } else {
    begin_table(m, {"Queue", "#Dead letters", "Oldest reason", ""});
    std::size_t size = 0;
    for (auto const& [name, stats] : listed->queues) {
      m << "<tr>"_html;
      cell(m, "Queue", link(at("/queue", {{"queue", name}, {"state", "dead"}}), name), "name"_html);
      cell(m, "Dead letters", stats.dead, "\"num bad\""_html);
      std::string reason = "…";
      if (size < most_bytes) {
        auto const oldest = co_await list_state(queue_, name, job_state::dead, 1, "");
        if (oldest.has_error()) co_return failed(oldest.error());
        for (auto const& j : oldest->jobs) {
          reason = shown(j).reason;
          size += j.payload.size();
        }
      }
      note_cell(m, "Oldest reason", reason);
      cell(m, "", button(console_action::replay, {{"queue", name}, {"state", "dead"}}, " all"),
           "act"_html);
      m << "</tr>"_html;
    }
    end_table(m);
  }
  if (!listed->cursor.empty()) {
    m << "<p class=more>Of "_html << looked << " queues. "_html
      << link(at("/dead", {{"cursor", listed->cursor}}), "Next page") << "</p>"_html;
  }
  m << "</section>"_html;
  co_return out;
}

inline pages::answer pages::queue(query q) {
  auto const name = queue_in(q);
  auto const [ec, stats] = co_await queue_.async_stats(name, as_value);
  if (ec) co_return failed(ec);
  if (stats.enqueued == 0 && !stats.paused) {
    co_return problem(status::not_found, "No such queue", "It has never had a job.");
  }
  auto const& filter = q.at("filter");
  if (id_of(filter)) {
    page there{status::see_other, "Job"};
    there.location = at("/job", {{"queue", name}, {"id", filter}});
    co_return there;
  }
  auto const state = state_of(q.at("state")).value_or(job_state::pending);
  std::vector<job> jobs;
  auto cursor = q.at("cursor");
  std::size_t looked = 0;
  std::size_t size = 0;
  do {
    auto listed = co_await list_state(queue_, name, state, options.page_size, cursor);
    if (listed.has_error()) co_return failed(listed.error());
    looked += listed->jobs.size();
    for (auto& j : listed->jobs) {
      size += j.payload.size() + j.result.size();
      if (filter.empty() || j.kind == filter) jobs.push_back(std::move(j));
    }
    // A page of the store may be empty and go on: it has looked at a thousand records then.
    if (listed->jobs.empty()) looked = most_records;
    cursor = listed->cursor;
  } while (!cursor.empty() && jobs.size() < options.page_size && looked < most_records &&
           size < most_bytes);

  page out{status::ok, name};
  auto& m = out.main;
  m << "<p class=way>"_html << link(at("/queues"), "Queues") << "</p><div class=head><h1>"_html
    << name << "</h1>"_html;
  if (stats.paused) m << badge("paused");
  m << "<p class=actions>"_html
    << button(stats.paused ? console_action::resume : console_action::pause, {{"queue", name}});
  auto const state_name = to_string(state);
  auto const on_all = [&](console_action a) {
    if (count_of(stats, state) == 0) return html{};
    return button(a, {{"queue", name}, {"state", state_name}, {"kind", filter}},
                  filter.empty() ? " all" : " all of this kind");
  };
  m << on_all(action_for(state));
  if (state == job_state::dead) m << on_all(console_action::purge);
  m << "</p></div><section data-live id=tabs><nav class=tabs aria-label=States>"_html;
  for (auto const each : job_states) {
    m << "<a"_html;
    if (each == state) m << " aria-current=page"_html;
    m << " href=\""_html << at("/queue", {{"queue", name}, {"state", to_string(each)}})
      << "\">"_html << to_string(each) << " <b>"_html << count_of(stats, each) << "</b></a>"_html;
  }
  m << "</nav></section><form class=filter method=get action=\""_html << at("/queue")
    << "\"><input type=hidden name=queue_encoded value=\""_html << encoded(name)
    << "\"><input type=hidden name=state value=\""_html << state_name
    << "\"><label>Kind, or a job's id <input name=filter type=search value=\""_html << filter
    << "\"></label><button>Filter</button></form><section data-live id=rows>"_html;
  if (jobs.empty()) {
    m << "<p class=empty>No records of "_html << state_name << " jobs here.</p>"_html;
  } else {
    begin_table(m, {"Job", "Kind", "#Attempts", is_terminal(state) ? "Age" : "Due", "Note"});
    for (auto const& j : jobs) {
      auto const id = to_string(j.id);
      m << "<tr>"_html;
      cell(m, "Job", link(at("/job", {{"queue", name}, {"id", id}}), id), "id"_html);
      cell(m, "Kind", j.kind);
      cell(m, "Attempts", html{} << j.attempts << "/"_html << j.max_attempts, "num"_html);
      cell(m, is_terminal(state) ? "Age" : "Due", due(is_terminal(state) ? -j.age : j.vests_in));
      auto note = note_text(shown(j));
      if (j.state == job_state::leased) note = j.holder + (note.empty() ? "" : ": " + note);
      note_cell(m, "Note", note);
      m << "</tr>"_html;
    }
    end_table(m);
  }
  if (!cursor.empty()) {
    m << "<p class=more>Looked at "_html << std::min(looked, most_records) << " records. "_html
      << link(at("/queue",
                 {{"queue", name}, {"state", state_name}, {"filter", filter}, {"cursor", cursor}}),
              "Next page")
      << "</p>"_html;
  }
  m << "</section>"_html;
  co_return out;
}

inline pages::answer pages::job_page_of(query q) {
  auto const name = queue_in(q);
  auto const id = id_of(q.at("id"));
  if (!id) co_return problem(status::bad_request, "No such job", "A job's id is a UUID.");
  auto const [failure, found] = co_await queue_.async_find(name, *id, as_value);
  if (failure) co_return failed(failure);
  if (!found) {
    co_return problem(
        status::not_found, "No such job",
        "There is no record of it in this queue: it was never there, or has ended and "
        "its retention is over, or was purged.");
  }
  auto const [ec, stats] = co_await queue_.async_stats(name, as_value);
  if (ec) co_return failed(ec);
  auto const& j = *found;
  auto const s = shown(j);
  auto const why = co_await explain(queue_, name, j, s, stats);

  auto const text = to_string(j.id);
  page out{status::ok, text};
  auto& m = out.main;
  m << "<p class=way>"_html << link(at("/queues"), "Queues") << " / "_html
    << link(at("/queue", {{"queue", name}, {"state", to_string(j.state)}}), name)
    << "</p><section data-live id=job><div class=head><h1 class=id>"_html << text << "</h1>"_html
    << badge(to_string(j.state)) << "<p class=actions>"_html
    << button(action_for(j.state), {{"queue", name}, {"id", text}});
  if (j.state == job_state::dead)
    m << button(console_action::purge, {{"queue", name}, {"id", text}});
  m << "</p></div><div class=columns><div><h2>Why</h2><ul class=why>"_html;
  for (auto const& [code, sentence] : why.because) m << "<li>"_html << sentence << "</li>"_html;
  for (auto const& sentence : why.unknown) {
    m << "<li class=unknown>Not known here: "_html << sentence << "</li>"_html;
  }
  m << "</ul><h2>Timeline</h2><ol class=timeline>"_html;
  auto const moment = [&m](html const& when, std::string_view what) {
    m << "<li>"_html << when << " <span>"_html << what << "</span></li>"_html;
  };
  auto const attempt = "attempt " + count_text(j.attempts) + " of " + count_text(j.max_attempts);
  moment(due(-j.age), "enqueued");
  if (j.snoozes != 0) {
    moment({}, "put off " + count_text(j.snoozes) + (j.snoozes == 1 ? " time" : " times") +
                   (s.memo.empty() ? "" : ": " + s.memo));
  }
  if (!j.reason.empty()) {
    moment({},
           (j.state == job_state::leased ? "an attempt before failed: " : attempt + " failed: ") +
               s.reason);
  }
  if (j.state == job_state::leased) {
    moment({}, attempt + " runs at " + j.holder);
    if (!j.progress.empty()) moment({}, s.progress);
    moment(due(j.vests_in), "its lease ends, unless it is extended");
  }
  if (j.state == job_state::pending) {
    moment(due(j.vests_in), j.attempts == 0 ? "due" : "due for the next attempt");
  }
  if (j.deadline_in && !is_terminal(j.state)) moment(due(*j.deadline_in), "its deadline");
  if (is_terminal(j.state)) moment({}, std::string{to_string(j.state)});
  m << "</ol></div><div><h2>Facts</h2><dl>"_html;
  fact(m, "Kind", j.kind);
  fact(m, "Priority", std::to_string(j.priority));
  fact(m, "Attempts", count_text(j.attempts) + " of " + count_text(j.max_attempts));
  fact(m, "Holder", j.holder);
  if (j.state == job_state::leased) fact(m, "Fence", std::to_string(j.fence));
  if (j.strategy != unique_strategy::none) {
    fact(m, "Unique", to_string(j.strategy));
    fact(m, "Unique key", s.unique_key);
    fact(m, "On conflict", to_string(j.on_conflict));
  }
  if (!j.checkpoint.empty()) fact(m, "Checkpoint", count_text(j.checkpoint.size()) + " bytes");
  m << "</dl>"_html;
  if (!job_headers_view{j.headers}.empty()) {
    m << "<h2>Headers</h2><dl>"_html;
    for (auto const& [key, value] : job_headers_view{j.headers}) {
      fact(m, key, html{} << redacted(j, "header " + std::string{key}, std::string{value}));
    }
    m << "</dl>"_html;
  }
  m << "</div></div><h2>Payload</h2>"_html << bytes(s.payload);
  if (!j.result.empty()) m << "<h2>Result</h2>"_html << bytes(s.result);
  m << "</section>"_html;
  co_return out;
}

inline pages::answer pages::leases(query) {
  auto const listed = co_await list_queues(queue_, "", most_queues, "");
  if (listed.has_error()) co_return failed(listed.error());
  struct held {
    held() = default;
    std::uint64_t jobs = 0;
    std::set<std::string> queues;
    duration ends = duration::max();
    std::string queue, first, progress;  ///< of the job whose lease ends first
  };
  std::map<std::string, held> holders;
  std::size_t looked = 0;
  std::size_t size = 0;
  bool more = !listed->cursor.empty();
  for (auto const& [name, stats] : listed->queues) {
    if (stats.leased == 0) continue;
    if (looked >= most_records || size >= most_bytes) more = true;
    if (more && looked != 0) break;
    auto const room = static_cast<std::uint32_t>(most_records - looked);
    auto const some = co_await list_state(queue_, name, job_state::leased, room, "");
    if (some.has_error()) co_return failed(some.error());
    more = more || !some->cursor.empty();
    looked += some->jobs.size();
    for (auto const& j : some->jobs) {
      size += j.payload.size() + j.checkpoint.size();
      auto& h = holders[j.holder];
      ++h.jobs;
      h.queues.insert(name);
      if (j.vests_in >= h.ends) continue;
      h.ends = j.vests_in;
      h.queue = name;
      h.first = to_string(j.id);
      h.progress = shown(j).progress;
    }
  }
  page out{status::ok, "Leases"};
  auto& m = out.main;
  m << "<h1>Leases</h1><p class=hint>Those who hold jobs now. A worker without a job is not seen "
       "here.</p><section data-live id=rows>"_html;
  if (holders.empty()) {
    m << "<p class=empty>No job is leased.</p>"_html;
  } else {
    begin_table(m, {"Holder", "#Jobs", "Queues", "First lease ends", "Its job", "Progress"});
    std::size_t rows = 0;
    for (auto const& [holder, h] : holders) {
      if (++rows > options.page_size) break;
      m << "<tr>"_html;
      cell(m, "Holder", holder, "name"_html);
      number_cell(m, "Jobs", h.jobs);
      html where;
      std::size_t named = 0;
      for (auto const& name : h.queues) {
        if (++named > 5) where << "… "_html;
        if (named > 5) break;
        where << link(at("/queue", {{"queue", name}, {"state", "leased"}}), name) << " "_html;
      }
      cell(m, "Queues", where);
      cell(m, "First lease ends", due(h.ends));
      cell(m, "Its job", link(at("/job", {{"queue", h.queue}, {"id", h.first}}), h.first),
           "id"_html);
      note_cell(m, "Progress", h.progress);
      m << "</tr>"_html;
    }
    end_table(m);
    more = more || rows > options.page_size;
  }
  if (more) m << "<p class=hint>Of "_html << looked << " leases; there are more.</p>"_html;
  m << "</section>"_html;
  co_return out;
}

inline pages::answer pages::limits(query q) {
  auto const& key = q.at("key");
  auto const noun = q.at("noun").empty() ? std::string{"limiter"} : q.at("noun");
  auto const tokens = q.number("tokens");
  auto const burst = q.number("burst");
  std::uint64_t const period = std::max<std::uint64_t>(q.number("seconds"), 1);
  page out{status::ok, "Limits"};
  auto& m = out.main;
  m << "<h1>Limits</h1><p class=hint>Stores keep limits by key, and cannot list them.</p>"
       "<form class=filter method=get action=\""_html
    << at("/limits") << "\"><label>What <select name=noun>"_html;
  for (std::string_view const each : {"limiter", "lock", "bucket"}) {
    m << "<option"_html;
    if (each == noun) m << " selected"_html;
    m << ">"_html << each << "</option>"_html;
  }
  m << "</select></label><label>Key <input name=key value=\""_html << key
    << "\"></label><label>Bucket: tokens <input name=tokens inputmode=numeric size=6 value=\""_html
    << q.at("tokens")
    << "\"></label><label>in seconds <input name=seconds inputmode=numeric size=6 "
       "value=\""_html
    << q.at("seconds")
    << "\"></label><label>burst <input name=burst inputmode=numeric size=6 value=\""_html
    << q.at("burst") << "\"></label><button>Look</button></form><section data-live id=rows>"_html;
  if (key.empty()) {
    m << "<p class=empty>Which key? A worker's limits have the kind of the job as key, unless its "
         "program says otherwise.</p>"_html;
  } else if (noun == "lock") {
    command::inspect_lock const look{.key = key};
    auto const [ec, lock] = co_await async_execute(store(), look, as_value);
    if (ec) co_return failed(ec);
    m << "<dl>"_html;
    fact(m, "Held", lock.held ? "yes" : "no");
    fact(m, "Holder", lock.holder);
    if (lock.held) fact(m, "Expires", due(lock.expires_in));
    m << "</dl>"_html;
  } else if (noun == "bucket") {
    auto rate =
        quota::per(tokens, std::chrono::seconds{std::min<std::uint64_t>(period, 1U << 30U)});
    if (burst != 0) rate = rate.burst(burst);
    auto const digest = sha256_key{}(key);
    command::peek_bucket const look{.key = digest.view(), .quotas = {&rate, 1}};
    auto const [ec, level] = co_await async_execute(store(), look, as_value);
    if (ec) co_return failed(ec);
    m << "<dl>"_html;
    fact(m, "Tokens now", html{} << level.remaining << " of "_html << level.capacity);
    fact(m, "Would be granted", level.allowed ? "yes" : "no");
    if (!level.allowed) fact(m, "Again", due(level.retry_after));
    fact(m, "Full", due(level.reset_after));
    m << "</dl><p class=hint>As a rate_limiter with this one quota, and keys as by default (their "
         "SHA-256), sees it.</p>"_html;
  } else {
    command::inspect_permits const look{.key = key, .limit = options.page_size};
    auto const [ec, census] = co_await async_execute(store(), look, as_value);
    if (ec) co_return failed(ec);
    m << "<dl>"_html;
    fact(m, "In use", html{} << census.in_use);
    fact(m, "Waiting", html{} << census.waiting);
    m << "</dl>"_html;
    if (!census.holders.empty()) begin_table(m, {"Holder", "Expires"});
    for (auto const& h : census.holders) {
      m << "<tr>"_html;
      cell(m, "Holder", h.holder, "name"_html);
      cell(m, "Expires", due(h.expires_in));
      m << "</tr>"_html;
    }
    if (!census.holders.empty()) end_table(m);
    if (census.holders.size() < census.in_use) {
      m << "<p class=hint>The first "_html << census.holders.size() << " holders.</p>"_html;
    }
  }
  m << "</section>"_html;
  co_return out;
}

inline pages::answer pages::list_schedules(query q) {
  schedule_page listed;
  listed.cursor = q.at("cursor");
  int looks = 0;
  do {  // a page of the store may have few, or none
    auto [ec, some] = co_await schedules_.async_list(listed.cursor, as_value);
    if (ec) co_return failed(ec);
    std::ranges::move(some.schedules, std::back_inserter(listed.schedules));
    listed.cursor = std::move(some.cursor);
  } while (!listed.cursor.empty() && listed.schedules.size() < options.page_size && ++looks != 20);
  page out{status::ok, "Schedules"};
  auto& m = out.main;
  m << "<h1>Schedules</h1><section data-live id=rows>"_html;
  if (listed.schedules.empty()) m << "<p class=empty>No schedule here.</p>"_html;
  if (!listed.schedules.empty()) {
    begin_table(m,
                {"Schedule", "When", "Next", "Queue", "Kind", "#Fired", "#Skipped", "#Missed", ""});
  }
  for (auto const& x : listed.schedules) {
    auto const& name = x.definition.name;
    m << "<tr>"_html;
    html named;
    named << name;
    if (x.paused) named << " "_html << badge("paused");
    cell(m, "Schedule", named, "name"_html);
    cell(m, "When", when_text(x.definition));
    bool const comes = x.progress.next && !x.paused;
    cell(m, "Next", comes ? due(saturating_sub(*x.progress.next, date_())) : html{});
    cell(m, "Queue", link(at("/queue", {{"queue", x.job.queue}}), x.job.queue));
    cell(m, "Kind", x.job.kind);
    number_cell(m, "Fired", x.progress.fired);
    number_cell(m, "Skipped", x.progress.skipped);
    number_cell(m, "Missed", x.progress.missed);
    auto const hold = x.paused ? console_action::resume_schedule : console_action::pause_schedule;
    html actions;
    actions << button(console_action::trigger_schedule, {{"name", name}})
            << button(hold, {{"name", name}});
    cell(m, "", actions, "act"_html);
    m << "</tr>"_html;
  }
  if (!listed.schedules.empty()) end_table(m);
  if (!listed.cursor.empty()) {
    m << "<p class=more>"_html << link(at("/schedules", {{"cursor", listed.cursor}}), "Next page")
      << "</p>"_html;
  }
  m << "</section>"_html;
  co_return out;
}

}  // namespace weir::detail::web

#endif
