// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F70: a server that takes no writes any more, or says nothing, is left for the one that does.

#include "patience.hpp"
#include "postgres_bed.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace postgres_test;
using boost::asio::ip::tcp;

/// An address that leads to one server, and later to another. Connections stay where they led when
/// they were made.
class address {
 public:
  address(boost::asio::io_context& io, unsigned short to)
      : acceptor_{io, {boost::asio::ip::address_v4::loopback(), 0}},
        to_{std::make_shared<unsigned short>(to)} {
    boost::asio::co_spawn(io, accept(acceptor_, to_), boost::asio::detached);
  }
  address(address const&) = delete;
  address& operator=(address const&) = delete;
  ~address() = default;

  void move_to(unsigned short to) { *to_ = to; }
  [[nodiscard]] unsigned short port() const { return acceptor_.local_endpoint().port(); }

 private:
  static boost::asio::awaitable<void> accept(tcp::acceptor& at,
                                             std::shared_ptr<unsigned short> to) {
    for (;;) {
      error_code ec;
      auto const client = std::make_shared<tcp::socket>(at.get_executor());
      co_await at.async_accept(*client,
                               boost::asio::redirect_error(boost::asio::use_awaitable, ec));
      if (ec) co_return;
      auto const server = std::make_shared<tcp::socket>(client->get_executor());
      server->connect({boost::asio::ip::address_v4::loopback(), *to}, ec);
      if (ec) continue;
      boost::asio::co_spawn(client->get_executor(), forward(client, server), boost::asio::detached);
      boost::asio::co_spawn(client->get_executor(), forward(server, client), boost::asio::detached);
    }
  }
  static boost::asio::awaitable<void> forward(std::shared_ptr<tcp::socket> from,
                                              std::shared_ptr<tcp::socket> to) {
    std::array<char, 8192> some;
    error_code ec;
    while (!ec) {
      auto const token = boost::asio::redirect_error(boost::asio::use_awaitable, ec);
      auto const n = co_await from->async_read_some(boost::asio::buffer(some), token);
      if (!ec) co_await boost::asio::async_write(*to, boost::asio::buffer(some.data(), n), token);
    }
    to->close(ec);
  }

  tcp::acceptor acceptor_;
  std::shared_ptr<unsigned short> to_;
};

std::string through(address const& a, std::string const& database) {
  return server::conninfo_to(a.port(), database) + " sslmode=disable";
}

/// Somebody whose clients are connected, and hear nothing.
struct mute {
  explicit mute(boost::asio::io_context& io)
      : acceptor{io, {boost::asio::ip::address_v4::loopback(), 0}} {}

  [[nodiscard]] std::string port() const {
    return std::to_string(acceptor.local_endpoint().port());
  }

  tcp::acceptor acceptor;
};

/// Asks until it is done; until then the server says that it is read-only, or is not there.
template <class C>
void done_at_last(boost::asio::io_context& io, postgres_store const& store, C const& c) {
  BOOST_TEST(weir_test::happens([&] {
    auto const answer = ask(io, store, c);
    if (answer.has_value()) return true;
    auto const ec = answer.error();
    BOOST_TEST((ec == errc::store_read_only || lost(ec)), ec.message());
    return false;
  }));
}

/// Does somebody listen in this database?
bool listened_to(connection& db) {
  return db.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                   "query LIKE 'LISTEN%'") != 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_failover)

