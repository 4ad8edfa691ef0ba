// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_HOSTS_HPP
#define WEIR_STORE_REDIS_HOSTS_HPP

#include "weir/error.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/dial.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace weir::detail {

/// The hosts of an address, and the IP addresses that each of them has: one is tried at a time,
/// with a connection of its own, so that one which never answers does not hide the others (F70).
/// Names are looked up each time. In one strand.
class redis_hosts {
 public:
  redis_hosts(boost::asio::any_io_executor const& strand, redis_address address)
      : address_{std::move(address)},
        resolver_{strand} {}

  /// The one that was found is not what is needed: another one comes next.
  void next() noexcept { ++attempt_; }

  /// @param then called with the place to connect to, at once or later; empty: its name could not
  ///             be looked up, for a reason in words. It keeps this alive.
  template <class F>
  void find(F then) {
    auto const count = 1 + address_.others().size();
    auto const which = attempt_ % count;
    auto const turn = attempt_ / count;
    redis_target target{which == 0 ? address_ : at(which - 1), {}};
    if (!address_.path().empty()) return then(std::optional{std::move(target)}, std::string{});
    auto const& host = target.address.host();
    error_code no_ip;
    boost::asio::ip::make_address(host, no_ip);
    if (!no_ip) {
      target.ip = host;
      return then(std::optional{std::move(target)}, std::string{});
    }
    auto const port = std::to_string(target.address.port());
    auto found = [turn, target, then = std::move(then)](error_code ec, auto const& all) mutable {
      if (ec || all.empty()) {
        return then(std::nullopt,
                    target.address.host() + ": the name cannot be looked up: " + ec.message());
      }
      auto const one = std::next(all.begin(), static_cast<std::ptrdiff_t>(turn % all.size()));
      target.ip = one->endpoint().address().to_string();
      then(std::optional{std::move(target)}, std::string{});
    };
    resolver_.async_resolve(host, port,
                            boost::asio::bind_executor(resolver_.get_executor(), std::move(found)));
  }

  void cancel() { resolver_.cancel(); }

 private:
  [[nodiscard]] redis_address at(std::size_t other) const {
    auto const& [host, port] = address_.others()[other];
    return address_.at(host, port);
  }

  redis_address const address_;
  boost::asio::ip::tcp::resolver resolver_;
  std::size_t attempt_ = 0;
};

}  // namespace weir::detail

#endif
