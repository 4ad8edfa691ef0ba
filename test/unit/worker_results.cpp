// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Results that are stored together, on a store that takes less at once than the worker's batches
// may have.

#include "weir/detail/async_lift.hpp"
#include "weir/rule/bytes.hpp"
#include "worker_fixture.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>

using namespace test;
using kind = weir::worker_event_kind;

namespace {

/// A memory store that refuses completions of more than so many bytes, and some jobs altogether.
class strict_store {
 public:
  using executor_type = memory::executor_type;

  struct habits {
    std::size_t most = 0;
    std::set<weir::job_id> damaged{};  ///< the records of these
    int refused = 0;                   ///< completions that were too large
    int away = 0;                      ///< so many completions do not reach it
    int asked = 0;                     ///< for completions
  };

  explicit strict_store(memory s) : next_{std::move(s)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return next_.get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return next_.shard_count(); }
  [[nodiscard]] habits& has() const noexcept { return *habits_; }

  template <class C, class Token>
    requires weir::executes<memory, C>
  auto async_execute(C const& c, Token&& token) const {
    if constexpr (std::same_as<C, weir::command::complete_jobs>) {
      return weir::detail::async_lift<typename C::result>(
          get_executor(), [self = *this, c] { return self.complete(c); },
          std::forward<Token>(token));
    } else {
      return next_.async_execute(c, std::forward<Token>(token));
    }
  }

 protected:
  [[nodiscard]] weir::result<weir::command::complete_jobs::result> complete(
      weir::command::complete_jobs const& c) const {
    ++habits_->asked;
    if (habits_->away != 0) {
      --habits_->away;
      return weir::errc::store_unavailable;
    }
    std::size_t bytes = 0;
    for (auto const& j : c.jobs) {
      bytes += weir::rule::bytes_of(j);
      if (habits_->damaged.contains(j.id)) return weir::errc::store_corrupt;
    }
    if (bytes > habits_->most) {
      ++habits_->refused;
      return weir::errc::payload_too_large;
    }
    return next_.execute(c);
  }

  memory next_;
  std::shared_ptr<habits> habits_ = std::make_shared<habits>();
};

/// The same, which executes in the calling thread.
struct strict_at_once : strict_store {
  using strict_store::strict_store;

  template <class C>
    requires weir::executes_now<memory const, C>
  [[nodiscard]] weir::result<typename C::result> execute(C const& c) const {
    if constexpr (std::same_as<C, weir::command::complete_jobs>) {
      return complete(c);
    } else {
      return next_.execute(c);
    }
  }
};

struct results_fixture : worker_fixture {
  std::vector<weir::job_id> run(std::vector<int> const& sizes, auto prepare) {
    return run(strict, sizes, prepare);
  }
  /// Enqueues jobs whose results have these sizes, and runs a worker until all is done.
  template <class Store>
  std::vector<weir::job_id> run(Store const& on, std::vector<int> const& sizes, auto prepare) {
    std::vector<weir::job_id> ids_of;
    for (int const size : sizes) {
      ids_of.push_back(enqueue("note", R"({"text":"","number":)" + std::to_string(size) + "}"));
    }
    weir::worker<Store, weir::manual_clock, weir::constant_backoff> w{
        on,
        {.concurrency = 100, .quantum = 100},
        clock,
        weir::constant_backoff{1s},
        weir::id_source::seeded(7)};
    w.on_event([this](weir::worker_event const& e) { ++events[e.kind]; });
    w.template handle<note>([&](note const& n) {
      ++runs;
      return std::string(static_cast<std::size_t>(n.number), 'r');
    });
    prepare(ids_of);
    w.async_run(
        asio::bind_cancellation_slot(stop.slot(), [this](weir::error_code ec) { ended = ec; }));
    settle();
    pass(10min);
    cancel();
    BOOST_TEST(ended.has_value());
    return ids_of;
  }
  void expect_completed(weir::job_id id, std::size_t size) {
    auto const j = find(id);
    BOOST_TEST_REQUIRE(j.has_value());
    BOOST_TEST((j->state == weir::job_state::completed));
    BOOST_TEST(j->result.size() == size);
  }

