// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F63: the date is not the file's time: processes whose dates differ, and are set, share a file.
// They load libfaketime, which leaves their boot clock alone.

#include "sqlite_bed.hpp"
#include "sqlite_helper.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

namespace {

using namespace sqlite_test;

/// The report of a process whose date was set.
struct witness {
  std::atomic<std::int64_t> date;  // in seconds
  std::atomic<bool> done;
};

/// What every process does with the file: what the first one holds is live to the others, and what
/// they make themselves is theirs at once, for as long as they asked.
void use(std::string const& file, std::string const& me, bool first) {
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), file, quick()};
  auto const tell = [&](auto const& c) { return ask(io, store, c).value(); };

  auto const lock = tell(command::acquire_lock{"lock", me, 10h});
  BOOST_TEST(lock.granted == first, "a lock that is held");
  auto const permit = tell(command::acquire_permit{"permits", me, 1, 10h, {}});
  BOOST_TEST(permit.granted == first, "a permit that is held");
  BOOST_TEST((first || (permit.retry_after > 5h && permit.retry_after <= 10h)));
  auto const queue_lease = tell(command::obtain_queue_lease{"jobs", me, 10h});
  BOOST_TEST(queue_lease.granted == first, "a queue that is leased");
  for (auto const& l : {lock, queue_lease}) {
    BOOST_TEST((l.expires_in > 5h && l.expires_in <= 10h));
  }

  std::array const quotas{quota::per_hour(1).burst(5)};
  for (int i = 0; first && i != 5; ++i) tell(command::take{"bucket", quotas, 1, {}});
  auto const denied = tell(command::take{"bucket", quotas, 1, {}});
  BOOST_TEST(!denied.allowed, "a bucket that is empty");
  BOOST_TEST((denied.retry_after <= 1h));

  if (first) {
    std::array jobs{job_of(1), job_of(2)};
    jobs[1].delay = 10h;
    tell(command::enqueue_jobs{"jobs", jobs});
    BOOST_TEST(tell(command::dequeue_jobs{"jobs", me, 1, 10, 10h}).jobs.size() == 1U);
  }
  BOOST_TEST(tell(command::dequeue_jobs{"jobs", me, 2, 10, 10h}).jobs.empty(),
             "one is leased, and the other is not due");

  // Nothing is stuck.
  BOOST_TEST((tell(command::acquire_lock{"lock of " + me, me, 10h}).expires_in == 10h));
  BOOST_TEST(tell(command::enqueue_jobs{"jobs of " + me, std::array{job_of(1)}}).size() == 1U);
  BOOST_TEST(tell(command::dequeue_jobs{"jobs of " + me, me, 1, 1, 10h}).jobs.size() == 1U);
  BOOST_TEST(tell(command::take{"bucket of " + me, quotas, 5, {}}).allowed);
}

std::int64_t date() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             system_clock::system_now().time_since_epoch())
      .count();
}

/// A process that loads libfaketime, which takes the step of its date from a file.
helper stepped(std::string const& test_case, directory const& home) {
#if defined(WEIR_FAKETIME)
  return helper{"sqlite_date_helper/" + test_case,
                {"LD_PRELOAD=" WEIR_FAKETIME, "FAKETIME_DONT_FAKE_MONOTONIC=1",
                 "FAKETIME_NO_CACHE=1", "FAKETIME_TIMESTAMP_FILE=" + home.file("step"),
                 "WEIR_TEST_FILE=" + home.file(), "WEIR_TEST_STEP=" + home.file("step"),
                 "WEIR_TEST_WITNESS=" + home.file("witness")}};
#else
  throw std::runtime_error{"built without libfaketime, which " + test_case + " in " + home.file() +
                           " needs"};
#endif
}

void set_date(std::string const& file, std::string const& step) {
  std::ofstream{file} << step << "h\n";
}

/// Is this the step, but for the time that the test took?
bool is_step(std::int64_t seconds, std::string const& step) {
  auto const hours = std::stoll(step);
  return seconds >= hours * 3600 && seconds < (hours + 10) * 3600;
}

constexpr std::array steps{"-20", "+20", "-10000", "+10000"};

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_date)

BOOST_AUTO_TEST_CASE(F63_a_date_that_was_set_in_another_process_changes_nothing) {
  for (std::string const step : steps) {
    directory const home;
    shared_memory<witness> const w{home.file("witness")};
    use(home.file(), "first", true);
    set_date(home.file("step"), step);
    auto const before = date();
    BOOST_TEST(stepped("another_process", home).wait() == 0, "by " << step << " h");
    BOOST_TEST_REQUIRE(w->done.load());
    BOOST_TEST_REQUIRE(is_step(w->date.load() - before, step), "its date was not set");
    use(home.file(), "third", false);  // as the one before has left it
  }
}

BOOST_AUTO_TEST_CASE(F63_a_date_that_is_set_while_a_process_uses_the_file_changes_nothing) {
  directory const home;
  shared_memory<witness> const w{home.file("witness")};
  set_date(home.file("step"), "+0");
  BOOST_TEST(stepped("the_same_process", home).wait() == 0);
  BOOST_TEST_REQUIRE(w->done.load());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(sqlite_date_helper, *boost::unit_test::disabled())

BOOST_AUTO_TEST_CASE(another_process) {
  end_with_the_test();
  shared_memory<witness> const w{told("WEIR_TEST_WITNESS")};
  w->date = date();
  use(told("WEIR_TEST_FILE"), "second", false);
  w->done = true;
}

BOOST_AUTO_TEST_CASE(the_same_process) {
  end_with_the_test();
  shared_memory<witness> const w{told("WEIR_TEST_WITNESS")};
  auto const start = date();
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), told("WEIR_TEST_FILE"), quick()};
  use(told("WEIR_TEST_FILE"), "first", true);
  BOOST_TEST(ask(io, store, command::acquire_lock{"mine", "h", 10h})->granted);
  for (std::string const step : steps) {
    set_date(told("WEIR_TEST_STEP"), step);
    BOOST_TEST_REQUIRE(is_step(date() - start, step), "its date was not set");
    auto const held = *ask(io, store, command::acquire_lock{"mine", "g", 10h});
    BOOST_TEST(!held.granted);
    BOOST_TEST((held.expires_in > 5h && held.expires_in <= 10h));
    use(told("WEIR_TEST_FILE"), "with " + step, false);
  }
  w->done = true;
}

BOOST_AUTO_TEST_SUITE_END()
