// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The store on a cluster of servers, which moves its slots and loses its masters.

#include "broken_network.hpp"
#include "counted_executor.hpp"
#include "heard_log.hpp"
#include "patience.hpp"
#include "redis_nodes.hpp"
#include "redis_server.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/cluster_map.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace redis_test;
using network_test::certain;
using network_test::is_transport;
using network_test::lasting;
using weir_test::happens;

constexpr std::uint32_t shards = 8;

job_id id_of(std::uint32_t n) {
  job_id out{};
  for (std::size_t i = 0; i != 4; ++i) out.data[i] = static_cast<std::uint8_t>(n >> (8 * i));
  out.data[15] = 1;
  return out;
}

redis_options spread() {
  auto o = unhurried();
  o.shards = shards;
  o.least_reconnect_wait = 10ms;
  o.longest_reconnect_wait = 200ms;
  return o;
}

template <class T>
bool is_error(result<T> const& r, errc e) {
  return r.has_error() && r.error() == e;
}

/// A key of each shard.
std::vector<std::string> one_of_each() {
  detail::redis_names const names{"weir", shards};
  std::vector<std::string> out(shards);
  for (int i = 0; std::ranges::any_of(out, [](auto const& k) { return k.empty(); }); ++i) {
    auto key = "key" + std::to_string(i);
    out[names.shard_of(key)] = key;
  }
  return out;
}

/// One for all that leave it as they found it.
cluster& shared() {
  static cluster one;
  return one;
}

/// How many connections have begun with one of its nodes.
int greetings() {
  auto const said = shared()[0].ask("info commandstats");
  constexpr std::string_view field = "cmdstat_hello:calls=";
  return std::stoi(said.substr(said.find(field) + field.size()));
}

/// A slot on its way from one node to another.
struct moving_slot {
  cluster& nodes;
  std::string slot;
  std::size_t from;
  std::size_t to;

