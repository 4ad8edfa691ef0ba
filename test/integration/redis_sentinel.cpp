// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A server that sentinels watch over: they say where it is, and what succeeds it is found.

#include "heard_log.hpp"
#include "redis_sentinels.hpp"
#include "redis_server.hpp"
#include "unit/redis_puppet.hpp"

#include <boost/algorithm/string/replace.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

namespace {

using namespace redis_test;
using weir_test::happens;

constexpr duration lasting = 1h;

redis_options brisk() {
  auto o = unhurried();
  o.connect_timeout = 500ms;
  o.least_reconnect_wait = 1ms;
  o.longest_reconnect_wait = 50ms;
  return o;
}

/// The same, without much patience: nobody will come.
redis_options hasty() {
  auto o = brisk();
  o.offline_patience = 300ms;
  return o;
}

/// A lock that nobody has; its fence.
template <class Ask>
std::uint64_t fence_of(Ask& on, std::string const& key) {
  result<lock_grant> got = error_code{errc::outcome_unknown};
  while (got.has_error() && got.error() == errc::outcome_unknown) {
    got = on(command::acquire_lock{key, "me", lasting});
  }
  BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
  BOOST_TEST(got->granted);
  return got->fence;
}

/// The error of a store that finds no server, in words.
std::string cause(redis_address const& address, redis_options const& o = hasty()) {
  bed on{address, o};
  auto const got = on(command::inspect_lock{"key"});
  BOOST_TEST_REQUIRE(got.has_error());
  BOOST_TEST((got.error() == errc::store_unavailable), got.error().message());
  return got.error().message();
}

bool says(std::string const& text, std::string const& part) { return text.find(part) != text.npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_sentinel)

BOOST_AUTO_TEST_CASE(F70_the_successor_is_found_whether_planned_or_not) {
  watched all;
  bed on{all.address(), brisk()};
  // Somebody waits for hints, too.
  BOOST_TEST(on(command::acquire_permit{"p", "a", 1, lasting, {}})->granted);
  BOOST_TEST(on(command::acquire_permit{"p", "b", 1, lasting, lasting})->place == 1U);
  std::optional<error_code> woken;
  on.store.async_execute(command::await_permit{"p", "b"}, [&](error_code ec, hint) { woken = ec; });
  auto const first = fence_of(on, "first");
  BOOST_TEST(all.serving() == 0U);

  all.fail_over();
  BOOST_TEST(all.serving() == 1U);
  std::uint64_t second = 0;
  BOOST_TEST_REQUIRE(happens(on.io, [&, n = 0]() mutable {
    auto const key = "second" + std::to_string(++n);
    second = fence_of(on, key);
    return all[1].ask("exists '{weir:0}:l:" + key + "'") == "1";
  }));
  BOOST_TEST(second > first);
  BOOST_TEST(on(command::release_permit{"p", "a", 0}).has_value());
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return woken.has_value(); }));
  BOOST_TEST(!*woken, woken->message());

  all.wait_for_replica();
  all[1].kill();
  all.until_it_serves(0);
  BOOST_TEST(fence_of(on, "third") > second);
  BOOST_TEST(all[0].ask("exists '{weir:0}:l:third'") == "1");
}

