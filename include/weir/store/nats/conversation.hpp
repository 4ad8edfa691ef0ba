// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_CONVERSATION_HPP
#define WEIR_STORE_NATS_CONVERSATION_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/error.hpp"
#include "weir/store/nats/absence.hpp"
#include "weir/store/nats/connection.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/request.hpp"
#include "weir/store/nats/socket.hpp"
#include "weir/store/nats/violations.hpp"
#include "weir/time.hpp"

#include <boost/unordered/unordered_flat_map.hpp>
#include <nats/nats.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// The requests that were given to one connection, and what came of each. In the strand of the
/// link.
///
/// Each is told once: its answer; that it was refused, where it is certain which one was meant;
/// that there was no answer in time; or that the connection has ended.
class nats_conversation : public std::enable_shared_from_this<nats_conversation> {
 public:
  /// @param patience how long an answer is waited for; `duration::max()`: as long as it takes
  /// @param inbox what the subjects of replies begin with, up to the number of the request
  /// @param many  different ones are asked, and requests are dropped: each is marked, so that it is
  ///              always clear to which one nobody listened
  nats_conversation(nats_strand strand, std::shared_ptr<nats_socket> socket, duration patience,
                    std::string inbox, bool many = false)
      : strand_{std::move(strand)},
        socket_{std::move(socket)},
        patience_{patience},
        inbox_{std::move(inbox)},
        absence_{many},
        many_{many} {}

  /// Begins to listen for replies. False: the connection has ended.
  [[nodiscard]] bool start() {
    replies_ = socket_->subscribe(inbox_ + "*");
    return replies_ != nullptr;
  }

  void give(std::shared_ptr<nats_request> const& r) {
    if (!r->wanted()) return r->failed(errc::store_unavailable, false);
    // Not every version of the client counts headers, and a server ends the connection on which a
    // message is too large.
    if (r->size() > socket_->max_payload()) return r->failed(errc::store_full, false);
    auto const id = last_id_ + 1;
    auto const message = written(*r, inbox_ + std::to_string(id));
    if (!message) return r->failed(errc::store_unavailable, false);
    switch (socket_->publish(message.get())) {
      case nats_socket::sending::given: break;
      case nats_socket::sending::too_large: return r->failed(errc::store_full, false);
      case nats_socket::sending::refused: return r->failed(errc::store_unavailable, false);
    }
    last_id_ = r->number = id;
    given_.emplace(id, r);
    if (absence_.marking()) mark();
    if (patience_ == duration::max()) return;
    deadlines_.emplace_back(saturating_add(system_clock{}.steady_now(), patience_), id);
    if (!watching_) watch_deadlines();
  }

  /// Forgets one of them, whatever comes of it.
  void drop(std::uint64_t number) { (void)take(number); }

  /// Takes the replies that have come.
  void read() {
    natsMsg* next = nullptr;
    while (replies_) {
      auto const status = natsSubscription_NextMsg(&next, replies_.get(), 0);
      if (status == NATS_NO_RESPONDERS) {
        nobody();
        continue;
      }
      if (status != NATS_OK) break;
      nats_owner<natsMsg> const message{next};
      replied(next);
    }
    tell_absent();
  }

  /// Did the server say that nobody may listen for replies?
  [[nodiscard]] bool is_deaf(std::string_view said) const {
    return said.find("Subscription to \"" + inbox_) != said.npos;
  }
  /// The server has not done something. Whom it concerns has to be certain.
  void not_permitted(std::string_view said) {
    auto const subject = nats_refused_subject::of(said);
    if (subject.text.starts_with(inbox_)) {
      may_mark_ = false;  // a mark was not
      doubtful_up_to_.reset();
      return absence_.end();
    }
    std::uint64_t concerned = 0;
    for (auto const& [id, r] : given_) {
      if (!subject.matches(r->subject)) continue;
      if (concerned != 0 && !subject.whole) return;
      if (concerned == 0 || id < concerned) concerned = id;
    }
    if (auto const r = take(concerned)) r->failed(nats_not_permitted(), false);
  }

  /// The connection has ended.
  void end() {
    replies_.reset();
    timeout_.stop();
    deadlines_.clear();
    absent_ = 0;
    auto const all = std::exchange(given_, {});
    for (auto const& [id, r] : all) r->failed(errc::outcome_unknown, true);
  }

 private:
  static constexpr char mark_of = 'm';  // and the number of a request: a message to ourselves

  /// Null: there is no memory for it.
  [[nodiscard]] static nats_owner<natsMsg> written(nats_request const& r, std::string const& to) {
    auto message = nats_message(r.subject, r.data, to.c_str());
    auto const header = [&](char const* name, std::string const& value) {
      if (message && natsMsgHeader_Set(message.get(), name, value.c_str()) != NATS_OK) {
        message.reset();
      }
    };
    if (r.expected) header("Nats-Expected-Last-Subject-Sequence", std::to_string(*r.expected));
    if (!r.note.empty()) header(nats_note_header, r.note);
    if (r.ttl != 0) header("Nats-TTL", std::to_string(r.ttl) + "s");
    return message;
  }

