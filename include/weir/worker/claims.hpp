// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_CLAIMS_HPP
#define WEIR_WORKER_CLAIMS_HPP

#include "weir/time.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/turns.hpp"

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace weir::detail {

/// A claim that is to be made.
struct claim_plan {
  claim_plan(std::string&& of, turns::entry e, worker_core::numbered_dequeue what, bool repeats,
             bool is_guess)
      : queue{std::move(of)},
        by{e},
        asked{what},
        again{repeats},
        guessed{is_guess} {}

  std::string queue;
  turns::entry by;
  worker_core::numbered_dequeue asked;
  bool again;    ///< its answer was lost before
  bool guessed;  ///< no look has found the queue
};

/// A claim's plan, the hands that it keeps until it is answered, and its entry's turns.
class kept_hands {
 public:
  kept_hands(worker_core& core, claim_plan&& p) noexcept
      : plan{std::move(p)},
        core_{&core},
        room_{core.due, plan.by, plan.asked.limit} {
    core_->reserved += plan.asked.limit;
    core_->due.charge(plan.by, plan.asked.limit);
  }
  kept_hands(kept_hands const&) = delete;
  kept_hands& operator=(kept_hands const&) = delete;
  ~kept_hands() { end(0); }

  /// @param used for jobs that were given
  void end(std::size_t used) noexcept {
    if (core_ == nullptr) return;
    auto const kept = plan.asked.limit;
    core_->reserved -= kept;
    core_->due.refund(plan.by, kept - std::min(kept, static_cast<std::uint32_t>(used)));
    room_.end();
    core_ = nullptr;
  }

  claim_plan const plan;

 private:
  worker_core* core_;
  turns::kept_room room_;
};

/// The claims that are under way at the same time, one of a queue, and what they tell of how deep
/// queues are.
class claims_under_way {
 public:
  explicit claims_under_way(worker_core& core) noexcept : core_{core} {}

  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] bool contains(std::string const& queue) const {
    return !all_.empty() && all_.contains(queue);
  }

  void begin(std::shared_ptr<kept_hands> const& hands) {
    auto const now = core_.clock.steady_now();
    auto const& plan = hands->plan;
    bool const deep = is_deep(plan.queue);
    all_.emplace(plan.queue, one{hands, now, deep});
    if (deep) core_.due.begin_claim(plan.by, now);
  }
  void end(std::string const& queue) noexcept {
    auto const at = all_.find(queue);
    if (at == all_.end()) return;
    auto const took = saturating_sub(core_.clock.steady_now(), at->second.begun);
    usual_ += (std::min(took, 4 * patience()) - usual_) / 8;
    if (at->second.deep) core_.due.end_claim(at->second.hands->plan.by);
    all_.erase(at);
  }

  /// How long a claim may take. One that takes longer is not waited for: others have its hands, and
  /// if more comes of it than there are hands by then, it is given back.
  [[nodiscard]] duration patience() const noexcept {
    return std::max(core_.options.poll / 10, 8 * usual_);
  }
  void let_go_of_slow_ones() noexcept {
    auto const now = core_.clock.steady_now();
    if (now < next_check_) return;
    next_check_ = saturating_add(now, patience() / 4);
    auto const before = saturating_add(now, -patience());
    for (auto& [queue, claim] : all_) {
      if (claim.begun <= before) claim.hands->end(0);
    }
  }

  /// Had the queue more than it was asked for? It will be asked for as much as there is room for.
  [[nodiscard]] bool is_deep(std::string const& queue) const { return deep_.contains(queue); }
  void note_depth(std::string const& queue, bool has_more) {
    constexpr std::size_t most = 10'000;
    if (!has_more) {
      deep_.erase(queue);
      return;
    }
    if (deep_.size() == most) deep_.clear();
    deep_.insert(queue);
  }

 private:
  struct one {
    std::shared_ptr<kept_hands> hands;
    steady_time begun;
    bool deep;
  };

  worker_core& core_;
  boost::unordered_flat_map<std::string, one> all_;
  boost::unordered_flat_set<std::string> deep_;
  duration usual_{};  ///< how long claims take, about
  steady_time next_check_ = steady_time::min();
};

}  // namespace weir::detail

#endif
