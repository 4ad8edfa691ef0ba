// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A program asks why a job does not run. The reasons one by one are tried by
// test/integration/console/weirctl.py, on every store.

#include "weir/explain.hpp"

#include "weir/id_source.hpp"
#include "weir/job_queue.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace {

using namespace std::chrono_literals;
namespace command = weir::command;

struct fixture {
  using answer = std::optional<weir::job_explanation>;

  weir::job_id add(weir::duration delay) {
    weir::new_job job;
    job.id = ids.job();
    job.kind = "kind";
    job.delay = delay;
    BOOST_TEST_REQUIRE(
        queue.get_store().execute(command::enqueue_jobs{"mail", {&job, 1}}).has_value());
    return job.id;
  }
  answer explain(std::string name, weir::job_id id, weir::error_code expected = {}) {
    std::optional<answer> out;
    weir::async_explain(queue, std::move(name), id, [&](weir::error_code ec, answer why) {
      BOOST_TEST((ec == expected), ec.message());
      out = std::move(why);
    });
    BOOST_TEST(!out.has_value());
    io.restart();
    io.run();
    BOOST_TEST_REQUIRE(out.has_value());
    return *out;
  }

  boost::asio::io_context io;
  weir::job_queue<weir::memory_store> queue{weir::memory_store{io.get_executor()}};
  weir::id_source ids;
};

bool has(fixture::answer const& why, std::string_view code) {
  return std::ranges::any_of(why->because, [&](auto const& r) { return r.code == code; });
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(explain, fixture)

BOOST_AUTO_TEST_CASE(a_program_is_told_why_a_job_waits) {
  auto const later = add(1h);
  auto const due = add(0s);
  auto why = explain("mail", later);
  BOOST_TEST_REQUIRE(why.has_value());
  BOOST_TEST((why->record.id == later));
  BOOST_TEST(has(why, "not_due"));
  BOOST_TEST(!has(why, "queue_paused"));
  BOOST_TEST(!why->unknown.empty());  // whether there are workers
  BOOST_TEST(queue.get_store().execute(command::pause_queue{"mail"}).has_value());
  why = explain("mail", due);
  BOOST_TEST((has(why, "first") && has(why, "queue_paused") && !has(why, "not_due")));
}

BOOST_AUTO_TEST_CASE(of_a_job_without_a_record_there_is_nothing_to_say) {
  BOOST_TEST(!explain("mail", ids.job()).has_value());
}

BOOST_AUTO_TEST_CASE(R8_a_bad_name_is_refused) {
  explain("", ids.job(), weir::errc::invalid_queue);
}

BOOST_AUTO_TEST_SUITE_END()
