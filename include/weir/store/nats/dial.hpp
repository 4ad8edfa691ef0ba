// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_DIAL_HPP
#define WEIR_STORE_NATS_DIAL_HPP

#include "weir/detail/explained.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/parking.hpp"
#include "weir/store/nats/address.hpp"
#include "weir/store/nats/connection.hpp"
#include "weir/store/nats/options.hpp"
#include "weir/store/nats/relay.hpp"
#include "weir/store/nats/socket.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace weir::detail {

/// Makes a connection to one of several servers, in random order. The C client blocks in a thread
/// of its own, on one after the other. In a strand.
class nats_dial : public std::enable_shared_from_this<nats_dial> {
 public:
  using made = std::shared_ptr<nats_connection>;

  nats_dial(nats_strand strand, nats_address to, nats_options const& how,
            std::shared_ptr<parked<error_code, made>> arrived)
      : strand_{std::move(strand)},
        to_{std::move(to)},
        how_{how},
        arrived_{std::move(arrived)},
        first_{static_cast<std::size_t>(id_source{}.entropy() % to_.urls().size())} {}
  nats_dial(nats_dial const&) = delete;
  nats_dial& operator=(nats_dial const&) = delete;
  /// Waits for the thread, which ends without its relay.
  ~nats_dial() {
    if (relay_) relay_->end();
    join();
  }

  void start() { next(make_error_code(errc::store_unavailable)); }

 private:
  /// @param why nothing came of the one before
  void next(error_code why) {
    if (relay_) relay_->end();
    if (tried_ == to_.urls().size()) {
      arrived_->resume(why, nullptr);
      return;
    }
    auto const& urls = to_.urls();
    auto const server = nats_server_url::of(urls[(first_ + tried_++) % urls.size()]);
    relay_ = std::make_shared<nats_relay>(strand_, to_.uses_tls());
    relay_->connect(server.host, server.port, how_.connect_timeout,
                    [weak = weak_from_this(), server](error_code ec, std::uint16_t port) {
                      auto const self = weak.lock();
                      if (!self) return;
                      if (!ec) return self->greet(server, port);
                      self->next_later(at(server, ec));
                    });
  }
  /// Says which server it was.
  static error_code at(nats_server_url const& server, error_code ec) {
    auto const said = explanation_of(ec);
    return explained(plain(ec), server.host + ":" + server.port + (said.empty() ? "" : ": ") +
                                    std::string{said});
  }
  /// Not within the relay.
  void next_later(error_code why) {
    post_task(strand_, [weak = weak_from_this(), why] {
      if (auto const self = weak.lock()) self->next(why);
    });
  }

  /// The C client signs about one challenge in 200 so that no server accepts it.
  void refused(error_code why) {
    constexpr int most_signatures = 3;
    bool const signs = why == errc::permission_denied && !to_.credentials().empty();
    if (signs && ++signatures_ != most_signatures) {
      --tried_;
    } else {
      signatures_ = 0;
    }
    next(why);
  }

  void greet(nats_server_url const& server, std::uint16_t port) {
    greeted_ =
        park<error_code, made>(boost::asio::any_io_executor{strand_},
                               [weak = weak_from_this(), server](error_code ec, made connection) {
                                 auto const self = weak.lock();
                                 if (!self) return;
                                 if (ec) return self->refused(at(server, ec));
                                 auto const relay = std::exchange(self->relay_, {});
                                 relay->kept();
                                 connection->behind([relay] { relay->end(); }, relay->calls());
                                 self->arrived_->resume(ec, std::move(connection));
                               });
    relay_->allow(how_.connect_timeout);
    join();
    // It holds nothing that is the strand's.
    thread_ = std::thread{[weak = std::weak_ptr{greeted_}, to = to_, how = how_, host = server.host,
                           url = server.user + "127.0.0.1:" + std::to_string(port)] {
      auto connection = std::make_shared<nats_connection>();
      auto const ec = connection->connect(url, host, to, how);
      if (ec) connection.reset();
      auto const op = weak.lock();
      if (!op) return;
      try {
        op->resume(ec, std::move(connection));
      } catch (...) {  // nobody can be told
      }
    }};
  }
  void join() {
    if (!thread_.joinable()) return;
    if (thread_.get_id() == std::this_thread::get_id()) return thread_.detach();
    thread_.join();
  }

  nats_strand const strand_;
  nats_address const to_;
  nats_options const how_;
  std::shared_ptr<parked<error_code, made>> const arrived_;
  std::size_t const first_;
  std::size_t tried_ = 0;
  int signatures_ = 0;  // that a server has refused
  std::shared_ptr<nats_relay> relay_;
  std::shared_ptr<parked<error_code, made>> greeted_;
  std::thread thread_;
};

/// Makes one connection at a time. In a strand.
class nats_dialer {
 public:
  /// Calls `arrived(error_code, std::shared_ptr<nats_connection>)` in the strand, if the execution
  /// context still lives then.
  template <class Arrived>
  void start(nats_strand const& strand, nats_address const& to, nats_options const& how,
             Arrived arrived) {
    dialing_ =
        std::make_shared<nats_dial>(strand, to, how,
                                    park<error_code, std::shared_ptr<nats_connection>>(
                                        boost::asio::any_io_executor{strand}, std::move(arrived)));
    dialing_->start();
  }

  [[nodiscard]] bool dialing() const noexcept { return dialing_ != nullptr; }

  /// Ends the dial in progress; its result is not, or was already, reported.
  void forget() noexcept { dialing_.reset(); }

 private:
  std::shared_ptr<nats_dial> dialing_;
};

}  // namespace weir::detail

#endif
