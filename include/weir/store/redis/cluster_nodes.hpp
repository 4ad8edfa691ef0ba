// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_CLUSTER_NODES_HPP
#define WEIR_STORE_REDIS_CLUSTER_NODES_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/outage.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/allowed.hpp"
#include "weir/store/redis/cluster_map.hpp"
#include "weir/store/redis/link.hpp"
#include "weir/store/redis/options.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// Options with a prefix of their own.
class redis_kept_options {
 public:
  explicit redis_kept_options(redis_options const& options)
      : prefix_{options.prefix},
        options_{options} {}

  [[nodiscard]] redis_options options() const noexcept {
    auto out = options_;
    out.prefix = prefix_;
    return out;
  }

 private:
  std::string prefix_;
  redis_options options_;
};

/// One that we have a link with.
struct redis_node {
  std::shared_ptr<redis_link> link;
  bool asked = false;  // something was sent there, though it serves no shard that we know of
};

/// The nodes of a cluster that we have links with, and the places of all that we have heard of. In
/// one strand.
class redis_nodes {
 public:
  redis_nodes(redis_address const& first, redis_options const& options)
      : like_{first},
        most_new_{options.shards + few},
        period_{options.longest_reconnect_wait} {
    seeds_.push_back({first.host(), first.port()});
    for (auto const& [host, port] : first.others()) seeds_.push_back({host, port});
    known_ = seeds_;
  }
  redis_nodes(redis_nodes const&) = delete;
  redis_nodes& operator=(redis_nodes const&) = delete;

  /// The node at a place. `make` makes a link to its address where there is none yet. A node stays
  /// where it is until it is pruned or dropped. Null: it may not be called, or not now. A server
  /// that names ever more places makes us call a few of them and no more (F96): at a time, and in
  /// each `longest_reconnect_wait`, as many as there are shards to be served, and a few.
  template <class Make>
  redis_node* at(redis_place const& place, Make make) {
    auto const found = nodes_.find(place);
    if (found != nodes_.end()) return &found->second;
    if (!is_allowed(place) || nodes_.size() >= 2 * most_new_) return nullptr;
    auto const now = system_clock{}.steady_now();
    if (now >= new_until_) {
      new_ = 0;
      new_until_ = saturating_add(now, period_);
    }
    if (new_ >= most_new_) return nullptr;
    ++new_;
    auto& node = nodes_[place];
    node.link = make(like_.at(place.host, place.port));
    return &node;
  }

  /// Whether the node at an address answers, and what was told of it. It outlives the links there,
  /// which come and go while nobody answers, so that the log is told once.
  [[nodiscard]] std::shared_ptr<outage> state_of(redis_address const& address) {
    if (states_.size() >= most_known) states_.clear();
    auto& [state, asked] = states_[{address.host(), address.port()}];
    if (!state) state = std::make_shared<outage>(redis_log_name(address));
    asked = true;
    return state;
  }

  [[nodiscard]] std::size_t under_way() const noexcept {
    std::size_t out = 0;
    for (auto const& [place, node] : nodes_) out += node.link->under_way();
    return out;
  }

  /// Null: none is.
  [[nodiscard]] std::shared_ptr<redis_link> one_that_is_up(std::uint64_t entropy) const {
    std::vector<std::shared_ptr<redis_link>> up;
    for (auto const& [place, node] : nodes_) {
      if (node.link->up()) up.push_back(node.link);
    }
    return up.empty() ? nullptr : up[entropy % up.size()];
  }

  /// Closes what is not needed, unless something was sent there since the last time, is to be sent
  /// there once it is up, or is to be answered yet. Forgets the state of nodes that were not called
  /// since then: it says nothing of today.
  template <class Needed>
  void prune(Needed needed) {
    for (auto it = nodes_.begin(); it != nodes_.end();) {
      auto& node = it->second;
      bool const opens = node.asked && !node.link->up();
      bool const owes = node.link->under_way() != 0;
      if (needed(*node.link) || opens || owes || std::exchange(node.asked, false)) {
        ++it;
      } else {
        node.link->close();
        it = nodes_.erase(it);
      }
    }
    for (auto it = states_.begin(); it != states_.end();) {
      bool const stays = nodes_.contains(it->first) || std::exchange(it->second.asked, false);
      it = stays ? std::next(it) : states_.erase(it);
    }
  }

  void drop(redis_link const& which) {
    std::erase_if(nodes_, [&](auto const& entry) {
      if (entry.second.link.get() != &which) return false;
      entry.second.link->close();
      return true;
    });
  }

  void clear() {
    for (auto const& [place, node] : nodes_) node.link->close();
    nodes_.clear();
  }

  /// Those that we were told of, and those that we had from the beginning: a cluster that has moved
  /// as a whole is found where its address says.
  void know(std::vector<redis_place> places) {
    std::erase_if(places, [this](auto const& place) { return !is_allowed(place); });
    if (places.size() > most_known) places.resize(most_known);
    places.insert(places.end(), seeds_.begin(), seeds_.end());
    std::ranges::sort(places);
    auto const same = std::ranges::unique(places);
    places.erase(same.begin(), same.end());
    known_ = std::move(places);
  }

  /// One after the other.
  [[nodiscard]] redis_place const& next_known() { return known_[next_++ % known_.size()]; }

 private:
  static constexpr std::size_t few = 8;
  static constexpr std::size_t most_known = 1000;  // as many as a cluster has

  [[nodiscard]] bool is_allowed(redis_place const& place) const {
    return redis_allows(like_, place.host);
  }

  struct known_state {
    std::shared_ptr<outage> state{};
    bool asked = false;  // for, since nodes were pruned
  };

  redis_address like_;
  std::size_t most_new_;
  duration period_;
  std::size_t new_ = 0;  // nodes, up to then
  steady_time new_until_ = steady_time::min();
  std::vector<redis_place> seeds_;
  std::vector<redis_place> known_;
  std::size_t next_ = 0;
  std::map<redis_place, redis_node> nodes_;
  std::map<redis_place, known_state> states_;
};

}  // namespace weir::detail

#endif
