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

/// A server, and the IP address that its host was found to have; empty where it has a path.
struct redis_target {
  redis_address address;
  std::string ip;
};

using redis_connection = std::shared_ptr<boost::redis::connection>;

/// Throws `boost::system::system_error`, such as for a file of authorities that cannot be read.
[[nodiscard]] inline boost::asio::ssl::context redis_tls(redis_address const& address) {
  namespace ssl = boost::asio::ssl;
  ssl::context out{ssl::context::tls_client};
  if (!address.uses_tls()) return out;
  out.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                  ssl::context::no_tlsv1_1);
  if (address.ca_file().empty()) {
    out.set_default_verify_paths();
  } else {
    out.load_verify_file(address.ca_file());
  }
  out.set_verify_mode(ssl::verify_peer);
  return out;
}

/// Has an encrypted connection check that the server is the one that was asked for.
template <class Stream>
void redis_verify(Stream& stream, redis_address const& address) {
  stream.set_verify_callback(boost::asio::ssl::host_name_verification{address.host()});
  SSL_set_tlsext_host_name(stream.native_handle(), address.host().c_str());
}

/// Throws as `redis_tls`.
[[nodiscard]] inline redis_connection make_redis_connection(
    boost::asio::any_io_executor const& strand, redis_address const& address) {
  auto out = std::make_shared<boost::redis::connection>(strand, redis_tls(address));
  if (address.uses_tls()) redis_verify(out->next_layer(), address);
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
