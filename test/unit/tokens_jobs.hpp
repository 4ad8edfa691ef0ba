// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_UNIT_TOKENS_JOBS_HPP
#define WEIR_TEST_UNIT_TOKENS_JOBS_HPP

// Every operation of the job queue, for tests of every kind of token: a file for some of them each,
// since each operation under each token is a type of its own to the compiler.

#include "weir/clock/manual.hpp"
#include "weir/job_queue.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <vector>

namespace test {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using memory = weir::basic_memory_store<weir::manual_clock>;

struct task {
  int n = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(task, n)

}  // namespace test

template <>
struct weir::job_traits<test::task> {
  static constexpr std::string_view kind = "task";
};

namespace test {

/// Calls `with` for every operation, as a function of its token.
template <class With>
void for_each_operation(weir::job_queue<memory>& queue, With with) {
  static task const job{};
  static std::vector<task> const jobs(2);
  weir::job_id const id{{1}};
  with([&](auto&& t) { return queue.async_enqueue(job, {}, t); });
  with([&](auto&& t) { return queue.async_enqueue_many(std::span<task const>{jobs}, {}, t); });
  with([&](auto&& t) { return queue.async_peek("default", 10, t); });
  with([&](auto&& t) { return queue.async_dequeue("default", "me", {}, t); });
  with([&](auto&& t) { return queue.async_obtain_lease("default", id, "me", 1s, t); });
  with([&](auto&& t) { return queue.async_find("default", id, t); });
  with([&](auto&& t) { return queue.async_cancel("default", id, false, t); });
  with([&](auto&& t) { return queue.async_min_vesting_time("default", t); });
  with([&](auto&& t) { return queue.async_scan_visible_queues(0, 10, t); });
  with([&](auto&& t) { return queue.async_update_queue_pointer("default", t); });
  with([&](auto&& t) { return queue.async_gc_stale_pointers(0, 10, 1min, t); });
  with([&](auto&& t) { return queue.async_obtain_queue_lease("default", "me", 1s, t); });
  with([&](auto&& t) { return queue.async_release_queue_lease("default", "me", 0, t); });
  with([&](auto&& t) { return queue.async_snooze_queue("default", 0s, t); });
  with([&](auto&& t) { return queue.async_pause("default", t); });
  with([&](auto&& t) { return queue.async_resume("default", t); });
  with([&](auto&& t) { return queue.async_stats("default", t); });
  with([&](auto&& t) { return queue.async_list_dead_letters("default", 10, "", t); });
  with([&](auto&& t) { return queue.async_replay("default", id, 0s, t); });
  with([&](auto&& t) { return queue.async_purge("default", id, t); });
  with([&](auto&& t) { return queue.async_list_queues(0, 10, "", t); });
}

/// And for those that end with `lease_lost`, since nothing is leased under this fence.
template <class With>
void for_each_refused_operation(weir::job_queue<memory>& queue, With with) {
  weir::job_id const id{{1}};
  with([&](auto&& t) { return queue.async_extend_lease("default", id, 1, 1s, t); });
  with([&](auto&& t) { return queue.async_complete("default", id, 1, "", t); });
  with([&](auto&& t) { return queue.async_requeue("default", id, 1, 0s, "", t); });
  with([&](auto&& t) { return queue.async_snooze("default", id, 1, 0s, "", t); });
  with([&](auto&& t) { return queue.async_return("default", id, 1, t); });
  with([&](auto&& t) { return queue.async_bury("default", id, 1, "", t); });
}

struct tokens_fixture {
  tokens_fixture() = default;

  weir::manual_clock clock;
  asio::io_context io;
  memory store{io.get_executor(), {}, clock};
  weir::job_queue<memory> queue{store};
  int operations = 0;
  int completed = 0;
};

}  // namespace test

#endif
