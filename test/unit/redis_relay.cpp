// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What carries a connection to a unix socket.

#include "integration/patience.hpp"
#include "weir/store/redis/relay.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>

#include <stdlib.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace {

using namespace std::chrono_literals;
using tcp = boost::asio::ip::tcp;
using local = boost::asio::local::stream_protocol;
using weir::error_code;
namespace detail = weir::detail;

/// A relay, what it is for, and the server on its far side.
struct stage {
  explicit stage(bool with_server = true) {
    BOOST_TEST_REQUIRE(::mkdtemp(directory.data()) != nullptr);
    path = directory + "/server";
    if (with_server) listener = std::make_unique<local::acceptor>(io, local::endpoint{path});
    if (listener) listener->async_accept(server, [this](error_code ec) { reached = !ec; });
    relay = std::make_shared<detail::redis_relay>(io.get_executor(), path);
    relay->start(own);
    port = relay->port();
  }
  stage(stage const&) = delete;
  stage& operator=(stage const&) = delete;
  ~stage() {
    error_code ignored;
    if (listener) listener->close(ignored);
    client().close(ignored);
    server.close(ignored);
    io.restart();
    io.run_for(weir_test::patience);
    BOOST_TEST(io.stopped(), "something goes on for ever");
    std::filesystem::remove_all(directory);
  }

  tcp::socket& client() const { return own->next_layer().next_layer(); }
  [[nodiscard]] tcp::endpoint near() const {
    return {boost::asio::ip::address_v4::loopback(), port};
  }

  void connect() {
    client().connect(near());
    if (listener) run_until([this] { return reached; });
  }

  template <class Condition>
  void run_until(Condition so) {
    BOOST_TEST(weir_test::happens(io, so), "it did not come to that");
  }

  /// Is the connection of this one over?
  template <class Socket>
  void expect_end(Socket& socket) {
    std::string byte(1, ' ');
    std::optional<error_code> over;
    socket.async_read_some(boost::asio::buffer(byte),
                           [&](error_code ec, std::size_t) { over = ec; });
    run_until([&] { return over.has_value(); });
    BOOST_TEST((over && over->failed()));
    socket.close();
    io.restart();
    io.poll();
  }

  boost::asio::io_context io{};
  std::string directory = std::filesystem::temp_directory_path() / "weir-relay-XXXXXX";
  std::string path;
  std::unique_ptr<local::acceptor> listener;
  local::socket server{io};
  bool reached = false;
  detail::redis_connection own =
      detail::make_redis_connection(io.get_executor(), weir::redis_address{});
  std::shared_ptr<detail::redis_relay> relay;
  std::uint16_t port = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_relay)

BOOST_AUTO_TEST_CASE(it_carries_all_bytes_both_ways) {
  stage on;
  on.connect();
  std::string out(3'000'001, '\0');
  for (std::size_t i = 0; i != out.size(); ++i) out[i] = static_cast<char>(i * 7 + i / 251);
  std::string const back{out.rbegin(), out.rend()};
  std::string there(out.size(), ' ');
  std::string here(back.size(), ' ');
  int done = 0;
  auto const count = [&](error_code ec, std::size_t) { done += ec ? 0 : 1; };
  boost::asio::async_write(on.client(), boost::asio::buffer(out), count);
  boost::asio::async_write(on.server, boost::asio::buffer(back), count);
  boost::asio::async_read(on.client(), boost::asio::buffer(here), count);
  boost::asio::async_read(on.server, boost::asio::buffer(there), count);
  on.run_until([&] { return done == 4; });
  BOOST_TEST((there == out));
  BOOST_TEST((here == back));
}

BOOST_AUTO_TEST_CASE(the_end_of_one_side_is_the_end_of_the_other) {
  {
    stage on;
    on.connect();
    on.server.close();
    on.expect_end(on.client());
  }
  {
    stage on;
    on.connect();
    on.client().close();
    on.expect_end(on.server);
  }
  {
    stage on;
    on.connect();
    on.relay->close();
    on.expect_end(on.server);
    on.expect_end(on.client());
  }
}

BOOST_AUTO_TEST_CASE(where_there_is_no_server_the_connection_ends) {
  stage on{false};
  on.connect();
  on.expect_end(on.client());
}

BOOST_AUTO_TEST_CASE(it_is_for_its_own_connection_only_and_for_that_once) {
  stage on;
  // Somebody else on this host, who was quicker.
  tcp::socket stranger{on.io};
  stranger.connect(on.near());
  on.expect_end(stranger);
  BOOST_TEST(!on.reached);
  on.connect();
  BOOST_TEST(on.reached);
  tcp::socket late{on.io};
  error_code refused;
  late.connect(on.near(), refused);
  BOOST_TEST(refused.failed());
}

BOOST_AUTO_TEST_CASE(one_that_nobody_came_to_ends_too) {
  stage on;
  on.relay->close();
}

BOOST_AUTO_TEST_SUITE_END()
