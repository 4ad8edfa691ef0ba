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

/// Where a Redis or Valkey server is, or some servers of a cluster, and as whom to speak to it.
class redis_address {
 public:
  static constexpr std::uint16_t usual_port = 6379;  ///< where servers listen unless told otherwise

  /// @param host a name or an IP address, without brackets
  /// @param port where it listens
  explicit redis_address(std::string host = "127.0.0.1", std::uint16_t port = usual_port)
      : host_{std::move(host)},
        port_{port} {}

  /// Reads `redis://` (plain) or `rediss://` (TLS), then
  /// `[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]]...[/DATABASE]`: of several hosts, the first that
  /// can be reached, answers and writes. IPv6 addresses stand in brackets; %XX stands for a
  /// byte in user, password and host. Error: a `redis_url_errc`, which says what is wrong.
  ///
  /// A cluster is `redis+cluster://` or `rediss+cluster://`, then
  /// `[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]]...`: one or more of its nodes, from which the
  /// others are learned; they have the same user, password and encryption.
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

  /// Of the hosts that nodes of the cluster name, only those that match this, or another one that
  /// is allowed, are called and get the password: a name or an IP address as nodes tell it; the end
  /// of names, as in `*.cache.example`; or a network, as in `10.1.0.0/16`. All are, unless this was
  /// called. Those of the address itself always are. Up to 64, of 1 to 255 bytes each; otherwise
  /// commands are `invalid_option`.
  redis_address& allow(std::string host) {
    allowed_.push_back(std::move(host));
    return *this;
  }
  /// The hosts that were allowed, as they were given.
  [[nodiscard]] std::vector<std::string> const& allowed() const noexcept { return allowed_; }

  /// Another host of the same service, such as what may take the first one's place: tried when
  /// those before it cannot be reached, do not answer or do not write. Of no cluster.
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

  /// The same in all but the place, which is the only one.
  [[nodiscard]] redis_address at(std::string host, std::uint16_t port) const {
    auto out = *this;
    out.host_ = std::move(host);
    out.port_ = port;
    out.others_.clear();
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

 private:
  std::string host_;
  std::uint16_t port_;
  std::string user_ = "default";
  std::string password_;
  std::uint32_t database_ = 0;
  bool tls_ = false;
  std::string ca_file_;
  std::string path_;
  bool cluster_ = false;
  std::vector<std::pair<std::string, std::uint16_t>> others_;
  std::vector<std::string> allowed_;
};

inline result<redis_address> redis_address::parse(std::string_view url) {
  detail::redis_url parts;
  if (auto const ec = parts.read(url, usual_port)) return ec;
  redis_address out;
  out.tls_ = parts.tls;
  out.cluster_ = parts.cluster;
  out.database_ = parts.database;
  out.path_ = std::move(parts.path);
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
