// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Generated histories against two things that know nothing of theoretical arrival times: a ledger
// that adds up every window of time, and a plain token bucket.

#include "weir/quota.hpp"
#include "weir/rule/bucket_scale.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/time.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

using namespace std::chrono_literals;
using weir::decision;
using weir::duration;
using weir::quota;
using weir::rule::bucket_scale;
using weir::rule::bucket_scales;

namespace {

__extension__ using wide = __int128;

constexpr wide tokens(quota const& q) { return static_cast<wide>(q.tokens()); }
constexpr wide period(quota const& q) { return static_cast<wide>(q.period().count()); }
constexpr wide capacity(quota const& q) { return static_cast<wide>(q.capacity()); }

struct grant {
  duration instant;
  std::uint64_t cost;  // less what was refunded
};

// R3 for one quota: in every window that begins and ends with a grant (F65: without a tolerance). A
// refund may make a grant smaller, or nothing.
class ledger {
 public:
  explicit ledger(quota q) : quota_{q} {}

  void check(std::vector<grant> grants) const {
    std::erase_if(grants, [](grant const& g) { return g.cost == 0; });
    std::ranges::sort(grants, {}, &grant::instant);
    for (std::size_t first = 0; first != grants.size(); ++first) {
      wide sum = 0;
      for (std::size_t last = first; last != grants.size(); ++last) {
        sum += grants[last].cost;
        auto const window = grants[last].instant - grants[first].instant;
        bool const kept = sum * period(quota_) <=
                          capacity(quota_) * period(quota_) + tokens(quota_) * wide{window.count()};
        if (!kept) BOOST_FAIL("R3 is broken from grant " << first << " to " << last);
      }
    }
  }

 private:
  quota quota_;
};

// A token bucket, counted in period-ths of a token: below zero when it has reserved ahead.
class token_bucket {
 public:
  explicit token_bucket(quota q) : quota_{q}, level_{capacity(q) * period(q)} {}

  void advance(duration now) {
    if (now <= at_) return;
    level_ = std::min(level_ + tokens(quota_) * wide{(now - at_).count()},
                      capacity(quota_) * period(quota_));
    at_ = now;
  }
  // How long until `cost` tokens are there.
  [[nodiscard]] duration until(duration now, std::uint64_t cost) const {
    auto const missing = static_cast<wide>(cost) * period(quota_) - level_;
    if (missing <= 0) return {};
    auto const steps = (missing + tokens(quota_) - 1) / tokens(quota_);
    return at_ + duration{static_cast<duration::rep>(steps)} - now;
  }
  void take(std::uint64_t cost) { level_ -= static_cast<wide>(cost) * period(quota_); }
  void restore(wide level) { level_ = level; }
  [[nodiscard]] wide level() const { return level_; }
  [[nodiscard]] std::uint64_t remaining() const {
    return level_ <= 0 ? 0 : static_cast<std::uint64_t>(level_ / period(quota_));
  }

