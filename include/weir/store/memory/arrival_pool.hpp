// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_ARRIVAL_POOL_HPP
#define WEIR_STORE_MEMORY_ARRIVAL_POOL_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace weir::detail {

/// Where the arrivals of buckets are kept that do not fit into their slots, under a number each.
/// The holder of a number has its arrivals to itself.
template <class Arrivals>
class arrival_pool {
 public:
  /// `most`: how many there can be at once; their space is taken as needed, and kept.
  explicit arrival_pool(std::size_t most) : chunks_(most / chunk_size + 1) {}

  [[nodiscard]] std::uint32_t acquire() {
    std::lock_guard const lock{mutex_};
    if (!free_.empty()) {
      auto const n = free_.back();
      free_.pop_back();
      return n;
    }
    if (used_ % chunk_size == 0) {
      // So that giving back cannot fail.
      if (free_.capacity() < used_ + chunk_size) free_.reserve(2 * used_ + chunk_size);
      chunks_[used_ / chunk_size] = std::make_unique<chunk>();
    }
    return used_++;
  }

  void release(std::uint32_t n) noexcept {
    std::lock_guard const lock{mutex_};
    free_.push_back(n);
  }

  [[nodiscard]] Arrivals& operator[](std::uint32_t n) noexcept {
    return (*chunks_[n / chunk_size])[n % chunk_size];
  }

 private:
  static constexpr std::uint32_t chunk_size = 256;
  using chunk = std::array<Arrivals, chunk_size>;

  std::mutex mutex_;
  std::vector<std::uint32_t> free_;
  std::uint32_t used_ = 0;
  std::vector<std::unique_ptr<chunk>> chunks_;
};

}  // namespace weir::detail

#endif
