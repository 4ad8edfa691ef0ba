// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_CLUSTER_HPP
#define WEIR_STORE_REDIS_CLUSTER_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/parking.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/allowed.hpp"
#include "weir/store/redis/backend.hpp"
#include "weir/store/redis/cluster_map.hpp"
#include "weir/store/redis/cluster_nodes.hpp"
#include "weir/store/redis/link.hpp"
#include "weir/store/redis/options.hpp"
#include "weir/store/redis/request.hpp"
#include "weir/store/redis/shard_count.hpp"
#include "weir/store/redis/waiting.hpp"
#include "weir/time.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// The nodes of a cluster that serve the store's shards, each with a link, all in one strand; and
/// the commands that cannot go to one of them at the moment.
///
/// Every command is for one shard, and so for one slot. It is given to the link of the node that
/// serves that slot; a node that serves it no longer has not executed it and says where it is to
/// go. What is kept here was definitely not executed, so it may go anywhere.
class redis_cluster final : public redis_backend, public redis_switchboard {
 public:
  redis_cluster(boost::asio::any_io_executor const& executor, redis_address const& address,
                redis_options const& options, std::string process = {})
      : redis_backend{boost::asio::make_strand(executor), options,
                      std::make_shared<outage>("Redis cluster of " + redis_place_text(address),
                                               never_run),
                      std::move(process)},
        malformed_{redis_allowed_error(address)},
        nodes_{address, options_},
        asked_{options} {
    for (std::uint32_t shard = 0; shard != names_.shards(); ++shard) {
      shards_.push_back({redis_slot(names_.tag(shard)), nullptr});
    }
  }

 private:
  std::shared_ptr<redis_cluster> shared_from_this() {
    return std::static_pointer_cast<redis_cluster>(redis_backend::shared_from_this());
  }

  struct shard_place {
    std::uint16_t slot;
    redis_node* node;  // of nodes_; null: unknown
  };

  // ---------------------------------------------------------------------------- commands

  void start() override { look(); }

  void accept(std::shared_ptr<redis_request> const& r) override {
    if (closed_) return r->fail(errc::closed);
    if (!usable_) return r->fail(bad_prefix());
    if (malformed_) return r->fail(malformed_);
    if (refused_) return r->fail(refused_);
    if (nodes_.under_way() + waiting_.size() + held_.size() >= options_.max_pending) {
      return r->fail(errc::store_full);
    }
    r->give_up_at = saturating_add(system_clock{}.steady_now(), options_.offline_patience);
    route(r);
  }

  void route(std::shared_ptr<redis_request> const& r) {
    auto const* const node = shards_[r->shard()].node;
    bool const there = node != nullptr && node->link->up();
    if (node != nullptr && node->link->refusal()) return r->fail(node->link->refusal());
    // Nobody's command goes before it is certain where its keys are.
    if (there && (counted_ || r == count_)) return node->link->give(r);
    if (!there) look_soon();
    keep(r);
  }

  void keep(std::shared_ptr<redis_request> const& r) { waiting_.add(*this, r); }

  /// All that wait may try.
  void flush() {
    for (auto const& r : waiting_.take()) {
      if (r->wanted()) route(r);
    }
  }

  /// It is tried again a little later, and later still if that does not help. Until then no map
  /// does: one is asked for at each refusal, and they would follow each other.
  void hold(std::shared_ptr<redis_request> const& r) {
    r->hold();
    held_.add(*this, r);
    if (std::exchange(holding_, true)) return;
    held_for_ = std::clamp(2 * held_for_, options_.least_reconnect_wait,
                           std::max<duration>(options_.least_reconnect_wait, longest_hold));
    again_.start(strand_, saturating_add(system_clock{}.steady_now(), held_for_),
                 [self = shared_from_this()] {
                   self->holding_ = false;
                   for (auto const& held : self->held_.take()) {
                     if (held->wanted()) self->route(held);
                   }
                 });
  }

  // ---------------------------------------------------------------------------- what links say

  bool greeted(redis_link& by, redis_question const& answer) override {
    if (closed_) return false;
    if (answer.is_refused()) {
      // A server of its own; but a node that may not be asked, or is busy, is asked again.
      if (answer.refusal().find("cluster support disabled") != std::string_view::npos) {
        refuse(explained(errc::invalid_option, "the server is in no cluster: its URL begins with "
                                               "redis:// or rediss://"));
      }
      return false;
    }
    return learn(by, answer);
  }

