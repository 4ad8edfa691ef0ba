// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_COLLECTION_HPP
#define WEIR_OBSERVE_COLLECTION_HPP

#include "weir/clock/system.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"
#include "weir/detail/erased.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"
#include "weir/observe/metrics_state.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

// Gauges that are read of a store.
namespace weir::detail {

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
inline boost::asio::awaitable<result<hint>> collect_queues(counted_store store, any_clock clock,
                                                           std::shared_ptr<metrics_state> to,
                                                           std::uint32_t most) {
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
        if (name == workers_queue) continue;  // its jobs are no jobs
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

/// Inspects a limit of any limiter.
using limit_inspection = std::function<void(std::string, attempt_handler<permit_census>)>;

/// Reads the permits of limits. What was noted before stands until all of it is there.
inline boost::asio::awaitable<result<hint>> collect_limits(limit_inspection inspect,
                                                           any_clock clock,
                                                           std::shared_ptr<metrics_state> to,
                                                           std::vector<std::string> names) {
  namespace asio = boost::asio;
  co_await asio::this_coro::throw_if_cancelled(false);
  std::vector<metrics_state::limit_gauges> found;
  for (auto const& name : names) {
    auto start = [&](attempt_handler<permit_census> handler) { inspect(name, std::move(handler)); };
    auto asking = attempt<permit_census>(clock, steady_time::max(), {}, std::move(start));
    auto const census = co_await std::move(asking);
    if (census.has_error()) co_return census.error();
    found.push_back({census->in_use, census->waiting});
  }
  for (std::size_t i = 0; i != found.size(); ++i) to->note_limit(names[i], found[i]);
  co_return hint{};
}

/// Starts such a reading.
struct limit_collection {
  using executor_type = boost::asio::any_io_executor;
  using handler_type = boost::asio::any_completion_handler<void(error_code, hint)>;

  template <class Limiter>
  [[nodiscard]] static limit_collection of(Limiter limiter, std::shared_ptr<metrics_state> to) {
    auto executor = limiter.get_executor();
    return {
        std::move(executor),
        [limiter = std::move(limiter)](std::string name, attempt_handler<permit_census> handler) {
          limiter.async_inspect(std::move(name), 0, std::move(handler));
        },
        std::move(to)};
  }

  [[nodiscard]] executor_type get_executor() const { return executor; }

  void operator()(handler_type handler, std::vector<std::string> names) const {
    auto body = collect_limits(inspect, any_clock::of(system_clock{}), to, std::move(names));
    spawn<hint>(executor, std::move(body), std::move(handler));
  }

  executor_type executor;
  limit_inspection inspect;
  std::shared_ptr<metrics_state> to;
};

}  // namespace weir::detail

#endif
