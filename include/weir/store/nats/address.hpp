// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_ADDRESS_HPP
#define WEIR_STORE_NATS_ADDRESS_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

/// Where NATS servers are, and as whom to speak to them.
///
/// These are the only hosts that a store connects to, and that it sends a password, a token or a
/// signature: servers that a server names (`connect_urls`) are ignored. So name all servers of a
/// cluster, or a name that stands for all of them.
class nats_address {
 public:
  /// One server without TLS, on this host.
  nats_address() : urls_{"nats://127.0.0.1:4222"} {}

  /// Reads one or several URLs, separated by commas, of servers of one cluster:
  /// `nats://[USER:PASSWORD@]HOST[:PORT]`, or `tls://…` with TLS. Any of them will do; which one
  /// is tried first is random. Error: `invalid_option` for everything else.
  [[nodiscard]] static result<nats_address> parse(std::string_view urls);

  /// The user, for servers that know users by name; URLs may name others.
  nats_address& authenticate(std::string user, std::string password) {
    user_ = std::move(user);
    password_ = std::move(password);
    return *this;
  }
  /// For servers that know users by a token.
  nats_address& token(std::string token) {
    token_ = std::move(token);
    return *this;
  }
  /// For servers with decentralised accounts: the path of a `.creds` file.
  nats_address& credentials(std::string file) {
    credentials_ = std::move(file);
    return *this;
  }
  /// Encrypts, and checks that the server's certificate is for its host and signed by one of the
  /// authorities in `ca_file`, or one of the system's if that is empty.
  nats_address& tls(std::string ca_file = {}) {
    tls_ = true;
    ca_file_ = std::move(ca_file);
    return *this;
  }

  /// Where the servers are.
  [[nodiscard]] std::vector<std::string> const& urls() const noexcept { return urls_; }
  /// The user's name; empty: none.
  [[nodiscard]] std::string const& user() const noexcept { return user_; }
  /// The user's.
  [[nodiscard]] std::string const& password() const noexcept { return password_; }
  /// Empty: none.
  [[nodiscard]] std::string const& token() const noexcept { return token_; }
  /// The file with the credentials; empty: none.
  [[nodiscard]] std::string const& credentials() const noexcept { return credentials_; }
  /// Is the connection encrypted?
  [[nodiscard]] bool uses_tls() const noexcept { return tls_; }
  /// The authorities; empty: the system's.
  [[nodiscard]] std::string const& ca_file() const noexcept { return ca_file_; }

 private:
  std::vector<std::string> urls_;
  std::string user_;
  std::string password_;
  std::string token_;
  std::string credentials_;
  bool tls_ = false;
  std::string ca_file_;
};

namespace detail {

/// A server's URL, in parts.
struct nats_server_url {
  std::string user;  ///< the scheme, and who asks
  std::string host;
  std::string port;

  [[nodiscard]] static nats_server_url of(std::string_view url) {
    auto const scheme = url.find("//") + 2;
    auto const rest = url.substr(scheme);
    auto const path = rest.find_first_of("/?#");
    auto const authority = rest.substr(0, path);
    auto const at = authority.rfind('@');
    auto const begin = at == authority.npos ? 0 : at + 1;
    auto host = authority.substr(begin);
    std::string_view port = "4222";
    auto const colon = host.rfind(':');
    // An address of version 6 is in brackets.
    if (colon != host.npos && host.find(']', colon) == host.npos) {
      port = host.substr(colon + 1);
      host = host.substr(0, colon);
    }
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    return {std::string{url.substr(0, scheme + begin)}, std::string{host}, std::string{port}};
  }
};

}  // namespace detail

inline result<nats_address> nats_address::parse(std::string_view urls) {
  nats_address out;
  out.urls_.clear();
  for (;;) {
    auto const comma = urls.find(',');
    auto const url = urls.substr(0, comma);
    bool const secret = url.starts_with("tls://");
    if (!secret && !url.starts_with("nats://")) {
      return detail::explained(errc::invalid_option,
                               "a NATS URL begins with nats:// or, with TLS, with tls://");
    }
    auto const rest = url.substr(url.find("//") + 2);
    auto const printable = [](char c) { return c > ' ' && c < '\x7f'; };
    if (rest.empty() || rest.ends_with('@') || !std::ranges::all_of(rest, printable)) {
      return detail::explained(errc::invalid_option, "the NATS URL has no host, or a space in it");
    }
    out.tls_ = out.tls_ || secret;
    out.urls_.emplace_back(url);
    if (comma == urls.npos) return out;
    urls.remove_prefix(comma + 1);
  }
}

}  // namespace weir

#endif
