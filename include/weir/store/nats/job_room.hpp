// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOB_ROOM_HPP
#define WEIR_STORE_NATS_JOB_ROOM_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/store/nats/job_calls.hpp"
#include "weir/store/nats/job_feed.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/reserve.hpp"
#include "weir/store/nats/store_time.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// The room that a shard's log and its images need on the server, and the commands that wait for it
/// (F61). What empties the shard is given all that is kept; what adds records waits until that is
/// whole again, or is refused. In the strand of the link.
class nats_job_room : public nats_job_feed {
 public:
  using call = std::shared_ptr<nats_job_call>;

  /// @param common the reserve of all that is in the store
  nats_job_room(std::shared_ptr<nats_link> const& link, std::uint32_t shard,
                std::shared_ptr<nats_reserve> common)
      : nats_job_feed{link, shard},
        common_{std::move(common)},
        own_{std::make_shared<nats_reserve>(link, std::to_string(shard), common_->process())},
        spare_{std::make_shared<nats_reserve>(link, std::to_string(shard) + "-spare",
                                              common_->process())} {}

 protected:
  /// The time at which a command is looked at.
  [[nodiscard]] virtual nats_now time() = 0;
  /// Keeps a command until the shard can be read.
  virtual void wait(call c) = 0;
  virtual void log(call c, nats_now now) = 0;
  /// @param full the log takes no more
  virtual void write_image(bool full) = 0;

  [[nodiscard]] bool may_add() const noexcept {
    return common_->whole() && own_->whole() && spare_->whole();
  }
  void add_later(call c) {
    if (c->waits_for_room++ >= most_waits_for_room) return c->fail(errc::store_full);
    adding_calls_.push_back(std::move(c));
    if (adding_calls_.size() == 1) try_to_add(false);
  }
  /// There is no room in the log. At the first refusal of a call an image is written, and the log
  /// is cut behind it. At the second the common reserve and that of the log are given up, at the
  /// third that of the next image; then it is tried until the servers of a cluster know of it. A
  /// call that adds records has the first of these steps only.
  void wait_for_room(std::vector<call> const& calls) {
    auto const now = system_clock{}.steady_now();
    int step = -1;
    bool only_adds = true;
    for (auto const& c : calls) {
      auto const before = images_for_room_ ? 0 : c->waits_for_room++;
      bool const adds = current() && c->adds(replica().shard(), time()) != 0;
      if (before > (adds ? 0 : most_waits_for_room) && now >= room_until_) {
        c->fail(make_error_code(errc::store_full));
        continue;
      }
      step = std::max(step, before);
      only_adds = only_adds && adds;
      c->stays();
      current() ? for_room_.push_back(c) : wait(c);
    }
    if (images_for_room_ && step >= 0 && !only_adds) images_to_drain_ = true;
    if (step < 0 || images_for_room_ || !current()) return;
    if (step == 0 && now >= no_image_until_) {
      images_for_room_ = true;
      images_to_drain_ = !only_adds;
      return write_image(true);
    }
    auto go_on = if_there([](nats_job_room& k) { k.go_on_by_room(); });
    if (step > most_waits_for_room || only_adds) {
      auto const on = link();
      if (!on || !on->later(room_until_, go_on)) go_on();
      return;
    }
    room_until_ = saturating_add(now, nats_reserve::spread);
    step == 2 ? own_->give(go_on) : give_two(*spare_, *common_, go_on);
  }

  [[nodiscard]] bool nobody_wants_room() const noexcept {
    return for_room_.empty() && adding_calls_.empty();
  }
  /// The connection is lost: those that want room wait for another one.
  void want_no_room() {
    for (auto& c : std::exchange(for_room_, {})) wait(std::move(c));
    for (auto& c : std::exchange(adding_calls_, {})) wait(std::move(c));
    images_for_room_ = images_for_adding_ = false;
  }
  void look_for_room() {
    keep_room();
    own_->look();
    spare_->look();
  }
  /// An image of the shard needs room as long as the one before it is there, and between two of
  /// them the log does. Both are kept beside what is kept for all.
  void keep_room() {
    auto const step = common_->wanted() / 2;
    if (step == 0) return;
    auto const image = replica().last_image() + replica().since_image() / 4 * 5;
    bool const small = image <= step;
    auto const want = small ? 0 : ((image + image / 16) / step + 1) * step;
    // While nothing is added images do not grow, or by little: the log needs the room.
    bool const grows = want > own_->wanted() && (own_->wanted() == 0 || may_add());
    if (!grows && want + 4 * step >= own_->wanted()) return;
    own_->want(want, step);
    spare_->want(small ? 0 : (image / 4 / step + 1) * step, step);
  }

