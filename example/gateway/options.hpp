// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_GATEWAY_OPTIONS_HPP
#define WEIR_EXAMPLE_GATEWAY_OPTIONS_HPP

#include "../serving/service.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace gateway {

inline constexpr std::string_view usage_text =
    R"(usage: gateway [options]

An HTTP server in front of a slow backend, which lets each API key ask only so often, and only so many requests
through at once, over all gateways on the same store.

  GET or POST /v1/answer   asks the backend; wants `Authorization: Bearer KEY` or `X-API-Key: KEY` (any KEY will do)
  GET /status              how many requests run and wait, over all gateways

      --listen [HOST:]PORT where clients connect (default: 127.0.0.1:8080; port 0: one that is free, which is printed)
      --store STORE        what the gateways share: memory (the default: nothing); sqlite:FILE; or a redis:// URL
      --rate N/UNIT        requests of one key in a second, minute, hour or day: 10/s (the default), 500/m, 3/h, 1/d
      --burst N            requests of one key at once, at most (default: the N of --rate)
      --limit N            requests that the backend works on at once (default: 4)
      --wait TIME          how long a request waits for its turn before it is refused (default: 5s)
      --ttl TIME           when the permits of a gateway that died are free again (default: 10s)
      --backend HOST:PORT  an HTTP server to which the questions are posted (default: a model that only pretends)
      --think TIME         how long the model that only pretends takes (default: 200ms)
      --drain TIME         how long requests may go on after the first SIGINT or SIGTERM (default: 10s)
      --connections N      clients at once, at most; the others queue (default: 1000)
      --console            a page about the store at /console, to read only, for browsers on this host
      --threads N          (default: one per core)
  -h, --help               this text

A TIME is a whole number and ms, s, m or h. All gateways on a store should have the same --rate, --burst and --limit.

responses:  200; 401 no key; 429 the key's rate, or no turn within --wait, with Retry-After; 502 the backend failed;
            503 the store failed, or the permit was lost; 400, 404, 405, 413, 431 as usual
exit codes: 0 ended by a signal, every request answered; 1 some were cut off after --drain; 2 wrong usage;
            3 something else failed. A second signal ends it at once.
)";

struct options {
  serving::place listen{};
  std::string store = "memory";
  weir::quota rate = weir::quota::per_second(10);
  std::uint32_t limit = 4;
  weir::duration wait = std::chrono::seconds{5};
  weir::duration ttl = std::chrono::seconds{10};
  std::string backend_host{};  ///< empty: there is none
  std::uint16_t backend_port = 0;
  weir::duration think = std::chrono::milliseconds{200};
  weir::duration drain = std::chrono::seconds{10};
  std::uint32_t threads = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
  bool console = false;
  bool help = false;
};

/// A command line that cannot be followed; `what` says why.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

[[noreturn]] inline void refuse(std::string_view name, std::string const& wants,
                                std::string_view text) {
  throw usage_error{std::string{name} + " wants " + wants + ", not '" + std::string{text} + "'"};
}

/// The whole of `text` as a number.
[[nodiscard]] inline std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  auto const* const last = text.data() + text.size();
  auto const [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

}  // namespace detail

[[nodiscard]] inline std::uint32_t parse_count(std::string_view name, std::string_view text,
                                               std::uint32_t most) {
  auto const value = detail::number(text);
  if (!value || *value == 0 || *value > most) {
    detail::refuse(name, "a number from 1 to " + std::to_string(most), text);
  }
  return static_cast<std::uint32_t>(*value);
}

[[nodiscard]] inline weir::duration parse_time(std::string_view name, std::string_view text,
                                               weir::duration least) {
  using namespace std::chrono_literals;
  auto const unit_at = std::min(text.find_first_not_of("0123456789"), text.size());
  auto const value = detail::number(text.substr(0, unit_at));
  auto const unit = text.substr(unit_at);
  weir::duration const one = unit == "ms"  ? 1ms
                             : unit == "s" ? 1s
                             : unit == "m" ? 1min
                             : unit == "h" ? 1h
                                           : weir::duration{};
  constexpr weir::duration most = 24h;
  if (!value || one == weir::duration{} || *value > static_cast<std::uint64_t>(most / one) ||
      static_cast<std::int64_t>(*value) * one < least) {
    detail::refuse(name, "a time such as 200ms, 5s or 1m, from 1ms to 24h", text);
  }
  return static_cast<std::int64_t>(*value) * one;
}

