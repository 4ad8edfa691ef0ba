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

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace manifest {

/// Which job belongs to which file. What became of the files, the store knows.
class ledger {
 public:
  void add(found_file&& file, weir::job_id id) {
    auto const queue = index_of(file.top);
    ++queues_[queue].found;
    entries_.push_back({std::move(file.path), id, file.size, queue});
  }

  void add_retry(std::string_view queue) { ++queues_[index_of(queue)].retries; }

  /// Looks every job up: checksums of those that are completed, sorted by path, and the report of
  /// all of them.
  template <class Store>
  boost::asio::awaitable<std::vector<checksum>> settle(weir::job_queue<Store> const& jobs,
                                                       report& told) {
    std::vector<checksum> sums;
    for (auto& file : entries_) {
      auto& tally = queues_[file.queue];
      std::optional<weir::job> job =
          co_await jobs.async_find(tally.queue, file.id, boost::asio::use_awaitable);
      if (!job) continue;
      if (job->state == weir::job_state::completed) {
        ++tally.done;
        tally.bytes += file.size;
        sums.push_back({std::move(file.path), std::move(job->result)});
      } else if (job->state == weir::job_state::dead) {
        ++tally.dead;
        told.dead_letters.push_back({std::move(file.path), std::move(job->reason)});
      }
    }
    sort_by_path(sums);
    told.queues = std::move(queues_);
    co_return sums;
  }

 private:
  struct entry {
    std::string path;
    weir::job_id id;
    std::uint64_t size;
    std::size_t queue;
  };

  std::size_t index_of(std::string_view queue) {
    auto const [place, fresh] = index_.try_emplace(std::string{queue}, queues_.size());
    if (fresh) queues_.emplace_back().queue = queue;
    return place->second;
  }

  std::vector<entry> entries_;
  std::vector<queue_tally> queues_;
  std::map<std::string, std::size_t> index_;
};

}  // namespace manifest

#endif
