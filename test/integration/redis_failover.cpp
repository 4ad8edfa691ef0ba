// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A server that is succeeded by its replica behind one address, while it lives on and keeps its
// connections; and hosts of which the first never says a word.

#include "patience.hpp"
#include "redis_nodes.hpp"
#include "redis_server.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace redis_test;
using weir_test::happens;
using tcp = boost::asio::ip::tcp;

constexpr duration lasting = 1h;

/// An address whose connections go to a server, and later ones to another: those that there are
/// stay where they are.
class forwarder {
 public:
  forwarder(boost::asio::io_context& io, std::uint16_t to)
      : to_{to},
        acceptor_{io, {boost::asio::ip::address_v4::loopback(), 0}} {
    accept();
  }
  [[nodiscard]] redis_address address() const {
    return redis_address{"127.0.0.1", acceptor_.local_endpoint().port()};
  }
  void move(std::uint16_t to) { to_ = to; }
  void cut() {
    for (auto const& p : pairs_) p->close();
  }
  void close() {
    acceptor_.close();
    cut();
  }
  /// Connections that came so far.
  [[nodiscard]] std::size_t came() const { return pairs_.size(); }

 private:
  struct pair : std::enable_shared_from_this<pair> {
    pair(tcp::socket client) : near{std::move(client)}, far{near.get_executor()} {}
    void carry(tcp::socket& from, tcp::socket& to, std::array<char, 65536>& bytes) {
      auto on_bytes = [self = shared_from_this(), &from, &to, &bytes](auto ec, std::size_t n) {
        if (ec) return self->close();
        auto on_written = [self, &from, &to, &bytes](auto failed, std::size_t) {
          failed ? self->close() : self->carry(from, to, bytes);
        };
        boost::asio::async_write(to, boost::asio::buffer(bytes.data(), n), on_written);
      };
      from.async_read_some(boost::asio::buffer(bytes), on_bytes);
    }
    void close() {
      boost::system::error_code ignored;
      near.close(ignored);
      far.close(ignored);
    }
    tcp::socket near;
    tcp::socket far;
    std::array<char, 65536> out{};
    std::array<char, 65536> in{};
  };

  void accept() {
    acceptor_.async_accept([this](auto ec, tcp::socket client) {
      if (ec) return;
      auto const p = std::make_shared<pair>(std::move(client));
      pairs_.push_back(p);
      boost::system::error_code failed;
      p->far.connect({boost::asio::ip::address_v4::loopback(), to_}, failed);
      if (!failed) {
        p->carry(p->near, p->far, p->out);
        p->carry(p->far, p->near, p->in);
      } else {
        p->close();
      }
      accept();
    });
  }

  std::uint16_t to_;
  tcp::acceptor acceptor_;
  std::vector<std::shared_ptr<pair>> pairs_;
};

/// A host that takes connections and never says a word.
struct mute {
  boost::asio::io_context io;
  tcp::acceptor acceptor{io, {boost::asio::ip::address_v4::loopback(), 0}};
  [[nodiscard]] std::uint16_t port() const { return acceptor.local_endpoint().port(); }
};

void wait_for(server const& replica) {
  cluster::wait("replica that is up to date", [&] {
    return replica.ask("info replication").find("master_link_status:up") != std::string::npos;
  });
}

redis_options quick_to_look() {
  auto o = unhurried();
  o.connect_timeout = 200ms;
  o.least_reconnect_wait = 1ms;
  o.longest_reconnect_wait = 50ms;
  return o;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_failover)

