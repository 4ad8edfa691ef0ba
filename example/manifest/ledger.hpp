// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_LEDGER_HPP
#define WEIR_EXAMPLE_MANIFEST_LEDGER_HPP

#include "checksum_lines.hpp"
#include "report.hpp"
#include "tree_walk.hpp"
#include "weir/job.hpp"
#include "weir/job_queue.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace manifest {

/// Which job belongs to which file, and how it ended, as far as the worker in this process told.
class ledger {
 public:
  void add(found_file&& file, weir::job_id id) {
    auto const queue = queue_index(file.top);
    ++queues_[queue].found;
    by_id_.emplace(id, entries_.size());
    entries_.push_back(
        entry{std::move(file.path), id, file.size, queue, weir::job_state::pending, {}});
  }

  /// @param text the result of a completed job, or why it is dead
  void ended(weir::job_id id, weir::job_state how, std::string_view text) {
    auto const known = by_id_.find(id);
    if (known == by_id_.end()) return;  // told before it was added: the store knows, too
    entries_[known->second].state = how;
    entries_[known->second].text = text;
  }

  void retried(std::string_view queue) { ++queues_[queue_index(queue)].retries; }

  /// Asks the store for the jobs whose end nobody has told of: they may be another process's work.
  template <class Store>
  boost::asio::awaitable<void> look_up_the_rest(weir::job_queue<Store> const& jobs) {
    for (auto& file : entries_) {
      if (file.state != weir::job_state::pending) continue;
      std::optional<weir::job> job =
          co_await jobs.async_find(queues_[file.queue].queue, file.id, boost::asio::use_awaitable);
      if (!job) continue;
      file.state = job->state;
      file.text = std::move(file.state == weir::job_state::completed ? job->result : job->reason);
    }
  }

  /// The checksums of all files that have one, sorted by path, and the report of all files. Nothing
  /// is left here.
  [[nodiscard]] std::vector<checksum> close(report& told) {
    std::vector<checksum> sums;
    for (auto& file : entries_) {
      auto& tally = queues_[file.queue];
      if (file.state == weir::job_state::completed) {
        ++tally.done;
        tally.bytes += file.size;
        sums.push_back({std::move(file.path), std::move(file.text)});
      } else if (file.state == weir::job_state::dead) {
        ++tally.dead;
        told.dead_letters.push_back({std::move(file.path), std::move(file.text)});
      }
    }
    entries_.clear();
    by_id_.clear();
    sort_by_path(sums);
    told.queues = std::move(queues_);
    return sums;
  }

 private:
  struct entry {
    std::string path;
    weir::job_id id;
    std::uint64_t size;
    std::size_t queue;
    weir::job_state state;
    std::string text;
  };

  std::size_t queue_index(std::string_view queue) {
    auto const [place, fresh] = by_name_.try_emplace(std::string{queue}, queues_.size());
    if (fresh) queues_.emplace_back().queue = queue;
    return place->second;
  }

  std::vector<entry> entries_;
  boost::unordered_flat_map<weir::job_id, std::size_t> by_id_;
  std::vector<queue_tally> queues_;
  boost::unordered_flat_map<std::string, std::size_t> by_name_;
};

}  // namespace manifest

#endif
