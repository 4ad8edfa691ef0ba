// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_BUCKET_PIN_HPP
#define WEIR_STORE_MEMORY_BUCKET_PIN_HPP

#include "weir/store/memory/bucket_shard.hpp"

#include <atomic>
#include <cstdint>

namespace weir::detail {

/// Where a key's bucket was seen last, so that the next take need not look for it. Slots stay in
/// memory as long as the store, and what a slot says of itself changes with its tenant: so a place
/// that says the same as then is still the key's, and any other is merely looked for again.
///
/// Any threads may share it. Both words are read and written as one, by a version that is odd
/// meanwhile (a sequence lock); who finds it so does without.
class bucket_pin {
 public:
  bucket_pin() = default;
  // A copy may be of another key by the time that it is used: it looks for itself.
  bucket_pin(bucket_pin const&) noexcept {}
  bucket_pin& operator=(bucket_pin const&) noexcept {
    forget();
    return *this;
  }
  ~bucket_pin() = default;

  [[nodiscard]] bucket_place read() const noexcept {
    auto const version = version_.load(std::memory_order_acquire);
    bucket_place const seen{slot_.load(std::memory_order_acquire),
                            bucket_meta{meta_.load(std::memory_order_acquire)}};
    bool const whole = version % 2 == 0 && version_.load(std::memory_order_relaxed) == version;
    return whole ? seen : bucket_place{};
  }

  void write(bucket_place const& p) noexcept {
    auto version = version_.load(std::memory_order_relaxed);
    if (version % 2 != 0 ||
        !version_.compare_exchange_strong(version, version + 1, std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {
      return;  // somebody else is writing: what he saw is as good
    }
    slot_.store(p.slot, std::memory_order_release);
    meta_.store(p.meta.bits(), std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }

 private:
  /// For who has it to himself, as who assigns has.
  void forget() noexcept { slot_.store(nullptr, std::memory_order_release); }

  std::atomic<std::uint64_t> version_{0};
  std::atomic<bucket_slot*> slot_{nullptr};
  std::atomic<std::uint64_t> meta_{0};
};

}  // namespace weir::detail

#endif