// The old primary stays alive, and takes no writes: none of its connections ends by itself.
BOOST_AUTO_TEST_CASE(F70_a_primary_that_is_read_only_now_is_left_for_its_successor) {
  server const primary{server::kind{}};
  bed b{quick(), "", primary};
  server const standby{{.primary = &primary}};
  address there{b.io, primary.port()};
  postgres_store const store{b.io.get_executor(), through(there, b.database), quick()};
  std::vector<new_job> const jobs{job_of(1)};
  std::vector<std::shared_ptr<std::optional<error_code>>> all;  // several connections
  for (int i = 0; i < 60; ++i) all.push_back(start(store, command::find_job{"q", id(1)}));
  for (auto const& each : all) finish(b.io, *each);
  BOOST_TEST(ask(b.io, store, command::enqueue_jobs{"q", jobs}).has_value());
  auto const idle = start(store, command::await_jobs{0});
  finish(b.io, *idle);
  connection at_standby{standby.conninfo(b.database)};
  BOOST_TEST(
      weir_test::happens([&] { return at_standby.number("SELECT count(*) FROM weir.jobs") == 1; }));

  b.db.must("ALTER SYSTEM SET default_transaction_read_only = on");
  b.db.must("SELECT pg_reload_conf()");
  BOOST_TEST(
      weir_test::happens([&] { return b.db.must("SHOW default_transaction_read_only") == "on"; }));
  at_standby.must("SELECT pg_promote()");
  BOOST_TEST(
      weir_test::happens([&] { return at_standby.must("SELECT pg_is_in_recovery()") == "f"; }));
  there.move_to(standby.port());

  done_at_last(b.io, store, take_lock("k"));
  std::vector<new_job> const more{job_of(2)};
  done_at_last(b.io, store, command::enqueue_jobs{"r", more});
  BOOST_TEST(at_standby.number("SELECT count(*) FROM weir.jobs") == 2);
  for (int i = 0; i < 60; ++i) {  // whichever connection it is
    auto const taken = ask(b.io, store, take_lock("k" + std::to_string(i)));
    BOOST_TEST_REQUIRE(taken.has_value(), taken.error().message());
  }
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.locks") == 0);

  // Who waits is told by the successor.
  at_standby.must("DELETE FROM weir.jobs; DELETE FROM weir.pointers");
  auto const told = start(store, command::await_jobs{0});
  BOOST_TEST(weir_test::happens(b.io, [&] { return listened_to(at_standby); }));
  done_at_last(b.io, store, command::enqueue_jobs{"q", jobs});
  finish(b.io, *told);
  BOOST_TEST(!**told, (*told)->message());
}

// F47 is about what a standby had not got; here it is the client that stands at the wrong server.
BOOST_AUTO_TEST_CASE(F70_a_standby_is_left_once_its_address_leads_to_a_primary) {
  server const primary{server::kind{}};
  bed b{quick(), "", primary};
  server const standby{{.primary = &primary}};
  connection at_standby{standby.conninfo(b.database)};
  BOOST_TEST(weir_test::happens(
      [&] { return at_standby.number("SELECT count(*) FROM weir.state") == 1; }));
  address there{b.io, standby.port()};
  postgres_store const store{b.io.get_executor(), through(there, b.database), quick()};
  std::vector<new_job> const jobs{job_of(1)};
  auto const refused = ask(b.io, store, command::enqueue_jobs{"q", jobs});
  BOOST_TEST((refused.error() == errc::store_read_only), refused.error().message());
  BOOST_TEST(ask(b.io, store, command::find_job{"q", id(1)}).has_value());  // it may be read
  auto const wait = start(store, command::await_jobs{0});
  finish(b.io, *wait);
  BOOST_TEST((**wait == errc::store_read_only), (*wait)->message());
  there.move_to(primary.port());
  done_at_last(b.io, store, command::enqueue_jobs{"q", jobs});
}

BOOST_AUTO_TEST_CASE(F70_a_mute_first_host_does_not_hide_the_second) {
  bed b;
  mute const first{b.io};
  auto o = quick();
  o.connect_timeout = 1s;
  auto const hosts = "host=127.0.0.1,127.0.0.1 port=" + first.port() + "," +
                     std::to_string(the_server().port()) + " user=postgres dbname=" + b.database;
  postgres_store const store{b.io.get_executor(), hosts, o};
  BOOST_TEST(!migrate(b.io, store));
  done_at_last(b.io, store, take_lock("k"));
  for (std::string const wanted : {"read-write", "prefer-standby", "any"}) {
    postgres_store const of_a_kind{b.io.get_executor(), hosts + " target_session_attrs=" + wanted,
                                   o};
    done_at_last(b.io, of_a_kind, take_lock(wanted));
  }
  // The listener, too, finds the second.
  o.poll_interval = 1h;
  postgres_store const waits{b.io.get_executor(), hosts, o};
  auto const told = start(waits, command::await_jobs{0});
  BOOST_TEST(weir_test::happens(b.io, [&] { return listened_to(b.db); }));
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  finish(b.io, *told);
  BOOST_TEST(!**told, (*told)->message());
}

BOOST_AUTO_TEST_SUITE_END()
