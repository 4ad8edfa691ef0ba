// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_SENTINEL_WATCH_HPP
#define WEIR_STORE_REDIS_SENTINEL_WATCH_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/reconnect_pace.hpp"
#include "weir/detail/whole_number.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/cluster_map.hpp"
#include "weir/store/redis/dial.hpp"
#include "weir/store/redis/hosts.hpp"
#include "weir/store/redis/options.hpp"
#include "weir/store/redis/session.hpp"
#include "weir/time.hpp"

#include <boost/system/system_error.hpp>

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// "SERVICE OLD-HOST OLD-PORT NEW-HOST NEW-PORT", as sentinels publish a fail-over: where the
/// service is now. Empty: it is another service's, or something else.
[[nodiscard]] inline std::optional<redis_place> redis_switched(std::string const& message,
                                                               std::string_view service) {
  std::istringstream words{message};
  std::string name;
  std::string host;
  std::string port;
  words >> name >> host >> port >> host >> port;
  auto const number = whole_number<std::uint16_t>(port);
  if (!words || name != service || !number || *number == 0) return std::nullopt;
  return redis_place{host, *number};
}

/// Owner interface of a watch.
class redis_sentinel_watch_owner {
 public:
  redis_sentinel_watch_owner() = default;
  redis_sentinel_watch_owner(redis_sentinel_watch_owner const&) = delete;
  redis_sentinel_watch_owner& operator=(redis_sentinel_watch_owner const&) = delete;
  virtual ~redis_sentinel_watch_owner() = default;

  /// The service has been moved here.
  virtual void moved(redis_place const& to) = 0;
  /// A sentinel says that it is here; it may not be the first to know.
  virtual void said(redis_place const& at) = 0;
  /// The sentinel's user has no right to subscribe, as this text says.
  virtual void denied(std::string_view text) = 0;
};

/// Hears from a sentinel of fail-overs: a server that is succeeded as planned serves for seconds
/// beside its successor, which loses what is done there. In its owner's strand; it keeps a
/// connection to one sentinel after the other, until `close` or until the owner is gone.
class redis_sentinel_watch final : public redis_session_owner,
                                   public std::enable_shared_from_this<redis_sentinel_watch> {
 public:
  using executor_type = redis_session::executor_type;

  redis_sentinel_watch(executor_type strand, redis_address const& address,
                       redis_options const& options,
                       std::weak_ptr<redis_sentinel_watch_owner> owner)
      : service_{address.service()},
        strand_{std::move(strand)},
        options_{options},
        hosts_{strand_, address, options_},
        owner_{std::move(owner)} {}

  void connect() {
    if (closed_ || owner_.expired()) return;
    hosts_.find_sentinel([self = shared_from_this()](auto const& target, std::string const&) {
      target ? self->dial(*target) : self->retry();
    });
  }

  void close() {
    closed_ = true;
    pause_.stop();
    hosts_.cancel();
    if (auto const session = session_.lock()) session->hang_up();
  }

 private:
  void dial(redis_target const& target) {
    if (closed_) return;
    target_ = target;
    auto const session = std::make_shared<redis_session>(strand_, shared_from_this(), options_);
    try {
      session->start(target, {"+switch-master"});
    } catch (boost::system::system_error const&) {  // such as an unreadable file of authorities
      return retry();
    }
    session_ = session;
  }

  void opened() override { pace_.reset(); }

  /// Fail-overs before this were missed: so it asks.
  void subscribed(std::string const&) override {
    hosts_.ask(target_, [self = shared_from_this()](auto const& place, std::string const&) {
      auto const owner = self->owner_.lock();
      if (owner && place && !self->closed_) owner->said(*place);
    });
  }

  void published(std::string const& message) override {
    auto const owner = owner_.lock();
    if (auto const place = redis_switched(message, service_); place && owner) owner->moved(*place);
  }

  void denied(std::string_view text) override {
    if (auto const owner = owner_.lock()) owner->denied(text);
  }

  void ended(error_code, std::string_view) override {
    session_.reset();
    retry();
  }

  void retry() {
    if (closed_) return;
    hosts_.next();
    pause_.start(strand_, saturating_add(system_clock{}.steady_now(), pace_.next()),
                 [self = shared_from_this()] { self->connect(); });
  }

  std::string service_;
  executor_type const strand_;
  redis_options options_;
  redis_hosts hosts_;
  std::weak_ptr<redis_sentinel_watch_owner> const owner_;
  std::weak_ptr<redis_session> session_;
  redis_target target_;
  bool closed_ = false;
  reconnect_pace pace_{options_.least_reconnect_wait, options_.longest_reconnect_wait};
  alarm<system_clock> pause_;
};

}  // namespace weir::detail

#endif
