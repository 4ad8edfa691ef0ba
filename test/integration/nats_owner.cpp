// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// One process is the owner of a key's part, and all others ask it: that this is so, and what
// happens when the owner ends, stands still, is a stranger, or speaks another version.

#include "nats_job_steps.hpp"
#include "nats_server.hpp"
#include "nats_together.hpp"
#include "patience.hpp"
#include "server_process.hpp"
#include "weir/limiter.hpp"
#include "weir/limits.hpp"
#include "weir/rule/shards.hpp"
#include "weir/store/nats/answer_room.hpp"
#include "weir/store/nats/wire.hpp"
#include "weir/testing/fault_proxy.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace nats_test;
using network_test::lasting;
using weir_test::happens;

/// A store that does nothing unless it is told to go on: a process that is stopped.
struct stoppable {
  stoppable(server& s, nats_options const& o) : it{s, o} {}
  stoppable(nats_address const& where, nats_options const& o) : it{where, o} {}
  void go_on() {
    it.io.restart();
    it.io.run_for(50ms);
  }
  bed it;
};

/// Has a user that does not hear who says to be the owner, and finds out later.
constexpr auto deaf_to_owners = R"(
  no_auth_user: all
  authorization: { users: [
    { user: all, password: all },
    { user: deaf, password: deaf, permissions: { subscribe: { deny: "weir.h.>" } } }
  ] }
)";

/// Those who have written to the log of a shard.
std::set<std::string> writers(stranger& who, std::uint32_t shard = 0) {
  std::set<std::string> out;
  auto const log = "weir-jobs-" + std::to_string(shard);
  auto const state = log_of(who, "weir", shard);
  for (auto n = state.first; n <= state.last; ++n) {
    auto const said = nlohmann::json::parse(
        who.ask("$JS.API.STREAM.MSG.GET." + log, R"({"seq":)" + std::to_string(n) + "}"));
    auto const data = detail::nats_base64(said["message"]["data"].get<std::string>());
    detail::nats_batch_reader const message{data.value()};
    out.insert(boost::uuids::to_string(message.id().sender));
  }
  return out;
}

command::acquire_permit acquire(std::string_view key, std::string_view holder,
                                std::uint32_t limit = 1) {
  return {key, holder, limit, lasting, {}};
}
command::take one_token(std::string_view key, quota const& q) { return {key, {&q, 1}}; }

/// A process that asks the owner of many shards, who answers when he is told to: with a refusal.
/// The last ones may have an owner that is mute.
struct refused_everywhere {
  static constexpr std::uint32_t shards = 64;

  explicit refused_everywhere(server& s, std::uint32_t mute = 0) : all{s}, who{s} {
    auto const last = shards - mute;
    BOOST_TEST(one(command::inspect_lock{"elsewhere"}).has_value());  // there is a stream
    detail::nats_put_answer(refusal, 0, make_error_code(errc::store_full), hint{});
    who.answer(names.questions("strange"), refusal);
    for (int i = 0; queues.size() != shards; ++i) {
      auto const queue = "queue " + std::to_string(i);
      queues.emplace(rule::shard_of(queue, shards), queue);
    }
    for (std::uint32_t i = 0; i != shards; ++i) {
      who.publish(names.owner(detail::nats_key_parts + i),
                  i < last ? "weir:o1 strange" : "weir:o1 mute");
    }
    for (auto const& [n, queue] : queues) {
      if (n < last) ask(command::read_queue_stats{queue});
    }
    BOOST_TEST_REQUIRE(all_end(last));  // so that it knows whom to ask
  }
  static nats_options options() {
    auto o = asking();
    o.owner_patience = 1h;
    o.shards = shards;
    return o;
  }
  /// Is more asked than for a sign of life?
  static bool asks(std::string const& question) {
    return question.size() > detail::nats_question_tag.size() + 2;
  }
  template <class C>
  void ask(C const& c) {
    one.store.async_execute(
        c, [this](error_code ec, auto const&) { ended += ec == errc::store_full ? 1 : 0; });
  }
  /// Answers until so many have ended.
  bool all_end(std::size_t many) {
    return happens(all.io, [&] {
      (void)who.answer_what_was_asked();
      return ended == many;
    });
  }

  together all;
  via one{all, all.add(options())};
  stranger who;
  std::string refusal = detail::nats_answer_piece(detail::nats_piece::whole, 0);
  std::map<std::size_t, std::string> queues{};  // by their shards
  std::size_t ended = 0;
};

/// Says that somebody is the owner who is not weir's.
void claim_for(stranger& who, std::string_view key, std::string const& name) {
  who.publish(names.owner(part_of(key)), "weir:o1 " + name);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_owners)

