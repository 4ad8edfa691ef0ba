// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_BUDGET_HPP
#define WEIR_TABLE_JOB_BUDGET_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weir::detail {

/// What is left of the records that all shards together may keep.
class job_budget {
 public:
  explicit job_budget(std::size_t most) noexcept : left_{most} {}

  /// Takes at least `need` and at most `want`, as much as there is; 0 where there is not enough.
  [[nodiscard]] std::size_t take(std::size_t need, std::size_t want) noexcept {
    auto left = left_.load(std::memory_order_relaxed);
    for (;;) {
      if (left < need) return 0;
      auto const taken = std::min(left, want);
      if (left_.compare_exchange_weak(left, left - taken, std::memory_order_relaxed)) return taken;
    }
  }

  void give(std::size_t n) noexcept { left_.fetch_add(n, std::memory_order_relaxed); }

  [[nodiscard]] std::size_t left() const noexcept { return left_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> left_;
};

/// One shard's part of the budget, used under the shard's lock. It takes and gives back in blocks,
/// so that shards rarely meet at the common counter. Blocks lie idle at the bound: with S > 1
/// shards the store may be full up to one part in 64 before `max_jobs`, never after it.
class job_allowance {
 public:
  job_allowance(job_budget& budget, std::size_t most, std::uint32_t shards) noexcept
      : budget_{&budget},
        block_{shards == 1 ? 0 : std::min<std::size_t>(most / (std::size_t{128} * shards), 1024)} {}

  /// False: there is no room for so many, and nothing was taken.
  [[nodiscard]] bool take(std::size_t n) noexcept {
    auto const wanted = static_cast<std::ptrdiff_t>(n);
    if (n != 0 && wanted > left_) {  // what takes nothing may be what ends a job
      auto const need = static_cast<std::size_t>(wanted - left_);
      auto const more = budget_->take(need, need + block_);
      if (more == 0) return false;
      left_ += static_cast<std::ptrdiff_t>(more);
    }
    left_ -= wanted;
    return true;
  }
  /// Notes `n` records beyond those taken: they are made up for before another one is taken.
  void owe(std::size_t n) noexcept { left_ -= static_cast<std::ptrdiff_t>(n); }

  void give(std::size_t n) noexcept {
    left_ += static_cast<std::ptrdiff_t>(n);
    auto const kept = static_cast<std::ptrdiff_t>(block_);
    if (left_ <= 2 * kept) return;
    budget_->give(static_cast<std::size_t>(left_ - kept));
    left_ = kept;
  }

 private:
  job_budget* budget_;
  std::size_t block_;
  std::ptrdiff_t left_ = 0;  ///< negative: owed
};

}  // namespace weir::detail

#endif
