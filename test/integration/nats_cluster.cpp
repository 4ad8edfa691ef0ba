// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The store on a cluster of three servers that loses its leaders: by a request to step down, and by
// kill -9. What was acknowledged stays, no more hold a key than may, and nothing hangs.

#include "nats_nodes.hpp"
#include "nats_server.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace nats_test;
namespace asio = boost::asio;

constexpr auto tuple = asio::as_tuple(asio::use_awaitable);
constexpr duration lasting = 1h;
constexpr std::uint64_t tokens = 1000;
quota const quotas[] = {quota::per(tokens, 24h)};  // one comes back in a minute and a half

nats_options threefold() {
  auto o = brisk();
  o.replicas = 3;
  o.offline_patience = 30s;
  o.request_timeout = 1s;  // whoever led took what it was asked with it
  o.longest_reconnect_wait = 100ms;
  return o;
}

bool is_transport(error_code ec) {
  return ec == errc::outcome_unknown || ec == errc::store_unavailable;
}

/// Asks until the answer is certain.
template <class C>
asio::awaitable<typename C::result> insist(nats_store store, C c) {
  static_assert(C::repeatable);
  for (;;) {
    auto [ec, answer] = co_await store.async_execute(c, tuple);
    if (!ec) co_return std::move(answer);
    BOOST_TEST_REQUIRE(is_transport(ec), ec.message());
  }
}

/// The number of the server that leads the store's stream.
std::size_t leader(cluster& c, std::size_t except = cluster::size) {
  for (int attempt = 0; attempt != 200; ++attempt) {
    for (std::size_t i = 0; i != cluster::size; ++i) {
      if (i == except) continue;
      try {
        stranger who{c[i]};
        auto const said =
            nlohmann::json::parse(who.ask("$JS.API.STREAM.INFO.weir-keys"), nullptr, false);
        if (!said.is_object() || !said.contains("cluster")) continue;
        auto const name = said["cluster"].value("leader", "");
        for (std::size_t n = 0; n != cluster::size; ++n) {
          if (n != except && name == cluster::name(n)) return n;
        }
      } catch (std::exception const&) {  // nobody answers at the moment
      }
    }
    std::this_thread::sleep_for(50ms);
  }
  throw std::runtime_error{"the stream has no leader"};
}

/// What the clients of one cluster see of each other.
struct audit {
  static constexpr std::uint32_t limit = 3;
  std::uint32_t in_use = 0;
  std::uint64_t last_fence = 0;
  bool locked = false;
  std::uint64_t rounds = 0;
  std::uint64_t certain = 0;
  std::uint64_t unknown = 0;
  bool over = false;
};

asio::awaitable<void> work(nats_store store, audit& all, std::string holder) {
  while (!all.over) {
    command::acquire_permit const ask_permit{"key", holder, audit::limit, lasting, lasting};
    auto permit = co_await insist(store, ask_permit);
    while (!permit.granted) {  // who stands in line stays there until it is its turn
      command::await_permit const wait{"key", holder};
      co_await store.async_execute(wait, tuple);
      permit = co_await insist(store, ask_permit);
    }
    BOOST_TEST(++all.in_use <= audit::limit);

    command::acquire_lock const ask_lock{"key", holder, lasting};
    auto const lock = co_await insist(store, ask_lock);
    if (lock.granted) {
      BOOST_TEST(!std::exchange(all.locked, true));
      BOOST_TEST(lock.fence > all.last_fence);
      all.last_fence = lock.fence;
      command::renew_lock const longer{"key", holder, lock.fence, lasting};
      co_await insist(store, longer);  // it is still ours, or this fails
      all.locked = false;
      command::release_lock const free{"key", holder, lock.fence};
      co_await insist(store, free);
    }

    command::take const take{"key", quotas, 1, {}};
    auto const [ec, taken] = co_await store.async_execute(take, tuple);
    BOOST_TEST((!ec || is_transport(ec)), ec.message());
    if (!ec && taken.allowed) ++all.certain;
    if (ec == errc::outcome_unknown) ++all.unknown;

    --all.in_use;
    command::release_permit const back{"key", holder, permit.fence};
    co_await insist(store, back);
    ++all.rounds;
  }
}

