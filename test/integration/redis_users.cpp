// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The store on servers that know who it is, or do not want to.

#include "heard_log.hpp"
#include "patience.hpp"
#include "redis_nodes.hpp"
#include "redis_server.hpp"
#include "weir/store/redis/call.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace redis_test;

constexpr duration lasting = 1h;

template <class T>
bool is_error(result<T> const& r, errc e) {
  return r.has_error() && r.error() == e;
}

/// Whoever waits for the end of the patience waits for longer than the test does.
redis_options patient() {
  auto o = unhurried();
  o.offline_patience = 1h;
  o.least_reconnect_wait = 10ms;
  o.longest_reconnect_wait = 50ms;
  return o;
}

/// What somebody is told.
error_code told(redis_address const& address, redis_options const& options = patient()) {
  bed on{address, options};
  auto const first = on(command::inspect_lock{"key"});
  auto const second = on(command::acquire_lock{"key", "me", lasting});
  BOOST_TEST((first.has_error() ? first.error() : error_code{}) ==
             (second.has_error() ? second.error() : error_code{}));
  return first.has_error() ? first.error() : error_code{};
}

/// Asks until it goes well.
template <class C>
void until_it_works(bed& on, C const& c, errc meanwhile) {
  cluster::wait("answer", [&] {
    auto const out = on(c);
    if (out.has_error()) {
      bool const expected = out.error() == meanwhile || out.error() == errc::outcome_unknown;
      BOOST_TEST(expected, out.error().message());
    }
    return out.has_value();
  });
}

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_users)

BOOST_AUTO_TEST_CASE(passwords_and_databases) {
  server s{{"--requirepass", "p@ss word"}};
  bed in{s.address().authenticate("p@ss word").database(3), patient()};
  BOOST_TEST(in(command::acquire_lock{"key", "me", lasting}).value().granted);
  bed elsewhere{s.address().authenticate("p@ss word").database(4), patient()};
  BOOST_TEST(!elsewhere(command::inspect_lock{"key"}).value().held);

  BOOST_TEST((told(s.address()) == errc::permission_denied));
  BOOST_TEST((told(s.address().authenticate("wrong")) == errc::permission_denied));
  BOOST_TEST((told(s.address().authenticate("p@ss word", "who")) == errc::permission_denied));
  BOOST_TEST((told(s.address().authenticate("p@ss word").database(1000)) == errc::invalid_option));
  // A password that nobody asked for does no harm.
  server const open;
  BOOST_TEST(!told(open.address().authenticate("any")));
}

BOOST_AUTO_TEST_CASE(a_password_that_is_refused_is_tried_again) {
  server s{{"--requirepass", "old"}};
  bed on{s.address().authenticate("new"), patient()};
  BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::permission_denied));
  s.ask("-a old config set requirepass new");
  until_it_works(on, command::inspect_lock{"key"}, errc::permission_denied);

  // One that is gone meanwhile, to one that waits for nothing but the end of its patience.
  s.kill();
  auto o = patient();
  o.offline_patience = 100ms;
  bed hasty{s.address().authenticate("wrong"), o};
  BOOST_TEST(is_error(hasty(command::inspect_lock{"key"}), errc::store_unavailable));
  s.start();
  cluster::wait("refusal", [&] {
    return is_error(hasty(command::inspect_lock{"key"}), errc::permission_denied);
  });
  s.kill();
  cluster::wait("silence", [&] {
    return is_error(hasty(command::inspect_lock{"key"}), errc::store_unavailable);
  });
}

