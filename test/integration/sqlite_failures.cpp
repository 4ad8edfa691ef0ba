// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the file store does when the disk, the directory or the file is not as it should be: a typed
// error, nothing changed, and work goes on when it heals (F46).

#include "sqlite_bed.hpp"
#include "sqlite_disk.hpp"
#include "sqlite_helper.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/stat.h>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace sqlite_test;

std::string content_of(std::string const& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

void write_to(std::string const& path, std::string const& content) {
  std::ofstream{path, std::ios::binary} << content;
}

/// A user who is not root, where root runs the tests.
constexpr ::uid_t somebody_else = 65'534;

command::acquire_lock take_lock(std::string_view key) { return {key, "holder", 1h}; }

/// What the first command on that file says; the file must still be what it was.
error_code refused(std::string const& path, sqlite_options const& o = quick()) {
  auto const before = content_of(path);
  boost::asio::io_context io;
  error_code ec;
  {
    sqlite_store const store{io.get_executor(), path, o};
    auto const answer = ask(io, store, take_lock("k"));
    if (answer.has_error()) ec = answer.error();
    std::optional<error_code> opened;
    store.async_open([&](error_code e) { opened = e; });
    io.restart();
    io.run();
    BOOST_TEST(opened.value() == ec);
  }
  BOOST_TEST((content_of(path) == before), "it was touched");
  return ec;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_failures)

BOOST_AUTO_TEST_CASE(F46_a_file_that_is_no_database_is_foreign) {
  directory const home;
  write_to(home.file(), std::string(8192, 'x'));
  BOOST_TEST(refused(home.file()) == errc::store_foreign);
}

BOOST_AUTO_TEST_CASE(F46_a_database_of_somebody_else_is_foreign) {
  directory const home;
  {
    connection db{home.file()};
    db.must("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
  }
  BOOST_TEST(refused(home.file()) == errc::store_foreign);
}

BOOST_AUTO_TEST_CASE(F46_so_is_one_that_only_says_so) {
  directory const home;
  {
    connection db{home.file()};
    db.must("PRAGMA application_id = 7");
  }
  BOOST_TEST(refused(home.file()) == errc::store_foreign);
}

BOOST_AUTO_TEST_CASE(another_version_s_file_is_left_alone) {
  for (auto const& [schema, refusal] :
       {std::pair{"99", errc::schema_too_new}, std::pair{"5", errc::schema_outdated}}) {
    bed b;
    BOOST_TEST(b(take_lock("k"))->granted);
    {
      connection db{b.home.file()};
      db.must("PRAGMA user_version = " + std::string{schema} +
              "; UPDATE weir_state SET schema = " + schema);
      db.must("PRAGMA wal_checkpoint(TRUNCATE)");
    }
    BOOST_TEST(refused(b.home.file()) == refusal);
  }
}

BOOST_AUTO_TEST_CASE(an_earlier_version_s_file_is_migrated) {
  bed b;
  BOOST_TEST(b(take_lock("k"))->granted);
  {
    connection db{b.home.file()};
    db.must("ALTER TABLE weir_state DROP COLUMN cancels; UPDATE weir_state SET schema = 6; "
            "PRAGMA user_version = 6; PRAGMA wal_checkpoint(TRUNCATE)");
  }
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), b.home.file(), quick()};
  BOOST_TEST(ask(io, store, take_lock("k"))->granted);
  connection db{b.home.file()};
  BOOST_TEST(db.number("SELECT schema FROM weir_state") == 7);
  BOOST_TEST(db.number("SELECT count(*) FROM weir_locks") == 1);
}

BOOST_AUTO_TEST_CASE(F46_a_truncated_file_is_corrupt) {
  directory const home;
  {
    bed b;
    BOOST_TEST(b(take_lock("k"))->granted);
    connection db{b.home.file()};
    db.must("PRAGMA wal_checkpoint(TRUNCATE)");
    std::filesystem::copy_file(b.home.file(), home.file());
  }
  std::filesystem::resize_file(home.file(), 5 * 4096);
  BOOST_TEST(refused(home.file()) == errc::store_corrupt);
}

