// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_BALANCER_HPP
#define WEIR_STORE_NATS_BALANCER_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/store/nats/balance.hpp"
#include "weir/store/nats/followers.hpp"
#include "weir/store/nats/home.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/place.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/request.hpp"
#include "weir/store/nats/table.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// Takes over parts from processes that own more than this one, until all have about as many
/// (balance.hpp says when). Parts of the keys and shards of the jobs are counted apart.
///
/// It knows the owners by their records, of which it reads one now and then, and by what new owners
/// say. So it asks little, and knows some later than others; a part is taken only if its record,
/// read just before, still says so. In the strand of the link.
class nats_balancer final : public nats_feed, public std::enable_shared_from_this<nats_balancer> {
 public:
  using find_place = std::function<std::shared_ptr<nats_place>(std::uint32_t part)>;

  /// @param user who has the places: it balances as long as that is there
  /// @param place null: it is not
  nats_balancer(std::shared_ptr<nats_link> const& link, std::shared_ptr<nats_home> home,
                std::weak_ptr<void> user, find_place place)
      : link_{link},
        home_{std::move(home)},
        user_{std::move(user)},
        place_{std::move(place)},
        claims_(home_->parts()),
        taken_(home_->parts()),
        reluctance_(home_->parts()),
        step_{link->options().health_check_interval} {}

  void start() {
    if (auto const on = link_.lock()) on->follow({}, shared_from_this());
  }

  /// Somebody says that it has become the owner of a part.
  void heard_of(std::uint32_t part, std::string_view claim) {
    if (part < claims_.size()) claims_[part] = claim;
  }

 private:
  enum class stage : std::uint8_t {
    loading,  ///< its shard is read
    reading,  ///< so is the record of its owner
    taking,   ///< it is claimed
  };
  struct candidate {
    std::uint32_t part;
    stage at;
    steady_time since;
  };

  // In steps, each of which is `health_check_interval` on average.
  static constexpr int settling = 10;         // programs that live for a moment take nothing
  static constexpr int pace = 4;              // between two reads, when all records are known
  static constexpr int first_wait = 30;       // after a part was lost that was taken
  static constexpr int loading_at_most = 60;  // of a shard

  // --------------------------------------------------------------------------- the connection

  void connected() override {
    stop();
    claims_.assign(claims_.size(), {});
    next_ = static_cast<std::uint32_t>(random_.entropy() % claims_.size());
    unread_ = claims_.size();
    wait(settling * step_);
  }
  void disconnected() override { stop(); }
  void refused(error_code) override { stop(); }
  void closed() override {
    candidate_.reset();
    stop();
  }
  void heard(nats_reply const&) override {}

  void stop() {
    alarm_.stop();
    ++epoch_;
    reading_ = false;
    give_up();
    taken_.assign(taken_.size(), {});
  }

  // ---------------------------------------------------------------------------------- its steps

  /// @param mean half of it, or up to that much more: processes do not act in step
  void wait(duration mean) {
    auto const on = link_.lock();
    if (!on) return;
    constexpr std::int64_t parts = 1024;
    auto const some = static_cast<std::int64_t>(random_.entropy() % parts);
    auto const until = saturating_add(system_clock{}.steady_now(), mean / 2 + mean / parts * some);
    alarm_.start(on->strand(), until, [self = shared_from_this()] { self->step(); });
  }

  void step() {
    auto const on = link_.lock();
    // Where this process may own nothing it may on another connection.
    if (!on || !on->up() || !on->may_own() || user_.expired()) return;
    bool const sure = look_back(*on);
    if (sure && !reading_ && !candidate_) choose(*on);
    if (candidate_) {
      go_on(*on);
      return wait(step_ / 4);
    }
    bool const all_known = unread_ == 0;
    if (!all_known) --unread_;
    read(*on, std::exchange(next_, (next_ + 1) % static_cast<std::uint32_t>(claims_.size())));
    wait(all_known ? pace * step_ : step_);
  }

  /// Looks what has become of the parts that were taken. False: that is to be read first.
  bool look_back(nats_link const& on) {
    auto const now = system_clock{}.steady_now();
    bool sure = true;
    for (std::uint32_t part = 0; part != taken_.size(); ++part) {
      if (!taken_[part]) continue;
      if (on.owns(part)) {
        reluctance_[part].kept(*taken_[part], now);
        all_reluctance_.kept(*taken_[part], now);
        continue;
      }
      if (is_own(claims_[part])) {  // it is not known who has it
        next_ = part;
        sure = false;
        continue;
      }
      taken_[part].reset();
      // Somebody could not hear this process, or could not in time.
      if (!nats_claims::is_for_balance(claims_[part])) lost(part, now);
    }
    return sure;
  }
  [[nodiscard]] bool is_own(std::string_view claim) const {
    return nats_claims::process_of(claim) == home_->claims().process();
  }
  void lost(std::uint32_t part, steady_time now) {
    reluctance_[part].lost(now, first_wait * step_);
    all_reluctance_.lost(now, first_wait * step_);
  }