  void begin() const {
    nodes[to].ask("cluster setslot " + slot + " importing " + nodes.id_of(from));
    nodes[from].ask("cluster setslot " + slot + " migrating " + nodes.id_of(to));
  }
  [[nodiscard]] std::string take_along(std::string const& name) const {
    auto const port = std::to_string(nodes[to].port());
    return nodes[from].ask("migrate 127.0.0.1 " + port + " '" + name + "' 0 5000");
  }
  void end() const {
    std::istringstream rest{nodes[from].ask("cluster getkeysinslot " + slot + " 100")};
    for (std::string name; std::getline(rest, name);) {
      BOOST_TEST(take_along(name) == "OK");
    }
    for (auto const i : {from, to}) {
      nodes[i].ask("cluster setslot " + slot + " node " + nodes.id_of(to));
    }
  }
  [[nodiscard]] moving_slot back() const { return {nodes, slot, to, from}; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_cluster_of_servers)

BOOST_AUTO_TEST_CASE(slots_are_where_servers_count_them) {
  for (std::string const tag : {"weir:0", "weir:1", "a", "123456789", "prefix-with.many:parts:7"}) {
    BOOST_TEST(std::to_string(detail::redis_slot(tag)) ==
               shared()[0].ask("cluster keyslot '{" + tag + "}:rest'"));
  }
}

BOOST_AUTO_TEST_CASE(maps_are_understood_or_refused) {
  using node = weir::detail::redis_value;
  using type = weir::detail::redis_kind;
  std::vector<node> const good{{type::array, 2, 0, ""},        {type::array, 4, 1, ""},
                               {type::number, 1, 2, "0"},      {type::number, 1, 2, "99"},
                               {type::array, 4, 2, ""},        {type::blob_string, 1, 3, "h"},
                               {type::number, 1, 3, "1"},      {type::blob_string, 1, 3, "id"},
                               {type::array, 2, 3, ""},        {type::blob_string, 1, 4, "x"},
                               {type::blob_string, 1, 4, "y"}, {type::array, 3, 2, ""},
                               {type::blob_string, 1, 3, ""},  {type::number, 1, 3, "2"},
                               {type::blob_string, 1, 3, "i"}, {type::array, 3, 1, ""},
                               {type::number, 1, 2, "100"},    {type::number, 1, 2, "16383"},
                               {type::array, 3, 2, ""},        {type::null, 1, 3, ""},
                               {type::number, 1, 3, "3"},      {type::blob_string, 1, 3, "j"}};
  auto const map = detail::redis_cluster_map::read(good, "asked");
  BOOST_TEST_REQUIRE(map.has_value());
  BOOST_TEST((*map->master_of(0) == detail::redis_place{"h", 1}));
  BOOST_TEST((*map->master_of(99) == detail::redis_place{"h", 1}));
  BOOST_TEST((*map->master_of(100) == detail::redis_place{"asked", 3}));
  BOOST_TEST(map->everybody().size() == 3U);
  for (std::size_t i = 0; i != good.size(); ++i) {
    if (good[i].data_type != type::number) continue;
    for (auto const* const bad : {"", "-1", "65536", "1x"}) {
      auto other = good;
      other[i].value = bad;
      BOOST_TEST(!detail::redis_cluster_map::read(other, "asked").has_value());
    }
  }
  BOOST_TEST(!detail::redis_cluster_map::read({}, "asked").has_value());
  BOOST_TEST(!detail::redis_cluster_map::read(std::span{good}.first(5), "asked").has_value());

  BOOST_TEST((detail::redis_redirection("MOVED 7 h:1", "asked") == detail::redis_place{"h", 1}));
  BOOST_TEST((detail::redis_redirection("ASK 7 ::1:1", "asked") == detail::redis_place{"::1", 1}));
  BOOST_TEST((detail::redis_redirection("MOVED 7 :1", "asked") == detail::redis_place{"asked", 1}));
  for (auto const* const bad : {"MOVED", "MOVED 7", "MOVED 7 h", "MOVED 7 h:", "MOVED 7 h:0",
                                "MOVED 7 h:65536", "MOVED 7 h:1x"}) {
    BOOST_TEST(!detail::redis_redirection(bad, "asked").has_value(), bad);
  }
}

BOOST_AUTO_TEST_CASE(a_node_is_enough_to_find_them_all) {
  // A replica, which serves nothing.
  boost::asio::io_context io;
  for (std::size_t const first : {std::size_t{0}, cluster::size - 1}) {
    redis_store const store{io.get_executor(), shared().address(first), spread()};
    store.async_run([](error_code) {});
    std::set<std::uint64_t> fences;
    for (auto const& key : one_of_each()) {
      auto const got = ask(io, store, command::acquire_lock{key, "me", lasting});
      BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
      BOOST_TEST(got->granted);
      BOOST_TEST(ask(io, store, command::release_lock{key, "me", 0}).value().freed);
    }
    store.close();
    io.restart();
    io.run();
  }
  std::set<std::size_t> used;
  for (std::uint32_t i = 0; i != shards; ++i) {
    used.insert(shared().serves("weir:" + std::to_string(i)));
  }
  BOOST_TEST(used.size() == cluster::masters);  // or this tests little
}

BOOST_AUTO_TEST_CASE(who_was_told_wrongly_whether_it_is_a_cluster_is_told_so) {
  server alone;
  redis_options const o = spread();
  boost::asio::io_context io;
  redis_store const lonely{io.get_executor(), alone.address().cluster(), o};
  lonely.async_run([](error_code) {});
  BOOST_TEST(is_error(ask(io, lonely, command::inspect_lock{"key"}), errc::invalid_option));
  lonely.close();
  // Which shards' keys a node has is chance, but no node has all.
  for (std::size_t i = 0; i != cluster::size; ++i) {
    redis_store const simple{io.get_executor(), shared()[i].address(), o};
    simple.async_run([](error_code) {});
    int told = 0;
    for (auto const& key : one_of_each()) {
      auto const got = ask(io, simple, command::inspect_lock{key});
      if (got.has_error()) BOOST_TEST((got.error() == errc::invalid_option), got.error().message());
      told += got.has_error();
    }
    BOOST_TEST(told > 0);
    simple.close();
  }
  io.restart();
  io.run();
  auto fewer = spread();
  fewer.shards = 1;
  redis_store const other{io.get_executor(), shared().address(), fewer};
  other.async_run([](error_code) {});
  BOOST_TEST(is_error(ask(io, other, command::inspect_lock{"key"}), errc::invalid_option));
  other.close();
  io.restart();
  io.run();
}

// Or who comes next would be free to use them with another one, and find none of the jobs.
BOOST_AUTO_TEST_CASE(servers_that_were_emptied_are_told_the_number_of_shards_again) {
  cluster nodes;
  auto o = spread();
  o.health_check_interval = 100ms;
  bed on{nodes.addresses(), o};
  auto const is_given = [&](std::string_view who) {
    return happens(on.io, [&] {
      auto const got = on(command::acquire_lock{"key", who, lasting});
      return got.has_value() && got->granted;
    });
  };
  auto const empty = [&] {
    for (std::size_t i = 0; i != cluster::masters; ++i) nodes[i].ask("flushall");
  };
  BOOST_TEST(is_given("me"));
  empty();
  BOOST_TEST(is_given("other"));
  BOOST_TEST(happens(on.io, [&] { return nodes[0].ask("-c get '{weir:0}:shards'") == "8"; }));
  auto fewer = spread();
  fewer.shards = 1;
  bed wrong{nodes.addresses(), fewer};
  BOOST_TEST(is_error(wrong(command::inspect_lock{"key"}), errc::invalid_option));
  // The other way round, those who are there are told.
  empty();
  nodes[0].ask("-c set '{weir:0}:shards' 1");
  BOOST_TEST(happens(
      on.io, [&] { return is_error(on(command::inspect_lock{"key"}), errc::invalid_option); }));
}

BOOST_AUTO_TEST_CASE(F38_hints_come_by_message_from_every_node) {
  auto slow = spread();
  slow.poll_interval = 10s;
  bed one{shared().address(0), slow};
  bed two{shared().address(1), slow};
  auto const keys = one_of_each();
  std::size_t woken = 0;
  for (auto const& key : keys) {
    BOOST_TEST(one(command::acquire_permit{key, "x", 1, lasting, {}}).value().granted);
    BOOST_TEST(two(command::acquire_permit{key, "y", 1, lasting, lasting}).value().place == 1U);
    two.store.async_execute(command::await_permit{key, "y"}, [&](error_code ec, hint) {
      BOOST_TEST(!ec);
      ++woken;
    });
  }
  two.io.restart();
  two.io.run_for(200ms);
  BOOST_TEST(woken == 0U);
  auto const start = std::chrono::steady_clock::now();
  for (auto const& key : keys) {
    BOOST_TEST(one(command::release_permit{key, "x", 0}).value().freed);
  }
  while (woken != keys.size() && std::chrono::steady_clock::now() - start < 30s) {
    two.io.run_one_for(10ms);
  }
  BOOST_TEST(woken == keys.size());
  BOOST_TEST((std::chrono::steady_clock::now() - start < 8s));  // sooner than anybody looked
  for (auto const& key : keys) BOOST_TEST(one(command::release_permit{key, "y", 0}).has_value());
}

BOOST_AUTO_TEST_CASE(F46_forgotten_scripts_are_sent_again_to_each_node) {
  bed on{shared().address(), spread()};
  for (int round = 0; round != 3; ++round) {
    for (std::size_t i = 0; i != cluster::masters; ++i) shared()[i].ask("script flush");
    for (auto const& key : one_of_each()) {
      BOOST_TEST(on(command::inspect_lock{key}).has_value());
    }
  }
}

BOOST_AUTO_TEST_CASE(R3_a_slot_that_moves_in_mid_run_takes_its_buckets_along) {
  auto& nodes = shared();
  bed on{nodes.address(), spread()};
  auto const key = one_of_each()[3];
  std::string const tag = "weir:3";
  constexpr std::uint64_t tokens = 1000;
  quota const quotas[] = {quota::per(tokens, 240h)};
  std::uint64_t taken = 0;
  std::size_t under_way = 0;
  auto const take = [&](int n) {
    for (int i = 0; i != n; ++i) {
      ++under_way;
      on.store.async_execute(command::take{key, quotas, 1, {}},
                             [&](error_code ec, decision const& d) {
                               --under_way;
                               BOOST_TEST(!ec, ec.message());
                               taken += !ec && d.allowed;
                             });
    }
  };
  auto const finish = [&] { BOOST_TEST_REQUIRE(happens(on.io, [&] { return under_way == 0; })); };
  take(100);
  finish();
  auto const from = nodes.serves(tag);
  auto const to = (from + 1) % cluster::masters;
  auto const asks = nodes.refusals("ASK");
  auto const moves = nodes.refusals("MOVED");

  // The slot is on its way, and its keys are there already, or are not.
  moving_slot const slot{nodes, std::to_string(detail::redis_slot(tag)), from, to};
  slot.begin();
  take(10);
  finish();
  BOOST_TEST(slot.take_along("{" + tag + "}:b:" + key) == "OK");
  take(10);
  finish();
  BOOST_TEST(nodes.refusals("ASK") >= asks + 10);

  // All other commands have several keys, some of which never were: they wait until it has moved.
  std::optional<error_code> locked;
  on.store.async_execute(command::acquire_lock{key, "me", lasting},
                         [&](error_code ec, lock_grant const&) { locked = ec; });
  take(10);
  finish();
  on.io.run_for(100ms);
  slot.end();
  take(100);
  finish();
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return locked.has_value(); }));
  BOOST_TEST((locked && !*locked));
  BOOST_TEST(nodes.refusals("MOVED") > moves);
  auto const moved = nodes.refusals("MOVED");
  take(100);
  finish();
  BOOST_TEST(nodes.refusals("MOVED") == moved);  // it was learned

  // Back, while nobody asks: it is learned from the first refusal.
  slot.back().begin();
  slot.back().end();
  for (int i = 0; i != 20; ++i) {
    take(1);
    finish();
  }
  BOOST_TEST(nodes.refusals("MOVED") == moved + 1);
  BOOST_TEST(taken == 350U);
  auto const left = on(command::peek_bucket{key, quotas, 1, {}}).value().remaining;
  BOOST_TEST(left >= tokens - taken);
  BOOST_TEST(left <= tokens - taken + 1);  // a token comes in a quarter of an hour
  BOOST_TEST(on(command::release_lock{key, "me", 0}).value().freed);
}

