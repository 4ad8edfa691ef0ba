// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The store on a server with a replica, which may be behind, stop, or take the server's place; and
// on a server that does not answer for a while.

#include "patience.hpp"
#include "redis_nodes.hpp"
#include "redis_server.hpp"

#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace redis_test;
using weir_test::happens;

constexpr duration lasting = 1h;

template <class T>
bool is_error(result<T> const& r, errc e) {
  return r.has_error() && r.error() == e;
}

/// Replicas need not wait for each other.
std::vector<std::string> leading() { return {"--repl-diskless-sync-delay", "0"}; }

std::vector<std::string> following(server const& master) {
  return {"--replicaof", "127.0.0.1 " + std::to_string(master.port()), "--repl-diskless-sync-delay",
          "0"};
}

void wait_for(server const& replica) {
  cluster::wait("replica that is up to date", [&] {
    return replica.ask("info replication").find("master_link_status:up") != std::string::npos;
  });
}

/// Asks once more if the connection had not noticed that it is over, or something has to catch up.
template <class C>
result<typename C::result> again(bed& on, C const& c) {
  auto out = on(c);
  (void)happens([&] {
    if (is_error(out, errc::outcome_unknown)) out = on(c);
    return !is_error(out, errc::outcome_unknown);
  });
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_replicas)

BOOST_AUTO_TEST_CASE(what_replicas_confirm_they_have) {
  server master{leading()};
  server const replica{following(master)};
  wait_for(replica);
  auto o = unhurried();
  o.replicas = 1;
  o.replica_timeout = 30s;
  bed on{master, o};
  for (int i = 0; i != 20; ++i) {
    auto const key = "key" + std::to_string(i);
    auto const got = on(command::acquire_lock{key, "me", lasting});
    BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
    BOOST_TEST(got->granted);
    BOOST_TEST(replica.ask("exists '{weir:0}:l:" + key + "'") == "1");
  }
  // Many at once share what they wait for.
  int confirmed = 0;
  std::vector<std::string> keys;
  for (int i = 0; i != 500; ++i) keys.push_back("many" + std::to_string(i));
  for (auto const& key : keys) {
    on.store.async_execute(command::acquire_lock{key, "me", lasting},
                           [&](error_code ec, lock_grant const& g) {
                             BOOST_TEST(!ec, ec.message());
                             confirmed += g.granted;
                           });
  }
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return confirmed == 500; }));
  BOOST_TEST(replica.ask("exists '{weir:0}:l:many499'") == "1");
  auto const stats = master.ask("info commandstats");
  auto const at = stats.find("cmdstat_wait:calls=");
  BOOST_TEST_REQUIRE(at != stats.npos);
  BOOST_TEST(std::stoi(stats.substr(at + 19)) < 300);

  std::optional<error_code> twice;
  on.store.async_run([&](error_code ec) { twice = ec; });
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return twice.has_value(); }));
  BOOST_TEST((*twice == boost::asio::error::already_started));
}

BOOST_AUTO_TEST_CASE(what_too_few_replicas_have_is_of_unknown_outcome_though_the_server_did_it) {
  server master{leading()};
  server const replica{following(master)};
  wait_for(replica);
  auto o = unhurried();
  o.replicas = 1;
  o.replica_timeout = 200ms;
  bed on{master, o};
  // A replica that has just come confirms nothing yet.
  cluster::wait("confirmation",
                [&] { return on(command::acquire_lock{"before", "me", lasting}).has_value(); });
  replica.pause();
  BOOST_TEST(is_error(on(command::acquire_lock{"key", "me", lasting}), errc::outcome_unknown));
  auto const seen = on(command::inspect_lock{"key"});  // who only looks waits for nobody
  BOOST_TEST_REQUIRE(seen.has_value());
  BOOST_TEST(seen->held);
  BOOST_TEST(seen->holder == "me");
  replica.resume();
  auto const sure = again(on, command::acquire_lock{"key", "me", lasting});
  BOOST_TEST_REQUIRE(sure.has_value(), sure.error().message());
  BOOST_TEST(sure->fence == seen->fence);  // it had counted
  o.replicas = 2;
  bed many{master, o};
  BOOST_TEST(is_error(many(command::acquire_lock{"other", "me", lasting}), errc::outcome_unknown));
}

