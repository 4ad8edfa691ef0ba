// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_GUARD_HPP
#define WEIR_CONSOLE_GUARD_HPP

#include "weir/console/entrance.hpp"
#include "weir/console/parts.hpp"

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/status.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A request is looked at before anything is done for it, and a response is given the fields by
// which a browser guards it.
namespace weir::detail::web {

namespace http = boost::beast::http;

/// A field that a request must not have twice. Empty: it has none.
[[nodiscard]] inline std::optional<std::string_view> only(request_header const& asked,
                                                          std::string_view name) {
  auto const [first, last] = asked.equal_range(name);
  if (first == last) return std::string_view{};
  if (std::next(first) != last) return std::nullopt;
  return std::string_view{first->value()};
}

/// A name without its port.
[[nodiscard]] inline std::string_view host_of(std::string_view host) {
  auto const bracket = host.find(']');
  auto const colon = host.find(':', bracket == host.npos ? 0 : bracket);
  if (colon == host.npos) return host;
  bool const port = host.find_first_not_of("0123456789", colon + 1) == host.npos;
  return port ? host.substr(0, colon) : host;
}

/// Why a request is refused before anybody looks what it asks for.
struct refusal {
  refusal(status with, std::string_view because) : code{with}, why{because} {}
  status code;
  std::string_view why;
};

/// How far a target is open to sites of others.
enum class openness : std::uint8_t {
  page,   ///< a link of theirs leads here
  file,   ///< no site but this one is given it; a browser of old does not say which asks
  inner,  ///< only a page of this console asks for it: a question, which a key would answer, and
          ///< the stream
};

/// A site of others can send requests here by the browser of an operator: it says from where they
/// come, and which name they were sent to. Over plain HTTP, by a name that is not of the host
/// itself, browsers say less: from where, in `Origin` or `Referer`.
[[nodiscard]] inline std::optional<refusal> refused(request_header const& asked,
                                                    std::vector<std::string> const& hosts,
                                                    bool changes, openness open) {
  auto const host = only(asked, "Host");
  if (!host || host->empty()) return refusal{status::bad_request, "One Host is wanted."};
  bool const known = std::ranges::any_of(
      hosts, [&](std::string const& own) { return boost::beast::iequals(own, host_of(*host)); });
  if (!known) {
    return refusal{status::misdirected_request, "This is not called by that name (Host)."};
  }
  auto const site = only(asked, "Sec-Fetch-Site");
  if (!site) return refusal{status::bad_request, "Sec-Fetch-Site is there twice."};
  if (changes) {
    if (*site == "same-origin") return std::nullopt;
    auto const origin = only(asked, "Origin");
    bool const own = origin && (*origin == "http://" + std::string{*host} ||
                                *origin == "https://" + std::string{*host});
    if (site->empty() && own) return std::nullopt;
    return refusal{status::forbidden, "This did not come from a page of this console."};
  }
  if (site->empty() && open == openness::inner) {
    auto const own = "://" + std::string{*host};
    auto const from = [&](std::string_view field) {
      auto const said = only(asked, field).value_or("");
      auto const at = said.find("://");
      if (at == said.npos || (said.substr(0, at) != "http" && said.substr(0, at) != "https")) {
        return false;
      }
      auto const rest = said.substr(at);
      return rest == own || rest.starts_with(own + "/");
    };
    if (from("Origin") || from("Referer")) return std::nullopt;
    return refusal{status::forbidden, "This did not come from a page of this console."};
  }
  bool const of_others = *site == "cross-site" || *site == "same-site";
  bool const followed = open == openness::page && asked["Sec-Fetch-Mode"] == "navigate" &&
                        asked["Sec-Fetch-Dest"] == "document";
  if (of_others && !followed) return refusal{status::forbidden, "Another site asks for this."};
  return std::nullopt;
}

/// The fields by which a browser lets nothing in, and nobody else have it.
inline void guard(http::response_header<>& out) {
  out.set(http::field::cache_control, "no-store");
  out.set("X-Content-Type-Options", "nosniff");
  out.set(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action "
      "'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'");
  out.set("Cross-Origin-Opener-Policy", "same-origin");
  out.set("Cross-Origin-Resource-Policy", "same-origin");
  out.set("Referrer-Policy", "strict-origin");  // targets are long
}

}  // namespace weir::detail::web

#endif
