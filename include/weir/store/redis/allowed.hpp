// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_ALLOWED_HPP
#define WEIR_STORE_REDIS_ALLOWED_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/address.hpp"

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/address_v6.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

// The hosts that servers name, and that are called (F96).
namespace weir::detail {

/// Is this host what `redis_address::allow` names?
[[nodiscard]] inline bool redis_host_matches(std::string_view host, std::string_view allowed) {
  if (allowed.starts_with('*')) return host.ends_with(allowed.substr(1));
  if (host == allowed) return true;
  namespace ip = boost::asio::ip;
  error_code no_network;
  error_code no_address;
  if (auto const four = ip::make_network_v4(allowed, no_network); !no_network) {
    auto const address = ip::make_address_v4(host, no_address);
    return !no_address &&
           ip::network_v4{address, four.prefix_length()}.canonical() == four.canonical();
  }
  auto const six = ip::make_network_v6(allowed, no_network);
  auto const address = ip::make_address_v6(host, no_address);
  return !no_network && !no_address &&
         ip::network_v6{address, six.prefix_length()}.canonical() == six.canonical();
}

/// Can it be a host? A resolver would take one with a NUL for another.
[[nodiscard]] inline bool redis_is_host(std::string_view host) noexcept {
  constexpr std::size_t longest = 255;
  return !host.empty() && host.size() <= longest &&
         std::ranges::all_of(host, [](char c) { return c >= '!' && c <= '~'; });
}

/// May this host, which a server has named, be called?
[[nodiscard]] inline bool redis_allows(redis_address const& address, std::string_view host) {
  auto const& all = address.allowed();
  auto const& others = address.others();
  if (host == address.host() ||
      std::ranges::any_of(others, [&](auto const& o) { return o.first == host; })) {
    return true;
  }
  return redis_is_host(host) && (all.empty() || std::ranges::any_of(all, [&](auto const& a) {
                                   return redis_host_matches(host, a);
                                 }));
}

/// An error if a host that is allowed is malformed, or there are too many.
[[nodiscard]] inline error_code redis_allowed_error(redis_address const& address) {
  constexpr std::size_t most = 64;
  auto const& all = address.allowed();
  if (all.size() <= most && std::ranges::all_of(all, redis_is_host)) return {};
  return explained(errc::invalid_option, "redis_address::allow: a host is malformed");
}

}  // namespace weir::detail

#endif
