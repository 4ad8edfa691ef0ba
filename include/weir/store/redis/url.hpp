// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_URL_HPP
#define WEIR_STORE_REDIS_URL_HPP

#include "weir/error.hpp"

#include <boost/system/error_category.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir {

/// What is wrong with the URL of a Redis server. All of them are `condition::bad_input`.
enum class redis_url_errc {
  no_url = 1,       ///< there is no "://"
  unknown_scheme,   ///< another scheme than those that `redis_address::parse` names
  bad_credentials,  ///< what stands before the "@" is not `[USER]:PASSWORD`
  bad_host,         ///< a host that is empty, or has what no host has
  bad_port,         ///< a port that is not a number from 1 to 65535
  bad_database,     ///< a database that is not a number from 0 to 65535, or in a cluster not 0
  bad_path,         ///< a path that is not absolute, is too long for the system, or has a zero byte
  unknown_option,   ///< a query or a fragment that means nothing
};

namespace detail {

[[nodiscard]] constexpr char const* message_of(redis_url_errc e) noexcept {
  switch (e) {
    case redis_url_errc::no_url: return "not a URL: there is no ://";
    case redis_url_errc::unknown_scheme:
      return "the URL's scheme is none of redis, rediss, redis+cluster, rediss+cluster, unix and "
             "redis+unix";
    case redis_url_errc::bad_credentials:
      return "what stands before the @ of the URL is not USER:PASSWORD or :PASSWORD";
    case redis_url_errc::bad_host: return "the URL's host is not one";
    case redis_url_errc::bad_port: return "the URL's port is not a number from 1 to 65535";
    case redis_url_errc::bad_database:
      return "the URL's database is not a number from 0 to 65535, or not 0 in a cluster";
    case redis_url_errc::bad_path:
      return "the URL's path is not that of a unix socket: not absolute, or too long";
    case redis_url_errc::unknown_option: return "the URL has a query or fragment without a meaning";
  }
  return "unknown error of a URL";
}

class redis_url_category final : public boost::system::error_category {
 public:
  constexpr redis_url_category() noexcept : boost::system::error_category(0x776569727265646c) {}
  [[nodiscard]] char const* name() const noexcept override { return "weir.redis_url"; }
  [[nodiscard]] std::string message(int value) const override {
    return message_of(static_cast<redis_url_errc>(value));
  }
  [[nodiscard]] bool equivalent(
      int value, boost::system::error_condition const& wanted) const noexcept override {
    return wanted == make_error_condition(condition::bad_input) ||
           default_error_condition(value) == wanted;
  }
};

inline constexpr redis_url_category redis_url_category_instance;

}  // namespace detail

/// So that a `redis_url_errc` is an `error_code`.
[[nodiscard]] inline error_code make_error_code(redis_url_errc e) noexcept {
  return {static_cast<int>(e), detail::redis_url_category_instance};
}

}  // namespace weir

/// @cond  what Boost asks for
template <>
struct boost::system::is_error_code_enum<weir::redis_url_errc> : std::true_type {};
/// @endcond

namespace weir::detail {

/// The parts of a URL, of the kinds that `redis_address::parse` names.
struct redis_url {
  using place = std::pair<std::string, std::uint16_t>;

  bool tls = false;
  bool cluster = false;
  std::string user;      // empty: none is named
  std::string password;  // empty: none
  std::vector<place> places;
  std::uint32_t database = 0;
  std::string path;  // of a unix socket; or it has places

  /// @param usual_port where none is named
  [[nodiscard]] static result<redis_url> read(std::string_view url, std::uint16_t usual_port);

 private:
  using errc = redis_url_errc;

  template <class Number>
  static std::optional<Number> whole(std::string_view text) noexcept {
    Number value{};
    auto const* const end = text.data() + text.size();
    auto const [at, ec] = std::from_chars(text.data(), end, value);
    if (text.empty() || ec != std::errc{} || at != end) return std::nullopt;
    return value;
  }

