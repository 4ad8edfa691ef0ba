// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_PROMETHEUS_HPP
#define WEIR_OBSERVE_PROMETHEUS_HPP

#include "weir/command/list.hpp"
#include "weir/concept.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/erased.hpp"
#include "weir/detail/explained.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/observe/observed.hpp"
#include "weir/observe/series.hpp"
#include "weir/time.hpp"
#include "weir/worker_event.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/core/type_name.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir {

/// Bounds and labels of `prometheus_metrics`.
struct metrics_options {
  /// Upper bounds of the buckets of every histogram, growing; 1…100 of them.
  std::vector<duration> bounds{std::chrono::microseconds{100}, std::chrono::milliseconds{1},
                               std::chrono::milliseconds{5},   std::chrono::milliseconds{10},
                               std::chrono::milliseconds{25},  std::chrono::milliseconds{50},
                               std::chrono::milliseconds{100}, std::chrono::milliseconds{250},
                               std::chrono::milliseconds{500}, std::chrono::seconds{1},
                               std::chrono::seconds{5},        std::chrono::seconds{10},
                               std::chrono::seconds{60},       std::chrono::minutes{10}};
  /// How many queues, pairs of a queue and a kind, and limits have series of their own: 1…100,000.
  /// Later ones are counted together, as `other`; later limits are left out.
  std::uint32_t most_series = 200;
  /// The label of a queue: for example `tenant/*` for every queue of a tenant, so that a thousand
  /// tenants are one series. Empty: its name. Called in any thread; must not throw.
  std::function<std::string(std::string_view queue)> queue_label{};
};

namespace detail {

template <class... Lists>
struct joined_commands;
template <class... Cs, class... Ds, class... Rest>
struct joined_commands<command::list_of<Cs...>, command::list_of<Ds...>, Rest...>
    : joined_commands<command::list_of<Cs..., Ds...>, Rest...> {};
template <class... Cs>
struct joined_commands<command::list_of<Cs...>> {
  static constexpr std::size_t size = sizeof...(Cs);

  template <class C>
  [[nodiscard]] static constexpr std::size_t place_of() noexcept {
    std::size_t place = 0;
    bool found = false;
    ((found = found || std::is_same_v<C, Cs>, place += found ? 0 : 1), ...);
    return place;
  }
  /// The names, as in `command`.
  [[nodiscard]] static std::array<std::string, size> names() { return {name_of<Cs>()...}; }

 private:
  template <class C>
  [[nodiscard]] static std::string name_of() {
    auto name = boost::core::type_name<C>();
    return name.substr(name.rfind(':') + 1);
  }
};
using every_command = joined_commands<command::permit_commands::list, command::lock_commands::list,
                                      command::bucket_commands::list, command::job_commands::list>;

/// The outcome of a command, as a label.
enum class command_ending : std::uint8_t { ok, refused, transient, bad_input, cancelled, other };
inline constexpr std::array<std::string_view, 6> command_ending_names{
    "ok", "refused", "transient", "bad_input", "cancelled", "other"};

[[nodiscard]] inline command_ending ending_of(error_code ec) noexcept {
  if (!ec) return command_ending::ok;
  if (ec == boost::asio::error::operation_aborted) return command_ending::cancelled;
  if (ec == condition::transient) return command_ending::transient;
  if (ec == condition::bad_input) return command_ending::bad_input;
  if (ec == condition::refused) return command_ending::refused;
  return command_ending::other;
}

/// All that is counted.
struct metrics_state {
  struct command_series {
    explicit command_series(std::span<duration const> bounds) : took{bounds} {}
    std::array<metric_counter, command_ending_names.size()> endings;
    metric_histogram took;
  };
  static constexpr std::size_t event_kinds =
      static_cast<std::size_t>(worker_event_kind::store_recovered) + 1;
  struct job_series {
    explicit job_series(std::span<duration const> bounds) : ran{bounds}, age{bounds} {}
    std::array<metric_counter, event_kinds> events;
    metric_histogram ran;
    metric_histogram age;
  };
  struct queue_gauges {
    std::uint64_t pending = 0;
    std::uint64_t leased = 0;
    std::uint64_t completed = 0;
    std::uint64_t dead = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t paused = 0;
    duration oldest_due{};
  };
  struct limit_gauges {
    std::uint32_t in_use = 0;
    std::uint32_t waiting = 0;
  };
  using pair = std::pair<std::string, std::string>;

