// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_METRICS_STATE_HPP
#define WEIR_OBSERVE_METRICS_STATE_HPP

#include "weir/detail/explained.hpp"
#include "weir/observe/metrics_options.hpp"
#include "weir/observe/metrics_shard.hpp"
#include "weir/observe/series.hpp"
#include "weir/schedule_event.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// The shard that this thread used last, and of which state. It outlives all that has a destructor.
struct current_shard {
  std::uint64_t state = 0;  ///< 0: none
  metrics_shard* shard = nullptr;
  bool ending = false;  ///< the thread has given its shards back
};
inline constinit thread_local current_shard this_threads_shard{};

/// The shards of a thread, each of another state. Those that it leaves go on with another thread.
struct held_shards {
  held_shards() = default;
  held_shards(held_shards const&) = delete;
  held_shards& operator=(held_shards const&) = delete;
  ~held_shards() {
    this_threads_shard = {.ending = true};
    for (auto const& [state, shard] : all) {
      if (shard != nullptr) shard->taken.store(false, std::memory_order_release);
    }
  }

  std::map<std::uint64_t, std::shared_ptr<metrics_shard>> all;
};

/// All that is counted.
class metrics_state {
 public:
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

  struct schedule_counts {
    explicit schedule_counts(std::span<duration const> bounds) : lateness{bounds} {}
    std::uint64_t fired = 0;
    std::uint64_t skipped = 0;
    std::uint64_t missed = 0;
    std::uint64_t unserved = 0;
    histogram_cells lateness;
  };

  explicit metrics_state(metrics_options o) : options{std::move(o)} {}

  /// This thread's counts; null: there is no memory for them, or the thread ends.
  [[nodiscard]] metrics_shard* shard() noexcept {
    auto const& mine = this_threads_shard;
    return mine.state == id_ ? mine.shard : find_shard();
  }
  /// The counts of all threads.
  [[nodiscard]] std::unique_ptr<metrics_shard> total() const {
    auto out = std::make_unique<metrics_shard>(options.bounds);
    std::lock_guard const lock{mutex};
    for (auto const& one : shards_) out->add(*one);
    return out;
  }

  [[nodiscard]] std::string label_of_queue(std::string_view queue) const {
    auto text = options.queue_label ? options.queue_label(queue) : std::string{queue};
    return printable(text, 100);
  }
  job_cells& series_of(metrics_shard& shard, std::string_view queue, std::string_view kind) {
    return shard.jobs.of(queue, kind, [&] {
      return admitted(known_jobs_, {label_of_queue(queue), printable(kind, 100)},
                      {"other", "other"});
    });
  }
  queue_cells& series_of(metrics_shard& shard, std::string_view queue) {
    return shard.queues.of(queue, {}, [&] {
      return admitted(known_queues_, {label_of_queue(queue), {}}, {"other", {}});
    });
  }

  void note_limit(std::string_view name, limit_gauges now) {
    auto label = printable(name, 100);
    std::lock_guard const lock{mutex};
    if (!limits.contains(label) && limits.size() >= options.most_series) {
      ++limits_left_out;
      return;
    }
    limits[std::move(label)] = now;
  }
  void note_firing(schedule_event const& e) noexcept {
    try {
      auto label = printable(e.name, 100);
      std::lock_guard const lock{mutex};
      if (!schedules.contains(label) && schedules.size() >= options.most_series) label = "other";
      auto& s = schedules.try_emplace(std::move(label), options.bounds).first->second;
      s.fired += e.fired;
      s.skipped += e.skipped;
      s.missed += e.missed;
      s.unserved += e.unserved ? 1 : 0;
      if (e.fired != 0) s.lateness.add(e.lateness);
    } catch (...) {  // no memory for a series: this one is not counted
    }
  }

  metrics_options const options;
  metric_counter starved;
  metric_counter store_failures;
  metric_counter forgotten;  ///< jobs that ran when their worker went
  std::atomic<std::uint32_t> stores_away{0};

  mutable std::mutex mutex;  ///< of what follows
  std::map<std::string, queue_gauges> queues;
  std::map<std::string, limit_gauges> limits;
  std::map<std::string, schedule_counts> schedules;
  std::uint64_t queues_left_out = 0;
  std::uint64_t limits_left_out = 0;

 private:
  [[nodiscard]] metrics_shard* find_shard() noexcept {
    if (this_threads_shard.ending) return nullptr;
    try {
      thread_local held_shards held;
      auto& mine = held.all[id_];
      if (mine == nullptr) {
        mine = take_shard();
        std::erase_if(held.all, [&](auto const& one) {  // of states that are gone
          return one.second.use_count() == 1;
        });
      }
      this_threads_shard = {.state = id_, .shard = mine.get()};
      return mine.get();
    } catch (...) {
      return nullptr;
    }
  }
  /// One that a thread has left, or a new one.
  [[nodiscard]] std::shared_ptr<metrics_shard> take_shard() {
    std::lock_guard const lock{mutex};
    for (auto const& one : shards_) {
      if (!one->taken.exchange(true, std::memory_order_acquire)) return one;
    }
    shards_.reserve(shards_.size() + 1);
    return shards_.emplace_back(std::make_shared<metrics_shard>(options.bounds));
  }

  /// The key, if it has a series of its own.
  series_key admitted(std::set<series_key>& all, series_key key, series_key other) {
    std::lock_guard const lock{mutex};
    if (all.contains(key)) return key;
    if (all.size() >= options.most_series) return other;
    return *all.insert(std::move(key)).first;
  }

  [[nodiscard]] static std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  std::uint64_t const id_ = next_id();  ///< no other state ever has it
  std::vector<std::shared_ptr<metrics_shard>> shards_;
  std::set<series_key> known_jobs_;  ///< those with a series of their own
  std::set<series_key> known_queues_;
};

}  // namespace weir::detail

#endif
