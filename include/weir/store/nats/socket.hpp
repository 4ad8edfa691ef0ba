// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_SOCKET_HPP
#define WEIR_STORE_NATS_SOCKET_HPP

#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/store/nats/connection.hpp"
#include "weir/store/nats/violations.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/strand.hpp>
#include <nats/nats.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace weir::detail {

using nats_strand = boost::asio::strand<boost::asio::any_io_executor>;

/// A connection in its strand: reads and writes when the socket can.
class nats_socket : public std::enable_shared_from_this<nats_socket> {
 public:
  nats_socket(nats_strand strand, std::shared_ptr<nats_connection> connection)
      : strand_{std::move(strand)},
        connection_{std::move(connection)},
        descriptor_{strand_} {}

  /// Begins. Whenever something was read, `on_read()` is called; when it has ended, `on_end()`,
  /// once. Both keep alive whatever they need.
  [[nodiscard]] bool start(std::function<void()> on_read, std::function<void()> on_end) {
    on_read_ = std::move(on_read);
    on_end_ = std::move(on_end);
    // A descriptor of our own, so that the client may close its one.
    int const own = ::fcntl(connection_->socket(), F_DUPFD_CLOEXEC, 0);
    if (own < 0) return false;
    error_code ec;
    descriptor_.assign(own, ec);
    if (ec) {
      ::close(own);
      return false;
    }
    connection_->on_write([this] { write_soon(); });
    wait_to_read();
    return true;
  }

  [[nodiscard]] nats_owner<natsSubscription> subscribe(std::string const& subject) {
    natsSubscription* made = nullptr;
    if (natsConnection_SubscribeSync(&made, connection_->get(), subject.c_str()) != NATS_OK) {
      return nullptr;
    }
    return nats_owner<natsSubscription>{made};
  }

  [[nodiscard]] nats_violations& violations() const noexcept { return connection_->violations(); }

  /// Not what the client says, but what the outcome is.
  enum class sending : std::uint8_t { given, too_large, refused };

  /// Bytes that the server takes in one message, headers included. It may say another number at
  /// any time.
  [[nodiscard]] std::size_t max_payload() const noexcept { return connection_->max_payload(); }

  [[nodiscard]] sending publish(natsMsg* message) {
    switch (natsConnection_PublishMsg(connection_->get(), message)) {
      case NATS_OK: return sending::given;
      case NATS_MAX_PAYLOAD: return sending::too_large;
      default: return sending::refused;
    }
  }

  /// Ends it; `on_end` is not called any more.
  void close() {
    on_read_ = nullptr;
    on_end_ = nullptr;
    connection_->on_write(nullptr);
    connection_->end();
    connection_->end_relay();
    error_code ignored;
    descriptor_.close(ignored);
  }

 private:
  void wait_to_read() {
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                           [self = shared_from_this()](error_code ec) {
                             if (!ec) self->read();
                           });
  }
  void read() {
    if (!on_end_) return;
    connection_->process_read();
    auto const tell = on_read_;  // which may close this
    if (tell) tell();
    if (!over()) wait_to_read();
  }

  // What is published in one turn of the strand is written together.
  void write_soon() {
    post_task(strand_, [self = shared_from_this()] { self->write(); });
  }
  void write() {
    if (!on_end_) return;
    connection_->process_write();
    if (over() || !connection_->wants_to_write()) return;
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                           [self = shared_from_this()](error_code ec) {
                             if (!ec) self->write();
                           });
  }

  bool over() {
    if (!on_end_) return true;
    if (!natsConnection_IsClosed(connection_->get())) return false;
    auto const tell = std::exchange(on_end_, nullptr);
    close();
    tell();
    return true;
  }

  nats_strand strand_;
  std::shared_ptr<nats_connection> connection_;
  boost::asio::posix::stream_descriptor descriptor_;
  std::function<void()> on_read_;
  std::function<void()> on_end_;
};

}  // namespace weir::detail

#endif