BOOST_AUTO_TEST_CASE(F102_who_asks_while_a_slot_moves_is_not_put_off_by_a_clock_that_is_behind) {
  auto& nodes = shared();
  bed on{nodes.address(), spread()};
  auto const key = one_of_each()[4];
  std::string const tag = "weir:4";
  quota const quotas[] = {quota::per(1, 2s)};
  auto const take = [&] { return on(command::take{key, quotas, 1, {}}).value(); };
  auto const from = nodes.serves(tag);
  // Time went on where it was, when the clock was set back by thirty hours.
  constexpr std::int64_t ahead = 30LL * 3600 * 1'000'000;
  auto const now = std::chrono::floor<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  auto const noted = std::to_string(now + ahead) + "+" + std::to_string(ahead);
  nodes[from].ask("set '{" + tag + "}:time' " + noted);
  BOOST_TEST_REQUIRE(take().allowed);

  moving_slot const slot{nodes, std::to_string(detail::redis_slot(tag)), from,
                         (from + 1) % cluster::masters};
  slot.begin();
  BOOST_TEST(slot.take_along("{" + tag + "}:b:" + key) == "OK");
  auto const refused = take();
  BOOST_TEST(!refused.allowed);
  BOOST_TEST(refused.retry_after.count() <= duration{1s}.count());
  slot.end();
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return take().allowed; }));
  slot.back().begin();
  slot.back().end();
}

