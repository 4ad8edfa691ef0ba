// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A queue whose commands fail: it is left alone for a while, and the others are served.

#include "weir/detail/async_lift.hpp"
#include "weir/testing/faulty_store.hpp"
#include "worker_fixture.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace test {

/// A store that answers some commands itself, and counts all of them. A worker that asks it in a
/// circle, without time passing, is stopped after `most` commands.
class answering_store {
 public:
  using executor_type = memory::executor_type;
  static constexpr int most = 5000;

  struct script {
    std::function<weir::error_code(std::string_view command, std::string_view queue)> fails;
    std::string_view loses{};  ///< the answers to this command, which is executed
    weir::error_code lost = weir::errc::outcome_unknown;  ///< as what
    int damaged = 0;       ///< records of the queue "bad" that cannot be read
    bool claimed = false;  ///< all jobs of the queue "bad" are another's, and its pointer is early
    std::map<std::string, int> asked;
    int total = 0;
  };

  answering_store(memory store, asio::io_context& io) : store_{std::move(store)}, io_{&io} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }
  [[nodiscard]] script& plan() const noexcept { return *script_; }

  template <class C, class Token>
    requires weir::executes<memory, C>
  auto async_execute(C const& c, Token&& token) const {
    if constexpr (weir::executes_now<memory, C>) {
      return weir::detail::async_lift<typename C::result>(
          get_executor(), [self = *this, c] { return self.answer(c); }, std::forward<Token>(token));
    } else {
      return store_.async_execute(c, std::forward<Token>(token));
    }
  }

 protected:
  template <class C>
  static constexpr std::string_view name_of() {
    using namespace weir::command;
    if constexpr (std::is_same_v<C, scan_visible_queues>) return "scan";
    if constexpr (std::is_same_v<C, dequeue_jobs>) return "dequeue";
    if constexpr (std::is_same_v<C, update_queue_pointer>) return "pointer";
    if constexpr (std::is_same_v<C, start_job>) return "start";
    if constexpr (std::is_same_v<C, complete_jobs>) return "complete";
    if constexpr (std::is_same_v<C, requeue_job>) return "requeue";
    if constexpr (std::is_same_v<C, acquire_permit>) return "permit";
    return "other";
  }

  template <class C>
  weir::result<typename C::result> answer(C const& c) const {
    std::string_view queue;
    if constexpr (requires { c.queue; }) queue = c.queue;
    auto& s = *script_;
    if (++s.total > most) io_->stop();
    ++s.asked[std::string{name_of<C>()} + ' ' + std::string{queue}];
    if (s.fails) {
      if (auto const ec = s.fails(name_of<C>(), queue)) return ec;
    }
    if constexpr (std::is_same_v<C, weir::command::dequeue_jobs>) {
      if (queue == "bad" && s.claimed) return weir::dequeued{};
      if (queue == "bad" && s.damaged != 0) {
        auto const now = std::min(s.damaged, 100);
        s.damaged -= now;
        weir::dequeued out;
        out.damaged = static_cast<std::uint32_t>(now);
        out.more = true;
        return out;
      }
    }
    auto store = store_;
    auto done = store.execute(c);
    if (s.loses == name_of<C>()) return s.lost;
    return done;
  }

  memory store_;
  asio::io_context* io_;
  std::shared_ptr<script> script_ = std::make_shared<script>();
};

/// One that executes at once, as the memory store does.
struct answering_at_once : answering_store {
  using answering_store::answering_store;

  template <class C>
    requires weir::executes_now<memory, C>
  weir::result<typename C::result> execute(C const& c) const {
    return answer(c);
  }
};

/// Of these one at a time runs.
struct one_by_one {
  std::string text;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(one_by_one, text)

}  // namespace test

template <>
struct weir::job_traits<test::one_by_one> {
  static constexpr std::string_view kind = "one_by_one";
  static constexpr std::uint32_t concurrency = 1;
};

using namespace test;
using kind = weir::worker_event_kind;