  void choose(nats_link const& on) {
    auto const now = system_clock{}.steady_now();
    if (!all_reluctance_.may_take(now)) return;
    bool const shards_first = random_.entropy() % 2 == 0;
    auto const may_take = [&](std::uint32_t part) { return reluctance_[part].may_take(now); };
    for (bool const shards : {shards_first, !shards_first}) {
      if (auto const part = part_to_take(on, shards, may_take)) {
        candidate_ = {*part, stage::loading, now};
        return;
      }
    }
  }
  template <class MayTake>
  [[nodiscard]] std::optional<std::uint32_t> part_to_take(nats_link const& on, bool shards,
                                                          MayTake const& may_take) const {
    std::uint32_t const first = shards ? nats_key_parts : 0;
    std::uint32_t const last = shards ? home_->parts() : nats_key_parts;
    std::vector<std::string_view> owners;
    for (auto part = first; part != last; ++part) {
      std::string_view const claim = claims_[part];
      if (on.owns(part)) {
        owners.emplace_back(home_->claims().process());
      } else if (is_own(claim)) {
        owners.emplace_back();  // it was, and somebody else has it by now
      } else {
        owners.push_back(nats_claims::process_of(claim));
      }
    }
    auto const chosen = nats_part_to_take(
        owners, home_->claims().process(),
        [&](std::size_t i) { return may_take(first + static_cast<std::uint32_t>(i)); },
        random_.entropy());
    if (!chosen) return std::nullopt;
    return first + static_cast<std::uint32_t>(*chosen);
  }

  // ------------------------------------------------------------------------------- a candidate

  void go_on(nats_link& on) {
    auto const part = candidate_->part;
    auto const place = place_(part);
    auto const now = system_clock{}.steady_now();
    if (!place) return give_up();
    switch (candidate_->at) {
      case stage::loading:
        if (place->is_looking()) return;
        if (!place->may_be_taken()) {
          if (!on.owns(part)) reluctance_[part].lost(now, first_wait * step_);
          return give_up();
        }
        // Commands do not wait for it then.
        home_->prepare(part);
        if (!home_->is_ready(part)) {
          if (!home_->refusal(part) && now - candidate_->since < loading_at_most * step_) return;
          reluctance_[part].lost(now, first_wait * step_);
          return give_up();
        }
        candidate_->at = stage::reading;
        return read(on, part);
      case stage::reading:
        if (!reading_) give_up();  // it could not be read
        return;
      case stage::taking: return;
    }
  }
  void give_up() {
    auto const was = std::exchange(candidate_, std::nullopt);
    auto const on = link_.lock();
    if (was && on && !on->owns(was->part)) home_->leave(was->part);
  }

  // -------------------------------------------------------------------------------- the records

  void read(nats_link& on, std::uint32_t part) {
    if (std::exchange(reading_, true)) return;
    auto const q =
        std::make_shared<nats_question>([weak = weak_from_this(), part, epoch = epoch_](
                                            error_code ec, nats_reply const* reply, bool) {
          auto const self = weak.lock();
          if (!self || epoch != self->epoch_) return;
          self->reading_ = false;
          if (ec) return;
          if (auto const record = read_record(*reply); record.has_value()) {
            self->found(part, *record);
          }
        });
    q->subject = on.names().direct_get(on.names().owner(part));
    on.submit(q);
  }
  void found(std::uint32_t part, nats_record const& record) {
    auto const on = link_.lock();
    if (!on) return;
    claims_[part] = nats_place::owner_in(record.value);
    // Its own record may name it still when it has given the part up.
    if (is_own(claims_[part]) && !on->owns(part)) taken_[part].reset();
    bool const reads_candidate = candidate_ && candidate_->part == part;
    auto const place = on->owns(part) || reads_candidate ? place_(part) : nullptr;
    if (!place) return;
    place->heard_of_owner(claims_[part]);
    if (!reads_candidate) return;
    // Others may have been faster.
    auto const this_one = [part](std::uint32_t p) { return p == part; };
    bool const still = part_to_take(*on, part >= nats_key_parts, this_one).has_value();
    candidate_->at = stage::taking;
    auto const taken = [weak = weak_from_this(), part, epoch = epoch_](bool done) {
      auto const self = weak.lock();
      if (!self || epoch != self->epoch_) return;
      if (!done) {
        self->reluctance_[part].lost(system_clock{}.steady_now(), first_wait * self->step_);
        return self->give_up();
      }
      self->taken_[part] = system_clock{}.steady_now();
      self->candidate_.reset();
    };
    if (!still || !place->take(record.sequence, taken)) give_up();
  }

  std::weak_ptr<nats_link> const link_;
  std::shared_ptr<nats_home> const home_;
  std::weak_ptr<void> const user_;
  find_place const place_;
  std::vector<std::string> claims_;                // of all parts, as far as they are known
  std::vector<std::optional<steady_time>> taken_;  // from others, when
  std::vector<nats_reluctance> reluctance_;
  nats_reluctance all_reluctance_;
  duration const step_;
  std::uint32_t next_ = 0;  // whose record is read next
  std::size_t unread_ = 0;  // records, on this connection
  bool reading_ = false;
  std::uint64_t epoch_ = 0;  // of the connection
  std::optional<candidate> candidate_;
  id_source random_;
  alarm<system_clock> alarm_;
};

}  // namespace weir::detail

#endif
