// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The file store as an asynchronous store: its thread, its groups, its time, its bounds.

#include "counted_executor.hpp"
#include "patience.hpp"
#include "sqlite_bed.hpp"
#include "sqlite_disk.hpp"
#include "weir/clock/manual.hpp"
#include "weir/limiter.hpp"
#include "weir/observe/observed.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/sqlite/request.hpp"
#include "weir/store/sqlite/worker.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace sqlite_test;
namespace asio = boost::asio;

static_assert(permit_store<sqlite_store> && lock_store<sqlite_store>);
static_assert(bucket_store<sqlite_store> && job_store<sqlite_store>);
static_assert(executes<sqlite_store, command::await_permit>);
static_assert(executes<sqlite_store, command::await_jobs>);
static_assert(executes<sqlite_store, command::reap_buckets>);
static_assert(executes_at<sqlite_store, command::take>);
static_assert(!executes_now<sqlite_store, command::take>, "SQLite blocks");

command::acquire_lock take_lock(std::string_view key) { return {key, "holder", 1h}; }

command::enqueue_jobs enqueue(std::string_view queue, std::vector<new_job> const& jobs) {
  return {queue, jobs};
}

std::array const one_each_hour{quota::per_hour(1).burst(10)};

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_store_)

// -------------------------------------------------------------------------------------- groups

BOOST_AUTO_TEST_CASE(what_comes_together_is_one_commit) {
  disk d;
  bed b{sqlite_options{}};
  BOOST_TEST(b(take_lock("first"))->granted);
  auto const alone = [&] {
    auto const before = d.syncs.load();
    BOOST_TEST(b(take_lock("alone"))->granted);
    return d.syncs.load() - before;
  }();
  BOOST_TEST_REQUIRE(alone >= 1U);

  auto const before = d.syncs.load();
  constexpr std::size_t n = 2000;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i != n; ++i) keys.push_back("k" + std::to_string(i));
  std::size_t granted = 0;
  d.halt();  // the first commit is not over before all have come, however long they take
  for (auto const& k : keys) {
    b.store.async_execute(take_lock(k),
                          [&](error_code, lock_grant const& g) { granted += g.granted; });
  }
  d.go_on();
  b.io.restart();
  b.io.run();
  BOOST_TEST(granted == n);
  // 2,000 commands in groups of at most 256 are 8 commits, and one or two more while they come.
  BOOST_TEST(d.syncs.load() - before <= 40 * alone);
}

BOOST_AUTO_TEST_CASE(what_is_one_commit_is_answered_by_two_posts) {
  disk d;
  directory const home;
  asio::io_context io;
  auto const posts = std::make_shared<std::atomic<int>>();
  sqlite_store const store{test::counted_executor{io.get_executor(), posts}, home.file()};
  constexpr std::size_t n = 1000;
  std::size_t granted = 0;
  d.halt();
  for (std::size_t i = 0; i != n; ++i) {
    store.async_execute(take_lock("k" + std::to_string(i)),
                        [&](error_code, lock_grant const& g) { granted += g.granted; });
  }
  d.go_on();
  io.run();
  BOOST_TEST(granted == n);
  // 1,000 commands in groups of at most 256 are 4 commits, and one or two more while they come.
  BOOST_TEST(posts->load() <= 12);
}

// Answers that are carried together are each completed once, whatever becomes of them on their way.
BOOST_AUTO_TEST_CASE(a_context_may_end_with_the_answers_of_a_commit_on_their_way) {
  disk d;
  directory const home;
  std::atomic<int> handlers{0};
  struct counted {
    explicit counted(std::atomic<int>& n) : alive{&n} { ++n; }
    counted(counted&& other) noexcept : alive{std::exchange(other.alive, nullptr)} {}
    ~counted() {
      if (alive != nullptr) --*alive;
    }
    void operator()(error_code, lock_grant const&) const { BOOST_TEST(false); }
    std::atomic<int>* alive;
  };
  for (int round = 0; round != 20; ++round) {
    auto io = std::make_unique<asio::io_context>();
    sqlite_store const store{io->get_executor(), home.file()};
    for (int i = 0; i != 100; ++i) {
      store.async_execute(take_lock("k" + std::to_string(100 * round + i)), counted{handlers});
    }
    for (auto const before = d.syncs.load(); round % 2 == 0 && d.syncs.load() == before;) {
      std::this_thread::yield();  // some are answered by now, or are about to be
    }
    io.reset();
    BOOST_TEST(handlers.load() == 0);
  }
}

