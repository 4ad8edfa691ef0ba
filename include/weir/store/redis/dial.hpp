// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_DIAL_HPP
#define WEIR_STORE_REDIS_DIAL_HPP

#include "weir/store/redis/address.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>

#include <string>

namespace weir::detail {

/// Where it is, for people.
[[nodiscard]] inline std::string redis_place_text(redis_address const& address) {
  if (!address.path().empty()) return address.path();
  auto const place = address.host() + ":" + std::to_string(address.port());
  return address.service().empty() ? place : address.service() + " of the sentinel at " + place;
}

/// A server, and the IP address that its host was found to have; empty where it has a path.
struct redis_target {
  redis_address address;
  std::string ip;
};

/// Throws `boost::system::system_error`, such as for a file that cannot be read.
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
  if (!address.certificate_file().empty()) {
    out.use_certificate_chain_file(address.certificate_file());
    out.use_private_key_file(address.key_file(), ssl::context::pem);
  }
  return out;
}

/// Has an encrypted connection check that the server is the one that was asked for.
template <class Stream>
void redis_verify(Stream& stream, redis_address const& address) {
  stream.set_verify_callback(boost::asio::ssl::host_name_verification{address.host()});
  SSL_set_tlsext_host_name(stream.native_handle(), address.host().c_str());
}

}  // namespace weir::detail

#endif
