// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_RESERVE_HPP
#define WEIR_STORE_NATS_RESERVE_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/error.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/request.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
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

/// Room that is kept for the time when there is none (F61).
///
/// At the limit of an account or of a server every write is refused: that of a record also if it
/// takes the place of a longer one, and so is that of an image, without which a log cannot be cut.
/// So there are records that say nothing. They are removed when there is no room for something that
/// empties the store, and before all of them are there again nothing is added to it. In the strand
/// of the link.
class nats_reserve : public std::enable_shared_from_this<nats_reserve> {
 public:
  using done = std::function<void()>;

  /// So long after room was made another server of a cluster may not know of it: they tell each
  /// other twice in three seconds, and each of them has a part of it.
  static constexpr duration spread = std::chrono::seconds{5};

  /// @param name a token of the subjects of its records
  /// @param process a token, by which this process knows what it has said itself
  nats_reserve(std::shared_ptr<nats_link> const& link, std::string name, std::string process)
      : link_{link},
        name_{std::move(name)},
        process_{std::move(process)} {}
  nats_reserve(nats_reserve const&) = delete;
  nats_reserve& operator=(nats_reserve const&) = delete;

  /// May anything be added to the store, for all that is known here?
  [[nodiscard]] bool whole() const noexcept {
    return wanted_ == 0 || forbidden_ || (looked_ && !gone_ && !refused_);
  }
  /// Why not: there was no room for it, or nobody has said whether there is.
  [[nodiscard]] error_code refusal() const noexcept {
    return unheard_ ? errc::store_unavailable : errc::store_full;
  }
  [[nodiscard]] std::size_t wanted() const noexcept { return wanted_; }
  [[nodiscard]] std::string const& process() const noexcept { return process_; }

  /// It has to be of so many bytes from here on.
  /// @param record bytes of each of its records, at most; always the same
  void is_to_be(std::size_t bytes, std::size_t record) noexcept {
    wanted_ = bytes;
    record_ = record;
  }
  /// The same, and it is made so: what is missing is written, and of far too much all is removed
  /// first.
  void want(std::size_t bytes, std::size_t record) {
    is_to_be(bytes, record);
    if (!looked_) return look();
    if (has_too_much()) {
      return remove([weak = weak_from_this()] {
        if (auto const self = weak.lock()) self->regain([] {});
      });
    }
    if (!gone_ && !refused_) fill();
  }

  /// These of its records are there.
  void found(std::vector<std::size_t> const& numbers) {
    if (filling_ || giving_) return;
    there_.clear();
    for (auto const n : numbers) note(n);
    auto const on = link_.lock();
    bool const first = !std::exchange(looked_, true);
    if (!on || !missing()) {
      was_whole_ = true;
      return fill();
    }
    // Somebody has removed it; or it was never there, and is made by those who stay.
    gone_ = gone_ || was_whole_ || on->may_own();
    if (!adders_.empty() || (first && on->may_own())) wait();
  }
  /// Finds out how many there are.
  void look() {
    auto const on = link_.lock();
    if (!on || !on->up() || std::exchange(looking_, true)) return;
    auto const q = std::make_shared<nats_question>(
        [self = shared_from_this()](error_code ec, nats_reply const* reply, bool) {
          self->looking_ = false;
          auto const info = ec ? nats_stream_info{.error = 1} : read_stream_info(reply->data());
          self->unheard_ = info.error != 0;
          self->unheard_ ? self->tell(self->adders_) : self->found(info.numbers);
        });
    q->subject = on->names().info();
    q->data = on->names().counting(on->names().reserve(name_));
    on->submit(q);
  }
  /// A process has removed some of what is kept: for itself.
  void heard_of(std::string_view process) noexcept {
    if (process == process_) return;
    looked_ = false;
    put_off(longest);
  }

  /// Gives it up. `then` is called when that is done, or cannot be done.
  void give(done then) {
    auto const now = system_clock{}.steady_now();
    bool const just_given = gone_ && there_.empty() && !filling_ && now < given_until_;
    if (just_given) {
      put_off(shortest);
      return then();
    }
    needed_ = true;
    remove(std::move(then));
  }

  /// Tries to have all of it again. `then` is called when that is done, or there is no room for it,
  /// or was none a moment ago.
  /// @param at_once however long ago that was
  void regain(done then, bool at_once = false) {
    auto const on = link_.lock();
    if (!on || !on->up() || whole()) return then();
    bool const soon = saturating_sub(again_at_, system_clock{}.steady_now()) <= shortest;
    if (!at_once && !soon) return then();
    adders_.push_back(std::move(then));
    if (filling_ || giving_) return;
    if (!looked_) return look();
    if (at_once) return fill();
    wait();
  }

 private:
  static constexpr std::size_t most = 256U << 10U;  // bytes of a record
  static constexpr std::size_t headers = 512;       // and what it has beside them, at most
  static constexpr std::size_t few = 16;            // records
  static constexpr std::size_t limit = 1U << 20U;   // records
  // Between two tries: each that is refused doubles it, where it was a large one.
  static constexpr duration shortest = std::chrono::milliseconds{250};
  static constexpr duration longest = std::chrono::seconds{1};