// The one that is succeeded goes on as if nothing had been: only the sentinel says what has.
BOOST_AUTO_TEST_CASE(who_is_succeeded_and_serves_on_is_left_at_once) {
  server const first;
  server const second;
  server const third;
  boost::asio::io_context io;
  puppet sentinel{io};
  auto const place = [](server const& s) {
    auto const port = std::to_string(s.port());
    return "*2\r\n$9\r\n127.0.0.1\r\n$" + std::to_string(port.size()) + "\r\n" + port + "\r\n";
  };
  auto const switched = [](std::string const& service, std::string const& to) {
    auto const text = service + " 127.0.0.1 1 " + to;
    return ">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$" + std::to_string(text.size()) +
           "\r\n" + text + "\r\n";
  };
  auto answer = place(first);
  std::shared_ptr<puppet::guest> unanswered;
  std::shared_ptr<puppet::guest> watching;
  int watches = 0;
  sentinel.act([&](puppet::guest& by, puppet::words const& w) {
    if (w[0] == "SENTINEL") {
      BOOST_TEST((w == puppet::words{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "service"}));
      if (answer.empty()) unanswered = by.shared_from_this();
      by.say(answer);
      return true;
    }
    if (w[0] != "SUBSCRIBE") return false;
    BOOST_TEST(w[1] == "+switch-master");
    by.say(">3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
    watching = by.shared_from_this();
    ++watches;
    return true;
  });
  redis_store const store{io.get_executor(), sentinel.address().sentinel("service"), brisk()};
  store.async_run([](error_code) {});
  int n = 0;
  auto const goes_to = [&](server const& s) {
    auto const key = "key" + std::to_string(++n);
    BOOST_TEST(ask(io, store, command::acquire_lock{key, "me", lasting}).has_value());
    return s.ask("exists '{weir:0}:l:" + key + "'") == "1";
  };
  BOOST_TEST(goes_to(first));
  BOOST_TEST_REQUIRE(happens(io, [&] { return watches == 1; }));
  // News of other services, or news that make no sense, change nothing.
  auto const there = "127.0.0.1 " + std::to_string(second.port());
  for (auto const& said : {switched("another", there), switched("service", "127.0.0.1 0"),
                           switched("service", "127.0.0.1"), switched("service", "127.0.0.1 x")}) {
    watching->say(said);
  }
  for (int i = 0; i != 20; ++i) BOOST_TEST(goes_to(first));
  // The sentinels that are asked still name the old one.
  watching->say(switched("service", there));
  BOOST_TEST_REQUIRE(happens(io, [&] { return goes_to(second); }));
  for (int i = 0; i != 20; ++i) BOOST_TEST(goes_to(second));
  // It is missed while the sentinel is away, and asked for once it is back.
  answer = place(third);
  watching->hang_up();
  BOOST_TEST_REQUIRE(happens(io, [&] { return goes_to(third); }));
  BOOST_TEST(watches == 2);
  // It comes while nobody is there, and the sentinel that is asked next knows nothing of it.
  answer.clear();
  third.ask("client kill type normal");
  BOOST_TEST_REQUIRE(happens(io, [&] { return unanswered != nullptr; }));
  watching->say(switched("service", there));
  io.run_for(100ms);
  answer = place(third);
  unanswered->say(answer);
  BOOST_TEST_REQUIRE(happens(io, [&] { return goes_to(second); }));
  store.close();
  watching->hang_up();
  sentinel.close();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_CASE(a_server_that_stands_still_is_succeeded) {
  watched all;
  auto o = brisk();
  o.health_check_interval = 200ms;
  bed on{all.address(), o};
  auto const first = fence_of(on, "first");
  all[0].pause();
  all.until_it_serves(1);
  BOOST_TEST(fence_of(on, "second") > first);
  BOOST_TEST(all[1].ask("exists '{weir:0}:l:second'") == "1");
  all[0].resume();
  BOOST_TEST(fence_of(on, "third") > first);
  BOOST_TEST(all[1].ask("exists '{weir:0}:l:third'") == "1");
}

BOOST_AUTO_TEST_CASE(F70_sentinels_that_are_gone_or_mute_hide_nobody) {
  watched all;
  all.kill_sentinel(1);
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor const mute{io, {boost::asio::ip::address_v4::loopback(), 0}};
  auto address = redis_address{"127.0.0.1", mute.local_endpoint().port()};
  address.sentinel(watched::service)
      .or_at("127.0.0.1", all.sentinel_port(1))
      .or_at("127.0.0.1", all.port(0))  // a server, and no sentinel
      .or_at("localhost", all.sentinel_port(2));
  auto o = unhurried();
  o.connect_timeout = 200ms;
  o.least_reconnect_wait = o.longest_reconnect_wait = 1ms;
  bed on{address, o};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
}

BOOST_AUTO_TEST_CASE(F86_why_sentinels_lead_nowhere_is_told) {
  watched all;
  auto const at = "127.0.0.1:" + std::to_string(all.sentinel_port(0));
  redis_address const sentinel{"127.0.0.1", all.sentinel_port(0)};
  auto const unknown = cause(redis_address::parse("redis+sentinel://" + at + "/other").value());
  BOOST_TEST(says(unknown, "the sentinel at " + at + ": this sentinel knows no such service"),
             unknown);
  auto const server = cause(redis_address{"127.0.0.1", all.port(0)}.sentinel("mymaster"));
  BOOST_TEST(says(server, "unknown command"), server);
  auto const gone = cause(redis_address{"127.0.0.1", server_test::free_port()}.sentinel("x"));
  BOOST_TEST(says(gone, "the sentinel at 127.0.0.1:"), gone);
  BOOST_TEST(says(gone, "onnection refused"), gone);
  auto const name = cause(redis_address{"nobody.invalid"}.sentinel("x"));
  BOOST_TEST(says(name, "nobody.invalid: the name cannot be looked up"), name);
  auto const strange = cause(
      redis_address{"localhost", all.sentinel_port(0)}.sentinel("mymaster").allow("10.1.0.0/16"));
  BOOST_TEST(says(strange, "a sentinel names a host that redis_address::allow does not"), strange);
  bed malformed{redis_address{sentinel}.sentinel("mymaster").allow(""), brisk()};
  BOOST_TEST((malformed(command::inspect_lock{"key"}).error() == errc::invalid_option));
  bed on{redis_address{sentinel}.sentinel("mymaster").allow("127.0.0.0/8"), brisk()};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
}

BOOST_AUTO_TEST_CASE(sentinels_and_servers_have_passwords_of_their_own) {
  watched all{
      {"--requirepass", "servers", "--masterauth", "servers"},
      "requirepass sentinels\nsentinel sentinel-pass sentinels\nsentinel auth-pass mymaster "
      "servers",
      {},
      false};
  auto const address = [&] { return redis_address{"127.0.0.1", all.sentinel_port(0)}; };
  bed on{address().sentinel("mymaster").authenticate("servers").authenticate_sentinels("sentinels"),
         brisk()};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  auto const wrong =
      cause(address().sentinel("mymaster").authenticate("servers").authenticate_sentinels("x"));
  BOOST_TEST(says(wrong, "WRONGPASS"), wrong);
  auto const none = cause(address().sentinel("mymaster").authenticate("servers"));
  BOOST_TEST(says(none, "NOAUTH"), none);
  bed refused{address().sentinel("mymaster").authenticate("x").authenticate_sentinels("sentinels"),
              brisk()};
  BOOST_TEST((refused(command::inspect_lock{"key"}).error() == errc::permission_denied));
}

BOOST_AUTO_TEST_CASE(a_user_of_sentinels_needs_the_documented_rights) {
  watched all;
  auto const rights = weir_test::documented("SECURITY.md", "resetchannels &+switch-master");
  (void)all.ask_sentinel("acl setuser app on '>secret' resetkeys '" +
                         boost::algorithm::replace_all_copy(rights, " ", "' '") + "'");
  weir_test::heard_log heard;
  bed on{redis_address{"127.0.0.1", all.sentinel_port(0)}
             .sentinel("mymaster")
             .authenticate_sentinels("secret", "app"),
         brisk()};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  auto const listens = [&] {
    std::istringstream clients{all.ask_sentinel("client list")};
    for (std::string each; std::getline(clients, each);) {
      if (each.find(" user=app ") != each.npos && each.find(" sub=1 ") != each.npos) return true;
    }
    return false;
  };
  BOOST_TEST_REQUIRE(happens(on.io, listens));
  BOOST_TEST(heard.all() == "");
}

BOOST_AUTO_TEST_SUITE_END()
