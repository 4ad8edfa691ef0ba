// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The log of a file while somebody reads what was there before, as a backup does.

#include "sqlite_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<int> write_backs{0};

}  // namespace

// Instead of SQLite's, to count them.
extern "C" int sqlite3_wal_checkpoint_v2(sqlite3* db, char const* name, int how, int* all,
                                         int* done) {
  static auto const real = reinterpret_cast<decltype(&::sqlite3_wal_checkpoint_v2)>(
      ::dlsym(RTLD_NEXT, "sqlite3_wal_checkpoint_v2"));
  ++write_backs;
  return real(db, name, how, all, done);
}

namespace {

using namespace sqlite_test;

/// Commands that write so many MiB, of 256 pages each.
void write(bed& b, int mebibytes) {
  static std::uint8_t n = 0;
  std::string const large(limits::payload_size, 'x');
  for (; mebibytes != 0; --mebibytes) {
    std::vector<new_job> const jobs{job_of(++n, large)};
    BOOST_TEST_REQUIRE(b(command::enqueue_jobs{"q", jobs}).has_value());
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_log)

// Each attempt waits for the reader, and everybody waits for the attempt.
BOOST_AUTO_TEST_CASE(a_reader_that_stays_is_seldom_waited_for) {
  bed b;
  write(b, 1);
  connection reader{b.home.file()};
  reader.must("BEGIN; SELECT count(*) FROM weir_jobs");
  write_backs = 0;
  write(b, 60);  // 15,000 pages: it is tried from 1,000 on
  BOOST_TEST(write_backs >= 4);
  BOOST_TEST(write_backs <= 6);

  // The log is written back when it has doubled, and begins anew.
  reader.must("COMMIT");
  write_backs = 0;
  write(b, 70);
  BOOST_TEST(write_backs >= 10);
  int pages = 0;
  int done = 0;
  auto const rest = [&] {
    return sqlite3_wal_checkpoint_v2(reader.get(), "main", SQLITE_CHECKPOINT_PASSIVE, &pages,
                                     &done);
  };
  while (rest() == SQLITE_BUSY) std::this_thread::yield();  // the store may be about to
  BOOST_TEST(pages < 2'000);
  BOOST_TEST(done == pages);
}

BOOST_AUTO_TEST_SUITE_END()
