// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_METRICS_SHARD_HPP
#define WEIR_OBSERVE_METRICS_SHARD_HPP

#include "weir/command/list.hpp"
#include "weir/error.hpp"
#include "weir/observe/series.hpp"
#include "weir/time.hpp"
#include "weir/worker_event.hpp"

#include <boost/asio/error.hpp>
#include <boost/container_hash/hash.hpp>
#include <boost/core/type_name.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// The counts of one thread.
namespace weir::detail {

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

template <std::size_t N>
void add_each(std::array<metric_cell, N>& to, std::array<metric_cell, N> const& from) noexcept {
  for (std::size_t i = 0; i != N; ++i) to[i].add(from[i]);
}

/// Of one command.
struct command_cells {
  explicit command_cells(std::span<duration const> bounds) : took{bounds} {}
  void add(command_cells const& other) noexcept {
    add_each(endings, other.endings);
    took.add(other.took);
  }

  std::array<metric_cell, command_ending_names.size()> endings;
  histogram_cells took;              ///< those that were timed
  std::uint32_t asked_in_place = 0;  ///< by the thread that adds
};

/// Of the jobs of a queue and a kind, in the hands of workers.
struct job_cells {
  explicit job_cells(std::span<duration const> bounds) : ran{bounds}, age{bounds} {}
  void add(job_cells const& other) noexcept {
    add_each(events, other.events);
    add_each(refusals, other.refusals);
    ran.add(other.ran);
    age.add(other.age);
  }

  static constexpr std::size_t event_kinds =
      static_cast<std::size_t>(worker_event_kind::store_recovered) + 1;
  static constexpr std::size_t policies = static_cast<std::size_t>(refusing_policy::rate) + 1;
  std::array<metric_cell, event_kinds> events;
  std::array<metric_cell, policies> refusals;
  histogram_cells ran;
  histogram_cells age;
};

/// Of the enqueues to a queue, by their outcomes, and the claims from it.
struct queue_cells {
  explicit queue_cells(std::span<duration const>) {}
  void add(queue_cells const& other) noexcept {
    add_each(enqueued, other.enqueued);
    claimed.add(other.claimed);
  }

  static constexpr std::size_t outcomes =
      static_cast<std::size_t>(enqueue_outcome::rescheduled) + 1;
  std::array<metric_cell, outcomes> enqueued;
  metric_cell claimed;
};

/// The labels of a series: a queue and a kind.
using series_key = std::pair<std::string, std::string>;

/// Series of one thread. It alone adds to them, and makes them; any thread reads.
template <class Cells>
class series_table {
 public:
  explicit series_table(std::span<duration const> bounds) : bounds_{bounds} {}

  /// The series of this queue and kind, as they are named by who counts.
  ///
  /// @param label makes the key; it is asked where the series was not used lately
  template <class Label>
  Cells& of(std::string_view queue, std::string_view kind, Label&& label) {
    if (last_->is(queue, kind)) return *last_->cells;
    std::size_t hash = queue.size();
    boost::hash_range(hash, queue.begin(), queue.end());
    boost::hash_range(hash, kind.begin(), kind.end());
    auto& at = lately_[hash % lately_.size()];
    if (!at.is(queue, kind)) {
      at.cells = nullptr;  // if there is no memory for another
      at.queue = queue;
      at.kind = kind;
      at.cells = &at_key(label());
    }
    last_ = &at;
    return *at.cells;
  }

  void add(series_table const& other) {
    std::lock_guard const lock{other.mutex_};
    for (auto const& [key, cells] : other.cells_) at_key(key).add(cells);
  }
  /// Of a table that is not written to.
  [[nodiscard]] std::map<series_key, Cells> const& all() const noexcept { return cells_; }

 private:
  struct used {
    [[nodiscard]] bool is(std::string_view q, std::string_view k) const noexcept {
      // Inline: `==` of strings is a call each.
      using text = std::char_traits<char>;
      return cells != nullptr && queue.size() == q.size() && kind.size() == k.size() &&
             text::compare(queue.data(), q.data(), q.size()) == 0 &&
             text::compare(kind.data(), k.data(), k.size()) == 0;
    }
    std::string queue;
    std::string kind;
    Cells* cells = nullptr;
  };

  Cells& at_key(series_key key) {
    std::lock_guard const lock{mutex_};
    return cells_.try_emplace(std::move(key), bounds_).first->second;
  }

  std::span<duration const> bounds_;
  std::array<used, 32> lately_;
  used* last_ = lately_.data();
  mutable std::mutex mutex_;  ///< of the map, not of what is counted
  std::map<series_key, Cells> cells_;
};

/// All that one thread counts at a time, or the sum of what several did.
struct metrics_shard {
  explicit metrics_shard(std::span<duration const> bounds)
      : commands(every_command::size, command_cells{bounds}),
        hint_lag{histogram_cells{bounds}, histogram_cells{bounds}},
        jobs{bounds},
        queues{bounds} {}

  void add(metrics_shard const& other) {
    for (std::size_t i = 0; i != commands.size(); ++i) commands[i].add(other.commands[i]);
    add_each(permits, other.permits);
    add_each(locks, other.locks);
    add_each(takes, other.takes);
    for (std::size_t i = 0; i != hint_lag.size(); ++i) hint_lag[i].add(other.hint_lag[i]);
    jobs.add(other.jobs);
    queues.add(other.queues);
  }

  std::vector<command_cells> commands;  ///< in the order of `every_command`
  std::array<metric_cell, 2> permits;   ///< refused, granted
  std::array<metric_cell, 2> locks;
  std::array<metric_cell, 3> takes;         ///< denied, allowed, shed
  std::array<histogram_cells, 2> hint_lag;  ///< by a hint, by a poll
  series_table<job_cells> jobs;
  series_table<queue_cells> queues;
  std::atomic<bool> taken{true};  ///< by a thread that lives
};

}  // namespace weir::detail

#endif