BOOST_AUTO_TEST_CASE(who_may_not_do_it_is_told_so) {
  server s;
  auto const user = [&](std::string const& name, std::string const& rules) {
    BOOST_TEST(s.ask("acl setuser " + name + " reset on '>secret' " + rules) == "OK");
    return s.address().authenticate("secret", name);
  };
  BOOST_TEST(!told(user("all", "'~*' '&*' +@all")));
  BOOST_TEST((told(user("nothing", "'~*' '&*' +ping")) == errc::permission_denied));
  BOOST_TEST((told(user("reader", "'~*' '&*' +@all -@scripting")) == errc::permission_denied));
  BOOST_TEST((told(user("elsewhere", "'~other*' '&*' +@all")) == errc::permission_denied));
  BOOST_TEST((told(user("off", "'~*' '&*' +@all off")) == errc::permission_denied));
  BOOST_TEST(
      (told(user("home", "'~*' '&*' +@all -select").database(1)) == errc::permission_denied));

  // Rights that come and go while there is a connection.
  bed on{user("changing", "'~{weir:0}:*' '&*' +@all"), patient()};
  BOOST_TEST(on(command::acquire_lock{"key", "me", lasting}).has_value());
  s.ask("acl setuser changing resetkeys '~{weir:0}:shards' '~{weir:0}:l:key'");
  BOOST_TEST(is_error(on(command::acquire_lock{"other", "me", lasting}), errc::permission_denied));
  s.ask("acl setuser changing resetkeys '~{weir:0}:*'");
  BOOST_TEST(on(command::acquire_lock{"other", "me", lasting}).value().granted);
  s.ask("acl deluser changing");
  cluster::wait("refusal", [&] {
    return is_error(on(command::inspect_lock{"key"}), errc::permission_denied);
  });
  (void)user("changing", "'~{weir:0}:*' '&*' +@all");
  until_it_works(on, command::inspect_lock{"key"}, errc::permission_denied);
  BOOST_TEST(on(command::inspect_lock{"key"}).value().held);
}

/// Makes a user with the rights that SECURITY.md lists for everybody, and some more.
redis_address least(server const& s, std::string const& besides) {
  BOOST_TEST(s.ask("acl setuser app reset on '>secret' " + least_rights() + besides) == "OK");
  return s.address().authenticate("secret", "app");
}

/// Takes locks, and has jobs enqueued, waited for, claimed and completed, on all shards.
void use(bed& on, std::uint32_t shards = 1) {
  std::uint32_t woken = 0;
  for (std::uint32_t i = 0; i != shards; ++i) {
    on.store.async_execute(command::await_jobs{i}, [&](error_code ec, hint) { woken += !ec; });
  }
  for (std::uint32_t i = 0; i != 8 * shards; ++i) {
    auto const name = "name" + std::to_string(i);
    auto const lock = on(command::acquire_lock{name, "me", lasting});
    BOOST_TEST_REQUIRE(lock.has_value(), lock.error().message());
    new_job job;
    job.id.data()[0] = static_cast<std::uint8_t>(i + 1);
    job.kind = "kind";
    std::vector<new_job> const jobs{job};
    BOOST_TEST_REQUIRE(on(command::enqueue_jobs{name, jobs}).has_value());
    auto const taken = on(command::dequeue_jobs{name, "me", 1, 1, lasting});
    BOOST_TEST_REQUIRE((taken.has_value() && taken->jobs.size() == 1U));
    std::vector<finished_job> const done{{job.id, taken->jobs[0].fence, {}}};
    BOOST_TEST(on(command::complete_jobs{name, done}).has_value());
  }
  BOOST_TEST(weir_test::happens(on.io, [&] { return woken == shards; }));
}