  strict_store strict{store};
  strict_at_once at_once{store};
  int runs = 0;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(worker_results, results_fixture)

BOOST_AUTO_TEST_CASE(F59_results_that_are_too_large_together_are_stored_apart) {
  strict.has().most = 100;
  auto const jobs = run(std::vector<int>(64, 40), [](auto const&) {});
  BOOST_TEST(runs == 64);
  for (auto const id : jobs) expect_completed(id, 40);
  BOOST_TEST(events[kind::completed] == 64);
  BOOST_TEST(events[kind::result_dropped] == 0);
  BOOST_TEST(events[kind::lease_lost] == 0);
}

BOOST_AUTO_TEST_CASE(F62_a_result_that_the_store_does_not_take_is_dropped_and_no_other) {
  strict.has().most = 100;
  auto const jobs = run({10, 10, 101, 10, 10}, [](auto const&) {});
  BOOST_TEST(runs == 5);
  for (std::size_t i = 0; i != jobs.size(); ++i) expect_completed(jobs[i], i == 2 ? 0U : 10U);
  BOOST_TEST(events[kind::result_dropped] == 1);
  BOOST_TEST(events[kind::completed] == 5);
}

BOOST_AUTO_TEST_CASE(F59_a_job_that_cannot_be_completed_costs_no_other_job_anything) {
  strict.has().most = 1000;
  auto const jobs = run(std::vector<int>(33, 10), [&](auto const& all) {
    strict.has().damaged = {all[20]};
    enqueue("note", R"({"text":"","number":1})");
  });
  for (std::size_t i = 0; i != jobs.size(); ++i) {
    if (i != 20) expect_completed(jobs[i], 10);
  }
  BOOST_TEST(events[kind::completed] == 33);  // and the one that was enqueued last
}

BOOST_AUTO_TEST_CASE(F59_the_workers_own_batches_keep_to_what_a_command_may_have) {
  strict.has().most = weir::limits::batch_bytes;
  constexpr int largest = weir::limits::payload_size;
  auto const jobs = run(std::vector<int>(40, largest), [](auto const&) {});
  for (auto const id : jobs) expect_completed(id, largest);
  BOOST_TEST(events[kind::result_dropped] == 0);
  BOOST_TEST(strict.has().refused == 0);
}

BOOST_AUTO_TEST_CASE(F59_what_a_store_refuses_at_once_is_stored_apart_too) {
  at_once.has().most = 100;
  auto const jobs = run(at_once, std::vector<int>(64, 40), [&](auto const& all) {
    at_once.has().damaged = {all[20]};
    at_once.has().away = 1;
  });
  for (std::size_t i = 0; i != jobs.size(); ++i) {
    if (i != 20) expect_completed(jobs[i], 40);
  }
  BOOST_TEST(events[kind::completed] == 63);
  BOOST_TEST(events[kind::store_failed] == 1);
}

BOOST_AUTO_TEST_CASE(jobs_that_end_by_turns_of_queues_are_stored_by_one_command_for_each_queue) {
  at_once.has().most = 1000;
  weir::worker<strict_at_once, weir::manual_clock, weir::constant_backoff> w{
      at_once,
      {.concurrency = 20, .quantum = 1},
      clock,
      weir::constant_backoff{1s},
      weir::id_source::seeded(7)};
  std::map<std::string, std::vector<weir::job_id>> expected;
  std::map<std::string, std::vector<weir::job_id>> completed;
  w.on_event([&](weir::worker_event const& e) {
    if (e.kind == kind::completed) completed[std::string{e.queue}].push_back(e.job->id);
  });
  w.handle<note>([](note const&) {});
  for (int i = 0; i != 20; ++i) {
    auto const* const queue = i % 2 == 0 ? "a" : "b";
    expected[queue].push_back(enqueue("note", R"({"text":"","number":1})", queue));
  }
  start(w);
  BOOST_TEST((completed == expected));   // each queue's in their order
  BOOST_TEST(at_once.has().asked <= 4);  // one or two deliveries
}

BOOST_AUTO_TEST_SUITE_END()
