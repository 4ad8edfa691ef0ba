// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_URL_HPP
#define WEIR_STORE_REDIS_URL_HPP

#include "weir/error.hpp"

#include <boost/system/error_category.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  no_service,       ///< of sentinels: no service is named, or not as sentinels name one
  bad_certificate,  ///< a file of TLS without TLS, or a certificate without its key, or no path
};

namespace detail {

[[nodiscard]] constexpr char const* message_of(redis_url_errc e) noexcept {
  switch (e) {
    case redis_url_errc::no_url: return "not a URL: there is no ://";
    case redis_url_errc::unknown_scheme:
      return "the URL's scheme is none of redis, rediss, redis+cluster, rediss+cluster, "
             "redis+sentinel, rediss+sentinel, unix and redis+unix";
    case redis_url_errc::bad_credentials:
      return "what stands before the @ of the URL is not USER:PASSWORD or :PASSWORD";
    case redis_url_errc::bad_host: return "the URL's host is not one";
    case redis_url_errc::bad_port: return "the URL's port is not a number from 1 to 65535";
    case redis_url_errc::bad_database:
      return "the URL's database is not a number from 0 to 65535, or not 0 in a cluster";
    case redis_url_errc::bad_path:
      return "the URL's path is not that of a unix socket: not absolute, or too long";
    case redis_url_errc::unknown_option: return "the URL has a query or fragment without a meaning";
    case redis_url_errc::no_service:
      return "the URL of sentinels has no service behind its hosts, as in /mymaster";
    case redis_url_errc::bad_certificate:
      return "the URL's cacert, cert and key are files for rediss, and cert and key go together";
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
  bool sentinel = false;
  std::string service;   // of the sentinels
  std::string user;      // empty: none is named
  std::string password;  // empty: none
  std::vector<place> places;
  std::uint32_t database = 0;
  std::string path;  // of a unix socket; or it has places
  std::string ca_file;
  std::string certificate;
  std::string key_file;

  static constexpr std::uint16_t usual_port = 6379;
  static constexpr std::uint16_t usual_sentinel_port = 26'379;

  [[nodiscard]] error_code read(std::string_view url);

 private:
  using errc = redis_url_errc;

  template <class Number>
  static std::optional<Number> whole(std::string_view text) noexcept;
  static std::optional<std::string> unescaped(std::string_view text);
  [[nodiscard]] result<place> read_place(std::string_view text) const;
  error_code read_who(std::string_view& url);
  error_code read_database(std::string_view number);
  error_code read_places(std::string_view list);
  error_code read_service(std::string_view& behind);
  error_code read_files(std::string_view query);
  error_code read_network(std::string_view rest);
  error_code read_unix(std::string_view rest);
};

}  // namespace weir::detail

#endif