BOOST_AUTO_TEST_CASE(F59_a_group_ends_when_its_bytes_fill_it) {
  // A request of that many bytes, which notes when it runs and when it is to be answered.
  struct request final : detail::sqlite_request {
    request(std::size_t n, std::string& l) : size{n}, log{l} {}
    [[nodiscard]] bool reads_only() const noexcept override { return false; }
    [[nodiscard]] bool start() noexcept override { return true; }
    void run(detail::sqlite_tables&) override { log += 'r'; }
    [[nodiscard]] std::size_t bytes() const noexcept override { return size; }
    [[nodiscard]] asio::any_io_executor const* claim() noexcept override {
      log += 'c';
      return nullptr;
    }
    void complete() noexcept override {}
    void fail(error_code) noexcept override { log += 'f'; }

    std::size_t size;
    std::string& log;
  };
  constexpr auto all = limits::batch_bytes;
  directory const home;
  std::string log;
  detail::sqlite_worker worker{home.file(), quick(), detail::sqlite_host::of(system_clock{})};
  for (auto const size : {all / 2, all / 2 - 1, std::size_t{1}, all, all / 2, std::size_t{0}}) {
    worker.submit(std::make_unique<request>(size, log));
  }
  worker.stop();
  worker.run();
  BOOST_TEST(log == "rrrccc"
                    "rc"
                    "rrcc");

  // What commands and answers count for.
  std::string const text(1000, 'x');
  std::array const jobs{job_of(1, text), job_of(2, text)};
  std::array const finished{finished_job{id(1), 1, text}};
  BOOST_TEST(detail::sqlite_bytes_of(enqueue("q", {jobs.begin(), jobs.end()})) == 2008U);
  BOOST_TEST(detail::sqlite_bytes_of(command::complete_jobs{"q", finished}) == 1000U);
  BOOST_TEST(detail::sqlite_bytes_of(take_lock("k")) == 0U);
  bed b;
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  BOOST_TEST(detail::sqlite_bytes_of(*b(command::peek_jobs{"q", 10})) == 2008U);
  BOOST_TEST(detail::sqlite_bytes_of(*b(command::find_job{"q", id(1)})) == 1004U);
  BOOST_TEST(detail::sqlite_bytes_of(*b(command::list_queues{})) == 1U);
  BOOST_TEST(detail::sqlite_bytes_of(*b(command::dequeue_jobs{"q", "h", 1, 10, 1h})) == 2008U);
}

BOOST_AUTO_TEST_CASE(durability_says_whether_a_commit_waits_for_the_disk) {
  for (auto const durable : {durability::power_loss, durability::process_crash}) {
    disk d;
    sqlite_options o;
    o.durable = durable;
    bed b{o};
    BOOST_TEST(b(take_lock("first"))->granted);
    auto const before = d.syncs.load();
    for (int i = 0; i != 10; ++i) BOOST_TEST(b(take_lock("k" + std::to_string(i)))->granted);
    auto const syncs = d.syncs.load() - before;
    BOOST_TEST(syncs >= (durable == durability::power_loss ? 10U : 0U));
    BOOST_TEST(syncs <= (durable == durability::power_loss ? 20U : 0U));
  }
}

BOOST_AUTO_TEST_CASE(what_changes_nothing_is_not_written) {
  disk d;
  bed b{sqlite_options{}};
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(b(take_lock("first"))->granted);
  BOOST_TEST(b(enqueue("q", jobs)).has_value());
  auto const writes = d.writes.load();
  BOOST_TEST(!b(command::acquire_lock{"first", "another", 1h})->granted);
  BOOST_TEST(b(command::dequeue_jobs{"no such queue", "h", 1, 1, 1h})->jobs.empty());
  BOOST_TEST(b(command::scan_visible_queues{})->queues.size() == 1U);
  BOOST_TEST(b(command::renew_lock{"first", "holder", 1, 1h}).error() == errc::lease_lost);
  BOOST_TEST(b(command::read_queue_stats{"q"})->enqueued == 1U);
  BOOST_TEST(d.writes.load() == writes);
}

