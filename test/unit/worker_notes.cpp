// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What handlers find with their job and leave with it: headers, progress, checkpoints.
#include "unit/slow_store.hpp"
#include "unit/worker_fixture.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/testing/faulty_store.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace test {

/// Has a time-out.
struct brief : note {};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(brief, text, number)

/// A store that is full for some extensions of leases.
class refusing_store {
 public:
  using executor_type = memory::executor_type;

  using refusal = std::function<bool(weir::command::extend_lease const&)>;

  refusing_store(memory store, refusal refuses)
      : store_{std::move(store)},
        refuses_{std::move(refuses)} {}
  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }

  template <class C, class Token>
    requires weir::executes<memory, C>
  auto async_execute(C const& c, Token&& token) const {
    if constexpr (std::is_same_v<C, weir::command::extend_lease>) {
      auto answer = [self = *this, c]() -> weir::result<weir::lease_renewal> {
        if (self.refuses_(c)) return weir::errc::store_full;
        return self.store_.execute(c);
      };
      return weir::detail::async_lift<weir::lease_renewal>(get_executor(), answer,
                                                           std::forward<Token>(token));
    } else {
      return store_.async_execute(c, std::forward<Token>(token));
    }
  }

 private:
  memory store_;
  refusal refuses_;
};

bool has_checkpoint(weir::command::extend_lease const& c) { return !c.checkpoint.empty(); }

}  // namespace test

template <>
struct weir::job_traits<test::brief> {
  static constexpr std::string_view kind = "timed";
  static constexpr duration timeout = std::chrono::seconds{10};
};

using namespace test;
using kind = weir::worker_event_kind;
using weir_test::slow_store;

namespace {

std::string const one = R"({"text":"a","number":1})";
constexpr auto await = asio::use_awaitable;

struct notes_fixture : worker_fixture {
  template <class Store>
  auto make_worker_on(Store on) {
    weir::worker w{std::move(on), weir::worker_options{}, clock, weir::constant_backoff{10s},
                   weir::id_source::seeded(++workers)};
    w.on_event([this](weir::worker_event const& e) {
      ++events[e.kind];
      if (e.error) failures.push_back(e.error);
    });
    return w;
  }
  template <class Worker>
  void run(Worker& w) {
    w.async_run(
        asio::bind_cancellation_slot(stop.slot(), [this](weir::error_code ec) { ended = ec; }));
    settle();
  }
  asio::awaitable<void> sleep(weir::duration d) {
    co_await clock.async_wait_until(io.get_executor(), clock.steady_now() + d, await);
  }
  /// Leaves a checkpoint at the first attempt, and ends it so; says what the second one finds.
  void fails_by(std::function<void()> fail) {
    auto w = make_worker();
    w.handle<note>([&](note const&, weir::job_context& job) {
      if (job.attempt() + job.snoozes() != 1) {
        found = std::string{job.last_checkpoint()};
        return;
      }
      job.checkpoint("an early one");
      job.checkpoint("as far as here");
      fail();
    });
    enqueue("note", one);
    start(w);
    pass(30s);
  }

  slow_store<memory> slow{store, clock, 4ms};
  weir::steady_time refuses_all_until{};
  std::vector<weir::error_code> failures;
  std::optional<std::string> found;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(worker_notes, notes_fixture)

BOOST_AUTO_TEST_CASE(handlers_find_the_headers_of_their_job) {
  std::vector<std::string> tenants;
  auto w = make_worker();
  w.handle<note>([&](note const&, weir::job_context& job) {
    tenants.emplace_back(job.headers().find("tenant").value_or("nobody"));
  });
  weir::job_headers const headers{{"tenant", "acme"}, {"traceparent", "00-4bf9"}};
  enqueue(note{}, {.headers = headers});
  enqueue(note{});
  start(w);
  pass(1s);
  BOOST_TEST((tenants == std::vector<std::string>{"acme", "nobody"}));
}

BOOST_AUTO_TEST_CASE(headers_that_are_too_large_are_refused) {
  weir::job_queue const queue{store, ids};
  std::string const large(weir::limits::headers_size, 'h');
  weir::error_code refused;
  queue.async_enqueue(note{}, {.headers = weir::job_headers{{"h", large}}},
                      [&](weir::error_code ec, weir::enqueued_job) { refused = ec; });
  settle();
  BOOST_TEST((refused == weir::errc::payload_too_large));
  BOOST_TEST(stats().enqueued == 0U);
}

BOOST_AUTO_TEST_CASE(progress_is_stored_at_most_once_a_second) {
  auto w = make_worker_on(slow);
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    for (std::uint64_t i = 1; i <= 100; ++i) {
      job.progress(i, 100, "page " + std::to_string(i));
      co_await sleep(100ms);
    }
  });
  auto const id = enqueue("note", one);
  run(w);
  pass(5s);
  auto const seen = weir::job_progress::of(find(id).value().progress);
  BOOST_TEST_REQUIRE(seen.has_value());
  BOOST_TEST((seen->done > 38 && seen->done <= 51));
  BOOST_TEST(seen->total == 100U);
  BOOST_TEST(seen->note == "page " + std::to_string(seen->done));
  pass(6s);
  BOOST_TEST((find(id).value().state == weir::job_state::completed));
  auto const renewals = slow.of<weir::command::extend_lease>().asked;
  BOOST_TEST((renewals >= 9 && renewals <= 11));
}