  static std::optional<std::string> unescaped(std::string_view text);
  static result<place> read_place(std::string_view text, std::uint16_t usual_port);
  error_code read_who(std::string_view& url);
  error_code read_database(std::string_view number);
  error_code read_places(std::string_view list, std::uint16_t usual_port);
  error_code read_network(std::string_view rest, std::uint16_t usual_port);
  error_code read_unix(std::string_view rest);
};

inline std::optional<std::string> redis_url::unescaped(std::string_view text) {
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
inline result<redis_url::place> redis_url::read_place(std::string_view text,
                                                      std::uint16_t usual_port) {
  auto host = text;
  std::string_view port;
  bool named = false;
  if (text.starts_with('[')) {
    auto const end = text.find(']');
    if (end == text.npos) return errc::bad_host;
    host = text.substr(1, end - 1);
    auto const rest = text.substr(end + 1);
    named = !rest.empty();
    if (named && rest.front() != ':') return errc::bad_host;
    if (named) port = rest.substr(1);
  } else if (auto const colon = text.find(':'); colon != text.npos) {
    named = true;
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  auto plain = unescaped(host);
  auto const printable = [](char c) { return c > ' ' && c < '\x7f'; };
  if (!plain || plain->empty() || !std::ranges::all_of(*plain, printable)) return errc::bad_host;
  if (!named) return place{std::move(*plain), usual_port};
  auto const number = whole<std::uint16_t>(port);
  if (!number || *number == 0) return errc::bad_port;
  return place{std::move(*plain), *number};
}

/// Takes "USER:PASSWORD@" off the front, if it is there.
inline error_code redis_url::read_who(std::string_view& url) {
  auto const at = url.rfind('@');
  if (at == url.npos) return {};
  auto const who = url.substr(0, at);
  url = url.substr(at + 1);
  auto const colon = who.find(':');
  if (colon == who.npos) return errc::bad_credentials;
  auto name = unescaped(who.substr(0, colon));
  auto secret = unescaped(who.substr(colon + 1));
  if (!name || !secret || secret->empty()) return errc::bad_credentials;
  user = std::move(*name);
  password = std::move(*secret);
  return {};
}

inline error_code redis_url::read_database(std::string_view number) {
  constexpr std::uint32_t most = 65'535;
  auto const found = whole<std::uint32_t>(number);
  if (!found || *found > (cluster ? 0 : most)) return errc::bad_database;
  database = *found;
  return {};
}

inline error_code redis_url::read_places(std::string_view list, std::uint16_t usual_port) {
  for (;;) {
    auto const comma = list.find(',');
    auto found = read_place(list.substr(0, comma), usual_port);
    if (found.has_error()) return found.error();
    places.push_back(std::move(found).value());
    if (comma == list.npos) return {};
    list = list.substr(comma + 1);
  }
}

inline error_code redis_url::read_network(std::string_view rest, std::uint16_t usual_port) {
  if (rest.find_first_of("?#") != rest.npos) return errc::unknown_option;
  if (auto const slash = rest.find('/'); slash != rest.npos) {
    auto const number = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
    if (!number.empty()) {
      if (auto const ec = read_database(number)) return ec;
    }
  }
  if (auto const ec = read_who(rest)) return ec;
  return read_places(rest, usual_port);
}

inline error_code redis_url::read_unix(std::string_view rest) {
  constexpr std::string_view option = "?db=";
  if (auto const query = rest.find('?'); query != rest.npos) {
    auto const said = rest.substr(query);
    if (!said.starts_with(option) || said.find('&') != said.npos) return errc::unknown_option;
    if (auto const ec = read_database(said.substr(option.size()))) return ec;
    rest = rest.substr(0, query);
  }
  if (rest.find('#') != rest.npos) return errc::unknown_option;
  auto const slash = rest.find('/');
  if (slash == rest.npos) return errc::bad_path;
  auto who = rest.substr(0, slash);
  if (auto const ec = read_who(who)) return ec;
  if (!who.empty()) return errc::bad_path;
  auto plain = unescaped(rest.substr(slash));
  constexpr std::size_t longest = 107;  // what the system has room for
  if (!plain || plain->size() > longest || plain->find('\0') != plain->npos) return errc::bad_path;
  path = std::move(*plain);
  return {};
}

inline result<redis_url> redis_url::read(std::string_view url, std::uint16_t usual_port) {
  auto const start = url.find("://");
  if (start == url.npos) return errc::no_url;
  auto const scheme = url.substr(0, start);
  auto const rest = url.substr(start + 3);
  redis_url out;
  error_code ec;
  if (scheme == "unix" || scheme == "redis+unix") {
    ec = out.read_unix(rest);
  } else {
    out.tls = scheme.starts_with("rediss");
    out.cluster = scheme.ends_with("+cluster");
    auto const plain = (out.tls ? "rediss" : "redis") + std::string{out.cluster ? "+cluster" : ""};
    ec = scheme == plain ? out.read_network(rest, usual_port)
                         : make_error_code(errc::unknown_scheme);
  }
  if (ec) return ec;
  return out;
}

}  // namespace weir::detail

#endif
