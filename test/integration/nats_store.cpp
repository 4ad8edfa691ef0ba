// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What of the store no client sees in an answer: connections that end, servers that are killed,
// stopped, full, or not weir's.

#include "nats_server.hpp"
#include "patience.hpp"

#include <boost/asio/cancel_after.hpp>
#include <boost/asio/error.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

namespace {

using namespace nats_test;
using weir_test::happens;

constexpr duration lasting = 1h;

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_store_on_servers)

BOOST_AUTO_TEST_CASE(urls_say_where) {
  auto const one = nats_address::parse("nats://example.org").value();
  BOOST_TEST(one.urls().size() == 1U);
  BOOST_TEST(!one.uses_tls());
  auto const some = nats_address::parse("nats://a:1,tls://me:secret@b:2").value();
  BOOST_TEST(some.urls().size() == 2U);
  BOOST_TEST(some.urls()[1] == "tls://me:secret@b:2");
  BOOST_TEST(some.uses_tls());
  for (std::string_view const bad : {"", "h", "nats:", "nats://", "http://h", "nats://h,",
                                     ",nats://h", "nats://a b", "nats://me@", "nats://h\n"}) {
    BOOST_TEST(is_error(nats_address::parse(bad), errc::invalid_option), bad);
  }
}

BOOST_AUTO_TEST_CASE(F46_no_server_is_a_typed_error_in_time) {
  nats_options o;
  o.offline_patience = 100ms;
  boost::asio::io_context io;
  nats_store const nowhere{io.get_executor(), nats_address::parse("nats://127.0.0.1:1").value(), o};
  BOOST_TEST(is_error(ask(io, nowhere, command::inspect_lock{"key"}), errc::store_unavailable));
  nowhere.async_run([](error_code) {});
  BOOST_TEST(is_error(ask(io, nowhere, command::inspect_lock{"key"}), errc::store_unavailable));
  nowhere.close();
  BOOST_TEST(is_error(ask(io, nowhere, command::inspect_lock{"key"}), errc::closed));
  io.restart();
  io.run();  // ends: nothing is left
}

BOOST_AUTO_TEST_CASE(R5_what_was_acknowledged_survives_a_crash_and_the_store_comes_back) {
  server s;
  bed on{s, brisk()};
  auto const fence = on(command::acquire_lock{"key", "me", lasting}).value().fence;
  BOOST_TEST(fence != 0U);
  s.kill();
  s.start();
  auto const found = on(command::inspect_lock{"key"});
  BOOST_TEST_REQUIRE(found.has_value(), found.error().message());
  BOOST_TEST(found->held);
  BOOST_TEST(found->fence == fence);
  BOOST_TEST(on(command::renew_lock{"key", "me", fence, lasting}).has_value());
}

BOOST_AUTO_TEST_CASE(F47_a_server_that_lost_everything_gives_no_fence_twice) {
  std::uint64_t last = 0;
  for (int i = 0; i != 3; ++i) {
    server s;
    bed on{s};
    auto const fence = on(command::acquire_lock{"key", "me", lasting}).value().fence;
    BOOST_TEST(fence > last);
    last = fence;
  }
}

BOOST_AUTO_TEST_CASE(F45_a_write_without_an_answer_is_of_unknown_outcome_and_a_read_is_none) {
  server s;
  auto o = brisk();
  o.request_timeout = 200ms;
  o.health_check_interval = 1min;
  bed on{s, o};
  auto const fence = eventually(on, command::acquire_lock{"key", "me", lasting}).value().fence;
  s.pause();
  BOOST_TEST(is_error(on(command::renew_lock{"key", "me", fence, lasting}), errc::outcome_unknown));
  BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::store_unavailable));
  s.resume();
  BOOST_TEST(eventually(on, command::renew_lock{"key", "me", fence, lasting}).has_value());
}

BOOST_AUTO_TEST_CASE(F38_a_half_open_connection_is_noticed) {
  server s;
  auto o = brisk();
  o.health_check_interval = 1s;
  o.offline_patience = 300ms;
  bed on{s, o};
  auto const fence = eventually(on, command::acquire_lock{"key", "me", lasting}).value().fence;
  s.pause();
  BOOST_TEST(is_error(on(command::renew_lock{"key", "me", fence, lasting}), errc::outcome_unknown));
  s.resume();
  BOOST_TEST(eventually(on, command::renew_lock{"key", "me", fence, lasting}).has_value());
}

