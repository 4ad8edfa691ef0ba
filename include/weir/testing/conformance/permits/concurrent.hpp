// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_PERMITS_CONCURRENT_HPP
#define WEIR_TESTING_CONFORMANCE_PERMITS_CONCURRENT_HPP

#include "weir/command/permits.hpp"
#include "weir/testing/arena.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/dice.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/linearizability.hpp"

#include <boost/container_hash/hash.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing {

/// One command on one key's permits, with its answer. Holders are numbered from 1 to 9.
struct permit_event {
  enum class kind : std::uint8_t { acquire, renew, release, inspect };

  kind what = kind::inspect;
  std::uint32_t holder = 0;
  std::uint32_t limit = 0;
  bool patient = false;      ///< asked to keep a place
  std::uint64_t fence = 0;   ///< that was asked with
  bool yes = false;          ///< granted, renewed or freed
  bool left = false;         ///< a place in line was given up
  std::uint32_t in_use = 0;  ///< in the answer
  std::uint32_t place = 0;   ///< in the answer; inspect: how many wait
  std::uint64_t number = 0;  ///< fence in the answer
  /// Inspect: fences by holder.
  std::array<std::uint64_t, 10> listed{};
};

[[nodiscard]] inline std::string to_text(permit_event const& e) {
  constexpr std::string_view words[] = {"acquire", "renew", "release", "inspect"};
  field_list out;
  out.name = words[static_cast<std::size_t>(e.what)];
  out.add("holder", e.holder)
      .add("limit", e.limit)
      .add("patient", e.patient)
      .add_fence("fence", e.fence);
  field_list answer;
  answer.add("yes", e.yes).add("left_line", e.left).add("in_use", e.in_use).add("place", e.place);
  answer.add_fence("fence", e.number);
  for (std::size_t i = 0; i < e.listed.size(); ++i) {
    answer.add_fence("holder " + std::to_string(i) + " fence", e.listed[i]);
  }
  return to_text(out) + " -> " + to_text(answer);
}

/// One key's permits, as long as nothing ends by time.
struct permit_object {
  using event = permit_event;
  /// The fence of a grant whose answer never came.
  static constexpr auto untold = std::numeric_limits<std::uint64_t>::max();

  struct state {
    std::array<std::uint64_t, 10> fence{};  // by holder; 0: has none
    std::vector<std::uint8_t> line;
    std::uint64_t last = 0;

    [[nodiscard]] std::uint32_t live() const noexcept {
      return static_cast<std::uint32_t>(
          std::count_if(fence.begin(), fence.end(), [](auto f) { return f != 0; }));
    }
    friend bool operator==(state const&, state const&) = default;
    friend std::size_t hash_value(state const& s) noexcept {
      auto seed = boost::hash_range(s.fence.begin(), s.fence.end());
      boost::hash_range(seed, s.line.begin(), s.line.end());
      boost::hash_combine(seed, s.last);
      return seed;
    }
  };

  static bool apply(state& s, event const& e, bool answered) {
    auto& mine = s.fence[e.holder];
    auto const ticket =
        std::find(s.line.begin(), s.line.end(), static_cast<std::uint8_t>(e.holder));
    switch (e.what) {
      case event::kind::acquire: {
        auto const ahead = static_cast<std::uint32_t>(ticket - s.line.begin());
        if (mine == 0 && s.live() + ahead < e.limit) {
          mine = untold;
          if (ticket != s.line.end()) s.line.erase(ticket);
        }
        if (mine != 0)
          return !answered || (e.yes && e.in_use == s.live() && learn(s, mine, e.number));
        if (e.patient && ticket == s.line.end())
          s.line.push_back(static_cast<std::uint8_t>(e.holder));
        if (!e.patient && ticket != s.line.end()) s.line.erase(ticket);
        return !answered ||
               (!e.yes && e.in_use == s.live() && e.place == (e.patient ? ahead + 1 : 0));
      }
      case event::kind::renew: return !answered || e.yes == (mine != 0 && mine == e.fence);
      case event::kind::release: {
        bool const frees = mine != 0 && (e.fence == 0 || mine == e.fence);
        bool const leaves = e.fence == 0 && ticket != s.line.end();
        if (frees) mine = 0;
        if (leaves) s.line.erase(ticket);
        return !answered || (e.yes == frees && e.left == leaves);
      }
      case event::kind::inspect:
        return !answered ||
               (e.in_use == s.live() && e.place == s.line.size() &&
                std::equal(s.fence.begin(), s.fence.end(), e.listed.begin(), is_listed));
    }
    return false;
  }

