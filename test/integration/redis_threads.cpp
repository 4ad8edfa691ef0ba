// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// One store, used by several threads at once.

#include "redis_nodes.hpp"
#include "redis_server.hpp"
#include "shared_store.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

namespace {

using namespace network_test;
using namespace redis_test;

/// @param where an address, or those of a cluster
template <class Where>
void share(Where const& where, redis_options const& o) {
  shared_test::share(
      [&](asio::any_io_executor const& on) { return redis_store{on, where, o}; },
      [](error_code ec) { return ec == errc::closed || ec == errc::outcome_unknown; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_threads)

BOOST_AUTO_TEST_CASE(R1_R4_threads_share_a_store) {
  server const s;
  auto o = unhurried();
  o.poll_interval = 20ms;
  share(s.address(), o);
}

BOOST_AUTO_TEST_CASE(R1_R4_threads_share_a_store_whose_commands_are_confirmed) {
  server const master{{"--repl-diskless-sync-delay", "0"}};
  server const replica{{"--replicaof", "127.0.0.1 " + std::to_string(master.port())}};
  cluster::wait("replica", [&] {
    return replica.ask("info replication").find("master_link_status:up") != std::string::npos &&
           master.ask("wait 1 1000") == "1";
  });
  auto o = unhurried();
  o.poll_interval = 20ms;
  o.replicas = 1;
  o.replica_timeout = 30s;
  share(master.address(), o);
}

BOOST_AUTO_TEST_CASE(R1_R4_threads_share_a_store_on_a_cluster) {
  cluster nodes;
  auto o = unhurried();
  o.poll_interval = 20ms;
  o.shards = 8;
  share(nodes.addresses(), o);
}

BOOST_AUTO_TEST_SUITE_END()
