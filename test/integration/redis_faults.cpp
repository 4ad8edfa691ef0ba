// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The store on the other side of a network that breaks at every place of a conversation, and on
// servers that die in the middle of one.

#include "patience.hpp"
#include "redis_conversation.hpp"
#include "redis_server.hpp"
#include "weir/command/at.hpp"
#include "weir/testing/fault_proxy.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace redis_test;
using weir::testing::fault_proxy;
using weir::testing::proxy_rates;
using weir_test::happens;

/// Puts as many tickets into the line of `key` as nobody ever takes, and that lapsed long ago:
/// before those that are there. `in_line`: otherwise only what says when they lapse is there.
void leave_tickets(server const& s, int many, bool in_line) {
  std::string const place = in_line ? R"(redis.call("ZADD", KEYS[2], -i, "dead" .. i) )" : "";
  s.ask("eval 'for i = 1, " + std::to_string(many) +
        R"( do redis.call("ZADD", KEYS[1], 1, "dead" .. i) )" + place +
        "end' 2 '{weir:0}:pl:key' '{weir:0}:pt:key'");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_faults)

BOOST_AUTO_TEST_CASE(F45_a_connection_that_ends_anywhere_in_a_conversation_does_nothing_twice) {
  server s;
  std::uint64_t cuts = 0;
  auto const unknown = cut_everywhere(11, 1, [&](std::string const& prefix, auto const& cut) {
    auto const o = quiet(prefix);
    asio::io_context io;
    fault_proxy const proxy{io.get_executor(), {asio::ip::address_v4::loopback(), s.port()}};
    proxy.script({cut});
    redis_store const store{io.get_executor(), redis_address{"127.0.0.1", proxy.endpoint().port()},
                            o};
    store.async_run([](error_code) {});
    spent takes;
    run(io, converse_about_all(store, takes));
    store.close();
    proxy.async_close();
    run_out(io);
    check_all_done(s.address(), o, takes);
    auto const c = proxy.counts();
    cuts += c.cut_before + c.cut_in + c.cut_after;
    return takes.unknown;
  });
  BOOST_TEST(cuts > 50U);
  BOOST_TEST(unknown > 0U);
}

BOOST_AUTO_TEST_CASE(R4_a_network_that_breaks_all_the_time_loses_no_job_and_repeats_none) {
  server s;
  constexpr std::uint32_t clients = 8;
  constexpr std::uint32_t each = 20;
  for (std::uint64_t seed = 1; seed != 3; ++seed) {
    auto const prefix = "s" + std::to_string(seed);
    auto o = quiet(prefix);
    o.health_check_interval = 500ms;  // cut connections may be silent ones
    o.connect_timeout = 2s;
    asio::io_context io;
    fault_proxy const proxy{io.get_executor(), {asio::ip::address_v4::loopback(), s.port()}};
    proxy_rates rates;
    rates.seed = seed;
    rates.cut_before = rates.cut_in = rates.cut_after = 1;
    rates.delay = 5;
    rates.silent = 10;
    proxy.chaos(rates);
    redis_store const store{io.get_executor(), redis_address{"127.0.0.1", proxy.endpoint().port()},
                            o};
    store.async_run([](error_code) {});

    std::set<job_id> done;
    std::uint32_t attempts = 0;
    auto const client = [&](std::uint32_t number) -> asio::awaitable<void> {
      auto const holder = std::to_string(number);
      for (std::uint32_t i = 0; i != each; ++i) {
        new_job j;
        j.id = id_of(number * 1000 + i);
        j.kind = "kind";
        command::enqueue_jobs const enqueue{"queue", std::span{&j, 1}};
        co_await insist(store, enqueue);
        command::dequeue_jobs const dequeue{"queue", holder, i + 1, 1, lasting};
        auto const got = co_await insist(store, dequeue);
        BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
        BOOST_TEST(done.insert(got.jobs[0].id).second);
        attempts += got.jobs[0].attempt;
        std::array const ended{finished_job{got.jobs[0].id, got.jobs[0].fence, {}}};
        command::complete_jobs const complete{"queue", ended};
        co_await insist(store, complete);
      }
    };
    std::uint32_t left = clients;
    run(io, [&]() -> asio::awaitable<void> {
      for (std::uint32_t n = 1; n < clients; ++n) {
        asio::co_spawn(io, client(n), [&](std::exception_ptr e) {
          BOOST_TEST(!e);
          --left;
        });
      }
      co_await client(0);
      --left;
      asio::steady_timer timer{io};
      while (left != 0) {
        timer.expires_after(5ms);
        co_await timer.async_wait(asio::use_awaitable);
      }
    }());
    store.close();
    proxy.async_close();
    run_out(io);

    BOOST_TEST(done.size() == std::size_t{clients} * each);
    BOOST_TEST(attempts == clients * each);  // no lost answer burnt one (F54)
    bed direct{s, o};
    auto const stats = direct(command::read_queue_stats{"queue"}).value();
    BOOST_TEST(stats.enqueued == clients * each);
    BOOST_TEST(stats.completed == clients * each);
    auto const c = proxy.counts();
    BOOST_TEST(c.cut_before + c.cut_in + c.cut_after > 0U);
  }
}

