// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Nodes of a cluster that cannot be reached, send commands elsewhere, or want them later.

#include "integration/heard_log.hpp"
#include "redis_noted.hpp"
#include "redis_puppet.hpp"
#include "weir/log.hpp"
#include "weir/store/redis.hpp"
#include "weir/store/redis/cluster.hpp"
#include "weir/store/redis/cluster_nodes.hpp"
#include "weir/store/redis/link.hpp"
#include "weir/store/redis/switchboard.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace redis_test;
using weir::errc;
using weir::error_code;
using weir::lock_info;
using weir::redis_store;
namespace command = weir::command;
namespace detail = weir::detail;

/// One of the commands that the tests give; not what counts the shards.
bool is_command(puppet::words const& w) {
  return w[0].starts_with("EVAL") && w[3].find(":l:") != std::string::npos;
}

/// Two nodes, of which the first serves everything, and a store that runs.
struct stage {
  explicit stage(weir::redis_options const& options = patient())
      : store{io.get_executor(), first.address().cluster().cluster_with("127.0.0.1", second.port()),
              options} {
    second.serves_all(first.port());
  }
  stage(stage const&) = delete;
  stage& operator=(stage const&) = delete;
  ~stage() {
    store.close();
    first.close();
    second.close();
    io.restart();
    io.run();
  }

  void start() const {
    store.async_run([](error_code) {});
  }

  void inspect(std::string_view key, std::optional<error_code>& to) const {
    store.async_execute(command::inspect_lock{key},
                        [&to](error_code ec, lock_info const&) { to = ec; });
  }
  error_code inspect(std::string_view key = "key") {
    std::optional<error_code> done;
    inspect(key, done);
    run_until(io, [&] { return done.has_value(); });
    return *done;
  }
  /// The same, where nothing goes wrong.
  void open() {
    first.act(answering(lock_free));
    start();
    BOOST_TEST_REQUIRE(!inspect());
    first.forget();
    second.forget();
  }

  /// One answer to whatever script.
  static puppet::script answering(std::string_view bytes) {
    return [bytes](puppet::guest& by, puppet::words const& w) {
      if (!is_command(w)) return false;
      by.say(bytes);
      return true;
    };
  }
  [[nodiscard]] std::string moved_to_second(std::string_view how) const {
    return "-" + std::string{how} + " 1 127.0.0.1:" + std::to_string(second.port()) + "\r\n";
  }

  boost::asio::io_context io{};
  puppet first{io};
  puppet second{io};
  redis_store store;
};