BOOST_AUTO_TEST_CASE(F46_a_file_without_its_tables_is_corrupt) {
  bed b;
  BOOST_TEST(b(take_lock("k"))->granted);
  {
    connection db{b.home.file()};
    db.must("DROP TABLE weir_state; PRAGMA wal_checkpoint(TRUNCATE)");
  }
  BOOST_TEST(refused(b.home.file()) == errc::store_corrupt);
}

BOOST_AUTO_TEST_CASE(F46_damage_that_is_found_later_is_corrupt_and_other_keys_go_on) {
  bed b;
  BOOST_TEST(b(take_lock("k"))->granted);
  connection db{b.home.file()};
  auto const root = db.number("SELECT rootpage FROM sqlite_schema WHERE name = 'weir_jobs'");
  db.must("PRAGMA wal_checkpoint(TRUNCATE)");
  std::fstream file{b.home.file(), std::ios::in | std::ios::out | std::ios::binary};
  file.seekp((root - 1) * 4096);
  file << std::string(4096, '\xff');
  file.close();

  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), b.home.file(), quick()};
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(ask(io, store, command::enqueue_jobs{"q", jobs}).error() == errc::store_corrupt);
  BOOST_TEST(ask(io, store, command::inspect_lock{"k"})->held);
}

BOOST_AUTO_TEST_CASE(a_file_with_other_shards_is_refused) {
  bed b;
  BOOST_TEST(b(take_lock("k"))->granted);
  auto o = quick();
  o.shards = 8;
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), b.home.file(), o};
  BOOST_TEST(store.shard_count() == 8);
  BOOST_TEST(ask(io, store, take_lock("k")).error() == errc::invalid_option);
}

BOOST_AUTO_TEST_CASE(F46_no_space_left_is_disk_full_and_changes_nothing) {
  disk d;
  bed b;
  std::vector<new_job> const jobs{job_of(1), job_of(2)};
  BOOST_TEST(b(take_lock("before"))->granted);
  for (int const rc : {SQLITE_FULL, SQLITE_FULL}) {
    d.write_error = rc;
    BOOST_TEST(b(take_lock("k")).error() == errc::disk_full);
    BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).error() == errc::disk_full);
    BOOST_TEST((b(command::enqueue_jobs{"q", jobs}).error() == condition::transient));
    d.write_error = SQLITE_OK;
    BOOST_TEST(!b(command::inspect_lock{"k"})->held);
    BOOST_TEST(b(command::read_queue_stats{"q"})->enqueued == 0);
    BOOST_TEST(b(command::inspect_lock{"before"})->held);
  }
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs})->size() == 2);
}

BOOST_AUTO_TEST_CASE(F46_in_a_group_each_command_gets_its_own_answer) {
  disk d;
  bed b;
  BOOST_TEST(b(take_lock("first"))->granted);
  // While somebody else writes, what comes is gathered.
  connection other{b.home.file()};
  other.must("BEGIN IMMEDIATE");
  std::vector<error_code> said(20);
  for (std::size_t i = 0; i != said.size(); ++i) {
    auto const key = "k" + std::to_string(i);
    b.store.async_execute(take_lock(key),
                          [&, i](error_code ec, lock_grant const&) { said[i] = ec; });
  }
  b.store.async_execute(command::inspect_lock{"first"}, [&](error_code ec, lock_info const& l) {
    BOOST_TEST(!ec);
    BOOST_TEST(l.held);
  });
  d.write_error = SQLITE_FULL;
  other.must("ROLLBACK");
  b.io.restart();
  b.io.run();
  for (auto const& ec : said) BOOST_TEST(ec == errc::disk_full);
}

