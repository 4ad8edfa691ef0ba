// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_PROXY_LINK_HPP
#define WEIR_TESTING_PROXY_LINK_HPP

#include "weir/error.hpp"
#include "weir/testing/proxy/plan.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing::detail {

/// Counts that other threads may read.
class proxy_ledger {
 public:
  void add(std::uint64_t proxy_counts::* what, std::uint64_t n = 1) {
    std::lock_guard const lock{mutex_};
    counts_.*what += n;
  }
  [[nodiscard]] proxy_counts read() const {
    std::lock_guard const lock{mutex_};
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  proxy_counts counts_;
};

/// What the links of a proxy share. Used on its strand only, but for the ledger.
struct proxy_common {
  explicit proxy_common(boost::asio::any_io_executor const& executor)
      : strand{boost::asio::make_strand(executor)} {}

  boost::asio::strand<boost::asio::any_io_executor> strand;
  bool stalled = false;
  std::size_t max_message = std::size_t{64} << 20U;
  proxy_ledger ledger;
};

/// A connection through the proxy: two sockets, and a pump for each direction. On the proxy's
/// strand.
class proxy_link : public std::enable_shared_from_this<proxy_link> {
 public:
  using tcp = boost::asio::ip::tcp;

  proxy_link(std::shared_ptr<proxy_common> common, tcp::socket client)
      : common_{std::move(common)},
        client_{std::move(client)},
        server_{common_->strand},
        moved_{common_->strand, boost::asio::steady_timer::time_point::max()} {}

  struct direction_plan {
    message_splitter split;  ///< empty: whatever comes at once is a message
    proxy_plan faults;
  };

  /// Connects to the target and forwards until both directions have ended.
  boost::asio::awaitable<void> run(tcp::endpoint target, direction_plan to_server,
                                   direction_plan to_client) {
    namespace asio = boost::asio;
    auto const self = shared_from_this();
    auto const [ec] = co_await server_.async_connect(target, asio::as_tuple(asio::use_awaitable));
    if (ended_) {
      error_code ignored;
      server_.close(ignored);
      co_return;
    }
    if (ec) {
      common_->ledger.add(&proxy_counts::unreachable);
      end(proxy_ending::reset, false);
      co_return;
    }
    error_code ignored;
    client_.set_option(tcp::no_delay{true}, ignored);
    server_.set_option(tcp::no_delay{true}, ignored);
    asio::co_spawn(common_->strand, pump(self, traffic::to_server, std::move(to_server)),
                   asio::detached);
    asio::co_spawn(common_->strand, pump(self, traffic::to_client, std::move(to_client)),
                   asio::detached);
  }

  /// Ends both sides, if nothing has yet. Returns whether it did.
  bool end(proxy_ending how, bool counted = true) {
    if (ended_) return false;
    ended_ = true;
    moved_.cancel();
    switch (how) {
      case proxy_ending::fin:
        finish(client_);
        finish(server_);
        break;
      case proxy_ending::reset:
        if (counted) common_->ledger.add(&proxy_counts::resets);
        reset(client_);
        reset(server_);
        break;
      case proxy_ending::silent:
        common_->ledger.add(&proxy_counts::silenced);
        error_code ignored;
        client_.cancel(ignored);
        reset(server_);
        break;
    }
    return true;
  }

  /// Ends whatever is left, without ceremony.
  void close() {
    ended_ = true;
    moved_.cancel();
    error_code ignored;
    client_.close(ignored);
    server_.close(ignored);
  }

  /// Something that a pump may wait for has changed.
  void resume() {
    stalled_ = false;
    moved_.cancel();
  }

  /// Is there nothing left that could move?
  [[nodiscard]] bool over() const { return !client_.is_open() && !server_.is_open(); }

 private:
  using shared = std::shared_ptr<proxy_link>;

  tcp::socket& source(traffic d) { return d == traffic::to_server ? client_ : server_; }
  tcp::socket& sink(traffic d) { return d == traffic::to_server ? server_ : client_; }

