// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Typed jobs in what executes commands at once, such as an application's own transaction.

#include "weir/enqueue.hpp"

#include "weir/store/memory.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;

struct greet {
  std::string name;
};
int encoded = 0;
void to_json(nlohmann::json& j, greet const& g) {
  ++encoded;
  if (g.name == "unspeakable") throw std::runtime_error{"no"};
  j = {{"name", g.name}};
}
[[maybe_unused]] void from_json(nlohmann::json const& j, greet& g) { j.at("name").get_to(g.name); }

struct greet_once : greet {};
struct greet_if_new : greet {};

/// Counts what it is asked, so that a test sees that nothing was.
struct transaction {
  weir::memory_store store;
  int executed = 0;

  template <class C>
  auto execute(C const& c) {
    ++executed;
    return store.execute(c);
  }
};

struct bed {
  boost::asio::io_context io;
  transaction tx{weir::memory_store{io.get_executor()}};

  weir::queue_stats stats(std::string_view queue) {
    return tx.store.execute(weir::command::read_queue_stats{.queue = queue}).value();
  }
};

}  // namespace

template <>
struct weir::job_traits<greet> {
  static constexpr std::string_view kind = "greet";
  static constexpr std::uint8_t priority = 3;
  static std::string queue(greet const& g) { return "greet " + g.name.substr(0, 1); }
};
template <>
struct weir::job_traits<greet_once> {
  static constexpr std::string_view kind = "greet_once";
  static constexpr auto unique = unique_strategy::until_executed;
  static constexpr auto on_conflict = conflict_policy::reject;
  static std::string unique_key(greet const& g) { return g.name; }
};
template <>
struct weir::job_traits<greet_if_new> {
  static constexpr std::string_view kind = "greet_if_new";
  static constexpr auto unique = unique_strategy::until_executed;
  static constexpr auto on_conflict = conflict_policy::discard;
  static std::string unique_key(greet const& g) { return g.name; }
};

BOOST_FIXTURE_TEST_SUITE(enqueue, bed)

BOOST_AUTO_TEST_CASE(a_job_has_the_policies_of_its_type) {
  greet const ann{"ann"};
  auto const added = weir::enqueue(tx, ann);
  BOOST_REQUIRE(added.has_value());
  BOOST_TEST((added->outcome == weir::enqueue_outcome::enqueued));
  auto const job = tx.store.execute(weir::command::find_job{"greet a", added->id}).value();
  BOOST_REQUIRE(job.has_value());
  BOOST_TEST(job->kind == "greet");
  BOOST_TEST(job->payload == R"({"name":"ann"})");
  BOOST_TEST(job->priority == 3);
}

BOOST_AUTO_TEST_CASE(what_one_enqueue_says_is_stronger) {
  greet const ann{"ann"};
  std::array const id{weir::id_source{}.job()};
  auto const added =
      weir::enqueue(tx, ann, {.delay = 1h, .queue = "other", .priority = 9, .ids = id});
  BOOST_REQUIRE(added.has_value());
  BOOST_TEST(added->id == id[0]);
  auto const job = tx.store.execute(weir::command::find_job{"other", id[0]}).value();
  BOOST_REQUIRE(job.has_value());
  BOOST_TEST(job->priority == 9);
  BOOST_TEST(stats("other").enqueued == 1U);
  BOOST_TEST(stats("greet a").enqueued == 0U);
}

BOOST_AUTO_TEST_CASE(conflicts_are_what_the_type_says_they_are) {
  greet_once const once{{"ann"}};
  BOOST_TEST(weir::enqueue(tx, once).has_value());
  BOOST_TEST((weir::enqueue(tx, once).error() == weir::errc::unique_conflict));
  greet_if_new const ben{{"ben"}};
  auto const first = weir::enqueue(tx, ben);
  auto const again = weir::enqueue(tx, ben);
  BOOST_REQUIRE(again.has_value());
  BOOST_TEST((again->outcome == weir::enqueue_outcome::duplicate));
  BOOST_TEST(again->other == first->id);
}

BOOST_AUTO_TEST_CASE(bad_input_is_refused_before_anything_is_executed) {
  greet const unspeakable{"unspeakable"};
  BOOST_TEST((weir::enqueue(tx, unspeakable).error() == weir::errc::unencodable_payload));
  greet const ann{"ann"};
  std::vector<weir::job_id> const two(2, weir::id_source{}.job());
  BOOST_TEST((weir::enqueue(tx, ann, {.ids = two}).error() == weir::errc::invalid_option));
  std::array<greet, 2> const apart{{{"ann"}, {"ben"}}};
  BOOST_TEST(
      (weir::enqueue_many(tx, std::span<greet const>{apart}).error() == weir::errc::invalid_queue));
  BOOST_TEST(tx.executed == 0);
  BOOST_TEST(weir::enqueue_many(tx, std::span<greet const>{}).has_error());
  BOOST_TEST(stats("greet a").enqueued == 0U);
}

BOOST_AUTO_TEST_CASE(R8_more_jobs_than_go_into_a_batch_are_not_even_encoded) {
  std::vector<greet> const jobs(weir::limits::batch + 1, greet{"ann"});
  encoded = 0;
  BOOST_TEST((weir::enqueue_many(tx, jobs).error() == weir::errc::invalid_batch));
  BOOST_TEST(encoded == 0);
  BOOST_TEST(tx.executed == 0);
  std::span<greet const> const most{jobs.data(), weir::limits::batch};
  BOOST_TEST(weir::enqueue_many(tx, most).has_value());
}

BOOST_AUTO_TEST_CASE(many_are_added_in_one_step_each_with_an_outcome_of_its_own) {
  std::array<greet_once, 3> const jobs{{{{"ann"}}, {{"ben"}}, {{"ann"}}}};
  auto const added = weir::enqueue_many(tx, std::span<greet_once const>{jobs});
  BOOST_REQUIRE(added.has_value());
  BOOST_TEST(tx.executed == 1);
  BOOST_REQUIRE(added->size() == 3U);
  BOOST_TEST(((*added)[1].outcome == weir::enqueue_outcome::enqueued));
  BOOST_TEST(((*added)[2].outcome == weir::enqueue_outcome::duplicate));
  BOOST_TEST((*added)[2].other == (*added)[0].id);
}

BOOST_AUTO_TEST_SUITE_END()
