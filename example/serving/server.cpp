// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "server.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace serving {

namespace {

using tcp = asio::ip::tcp;
constexpr auto as_answer = asio::as_tuple(asio::use_awaitable);

tcp::acceptor listen(server::strand const& strand, place const& where) try {
  tcp::resolver resolver{strand};
  auto const places =
      resolver.resolve(where.host, std::to_string(where.port), tcp::resolver::passive);
  return tcp::acceptor{strand, *places.begin()};  // sets SO_REUSEADDR
} catch (boost::system::system_error const& e) {
  throw place_error{where.host, where.port, e.code().message()};
}

}  // namespace

server::server(asio::any_io_executor const& executor, place const& where, service& how)
    : strand_{asio::make_strand(executor)},
      acceptor_{listen(strand_, where)},
      left_{strand_},
      service_{how},
      most_{where.connections} {}

asio::awaitable<void> server::accept() {
  auto const here = std::make_shared<char>();
  accepting_ = here;
  while (acceptor_.is_open()) {
    using namespace std::chrono_literals;
    if (sessions_.size() >= most_) {
      co_await acceptor_.async_wait(tcp::acceptor::wait_read, as_answer);
      make_room();
      co_await until_somebody_left(std::chrono::steady_clock::now() + 100ms);
      continue;
    }
    auto own = asio::make_strand(strand_.get_inner_executor());
    auto [ec, socket] = co_await acceptor_.async_accept(own, as_answer);
    if (!acceptor_.is_open()) break;
    if (ec) {  // such as no file descriptor left: one that leaves brings one back
      co_await until_somebody_left(std::chrono::steady_clock::now() + 100ms);
      continue;
    }
    welcome(std::move(socket));
  }
  left_.cancel();
}

void server::welcome(tcp::socket socket) {
  auto const place =
      sessions_.insert(sessions_.end(), std::make_shared<session>(std::move(socket), service_));
  (*place)->start([this, place](bool cut_off) {
    asio::dispatch(strand_, [this, place, cut_off] {
      sessions_.erase(place);
      if (cut_off) ++cut_off_;
      left_.cancel();
    });
  });
}

/// Somebody is at the door. The client that has said nothing, or not all, for longest, or takes its
/// response too slowly, makes room: slow ones, however many, do not keep out those that have
/// something to ask.
void server::make_room() {
  auto const longest =
      std::ranges::min_element(sessions_, {}, [](auto const& each) { return each->waits_since(); });
  if (longest == sessions_.end()) return;
  if ((*longest)->waits_since() <= std::chrono::steady_clock::now()) (*longest)->give_way();
}

asio::awaitable<std::size_t> server::finish(weir::duration patience) {
  acceptor_.close();
  left_.cancel();  // and so `accept` ends, where it waits for room
  for (auto const& each : sessions_) each->finish();
  auto const deadline = std::chrono::steady_clock::now() + patience;
  while (!sessions_.empty() && std::chrono::steady_clock::now() < deadline) {
    co_await until_somebody_left(deadline);
  }
  for (auto const& each : sessions_) each->cut_off();
  while (!accepting_.expired() || !sessions_.empty()) {
    using namespace std::chrono_literals;
    co_await until_somebody_left(std::chrono::steady_clock::now() + 100ms);
  }
  co_return cut_off_;
}

asio::awaitable<void> server::until_somebody_left(asio::steady_timer::time_point deadline) {
  left_.expires_at(deadline);
  co_await left_.async_wait(as_answer);
}

}  // namespace serving