  static boost::asio::awaitable<void> pump(shared self, traffic direction, direction_plan plan) {
    namespace asio = boost::asio;
    auto& link = *self;
    auto& common = *link.common_;
    std::string buffered;
    std::array<char, 16384> chunk;
    for (;;) {
      co_await link.moving();
      if (link.ended_) co_return;
      auto const [ec, n] = co_await link.source(direction).async_read_some(
          asio::buffer(chunk), asio::as_tuple(asio::use_awaitable));
      if (link.ended_) co_return;
      buffered.append(chunk.data(), n);
      while (!buffered.empty()) {
        auto size = plan.split ? plan.split(buffered) : buffered.size();
        // What is no message any more goes through as it comes.
        if (size == 0 && (ec || buffered.size() > common.max_message)) size = buffered.size();
        size = std::min(size, buffered.size());
        if (size == 0) break;
        auto const fault = plan.faults.next(size);
        std::string const message = buffered.substr(0, size);
        buffered.erase(0, size);
        if (!co_await link.pass(direction, message, fault)) co_return;
      }
      if (ec) break;
    }
    link.end_of(direction);
  }

  /// Forwards a message, or does to it what is planned. False: the link has ended.
  boost::asio::awaitable<bool> pass(traffic direction, std::string const& message,
                                    planned_fault fault) {
    namespace asio = boost::asio;
    auto& count = common_->ledger;
    auto& lost = lost_[static_cast<std::size_t>(direction)];
    if (fault.fault == proxy_fault::black_hole) lost = true;
    if (fault.fault == proxy_fault::stall) {
      stalled_ = true;
      count.add(&proxy_counts::stalled);
    }
    if (fault.fault == proxy_fault::delay) {
      count.add(&proxy_counts::delayed);
      asio::steady_timer later{common_->strand, fault.delay};
      co_await later.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    co_await moving();
    if (ended_) co_return false;
    if (lost) {
      count.add(&proxy_counts::swallowed);
      co_return true;
    }
    if (fault.fault == proxy_fault::cut_before) {
      count.add(&proxy_counts::cut_before);
      end(fault.ending);
      co_return false;
    }
    bool const cut_in = fault.fault == proxy_fault::cut_in;
    std::string_view const bytes = std::string_view{message}.substr(
        0, cut_in ? std::min(fault.bytes, message.size() - 1) : message.size());
    bool const up = direction == traffic::to_server;
    auto const [ec, written] = co_await asio::async_write(sink(direction), asio::buffer(bytes),
                                                          asio::as_tuple(asio::use_awaitable));
    count.add(up ? &proxy_counts::bytes_to_server : &proxy_counts::bytes_to_client, written);
    if (ended_) co_return false;
    if (ec) {  // who was to get it is gone: whoever sent it learns that
      end(proxy_ending::fin);
      co_return false;
    }
    if (cut_in) {
      count.add(&proxy_counts::cut_in);
      end(fault.ending);
      co_return false;
    }
    count.add(up ? &proxy_counts::messages_to_server : &proxy_counts::messages_to_client);
    if (fault.fault != proxy_fault::cut_after) co_return true;
    count.add(&proxy_counts::cut_after);
    end(fault.ending);
    co_return false;
  }

  /// Waits while something stalls.
  boost::asio::awaitable<void> moving() {
    namespace asio = boost::asio;
    while (!ended_ && (stalled_ || common_->stalled)) {
      co_await moved_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }

  /// The source of this direction sends no more.
  void end_of(traffic direction) {
    error_code ignored;
    if (!lost_[static_cast<std::size_t>(direction)]) {
      sink(direction).shutdown(tcp::socket::shutdown_send, ignored);
    }
    if (++directions_over_ == 2) close();
  }

  // A FIN, and then a reset for who goes on sending all the same. A socket that is closed with
  // unread bytes would send the reset at once.
  void finish(tcp::socket& socket) {
    error_code ignored;
    socket.cancel(ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
    namespace asio = boost::asio;
    asio::co_spawn(common_->strand, close_after_read(shared_from_this(), socket), asio::detached);
  }

  static boost::asio::awaitable<void> close_after_read(shared self, tcp::socket& socket) {
    namespace asio = boost::asio;
    std::array<char, 16384> chunk;
    co_await socket.async_read_some(asio::buffer(chunk), asio::as_tuple(asio::use_awaitable));
    error_code ignored;
    socket.close(ignored);
    (void)self;
  }

  static void reset(tcp::socket& socket) {
    error_code ignored;
    socket.set_option(boost::asio::socket_base::linger{true, 0}, ignored);
    socket.close(ignored);
  }

  std::shared_ptr<proxy_common> common_;
  tcp::socket client_;
  tcp::socket server_;
  boost::asio::steady_timer moved_;
  std::array<bool, 2> lost_{};
  bool stalled_ = false;
  bool ended_ = false;
  int directions_over_ = 0;
};

}  // namespace weir::testing::detail

#endif
