// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_SERVING_SERVER_HPP
#define WEIR_EXAMPLE_SERVING_SERVER_HPP

#include "service.hpp"
#include "session.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include <cstddef>
#include <list>
#include <memory>

namespace serving {

/// Accepts clients until it is told to end.
///
/// Thread-safety: everything happens on its executor, a strand; connections have strands of their
/// own.
class server {
 public:
  using strand = asio::strand<asio::any_io_executor>;

  /// Listens. Throws `place_error` if it cannot.
  server(asio::any_io_executor const& executor, place const& where, service& how);

  [[nodiscard]] strand const& get_executor() const noexcept { return strand_; }
  [[nodiscard]] asio::ip::tcp::endpoint local() const { return acceptor_.local_endpoint(); }

  /// Accepts until `finish`. To be called on the executor, like the others.
  asio::awaitable<void> accept();

  /// Accepts nobody any more, and lets those who are being served have their answers; whoever has
  /// none when `patience` is over is cut off. Ends when nobody is connected and `accept` has ended;
  /// returns how many requests were cut off.
  asio::awaitable<std::size_t> finish(weir::duration patience);

 private:
  using sessions = std::list<std::shared_ptr<session>>;

  void welcome(asio::ip::tcp::socket socket);
  void make_room();
  asio::awaitable<void> until_somebody_left(asio::steady_timer::time_point deadline);

  strand strand_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer left_;  ///< somebody: it is cancelled then
  service& service_;
  std::size_t most_;
  sessions sessions_;
  std::weak_ptr<void> accepting_;  ///< as long as `accept` runs
  std::size_t cut_off_ = 0;
};

}  // namespace serving

#endif
