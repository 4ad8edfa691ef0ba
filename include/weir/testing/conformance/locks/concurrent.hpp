// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_LOCKS_CONCURRENT_HPP
#define WEIR_TESTING_CONFORMANCE_LOCKS_CONCURRENT_HPP

#include "weir/command/locks.hpp"
#include "weir/testing/arena.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/dice.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/linearizability.hpp"

#include <boost/container_hash/hash.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::testing {

/// One command on one lock, with its answer. Holders are numbered from 1.
struct lock_event {
  enum class kind : std::uint8_t { acquire, renew, release, inspect };

  kind what = kind::inspect;
  std::uint32_t holder = 0;
  std::uint64_t fence = 0;   ///< that was asked with
  bool yes = false;          ///< granted, renewed, freed or held
  std::uint32_t who = 0;     ///< holder in the answer
  std::uint64_t number = 0;  ///< fence in the answer
};

[[nodiscard]] inline std::string to_text(lock_event const& e) {
  constexpr std::string_view words[] = {"acquire", "renew", "release", "inspect"};
  std::string out{words[static_cast<std::size_t>(e.what)]};
  if (e.holder != 0) out += " holder " + std::to_string(e.holder);
  if (e.fence != 0) out += " fence " + std::to_string(e.fence);
  out += e.yes ? " -> yes" : " -> no";
  if (e.who != 0) out += ", holder " + std::to_string(e.who);
  if (e.number != 0) out += ", fence " + std::to_string(e.number);
  return out;
}

/// One lock, as long as no lease ends by time.
struct lock_object {
  using event = lock_event;

  struct state {
    std::uint32_t holder = 0;  // 0: nobody
    std::uint64_t fence = 0;   // 0: of a grant whose answer never came
    std::uint64_t last = 0;
    friend bool operator==(state const&, state const&) = default;
    friend std::size_t hash_value(state const& s) noexcept {
      std::size_t seed = s.holder;
      boost::hash_combine(seed, s.fence);
      boost::hash_combine(seed, s.last);
      return seed;
    }
  };

  static bool apply(state& s, event const& e, bool answered) noexcept {
    switch (e.what) {
      case event::kind::acquire:
        if (s.holder != 0 && s.holder != e.holder)
          return !answered || (!e.yes && e.who == s.holder);
        if (s.holder == 0) {
          s.holder = e.holder;
          s.fence = 0;
        }
        return !answered || (e.yes && learn(s, e.number));
      case event::kind::renew: return !answered || e.yes == names(s, e.holder, e.fence);
      case event::kind::release: {
        bool const frees = s.holder == e.holder && (e.fence == 0 || names(s, e.holder, e.fence));
        if (frees) s.holder = 0;
        return !answered || e.yes == frees;
      }
      case event::kind::inspect:
        if (!answered || s.holder == 0) return !answered || !e.yes;
        return e.yes && e.who == s.holder && learn(s, e.number);
    }
    return false;
  }

 private:
  // The fence of the lease that is held now: what was said before, or a new one above all before.
  static bool learn(state& s, std::uint64_t fence) noexcept {
    if (s.fence != 0) return s.fence == fence;
    if (fence <= s.last) return false;
    s.fence = s.last = fence;
    return true;
  }
  static bool names(state const& s, std::uint32_t holder, std::uint64_t fence) noexcept {
    return s.holder == holder && s.fence != 0 && s.fence == fence;
  }
};

namespace conformance {

/// Takes and gives back two locks, and looks.
class lock_client final : public recording_client<lock_commands, lock_event, 2> {
 public:
  static constexpr std::string_view keys[] = {"one", "two"};

  using recording_client::recording_client;

  void ask_next() override {
    auto const key = dice_.below(std::size(keys));
    lock_event e{.what = lock_event::kind::acquire, .holder = number_};
    auto& fence = fence_[key];
    auto const choice = dice_.below(10);
    if (choice == 0) {
      e.what = lock_event::kind::inspect;
      e.holder = 0;
      run(key, e, command::inspect_lock{keys[key]}, [](lock_event& seen, lock_info const& a) {
        seen.yes = a.held;
        seen.who = a.held ? numbered(a.holder) : 0;
        seen.number = a.held ? a.fence : 0;
      });
    } else if (fence == 0 || choice < 3) {
      run(key, e, command::acquire_lock{keys[key], name_, bench<lock_commands>::lasting},
          [&fence](lock_event& seen, lock_grant const& a) {
            seen.yes = a.granted;
            seen.who = a.granted ? 0 : numbered(a.holder);
            seen.number = fence = a.granted ? a.fence : 0;
          });
    } else if (choice < 5) {
      e.what = lock_event::kind::renew;
      e.fence = fence;
      run(key, e, command::renew_lock{keys[key], name_, fence, bench<lock_commands>::lasting},
          [](lock_event& seen, lease_renewal const&) { seen.yes = true; });
    } else {
      e.what = lock_event::kind::release;
      e.fence = dice_.chance(50) ? fence : 0;
      fence = 0;
      run(key, e, command::release_lock{keys[key], name_, e.fence},
          [](lock_event& seen, lease_release const& a) { seen.yes = a.freed; });
    }
  }

 private:
  static std::uint32_t numbered(std::string const& holder) noexcept {
    return holder.empty() ? 0 : static_cast<std::uint32_t>(holder.front() - '0');
  }

  std::string name_{std::to_string(number_)};
  std::uint64_t fence_[std::size(keys)]{};
};

inline void locks_are_linearizable(bench<lock_commands>& b, std::uint64_t seed) {
  expect_orders<lock_object, lock_client>(b, seed, std::min<std::size_t>(b.settings().clients, 9),
                                          {"lock \"one\"", "lock \"two\""});
}

inline void lock_concurrency(factory<lock_commands> const& f, report& out, settings const& s) {
  check_concurrency(f, {"locks", "F17", "concurrent commands on a lock happen one after the other"},
                    &locks_are_linearizable, out, s);
}

}  // namespace conformance
}  // namespace weir::testing

#endif
