// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_GATEWAY_ANSWERS_HPP
#define WEIR_EXAMPLE_GATEWAY_ANSWERS_HPP

#include "backend.hpp"
#include "gate.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <string>
#include <string_view>

// From a request to its response; nothing here knows a connection.
namespace gateway {

using request = boost::beast::http::request<boost::beast::http::string_body>;
using response = boost::beast::http::response<boost::beast::http::string_body>;

/// Answers requests. Thread-safety: `answer` may be called by any number of threads at once.
class answers {
 public:
  /// @param limit what `gate` holds each key to: it is told to clients
  answers(gate& way, backend& model, weir::quota limit);

  /// Throws only if it is cancelled.
  asio::awaitable<response> answer(request const& asked);

 private:
  asio::awaitable<response> ask_the_backend(request const& asked);
  asio::awaitable<response> count();
  void tell_the_rate(response& reply, weir::decision const& rate) const;

  gate& gate_;
  backend& backend_;
  std::string policy_;  ///< the RateLimit-Policy field
};

/// A response that says what is wrong.
[[nodiscard]] response refusal(boost::beast::http::status status, std::string_view why);

}  // namespace gateway

#endif