BOOST_AUTO_TEST_CASE(F45_a_connection_to_a_node_that_is_killed_takes_nothing_twice) {
  auto& nodes = shared();
  bed on{nodes.address(), spread()};
  auto const key = one_of_each()[5] + "once";
  detail::redis_names const names{"weir", shards};
  auto& node = nodes[nodes.serves("weir:" + std::to_string(names.shard_of(key)))];
  constexpr std::uint64_t tokens = 100'000;
  quota const quotas[] = {quota::per(tokens, 240h)};
  std::uint64_t certain = 0;
  std::uint64_t unknown = 0;
  std::uint64_t ended = 0;
  constexpr std::uint64_t each = 10'000;
  // Where it is killed too late for those that are under way, there are some more of them.
  for (int round = 0; round < 5 || (round < 9 && unknown == 0); ++round) {
    auto const before = ended;
    for (std::uint64_t i = 0; i != each; ++i) {
      on.store.async_execute(command::take{key, quotas, 1, {}},
                             [&](error_code ec, decision const& d) {
                               BOOST_TEST((!ec || is_transport(ec)), ec.message());
                               certain += !ec && d.allowed;
                               unknown += ec == errc::outcome_unknown;
                               ++ended;
                             });
    }
    std::jthread const killer{[&] { node.ask("client kill type normal skipme yes"); }};
    BOOST_TEST_REQUIRE(happens(on.io, [&] { return ended == before + each; }));
  }
  BOOST_TEST(unknown > 0U);
  auto const left = on(command::peek_bucket{key, quotas, 1, {}}).value().remaining;
  BOOST_TEST(left >= tokens - certain - unknown);
  BOOST_TEST(left <= tokens - certain + 100);  // what came back meanwhile
}

