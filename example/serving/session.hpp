// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_SERVING_SESSION_HPP
#define WEIR_EXAMPLE_SERVING_SESSION_HPP

#include "service.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace serving {

/// One client's connection: one request after the other, each watched for that the client goes.
///
/// Thread-safety: all functions may be called in any thread, for everything happens on the
/// executor of the socket, a strand.
class session : public std::enable_shared_from_this<session> {
 public:
  session(asio::ip::tcp::socket socket, service& how);

  /// @param ended is called on the socket's executor, and told whether a request was cut off; must
  /// not throw
  void start(std::function<void(bool)> ended);

  /// Ends after the request that is being worked on; at once if there is none.
  void finish();

  /// Ends now.
  void cut_off();

  /// Ends now, unless a request is being worked on. A response that nobody takes is no work.
  void give_way();

  using time_point = std::chrono::steady_clock::time_point;

  /// Since when it has waited for a request, or for the rest of one. While it writes, that lies two
  /// seconds ahead: a client may take so long. `time_point::max()`: it does not wait.
  [[nodiscard]] time_point waits_since() const noexcept { return waits_since_; }

 private:
  enum class after { next_request, end };
  static constexpr std::size_t largest_buffer = 128 * 1024;  // chunks may have extensions

  asio::awaitable<void> run();
  using request_parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  asio::awaitable<after> serve_one();
  asio::awaitable<bool> read_into(request_parser& parser);
  /// @param head the answer to a question for a head: its body is only counted
  asio::awaitable<after> send(response reply, bool keep_alive, bool head = false);
  asio::awaitable<void> stream(endless_response reply);
  asio::awaitable<std::optional<response>> answer_unless_gone(request const& asked);
  asio::awaitable<std::optional<response>> answer(request const& asked);
  asio::awaitable<void> client_gone();
  asio::awaitable<void> linger();

  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_{largest_buffer};
  service& service_;
  asio::cancellation_signal cut_off_;
  std::atomic<time_point> waits_since_{time_point::max()};
  bool finishing_ = false;
  bool working_ = false;  ///< on a request, until its response is sent
  bool writing_ = false;
  bool streaming_ = false;
  bool unanswered_ = false;
};

}  // namespace serving

#endif
