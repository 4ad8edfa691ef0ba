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

#include <boost/asio/deferred.hpp>
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
  auto listed = co_await list_queues(queue_, "", most_queues, "");
  if (listed.has_error()) co_return listed.error();
  struct held {
    held() = default;
    std::uint64_t jobs = 0;
    std::set<std::string> queues;
    duration ends = duration::max();
    std::string queue, first, progress;  ///< of the job whose lease ends first
  };
  std::map<std::string, held> holders;
  // Of the queues with the most leases, at once. A list goes through records of any state, and may
  // have 4 MiB of texts.
  auto& queues = listed->queues;
  std::erase_if(queues, [](auto const& each) { return each.second.leased == 0; });
  std::ranges::sort(queues, {}, [](auto const& each) {
    return std::pair{~each.second.leased, std::string_view{each.first}};
  });
  std::vector<std::pair<std::string, std::uint32_t>> some;
  std::uint64_t leases = 0;
  std::uint64_t records = 0;
  for (auto const& [name, q] : queues) {
    if (some.size() == most_leased || leases >= most_records || records >= most_leases) break;
    some.emplace_back(name, std::min<std::uint64_t>(q.leased, most_records - leases));
    leases += some.back().second;
    records += std::min<std::uint64_t>(records_of(q), most_records);
  }
  bool more = !listed->cursor.empty() || some.size() < queues.size();
  std::size_t found = 0;
  if (!some.empty()) {
    auto const [errors, answers] = co_await together<job_page>(some, [this](auto const& each) {
      return queue_.async_list(each.first, job_state::leased, each.second, {},
                               boost::asio::deferred);
    });
    for (std::size_t i = 0; i != some.size(); ++i) {
      if (errors[i]) co_return errors[i];
      auto const& name = some[i].first;
      more = more || answers[i].jobs.size() < queues[i].second.leased;
      found += answers[i].jobs.size();
      for (auto const& j : answers[i].jobs) {
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
  if (more) m << "<p class=hint>Of "_html << found << " leases; there are more.</p>"_html;
  co_return error_code{};
}

}  // namespace weir::detail::web

#endif
