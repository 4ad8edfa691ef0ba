// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_DIAL_HPP
#define WEIR_STORE_REDIS_DIAL_HPP

#include "weir/store/redis/address.hpp"
#include "weir/store/redis/options.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/redis/config.hpp>
#include <boost/redis/connection.hpp>

#include <memory>
#include <string>
#include <utility>

// What Boost.Redis is told about a server. A connection lives once: who comes after it is made
// anew.
namespace weir::detail {

using redis_connection = std::shared_ptr<boost::redis::connection>;

/// Throws `boost::system::system_error`, such as for a file of authorities that cannot be read.
[[nodiscard]] inline redis_connection make_redis_connection(
    boost::asio::any_io_executor const& strand, redis_address const& address) {
  namespace ssl = boost::asio::ssl;
  ssl::context context{ssl::context::tls_client};
  if (address.uses_tls()) {
    context.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                        ssl::context::no_tlsv1_1);
    if (address.ca_file().empty()) {
      context.set_default_verify_paths();
    } else {
      context.load_verify_file(address.ca_file());
    }
    context.set_verify_mode(ssl::verify_peer);
  }
  auto out = std::make_shared<boost::redis::connection>(strand, std::move(context));
  if (address.uses_tls()) {
    auto& stream = out->next_layer();
    stream.set_verify_callback(ssl::host_name_verification{address.host()});
    SSL_set_tlsext_host_name(stream.native_handle(), address.host().c_str());
  }
  return out;
}

[[nodiscard]] inline boost::redis::config redis_config(redis_address const& address,
                                                       redis_options const& options) {
  boost::redis::config out;
  out.use_ssl = address.uses_tls();
  out.addr = {address.host(), std::to_string(address.port())};
  out.username = address.user();
  out.password = address.password();
  out.clientname = "weir";
  out.database_index = static_cast<int>(address.database());
  out.resolve_timeout = out.connect_timeout = out.ssl_handshake_timeout = options.connect_timeout;
  out.health_check_interval = {};  // the link has its own: that one ends when a PING is refused
  out.reconnect_wait_interval = {};
  return out;
}

}  // namespace weir::detail

#endif
