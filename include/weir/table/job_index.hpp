// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_INDEX_HPP
#define WEIR_TABLE_JOB_INDEX_HPP

#include "weir/rule/jobs.hpp"
#include "weir/table/job_record.hpp"
#include "weir/table/job_records.hpp"
#include "weir/time.hpp"

#include <boost/intrusive/set.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace weir::detail {

/// Priority levels, as bits.
class level_bits {
 public:
  void set(std::uint8_t p) noexcept { words_[p / 64U] |= bit(p); }
  void reset(std::uint8_t p) noexcept { words_[p / 64U] &= ~bit(p); }
  [[nodiscard]] bool test(std::uint8_t p) const noexcept { return (words_[p / 64U] & bit(p)) != 0; }

  /// How many levels below `p` are set.
  [[nodiscard]] std::size_t rank(std::uint8_t p) const noexcept {
    auto n = std::popcount(words_[p / 64U] & (bit(p) - 1));
    for (std::size_t w = 0; w < p / 64U; ++w) n += std::popcount(words_[w]);
    return static_cast<std::size_t>(n);
  }

  /// Calls `f(level)` from level `first` on, the most urgent first, until it returns false.
  template <class F>
  void for_each(std::uint8_t first, F&& f) const {
    auto rest = words_[first / 64U] & ~(bit(first) - 1);
    for (std::size_t w = first / 64U;;) {
      for (; rest != 0; rest &= rest - 1) {
        if (!f(static_cast<std::uint8_t>(w * 64 +
                                         static_cast<std::size_t>(std::countr_zero(rest)))))
          return;
      }
      if (++w == words_.size()) return;
      rest = words_[w];
    }
  }

 private:
  static constexpr std::uint64_t bit(std::uint8_t p) noexcept {
    return std::uint64_t{1} << (p % 64U);
  }

  std::array<std::uint64_t, 4> words_{};
};

/// The jobs of a queue that have not ended, leased ones among them, by {priority, vesting time,
/// id}.
///
/// Each priority level has a tree of its own, so that a step looks at one head per level in use and
/// at no job that is not due (F30). The trees' nodes are the records: nothing is allocated to move
/// a job, and none is searched for to take it out. Jobs mostly vest in the order in which they
/// come, and leases end in the order in which they are given; so an insertion first tries the place
/// behind the last one of its sort, and most cost the same however many jobs wait.
template <class>
class basic_job_index {
 public:
  basic_job_index() = default;
  basic_job_index(basic_job_index const&) = delete;
  basic_job_index& operator=(basic_job_index const&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Makes sure that inserting a job of this priority allocates nothing.
  void prepare(std::uint8_t priority) {
    if (known_.test(priority)) return;
    levels_.insert(levels_.begin() + static_cast<std::ptrdiff_t>(known_.rank(priority)),
                   std::make_unique<level>(priority));
    known_.set(priority);
  }

  /// Requires that its priority was prepared.
  void insert(job_record& r) noexcept {
    auto& l = at(r.priority);
    if (l.jobs.empty()) filled_.set(r.priority);
    bool const claimed = r.holder != nullptr;
    auto& last = l.last[claimed ? 1 : 0];
    auto const likely = last == nullptr             ? (claimed ? l.jobs.end() : l.jobs.begin())
                        : last == &*l.jobs.rbegin() ? l.jobs.end()
                                                    : std::next(l.jobs.iterator_to(*last));
    l.jobs.insert(likely, r);
    last = &r;
    ++size_;
  }

  void erase(job_record& r) noexcept {
    auto& l = at(r.priority);
    auto const here = l.jobs.iterator_to(r);
    for (auto& last : l.last) {
      if (last == &r) last = here == l.jobs.begin() ? nullptr : &*std::prev(here);
    }
    l.jobs.erase(here);
    if (l.jobs.empty()) filled_.reset(r.priority);
    --size_;
  }

  /// The least of the heads.
  [[nodiscard]] std::optional<time_point> min_vesting() const noexcept {
    std::optional<time_point> least;
    filled_.for_each(0, [&](std::uint8_t p) {
      least = rule::pointer_with(least, at(p).jobs.begin()->vesting);
      return true;
    });
    return least;
  }

  /// The best visible job of level `first` and those after it; null: none is.
  [[nodiscard]] job_record* first_visible(time_point now, std::uint8_t first = 0) noexcept {
    job_record* found = nullptr;
    filled_.for_each(first, [&](std::uint8_t p) {
      auto& head = *at(p).jobs.begin();
      if (rule::job_visible(head.vesting, now)) found = &head;
      return found == nullptr;
    });
    return found;
  }

  /// Calls `f(job)` for the visible jobs in order until it returns false.
  template <class F>
  void for_each_visible(time_point now, F&& f) const {
    filled_.for_each(0, [&](std::uint8_t p) {
      for (auto const& r : at(p).jobs) {
        if (!rule::job_visible(r.vesting, now)) return true;
        if (!f(r)) return false;
      }
      return true;
    });
  }

  /// Gives up the memory of levels without jobs. Requires that it is empty.
  void shrink() noexcept {
    levels_ = decltype(levels_)();
    known_ = level_bits{};
    recent_ = nullptr;
  }

 private:
  struct level {
    explicit level(std::uint8_t p) : priority{p} {}

    boost::intrusive::set<job_record, job_order_hook, boost::intrusive::compare<by_vesting>,
                          boost::intrusive::constant_time_size<false>>
        jobs;
    std::array<job_record*, 2> last{};  ///< inserted last: unclaimed, claimed
    std::uint8_t priority;
  };

  [[nodiscard]] level& at(std::uint8_t p) const noexcept {
    if (recent_ == nullptr || recent_->priority != p) recent_ = levels_[known_.rank(p)].get();
    return *recent_;
  }

  level_bits known_;   // levels that have a place in levels_
  level_bits filled_;  // levels that have jobs
  std::vector<std::unique_ptr<level>> levels_;
  mutable level* recent_ = nullptr;  // of levels_: most queues use few
  std::size_t size_ = 0;
};

using job_index = basic_job_index<void>;

}  // namespace weir::detail

#endif
