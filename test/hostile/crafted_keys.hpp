// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_HOSTILE_CRAFTED_KEYS_HPP
#define WEIR_TEST_HOSTILE_CRAFTED_KEYS_HPP

#include "weir/command/buckets.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/quota.hpp"
#include "weir/store/memory.hpp"
#include "weir/store/memory/bucket_table.hpp"
#include "weir/testing/dice.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

/// Keys that all have one hash, for hashes that tables of weir had, and what they cost a memory
/// store. Included by one source of a program, since it counts the calls of `memcmp`.
namespace hostile {

inline std::uint64_t comparisons = 0;  ///< of texts, in this process so far

using key_list = std::vector<std::string>;

/// The bytes of words.
inline void append(std::string& text, std::uint64_t word) {
  char bytes[sizeof(word)];
  std::memcpy(bytes, &word, sizeof(word));
  text.append(bytes, sizeof(word));
}

/// Keys of 16 bytes for each of `pairs` that have one `boost::hash_range` under every seed: the
/// hash of a block is that of its sum with the seed and the block's place, and those of two
/// blocks cancel out where the first has what the place of the second adds.
[[nodiscard]] inline key_list cancelling_keys(std::size_t n, weir::testing::dice& drawn,
                                              int pairs = 1) {
  constexpr std::uint64_t step = 0x9e3779b97f4a7c15;
  std::set<std::string> keys;
  while (keys.size() != n) {
    std::string key;
    for (int i = 0; i != pairs; ++i) {
      auto const word = drawn.bits();
      append(key, word + step);
      append(key, word);
    }
    keys.insert(key);
  }
  return {keys.begin(), keys.end()};
}

/// Keys of 32 bytes that the public multiplications of the former hash of buckets take to 0.
[[nodiscard]] inline key_list folding_keys(std::size_t n, weir::testing::dice& drawn) {
  std::set<std::string> keys;
  while (keys.size() != n) {
    std::string key;
    append(key, 0xa0761d6478bd642f);
    append(key, drawn.bits());
    append(key, 0x8ebc6af09c88c6e3);
    append(key, drawn.bits());
    keys.insert(key);
  }
  return {keys.begin(), keys.end()};
}

/// Keys of as many bytes, at random.
[[nodiscard]] inline key_list random_keys(std::size_t n, weir::testing::dice& drawn,
                                          std::size_t size) {
  std::set<std::string> keys;
  while (keys.size() != n) {
    std::string key;
    while (key.size() < size) append(key, drawn.bits());
    keys.insert(key.substr(0, size));
  }
  return {keys.begin(), keys.end()};
}

/// A memory store, and how much it compares when each of the keys is used twice.
class attacked_store {
 public:
  /// A lock of each key.
  std::uint64_t locks(key_list const& keys) {
    return compared(keys, [&](std::string const& key, bool) {
      need(ask(weir::command::acquire_lock{key, "holder", hour}).granted);
    });
  }
  /// A permit of each key.
  std::uint64_t permits(key_list const& keys) {
    return compared(keys, [&](std::string const& key, bool) {
      need(ask(weir::command::acquire_permit{key, "holder", 1, hour, {}}).granted);
    });
  }
  /// Permits of one key, whose holders are the keys.
  std::uint64_t holders(key_list const& keys) {
    return compared(keys, [&](std::string const& key, bool) {
      need(ask(weir::command::acquire_permit{"key", key, 100'000, hour, {}}).granted);
    });
  }
  /// Jobs of one queue with the keys as their unique keys.
  std::uint64_t unique_keys(key_list const& keys) {
    return compared(keys, [&](std::string const& key, bool again) {
      auto j = new_job();
      j.strategy = weir::unique_strategy::until_executed;
      j.on_conflict = weir::conflict_policy::discard;
      j.unique_key = key;
      need(ask(weir::command::enqueue_jobs{"queue", {&j, 1}})[0].outcome ==
           (again ? weir::enqueue_outcome::duplicate : weir::enqueue_outcome::enqueued));
    });
  }
  /// Two jobs in each of many queues.
  std::uint64_t queues(key_list const& keys) {
    return compared(keys, [&](std::string const& key, bool) {
      auto const j = new_job();
      need(ask(weir::command::enqueue_jobs{key, {&j, 1}})[0].outcome ==
           weir::enqueue_outcome::enqueued);
    });
  }
  /// A bucket of each key: the slots that are looked at when each is looked for. Nobody is shed.
  std::uint64_t buckets(key_list const& keys) {
    constexpr auto hourly = weir::quota::per_hour(1);
    weir::detail::bucket_table table{weir::memory_options{}.max_buckets};
    auto const quotas = table.book().hold({&hourly, 1}).value();
    for (auto const& key : keys) {
      need(ask(weir::command::take{key, {&hourly, 1}, 1, {}}).allowed);
      weir::detail::bucket_key const k{key};
      auto& shard = table.home(k.hash());
      need(table.enter(shard, {}));
      shard.insert(k, k.hash(), quotas, 1);
    }
    std::uint64_t looks = 0;
    for (auto const& key : keys) {
      need(!ask(weir::command::take{key, {&hourly, 1}, 1, {}}).allowed);
      weir::detail::bucket_key const k{key};
      auto const& shard = table.home(k.hash());
      auto const first = shard.home(k.hash());
      auto const seen = shard.glimpse(k, k.hash());
      need(static_cast<bool>(seen));
      looks += 1 + (seen.index + shard.size() - first) % shard.size();
    }
    return looks;
  }

 private:
  static constexpr std::chrono::hours hour{1};

  static void need(bool holds) {
    if (!holds) throw std::runtime_error{"a step did not do what is to be counted"};
  }

  template <class C>
  typename C::result ask(C const& c) {
    return store_.execute(c).value();
  }

  [[nodiscard]] weir::new_job new_job() {
    weir::new_job j;
    ++id_;
    std::memcpy(j.id.begin(), &id_, sizeof(id_));
    j.kind = "kind";
    return j;
  }

  template <class Step>
  static std::uint64_t compared(key_list const& keys, Step const& step) {
    auto const before = comparisons;
    for (bool const again : {false, true}) {
      for (auto const& key : keys) step(key, again);
    }
    return comparisons - before;
  }

  boost::asio::io_context io_;
  weir::memory_store store_{io_.get_executor()};
  std::uint64_t id_ = 0;
};

/// One use of a store that is attacked.
struct attacked_use {
  char const* name;
  std::uint64_t (attacked_store::*of)(key_list const&);
};

inline constexpr attacked_use attacked_uses[] = {
    {"locks", &attacked_store::locks},     {"permits", &attacked_store::permits},
    {"holders", &attacked_store::holders}, {"unique keys", &attacked_store::unique_keys},
    {"queues", &attacked_store::queues},   {"buckets", &attacked_store::buckets},
};

}  // namespace hostile

/// Counts, and does what the one of the C library does, in its stead.
extern "C" int memcmp(void const* a, void const* b, std::size_t n) noexcept {
  ++hostile::comparisons;
  auto const* const x = static_cast<unsigned char const*>(a);
  auto const* const y = static_cast<unsigned char const*>(b);
  for (std::size_t i = 0; i != n; ++i) {
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}

/// An optimiser puts it in place of a `memcmp` that is compared with 0.
extern "C" int bcmp(void const* a, void const* b, std::size_t n) noexcept {
  return memcmp(a, b, n);
}

#endif