BOOST_AUTO_TEST_CASE(users_of_databases_replicas_and_clusters_need_what_is_documented) {
  auto const nobody_refused = [](server const& s) { BOOST_TEST(s.ask("acl log") == ""); };
  {
    server s;
    bed on{least(s, " +select").database(1), patient()};
    use(on);
    nobody_refused(s);
    (void)least(s, "");
    BOOST_TEST(
        (told(s.address().authenticate("secret", "app").database(1)) == errc::permission_denied));
  }
  {
    server const master{{"--repl-diskless-sync-delay", "0"}};
    server const replica{{"--replicaof", "127.0.0.1 " + std::to_string(master.port())}};
    auto o = patient();
    o.replicas = 1;
    o.replica_timeout = 30s;
    bed on{least(master, " +wait"), o};
    use(on);
    nobody_refused(master);
    (void)least(master, "");
    weir_test::heard_log const heard;
    bed less{master.address().authenticate("secret", "app"), o};
    BOOST_TEST(is_error(less(command::acquire_lock{"key", "me", lasting}), errc::outcome_unknown));
    auto const said = heard.of(log::topic::settings);
    BOOST_TEST_REQUIRE(said.size() == 1U);
    BOOST_TEST(said.front().ends_with("the command wait"), said.front());
  }
  cluster nodes;
  auto o = patient();
  o.shards = 4;
  for (std::size_t i = 0; i != cluster::size; ++i) {
    (void)least(nodes[i], " '+cluster|slots' +asking");
  }
  bed on{nodes.addresses().authenticate("secret", "app"), o};
  use(on, o.shards);
  // A slot that is about to move: a bucket that was not there yet is made where it goes.
  std::string const tag = "weir:1";
  auto const slot = nodes[0].ask("cluster keyslot '{" + tag + "}'");
  auto const from = nodes.serves(tag);
  auto const to = (from + 1) % cluster::masters;
  nodes[to].ask("cluster setslot " + slot + " importing " + nodes.id_of(from));
  nodes[from].ask("cluster setslot " + slot + " migrating " + nodes.id_of(to));
  std::vector<quota> const quotas{quota::per_second(10)};
  for (int i = 0; i != 32; ++i) {
    auto const name = "name" + std::to_string(i);
    BOOST_TEST(on(command::take{name, quotas}).has_value());
  }
  BOOST_TEST(nodes.refusals("ASK") > 0);  // or this tests little
  for (std::size_t i = 0; i != cluster::size; ++i) nobody_refused(nodes[i]);
}

BOOST_AUTO_TEST_CASE(F97_who_may_not_do_it_is_told_which_command_it_is) {
  weir_test::heard_log heard;
  auto const said = [&] { return heard.of(log::topic::settings); };
  server s;
  auto const o = patient();
  auto const told_of = [&](std::string const& rules) {
    heard.forget();
    BOOST_TEST(s.ask("acl setuser some reset on '>secret' " + rules) == "OK");
    BOOST_TEST((told(s.address().authenticate("secret", "some"), o) == errc::permission_denied));
    BOOST_TEST(said().size() == 1U);  // once, however often it is refused
    auto out = said().empty() ? std::string{} : said().front();
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
  };
  BOOST_TEST(told_of("'~*' '&*' +@all -eval").ends_with("the command eval"));
  BOOST_TEST(told_of("'~*' '&*' +@all -evalsha").ends_with("the command evalsha"));
  BOOST_TEST(told_of("'~*' '&*' +@all -hmget").ends_with("the command hmget"));
  BOOST_TEST(told_of("'~{weir:0}:shards' '&*' +@all").find("keys") != std::string::npos);

  // What comes before any command: the database, and the subscription that waiters have.
  auto const address = s.address().authenticate("secret", "some");
  auto const rights = [&](std::string const& rules) {
    heard.forget();
    BOOST_TEST(s.ask("acl setuser some reset on '>secret' " + rules) == "OK");
  };
  rights("'~*' '&*' +@all -select");
  BOOST_TEST((told(redis_address{address}.database(1), o) == errc::permission_denied));
  BOOST_TEST(said().size() == 1U);
  BOOST_TEST((!said().empty() && said().front().ends_with("the command select")));
  for (auto const& [rules, what] : {std::pair{"'~*' '&*' +@all -subscribe", "command subscribe"},
                                    std::pair{"'~*' resetchannels +@all", "channels"}}) {
    rights(rules);
    bed on{address, o};
    on.store.async_execute(command::await_jobs{0}, [](error_code, hint) {});
    BOOST_TEST_REQUIRE(weir_test::happens(on.io, [&] { return !said().empty(); }), rules);
    BOOST_TEST(said().front().find(what) != std::string::npos, said().front());
    BOOST_TEST(on(command::acquire_lock{what, "me", lasting}).value().granted);
  }

  // A wrong password is no matter of commands.
  heard.forget();
  BOOST_TEST((told(s.address().authenticate("wrong", "some"), o) == errc::permission_denied));
  BOOST_TEST(said().empty());
}

