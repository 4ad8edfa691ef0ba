// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_ID_SOURCE_HPP
#define WEIR_ID_SOURCE_HPP

#include "weir/detail/os_entropy.hpp"
#include "weir/job.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace weir {

namespace detail {

/// A date as a version 7 UUID orders it: 48 bits of milliseconds, 16 of their fraction.
[[nodiscard]] constexpr std::uint64_t uuid_order(time_point date) noexcept {
  constexpr std::uint64_t ns_per_ms = 1'000'000;
  auto const ns = static_cast<std::uint64_t>(date.time_since_epoch().count());
  return (ns / ns_per_ms) << 16 | ((ns % ns_per_ms) << 16) / ns_per_ms;
}

/// A number for each call, from any thread: `now` if that is greater than every number before, else
/// the next one.
class growing_number {
 public:
  std::uint64_t next(std::uint64_t now) noexcept {
    std::uint64_t last = last_.load(std::memory_order_relaxed);
    std::uint64_t next = 0;
    do {
      next = std::max(last + 1, now);
    } while (!last_.compare_exchange_weak(last, next, std::memory_order_relaxed));
    return next;
  }

 private:
  std::atomic<std::uint64_t> last_{0};
};

}  // namespace detail

/// Where jitter, holder ids and job ids come from. A handle: copies share the source, and any
/// number of threads may use it at once.
///
/// A default-constructed source is seeded from the operating system, so no two processes, also
/// forked ones, make the same ids. A seeded one gives the same sequences on every run, for
/// simulations and tests.
class id_source {
 public:
  /// A source seeded by the operating system. Where that fails, asking for the first id in a thread
  /// throws what `std::random_device` throws.
  id_source() : state_{std::make_shared<state>()} {}

  /// A source that reads neither clock nor system: equal seeds give equal sequences. The three
  /// sequences (`entropy`, `holder`, `job`) do not depend on each other. Never for production:
  /// another process would make the same ids.
  [[nodiscard]] static id_source seeded(std::uint64_t seed) { return id_source{seed}; }

  /// 64 random bits.
  [[nodiscard]] std::uint64_t entropy() const {
    auto const [a, b] = state_->draw(stream::entropy);
    return a ^ b;
  }

  /// A new holder id: 122 random bits as 26 digits and lower-case letters (base 32, without i, l, o
  /// and u).
  [[nodiscard]] std::string holder() const {
    constexpr std::size_t length = 26;
    auto const [high, low] = state_->draw(stream::holder);
    std::string id(length, '0');
    for (std::size_t i = 0; i < length; ++i) {
      std::size_t const shift = 5 * (length - 1 - i);  // of the digit's lowest bit
      std::uint64_t digit = shift < 64 ? low >> shift : high >> (shift - 64);
      if (shift < 64 && shift > 59) digit |= high << (64 - shift);
      id[i] = "0123456789abcdefghjkmnpqrstvwxyz"[digit & 31];
    }
    return id;
  }

  /// A new job id: a version 7 UUID (RFC 9562), greater than every earlier one of this source.
  ///
  /// Its 64 ordered bits are the date in milliseconds, and the millisecond's fraction in units of
  /// 15 ns; they grow by at least one from id to id, also when the date is set back. The other 58
  /// are random.
  [[nodiscard]] job_id job() const {
    std::uint64_t const order = state_->next_order();
    auto const [a, b] = state_->draw(stream::job);
    std::uint64_t const random = a ^ b;
    std::uint64_t const uuid_version = 0x7;
    std::uint64_t const variant = 0x2;
    std::uint64_t const high =
        (order & ~std::uint64_t{0xffff}) | uuid_version << 12 | (order >> 4 & 0xfff);
    std::uint64_t const low = variant << 62 | (order & 0xf) << 58 | random >> 6;
    job_id id;
    for (std::size_t i = 0; i < 8; ++i) {
      auto const shift = 56 - 8 * i;
      id.data[i] = static_cast<std::uint8_t>(high >> shift);
      id.data[i + 8] = static_cast<std::uint8_t>(low >> shift);
    }
    return id;
  }

 private:
  enum class stream : std::size_t { entropy, holder, job, count };

  class state {
   public:
    state() = default;
    explicit state(std::uint64_t seed) noexcept : seed_{seed} {}

    std::array<std::uint64_t, 2> draw(stream s) {
      if (!seed_) return detail::os_entropy();
      auto const which = static_cast<std::size_t>(s);
      auto const n = drawn_[which].fetch_add(2, std::memory_order_relaxed);
      auto const start = mixed(*seed_ + mixed(which));
      return {mixed(start + golden * n), mixed(start + golden * (n + 1))};
    }

    std::uint64_t next_order() noexcept {
      if (!seed_) {
        auto const date = std::chrono::system_clock::now();
        return order_.next(detail::uuid_order(std::chrono::time_point_cast<duration>(date)));
      }
      constexpr auto start = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};
      constexpr std::uint64_t microsecond = 65;  // from one id to the next
      return detail::uuid_order(start) + microsecond * (order_.next(0) - 1);
    }

   private:
    // SplitMix64: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
    // OOPSLA 2014.
    static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
    static constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
      x += golden;
      x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
      x = (x ^ x >> 27) * 0x94d049bb133111eb;
      return x ^ x >> 31;
    }

    std::optional<std::uint64_t> const seed_;
    detail::growing_number order_;
    std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(stream::count)> drawn_{};
  };

  explicit id_source(std::uint64_t seed) : state_{std::make_shared<state>(seed)} {}

  std::shared_ptr<state> state_;
};

}  // namespace weir

#endif
