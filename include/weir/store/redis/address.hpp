// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_ADDRESS_HPP
#define WEIR_STORE_REDIS_ADDRESS_HPP

#include "weir/error.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
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
  /// `[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`. IPv6 addresses stand in brackets; %XX stands for a
  /// byte in user, password and host. Error: `invalid_option` for everything else.
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

  /// The server listens on this path of the file system. It is no faster than the loopback
  /// interface, over which the bytes go to a relay within this process: Boost.Redis knows no unix
  /// sockets. Without encryption.
  redis_address& unix_socket(std::string path) {
    path_ = std::move(path);
    return *this;
  }
  /// Empty: it has a host and a port.
  [[nodiscard]] std::string const& path() const noexcept { return path_; }

  /// Is it a node of a cluster, all of which is to be used?
  [[nodiscard]] bool is_cluster() const noexcept { return cluster_; }
  /// More nodes of the cluster, as they were given.
  [[nodiscard]] std::vector<std::pair<std::string, std::uint16_t>> const& others() const noexcept {
    return others_;
  }

  /// The same in all but the place.
  [[nodiscard]] redis_address at(std::string host, std::uint16_t port) const {
    auto out = *this;
    out.host_ = std::move(host);
    out.port_ = port;
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
  static std::optional<std::string> unescaped(std::string_view text);
  static std::optional<std::pair<std::string, std::uint16_t>> place(std::string_view text);
  bool read_who(std::string_view& url);
  bool read_database(std::string_view number, std::uint32_t most);
  static result<redis_address> parse_unix(std::string_view url);

  template <class Number>
  static std::optional<Number> whole(std::string_view text) noexcept {
    Number value{};
    auto const* const end = text.data() + text.size();
    auto const [at, ec] = std::from_chars(text.data(), end, value);
    if (text.empty() || ec != std::errc{} || at != end) return std::nullopt;
    return value;
  }

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
};

inline std::optional<std::string> redis_address::unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned char byte = 0;
    auto const* const digits = text.data() + i + 1;
    if (text.size() - i < 3) return std::nullopt;
    auto const [at, ec] = std::from_chars(digits, digits + 2, byte, 16);
    if (ec != std::errc{} || at != digits + 2) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

/// A host, and perhaps a port.
inline std::optional<std::pair<std::string, std::uint16_t>> redis_address::place(
    std::string_view text) {
  auto host = text;
  std::string_view port;
  bool named = false;
  if (text.starts_with('[')) {
    auto const end = text.find(']');
    if (end == text.npos) return std::nullopt;
    host = text.substr(1, end - 1);
    auto const rest = text.substr(end + 1);
    named = !rest.empty();
    if (named && rest.front() != ':') return std::nullopt;
    if (named) port = rest.substr(1);
  } else if (auto const colon = text.find(':'); colon != text.npos) {
    named = true;
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (host.find(',') != host.npos) return std::nullopt;  // several, of what is no cluster
  auto plain = unescaped(host);
  auto const printable = [](char c) { return c > ' ' && c < '\x7f'; };
  if (!plain || plain->empty() || !std::ranges::all_of(*plain, printable)) return std::nullopt;
  if (!named) return std::pair{std::move(*plain), usual_port};
  auto const number = whole<std::uint16_t>(port);
  if (!number || *number == 0) return std::nullopt;
  return std::pair{std::move(*plain), *number};
}

/// Takes "USER:PASSWORD@" off the front, if it is there.
inline bool redis_address::read_who(std::string_view& url) {
  auto const at = url.rfind('@');
  if (at == url.npos) return true;
  auto const who = url.substr(0, at);
  url = url.substr(at + 1);
  auto const colon = who.find(':');
  if (colon == who.npos) return false;
  auto user = unescaped(who.substr(0, colon));
  auto password = unescaped(who.substr(colon + 1));
  if (!user || !password || password->empty()) return false;
  if (!user->empty()) user_ = std::move(*user);
  password_ = std::move(*password);
  return true;
}

inline bool redis_address::read_database(std::string_view number, std::uint32_t most) {
  auto const database = whole<std::uint32_t>(number);
  if (!database || *database > most) return false;
  database_ = *database;
  return true;
}

inline result<redis_address> redis_address::parse_unix(std::string_view url) {
  auto const bad = make_error_code(errc::invalid_option);
  redis_address out;
  constexpr std::string_view database = "?db=";
  if (auto const query = url.find('?'); query != url.npos) {
    constexpr std::uint32_t most = 65'535;
    auto const rest = url.substr(query);
    if (!rest.starts_with(database)) return bad;
    if (!out.read_database(rest.substr(database.size()), most)) return bad;
    url = url.substr(0, query);
  }
  auto const slash = url.find('/');
  if (slash == url.npos || url.find('#') != url.npos) return bad;
  auto who = url.substr(0, slash);
  if (!out.read_who(who) || !who.empty()) return bad;
  auto path = unescaped(url.substr(slash));
  constexpr std::size_t longest = 107;  // what the system has room for
  if (!path || path->size() > longest || path->find('\0') != path->npos) return bad;
  out.path_ = std::move(*path);
  return out;
}

inline result<redis_address> redis_address::parse(std::string_view url) {
  auto const bad = make_error_code(errc::invalid_option);
  for (std::string_view const scheme : {"unix://", "redis+unix://"}) {
    if (url.starts_with(scheme)) return parse_unix(url.substr(scheme.size()));
  }
  auto const start = url.find("://");
  if (start == url.npos) return bad;
  auto const scheme = url.substr(0, start);
  redis_address out;
  out.tls_ = scheme.starts_with("rediss");
  out.cluster_ = scheme.ends_with("+cluster");
  if (scheme != (out.tls_ ? "rediss" : "redis") + std::string{out.cluster_ ? "+cluster" : ""}) {
    return bad;
  }
  url.remove_prefix(start + 3);
  if (url.find_first_of("?#") != url.npos) return bad;

  if (auto const slash = url.find('/'); slash != url.npos) {
    constexpr std::uint32_t most = 65'535;
    auto const number = url.substr(slash + 1);
    url = url.substr(0, slash);
    if (!number.empty() && !out.read_database(number, out.cluster_ ? 0 : most)) return bad;
  }
  if (!out.read_who(url)) return bad;
  bool first = true;
  do {
    auto const comma = out.cluster_ ? url.find(',') : url.npos;
    auto where = place(url.substr(0, comma));
    if (!where) return bad;
    if (std::exchange(first, false)) {
      std::tie(out.host_, out.port_) = std::move(*where);
    } else {
      out.others_.push_back(std::move(*where));
    }
    url = comma == url.npos ? std::string_view{} : url.substr(comma + 1);
    if (comma != url.npos && url.empty()) return bad;
  } while (!url.empty());
  return out;
}

}  // namespace weir

#endif
