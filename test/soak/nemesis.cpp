// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/nemesis.hpp"

#include "soak/plan.hpp"
#include "weir/testing/fault_proxy.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

namespace soak {

struct network::state {
  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> busy{io.get_executor()};
  weir::testing::fault_proxy proxy;
  std::thread thread;

  explicit state(boost::asio::ip::tcp::endpoint const& to)
      : proxy{io.get_executor(), to},
        thread{[this] { io.run(); }} {}
};

namespace {

/// Where host and port stand in a URL; empty: they are not simple, or TLS wants the name.
std::pair<std::size_t, std::size_t> place_of(std::string const& url) {
  auto const scheme = url.find("://");
  if (scheme == url.npos || url.starts_with("rediss") || url.starts_with("tls") ||
      url.find(',') != url.npos || url.find("sslmode") != url.npos) {
    return {};
  }
  auto const end = std::min(url.find_first_of("/?", scheme + 3), url.size());
  auto const at = url.rfind('@', end);
  return {at == url.npos || at < scheme ? scheme + 3 : at + 1, end};
}

}  // namespace

network::network(opening to) : to_{std::move(to)} {
  auto const [begin, end] = place_of(to_.url);
  if (begin == end) return;
  auto const where = to_.url.substr(begin, end - begin);
  auto const colon = where.rfind(':');
  if (colon == where.npos) return;
  boost::asio::io_context io;
  boost::asio::ip::tcp::resolver resolver{io};
  auto const found = resolver.resolve(where.substr(0, colon), where.substr(colon + 1));
  state_ = std::make_unique<state>(found.begin()->endpoint());
}
network::~network() {
  if (!state_) return;
  state_->io.stop();
  state_->thread.join();
}

opening network::through() const {
  auto out = to_;
  if (!state_) return out;
  auto const [begin, end] = place_of(to_.url);
  out.url.replace(begin, end - begin,
                  "127.0.0.1:" + std::to_string(state_->proxy.endpoint().port()));
  return out;
}

void network::lengthen(std::chrono::milliseconds by) {
  state_->proxy.chaos({.delay = 100, .max_delay = by});
}

void network::heal() {
  if (!state_) return;
  state_->proxy.chaos({});
  state_->proxy.async_refuse(false);
  state_->proxy.async_resume();
  // What a chaos has planned for a connection stays planned.
  state_->proxy.async_cut_all(weir::testing::proxy_ending::fin);
}

std::vector<fault> network::faults() {
  if (!state_) return {};
  using weir::testing::proxy_ending;
  using weir::testing::proxy_rates;
  auto& proxy = state_->proxy;
  auto const chaos = [&proxy](proxy_rates const& rates) {
    return [&proxy, rates] {
      proxy.chaos(rates);
      proxy.async_cut_all(proxy_ending::fin);
    };
  };
  auto const cut = [&proxy](proxy_ending how) {
    return [&proxy, how] { proxy.async_cut_all(how); };
  };
  auto const healed = [this] { heal(); };
  return {{"delays", 3s, 6s, chaos({.delay = 30, .max_delay = 150ms}), healed},
          {"cuts", 3s, 6s, chaos({.cut_before = 1, .cut_in = 1, .cut_after = 1}), healed},
          {"black-holes", 3s, 6s, chaos({.black_hole = 1}), healed},
          {"reset-all", 100ms, 200ms, cut(proxy_ending::reset), {}},
          {"silent-cut", 100ms, 200ms, cut(proxy_ending::silent), {}},
          {"silence", 1s, 5s, [&proxy] { proxy.async_stall(); }, healed},
          {"refused", 1s, 4s,
           [&proxy] {
             proxy.async_refuse(true);
             proxy.async_cut_all(proxy_ending::reset);
           },
           healed}};
}

std::vector<fault> faults_of(family& f, chance_source chance,
                             std::function<void(std::string)> start, bool owners) {
  auto const lease_ms = std::chrono::duration_cast<std::chrono::milliseconds>(lease);
  auto const several = [&f, chance](int n, void (family::*what)(std::uint64_t)) {
    return [&f, chance, n, what] {
      for (int i = 0; i != n; ++i) (f.*what)(chance());
    };
  };
  auto const resume = [&f] { f.resume(); };
  auto const guests = [&f, start](std::string const& role) {
    return fault{role, 3s, 6s, [start, role] { start(role); }, [&f, role] { f.end({role}); }};
  };
  std::vector<fault> out{
      {"kill-process", 100ms, 200ms, several(1, &family::replace_one)},
      {"kill-many", 2s, 4s, several(4, &family::replace_one)},
      {"stop-process", lease_ms + 1s, 2 * lease_ms, several(1, &family::stop_one), resume},
      {"stop-many", lease_ms + 1s, 2 * lease_ms, several(3, &family::stop_one), resume},
      guests("crowd"),
      guests("key-flood"),
      guests("sprawl")};
  if (owners) {  // half of them, so that an owner is often among them
    out.push_back({"stop-15s", 15s, 15s, several(7, &family::stop_one), resume});
    out.push_back({"stop-75s", 75s, 75s, several(7, &family::stop_one), resume});
  }
  return out;
}

}  // namespace soak
