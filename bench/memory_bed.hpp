// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_MEMORY_BED_HPP
#define WEIR_BENCH_MEMORY_BED_HPP

#include "bed.hpp"
#include "weir/store/memory.hpp"

namespace weir_bench {

class memory_bed : public bed<weir::memory_store> {
 public:
  static constexpr char const* name = "memory";

  explicit memory_bed(weir::memory_options options = large())
      : store_{io().get_executor(), options} {}
  [[nodiscard]] weir::memory_store const& store() const noexcept override { return store_; }

  /// At once: nothing is posted.
  template <class C>
  typename C::result ask(C const& c) {
    return store_.execute(c).value();
  }

 private:
  static weir::memory_options large() {
    weir::memory_options o;
    o.max_buckets = o.max_permits = o.max_locks = o.max_jobs = 20'000'000;
    return o;
  }
  weir::memory_store store_;
};

}  // namespace weir_bench

#endif