BOOST_AUTO_TEST_CASE(R4_what_was_acknowledged_survives_a_kill_in_the_middle_of_it) {
  server s{{"--appendonly", "yes", "--appendfsync", "always"}};
  for (std::uint32_t round = 0; round != 5; ++round) {
    bed on{s, quiet("weir")};
    constexpr std::uint32_t all = 1000;
    auto const queue = "queue" + std::to_string(round);
    std::vector<new_job> jobs(all);
    std::vector<std::optional<error_code>> ended(all);
    std::uint32_t answered = 0;
    for (std::uint32_t i = 0; i != all; ++i) {
      jobs[i].id = id_of(round * all + i);
      jobs[i].kind = "kind";
      on.store.async_execute(command::enqueue_jobs{queue, std::span{&jobs[i], 1}},
                             [&, i](error_code ec, command::enqueue_jobs::result const&) {
                               ended[i] = ec;
                               ++answered;
                             });
    }
    BOOST_TEST_REQUIRE(happens(on.io, [&] { return answered >= 1 + round * 150; }));
    s.kill();
    s.start();
    BOOST_TEST_REQUIRE(happens(on.io, [&] { return answered == all; }));
    // If all were answered before the kill, the connection has not been missed so far.
    auto peeked = on(command::peek_jobs{queue, all});
    if (peeked.has_error()) peeked = on(command::peek_jobs{queue, all});
    std::set<job_id> there;
    for (auto const& j : peeked.value()) there.insert(j.id);
    std::uint32_t lost = 0;
    for (std::uint32_t i = 0; i != all; ++i) {
      bool const found = there.contains(jobs[i].id);
      if (*ended[i]) BOOST_TEST_REQUIRE(is_transport(*ended[i]), ended[i]->message());
      if (!*ended[i] && !found) ++lost;
      if (*ended[i] == errc::store_unavailable) BOOST_TEST(!found);
    }
    BOOST_TEST(lost == 0U);
  }
}

BOOST_AUTO_TEST_CASE(F46_a_server_that_loads_its_data_is_waited_for) {
  server s{{"--appendonly", "yes", "--key-load-delay", "50000",
            "--loading-process-events-interval-bytes", "1024"}};
  bed on{s, quiet("weir")};
  for (std::uint32_t i = 0; i != 500; ++i) {
    auto const key = "key" + std::to_string(i);
    BOOST_TEST_REQUIRE(on(command::acquire_lock{key, "me", lasting}).has_value());
  }
  s.ask("bgrewriteaof");  // into a snapshot, whose keys the server takes its time for
  BOOST_TEST_REQUIRE(happens([&] {
    return s.ask("info persistence").find("aof_rewrite_in_progress:0") != std::string::npos;
  }));
  s.kill();
  s.start_loading();
  std::optional<result<lock_info>> held;
  std::function<void()> const look = [&] {
    on.store.async_execute(command::inspect_lock{"key0"}, [&](error_code ec, lock_info i) {
      if (ec == errc::outcome_unknown) {  // the connection had not noticed
        look();
      } else if (ec) {
        held.emplace(ec);
      } else {
        held.emplace(std::move(i));
      }
    });
  };
  look();
  on.io.restart();
  on.io.run_for(1s);
  BOOST_TEST(s.ask("get x").starts_with("LOADING"));
  BOOST_TEST(!held.has_value());
  s.ask("config set key-load-delay 0");  // so much for that
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return held.has_value(); }));
  BOOST_TEST_REQUIRE(held->has_value(), held->error().message());
  BOOST_TEST((*held)->held);
}

