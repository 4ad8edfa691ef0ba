// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_TABLE_HPP
#define WEIR_STORE_NATS_TABLE_HPP

#include "weir/detail/hint_line.hpp"
#include "weir/detail/string_hash.hpp"
#include "weir/error.hpp"
#include "weir/rule/shards.hpp"
#include "weir/store/nats/buckets.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/locks.hpp"
#include "weir/store/nats/permits.hpp"
#include "weir/store/nats/record.hpp"
#include "weir/store/nats/reserve.hpp"
#include "weir/store/nats/waits.hpp"
#include "weir/time.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir::detail {

template <class State, class C>
concept nats_state_for = requires(State& s, C const& c) { s.apply(c, time_point{}, duration{}); };

/// The record that a command is about; void: none.
template <class C>
using nats_state_of = std::conditional_t<
    nats_state_for<nats_permits, C>, nats_permits,
    std::conditional_t<nats_state_for<nats_lock, C>, nats_lock,
                       std::conditional_t<nats_state_for<nats_bucket, C>, nats_bucket, void>>>;

/// Keys are in so many parts, each of which has an owner (place.hpp).
inline constexpr std::uint32_t nats_key_parts = 8;

[[nodiscard]] inline std::uint32_t nats_part_of(std::string_view key) noexcept {
  return rule::shard_of(key, nats_key_parts);
}

/// The keepers of the records of one kind that this process has to do with.
template <class Keeper>
class nats_keepers {
 public:
  [[nodiscard]] std::shared_ptr<Keeper> find(std::string const& subject) const {
    auto const found = keepers_.find(subject);
    return found == keepers_.end() ? nullptr : found->second;
  }

  template <class F>
  void for_each(F const& f) {
    for (auto const& [subject, keeper] : keepers_) f(*keeper);
  }

  [[nodiscard]] std::shared_ptr<Keeper> of(std::shared_ptr<nats_link> const& link,
                                           std::shared_ptr<nats_reserve> const& reserve,
                                           std::string subject, std::uint32_t part) {
    if (auto const found = find(subject)) return found;
    if (keepers_.size() >= crowded_) {
      boost::unordered::erase_if(keepers_, [](auto const& k) { return k.second->idle(); });
      // What is not idle is bounded by the commands under way.
      crowded_ = keepers_.size() + link->options().max_remembered;
    }
    if (crowded_ == 0) crowded_ = link->options().max_remembered;
    auto made = std::make_shared<Keeper>(link, reserve, subject, part);
    keepers_.emplace(std::move(subject), made);
    return made;
  }

 private:
  boost::unordered_flat_map<std::string, std::shared_ptr<Keeper>, string_hash> keepers_;
  std::size_t crowded_ = 0;
};

/// All keepers of a store. In the strand of the link.
class nats_table final : public nats_hinted, public std::enable_shared_from_this<nats_table> {
 private:
  template <class State>
  [[nodiscard]] auto of(std::string_view key) {
    auto subject = link_->names().record(State::kind, key);
    auto const part = nats_part_of(key);
    if constexpr (std::is_same_v<State, nats_permits>) {
      return permits_.of(link_, reserve_, std::move(subject), part);
    } else if constexpr (std::is_same_v<State, nats_lock>) {
      return locks_.of(link_, reserve_, std::move(subject), part);
    } else {
      return buckets_.of(link_, reserve_, std::move(subject), part);
    }
  }

 public:
  nats_table(std::shared_ptr<nats_link> link, std::shared_ptr<nats_reserve> reserve)
      : link_{std::move(link)},
        reserve_{std::move(reserve)} {}

  template <class State>
  void submit(std::shared_ptr<nats_step<State>> step) {
    if (!link_->usable()) return step->fail(nats_bad_prefix());
    of<State>(step->key())->submit(std::move(step));
  }

  void wait(std::string_view key, std::string holder, hint_waiter op) {
    of<nats_permits>(key)->wait(std::move(holder), std::move(op));
  }

  /// Wakes who waits for a permit of that part.
  void leave(std::uint32_t part) {
    permits_.for_each([part](nats_permit_keeper& k) { k.leave(part); });
  }

  void hinted(std::string const& record) override {
    if (auto const reserves = link_->names().reserves(); record.starts_with(reserves)) {
      return reserve_->heard_of(std::string_view{record}.substr(reserves.size()));
    }
    if (auto const keeper = permits_.find(record)) keeper->hinted();
  }

 private:
  std::shared_ptr<nats_link> const link_;
  std::shared_ptr<nats_reserve> const reserve_;
  nats_keepers<nats_permit_keeper> permits_;
  nats_keepers<nats_keeper<nats_lock>> locks_;
  nats_keepers<nats_keeper<nats_bucket>> buckets_;
};

}  // namespace weir::detail

#endif