BOOST_AUTO_TEST_CASE(a_handler_that_notes_nothing_costs_no_renewal) {
  auto w = make_worker_on(slow);
  w.handle<note>([&](note const&) -> asio::awaitable<void> { co_await sleep(9s); });
  enqueue("note", one);
  run(w);
  pass(10s);
  BOOST_TEST(slow.of<weir::command::extend_lease>().asked == 0U);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_was_awaited_is_stored) {
  std::vector<std::string> stored;
  auto w = make_worker_on(slow);
  auto const id = enqueue("note", one);
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    for (char const* const at : {"one", "two"}) {
      co_await job.async_checkpoint(at);
      stored.push_back(find(id).value().checkpoint);
    }
    co_await sleep(1h);
  });
  run(w);
  pass(1s);
  BOOST_TEST((stored == std::vector<std::string>{"one", "two"}));
  BOOST_TEST(slow.of<weir::command::extend_lease>().asked == 2U);
}

BOOST_AUTO_TEST_CASE(F104_a_checkpoint_is_stored_before_the_failure_of_its_attempt) {
  fails_by([] { throw std::runtime_error{"failed"}; });
  BOOST_TEST((found == "as far as here"));
}

BOOST_AUTO_TEST_CASE(F104_a_checkpoint_is_stored_before_a_snooze) {
  fails_by([] { throw weir::snooze_for{1s}; });
  BOOST_TEST((found == "as far as here"));
}

BOOST_AUTO_TEST_CASE(F104_a_checkpoint_is_stored_before_its_job_is_dead) {
  fails_by([] { throw weir::give_up{"hopeless"}; });
  auto const letters = dead();
  BOOST_TEST_REQUIRE(letters.size() == 1U);
  BOOST_TEST(letters[0].checkpoint == "as far as here");
}

BOOST_AUTO_TEST_CASE(F104_a_checkpoint_is_stored_when_the_worker_stops) {
  weir::worker_options options;
  options.drain = 1s;
  auto w = make_worker(options);
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    job.checkpoint("as far as here");
    co_await sleep(1h);
  });
  auto const id = enqueue("note", one);
  start(w);
  cancel();
  pass(3s);
  BOOST_TEST_REQUIRE(ended.has_value());
  auto const back = find(id).value();
  BOOST_TEST((back.state == weir::job_state::pending));
  BOOST_TEST(back.checkpoint == "as far as here");
}

BOOST_AUTO_TEST_CASE(F104_what_is_handed_over_during_a_renewal_is_stored_after_it) {
  auto w = make_worker_on(slow);
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    if (job.attempt() != 1) {
      found = std::string{job.last_checkpoint()};
      co_return;
    }
    job.checkpoint("an early one");
    co_await sleep(2ms);  // it is on its way
    job.checkpoint("as far as here");
    throw std::runtime_error{"failed"};
  });
  enqueue("note", one);
  run(w);
  pass(30s);
  BOOST_TEST((found == "as far as here"));
  BOOST_TEST(slow.of<weir::command::extend_lease>().asked == 2U);
  BOOST_TEST(slow.of<weir::command::extend_lease>().most == 1U);
}

BOOST_AUTO_TEST_CASE(F104_what_comes_during_a_renewal_that_fails_counts) {
  weir::testing::fault_injector faults;
  auto w = make_worker_on(weir::testing::faulty_store{slow, faults, clock});
  faults.next_of<weir::command::extend_lease>(weir::testing::fault::fail_after);
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    if (job.attempt() != 1) {
      found = std::string{job.last_checkpoint()};
      co_return;
    }
    job.checkpoint("an early one");
    co_await sleep(2ms);  // it is on its way
    job.checkpoint("as far as here");
    co_await sleep(1s);
    throw std::runtime_error{"failed"};
  });
  enqueue("note", one);
  run(w);
  pass(30s);
  BOOST_TEST((found == "as far as here"));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_waits_for_a_store_that_is_away) {
  weir::testing::fault_injector faults;
  auto w = make_worker_on(weir::testing::faulty_store{store, faults, clock});
  faults.next_of<weir::command::extend_lease>(weir::testing::fault::fail_before);
  bool stored = false;
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    co_await job.async_checkpoint("as far as here");
    stored = true;
  });
  auto const id = enqueue("note", one);
  run(w);
  BOOST_TEST(!stored);
  pass(5s);
  BOOST_TEST(stored);
  BOOST_TEST(find(id).value().checkpoint == "as far as here");
}

