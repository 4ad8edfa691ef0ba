// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_BUCKETS_HISTORIES_HPP
#define WEIR_TESTING_CONFORMANCE_BUCKETS_HISTORIES_HPP

#include "weir/command/buckets.hpp"
#include "weir/quota.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/histories.hpp"
#include "weir/testing/model/buckets.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace weir::testing::conformance {

/// Buckets in generated histories: see `check_histories`. What is granted is also added up,
/// independently of the rule.
class bucket_game {
 public:
  enum class kind : std::uint8_t { take, peek, refund, reset, reap };

  struct op {
    kind what = kind::take;
    std::uint8_t key = 0;
    std::uint8_t quotas = 0;  ///< which of `all_quotas`
    std::uint64_t cost = 1;
    std::uint8_t grant = 0;  ///< refund: which of the key's grants, from the last one
    bool early = false;  ///< refund: as a waiter that gives up before its instant, if it is that
    duration max_wait{};
    duration after{};  ///< time that passes before it
  };

  /// One token of the first takes the least span that is a multiple of the grain and of a
  /// millisecond. The last ones are so slow that nothing refills while time passes by itself.
  static std::vector<std::vector<quota>> all_quotas(duration grain) {
    using std::chrono::hours;
    using std::chrono::milliseconds;
    auto const token =
        grain * (milliseconds{1} / grain + (milliseconds{1} % grain == duration::zero() ? 0 : 1));
    return {{quota::per(1, token).burst(5)},
            {quota::per(10, 10 * 100 * token).burst(3)},
            {quota::per(1, 1000 * token)},
            {quota::per(2, 1000 * token).burst(4), quota::per(6, 10'000 * token).burst(9)},
            {quota::per(5, 500 * token).burst(1), quota::per(1, 200 * token).burst(2),
             quota::per(100, 3600 * token)},
            {quota::per(1, hours{1}).burst(5)},
            {quota::per(2, hours{10}).burst(3), quota::per(1, hours{7}).burst(6)}};
  }
  static constexpr std::size_t slow_quotas = 5;  // from here on

  static std::vector<op> generate(time_choices const& times, capabilities const&, std::size_t steps,
                                  dice d) {
    auto const known = all_quotas(times.grain());
    auto const any = [&] {
      return static_cast<std::uint8_t>(times.exact()
                                           ? d.below(known.size())
                                           : slow_quotas + d.below(known.size() - slow_quotas));
    };
    auto const usual = any();
    bool const changes = d.chance(25);
    auto const keys = 1 + d.below(2);
    constexpr kind kinds[] = {kind::take, kind::take, kind::take,   kind::take,   kind::take,
                              kind::take, kind::peek, kind::refund, kind::refund, kind::refund};
    std::vector<op> ops(steps);
    for (auto& o : ops) {
      o.what = d.chance(3) ? (d.chance(50) ? kind::reset : kind::reap) : d.pick(kinds);
      o.key = static_cast<std::uint8_t>(d.below(keys));
      o.quotas = changes && d.chance(15) ? any() : usual;
      auto const& q = known[o.quotas].front();
      auto const token =
          q.period() / static_cast<std::int64_t>(q.tokens()) / times.grain() * times.grain();
      o.cost = d.chance(70) ? 1 : 1 + d.below(q.capacity() + 1);
      o.grant = static_cast<std::uint8_t>(d.chance(70) ? 0 : d.below(4));
      o.early = d.chance(50);
      if (d.chance(30)) o.max_wait = token * static_cast<std::int64_t>(1 + d.below(4));
      if (!times.exact()) {
        o.after = d.chance(95) ? duration::zero() : times.brief();
      } else if (d.chance(50)) {
        duration const some[] = {times.grain(),
                                 token - times.grain(),
                                 token,
                                 token + times.grain(),
                                 token / 2 / times.grain() * times.grain(),
                                 3 * token,
                                 20 * token};
        o.after = d.pick(some);
      }
    }
    return ops;
  }

  static std::vector<op> simpler(op const& o) {
    std::vector<op> out;
    if (o.after != duration::zero()) out.emplace_back(o).after = duration::zero();
    if (o.max_wait != duration::zero()) out.emplace_back(o).max_wait = duration::zero();
    if (o.cost != 1) out.emplace_back(o).cost = 1;
    if (o.key != 0) out.emplace_back(o).key = 0;
    if (o.grant != 0) out.emplace_back(o).grant = 0;
    return out;
  }

  bucket_game(bench<bucket_commands>& b, bool verbose)
      : duel_{b, verbose},
        quotas_{all_quotas(b.grain())} {}

  [[nodiscard]] auto& duel() noexcept { return duel_; }

  void play(op const& o) {
    duel_.pass(o.after);
    std::string const key{"key" + std::to_string(o.key)};
    auto const& quotas = quotas_[o.quotas];
    auto& past = past_[key];
    switch (o.what) {
      case kind::take: take(command::take{key, quotas, o.cost, o.max_wait}, past); break;
      case kind::peek: {
        command::peek_bucket const c{key, quotas, o.cost, o.max_wait};
        duel_.ask(c, c, key);
        break;
      }
      case kind::refund: refund(o, key, past); break;
      case kind::reset: {
        command::reset_bucket const c{key};
        duel_.ask(c, c, key);
        past = {};
        break;
      }
      case kind::reap:  // when a store forgets a full bucket is its own affair, and changes no
                        // answer
        if (duel_.store().executes<command::reap_buckets>())
          duel_.store().ask(command::reap_buckets{});
        break;
    }
  }

 private:
  struct granted {
    std::uint64_t cost;
    std::span<quota const> quotas;
    time_point instant;
    bucket_mark of_rule;
    bucket_mark of_store;
  };

  struct key_history {
    std::vector<granted> grants;
    std::span<quota const> quotas;
    bucket_ledger ledger;
  };

  void take(command::take const& c, key_history& past) {
    auto const at = duel_.store().now();
    auto const [of_rule, of_store] = duel_.ask(c, c, std::string{c.key});
    if (duel_.over() || !of_store.has_value() || !of_store->allowed) return;
    if (past.quotas.data() != c.quotas.data()) past.ledger.forget();
    past.quotas = c.quotas;
    auto const instant = at + of_store->wait;
    past.ledger.grant(instant, c.cost);
    past.grants.push_back({c.cost, c.quotas, instant, of_rule->mark, of_store->mark});
    if (!duel_.store().exact()) return;
    for (auto const& q : c.quotas) {
      if (auto const wrong = past.ledger.excess(q)) duel_.fail("R3 is broken: " + *wrong);
    }
  }

  void refund(op const& o, std::string const& key, key_history& past) {
    if (past.grants.size() <= o.grant) return;
    auto const which = past.grants.end() - 1 - o.grant;
    auto const g = *which;
    bool const early = o.early && duel_.store().now() < g.instant;
    auto const answers = duel_.ask(command::refund{key, g.quotas, g.cost, g.of_rule, early},
                                   command::refund{key, g.quotas, g.cost, g.of_store, early}, key);
    if (duel_.over() || !answers.second.has_value() || answers.second->credited == 0) return;
    past.ledger.give_back(g.instant, answers.second->credited);
    past.grants.erase(which);  // once: what another take left behind may look the same
  }

  testing::duel<bucket_commands, bucket_model> duel_;
  std::vector<std::vector<quota>> quotas_;
  std::map<std::string, key_history> past_;
};

inline void bucket_histories(factory<bucket_commands> const& f, report& out, settings const& s) {
  topic const about{"buckets", "R3", "generated histories are answered as the rule answers them"};
  for (auto const t : times_of(f)) {
    if (finished(out, s)) return;
    check_histories<bucket_game>(f, t, about, out, s);
  }
}

}  // namespace weir::testing::conformance

#endif