 private:
  quota quota_;
  wide level_;
  duration at_ = duration::min() / 4;
};

class generator {
 public:
  explicit generator(std::uint64_t seed) : random_{seed} {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  duration up_to(duration d) {
    return duration{static_cast<duration::rep>(below(static_cast<std::uint64_t>(d.count()) + 1))};
  }

  quota any_quota() {
    for (;;) {
      std::uint64_t const nice[] = {
          1,    2,    3,    5,        7,           10,        60,          100,
          1000, 1001, 9999, 1U << 20, 300'000'000, 3'600'003, 999'999'937, 1'000'000'000};
      duration const periods[] = {1us, 1ms, 1s, 3s, 1min, 1h, 24h, 24h * 3650, 999'983ns};
      auto const q = quota::per(nice[below(std::size(nice))], periods[below(std::size(periods))])
                         .burst(one_in(3) ? 1 + below(1'000'000) : 1 + below(12));
      if (bucket_scale::of(q)) return q;
    }
  }

  // Mostly around the time that a token takes.
  duration step(quota const& q) {
    auto const one =
        std::max(duration{q.period().count() / static_cast<duration::rep>(q.tokens())}, 1ns);
    switch (below(6)) {
      case 0: return 0ns;
      case 1: return 1ns;
      case 2: return one;
      case 3: return up_to(std::min<duration>(one * 3, weir::limits::span));
      case 4: return up_to(std::min<duration>(one / 7 + 3ns, weir::limits::span));
      default: return up_to(10us);
    }
  }

  std::uint64_t cost(std::span<quota const> quotas) {
    std::uint64_t most = quotas[0].capacity();
    for (auto const& q : quotas) most = std::min(most, q.capacity());
    return one_in(4) ? most : 1 + below(most);
  }

 private:
  std::mt19937_64 random_;
};

std::string describe(std::span<quota const> quotas) {
  std::string out;
  for (auto const& q : quotas) {
    out += std::to_string(q.tokens()) + " per " + std::to_string(q.period().count()) +
           " ns, burst " + std::to_string(q.capacity()) + "; ";
  }
  return out;
}

// Beyond its horizon, time stands still.
bool within_reach(duration t) { return t == weir::rule::within_horizon(t); }

// One history of takes, reservations and refunds on one to three quotas, with every promise checked
// on the way.
class history {
 public:
  history(std::uint64_t seed, bool backwards) : random_{seed}, backwards_{backwards} {
    do quotas_.push_back(random_.any_quota());
    while (quotas_.size() < 3 && random_.one_in(3));
    scales_ = bucket_scales::of(quotas_).value();
    now_ = random_.up_to(1h) - 30min;
  }

  void run(std::size_t length) {
    BOOST_TEST_CONTEXT(describe(quotas_)) {
      for (std::size_t i = 0; i != length; ++i) step();
      for (std::size_t i = 0; i != quotas_.size(); ++i) {
        ledger const book{quotas_[i]};
        book.check(grants_);
      }
    }
  }

  [[nodiscard]] std::size_t granted() const { return grants_.size(); }
  [[nodiscard]] std::size_t refunded() const { return refunded_; }

 private:
  [[nodiscard]] decision ask(duration now, std::uint64_t cost, duration max_wait) const {
    return weir::rule::take(scales_.span(), arrivals_, now, cost, max_wait);
  }

  void step() {
    auto const d = random_.step(quotas_[0]);
    auto const next = now_ + (backwards_ && random_.one_in(5) ? -d : d);
    if (within_reach(next)) now_ = next;
    if (random_.one_in(4) && !given_.empty()) return refund();
    take();
  }

  void take() {
    auto const cost = random_.cost(quotas_);
    auto const max_wait =
        random_.one_in(3) ? std::min<duration>(random_.step(quotas_.back()) * 3, weir::limits::span)
                          : 0ns;
    auto const d = ask(now_, cost, max_wait);
    if (d.allowed) {
      BOOST_TEST((d.wait >= 0ns && d.wait <= max_wait));
      arrivals_ = weir::rule::arrivals_in(d.mark);
      grants_.push_back({now_ + d.wait, cost});
      given_.push_back({d, grants_.size() - 1});
      BOOST_TEST((d.reset_after > 0ns));
      BOOST_TEST((weir::rule::full_from(scales_.span(), arrivals_) == now_ + d.reset_after));
    } else {
      // Exact, and the least.
      BOOST_TEST((d.retry_after > 0ns));
      if (!within_reach(now_ + d.retry_after)) return;
      BOOST_TEST(ask(now_ + d.retry_after, cost, max_wait).allowed);
      BOOST_TEST(!ask(now_ + d.retry_after - 1ns, cost, max_wait).allowed);
    }
    // What remains is there, and no more.
    auto const& limit = quotas_[d.binding];
    BOOST_TEST(d.capacity == limit.capacity());
    if (d.remaining != 0) BOOST_TEST(ask(now_, d.remaining, {}).allowed);
    if (d.remaining < limit.capacity()) BOOST_TEST(!ask(now_, d.remaining + 1, {}).allowed);
  }

  void refund() {
    auto const index = random_.one_in(2) ? given_.size() - 1 : random_.below(given_.size());
    auto const [d, place] = given_[index];
    bool const before = now_ < grants_[place].instant && random_.one_in(2);
    auto const out = weir::rule::refund(scales_.span(), arrivals_, d.mark, d.cost, before, now_);
    BOOST_TEST(out.receipt.credited + out.receipt.forfeited == d.cost);
    BOOST_TEST_REQUIRE(out.receipt.credited <= grants_[place].cost);
    if (before && place + 1 == grants_.size()) {
      for (std::size_t i = 0; i != quotas_.size(); ++i) {
        BOOST_TEST((out.arrivals[i] == weir::rule::before_in(d.mark, i)));
      }
      BOOST_TEST(out.receipt.forfeited == 0U);
    }
    arrivals_ = out.arrivals;
    grants_[place].cost -= out.receipt.credited;
    refunded_ += out.receipt.credited != 0 ? 1 : 0;
    given_.erase(given_.begin() + static_cast<std::ptrdiff_t>(index));  // once per grant
  }

  struct held {
    decision answer;
    std::size_t place;
  };

  generator random_;
  bool backwards_;
  std::vector<quota> quotas_;
  bucket_scales scales_;
  weir::rule::bucket_arrivals arrivals_ = weir::rule::unseen_bucket;
  duration now_{};
  std::vector<grant> grants_;
  std::vector<held> given_;
  std::size_t refunded_ = 0;
};

// The take in two halves is the take.
template <class Units>
bool same(weir::rule::single_take<Units> const& step, decision const& whole) {
  auto const fields = [](decision const& d) {
    return std::tie(d.allowed, d.shed, d.binding, d.cost, d.capacity, d.remaining, d.wait,
                    d.retry_after, d.reset_after, d.mark);
  };
  auto const told = step.answer();
  return step.allowed() == whole.allowed && fields(told) == fields(whole) &&
         (!whole.allowed || step.arrival() == weir::rule::arrival_in(whole.mark, 0));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bucket_histories)

BOOST_AUTO_TEST_CASE(R3_holds_in_every_window) {
  std::size_t granted = 0;
  std::size_t refunded = 0;
  for (std::uint64_t seed = 0; seed != 3000; ++seed) {
    history h{seed, false};
    h.run(60);
    granted += h.granted();
    refunded += h.refunded();
  }
  BOOST_TEST(granted > 30'000U);  // the generator generates something
  BOOST_TEST(refunded > 3'000U);
}

BOOST_AUTO_TEST_CASE(R3_holds_when_time_runs_backwards) {
  for (std::uint64_t seed = 0; seed != 2000; ++seed) {
    history h{seed, true};
    h.run(60);
  }
}

BOOST_AUTO_TEST_CASE(it_decides_as_a_token_bucket_does) {
  for (std::uint64_t seed = 0; seed != 3000; ++seed) {
    generator random{seed};
    auto const q = random.any_quota();
    auto const scale = bucket_scale::of(q).value();
    std::span<bucket_scale const, 1> const scales{&scale, 1};
    token_bucket oracle{q};
    auto arrivals = weir::rule::unseen_bucket;
    auto now = random.up_to(1h) - 30min;
    BOOST_TEST_CONTEXT(describe({&q, 1})) {
      for (int i = 0; i != 60; ++i) {
        auto const next = now + random.step(q);
        if (within_reach(next)) now = next;
        oracle.advance(now);
        auto const cost = random.cost({&q, 1});
        auto const max_wait =
            random.one_in(3) ? std::min<duration>(random.step(q), weir::limits::span) : 0ns;
        auto const wait = oracle.until(now, cost);
        auto const d = weir::rule::take(scales, arrivals, now, cost, max_wait);
        BOOST_TEST_REQUIRE(d.allowed == (wait <= max_wait));
        if (scale.narrow) {
          auto const arrival = static_cast<std::int64_t>(
              std::max<weir::rule::bucket_units>(arrivals[0], bucket_scale::narrow_never));
          auto whole = d;  // but for an arrival that was never seen
          if (d.allowed)
            weir::rule::set_mark(whole.mark, 0, weir::rule::arrival_in(d.mark, 0), arrival);
          BOOST_TEST(same(weir::rule::single_take{scale, arrival, now, cost, max_wait}, whole));
        }
        BOOST_TEST(same(weir::rule::single_take{scale, arrivals[0], now, cost, max_wait}, d));
        if (!d.allowed) {
          BOOST_TEST((d.retry_after == wait - max_wait));
          BOOST_TEST(d.remaining == oracle.remaining());
          continue;
        }
        BOOST_TEST((d.wait == wait));
        auto const before = oracle.level();
        oracle.take(cost);
        BOOST_TEST(d.remaining == oracle.remaining());
        arrivals = weir::rule::arrivals_in(d.mark);
        // Where a nanosecond brings several units, a reservation may round up by less than it: that
        // is given back with it.
        if (random.one_in(4) || (wait > 0ns && scale.gain > 1)) {
          auto const out = weir::rule::refund(scales, arrivals, d.mark, cost, true, now);
          BOOST_TEST(out.receipt.credited == cost);
          arrivals = out.arrivals;
          oracle.restore(before);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_changed_quota_owes_what_the_old_one_did) {
  for (std::uint64_t seed = 0; seed != 3000; ++seed) {
    generator random{seed};
    auto const from = random.any_quota();
    auto const to = random.any_quota();
    auto const old_scale = bucket_scale::of(from).value();
    auto const new_scale = bucket_scale::of(to).value();
    token_bucket oracle{from};
    auto arrivals = weir::rule::unseen_bucket;
    duration now{};
    for (int i = 0; i != 5; ++i) {
      auto const next = now + random.step(from);
      if (within_reach(next)) now = next;
      oracle.advance(now);
      auto const cost = random.cost({&from, 1});
      auto const d = weir::rule::take(std::span{&old_scale, 1}, arrivals, now, cost, {});
      if (!d.allowed) continue;
      arrivals = weir::rule::arrivals_in(d.mark);
      oracle.take(cost);
    }
    auto const later = now + random.step(from);
    if (within_reach(later)) now = later;
    oracle.advance(now);
    auto const missing_parts = capacity(from) * period(from) - oracle.level();
    auto const missing =
        static_cast<std::uint64_t>((missing_parts + period(from) - 1) / period(from));
    auto const left = to.capacity() - std::min(missing, to.capacity());
    auto const start = weir::rule::changed_quotas(std::span{&old_scale, 1}, arrivals,
                                                  std::span{&new_scale, 1}, now);
    BOOST_TEST_CONTEXT(describe({&from, 1}) << " then " << describe({&to, 1})) {
      if (left != 0) {
        BOOST_TEST(weir::rule::take(std::span{&new_scale, 1}, start, now, left, {}).allowed);
      }
      if (left < to.capacity()) {
        BOOST_TEST(!weir::rule::take(std::span{&new_scale, 1}, start, now, left + 1, {}).allowed);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
