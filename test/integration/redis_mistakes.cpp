// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F86, F87: what a Redis store says of mistakes, and when its server is away.

#include "mistakes.hpp"
#include "redis_server.hpp"
#include "server_process.hpp"

namespace {

using namespace redis_test;
using weir_test::compare_row;
using weir_test::heard_log;
using weir_test::names;

redis_options hasty() {
  auto o = unhurried();
  o.least_reconnect_wait = 10ms;
  o.longest_reconnect_wait = 100ms;
  return o;
}

/// What is told first where the store is made of this URL.
void row(std::string const& name, std::string const& url, names const& known = {},
         redis_options const& o = hasty()) {
  weir_test::compare_row_of<redis_store>(name, url, known, o);
}

std::string url_of(server const& s) { return "redis://127.0.0.1:" + std::to_string(s.port()); }
names port_of(server const& s) { return {{std::to_string(s.port()), "PORT"}}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_mistakes)

BOOST_AUTO_TEST_CASE(F86_what_is_wrong_with_the_address_is_told) {
  row("redis.no_url", "localhost:6379");
  row("redis.scheme", "http://localhost");
  row("redis.port", "redis://localhost:99999");
  row("redis.unknown_host", "redis://no-such-host.invalid",
      {{"Host not found (authoritative)", "REASON"},
       {"Host not found (non-authoritative), try again later", "REASON"}});
  auto const closed = std::to_string(server_test::free_port());
  row("redis.closed_port", "redis://127.0.0.1:" + closed, {{closed, "PORT"}});
  row("redis.no_socket", "unix:///nowhere/redis.sock");
}

BOOST_AUTO_TEST_CASE(F86_what_the_server_has_against_us_is_told) {
  server s{{"--requirepass", "secret"}};
  auto const at = "127.0.0.1:" + std::to_string(s.port());
  row("redis.wrong_password", "redis://:wrong@" + at, port_of(s));
  row("redis.no_password", "redis://" + at, port_of(s));
  auto brief = hasty();
  brief.connect_timeout = 2s;  // the server waits for more
  row("redis.tls", "rediss://:secret@" + at, port_of(s), brief);
  row("redis.database", "redis://:secret@" + at + "/99", port_of(s));
  row("redis.cluster_url", "redis+cluster://:secret@" + at, port_of(s));
  server const old{{"--rename-command", "HELLO", ""}};
  row("redis.too_old", url_of(old), port_of(old));
}

BOOST_AUTO_TEST_CASE(F85_a_worker_ends_where_it_is_refused_for_good) {
  server s{{"--requirepass", "secret"}};
  bed denied{s.address().authenticate("wrong"), hasty()};
  BOOST_TEST((weir_test::end_of_a_worker(denied.io, denied.store) == errc::permission_denied));
  s.ask("-a secret config set maxmemory-policy allkeys-lru");
  bed forgetful{s.address().authenticate("secret"), hasty()};
  BOOST_TEST((weir_test::end_of_a_worker(forgetful.io, forgetful.store) == errc::store_evicts));
}

BOOST_AUTO_TEST_CASE(F86_an_option_that_is_wrong_is_named) {
  server s;
  auto o = hasty();
  o.prefix = "a b";
  row("redis.prefix", url_of(s), {}, o);
  {
    bed on{s};
    BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  }
  o = hasty();
  o.shards = 2;
  row("redis.shards", url_of(s), port_of(s), o);
  s.ask("config set maxmemory-policy allkeys-lru");
  heard_log const heard;
  bed on{s};
  BOOST_TEST(weir_test::happens(on.io, [&] { return !heard.first().empty(); }));
  compare_row("redis.eviction", heard.first(), port_of(s));
}

BOOST_AUTO_TEST_CASE(F87_a_forgotten_run_is_named) {
  weir_test::F87_a_forgotten_run_is_named<redis_store>("redis.not_run", redis_address{}, hasty());
}

BOOST_AUTO_TEST_CASE(F85_an_outage_is_told_once_and_at_its_end) {
  heard_log const heard;
  server s;
  auto o = hasty();
  o.offline_patience = 100ms;
  bed on{s, o};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  BOOST_TEST(heard.all() == "");
  BOOST_TEST(!on.store.last_failure().error);
  s.kill();
  BOOST_TEST_REQUIRE(weir_test::happens(on.io, [&] { return heard.count("refused") != 0; }));
  auto known = port_of(s);
  known.insert(known.end(), {{"End of file", "REASON"}, {"Connection reset by peer", "REASON"}});
  compare_row("redis.lost", heard.first(), known);
  auto const during = on.store.last_failure();
  BOOST_TEST((during.error == errc::store_unavailable));
  BOOST_TEST(!during.over);
  for (int i = 0; i != 5; ++i) {
    auto const failed = on(command::inspect_lock{"key"});
    BOOST_TEST_REQUIRE(failed.has_error());
    BOOST_TEST(failed.error().message().find("refused") != std::string::npos,
               failed.error().message());
  }
  BOOST_TEST(heard.count("refused") == 1U, heard.all());  // however often it was tried
  s.start();
  BOOST_TEST_REQUIRE(weir_test::happens(on.io, [&] { return on.store.last_failure().over; }));
  BOOST_TEST((on.store.last_failure().since == during.since));
  BOOST_TEST(heard.count("answers again") == 1U, heard.all());
}

BOOST_AUTO_TEST_CASE(F87_calls_end_when_the_server_is_gone) {
  server s;
  auto o = hasty();
  o.offline_patience = 1h;
  bed on{s, o};
  weir_test::F87_calls_end_when_the_store_is_stopped(on.io, on.store, [&] {
    s.kill();
    BOOST_TEST_REQUIRE(weir_test::happens(
        on.io, [&] { return static_cast<bool>(on.store.last_failure().error); }));
  });
}

BOOST_AUTO_TEST_CASE(F87_a_rate_limit_is_open_or_closed_while_the_server_is_away) {
  boost::asio::io_context io;
  auto const closed = std::to_string(server_test::free_port());
  redis_store const store{io.get_executor(), "redis://127.0.0.1:" + closed, hasty()};
  store.async_run([](error_code) {});
  rate_limiter const rates{store.with_patience(50ms), quota::per_second(5)};
  auto const take = [&](while_away choice, auto start) {
    std::optional<std::pair<error_code, decision>> out;
    start(take_options{.cost = 2, .while_away = choice},
          [&](error_code ec, decision const& d) { out.emplace(ec, d); });
    BOOST_TEST_REQUIRE(weir_test::happens(io, [&] { return out.has_value(); }));
    return *out;
  };
  auto const reserving = [&](take_options const& o, auto h) { rates.async_reserve("key", o, h); };
  auto const waiting = [&](take_options const& o, auto h) { rates.async_take("key", o, h); };
  auto const check = [&](auto start) {
    BOOST_TEST((take(while_away::fail, start).first == errc::store_unavailable));
    auto const [open, granted] = take(while_away::allow, start);
    BOOST_TEST(!open);
    BOOST_TEST(granted.allowed);
    BOOST_TEST(granted.cost == 2U);
    auto const [shut, refused] = take(while_away::deny, start);
    BOOST_TEST(!shut);
    BOOST_TEST(!refused.allowed);
    BOOST_TEST((refused.retry_after == 1s));
  };
  check(reserving);
  check(waiting);
  store.close();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_CASE(F87_what_was_sent_by_the_end_of_its_patience_is_in_doubt) {
  server s;
  bed on{s};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  s.pause();
  auto const ec = weir_test::outcome(on.io, on.store.with_patience(100ms),
                                     command::acquire_lock{"key", "me", 1min});
  BOOST_TEST((ec == errc::outcome_unknown), ec.message());
  auto const housekeeping =
      weir_test::outcome(on.io, on.store.with_patience(100ms), command::gc_stale_pointers{});
  BOOST_TEST((housekeeping == errc::outcome_unknown), housekeeping.message());
  s.resume();
}

BOOST_AUTO_TEST_SUITE_END()