  [[nodiscard]] std::size_t record_size() noexcept {
    auto const on = link_.lock();
    if (on && on->max_payload() != 0) payload_ = on->max_payload();
    auto const room = std::max(payload_, 2 * headers) - headers;
    return std::max<std::size_t>(std::min({record_, room, most}), 1);
  }
  [[nodiscard]] std::size_t records_wanted() noexcept {
    auto const size = record_size();
    return (wanted_ + size - 1) / size;
  }
  [[nodiscard]] bool has_too_much() noexcept {
    return wanted_ == 0 ? !there_.empty() : there_.size() > 2 * records_wanted() + few;
  }
  void note(std::size_t number) {
    if (number >= limit) return;
    if (there_.size() <= number) there_.resize(number + 1);
    there_[number] = true;
  }
  /// The first record that is not there; empty: all are.
  [[nodiscard]] std::optional<std::size_t> missing() noexcept {
    auto const all = records_wanted();
    auto const known = std::min(all, there_.size());
    auto const end = there_.begin() + static_cast<std::ptrdiff_t>(known);
    auto const n = static_cast<std::size_t>(std::find(there_.begin(), end, false) - there_.begin());
    return n == all ? std::nullopt : std::optional{n};
  }

  void remove(done then) {
    auto const on = link_.lock();
    if (!on) return then();
    gone_ = true;
    takers_.push_back(std::move(then));
    if (std::exchange(giving_, true)) return;
    // All others are to know before there is room: it is not theirs.
    if (std::exchange(needed_, false)) {
      on->tell(on->names().hint(on->names().reserves() + process_));
    }
    auto const q = std::make_shared<nats_question>(
        [self = shared_from_this()](error_code ec, nats_reply const* reply, bool) {
          self->removed(!ec && nats_json::error(nats_json::parse(reply->data())) == 0);
        });
    q->subject = on->names().purge();
    q->data = on->names().removing(on->names().reserve(name_));
    on->submit(q);
  }
  void fill() {
    auto const on = link_.lock();
    if (filling_ || giving_) return;
    auto const next = missing();
    if (!next) {
      gone_ = refused_ = false;
      // Somebody has removed some of it meanwhile.
      if (!looked_ && !adders_.empty()) return look();
    }
    if (!on || !on->up() || !next) return tell(adders_);
    filling_ = true;
    auto const q =
        std::make_shared<nats_question>([self = shared_from_this(), of = on->connection(),
                                         n = *next](error_code ec, nats_reply const* reply, bool) {
          self->filled(n, ec ? ec : read_written(reply->data()).failed, of);
        });
    q->subject = on->names().reserve(name_, *next);
    q->data.assign(record_size(), '\0');
    on->submit(q);
  }
  void filled(std::size_t number, error_code ec, std::uint64_t connection) {
    filling_ = false;
    auto const on = link_.lock();
    if (giving_) return;
    bool const kept = !ec && on && on->connection() == connection;
    unheard_ = !kept && ec != errc::store_full;
    if (kept) {
      note(number);
      pause_ = shortest;
      return fill();
    }
    refused_ = ec == errc::store_full;
    forbidden_ = ec == nats_not_permitted();
    gone_ = gone_ || !refused_;
    if (refused_) {
      put_off(pause_);
      if (wanted_ > few * most) pause_ = std::min(2 * pause_, longest);
    }
    tell(adders_);
    // A part of what it was would only be in the way of what it was given up for.
    if (refused_ && gone_ && !there_.empty()) remove([] {});
  }
  void removed(bool is_gone) {
    giving_ = false;
    if (is_gone) {
      there_.clear();
      given_until_ = saturating_add(system_clock{}.steady_now(), shortest);
    }
    put_off(shortest);
    tell(takers_);
    if (!adders_.empty()) wait();
  }
  void put_off(duration pause) {
    again_at_ = std::max(again_at_, saturating_add(system_clock{}.steady_now(), pause));
  }
  /// Not put off any more: who adds waits no longer than that.
  void wait() {
    auto const on = link_.lock();
    if (!on) return tell(adders_);
    if (std::exchange(waiting_, true)) return;
    timer_.start(on->strand(), again_at_, [self = shared_from_this()] {
      self->waiting_ = false;
      self->fill();
    });
  }
  static void tell(std::vector<done>& whom) {
    for (auto const& then : std::exchange(whom, {})) then();
  }

  std::weak_ptr<nats_link> const link_;
  std::string const name_;
  std::string const process_;
  std::size_t wanted_ = 0;
  std::size_t record_ = most;
  std::size_t payload_ = 0;  // that the server takes
  std::vector<bool> there_;  // records
  bool looked_ = false;      // how many there are
  bool looking_ = false;
  bool was_whole_ = false;
  bool gone_ = false;       // some of it was removed, or was never there, for all that is known
  bool refused_ = false;    // there was no room for more of it
  bool unheard_ = false;    // or it was not heard whether there is
  bool forbidden_ = false;  // who may not keep one does without
  bool filling_ = false;
  bool giving_ = false;
  bool needed_ = false;  // the room that is made
  bool waiting_ = false;
  std::vector<done> takers_;  // wait until it is given up
  std::vector<done> adders_;  // wait until it is whole
  duration pause_ = shortest;
  steady_time again_at_{};
  steady_time given_until_{};
  alarm<system_clock> timer_;
};

}  // namespace weir::detail

#endif