BOOST_AUTO_TEST_CASE(F70_a_server_that_has_become_a_replica_is_left_for_its_successor) {
  server first{{"--repl-diskless-sync-delay", "0"}};
  server const second{{"--repl-diskless-sync-delay", "0", "--replicaof",
                       "127.0.0.1 " + std::to_string(first.port())}};
  wait_for(second);
  boost::asio::io_context io;
  forwarder way{io, first.port()};
  redis_store const store{io.get_executor(), way.address(), quick_to_look()};
  store.async_run([](error_code) {});
  BOOST_TEST(ask(io, store, command::acquire_lock{"before", "me", lasting}).value().granted);
  cluster::wait("lock on the replica",
                [&] { return second.ask("exists '{weir:0}:l:before'") == "1"; });
  // Somebody waits for a hint.
  BOOST_TEST(ask(io, store, command::acquire_permit{"key", "a", 1, lasting, {}}).value().granted);
  BOOST_TEST(
      ask(io, store, command::acquire_permit{"key", "b", 1, lasting, lasting}).value().place == 1U);
  std::optional<error_code> woken;
  store.async_execute(command::await_permit{"key", "b"}, [&](error_code ec, hint) { woken = ec; });
  cluster::wait("permit on the replica", [&] {
    io.restart();
    io.run_for(10ms);
    return replication_offset(first) == replication_offset(second);
  });

  second.ask("replicaof no one");
  first.ask("replicaof 127.0.0.1 " + std::to_string(second.port()));
  wait_for(first);
  // Those that come before the address moves wait for that, and those that only look do not.
  constexpr std::size_t many = 100;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i != many; ++i) keys.push_back("key" + std::to_string(i));
  std::size_t granted = 0;
  std::size_t seen = 0;
  for (auto const& key : keys) {
    store.async_execute(command::acquire_lock{key, "me", lasting},
                        [&](error_code ec, lock_grant const& g) {
                          BOOST_TEST(!ec, ec.message());
                          granted += g.granted;
                        });
    store.async_execute(command::inspect_lock{"before"}, [&](error_code ec, lock_info const& i) {
      BOOST_TEST(!ec, ec.message());
      seen += i.held;
    });
  }
  auto const before = way.came();
  BOOST_TEST_REQUIRE(happens(io, [&] { return seen == many && way.came() > before + 2; }));
  BOOST_TEST(granted == 0U);
  way.move(second.port());
  BOOST_TEST_REQUIRE(happens(io, [&] { return granted == many; }));
  BOOST_TEST(second.ask("exists '{weir:0}:l:key99'") == "1");
  BOOST_TEST(second.ask("info replication").find("role:master") != std::string::npos);
  // It stays there.
  auto const there = way.came();
  for (int i = 0; i != 20; ++i) {
    BOOST_TEST(ask(io, store, command::release_lock{keys[0], "me", 0}).has_value());
  }
  BOOST_TEST(way.came() <= there + 1);  // the hints' connection may be the last one
  BOOST_TEST(ask(io, store, command::release_permit{"key", "a", 0}).value().freed);
  BOOST_TEST_REQUIRE(happens(io, [&] { return woken.has_value(); }));
  BOOST_TEST(!*woken, woken->message());
  store.close();
  way.close();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_CASE(F70_while_nobody_succeeds_a_replica_writes_are_refused_after_their_patience) {
  server first{{"--repl-diskless-sync-delay", "0"}};
  server const second{{"--repl-diskless-sync-delay", "0"}};
  first.ask("replicaof 127.0.0.1 " + std::to_string(second.port()));
  wait_for(first);
  auto o = quick_to_look();
  o.offline_patience = 500ms;
  boost::asio::io_context io;
  forwarder way{io, first.port()};
  redis_store const store{io.get_executor(), way.address(), o};
  store.async_run([](error_code) {});
  for (int i = 0; i != 3; ++i) {
    auto const refused = ask(io, store, command::acquire_lock{"key", "me", lasting});
    BOOST_TEST((refused.has_error() && refused.error() == errc::store_read_only));
    BOOST_TEST(ask(io, store, command::inspect_lock{"key"}).has_value());
  }
  store.close();
  way.close();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_CASE(F70_a_mute_first_host_does_not_hide_the_second) {
  mute const first;
  server const second;
  redis_address several{"127.0.0.1", first.port()};
  several.or_at("127.0.0.1", second.port());
  bed on{several, quick_to_look()};
  BOOST_TEST(on(command::acquire_lock{"key", "me", lasting}).value().granted);
  auto const url = "redis://127.0.0.1:" + std::to_string(first.port()) +
                   ",localhost:" + std::to_string(second.port());
  bed named{redis_address::parse(url).value(), quick_to_look()};
  BOOST_TEST(named(command::inspect_lock{"key"}).value().held);
}

BOOST_AUTO_TEST_CASE(F70_of_several_hosts_the_one_that_writes_is_used) {
  server const second;
  server const first{{"--replicaof", "127.0.0.1 " + std::to_string(second.port()),
                      "--repl-diskless-sync-delay", "0"}};
  wait_for(first);
  auto several = first.address();
  several.or_at("127.0.0.1", second.port());
  bed on{several, quick_to_look()};
  BOOST_TEST(on(command::acquire_lock{"key", "me", lasting}).value().granted);
  BOOST_TEST(second.ask("exists '{weir:0}:l:key'") == "1");
}

// A worker that is idle only looks, which a replica lets it do for good.
BOOST_AUTO_TEST_CASE(F70_who_only_looks_finds_the_host_that_writes_again) {
  server const first{{"--repl-diskless-sync-delay", "0"}};
  server const second{{"--repl-diskless-sync-delay", "0", "--replicaof",
                       "127.0.0.1 " + std::to_string(first.port())}};
  wait_for(second);
  boost::asio::io_context io;
  forwarder way{io, first.port()};
  auto several = way.address();
  several.or_at("127.0.0.1", second.port());
  auto o = quick_to_look();
  o.connect_timeout = 10s;
  o.health_check_interval = 100ms;
  redis_store const store{io.get_executor(), several, o};
  store.async_run([](error_code) {});
  auto const finds = [&](std::string const& queue) {
    return happens(io, [&] {
      auto const seen = ask(io, store, command::scan_visible_queues{0, 10, 0});
      return seen.has_value() && std::ranges::count(seen->queues, queue) == 1;
    });
  };
  auto const enqueue = [](server const& at, std::string const& queue) {
    bed on{at.address(), unhurried()};
    std::array<new_job, 1> jobs{};
    jobs[0].id.data[0] = 1;
    jobs[0].kind = "kind";
    BOOST_TEST_REQUIRE(on(command::enqueue_jobs{queue, jobs}).has_value());
  };
  enqueue(first, "before");
  BOOST_TEST_REQUIRE(finds("before"));

  // There is nothing but the replica for a while, which then knows nothing new.
  constexpr std::uint16_t nobody = 1;
  way.move(nobody);
  way.cut();
  BOOST_TEST_REQUIRE(finds("before"));
  second.ask("replicaof 127.0.0.1 1");
  way.move(first.port());
  enqueue(first, "news");
  BOOST_TEST(finds("news"));

  // The other one is promoted, and the connection lasts.
  second.ask("replicaof no one");
  first.ask("replicaof 127.0.0.1 1");
  enqueue(second, "later");
  BOOST_TEST(finds("later"));
  store.close();
  way.close();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_CASE(F70_a_mute_first_node_does_not_hide_the_others_of_a_cluster) {
  mute const first;
  cluster nodes{{}, 0};
  redis_address several{"127.0.0.1", first.port()};
  several.cluster_with("127.0.0.1", nodes[0].port());
  bed on{several, quick_to_look()};
  BOOST_TEST(on(command::acquire_lock{"key", "me", lasting}).value().granted);
}

BOOST_AUTO_TEST_SUITE_END()
