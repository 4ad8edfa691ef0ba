// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A NATS server, an account or a stream without room (F61): what adds something is refused, what
// empties the store goes on to the end, and then there is room again.

#include "nats_job_steps.hpp"
#include "nats_nodes.hpp"
#include "nats_server.hpp"
#include "nats_together.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace nats_test;
using network_test::certain;
using network_test::lasting;

constexpr std::string_view server_limit =
    R"(jetstream { max_file_store: 24MB, max_memory_store: 1MB })";
/// A server whose account has so much room; in a cluster each replica counts.
std::string limited_to(std::string const& room) {
  return "jetstream { max_file_store: 1GB, max_memory_store: 1MB }\n"
         "accounts { A: { jetstream: { max_file: " +
         room +
         ", max_mem: 1MB }, users: [ { user: a, password: a } ] } }\n"
         "no_auth_user: a";
}
std::string const account_limit = limited_to("24MB");

template <class On>
[[nodiscard]] error_code acquire_lock(On& on, std::string_view key) {
  auto const got = on(command::acquire_lock{key, "me", lasting});
  return got.has_error() ? got.error() : error_code{};
}

/// Enqueues until there is no room. How many were accepted.
template <class On>
std::uint64_t fill(On& on, std::string_view payload) {
  error_code ec;
  std::uint64_t n = 0;
  while (n != 20'000 && !ec) ec = enqueue(on, ++n, payload);
  BOOST_TEST((ec == errc::store_full), ec.message());
  return n - 1;
}

/// Completes all jobs, and tries to add others all the while. How many there were.
template <class On>
std::uint64_t drain(On& on, std::uint64_t& claims, std::uint64_t& others) {
  std::uint64_t done = 0;
  for (;;) {
    auto const got = dequeue(on, ++claims, 10);
    if (got.jobs.empty()) return done;
    for (auto const& j : got.jobs) complete(on, j);
    done += got.jobs.size();
    if (done % 20 == 0 && !enqueue(on, 1'000'000 + claims)) ++others;
  }
}

/// @param late room is known late, and what adds something may be refused until it is
void is_drained(bed& on, bool late = false) {
  auto const held = certain(on, command::acquire_permit{"model", "me", 2, lasting, {}});
  BOOST_TEST_REQUIRE(held.granted);
  auto const lock = certain(on, command::acquire_lock{"order", "me", lasting});
  BOOST_TEST_REQUIRE(lock.granted);
  auto const many = quota::per_hour(1000);
  command::take const take{"user", {&many, 1}};
  BOOST_TEST(on(take).value().allowed);

  std::string const payload(20'000, 'x');
  auto const kept = fill(on, payload);
  BOOST_TEST_MESSAGE(kept << " jobs were accepted");
  BOOST_TEST(kept > 300U);

  // A holder keeps what it has, and a known bucket goes on.
  for (int i = 0; i != 3; ++i) {
    BOOST_TEST(!on(command::renew_permit{"model", "me", held.fence, lasting}).has_error());
    BOOST_TEST(!on(command::renew_lock{"order", "me", lock.fence, lasting}).has_error());
    BOOST_TEST(on(take).value().allowed);
  }
  BOOST_TEST(certain(on, command::release_lock{"order", "me", lock.fence}).freed);
  BOOST_TEST(certain(on, command::release_permit{"model", "me", held.fence}).freed);

  std::uint64_t claims = 0;
  std::uint64_t others = 0;
  auto done = drain(on, claims, others);
  BOOST_TEST(done == kept + others);
  auto const all = stats(on);
  BOOST_TEST(all.completed == done);
  BOOST_TEST(all.pending + all.leased == 0U);

  // There is room for all of it once more.
  auto const is_done = [late](auto const& add) {
    return late ? weir_test::happens([&] { return !add(); }) : !add();
  };
  BOOST_TEST(is_done([&] { return acquire_lock(on, "another"); }));
  for (std::uint64_t n = 0; n != kept / 2; ++n) {
    BOOST_TEST_REQUIRE(is_done([&] { return enqueue(on, 2'000'000 + n, payload); }),
                       "refused after " << n);
  }
  others = 0;
  done = drain(on, claims, others);
  BOOST_TEST(done == kept / 2 + others);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_full)

BOOST_AUTO_TEST_CASE(F61_a_full_server_is_drained_to_the_last_job) {
  configured s{std::string{server_limit}};
  bed on{*s.it, owning()};
  is_drained(on);
}

BOOST_AUTO_TEST_CASE(F61_a_full_account_is_drained_to_the_last_job) {
  configured s{account_limit};
  bed on{*s.it, owning()};
  is_drained(on);
}

// The servers of a cluster hear a moment late of each other's room, so that more is written than
// there is room for.
BOOST_AUTO_TEST_CASE(F61_a_full_account_of_a_cluster_is_drained_to_the_last_job) {
  cluster c{limited_to("300MB")};
  auto o = owning();
  o.replicas = cluster::size;
  o.reserve = 24U << 20U;
  bed on{c.addresses(), o};
  is_drained(on, true);
}

// As a server of a cluster hears a moment late of room that was given up on another one, this one
// is told so.
BOOST_AUTO_TEST_CASE(F61_room_that_a_server_hears_of_late_is_waited_for) {
  server s{{}, account_limit};
  bed on{s, owning()};
  auto const fence = certain(on, command::acquire_lock{"order", "me", lasting}).fence;
  stranger who{s};
  // While it reads its configuration nobody answers for JetStream.
  auto const is_said = [&who](std::string const& question, std::string const& filter, auto holds) {
    return weir_test::happens([&] {
      auto const said = nlohmann::json::parse(who.ask(question, filter), nullptr, false);
      return said.is_object() && holds(said);
    });
  };
  s.reload(limited_to("1"));
  BOOST_TEST_REQUIRE(is_said("$JS.API.INFO", {}, [](nlohmann::json const& said) {
    return said.at("limits").at("max_storage") == 1;
  }));
  std::jthread const tells{[&] {
    (void)is_said("$JS.API.STREAM.INFO.weir-keys", R"({"subjects_filter":"weir.k.reserve.>"})",
                  [](nlohmann::json const& said) {
                    return said.contains("state") && !said["state"].contains("subjects");
                  });
    s.reload(account_limit);
  }};
  BOOST_TEST(!on(command::renew_lock{"order", "me", fence, lasting}).has_error());
}

BOOST_AUTO_TEST_CASE(F61_full_streams_are_drained_to_the_last_job) {
  server s;
  auto o = owning();
  o.max_bytes = 12U << 20U;
  bed on{s, o};
  is_drained(on);
}

// Each step is one more message of the log, which is cut many times.
BOOST_AUTO_TEST_CASE(F61_what_is_tried_again_and_again_does_not_fill_it) {
  configured s{limited_to("6MB")};
  bed on{*s.it, owning()};
  auto const kept = fill(on, std::string(20'000, 'x'));
  std::string const memo(1000, 'm');
  std::uint64_t claims = 0;
  for (int i = 0; i != 7000; ++i) {
    auto const got = dequeue(on, ++claims);
    BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
    command::snooze_job const c{"queue", got.jobs[0].id, got.jobs[0].fence, {}, memo};
    auto const again = on(c);
    BOOST_TEST_REQUIRE(again.has_value(), again.error().message() << " after " << i);
  }
  std::uint64_t others = 0;
  auto const done = drain(on, claims, others);
  BOOST_TEST(done == kept + others);
}

/// Somebody else takes all the room that there is.
void take_all(stranger& who) {
  (void)who.ask("$JS.API.STREAM.CREATE.theirs",
                R"({"name":"theirs","subjects":["theirs"],"storage":"file","num_replicas":1})");
  for (std::size_t size = 500'000; size != 0; size /= 8) {
    while (!nlohmann::json::parse(who.ask("theirs", std::string(size, 'x'))).contains("error")) {
    }
  }
}

// A reserve that was given up is missing for all, also for a process that comes later.
BOOST_AUTO_TEST_CASE(F61_beside_others_who_take_all_the_room_what_is_held_is_kept) {
  configured s{account_limit};
  stranger who{*s.it};
  std::uint64_t fence = 0;
  {
    bed on{*s.it, owning()};
    fence = certain(on, command::acquire_lock{"order", "me", lasting}).fence;
    for (std::uint64_t n = 1; n != 10; ++n) BOOST_TEST(!enqueue(on, n));
    take_all(who);
    for (std::string_view const key : {"a", "b", "c"}) {
      BOOST_TEST((acquire_lock(on, key) == errc::store_full));
      BOOST_TEST((enqueue(on, 10) == errc::store_full));
      BOOST_TEST(!on(command::renew_lock{"order", "me", fence, lasting}).has_error());
    }
  }
  bed late{*s.it, owning()};
  for (std::string_view const key : {"a", "b", "c"}) {
    BOOST_TEST((acquire_lock(late, key) == errc::store_full));
    BOOST_TEST((enqueue(late, 10) == errc::store_full));
    BOOST_TEST(!late(command::renew_lock{"order", "me", fence, lasting}).has_error());
  }
  BOOST_TEST(certain(late, command::release_lock{"order", "me", fence}).freed);
  std::uint64_t claims = 0;
  std::uint64_t others = 0;
  BOOST_TEST(drain(late, claims, others) == 9U);
  BOOST_TEST((acquire_lock(late, "a") == errc::store_full));
  (void)who.ask("$JS.API.STREAM.PURGE.theirs", {});
  BOOST_TEST(!acquire_lock(late, "a"));
  BOOST_TEST(!enqueue(late, 10));
}

// The reserve is kept in the stream of the keys, which nobody may lead while a shard's log goes on.
BOOST_AUTO_TEST_CASE(F61_where_nobody_says_whether_there_is_room_it_is_not_told_as_full) {
  configured s{account_limit};
  stranger who{*s.it};
  auto o = owning();
  o.health_check_interval = 10min;
  bed on{*s.it, o};
  auto const fence = certain(on, command::acquire_lock{"order", "me", lasting}).fence;
  BOOST_TEST(!enqueue(on, 1));
  take_all(who);
  BOOST_TEST((enqueue(on, 2) == errc::store_full));
  BOOST_TEST(!on(command::renew_lock{"order", "me", fence, lasting}).has_error());
  (void)who.ask("$JS.API.STREAM.DELETE.weir-keys");
  error_code said;
  BOOST_TEST(weir_test::happens([&] { return (said = enqueue(on, 2)) != errc::store_full; }));
  BOOST_TEST((said == errc::store_unavailable), said.message());
}

boost::asio::awaitable<void> knocks(nats_store const& store, std::uint64_t first, bool const& over,
                                    int& ended) {
  std::string const payload(50'000, 'x');
  auto n = first;
  while (!over) {
    auto const j = job_of(n++, payload);
    (void)co_await store.async_execute(command::enqueue_jobs{"queue", {&j, 1}},
                                       boost::asio::as_tuple(boost::asio::use_awaitable));
  }
  ++ended;
}

BOOST_AUTO_TEST_CASE(F61_what_one_process_gives_up_no_other_one_takes) {
  configured s{account_limit};
  stranger who{*s.it};
  together all{*s.it};
  via keeps{all, all.add(owning())};
  via adds{all, all.add(owning())};
  auto const fence = certain(keeps, command::acquire_lock{"order", "me", lasting}).fence;
  BOOST_TEST(!enqueue(adds, 1));
  take_all(who);
  bool over = false;
  int ended = 0;
  constexpr int many = 8;
  for (int i = 0; i != many; ++i) {
    boost::asio::co_spawn(all.io, knocks(adds.store, 1000U * static_cast<unsigned>(i), over, ended),
                          boost::asio::detached);
  }
  for (int i = 0; i != 200; ++i) {
    auto const renewed = keeps(command::renew_lock{"order", "me", fence, lasting});
    BOOST_TEST_REQUIRE(renewed.has_value(), renewed.error().message() << " after " << i);
  }
  over = true;
  BOOST_TEST(weir_test::happens(all.io, [&] { return ended == many; }));
  BOOST_TEST(certain(keeps, command::release_lock{"order", "me", fence}).freed);
}

BOOST_AUTO_TEST_SUITE_END()
