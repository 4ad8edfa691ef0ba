// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Where a worker looks first when it is told that there is a job, and what does not hold it up.

#include "weir/parking.hpp"
#include "weir/posting.hpp"
#include "worker_fixture.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace test {

/// A store that keeps what a worker asks it when it looks for jobs: "scan", "dequeue QUEUE" and
/// "correct QUEUE", which is about a pointer. It answers its housekeeping when it is told to.
class observed_store {
 public:
  using executor_type = memory::executor_type;

  explicit observed_store(memory store) : store_{std::move(store)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }

  template <class C, class Token>
    requires weir::executes<memory, C>
  auto async_execute(C const& c, Token&& token) const {
    using namespace weir::command;
    if constexpr (std::is_same_v<C, gc_stale_pointers>) {
      return asio::async_initiate<Token, void(weir::error_code, std::uint32_t)>(
          [kept = kept_](auto handler) { kept->emplace_back(std::move(handler)); }, token);
    } else {
      return passed_on(c, std::forward<Token>(token));
    }
  }

  /// All that was asked since the last call.
  [[nodiscard]] std::vector<std::string> take() const { return std::exchange(*asked_, {}); }

  /// @return how often that was asked for
  std::size_t answer_housekeeping() const {
    auto all = std::exchange(*kept_, {});
    for (auto& handler : all) {
      weir::post_completion(get_executor(), std::move(handler), weir::error_code{},
                            std::uint32_t{0});
    }
    return all.size();
  }

 private:
  using housekeeping =
      std::vector<asio::any_completion_handler<void(weir::error_code, std::uint32_t)>>;

  template <class C, class Token>
  auto passed_on(C const& c, Token&& token) const {
    using namespace weir::command;
    if constexpr (std::is_same_v<C, scan_visible_queues>) asked_->emplace_back("scan");
    if constexpr (std::is_same_v<C, dequeue_jobs>) {
      asked_->push_back("dequeue " + std::string{c.queue});
    }
    if constexpr (std::is_same_v<C, update_queue_pointer>) {
      asked_->push_back("correct " + std::string{c.queue});
    }
    return store_.async_execute(c, std::forward<Token>(token));
  }

  memory store_;
  std::shared_ptr<housekeeping> kept_ = std::make_shared<housekeeping>();
  std::shared_ptr<std::vector<std::string>> asked_ = std::make_shared<std::vector<std::string>>();
};

}  // namespace test

using namespace test;

namespace {

struct idle_worker : worker_fixture {
  idle_worker() {
    worker.handle<note>([this](note const&) { ++done; });
    worker.async_run([](weir::error_code) {});
    settle();
  }
  ~idle_worker() {
    worker.stop();
    settle();
  }

  /// What the worker asks until it has a job that is enqueued in this queue.
  std::vector<std::string> asks_for(std::string const& queue) {
    (void)observed.take();
    auto const before = done;
    enqueue("note", R"({"text":"","number":0})", queue);
    settle();
    BOOST_TEST(done == before + 1);
    auto asked = observed.take();
    while (!asked.empty() && asked.back() == "scan") asked.pop_back();  // is there another one?
    return asked;
  }

  observed_store observed{store};
  weir::worker<observed_store, weir::manual_clock, weir::constant_backoff> worker{
      observed, {}, clock, weir::constant_backoff{10s}, weir::id_source::seeded(1)};
  int done = 0;
};

using words = std::vector<std::string>;

}  // namespace

BOOST_FIXTURE_TEST_SUITE(worker_guesses, idle_worker)

BOOST_AUTO_TEST_CASE(the_third_job_of_a_queue_in_a_row_is_claimed_without_a_scan) {
  words const found{"scan", "dequeue a"};
  words const guessed{"dequeue a"};
  BOOST_TEST(asks_for("a") == found, boost::test_tools::per_element());
  BOOST_TEST(asks_for("a") == found, boost::test_tools::per_element());
  BOOST_TEST(asks_for("a") == guessed, boost::test_tools::per_element());
  BOOST_TEST(asks_for("a") == guessed, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_wrong_guess_costs_one_claim_and_is_not_repeated) {
  words const wrong{"dequeue a", "scan", "dequeue b"};
  words const found{"scan", "dequeue a"};
  (void)asks_for("a");
  (void)asks_for("a");
  BOOST_TEST(asks_for("b") == wrong, boost::test_tools::per_element());
  BOOST_TEST(asks_for("a") == found, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_guess_that_found_nothing_is_not_repeated_either) {
  (void)asks_for("a");
  (void)asks_for("a");
  (void)observed.take();
  enqueue("note", "{}", "a");
  BOOST_TEST(ask(weir::command::dequeue_jobs{"a", "somebody else", 0, 1, 1h}).jobs.size() == 1U);
  settle();
  words const wrong{"dequeue a", "scan"};
  BOOST_TEST(observed.take() == wrong, boost::test_tools::per_element());
  words const found{"scan", "dequeue a"};
  BOOST_TEST(asks_for("a") == found, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(queues_in_turn_are_not_guessed_at) {
  words const first{"scan", "dequeue a"};
  words const second{"scan", "dequeue b"};
  for (int i = 0; i != 3; ++i) {
    BOOST_TEST(asks_for("a") == first, boost::test_tools::per_element());
    BOOST_TEST(asks_for("b") == second, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(R6_housekeeping_that_takes_long_holds_up_no_job) {
  pass(3min);
  words const found{"scan", "dequeue a"};
  BOOST_TEST(asks_for("a") == found, boost::test_tools::per_element());
  BOOST_TEST(observed.answer_housekeeping() == 1U);  // not one upon the other
  pass(2min);
  BOOST_TEST(observed.answer_housekeeping() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
