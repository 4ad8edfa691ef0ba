// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_BODIES_HPP
#define WEIR_TESTING_SIMULATION_BODIES_HPP

#include "weir/lease.hpp"
#include "weir/testing/simulation/cluster.hpp"
#include "weir/time.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/cancellation_type.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

namespace weir::testing::simulation {

/// The bodies that run under leases right now, and what is promised of them: no more than the limit
/// believe in their lease at once, and one whose lease may be over has been told.
template <class Engine>
class bodies {
  struct body {
    node<Engine>* on;
    lease const* held;
    std::string key;
    std::string holder;
    std::uint32_t limit;
    duration margin;
    boost::asio::cancellation_state const* told;
    bool seen_over;
  };

 public:
  explicit bodies(cluster<Engine>& in) : cluster_{in} {}

  /// A body, for as long as this lives.
  class entry {
   public:
    /// @param told says whether it was told to stop; null: it has no keeper
    entry(bodies& in, node<Engine>& on, lease const& held, std::uint32_t limit, duration ttl,
          boost::asio::cancellation_state const* told)
        : all_{in} {
      auto const margin = std::min<duration>(ttl / 10, std::chrono::seconds{1});
      all_.running_.push_back({&on, &held, std::string{held.key()}, std::string{held.holder()},
                               limit, margin, told, false});
      place_ = std::prev(all_.running_.end());
    }
    entry(entry const&) = delete;
    entry& operator=(entry const&) = delete;
    ~entry() { all_.running_.erase(place_); }

   private:
    bodies& all_;
    typename std::list<body>::iterator place_;
  };

  [[nodiscard]] bool any_on(node<Engine> const& n) const {
    return std::any_of(running_.begin(), running_.end(), [&](auto const& b) { return b.on == &n; });
  }

  void check() {
    auto& w = cluster_.in;
    for (auto& b : running_) {
      bool const believes = b.on->clock().steady_now() < b.held->expires_at() - b.margin;
      if (!believes && !b.seen_over) {
        b.seen_over = true;
        w.reach(rare_state::lease_expired_in_body);
      }
      // It is told by a handler of its own process, which runs at this very instant.
      bool const over = b.on->clock().steady_now() >= b.held->expires_at();
      if (over && b.told != nullptr && b.on->context().ready() == 0 &&
          !w.stalled(b.on->context())) {
        bool const told = b.told->cancelled() != boost::asio::cancellation_type::none;
        w.expect(told, "R1", [&] { return b.key + ": a body goes on after its lease, untold"; });
      }
      if (!believes) continue;
      std::uint32_t beside = 0;
      for (auto const& other : running_) {
        if (other.key != b.key) continue;
        bool const trusts =
            other.on->clock().steady_now() < other.held->expires_at() - other.margin;
        // A store whose clock jumps ahead ends leases early: nobody can know.
        auto const given = cluster_.audits.leases.extended_at(other.holder);
        if (trusts && given > cluster_.last_jump) ++beside;
        if (!trusts) w.reach(rare_state::lease_stolen);
      }
      w.expect(beside <= b.limit, "R1", [&] {
        return b.key + ": " + std::to_string(beside) + " bodies run under valid leases";
      });
    }
  }

 private:
  cluster<Engine>& cluster_;
  std::list<body> running_;
};

}  // namespace weir::testing::simulation

#endif