BOOST_AUTO_TEST_CASE(F67_the_owner_executes_what_others_ask) {
  server s;
  together all{s};
  via owner{all, all.add(owning())};
  via one{all, all.add(asking())};
  via other{all, all.add(owning())};
  BOOST_TEST(!enqueue(owner, 1));
  BOOST_TEST(!enqueue(one, 2));
  BOOST_TEST(!enqueue(other, 3));
  auto const got = dequeue(one, 1, 2);
  BOOST_TEST_REQUIRE(got.jobs.size() == 2U);
  for (auto const& j : got.jobs) complete(other, j);
  BOOST_TEST(one(command::read_queue_stats{"queue"}).value().completed == 2U);
  stranger who{s};
  BOOST_TEST(writers(who).size() == 1U);

  auto const first = owner(acquire("key", "a", 2)).value();
  auto const second = other(acquire("key", "b", 2)).value();
  BOOST_TEST(second.fence > first.fence);
  BOOST_TEST(!one(acquire("key", "c", 2)).value().granted);
  BOOST_TEST(one(command::release_permit{"key", "a", first.fence}).value().freed);
  BOOST_TEST(one(acquire("key", "c", 2)).value().granted);
  BOOST_TEST(owner(command::inspect_permits{"key", 10}).value().holders.size() == 2U);
  auto const q = quota::per_hour(2);
  BOOST_TEST(one(one_token("key", q)).value().allowed);
  BOOST_TEST(other(one_token("key", q)).value().allowed);
  BOOST_TEST(!owner(one_token("key", q)).value().allowed);
}

BOOST_AUTO_TEST_CASE(F67_the_owner_collects_in_each_shard) {
  server s;
  together all{s};
  auto owns = owning();
  auto asks = asking();
  owns.shards = asks.shards = 2;
  via owner{all, all.add(owns)};
  via one{all, all.add(asks)};
  auto const enqueue_all = [](via& on, std::uint64_t first) {
    for (std::uint64_t i = 0; i != 8; ++i) {
      std::array const jobs{job_of(first + i)};
      auto const queue = "queue " + std::to_string(i);
      BOOST_TEST(on(command::enqueue_jobs{queue, jobs}).has_value());
    }
  };
  enqueue_all(owner, 10);
  for (std::uint32_t const shard : {0U, 1U}) {
    BOOST_TEST(one(command::gc_stale_pointers{shard}).has_value());
  }
  enqueue_all(one, 20);
  stranger who{s};
  for (std::uint32_t const shard : {0U, 1U}) BOOST_TEST(writers(who, shard).size() == 1U);
}

BOOST_AUTO_TEST_CASE(who_cannot_be_the_owner_does_it_itself_where_there_is_none) {
  server s;
  together all{s};
  via one{all, all.add(asking())};
  via other{all, all.add(asking())};
  BOOST_TEST(!enqueue(one, 1));
  BOOST_TEST(!enqueue(other, 2));
  BOOST_TEST(one(acquire("key", "a")).value().granted);
  BOOST_TEST(!other(acquire("key", "b")).value().granted);
  stranger who{s};
  BOOST_TEST(owner_of(who, "").empty());
  BOOST_TEST(owner_of(who, "key").empty());
  BOOST_TEST(writers(who).size() == 2U);
}

BOOST_AUTO_TEST_CASE(an_owner_that_ends_is_replaced_at_once) {
  server s;
  together all{s};
  via survivor{all, all.add(owning())};
  stranger who{s};
  std::string before;
  {
    together others{s};
    via owner{others, others.add(owning())};
    BOOST_TEST(!enqueue(owner, 1));
    BOOST_TEST(owner(acquire("key", "first")).value().granted);
    before = owner_of(who, "key");
  }
  // Nobody answers, and nothing is waited for but the server's word that it is so.
  BOOST_TEST(!survivor(acquire("key", "second")).value().granted);
  BOOST_TEST(!enqueue(survivor, 10));
  BOOST_TEST(survivor(command::read_queue_stats{"queue"}).value().pending == 2U);
  BOOST_TEST(owner_of(who, "key") != before);
}

BOOST_AUTO_TEST_CASE(a_program_that_is_started_has_no_connection_that_is_being_made) {
  auto const before = server_test::inherited();
  boost::asio::io_context io;
  auto o = owning();
  o.offline_patience = 100ms;
  nats_store const store{io.get_executor(), "nats://127.0.0.1:1", o};
  store.async_run(boost::asio::detached);
  bool ended = false;
  store.async_execute(command::inspect_lock{"key"}, [&](error_code, auto const&) { ended = true; });
  int most = before;
  BOOST_TEST_REQUIRE(happens(io, [&] {
    most = std::max(most, server_test::inherited());
    return ended;
  }));
  BOOST_TEST(most == before);
}

BOOST_AUTO_TEST_CASE(an_owner_that_ends_is_replaced_though_a_child_has_its_connection) {
  server s;
  together all{s};
  via survivor{all, all.add(owning())};
  BOOST_TEST(survivor(command::inspect_lock{"elsewhere"}).has_value());
  auto const before = server_test::inherited();
  ::pid_t child = 0;
  {
    together others{s};
    via owner{others, others.add(owning())};
    BOOST_TEST(!enqueue(owner, 1));
    BOOST_TEST(server_test::inherited() == before);
    child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) ::pause();
    }
    BOOST_TEST_REQUIRE(child > 0);
  }
  BOOST_TEST(!enqueue(survivor, 2));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