// A counter is not taken for damaged because its user has no right to count.
BOOST_AUTO_TEST_CASE(F97_who_lacks_the_right_to_count_counts_all_the_same) {
  server s;
  BOOST_TEST(s.ask("acl setuser some on '>secret' '~*' '&*' +@all -hincrby") == "OK");
  bed on{s.address().authenticate("secret", "some"), patient()};
  std::array<std::string, 4> const keys{"a", "b", "", ""};
  for (std::uint8_t i = 0; i != 4; ++i) {
    std::array<new_job, 1> job{};
    job[0].id.data[0] = static_cast<std::uint8_t>(i + 1);
    job[0].kind = "kind";
    job[0].unique_key = keys[i];
    if (!keys[i].empty()) job[0].strategy = unique_strategy::until_executed;
    BOOST_TEST_REQUIRE(on(command::enqueue_jobs{"queue", job}).has_value());
  }
  for (auto const& j : on(command::dequeue_jobs{"queue", "me", 0, 2, 1h}).value().jobs) {
    std::array const done{finished_job{j.id, j.fence, {}}};
    BOOST_TEST(on(command::complete_jobs{"queue", done}).has_value());
  }
  auto const stats = on(command::read_queue_stats{"queue"}).value();
  BOOST_TEST(stats.enqueued == 4U);
  BOOST_TEST(stats.completed == 2U);
}

// Nor is anybody refused because of what travels together with it.
BOOST_AUTO_TEST_CASE(F97_who_lacks_the_right_to_a_key_or_a_command_is_alone_in_that) {
  weir_test::heard_log heard;
  server s;
  BOOST_TEST(s.ask("acl setuser some on '>secret' '~{weir:0}:[slf]*' '~{weir:0}:p?:mine' "
                   "'~{weir:0}:time' '&*' +@all -zcount") == "OK");
  bed on{s.address().authenticate("secret", "some"), patient()};
  std::size_t answers = 0;
  auto const give = [&](auto const& c, error_code expected) {
    using answer = typename std::decay_t<decltype(c)>::result;
    on.store.async_execute(c, [&answers, expected](error_code ec, answer const&) {
      BOOST_TEST(ec == expected);
      ++answers;
    });
  };
  error_code const denied = make_error_code(errc::permission_denied);
  for (int i = 0; i != 4; ++i) {
    give(command::release_permit{"mine", "me", 0}, {});
    give(command::release_permit{"other", "me", 0}, denied);
    give(command::acquire_permit{"mine", "me", 1, 1h, {}}, denied);
    give(command::acquire_lock{"any", "me", 1h}, {});
  }
  on.io.restart();
  while (answers != 16) on.io.run_one();
  bool named = false;
  for (auto said : heard.of(log::topic::settings)) {
    std::ranges::transform(said, said.begin(), [](unsigned char c) { return std::tolower(c); });
    named = named || said.ends_with("the command zcount");
  }
  BOOST_TEST(named);
}

BOOST_AUTO_TEST_CASE(a_server_that_is_full_is_waited_for) {
  server s;
  bed first{s.address(), patient()};
  BOOST_TEST(first(command::inspect_lock{"key"}).has_value());
  s.ask("config set maxclients 2");
  bed second{s.address(), patient()};
  BOOST_TEST(second(command::inspect_lock{"key"}).has_value());
  // It refuses at once whoever comes, which is no matter of rights.
  auto o = patient();
  o.offline_patience = 300ms;
  bed third{s.address(), o};
  BOOST_TEST(is_error(third(command::inspect_lock{"key"}), errc::store_unavailable));
}