/// Those of them that are about commands.
puppet::words commands(puppet const& p) {
  puppet::words out;
  for (auto const& verb : p.verbs()) {
    if (verb == "EVALSHA" || verb == "EVAL" || verb == "ASKING") out.push_back(verb);
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_cluster)

BOOST_AUTO_TEST_CASE(F46_nodes_that_hang_up_are_called_until_one_answers) {
  stage on;
  on.first.act(stage::answering(lock_free));
  on.first.turn_away(5);
  on.second.turn_away(5);
  std::array<std::optional<error_code>, 3> done;  // asked before there is anybody
  for (auto& d : done) on.inspect("key", d);
  on.start();
  for (auto const& d : done) {
    run_until(on.io, [&] { return d.has_value(); });
    BOOST_TEST(!*d, d->message());
  }
  BOOST_TEST(on.first.calls() > 5U);
}

BOOST_AUTO_TEST_CASE(F46_a_node_that_is_gone_is_replaced_by_another_of_those_that_were_named) {
  stage on;
  on.second.serves_all(on.second.port());
  on.second.act(stage::answering(lock_free));
  on.first.turn_away(1'000'000);
  on.start();
  auto const ec = on.inspect();
  BOOST_TEST(!ec, ec.message());
}

BOOST_AUTO_TEST_CASE(F46_while_nobody_answers_commands_wait_as_long_as_they_are_patient) {
  auto hasty = patient();
  hasty.offline_patience = 100ms;
  for (auto const& o : {patient(), hasty}) {
    stage on{o};
    on.first.turn_away(1'000'000);
    on.second.turn_away(1'000'000);
    std::optional<error_code> told;
    on.inspect("key", told);
    on.start();
    run_until(on.io, [&] { return on.first.calls() + on.second.calls() > 10; });
    if (o.offline_patience == hasty.offline_patience) {
      run_until(on.io, [&] { return told.has_value(); });
      BOOST_TEST((*told == errc::store_unavailable), told->message());
    } else {
      BOOST_TEST(!told.has_value());
      on.store.close();
      run_until(on.io, [&] { return told.has_value(); });
      BOOST_TEST((*told == errc::closed), told->message());
    }
  }
}

BOOST_AUTO_TEST_CASE(F46_a_node_that_wants_a_command_later_is_asked_later) {
  stage on;
  on.open();
  for (std::string_view const why : {"TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN"}) {
    std::size_t no = 3;
    on.first.forget();
    on.first.act([&](puppet::guest& by, puppet::words const& w) {
      if (!is_command(w)) return false;
      by.say(no == 0 ? std::string{lock_free} : "-" + std::string{why} + " later\r\n");
      no -= no != 0;
      return true;
    });
    auto const ec = on.inspect();
    BOOST_TEST(!ec, ec.message());
    BOOST_TEST(commands(on.first).size() == 4U);
    BOOST_TEST(on.first.heard("CLUSTER") > 0U, "whether the map is right was not asked");
  }
}

BOOST_AUTO_TEST_CASE(F46_a_node_that_is_not_ready_is_asked_less_and_less) {
  stage on;
  on.open();
  on.first.act(stage::answering("-CLUSTERDOWN later\r\n"));
  std::optional<error_code> done;
  on.inspect("key", done);
  auto const enough = std::chrono::steady_clock::now() + 3s;
  run_until(on.io, [&] { return std::chrono::steady_clock::now() > enough; });
  BOOST_TEST(!done.has_value());
  BOOST_TEST(commands(on.first).size() <= 15U);
  on.first.act(stage::answering(lock_free));
  run_until(on.io, [&] { return done.has_value(); });
  BOOST_TEST(!*done, done->message());
}

BOOST_AUTO_TEST_CASE(F46_where_a_slot_has_gone_is_learned_for_all_that_went_there) {
  auto o = patient();
  o.shards = 8;
  stage on{o};
  on.open();
  on.second.serves_all(on.second.port());
  on.second.act(stage::answering(lock_free));
  on.first.serves_all(on.second.port());
  std::size_t refused = 0;
  on.first.act([&](puppet::guest& by, puppet::words const& w) {
    if (!is_command(w)) return false;
    ++refused;
    by.say(on.moved_to_second("MOVED"));
    return true;
  });
  auto ec = on.inspect("key");
  BOOST_TEST(!ec, ec.message());
  BOOST_TEST(on.second.heard("CLUSTER") > 0U);  // as each node is before it is given anything
  for (int i = 0; i != 50; ++i) {
    ec = on.inspect(std::to_string(i));
    BOOST_TEST(!ec, ec.message());
  }
  BOOST_TEST(refused == 1U);
}

BOOST_AUTO_TEST_CASE(R4_a_node_that_serves_nothing_any_more_may_still_answer) {
  stage on;
  on.open();
  on.second.serves_all(on.second.port());
  on.second.act(stage::answering(lock_free));
  std::shared_ptr<puppet::guest> asked;
  on.first.act([&](puppet::guest& by, puppet::words const& w) {
    if (asked) return true;  // the later one is to wait, and all that comes behind it
    if (!is_command(w)) return false;
    asked = by.shared_from_this();
    by.say(on.moved_to_second("MOVED"));
    return true;
  });
  std::array<std::optional<error_code>, 2> done;
  for (auto& d : done) on.inspect("key", d);
  run_until(on.io, [&] { return done[0].has_value(); });
  BOOST_TEST(on.second.heard("CLUSTER") > 0U);
  asked->say(on.moved_to_second("MOVED"));
  run_until(on.io, [&] { return done[1].has_value(); });
  for (auto const& d : done) BOOST_TEST(!*d, d->message());
}

BOOST_AUTO_TEST_CASE(F38_hints_are_heard_from_the_node_that_serves_the_key) {
  stage on;
  on.open();
  on.store.async_execute(command::await_permit{"key", "me"}, [](error_code, weir::hint) {});
  run_until(on.io, [&] { return on.first.heard("SUBSCRIBE") > 0U; });
  BOOST_TEST(on.second.heard("SUBSCRIBE") == 0U);
  on.second.serves_all(on.second.port());
  on.second.act(stage::answering(lock_free));
  on.first.serves_all(on.second.port());
  auto const moved = on.moved_to_second("MOVED");
  on.first.act(stage::answering(moved));
  BOOST_TEST(!on.inspect("key"));
  run_until(on.io, [&] { return on.second.heard("SUBSCRIBE") > 0U; });
}

BOOST_AUTO_TEST_CASE(F46_what_was_sent_elsewhere_begins_anew_there) {
  stage on;
  on.open();
  // The first one has no scripts, and keeps none, when the slot moves; nobody says so before.
  int no = 0;
  on.first.act([&](puppet::guest& by, puppet::words const& w) {
    if (!is_command(w)) return false;
    if (++no != 3) {
      by.say("-NOSCRIPT none\r\n");
      return true;
    }
    on.second.serves_all(on.second.port());
    on.first.serves_all(on.second.port());
    by.say(on.moved_to_second("MOVED"));
    return true;
  });
  bool knows = false;
  on.second.act([&](puppet::guest& by, puppet::words const& w) {
    if (!is_command(w)) return false;
    by.say(std::exchange(knows, true) ? lock_free : "-NOSCRIPT none\r\n");
    return true;
  });
  auto const ec = on.inspect();
  BOOST_TEST(!ec, ec.message());
  puppet::words const at_first{"EVALSHA", "EVALSHA", "EVAL"};
  BOOST_TEST(commands(on.first) == at_first, boost::test_tools::per_element());
  puppet::words const then{"EVALSHA", "EVALSHA"};
  BOOST_TEST(commands(on.second) == then, boost::test_tools::per_element());
  BOOST_TEST(on.second.heard("SCRIPT") == 1U);
}

BOOST_AUTO_TEST_CASE(F46_the_right_to_a_slot_that_moves_is_asked_for_there_and_nowhere_else) {
  stage on;
  on.open();
  bool back = false;
  on.first.act([&](puppet::guest& by, puppet::words const& w) {
    if (!is_command(w)) return false;
    by.say(back ? std::string{lock_free} : on.moved_to_second("ASK"));
    return true;
  });
  on.second.act([&](puppet::guest& by, puppet::words const& w) {
    if (!is_command(w)) return false;
    back = true;
    by.say("-TRYAGAIN not all of them are here\r\n");
    return true;
  });
  auto const ec = on.inspect();
  BOOST_TEST(!ec, ec.message());
  puppet::words const there{"ASKING", "EVAL"};
  BOOST_TEST(commands(on.second) == there, boost::test_tools::per_element());
  for (auto const& verb : commands(on.first)) BOOST_TEST(verb == "EVALSHA");
}

BOOST_AUTO_TEST_CASE(F46_nodes_that_send_a_command_to_and_fro_are_given_time) {
  stage on;
  on.open();
  int moves = 0;
  auto const to = [&](puppet const& other) {
    return [&](puppet::guest& by, puppet::words const& w) {
      if (!is_command(w)) return false;
      auto const port = std::to_string(other.port());
      by.say(++moves < 23 ? "-MOVED 1 127.0.0.1:" + port + "\r\n" : std::string{lock_free});
      return true;
    };
  };
  on.first.act(to(on.second));
  on.second.act(to(on.first));
  auto const ec = on.inspect();
  BOOST_TEST(!ec, ec.message());
  BOOST_TEST(moves == 23);
}

BOOST_AUTO_TEST_CASE(R4_what_had_not_been_sent_to_a_node_that_dies_goes_to_its_successor) {
  stage on;
  on.open();
  // It takes no command any more, and its successor is known to all.
  on.first.serves_all(on.second.port());
  on.second.serves_all(on.second.port());
  on.second.act(stage::answering(lock_free));
  bool died = false;
  on.first.act([&](puppet::guest& by, puppet::words const& w) {
    if (!is_command(w)) return false;
    by.hang_up();
    died = true;
    return true;
  });
  auto ec = on.inspect();
  BOOST_TEST((ec == errc::outcome_unknown), ec.message());  // who had been given to it
  BOOST_TEST(died);
  on.first.turn_away(1'000'000);
  for (int i = 0; i != 10; ++i) {
    ec = on.inspect();
    BOOST_TEST(!ec, ec.message());
  }
}

BOOST_AUTO_TEST_CASE(R4_what_no_connection_to_a_node_took_waits_for_the_next_one) {
  ask_while_the_connection_ends(
      [](auto executor, auto address) {
        return std::make_shared<detail::redis_cluster>(executor, address.cluster(), patient());
      },
      is_command);
}

BOOST_AUTO_TEST_CASE(F85_who_may_not_ask_for_the_nodes_is_told_once_by_each) {
  weir_test::heard_log const heard;
  stage on;
  auto const denies = [](puppet::guest& by, puppet::words const& w) {
    if (w[0] != "CLUSTER") return false;
    by.say("-NOPERM User has no permissions to run the 'cluster|slots' command\r\n");
    return true;
  };
  on.first.act(denies);
  on.second.act(denies);
  on.start();
  run_until(on.io, [&] { return on.first.calls() > 3 && on.second.calls() > 3; });
  BOOST_TEST(heard.of(weir::log::topic::settings).size() == 2U, heard.all());
}

BOOST_AUTO_TEST_CASE(F85_an_outage_of_a_node_that_nobody_needed_is_not_told_to_have_lasted) {
  weir_test::heard_log const heard;
  stage on;
  on.first.serves_all(on.second.port());
  on.second.serves_all(on.second.port());
  on.first.turn_away(1'000'000);
  on.start();
  on.second.act(stage::answering(lock_free));
  BOOST_TEST_REQUIRE(!on.inspect());
  auto const name = "store at 127.0.0.1:" + std::to_string(on.first.port());
  BOOST_TEST(heard.count(name) == 1U, heard.all());
  // The map is asked for again, and all can be reached: nobody looks after the first any more.
  on.second.forget();
  on.second.act([&, told = false](puppet::guest& by, puppet::words const& w) mutable {
    if (!is_command(w)) return false;
    by.say(std::exchange(told, true) ? lock_free : on.moved_to_second("MOVED"));
    return true;
  });
  BOOST_TEST_REQUIRE(!on.inspect());
  run_until(on.io, [&] { return on.second.heard("CLUSTER") != 0; });
  BOOST_TEST_REQUIRE(!on.inspect());
  // It becomes the one that serves.
  on.first.turn_away(0);
  on.second.serves_all(on.first.port());
  on.first.serves_all(on.first.port());
  on.first.act(stage::answering(lock_free));
  on.second.act([&](puppet::guest& by, puppet::words const& w) {
    if (!is_command(w)) return false;
    by.say("-MOVED 1 127.0.0.1:" + std::to_string(on.first.port()) + "\r\n");
    return true;
  });
  BOOST_TEST_REQUIRE(!on.inspect());
  BOOST_TEST(heard.count(name) == 1U, heard.all());
}

BOOST_AUTO_TEST_CASE(F96_places_that_a_server_names_without_end_are_called_a_few_at_a_time) {
  boost::asio::io_context io;
  auto options = patient();
  options.shards = 3;
  options.longest_reconnect_wait = 1h;
  detail::redis_nodes nodes{weir::redis_address{"first", 1}.tls("ca").authenticate("secret"),
                            options};
  std::size_t calls = 0;
  auto const make = [&](weir::redis_address const& address) {
    ++calls;
    // The same is demanded of each of them: a certificate of its own name, by the same authority.
    BOOST_TEST((address.uses_tls() && address.ca_file() == "ca"));
    BOOST_TEST(address.host().starts_with("host"));
    return std::make_shared<detail::redis_link>(std::weak_ptr<detail::redis_switchboard>{},
                                                boost::asio::make_strand(io.get_executor()),
                                                address, options, nodes.state_of(address));
  };
  for (int i = 0; i != 10'000; ++i) {
    auto* const node = nodes.at({"host" + std::to_string(i), 1}, make);
    BOOST_TEST((node != nullptr) == (i < 11));  // as many as shards, and 8
    if (i % 2 == 0 && node != nullptr) nodes.drop(*node->link);
  }
  BOOST_TEST(calls == 11U);
  std::vector<detail::redis_place> many;
  for (std::uint16_t i = 0; i != 5000; ++i) many.push_back({"host", i});
  nodes.know(many);
  std::set<detail::redis_place> known;
  for (int i = 0; i != 5000; ++i) known.insert(nodes.next_known());
  BOOST_TEST(known.size() == 1001U);
}

BOOST_AUTO_TEST_CASE(F96_only_hosts_that_are_allowed_get_the_password) {
  boost::asio::io_context io;
  weir::redis_address address{"first", 1};
  address.allow("one").allow("*.cache.example").allow("10.1.0.0/16").allow("fd00::/8");
  detail::redis_nodes nodes{address, patient()};
  BOOST_TEST(!detail::redis_allowed_error(address));
  auto const calls = [&](std::string host) {
    return nodes.at({std::move(host), 2}, [&](weir::redis_address const& a) {
      return std::make_shared<detail::redis_link>(std::weak_ptr<detail::redis_switchboard>{},
                                                  boost::asio::make_strand(io.get_executor()), a,
                                                  patient(), nodes.state_of(a));
    }) != nullptr;
  };
  for (auto const* const host : {"first", "one", "a.cache.example", "10.1.255.3", "fd12::1"}) {
    BOOST_TEST(calls(host), host);
  }
  for (auto const* const host : {"other", "cache.example", "a.cache.example.org", "10.2.0.1",
                                 "fe80::1", "10.1.0.1.org", ""}) {
    BOOST_TEST(!calls(host), host);
  }
  // A resolver would take the first of them as far as its NUL.
  for (auto const& host :
       {std::string{"evil\0.cache.example", 19}, std::string{"a b.cache.example"},
        std::string(242, 'a') + ".cache.example"}) {
    BOOST_TEST(!calls(host), host);
  }
  nodes.know({{"other", 1}, {"one", 1}});
  BOOST_TEST(nodes.next_known().host != "other");
  BOOST_TEST(nodes.next_known().host != "other");
  BOOST_TEST(nodes.next_known().host != "other");

  for (auto const& bad : {std::string{}, std::string(256, 'a')}) {
    stage on;
    redis_store const other{on.io.get_executor(), on.first.address().cluster().allow(bad),
                            patient()};
    other.async_run([](error_code) {});
    std::optional<error_code> done;
    other.async_execute(command::inspect_lock{"key"},
                        [&](error_code ec, lock_info const&) { done = ec; });
    run_until(on.io, [&] { return done.has_value(); });
    BOOST_TEST((*done == errc::invalid_option), done->message());
    other.close();
  }
}

BOOST_AUTO_TEST_SUITE_END()