// -------------------------------------------------------------------------------------- asynchrony

BOOST_AUTO_TEST_CASE(views_need_not_outlive_the_initiation_by_more_than_the_handler) {
  bed b;
  std::optional<lock_grant> got;
  {
    auto const key = std::make_unique<std::string>(300, 'k');
    b.store.async_execute(take_lock(*key), [&](error_code, lock_grant const& g) { got = g; });
  }
  b.io.run();
  BOOST_TEST(got.value().granted);
  BOOST_TEST(b(command::inspect_lock{std::string(300, 'k')})->held);
}

BOOST_AUTO_TEST_CASE(bad_input_is_an_error_before_any_io) {
  directory const home;
  asio::io_context io;
  sqlite_store const store{io.get_executor(), home.file()};
  BOOST_TEST(ask(io, store, take_lock("")).error() == errc::invalid_key);
  std::array const inexact{quota::per(1'000'000'007, 1s)};
  BOOST_TEST(ask(io, store, command::await_permit{"", "h"}).error() == errc::invalid_key);
  BOOST_TEST(!std::filesystem::exists(home.file()));
  BOOST_TEST(ask(io, store, command::take{"k", inexact, 1, {}}).error() == errc::quota_too_large);
  BOOST_TEST(ask(io, store, command::scan_visible_queues{.shard = 1}).error() ==
             errc::invalid_shard);
  BOOST_TEST(ask(io, store, command::await_jobs{1}).error() == errc::invalid_shard);
}

BOOST_AUTO_TEST_CASE(R7_a_command_that_was_cancelled_before_its_turn_never_runs) {
  bed b;
  BOOST_TEST(b(take_lock("first"))->granted);
  connection other{b.home.file()};
  other.must("BEGIN IMMEDIATE");
  asio::cancellation_signal signal;
  std::optional<error_code> said;
  b.store.async_execute(take_lock("k"),
                        asio::bind_cancellation_slot(
                            signal.slot(), [&](error_code ec, lock_grant const&) { said = ec; }));
  signal.emit(asio::cancellation_type::terminal);
  b.io.restart();
  b.io.run();
  BOOST_TEST((said == asio::error::operation_aborted), "it waits for somebody else's transaction");
  other.must("ROLLBACK");
  BOOST_TEST(!b(command::inspect_lock{"k"})->held);
}

BOOST_AUTO_TEST_CASE(R7_a_command_that_has_begun_completes_as_if_it_had_not_been_cancelled) {
  disk d;
  bed b{sqlite_options{}};
  BOOST_TEST(b(take_lock("first"))->granted);
  d.halt();
  asio::cancellation_signal signal;
  std::optional<error_code> said;
  b.store.async_execute(take_lock("k"), asio::bind_cancellation_slot(
                                            signal.slot(), [&](error_code ec, lock_grant const& g) {
                                              said = ec;
                                              BOOST_TEST(g.granted);
                                            }));
  d.wait_for_halted();
  signal.emit(asio::cancellation_type::terminal);
  d.go_on();
  b.io.restart();
  b.io.run();
  BOOST_TEST((said == error_code{}));
}

BOOST_AUTO_TEST_CASE(F46_a_disk_that_stands_still_keeps_nobody_beyond_its_patience) {
  disk d;
  bed b{sqlite_options{}};
  BOOST_TEST(b(take_lock("first"))->granted);
  d.halt();
  std::optional<error_code> begun;
  std::optional<error_code> behind;
  auto const hasty = b.store.with_patience(50ms);
  hasty.async_execute(take_lock("k"), [&](error_code ec, lock_grant const&) { begun = ec; });
  d.wait_for_halted();
  hasty.async_execute(take_lock("l"), [&](error_code ec, lock_grant const&) { behind = ec; });
  BOOST_TEST(weir_test::happens(b.io, [&] { return begun && behind; }));
  d.go_on();
  BOOST_TEST(b(command::inspect_lock{"k"})->held);
  BOOST_TEST(!b(command::inspect_lock{"l"})->held);
  BOOST_TEST((begun == errc::outcome_unknown));
  BOOST_TEST((behind == errc::store_unavailable));
}

BOOST_AUTO_TEST_CASE(F46_what_was_committed_within_its_patience_is_not_in_doubt) {
  disk d;
  bed b{sqlite_options{.in_place = false}};
  BOOST_TEST(b(take_lock("first"))->granted);
  connection other{b.home.file()};
  auto const hasty = b.store.with_patience(300ms);
  constexpr int n = 20;
  int granted = 0;
  asio::steady_timer busy{b.io};
  d.halt();
  asio::post(b.io, [&] {
    busy.expires_after(1ms);
    auto const begun = std::chrono::steady_clock::now();
    busy.async_wait([&, begun](error_code) {
      d.go_on();
      while (other.number("SELECT count(*) FROM weir_locks") != n + 1) std::this_thread::yield();
      std::this_thread::sleep_until(begun + 400ms);  // the patience is over, and the answers there
    });
    for (int i = 0; i != n; ++i) {
      hasty.async_execute(take_lock("k" + std::to_string(i)),
                          [&](error_code ec, lock_grant const& g) { granted += !ec && g.granted; });
    }
    std::this_thread::sleep_for(100ms);  // until who looks for what lapses stands behind `busy`
  });
  b.io.restart();
  b.io.run();
  BOOST_TEST(granted == n);
}

BOOST_AUTO_TEST_CASE(
    F45_what_a_hasty_handle_gives_back_is_not_given_up_while_the_disk_stands_still) {
  disk d;
  bed b{sqlite_options{.in_place = false}};
  auto const hasty = b.store.with_patience(50ms);
  struct blind {};
  limiter const permits{observed{hasty, blind{}}, limiter_options{.limit = 1, .ttl = 1h}};
  permit held;
  permits.async_acquire("held", {.wait = 1h}, [&](error_code, permit p) { held = std::move(p); });
  BOOST_TEST(weir_test::happens(b.io, [&] { return bool{held}; }));
  // The second token of an hour, which its taker waits for.
  auto const each_hour = quota::per_hour(1).burst(1);
  rate_limiter const rates{hasty, each_hour};
  rate_limiter const calm{b.store, each_hour};
  asio::cancellation_signal stop;
  std::string key;
  std::optional<error_code> taken;
  do {
    key += 'k';
    taken.reset();
    std::optional<bool> reserved;
    calm.async_reserve(key, {}, [&](error_code, decision const& got) { reserved = got.allowed; });
    BOOST_TEST(weir_test::happens(b.io, [&] { return reserved == true; }));
    rates.async_take(key, {.wait = 2h},
                     asio::bind_cancellation_slot(
                         stop.slot(), [&](error_code ec, decision const&) { taken = ec; }));
    while (reserved == true && !taken) {  // until it is behind the reservation, and waits
      reserved.reset();
      calm.async_peek(key, {.wait = 90min},
                      [&](error_code, bucket_info const& i) { reserved = i.allowed; });
      BOOST_TEST(weir_test::happens(b.io, [&] { return reserved.has_value(); }));
    }
    BOOST_TEST(b(take_lock("first"))->granted);
  } while (taken);

  d.halt();
  std::optional<error_code> late;
  permits.async_try_acquire("late",
                            [&](error_code ec, std::optional<permit> const&) { late = ec; });
  d.wait_for_halted();
  held.release();
  stop.emit(asio::cancellation_type::terminal);
  BOOST_TEST(weir_test::happens(b.io, [&] { return late && taken; }));
  BOOST_TEST((late == errc::outcome_unknown));
  BOOST_TEST((taken == asio::error::operation_aborted));
  std::optional<error_code> behind;
  hasty.async_execute(take_lock("l"), [&](error_code ec, lock_grant const&) { behind = ec; });
  BOOST_TEST(weir_test::happens(b.io, [&] { return behind.has_value(); }));
  d.go_on();
  BOOST_TEST(b(command::inspect_permits{"held", 10})->in_use == 0U);
  BOOST_TEST(b(command::inspect_permits{"late", 10})->in_use == 0U);
  std::optional<decision> next;
  calm.async_reserve(key, {.wait = 90min}, [&](error_code, decision const& got) { next = got; });
  BOOST_TEST(weir_test::happens(b.io, [&] { return next.has_value(); }));
  BOOST_TEST(next->allowed);
}

BOOST_AUTO_TEST_CASE(R7_an_executor_may_be_destroyed_with_operations_pending) {
  disk d;
  directory const home;
  auto const alive = std::make_shared<int>(0);
  for (bool const begun : {false, true}) {
    std::optional<sqlite_store> store;
    std::optional<connection> other;
    std::thread release;
    {
      asio::io_context io;
      store.emplace(io.get_executor(), home.file());
      BOOST_TEST(ask(io, *store, take_lock("first"))->granted);
      if (begun) {
        d.halt();
      } else {
        other.emplace(home.file());
        other->must("BEGIN IMMEDIATE");
      }
      for (int i = 0; i != 5; ++i) {
        store->async_execute(
            take_lock("k" + std::to_string(i)),
            [alive](error_code, lock_grant const&) { BOOST_ERROR("it was called"); });
      }
      store->async_execute(command::await_jobs{},
                           [alive](error_code, hint) { BOOST_ERROR("it was called"); });
      if (begun) {
        d.wait_for_halted();
        release = std::thread{[&] { d.go_on(); }};
      }
    }
    BOOST_TEST(alive.use_count() == 1, "a handler has outlived its executor");
    if (release.joinable()) release.join();
    other.reset();
    store.reset();
  }
}

BOOST_AUTO_TEST_CASE(R7_the_last_handle_waits_for_what_was_given_and_ends_those_who_wait) {
  directory const home;
  asio::io_context io;
  int done = 0;
  std::optional<error_code> waited;
  {
    sqlite_store const store{io.get_executor(), home.file(), quick()};
    for (int i = 0; i != 100; ++i) {
      store.async_execute(take_lock("k" + std::to_string(i)),
                          [&](error_code ec, lock_grant const&) { done += ec ? 0 : 1; });
    }
    store.async_execute(command::await_jobs{}, [&](error_code ec, hint) { waited = ec; });
  }
  BOOST_TEST(connection{home.file()}.number("SELECT count(*) FROM weir_locks") == 100);
  io.run();
  BOOST_TEST(done == 100);
  BOOST_TEST((waited == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(R7_the_last_handle_may_die_in_a_handler) {
  directory const home;
  asio::io_context io;
  auto store = std::make_unique<sqlite_store>(io.get_executor(), home.file(), quick());
  auto const& s = *store;
  s.async_execute(take_lock("k"),
                  [held = std::move(store)](error_code ec, lock_grant const&) mutable {
                    BOOST_TEST(!ec);
                    held.reset();
                  });
  io.run();
}

BOOST_AUTO_TEST_CASE(a_closed_store_lets_nothing_in) {
  bed b;
  BOOST_TEST(b(take_lock("k"))->granted);
  b.store.close();
  BOOST_TEST(b(take_lock("l")).error() == errc::closed);
  BOOST_TEST(b(command::await_jobs{}).error() == errc::closed);
}

BOOST_AUTO_TEST_CASE(handles_may_be_used_by_any_number_of_threads) {
  directory const home;
  asio::thread_pool pool{2};
  sqlite_store const store{pool.get_executor(), home.file(), quick()};
  std::atomic<std::uint64_t> allowed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t != 4; ++t) {
    threads.emplace_back([&, mine = store] {
      for (int i = 0; i != 50; ++i) {
        auto const answer =
            mine.async_execute(command::take{"k", one_each_hour, 1, {}}, asio::use_future).get();
        allowed += answer.allowed;
      }
    });
  }
  for (auto& t : threads) t.join();
  pool.join();
  BOOST_TEST(allowed == 10U);
}

BOOST_AUTO_TEST_CASE(R8_commands_that_wait_are_bounded) {
  auto o = quick();
  o.max_pending = 3;
  bed b{o};
  BOOST_TEST(b(take_lock("first"))->granted);
  connection other{b.home.file()};
  other.must("BEGIN IMMEDIATE");
  int full = 0;
  int done = 0;
  for (int i = 0; i != 20; ++i) {
    b.store.async_execute(
        take_lock("k" + std::to_string(i)),
        [&](error_code ec, lock_grant const&) { ec == errc::store_full ? ++full : ++done; });
  }
  other.must("ROLLBACK");
  b.io.restart();
  b.io.run();
  BOOST_TEST(full >= 20 - 3 - 4);
  BOOST_TEST(full + done == 20);
  BOOST_TEST(done >= 3);
}

// -------------------------------------------------------------------------------------- time

BOOST_AUTO_TEST_CASE(F52_the_file_s_time_does_not_run_backwards_nor_stand_still) {
  directory const home;
  asio::io_context io;
  manual_clock early{manual_clock::default_date};
  manual_clock late{manual_clock::default_date + 24h};
  basic_sqlite_store<manual_clock> const ahead{io.get_executor(), home.file(), quick(), late};
  BOOST_TEST(ask(io, ahead, command::acquire_lock{"k", "h", 10s})->granted);

  // Another process's clock is a day behind: it neither finds the lease longer than it is,
  basic_sqlite_store<manual_clock> const behind{io.get_executor(), home.file(), quick(), early};
  BOOST_TEST((ask(io, behind, command::acquire_lock{"k", "g", 10s})->expires_in == 10s));
  BOOST_TEST(ask(io, behind, command::acquire_lock{"l", "g", 10s})->granted);
  // nor does it wait for a day.
  early.advance(10s);
  BOOST_TEST(ask(io, behind, command::acquire_lock{"k", "g", 10s})->granted);
  // What the other one has seen since is not earlier.
  BOOST_TEST((ask(io, ahead, command::acquire_lock{"k", "h", 10s})->expires_in <= 10s));
  late.advance(11s);
  BOOST_TEST(ask(io, ahead, command::acquire_lock{"k", "h", 10s})->granted);
}

BOOST_AUTO_TEST_CASE(F52_a_date_that_was_set_back_grants_nothing_twice) {
  directory const home;
  asio::io_context io;
  manual_clock clock;
  std::array const q{quota::per_second(1).burst(5)};
  {
    basic_sqlite_store<manual_clock> const store{io.get_executor(), home.file(), quick(), clock};
    for (int i = 0; i != 5; ++i) {
      BOOST_TEST(ask(io, store, command::take{"k", q, 1, {}})->allowed);
    }
  }
  manual_clock const back{manual_clock::default_date - 24h * 365};
  basic_sqlite_store<manual_clock> const again{io.get_executor(), home.file(), quick(), back};
  auto const d = *ask(io, again, command::take{"k", q, 1, {}});
  BOOST_TEST(!d.allowed);
  BOOST_TEST((d.retry_after == 1s), "denied for as long as the step");
}

BOOST_AUTO_TEST_CASE(R5_fences_grow_when_the_date_is_set_back_and_the_file_is_opened_anew) {
  directory const home;
  asio::io_context io;
  std::uint64_t last = 0;
  for (int i = 0; i != 3; ++i) {
    manual_clock const clock{manual_clock::default_date - i * 24h};
    basic_sqlite_store<manual_clock> const store{io.get_executor(), home.file(), quick(), clock};
    for (auto const* const key : {"k", "l"}) {
      auto const g = *ask(io, store, command::acquire_lock{key, "h" + std::to_string(i), 1h});
      if (!g.granted) continue;
      BOOST_TEST(g.fence > last);
      last = g.fence;
      BOOST_TEST(ask(io, store, command::release_lock{key, "h" + std::to_string(i), 0})->freed);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_live_at_a_told_time_is_not_tidied_by_the_store_s_clock) {
  bed b;
  time_point const then = std::chrono::sys_days{std::chrono::year{2020} / 1 / 1};
  auto const at = [&](auto const& c) { return b(command::at{c, then}); };
  std::vector<new_job> jobs{job_of(1)};
  jobs[0].retention = 1h;
  BOOST_TEST(at(command::acquire_lock{"told", "h", 1h})->granted);
  BOOST_TEST(at(command::acquire_permit{"told", "h", 1, 1h, {}})->granted);
  BOOST_TEST(at(enqueue("told", jobs)).has_value());
  BOOST_TEST((*at(command::cancel_job{"told", id(1)}) == cancel_outcome::cancelled));
  for (int i = 0; i != 3; ++i) {
    auto const key = std::to_string(i);
    BOOST_TEST(b(take_lock(key))->granted);
    BOOST_TEST(b(command::acquire_permit{key, "h", 1, 1h, {}})->granted);
    BOOST_TEST(b(enqueue(key, {job_of(1)})).has_value());
  }
  BOOST_TEST(at(command::inspect_lock{"told"})->held);
  BOOST_TEST(at(command::inspect_permits{"told"})->in_use == 1U);
  BOOST_TEST((*at(command::find_job{"told", id(1)})).has_value());
}

// -------------------------------------------------------------------------------------- bounds

BOOST_AUTO_TEST_CASE(R8_what_is_over_makes_room_and_what_is_held_does_not) {
  auto o = quick();
  o.max_permits = 2;
  o.max_locks = 2;
  manual_clock clock;
  basic_bed<manual_clock> b{o, clock};
  auto const permit = [&](std::string const& key) {
    return b(command::acquire_permit{key, "h", 1, 10s, {}});
  };
  auto const lock_of = [&](std::string const& key) {
    return b(command::acquire_lock{key, "h", 10s});
  };
  for (auto const* const key : {"a", "b"}) {
    BOOST_TEST(permit(key)->granted);
    BOOST_TEST(lock_of(key)->granted);
  }
  BOOST_TEST(permit("c").error() == errc::store_full);
  BOOST_TEST(lock_of("c").error() == errc::store_full);
  BOOST_TEST(permit("a")->granted, "it has it already");
  clock.advance(10s);
  BOOST_TEST(permit("c")->granted);
  BOOST_TEST(lock_of("c")->granted);
}

BOOST_AUTO_TEST_CASE(R1_a_line_that_is_tidied_a_few_at_a_time_stays_as_the_file_has_it) {
  manual_clock clock;
  basic_bed<manual_clock> b{quick(), clock};
  auto const take = [&](auto const& store, std::string_view key, std::string_view holder) {
    return ask(b.io, store,
               command::acquire_permit{.key = key, .holder = holder, .limit = 10, .ttl = 1s});
  };
  for (auto const* holder : {"a", "b", "c", "d", "e"}) {
    BOOST_TEST(take(b.store, "k", holder)->granted);
  }
  clock.advance(2s);
  BOOST_TEST(take(b.store, "other", "x")->granted);  // tidies two of them away
  BOOST_TEST(take(b.store, "k", "e")->granted);
  basic_sqlite_store<manual_clock> const another{b.io.get_executor(), b.home.file(), quick(),
                                                 clock};
  auto const census = ask(b.io, another, command::inspect_permits{.key = "k"});
  BOOST_TEST_REQUIRE(census.has_value(), census.error().message());
  BOOST_TEST(census->in_use == 1U);
}

BOOST_AUTO_TEST_CASE(F21_full_buckets_go_first_then_new_keys_are_shed_and_none_spent_forgotten) {
  auto o = quick();
  o.max_buckets = 3;
  manual_clock clock;
  basic_bed<manual_clock> b{o, clock};
  std::array const fast{quota::per_second(10).burst(1)};
  auto const take = [&](std::string const& key, std::span<quota const> q) {
    return *b(command::take{key, q, 1, {}});
  };
  for (int i = 0; i != 10; ++i) BOOST_TEST(take("slow", one_each_hour).allowed);
  BOOST_TEST(take("a", fast).allowed);
  BOOST_TEST(take("b", fast).allowed);
  BOOST_TEST((take("c", fast).retry_after == 100ms), "there is room when the first one is full");
  BOOST_TEST(take("c", fast).shed);
  auto const peeked = *b(command::peek_bucket{"c", fast, 1, {}});
  BOOST_TEST((peeked.shed && peeked.retry_after == 100ms));
  BOOST_TEST(!take("a", fast).shed, "a key that is known is not shed");
  clock.advance(100ms);
  BOOST_TEST(b(command::peek_bucket{"c", fast, 1, {}})->allowed);
  BOOST_TEST(take("c", fast).allowed);
  BOOST_TEST(!take("slow", one_each_hour).allowed);
  clock.advance(1s);
  auto const reaped = *b(command::reap_buckets{});
  BOOST_TEST(reaped.kept == 1U);
  clock.advance(24h);
  BOOST_TEST(b(command::reap_buckets{})->kept == 0U);
}

BOOST_AUTO_TEST_CASE(R8_queues_without_jobs_are_bounded_but_those_that_are_held_stay) {
  auto o = quick();
  o.max_idle_queues = 3;
  bed b{o};
  BOOST_TEST(b(command::pause_queue{"held"}).has_value());
  for (std::uint64_t i = 0; i != 20; ++i) {
    auto const queue = "q" + std::to_string(i);
    std::vector<new_job> const jobs{job_of(i)};
    BOOST_TEST(b(enqueue(queue, jobs)).has_value());
    BOOST_TEST((*b(command::cancel_job{queue, id(i)}) == cancel_outcome::cancelled));
  }
  BOOST_TEST(b(command::list_queues{})->queues.size() <= 4U);
  BOOST_TEST(b(command::read_queue_stats{"held"})->paused);
  BOOST_TEST(b(command::pause_queue{"held too"}).has_value());
  BOOST_TEST(b(command::pause_queue{"and this"}).has_value());
  BOOST_TEST(b(command::pause_queue{"but not this"}).error() == errc::store_full);
}

// In one transaction.
BOOST_AUTO_TEST_CASE(R8_queues_that_lose_their_jobs_together_are_bounded) {
  auto o = quick();
  o.max_idle_queues = 3;
  bed b{o};
  std::vector<std::string> queues;
  for (std::uint64_t i = 0; i != 100; ++i) {
    queues.push_back("q" + std::to_string(i));
    std::vector<new_job> const jobs{job_of(i)};
    BOOST_TEST(b(enqueue(queues.back(), jobs)).has_value());
  }
  connection other{b.home.file()};
  other.must("BEGIN IMMEDIATE");
  std::size_t cancelled = 0;
  for (std::uint64_t i = 0; i != 100; ++i) {
    b.store.async_execute(command::cancel_job{queues[i], id(i)},
                          [&](error_code ec, cancel_outcome) { cancelled += !ec; });
  }
  other.must("ROLLBACK");
  b.io.restart();
  b.io.run();
  BOOST_TEST(cancelled == 100U);
  BOOST_TEST(b(command::list_queues{})->queues.size() <= 4U);
}

BOOST_AUTO_TEST_CASE(R8_what_two_queues_get_in_one_step_is_within_the_bound_together) {
  auto o = quick();
  o.max_jobs = 10;
  bed b{o};
  std::vector<new_job> jobs;
  for (std::uint64_t i = 0; i != 8; ++i) jobs.push_back(job_of(i));
  BOOST_TEST(b(enqueue("q", jobs)).has_value());
  std::vector<new_job> const next{job_of(20), job_of(21)};
  std::vector<new_job> const there{job_of(30), job_of(31)};
  auto const relay = [&](std::span<new_job const> to) {
    return b(command::relay_job{.queue = "q",
                                .id = id(0),
                                .expected = "{}",
                                .next = next,
                                .to = to.empty() ? "" : "r",
                                .jobs = to});
  };
  BOOST_TEST(relay(there).error() == errc::store_full);
  auto const one = relay({});
  BOOST_TEST_REQUIRE(one.has_value(), one.error().message());
  BOOST_TEST((one->outcome == relay_outcome::relayed));
}

BOOST_AUTO_TEST_CASE(F61_what_only_ends_a_job_is_done_above_a_lower_bound) {
  bed b;
  std::vector<new_job> const jobs{job_of(1), job_of(2), job_of(3)};
  BOOST_TEST(b(enqueue("q", jobs)).has_value());
  auto lower = quick();
  lower.max_jobs = 1;
  basic_sqlite_store<system_clock> const other{b.io.get_executor(), b.home.file(), lower};
  command::relay_job const end{.queue = "q", .id = id(1), .expected = "{}"};
  auto const done = ask(b.io, other, end);
  BOOST_TEST_REQUIRE(done.has_value(), done.error().message());
  BOOST_TEST((done->outcome == relay_outcome::relayed));
  auto const again = job_of(2);
  command::relay_job const on{
      .queue = "q", .id = id(2), .expected = "{}", .next = std::span{&again, 1}};
  BOOST_TEST(ask(b.io, other, on).has_value(), "nor does what relays itself");
}

BOOST_AUTO_TEST_SUITE_END()