namespace {

constexpr std::string_view one = R"({"text":"","number":0})";

template <class Store>
struct failing_queue_of : worker_fixture {
  explicit failing_queue_of(weir::worker_options o = {}) : options{std::move(o)} {
    worker.on_event([this](weir::worker_event const& e) {
      ++events[e.kind];
      if (e.kind == kind::damaged) damaged += e.count;
      if (e.refused_by != weir::refusing_policy::none) ++refusals;
      if (e.kind == kind::store_recovered) outage = e.delay;
      if (e.kind == kind::store_failed) told.emplace_back(e.queue);
    });
  }

  void start() {
    worker.template handle<note>([this](note const&, weir::job_context& c) {
      ++runs[std::string{c.queue()}];
      if (throws && c.queue() == "bad") throw std::runtime_error{"failed"};
    });
    worker.async_run(asio::bind_cancellation_slot(stop.slot(), [](weir::error_code) {}));
    settle();
  }
  ~failing_queue_of() {
    observed.plan().fails = {};
    cancel();
  }

  void enqueue_alone(std::string_view queue) {
    weir::new_job job;
    job.id = ids.job();
    job.kind = "note";
    job.payload = one;
    job.strategy = weir::unique_strategy::while_executing;
    auto const key = to_string(job.id);
    job.unique_key = key;
    ask(weir::command::enqueue_jobs{queue, {&job, 1}});
  }

  /// Commands about this queue so far.
  int asked(std::string_view queue) {
    int sum = 0;
    for (auto const& [what, n] : observed.plan().asked) {
      if (what.ends_with(' ' + std::string{queue})) sum += n;
    }
    return sum;
  }

  weir::worker_options options;
  Store observed{store, io};
  weir::worker<Store, weir::manual_clock, weir::constant_backoff> worker{
      observed, options, clock, weir::constant_backoff{10s}, weir::id_source::seeded(1)};
  std::map<std::string, int> runs;
  std::vector<std::string> told;
  std::uint32_t damaged = 0;
  int refusals = 0;
  weir::duration outage{};
  bool throws = false;
};
using failing_queue = failing_queue_of<answering_store>;

using weir::errc;

}  // namespace

BOOST_AUTO_TEST_SUITE(worker_failures)

// A full store refuses new permits, and goes on with all else.
BOOST_AUTO_TEST_CASE(F61_F33_a_job_that_gets_no_permit_spends_no_attempt_and_no_hand) {
  for (auto const e : {errc::store_full, errc::store_unavailable, errc::outcome_unknown}) {
    BOOST_TEST_CONTEXT(make_error_code(e).message()) {
      failing_queue f;
      int limited_ran = 0;
      f.worker.handle<one_by_one>([&](one_by_one const&) { ++limited_ran; });
      for (int i = 0; i != 12; ++i) {
        f.enqueue("one_by_one", R"({"text":""})", "limited", 1);
      }
      f.observed.plan().fails = [&](std::string_view what, std::string_view) {
        return what == "permit" ? make_error_code(e) : weir::error_code{};
      };
      f.start();
      if (e == errc::store_full) {
        for (int i = 0; i != 12; ++i) f.enqueue("note", one, "good");
        f.pass(1s);
        BOOST_TEST(f.runs["good"] == 12);
      }
      f.pass(1min);
      BOOST_TEST(limited_ran == 0);
      BOOST_TEST(f.refusals == 0);  // of the limit, which nobody could ask
      BOOST_TEST(f.dead("limited").empty());
      f.observed.plan().fails = {};
      f.pass(2min);
      BOOST_TEST(limited_ran == 12);
    }
  }
}

BOOST_AUTO_TEST_CASE(F45_a_permit_whose_grant_was_lost_is_given_back_by_a_worker_that_stops) {
  failing_queue f{{.drain = 0s}};
  f.worker.handle<one_by_one>([](one_by_one const&) {});
  f.enqueue("one_by_one", R"({"text":""})", "limited");
  f.observed.plan().loses = "permit";
  f.start();
  f.pass(500ms);
  BOOST_TEST(f.ask(weir::command::inspect_permits{"one_by_one", 10}).in_use == 1U);
  f.cancel();
  f.pass(2s);
  BOOST_TEST(f.ask(weir::command::inspect_permits{"one_by_one", 10}).in_use == 0U);
}

