// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_WORKER_PAGES_HPP
#define WEIR_CONSOLE_WORKER_PAGES_HPP

#include "weir/console/asking.hpp"
#include "weir/console/html.hpp"
#include "weir/console/options.hpp"
#include "weir/console/pages.hpp"
#include "weir/console/query.hpp"
#include "weir/console/text.hpp"
#include "weir/limits.hpp"
#include "weir/registered_worker.hpp"
#include "weir/time.hpp"

#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The page about workers: those of the register, and who holds leases.
namespace weir::detail::web {

inline pages::answer pages::workers(query q) {
  auto const listed = co_await list_workers(queue_, options.page_size, q.at("cursor"));
  if (listed.has_error()) co_return failed(listed.error());
  page out{status::ok, "Workers"};
  auto& m = out.main;
  m << "<h1>Workers</h1><section data-live id=rows>"_html;
  if (listed->workers.empty()) {
    m << "<p class=empty>No worker is registered: those are that have a name "
         "(worker_options::name).</p>"_html;
  } else {
    begin_table(m, {"Worker", "Heard of", "Up", "#Busy", "Queues", "Kinds", "Longest job"});
  }
  for (auto const& w : listed->workers) {
    m << "<tr>"_html;
    html named;
    named << beginning(w.name, 300);
    if (!w.seems_alive()) named << " "_html << badge("gone");
    if (w.seems_alive() && w.stopping) named << " "_html << badge("stopping");
    cell(m, "Worker", named, "name"_html);
    cell(m, "Heard of", due(-w.seen));
    cell(m, "Up", time_text(up_of(w)));
    cell(m, "Busy", html{} << w.busy << "/"_html << w.concurrency, "num"_html);
    note_cell(m, "Queues", served_text(w));
    note_cell(m, "Kinds", kinds_text(w));
    html longest;
    if (!w.jobs.empty()) {
      auto const& j = w.jobs.front();
      longest << link(at("/job", {{"queue", j.queue}, {"id", to_string(j.id)}}),
                      beginning(j.kind, 300))
              << " "_html << time_text(std::min(j.took, limits::span) + w.seen);
    }
    cell(m, "Longest job", longest);
    m << "</tr>"_html;
  }
  if (!listed->workers.empty()) end_table(m);
  if (!listed->cursor.empty()) {
    m << "<p class=more>"_html << link(at("/workers", {{"cursor", listed->cursor}}), "Next page")
      << "</p>"_html;
  }
  if (auto const ec = co_await list_leases(m, listed->workers)) co_return failed(ec);
  m << "</section>"_html;
  co_return out;
}

/// Those who hold jobs, registered or not.
inline boost::asio::awaitable<error_code> pages::list_leases(
    html& m, std::vector<registered_worker> const& known) {
  auto const listed = co_await list_queues(queue_, "", most_queues, "");
  if (listed.has_error()) co_return listed.error();
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
    if (some.has_error()) co_return some.error();
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
  m << "<h2>Leases</h2><p class=hint>Those who hold jobs now, registered or not.</p>"_html;
  if (holders.empty()) {
    m << "<p class=empty>No job is leased.</p>"_html;
  } else {
    begin_table(m, {"Holder", "#Jobs", "Queues", "First lease ends", "Its job", "Progress"});
    std::size_t rows = 0;
    for (auto const& [holder, h] : holders) {
      if (++rows > options.page_size) break;
      m << "<tr>"_html;
      auto const worker = std::ranges::find(known, holder, &registered_worker::holder);
      cell(m, "Holder", worker == known.end() ? holder : worker->name + ": " + holder, "name"_html);
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
  co_return error_code{};
}

}  // namespace weir::detail::web

#endif