BOOST_AUTO_TEST_CASE(F46_in_a_group_what_does_not_fit_keeps_nobody_else_out) {
  auto o = quick();
  o.max_bytes = 400'000;
  bed b{o};
  BOOST_TEST(b(take_lock("first"))->granted);
  connection other{b.home.file()};
  other.must("BEGIN IMMEDIATE");
  std::string const payload(500'000, 'p');
  std::vector<new_job> const large{job_of(1, payload)};
  std::vector<new_job> const small{job_of(2)};
  error_code too_large;
  int done = 0;
  auto const count = [&](error_code ec, auto const&) { done += ec ? 0 : 1; };
  b.store.async_execute(take_lock("before"), count);
  b.store.async_execute(command::enqueue_jobs{"q", large},
                        [&](error_code ec, auto const&) { too_large = ec; });
  b.store.async_execute(command::enqueue_jobs{"q", small}, count);
  b.store.async_execute(take_lock("after"), count);
  other.must("ROLLBACK");
  b.io.restart();
  b.io.run();
  BOOST_TEST(too_large == errc::disk_full);
  BOOST_TEST(done == 3);
  BOOST_TEST(b(command::read_queue_stats{"q"})->enqueued == 1U);
}

BOOST_AUTO_TEST_CASE(F46_a_failing_disk_is_unavailable_and_a_failing_commit_unknown) {
  disk d;
  sqlite_options o;  // durable, so that a commit is an fsync
  bed b{o};
  BOOST_TEST(b(take_lock("before"))->granted);
  d.sync_error = SQLITE_IOERR_FSYNC;
  BOOST_TEST(b(take_lock("k")).error() == errc::outcome_unknown);
  d.sync_error = SQLITE_OK;
  BOOST_TEST(b(take_lock("k2"))->granted);
  BOOST_TEST(b(command::inspect_lock{"before"})->held);
}

BOOST_AUTO_TEST_CASE(max_bytes_is_disk_full_and_room_comes_back) {
  auto o = quick();
  o.max_bytes = 400'000;
  bed b{o};
  std::string const payload(20'000, 'p');
  std::uint64_t n = 0;
  error_code ec;
  for (; !ec && n != 100; ++n) {
    std::vector<new_job> const jobs{job_of(n, payload)};
    auto const answer = b(command::enqueue_jobs{"q", jobs});
    if (answer.has_error()) ec = answer.error();
  }
  BOOST_TEST(ec == errc::disk_full);
  BOOST_TEST(std::filesystem::file_size(b.home.file()) <= o.max_bytes);
  BOOST_TEST(b(command::read_queue_stats{"q"})->enqueued == n - 1);
  for (std::uint64_t i = 0; i != 3; ++i) {
    BOOST_TEST((*b(command::cancel_job{"q", id(i)}) == cancel_outcome::cancelled));
  }
  std::vector<new_job> const jobs{job_of(1000, payload)};
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
}

BOOST_AUTO_TEST_CASE(F46_a_deleted_directory_is_unavailable_until_it_is_there_again) {
  directory const home;
  auto const inner = home.path() / "inner";
  std::filesystem::create_directory(inner);
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), (inner / "store.db").string(), quick()};
  BOOST_TEST(ask(io, store, take_lock("k"))->granted);
  std::filesystem::remove_all(inner);
  BOOST_TEST(ask(io, store, take_lock("k")).error() == errc::store_unavailable);
  BOOST_TEST(ask(io, store, command::inspect_lock{"k"}).error() == errc::store_unavailable);
  std::filesystem::create_directory(inner);
  auto const again = ask(io, store, take_lock("k"));
  BOOST_TEST(again->granted);
  BOOST_TEST(std::filesystem::exists(inner / "store.db"), "it goes where nobody will find it");
}

BOOST_AUTO_TEST_CASE(F46_a_file_that_was_replaced_is_the_one_that_is_used) {
  bed b;
  BOOST_TEST(b(take_lock("old"))->granted);
  std::string const copy = b.home.file("copy.db");
  connection{b.home.file()}.must("VACUUM INTO '" + copy + "'");
  BOOST_TEST(b(take_lock("new"))->granted);
  for (auto const* const beside : {"-wal", "-shm"}) std::filesystem::remove(b.home.file() + beside);
  std::filesystem::rename(copy, b.home.file());
  BOOST_TEST(b(command::inspect_lock{"old"})->held);
  BOOST_TEST(!b(command::inspect_lock{"new"})->held);
}