  void opened(redis_link&) override {
    if (closed_) return;
    state_->recovered();
    count_shards();
    flush();
    settle();
  }

  void answered_at_last() override { held_for_ = {}; }

  void ended(redis_link& which) override {
    if (closed_) return;
    auto const why = which.refusal();
    // One that only told us where the others are, and does not do that any more.
    if (!is_needed(which)) nodes_.drop(which);
    look_soon();
    auto const cause = which.state().error();
    if (cause && !nodes_.one_that_is_up(0)) state_->failed(cause);
    if (!why) return;
    // All have the same user: where nobody has anything better to say, that is it.
    nodes_.one_that_is_up(0) ? flush() : refuse(why);
  }

  void missed(std::string const& channel) override { redis_backend::missed(channel); }

  void heard(redis_link& by, std::string const& key) override {
    // Whatever is published, all nodes tell: the one that serves the key is believed.
    auto const shard = names_.shard_in(key);
    if (shard && shards_[*shard].node != nullptr && shards_[*shard].node->link.get() == &by) {
      hinted(key);
    }
  }

  void not_given(std::shared_ptr<redis_request> const& r) override {
    if (closed_) return r->fail(errc::closed);
    r->anew();
    keep(r);
    look_soon();
  }

  bool refused(redis_link& by, std::shared_ptr<redis_request> const& r,
               std::string_view text) override {
    bool const moved = text.starts_with("MOVED ");
    bool const ask = text.starts_with("ASK ");
    bool const later = text.starts_with("TRYAGAIN") || text.starts_with("CLUSTERDOWN") ||
                       redis_refusal_moves(text);
    if (!moved && !ask && !later) return false;
    r->stays();
    if (later) r->refuse(redis_refused(text));
    if (closed_) {
      r->fail(errc::closed);
      return true;
    }
    r->anew();
    // While a slot moves, its keys are here or there: one that is not must not hold up the others.
    if (!moved) r->stay_alone();
    if (text.starts_with("TRYAGAIN") && r->leave_time_out()) {
      route(r);
      return true;
    }
    auto const to = later ? std::nullopt : redis_redirection(text, by.address().host());
    if (moved || later) look_soon();
    auto* const node = to ? this->node(*to) : nullptr;
    if (node != nullptr) {
      if (moved) {
        shards_[r->shard()].node = node;
        listen();
      }
      node->asked = true;
      // Nodes that do not agree send it to and fro: then they need time.
      constexpr int most = 5;
      if (++r->redirections() % most != 0) {
        if (moved) {
          route(r);
          return true;
        }
        if (node->link->up()) {
          r->ask_first();
          node->link->give(r);
          return true;
        }
      }
    }
    hold(r);
    return true;
  }

  // ---------------------------------------------------------------------------- the map

  bool learn(redis_link& from, redis_question const& answer) {
    auto const map = redis_cluster_map::read(answer.answer(), from.address().host());
    if (!map) return false;
    nodes_.know(map->everybody());
    for (auto& shard : shards_) {
      auto const* const master = map->master_of(shard.slot);
      auto* const serving = master != nullptr ? node(*master) : nullptr;
      if (serving != nullptr) shard.node = serving;
    }
    settle();
    listen();
    count_shards();
    flush();
    return true;
  }

  /// Is there a shard that cannot be reached?
  [[nodiscard]] bool troubled() const {
    return std::ranges::any_of(
        shards_, [](auto const& s) { return s.node == nullptr || !s.node->link->up(); });
  }

  /// Does this link serve a shard?
  [[nodiscard]] bool is_needed(redis_link const& link) const {
    return std::ranges::any_of(
        shards_, [&](auto const& s) { return s.node != nullptr && s.node->link.get() == &link; });
  }

  /// All shards can be reached: nobody else is needed.
  void settle() {
    if (troubled()) return;
    pause_ = {};
    nodes_.prune([this](redis_link const& link) { return is_needed(link); });
  }

  redis_node* node(redis_place const& place) {
    return nodes_.at(place, [this](redis_address const& address) {
      auto link = std::make_shared<redis_link>(std::weak_ptr{shared_from_this()}, strand_, address,
                                               asked_.options(), nodes_.state_of(address));
      // Not now: whoever asks is in the middle of something.
      post_task(strand_, [link] { link->start(); });
      return link;
    });
  }

