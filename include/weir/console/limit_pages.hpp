// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_LIMIT_PAGES_HPP
#define WEIR_CONSOLE_LIMIT_PAGES_HPP

#include "weir/command/buckets.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/console/asking.hpp"
#include "weir/console/html.hpp"
#include "weir/console/options.hpp"
#include "weir/console/pages.hpp"
#include "weir/console/query.hpp"
#include "weir/console/text.hpp"
#include "weir/execute.hpp"
#include "weir/key_policy.hpp"
#include "weir/quota.hpp"
#include "weir/schedules.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

// The pages about limits and schedules.
namespace weir::detail::web {

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
    auto const room = options.page_size - static_cast<std::uint32_t>(listed.schedules.size());
    auto [ec, some] = co_await schedules_.async_list(room, listed.cursor, as_value);
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
