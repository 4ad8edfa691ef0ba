// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_ADDRESS_HPP
#define WEIR_STORE_REDIS_ADDRESS_HPP

#include "weir/error.hpp"
#include "weir/store/redis/url.hpp"

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace weir {

/// Where a Redis or Valkey server is, or some servers of a cluster, or the sentinels that know
/// where it is; and as whom to speak to it.
class redis_address {
 public:
  /// Where servers listen unless told otherwise.
  static constexpr std::uint16_t usual_port = detail::redis_url::usual_port;
  /// Where sentinels do.
  static constexpr std::uint16_t usual_sentinel_port = detail::redis_url::usual_sentinel_port;

  /// @param host a name or an IP address, without brackets
  /// @param port where it listens
  explicit redis_address(std::string host = "127.0.0.1", std::uint16_t port = usual_port)
      : host_{std::move(host)},
        port_{port} {}

  /// Reads `redis://` (plain) or `rediss://` (TLS), then
  /// `[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]]...[/DATABASE]`: of several hosts, the first that
  /// can be reached, answers and writes. IPv6 addresses stand in brackets; %XX stands for a
  /// byte in user, password and host. Error: `invalid_option`, which says what is wrong.
  ///
  /// A cluster is `redis+cluster://` or `rediss+cluster://`, then
  /// `[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]]...`: one or more of its nodes, from which the
  /// others are learned; they have the same user, password and encryption.
  ///
  /// Sentinels are `redis+sentinel://` or `rediss+sentinel://`, then
  /// `[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]].../SERVICE[/DATABASE]`: see `sentinel`. User and
  /// password are those of the server.
  ///
  /// With TLS there may be files behind that: `?cacert=PATH&cert=PATH&key=PATH`, of which `cert`
  /// and `key` go together: see `tls` and `certificate`.
  ///
  /// A unix socket is `unix://` or `redis+unix://`, then `[[USER]:PASSWORD@]/PATH[?db=DATABASE]`,
  /// with %XX in the path, too.
  [[nodiscard]] static result<redis_address> parse(std::string_view url);

  /// The user is "default" where none is named.
  redis_address& authenticate(std::string password, std::string user = "default") {
    password_ = std::move(password);
    user_ = std::move(user);
    return *this;
  }
  /// Selects a database of the server; 0 unless this is called.
  redis_address& database(std::uint32_t number) noexcept {
    database_ = number;
    return *this;
  }
  /// Encrypts, and checks that the server's certificate is for the host and signed by one of the
  /// authorities in `ca_file`, or one of the system's if that is empty.
  redis_address& tls(std::string ca_file = {}) {
    tls_ = true;
    ca_file_ = std::move(ca_file);
    return *this;
  }
  /// Authenticates the client by a certificate, as a server with `tls-auth-clients` wants it.
  /// Encrypts, too.
  ///
  /// @param file     a PEM file with the certificate, and those behind it if there are any
  /// @param key_file a PEM file with its private key, without a password
  redis_address& certificate(std::string file, std::string key_file) {
    tls_ = true;
    certificate_ = std::move(file);
    key_file_ = std::move(key_file);
    return *this;
  }

  /// The server is a node of a cluster, and the store is to use all of it. A cluster has no
  /// databases but 0.
  redis_address& cluster() noexcept {
    cluster_ = true;
    return *this;
  }
  /// Another node of the cluster to ask if the first one cannot be reached.
  redis_address& cluster_with(std::string host, std::uint16_t port) {
    cluster_ = true;
    others_.emplace_back(std::move(host), port);
    return *this;
  }

  /// The hosts are sentinels. Whenever a connection is made, one of them is asked where the server
  /// of this service is; if it cannot be reached or does not know, or names a server that does not
  /// write, the next one is. While a connection lasts, one of them tells when the server is
  /// succeeded, if the user may subscribe to that. Otherwise the server's end, its silence or its
  /// refusal to write shows it. Not for a cluster.
  ///
  /// @param service as the sentinels call it ("mymaster"), of printable characters
  redis_address& sentinel(std::string service) {
    service_ = std::move(service);
    return *this;
  }
  /// As whom to speak to the sentinels: nobody unless this is called. `authenticate` is for the
  /// server.
  redis_address& authenticate_sentinels(std::string password, std::string user = "default") {
    sentinel_password_ = std::move(password);
    sentinel_user_ = std::move(user);
    return *this;
  }

  /// Of the hosts that nodes of the cluster or sentinels name, only those that match this, or
  /// another one that is allowed, are called and get the password: a name or an IP address as nodes
  /// tell it; the end of names, as in `*.cache.example`; or a network, as in `10.1.0.0/16`. All
  /// are, unless this was called. Those of the address itself always are. Up to 64, of 1 to 255
  /// visible ASCII characters each; otherwise commands are `invalid_option`.
  redis_address& allow(std::string host) {
    allowed_.push_back(std::move(host));
    return *this;
  }
  /// The hosts that were allowed, as they were given.
  [[nodiscard]] std::vector<std::string> const& allowed() const noexcept { return allowed_; }

  /// Another host of the same service, such as one that may take the first one's place. It is tried
  /// when those before it cannot be reached, do not answer or do not write. While none of them
  /// writes, one that can be read is kept, and the others are tried again after every 15
  /// `redis_options::health_check_interval`. Not for a cluster.
  redis_address& or_at(std::string host, std::uint16_t port) {
    others_.emplace_back(std::move(host), port);
    return *this;
  }

  /// The server listens on this path of the file system. Without encryption.
  redis_address& unix_socket(std::string path) {
    path_ = std::move(path);
    return *this;
  }
  /// Empty: it has a host and a port.
  [[nodiscard]] std::string const& path() const noexcept { return path_; }

  /// Is it a node of a cluster, all of which is to be used?
  [[nodiscard]] bool is_cluster() const noexcept { return cluster_; }
  /// More nodes of the cluster, or more hosts, as they were given.
  [[nodiscard]] std::vector<std::pair<std::string, std::uint16_t>> const& others() const noexcept {
    return others_;
  }

  /// Name of the service, as the sentinels know it; empty: the hosts are not sentinels.
  [[nodiscard]] std::string const& service() const noexcept { return service_; }

  /// The same address, but for one server at this place alone.
  [[nodiscard]] redis_address at(std::string host, std::uint16_t port) const {
    auto out = *this;
    out.host_ = std::move(host);
    out.port_ = port;
    out.others_.clear();
    out.service_.clear();
    return out;
  }
  /// The same for one sentinel, with the user and the password for sentinels.
  [[nodiscard]] redis_address sentinel_at(std::string host, std::uint16_t port) const {
    auto out = at(std::move(host), port);
    out.user_ = sentinel_user_;
    out.password_ = sentinel_password_;
    out.database_ = 0;
    return out;
  }

  /// As it was given, without brackets.
  [[nodiscard]] std::string const& host() const noexcept { return host_; }
  /// As it was given.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// "default" where none was named.
  [[nodiscard]] std::string const& user() const noexcept { return user_; }
  /// Empty: it does not authenticate.
  [[nodiscard]] std::string const& password() const noexcept { return password_; }
  /// 0 unless another was selected.
  [[nodiscard]] std::uint32_t database() const noexcept { return database_; }
  /// Is the connection encrypted, and the server checked?
  [[nodiscard]] bool uses_tls() const noexcept { return tls_; }
  /// Empty: the system's authorities.
  [[nodiscard]] std::string const& ca_file() const noexcept { return ca_file_; }
  /// Empty: it has no certificate.
  [[nodiscard]] std::string const& certificate_file() const noexcept { return certificate_; }
  /// The file of its key.
  [[nodiscard]] std::string const& key_file() const noexcept { return key_file_; }

 private:
  std::string host_;
  std::uint16_t port_;
  std::string user_ = "default";
  std::string password_;
  std::uint32_t database_ = 0;
  bool tls_ = false;
  std::string ca_file_;
  std::string certificate_;
  std::string key_file_;
  std::string path_;
  std::string service_;
  std::string sentinel_user_ = "default";
  std::string sentinel_password_;
  bool cluster_ = false;
  std::vector<std::pair<std::string, std::uint16_t>> others_;
  std::vector<std::string> allowed_;
};

inline result<redis_address> redis_address::parse(std::string_view url) {
  detail::redis_url parts;
  if (auto const ec = parts.read(url)) return ec;
  redis_address out;
  out.tls_ = parts.tls;
  out.cluster_ = parts.cluster;
  out.database_ = parts.database;
  out.path_ = std::move(parts.path);
  out.service_ = std::move(parts.service);
  out.ca_file_ = std::move(parts.ca_file);
  out.certificate_ = std::move(parts.certificate);
  out.key_file_ = std::move(parts.key_file);
  out.password_ = std::move(parts.password);
  if (!parts.user.empty()) out.user_ = std::move(parts.user);
  if (parts.places.empty()) return out;
  std::tie(out.host_, out.port_) = std::move(parts.places.front());
  out.others_.assign(std::make_move_iterator(parts.places.begin() + 1),
                     std::make_move_iterator(parts.places.end()));
  return out;
}

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/store/redis/url_reader.hpp"
#endif

#endif
