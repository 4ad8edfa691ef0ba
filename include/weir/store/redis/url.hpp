// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_URL_HPP
#define WEIR_STORE_REDIS_URL_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

  // The texts of errors.
  static constexpr std::string_view no_url = "not a URL: there is no ://";
  static constexpr std::string_view unknown_scheme =
      "the URL's scheme is none of redis, rediss, redis+cluster, rediss+cluster, redis+sentinel, "
      "rediss+sentinel, unix and redis+unix";
  static constexpr std::string_view bad_credentials =
      "what stands before the @ of the URL is not USER:PASSWORD or :PASSWORD";
  static constexpr std::string_view bad_host = "the URL's host is not one";
  static constexpr std::string_view bad_port = "the URL's port is not a number from 1 to 65535";
  static constexpr std::string_view bad_database =
      "the URL's database is not a number from 0 to 65535, or not 0 in a cluster";
  static constexpr std::string_view bad_path =
      "the URL's path is not that of a unix socket: not absolute, or too long";
  static constexpr std::string_view unknown_option =
      "the URL has a query or fragment without a meaning";
  static constexpr std::string_view no_service =
      "the URL of sentinels has no service behind its hosts, as in /mymaster";
  static constexpr std::string_view bad_certificate =
      "the URL's cacert, cert and key are files for rediss, and cert and key go together";

  /// Error: `invalid_option`, explained by one of these.
  [[nodiscard]] error_code read(std::string_view url);

 private:
  static error_code wrong(std::string_view text) noexcept {
    return explained(errc::invalid_option, text);
  }
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