BOOST_AUTO_TEST_CASE(an_owner_that_says_nothing_is_replaced_and_then_asks) {
  server s;
  auto o = owning();
  o.owner_patience = 200ms;
  stoppable old{s, o};
  BOOST_TEST(!enqueue(old.it, 1));
  BOOST_TEST(old.it(acquire("key", "first")).value().granted);
  auto const q = quota::per_hour(10);
  BOOST_TEST(old.it(one_token("key", q)).value().allowed);
  stranger who{s};
  auto const before = owner_of(who, "key");

  together all{s};
  via next{all, all.add(o)};
  // It may have taken it, for all that is known: that is not asked for twice.
  BOOST_TEST(is_error(next(one_token("key", q)), errc::outcome_unknown));
  BOOST_TEST(!next(acquire("key", "second")).value().granted);
  BOOST_TEST((enqueue(next, 2) == errc::outcome_unknown));
  BOOST_TEST(!enqueue(next, 2));
  BOOST_TEST(owner_of(who, "key") != before);
  BOOST_TEST(next(command::release_permit{"key", "first", 0}).value().freed);

  // It does not execute any more what it was asked while it stood still.
  old.go_on();
  BOOST_TEST(next(command::inspect_permits{"key", 0}).value().in_use == 0U);
  BOOST_TEST(next(command::peek_bucket{"key", {&q, 1}}).value().remaining == 9U);
  BOOST_TEST(next(command::read_queue_stats{"queue"}).value().pending == 2U);
}

BOOST_AUTO_TEST_CASE(two_that_both_believe_to_be_the_owner_do_no_harm) {
  server s{{}, deaf_to_owners};
  stoppable old{at(s, "deaf:deaf@"), owning()};
  auto const q = quota::per_hour(100);
  BOOST_TEST(old.it(one_token("key", q)).value().allowed);
  BOOST_TEST(!enqueue(old.it, 1));
  stranger who{s};
  // Somebody takes its place behind its back.
  who.publish(names.owner(part_of("key")), "none");
  who.publish(names.owner(part_of("")), "none");
  together all{s};
  via next{all, all.add(owning())};
  std::uint64_t last = 0;
  for (std::uint64_t n = 0; n != 10; ++n) {
    auto const mine = next(acquire("key", "next" + std::to_string(n), 100)).value();
    BOOST_TEST(mine.fence > last);
    last = mine.fence;
    BOOST_TEST(!enqueue(next, 100 + n));
    if (n > 2) continue;  // later it asks the other one, which does not run then
    auto const its = ask(old.it.io, old.it.store, acquire("key", "old" + std::to_string(n), 100));
    BOOST_TEST_REQUIRE(its.has_value());
    BOOST_TEST(its->fence > last);
    last = its->fence;
  }
  BOOST_TEST(next(command::inspect_permits{"key", 0}).value().in_use == 13U);
  BOOST_TEST(next(command::read_queue_stats{"queue"}).value().pending == 11U);
}

// The context of an owner's handlers may do anything, if the store has another one.
BOOST_AUTO_TEST_CASE(an_owner_with_a_thread_of_its_own_answers_while_handlers_block) {
  server s;
  together all{s};
  via other{all, all.add(asking())};
  boost::asio::thread_pool own{1};
  boost::asio::io_context handlers;
  nats_store const owner{own.get_executor(), s.address(), owning()};
  owner.async_run([](error_code) {});
  bool done = false;
  owner.async_execute(
      command::inspect_lock{"key"},
      boost::asio::bind_executor(handlers.get_executor(),
                                 [&](error_code, lock_info const&) { done = true; }));
  BOOST_TEST_REQUIRE(happens(handlers, [&] { return done; }));
  // Nobody runs its handlers from here on.
  stranger who{s};
  auto const before = owner_of(who, "key");
  BOOST_TEST(other(acquire("key", "me")).value().granted);
  BOOST_TEST(other(command::inspect_permits{"key", 1}).value().in_use == 1U);
  BOOST_TEST(owner_of(who, "key") == before);
  owner.close();
  own.join();
}

BOOST_AUTO_TEST_CASE(an_owner_that_was_asked_nothing_for_long_is_no_dead_one) {
  server s;
  auto o = owning();
  o.owner_patience = 2s;
  stoppable owner{s, o};
  auto const q = quota::per_hour(10);
  BOOST_TEST(owner.it(one_token("key", q)).value().allowed);
  stranger who{s};
  auto const before = owner_of(who, "key");
  together all{s};
  auto const other = all.add(o);
  for (std::uint64_t left = 8; left != 6; --left) {
    std::optional<decision> got;
    other.async_execute(one_token("key", q), [&](error_code ec, decision const& d) {
      if (!ec) got = d;
    });
    all.io.restart();
    all.io.run_for(700ms);  // it says nothing for a while, and then that it is there
    BOOST_TEST_REQUIRE(happens(all.io, [&] {
      owner.go_on();
      return got.has_value();
    }));
    BOOST_TEST(got->remaining == left);
    all.io.restart();
    all.io.run_for(2100ms);
  }
  BOOST_TEST(owner_of(who, "key") == before);
}

BOOST_AUTO_TEST_CASE(a_server_that_is_restarted_leaves_nobody_waiting) {
  server s;
  together all{s};
  via owner{all, all.add(owning())};
  via other{all, all.add(owning())};
  via third{all, all.add(asking())};
  auto const q = quota::per_hour(1000);
  BOOST_TEST(owner(one_token("key", q)).value().allowed);
  for (int round = 0; round != 5; ++round) {
    BOOST_TEST(happens([&] { return other(command::peek_bucket{"key", {&q, 1}}).has_value(); }));
    int ended = 0;
    int wrong = 0;
    constexpr int each = 50;
    for (int i = 0; i != each; ++i) {
      for (auto const& one : {other.store, third.store}) {
        one.async_execute(one_token("key", q), [&](error_code ec, decision const&) {
          ++ended;
          wrong += ec && ec != errc::outcome_unknown && ec != errc::store_unavailable ? 1 : 0;
        });
      }
    }
    all.io.restart();
    for (int i = 0; i != 3 * round; ++i) all.io.poll_one();
    s.kill();
    s.start();
    BOOST_TEST(happens(all.io, [&] { return ended == 2 * each; }), ended);
    BOOST_TEST(wrong == 0);
  }
}

