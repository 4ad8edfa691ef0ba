// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The register of workers: what stands there, for how long, and what it costs the others.

#include "weir/registered_worker.hpp"
#include "weir/scheduler.hpp"
#include "weir/testing/faulty_store.hpp"
#include "worker_fixture.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

using namespace test;
using kind = weir::worker_event_kind;

namespace test {

/// A job with limits whose keys are known, and one whose keys are its own.
struct bounded {
  int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(bounded, number)
struct keyed {
  std::string tenant;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(keyed, tenant)
struct generic {
  std::string tenant;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(generic, tenant)

}  // namespace test

namespace {

struct register_fixture : worker_fixture {
  asio::awaitable<void> sleep(weir::duration d) {
    co_await clock.async_wait_until(co_await asio::this_coro::executor, clock.steady_now() + d,
                                    asio::use_awaitable);
  }
  std::vector<weir::registered_worker> registered() {
    std::vector<weir::registered_worker> out;
    auto const queue = std::string{weir::workers_queue};
    for (auto const state : {weir::job_state::pending, weir::job_state::leased}) {
      for (auto const& j : ask(weir::command::list_jobs{.queue = queue, .state = state}).jobs) {
        out.push_back(weir::registered_worker_of(j));
      }
    }
    return out;
  }
  void remove_record() {
    ask(weir::command::cancel_job{
        .queue = weir::workers_queue,
        .id = ask(weir::command::list_jobs{.queue = weir::workers_queue}).jobs.at(0).id});
  }
  /// A record as a worker leaves it that dies now.
  weir::job_id leave_record() {
    weir::new_job record;
    record.id = ids.job();
    record.kind = weir::worker_kind;
    record.payload = "4:name,4:gone,";
    record.delay = 1h;
    ask(weir::command::pause_queue{.queue = weir::workers_queue});
    ask(weir::command::enqueue_jobs{weir::workers_queue, {&record, 1}});
    return record.id;
  }
  template <class Store>
  auto make_worker_on(Store on, weir::worker_options options) {
    weir::worker w{on, std::move(options), clock, weir::constant_backoff{10s},
                   weir::id_source::seeded(++workers)};
    w.on_event([this](weir::worker_event const& e) { ++events[e.kind]; });
    return w;
  }
};

}  // namespace

template <>
struct weir::job_traits<bounded> {
  static constexpr std::string_view kind = "limited";
  static constexpr std::uint32_t concurrency = 7;
  static constexpr std::string_view concurrency_key = "shared";
  static constexpr std::array rate{weir::quota::per_second(5),
                                   weir::quota::per_minute(100).burst(30)};
};
template <>
struct weir::job_traits<keyed> {
  static constexpr std::string_view kind = "keyed";
  static constexpr std::uint32_t concurrency = 2;
  static std::string concurrency_key(keyed const& k) { return k.tenant; }
  static constexpr weir::quota rate = weir::quota::per_hour(1);
  static std::string rate_key(keyed const& k) { return k.tenant; }
  static std::uint64_t rate_cost(keyed const& k) { return k.tenant.size(); }
};
template <>
struct weir::job_traits<generic> {
  static constexpr std::string_view kind = "generic";
  static constexpr std::uint32_t concurrency = 2;
  static std::string concurrency_key(auto const& k) { return k.tenant; }
  static constexpr weir::quota rate = weir::quota::per_hour(5);
  static std::string rate_key(auto const& k) { return k.tenant; }
  static constexpr std::uint64_t rate_cost = 5;
};

BOOST_FIXTURE_TEST_SUITE(worker_register, register_fixture)

BOOST_AUTO_TEST_CASE(a_worker_with_a_name_stands_there_with_what_it_serves) {
  auto w = make_worker(
      {.concurrency = 3,
       .queues = {{.name = "mail", .weight = 3, .concurrency = 2}, {.prefix = "tenant/"}},
       .shards = {0},
       .name = "mailer \n\xff on host 1"});
  w.handle<note>([](note const&) {});
  w.handle<bounded>([](bounded const&) {});
  w.handle<keyed>([](keyed const&) {});
  w.handle<generic>([](generic const&) {});
  start(w);
  auto const all = registered();
  BOOST_TEST_REQUIRE(all.size() == 1U);
  auto const& one = all.front();
  BOOST_TEST(one.name == "mailer \n\xff on host 1");
  BOOST_TEST(one.holder.size() == 26U);
  BOOST_TEST((one.seen == 0s));
  BOOST_TEST((one.up == 0s));
  BOOST_TEST(one.seems_alive());
  BOOST_TEST(!one.stopping);
  BOOST_TEST(one.is_whole);
  BOOST_TEST(one.concurrency == 3U);
  BOOST_TEST(one.busy == 0U);
  BOOST_TEST(one.jobs.empty());
  BOOST_TEST_REQUIRE(one.queues.size() == 2U);
  BOOST_TEST(one.queues[0].name == "mail");
  BOOST_TEST(one.queues[0].prefix.empty());
  BOOST_TEST(one.queues[0].weight == 3U);
  BOOST_TEST(one.queues[0].concurrency == 2U);
  BOOST_TEST(one.queues[1].name.empty());
  BOOST_TEST(one.queues[1].prefix == "tenant/");
  BOOST_TEST((one.shards == std::vector<std::uint32_t>{0}));
  BOOST_TEST_REQUIRE(one.kinds.size() == 4U);
  BOOST_TEST_REQUIRE(one.find_kind("limited") != nullptr);
  auto const& l = *one.find_kind("limited");
  BOOST_TEST(l.concurrency == 7U);
  BOOST_TEST(l.concurrency_key == "shared");
  BOOST_TEST_REQUIRE(l.rate.size() == 2U);
  BOOST_TEST((l.rate[0] == weir::quota::per_second(5)));
  BOOST_TEST((l.rate[1] == weir::quota::per_minute(100).burst(30)));
  BOOST_TEST(l.rate_key == "limited");
  BOOST_TEST(l.rate_cost == 1U);
  BOOST_TEST_REQUIRE(one.find_kind("keyed") != nullptr);
  auto const& k = *one.find_kind("keyed");
  BOOST_TEST(k.concurrency == 2U);
  BOOST_TEST(k.concurrency_key.empty());
  BOOST_TEST(k.rate_key.empty());
  BOOST_TEST(k.rate_cost == 0U);
  BOOST_TEST_REQUIRE(one.find_kind("generic") != nullptr);
  auto const& g = *one.find_kind("generic");
  BOOST_TEST(g.concurrency_key.empty());
  BOOST_TEST(g.rate_key.empty());
  BOOST_TEST(g.rate_cost == 5U);
  BOOST_TEST_REQUIRE(one.find_kind("note") != nullptr);
  BOOST_TEST(one.find_kind("note")->concurrency == 0U);
  BOOST_TEST(one.find_kind("note")->rate.empty());
  BOOST_TEST((one.find_kind("other") == nullptr));
}

BOOST_AUTO_TEST_CASE(its_queues_and_shards_say_whether_it_serves_a_queue) {
  weir::registered_worker w;
  BOOST_TEST(w.serves("any", 1));
  w.queues = {{.name = "mail"}, {.prefix = "tenant/"}};
  BOOST_TEST(w.serves("mail", 1));
  BOOST_TEST(w.serves("tenant/9", 1));
  BOOST_TEST(!w.serves("mail2", 1));
  auto const shard = weir::rule::shard_of("tenant/9", 8);
  w.shards = {shard};
  BOOST_TEST(w.serves("tenant/9", 8));
  w.shards = {(shard + 1) % 8};
  BOOST_TEST(!w.serves("tenant/9", 8));
  BOOST_TEST(w.serves("mail", 8));
  weir::registered_worker scheduler;
  scheduler.fires_schedules = true;
  BOOST_TEST(!scheduler.serves("mail", 1));
}

BOOST_AUTO_TEST_CASE(one_without_a_name_leaves_nothing) {
  auto w = make_worker();
  start(w);
  pass(1min);
  BOOST_TEST(ask(weir::command::list_queues{}).queues.empty());
}

BOOST_AUTO_TEST_CASE(it_says_again_what_it_does_and_the_store_says_when_it_did) {
  auto w = make_worker({.name = "one"});
  w.handle<note>([&](note const&) -> asio::awaitable<void> { co_await sleep(24h); });
  start(w);
  pass(3s);
  auto const id = enqueue("note", R"({"text":"","number":1})", "mail");
  settle();
  BOOST_TEST((registered().at(0).seen == 3s));
  BOOST_TEST(registered().at(0).busy == 0U);
  pass(7s);
  auto const all = registered();
  BOOST_TEST_REQUIRE(all.size() == 1U);
  BOOST_TEST((all[0].seen == 0s));
  BOOST_TEST((all[0].up == 10s));
  BOOST_TEST(all[0].busy == 1U);
  BOOST_TEST_REQUIRE(all[0].jobs.size() == 1U);
  BOOST_TEST(all[0].jobs[0].queue == "mail");
  BOOST_TEST(all[0].jobs[0].id == id);
  BOOST_TEST(all[0].jobs[0].kind == "note");
  BOOST_TEST((all[0].jobs[0].took == 7s));
  BOOST_TEST(find(id, "mail").value().holder == all[0].holder);
  pass(1h);
  BOOST_TEST(registered().size() == 1U);
  BOOST_TEST(registered().at(0).seems_alive());
  cancel();
}

BOOST_AUTO_TEST_CASE(of_many_jobs_the_longest_running_are_listed) {
  auto w = make_worker({.concurrency = 50, .name = "one"});
  w.handle<note>([&](note const&) -> asio::awaitable<void> { co_await sleep(24h); });
  start(w);
  std::vector<weir::job_id> first;
  for (int i = 0; i != 30; ++i) {
    auto const id = enqueue("note", R"({"text":"","number":1})");
    if (i < 20) first.push_back(id);
    pass(1ms);
  }
  pass(10s);
  auto const one = registered().at(0);
  BOOST_TEST(one.busy == 30U);
  BOOST_TEST_REQUIRE(one.jobs.size() == 20U);
  for (std::size_t i = 0; i != 20; ++i) BOOST_TEST(one.jobs[i].id == first[i]);
  cancel();
}

BOOST_AUTO_TEST_CASE(it_is_seen_to_stop_and_then_gone) {
  auto w = make_worker({.drain = 10s, .name = "one"});
  w.handle<note>([&](note const&) -> asio::awaitable<void> { co_await sleep(24h); });
  start(w);
  enqueue("note", R"({"text":"","number":1})");
  settle();
  w.stop();
  settle();
  BOOST_TEST_REQUIRE(registered().size() == 1U);
  BOOST_TEST(registered()[0].stopping);
  BOOST_TEST(!ended);
  pass(10s);
  BOOST_TEST(ended.has_value());
  BOOST_TEST(registered().empty());
}

BOOST_AUTO_TEST_CASE(F84_its_words_wake_nobody_and_no_worker_ever_claims_a_record) {
  auto w = make_worker({.name = "one"});
  start(w);
  bool heard = false;
  store.async_execute(weir::command::await_jobs{},
                      [&](weir::error_code ec, weir::hint) { heard = heard || !ec; });
  pass(1min);
  BOOST_TEST(!heard);
  auto const dead = leave_record();
  pass(2h);
  auto const all = ask(weir::command::scan_visible_queues{.shard = 0});
  BOOST_TEST(all.queues.empty());
  BOOST_TEST(!heard);
  BOOST_TEST(events.empty());
  BOOST_TEST(!find(dead, std::string{weir::workers_queue}).has_value());  // it was tidied away
  cancel();
}

BOOST_AUTO_TEST_CASE(a_record_of_the_dead_stands_for_an_hour) {
  auto const dead = leave_record();
  pass(59min);
  auto w = make_worker({.name = "one"});
  start(w);
  pass(30s);
  BOOST_TEST_REQUIRE(registered().size() == 2U);
  auto const all = registered();
  auto const gone = std::ranges::find(all, std::string{"gone"}, &weir::registered_worker::name);
  BOOST_TEST_REQUIRE((gone != all.end()));
  BOOST_TEST((gone->seen == 59min + 30s));
  BOOST_TEST(!gone->seems_alive());
  pass(20min);
  BOOST_TEST(registered().size() == 1U);
  BOOST_TEST(!find(dead, std::string{weir::workers_queue}).has_value());
  cancel();
}

BOOST_AUTO_TEST_CASE(F54_answers_that_are_lost_leave_one_record) {
  weir::testing::fault_injector faults;
  auto w = make_worker_on(weir::testing::faulty_store{store, faults, clock}, {.name = "one"});
  w.async_run(asio::detached);
  settle();
  for (int i = 0; i != 3; ++i) {
    using weir::testing::fault;
    faults.next_of<weir::command::relay_job>(i == 1 ? fault::fail_before : fault::fail_after);
    pass(10s);
  }
  BOOST_TEST(events[kind::store_failed] == 3);
  for (int i = 0; i != 3; ++i) {
    pass(10s);
    BOOST_TEST_REQUIRE(registered().size() == 1U);
    BOOST_TEST((registered()[0].seen == 0s));
  }
  faults.next_of<weir::command::enqueue_jobs>(weir::testing::fault::fail_after);
  remove_record();
  pass(10s);
  BOOST_TEST_REQUIRE(registered().size() == 1U);
  pass(10s);
  BOOST_TEST_REQUIRE(registered().size() == 1U);
  BOOST_TEST((registered()[0].seen == 0s));
  w.stop();
  pass(1s);
  BOOST_TEST(registered().empty());
}

BOOST_AUTO_TEST_CASE(F54_a_long_time_of_lost_answers_leaves_one_record) {
  weir::testing::fault_injector faults;
  auto w = make_worker_on(weir::testing::faulty_store{store, faults, clock}, {.name = "one"});
  start(w);
  for (int i = 0; i != 30; ++i) {
    for (int n = 0; n != 9; ++n) {
      faults.next_of<weir::command::relay_job>(weir::testing::fault::fail_after);
    }
    pass(10s);
    BOOST_TEST_REQUIRE(registered().size() == 1U);
    BOOST_TEST((registered()[0].seen == 0s));
  }
  faults.heal();
  pass(20s);  // the first word is one that may have been said before
  BOOST_TEST_REQUIRE(registered().size() == 1U);
  BOOST_TEST((registered()[0].up == 320s));
  cancel();
  BOOST_TEST(registered().empty());
}

BOOST_AUTO_TEST_CASE(a_store_that_has_lost_all_is_given_the_pause_and_the_record_again) {
  auto w = make_worker({.name = "one"});
  start(w);
  ask(weir::command::resume_queue{weir::workers_queue});
  remove_record();
  pass(10s);
  BOOST_TEST(registered().size() == 1U);
  BOOST_TEST(stats(std::string{weir::workers_queue}).paused);
  ask(weir::command::resume_queue{weir::workers_queue});  // by somebody who should not
  pass(10min);
  BOOST_TEST(stats(std::string{weir::workers_queue}).paused);
  cancel();
}

BOOST_AUTO_TEST_CASE(each_run_has_a_record_of_its_own) {
  auto w = make_worker({.name = "one"});
  start(w);
  w.async_run(asio::detached);
  settle();
  auto const both = registered();
  BOOST_TEST_REQUIRE(both.size() == 2U);
  BOOST_TEST(both[0].holder != both[1].holder);
  w.stop();
  settle();
  BOOST_TEST(registered().empty());
}

BOOST_AUTO_TEST_CASE(a_scheduler_with_a_name_stands_there_as_such) {
  weir::scheduler s{store, {.name = "ticks"}, clock};
  s.async_run(asio::detached);
  settle();
  BOOST_TEST_REQUIRE(registered().size() == 1U);
  BOOST_TEST(registered()[0].name == "ticks");
  BOOST_TEST(registered()[0].fires_schedules);
  s.stop();
  settle();
  BOOST_TEST(registered().empty());
}

BOOST_AUTO_TEST_CASE(a_store_that_refuses_is_told_of_and_asked_again) {
  weir::testing::fault_injector faults;
  auto w = make_worker_on(weir::testing::faulty_store{store, faults, clock}, {.name = "one"});
  faults.next_of<weir::command::pause_queue>(weir::testing::fault::fail_before);
  faults.next_of<weir::command::enqueue_jobs>(weir::testing::fault::fail_before);
  w.async_run(asio::detached);
  settle();
  BOOST_TEST(registered().empty());
  BOOST_TEST(events[kind::store_failed] == 1);
  pass(10s);
  BOOST_TEST(registered().empty());
  BOOST_TEST(events[kind::store_failed] == 2);
  pass(10s);
  BOOST_TEST(registered().size() == 1U);
  w.stop();
  pass(1s);
}

BOOST_AUTO_TEST_CASE(a_worker_that_stops_waits_a_second_for_its_record_to_go) {
  weir::testing::fault_injector faults;
  auto w = make_worker_on(weir::testing::faulty_store{store, faults, clock}, {.name = "one"});
  start(w);
  faults.next_of<weir::command::relay_job>(weir::testing::fault::never);
  w.stop();
  pass(999ms);
  BOOST_TEST(!ended);
  pass(1ms);
  BOOST_TEST(ended.has_value());
}

BOOST_AUTO_TEST_CASE(a_failure_that_comes_after_the_end_is_told_to_nobody) {
  using weir::testing::fault;
  weir::testing::fault_injector faults;
  auto w = make_worker_on(weir::testing::faulty_store{store, faults, clock}, {.name = "one"});
  w.template handle<note>([&](note const&) { return sleep(500ms); });
  start(w);
  enqueue("note", R"({"text":"","number":1})");
  settle();
  faults.next_of<weir::command::relay_job>(fault::late_answer, 5s);  // that it stops
  faults.next_of<weir::command::relay_job>(fault::fail_before);      // that it is gone
  w.stop();
  pass(2s);
  BOOST_TEST(ended.has_value());
  auto const before = events;
  pass(10s);
  BOOST_TEST(faults.count(fault::fail_before) == 1U);
  BOOST_TEST((events == before));
}

BOOST_AUTO_TEST_CASE(the_program_may_end_in_the_middle_of_a_word) {
  weir::testing::fault_injector faults;
  auto w = make_worker_on(weir::testing::faulty_store{store, faults, clock}, {.name = "one"});
  start(w);
  faults.next_of<weir::command::relay_job>(weir::testing::fault::never);
  pass(10s);  // the context is destroyed with the fixture
}

BOOST_AUTO_TEST_CASE(R8_a_name_that_is_too_long_is_refused) {
  auto w = make_worker({.name = std::string(weir::limits::holder_size + 1, 'x')});
  start(w);
  BOOST_TEST_REQUIRE(ended.has_value());
  BOOST_TEST((*ended == weir::errc::invalid_option));
  BOOST_TEST(ended->message().find("worker_options::name") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_left_out_and_said_to_be) {
  std::vector<weir::served_queues> many;
  for (int i = 0; i != 100; ++i) {
    many.push_back({.name = std::string(1000, 'q') + std::to_string(i)});
  }
  auto w = make_worker({.queues = many, .name = "one"});
  start(w);
  auto const all = registered();
  BOOST_TEST_REQUIRE(all.size() == 1U);
  BOOST_TEST(!all[0].is_whole);
  BOOST_TEST(all[0].queues.size() == 15U);
  cancel();
}

BOOST_AUTO_TEST_CASE(of_a_damaged_record_there_is_what_can_be_read) {
  weir::job record;
  record.vests_in = 1h;
  for (std::string const text :
       {"", "x", "4:name,3:one,4:busy,1:x,", "4:name,3:one,4:jobs,9:4:abcd,0:,,2:up,2:-5,",
        "4:name,3:one,5:kinds,12:1:k,5:4:rate,,"}) {
    record.payload = text;
    auto const w = weir::registered_worker_of(record);
    BOOST_TEST(w.busy == 0U);
    BOOST_TEST(w.jobs.empty());
    BOOST_TEST((w.up == 0s));
    BOOST_TEST(w.name == (text.size() > 1 ? "one" : ""));
  }
  record.vests_in = weir::duration::min();
  BOOST_TEST(!weir::registered_worker_of(record).seems_alive());
  record.vests_in = weir::duration::max();
  BOOST_TEST((weir::registered_worker_of(record).seen == 0s));
}

BOOST_AUTO_TEST_SUITE_END()
