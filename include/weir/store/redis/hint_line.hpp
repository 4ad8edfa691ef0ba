// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_HINT_LINE_HPP
#define WEIR_STORE_REDIS_HINT_LINE_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/reconnect_pace.hpp"
#include "weir/error.hpp"
#include "weir/log.hpp"
#include "weir/store/redis/dial.hpp"
#include "weir/store/redis/options.hpp"
#include "weir/store/redis/session.hpp"
#include "weir/time.hpp"

#include <boost/system/system_error.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// Owner interface of a hint line.
class redis_hint_line_owner {
 public:
  redis_hint_line_owner() = default;
  redis_hint_line_owner(redis_hint_line_owner const&) = delete;
  redis_hint_line_owner& operator=(redis_hint_line_owner const&) = delete;
  virtual ~redis_hint_line_owner() = default;

  /// A server that publishes the hints. Empty: there is none at the moment.
  [[nodiscard]] virtual std::optional<redis_target> hint_target() = 0;
  /// What was published on this channel until now was missed: its listeners are to look.
  virtual void missed(std::string const& channel) = 0;
  /// Something was published about this key, or waiter.
  virtual void hinted(std::string const& key) = 0;
  /// The server's user has no right to subscribe, as this text says.
  virtual void denied(std::string_view) {}
};

/// The subscription to hints, on a connection of its own, which is replaced when it ends. In its
/// owner's strand.
///
/// A server holds a connection that subscribes to limits that are made for messages (of Redis' own:
/// 32 MiB waiting to be read, or 8 MiB for a minute). On the connection of the commands, a few
/// answers with jobs exceed them, and it would end with all that is under way there (F60).
class redis_hint_line final : public redis_session_owner,
                              public std::enable_shared_from_this<redis_hint_line> {
 public:
  using executor_type = redis_session::executor_type;

  redis_hint_line(executor_type strand, redis_options const& options,
                  std::weak_ptr<redis_hint_line_owner> owner)
      : strand_{std::move(strand)},
        options_{options},
        owner_{std::move(owner)} {
    options_.prefix = {};  // the caller's
  }

  /// Subscribes to a channel from now on. The first one brings the connection, and others after
  /// it, until `close` or until the owner is gone.
  void want(std::string const& channel) {
    if (std::ranges::find(channels_, channel) != channels_.end()) return;
    channels_.push_back(channel);
    if (channels_.size() == 1) return connect();
    if (auto const session = session_.lock()) session->subscribe(channel);
  }

  /// Does what is published there arrive?
  [[nodiscard]] bool hears(std::string const& channel) const noexcept {
    return std::ranges::find(heard_, channel) != heard_.end();
  }

  /// Makes a connection.
  void connect() {
    auto const owner = owner_.lock();
    if (closed_ || !owner) return;
    auto const target = owner->hint_target();
    if (!target) return retry();
    auto const session = std::make_shared<redis_session>(strand_, shared_from_this(), options_);
    try {
      session->start(*target, channels_);
    } catch (boost::system::system_error const&) {  // such as an unreadable file of authorities
      return retry();
    }
    session_ = session;
  }

  /// The server may be another one: connects anew.
  void renew() {
    if (auto const session = session_.lock()) return session->hang_up();
    pause_.stop();
    connect();
  }

  void close() {
    closed_ = true;
    pause_.stop();
    if (auto const session = session_.lock()) session->hang_up();
  }

 private:
  void opened() override { pace_.reset(); }

  void subscribed(std::string const& channel) override {
    told_ = false;
    heard_.push_back(channel);
    if (auto const owner = owner_.lock()) owner->missed(channel);
  }

  void published(std::string const& key) override {
    if (auto const owner = owner_.lock()) owner->hinted(key);
  }

  /// It may be given the right, of which servers say nothing: so it is asked for once more, later.
  void denied(std::string_view text) override {
    constexpr int beats = 15;
    if (auto const owner = owner_.lock()) owner->denied(text);
    pause_.start(
        strand_,
        saturating_add(system_clock{}.steady_now(), beats * options_.health_check_interval),
        [self = shared_from_this()] { self->renew(); });
  }

  void ended(error_code, std::string_view cause) override {
    bool const renews = cause.empty();  // we have hung up
    session_.reset();
    heard_.clear();
    if (closed_) return;
    if (auto const owner = owner_.lock();
        owner && owner->hint_target() && !renews && !std::exchange(told_, true)) {
      tell_log(log::level::warning, log::topic::hints,
               "Redis store: no hints for now, so who waits looks every poll_interval: " +
                   std::string{cause});
    }
    retry();
  }

  void retry() {
    pause_.start(strand_, saturating_add(system_clock{}.steady_now(), pace_.next()),
                 [self = shared_from_this()] { self->connect(); });
  }

  executor_type const strand_;
  redis_options options_;
  std::vector<std::string> channels_;
  std::vector<std::string> heard_;  // those that the server has confirmed
  std::weak_ptr<redis_hint_line_owner> const owner_;
  std::weak_ptr<redis_session> session_;
  bool closed_ = false;
  bool told_ = false;  // that there are none
  reconnect_pace pace_{options_.least_reconnect_wait, options_.longest_reconnect_wait};
  alarm<system_clock> pause_;
};

}  // namespace weir::detail

#endif