 private:
  static constexpr int most_waits_for_room = 2;                     // of a command
  static constexpr duration image_pause = std::chrono::seconds{5};  // after one without room

  void go_on_by_room() {
    for (auto& c : std::exchange(for_room_, {})) {
      current() ? log(std::move(c), time()) : wait(std::move(c));
    }
  }
  void image_ended(bool full, bool made) override {
    auto const on = link();
    if (!on) return;
    if (!full) {
      bool const wanted = images_for_room_ || images_for_adding_;
      if (wanted) post_task(on->strand(), if_there([](nats_job_room& k) { k.write_image(true); }));
      return;
    }
    images_for_room_ = images_for_adding_ = false;
    auto const now = system_clock{}.steady_now();
    if (!made && on->up()) no_image_until_ = saturating_add(now, image_pause);
    if (made && on->options().replicas > 1) {
      room_until_ = saturating_add(now, nats_reserve::spread);
    }
    // Calls go on when there is room for the next image again: otherwise the log would take it. It
    // will be about as large.
    auto const step = common_->wanted() / 2;
    if (current() && own_->wanted() > 0 && step != 0) {
      own_->is_to_be(replica().last_image() / 16 * 17 + step / 8, step);
    }
    own_->regain(if_there([](nats_job_room& k) {
                   k.go_on_by_room();
                   if (!k.adding_calls_.empty()) k.try_to_add(true);
                 }),
                 true);
  }

  /// @param imaged an image was tried, too
  void try_to_add(bool imaged) {
    auto const over = [imaged](nats_job_room& k) { k.add_or_refuse(imaged); };
    // Much has gone since, so that there may be room now.
    bool const eased =
        current() && used_when_refused_ != 0 && replica().used() <= used_when_refused_ / 8 * 7;
    if (eased) used_when_refused_ = replica().used();
    own_->regain(if_there([over, eased](nats_job_room& k) {
                   if (!k.own_->whole()) return over(k);
                   k.common_->regain(k.if_there([over, eased](nats_job_room& l) {
                     if (!l.common_->whole()) return over(l);
                     l.spare_->regain(l.if_there(over), eased);
                   }),
                                     eased);
                 }),
                 eased);
  }
  void add_or_refuse(bool imaged) {
    auto const on = link();
    if (!on || adding_calls_.empty() || images_for_adding_) return;
    // An image of now may be a small one, and the log that is kept beside the last one long.
    bool const pays = current() && system_clock{}.steady_now() >= no_image_until_ &&
                      (replica().since_image() > replica().last_image() / 4 ||
                       2 * replica().used() < replica().used_at_image());
    if (!may_add() && !imaged && on->up() && pays) {
      images_for_adding_ = true;
      return write_image(true);
    }
    error_code why = errc::store_full;
    for (auto const& r : {common_, own_, spare_}) {
      if (!r->whole() && why != errc::store_unavailable) why = r->refusal();
    }
    for (auto& c : std::exchange(adding_calls_, {})) {
      if (!current() || !on->up()) {
        wait(std::move(c));
      } else if (may_add()) {
        log(std::move(c), time());
      } else {
        used_when_refused_ = std::max(used_when_refused_, replica().used());
        c->fail(why);
      }
    }
  }

  void give_room(int step, std::function<void()> then) override {
    if (step == 0) return give_two(*spare_, *own_, std::move(then));
    // The common reserve is not for an image that is tried only to add something.
    if (!images_for_room_ || !images_to_drain_) return then();
    common_->give(std::move(then));
  }
  static void give_two(nats_reserve& a, nats_reserve& b, std::function<void()> then) {
    a.give([b = b.weak_from_this(), then = std::move(then)] {
      auto const next = b.lock();
      next ? next->give(then) : then();
    });
  }

  /// Calls it with this, if that is still there.
  template <class F>
  [[nodiscard]] std::function<void()> if_there(F f) {
    return [weak = weak_from_this(), f] {
      if (auto const there = weak.lock()) f(static_cast<nats_job_room&>(*there));
    };
  }

  std::shared_ptr<nats_reserve> const common_;
  std::shared_ptr<nats_reserve> const own_;    // for the next image
  std::shared_ptr<nats_reserve> const spare_;  // for the log until then
  std::deque<call> for_room_;                  // in the log
  std::deque<call> adding_calls_;              // for as much room as is kept
  std::size_t used_when_refused_ = 0;
  bool images_for_room_ = false;    // an image is tried for those that wait for room
  bool images_to_drain_ = false;    // some of those add nothing
  bool images_for_adding_ = false;  // an image is tried for those that add something
  steady_time no_image_until_{};    // for want of room
  steady_time room_until_{};        // reserves that were given up may be of no use until then
};

}  // namespace weir::detail

#endif