BOOST_AUTO_TEST_CASE(R7_a_store_that_is_closed_while_it_connects_lets_the_context_end) {
  server s;
  // Somebody who takes connections and never says a word.
  asio::io_context other;
  asio::ip::tcp::acceptor const mute{other, {asio::ip::address_v4::loopback(), 0}};
  for (auto const port : {s.port(), mute.local_endpoint().port()}) {
    for (int steps = 0; steps != 25; ++steps) {
      auto o = quiet("weir");
      o.connect_timeout = 1h;
      asio::io_context io;
      redis_store const store{io.get_executor(), redis_address{"127.0.0.1", port}, o};
      std::optional<error_code> ended;
      store.async_run([&](error_code ec) { ended = ec; });
      std::optional<error_code> answer;
      store.async_execute(command::inspect_lock{"key"},
                          [&](error_code ec, lock_info const&) { answer = ec; });
      for (int i = 0; i != steps; ++i) io.run_one_for(5ms);
      store.close();
      run_out(io);
      BOOST_TEST(ended.has_value());
      BOOST_TEST((ended && !*ended));
      BOOST_TEST(answer.has_value());
    }
  }
}

BOOST_AUTO_TEST_CASE(F11_leases_that_are_over_count_for_nothing_however_many_are_left) {
  server s;
  bed on{s, quiet("weir")};
  constexpr int many = 2500;  // a step removes a thousand
  time_point const start{std::chrono::sys_days{std::chrono::year{2030} / 1 / 1}};
  std::vector<std::string> holders;
  for (int i = 0; i != many; ++i) holders.push_back(std::to_string(i));
  int granted = 0;
  int queued = 0;
  for (auto const& h : holders) {
    command::acquire_permit const permit{"key", h, many, 1s, {}};
    on.store.async_execute(command::at{permit, start}, [&](error_code ec, permit_grant const& g) {
      granted += !ec && g.granted;
    });
  }
  for (auto const& h : holders) {
    command::acquire_permit const ticket{"line", h, 1, 1s, 1s};
    on.store.async_execute(command::at{ticket, start}, [&](error_code ec, permit_grant const& g) {
      queued += !ec && !g.granted;
    });
  }
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return granted == many && queued == many - 1; }));
  command::acquire_permit const last{"key", "last", 1, lasting, {}};
  auto const got = on(command::at{last, start + 1s}).value();
  BOOST_TEST(got.granted);
  BOOST_TEST(got.in_use == 1U);
  command::inspect_permits const look{"key", 5};
  auto const census = on(command::at{look, start + 1s}).value();
  BOOST_TEST(census.in_use == 1U);
  BOOST_TEST_REQUIRE(census.holders.size() == 1U);
  BOOST_TEST(census.holders[0].holder == "last");
  command::acquire_permit const other{"key", "other", 1, lasting, {}};
  auto const refused = on(command::at{other, start + 2s}).value();
  BOOST_TEST(!refused.granted);
  BOOST_TEST((refused.retry_after == lasting - 1s));
  // Those who waited are gone as well, whoever asks first.
  command::inspect_permits const line{"line", 0};
  BOOST_TEST(on(command::at{line, start + 1s}).value().waiting == 0U);
  command::acquire_permit const next{"line", "next", 1, lasting, {}};
  BOOST_TEST(on(command::at{next, start + 1s}).value().granted);
  command::acquire_permit const back{"line", holders[many - 1], 1, lasting, lasting};
  auto const place = on(command::at{back, start + 1s}).value();
  BOOST_TEST(place.place == 1U);
  BOOST_TEST((place.retry_after == lasting));
}

BOOST_AUTO_TEST_CASE(F11_those_who_wait_behind_many_tickets_of_the_dead_are_served_in_turn) {
  server s;
  bed on{s, quiet("weir")};
  BOOST_TEST(on(command::acquire_permit{"key", "first", 1, lasting, {}}).value().granted);
  for (auto const* const who : {"second", "third"}) {
    command::acquire_permit const ask{"key", who, 1, lasting, lasting};
    BOOST_TEST(!on(ask).value().granted);
  }
  leave_tickets(s, 6500, true);
  BOOST_TEST(on(command::release_permit{"key", "first", 0}).value().freed);
  command::acquire_permit const third{"key", "third", 1, lasting, lasting};
  BOOST_TEST(on(third).value().place == 2U);
  command::acquire_permit const second{"key", "second", 1, lasting, lasting};
  BOOST_TEST(on(second).value().granted);
}