 private:
  static bool is_listed(std::uint64_t held, std::uint64_t as) noexcept {
    return held == untold ? as != 0 : as == held;
  }
  // The fence of a permit that is held: what was said before, or a new one above all before.
  static bool learn(state& s, std::uint64_t& mine, std::uint64_t fence) noexcept {
    if (mine != untold) return mine == fence;
    if (fence <= s.last) return false;
    mine = s.last = fence;
    return true;
  }
};

namespace conformance {

/// Takes and gives back permits of two keys, in line and out of it.
class permit_client final : public recording_client<permit_commands, permit_event, 2> {
 public:
  static constexpr std::string_view keys[] = {"one", "two"};
  static constexpr std::uint32_t limits[] = {1, 3};

  permit_client(arena<permit_commands>& in, std::uint32_t number, std::size_t operations, dice d,
                bool lines)
      : recording_client{in, number, operations, d},
        lines_{lines} {}

  void ask_next() override {
    constexpr auto lasting = bench<permit_commands>::lasting;
    auto const key = dice_.below(std::size(keys));
    auto& fence = fence_[key];
    auto const choice = dice_.below(10);
    permit_event e{.what = permit_event::kind::acquire, .holder = number_};
    if (choice == 0) {
      e.what = permit_event::kind::inspect;
      e.holder = 0;
      run(key, e, command::inspect_permits{keys[key], 9},
          [](permit_event& seen, permit_census const& a) {
            seen.in_use = a.in_use;
            seen.place = a.waiting;
            for (auto const& h : a.holders) seen.listed[numbered(h.holder)] = h.fence;
            if (a.holders.size() != a.in_use) seen.listed[0] = 1;  // which nobody has
          });
    } else if (choice < 3 && fence != 0) {
      e.what = permit_event::kind::renew;
      e.fence = fence;
      run(key, e, command::renew_permit{keys[key], name_, fence, lasting},
          [](permit_event& seen, lease_renewal const&) { seen.yes = true; });
    } else if ((choice < 8 && fence != 0) || choice == 1) {
      e.what = permit_event::kind::release;
      e.fence = dice_.chance(60) ? fence : 0;
      fence = 0;
      run(key, e, command::release_permit{keys[key], name_, e.fence},
          [](permit_event& seen, lease_release const& a) {
            seen.yes = a.freed;
            seen.left = a.left_line;
          });
    } else {
      e.limit = limits[key];
      e.patient = lines_ && dice_.chance(70);
      run(key, e,
          command::acquire_permit{keys[key], name_, e.limit, lasting,
                                  e.patient ? lasting : duration::zero()},
          [&fence](permit_event& seen, permit_grant const& a) {
            seen.yes = a.granted;
            seen.in_use = a.in_use;
            seen.place = a.place;
            seen.number = a.fence;
            if (a.granted) fence = a.fence;
          });
    }
  }

 private:
  /// 0: no client's.
  static std::size_t numbered(std::string const& holder) noexcept {
    auto const n = holder.size() == 1 ? static_cast<std::size_t>(holder.front() - '0') : 0;
    return n < 10 ? n : 0;
  }

  bool lines_;
  std::string name_{std::to_string(number_)};
  std::uint64_t fence_[std::size(keys)]{};
};

inline void permits_are_linearizable(bench<permit_commands>& b, std::uint64_t seed) {
  expect_orders<permit_object, permit_client>(
      b, seed, std::min<std::size_t>(b.settings().clients, 9),
      {"permits of \"one\"", "permits of \"two\""}, b.can().line);
}

inline void permit_concurrency(factory<permit_commands> const& f, report& out, settings const& s) {
  check_concurrency(f, {"permits", "R1", "concurrent commands on a key happen one after the other"},
                    &permits_are_linearizable, out, s);
}

}  // namespace conformance
}  // namespace weir::testing

#endif
