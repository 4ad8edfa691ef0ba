// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F86, F87: what a SQLite store says of mistakes, and when its file is another's.

#include "mistakes.hpp"
#include "sqlite_bed.hpp"
#include "weir/store/sqlite/bell.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace sqlite_test;
using weir_test::compare_row;
using weir_test::heard_log;

/// What is told first where the store is made of this path.
void row(std::string const& name, std::string const& path, directory const& home,
         sqlite_options const& o = quick()) {
  heard_log const heard;
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), path, o};
  compare_row(name, weir_test::first_line(io, store, heard), {{home.path().string(), "FOLDER"}});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_mistakes)

BOOST_AUTO_TEST_CASE(F86_what_is_wrong_with_the_file_is_told) {
  directory const home;
  row("sqlite.no_folder", home.file("missing/jobs.db"), home);
  row("sqlite.folder", home.path(), home);
  std::ofstream{home.file("notes.txt")} << std::string(4096, 'x') << std::flush;
  row("sqlite.no_database", home.file("notes.txt"), home);
  connection{home.file("app.db")}.must("CREATE TABLE orders (n); PRAGMA user_version = 7");
  row("sqlite.application", home.file("app.db"), home);
  row("sqlite.in_memory", ":memory:", home);
}

BOOST_AUTO_TEST_CASE(F85_a_worker_ends_where_it_is_refused_for_good) {
  directory const home;
  connection{home.file("app.db")}.must("CREATE TABLE orders (n); PRAGMA user_version = 7");
  boost::asio::io_context io;
  sqlite_store const foreign{io.get_executor(), home.file("app.db"), quick()};
  BOOST_TEST((weir_test::end_of_a_worker(io, foreign) == errc::store_foreign));
  sqlite_store const nowhere{io.get_executor(), ":memory:", quick()};
  BOOST_TEST((weir_test::end_of_a_worker(io, nowhere) == errc::invalid_option));
}

BOOST_AUTO_TEST_CASE(F86_an_option_that_is_wrong_is_named) {
  bed on;
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  auto o = quick();
  o.shards = 2;
  row("sqlite.shards", on.home.file(), on.home, o);
  o = quick();
  o.busy_timeout = 20ms;
  connection other{on.home.file()};
  other.must("BEGIN IMMEDIATE");
  row("sqlite.busy", on.home.file(), on.home, o);
  other.must("ROLLBACK");
}

BOOST_AUTO_TEST_CASE(a_reader_that_never_ends_is_told_of) {
  bed on;
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  connection reader{on.home.file()};
  reader.must("BEGIN");
  BOOST_TEST(reader.number("SELECT count(*) FROM weir_jobs") == 0);
  heard_log const heard;
  std::string const large = '"' + std::string(1 << 20, 'x').substr(2) + '"';
  for (std::uint64_t n = 1; n != 70; ++n) {
    std::vector<new_job> const jobs{job_of(n, large)};
    BOOST_TEST(on(command::enqueue_jobs{"q", jobs}).has_value());
  }
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  compare_row("sqlite.long_log", heard.first(), {{on.home.path().string(), "FOLDER"}});
  BOOST_TEST(heard.count("its log") == 1U, heard.all());
}

BOOST_AUTO_TEST_CASE(that_nothing_is_heard_of_others_is_told) {
  if (!detail::sqlite_bell::is_possible) return;
  bed on;
  std::filesystem::create_directory(on.home.file() + "-bell");
  heard_log const heard;
  on.store.async_execute(command::await_jobs{}, [](error_code, hint) {});
  BOOST_TEST(on(command::acquire_lock{"key", "h", 1h}).has_value());
  compare_row("sqlite.no_bell", heard.first(), {{on.home.path().string(), "FOLDER"}});
  on.store.close();
  on.io.restart();
  on.io.run();
}

BOOST_AUTO_TEST_CASE(F87_calls_end_when_the_file_is_anothers) {
  bed on;
  connection other{on.home.file()};
  weir_test::F87_calls_end_when_the_store_is_stopped(on.io, on.store,
                                                     [&] { other.must("BEGIN IMMEDIATE"); });
  other.must("ROLLBACK");
}

BOOST_AUTO_TEST_SUITE_END()