BOOST_AUTO_TEST_CASE(R5_a_master_that_dies_is_succeeded_and_no_fence_is_given_twice) {
  cluster nodes{succeeded()};
  bed on{nodes.address(), spread()};
  auto const keys = one_of_each();
  std::vector<std::uint64_t> fences;
  for (auto const& key : keys) {
    fences.push_back(on(command::acquire_lock{key, "me", lasting}).value().fence);
    new_job j;
    j.id = id_of(1);
    j.kind = "kind";
    BOOST_TEST(on(command::enqueue_jobs{key, std::span{&j, 1}}).has_value());
  }
  // The replicas have it, which nobody promises but WAIT.
  for (std::size_t i = 0; i != cluster::masters; ++i) {
    auto const& replica = nodes[nodes.replica_of(i)];
    cluster::wait("replica that has it all",
                  [&] { return replication_offset(nodes[i]) == replication_offset(replica); });
  }
  // One that is started again before the servers agree who is whose replica may take its own file
  // of the cluster for damaged: valkey-io/valkey#774.
  for (std::size_t i = 0; i != cluster::size; ++i) {
    cluster::wait("shards that have settled", [&] {
      auto const all = nodes[i].ask("cluster shards");
      std::size_t shards_there = 0;
      for (auto at = all.find("slots"); at != all.npos; at = all.find("slots", at + 1)) {
        ++shards_there;
      }
      return shards_there <= cluster::masters;  // older servers have no such command
    });
  }
  auto const dead = nodes.serves("weir:0");
  auto const heir = nodes.replica_of(dead);
  // Who knows nobody but the one that dies has heard of others.
  auto few = spread();
  few.shards = 1;
  std::string prefix;
  for (int i = 0; prefix.empty() || nodes.serves(prefix + ":0") != dead; ++i) {
    prefix = "few" + std::to_string(i);
  }
  few.prefix = prefix;
  bed lonely{nodes.address(dead), few};
  BOOST_TEST(lonely(command::acquire_lock{"key", "me", lasting}).has_value());

  // What is under way may be lost, and is of unknown outcome then.
  std::size_t ended = 0;
  std::vector<std::string> names;
  for (int i = 0; i != 200; ++i) names.push_back("other" + std::to_string(i));
  for (auto const& name : names) {
    on.store.async_execute(command::acquire_lock{name, "me", lasting},
                           [&](error_code ec, lock_grant const& g) {
                             ++ended;
                             BOOST_TEST((ec ? is_transport(ec) : g.granted), ec.message());
                           });
  }
  nodes[dead].kill();
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return ended == names.size(); }));
  for (std::size_t i = 0; i != keys.size(); ++i) {
    auto const again = certain(on, command::acquire_lock{keys[i], "me", lasting});
    BOOST_TEST(again.granted);
    BOOST_TEST(again.fence == fences[i]);
    auto const other = certain(on, command::acquire_lock{"new" + keys[i], "me", lasting});
    BOOST_TEST(other.fence > fences[i]);
    auto const got = certain(on, command::dequeue_jobs{keys[i], "me", 1, 1, lasting});
    BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
    BOOST_TEST(got.jobs[0].fence > fences[i]);
  }
  BOOST_TEST(nodes.serves("weir:0") == heir);
  BOOST_TEST(certain(lonely, command::acquire_lock{"key", "me", lasting}).granted);

  // It comes back as its successor's replica, and nobody minds.
  nodes[dead].start();
  cluster::wait("replica", [&] {
    return nodes[dead].ask("info replication").find("master_link_status:up") != std::string::npos;
  });
  for (auto const& key : keys) BOOST_TEST(certain(on, command::inspect_lock{key}).held);
}

