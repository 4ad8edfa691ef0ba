// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Every operation of the job queue once, as its user meets it: the steps themselves are tested at
// the stores.

#include "weir/job_queue.hpp"

#include "weir/clock/manual.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <exception>
#include <span>
#include <string>
#include <vector>

namespace test {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct order {
  std::string customer;
  int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(order, customer, number)

struct import_order : order {};
inline void to_json(nlohmann::json& j, import_order const& o) {
  to_json(j, static_cast<order const&>(o));
}
inline void from_json(nlohmann::json const& j, import_order& o) {
  from_json(j, static_cast<order&>(o));
}

template <int Policy>
struct once : order {};
template <int Policy>
void to_json(nlohmann::json& j, once<Policy> const& o) {
  to_json(j, static_cast<order const&>(o));
}
template <int Policy>
void from_json(nlohmann::json const& j, once<Policy>& o) {
  from_json(j, static_cast<order&>(o));
}

}  // namespace test

template <>
struct weir::job_traits<test::order> {
  static constexpr std::string_view kind = "order";
  static std::string queue(test::order const& o) { return "orders of " + o.customer; }
  static std::uint8_t priority(test::order const& o) { return o.number == 0 ? 1 : 100; }
  static constexpr std::uint32_t max_attempts = 5;
  static constexpr duration retention = std::chrono::hours{1};
};
template <int Policy>
struct weir::job_traits<test::once<Policy>> {
  static constexpr std::string_view kind = "once";
  static constexpr std::string_view queue = "once";
  static constexpr auto unique = unique_strategy::until_executed;
  static constexpr auto on_conflict = static_cast<conflict_policy>(Policy);
  static std::string unique_key(test::once<Policy> const& o) { return o.customer; }
};

using namespace test;
using weir::conflict_policy;

namespace {

constexpr auto await = asio::as_tuple(asio::use_awaitable);

struct queue_fixture {
  queue_fixture() = default;

  /// Runs a coroutine to its end.
  template <class Body>
  void run(Body body) {
    std::exception_ptr failed;
    bool ended = false;
    asio::co_spawn(io, std::move(body), [&](std::exception_ptr e) {
      failed = e;
      ended = true;
    });
    io.restart();
    io.run();
    if (failed) std::rethrow_exception(failed);
    BOOST_TEST(ended);
  }

