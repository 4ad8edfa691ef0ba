// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_QUEUE_REGISTRY_HPP
#define WEIR_TABLE_QUEUE_REGISTRY_HPP

#include "weir/detail/string_hash.hpp"
#include "weir/table/job_pointers.hpp"
#include "weir/table/job_queue.hpp"
#include "weir/time.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace weir::detail {

/// How many queues without jobs a shard remembers.
inline constexpr std::size_t remembered_queues = 100'000;

/// The queues of a shard by name, and which of them are remembered though they have no jobs.
///
/// Such a queue keeps its counters, its pause or snooze, and its lease: under a kilobyte. They are
/// remembered up to a bound; beyond it the one that has been jobless for the longest is forgotten
/// with its counters, unless it is held or leased. Where only those are left, holding another one
/// is refused.
template <class>
class basic_queue_registry {
 public:
  explicit basic_queue_registry(std::size_t remembered) noexcept : remembered_{remembered} {}
  basic_queue_registry(basic_queue_registry const&) = delete;
  basic_queue_registry& operator=(basic_queue_registry const&) = delete;
  ~basic_queue_registry() {  // none may be in an order when it is destroyed
    names_.clear();
    jobless_.clear();
  }

  [[nodiscard]] memory_queue* find(std::string_view name) noexcept {
    auto const it = queues_.find(name);
    return it == queues_.end() ? nullptr : it->second.get();
  }

  memory_queue& make(std::string_view name) {
    auto made = std::make_unique<memory_queue>(name);
    auto& q = *made;
    queues_.emplace(std::string_view{q.name}, std::move(made));
    names_.insert(q);
    settle(q);
    return q;
  }

  /// The queue, made if need be, to be held or leased, which outlasts its jobs. Null: too many such
  /// are remembered.
  [[nodiscard]] memory_queue* hold(std::string_view name, time_point now, job_scans& scans) {
    auto* q = find(name);
    if (q != nullptr && q->outlasts_jobs(now)) return q;
    while (jobless_.size() >= remembered_) {
      if (!forget_one(now, scans)) return nullptr;
    }
    q = find(name);  // it may have been forgotten
    return q != nullptr ? q : &make(name);
  }

  /// To be called after each step that may have made the queue jobless, or given it a job.
  void settle(memory_queue& q) noexcept {
    bool const listed = q.memory_queue::jobless_hook::is_linked();
    if (q.jobless() == listed) return;
    if (listed) {
      jobless_.erase(jobless_.iterator_to(q));
    } else {
      jobless_.push_back(q);
    }
  }

  /// Forgets up to `most` queues that are too many. No reference to a queue may be in use.
  void trim(std::size_t most, time_point now, job_scans& scans) noexcept {
    while (most-- > 0 && jobless_.size() > remembered_ && forget_one(now, scans)) {
    }
  }

  /// Calls `f(name)` for the queues by name, those after `name`, until it returns false.
  template <class F>
  void each_after(std::string_view name, F&& f) const {
    for (auto it = names_.upper_bound(name); it != names_.end() && f(it->name); ++it) {
    }
  }

 private:
  friend class job_image;

  struct by_name {
    using type = std::string_view;
    type operator()(memory_queue const& q) const noexcept { return q.name; }
  };

  /// Forgets one of the queues that have been jobless for the longest, if it may.
  bool forget_one(time_point now, job_scans& scans) noexcept {
    constexpr int tries = 8;
    for (int i = 0; i < tries && !jobless_.empty(); ++i) {
      auto& q = jobless_.front();
      jobless_.pop_front();
      if (q.outlasts_jobs(now)) {
        jobless_.push_back(q);
        continue;
      }
      scans.of(q).set(q, std::nullopt, now);
      names_.erase(names_.iterator_to(q));
      queues_.erase(queues_.find(q.name));
      return true;
    }
    return false;
  }

  boost::unordered_flat_map<std::string_view, std::unique_ptr<memory_queue>, string_hash> queues_;
  boost::intrusive::set<memory_queue, boost::intrusive::base_hook<memory_queue::name_hook>,
                        boost::intrusive::key_of_value<by_name>,
                        boost::intrusive::constant_time_size<false>>
      names_;
  boost::intrusive::list<memory_queue, boost::intrusive::base_hook<memory_queue::jobless_hook>>
      jobless_;  // jobless for the longest first
  std::size_t remembered_;
};

using queue_registry = basic_queue_registry<void>;

}  // namespace weir::detail

#endif