  explicit metrics_state(metrics_options o) : options{std::move(o)} {
    commands.reserve(every_command::size);
    for (std::size_t i = 0; i != every_command::size; ++i) {
      commands.push_back(std::make_unique<command_series>(options.bounds));
    }
  }

  [[nodiscard]] std::string label_of_queue(std::string_view queue) const {
    auto text = options.queue_label ? options.queue_label(queue) : std::string{queue};
    return printable(text, 100);
  }

  job_series& series_of(std::string_view queue, std::string_view kind) {
    pair key{label_of_queue(queue), printable(kind, 100)};
    std::lock_guard const lock{mutex};
    auto at = jobs.find(key);
    if (at == jobs.end()) {
      if (jobs.size() >= options.most_series) key = {"other", "other"};
      at = jobs.try_emplace(std::move(key), options.bounds).first;
    }
    return at->second;
  }
  metric_counter& enqueues_of(std::string_view queue, enqueue_outcome outcome) {
    pair key{label_of_queue(queue), std::string{to_string(outcome)}};
    std::lock_guard const lock{mutex};
    if (!enqueued.contains(key) && enqueued.size() >= 4 * std::size_t{options.most_series}) {
      key.first = "other";
    }
    return enqueued[std::move(key)];
  }

  metrics_options const options;
  std::vector<std::unique_ptr<command_series>> commands;  ///< in the order of `every_command`
  std::array<metric_counter, 2> permits;                  ///< refused, granted
  std::array<metric_counter, 2> locks;
  std::array<metric_counter, 3> takes;  ///< denied, allowed, shed
  metric_counter starved;
  metric_counter store_failures;
  std::atomic<std::uint32_t> stores_away{0};
  std::atomic<std::int64_t> running{0};

  mutable std::mutex mutex;  ///< of what follows; the series themselves are read and written
                             ///< without
  std::map<pair, job_series> jobs;
  std::map<pair, metric_counter> enqueued;
  std::map<std::string, queue_gauges> queues;
  std::map<std::string, limit_gauges> limits;
  std::uint64_t queues_left_out = 0;
  std::uint64_t limits_left_out = 0;
};

/// Counts the events of one worker.
class worker_metrics {
 public:
  worker_metrics(std::shared_ptr<metrics_state> to, worker_observer next)
      : to_{std::move(to)},
        next_{std::move(next)} {}
  worker_metrics(worker_metrics const&) = delete;
  worker_metrics& operator=(worker_metrics const&) = delete;
  ~worker_metrics() {
    to_->running.fetch_sub(running_, std::memory_order_relaxed);
    if (away_) to_->stores_away.fetch_sub(1, std::memory_order_relaxed);
  }

  void operator()(worker_event const& e) {
    {
      std::lock_guard const lock{mutex_};  // of several runs of one worker
      count(e);
    }
    if (next_) next_(e);
  }

 private:
  using kind = worker_event_kind;

