// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_RELAY_HPP
#define WEIR_STORE_NATS_RELAY_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/explained.hpp"
#include "weir/detail/keep_from_children.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/store/nats/framing.hpp"
#include "weir/store/nats/pump.hpp"
#include "weir/store/nats/socket.hpp"
#include "weir/time.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// Stands between the C client and one server, in the strand: the client connects to it, on the
/// loopback interface. So weir can end a try to connect, which the client (3.4.1) does not do where
/// a server falls silent in the TLS handshake or after its greeting, and looks at what the server
/// sends first (nats_framing), except within TLS, where the server has shown a certificate, and
/// which is passed on outside of the strand (nats_pump).
class nats_relay : public std::enable_shared_from_this<nats_relay> {
 public:
  using tcp = boost::asio::ip::tcp;
  nats_relay(nats_relay const&) = delete;
  nats_relay& operator=(nats_relay const&) = delete;
  /// Where the client is to connect to.
  using reached = std::function<void(error_code, std::uint16_t port)>;

  /// @param encrypted it is TLS
  nats_relay(nats_strand const& strand, bool encrypted) : strand_{strand}, encrypted_{encrypted} {}

  /// Connects to one of the addresses of a host.
  void connect(std::string const& host, std::string const& port, duration timeout, reached done) {
    done_ = std::move(done);
    timeout_ = timeout;
    wait(timeout);
    resolver_.async_resolve(
        host, port, [self = shared_from_this()](error_code ec, auto const& all) {
          if (!self->done_) return;
          if (ec) {
            self->cause_ = "the name cannot be looked up: " + ec.message();
            return self->end();
          }
          for (auto const& one : all) self->addresses_.push_back(one.endpoint());
          self->first_ = static_cast<std::size_t>(id_source{}.entropy() % self->addresses_.size());
          self->next();
        });
  }
  /// The client has this long from now on, until it is `kept`.
  void allow(duration timeout) { wait(timeout); }
  void kept() { deadline_.stop(); }
  /// The client's, once it works in the strand.
  [[nodiscard]] nats_calls const& calls() const noexcept { return calls_; }

  /// Ends both connections.
  void end() {
    deadline_.stop();
    error_code ignored;
    resolver_.cancel();
    listener_.close(ignored);
    for (auto* const s : {&server_, &client_}) {
      // A child process may have inherited it.
      (void)s->shutdown(tcp::socket::shutdown_both, ignored);
      s->close(ignored);
    }
    pump_.reset();
    if (auto const tell = std::exchange(done_, {}))
      tell(explained(errc::store_unavailable, cause_), 0);
  }

 private:
  static constexpr std::size_t buffer_size = 32U << 10U;

  void wait(duration timeout) {
    deadline_.start(strand_, saturating_add(system_clock{}.steady_now(), timeout),
                    [self = shared_from_this()] { self->late(); });
  }
  void late() {
    // An address that is mute leaves time for the others.
    if (done_) cause_ = "no answer within connect_timeout";
    done_&& tried_ < addresses_.size() ? next() : end();
  }

  void next() {
    if (tried_ == addresses_.size()) return end();
    error_code ignored;
    server_.close(ignored);
    auto const to = addresses_[(first_ + tried_++) % addresses_.size()];
    wait(timeout_ / static_cast<std::int64_t>(addresses_.size()));
    (void)server_.open(to.protocol(), ignored);  // what has failed fails again below
    keep_from_children(server_.native_handle());
    server_.async_connect(to, [self = shared_from_this(), now = tried_](error_code ec) {
      if (!self->done_ || now != self->tried_) return;
      if (!ec) return self->listen();
      self->cause_ = ec.message();
      self->next();
    });
  }
  void listen() {
    error_code ec;
    tcp::endpoint const here{boost::asio::ip::address_v4::loopback(), 0};
    (void)listener_.open(here.protocol(), ec);
    if (!ec) (void)listener_.bind(here, ec);
    if (!ec) (void)listener_.listen(1, ec);
    auto const port = ec ? std::uint16_t{0} : listener_.local_endpoint(ec).port();
    if (!ec) (void)server_.set_option(tcp::no_delay{true}, ec);
    if (ec) return end();
    keep_from_children(listener_.native_handle());
    listener_.async_accept(client_, [self = shared_from_this()](error_code failed) {
      error_code ignored;
      self->listener_.close(ignored);
      if (failed) return self->end();
      (void)self->client_.set_option(tcp::no_delay{true}, ignored);
      keep_from_children(self->client_.native_handle());
      if (self->encrypted_) return self->pump();
      self->from_server();
      self->from_client();
    });
    std::exchange(done_, {})(error_code{}, port);
  }

  void pump() {
    if (!server_.is_open() || !client_.is_open()) return;  // it was ended
    error_code ignored;
    auto const server = server_.release(ignored);
    auto const client = client_.release(ignored);
    try {
      pump_ = std::make_unique<nats_pump>(server, client, calls_);
    } catch (...) {  // there is no memory, or no thread, for it
      ::close(server);
      ::close(client);
      end();
    }
  }

  void from_server() {
    server_.async_read_some(boost::asio::buffer(said_),
                            [self = shared_from_this()](error_code ec, std::size_t n) {
                              if (ec) return self->server_ended();
                              self->to_client({self->said_.data(), n});
                            });
  }
  /// The client reads what was said last, and then ends its connection.
  void server_ended() {
    error_code ignored;
    server_.close(ignored);
    client_.shutdown(tcp::socket::shutdown_send, ignored);
  }
  void to_client(std::string_view said) {
    passed_.clear();
    if (!framing_.pass(said, passed_)) return end();
    boost::asio::async_write(client_, boost::asio::buffer(passed_),
                             [self = shared_from_this()](error_code ec, std::size_t) {
                               ec ? self->end() : self->from_server();
                             });
  }
  void from_client() {
    client_.async_read_some(boost::asio::buffer(asked_),
                            [self = shared_from_this()](error_code ec, std::size_t n) {
                              if (ec) return self->end();
                              self->to_server(n);
                            });
  }
  void to_server(std::size_t n) {
    boost::asio::async_write(server_, boost::asio::buffer(asked_, n),
                             [self = shared_from_this()](error_code ec, std::size_t) {
                               ec ? self->end() : self->from_client();
                             });
  }

  nats_strand strand_;
  bool const encrypted_;
  tcp::resolver resolver_{strand_};
  tcp::acceptor listener_{strand_};
  tcp::socket server_{strand_};
  tcp::socket client_{strand_};
  std::string cause_;  // of the end, in words
  std::vector<tcp::endpoint> addresses_;
  std::size_t first_ = 0;
  std::size_t tried_ = 0;
  duration timeout_{};
  reached done_;
  alarm<system_clock> deadline_;
  nats_framing framing_;
  std::array<char, buffer_size> said_{};
  std::array<char, buffer_size> asked_{};
  std::string passed_;
  nats_calls const calls_ = std::make_shared<std::atomic<unsigned>>(0);
  std::unique_ptr<nats_pump> pump_;
};

}  // namespace weir::detail

#endif