BOOST_AUTO_TEST_CASE(R7_stores_end_at_any_moment_and_leave_nothing) {
  auto& nodes = shared();
  for (int steps = 0; steps != 30; ++steps) {
    {
      boost::asio::io_context io;
      redis_store const store{io.get_executor(), nodes.addresses(), spread()};
      std::optional<error_code> ended;
      std::optional<error_code> answer;
      store.async_run([&](error_code ec) { ended = ec; });
      store.async_execute(command::inspect_lock{"key"},
                          [&](error_code ec, lock_info const&) { answer = ec; });
      for (int i = 0; i != steps; ++i) io.run_one_for(5ms);
      store.close();
      io.restart();
      io.run_for(weir_test::patience);
      BOOST_TEST(io.stopped());
      BOOST_TEST((ended && !*ended));
      BOOST_TEST(answer.has_value());
    }
    auto io = std::make_unique<boost::asio::io_context>();
    auto const kept = std::make_shared<std::atomic<int>>();
    auto const left = std::make_shared<std::atomic<int>>();
    std::optional<redis_store> store{std::in_place,
                                     test::counted_executor{io->get_executor(), left},
                                     nodes.addresses(), spread()};
    store->async_run([kept](error_code) {});
    for (auto const& key : one_of_each()) {
      store->async_execute(command::inspect_lock{key}, [kept](error_code, lock_info const&) {});
    }
    store->async_execute(command::await_jobs{0}, [kept](error_code, hint) {});
    for (int i = 0; i != steps; ++i) io->run_one_for(5ms);
    store.reset();
    io.reset();
    BOOST_TEST(kept.use_count() == 1);
    BOOST_TEST(left.use_count() == 1);
  }
}

BOOST_AUTO_TEST_CASE(F87_a_store_that_never_runs_connects_to_nothing) {
  auto o = spread();
  o.offline_patience = 200ms;
  boost::asio::io_context io;
  redis_store const store{io.get_executor(), shared().address(), o};
  auto const answer = ask(io, store, command::inspect_lock{"key"});
  BOOST_TEST_REQUIRE(is_error(answer, errc::store_unavailable));
  BOOST_TEST(answer.error().message().ends_with("async_run was not called on this store"));
  BOOST_TEST(happens(io, [&] { return io.stopped(); }), "it keeps its context busy");
}

BOOST_AUTO_TEST_CASE(F85_why_no_node_can_be_asked_is_told_once) {
  weir_test::heard_log const heard;
  bed on{shared().address().authenticate("wrong", "nobody"), spread()};
  BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::permission_denied));
  auto const before = greetings();
  BOOST_TEST(happens(on.io, [&] { return greetings() > before + 20; }));
  BOOST_TEST(heard.count("WRONGPASS") == 2U, heard.all());  // by the node, and so by the cluster
}

BOOST_AUTO_TEST_CASE(F61_nodes_that_evict_are_refused_before_any_command) {
  auto const all_have = [](std::string const& policy) {
    for (std::size_t i = 0; i != cluster::size; ++i) {
      shared()[i].ask("config set maxmemory-policy " + policy);
    }
  };
  weir_test::heard_log const heard;
  all_have("allkeys-lru");
  {
    bed on{shared().address(), spread()};
    BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::store_evicts));
    auto const before = greetings();
    BOOST_TEST(happens(on.io, [&] { return greetings() > before + 20; }));
    BOOST_TEST(heard.count("it answers again") == 0U, heard.all());
    all_have("noeviction");
    BOOST_TEST(happens(on.io, [&] { return on(command::inspect_lock{"key"}).has_value(); }));
  }
}

BOOST_AUTO_TEST_CASE(a_cluster_that_cannot_be_reached_is_unavailable_after_the_patience) {
  auto o = spread();
  o.offline_patience = 200ms;
  o.max_pending = 3;
  boost::asio::io_context io;
  redis_store const store{io.get_executor(), redis_address{"127.0.0.1", 1}.cluster(), o};
  store.async_run([](error_code) {});
  int full = 0;
  int unavailable = 0;
  for (int i = 0; i != 10; ++i) {
    store.async_execute(command::inspect_lock{"key"}, [&](error_code ec, lock_info const&) {
      full += ec == errc::store_full;
      unavailable += ec == errc::store_unavailable;
    });
  }
  BOOST_TEST_REQUIRE(happens(io, [&] { return full + unavailable == 10; }));
  BOOST_TEST(full == 7);
  BOOST_TEST(unavailable == 3);
  store.close();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_SUITE_END()
