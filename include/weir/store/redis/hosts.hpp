// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_HOSTS_HPP
#define WEIR_STORE_REDIS_HOSTS_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/allowed.hpp"
#include "weir/store/redis/cluster_map.hpp"
#include "weir/store/redis/dial.hpp"
#include "weir/store/redis/options.hpp"
#include "weir/store/redis/sentinel.hpp"
#include "weir/store/redis/session.hpp"
#include "weir/time.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/system_error.hpp>

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace weir::detail {

/// The hosts of an address, and the IP addresses that each of them has: one is tried at a time,
/// with a connection of its own, so that one which never answers does not hide the others (F70).
/// Where the hosts are sentinels, the one whose turn it is says where the server is. Names are
/// looked up each time. In one strand.
class redis_hosts {
 public:
  using executor_type = redis_session::executor_type;
  /// Called with the place to connect to; empty: there is none, for a reason in words.
  using then_type = std::function<void(std::optional<redis_target>, std::string const& cause)>;

  redis_hosts(executor_type strand, redis_address address, redis_options const& options)
      : address_{std::move(address)},
        strand_{std::move(strand)},
        options_{options},
        resolver_{strand_} {}

  /// The one that was found is not what is needed: another one comes next.
  void next() noexcept { ++attempt_; }
  /// The server is known to be here: that is the next one, once.
  void lead_to(redis_place place) { told_ = std::move(place); }

  /// @param then called at once or later; it keeps this alive
  void find(then_type then) {
    if (auto const told = std::exchange(told_, std::nullopt)) return to(*told, std::move(then));
    if (address_.service().empty()) {
      auto const [place, turn] = host();
      return look_up(address_.at(place.host, place.port), turn, std::move(then));
    }
    find_sentinel([this, then = std::move(then)](auto sentinel, std::string const& cause) {
      if (!sentinel) return then(std::nullopt, cause);
      auto const at = "the sentinel at " + redis_place_text(sentinel->address) + ": ";
      ask(*sentinel, [this, at, then](auto const& place, std::string const& why) {
        place ? to(*place, then) : then(std::nullopt, at + why);
      });
    });
  }

  /// Finds the sentinel whose turn it is.
  void find_sentinel(then_type then) {
    auto const [place, turn] = host();
    look_up(address_.sentinel_at(place.host, place.port), turn, std::move(then));
  }

  /// Asks a sentinel where the server is. @param then as above
  void ask(redis_target const& sentinel, redis_sentinel_call::then_type then) {
    auto const call = std::make_shared<redis_sentinel_call>(address_.service(), then);
    auto const session = std::make_shared<redis_session>(strand_, call, options_);
    try {
      session->start(sentinel, {});
    } catch (boost::system::system_error const& e) {  // such as an unreadable file of authorities
      return then(std::nullopt, e.what());
    }
    session_ = session;
  }

  void cancel() {
    resolver_.cancel();
    if (auto const session = session_.lock()) session->hang_up();
  }

 private:
  /// The host whose turn it is, and how many turns it has had before.
  [[nodiscard]] std::pair<redis_place, std::size_t> host() const {
    auto const& others = address_.others();
    auto const which = attempt_ % (1 + others.size());
    auto const turn = attempt_ / (1 + others.size());
    if (which == 0) return {{address_.host(), address_.port()}, turn};
    return {{others[which - 1].first, others[which - 1].second}, turn};
  }

  /// To a place that a sentinel has named.
  void to(redis_place const& place, then_type then) {
    if (redis_allows(address_, place.host)) {
      return look_up(address_.at(place.host, place.port), attempt_, std::move(then));
    }
    then(std::nullopt, "a sentinel names a host that redis_address::allow does not");
  }

  void look_up(redis_address const& address, std::size_t turn, then_type then) {
    redis_target target{address, {}};
    if (!address.path().empty()) return then(std::move(target), {});
    error_code no_ip;
    boost::asio::ip::make_address(address.host(), no_ip);
    if (!no_ip) {
      target.ip = address.host();
      return then(std::move(target), {});
    }
    // It goes to whichever comes first, and keeps this alive until then.
    auto const waits = std::make_shared<then_type>(std::move(then));
    auto const failed = [waits, host = address.host()](std::string const& why) {
      std::exchange(*waits, nullptr)(std::nullopt, host + ": the name cannot be looked up: " + why);
    };
    auto found = [this, turn, target, waits, failed](error_code ec, auto const& all) mutable {
      if (!*waits) return;
      time_.stop();
      if (ec || all.empty()) return failed(ec.message());
      auto const one = std::next(all.begin(), static_cast<std::ptrdiff_t>(turn % all.size()));
      target.ip = one->endpoint().address().to_string();
      std::exchange(*waits, nullptr)(std::move(target), {});
    };
    resolver_.async_resolve(address.host(), std::to_string(address.port()),
                            boost::asio::bind_executor(strand_, std::move(found)));
    // The resolver's thread cannot be interrupted, and the next look-up waits behind this one.
    time_.start(strand_, saturating_add(system_clock{}.steady_now(), options_.connect_timeout),
                [this, failed] {
                  resolver_.cancel();
                  failed("no answer within connect_timeout");
                });
  }

  redis_address const address_;
  executor_type strand_;
  redis_options options_;
  boost::asio::ip::tcp::resolver resolver_;
  alarm<system_clock> time_;              // of a look-up
  std::weak_ptr<redis_session> session_;  // with a sentinel
  std::size_t attempt_ = 0;
  std::optional<redis_place> told_;
};

}  // namespace weir::detail

#endif
