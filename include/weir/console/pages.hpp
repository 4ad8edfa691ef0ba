// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_PAGES_HPP
#define WEIR_CONSOLE_PAGES_HPP

#include "weir/console/asking.hpp"
#include "weir/console/html.hpp"
#include "weir/console/options.hpp"
#include "weir/console/parts.hpp"
#include "weir/console/query.hpp"
#include "weir/console/text.hpp"
#include "weir/detail/erased.hpp"
#include "weir/error.hpp"
#include "weir/registered_worker.hpp"
#include "weir/schedules.hpp"
#include "weir/time.hpp"

#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail::web {

/// Counts what became of some jobs.
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

  /// Notes that an action was refused before it was looked at. Others can have any number of them
  /// refused, so one a second is noted, with how many there were before it.
  void refuse(std::string_view action, std::string_view who, std::string_view why) {
    auto const* const words = find_action(action);
    if (words == nullptr) return;
    std::uint64_t unnoted = 0;
    {
      std::scoped_lock const lock{mutex_};
      auto const now = clock_.steady_now();
      if (now < next_refusal_) {
        ++unnoted_;
        return;
      }
      next_refusal_ = saturating_add(now, std::chrono::seconds{1});
      unnoted = std::exchange(unnoted_, 0);
    }
    note(words->action, who, {}, {},
         "refused: " + std::string{why} +
             (unnoted == 0 ? "" : " (and " + count_text(unnoted) + " before it)"));
  }

  console_options const options;

 private:
  static constexpr std::uint32_t most_queues = 100;     // that one page is about
  static constexpr std::size_t most_records = 1000;     // that one page looks at
  static constexpr std::size_t most_leased = 16;        // queues whose leases one page lists
  static constexpr std::size_t most_leases = 5000;      // records that are searched for leases
  static constexpr std::size_t most_bytes = 8U << 20U;  // of their texts
  static constexpr std::uint32_t step_size = 500;       // jobs that one request acts on

  using way = answer (pages::*)(query);
  [[nodiscard]] static std::map<std::string_view, way> const& ways() {
    static std::map<std::string_view, way> const all{
        {"/", &pages::overview},       {"/queues", &pages::list_all},
        {"/dead", &pages::list_dead},  {"/queue", &pages::queue},
        {"/job", &pages::job_page_of}, {"/workers", &pages::workers},
        {"/limits", &pages::limits},   {"/schedules", &pages::list_schedules},
    };
    return all;
  }

  answer overview(query q);
  answer list_all(query q);
  answer list_dead(query q);
  answer queue(query q);
  answer job_page_of(query q);
  answer workers(query q);
  boost::asio::awaitable<error_code> list_leases(html& out,
                                                 std::vector<registered_worker> const& known);
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
    // Records that weir keeps as jobs have texts of the program's jobs in them: a schedule's, say.
    if (j.kind.starts_with("weir.")) return "(redacted)";
    try {
      return options.redact(j, field, std::move(text));
    } catch (...) {  // an operator's function that fails must show nothing
      return "(redacted)";
    }
  }
  /// A job without that which may not be shown.
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
    line << "weir: console: \""_html << (who.empty() ? "somebody" : who) << "\": "_html
         << to_string(a) << " \""_html << on << (job.empty() ? "\""_html : "\" "_html) << job
         << ": "_html << outcome << "\n"_html;
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
  steady_time next_refusal_ = steady_time::min();
  std::uint64_t unnoted_ = 0;   ///< refusals
  std::deque<sample> samples_;  ///< of the overview: what its rates are made of
};

}  // namespace weir::detail::web

#endif