BOOST_AUTO_TEST_CASE(an_owner_whose_connection_ends_leaves_nobody_waiting) {
  server s;
  together all{s};
  testing::fault_proxy const proxy{all.io.get_executor(),
                                   {boost::asio::ip::address_v4::loopback(), s.port()}};
  nats_store const owner{all.io.get_executor(),
                         "nats://127.0.0.1:" + std::to_string(proxy.endpoint().port()), owning()};
  owner.async_run(boost::asio::detached);
  via other{all, all.add(asking())};
  auto const q = quota::per_hour(1000);
  std::uint64_t told = 0;
  for (int round = 0; round != 20; ++round) {
    // The owner is there again, and is asked.
    BOOST_TEST_REQUIRE(
        happens([&] { return ask(all.io, owner, one_token("key", q)).has_value(); }));
    BOOST_TEST_REQUIRE(other(command::peek_bucket{"key", {&q, 1}}).has_value());
    ++told;
    int ended = 0;
    int wrong = 0;
    constexpr int each = 20;
    for (int i = 0; i != each; ++i) {
      other.store.async_execute(one_token("key", q), [&](error_code ec, decision const&) {
        ++ended;
        told += ec ? 0U : 1U;
        wrong += ec && ec != errc::outcome_unknown ? 1 : 0;
      });
      other.store.async_execute(command::inspect_lock{"key"}, [&](error_code ec, auto const&) {
        ++ended;
        wrong += ec ? 1 : 0;
      });
    }
    all.io.restart();
    for (int i = 0; i != 4 * round; ++i) all.io.poll_one();
    proxy.async_cut_all(testing::proxy_ending::reset);
    BOOST_TEST_REQUIRE(happens(all.io, [&] { return ended == 2 * each; }), ended);
    BOOST_TEST(wrong == 0);
  }
  auto const left = other(command::peek_bucket{"key", {&q, 1}}).value().remaining;
  BOOST_TEST(left <= 1000U - told);
  owner.close();
  proxy.async_close();
}

BOOST_AUTO_TEST_CASE(F81_an_owner_whose_connection_ends_takes_its_place_again) {
  server s;
  together all{s};
  testing::fault_proxy const proxy{all.io.get_executor(),
                                   {boost::asio::ip::address_v4::loopback(), s.port()}};
  nats_store const owner{all.io.get_executor(),
                         "nats://127.0.0.1:" + std::to_string(proxy.endpoint().port()), owning()};
  owner.async_run(boost::asio::detached);
  auto const on = [&](auto const& c) { return ask(all.io, owner, c); };
  BOOST_TEST(!enqueue(on, 1));
  stranger who{s};
  auto const before = owner_of(who, "");
  proxy.async_cut_all(testing::proxy_ending::reset);
  // Nothing is asked for.
  BOOST_TEST(happens(all.io, [&] { return owner_of(who, "") != before; }));
  owner.close();
  proxy.async_close();
}

BOOST_AUTO_TEST_CASE(R7_a_callers_patience_holds_with_an_owner_that_says_nothing) {
  server s;
  stoppable owner{s, owning()};
  BOOST_TEST(owner.it(acquire("key", "me")).value().granted);
  together all{s};
  auto const store = all.add(owning());
  BOOST_TEST(ask(all.io, store, command::inspect_lock{"elsewhere"}).has_value());
  via brief{all, store.with_patience(50ms)};
  BOOST_TEST(is_error(brief(acquire("key", "other")), errc::outcome_unknown));
}