BOOST_AUTO_TEST_CASE(a_store_without_room_for_a_checkpoint_keeps_the_lease) {
  auto w = make_worker_on(refusing_store{store, has_checkpoint});
  std::vector<weir::error_code> told;
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    auto const [ec] = co_await job.async_checkpoint("as far as here", asio::as_tuple(await));
    told.push_back(ec);
    co_await sleep(90s);
    job.checkpoint("further");
    co_await sleep(90s);
  });
  auto const id = enqueue("note", one);
  run(w);
  pass(200s);
  BOOST_TEST_REQUIRE(told.size() == 1U);
  BOOST_TEST((told[0] == weir::errc::store_full));
  BOOST_TEST(failures.size() == 2U);
  BOOST_TEST((find(id).value().state == weir::job_state::completed));
}

BOOST_AUTO_TEST_CASE(a_lease_is_not_lost_to_checkpoints_that_are_refused_again_and_again) {
  auto w = make_worker_on(refusing_store{store, has_checkpoint});
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    for (int i = 0; i != 90; ++i) {
      job.progress(1, 2);
      job.checkpoint("as far as here");
      co_await sleep(1s);
    }
  });
  auto const id = enqueue("note", one);
  run(w);
  pass(100s);
  BOOST_TEST(events[kind::lease_lost] == 0);
  BOOST_TEST((find(id).value().state == weir::job_state::completed));
  BOOST_TEST(stats().leased == 0U);
}

BOOST_AUTO_TEST_CASE(F104_a_store_that_is_overloaded_for_a_moment_gets_the_checkpoint_later) {
  refuses_all_until = clock.steady_now() + 1s;
  auto w = make_worker_on(
      refusing_store{store, [&](auto const&) { return clock.steady_now() < refuses_all_until; }});
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    if (job.attempt() != 1) {
      found = std::string{job.last_checkpoint()};
      co_return;
    }
    job.checkpoint("as far as here");
    co_await sleep(5s);
    throw std::runtime_error{"failed"};
  });
  enqueue("note", one);
  run(w);
  pass(30s);
  BOOST_TEST((found == "as far as here"));
}

BOOST_AUTO_TEST_CASE(a_handler_that_failed_has_failed_whatever_comes_while_its_notes_are_stored) {
  weir::testing::fault_injector faults;
  weir::worker w{weir::testing::faulty_store{store, faults, clock},
                 weir::worker_options{.drain = 1s}, clock, weir::constant_backoff{10s},
                 weir::id_source::seeded(1)};
  w.on_event([this](weir::worker_event const& e) { ++events[e.kind]; });
  faults.next_of<weir::command::extend_lease>(weir::testing::fault::late_answer, 1500ms);
  w.handle<note>([&](note const&, weir::job_context& job) {
    job.checkpoint("as far as here");
    throw std::runtime_error{"failed"};
  });
  auto const id = enqueue("note", one);
  w.async_run([this](weir::error_code ec) { ended = ec; });
  settle();
  w.stop();
  pass(5s);
  BOOST_TEST(ended.has_value());
  BOOST_TEST(events[kind::returned] == 0);
  BOOST_TEST(events[kind::retried] == 1);
  BOOST_TEST(find(id).value().attempts == 1U);
}

BOOST_AUTO_TEST_CASE(a_renewal_that_is_never_answered_holds_up_no_end) {
  weir::testing::fault_injector faults;
  auto w = make_worker_on(weir::testing::faulty_store{store, faults, clock});
  faults.next_of<weir::command::extend_lease>(weir::testing::fault::silence);
  w.handle<note>([&](note const&, weir::job_context& job) {
    job.checkpoint("as far as here");
    throw std::runtime_error{"failed"};
  });
  enqueue("note", one);
  run(w);
  pass(1s);
  w.stop();
  pass(40s);
  BOOST_TEST(ended.has_value());
}

