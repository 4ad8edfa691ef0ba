// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_SERVING_SERVICE_HPP
#define WEIR_EXAMPLE_SERVING_SERVICE_HPP

#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

// An HTTP server that knows nothing of what it serves: the gateway's, and that of `weirctl serve`.
namespace serving {

namespace asio = boost::asio;
using request = boost::beast::http::request<boost::beast::http::string_body>;
using response = boost::beast::http::response<boost::beast::http::string_body>;

/// A response whose body goes on until the client leaves, or the server ends.
struct endless_response {
  using head_type = boost::beast::http::response<boost::beast::http::empty_body>;
  using next_type = std::function<asio::awaitable<std::string>()>;

  endless_response(head_type first, next_type then)
      : head{std::move(first)},
        next{std::move(then)} {}

  head_type head;
  next_type next;  ///< waits for the next chunk; throws if it is cancelled
};

/// Answers requests. Thread-safety: functions may be called by any number of threads at once.
class service {
 public:
  service() = default;
  service(service const&) = delete;
  service& operator=(service const&) = delete;
  virtual ~service() = default;

  /// Throws only if it is cancelled.
  virtual asio::awaitable<response> answer(request const& asked) = 0;
  /// Answers what is no request.
  [[nodiscard]] virtual response refusal(boost::beast::http::status status,
                                         std::string_view why) const = 0;
  /// Empty: the request is one for `answer`.
  virtual std::optional<endless_response> open(request const& /*asked*/) { return std::nullopt; }
};

/// Where a server listens, and for how many.
struct place {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;         ///< 0: one that is free
  std::uint32_t connections = 1000;  ///< at once; others queue
};

/// A place that was given and cannot be used.
struct place_error : std::runtime_error {
  place_error(std::string const& host, std::uint16_t port, std::string const& why)
      : runtime_error{host + ':' + std::to_string(port) + ": " + why} {}
};

}  // namespace serving

#endif