BOOST_AUTO_TEST_CASE(F45_a_permit_whose_grant_was_lost_is_given_back_whatever_is_answered_next) {
  failing_queue f;
  f.worker.handle<one_by_one>([](one_by_one const&) {});
  f.enqueue("one_by_one", R"({"text":""})", "limited");
  f.observed.plan().loses = "permit";
  f.observed.plan().fails = [asked = 0](std::string_view what, std::string_view) mutable {
    bool const is_refused = what == "permit" && asked++ != 0;
    return is_refused ? make_error_code(errc::store_full) : weir::error_code{};
  };
  f.start();
  BOOST_TEST(f.ask(weir::command::inspect_permits{"one_by_one", 10}).in_use == 1U);
  f.pass(2s);
  BOOST_TEST(f.ask(weir::command::inspect_permits{"one_by_one", 10}).in_use == 0U);
}

BOOST_AUTO_TEST_CASE(F54_what_was_claimed_before_memory_ended_is_asked_for_again) {
  failing_queue f;
  auto const id = f.enqueue("note", one, "bad", 1);
  f.observed.plan().loses = "dequeue";
  f.observed.plan().lost = make_error_code(boost::system::errc::not_enough_memory);
  f.start();
  BOOST_TEST((f.find(id, "bad")->state == weir::job_state::leased));
  f.observed.plan().loses = {};
  f.pass(2min);
  BOOST_TEST((f.find(id, "bad")->state == weir::job_state::completed));
}

BOOST_AUTO_TEST_CASE(R7_a_pause_between_repeats_holds_up_no_worker_that_has_drained) {
  failing_queue f{{.lease = 1h, .poll = 1h, .drain = 1s}};
  f.worker.handle<note>([](note const&) {});
  f.enqueue("note", one, "bad");
  f.observed.plan().fails = [](std::string_view what, std::string_view) {
    return what == "complete" ? make_error_code(errc::store_unavailable) : weir::error_code{};
  };
  f.worker.async_run([&](weir::error_code ec) { f.ended = ec; });
  f.settle();
  auto const before = f.asked("bad");
  f.worker.stop();
  f.pass(1s);
  BOOST_TEST(f.ended.has_value());
  BOOST_TEST(f.asked("bad") == before + 1);  // once more, for the last time
}

BOOST_AUTO_TEST_CASE(F33_a_job_whose_start_is_not_answered_spends_no_attempt) {
  failing_queue f;
  f.enqueue_alone("bad");
  f.observed.plan().fails = [](std::string_view what, std::string_view) {
    return what == "start" ? make_error_code(errc::outcome_unknown) : weir::error_code{};
  };
  f.start();
  f.pass(2min);
  BOOST_TEST(f.runs["bad"] == 0);
  BOOST_TEST(f.events[kind::retried] == 0);
  BOOST_TEST(f.events[kind::snoozed] != 0);
  f.observed.plan().fails = {};
  f.pass(1min);
  BOOST_TEST(f.runs["bad"] == 1);
}

// The worker asks it how long to wait after each failure of the store, that of a renewal, too.
BOOST_AUTO_TEST_CASE(F42_a_backoff_that_throws_ends_neither_the_worker_nor_its_thread) {
  struct undecided {
    weir::duration operator()(std::uint32_t, weir::duration, std::uint64_t) const {
      throw std::runtime_error{"undecided"};
    }
  };
  failing_queue f;
  weir::worker<answering_store, weir::manual_clock, undecided> w{
      f.observed, {}, f.clock, undecided{}, weir::id_source::seeded(2)};
  int runs = 0;
  int retried = 0;
  w.on_event([&](weir::worker_event const& e) { retried += e.kind == kind::retried ? 1 : 0; });
  w.handle<note>([&](note const&) -> asio::awaitable<void> {
    if (++runs == 1) throw std::runtime_error{"once"};
    co_await f.sleep(1min);
  });
  f.enqueue("note", one, "good");
  w.async_run([&](weir::error_code ec) { f.ended = ec; });
  f.settle();
  int failures = 0;
  f.observed.plan().fails = [&](std::string_view what, std::string_view) {
    bool const it = (what == "other" || what == "scan") && ++failures < 10;
    return it ? make_error_code(errc::store_unavailable) : weir::error_code{};
  };
  BOOST_CHECK_NO_THROW(f.pass(2min));
  BOOST_TEST(failures > 10);
  BOOST_TEST(runs == 2);
  BOOST_TEST(retried == 1);
  BOOST_TEST(f.stats("good").completed == 1U);
  BOOST_TEST(!f.ended.has_value());
  w.stop();
  f.pass(1s);
  BOOST_TEST(f.ended.has_value());
}

