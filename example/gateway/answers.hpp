// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_GATEWAY_ANSWERS_HPP
#define WEIR_EXAMPLE_GATEWAY_ANSWERS_HPP

#include "../serving/service.hpp"
#include "backend.hpp"
#include "gate.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <string>
#include <string_view>

// From a request to its response; nothing here knows a connection.
namespace gateway {

using serving::request;
using serving::response;

/// Answers requests. Thread-safety: `answer` may be called by any number of threads at once.
class answers final : public serving::service {
 public:
  /// @param o its rate is what `gate` holds each key to: it is told to clients
  answers(gate& way, backend& model, options const& o);

  /// Throws only if it is cancelled.
  asio::awaitable<response> answer(request const& asked) override;
  [[nodiscard]] response refusal(boost::beast::http::status status,
                                 std::string_view why) const override;

 private:
  asio::awaitable<response> ask_the_backend(request const& asked);
  asio::awaitable<response> count();
  void tell_the_rate(response& reply, weir::decision const& rate) const;

  gate& gate_;
  backend& backend_;
  bool console_;
  std::string policy_;  ///< the RateLimit-Policy field
};

}  // namespace gateway

#endif