  void count(worker_event const& e) {
    switch (e.kind) {
      case kind::started: begin(e); return;
      case kind::starved: to_->starved.add(e.count); return;
      case kind::store_failed:
        to_->store_failures.add();
        if (e.error == errc::store_unavailable) is_away(true);
        return;
      case kind::store_recovered: is_away(false); return;
      case kind::damaged:
      case kind::queue_snoozed:
      case kind::result_dropped: series(e).events[place(e.kind)].add(e.count); return;
      case kind::completed:
      case kind::retried:
      case kind::snoozed:
      case kind::returned:
      case kind::dead_lettered:
      case kind::lease_lost: end(e); return;
    }
  }
  void begin(worker_event const& e) {
    auto& s = series(e);
    s.events[place(e.kind)].add();
    s.age.add(e.job->age);
    ++running_;
    to_->running.fetch_add(1, std::memory_order_relaxed);
    is_away(false);
  }
  void end(worker_event const& e) {
    auto& s = series(e);
    if (e.kind == kind::completed) is_away(false);
    s.events[place(e.kind)].add(e.count);
    if (e.took < duration::zero()) return;  // its handler had not started
    s.ran.add(e.took);
    --running_;
    to_->running.fetch_sub(1, std::memory_order_relaxed);
  }
  void is_away(bool now) noexcept {
    if (std::exchange(away_, now) == now) return;
    to_->stores_away.fetch_add(now ? 1U : ~0U, std::memory_order_relaxed);
  }

  /// Most events are of the same queue and kind as the one before.
  metrics_state::job_series& series(worker_event const& e) {
    std::string_view const of =
        e.job == nullptr ? std::string_view{} : std::string_view{e.job->kind};
    if (last_ == nullptr || e.queue != queue_ || of != kind_) {
      last_ = nullptr;  // if there is no memory for another
      queue_ = e.queue;
      kind_ = of;
      last_ = &to_->series_of(e.queue, of);
    }
    return *last_;
  }
  [[nodiscard]] static std::size_t place(kind k) noexcept { return static_cast<std::size_t>(k); }

  std::shared_ptr<metrics_state> to_;
  worker_observer next_;
  std::mutex mutex_;  ///< of what follows
  std::string queue_;
  std::string kind_;
  metrics_state::job_series* last_ = nullptr;
  std::int64_t running_ = 0;
  bool away_ = false;
};

using counted_store = any_store<command::list_queues, command::read_queue_stats>;

template <class C>
boost::asio::awaitable<result<typename C::result>> ask_counted(
    counted_store const& store, any_clock const& clock, std::shared_ptr<std::string const> text,
    C command) {
  if (store.executes_now()) co_return store.execute(command);
  auto start = [&](attempt_handler<typename C::result> handler) {
    store.start(command, std::move(handler));
  };
  auto asking =
      attempt<typename C::result>(clock, steady_time::max(), std::move(text), std::move(start));
  co_return co_await std::move(asking);
}

/// Reads the counts of every queue, up to `most` of them. What was counted before stands until all
/// of it is there.
template <class State>
boost::asio::awaitable<result<hint>> collect_queues(counted_store store, any_clock clock,
                                                    std::shared_ptr<State> to, std::uint32_t most) {
  namespace asio = boost::asio;
  co_await asio::this_coro::throw_if_cancelled(false);
  std::map<std::string, metrics_state::queue_gauges> found;
  std::uint64_t left_out = 0;
  std::uint32_t looked = 0;
  for (std::uint32_t shard = 0; shard != store.shard_count(); ++shard) {
    auto cursor = std::make_shared<std::string const>();
    do {
      auto asking =
          ask_counted(store, clock, cursor,
                      command::list_queues{.shard = shard, .limit = 1000, .cursor = *cursor});
      auto page = co_await std::move(asking);
      if (page.has_error()) co_return page.error();
      for (auto& name : page->queues) {
        if (looked == most) {
          ++left_out;
          continue;
        }
        ++looked;
        auto const label = to->label_of_queue(name);
        auto const kept = std::make_shared<std::string const>(std::move(name));
        auto reading = ask_counted(store, clock, kept, command::read_queue_stats{.queue = *kept});
        auto const stats = co_await std::move(reading);
        if (stats.has_error()) co_return stats.error();
        auto& g = found.contains(label) || found.size() < to->options.most_series ? found[label]
                                                                                  : found["other"];
        g.pending += stats->pending;
        g.leased += stats->leased;
        g.completed += stats->completed;
        g.dead += stats->dead;
        g.cancelled += stats->cancelled;
        g.paused += stats->paused ? 1 : 0;
        if (stats->pending != 0 && stats->next_in && !stats->paused) {
          g.oldest_due = std::max(g.oldest_due, -*stats->next_in);
        }
      }
      cursor = std::make_shared<std::string const>(std::move(page->cursor));
    } while (!cursor->empty());
  }
  std::lock_guard const lock{to->mutex};
  to->queues = std::move(found);
  to->queues_left_out = left_out;
  co_return hint{};
}

/// Starts such a reading.
struct collection {
  using executor_type = boost::asio::any_io_executor;
  using handler_type = boost::asio::any_completion_handler<void(error_code, hint)>;

