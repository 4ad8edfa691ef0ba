// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_DIAL_HPP
#define WEIR_STORE_NATS_DIAL_HPP

#include "weir/detail/parking.hpp"
#include "weir/error.hpp"
#include "weir/store/nats/address.hpp"
#include "weir/store/nats/connection.hpp"
#include "weir/store/nats/options.hpp"
#include "weir/store/nats/socket.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <thread>
#include <utility>

namespace weir::detail {

/// Makes connections, in which the C client blocks: each in a thread of its own, one after the
/// other. In a strand.
class nats_dialer {
 public:
  nats_dialer() = default;
  nats_dialer(nats_dialer const&) = delete;
  nats_dialer& operator=(nats_dialer const&) = delete;
  /// Waits for who is dialing.
  ~nats_dialer() { join(); }

  /// Calls `arrived(error_code, std::shared_ptr<nats_connection>)` in the strand, if the execution
  /// context still lives then.
  template <class Arrived>
  void start(nats_strand const& strand, nats_address const& to, nats_options const& how,
             Arrived arrived) {
    dialing_ = park<error_code, std::shared_ptr<nats_connection>>(
        boost::asio::any_io_executor{strand}, std::move(arrived));
    join();
    // It holds nothing that is the strand's.
    thread_ = std::thread{[weak = std::weak_ptr{dialing_}, to, how] {
      auto made = std::make_shared<nats_connection>();
      auto const ec = made->connect(to, how);
      if (ec) made.reset();
      auto const op = weak.lock();
      if (!op) return;
      try {
        op->resume(ec, std::move(made));
      } catch (...) {  // nobody can be told
      }
    }};
  }

  [[nodiscard]] bool dialing() const noexcept { return dialing_ != nullptr; }

  /// Whoever is dialing is told to nobody, or was.
  void forget() noexcept { dialing_.reset(); }

 private:
  void join() {
    if (!thread_.joinable()) return;
    if (thread_.get_id() == std::this_thread::get_id()) return thread_.detach();
    thread_.join();
  }

  std::shared_ptr<parked<error_code, std::shared_ptr<nats_connection>>> dialing_;
  std::thread thread_;
};

}  // namespace weir::detail

#endif
