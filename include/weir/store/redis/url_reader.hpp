// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_URL_READER_HPP
#define WEIR_STORE_REDIS_URL_READER_HPP

#include "weir/detail/config.hpp"
#include "weir/detail/whole_number.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/url.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace weir::detail {

WEIR_DECL std::optional<std::string> redis_url::unescaped(std::string_view text) {
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
WEIR_DECL result<redis_url::place> redis_url::read_place(std::string_view text) const {
  auto host = text;
  std::string_view port;
  bool named = false;
  if (text.starts_with('[')) {
    auto const end = text.find(']');
    if (end == text.npos) return wrong(bad_host);
    host = text.substr(1, end - 1);
    auto const rest = text.substr(end + 1);
    named = !rest.empty();
    if (named && rest.front() != ':') return wrong(bad_host);
    if (named) port = rest.substr(1);
  } else if (auto const colon = text.find(':'); colon != text.npos) {
    named = true;
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  auto plain = unescaped(host);
  auto const printable = [](char c) { return c > ' ' && c < '\x7f'; };
  if (!plain || plain->empty() || !std::ranges::all_of(*plain, printable)) return wrong(bad_host);
  if (!named) return place{std::move(*plain), sentinel ? usual_sentinel_port : usual_port};
  auto const number = whole_number<std::uint16_t>(port);
  if (!number || *number == 0) return wrong(bad_port);
  return place{std::move(*plain), *number};
}

/// Takes "USER:PASSWORD@" off the front, if it is there.
WEIR_DECL error_code redis_url::read_who(std::string_view& url) {
  auto const at = url.rfind('@');
  if (at == url.npos) return {};
  auto const who = url.substr(0, at);
  url = url.substr(at + 1);
  auto const colon = who.find(':');
  if (colon == who.npos) return wrong(bad_credentials);
  auto name = unescaped(who.substr(0, colon));
  auto secret = unescaped(who.substr(colon + 1));
  if (!name || !secret || secret->empty()) return wrong(bad_credentials);
  user = std::move(*name);
  password = std::move(*secret);
  return {};
}

WEIR_DECL error_code redis_url::read_database(std::string_view number) {
  constexpr std::uint32_t most = 65'535;
  auto const found = whole_number(number, cluster ? 0 : most);
  if (!found) return wrong(bad_database);
  database = *found;
  return {};
}

WEIR_DECL error_code redis_url::read_places(std::string_view list) {
  for (;;) {
    auto const comma = list.find(',');
    auto found = read_place(list.substr(0, comma));
    if (found.has_error()) return found.error();
    places.push_back(std::move(found).value());
    if (comma == list.npos) return {};
    list = list.substr(comma + 1);
  }
}

/// Takes what the sentinels call the service off the front of what stands behind the hosts.
WEIR_DECL error_code redis_url::read_service(std::string_view& behind) {
  constexpr std::size_t longest = 255;
  auto const end = std::min(behind.find('/'), behind.size());
  auto plain = unescaped(behind.substr(0, end));
  auto const printable = [](char c) { return c > ' ' && c < '\x7f'; };
  if (!plain || plain->empty() || plain->size() > longest ||
      !std::ranges::all_of(*plain, printable)) {
    return wrong(no_service);
  }
  service = std::move(*plain);
  behind.remove_prefix(std::min(end + 1, behind.size()));
  return {};
}

/// "cacert=PATH&cert=PATH&key=PATH", or some of it.
WEIR_DECL error_code redis_url::read_files(std::string_view query) {
  while (!query.empty()) {
    auto const end = std::min(query.find('&'), query.size());
    auto const one = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    auto const equals = std::min(one.find('='), one.size());
    auto const name = one.substr(0, equals);
    auto* const file = name == "cacert" ? &ca_file
                       : name == "cert" ? &certificate
                       : name == "key"  ? &key_file
                                        : nullptr;
    if (file == nullptr) return wrong(unknown_option);
    auto plain = unescaped(one.substr(std::min(equals + 1, one.size())));
    if (!tls || !plain || plain->empty() || plain->find('\0') != plain->npos) {
      return wrong(bad_certificate);
    }
    *file = std::move(*plain);
  }
  if (certificate.empty() != key_file.empty()) return wrong(bad_certificate);
  return {};
}

WEIR_DECL error_code redis_url::read_network(std::string_view rest) {
  if (rest.find('#') != rest.npos) return wrong(unknown_option);
  if (auto const query = rest.find('?'); query != rest.npos) {
    if (query + 1 == rest.size()) return wrong(unknown_option);
    if (auto const ec = read_files(rest.substr(query + 1))) return ec;
    rest = rest.substr(0, query);
  }
  auto const slash = std::min(rest.find('/'), rest.size());
  auto behind = rest.substr(std::min(slash + 1, rest.size()));
  rest = rest.substr(0, slash);
  if (sentinel) {
    if (auto const ec = read_service(behind)) return ec;
  }
  if (!behind.empty()) {
    if (auto const ec = read_database(behind)) return ec;
  }
  if (auto const ec = read_who(rest)) return ec;
  return read_places(rest);
}

WEIR_DECL error_code redis_url::read_unix(std::string_view rest) {
  constexpr std::string_view option = "?db=";
  if (auto const query = rest.find('?'); query != rest.npos) {
    auto const said = rest.substr(query);
    if (!said.starts_with(option) || said.find('&') != said.npos) return wrong(unknown_option);
    if (auto const ec = read_database(said.substr(option.size()))) return ec;
    rest = rest.substr(0, query);
  }
  if (rest.find('#') != rest.npos) return wrong(unknown_option);
  auto const slash = rest.find('/');
  if (slash == rest.npos) return wrong(bad_path);
  auto who = rest.substr(0, slash);
  if (auto const ec = read_who(who)) return ec;
  if (!who.empty()) return wrong(bad_path);
  auto plain = unescaped(rest.substr(slash));
  constexpr std::size_t longest = 107;  // what the system has room for
  if (!plain || plain->size() > longest || plain->find('\0') != plain->npos) return wrong(bad_path);
  path = std::move(*plain);
  return {};
}

WEIR_DECL error_code redis_url::read(std::string_view url) {
  auto const start = url.find("://");
  if (start == url.npos) return wrong(no_url);
  auto const scheme = url.substr(0, start);
  auto const rest = url.substr(start + 3);
  if (scheme == "unix" || scheme == "redis+unix") return read_unix(rest);
  tls = scheme.starts_with("rediss");
  cluster = scheme.ends_with("+cluster");
  sentinel = scheme.ends_with("+sentinel");
  auto const* const kind = cluster ? "+cluster" : sentinel ? "+sentinel" : "";
  if (scheme != (tls ? "rediss" : "redis") + std::string{kind}) return wrong(unknown_scheme);
  return read_network(rest);
}

}  // namespace weir::detail

#endif
