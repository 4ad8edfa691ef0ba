// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Every fault of the TCP proxy, against a server that echoes lines. What is waited for is always an
// event, bounded by the time that a test may take.

#include "weir/testing/fault_proxy.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using weir::error_code;
using weir::testing::fault_proxy;
using weir::testing::planned_fault;
using weir::testing::proxy_ending;
using weir::testing::proxy_fault;
using weir::testing::traffic;
using namespace std::chrono_literals;

constexpr auto tuple = asio::as_tuple(asio::use_awaitable);

/// Messages are lines.
weir::testing::message_splitter lines(traffic) {
  return [](std::string_view bytes) {
    auto const end = bytes.find('\n');
    return end == std::string_view::npos ? 0 : end + 1;
  };
}

/// Answers each line with itself, and remembers what it got and how its connections ended.
class echo_server {
 public:
  explicit echo_server(asio::io_context& io)
      : acceptor_{io, tcp::endpoint{asio::ip::address_v4::loopback(), 0}} {
    asio::co_spawn(io, accept(), asio::detached);
  }
  [[nodiscard]] tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }
  void close() { acceptor_.close(); }

  std::string got;
  std::vector<error_code> endings;

 private:
  asio::awaitable<void> accept() {
    for (;;) {
      tcp::socket socket{acceptor_.get_executor()};
      auto const [ec] = co_await acceptor_.async_accept(socket, tuple);
      if (ec) co_return;
      asio::co_spawn(acceptor_.get_executor(), serve(std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    std::string line;
    std::array<char, 4096> chunk;
    for (;;) {
      auto const [ec, n] = co_await socket.async_read_some(asio::buffer(chunk), tuple);
      got.append(chunk.data(), n);
      line.append(chunk.data(), n);
      if (ec) {
        endings.push_back(ec);
        co_return;
      }
      auto const whole = line.rfind('\n') + 1;
      auto const reply = line.substr(0, whole);
      line.erase(0, whole);
      auto const [failed, written] = co_await asio::async_write(socket, asio::buffer(reply), tuple);
      (void)failed;
      (void)written;
    }
  }

  tcp::acceptor acceptor_;
};

struct answer {
  answer(error_code e, std::string t) : ec{e}, text{std::move(t)} {}
  error_code ec;
  std::string text;
};

class client {
 public:
  explicit client(asio::any_io_executor const& ex) : socket_{ex} {}

  asio::awaitable<error_code> connect(tcp::endpoint to) {
    error_code ignored;
    socket_.close(ignored);
    input_.clear();
    auto const [ec] = co_await socket_.async_connect(to, tuple);
    co_return ec;
  }
  asio::awaitable<error_code> send(std::string text) {
    auto const [ec, n] = co_await asio::async_write(socket_, asio::buffer(text), tuple);
    (void)n;
    co_return ec;
  }
  /// One line, or what came before the end.
  asio::awaitable<answer> receive() {
    auto const [ec, n] =
        co_await asio::async_read_until(socket_, asio::dynamic_buffer(input_), '\n', tuple);
    auto const size = ec ? input_.size() : n;
    answer out{ec, input_.substr(0, size)};
    input_.erase(0, size);
    co_return out;
  }
  asio::awaitable<answer> ask(std::string text) {
    auto const ec = co_await send(std::move(text));
    if (ec) co_return answer{ec, {}};
    co_return co_await receive();
  }
  void close() { socket_.close(); }

 private:
  tcp::socket socket_;
  std::string input_;
};

struct bed {
  bed() { proxy.split_messages(lines); }

  /// Runs a test to its end, and then everything: nothing may be left that runs.
  template <class Body>
  void run(Body body) {
    std::exception_ptr failure;
    asio::co_spawn(
        io, [&]() -> asio::awaitable<void> { co_await body(); },
        [&](std::exception_ptr e) {
          failure = e;
          proxy.async_close();
          server.close();
        });
    io.run();
    if (failure) std::rethrow_exception(failure);
  }

  /// Connects, and has one message answered.
  asio::awaitable<void> greet() {
    BOOST_TEST(!co_await user.connect(proxy.endpoint()));
    answer const first = co_await user.ask("one\n");
    BOOST_TEST(first.text == "one\n");
  }

  /// Waits for an event that nobody tells of.
  template <class Condition>
  asio::awaitable<void> until(Condition condition) {
    asio::steady_timer timer{io};
    while (!condition()) {
      timer.expires_after(1ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
  }

  asio::io_context io;
  echo_server server{io};
  fault_proxy proxy{io.get_executor(), server.endpoint()};
  client user{io.get_executor()};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(fault_proxy_suite)

BOOST_FIXTURE_TEST_CASE(without_faults_it_forwards_both_ways, bed) {
  proxy.split_messages({});
  std::string const large(1'000'000, 'x');
  run([&]() -> asio::awaitable<void> {
    co_await greet();
    asio::co_spawn(
        io, [&]() -> asio::awaitable<void> { co_await user.send(large + "\n"); }, asio::detached);
    answer const second = co_await user.receive();
    BOOST_TEST((second.text == large + "\n"));
    user.close();
    co_await until([&] { return !server.endings.empty(); });
    BOOST_TEST(server.endings.front() == asio::error::eof);
  });
  auto const counts = proxy.counts();
  BOOST_TEST(counts.accepted == 1U);
  BOOST_TEST(counts.bytes_to_server == large.size() + 5);
  BOOST_TEST(counts.bytes_to_client == large.size() + 5);
}

BOOST_FIXTURE_TEST_CASE(a_cut_before_a_message_lets_nothing_of_it_through, bed) {
  planned_fault const cut{.fault = proxy_fault::cut_before, .message = 1};
  proxy.script({cut});
  run([&]() -> asio::awaitable<void> {
    co_await greet();
    answer const second = co_await user.ask("two\n");
    BOOST_TEST(second.ec == asio::error::eof);
    co_await until([&] { return !server.endings.empty(); });
    BOOST_TEST(server.got == "one\n");
    BOOST_TEST(server.endings.front() == asio::error::eof);
  });
  BOOST_TEST(proxy.counts().cut_before == 1U);
  BOOST_TEST(proxy.counts().messages_to_server == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_cut_in_a_message_lets_some_bytes_through, bed) {
  planned_fault const up{.fault = proxy_fault::cut_in, .bytes = 2};
  planned_fault const down{
      .fault = proxy_fault::cut_in, .direction = traffic::to_client, .bytes = 100};
  proxy.script({up});
  proxy.script({down});
  run([&]() -> asio::awaitable<void> {
    BOOST_TEST(!co_await user.connect(proxy.endpoint()));
    answer const first = co_await user.ask("one\n");
    BOOST_TEST(first.ec == asio::error::eof);
    BOOST_TEST(first.text == "");
    co_await until([&] { return !server.endings.empty(); });
    BOOST_TEST(server.got == "on");

    BOOST_TEST(!co_await user.connect(proxy.endpoint()));
    answer const second = co_await user.ask("two\n");
    BOOST_TEST(second.ec == asio::error::eof);
    BOOST_TEST(second.text == "two");  // never the whole message
  });
  BOOST_TEST(proxy.counts().cut_in == 2U);
  BOOST_TEST(proxy.counts().bytes_to_server == 6U);
}

BOOST_FIXTURE_TEST_CASE(a_cut_after_a_message_is_an_outcome_that_the_client_cannot_know, bed) {
  planned_fault const cut{.fault = proxy_fault::cut_after};
  planned_fault const answered{.fault = proxy_fault::cut_after, .direction = traffic::to_client};
  proxy.script({cut});
  proxy.script({answered});
  run([&]() -> asio::awaitable<void> {
    BOOST_TEST(!co_await user.connect(proxy.endpoint()));
    answer const first = co_await user.ask("one\n");
    BOOST_TEST(first.ec == asio::error::eof);
    co_await until([&] { return server.got == "one\n"; });

    BOOST_TEST(!co_await user.connect(proxy.endpoint()));
    answer const second = co_await user.ask("two\n");
    BOOST_TEST(second.text == "two\n");
    answer const end = co_await user.receive();
    BOOST_TEST(end.ec == asio::error::eof);
  });
  BOOST_TEST(proxy.counts().cut_after == 2U);
  BOOST_TEST(proxy.counts().messages_to_client == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_reset_reaches_both_ends, bed) {
  planned_fault const cut{
      .fault = proxy_fault::cut_before, .message = 1, .ending = proxy_ending::reset};
  proxy.script({cut});
  run([&]() -> asio::awaitable<void> {
    co_await greet();
    answer const second = co_await user.ask("two\n");
    BOOST_TEST(second.ec == asio::error::connection_reset);
    co_await until([&] { return !server.endings.empty(); });
    BOOST_TEST(server.endings.front() == asio::error::connection_reset);
  });
  BOOST_TEST(proxy.counts().resets == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_silent_end_tells_the_client_nothing, bed) {
  planned_fault const cut{
      .fault = proxy_fault::cut_before, .message = 1, .ending = proxy_ending::silent};
  proxy.script({cut});
  run([&]() -> asio::awaitable<void> {
    co_await greet();
    BOOST_TEST(!co_await user.send("two\n"));
    std::optional<error_code> heard;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
          answer const end = co_await user.receive();
          heard = end.ec;
        },
        asio::detached);
    co_await until([&] { return !server.endings.empty(); });
    BOOST_TEST(server.endings.front() == asio::error::connection_reset);
    BOOST_TEST(!co_await user.send("anybody there?\n"));  // into the void
    BOOST_TEST(!heard.has_value());
    BOOST_TEST(proxy.counts().silenced == 1U);
    co_await proxy.async_close(asio::use_awaitable);
    co_await until([&] { return heard.has_value(); });
  });
  BOOST_TEST(server.got == "one\n");
}

BOOST_FIXTURE_TEST_CASE(a_delayed_message_comes_later_and_whole, bed) {
  planned_fault const late{
      .fault = proxy_fault::delay, .direction = traffic::to_client, .delay = 5ms};
  proxy.script({late});
  run([&]() -> asio::awaitable<void> { co_await greet(); });
  BOOST_TEST(proxy.counts().delayed == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_stall_holds_back_one_connection_until_it_is_resumed, bed) {
  planned_fault const stall{.fault = proxy_fault::stall, .message = 1};
  proxy.script({stall});
  run([&]() -> asio::awaitable<void> {
    co_await greet();
    BOOST_TEST(!co_await user.send("two\n"));
    co_await until([&] { return proxy.counts().stalled == 1; });

    client other{io.get_executor()};
    BOOST_TEST(!co_await other.connect(proxy.endpoint()));
    answer const passing = co_await other.ask("three\n");
    BOOST_TEST(passing.text == "three\n");
    BOOST_TEST(server.got == "one\nthree\n");

    proxy.async_resume();
    answer const second = co_await user.receive();
    BOOST_TEST(second.text == "two\n");
  });
}

BOOST_FIXTURE_TEST_CASE(a_stall_of_the_proxy_holds_back_all_of_them, bed) {
  run([&]() -> asio::awaitable<void> {
    co_await greet();
    co_await proxy.async_stall(asio::use_awaitable);
    client late{io.get_executor()};
    BOOST_TEST(!co_await late.connect(proxy.endpoint()));
    BOOST_TEST(!co_await user.send("two\n"));
    BOOST_TEST(!co_await late.send("three\n"));
    co_await until([&] { return proxy.counts().accepted == 2; });
    BOOST_TEST(server.got == "one\n");
    co_await proxy.async_resume(asio::use_awaitable);
    answer const second = co_await user.receive();
    BOOST_TEST(second.text == "two\n");
    answer const third = co_await late.receive();
    BOOST_TEST(third.text == "three\n");
  });
}

BOOST_FIXTURE_TEST_CASE(a_black_hole_loses_one_direction_only, bed) {
  planned_fault const hole{
      .fault = proxy_fault::black_hole, .direction = traffic::to_client, .message = 1};
  proxy.script({hole});
  run([&]() -> asio::awaitable<void> {
    co_await greet();
    bool heard = false;
    BOOST_TEST(!co_await user.send("two\n"));
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
          co_await user.receive();
          heard = true;
        },
        asio::detached);
    co_await until([&] { return proxy.counts().swallowed == 1; });
    BOOST_TEST(!co_await user.send("three\n"));
    co_await until([&] { return proxy.counts().swallowed == 2; });
    BOOST_TEST(server.got == "one\ntwo\nthree\n");
    BOOST_TEST(!heard);
    co_await proxy.async_cut_all(proxy_ending::fin, asio::use_awaitable);
    co_await until([&] { return heard; });
  });
  BOOST_TEST(proxy.counts().cut_all == 1U);
}

BOOST_FIXTURE_TEST_CASE(refusing_concerns_new_connections_only_and_the_port_stays, bed) {
  run([&]() -> asio::awaitable<void> {
    BOOST_TEST(!co_await user.connect(proxy.endpoint()));
    answer const before = co_await user.ask("zero\n");
    BOOST_TEST(before.text == "zero\n");
    for (int i = 0; i != 3; ++i) {
      co_await proxy.async_refuse(true, asio::use_awaitable);
      client late{io.get_executor()};
      error_code const refused = co_await late.connect(proxy.endpoint());
      BOOST_TEST(refused == asio::error::connection_refused);
      answer const first = co_await user.ask("one\n");
      BOOST_TEST(first.text == "one\n");
      proxy.async_refuse(false);
      co_await proxy.async_refuse(true, asio::use_awaitable);
      co_await proxy.async_refuse(false, asio::use_awaitable);
      BOOST_TEST(!co_await late.connect(proxy.endpoint()));
      answer const second = co_await late.ask("two\n");
      BOOST_TEST(second.text == "two\n");
    }
  });
  BOOST_TEST(proxy.counts().accepted == 4U);
}

BOOST_FIXTURE_TEST_CASE(a_target_that_is_not_there_is_a_reset, bed) {
  server.close();
  run([&]() -> asio::awaitable<void> {
    error_code const connected = co_await user.connect(proxy.endpoint());
    if (!connected) {
      answer const end = co_await user.ask("one\n");
      BOOST_TEST(end.ec.failed());
    }
    BOOST_TEST(proxy.counts().unreachable == 1U);
  });
}

BOOST_AUTO_TEST_CASE(a_conversation_goes_the_same_way_with_the_same_seed) {
  auto const talk = [](std::uint64_t seed) {
    bed b;
    b.proxy.chaos({.seed = seed,
                   .cut_before = 10,
                   .cut_in = 10,
                   .cut_after = 10,
                   .delay = 10,
                   .max_delay = 100us});
    std::string story;
    b.run([&]() -> asio::awaitable<void> {
      (void)co_await b.user.connect(b.proxy.endpoint());
      for (int i = 0; i != 60; ++i) {
        answer const got = co_await b.user.ask("message " + std::to_string(i) + "\n");
        story += got.ec ? "-" : "+";
        if (got.ec) (void)co_await b.user.connect(b.proxy.endpoint());
      }
    });
    auto const counts = b.proxy.counts();
    BOOST_TEST(counts.cut_before + counts.cut_in + counts.cut_after > 0U);
    BOOST_TEST(counts.delayed > 0U);
    return story + " " + std::to_string(counts.cut_before) + " " + std::to_string(counts.cut_in) +
           " " + std::to_string(counts.cut_after) + " " + std::to_string(counts.delayed) + " " +
           std::to_string(counts.resets) + " " + std::to_string(counts.bytes_to_server);
  };
  auto const first = talk(7);
  BOOST_TEST(talk(7) == first);
  BOOST_TEST(talk(8) != first);
}

BOOST_AUTO_TEST_CASE(R7_the_context_may_end_with_everything_open) {
  for (int steps = 0; steps != 40; ++steps) {
    auto b = std::make_unique<bed>();
    planned_fault const late{.fault = proxy_fault::delay, .message = 1, .delay = 1h};
    planned_fault const stall{
        .fault = proxy_fault::stall, .direction = traffic::to_client, .message = 1};
    b->proxy.script({late, stall});
    asio::co_spawn(
        b->io,
        [&user = b->user, to = b->proxy.endpoint()]() -> asio::awaitable<void> {
          (void)co_await user.connect(to);
          for (int i = 0; i != 3; ++i) (void)co_await user.ask("line\n");
        },
        asio::detached);
    for (int i = 0; i != steps; ++i) b->io.poll_one();
  }
}

BOOST_AUTO_TEST_CASE(it_may_be_told_what_to_do_from_any_thread) {
  asio::io_context io;  // of the server and the clients: one thread
  echo_server server{io};
  asio::io_context busy;  // of the proxy: two
  // While the proxy refuses and has cut all there was, it has nothing to do.
  auto stay = asio::make_work_guard(busy);
  fault_proxy proxy{busy.get_executor(), server.endpoint()};
  proxy.split_messages(lines);
  proxy.chaos({.seed = 1, .cut_before = 2, .delay = 5, .max_delay = 100us});

  std::atomic<int> left{4};
  std::atomic<std::uint64_t> progress{0};
  auto const talk = [&]() -> asio::awaitable<void> {
    client user{io.get_executor()};
    for (int done = 0; done != 50;) {
      answer const got = co_await user.ask("line\n");
      if (!got.ec) {
        ++done;
        ++progress;
        progress.notify_one();
      } else {
        (void)co_await user.connect(proxy.endpoint());
      }
    }
    if (--left == 0) server.close();
    ++progress;
    progress.notify_one();
  };
  for (int i = 0; i != 4; ++i) asio::co_spawn(io, talk(), asio::detached);

  std::thread talkers{[&] { io.run(); }};
  std::thread first{[&] { busy.run(); }};
  std::thread second{[&] { busy.run(); }};
  std::uint64_t seen = 0;
  for (std::uint64_t round = 0; left != 0; ++round) {
    auto const before = progress.load();
    proxy.async_stall();
    proxy.async_refuse(round % 3 == 0);
    proxy.async_cut_all(round % 2 == 0 ? proxy_ending::reset : proxy_ending::fin);
    proxy.async_resume();
    proxy.async_refuse(false);
    auto const counts = proxy.counts();
    BOOST_TEST(counts.accepted >= seen);
    seen = counts.accepted;
    if (left != 0) progress.wait(before);  // something gets done between two rounds
  }
  talkers.join();
  proxy.async_close();
  stay.reset();
  first.join();
  second.join();
  BOOST_TEST(proxy.counts().cut_all > 0U);
}

BOOST_AUTO_TEST_SUITE_END()
