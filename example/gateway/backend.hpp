// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_GATEWAY_BACKEND_HPP
#define WEIR_EXAMPLE_GATEWAY_BACKEND_HPP

#include "options.hpp"
#include "weir/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>

namespace gateway {

namespace asio = boost::asio;

/// The slow thing that is to be protected. May be asked by any number of threads at once.
class backend {
 public:
  backend() = default;
  backend(backend const&) = delete;
  backend& operator=(backend const&) = delete;
  virtual ~backend() = default;

  /// Its answer, or why there is none. Cancelling it ends it at once, with `operation_aborted`.
  virtual asio::awaitable<weir::result<std::string>> ask(std::string const& question) = 0;
};

/// A model that only pretends, or an HTTP server to which questions are posted. Throws
/// `place_error` if there is no such host.
[[nodiscard]] std::unique_ptr<backend> make_backend(options const& options);

}  // namespace gateway

#endif