  void replied(natsMsg* message) {
    std::string_view const subject{natsMsg_GetSubject(message)};
    auto digits = subject.substr(std::min(inbox_.size(), subject.size()));
    bool const marker = digits.starts_with(mark_of);
    if (marker) digits.remove_prefix(1);
    std::uint64_t id = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), id);
    if (marker) return marked(id);
    auto const found = given_.find(id);
    if (found == given_.end()) return;
    auto const r = found->second;
    r->answered(nats_reply{message});
    if (r->done()) drop(id);
  }

  [[nodiscard]] std::shared_ptr<nats_request> take(std::uint64_t id) {
    auto const found = given_.find(id);
    if (found == given_.end()) return nullptr;
    auto const r = std::move(found->second);
    given_.erase(found);
    if (absent_ != 0 && id <= absent_up_to_) --open_;
    drop_answered();
    return r;
  }

  // ---------------------------------------------------------------------------- those without one

  /// One timer for all: they come in order.
  void watch_deadlines() {
    watching_ = true;
    timeout_.start(strand_, deadlines_.front().first, [weak = weak_from_this()] {
      if (auto const self = weak.lock()) self->time_out();
    });
  }
  void time_out() {
    auto const now = system_clock{}.steady_now();
    watching_ = false;
    bool any = false;
    while (!deadlines_.empty() && deadlines_.front().first <= now) {
      auto const id = deadlines_.front().second;
      deadlines_.pop_front();
      if (auto const r = take(id)) {
        any = true;
        r->failed(errc::timed_out, true);
      }
    }
    if (any) doubt();
    drop_answered();
    if (!deadlines_.empty() && !watching_) watch_deadlines();
  }
  void drop_answered() {
    while (!deadlines_.empty() && !given_.contains(deadlines_.front().second)) {
      deadlines_.pop_front();
    }
  }

  // ------------------------------------------------------------------------ those nobody listens
  // to

  /// Nobody listens where a request went: JetStream is off, or the stream has no leader or is gone.
  void nobody() {
    auto missed = absence_.missed();
    bool const clear = !many_ && !doubtful_up_to_;
    if (clear && given_.size() == 1) missed = given_.begin()->first;
    if (missed) {
      if (auto const r = take(*missed)) r->failed(errc::store_unavailable, false);
    } else if (clear && !absence_.marking() && may_mark_) {
      absence_.begin(last_id_);
      mark();
    }
  }
  void marked(std::uint64_t last) {
    if (many_) {
      auto const r = absence_.passed_alone(last) ? take(last) : nullptr;
      if (r) r->failed(errc::store_unavailable, false);
      return;
    }
    auto const unclear = absence_.passed(last);
    if (doubtful_up_to_) {  // what is not told apart waits for its time
      if (last >= *doubtful_up_to_) doubtful_up_to_.reset();
    } else if (unclear != 0) {
      absent_ += unclear;
      absent_up_to_ = last;
      open_ = static_cast<std::size_t>(
          std::ranges::count_if(given_, [last](auto const& g) { return g.first <= last; }));
    }
  }
  /// Those to which nobody listened are the ones that are left when all others have their answers.
  void tell_absent() {
    if (absent_ == 0 || open_ > absent_) return;
    std::vector<std::uint64_t> absent;
    for (auto const& [id, r] : given_) {
      if (id <= absent_up_to_) absent.push_back(id);
    }
    absent_ = 0;
    for (auto const id : absent) {
      if (auto const r = take(id)) r->failed(errc::store_unavailable, false);
    }
  }
  /// Some had no answer in time, so what is heard until the next marker may be of them.
  void doubt() {
    absent_ = 0;
    if (!may_mark_) return;
    doubtful_up_to_ = last_id_;
    mark();
  }
  void mark() {
    auto const message = nats_message(inbox_ + mark_of + std::to_string(last_id_));
    bool const given = message && socket_->publish(message.get()) == nats_socket::sending::given;
    if (!given) absence_.end();
  }

  nats_strand const strand_;
  std::shared_ptr<nats_socket> const socket_;
  duration const patience_;
  std::string const inbox_;
  nats_owner<natsSubscription> replies_;
  std::uint64_t last_id_ = 0;
  boost::unordered_flat_map<std::uint64_t, std::shared_ptr<nats_request>> given_;
  std::deque<std::pair<steady_time, std::uint64_t>> deadlines_;
  bool watching_ = false;
  nats_absence absence_;
  bool const many_;
  bool may_mark_ = true;
  std::size_t absent_ = 0;          // to so many, of those that were given up to a marker,
  std::uint64_t absent_up_to_ = 0;  // nobody listened,
  std::size_t open_ = 0;            // and so many of them have no answer yet
  std::optional<std::uint64_t> doubtful_up_to_;
  alarm<system_clock> timeout_;
};

}  // namespace weir::detail

#endif