BOOST_AUTO_TEST_CASE(a_checkpoint_is_tried_again_soon_however_long_the_lease_is) {
  weir::testing::fault_injector faults;
  weir::worker w{weir::testing::faulty_store{store, faults, clock},
                 weir::worker_options{.lease = 10h}, clock, weir::constant_backoff{1h},
                 weir::id_source::seeded(1)};
  for (int i = 0; i != 3; ++i) {
    faults.next_of<weir::command::extend_lease>(weir::testing::fault::fail_before);
  }
  bool stored = false;
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    co_await job.async_checkpoint("as far as here");
    stored = true;
  });
  enqueue("note", one);
  w.async_run([](weir::error_code) {});
  pass(4s);
  BOOST_TEST(stored);
  w.stop();
  pass(1s);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_can_be_waited_for_for_some_time) {
  auto w = make_worker();
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    co_await job.async_checkpoint("as far as here", asio::cancel_after(1h, await));
  });
  auto const id = enqueue("note", one);
  start(w);
  BOOST_TEST((find(id).value().state == weir::job_state::completed));
  BOOST_TEST(find(id).value().checkpoint == "as far as here");
}

BOOST_AUTO_TEST_CASE(a_lease_that_is_lost_stores_nothing) {
  auto w = make_worker();
  std::vector<weir::error_code> told;
  auto const id = enqueue("note", one);
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    ask(weir::command::cancel_job{"default", id, true});
    auto const [ec] = co_await job.async_checkpoint("too late", asio::as_tuple(await));
    told.push_back(ec);
    co_await sleep(1h);
  });
  start(w);
  pass(1s);
  BOOST_TEST_REQUIRE(told.size() == 1U);
  BOOST_TEST((told[0] == weir::errc::lease_lost));
  BOOST_TEST(events[kind::lease_lost] == 1);
}

BOOST_AUTO_TEST_CASE(who_waits_for_a_checkpoint_is_told_when_the_lease_is_over) {
  weir::testing::fault_injector faults;
  auto w = make_worker_on(weir::testing::faulty_store{store, faults, clock});
  std::vector<weir::error_code> told;
  for (int i = 0; i != 100; ++i) {
    faults.next_of<weir::command::extend_lease>(weir::testing::fault::fail_before);
  }
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    // Not by its cancellation: this has no slot.
    job.async_checkpoint(
        "in vain", asio::bind_executor(io.get_executor(), [&](auto ec) { told.push_back(ec); }));
    co_await sleep(1h);
  });
  enqueue("note", one);
  run(w);
  pass(25s);
  BOOST_TEST(told.empty());
  pass(15s);
  BOOST_TEST_REQUIRE(told.size() >= 1U);
  BOOST_TEST((told[0] == weir::errc::lease_lost));
}

BOOST_AUTO_TEST_CASE(a_time_out_ends_the_wait_for_a_checkpoint) {
  weir::testing::fault_injector faults;
  auto w = make_worker_on(weir::testing::faulty_store{store, faults, clock});
  faults.next_of<weir::command::extend_lease>(weir::testing::fault::late_answer, 20s);
  std::optional<weir::error_code> told;
  w.handle<brief>([&](brief const&, weir::job_context& job) -> asio::awaitable<void> {
    auto const [ec] = co_await job.async_checkpoint("as far as here", asio::as_tuple(await));
    told = ec;
  });
  enqueue("timed", one);
  run(w);
  pass(11s);
  BOOST_TEST((told == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(what_is_no_checkpoint_is_refused) {
  std::vector<weir::error_code> told;
  std::string const large(weir::limits::checkpoint_size + 1, 'c');
  auto w = make_worker();
  w.handle<note>([&](note const&, weir::job_context& job) -> asio::awaitable<void> {
    for (auto const& bytes : {std::string{}, large}) {
      auto const [ec] = co_await job.async_checkpoint(bytes, asio::as_tuple(await));
      told.push_back(ec);
      try {
        job.checkpoint(bytes);
      } catch (boost::system::system_error const& e) {
        told.push_back(e.code());
      }
    }
  });
  auto const id = enqueue("note", one);
  start(w);
  pass(1s);
  BOOST_TEST_REQUIRE(told.size() == 4U);
  BOOST_TEST((told[0] == weir::errc::invalid_option && told[1] == told[0]));
  BOOST_TEST((told[2] == weir::errc::payload_too_large && told[3] == told[2]));
  BOOST_TEST(find(id).value().checkpoint.empty());
}

BOOST_AUTO_TEST_CASE(a_handler_can_be_tried_without_a_worker) {
  weir::leased_job leased;
  leased.checkpoint = "from before";
  weir::job_context job{"queue", leased};
  job.progress(1, 2);
  job.checkpoint("as far as here");
  std::optional<weir::error_code> told;
  job.async_checkpoint(
      "further", asio::bind_executor(io.get_executor(), [&](weir::error_code ec) { told = ec; }));
  settle();
  BOOST_TEST((told == weir::error_code{}));
  BOOST_TEST(job.last_checkpoint() == "from before");
}

BOOST_AUTO_TEST_SUITE_END()