  [[nodiscard]] executor_type get_executor() const { return store.get_executor(); }

  void operator()(handler_type handler, std::uint32_t most) const {
    auto body = collect_queues(store, any_clock::of(system_clock{}), to, most);
    spawn<hint>(get_executor(), std::move(body), std::move(handler));
  }

  counted_store store;
  std::shared_ptr<metrics_state> to;
};

}  // namespace detail

/// Counts what weir does, for Prometheus or what else reads its format.
///
///     weir::prometheus_metrics metrics;
///     weir::observed store{weir::redis_store{…}, metrics};  // every command
///     worker.on_event(metrics.watch_worker());              // every job
///     co_await metrics.async_collect(store);                // queues, now and then
///     reply(metrics.text(), weir::prometheus_metrics::text_type);
///
/// docs/operations.md has the metrics, and alerts made of them. Labels are printable ASCII, and the
/// number of series is bounded (`metrics_options::most_series`), whatever queues and kinds there
/// are.
///
/// A handle: copies count together. Thread-safe.
class prometheus_metrics {
 public:
  /// The content type of `text`.
  static constexpr std::string_view text_type = "text/plain; version=0.0.4; charset=utf-8";
  /// The content type of `openmetrics`.
  static constexpr std::string_view openmetrics_type =
      "application/openmetrics-text; version=1.0.0; charset=utf-8";

  /// @param options what is counted by
  /// Throws `boost::system::system_error` (`invalid_option`) for options outside their ranges.
  explicit prometheus_metrics(metrics_options options = {}) {
    auto const& bounds = options.bounds;
    bool const grow =
        std::ranges::adjacent_find(bounds, std::ranges::greater_equal{}) == bounds.end();
    if (bounds.empty() || bounds.size() > 100 || !grow || bounds.front() <= duration::zero() ||
        options.most_series == 0 || options.most_series > 100'000) {
      throw boost::system::system_error{make_error_code(errc::invalid_option)};
    }
    state_ = std::make_shared<detail::metrics_state>(std::move(options));
  }

  /// Counts a command: what `observed` calls.
  template <class C>
    requires(detail::every_command::place_of<C>() < detail::every_command::size)
  void executed([[maybe_unused]] C const& c, error_code ec,
                [[maybe_unused]] typename C::result const& answer, duration took) const noexcept {
    auto& series = *state_->commands[detail::every_command::place_of<C>()];
    series.endings[static_cast<std::size_t>(detail::ending_of(ec))].add();
    series.took.add(took);
    if (ec) return;
    if constexpr (std::is_same_v<C, command::acquire_permit>) {
      state_->permits[answer.granted ? 1 : 0].add();
    } else if constexpr (std::is_same_v<C, command::acquire_lock>) {
      state_->locks[answer.granted ? 1 : 0].add();
    } else if constexpr (std::is_same_v<C, command::take>) {
      state_->takes[answer.allowed ? 1 : answer.shed ? 2 : 0].add();
    } else if constexpr (std::is_same_v<C, command::enqueue_jobs>) {
      for (auto const& one : answer) count_enqueue(c.queue, one.outcome);
    }
  }

  /// Counts the events of a worker: to be given to `worker::on_event`, one for each worker.
  ///
  /// @param next is told of each event after it was counted; may be empty
  [[nodiscard]] worker_observer watch_worker(worker_observer next = {}) const {
    auto const counts = std::make_shared<detail::worker_metrics>(state_, std::move(next));
    return [counts](worker_event const& e) { (*counts)(e); };
  }

