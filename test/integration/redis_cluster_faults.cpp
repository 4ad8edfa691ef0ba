// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The store on a cluster behind a network that breaks at every place of a conversation; and what
// the replicas of a cluster confirm.

#include "patience.hpp"
#include "redis_conversation.hpp"
#include "redis_nodes.hpp"
#include "redis_server.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/testing/fault_proxy.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace redis_test;
using weir::testing::fault_proxy;
using weir::testing::proxy_rates;

constexpr std::uint32_t shards = 8;

redis_options spread(std::string_view prefix) {
  auto o = quiet(prefix);
  o.shards = shards;
  return o;
}

/// Three masters, each behind a proxy, by which everybody finds it: the nodes announce it.
class guarded_cluster {
 public:
  guarded_cluster() : nodes_{{}, 0} {
    for (std::size_t i = 0; i != cluster::masters; ++i) {
      auto& node = nodes_[i];
      asio::ip::tcp::endpoint const there{asio::ip::address_v4::loopback(), node.port()};
      proxies_.emplace_back(io_.get_executor(), there);
      node.ask("config set cluster-announce-port " + std::to_string(port(i)));
    }
    cluster::wait("announcement", [&] {
      for (std::size_t i = 0; i != cluster::masters; ++i) {
        auto const map = nodes_[i].ask("cluster slots");
        for (std::size_t k = 0; k != cluster::masters; ++k) {
          if (map.find(std::to_string(port(k))) == map.npos) return false;
        }
      }
      return true;
    });
    runner_ = std::thread{[this] { io_.run(); }};
  }
  guarded_cluster(guarded_cluster const&) = delete;
  guarded_cluster& operator=(guarded_cluster const&) = delete;
  ~guarded_cluster() {
    io_.stop();
    runner_.join();
  }

  [[nodiscard]] redis_address address() const {
    auto out = redis_address{"127.0.0.1", port(0)}.cluster();
    for (std::size_t i = 1; i != cluster::masters; ++i) out.cluster_with("127.0.0.1", port(i));
    return out;
  }
  [[nodiscard]] std::vector<fault_proxy>& proxies() noexcept { return proxies_; }

  /// Connections that were cut so far.
  [[nodiscard]] std::uint64_t cuts() const {
    std::uint64_t out = 0;
    for (auto const& proxy : proxies_) {
      auto const c = proxy.counts();
      out += c.cut_before + c.cut_in + c.cut_after;
    }
    return out;
  }

 private:
  [[nodiscard]] std::uint16_t port(std::size_t i) const { return proxies_[i].endpoint().port(); }

  cluster nodes_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::vector<fault_proxy> proxies_;
  std::thread runner_;
};

guarded_cluster& shared() {
  static guarded_cluster one;
  return one;
}

/// What clients of one network believe, and find to be wrong.
struct beliefs {
  std::map<std::string, int> users;             // of a permit or a lock, for certain
  std::map<std::string, std::uint64_t> fences;  // the last one
  std::map<std::string, spent> takes;
  std::set<job_id> done;
  std::uint32_t attempts = 0;
};

constexpr int most_users = 2;

asio::awaitable<void> use(redis_store store, beliefs& all, std::string key, std::string me) {
  command::acquire_lock const lock{key, me, lasting};
  auto const held = co_await insist(store, lock);
  if (held.granted) {
    BOOST_TEST(++all.users["lock " + key] == 1, "R2");
    BOOST_TEST(held.fence > std::exchange(all.fences[key], held.fence), "R5");
  }
  command::acquire_permit const permit{key, me, most_users, lasting, {}};
  auto const granted = co_await insist(store, permit);
  if (granted.granted) BOOST_TEST(++all.users["permit " + key] <= most_users, "R1");
  command::take const take{key, quotas, 1, {}};
  auto const [ec, answer] = co_await store.async_execute(take, tuple);
  BOOST_TEST((!ec || is_transport(ec)), ec.message());
  all.takes[key].certain += !ec && answer.allowed;
  all.takes[key].unknown += ec == errc::outcome_unknown;
  if (granted.granted) {
    --all.users["permit " + key];
    command::release_permit const back{key, me, granted.fence};
    co_await insist(store, back);
  }
  if (held.granted) {
    --all.users["lock " + key];
    command::release_lock const free{key, me, held.fence};
    co_await insist(store, free);
  }
}

