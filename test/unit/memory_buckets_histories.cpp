// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The table against one that never forgets anything and has no bound, on generated histories; and
// R3 for every key and window where time runs backwards.

#include "weir/command/buckets.hpp"
#include "weir/quota.hpp"
#include "weir/rule/bucket_scale.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/store/memory/bucket_steps.hpp"
#include "weir/store/memory/buckets.hpp"
#include "weir/store/memory/options.hpp"
#include "weir/time.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using weir::decision;
using weir::duration;
using weir::quota;
using weir::time_point;
using weir::rule::bucket_scales;
namespace command = weir::command;

namespace {

constexpr time_point epoch = std::chrono::sys_days{std::chrono::year{2026} / 3 / 1};

using quotas = std::vector<quota>;

// Sets of quotas that keys have, and sometimes change to.
quotas const plans[] = {
    {quota::per_second(10)},
    {quota::per(7, 3s).burst(5)},
    {quota::per_second(1001).burst(20)},
    {quota::per_second(5), quota::per_minute(12)},
    {quota::per_minute(30).burst(10), quota::per_second(2).burst(7), quota::per_hour(100)},
};

class model {
 public:
  decision ask(std::string const& key, quotas const& asked, std::uint64_t cost, duration max_wait,
               duration now, bool takes) {
    auto const scales = bucket_scales::of(asked).value();
    auto arrivals = weir::rule::unseen_bucket;
    auto const known = buckets_.find(key);
    if (known != buckets_.end()) {
      arrivals = known->second.arrivals;
      if (known->second.limits != asked) {
        auto const before = bucket_scales::of(known->second.limits).value();
        arrivals = weir::rule::changed_quotas(before.span(), arrivals, scales.span(), now);
      }
    }
    auto const d = weir::rule::take(scales.span(), arrivals, now, cost, max_wait);
    if (takes && d.allowed) buckets_[key] = {asked, weir::rule::arrivals_in(d.mark)};
    return takes ? d : weir::rule::peek(scales.span(), arrivals, now, cost, max_wait);
  }
  weir::refund_receipt refund(std::string const& key, decision const& d, bool before_instant,
                              duration now) {
    auto const known = buckets_.find(key);
    if (known == buckets_.end()) return {.credited = 0, .forfeited = d.cost};
    auto const scales = bucket_scales::of(known->second.limits).value();
    auto const out = weir::rule::refund(scales.span(), known->second.arrivals, d.mark, d.cost,
                                        before_instant, now);
    known->second.arrivals = out.arrivals;
    return out.receipt;
  }
  void reset(std::string const& key) { buckets_.erase(key); }
  // Those that are not full.
  [[nodiscard]] std::size_t spent(duration now) const {
    return static_cast<std::size_t>(std::ranges::count_if(buckets_, [&](auto const& b) {
      auto const scales = bucket_scales::of(b.second.limits).value();
      return !weir::rule::full_bucket(scales.span(), b.second.arrivals, now);
    }));
  }

 private:
  struct bucket {
    quotas limits;
    weir::rule::bucket_arrivals arrivals;
  };
  std::map<std::string, bucket> buckets_;
};

class history {
 public:
  history(std::uint64_t seed, std::size_t keys, std::size_t most)
      : random_{seed},
        keys_{keys},
        most_{most},
        table_{weir::memory_options{.max_buckets = most}} {}

