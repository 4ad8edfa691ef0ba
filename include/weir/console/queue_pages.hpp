// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_QUEUE_PAGES_HPP
#define WEIR_CONSOLE_QUEUE_PAGES_HPP

#include "weir/console/asking.hpp"
#include "weir/console/explain.hpp"
#include "weir/console/html.hpp"
#include "weir/console/options.hpp"
#include "weir/console/pages.hpp"
#include "weir/console/query.hpp"
#include "weir/console/text.hpp"
#include "weir/job_headers.hpp"
#include "weir/time.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The pages about queues: the overview, their lists, and a queue and a job of one.
namespace weir::detail::web {

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
    cell(out, "", is_kept_by_weir(name) ? html{} : button(action, {{"queue", name}}), "act"_html);
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
    std::vector<std::string> reasons;
    std::size_t size = 0;
    for (std::span rest{listed->queues}; !rest.empty() && size < most_bytes;) {
      auto const some = rest.first(std::min(in_flight, rest.size()));
      rest = rest.subspan(some.size());
      auto const [errors, oldest] = co_await together<job_page>(some, [this](auto const& each) {
        return queue_.async_list_dead_letters(each.first, 1, {}, boost::asio::deferred);
      });
      for (std::size_t i = 0; i != some.size(); ++i) {
        if (errors[i]) co_return failed(errors[i]);
        auto const& jobs = oldest[i].jobs;
        reasons.push_back(jobs.empty() ? "…" : shown(jobs.front()).reason);
        if (!jobs.empty()) size += jobs.front().payload.size();
      }
    }
    reasons.resize(listed->queues.size(), "…");
    begin_table(m, {"Queue", "#Dead letters", "Oldest reason", ""});
    auto reason = reasons.begin();
    for (auto const& [name, stats] : listed->queues) {
      m << "<tr>"_html;
      cell(m, "Queue", link(at("/queue", {{"queue", name}, {"state", "dead"}}), name), "name"_html);
      cell(m, "Dead letters", stats.dead, "\"num bad\""_html);
      note_cell(m, "Oldest reason", *reason++);
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
  // A list goes through the records in all states, as is supposed, in a mixed order; one of dead
  // letters does not.
  auto const records = state == job_state::dead ? stats.dead : records_of(stats);
  auto const records_for_each = std::clamp<std::uint64_t>(
      records / std::max<std::uint64_t>(count_of(stats, state), 1), 1, most_records);
  std::size_t looked = 0;
  std::size_t size = 0;
  do {
    auto listed = co_await list_state(queue_, name, state, options.page_size, cursor);
    if (listed.has_error()) co_return failed(listed.error());
    looked += listed->jobs.size() * records_for_each;
    for (auto& j : listed->jobs) {
      size += j.payload.size() + j.result.size();
      if (filter.empty() || j.kind == filter) jobs.push_back(std::move(j));
    }
    // A page of the store that is not full, and goes on, has looked at a thousand records.
    if (listed->jobs.size() < options.page_size && !listed->cursor.empty()) looked = most_records;
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

}  // namespace weir::detail::web

#endif
