// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "../printable.hpp"
#include "../serving/server.hpp"
#include "session.hpp"
#include "weir/console.hpp"
#include "weir/log.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace console {

namespace {

using serving::request;
using serving::response;

class page_service final : public serving::service {
 public:
  explicit page_service(weir::console page) : page_{std::move(page)} {}

  asio::awaitable<response> answer(request const& asked) override {
    return page_.async_handle(asked, asio::use_awaitable);
  }
  [[nodiscard]] response refusal(boost::beast::http::status status,
                                 std::string_view why) const override {
    response out{status, 11};
    out.set(boost::beast::http::field::content_type, "text/plain");
    out.body() = std::string{why} + "\n";
    return out;
  }
  std::optional<serving::endless_response> open(request const& asked) override {
    auto opened = page_.open_stream(asked);
    if (!opened) return std::nullopt;
    auto const stream = std::make_shared<weir::console_stream>(std::move(*opened));
    return serving::endless_response{stream->head(),
                                     [stream] { return stream->async_next(asio::use_awaitable); }};
  }

 private:
  weir::console page_;
};

/// `HOST:PORT`, where a host of version 6 stands in brackets.
serving::place to_place(std::string const& text) {
  serving::place out;
  auto const colon = text.rfind(':');
  auto const* const end = text.data() + text.size();
  bool good = colon != text.npos && colon != 0 && colon + 1 != text.size();
  if (good) {
    auto const [ptr, ec] = std::from_chars(text.data() + colon + 1, end, out.port);
    good = ec == std::errc{} && ptr == end;
    out.host = text.substr(0, colon);
  }
  if (out.host.starts_with('[') && out.host.ends_with(']')) {
    out.host = out.host.substr(1, out.host.size() - 2);
  }
  if (!good) throw failure{wrong_usage, "--listen is a host and a port, such as 127.0.0.1:8047"};
  out.connections = 64;
  return out;
}

/// As an address stands in a URL.
std::string host_of(asio::ip::address const& address) {
  return address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
}

weir::console_options options_of(options const& o, serving::place const& where) {
  weir::console_options out;
  out.title = "weir " + o.store.substr(0, o.store.find(':'));
  for (auto const action : weir::console_actions) {
    bool const named = std::ranges::find(o.allow, to_string(action)) != o.allow.end();
    if (named || std::ranges::find(o.allow, "all") != o.allow.end()) out.allow.push_back(action);
  }
  out.hosts.insert(out.hosts.end(), o.hosts.begin(), o.hosts.end());
  // The address that it listens at: no site can have that for its own name.
  weir::error_code no_address;
  auto const address = asio::ip::make_address(where.host, no_address);
  if (!no_address && !address.is_unspecified()) out.hosts.push_back(host_of(address));
  return out;
}

}  // namespace

answer serve_pages(session& s) {
  s.ends_by_itself = true;
  auto const where = to_place(s.o.listen);
  page_service pages{weir::console{s.store, options_of(s.o, where)}};
  serving::server server{s.pause.get_executor(), where, pages};
  // A store that cannot be used is said now, and not on each page.
  if (auto const [ec, first] = co_await s.queue.async_list_queues(0, 1, {}, as_value); ec) {
    co_return s.fail(ec);
  }
  asio::co_spawn(server.get_executor(), server.accept(), weir::log::failures{"accept"});
  auto const at = server.local();
  auto const host = at.address().is_unspecified() ? "localhost" : host_of(at.address());
  auto const url = "http://" + host + ":" + std::to_string(at.port()) + "/";
  s.out.line(url, json{{"url", url}});
  if (!at.address().is_loopback()) {
    say("others than this host can reach the page, and nobody is asked who they are");
  }
  s.pause.expires_at(asio::steady_timer::time_point::max());
  if (!s.stopping) co_await s.pause.async_wait(as_value);
  co_await asio::co_spawn(server.get_executor(), server.finish(std::chrono::seconds{5}),
                          asio::use_awaitable);
  co_return done;
}

}  // namespace console