BOOST_AUTO_TEST_CASE(F38_hints_come_by_message_long_before_the_next_look) {
  server s;
  auto slow = brisk();
  slow.poll_interval = 10s;
  bed one{s, slow};
  bed two{s, slow};
  BOOST_TEST(one(command::acquire_permit{"key", "x", 1, lasting, {}}).value().granted);
  BOOST_TEST(two(command::acquire_permit{"key", "y", 1, lasting, lasting}).value().place == 1U);
  bool woken = false;
  two.store.async_execute(command::await_permit{"key", "y"}, [&](error_code ec, hint) {
    BOOST_TEST(!ec);
    woken = true;
  });
  two.io.restart();
  two.io.run_for(300ms);
  BOOST_TEST(!woken);
  auto const start = std::chrono::steady_clock::now();
  BOOST_TEST(one(command::release_permit{"key", "x", 0}).value().freed);
  one.io.restart();
  while (!woken && std::chrono::steady_clock::now() - start < 30s) {
    one.io.poll();
    two.io.run_one_for(10ms);
  }
  BOOST_TEST(woken);
  BOOST_TEST((std::chrono::steady_clock::now() - start < 8s));  // sooner than anybody looked
}

BOOST_AUTO_TEST_CASE(F26_callers_of_one_key_share_their_exchanges) {
  server s;
  bed on{s};
  quota const q[] = {quota::per(1000, 24h)};
  BOOST_TEST(on(command::take{"key", q, 1, {}}).value().allowed);
  constexpr int callers = 500;
  int allowed = 0;
  int done = 0;
  for (int i = 0; i != callers; ++i) {
    on.store.async_execute(command::take{"key", q, 1, {}}, [&](error_code ec, decision const& d) {
      BOOST_TEST(!ec);
      if (d.allowed) ++allowed;
      ++done;
    });
  }
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return done == callers; }));
  BOOST_TEST(allowed == callers);
  stranger other{s};
  auto const info = nlohmann::json::parse(other.ask("$JS.API.STREAM.INFO.weir-keys"));
  BOOST_TEST(info["state"]["last_seq"].get<int>() <= 4);  // and not one for each
  BOOST_TEST(info["state"]["messages"].get<int>() == 2);  // and the note of the time
}

BOOST_AUTO_TEST_CASE(R8_what_does_not_fit_into_a_message_changes_nothing) {
  configured small{"max_payload: 8192\n"};
  bed on{*small.it};
  int granted = 0;
  std::optional<error_code> why;
  for (int i = 0; i != 200 && !why; ++i) {
    auto const holder = "holder" + std::to_string(i);
    auto const got = on(command::acquire_permit{"key", holder, 1000, lasting, {}});
    if (got.has_error()) {
      why = got.error();
    } else {
      ++granted;
    }
  }
  BOOST_TEST_REQUIRE(why.has_value());
  BOOST_TEST((*why == errc::store_full), why->message());
  BOOST_TEST(granted > 40);
  BOOST_TEST(on(command::inspect_permits{"key", 0}).value().in_use ==
             static_cast<std::uint32_t>(granted));
  BOOST_TEST(on(command::release_permit{"key", "holder0", 0}).value().freed);
}

BOOST_AUTO_TEST_CASE(F46_a_stream_that_is_full_refuses_and_forgets_nothing) {
  server s;
  auto o = brisk();
  o.max_bytes = 4096;
  bed on{s, o};
  std::vector<std::string> held;
  std::optional<error_code> why;
  for (int i = 0; i != 200 && !why; ++i) {
    auto key = "key" + std::to_string(i);
    auto const got = on(command::acquire_lock{key, "me", lasting});
    if (got.has_error()) {
      why = got.error();
    } else {
      held.push_back(std::move(key));
    }
  }
  BOOST_TEST_REQUIRE(why.has_value());
  BOOST_TEST((*why == errc::store_full), why->message());
  for (auto const& key : held) BOOST_TEST(on(command::inspect_lock{key}).value().held);
}