/// The folder of the process, which is there again at the end.
class folder {
 public:
  explicit folder(std::filesystem::path const& in) { std::filesystem::current_path(in); }
  folder(folder const&) = delete;
  folder& operator=(folder const&) = delete;
  ~folder() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

BOOST_AUTO_TEST_CASE(F46_a_file_that_is_opened_again_is_the_same_one_in_another_folder) {
  bed b;
  BOOST_TEST(b(take_lock("old"))->granted);
  std::string const copy = b.home.file("copy.db");
  connection{b.home.file()}.must("VACUUM INTO '" + copy + "'");
  std::filesystem::create_directory(b.home.path() / "another");
  folder const here{b.home.path()};
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), "copy.db", quick()};
  BOOST_TEST(ask(io, store, command::inspect_lock{"old"})->held);
  folder const there{b.home.path() / "another"};
  // It is opened again, since it is another file now.
  std::string const other = b.home.file("other.db");
  connection{copy}.must("VACUUM INTO '" + other + "'");
  for (auto const* const beside : {"-wal", "-shm"}) std::filesystem::remove(copy + beside);
  std::filesystem::rename(other, copy);
  BOOST_TEST(ask(io, store, command::inspect_lock{"old"})->held);
  BOOST_TEST(std::filesystem::is_empty(b.home.path() / "another"));
}

BOOST_AUTO_TEST_CASE(F46_a_file_that_may_not_be_written_is_read_only) {
  directory const home;  // the other user may not be allowed to make one
  if (::getuid() == 0) {
    BOOST_TEST_REQUIRE(::chown(home.path().c_str(), somebody_else, somebody_else) == 0);
  }
  helper other{"sqlite_failures_helper/read_only", {"WEIR_TEST_FILE=" + home.file()}};
  BOOST_TEST(other.wait() == 0);
}

BOOST_AUTO_TEST_CASE(others_that_never_let_go_are_unavailable_after_busy_timeout_and_not_before) {
  auto o = quick();
  o.busy_timeout = 60ms;
  bed b{o};
  BOOST_TEST(b(take_lock("k"))->granted);
  connection other{b.home.file()};
  other.must("BEGIN IMMEDIATE");
  BOOST_TEST(b(take_lock("l")).error() == errc::store_unavailable);
  BOOST_TEST(b(command::inspect_lock{"k"})->held, "who only reads need not wait");
  other.must("ROLLBACK");
  BOOST_TEST(b(take_lock("l"))->granted);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(sqlite_failures_helper, *boost::unit_test::disabled())

BOOST_AUTO_TEST_CASE(read_only) {
  // Root may write whatever it likes, so somebody else tries.
  if (::getuid() == 0) BOOST_TEST_REQUIRE(::setuid(somebody_else) == 0);
  auto const file = told("WEIR_TEST_FILE");
  boost::asio::io_context io;
  auto const allow = [&](mode_t mode) { BOOST_TEST_REQUIRE(::chmod(file.c_str(), mode) == 0); };
  for (bool const in_use : {false, true}) {
    std::optional<sqlite_store> user{std::in_place, io.get_executor(), file, quick()};
    BOOST_TEST(ask(io, *user, take_lock("k")).has_value());
    if (!in_use) user.reset();
    allow(0444);
    sqlite_store const store{io.get_executor(), file, quick()};
    BOOST_TEST(ask(io, store, take_lock("l")).error() == errc::store_read_only);
    BOOST_TEST(ask(io, store, command::inspect_lock{"k"}).error() == errc::store_read_only);
    allow(0644);
    BOOST_TEST(ask(io, store, take_lock("l")).has_value());
    BOOST_TEST(ask(io, store, command::inspect_lock{"k"})->held);
  }
}

BOOST_AUTO_TEST_SUITE_END()