  weir::manual_clock clock;
  asio::io_context io;
  weir::basic_memory_store<weir::manual_clock> store{io.get_executor(), {}, clock};
  weir::job_queue<weir::basic_memory_store<weir::manual_clock>> queue{store};
};

constexpr auto orders = "orders of ann";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(job_queue, queue_fixture)

BOOST_AUTO_TEST_CASE(a_job_goes_its_whole_way) {
  run([&]() -> asio::awaitable<void> {
    order const first{"ann", 7};
    auto const made = co_await queue.async_enqueue(first);
    BOOST_TEST((made.outcome == weir::enqueue_outcome::enqueued));
    order const urgent{"ann", 0};
    co_await queue.async_enqueue(urgent);

    auto const seen = co_await queue.async_peek(orders, 10);
    BOOST_TEST_REQUIRE(seen.size() == 2U);
    BOOST_TEST(seen[0].priority == 1);
    BOOST_TEST((seen[1].id == made.id));
    BOOST_TEST(seen[1].payload == R"({"customer":"ann","number":7})");
    BOOST_TEST(seen[1].max_attempts == 5U);

    auto const visible = co_await queue.async_scan_visible_queues();
    BOOST_TEST(visible.queues == std::vector<std::string>{orders},
               boost::test_tools::per_element());
    auto const vesting = co_await queue.async_min_vesting_time(orders);
    BOOST_TEST((vesting.has_value() && *vesting <= 0s));

    weir::dequeue_options options;
    options.limit = 1;
    options.lease = 10s;
    auto const got = co_await queue.async_dequeue(orders, "me", options);
    BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
    BOOST_TEST(got.jobs[0].priority == 1);
    BOOST_TEST(got.more);

    auto const leased = co_await queue.async_obtain_lease(orders, made.id, "me", 10s);
    BOOST_TEST_REQUIRE(leased.has_value());
    auto const other = co_await queue.async_obtain_lease(orders, made.id, "you", 10s);
    BOOST_TEST(!other.has_value());
    auto const extended = co_await queue.async_extend_lease(orders, made.id, leased->fence, 60s);
    BOOST_TEST((extended.expires_in == 60s));

    co_await queue.async_complete(orders, made.id, leased->fence, "invoice 12");
    auto const done = co_await queue.async_find(orders, made.id);
    BOOST_TEST_REQUIRE(done.has_value());
    BOOST_TEST(done->result == "invoice 12");
    auto const [late, nothing] =
        co_await queue.async_extend_lease(orders, made.id, leased->fence, 1s, await);
    BOOST_TEST((late == weir::errc::lease_lost));

    auto const stats = co_await queue.async_stats(orders);
    BOOST_TEST(stats.enqueued == 2U);
    BOOST_TEST(stats.leased == 1U);
    BOOST_TEST(stats.completed == 1U);
  });
}

BOOST_AUTO_TEST_CASE(snooze_requeue_return_bury_replay_and_purge) {
  run([&]() -> asio::awaitable<void> {
    order const o{"ann", 1};
    auto const made = co_await queue.async_enqueue(o);

    auto lease = co_await queue.async_obtain_lease(orders, made.id, "me");
    co_await queue.async_snooze(orders, made.id, lease->fence, 0s, "a note");
    auto now = co_await queue.async_find(orders, made.id);
    BOOST_TEST(now->attempts == 0U);
    BOOST_TEST(now->snoozes == 1U);
    BOOST_TEST(now->memo == "a note");

    lease = co_await queue.async_obtain_lease(orders, made.id, "me");
    co_await queue.async_return(orders, made.id, lease->fence);
    now = co_await queue.async_find(orders, made.id);
    BOOST_TEST(now->attempts == 0U);
    BOOST_TEST(now->snoozes == 1U);

    lease = co_await queue.async_obtain_lease(orders, made.id, "me");
    auto const outcome = co_await queue.async_requeue(orders, made.id, lease->fence, 0s, "why");
    BOOST_TEST((outcome == weir::requeue_outcome::requeued));
    now = co_await queue.async_find(orders, made.id);
    BOOST_TEST(now->attempts == 1U);
    BOOST_TEST(now->reason == "why");

    lease = co_await queue.async_obtain_lease(orders, made.id, "me");
    co_await queue.async_bury(orders, made.id, lease->fence, "hopeless");
    auto const dead = co_await queue.async_list_dead_letters(orders);
    BOOST_TEST_REQUIRE(dead.jobs.size() == 1U);
    BOOST_TEST(dead.jobs[0].reason == "hopeless");
    auto const listed = co_await queue.async_list(orders, weir::job_state::dead);
    BOOST_TEST(listed.jobs.size() == 1U);
    BOOST_TEST((co_await queue.async_list(orders, weir::job_state::leased)).jobs.empty());

    // F40: a replayed job has all its attempts again.
    auto const replayed = co_await queue.async_replay(orders, made.id);
    BOOST_TEST((replayed.outcome == weir::replay_outcome::replayed));
    now = co_await queue.async_find(orders, made.id);
    BOOST_TEST(now->attempts == 0U);

    lease = co_await queue.async_obtain_lease(orders, made.id, "me");
    co_await queue.async_bury(orders, made.id, lease->fence, "again");
    BOOST_TEST((co_await queue.async_purge(orders, made.id)));
    BOOST_TEST(!(co_await queue.async_purge(orders, made.id)));
    auto const stats = co_await queue.async_stats(orders);
    BOOST_TEST(stats.purged == 1U);
    BOOST_TEST(stats.dead == 0U);
  });
}

BOOST_AUTO_TEST_CASE(cancel_pause_resume_snooze_queue_and_queue_leases) {
  run([&]() -> asio::awaitable<void> {
    order const o{"ann", 1};
    auto const first = co_await queue.async_enqueue(o);
    BOOST_TEST((co_await queue.async_cancel(orders, first.id) == weir::cancel_outcome::cancelled));
    auto const second = co_await queue.async_enqueue(o);
    auto const lease = co_await queue.async_obtain_lease(orders, second.id, "me");
    BOOST_TEST((co_await queue.async_cancel(orders, second.id) == weir::cancel_outcome::running));
    BOOST_TEST(
        (co_await queue.async_cancel(orders, second.id, true) == weir::cancel_outcome::cancelled));
    weir::job_id const unknown{{1}};
    BOOST_TEST((co_await queue.async_cancel(orders, unknown) == weir::cancel_outcome::not_found));
    auto const [late, h] =
        co_await queue.async_complete(orders, second.id, lease->fence, "", await);
    BOOST_TEST((late == weir::errc::lease_lost));

    co_await queue.async_enqueue(o);
    co_await queue.async_pause(orders);
    auto none = co_await queue.async_dequeue(orders, "me");
    BOOST_TEST(none.jobs.empty());
    BOOST_TEST(none.held);
    BOOST_TEST((co_await queue.async_scan_visible_queues()).queues.empty());
    BOOST_TEST((co_await queue.async_stats(orders)).paused);
    co_await queue.async_resume(orders);
    co_await queue.async_snooze_queue(orders, 10s);
    none = co_await queue.async_dequeue(orders, "me");
    BOOST_TEST(none.held);
    clock.advance(10s);
    auto const some = co_await queue.async_dequeue(orders, "me");
    BOOST_TEST(some.jobs.size() == 1U);

    auto const mine = co_await queue.async_obtain_queue_lease(orders, "me", 10s);
    BOOST_TEST(mine.granted);
    auto const yours = co_await queue.async_obtain_queue_lease(orders, "you", 10s);
    BOOST_TEST(!yours.granted);
    BOOST_TEST(yours.holder == "me");
    auto const freed = co_await queue.async_release_queue_lease(orders, "me", mine.fence);
    BOOST_TEST(freed.freed);
    auto const twice = co_await queue.async_release_queue_lease(orders, "me", mine.fence);
    BOOST_TEST(!twice.freed);

    BOOST_TEST((co_await queue.async_update_queue_pointer(orders)).has_value());
    BOOST_TEST((co_await queue.async_gc_stale_pointers()) == 0U);
    auto const all = co_await queue.async_list_queues();
    BOOST_TEST(all.queues == std::vector<std::string>{orders}, boost::test_tools::per_element());
  });
}

BOOST_AUTO_TEST_CASE(F18_a_batch_is_one_step_and_a_conflict_is_its_own_jobs_business) {
  run([&]() -> asio::awaitable<void> {
    using policy = once<static_cast<int>(conflict_policy::reject)>;
    std::vector<policy> jobs(3);
    jobs[0].customer = "ann";
    jobs[1].customer = "bob";
    jobs[2].customer = "ann";
    auto const made = co_await queue.async_enqueue_many(std::span<policy const>{jobs});
    BOOST_TEST_REQUIRE(made.size() == 3U);
    BOOST_TEST((made[0].outcome == weir::enqueue_outcome::enqueued));
    BOOST_TEST((made[1].outcome == weir::enqueue_outcome::enqueued));
    BOOST_TEST((made[2].outcome == weir::enqueue_outcome::duplicate));
    BOOST_TEST((made[2].other == made[0].id));
  });
}

BOOST_AUTO_TEST_CASE(the_five_conflict_policies) {
  run([&]() -> asio::awaitable<void> {
    once<static_cast<int>(conflict_policy::reject)> rejected;
    rejected.customer = "ann";
    auto const first = co_await queue.async_enqueue(rejected);
    auto const [ec, conflict] = co_await queue.async_enqueue(rejected, {}, await);
    BOOST_TEST((ec == weir::errc::unique_conflict));
    BOOST_TEST((conflict.outcome == weir::enqueue_outcome::duplicate));
    BOOST_TEST((conflict.other == first.id), "the error comes with the job that has the key");
    BOOST_TEST((conflict.id != first.id));

    once<static_cast<int>(conflict_policy::discard)> discarded;
    discarded.customer = "ann";
    auto const value = co_await queue.async_enqueue(discarded);
    BOOST_TEST((value.outcome == weir::enqueue_outcome::duplicate));
    BOOST_TEST((value.other == first.id));

    std::vector<std::string> log;
    queue.on_conflict([&](std::string_view q, weir::job_id, weir::job_id possessor) {
      log.emplace_back(q);
      BOOST_TEST((possessor == first.id));
    });
    once<static_cast<int>(conflict_policy::log)> logged;
    logged.customer = "ann";
    auto const noted = co_await queue.async_enqueue(logged);
    BOOST_TEST((noted.outcome == weir::enqueue_outcome::duplicate));
    BOOST_TEST(log == std::vector<std::string>{"once"}, boost::test_tools::per_element());

    once<static_cast<int>(conflict_policy::reschedule)> moved;
    moved.customer = "ann";
    weir::enqueue_options later;
    later.delay = 60s;
    auto const rescheduled = co_await queue.async_enqueue(moved, later);
    BOOST_TEST((rescheduled.outcome == weir::enqueue_outcome::rescheduled));
    BOOST_TEST((co_await queue.async_find("once", first.id))->vests_in.count() ==
               weir::duration{60s}.count());

    once<static_cast<int>(conflict_policy::replace)> newer;
    newer.customer = "ann";
    newer.number = 9;
    auto const replaced = co_await queue.async_enqueue(newer);
    BOOST_TEST((replaced.outcome == weir::enqueue_outcome::replaced));
    BOOST_TEST((replaced.other == first.id));
    auto const lease = co_await queue.async_obtain_lease("once", replaced.id, "me");
    auto const [running, runner] = co_await queue.async_enqueue(newer, {}, await);
    BOOST_TEST((running == weir::errc::unique_conflict));
    BOOST_TEST((runner.other == replaced.id));
    co_await queue.async_complete("once", replaced.id, lease->fence);
    auto const again = co_await queue.async_enqueue(newer);
    BOOST_TEST((again.outcome == weir::enqueue_outcome::enqueued));
  });
}

BOOST_AUTO_TEST_CASE(R8_bad_input_is_a_typed_error_and_changes_nothing) {
  run([&]() -> asio::awaitable<void> {
    order const o{"ann", 1};
    weir::enqueue_options negative;
    negative.delay = -1s;
    auto const [wait, a] = co_await queue.async_enqueue(o, negative, await);
    BOOST_TEST((wait == weir::errc::invalid_wait));

    std::string const long_name(64 * 1024, 'q');
    weir::enqueue_options far;
    far.queue = long_name;
    auto const [name, b] = co_await queue.async_enqueue(o, far, await);
    BOOST_TEST((name == weir::errc::invalid_queue));
    weir::enqueue_options nameless;
    nameless.queue = "";
    auto const [empty, c] = co_await queue.async_enqueue(o, nameless, await);
    BOOST_TEST((empty == weir::errc::invalid_queue));

    order const huge{std::string(2 << 20, 'x'), 1};
    weir::enqueue_options here;
    here.queue = "here";
    auto const [size, d] = co_await queue.async_enqueue(huge, here, await);
    BOOST_TEST((size == weir::errc::payload_too_large));
    order const binary{"\xff\xfe", 1};
    auto const [text, e] = co_await queue.async_enqueue(binary, here, await);
    BOOST_TEST((text == weir::errc::unencodable_payload));

    std::vector<order> mixed(2);
    mixed[0].customer = "ann";
    mixed[1].customer = "bob";
    auto const [queues, f] =
        co_await queue.async_enqueue_many(std::span<order const>{mixed}, {}, await);
    BOOST_TEST((queues == weir::errc::invalid_queue));
    auto const [nobody, g] = co_await queue.async_dequeue(orders, "", {}, await);
    BOOST_TEST((nobody == weir::errc::invalid_holder));
    weir::dequeue_options zero;
    zero.limit = 0;
    auto const [batch, h] = co_await queue.async_dequeue(orders, "me", zero, await);
    BOOST_TEST((batch == weir::errc::invalid_batch));
    auto const [shard, i] = co_await queue.async_scan_visible_queues(7, 10, await);
    BOOST_TEST((shard == weir::errc::invalid_shard));
    BOOST_TEST((co_await queue.async_list_queues()).queues.empty());
  });
}

BOOST_AUTO_TEST_CASE(a_job_under_an_id_of_the_callers_is_enqueued_once_whatever_became_of_it) {
  run([&]() -> asio::awaitable<void> {
    order const o{"ann", 7};
    order const changed{"ann", 8};
    auto const ids = weir::id_source::seeded(99);
    weir::job_id const own[] = {ids.job()};
    weir::enqueue_options options;
    options.ids = own;
    auto const made = co_await queue.async_enqueue(o, options);
    BOOST_TEST((made.id == own[0]));
    for (int i = 0; i != 2; ++i) {
      auto const again = co_await queue.async_enqueue(changed, options);
      BOOST_TEST((again.outcome == weir::enqueue_outcome::enqueued));
      BOOST_TEST((again.id == own[0]));
      auto const found = co_await queue.async_find(orders, own[0]);
      BOOST_TEST_REQUIRE(found.has_value());
      BOOST_TEST(found->payload == R"({"customer":"ann","number":7})");
      auto const stats = co_await queue.async_stats(orders);
      BOOST_TEST(stats.enqueued == 1U);
      if (i == 1) break;
      auto const leased = co_await queue.async_obtain_lease(orders, own[0], "me", 10s);
      co_await queue.async_complete(orders, own[0], leased->fence, "done");
    }
    auto const ended = co_await queue.async_find(orders, own[0]);
    BOOST_TEST((ended->state == weir::job_state::completed));
    BOOST_TEST(ended->result == "done");

    // The record is what remembers it.
    clock.advance(1h);
    co_await queue.async_enqueue(changed, options);
    auto const anew = co_await queue.async_find(orders, own[0]);
    BOOST_TEST((anew.has_value() && anew->state == weir::job_state::pending));
  });
}

BOOST_AUTO_TEST_CASE(own_ids_belong_to_the_jobs_by_position_and_bad_ones_are_refused) {
  run([&]() -> asio::awaitable<void> {
    auto const source = weir::id_source::seeded(99);
    std::vector<order> two(2);
    two[0].customer = two[1].customer = "ann";
    two[1].number = 1;
    std::vector<weir::job_id> ids{source.job(), source.job()};
    weir::enqueue_options options;
    options.ids = ids;
    std::span<order const> const both{two};
    auto const made = co_await queue.async_enqueue_many(both, options);
    BOOST_TEST_REQUIRE(made.size() == 2U);
    for (std::size_t i = 0; i != 2; ++i) BOOST_TEST((made[i].id == ids[i]));
    auto const second = co_await queue.async_find(orders, ids[1]);
    BOOST_TEST(second->payload == R"({"customer":"ann","number":1})");

    auto const [many, a] = co_await queue.async_enqueue(two[0], options, await);
    BOOST_TEST((many == weir::errc::invalid_option));
    ids.pop_back();
    options.ids = ids;
    auto const [few, b] = co_await queue.async_enqueue_many(both, options, await);
    BOOST_TEST((few == weir::errc::invalid_option));
    weir::job_id const nil[] = {weir::job_id{}};
    options.ids = nil;
    auto const [none, c] = co_await queue.async_enqueue(two[0], options, await);
    BOOST_TEST((none == weir::errc::invalid_option));
    auto const stats = co_await queue.async_stats(orders);
    BOOST_TEST(stats.enqueued == 2U);
  });
}

BOOST_AUTO_TEST_SUITE_END()