BOOST_AUTO_TEST_CASE(a_connection_that_ends_before_replicas_confirm_leaves_it_unknown) {
  server master{leading()};
  auto o = unhurried();
  o.replicas = 1;
  o.replica_timeout = o.health_check_interval = 1h;
  bed on{master, o};
  std::vector<std::string> keys;
  for (int i = 0; i != 20; ++i) keys.push_back("key" + std::to_string(i));
  int unknown = 0;
  for (auto const& key : keys) {
    on.store.async_execute(command::acquire_lock{key, "me", lasting},
                           [&](error_code ec, lock_grant const&) {
                             BOOST_TEST((ec == errc::outcome_unknown), ec.message());
                             ++unknown;
                           });
  }
  cluster::wait("lock", [&] {
    on.io.restart();
    on.io.run_for(10ms);
    return master.ask("exists '{weir:0}:l:key19'") == "1";
  });
  BOOST_TEST(unknown == 0);
  master.ask("client kill type normal skipme yes");
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return unknown == 20; }));
}

BOOST_AUTO_TEST_CASE(F47_a_promoted_replica_that_was_behind_gives_no_fence_twice) {
  server master{leading()};
  server const replica{following(master)};
  wait_for(replica);
  std::uint64_t last = 0;
  {
    bed on{master};
    auto const first = on(command::acquire_lock{"key", "me", lasting}).value();
    BOOST_TEST(first.granted);
    cluster::wait("lock on the replica",
                  [&] { return replica.ask("exists '{weir:0}:l:key'") == "1"; });
    replica.ask("replicaof no one");
    // Only the old one has this, and then nobody.
    last = on(command::acquire_lock{"lost", "me", lasting}).value().fence;
    BOOST_TEST(last > first.fence);
  }
  master.kill();
  bed on{replica.address(), unhurried()};
  BOOST_TEST(on(command::inspect_lock{"key"}).value().holder == "me");
  auto const twice = on(command::acquire_lock{"lost", "you", lasting}).value();
  BOOST_TEST(twice.granted);  // given out twice, as a fail-over may
  BOOST_TEST(twice.fence > last);
}

BOOST_AUTO_TEST_CASE(F46_a_server_that_becomes_a_replica_changes_nothing_and_says_so) {
  server first;
  server const second{leading()};
  auto o = unhurried();
  o.offline_patience = 2s;
  bed on{first, o};
  BOOST_TEST(on(command::acquire_lock{"key", "me", lasting}).value().granted);
  first.ask("replicaof 127.0.0.1 " + std::to_string(second.port()));
  wait_for(first);
  auto const refused = again(on, command::acquire_lock{"other", "me", lasting});
  BOOST_TEST(is_error(refused, errc::store_read_only));
  first.ask("replicaof no one");
  BOOST_TEST(again(on, command::acquire_lock{"other", "me", lasting}).value().granted);
}

BOOST_AUTO_TEST_CASE(F46_a_server_that_sleeps_is_given_up_and_asked_again) {
  server s;
  auto o = unhurried();
  o.health_check_interval = 1s;
  bed on{s, o};
  command::acquire_lock const mine{"key", "me", lasting};
  auto const fence = again(on, mine).value().fence;
  s.pause();
  BOOST_TEST(is_error(on(mine), errc::outcome_unknown));
  std::optional<error_code> waited;
  on.store.async_execute(mine, [&](error_code ec, lock_grant const&) { waited = ec; });
  on.io.restart();
  on.io.run_for(300ms);
  BOOST_TEST(!waited.has_value());  // it asks for a connection, and there is none while it sleeps
  s.resume();
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return waited.has_value(); }));
  BOOST_TEST((!*waited || *waited == errc::outcome_unknown), waited->message());
  auto const held = again(on, mine);
  BOOST_TEST_REQUIRE(held.has_value(), held.error().message());
  BOOST_TEST(held->fence == fence);

  // Who has the patience does not notice.
  o.health_check_interval = 1h;
  bed patient{s, o};
  BOOST_TEST(patient(command::inspect_lock{"key"}).value().held);
  s.pause();
  std::optional<result<lock_info>> seen;
  patient.store.async_execute(command::inspect_lock{"key"}, [&](error_code ec, lock_info i) {
    if (ec) {
      seen.emplace(ec);
    } else {
      seen.emplace(std::move(i));
    }
  });
  patient.io.restart();
  patient.io.run_for(1s);
  BOOST_TEST(!seen.has_value());
  s.resume();
  BOOST_TEST_REQUIRE(happens(patient.io, [&] { return seen.has_value(); }));
  BOOST_TEST_REQUIRE(seen->has_value(), seen->error().message());
  BOOST_TEST((*seen)->held);
}

BOOST_AUTO_TEST_SUITE_END()
