// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What becomes of commands whose connection ends, or whose script is unknown, at the moments that a
// real server does not show at will.

#include "integration/heard_log.hpp"
#include "redis_noted.hpp"
#include "redis_puppet.hpp"
#include "weir/detail/outage.hpp"
#include "weir/store/redis.hpp"
#include "weir/store/redis/link.hpp"
#include "weir/store/redis/question.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace redis_test;
using weir::errc;
using weir::error_code;
using weir::lock_grant;
using weir::lock_info;
using weir::redis_store;
namespace command = weir::command;
namespace detail = weir::detail;

/// A store that runs, and its server.
struct stage {
  explicit stage(weir::redis_options const& options = patient())
      : store{io.get_executor(), server.address(), options} {
    store.async_run([](error_code) {});
  }
  stage(stage const&) = delete;
  stage& operator=(stage const&) = delete;
  ~stage() {
    store.close();
    server.close();
    io.restart();
    io.run();
  }

  void acquire(std::string_view key, std::optional<error_code>& to) const {
    store.async_execute(command::acquire_lock{key, "me", 1h},
                        [&to](error_code ec, lock_grant const&) { to = ec; });
  }
  void inspect(std::string_view key, std::optional<error_code>& to) const {
    store.async_execute(command::inspect_lock{key},
                        [&to](error_code ec, lock_info const&) { to = ec; });
  }

  /// Until it is up, which a command shows.
  void open() {
    server.act([](puppet::guest& by, puppet::words const& w) {
      if (w[0] != "EVALSHA") return false;
      by.say(lock_free);
      return true;
    });
    std::optional<error_code> done;
    inspect("first", done);
    run_until(io, [&] { return done.has_value(); });
    BOOST_TEST_REQUIRE(!*done);
    server.forget();
  }

  boost::asio::io_context io{};
  puppet server{io};
  redis_store store;
};

weir::redis_options confirmed() {
  auto o = patient();
  o.replicas = 1;
  return o;
}

/// Does the commands; `wait` says what becomes of WAIT.
puppet::script doing(puppet::script wait) {
  return [wait = std::move(wait)](puppet::guest& by, puppet::words const& w) {
    if (w[0] == "WAIT") return wait(by, w);
    if (w[0] != "EVALSHA") return false;
    by.say(lock_granted);
    return true;
  };
}

/// Whoever has several links: it notes what comes back.
struct board final : detail::redis_switchboard {
  bool greeted(detail::redis_link&, detail::redis_question const&) override { return true; }
  void opened(detail::redis_link&) override { up = true; }
  void ended(detail::redis_link&) override {}
  void missed(std::string const&) override {}
  void heard(detail::redis_link&, std::string const&) override {}
  void answered_at_last() override {}
  void not_given(std::shared_ptr<detail::redis_request> const& r) override { back.push_back(r); }
  bool refused(detail::redis_link&, std::shared_ptr<detail::redis_request> const&,
               std::string_view) override {
    return false;
  }

  bool up = false;
  std::vector<std::shared_ptr<detail::redis_request>> back;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_link)

BOOST_AUTO_TEST_CASE(R4_what_replicas_confirm_is_done_and_what_they_do_not_is_unknown) {
  stage on{confirmed()};
  std::string_view have = ":1\r\n";
  on.server.act(doing([&](puppet::guest& by, puppet::words const& w) {
    BOOST_TEST(w[1] == "1");
    by.say(have);
    return true;
  }));
  std::optional<error_code> done;
  on.acquire("key", done);
  run_until(on.io, [&] { return done.has_value(); });
  BOOST_TEST(!*done);
  for (std::string_view const no : {":0\r\n", "-ERR no\r\n", "+OK\r\n"}) {
    have = no;
    done.reset();
    on.acquire("key", done);
    run_until(on.io, [&] { return done.has_value(); });
    BOOST_TEST((*done == errc::outcome_unknown), done->message());
  }
}