BOOST_AUTO_TEST_CASE(a_stream_that_is_sealed_can_be_read) {
  server s;
  bed on{s, brisk()};
  auto const fence = on(command::acquire_lock{"key", "me", lasting}).value().fence;
  stranger other{s};
  auto config = nlohmann::json::parse(other.ask("$JS.API.STREAM.INFO.weir-keys"))["config"];
  config["sealed"] = true;
  auto const said = other.ask("$JS.API.STREAM.UPDATE.weir-keys", config.dump());
  BOOST_TEST_REQUIRE(!nlohmann::json::parse(said).contains("error"), said);
  BOOST_TEST(is_error(on(command::acquire_lock{"other", "me", lasting}), errc::store_read_only));
  BOOST_TEST(on(command::inspect_lock{"key"}).value().fence == fence);
}

BOOST_AUTO_TEST_CASE(a_stream_that_no_server_would_make_is_an_invalid_option) {
  server s;
  auto o = brisk();
  o.replicas = 3;  // it has no cluster
  bed on{s, o};
  BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::invalid_option));
  BOOST_TEST(is_error(on(command::read_queue_stats{"queue"}), errc::invalid_option));
}

BOOST_AUTO_TEST_CASE(F53_what_is_not_weirs_is_left_alone) {
  server s;
  stranger other{s};
  bed on{s};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  other.publish("weir.k.l.key", "something else");
  BOOST_TEST(is_error(on(command::acquire_lock{"key", "me", lasting}), errc::store_corrupt));
  BOOST_TEST(on(command::acquire_lock{"other", "me", lasting}).has_value());

  (void)other.ask("$JS.API.STREAM.CREATE.taken-keys",
                  R"({"name":"taken-keys","subjects":["taken.k.>"],"storage":"memory"})");
  auto o = brisk();
  o.prefix = "taken";
  bed taken{s, o};
  BOOST_TEST(is_error(taken(command::inspect_lock{"key"}), errc::store_foreign));
}

BOOST_AUTO_TEST_CASE(F53_a_stream_that_forgets_records_or_does_not_hear_of_them_is_refused) {
  server s;
  stranger other{s};
  auto o = brisk();
  o.health_check_interval = 100ms;
  auto const changed = [&](std::string const& prefix, std::string const& from,
                           std::string const& to) {
    o.prefix = prefix;
    auto config = nats_stream_config(o);
    return config.replace(config.find(from), from.size(), to);
  };
  auto const hour = [&](std::string const& prefix) {
    return changed(prefix, R"("max_age":0)", R"("max_age":3600000000000)");
  };
  (void)other.ask("$JS.API.STREAM.CREATE.old-keys", hour("old"));
  bed old{s, o};
  BOOST_TEST(is_error(old(command::inspect_lock{"key"}), errc::store_foreign));
  (void)other.ask("$JS.API.STREAM.CREATE.deaf-keys", changed("deaf", ".k.>", ".k.*"));
  bed deaf{s, o};
  BOOST_TEST(is_error(deaf(command::inspect_lock{"key"}), errc::store_foreign));

  auto const silent = R"("max_age":0,"no_ack":true)";
  (void)other.ask("$JS.API.STREAM.CREATE.silent-keys", changed("silent", R"("max_age":0)", silent));
  auto log = nats_log_config(o, 0);
  log.replace(log.find(R"("max_age":0)"), std::string_view{R"("max_age":0)"}.size(), silent);
  (void)other.ask("$JS.API.STREAM.CREATE.silent-jobs-0", log);
  bed mute{s, o};
  BOOST_TEST(is_error(mute(command::inspect_lock{"key"}), errc::store_foreign));
  BOOST_TEST(is_error(mute(command::read_queue_stats{"queue"}), errc::store_foreign));

  // One that was as it should be, and is again later.
  o.prefix = "edited";
  bed edited{s, o};
  BOOST_TEST(edited(command::inspect_lock{"key"}).has_value());
  (void)other.ask("$JS.API.STREAM.UPDATE.edited-keys", hour("edited"));
  BOOST_TEST(happens(edited.io, [&] {
    return is_error(edited(command::inspect_lock{"key"}), errc::store_foreign);
  }));
  (void)other.ask("$JS.API.STREAM.UPDATE.edited-keys", nats_stream_config(o));
  BOOST_TEST(happens(edited.io, [&] { return edited(command::inspect_lock{"key"}).has_value(); }));
}