  /// Reads the counts of a store's queues: one command for each, so every 15 s rather than every
  /// second. What was read before stands until all of it is there.
  ///
  /// @param store a `job_store`
  /// @param token completes with `void(error_code, hint)`
  /// @param most  how many queues are looked at; the others are counted in `weir_queues_left_out`
  /// Errors: the store's; `operation_aborted`. Then nothing is changed.
  template <class Store, class Token = boost::asio::deferred_t>
  WEIR_OPERATION auto async_collect(Store store, Token&& token = Token{},
                                    std::uint32_t most = 1000) const {
    return boost::asio::async_initiate<Token, void(error_code, hint)>(
        detail::collection{detail::counted_store::of(std::move(store)), state_}, token, most);
  }

  /// Notes who has the permits of a limit: the answer of `limiter::async_inspect`.
  ///
  /// @param name   of the limit, as a label
  /// @param census what was read
  void set_limit(std::string_view name, permit_census const& census) const {
    auto label = detail::printable(name, 100);
    std::lock_guard const lock{state_->mutex};
    auto& limits = state_->limits;
    if (!limits.contains(label) && limits.size() >= state_->options.most_series) {
      ++state_->limits_left_out;
      return;
    }
    limits[std::move(label)] = {census.in_use, census.waiting};
  }

  /// Everything, in Prometheus' text format 0.0.4.
  [[nodiscard]] std::string text() const { return write(false); }
  /// Everything, as OpenMetrics 1.0.
  [[nodiscard]] std::string openmetrics() const { return write(true); }

 private:
  void count_enqueue(std::string_view queue, enqueue_outcome outcome) const noexcept {
    try {
      state_->enqueues_of(queue, outcome).add();
    } catch (...) {  // no memory for a series: this one is not counted
    }
  }

  [[nodiscard]] std::string write(bool open) const {
    detail::metric_writer to{open};
    write_commands(to);
    write_jobs(to);
    write_queues(to);
    return std::move(to).take();
  }

  void write_commands(detail::metric_writer& to) const {
    auto const names = detail::every_command::names();
    auto const& commands = state_->commands;
    auto const asked = [&](std::size_t i) {
      return std::ranges::any_of(commands[i]->endings,
                                 [](auto const& n) { return n.value() != 0; });
    };
    to.family("weir_commands_total", "counter", "Commands of stores, by what became of them.");
    for (std::size_t i = 0; i != names.size(); ++i) {
      for (std::size_t e = 0; asked(i) && e != detail::command_ending_names.size(); ++e) {
        to.sample({{"command", names[i]}, {"result", detail::command_ending_names[e]}},
                  commands[i]->endings[e]);
      }
    }
    to.family("weir_command_duration_seconds", "histogram", "From asking a store to its answer.");
    for (std::size_t i = 0; i != names.size(); ++i) {
      if (asked(i)) to.sample({{"command", names[i]}}, commands[i]->took);
    }
    to.family("weir_permits_total", "counter", "Asked-for permits of concurrency limits.");
    to.sample({{"result", "granted"}}, state_->permits[1]);
    to.sample({{"result", "refused"}}, state_->permits[0]);
    to.family("weir_locks_total", "counter", "Asked-for locks.");
    to.sample({{"result", "granted"}}, state_->locks[1]);
    to.sample({{"result", "refused"}}, state_->locks[0]);
    to.family("weir_takes_total", "counter", "Takes of rate limits.");
    to.sample({{"result", "allowed"}}, state_->takes[1]);
    to.sample({{"result", "denied"}}, state_->takes[0]);
    to.sample({{"result", "shed"}}, state_->takes[2]);
  }

