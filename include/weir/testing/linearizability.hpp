// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_LINEARIZABILITY_HPP
#define WEIR_TESTING_LINEARIZABILITY_HPP

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace weir::testing {

/// One operation of a concurrent history: what was asked and answered, and when by a counter that
/// all clients share.
template <class Event>
struct recorded {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  Event event{};
  std::uint64_t invoked = 0;       ///< before it was asked; less than `returned`
  std::uint64_t returned = never;  ///< after it was answered; never: whether it was done is unknown
};

/// What one thing does, step by step: `apply` changes the state as the event does and says whether
/// an event with this answer can happen in this state. An event that was never answered happens
/// however the model would answer it.
template <class M>
concept sequential_model =
    std::equality_comparable<typename M::state> && std::copyable<typename M::state> &&
    requires(typename M::state& s, typename M::state const& c, typename M::event const& e,
             bool answered) {
      { M::apply(s, e, answered) } -> std::convertible_to<bool>;
      { hash_value(c) } -> std::convertible_to<std::size_t>;
    };

/// What the checker found.
struct order {
  bool exists = false;               ///< there is a legal order
  bool decided = true;               ///< false: the search was given up
  std::vector<std::size_t> longest;  ///< the longest legal order that was found, by index into the
                                     ///< history
};

/// Is there an order of these operations in which each happens between its invocation and its
/// return, and every answer is what the model would have answered?
///
/// Source: the algorithm of Wing and Gong (Testing and Verifying Concurrent Objects, 1993) with
/// Lowe's memory of configurations that were seen (Testing for Linearizability, 2017).
///
/// @param most how many configurations are looked at before the search is given up
/// @throws std::invalid_argument if an operation returned before it was asked, or at that instant
template <sequential_model Model>
[[nodiscard]] order find_order(std::vector<recorded<typename Model::event>> const& history,
                               typename Model::state state = {}, std::size_t most = 2'000'000) {
  auto const n = history.size();

  // Invocations and returns in one doubly linked list, in the order of time. Entry 0 is its head.
  struct entry {
    std::size_t op = 0;
    bool returns = false;
    std::uint64_t when = 0;
    std::size_t match = 0;  // the entry of the return; 0: none
    std::size_t before = 0;
    std::size_t after = 0;
  };
  std::vector<entry> entries(1);
  std::size_t unanswered = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (history[i].returned <= history[i].invoked) {
      throw std::invalid_argument{"operation " + std::to_string(i) +
                                  " of a history returned before it was asked"};
    }
    entries.push_back({i, false, history[i].invoked});
    if (history[i].returned == recorded<typename Model::event>::never) {
      ++unanswered;
    } else {
      entries.push_back({i, true, history[i].returned});
    }
  }
  // What returned at the very instant at which another was asked came before it.
  std::sort(entries.begin() + 1, entries.end(), [](entry const& a, entry const& b) {
    return std::tuple{a.when, !a.returns, a.op} < std::tuple{b.when, !b.returns, b.op};
  });
  std::vector<std::size_t> call_of(n, 0);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].before = i == 0 ? 0 : i - 1;
    entries[i].after = i + 1 == entries.size() ? 0 : i + 1;
    if (i == 0) continue;
    if (entries[i].returns) {
      entries[call_of[entries[i].op]].match = i;
    } else {
      call_of[entries[i].op] = i;
    }
  }
  auto const unlink = [&](std::size_t i) {
    entries[entries[i].before].after = entries[i].after;
    entries[entries[i].after].before = entries[i].before;
  };
  auto const relink = [&](std::size_t i) {
    entries[entries[i].before].after = i;
    entries[entries[i].after].before = i;
  };

  using bits = std::vector<std::uint64_t>;
  struct configuration {
    bits done;
    typename Model::state state;
    bool operator==(configuration const&) const = default;
  };
  struct configuration_hash {
    std::size_t operator()(configuration const& c) const noexcept {
      auto seed = boost::hash_range(c.done.begin(), c.done.end());
      boost::hash_combine(seed, hash_value(c.state));
      return seed;
    }
  };
  struct step {
    std::size_t call;
    typename Model::state state;  // before it
  };
  constexpr std::size_t width = 64;
  bits done((n + width - 1) / width, 0);
  boost::unordered_flat_set<configuration, configuration_hash> seen;
  std::vector<step> steps;
  order found;
  auto to_answer = n - unanswered;

  auto const flip = [&](std::size_t op) { done[op / width] ^= std::uint64_t{1} << op % width; };
  auto const take_back = [&] {
    auto const last = steps.back();
    steps.pop_back();
    auto const& call = entries[last.call];
    state = last.state;
    flip(call.op);
    if (call.match != 0) {
      ++to_answer;
      relink(call.match);
    }
    relink(last.call);
    return call.after;
  };

  auto at = entries[0].after;
  while (to_answer > 0) {
    if (seen.size() >= most) {
      found.decided = false;
      return found;
    }
    if (at != 0 && !entries[at].returns) {
      auto const& call = entries[at];
      auto next = state;
      bool const possible = Model::apply(next, history[call.op].event, call.match != 0);
      if (possible) {
        flip(call.op);
        if (seen.insert(configuration{done, next}).second) {
          steps.push_back({at, std::move(state)});
          state = std::move(next);
          unlink(at);
          if (call.match != 0) {
            unlink(call.match);
            --to_answer;
          }
          if (steps.size() > found.longest.size()) {
            found.longest.clear();
            for (auto const& s : steps) found.longest.push_back(entries[s.call].op);
          }
          at = entries[0].after;
          continue;
        }
        flip(call.op);
      }
      at = call.after;
    } else {
      // An operation returns here that could not be fitted in: what was put before it is wrong.
      if (steps.empty()) return found;
      at = take_back();
    }
  }
  found.exists = true;
  return found;
}

}  // namespace weir::testing

#endif
