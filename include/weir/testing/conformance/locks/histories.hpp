// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_LOCKS_HISTORIES_HPP
#define WEIR_TESTING_CONFORMANCE_LOCKS_HISTORIES_HPP

#include "weir/command/locks.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/histories.hpp"
#include "weir/testing/leases.hpp"
#include "weir/testing/model/locks.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing::conformance {

/// Locks in generated histories: see `check_histories`.
class lock_game {
 public:
  enum class kind : std::uint8_t { acquire, renew, release, inspect };

  struct op {
    kind what = kind::inspect;
    std::uint8_t key = 0;
    std::uint8_t holder = 0;
    which_lease lease = which_lease::latest;
    duration ttl{};
    duration after{};  ///< time that passes before it
  };

  static std::vector<op> generate(time_choices const& times, capabilities const&, std::size_t steps,
                                  dice d) {
    // Time that runs backwards concerns one key at a time: what another key's step found over is
    // not said.
    bool const backwards = times.reversible() && d.chance(25);
    auto const keys = backwards ? 1 : 1 + d.below(3);
    auto const holders = 2 + d.below(3);
    constexpr kind kinds[] = {kind::acquire, kind::acquire, kind::acquire, kind::renew,
                              kind::release, kind::release, kind::inspect};
    std::vector<op> ops(steps);
    for (auto& o : ops) {
      o.what = d.pick(kinds);
      o.key = static_cast<std::uint8_t>(d.below(keys));
      o.holder = static_cast<std::uint8_t>(d.below(holders));
      o.lease = any_lease(d);
      o.ttl = times.ttl(d);
      o.after = backwards ? times.step_either_way(d) : times.step(d);
    }
    return ops;
  }

  static std::vector<op> simpler(op const& o) {
    std::vector<op> out;
    if (o.after != duration::zero()) out.emplace_back(o).after = duration::zero();
    if (o.key != 0) out.emplace_back(o).key = 0;
    if (o.holder > 1) out.emplace_back(o).holder = 1;
    return out;
  }

  lock_game(bench<lock_commands>& b, bool verbose) : duel_{b, verbose} {}

  [[nodiscard]] auto& duel() noexcept { return duel_; }

  void play(op const& o) {
    duel_.pass(o.after);
    std::string const key{"key" + std::to_string(o.key)};
    std::string const holder{"holder" + std::to_string(o.holder)};
    auto const fence = leases_.pick(key, holder, o.lease);
    auto const store_fence = duel_.fences().of_store(key, fence);
    switch (o.what) {
      case kind::acquire: {
        command::acquire_lock const c{key, holder, o.ttl};
        auto const grant = duel_.ask(c, c, key).first;
        if (grant.has_value() && grant->granted) leases_.add(key, holder, grant->fence);
        break;
      }
      case kind::renew:
        duel_.ask(command::renew_lock{key, holder, fence, o.ttl},
                  command::renew_lock{key, holder, store_fence, o.ttl}, key);
        break;
      case kind::release:
        duel_.ask(command::release_lock{key, holder, fence},
                  command::release_lock{key, holder, store_fence}, key);
        break;
      case kind::inspect: {
        command::inspect_lock const c{key};
        duel_.ask(c, c, key);
        break;
      }
    }
  }

 private:
  testing::duel<lock_commands, lock_model> duel_;
  lease_book leases_;
};

inline void lock_histories(factory<lock_commands> const& f, report& out, settings const& s) {
  topic const about{"locks", "R2", "generated histories are answered as the rule answers them"};
  for (auto const t : times_of(f)) {
    if (finished(out, s)) return;
    check_histories<lock_game>(f, t, about, out, s);
  }
}

}  // namespace weir::testing::conformance

#endif