  /// The map may be wrong: asks for another one. However often that is said, it is asked for once
  /// in a pause, which grows while nothing helps.
  void look_soon() {
    if (!runs_ || std::exchange(looking_, true)) return;
    tick_.start(strand_, std::max(system_clock{}.steady_now(), saturating_add(looked_at_, pause_)),
                [self = shared_from_this()] { self->look(); });
  }

  /// Asks a node that can be asked. Where there is none, one that was heard of is called: the first
  /// that a node says is what it knows of the cluster.
  void look() {
    if (closed_) return;
    looking_ = false;
    looked_at_ = system_clock{}.steady_now();
    pause_ = std::clamp(2 * pause_, options_.least_reconnect_wait, options_.longest_reconnect_wait);
    if (refused_) counted_ = false;
    if (auto const link = nodes_.one_that_is_up(ids_.entropy())) {
      link->ask_slots([self = shared_from_this(), link](auto const& answer) {
        if (!self->closed_) self->learn(*link, answer);
      });
    } else {
      this->node(nodes_.next_known());  // stays until every shard can be reached
    }
    if (troubled()) return look_soon();
    constexpr int beats = 15;
    constexpr duration longest = std::chrono::seconds{30};
    auto const calm = std::min(beats * options_.health_check_interval, longest);
    if (counted_ && looked_at_ >= saturating_add(counted_at_, calm)) count();
    // This also keeps the cluster alive, by what is under way, as long as it runs.
    tick_.start(strand_, saturating_add(looked_at_, calm),
                [self = shared_from_this()] { self->look(); });
  }

  // ---------------------------------------------------------------------------- the whole

  /// A shard's hints are heard from the node that serves it: what one publishes the others pass on,
  /// but not while they have lost each other.
  void listen() override {
    for (auto const& channel : channels()) {
      if (auto* const node = node_of(channel)) node->link->listen_for_others(channel);
    }
  }

  [[nodiscard]] bool hears(std::string const& channel) const override {
    auto const* const node = node_of(channel);
    return node != nullptr && node->link->hears(channel);
  }

  [[nodiscard]] redis_node* node_of(std::string const& channel) const {
    auto const shard = names_.shard_in(channel);
    return shard ? shards_[*shard].node : nullptr;
  }

  std::optional<redis_target> hint_target() override {
    return std::nullopt;
  }  // its links have them

  /// Once the first shard can be reached: is there, or let there be, the number of shards that we
  /// have?
  void count_shards() {
    if (counted_ || shards_[0].node == nullptr || !shards_[0].node->link->up()) return;
    count();
  }
  /// Also now and then: the servers may have been emptied since, and used with another number.
  void count() {
    if (count_) return;
    counted_at_ = system_clock{}.steady_now();
    count_ = std::make_shared<redis_shard_count>(
        names_, [weak = std::weak_ptr{shared_from_this()}](error_code ec) {
          if (auto const self = weak.lock()) self->counted(ec);
        });
    count_->give_up_at = steady_time::max();
    route(std::shared_ptr{count_});
  }

  void counted(error_code ec) {
    count_.reset();
    if (closed_) return;
    if (redis_refusal_stays(ec)) return refuse(ec);
    if (ec && counted_) return;
    if (ec) return look_soon();
    counted_ = true;
    refused_ = {};
    flush();
  }

  void refuse(error_code ec) {
    refused_ = state_->failed(ec);
    waiting_.fail(refused_);
    held_.fail(refused_);
  }

  void stop() override {
    waiting_.fail(make_error_code(errc::closed));
    held_.fail(make_error_code(errc::closed));
    tick_.stop();
    again_.stop();
    for (auto& shard : shards_) shard.node = nullptr;
    nodes_.clear();
    finish();
  }

  static constexpr duration longest_hold = std::chrono::seconds{1};

  error_code const malformed_;  // of the address
  id_source ids_;

  // The strand's own.
  error_code refused_;
  std::vector<shard_place> shards_;
  redis_nodes nodes_;
  redis_kept_options asked_;
  redis_waiting waiting_;
  redis_waiting held_;
  bool counted_ = false;
  steady_time counted_at_{};
  std::shared_ptr<redis_request> count_;  // under way
  bool looking_ = false;                  // soon
  steady_time looked_at_{};
  duration pause_{};
  bool holding_ = false;
  duration held_for_{};
  alarm<system_clock> tick_;
  alarm<system_clock> again_;
};

}  // namespace weir::detail

#endif