asio::awaitable<void> work(redis_store store, beliefs& all, std::string queue, std::uint32_t n) {
  new_job j;
  j.id = id_of(n);
  j.kind = "kind";
  command::enqueue_jobs const enqueue{queue, std::span{&j, 1}};
  co_await insist(store, enqueue);
  auto const holder = std::to_string(n);
  command::dequeue_jobs const dequeue{queue, holder, 1, 1, lasting};
  auto const got = co_await insist(store, dequeue);
  BOOST_TEST_REQUIRE(got.jobs.size() == 1U, "R4");
  BOOST_TEST(all.done.insert(got.jobs[0].id).second, "R4");
  all.attempts += got.jobs[0].attempt;
  std::array const ended{finished_job{got.jobs[0].id, got.jobs[0].fence, {}}};
  command::complete_jobs const complete{queue, ended};
  co_await insist(store, complete);
}

/// What a replica has of the keys.
std::string size_of(server const& s) { return s.ask("dbsize"); }

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_cluster_faults)

BOOST_AUTO_TEST_CASE(F45_connections_that_end_anywhere_in_a_conversation_do_nothing_twice) {
  auto& nodes = shared();
  auto const unknown = cut_everywhere(24, 2, [&](std::string const& prefix, auto const& cut) {
    auto const o = spread(prefix);
    for (auto const& proxy : nodes.proxies()) proxy.script({cut});
    asio::io_context io;
    redis_store const store{io.get_executor(), nodes.address(), o};
    store.async_run([](error_code) {});
    spent takes;
    run(io, converse_about_all(store, takes));
    store.close();
    run_out(io);
    check_all_done(nodes.address(), o, takes);
    return takes.unknown;
  });
  BOOST_TEST(nodes.cuts() > 48U);  // in two of three rounds at least
  BOOST_TEST(unknown > 0U);
}

BOOST_AUTO_TEST_CASE(R1_R2_R3_R4_hold_on_a_network_that_breaks_all_the_time) {
  auto& nodes = shared();
  auto const before = nodes.cuts();
  auto o = spread("chaos");
  o.health_check_interval = 500ms;  // cut connections may be silent ones
  o.connect_timeout = 2s;
  proxy_rates rates;
  rates.seed = 1;
  rates.cut_before = rates.cut_in = rates.cut_after = 1;
  rates.delay = 5;
  rates.silent = 3;
  for (auto const& proxy : nodes.proxies()) proxy.chaos(rates);
  asio::io_context io;
  redis_store const store{io.get_executor(), nodes.address(), o};
  store.async_run([](error_code) {});

  constexpr std::uint32_t clients = 8;
  constexpr std::uint32_t each = 6;
  beliefs all;
  std::size_t left = clients;
  auto const client = [&](std::uint32_t number) -> asio::awaitable<void> {
    auto const me = std::to_string(number);
    for (std::uint32_t i = 0; i != each; ++i) {
      auto const name = std::to_string((number + i) % 4);
      co_await use(store, all, "key" + name, me + "/" + std::to_string(i));
      co_await work(store, all, "queue" + name, number * 1000 + i);
    }
  };
  for (std::uint32_t n = 0; n != clients; ++n) {
    asio::co_spawn(io, client(n), [&](std::exception_ptr e) {
      BOOST_TEST(!e);
      --left;
    });
  }
  BOOST_TEST_REQUIRE(weir_test::happens(io, [&] { return left == 0; }));
  store.close();
  run_out(io);

  for (auto const& proxy : nodes.proxies()) proxy.chaos({});
  BOOST_TEST(all.done.size() == std::size_t{clients} * each);
  BOOST_TEST(all.attempts == clients * each);  // no lost answer burnt one (F54)
  bed direct{nodes.address(), o};
  for (int i = 0; i != 4; ++i) {
    auto const key = "key" + std::to_string(i);
    auto const& [taken, perhaps] = all.takes[key];
    auto const left_over = certain(direct, command::peek_bucket{key, quotas, 1, {}}).remaining;
    BOOST_TEST(left_over <= tokens - taken + 1, "R3");  // a token comes in a quarter of an hour
    BOOST_TEST(left_over >= tokens - taken - perhaps, "R3");
    BOOST_TEST(!certain(direct, command::inspect_lock{key}).held);
    BOOST_TEST(certain(direct, command::inspect_permits{key, 0}).in_use == 0U);
  }
  BOOST_TEST(nodes.cuts() > before);
}

