// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The store on the other side of a network that breaks at every place of a conversation, and on
// servers that die, lose their streams, or find their client too slow.

#include "broken_network.hpp"
#include "nats_job_steps.hpp"
#include "nats_server.hpp"
#include "patience.hpp"
#include "weir/testing/fault_proxy.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace nats_test;
using weir::testing::fault_proxy;
using weir::testing::planned_fault;
using weir::testing::proxy_fault;
using weir::testing::proxy_rates;
using weir::testing::traffic;
using namespace network_test;
using weir_test::happens;

/// A line, and, where it says so, so many bytes after it.
std::size_t split(std::string_view bytes) {
  auto const end = bytes.find("\r\n");
  if (end == bytes.npos) return 0;
  auto const line = bytes.substr(0, end);
  std::size_t size = end + 2;
  for (std::string_view const verb : {"PUB ", "HPUB ", "MSG ", "HMSG "}) {
    if (!line.starts_with(verb)) continue;
    std::size_t data = 0;
    auto const digits = line.substr(line.rfind(' ') + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), data);
    size += data + 2;
  }
  return size <= bytes.size() ? size : 0;
}

nats_address behind(fault_proxy const& proxy) {
  return nats_address::parse("nats://127.0.0.1:" + std::to_string(proxy.endpoint().port())).value();
}

std::string contents(std::string const& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_faults)

BOOST_AUTO_TEST_CASE(F45_a_connection_that_ends_anywhere_in_a_conversation_does_nothing_twice) {
  server s;
  std::uint64_t cuts = 0;
  auto const unknown = cut_everywhere(13, 1, [&](std::string const& prefix, auto const& cut) {
    auto o = brisk();
    o.prefix = prefix;
    o.in_memory = true;
    asio::io_context io;
    fault_proxy const proxy{io.get_executor(), {asio::ip::address_v4::loopback(), s.port()}};
    proxy.split_messages([](traffic) { return split; });
    proxy.script({cut});
    nats_store const store{io.get_executor(), behind(proxy), o};
    store.async_run([](error_code) {});
    spent takes;
    run(io, converse(store, takes));
    store.close();
    proxy.async_close();
    run_out(io);
    bed direct{s, o};
    check_done(direct, takes);
    auto const c = proxy.counts();
    cuts += c.cut_before + c.cut_in + c.cut_after;
    return takes.unknown;
  });
  BOOST_TEST(cuts > 60U);
  BOOST_TEST(unknown > 0U);
}

BOOST_AUTO_TEST_CASE(R1_a_network_that_breaks_all_the_time_grants_nothing_twice) {
  server s;
  auto o = brisk();
  o.in_memory = true;
  o.health_check_interval = 500ms;  // cut connections may be silent ones
  o.connect_timeout = 2s;
  o.poll_interval = 5ms;
  asio::io_context io;
  fault_proxy const proxy{io.get_executor(), {asio::ip::address_v4::loopback(), s.port()}};
  proxy.split_messages([](traffic) { return split; });
  proxy_rates rates;
  rates.seed = 1;
  rates.cut_before = rates.cut_in = rates.cut_after = 1;
  rates.delay = 5;
  rates.silent = 10;
  proxy.chaos(rates);
  nats_store const store{io.get_executor(), behind(proxy), o};
  store.async_run([](error_code) {});
  std::uint32_t in_use = 0;
  std::uint64_t last_fence = 0;
  constexpr std::uint32_t limit = 2;
  auto const client = [&](std::string holder) -> asio::awaitable<void> {
    for (int i = 0; i != 15;) {
      command::acquire_permit const get{"key", holder, limit, lasting, lasting};
      auto const permit = co_await insist(store, get);
      if (!permit.granted) {
        command::await_permit const wait{"key", holder};
        co_await store.async_execute(wait, tuple);
        continue;
      }
      BOOST_TEST(++in_use <= limit);
      BOOST_TEST(permit.fence != last_fence);
      last_fence = permit.fence;
      command::renew_permit const longer{"key", holder, permit.fence, lasting};
      co_await insist(store, longer);
      --in_use;
      command::release_permit const back{"key", holder, permit.fence};
      co_await insist(store, back);
      ++i;
    }
  };
  int left = 6;
  for (int n = 0; n != 6; ++n) {
    asio::co_spawn(io, client("holder" + std::to_string(n)), [&](std::exception_ptr e) {
      BOOST_TEST(!e);
      --left;
    });
  }
  BOOST_TEST_REQUIRE(happens(io, [&] { return left == 0; }));
  store.close();
  proxy.async_close();
  run_out(io);
  auto const c = proxy.counts();
  BOOST_TEST(c.cut_before + c.cut_in + c.cut_after > 0U);
  bed direct{s, o};
  BOOST_TEST(direct(command::inspect_permits{"key", 0}).value().in_use == 0U);
}