  void run(int steps, duration longest_pause) {
    // The first command sets the table's epoch.
    table_.apply(command::reap_buckets{}, epoch).value();
    for (int i = 0; i != steps; ++i) {
      now_ += duration{
          static_cast<duration::rep>(below(static_cast<std::uint64_t>(longest_pause.count()) + 1))};
      switch (below(20)) {
        case 0: return_something(); break;
        case 1: reset(); break;
        case 2: reap(); break;
        case 3: ask(false); break;
        default: ask(true); break;
      }
    }
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  std::string any_key() {
    auto const n = below(keys_);
    auto text = std::to_string(n);
    text.resize(text.size() + n % 41, '.');  // some in their slot, some as a digest
    return text;
  }

  void ask(bool takes) {
    auto const key = any_key();
    auto const& plan =
        plans[below(10) == 0 ? below(std::size(plans)) : key.size() % std::size(plans)];
    auto const cost = 1 + below(below(3) == 0 ? 5 : 2);
    auto const max_wait = below(4) == 0 ? duration{1s} : 0ns;
    auto const spent = model_.spent(now_);
    auto const at = epoch + now_;
    decision const got =
        takes ? table_.apply(command::take{key, plan, cost, max_wait}, at).value()
              : table_.apply(command::peek_bucket{key, plan, cost, max_wait}, at).value();
    if (got.shed) {
      BOOST_TEST_REQUIRE(spent == most_);  // it had to be
      return;
    }
    auto const expected = model_.ask(key, plan, cost, max_wait, now_, takes);
    BOOST_TEST_REQUIRE(got.allowed == expected.allowed);
    BOOST_TEST_REQUIRE(got.remaining == expected.remaining);
    BOOST_TEST_REQUIRE(got.capacity == expected.capacity);
    BOOST_TEST_REQUIRE(int{got.binding} == int{expected.binding});
    BOOST_TEST_REQUIRE((got.wait == expected.wait));
    BOOST_TEST_REQUIRE((got.retry_after == expected.retry_after));
    BOOST_TEST_REQUIRE((got.reset_after == expected.reset_after));
    BOOST_TEST_REQUIRE(model_.spent(now_) <= most_);
    if (takes && got.allowed) given_.push_back({key, plan, got, expected, now_ + got.wait});
  }

  void return_something() {
    if (given_.empty()) return;
    auto const index = below(2) == 0 ? given_.size() - 1 : below(given_.size());
    auto const g = std::move(given_[index]);
    given_.erase(given_.begin() + static_cast<std::ptrdiff_t>(index));
    bool const before = now_ < g.instant;
    command::refund const c{.key = g.key,
                            .quotas = g.plan,
                            .cost = g.got.cost,
                            .mark = g.got.mark,
                            .before_instant = before};
    auto const got = table_.apply(c, epoch + now_).value();
    auto const expected = model_.refund(g.key, g.expected, before, now_);
    BOOST_TEST_REQUIRE(got.credited == expected.credited);
    BOOST_TEST_REQUIRE(got.forfeited == expected.forfeited);
  }

  void reset() {
    auto const key = any_key();
    BOOST_TEST_REQUIRE(table_.apply(command::reset_bucket{.key = key}, epoch + now_).has_value());
    model_.reset(key);
  }

  void reap() {
    auto const got = table_.apply(command::reap_buckets{}, epoch + now_).value();
    BOOST_TEST_REQUIRE(got.kept == model_.spent(now_));
  }

  struct grant {
    std::string key;
    quotas plan;
    decision got;
    decision expected;
    duration instant;
  };

  std::mt19937_64 random_;
  std::size_t keys_;
  std::size_t most_;
  weir::detail::memory_buckets table_;
  model model_;
  duration now_{};
  std::vector<grant> given_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_buckets_histories)

BOOST_AUTO_TEST_CASE(as_if_nothing_were_ever_forgotten) {
  for (std::uint64_t seed = 0; seed != 60; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) { history{seed, 40, 1000}.run(500, 100ms); }
    BOOST_TEST_CONTEXT("seed " << seed) { history{seed, 5, 1000}.run(500, 400ms); }
  }
}

BOOST_AUTO_TEST_CASE(over_growth_and_many_shards) {
  history{1, 300, 3000}.run(3000, 1ms);
  history{2, 600, 300'000}.run(3000, 10ms);
}

BOOST_AUTO_TEST_CASE(F21_shed_only_when_every_bucket_is_spent) {
  for (std::uint64_t seed = 0; seed != 60; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      history{seed, 60, 1}.run(200, 100ms);
      history{seed, 60, 10}.run(300, 20ms);
      history{seed, 100, 30}.run(300, 30ms);
    }
  }
}

BOOST_AUTO_TEST_CASE(R3_where_time_runs_backwards_and_buckets_are_forgotten) {
  __extension__ using wide = __int128;
  auto const q = quota::per_second(5).burst(3);
  for (std::uint64_t seed = 0; seed != 300; ++seed) {
    std::mt19937_64 random{seed};
    weir::detail::memory_buckets table{weir::memory_options{.max_buckets = 1 + seed % 8}};
    std::map<std::string, std::vector<std::pair<duration, std::uint64_t>>> ledger;
    duration now{};
    for (int i = 0; i != 150; ++i) {
      auto const step = duration{static_cast<duration::rep>(random() % 600'000'000)};
      now += random() % 4 == 0 ? -step : step;
      if (random() % 8 == 0) table.apply(command::reap_buckets{}, epoch + now).value();
      auto const key = std::to_string(random() % 8);
      auto const cost = 1 + random() % 3;
      auto const d = table
                         .apply(command::take{.key = key,
                                              .quotas = {&q, 1},
                                              .cost = cost,
                                              .max_wait = random() % 3 == 0 ? duration{1s} : 0ns},
                                epoch + now)
                         .value();
      if (d.allowed) ledger[key].push_back({now + d.wait, cost});
    }
    for (auto& [key, grants] : ledger) {
      std::ranges::sort(grants);
      for (std::size_t first = 0; first != grants.size(); ++first) {
        wide sum = 0;
        for (std::size_t last = first; last != grants.size(); ++last) {
          sum += grants[last].second;
          wide const window = (grants[last].first - grants[first].first).count();
          BOOST_TEST_REQUIRE((sum * 1'000'000'000 <= 3 * wide{1'000'000'000} + 5 * window),
                             "seed " << seed);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
