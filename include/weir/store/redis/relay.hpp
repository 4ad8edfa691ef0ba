// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_RELAY_HPP
#define WEIR_STORE_REDIS_RELAY_HPP

#include "weir/error.hpp"
#include "weir/store/redis/dial.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace weir::detail {

/// Carries the bytes of one connection between Boost.Redis, which only knows TCP, and a unix
/// socket. It listens on the loopback interface until that one connection is there, and takes no
/// other. All in one strand, by which it lives until both ends are closed.
class redis_relay : public std::enable_shared_from_this<redis_relay> {
 public:
  /// Throws `boost::system::system_error`.
  redis_relay(boost::asio::any_io_executor const& strand, std::string path)
      : strand_{strand},
        path_{std::move(path)},
        acceptor_{strand, {boost::asio::ip::address_v4::loopback(), 0}},
        near_{strand},
        far_{strand} {}

  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  void start(std::weak_ptr<boost::redis::connection> client) {
    auto on_peer = [self = shared_from_this(), client](error_code ec, tcp::socket peer) {
      if (ec) return;
      if (!self->is(peer, client)) return self->start(client);  // somebody else on this host
      self->acceptor_.close(ec);
      self->near_ = std::move(peer);
      self->reach();
    };
    acceptor_.async_accept(boost::asio::bind_executor(strand_, std::move(on_peer)));
  }

  void close() {
    error_code ignored;
    acceptor_.close(ignored);
    near_.close(ignored);
    far_.close(ignored);
  }

 private:
  using tcp = boost::asio::ip::tcp;
  using local = boost::asio::local::stream_protocol;

  static bool is(tcp::socket const& peer, std::weak_ptr<boost::redis::connection> const& client) {
    auto const connection = client.lock();
    if (!connection) return false;
    error_code ec;
    auto const theirs = peer.remote_endpoint(ec);
    if (ec) return false;
    auto const ours = connection->next_layer().next_layer().local_endpoint(ec);
    return !ec && theirs == ours;
  }

  void reach() {
    auto on_end = [self = shared_from_this()](error_code ec) {
      if (ec) return self->close();
      ec = {};
      self->near_.set_option(tcp::no_delay{true}, ec);
      self->carry(self->near_, self->far_, self->out_);
      self->carry(self->far_, self->near_, self->in_);
    };
    far_.async_connect(local::endpoint{path_},
                       boost::asio::bind_executor(strand_, std::move(on_end)));
  }

  using block = std::array<char, std::size_t{1} << 16U>;

  template <class From, class To>
  void carry(From& from, To& to, block& bytes) {
    auto on_bytes = [self = shared_from_this(), &from, &to, &bytes](error_code ec, std::size_t n) {
      if (ec) return self->close();
      auto on_written = [self, &from, &to, &bytes](error_code failed, std::size_t) {
        failed ? self->close() : self->carry(from, to, bytes);
      };
      boost::asio::async_write(to, boost::asio::buffer(bytes.data(), n),
                               boost::asio::bind_executor(self->strand_, std::move(on_written)));
    };
    from.async_read_some(boost::asio::buffer(bytes),
                         boost::asio::bind_executor(strand_, std::move(on_bytes)));
  }

  boost::asio::any_io_executor strand_;
  std::string path_;
  tcp::acceptor acceptor_;
  tcp::socket near_;
  local::socket far_;
  block out_{};
  block in_{};
};

}  // namespace weir::detail

#endif