  void write_jobs(detail::metric_writer& to) const {
    std::lock_guard const lock{state_->mutex};
    to.family("weir_jobs_enqueued_total", "counter", "Jobs that were to be enqueued.");
    for (auto const& [key, n] : state_->enqueued) {
      to.sample({{"queue", key.first}, {"outcome", key.second}}, n);
    }
    auto const each = [&](auto const& write_one) {
      for (auto const& [key, series] : state_->jobs) write_one(key.first, key.second, series);
    };
    to.family("weir_job_events_total", "counter", "What workers did with jobs.");
    each([&](auto const& queue, auto const& kind, auto const& series) {
      for (std::size_t k = 0; k != series.events.size(); ++k) {
        auto const event = static_cast<worker_event_kind>(k);
        if (of_jobs(event)) {
          to.sample({{"queue", queue}, {"kind", kind}, {"event", to_string(event)}},
                    series.events[k]);
        }
      }
    });
    to.family("weir_job_duration_seconds", "histogram",
              "From the start of a handler until its outcome is stored.");
    each([&](auto const& queue, auto const& kind, auto const& series) {
      to.sample({{"queue", queue}, {"kind", kind}}, series.ran);
    });
    to.family("weir_job_age_seconds", "histogram", "From the enqueue of a job to its claim.");
    each([&](auto const& queue, auto const& kind, auto const& series) {
      to.sample({{"queue", queue}, {"kind", kind}}, series.age);
    });
    to.family("weir_jobs_running", "gauge", "Jobs in the hands of the workers here.");
    to.sample({}, state_->running.load(std::memory_order_relaxed));
    to.family("weir_leases_starved_total", "counter",
              "Leases whose renewal was late by more than half a lease.");
    to.sample({}, state_->starved);
    to.family("weir_store_failures_total", "counter", "Commands of workers that failed.");
    to.sample({}, state_->store_failures);
    to.family("weir_workers_without_store", "gauge", "Workers here whose store cannot be reached.");
    to.sample({}, state_->stores_away.load(std::memory_order_relaxed));
  }

  void write_queues(detail::metric_writer& to) const {
    std::lock_guard const lock{state_->mutex};
    using gauges = detail::metrics_state::queue_gauges;
    constexpr std::pair<std::string_view, std::uint64_t gauges::*> states[] = {
        {"pending", &gauges::pending},
        {"leased", &gauges::leased},
        {"completed", &gauges::completed},
        {"dead", &gauges::dead},
        {"cancelled", &gauges::cancelled}};
    to.family("weir_queue_jobs", "gauge", "Jobs by their state, as they were read last.");
    for (auto const& [queue, g] : state_->queues) {
      for (auto const& [name, member] : states) {
        to.sample({{"queue", queue}, {"state", name}}, g.*member);
      }
    }
    to.family("weir_queue_oldest_due_seconds", "gauge",
              "For how long the job that is due the longest has waited; 0: none is due.");
    for (auto const& [queue, g] : state_->queues) {
      to.sample({{"queue", queue}}, std::chrono::duration<double>(g.oldest_due).count());
    }
    to.family("weir_queues_paused", "gauge", "Queues that are paused.");
    for (auto const& [queue, g] : state_->queues) to.sample({{"queue", queue}}, g.paused);
    to.family("weir_queues_left_out", "gauge", "Queues beyond those that are looked at.");
    to.sample({}, state_->queues_left_out);
    to.family("weir_limit_permits_in_use", "gauge", "Live permits, as they were read last.");
    for (auto const& [name, g] : state_->limits) to.sample({{"limit", name}}, g.in_use);
    to.family("weir_limit_waiting", "gauge", "Who waits for a permit, as it was read last.");
    for (auto const& [name, g] : state_->limits) to.sample({{"limit", name}}, g.waiting);
    to.family("weir_limits_left_out_total", "counter",
              "How often a limit beyond those with a series was to be noted.");
    to.sample({}, state_->limits_left_out);
  }

  [[nodiscard]] static bool of_jobs(worker_event_kind k) noexcept {
    return k != worker_event_kind::starved && k != worker_event_kind::store_failed &&
           k != worker_event_kind::store_recovered;
  }

  std::shared_ptr<detail::metrics_state> state_;
};

}  // namespace weir

#endif
