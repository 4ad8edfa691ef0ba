// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_DISTANCE_HPP
#define WEIR_BENCH_DISTANCE_HPP

#include "weir/time.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

namespace weir_bench {

/// A server of this host, as if it were far away: whatever is said in one direction comes half a
/// round trip later, and any amount of it is under way at once. It forwards in a thread of its own.
class distance {
 public:
  using tcp = boost::asio::ip::tcp;

  distance(std::uint16_t port, weir::duration round_trip) : to_{port}, half_{round_trip / 2} {
    boost::asio::co_spawn(io_, accept(), boost::asio::detached);
    thread_ = std::thread{[this] { io_.run(); }};
  }
  distance(distance const&) = delete;
  distance& operator=(distance const&) = delete;
  ~distance() {
    io_.stop();
    thread_.join();
  }

  /// Where clients connect to, on 127.0.0.1.
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  static constexpr auto tuple = boost::asio::as_tuple(boost::asio::use_awaitable);

  /// One direction of a connection: bytes, and when they arrive.
  struct line {
    explicit line(boost::asio::io_context& io) : bell{io} {}

    std::deque<std::pair<std::chrono::steady_clock::time_point, std::string>> under_way{};
    boost::asio::steady_timer bell;
    bool over = false;
  };
  using socket = std::shared_ptr<tcp::socket>;

  boost::asio::awaitable<void> accept() {
    for (;;) {
      auto const client = std::make_shared<tcp::socket>(io_);
      auto const server = std::make_shared<tcp::socket>(io_);
      auto [failed] = co_await acceptor_.async_accept(*client, tuple);
      if (failed) co_return;
      std::tie(failed) =
          co_await server->async_connect({boost::asio::ip::address_v4::loopback(), to_}, tuple);
      if (failed) continue;
      client->set_option(tcp::no_delay{true});
      server->set_option(tcp::no_delay{true});
      join(client, server);
      join(server, client);
    }
  }

  void join(socket const& from, socket const& to) {
    auto const way = std::make_shared<line>(io_);
    boost::asio::co_spawn(io_, read(from, way), boost::asio::detached);
    boost::asio::co_spawn(io_, write(to, way), boost::asio::detached);
  }
  boost::asio::awaitable<void> read(socket from, std::shared_ptr<line> way) {
    std::string buffer(std::size_t{1} << 16U, '\0');
    for (;;) {
      auto const [failed, n] = co_await from->async_read_some(boost::asio::buffer(buffer), tuple);
      if (failed) break;
      way->under_way.emplace_back(std::chrono::steady_clock::now() + half_, buffer.substr(0, n));
      way->bell.cancel();
    }
    way->over = true;
    way->bell.cancel();
  }
  boost::asio::awaitable<void> write(socket to, std::shared_ptr<line> way) {
    for (;;) {
      auto const now = std::chrono::steady_clock::now();
      if (!way->under_way.empty() && way->under_way.front().first <= now) {
        auto const bytes = std::move(way->under_way.front().second);
        way->under_way.pop_front();
        auto const [failed, n] =
            co_await boost::asio::async_write(*to, boost::asio::buffer(bytes), tuple);
        if (failed) break;
        continue;
      }
      if (way->under_way.empty() && way->over) break;
      way->bell.expires_at(way->under_way.empty() ? std::chrono::steady_clock::time_point::max()
                                                  : way->under_way.front().first);
      co_await way->bell.async_wait(tuple);
    }
    boost::system::error_code ignored;
    to->shutdown(tcp::socket::shutdown_both, ignored);
  }

  std::uint16_t to_;
  std::chrono::nanoseconds half_;
  boost::asio::io_context io_{1};
  tcp::acceptor acceptor_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;
};

/// Null: no distance.
inline std::unique_ptr<distance> far_from(std::uint16_t port, weir::duration round_trip) {
  return round_trip == weir::duration{} ? nullptr : std::make_unique<distance>(port, round_trip);
}

}  // namespace weir_bench

#endif
