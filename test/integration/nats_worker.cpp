// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Workers on servers that take less in one message than what their jobs come to together.

#include "nats_job_steps.hpp"
#include "nats_server.hpp"
#include "patience.hpp"
#include "weir/job_queue.hpp"
#include "weir/worker.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <exception>
#include <map>
#include <string>
#include <string_view>

namespace {

using namespace nats_test;
namespace asio = boost::asio;

struct report {
  int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(report, number)

constexpr int many = 100;

}  // namespace

template <>
struct weir::job_traits<report> {
  static constexpr std::string_view kind = "report";
  static constexpr weir::duration retention = std::chrono::hours{1};
};

BOOST_AUTO_TEST_SUITE(nats_worker)

BOOST_AUTO_TEST_CASE(F59_results_that_fit_into_no_message_together_complete_every_job_once) {
  for (std::size_t const max_payload : {64U << 10U, 1U << 20U}) {
    BOOST_TEST_CONTEXT("a max_payload of " << max_payload) {
      server s{{}, "max_payload: " + std::to_string(max_payload) + "\n"};
      bed on{s, brisk()};
      job_queue queue{on.store};
      int enqueued = 0;
      asio::co_spawn(
          on.io,
          [&]() -> asio::awaitable<void> {
            for (int i = 0; i != many; ++i) {
              report const r{i};
              co_await queue.async_enqueue(r);
              ++enqueued;
            }
          },
          [](std::exception_ptr const& e) { BOOST_TEST(!e); });
      BOOST_TEST_REQUIRE(weir_test::happens(on.io, [&] { return enqueued == many; }));

      std::map<int, int> runs;
      std::size_t completed = 0;
      bool over = false;
      worker_options o;
      o.concurrency = many;
      worker w{on.store, o};
      w.handle<report>([&](report const& r, job_context&) -> asio::awaitable<std::string> {
        ++runs[r.number];
        co_return std::string(max_payload / 4, 'r');
      });
      w.on_event([&](worker_event const& e) {
        completed += e.kind == worker_event_kind::completed ? 1U : 0U;
      });
      w.async_run([&](error_code) { over = true; });
      BOOST_TEST(weir_test::happens(on.io, [&] { return completed == many; }));
      w.stop();
      BOOST_TEST_REQUIRE(weir_test::happens(on.io, [&] { return over; }));
      for (int i = 0; i != many; ++i) BOOST_TEST(runs[i] == 1);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