BOOST_AUTO_TEST_CASE(who_has_other_shards_is_told_so_and_asks_nobody) {
  server s;
  together all{s};
  auto o = owning();
  o.shards = 4;
  via owner{all, all.add(o)};
  std::set<std::uint32_t> owned;
  for (std::uint64_t n = 1; owned.size() != 4; ++n) {
    auto const queue = "queue" + std::to_string(n);
    auto const j = job_of(n);
    BOOST_TEST(owner(command::enqueue_jobs{queue, {&j, 1}}).has_value());
    owned.insert(rule::shard_of(queue, 4));
  }
  for (std::uint32_t const shards : {1U, 2U}) {
    o.shards = shards;
    via other{all, all.add(o)};
    for (int i = 1; i != 9; ++i) {
      auto const j = job_of(100);
      auto const got = other(command::enqueue_jobs{"queue" + std::to_string(i), {&j, 1}});
      BOOST_TEST(is_error(got, errc::invalid_option));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_mistake_of_an_asker_is_not_the_owners) {
  server s;
  together all{s};
  via owner{all, all.add(owning())};
  via other{all, all.add(owning())};
  BOOST_TEST(!enqueue(owner, 1));
  stranger who{s};
  auto const before = owner_of(who, "");
  for (int i = 0; i != 3; ++i) {
    auto const page = other(command::list_jobs{"queue", job_state::pending, 10, "no cursor"});
    BOOST_TEST(is_error(page, errc::invalid_option));
    BOOST_TEST(!enqueue(other, 2 + static_cast<std::uint64_t>(i)));
  }
  BOOST_TEST(owner_of(who, "") == before);
  BOOST_TEST(writers(who).size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_answer_may_be_larger_than_a_message) {
  server s;
  together all{s};
  via owner{all, all.add(owning())};
  via other{all, all.add(asking())};
  BOOST_TEST(!enqueue(owner, 1));
  std::string const large(100'000, 'x');
  for (std::uint64_t n = 2; n != 42; ++n) BOOST_TEST(!enqueue(other, n, large));
  auto const got = dequeue(other, 1, 100);  // four times as much as a message has
  BOOST_TEST_REQUIRE(got.jobs.size() == 41U);
  for (std::size_t i = 1; i != got.jobs.size(); ++i) BOOST_TEST(got.jobs[i].payload == large);
}

BOOST_AUTO_TEST_CASE(F60_what_waits_for_room_for_its_answer_holds_up_nothing_else) {
  server s;
  together all{s};
  via one{all, all.add(asking())};
  BOOST_TEST(one(command::inspect_lock{"elsewhere"}).has_value());  // there is a stream
  stranger who{s};
  claim_for(who, "", "mute");
  who.overhear_one(names.questions("mute"));
  auto const ignored = [](error_code, auto const&) {};
  for (int i = 0; i != 20; ++i) {  // whose answers may be 80 MiB
    one.store.async_execute(command::peek_jobs{"large", 100}, ignored);
  }
  one.store.async_execute(command::read_queue_stats{"small"}, ignored);
  BOOST_TEST(happens(all.io, [&] { return who.heard().find("small") != std::string::npos; }));
}

// Otherwise other parts would always be faster where one has as many questions open as it may.
BOOST_AUTO_TEST_CASE(F60_a_large_answer_is_asked_for_however_many_questions_are_open) {
  server s;
  together all{s};
  auto o = asking();
  o.owner_patience = 1h;
  via one{all, all.add(o)};
  BOOST_TEST(one(command::inspect_lock{"elsewhere"}).has_value());  // there is a stream
  stranger who{s};
  claim_for(who, "", "mute");
  who.overhear_one(names.questions("mute"));
  auto const asks = [&](auto const& c) {
    one.store.async_execute(c, [](error_code, auto const&) {});
    return happens(all.io, [&] { return who.heard().find(c.queue) != std::string::npos; });
  };
  for (int i = 0; i != 8; ++i) BOOST_TEST_REQUIRE(asks(command::read_queue_stats{"small"}));
  BOOST_TEST(asks(command::peek_jobs{"large", 100}));
}

BOOST_AUTO_TEST_CASE(F60_the_answers_of_all_shards_that_may_come_together_are_bounded) {
  server s;
  refused_everywhere r{s};
  for (auto const& [n, queue] : r.queues) r.ask(command::peek_jobs{queue, 100});
  BOOST_TEST(r.one(command::inspect_lock{"elsewhere"}).has_value());  // and it has asked
  auto const asked = static_cast<std::size_t>(r.who.answer_what_was_asked("queue"));
  BOOST_TEST(asked > 10U);
  BOOST_TEST(asked * limits::answer_bytes <= 64U << 20U);
  BOOST_TEST(r.all_end(std::size_t{2} * r.shards));
}

// Of all other shards each asks for small answers all the time, and one answer comes at a time.
BOOST_AUTO_TEST_CASE(F60_a_large_answer_is_not_passed_by_small_ones_for_ever) {
  server s;
  refused_everywhere r{s};
  std::string const& large = r.queues.begin()->second;
  int answers = 0;
  std::function<void(std::string const&)> const ask = [&](std::string const& queue) {
    r.one.store.async_execute(command::peek_jobs{queue, 1}, [&](error_code ec, auto const&) {
      ++answers;
      if (ec == errc::store_full) ask(queue);
    });
  };
  for (auto const& [n, queue] : r.queues) {
    if (queue != large) ask(queue);
  }
  BOOST_TEST(r.one(command::inspect_lock{"elsewhere"}).has_value());  // and it has asked
  r.ask(command::peek_jobs{large, 100});
  std::deque<std::string> open;
  int said = 0;
  bool asked = false;
  for (int i = 1; i <= 2 * static_cast<int>(r.shards) && !asked; ++i) {
    BOOST_TEST_REQUIRE(happens(r.all.io, [&] {
      for (auto const& [to, question] : r.who.questions()) {
        asked = asked || question.find(large) != question.npos;
        if (r.asks(question)) {
          open.push_back(to);
        } else {
          r.who.say(to, detail::nats_answer_piece(detail::nats_piece::alive, 0));
        }
      }
      if (said < i && !open.empty()) {
        r.who.say(detail::take_first(open), r.refusal);
        said = i;
      }
      return answers == i;
    }));
  }
  BOOST_TEST(asked);
}

BOOST_AUTO_TEST_CASE(F60_an_owner_that_is_mute_holds_up_no_large_answers_of_others) {
  server s;
  constexpr std::uint32_t many = 48;
  refused_everywhere r{s, many};
  stranger mute{s};
  mute.answer(names.questions("mute"), {});
  for (auto const& [n, queue] : r.queues) {
    if (n >= r.shards - many) r.ask(command::peek_jobs{queue, 100});
  }
  using room = detail::nats_answer_room;
  std::size_t asked = 0;
  BOOST_TEST_REQUIRE(happens(r.all.io, [&] {
    for (auto const& [to, question] : mute.questions()) asked += r.asks(question) ? 1 : 0;
    return (asked + 1) * limits::answer_bytes > room::most - room::kept;
  }));
  for (auto const& [n, queue] : r.queues) {
    if (n < r.shards - many) r.ask(command::peek_jobs{queue, 100});
  }
  BOOST_TEST(r.all_end(std::size_t{2} * (r.shards - many)));
}

BOOST_AUTO_TEST_CASE(what_fits_into_the_log_fits_into_a_question) {
  server s;
  together all{s};
  via owner{all, all.add(owning())};
  via other{all, all.add(asking())};
  BOOST_TEST(!enqueue(owner, 1));
  std::size_t fits = 0;
  std::size_t most = (1U << 20U) + 1;
  while (fits + 1 < most) {
    auto const size = (fits + most) / 2;
    auto const ec = enqueue(owner, size, std::string(size, 'x'));
    if (ec) BOOST_TEST((ec == errc::payload_too_large), ec.message());
    (ec ? most : fits) = size;
  }
  BOOST_TEST(fits > 1'000'000U);
  auto j = job_of(fits);
  BOOST_TEST(other(command::purge_job{"queue", j.id}).has_value());
  BOOST_TEST(!enqueue(other, fits + 10'000'000, std::string(fits, 'x')));
  BOOST_TEST((enqueue(other, 99, std::string(most, 'x')) == errc::payload_too_large));
  stranger who{s};
  // A command that fits into no question fits into no log either, which is not read for it.
  who.overhear_one("$JS.API.*.*.weir-jobs-0");
  BOOST_TEST((enqueue(other, 99, std::string(1U << 20U, 'x')) == errc::payload_too_large));
  BOOST_TEST(who.heard().empty());
  BOOST_TEST(writers(who).size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_owner_that_is_gone_takes_none_of_its_questions_along) {
  server s;
  together all{s};
  via one{all, all.add(owning())};
  BOOST_TEST(one(command::inspect_lock{"elsewhere"}).has_value());  // there is a stream
  stranger who{s};
  claim_for(who, "", "nobody");
  std::string const large(200'000, 'x');  // a question each
  constexpr int many = 4;
  int ended = 0;
  for (std::uint64_t n = 1; n <= many; ++n) {
    auto const j = job_of(n, large);
    one.store.async_execute(command::enqueue_jobs{"queue", {&j, 1}},
                            [&](error_code ec, auto const&) {
                              BOOST_TEST(!ec, ec.message());
                              ++ended;
                            });
  }
  BOOST_TEST(happens(all.io, [&] { return ended == many; }));
}

BOOST_AUTO_TEST_CASE(F82_an_owner_of_another_version_is_not_asked) {
  for (auto const version : {1U, detail::nats_wire_version, detail::nats_wire_version + 1}) {
    server s;
    together all{s};
    via one{all, all.add(owning())};
    BOOST_TEST(one(command::inspect_lock{"elsewhere"}).has_value());  // there is a stream
    stranger who{s};
    claim_for(who, "key", "strange");
    who.answer(names.questions("strange"),
               detail::nats_answer_piece(detail::nats_piece::unknown, 0, version));
    std::optional<permit_grant> got;
    one.store.async_execute(acquire("key", "me"), [&](error_code ec, permit_grant g) {
      if (!ec) got = g;
    });
    BOOST_TEST_REQUIRE(happens(all.io, [&] {
      who.answer_what_was_asked();
      return got.has_value();
    }));
    BOOST_TEST(got->granted);
    BOOST_TEST(owner_of(who, "key") == "strange");  // and it stays the owner
  }
}

BOOST_AUTO_TEST_CASE(F82_an_owner_that_does_not_know_a_new_command_is_asked_for_others) {
  server s;
  together all{s};
  via one{all, all.add(asking())};
  BOOST_TEST(one(command::inspect_lock{"elsewhere"}).has_value());  // there is a stream
  stranger who{s};
  claim_for(who, "", "strange");
  std::string unknown = detail::nats_answer_piece(detail::nats_piece::unknown, 0);
  detail::compact_writer{unknown}(std::size_t{0});  // the first command of the question
  who.answer(names.questions("strange"), unknown);
  auto const asked = [&](auto const& c) {
    bool ended = false;
    int questions = 0;
    one.store.async_execute(c, [&](error_code ec, auto const&) {
      BOOST_TEST(!ec, ec.message());
      ended = true;
    });
    BOOST_TEST_REQUIRE(happens(all.io, [&] {
      questions += who.answer_what_was_asked("queue");
      return ended;
    }));
    return questions;
  };
  BOOST_TEST(asked(command::pause_queue{"queue"}) == 1);
  BOOST_TEST(asked(command::pause_queue{"queue"}) == 1);
  who.answer(names.questions("strange"), detail::nats_answer_piece(detail::nats_piece::unknown, 0));
  BOOST_TEST(asked(command::pause_queue{"queue"}) == 1);  // it understands nothing
  BOOST_TEST(asked(command::pause_queue{"queue"}) == 0);
}

// Others may know that version.
BOOST_AUTO_TEST_CASE(F82_who_cannot_read_a_log_of_a_later_version_leaves_it_to_others) {
  server s;
  together all{s};
  via owner{all, all.add(owning())};
  BOOST_TEST(!enqueue(owner, 1));
  stranger who{s};
  BOOST_TEST(!owner_of(who, "").empty());
  who.publish("weir.j.0", later_message("anything"));
  BOOST_TEST(happens(all.io, [&] {  // its own commands show it
    (void)owner(command::read_queue_stats{"queue"});
    return owner_of(who, "").empty();
  }));
}

BOOST_AUTO_TEST_CASE(F82_an_image_of_a_later_version_is_not_taken_for_damage) {
  server s;
  stranger who{s};
  {
    together all{s};
    via owner{all, all.add(owning())};
    BOOST_TEST(!enqueue(owner, 1));
  }
  std::string later = "weir:i5\nas it will be";
  detail::nats_writer{later}.number(detail::nats_checksum(later));
  who.publish(names.image(0, 1), later);
  (void)who.ask("$JS.API.STREAM.PURGE.weir-jobs-0", R"({"seq":2})");  // it is in that image
  together all{s};
  via other{all, all.add(owning())};
  BOOST_TEST((other(command::read_queue_stats{"queue"}).error() == errc::schema_too_new));
}

BOOST_AUTO_TEST_CASE(F82_who_asks_in_another_version_is_told_that_it_is_not_known) {
  server s;
  together all{s};
  via owner{all, all.add(owning())};
  BOOST_TEST(owner(acquire("key", "me")).value().granted);
  stranger who{s};
  who.overhear_one("weir.r.me.1");
  std::string question;
  detail::nats_begin_question(question, 1);
  detail::nats_put_command(question, command::inspect_permits{"key", 0}, std::nullopt);
  auto const answer_to = [&](std::uint32_t version) {
    question[detail::nats_question_tag.size()] = static_cast<char>(version);
    who.request(names.questions(owner_of(who, "key")), question);
    std::string heard;
    constexpr std::string_view tag = "weir:a";
    BOOST_TEST_REQUIRE(happens(all.io, [&] {
      heard += who.heard();
      return heard.find(tag) != heard.npos;
    }));
    return static_cast<detail::nats_piece>(heard.at(heard.find(tag) + tag.size() + 1));
  };
  BOOST_TEST((answer_to(detail::nats_wire_version) == detail::nats_piece::whole));
  BOOST_TEST((answer_to(detail::nats_wire_version + 1) == detail::nats_piece::unknown));
  BOOST_TEST((answer_to(1) == detail::nats_piece::unknown));
}

BOOST_AUTO_TEST_CASE(F90_what_a_strange_owner_answers_is_no_answer) {
  auto const piece = [](detail::nats_piece what, std::uint32_t number, std::string_view rest) {
    return detail::nats_answer_piece(what, number) += rest;
  };
  using enum detail::nats_piece;
  std::string huge;
  detail::compact_writer{huge}(std::uint64_t{1} << 62U);
  std::string error_of_nothing;
  detail::nats_put_answer(error_of_nothing, 7, make_error_code(errc::closed), hint{});
  std::string short_answer;
  detail::nats_put_answer(short_answer, 0, {}, hint{});
  for (auto const& said : {std::string{}, std::string{"weir:a"}, std::string{"weir:b\x01\x01\x00"},
                           piece(whole, 1, {}), piece(whole, 0, "\xff\xff"), piece(whole, 0, huge),
                           piece(whole, 0, error_of_nothing), piece(whole, 0, short_answer),
                           piece(part, 3, "x"), std::string(100'000, '\xff')}) {
    server s;
    together all{s};
    via one{all, all.add(owning())};
    BOOST_TEST(one(command::inspect_lock{"elsewhere"}).has_value());
    stranger who{s};
    claim_for(who, "key", "strange");
    who.answer(names.questions("strange"), said);
    auto const q = quota::per_hour(10);
    std::optional<error_code> told;
    one.store.async_execute(one_token("key", q),
                            [&](error_code ec, decision const&) { told = ec; });
    BOOST_TEST_REQUIRE(happens(all.io, [&] {
      who.answer_what_was_asked();
      return told.has_value();
    }));
    BOOST_TEST((*told == errc::outcome_unknown), told->message());
  }
}

BOOST_AUTO_TEST_CASE(F90_what_an_owner_cannot_read_it_does_not_do) {
  server s;
  together all{s};
  via owner{all, all.add(owning())};
  BOOST_TEST(owner(acquire("key", "me")).value().granted);
  stranger who{s};
  auto const subject = names.questions(owner_of(who, "key"));
  who.overhear_one("weir.r.me.1");
  std::string begin;
  detail::nats_begin_question(begin, 1);
  std::string other_shards;
  detail::nats_begin_question(other_shards, 2);
  std::string release;
  detail::nats_put_command(release, command::release_permit{"key", "me", 0}, std::nullopt);
  std::string invalid;
  detail::nats_put_command(invalid, command::release_permit{"", "me", 0}, std::nullopt);
  std::string jobs;
  detail::nats_put_command(jobs, command::pause_queue{"queue"}, std::nullopt);
  for (auto const& said : {std::string{"weir:q"}, "nonsense" + release, begin + "\xff" + release,
                           begin + std::string(3, '\0') + release, begin + "\x81\x01" + release,
                           begin + invalid + release, begin + jobs + release,
                           other_shards + release, std::string(1000, '\xff')}) {
    who.request(subject, said);
    BOOST_TEST(happens(all.io, [&] { return who.heard().find("weir:a") != std::string::npos; }));
    BOOST_TEST(owner(command::inspect_permits{"key", 0}).value().in_use == 1U);
  }
  // And nothing is published where anything is kept.
  who.request(subject, begin + release, "weir.k.p.key");
  who.request(subject, begin + release, "weir.r.me.1");
  BOOST_TEST(happens(all.io, [&] { return who.heard().find("weir:a") != std::string::npos; }));
  BOOST_TEST(owner(command::inspect_permits{"key", 0}).value().in_use == 0U);
}

BOOST_AUTO_TEST_CASE(F38_who_waits_elsewhere_is_told_by_the_owner) {
  server s;
  together all{s};
  via owner{all, all.add(owning())};
  via other{all, all.add(asking())};
  via third{all, all.add(asking())};
  BOOST_TEST(!enqueue(owner, 1));
  complete(owner, dequeue(owner, 1).jobs.at(0));
  int hints = 0;
  for (int i = 0; i != 2; ++i) {
    other.store.async_execute(command::await_jobs{},
                              [&](error_code ec, hint) { hints += ec ? 0 : 1; });
  }
  BOOST_TEST(third(command::read_queue_stats{"queue"}).value().pending == 0U);
  all.io.restart();
  all.io.run_for(50ms);
  BOOST_TEST(hints == 0);
  BOOST_TEST(!enqueue(third, 2));
  BOOST_TEST(happens(all.io, [&] { return hints != 0; }));
  // And of a permit that is freed.
  auto const first = owner(acquire("key", "first")).value();
  command::acquire_permit in_line{"key", "second", 1, lasting, lasting};
  BOOST_TEST(!other(in_line).value().granted);
  bool told = false;
  other.store.async_execute(command::await_permit{"key", "second"},
                            [&](error_code ec, hint) { told = !ec; });
  all.io.restart();
  all.io.run_for(50ms);
  BOOST_TEST(!told);
  BOOST_TEST(third(command::release_permit{"key", "first", first.fence}).value().freed);
  BOOST_TEST(happens(all.io, [&] { return told; }));
  BOOST_TEST(other(in_line).value().granted);
}

BOOST_AUTO_TEST_CASE(F38_who_waits_where_nobody_owns_is_told_once_somebody_does) {
  server s;
  together all{s};
  via other{all, all.add(asking())};
  BOOST_TEST(other(acquire("key", "first")).value().granted);
  command::acquire_permit const in_line{"key", "second", 1, lasting, lasting};
  BOOST_TEST(!other(in_line).value().granted);
  bool told = false;
  other.store.async_execute(command::await_permit{"key", "second"},
                            [&](error_code ec, hint) { told = !ec; });
  via owner{all, all.add(owning())};
  BOOST_TEST(owner(command::inspect_permits{"key", 1}).has_value());
  BOOST_TEST(happens(all.io, [&] {  // so that it waits at the owner, who hears of what is freed
    (void)other(command::inspect_lock{"key"});
    return told;
  }));
}

BOOST_AUTO_TEST_CASE(F67_many_waiters_of_many_processes_all_get_their_turn) {
  server s;
  together all{s};
  std::vector<nats_store> stores;
  for (int i = 0; i != 4; ++i) stores.push_back(all.add(owning()));
  int granted = 0;
  int held = 0;
  int most = 0;
  int done = 0;
  auto const hold = [&](nats_store const& store) -> boost::asio::awaitable<void> {
    limiter l{store, {.limit = 10}};
    auto permit = co_await l.async_acquire("crowd");
    ++granted;
    most = std::max(most, ++held);
    co_await boost::asio::post(boost::asio::use_awaitable);
    --held;
    ++done;
  };
  constexpr int each = 250;
  for (auto const& store : stores) {
    for (int i = 0; i != each; ++i) {
      boost::asio::co_spawn(all.io, hold(store), boost::asio::detached);
    }
  }
  BOOST_TEST(happens(all.io, [&] { return done == 4 * each; }), granted);
  BOOST_TEST(most <= 10);
}

BOOST_AUTO_TEST_CASE(R7_what_is_asked_ends_when_the_context_does) {
  server s;
  together all{s};
  via owner{all, all.add(owning())};
  BOOST_TEST(owner(command::inspect_lock{"key"}).has_value());
  BOOST_TEST(!enqueue(owner, 1));
  for (int round = 0; round != 10; ++round) {
    auto io = std::make_unique<boost::asio::io_context>();
    auto const kept = std::make_shared<int>(1);
    std::optional<nats_store> store{std::in_place, io->get_executor(), s.address(), asking()};
    store->async_run([kept](error_code) {});
    if (round % 2 == 0) {
      std::optional<error_code> ended;
      store->async_execute(command::inspect_lock{"key"},
                           [&](error_code ec, lock_info const&) { ended = ec; });
      BOOST_TEST_REQUIRE(happens(*io, [&] {
        all.io.restart();
        all.io.poll();
        return ended.has_value();
      }));
    }
    for (int i = 0; i != 50; ++i) {
      store->async_execute(command::inspect_lock{"key"}, [kept](error_code, lock_info const&) {});
    }
    store->async_execute(command::await_permit{"key", "me"}, [kept](error_code, hint) {});
    store->async_execute(command::read_queue_stats{"queue"}, [kept](error_code, auto) {});
    store->async_execute(command::await_jobs{}, [kept](error_code, hint) {});
    for (int i = 0; i != round; ++i) io->poll_one();
    store.reset();
    io.reset();
    BOOST_TEST(kept.use_count() == 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