// Their outcomes are stored when the store answers again.
BOOST_AUTO_TEST_CASE(what_a_store_that_executes_at_once_does_not_complete_is_completed_later) {
  for (auto const e : {errc::store_unavailable, errc::outcome_unknown, errc::payload_too_large}) {
    BOOST_TEST_CONTEXT(make_error_code(e).message()) {
      failing_queue_of<answering_at_once> f;
      for (int i = 0; i != 40; ++i) f.enqueue("note", one, i % 2 == 0 ? "good" : "bad");
      int failures = 0;
      f.observed.plan().fails = [&](std::string_view what, std::string_view queue) {
        bool const it = what == "complete" && queue == "bad" && failures != 3;
        return it ? (++failures, make_error_code(e)) : weir::error_code{};
      };
      f.start();
      f.pass(5s);
      BOOST_TEST(failures == 3);
      BOOST_TEST(f.runs["good"] == 20);
      BOOST_TEST(f.runs["bad"] == 20);
      BOOST_TEST(f.stats("good").completed == 20);
      BOOST_TEST(f.stats("bad").completed == 20);
      BOOST_TEST(f.events[kind::completed] == 40);
      BOOST_TEST(f.events[kind::lease_lost] == 0);
    }
  }
}

// Jobs of two queues end by turns.
BOOST_AUTO_TEST_CASE(F93_a_completion_that_fails_at_once_costs_no_job_of_another_queue) {
  for (bool const throws : {false, true}) {
    BOOST_TEST_CONTEXT("throws: " << throws) {
      failing_queue_of<answering_at_once> f{{.concurrency = 40, .quantum = 1}};
      for (int i = 0; i != 40; ++i) f.enqueue("note", one, i % 2 == 0 ? "good" : "bad");
      int failures = 0;
      f.observed.plan().fails = [&](std::string_view what, std::string_view queue) {
        if (what != "complete" || queue != "bad") return weir::error_code{};
        if (throws && failures++ == 0) throw std::runtime_error{"no idea"};
        return throws ? weir::error_code{} : make_error_code(errc::store_unavailable);
      };
      f.start();
      BOOST_TEST(f.runs["good"] == 20);
      BOOST_TEST(f.stats("good").completed == 20);
      BOOST_TEST((f.events[kind::lease_lost] > 0) == throws);
      if (!throws) BOOST_TEST(f.observed.plan().asked["complete bad"] <= 2);
    }
  }
}

