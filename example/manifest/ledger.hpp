// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_LEDGER_HPP
#define WEIR_EXAMPLE_MANIFEST_LEDGER_HPP

#include "checksum_lines.hpp"
#include "file_stamp.hpp"
#include "report.hpp"
#include "tree_walk.hpp"
#include "weir/job.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace manifest {

/// How it is known how a job ended.
enum class told_by : std::uint8_t {
  worker,  ///< this process ran it
  store,   ///< it had ended before
  others,  ///< another process ran it meanwhile
};

/// Which job belongs to which file of this run, and how it ended.
class ledger {
 public:
  struct entry {
    std::string path;
    weir::job_id id;
    std::uint64_t size;
    std::size_t queue;
    weir::job_state state;
    told_by by;
    std::string text;
    bool placed;  ///< the store has its job
    bool here;    ///< this process runs it
  };

  /// Returns its position. It may have ended before: the worker tells of every job that it ran.
  std::size_t add(found_file&& file, weir::job_id id) {
    auto const queue = queue_index(file.top);
    ++queues_[queue].found;
    auto const at = entries_.size();
    by_id_.emplace(id, at);
    entries_.push_back(entry{std::move(file.path),
                             id,
                             file.size,
                             queue,
                             weir::job_state::pending,
                             told_by::worker,
                             {},
                             false,
                             false});
    catch_up(at);
    return at;
  }

  void placed(std::size_t at) { entries_[at].placed = true; }

  /// Another job reads this file.
  void follow(std::size_t at, weir::job_id id) {
    by_id_.erase(entries_[at].id);
    entries_[at].id = id;
    by_id_.insert_or_assign(id, at);
    catch_up(at);
  }

  /// Whether this process runs the job.
  void runs_here(weir::job_id id, bool here) {
    if (auto const known = by_id_.find(id); known != by_id_.end()) {
      entries_[known->second].here = here;
    }
  }

  /// The worker ended a job: one of this run, or one that was left in the store by another.
  /// @param text the result of a completed job, or why it is dead
  void ended(weir::job_id id, weir::job_state how, std::string_view text) {
    if (auto const known = by_id_.find(id); known != by_id_.end()) {
      close(known->second, how, text, told_by::worker);
    } else {
      early_.insert_or_assign(id, std::pair{how, std::string{text}});
    }
  }

  void close(std::size_t at, weir::job_state how, std::string_view text, told_by by) {
    auto& e = entries_[at];
    if (e.state != weir::job_state::pending) return;
    e.state = how;
    e.by = by;
    e.text = text;
    ++closed_;
    if (how == weir::job_state::dead) ++dead_;
    if (by != told_by::worker) bytes_elsewhere_ += e.size;
  }

  void retried(weir::job_id id) {
    auto const known = by_id_.find(id);
    if (known != by_id_.end()) ++queues_[entries_[known->second].queue].retries;
  }

  [[nodiscard]] std::size_t closed() const noexcept { return closed_; }
  [[nodiscard]] std::size_t dead() const noexcept { return dead_; }
  [[nodiscard]] bool all_closed() const noexcept { return closed_ == entries_.size(); }
  /// Of the files that need not be read here.
  [[nodiscard]] std::uint64_t bytes_elsewhere() const noexcept { return bytes_elsewhere_; }

  [[nodiscard]] entry const& at(std::size_t i) const { return entries_[i]; }
  [[nodiscard]] std::string const& top_of(entry const& e) const { return queues_[e.queue].queue; }

  /// Up to `most` files whose end is not known, each as seldom as the others.
  [[nodiscard]] std::vector<std::size_t> open_ones(std::size_t most) {
    std::vector<std::size_t> out;
    for (std::size_t left = entries_.size(); left != 0 && out.size() != most; --left) {
      if (next_ >= entries_.size()) next_ = 0;
      if (is_open(next_)) out.push_back(next_);
      ++next_;
    }
    return out;
  }

  /// Is its end to be learnt from the store?
  [[nodiscard]] bool is_open(std::size_t at) const {
    auto const& e = entries_[at];
    return e.state == weir::job_state::pending && e.placed && !e.here;
  }

  /// The checksums of all files that have one, sorted by path, and the report of all files. Nothing
  /// is left here.
  [[nodiscard]] std::vector<checksum> close(report& told) {
    std::vector<checksum> sums;
    for (auto& file : entries_) {
      auto& tally = queues_[file.queue];
      if (file.state == weir::job_state::completed) {
        ++tally.done;
        if (file.by == told_by::worker) tally.bytes += file.size;
        if (file.by == told_by::store) ++tally.stored;
        if (file.by == told_by::others) ++tally.others;
        sums.push_back({std::move(file.path), digest_of(file.text)});
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
  // A job may end before anybody here knows its file.
  void catch_up(std::size_t at) {
    auto const early = early_.find(entries_[at].id);
    if (early == early_.end()) return;
    close(at, early->second.first, early->second.second, told_by::worker);
    early_.erase(early);
  }

  std::size_t queue_index(std::string_view queue) {
    auto const [place, fresh] = by_name_.try_emplace(std::string{queue}, queues_.size());
    if (fresh) queues_.emplace_back().queue = queue;
    return place->second;
  }

  std::vector<entry> entries_;
  boost::unordered_flat_map<weir::job_id, std::size_t> by_id_;
  boost::unordered_flat_map<weir::job_id, std::pair<weir::job_state, std::string>> early_;
  std::vector<queue_tally> queues_;
  boost::unordered_flat_map<std::string, std::size_t> by_name_;
  std::size_t closed_ = 0;
  std::size_t dead_ = 0;
  std::uint64_t bytes_elsewhere_ = 0;
  std::size_t next_ = 0;
};

}  // namespace manifest

#endif