[[nodiscard]] inline weir::quota parse_rate(std::string_view text) {
  auto const slash = std::min(text.find('/'), text.size());
  auto const value = detail::number(text.substr(0, slash));
  auto const unit = text.substr(slash);
  if (value && *value >= 1 && *value <= 1'000'000) {
    if (unit == "/s") return weir::quota::per_second(*value);
    if (unit == "/m") return weir::quota::per_minute(*value);
    if (unit == "/h") return weir::quota::per_hour(*value);
    if (unit == "/d") return weir::quota::per_day(*value);
  }
  detail::refuse("--rate", "a number of requests per s, m, h or d, such as 10/s", text);
}

/// `HOST:PORT`, `[v6]:PORT` or `PORT`; who gives no host leaves it as it was.
inline void parse_place(std::string_view name, std::string_view text, std::string& host,
                        std::uint16_t& port) {
  auto const colon = text.rfind(':');
  auto given = colon == std::string_view::npos ? std::string_view{} : text.substr(0, colon);
  auto const value =
      detail::number(colon == std::string_view::npos ? text : text.substr(colon + 1));
  if (given.starts_with('[') && given.ends_with(']')) given = given.substr(1, given.size() - 2);
  if (!value || *value > 65'535 || (colon != std::string_view::npos && given.empty())) {
    detail::refuse(name, "a host and a port such as 127.0.0.1:8080", text);
  }
  if (!given.empty()) host = given;
  port = static_cast<std::uint16_t>(*value);
}

/// Reads the arguments after the program's name; of an option given twice, the last counts. Throws
/// `usage_error`.
[[nodiscard]] inline options parse_options(std::span<char const* const> arguments) {
  using namespace std::chrono_literals;
  options parsed;
  std::optional<std::uint32_t> burst;

  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view const argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      parsed.help = true;
      continue;
    }
    if (argument == "--console") {
      parsed.console = true;
      continue;
    }
    auto const equals = argument.find('=');
    std::string_view const name = argument.substr(0, equals);
    constexpr std::array known{"--listen",  "--store", "--rate",    "--burst",
                               "--limit",   "--wait",  "--ttl",     "--think",
                               "--backend", "--drain", "--threads", "--connections"};
    if (std::ranges::find(known, name) == known.end()) {
      throw usage_error{"there is no option '" + std::string{name} + "'"};
    }
    if (equals == std::string_view::npos && i + 1 == arguments.size()) {
      throw usage_error{std::string{name} + " wants a value"};
    }
    std::string_view const value =
        equals == std::string_view::npos ? arguments[++i] : argument.substr(equals + 1);

    if (name == "--listen") parse_place(name, value, parsed.listen.host, parsed.listen.port);
    if (name == "--store") parsed.store = value;
    if (name == "--rate") parsed.rate = parse_rate(value);
    if (name == "--burst") burst = parse_count(name, value, 1'000'000);
    if (name == "--limit") parsed.limit = parse_count(name, value, weir::limits::permits);
    if (name == "--wait") parsed.wait = parse_time(name, value, 0ms);
    if (name == "--ttl") parsed.ttl = parse_time(name, value, 1ms);
    if (name == "--think") parsed.think = parse_time(name, value, 0ms);
    if (name == "--drain") parsed.drain = parse_time(name, value, 0ms);
    if (name == "--connections") parsed.listen.connections = parse_count(name, value, 100'000);
    if (name == "--threads") parsed.threads = parse_count(name, value, 64);
    if (name == "--backend") {
      parse_place(name, value, parsed.backend_host, parsed.backend_port);
      if (parsed.backend_host.empty()) parsed.backend_host = "127.0.0.1";
    }
  }
  if (burst) parsed.rate = parsed.rate.burst(*burst);
  return parsed;
}

}  // namespace gateway

#endif