// Once it fails, a queue costs at most six commands a second, its worker asks at most 20 in all,
// and a job of its neighbour waits no longer than the poll.
BOOST_AUTO_TEST_CASE(F93_a_queue_whose_commands_fail_is_left_alone_and_its_neighbour_is_served) {
  for (std::string_view const command : {"dequeue", "pointer", "start", "complete", "requeue"}) {
    for (auto const e : {errc::store_corrupt, errc::permission_denied, errc::store_unavailable,
                         errc::outcome_unknown, errc::invalid_queue}) {
      if (e == errc::invalid_queue && command != "dequeue" && command != "pointer") continue;
      BOOST_TEST_CONTEXT(command << " " << make_error_code(e).message()) {
        failing_queue f;
        f.throws = command == "requeue";
        for (int i = 0; i != 1000; ++i) {
          if (command == "start") {
            f.enqueue_alone("bad");
          } else {
            f.enqueue("note", one, "bad", 1000);
          }
        }
        f.observed.plan().claimed = command == "pointer";
        f.observed.plan().fails = [&](std::string_view what, std::string_view queue) {
          bool const it = what == command && queue == "bad";
          return it ? make_error_code(e) : weir::error_code{};
        };
        f.start();
        f.pass(31s);  // leases that cannot be given back are over
        auto const before = f.asked("bad");
        auto const all_before = f.observed.plan().total;
        for (int second = 0; second != 60; ++second) {
          f.enqueue("note", one, "good");
          f.pass(1s);
          BOOST_TEST(f.runs["good"] == second + 1);
        }
        BOOST_TEST(f.observed.plan().total < answering_store::most);
        BOOST_TEST(before <= 31 * 12);
        BOOST_TEST(f.asked("bad") - before <= 60 * 6);
        BOOST_TEST(f.observed.plan().total - all_before <= 60 * 20);
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(F93_a_queue_that_works_again_is_served_within_the_poll, failing_queue) {
  for (int i = 0; i != 50; ++i) enqueue("note", one, "bad");
  bool broken = true;
  observed.plan().fails = [&](std::string_view what, std::string_view) {
    bool const it = broken && what == "dequeue";
    return it ? make_error_code(errc::permission_denied) : weir::error_code{};
  };
  start();
  pass(10s);
  BOOST_TEST(runs["bad"] == 0);
  BOOST_TEST(std::ranges::count(told, "bad") == events[kind::store_failed]);
  broken = false;
  pass(1s);
  BOOST_TEST(runs["bad"] == 50);
  BOOST_TEST(events[kind::store_recovered] == 0);  // it was there, and refused
}

// Asked for ever, it would say the same for ever.
BOOST_AUTO_TEST_CASE(F85_a_store_that_refuses_from_the_beginning_ends_the_worker) {
  for (auto const e : {errc::schema_outdated, errc::permission_denied, errc::invalid_option,
                       errc::store_unavailable, errc::store_read_only}) {
    for (bool const later : {false, true}) {
      BOOST_TEST_CONTEXT(make_error_code(e).message() << (later ? ", later" : "")) {
        failing_queue f;
        bool refuses = !later;
        f.observed.plan().fails = [&](std::string_view what, std::string_view) {
          return refuses && what == "scan" ? make_error_code(e) : weir::error_code{};
        };
        std::optional<weir::error_code> end;
        f.worker.async_run([&](weir::error_code ec) { end = ec; });
        f.settle();
        f.pass(2s);
        refuses = true;
        f.pass(10s);
        bool const goes_on = later || e == errc::store_unavailable || e == errc::store_read_only;
        BOOST_TEST(end.has_value() == !goes_on);
        if (end) BOOST_TEST((*end == e));
        BOOST_TEST((f.events[kind::store_failed] > 0) == goes_on);
        refuses = false;
        f.worker.stop();
        f.pass(1s);
        BOOST_TEST(end.has_value());
        if (goes_on) BOOST_TEST(!end.value());
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(F85_an_outage_is_told_to_be_over_once_with_how_long_it_was, failing_queue) {
  start();
  bool away = true;
  observed.plan().fails = [&](std::string_view, std::string_view) {
    return away ? make_error_code(errc::store_unavailable) : weir::error_code{};
  };
  pass(20s);
  BOOST_TEST(events[kind::store_failed] > 1);
  BOOST_TEST(events[kind::store_recovered] == 0);
  away = false;
  pass(10s);
  BOOST_TEST(events[kind::store_recovered] == 1);
  BOOST_TEST((outage > 15s && outage <= 25s));
}

BOOST_FIXTURE_TEST_CASE(F93_ten_thousand_damaged_records_cost_no_time, failing_queue) {
  observed.plan().damaged = 10000;
  enqueue("note", one, "bad");
  start();
  BOOST_TEST(damaged == 10000U);
  BOOST_TEST(events[kind::damaged] == 100);
  BOOST_TEST(runs["bad"] == 1);
  BOOST_TEST(observed.plan().asked["dequeue bad"] <= 102);
  BOOST_TEST(observed.plan().asked["scan "] <= 30);
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

/// The answer of a dequeue gets lost.
struct lossy : worker_fixture {
  using faulty = weir::testing::faulty_store<memory, weir::manual_clock>;

  lossy() { faults.next_of<weir::command::dequeue_jobs>(weir::testing::fault::fail_after); }

  void begin(weir::worker_options options) {
    worker.emplace(faulty{store, faults, clock}, options, clock, weir::constant_backoff{10s},
                   weir::id_source::seeded(1));
    worker->handle<note>([this](note const&, weir::job_context& c) -> asio::awaitable<void> {
      most = std::max(most, ++running);
      attempts = std::max(attempts, c.attempt());
      co_await sleep(5s);
      --running;
    });
    worker->async_run([this](weir::error_code ec) { ended = ec; });
    settle();
  }

  weir::testing::fault_injector faults;
  std::optional<weir::worker<faulty, weir::manual_clock, weir::constant_backoff>> worker;
  int running = 0;
  int most = 0;
  std::uint32_t attempts = 0;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(worker_lost_answers, lossy)

BOOST_AUTO_TEST_CASE(F93_a_lost_answer_stops_no_other_queue_and_loses_no_attempt) {
  for (int i = 0; i != 3; ++i) enqueue("note", one, "bad");
  begin({});
  BOOST_TEST(stats("bad").leased == 3U);
  enqueue("note", one, "good");
  settle();
  BOOST_TEST(running == 1);
  pass(1s);
  BOOST_TEST(running == 4);
  pass(10s);
  BOOST_TEST(stats("bad").completed == 3U);
  BOOST_TEST(attempts == 1U);
}

BOOST_AUTO_TEST_CASE(F54_a_lost_answer_is_asked_for_while_a_job_of_its_queue_runs) {
  faults.heal();
  enqueue("note", one, "bad");
  begin({});
  BOOST_TEST(running == 1);
  faults.next_of<weir::command::dequeue_jobs>(weir::testing::fault::fail_after);
  for (int i = 0; i != 3; ++i) enqueue("note", one, "bad");
  settle();
  pass(2s);
  BOOST_TEST(running == 4);  // the first takes 5 s
  BOOST_TEST(attempts == 1U);
}

BOOST_AUTO_TEST_CASE(F54_a_lost_answer_is_asked_for_after_another_failure) {
  faults.next_of<weir::command::dequeue_jobs>(weir::testing::fault::fail_before);
  for (int i = 0; i != 3; ++i) enqueue("note", one, "bad");
  begin({});
  BOOST_TEST(stats("bad").leased == 3U);
  pass(20s);  // their leases would end after 30 s
  BOOST_TEST(stats("bad").completed == 3U);
  BOOST_TEST(attempts == 1U);
}

BOOST_AUTO_TEST_CASE(F93_jobs_of_a_lost_answer_that_find_no_hand_free_are_given_back) {
  enqueue("note", one, "bad");
  enqueue("note", one, "bad");
  begin({.concurrency = 2, .quantum = 2});
  enqueue("note", one, "good");
  enqueue("note", one, "good");
  settle();
  BOOST_TEST(running == 2);
  pass(1min);
  BOOST_TEST(most == 2);
  BOOST_TEST(attempts == 1U);
  BOOST_TEST(stats("bad").completed == 2U);
}

BOOST_AUTO_TEST_CASE(R7_jobs_of_a_lost_answer_are_given_back_by_a_worker_that_stops) {
  auto const id = enqueue("note", one, "bad");
  begin({});
  BOOST_TEST((find(id, "bad")->state == weir::job_state::leased));
  worker->stop();
  settle();
  BOOST_TEST(ended.has_value());
  BOOST_TEST((find(id, "bad")->state == weir::job_state::pending));
  BOOST_TEST(find(id, "bad")->attempts == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