BOOST_AUTO_TEST_CASE(F4_leases_are_no_longer_because_a_greeting_was_slow) {
  server s;
  auto o = brisk();
  o.create_stream = false;
  (void)stranger{s}.ask("$JS.API.STREAM.CREATE.weir-keys", nats_stream_config(o));
  constexpr duration slow = 2s;
  constexpr duration ttl = 10min;  // no test takes that long
  std::uint64_t delayed = 0;
  for (std::uint64_t message = 0; message != 5; ++message) {
    asio::io_context io;
    fault_proxy const proxy{io.get_executor(), {asio::ip::address_v4::loopback(), s.port()}};
    proxy.split_messages([](traffic) { return split; });
    planned_fault late{.fault = proxy_fault::delay, .direction = traffic::to_client};
    late.message = message;
    late.delay = slow;
    proxy.script({late});
    nats_store const store{io.get_executor(), behind(proxy), o};
    store.async_run([](error_code) {});
    auto const key = "key" + std::to_string(message);
    BOOST_TEST(ask(io, store, command::acquire_permit{key, "me", 1, ttl}).value().granted);
    auto const refused = ask(io, store, command::acquire_permit{key, "you", 1, ttl}).value();
    BOOST_TEST(!refused.granted);
    BOOST_TEST(refused.retry_after.count() < (ttl + slow / 2).count());
    store.close();
    proxy.async_close();
    run_out(io);
    delayed += proxy.counts().delayed;
  }
  BOOST_TEST(delayed == 5U);
}

BOOST_AUTO_TEST_CASE(R5_what_was_acknowledged_survives_a_kill_in_the_middle_of_it) {
  server s;
  std::size_t unknown = 0;
  for (std::size_t round = 0; round != 4; ++round) {
    bed on{s, brisk()};
    BOOST_TEST_REQUIRE(on(command::inspect_lock{"key"}).has_value());
    constexpr std::size_t all = 600;
    constexpr std::size_t too_late = 100;  // the last ones come to a server that does not read them
    std::vector<std::string> keys(all);
    std::vector<std::optional<error_code>> ended(all);
    std::size_t answered = 0;
    std::size_t asked = 0;
    auto const ask_until = [&](std::size_t end) {
      for (; asked != end; ++asked) {
        auto const i = asked;
        keys[i] = std::to_string(round) + "-" + std::to_string(i);
        on.store.async_execute(command::acquire_lock{keys[i], "me", lasting},
                               [&, i](error_code ec, lock_grant const&) {
                                 ended[i] = ec;
                                 ++answered;
                               });
      }
    };
    ask_until(all - too_late);
    BOOST_TEST_REQUIRE(happens(on.io, [&] { return answered >= 1 + round * 120; }));
    s.pause();
    ask_until(all);
    on.io.poll();
    s.kill();
    s.start();
    BOOST_TEST_REQUIRE(happens(on.io, [&] { return answered == all; }));
    for (std::size_t i = 0; i != all; ++i) {
      bool const held = on(command::inspect_lock{keys[i]}).value().held;
      if (*ended[i]) {
        BOOST_TEST_REQUIRE(is_transport(*ended[i]), ended[i]->message());
        if (*ended[i] == errc::outcome_unknown) ++unknown;
        if (*ended[i] == errc::store_unavailable || i >= all - too_late) BOOST_TEST(!held);
      } else {
        BOOST_TEST(held);
      }
    }
  }
  BOOST_TEST(unknown > 0U);
}

BOOST_AUTO_TEST_CASE(F46_commands_to_a_stream_that_is_gone_are_told_so_without_a_timeout) {
  server s;
  auto o = brisk();
  o.create_stream = false;
  o.request_timeout = 10min;
  o.health_check_interval = 1min;
  o.offline_patience = 300ms;
  stranger other{s};
  (void)other.ask("$JS.API.STREAM.CREATE.weir-keys", nats_stream_config(o));
  bed on{s, o};
  BOOST_TEST(eventually(on, command::acquire_lock{"key", "me", lasting}).value().granted);
  (void)other.ask("$JS.API.STREAM.DELETE.weir-keys");
  constexpr int callers = 100;
  int ended = 0;
  int refused = 0;
  std::vector<std::string> keys;
  for (int i = 0; i != callers; ++i) keys.push_back("key" + std::to_string(i));
  for (auto const& key : keys) {
    on.store.async_execute(
        command::acquire_lock{key, "me", lasting}, [&](error_code ec, lock_grant const&) {
          ++ended;
          bool const cause = ec.message().find("no connection") != std::string::npos;
          if (ec == errc::store_unavailable && !cause) ++refused;
        });
  }
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return ended == callers; }));
  BOOST_TEST(refused == callers);
}

