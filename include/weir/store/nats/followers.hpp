// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_FOLLOWERS_HPP
#define WEIR_STORE_NATS_FOLLOWERS_HPP

#include "weir/error.hpp"
#include "weir/store/nats/connection.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/socket.hpp"

#include <nats/nats.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// Who follows a subject, in the strand of the link.
class nats_feed {
 public:
  nats_feed() = default;
  nats_feed(nats_feed const&) = delete;
  nats_feed& operator=(nats_feed const&) = delete;
  virtual ~nats_feed() = default;
  /// Commands may go, and what is said from now on is heard. What was said before may be lost.
  virtual void connected() = 0;
  virtual void disconnected() = 0;
  /// Whoever was connected and is refused now will be again: nothing may go.
  virtual void refused(error_code why) = 0;
  virtual void heard(nats_reply const& message) = 0;
  /// No commands will go any more.
  virtual void closed() = 0;
};

/// Those who follow subjects, on one connection after the other. Who follows none is told of the
/// connection only. In the strand of the link.
class nats_followers {
 public:
  /// As long as somebody listens.
  /// @param on the connection that there is; null: none
  /// @return false: it has ended
  [[nodiscard]] bool add(std::string subject, std::weak_ptr<nats_feed> who, nats_socket* on) {
    all_.push_back({std::move(subject), std::move(who), nullptr});
    return on == nullptr || listen(all_.back(), *on);
  }

  /// Nothing is heard of it any more.
  void remove(nats_feed const& who) {
    for (auto& f : all_) {
      if (f.who.lock().get() != &who) continue;
      f.from.reset();
      f.who.reset();
    }
  }

  /// Listens on another connection. False: it has ended.
  [[nodiscard]] bool listen(nats_socket& on) {
    for (auto& f : all_) {
      if (!listen(f, on)) return false;
    }
    return true;
  }
  /// The connection has ended.
  void fall_silent() {
    for (auto& f : all_) f.from.reset();
  }

  /// Tells them what has come. They may end the connection, and add others.
  void hear() {
    std::erase_if(all_, [](auto const& f) { return f.who.expired(); });
    natsMsg* next = nullptr;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      while (all_[i].from && natsSubscription_NextMsg(&next, all_[i].from.get(), 0) == NATS_OK) {
        nats_owner<natsMsg> const message{next};
        if (auto const who = all_[i].who.lock()) who->heard(nats_reply{next});
      }
    }
  }

  template <class F>
  void for_each(F const& f) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (auto const who = all_[i].who.lock()) f(*who);
    }
  }

 private:
  struct follower {
    std::string subject;
    std::weak_ptr<nats_feed> who;
    nats_owner<natsSubscription> from;
  };

  [[nodiscard]] static bool listen(follower& f, nats_socket& on) {
    if (f.subject.empty() || f.who.expired()) return true;
    f.from = on.subscribe(f.subject);
    return f.from != nullptr;
  }

  std::vector<follower> all_;
};

}  // namespace weir::detail

#endif
