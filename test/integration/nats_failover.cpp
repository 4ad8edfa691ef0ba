// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Servers that are there and cannot be used: one that is cut off from the others of its cluster
// while those go on, and one that takes connections and never says anything.

#include "nats_job_steps.hpp"
#include "nats_server.hpp"
#include "patience.hpp"
#include "server_process.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>

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
using boost::asio::ip::tcp;
using network_test::lasting;
using network_test::tuple;
using weir_test::happens;
namespace asio = boost::asio;

tcp::endpoint local(std::uint16_t port) { return {asio::ip::address_v4::loopback(), port}; }

/// An address that leads to one server or another, as that of a load balancer does.
class address {
 public:
  address(asio::io_context& io, std::uint16_t target) : target_{target}, acceptor_{io, local(0)} {
    asio::co_spawn(io, accept(this), asio::detached);
  }
  address(address const&) = delete;
  address& operator=(address const&) = delete;

  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + std::to_string(port()); }
  /// Connections that it has led anywhere, and how many of them there are now.
  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }
  [[nodiscard]] std::size_t open() const noexcept { return *open_ / 2; }
  /// Where later connections lead to. Those that there are stay.
  void lead_to(std::uint16_t port) noexcept { target_ = port; }
  void close() { acceptor_.close(); }

 private:
  static asio::awaitable<void> pump(std::shared_ptr<tcp::socket> from,
                                    std::shared_ptr<tcp::socket> to,
                                    std::shared_ptr<std::size_t> open) {
    ++*open;
    std::array<char, 16'384> some{};
    for (;;) {
      auto const [ec, n] = co_await from->async_read_some(asio::buffer(some), tuple);
      if (ec) break;
      auto const [failed, all] = co_await asio::async_write(*to, asio::buffer(some, n), tuple);
      if (failed) break;
    }
    boost::system::error_code ignored;
    from->close(ignored);
    to->close(ignored);
    --*open;
  }
  static asio::awaitable<void> accept(address* self) {
    for (;;) {
      auto const ex = self->acceptor_.get_executor();
      auto const client = std::make_shared<tcp::socket>(ex);
      auto const [ec] = co_await self->acceptor_.async_accept(*client, tuple);
      if (ec) co_return;
      ++self->taken_;
      auto const server = std::make_shared<tcp::socket>(ex);
      auto const [failed] = co_await server->async_connect(local(self->target_), tuple);
      if (failed) continue;
      asio::co_spawn(ex, pump(client, server, self->open_), asio::detached);
      asio::co_spawn(ex, pump(server, client, self->open_), asio::detached);
    }
  }

  std::uint16_t target_;
  tcp::acceptor acceptor_;
  std::size_t taken_ = 0;
  std::shared_ptr<std::size_t> open_ = std::make_shared<std::size_t>(0);  // directions
};

/// A cluster of three servers, each of which can be cut off from the others.
class divisible_cluster {
 public:
  static constexpr std::size_t size = 3;

  divisible_cluster() {
    for (auto& port : ports_) port = server_test::free_port();
    for (std::size_t i = 0; i != size; ++i) {
      nodes_[i] = std::make_unique<server>(std::vector<std::string>{}, configuration(i, false));
    }
  }

  [[nodiscard]] server& operator[](std::size_t i) { return *nodes_[i]; }

  /// It talks to none of the others any more, and none of them to it.
  void cut_off(std::size_t i) { nodes_[i]->reload(configuration(i, true)); }
  void join(std::size_t i) { nodes_[i]->reload(configuration(i, false)); }

  /// The leader of that stream, as this server knows it; empty: it knows none.
  [[nodiscard]] std::string leader(std::size_t i, std::string const& stream) {
    try {
      stranger who{*nodes_[i], {}, std::chrono::seconds{2}};
      auto const said =
          nlohmann::json::parse(who.ask("$JS.API.STREAM.INFO." + stream), nullptr, false);
      if (!said.is_object() || !said.contains("cluster")) return {};
      return said["cluster"].value("leader", "");
    } catch (std::exception const&) {  // it says nothing
      return {};
    }
  }
  [[nodiscard]] bool leads(std::size_t i, std::string const& stream) {
    return !leader(i, stream).empty();
  }

  /// Makes it the leader of that stream. Who is so and is cut off knows soon that nobody follows,
  /// and goes on to say what it knew; others say nothing for a while, which is noticed anyway.
  [[nodiscard]] bool elect(std::size_t i, std::string const& stream) {
    auto const name = "n" + std::to_string(i);
    if (leader(i, stream) == name) return true;
    try {
      stranger who{*nodes_[i], {}, std::chrono::seconds{2}};
      (void)who.ask("$JS.API.STREAM.LEADER.STEPDOWN." + stream,
                    R"({"placement":{"preferred":")" + name + R"("}})");
    } catch (std::exception const&) {  // not now
    }
    return false;
  }

  /// The others have leaders, and one that is cut off has none.
  [[nodiscard]] bool leads_without(std::size_t i, std::size_t other) {
    return leads(other, "weir-keys") && leads(other, "weir-jobs-0") && !leads(i, "weir-keys");
  }

 private:
  /// One that is cut off asks nobody, and takes nobody who asks.
  [[nodiscard]] std::string configuration(std::size_t i, bool alone) const {
    std::string routes;
    for (auto const port : ports_) {
      if (alone) continue;
      routes += routes.empty() ? "" : ", ";
      routes += "\"nats://in:secret@127.0.0.1:" + std::to_string(port) + "\"";
    }
    return "server_name: n" + std::to_string(i) +
           "\ncluster { name: weir, listen: \"127.0.0.1:" + std::to_string(ports_[i]) +
           "\", no_advertise: true, authorization { user: " + (alone ? "nobody" : "in") +
           ", password: secret }, routes: [" + routes + "] }\n";
  }

