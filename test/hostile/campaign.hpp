// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_HOSTILE_CAMPAIGN_HPP
#define WEIR_TEST_HOSTILE_CAMPAIGN_HPP

#include "weir/testing/dice.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

// g++'s sanitizer has these, too, and no header that declares them.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(void const volatile*, std::size_t),
                                              void (*freed)(void const volatile*));
std::size_t __sanitizer_get_allocated_size(void const volatile*);
}

/// Attacks that are drawn from a seed, round after round.
namespace hostile {

using dice = weir::testing::dice;

/// The heap of this process, counted by the sanitizer's allocator: what was freed does not count,
/// nor does the sanitizer's own.
class heap {
 public:
  static constexpr std::int64_t most = std::int64_t{64} << 20;  ///< that a round may add

  /// Blocks of `most` and more are not counted, for a library that reserves what it never writes.
  static inline bool reserving_is_free = false;

  static void count() { __sanitizer_install_malloc_and_free_hooks(&allocated, &freed); }
  /// Forgets the peak. Gives what is in use.
  static std::int64_t begin() { return peak_ = used_.load(); }
  [[nodiscard]] static std::int64_t peak() { return peak_; }

 private:
  static bool counts(std::size_t n) {
    return !reserving_is_free || n < static_cast<std::size_t>(most);
  }
  static void allocated(void const volatile*, std::size_t n) {
    if (!counts(n)) return;
    auto const now = used_ += static_cast<std::int64_t>(n);
    for (auto seen = peak_.load(); seen < now && !peak_.compare_exchange_weak(seen, now);) {
    }
  }
  static void freed(void const volatile* block) {
    auto const n = block == nullptr ? 0 : __sanitizer_get_allocated_size(block);
    if (counts(n)) used_ -= static_cast<std::int64_t>(n);
  }

  static inline std::atomic<std::int64_t> used_{0};
  static inline std::atomic<std::int64_t> peak_{0};
};

/// A failed expectation of a round: what happened, in words.
struct failed {
  std::string what;
};

/// Fails the round unless `holds`.
inline void expect(bool holds, std::string what) {
  if (!holds) throw failed{std::move(what)};
}

/// Rounds of several attacks, each under a name. A round gets its own random numbers, so that it
/// can be run again alone. A crash and a sanitizer's report end the process; a round that lasts
/// longer than `hang` does so, too, with its number. A round whose heap grows by more than
/// `heap::most` fails, what the attacker has included.
class campaign {
 public:
  using attack = std::function<void(dice&)>;

  /// Options: `--rounds N` of each attack (default: `rounds` of `add`), `--seconds T` instead,
  /// `--seed S`, `--from N` (the first round), `--only NAME`.
  campaign(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      std::string_view const name = argv[i];
      if (i + 1 == argc) usage(name);
      std::string_view const value = argv[++i];
      if (name == "--only") {
        only_ = value;
        continue;
      }
      char* end = nullptr;
      auto const number = std::strtoull(value.data(), &end, 10);
      if (value.empty() || *end != '\0') usage(name);
      if (name == "--rounds") {
        rounds_ = number;
      } else if (name == "--seconds") {
        seconds_ = std::chrono::seconds{number};
      } else if (name == "--seed") {
        seed_ = number;
      } else if (name == "--from") {
        from_ = number;
      } else {
        usage(name);
      }
    }
  }

  /// Adds an attack, of which a test runs `rounds`.
  void add(std::string name, std::uint64_t rounds, attack run) {
    attacks_.push_back({std::move(name), rounds, std::move(run)});
  }

  /// Counts something that is worth a line at the end, such as how many replies were refused.
  void count(std::string const& what, std::uint64_t n = 1) { counts_[what] += n; }

  /// Runs all attacks, in turn as long as there is time. The result is the process's exit code.
  [[nodiscard]] int run() {
    heap::count();
    std::jthread const watch{[this](std::stop_token stop) { watch_rounds(stop); }};
    auto const until = std::chrono::steady_clock::now() + seconds_;
    std::uint64_t passed = 0;
    std::uint64_t failures = 0;
    std::map<std::string, std::uint64_t> last;
    for (auto round = from_;; ++round) {
      bool any = false;
      for (auto const& one : attacks_) {
        if (!only_.empty() && one.name != only_) continue;
        auto const most = rounds_ != 0 ? rounds_ : one.rounds;
        if (seconds_.count() != 0 ? std::chrono::steady_clock::now() >= until
                                  : round - from_ >= most) {
          continue;
        }
        any = true;
        if (play(one, round)) {
          ++passed;
        } else {
          ++failures;
        }
        ++last[one.name];
      }
      if (!any || failures >= 20) break;
    }
    for (auto const& [name, n] : last) {
      std::printf("%s: %llu rounds from %llu, seed %llu\n", name.c_str(),
                  static_cast<unsigned long long>(n), static_cast<unsigned long long>(from_),
                  static_cast<unsigned long long>(seed_));
    }
    for (auto const& [what, n] : counts_) {
      std::printf("  %s: %llu\n", what.c_str(), static_cast<unsigned long long>(n));
    }
    std::printf("  most memory of a round: %lld KiB\n", static_cast<long long>(memory_ >> 10));
    std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed),
                static_cast<unsigned long long>(failures));
    return failures == 0 && passed != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  static constexpr std::chrono::seconds hang{120};  // a slow machine included; rounds have bounds
                                                    // of their own

  struct named_attack {
    std::string name;
    std::uint64_t rounds;
    attack run;
  };

  [[noreturn]] static void usage(std::string_view option) {
    std::fprintf(stderr, "unknown option or no number: %.*s\n", static_cast<int>(option.size()),
                 option.data());
    std::exit(2);
  }

  [[nodiscard]] bool play(named_attack const& one, std::uint64_t round) {
    dice drawn{seed_ * 1'000'003 + round};
    {
      std::lock_guard const lock{mutex_};
      name_ = one.name + " --seed " + std::to_string(seed_) + " --from " + std::to_string(round);
      ++step_;
    }
    std::string what;
    auto const before = heap::begin();
    try {
      one.run(drawn);
      auto const grown = heap::peak() - before;
      memory_ = std::max(memory_, grown);
      expect(grown <= heap::most, "memory grew by " + std::to_string(grown) + " bytes");
      return true;
    } catch (failed const& f) {
      what = f.what;
    } catch (std::exception const& e) {
      what = e.what();
    }
    std::printf("failed: %s\n  again: --only %s --seed %llu --from %llu --rounds 1\n", what.c_str(),
                one.name.c_str(), static_cast<unsigned long long>(seed_),
                static_cast<unsigned long long>(round));
    std::fflush(stdout);
    return false;
  }

  void watch_rounds(std::stop_token const& stop) {
    std::unique_lock lock{mutex_};
    while (!stop.stop_requested()) {
      auto const step = step_;
      if (changed_.wait_for(lock, stop, hang, [&] { return step_ != step; })) continue;
      if (stop.stop_requested()) return;
      std::fprintf(stderr, "hangs: --only %s --rounds 1\n", name_.c_str());
      std::abort();
    }
  }

  std::vector<named_attack> attacks_;
  std::map<std::string, std::uint64_t> counts_;
  std::int64_t memory_ = 0;  // the most that a round has added
  std::uint64_t rounds_ = 0;
  std::uint64_t seed_ = 1;
  std::uint64_t from_ = 0;
  std::chrono::seconds seconds_{};
  std::string only_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string name_;
  std::uint64_t step_ = 0;
};

}  // namespace hostile

#endif
