// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_LEASES_HISTORIES_HPP
#define WEIR_TESTING_CONFORMANCE_LEASES_HISTORIES_HPP

#include "weir/testing/bench.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/dice.hpp"
#include "weir/testing/driver.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/histories.hpp"
#include "weir/testing/leases.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::testing::conformance {

/// Locks or permits in generated histories: see `check_histories`. A lock has no limit and no line.
template <class Noun, class Model>
class lease_game {
  using commands = typename Noun::commands;

 public:
  enum class kind : std::uint8_t { acquire, renew, release, inspect };

  struct op {
    kind what = kind::inspect;
    std::uint8_t key = 0;
    std::uint8_t holder = 0;
    std::uint32_t limit = 1;
    which_lease lease = which_lease::latest;
    duration ttl{};
    duration patience{};
    duration after{};  ///< time that passes before it
  };

  static std::vector<op> generate(time_choices const& times, capabilities const& can,
                                  std::size_t steps, dice d) {
    // Time that runs backwards concerns one key at a time: what another key's step found over is
    // not said.
    bool const backwards = times.reversible() && d.chance(25);
    auto const keys = backwards ? 1 : 1 + d.below(Noun::counts ? 2 : 3);
    auto const holders = 2 + d.below(Noun::counts ? 5 : 3);
    auto const usual = static_cast<std::uint32_t>(Noun::counts ? 1 + d.below(3) : 1);
    bool const lines = Noun::counts && can.line && d.chance(80);
    constexpr kind kinds[] = {kind::acquire, kind::acquire, kind::acquire, kind::acquire,
                              kind::renew,   kind::release, kind::release, kind::inspect};
    std::vector<op> ops(steps);
    for (auto& o : ops) {
      o.what = kinds[Noun::counts ? d.below(8) : 1 + d.below(7)];
      o.key = static_cast<std::uint8_t>(d.below(keys));
      o.holder = static_cast<std::uint8_t>(d.below(holders));
      bool const changes = Noun::counts && can.limit_of_command && d.chance(20);
      o.limit = changes ? static_cast<std::uint32_t>(1 + d.below(4)) : usual;
      o.lease = any_lease(d);
      o.ttl = times.ttl(d);
      if (lines) o.patience = times.wait(d);
      o.after = backwards ? times.step_either_way(d) : times.step(d);
    }
    return ops;
  }

  static std::vector<op> simpler(op const& o) {
    std::vector<op> out;
    if (o.after != duration::zero()) out.emplace_back(o).after = duration::zero();
    if (o.patience != duration::zero()) out.emplace_back(o).patience = duration::zero();
    if (o.limit != 1) out.emplace_back(o).limit = 1;
    if (o.key != 0) out.emplace_back(o).key = 0;
    if (o.holder > 1) out.emplace_back(o).holder = 1;
    return out;
  }

  lease_game(bench<commands>& b, bool verbose) : duel_{b, verbose} {}

  [[nodiscard]] auto& duel() noexcept { return duel_; }

  void play(op const& o) {
    using renew = typename Noun::renew;
    using release = typename Noun::release;
    duel_.pass(o.after);
    std::string const key{"key" + std::to_string(o.key)};
    std::string const holder{"holder" + std::to_string(o.holder)};
    auto const fence = leases_.pick(key, holder, o.lease);
    auto const store_fence = duel_.fences().of_store(key, fence);
    switch (o.what) {
      case kind::acquire: {
        auto const c = Noun::acquire(key, holder, o.ttl, o.limit, o.patience);
        auto const grant = duel_.ask(c, c, key).first;
        if (grant.has_value() && grant->granted) leases_.add(key, holder, grant->fence);
        break;
      }
      case kind::renew:
        duel_.ask(renew{key, holder, fence, o.ttl}, renew{key, holder, store_fence, o.ttl}, key);
        break;
      case kind::release:
        duel_.ask(release{key, holder, fence}, release{key, holder, store_fence}, key);
        break;
      case kind::inspect: {
        auto const c = Noun::inspect(key, o.limit - 1);
        duel_.ask(c, c, key);
        break;
      }
    }
  }

 private:
  testing::duel<commands, Model> duel_;
  lease_book leases_;
};

}  // namespace weir::testing::conformance

#endif