// A step removes ten thousand of them.
BOOST_AUTO_TEST_CASE(F11_who_comes_to_a_line_of_very_many_dead_is_served_at_once) {
  server s;
  bed on{s, quiet("weir")};
  BOOST_TEST(on(command::acquire_permit{"key", "first", 1, lasting, {}}).value().granted);
  command::acquire_permit const second{"key", "second", 1, lasting, lasting};
  BOOST_TEST(!on(second).value().granted);
  leave_tickets(s, 65'000, true);
  BOOST_TEST(on(command::release_permit{"key", "first", 0}).value().freed);
  // One that lapsed itself, and is among those that stay, has no place any more.
  command::acquire_permit const back{"key", "dead9999", 1, lasting, {}};
  BOOST_TEST(!on(back).value().granted);
  BOOST_TEST(on(second).value().granted);
  BOOST_TEST(on(command::release_permit{"key", "second", 0}).value().freed);
  BOOST_TEST(on(command::acquire_permit{"key", "third", 1, lasting, {}}).value().granted);
  BOOST_TEST(s.ask("zcard '{weir:0}:pt:key'") != "0");  // or this tests little
}

// The server does nothing else meanwhile.
BOOST_AUTO_TEST_CASE(F80_a_census_looks_at_few_of_the_many_permits_that_are_over) {
  server s;
  bed on{s, quiet("weir")};
  duration ttl = lasting;
  for (auto const* const who : {"one", "two", "three"}) {
    ttl /= 2;
    BOOST_TEST(on(command::acquire_permit{"key", who, 3, ttl, {}}).value().granted);
  }
  s.ask("eval 'for i = 1, 50000 do redis.call(\"ZADD\", KEYS[1], 1, \"dead\" .. i) "
        "redis.call(\"ZADD\", KEYS[2], i, \"dead\" .. i) end' 2 '{weir:0}:pe:key' "
        "'{weir:0}:pf:key'");
  s.ask("config resetstat");
  auto const census = on(command::inspect_permits{"key", 2}).value();
  BOOST_TEST(census.in_use == 3U);
  BOOST_TEST_REQUIRE(census.holders.size() == 2U);
  BOOST_TEST(census.holders[0].holder == "one");
  BOOST_TEST(census.holders[1].holder == "two");
  std::string const calls = "cmdstat_zscore:calls=";
  auto const stats = s.ask("info commandstats");
  auto const at = stats.find(calls);
  BOOST_TEST_REQUIRE(at != stats.npos);
  BOOST_TEST(std::stoul(stats.substr(at + calls.size())) < 2500U);
}

BOOST_AUTO_TEST_CASE(R1_tickets_that_nobody_has_grant_nothing) {
  server s;
  bed on{s, quiet("weir")};
  BOOST_TEST(on(command::acquire_permit{"key", "first", 1, lasting, {}}).value().granted);
  BOOST_TEST(!on(command::acquire_permit{"key", "second", 1, lasting, lasting}).value().granted);
  leave_tickets(s, 1500, false);
  BOOST_TEST(!on(command::acquire_permit{"key", "third", 1, lasting, {}}).value().granted);
  BOOST_TEST(on(command::inspect_permits{"key", 0}).value().in_use == 1U);
}

BOOST_AUTO_TEST_CASE(F53_what_somebody_else_has_changed_is_a_typed_error) {
  server s;
  bed on{s, quiet("weir")};
  s.ask("set '{weir:0}:b:key' hello");
  BOOST_TEST((on(command::take{"key", quotas, 1, {}}).error() == errc::store_foreign));
  BOOST_TEST(s.ask("get '{weir:0}:b:key'") == "hello");

  new_job j;
  j.id = id_of(1);
  j.kind = "kind";
  BOOST_TEST(on(command::enqueue_jobs{"queue", std::span{&j, 1}}).has_value());
  s.ask("del '{weir:0}:j:queue'");
  BOOST_TEST(on(command::peek_jobs{"queue", 1}).value().empty());
  BOOST_TEST(on(command::dequeue_jobs{"queue", "me", 1, 1, lasting}).value().damaged == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
