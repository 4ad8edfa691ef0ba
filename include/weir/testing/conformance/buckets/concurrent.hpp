// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_BUCKETS_CONCURRENT_HPP
#define WEIR_TESTING_CONFORMANCE_BUCKETS_CONCURRENT_HPP

#include "weir/command/buckets.hpp"
#include "weir/quota.hpp"
#include "weir/testing/arena.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/dice.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/linearizability.hpp"

#include <boost/container_hash/hash.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing {

/// One command on one bucket that refills so slowly that it does not.
struct bucket_event {
  enum class kind : std::uint8_t { take, peek, refund };

  kind what = kind::take;
  std::uint64_t cost = 1;
  std::uint64_t grant = 0;  ///< take: its own number; refund: whose it is
  bool yes = false;         ///< allowed
  std::uint64_t left = 0;   ///< remaining; refund: credited
};

[[nodiscard]] inline std::string to_text(bucket_event const& e) {
  constexpr std::string_view words[] = {"take ", "peek ", "refund "};
  auto out = std::string{words[static_cast<std::size_t>(e.what)]} + std::to_string(e.cost);
  if (e.grant != 0) out += " (grant " + std::to_string(e.grant) + ')';
  if (e.what == bucket_event::kind::refund) return out + " -> credited " + std::to_string(e.left);
  return out + (e.yes ? " -> yes, " : " -> no, ") + std::to_string(e.left) + " remain";
}

/// One bucket of a fixed number of tokens: the last grant that was not refunded is the one that can
/// be.
struct bucket_object {
  using event = bucket_event;
  static constexpr std::uint64_t capacity = 60;

  struct state {
    std::uint64_t spent = 1;  // so that no refund meets a bucket that has refilled a part of a
                              // token
    std::vector<std::pair<std::uint64_t, std::uint64_t>> grants;  // number, cost
    friend bool operator==(state const&, state const&) = default;
    friend std::size_t hash_value(state const& s) noexcept {
      auto seed = boost::hash_range(s.grants.begin(), s.grants.end());
      boost::hash_combine(seed, s.spent);
      return seed;
    }
  };

  static bool apply(state& s, event const& e, bool answered) {
    switch (e.what) {
      case event::kind::peek:
        return !answered ||
               (e.yes == (s.spent + e.cost <= capacity) && e.left == capacity - s.spent);
      case event::kind::take: {
        bool const allowed = s.spent + e.cost <= capacity;
        if (allowed) {
          s.spent += e.cost;
          s.grants.emplace_back(e.grant, e.cost);
        }
        return !answered || (e.yes == allowed && e.left == capacity - s.spent);
      }
      case event::kind::refund: {
        bool const stands = !s.grants.empty() && s.grants.back().first == e.grant;
        if (stands) {
          s.grants.pop_back();
          s.spent -= e.cost;
        }
        return !answered || e.left == (stands ? e.cost : 0);
      }
    }
    return false;
  }
};

namespace conformance {

inline constexpr quota slow_quota[] = {
    quota::per(1, std::chrono::hours{10}).burst(bucket_object::capacity)};

/// Takes from one bucket, and refunds now and then what it took last.
class bucket_client final : public recording_client<bucket_commands, bucket_event, 1> {
 public:
  using recording_client::recording_client;

  void ask_next() override {
    auto const choice = dice_.below(10);
    bucket_event e;
    if (choice == 0) {
      e.what = bucket_event::kind::peek;
      run(0, e, command::peek_bucket{"key", slow_quota, e.cost, {}},
          [](bucket_event& seen, bucket_info const& d) {
            seen.yes = d.allowed;
            seen.left = d.remaining;
          });
    } else if (choice < 5 && taken_) {
      e.what = bucket_event::kind::refund;
      e.cost = taken_cost_;
      e.grant = taken_;
      taken_ = 0;
      run(0, e, command::refund{"key", slow_quota, e.cost, mark_, false},
          [](bucket_event& seen, refund_receipt const& r) { seen.left = r.credited; });
    } else {
      e.cost = 1 + dice_.below(3);
      e.grant = number_ * 10'000 + left_ + 1;
      run(0, e, command::take{"key", slow_quota, e.cost, {}},
          [this](bucket_event& seen, decision const& d) {
            seen.yes = d.allowed;
            seen.left = d.remaining;
            if (!d.allowed) return;
            taken_ = seen.grant;
            taken_cost_ = seen.cost;
            mark_ = d.mark;
          });
    }
  }

 private:
  std::uint64_t taken_ = 0;
  std::uint64_t taken_cost_ = 0;
  bucket_mark mark_{};
};

inline void buckets_are_linearizable(bench<bucket_commands>& b, std::uint64_t seed) {
  expect(b.must(command::take{"key", slow_quota, 1, {}}).allowed, "a fresh bucket is full");
  expect_orders<bucket_object, bucket_client>(b, seed, b.settings().clients,
                                              {"a bucket of 60 tokens, one of them taken before"});
}

inline void bucket_concurrency(factory<bucket_commands> const& f, report& out, settings const& s) {
  check_concurrency(
      f, {"buckets", "F19", "concurrent commands on a bucket happen one after the other"},
      &buckets_are_linearizable, out, s);
}

}  // namespace conformance
}  // namespace weir::testing

#endif