BOOST_AUTO_TEST_CASE(a_stream_may_be_made_by_somebody_else) {
  server s;
  auto o = brisk();
  o.create_stream = false;
  o.health_check_interval = 1s;
  bed on{s, o};
  BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::schema_outdated));
  stranger other{s};
  (void)other.ask("$JS.API.STREAM.CREATE.weir-keys", nats_stream_config(o));
  BOOST_TEST(eventually(on, command::inspect_lock{"key"}).has_value());
  BOOST_TEST(on(command::acquire_lock{"key", "me", lasting}).value().granted);
}

BOOST_AUTO_TEST_CASE(a_prefix_is_letters_digits_and_dashes) {
  server s;
  for (std::string_view const bad : {"", "a.b", "a b", "*", "a>"}) {
    auto o = brisk();
    o.prefix = bad;
    bed on{s, o};
    BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::invalid_option), bad);
  }
}

BOOST_AUTO_TEST_CASE(R7_operations_end_when_their_context_does) {
  server s;
  auto const open_files = [] {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {});
  };
  auto const before = open_files();
  for (int round = 0; round != 10; ++round) {
    auto io = std::make_unique<boost::asio::io_context>();
    auto const kept = std::make_shared<int>(1);
    std::optional<nats_store> handle{std::in_place, io->get_executor(), s.address(), brisk()};
    auto const& store = *handle;
    store.async_run([kept](error_code) {});
    if (round % 2 == 0) BOOST_TEST(ask(*io, store, command::inspect_lock{"key"}).has_value());
    for (int i = 0; i != 50; ++i) {
      store.async_execute(command::inspect_lock{"key"}, [kept](error_code, lock_info const&) {});
    }
    store.async_execute(command::await_permit{"key", "me"}, [kept](error_code, hint) {});
    new_job j;
    j.id.data[0] = 1;
    j.kind = "kind";
    store.async_execute(command::enqueue_jobs{"queue", {&j, 1}}, [kept](error_code, auto) {});
    store.async_execute(command::read_queue_stats{"queue"}, [kept](error_code, auto) {});
    store.async_execute(command::await_jobs{}, [kept](error_code, hint) {});
    for (int i = 0; i != round; ++i) io->poll_one();
    handle.reset();
    io.reset();
    BOOST_TEST(kept.use_count() == 1);
  }
  BOOST_TEST(open_files() == before);  // and so no connection is left
}

BOOST_AUTO_TEST_CASE(R7_a_store_that_is_closed_while_it_connects_lets_the_context_end) {
  server s;
  s.pause();
  boost::asio::io_context io;
  nats_options o;
  o.connect_timeout = 500ms;
  std::optional<error_code> ended;
  {
    nats_store const store{io.get_executor(), s.address(), o};
    store.async_run([&](error_code ec) { ended = ec; });
    io.run_for(100ms);
    store.close();
    io.restart();
    io.run_for(weir_test::patience);
    BOOST_TEST(io.stopped());
  }
  BOOST_TEST((ended && !*ended));
  s.resume();
}

BOOST_AUTO_TEST_CASE(R8_commands_under_way_are_bounded) {
  nats_options o;
  o.max_pending = 3;
  boost::asio::io_context io;
  nats_store const store{io.get_executor(), nats_address::parse("nats://127.0.0.1:1").value(), o};
  int full = 0;
  for (int i = 0; i != 10; ++i) {
    store.async_execute(command::inspect_lock{"key"}, [&](error_code ec, lock_info const&) {
      if (ec == errc::store_full) ++full;
    });
  }
  io.poll();
  BOOST_TEST(full == 7);
  store.close();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_CASE(R8_keys_that_rest_are_forgotten_here_and_not_there) {
  server s;
  auto o = brisk();
  o.max_remembered = 5;
  bed on{s, o};
  std::vector<std::uint64_t> fences;
  for (int i = 0; i != 50; ++i) {
    fences.push_back(on(command::acquire_lock{std::to_string(i), "me", lasting}).value().fence);
  }
  for (int i = 0; i != 50; ++i) {
    BOOST_TEST(on(command::inspect_lock{std::to_string(i)}).value().fence ==
               fences[static_cast<std::size_t>(i)]);
  }
}

BOOST_AUTO_TEST_CASE(R7_cancelling_before_there_is_a_connection_executes_nothing) {
  server s;
  bed on{s};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  weir_test::R7_cancelled_before_there_is_a_connection<nats_store>(s.address(), brisk());
}

BOOST_AUTO_TEST_SUITE_END()