BOOST_AUTO_TEST_CASE(what_replicas_of_a_cluster_confirm_survives_their_masters) {
  cluster nodes{succeeded()};
  auto o = spread("weir");
  o.replica_timeout = 500ms;
  o.replicas = 1;
  bed on{nodes.addresses(), o};
  detail::redis_names const names{"weir", shards};
  std::vector<std::string> keys(shards);
  for (int i = 0; std::ranges::any_of(keys, [](auto const& k) { return k.empty(); }); ++i) {
    auto key = "key" + std::to_string(i);
    keys[names.shard_of(key)] = key;
  }
  std::vector<std::uint64_t> fences;
  for (auto const& key : keys) {
    cluster::wait("confirmation", [&] {
      auto const got = on(command::acquire_lock{key, "me", lasting});
      if (got.has_value()) fences.push_back(got->fence);
      return got.has_value();
    });
  }
  for (std::size_t i = 0; i != cluster::masters; ++i) {
    BOOST_TEST(size_of(nodes[i]) == size_of(nodes[nodes.replica_of(i)]));
    BOOST_TEST(nodes[i].ask("info commandstats").find("cmdstat_wait:") != std::string::npos);
  }

  // One replica stops: what is for its master's shards is unknown, though it was done; what is for
  // others is confirmed.
  auto const lame = nodes.serves("weir:0");
  auto const& replica = nodes[nodes.replica_of(lame)];
  replica.pause();
  for (std::uint32_t shard = 0; shard != shards; ++shard) {
    auto const key = keys[shard] + "/other";
    bool const confirmed = nodes.serves("weir:" + std::to_string(names.shard_of(key))) != lame;
    auto got = on(command::acquire_lock{key, "me", lasting});
    // A replica that is slower than the time-out, but not paused, has it when it is asked again.
    if (confirmed) {
      (void)weir_test::happens([&] {
        if (got.has_error() && got.error() == errc::outcome_unknown) {
          got = on(command::acquire_lock{key, "me", lasting});
        }
        return got.has_value() || got.error() != errc::outcome_unknown;
      });
    }
    BOOST_TEST(got.has_value() == confirmed, key);
    if (got.has_error()) BOOST_TEST((got.error() == errc::outcome_unknown), got.error().message());
    BOOST_TEST(on(command::inspect_lock{key}).value().held);  // who only looks waits for nobody
  }
  replica.resume();
  cluster::wait("confirmation",
                [&] { return on(command::acquire_lock{keys[0], "me", lasting}).has_value(); });

  // What was confirmed is there when the master is not.
  nodes[lame].kill();
  cluster::wait("successor", [&] { return on(command::inspect_lock{keys[0]}).has_value(); });
  for (std::uint32_t shard = 0; shard != shards; ++shard) {
    auto const found = certain(on, command::inspect_lock{keys[shard]});
    BOOST_TEST(found.held);
    BOOST_TEST(found.fence == fences[shard]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