  std::array<std::uint16_t, size> ports_{};
  std::array<std::unique_ptr<server>, size> nodes_{};
};

nats_options options() {
  auto o = brisk();
  o.replicas = divisible_cluster::size;
  o.offline_patience = 5s;
  o.request_timeout = 2s;
  o.health_check_interval = 500ms;
  o.longest_reconnect_wait = 100ms;
  return o;
}

/// Asks until it is done: where a stream has no leader at the moment, some are refused at once.
template <class C>
typename C::result insist(asio::io_context& io, nats_store const& store, C const& c) {
  static_assert(C::repeatable);
  auto r = ask(io, store, c);
  BOOST_TEST_REQUIRE(happens([&] {
                       if (r.has_value()) return true;
                       BOOST_TEST_REQUIRE(network_test::is_transport(r.error()),
                                          r.error().message());
                       io.restart();
                       io.run_for(20ms);
                       r = ask(io, store, c);
                       return r.has_value();
                     }),
                     "it is never done");
  return std::move(r).value();
}

/// Does something of each noun.
void use(asio::io_context& io, nats_store const& store, std::uint64_t round) {
  auto const name = std::to_string(round);
  BOOST_TEST(insist(io, store, command::acquire_lock{name, "me", lasting}).granted);
  auto const j = job_of(round);
  (void)insist(io, store, command::enqueue_jobs{"queue", {&j, 1}});
  BOOST_TEST(insist(io, store, command::read_queue_stats{"queue"}).pending == round);
}

/// The test's own connections are closed, whatever became of it.
struct ending {
  asio::io_context& io;
  nats_store const& store;
  std::vector<std::unique_ptr<address>>& ways;
  ~ending() {
    store.close();
    for (auto const& w : ways) w->close();
    network_test::run_out(io);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_failover)

BOOST_AUTO_TEST_CASE(F70_a_server_that_is_cut_off_from_its_cluster_is_left_for_another) {
  divisible_cluster c;
  asio::io_context io;
  std::vector<std::unique_ptr<address>> ways;
  std::string urls;
  for (std::size_t i = 0; i != divisible_cluster::size; ++i) {
    ways.push_back(std::make_unique<address>(io, c[i].port()));
    urls += (urls.empty() ? "" : ",") + ways.back()->url();
  }
  nats_store const store{io.get_executor(), nats_address::parse(urls).value(), options()};
  ending const end{io, store, ways};
  store.async_run([](error_code) {});
  use(io, store, 1);
  std::size_t used = 0;
  while (ways[used]->open() == 0) BOOST_TEST_REQUIRE(++used != ways.size());
  auto const other = (used + 1) % ways.size();
  BOOST_TEST_REQUIRE(happens(io, [&] { return c.elect(used, "weir-keys"); }));
  BOOST_TEST(ways[used]->open() == 1U);
  c.cut_off(used);
  // The others have a leader, and it has none.
  BOOST_TEST_REQUIRE(happens(io, [&] { return c.leads_without(used, other); }));
  use(io, store, 2);
  BOOST_TEST(ways[used]->open() == 0U);
  c.join(used);
  BOOST_TEST_REQUIRE(happens(io, [&] { return c.leads(used, "weir-keys"); }));
  use(io, store, 3);
}

BOOST_AUTO_TEST_CASE(F70_behind_one_address_the_server_that_is_cut_off_is_left) {
  divisible_cluster c;
  asio::io_context io;
  std::vector<std::unique_ptr<address>> ways;
  ways.push_back(std::make_unique<address>(io, c[0].port()));
  nats_store const store{io.get_executor(), nats_address::parse(ways[0]->url()).value(), options()};
  ending const end{io, store, ways};
  store.async_run([](error_code) {});
  use(io, store, 1);
  BOOST_TEST_REQUIRE(happens(io, [&] { return c.elect(0, "weir-keys"); }));
  auto const before = ways[0]->taken();
  c.cut_off(0);
  BOOST_TEST_REQUIRE(happens(io, [&] { return c.leads_without(0, 1); }));
  ways[0]->lead_to(c[1].port());  // the connection that there is stays
  use(io, store, 2);
  BOOST_TEST(ways[0]->taken() > before);
}

// Nobody takes what they are told, and they say nothing: not even that they are there.
BOOST_AUTO_TEST_CASE(F70_servers_that_are_mute_do_not_hide_one_that_answers) {
  server s;
  asio::io_context io;
  tcp::acceptor const mute{io, local(0)};
  tcp::acceptor const other{io, local(0)};
  std::string urls;
  for (auto const port : {mute.local_endpoint().port(), other.local_endpoint().port(), s.port()}) {
    urls += (urls.empty() ? "nats://127.0.0.1:" : ",nats://127.0.0.1:") + std::to_string(port);
  }
  auto o = brisk();
  o.connect_timeout = 300ms;
  // Which one is tried first is random: some begin with one that is mute.
  for (int i = 0; i != 6; ++i) {
    bed on{nats_address::parse(urls).value(), o};
    BOOST_TEST(on(command::acquire_lock{"key", "me", lasting}).has_value());
    BOOST_TEST(enqueue(on, static_cast<std::uint64_t>(i) + 1) == error_code{});
  }
}

BOOST_AUTO_TEST_SUITE_END()