/// Clients at work, on stores that begin at different servers.
struct clients {
  explicit clients(cluster& c) {
    for (std::size_t i = 0; i != cluster::size; ++i) {
      stores.emplace_back(io.get_executor(), c.addresses(), threefold());
      stores.back().async_run([](error_code) {});
    }
    for (int i = 0; i != 6; ++i) {
      ++working;
      auto const& store = stores[static_cast<std::size_t>(i) % stores.size()];
      asio::co_spawn(io, work(store, all, "holder" + std::to_string(i)),
                     [this](std::exception_ptr e) {
                       failed = failed || e;
                       --working;
                     });
    }
  }

  /// Until each of them could have got on.
  void get_on() {
    auto const enough = all.rounds + 30;
    auto const give_up = std::chrono::steady_clock::now() + 60s;
    while (all.rounds < enough && !failed && std::chrono::steady_clock::now() < give_up) {
      io.run_one_for(100ms);
    }
    BOOST_TEST_REQUIRE(!failed);
    BOOST_TEST_REQUIRE(all.rounds >= enough, "they do not get on");
  }

  void stop() {
    all.over = true;
    auto const give_up = std::chrono::steady_clock::now() + 60s;
    while (working != 0 && std::chrono::steady_clock::now() < give_up) io.run_one_for(100ms);
    BOOST_TEST_REQUIRE(working == 0);
    BOOST_TEST(!failed);
    auto const left =
        1 + ask(io, stores[0], command::peek_bucket{"key", quotas, 1, {}}).value().remaining;
    BOOST_TEST(left <= tokens - all.certain + 1);
    BOOST_TEST(left >= tokens - all.certain - all.unknown);
    BOOST_TEST(ask(io, stores[1], command::inspect_permits{"key", 0}).value().in_use == 0U);
    BOOST_TEST(!ask(io, stores[2], command::inspect_lock{"key"}).value().held);
    for (auto const& s : stores) s.close();
    io.restart();
    io.run_for(30s);
    BOOST_TEST(io.stopped());
  }

  asio::io_context io{};
  audit all{};
  std::vector<nats_store> stores{};
  int working = 0;
  bool failed = false;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_on_a_cluster)

BOOST_AUTO_TEST_CASE(R1_R5_leaders_that_step_down_and_die_are_survived) {
  cluster c;
  clients on{c};
  on.get_on();
  for (int i = 0; i != 2; ++i) {
    auto const before = leader(c);
    (void)stranger{c[before]}.ask("$JS.API.STREAM.LEADER.STEPDOWN.weir-keys");
    on.get_on();
  }
  for (int i = 0; i != 2; ++i) {
    auto const before = leader(c);
    c[before].kill();
    on.get_on();
    BOOST_TEST(leader(c, before) != before);
    c[before].start();
    on.get_on();
  }
  on.stop();
}

BOOST_AUTO_TEST_CASE(F46_without_a_majority_nothing_is_granted_and_nothing_hangs) {
  cluster c;
  auto o = threefold();
  o.offline_patience = 1s;
  bed on{c.addresses(), o};
  auto const fence = [&] {
    for (int i = 0; i != 20; ++i) {
      auto const got = on(command::acquire_lock{"key", "me", lasting});
      if (got.has_value()) return got->fence;
    }
    return std::uint64_t{0};
  }();
  BOOST_TEST_REQUIRE(fence != 0U);
  auto const stays = leader(c);
  for (std::size_t i = 0; i != cluster::size; ++i) {
    if (i != stays) c[i].kill();
  }
  for (int i = 0; i != 3; ++i) {
    auto const got = on(command::acquire_lock{"other", "me", lasting});
    BOOST_TEST_REQUIRE(got.has_error());
    BOOST_TEST(is_transport(got.error()), got.error().message());
  }
  for (std::size_t i = 0; i != cluster::size; ++i) {
    if (i != stays) c[i].start();
  }
  result<lock_info> found = make_error_code(errc::closed);
  for (int i = 0; i != 60 && found.has_error(); ++i) found = on(command::inspect_lock{"key"});
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST(found->fence == fence);
}

BOOST_AUTO_TEST_SUITE_END()