BOOST_AUTO_TEST_CASE(R4_what_was_not_confirmed_when_the_store_closes_is_unknown) {
  stage on{confirmed()};
  on.server.act(doing([&](puppet::guest&, puppet::words const&) {
    on.store.close();
    return true;
  }));
  std::array<std::optional<error_code>, 3> done;
  for (auto& d : done) on.acquire("key", d);
  for (auto const& d : done) {
    run_until(on.io, [&] { return d.has_value(); });
    BOOST_TEST((*d == errc::outcome_unknown), d->message());
  }
}

BOOST_AUTO_TEST_CASE(R4_what_was_not_confirmed_when_the_connection_ends_is_unknown) {
  stage on{confirmed()};
  on.server.act(doing([](puppet::guest& by, puppet::words const&) {
    by.hang_up();
    return true;
  }));
  for (int i = 0; i != 3; ++i) {
    std::optional<error_code> done;
    on.acquire("key", done);
    run_until(on.io, [&] { return done.has_value(); });
    BOOST_TEST((*done == errc::outcome_unknown), done->message());
  }
  // The same when it ends before the question is asked.
  on.server.act([](puppet::guest& by, puppet::words const& w) {
    if (w[0] != "EVALSHA") return false;
    by.say(lock_granted);
    by.fall_silent();
    return true;
  });
  std::optional<error_code> done;
  on.acquire("key", done);
  run_until(on.io, [&] { return done.has_value(); });
  BOOST_TEST((*done == errc::outcome_unknown), done->message());
}

BOOST_AUTO_TEST_CASE(R4_what_the_store_had_not_sent_when_it_closed_was_not_executed_and_says_so) {
  stage on;
  on.open();
  std::optional<error_code> told;
  on.inspect("key", told);
  on.store.close();
  run_until(on.io, [&] { return told.has_value(); });
  BOOST_TEST((*told == errc::closed), told->message());
  BOOST_TEST(on.server.heard("EVALSHA") == 0U);
}