BOOST_AUTO_TEST_CASE(F46_that_a_log_is_gone_is_told_apart_from_what_is_answered_late) {
  server s;
  auto o = brisk();
  o.request_timeout = 10min;
  o.health_check_interval = 10min;  // such a stream is refused where it is noticed
  bed on{s, o};
  BOOST_TEST(!enqueue(on, 1));
  // From here on the stream acknowledges nothing: that is done by hand.
  stranger who{s};
  auto const said = who.ask("$JS.API.STREAM.UPDATE.weir-keys",
                            R"({"no_ack":true,)" + nats_stream_config(o).substr(1));
  BOOST_TEST_REQUIRE((said.find("\"no_ack\":true") != std::string::npos), said);
  stranger acknowledges{s};
  acknowledges.overhear_one("weir.k.>");
  (void)who.ask("$JS.API.STREAM.DELETE.weir-jobs-0");
  stranger listens{s};
  listens.overhear_one("weir.r.>");
  bool granted = false;
  bool enqueued = false;
  on.store.async_execute(command::acquire_lock{"key", "me", lasting},
                         [&](error_code ec, lock_grant const& g) { granted = !ec && g.granted; });
  auto const job = job_of(2);
  on.store.async_execute(command::enqueue_jobs{"queue", {&job, 1}},
                         [&](error_code ec, auto const&) { enqueued = !ec; });
  BOOST_TEST_REQUIRE(happens(on.io, [&] {  // it is found out which one nobody has listened to
    return listens.heard().find(".m") != std::string::npos;
  }));
  BOOST_TEST(!granted);
  std::istringstream lines{acknowledges.heard()};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words{line};
    std::string word;
    std::string to;
    if (line.starts_with("HMSG weir.k.") && words >> word >> word >> word >> to) {
      who.publish(to, R"({"stream":"weir-keys","seq":100})");
    }
  }
  BOOST_TEST(happens(on.io, [&] { return enqueued && granted; }));
}

BOOST_AUTO_TEST_CASE(F46_a_stream_that_is_gone_is_waited_for_and_made_anew) {
  server s;
  auto o = brisk();
  o.health_check_interval = 1s;
  bed on{s, o};
  auto const fence = on(command::acquire_lock{"key", "me", lasting}).value().fence;
  (void)stranger{s}.ask("$JS.API.STREAM.DELETE.weir-keys");
  auto const again = on(command::acquire_lock{"other", "me", lasting});
  BOOST_TEST_REQUIRE(again.has_value(), again.error().message());
  BOOST_TEST(again->granted);
  BOOST_TEST(again->fence > fence);
}

BOOST_AUTO_TEST_CASE(F46_a_client_that_is_too_slow_is_cut_off_and_comes_back) {
  configured hasty{"write_deadline: \"50ms\"\nmax_pending: 2097152\n"};
  auto& s = *hasty.it;
  bed on{s, brisk()};
  auto const fence = on(command::acquire_lock{"key", "me", lasting}).value().fence;
  // It listens to hints, and reads none of these.
  stranger other{s};
  std::string const much(500'000, 'x');
  BOOST_TEST_REQUIRE(happens([&] {
    other.publish("weir.h.p.key", much);
    return contents(s.directory() + "/log").find("Slow Consumer") != std::string::npos;
  }));
  BOOST_TEST(eventually(on, command::renew_lock{"key", "me", fence, lasting}).has_value());
}

BOOST_AUTO_TEST_CASE(F46_a_stream_with_too_many_messages_refuses_and_forgets_nothing) {
  server s;
  auto o = brisk();
  auto config = nlohmann::json::parse(nats_stream_config(o));
  config["max_msgs"] = 6;  // of which one is the note of the time
  (void)stranger{s}.ask("$JS.API.STREAM.CREATE.weir-keys", config.dump());
  bed on{s, o};
  for (int i = 0; i != 10; ++i) {
    auto const got = on(command::acquire_lock{"key" + std::to_string(i), "me", lasting});
    if (i < 5) {
      BOOST_TEST(got.value().granted);
    } else {
      BOOST_TEST(is_error(got, errc::store_full));
    }
  }
  for (int i = 0; i != 10; ++i) {
    BOOST_TEST(on(command::inspect_lock{"key" + std::to_string(i)}).value().held == (i < 5));
  }
}

BOOST_AUTO_TEST_SUITE_END()