BOOST_AUTO_TEST_CASE(users_of_unix_sockets) {
  weir_test::directory const home;
  auto const path = home.file("server");
  server const s{{"--unixsocket", path, "--unixsocketperm", "700", "--requirepass", "right"}};
  auto const at = redis_address{}.unix_socket(path);
  BOOST_TEST(!told(redis_address{at}.authenticate("right")));
  BOOST_TEST((told(at) == errc::permission_denied));
  BOOST_TEST((told(redis_address{at}.authenticate("wrong")) == errc::permission_denied));
}

BOOST_AUTO_TEST_CASE(R7_a_store_that_asks_why_it_is_refused_ends_at_any_moment) {
  server const s{{"--requirepass", "right"}};
  auto const before = open_files();
  for (int steps = 0; steps != 40; ++steps) {
    for (bool const closes : {true, false}) {
      boost::asio::io_context io;
      redis_store const store{io.get_executor(), s.address().authenticate("wrong"), patient()};
      bool ended = false;
      store.async_run([&](error_code) { ended = true; });
      for (int i = 0; i != steps; ++i) io.run_one_for(2ms);
      if (!closes) continue;
      store.close();
      io.restart();
      io.run_for(weir_test::patience);
      BOOST_TEST(io.stopped());
      BOOST_TEST(ended);
    }
  }
  BOOST_TEST(open_files() == before);  // whatever was under way went with its execution context
}

BOOST_AUTO_TEST_CASE(users_of_clusters) {
  cluster nodes;
  constexpr std::uint32_t shards = 8;
  auto spread = patient();
  spread.shards = shards;
  auto const user = [&](std::size_t i, std::string const& rules) {
    BOOST_TEST(nodes[i].ask("acl setuser me reset on " + rules) == "OK");
  };
  for (std::size_t i = 0; i != cluster::size; ++i) user(i, "'>right' '~*' '&*' +@all");
  BOOST_TEST(!told(nodes.addresses().authenticate("right", "me"), spread));
  BOOST_TEST(
      (told(nodes.addresses().authenticate("wrong", "me"), spread) == errc::permission_denied));
  BOOST_TEST(
      (told(nodes.address().authenticate("wrong", "me"), spread) == errc::permission_denied));

  // A node that knows nobody refuses what is for its shards, and no more; until it learns better.
  detail::redis_names const names{"weir", shards};
  auto const stranger = nodes.serves("weir:1");
  auto const is_there = [&](std::string const& key) {
    return nodes.serves("weir:" + std::to_string(names.shard_of(key))) == stranger;
  };
  std::string there;
  std::string elsewhere;
  for (int i = 0; there.empty() || elsewhere.empty(); ++i) {
    auto key = "key" + std::to_string(i);
    (is_there(key) ? there : elsewhere) = std::move(key);
  }
  bed on{nodes.addresses().authenticate("right", "me"), spread};
  BOOST_TEST(on(command::acquire_lock{there, "me", lasting}).has_value());
  BOOST_TEST(on(command::acquire_lock{elsewhere, "me", lasting}).has_value());
  nodes[stranger].ask("acl deluser me");
  cluster::wait("refusal", [&] {
    return is_error(on(command::inspect_lock{there}), errc::permission_denied);
  });
  BOOST_TEST(on(command::inspect_lock{elsewhere}).value().held);
  user(stranger, "'>right' '~*' '&*' +@all");
  until_it_works(on, command::inspect_lock{there}, errc::permission_denied);
  BOOST_TEST(on(command::inspect_lock{there}).value().held);
}

BOOST_AUTO_TEST_SUITE_END()