BOOST_AUTO_TEST_CASE(R4_what_a_link_of_several_had_not_sent_goes_back_to_be_sent_elsewhere) {
  boost::asio::io_context io;
  puppet server{io};
  auto const whole = std::make_shared<board>();
  auto const strand = boost::asio::make_strand(boost::asio::any_io_executor{io.get_executor()});
  auto const link = std::make_shared<detail::redis_link>(whole, strand, server.address(), patient(),
                                                         std::make_shared<detail::outage>("node"));
  link->run({});
  run_until(io, [&] { return whole->up; });
  auto const r = std::make_shared<noted>(link->names());
  boost::asio::post(strand, [&] {
    link->give(r);
    link->close();
  });
  run_until(io, [&] { return !whole->back.empty() || r->told; });
  BOOST_TEST(!r->told.has_value());
  BOOST_TEST(whole->back.size() == 1U);
  BOOST_TEST(link->under_way() == 0U);
  BOOST_TEST(server.heard("EVALSHA") == 0U);
  server.close();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_CASE(R4_what_no_connection_took_waits_for_the_next_one) {
  ask_while_the_connection_ends(
      [](auto executor, auto address) {
        return std::make_shared<detail::redis_link>(executor, address, patient());
      },
      [](puppet::words const& w) { return w[0] == "EVALSHA"; });
}

// Together, or in as many parts as it takes.
BOOST_AUTO_TEST_CASE(many_that_are_asked_at_once_are_sent_in_order_and_each_gets_its_own_answer) {
  stage on;
  on.open();
  constexpr std::uint64_t many = 100;
  std::vector<std::string> holders;
  for (std::uint64_t i = 0; i != 2 * many; ++i) holders.push_back("holder " + std::to_string(i));
  std::uint64_t heard = 0;
  std::uint64_t runs = 0;
  on.server.act([&](puppet::guest& by, puppet::words const& w) {
    // One, or several as one: these answer in an array.
    auto const n = static_cast<std::size_t>(
        std::ranges::count_if(w, [](auto const& word) { return word.starts_with("holder "); }));
    if (n == 0) return false;
    std::string said = n == 1 ? "" : "*" + std::to_string(n) + "\r\n";
    for (std::size_t i = 0; i != n; ++i) {
      BOOST_TEST(std::ranges::count(w, holders.at(heard)) == 1, holders[heard]);
      said += "*4\r\n:1\r\n:" + std::to_string(++heard) + "\r\n:1000\r\n$0\r\n\r\n";
    }
    by.say(said);
    ++runs;
    return true;
  });
  std::uint64_t answered = 0;
  auto const ask = [&](std::uint64_t i) {
    on.store.async_execute(command::acquire_lock{"key", holders[i], 1h},
                           [&, i](error_code ec, lock_grant const& g) {
                             BOOST_TEST(!ec, ec.message());
                             BOOST_TEST(g.fence == i + 1);
                             ++answered;
                           });
  };
  for (std::uint64_t i = 0; i != many; ++i) ask(i);
  // While the first of them are being sent.
  for (std::uint64_t i = many; i != 2 * many; ++i) {
    on.io.restart();
    on.io.poll_one();
    ask(i);
  }
  run_until(on.io, [&] { return answered == 2 * many; });
  BOOST_TEST(heard == 2 * many);
  BOOST_TEST(runs < many);
}

BOOST_AUTO_TEST_CASE(F46_a_forgotten_script_is_taught_once_for_all_who_need_it) {
  stage on;
  on.open();
  std::size_t no = 3;  // and then they know it
  on.server.act([&](puppet::guest& by, puppet::words const& w) {
    if (w[0] != "EVALSHA") return false;
    by.say(no != 0 ? "-NOSCRIPT none\r\n" : lock_free);
    no -= no != 0;
    return true;
  });
  std::array<std::optional<error_code>, 3> done;
  for (auto& d : done) on.inspect("key", d);
  for (auto const& d : done) {
    run_until(on.io, [&] { return d.has_value(); });
    BOOST_TEST(!*d, d->message());
  }
  BOOST_TEST(on.server.heard("SCRIPT") == 1U);
  BOOST_TEST(on.server.heard("EVALSHA") == 6U);
  BOOST_TEST(on.server.heard("EVAL") == 0U);
}

BOOST_AUTO_TEST_CASE(F46_where_scripts_are_not_kept_a_command_brings_its_own) {
  stage on;
  on.open();
  bool keeps = true;
  on.server.act([&](puppet::guest& by, puppet::words const& w) {
    if (w[0] == "EVALSHA" || (w[0] == "EVAL" && !keeps)) {
      by.say("-NOSCRIPT none\r\n");
      return true;
    }
    if (w[0] != "EVAL") return false;
    by.say(lock_free);
    return true;
  });
  std::optional<error_code> done;
  on.inspect("key", done);
  run_until(on.io, [&] { return done.has_value(); });
  BOOST_TEST(!*done, done->message());
  puppet::words const asked{"EVALSHA", "SCRIPT", "EVALSHA", "EVAL"};
  BOOST_TEST(on.server.verbs() == asked, boost::test_tools::per_element());
  // One that makes no sense is asked so often, and no more.
  keeps = false;
  done.reset();
  on.inspect("key", done);
  run_until(on.io, [&] { return done.has_value(); });
  BOOST_TEST((*done == errc::store_unavailable), done->message());
}

// Each may be answered by as much as an answer can have.
/// The end of housekeeping that finds a queue's name, and then has one more piece to do each
/// time, up to the one of this number, which is answered so.
error_code housekeeping(stage& on, redis_store const& store, int last, std::string_view answer) {
  int piece = 0;
  on.server.act([&](puppet::guest& by, puppet::words const& w) {
    if (w[0] != "EVALSHA") return false;
    by.say(piece == last ? answer : piece == 0 ? "*1\r\n$5\r\nqueue\r\n" : ":1\r\n");
    ++piece;
    return true;
  });
  std::optional<error_code> done;
  store.async_execute(command::gc_stale_pointers{0, 100, {}},
                      [&](error_code ec, std::uint32_t) { done = ec; });
  run_until(on.io, [&] { return done.has_value(); });
  on.server.act({});
  return *done;
}

BOOST_AUTO_TEST_CASE(R4_housekeeping_is_in_doubt_once_a_piece_of_it_was_done) {
  stage on;
  on.open();
  constexpr std::string_view full = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
  for (int const untouched : {0, 1}) {
    auto const ec = housekeeping(on, on.store, untouched, full);
    BOOST_TEST((ec == errc::store_full), ec.message());
  }
  auto const begun = housekeeping(on, on.store, 2, full);
  BOOST_TEST((begun == errc::outcome_unknown), begun.message());
}

BOOST_AUTO_TEST_CASE(F87_housekeeping_that_only_read_names_by_the_end_of_its_patience_did_nothing) {
  stage on;
  on.open();
  on.server.turn_away(1'000'000);  // it goes for another server, and there is none
  auto const ec = housekeeping(on, on.store.with_patience(1s), 1, "-LOADING its data\r\n");
  BOOST_TEST((ec == errc::store_unavailable), ec.message());
}

BOOST_AUTO_TEST_CASE(F85_asking_again_for_the_right_to_hints_is_told_as_no_loss_of_them) {
  weir_test::heard_log const heard;
  auto o = patient();
  o.health_check_interval = 50ms;
  stage on{o};
  on.open();
  on.server.act([](puppet::guest& by, puppet::words const& w) {
    bool const subscribes = w[0] == "SUBSCRIBE";
    if (!subscribes && w[0] != "EVALSHA") return false;
    by.say(subscribes ? "-NOPERM no permissions to access one of the channels\r\n" : ":0\r\n");
    return true;
  });
  on.store.async_execute(command::await_permit{"key", "me"}, [](error_code, weir::hint) {});
  run_until(on.io, [&] { return on.server.heard("SUBSCRIBE") == 2; });
  BOOST_TEST(heard.count("no hints for now") == 0U, heard.all());
}

BOOST_AUTO_TEST_CASE(F60_what_has_large_answers_is_asked_for_as_long_as_there_is_room_for_them) {
  stage on;
  on.open();
  using guest = std::shared_ptr<puppet::guest>;
  guest client;
  on.server.act([&](puppet::guest& by, puppet::words const& w) {
    client = by.shared_from_this();
    return w[0] == "EVALSHA";  // it does not answer
  });
  constexpr std::size_t many = 100;
  constexpr std::size_t room = 15;  // answers of 4 MiB in 64 MiB, less what asks for them
  std::array<std::optional<error_code>, many> done;
  for (auto& d : done) {
    on.store.async_execute(command::peek_jobs{"queue", 10'000},
                           [&d](error_code ec, std::vector<weir::job> const&) { d = ec; });
  }
  run_until(on.io, [&] { return on.server.heard("EVALSHA") == room; });
  // What is small does not wait.
  std::optional<error_code> small;
  on.inspect("key", small);
  run_until(on.io, [&] { return on.server.heard("EVALSHA") == room + 1; });
  // One that is answered makes room for the next.
  client->say("*3\r\n:0\r\n:0\r\n*0\r\n");
  run_until(on.io, [&] { return on.server.heard("EVALSHA") == room + 2; });
  BOOST_TEST(std::ranges::count_if(done, [](auto const& d) { return d && !*d; }) == 1);
  // Those that had room when the connection ends may have been executed, the others were not.
  on.server.act([&](puppet::guest& by, puppet::words const& w) {
    if (w[0] != "EVALSHA") return false;
    by.say("*3\r\n:0\r\n:0\r\n*0\r\n");
    return true;
  });
  client->hang_up();
  run_until(on.io,
            [&] { return std::ranges::all_of(done, [](auto& d) { return d.has_value(); }); });
  auto const unknown =
      std::ranges::count_if(done, [](auto& d) { return *d == errc::outcome_unknown; });
  BOOST_TEST(unknown == 15);
  BOOST_TEST(std::ranges::count_if(done, [](auto& d) { return !*d; }) == 85);
}

BOOST_AUTO_TEST_CASE(F60_what_waits_for_room_when_the_store_closes_was_not_executed) {
  stage on;
  on.open();
  on.server.act([](puppet::guest&, puppet::words const& w) { return w[0] == "EVALSHA"; });
  std::array<std::optional<error_code>, 20> done;
  for (auto& d : done) {
    on.store.async_execute(command::peek_jobs{"queue", 10'000},
                           [&d](error_code ec, std::vector<weir::job> const&) { d = ec; });
  }
  run_until(on.io, [&] { return on.server.heard("EVALSHA") == 15; });
  on.store.close();
  run_until(on.io,
            [&] { return std::ranges::all_of(done, [](auto& d) { return d.has_value(); }); });
  BOOST_TEST(std::ranges::count_if(done, [](auto& d) { return *d == errc::closed; }) == 5);
  BOOST_TEST(std::ranges::count_if(done, [](auto& d) { return *d == errc::outcome_unknown; }) ==
             15);
}

// Each time it waits for room when the connection ends.
BOOST_AUTO_TEST_CASE(F46_what_waits_for_several_connections_waits_no_longer_than_for_one) {
  auto options = patient();
  options.offline_patience = 500ms;
  options.least_reconnect_wait = options.longest_reconnect_wait = 300ms;
  stage on{options};
  on.open();
  constexpr std::size_t many = 100;  // of which 15 have room at once
  on.server.act([](puppet::guest& by, puppet::words const& w) {
    if (w[0] != "EVALSHA") return false;
    by.hang_up();
    return true;
  });
  std::array<std::optional<error_code>, many> done;
  for (auto& d : done) {
    on.store.async_execute(command::peek_jobs{"queue", 10'000},
                           [&d](error_code ec, std::vector<weir::job> const&) { d = ec; });
  }
  run_until(on.io,
            [&] { return std::ranges::all_of(done, [](auto& d) { return d.has_value(); }); });
  BOOST_TEST(std::ranges::count_if(done, [](auto& d) { return *d == errc::outcome_unknown; }) > 0);
  BOOST_TEST((*done.back() == errc::store_unavailable), done.back()->message());
}

BOOST_AUTO_TEST_CASE(F61_one_kind_of_command_that_is_parted_leaves_the_others_together) {
  stage on;
  on.open();
  std::size_t locks = 0;
  std::size_t permits = 0;
  on.server.act([&](puppet::guest& by, puppet::words const& w) {
    auto const of = [&](std::string_view who) {
      return static_cast<std::size_t>(std::ranges::count(w, who));
    };
    if (auto const n = of("lock holder")) {
      by.say(n == 1 ? lock_granted : "-NOPERM no right to one of these\r\n");
      ++locks;
      return true;
    }
    auto const n = of("permit holder");
    if (n == 0) return false;
    std::string said = n == 1 ? "" : "*" + std::to_string(n) + "\r\n";
    for (std::size_t i = 0; i != n; ++i) said += ":1\r\n";
    by.say(said);
    ++permits;
    return true;
  });
  constexpr std::size_t many = 4;
  for (std::size_t const runs : {many + 1, many}) {
    locks = permits = 0;
    std::size_t answered = 0;
    auto const note = [&](error_code ec) {
      BOOST_TEST(!ec, ec.message());
      ++answered;
    };
    for (std::size_t i = 0; i != many; ++i) {
      auto const key = "key " + std::to_string(i);
      on.store.async_execute(command::acquire_lock{key, "lock holder", 1h},
                             [note](error_code ec, lock_grant const&) { note(ec); });
      on.store.async_execute(command::renew_permit{key, "permit holder", 7, 1h},
                             [note](error_code ec, auto) { note(ec); });
    }
    run_until(on.io, [&] { return answered == 2 * many; });
    BOOST_TEST(locks == runs);
    BOOST_TEST(permits == 1U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
