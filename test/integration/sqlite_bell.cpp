// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Processes that share a file: how they tell each other of commits, and what each may have open. A
// hint that does not come is a test that does not end.

#include "heard_log.hpp"
#include "sqlite_bed.hpp"
#include "weir/store/sqlite/bell.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using namespace sqlite_test;
using detail::sqlite_bell;
using weir_test::heard_log;

constexpr duration forever = 24h;

struct bell : sqlite_bell {
  explicit bell(directory const& home) { hang(home.file()); }
};

/// Was the file touched since it was made old?
class touches {
 public:
  explicit touches(std::string file) : file_{std::move(file)} { forget(); }
  void forget() const {
    std::array const old{::timespec{1, 0}, ::timespec{1, 0}};
    BOOST_TEST_REQUIRE(::utimensat(AT_FDCWD, file_.c_str(), old.data(), 0) == 0);
  }
  [[nodiscard]] bool any() const {
    struct ::stat s{};
    BOOST_TEST_REQUIRE(::stat(file_.c_str(), &s) == 0);
    return s.st_mtim.tv_sec != 1;
  }

 private:
  std::string file_;
};

/// A store that looks for others' commits by itself once in ten seconds only.
sqlite_options patient() {
  auto o = quick();
  o.poll_interval = 10s;
  return o;
}

/// Waits for a hint that `give` is to bring about.
template <class C, class Give>
void heard(boost::asio::io_context& io, sqlite_store const& store, C const& wait, Give&& give) {
  bool told = false;
  store.async_execute(wait, [&](error_code ec, hint) {
    BOOST_TEST(!ec);
    told = true;
  });
  give();
  io.restart();
  while (!told && io.run_one() != 0) {
  }
  BOOST_TEST_REQUIRE(told);
}

/// The same of a job that another store enqueues, and claims it.
void hears_of_job(boost::asio::io_context& io, sqlite_store const& here, sqlite_store const& there,
                  std::uint64_t n) {
  heard(io, here, command::await_jobs{}, [&] {
    std::vector<new_job> const jobs{job_of(n)};
    BOOST_TEST(ask(io, there, command::enqueue_jobs{"q", jobs}).has_value());
  });
  BOOST_TEST_REQUIRE(ask(io, here, command::dequeue_jobs{"q", "h", 0, 1, 1h})->jobs.size() == 1U);
}

[[nodiscard]] std::size_t descriptors() {
  std::size_t n = 0;
  for ([[maybe_unused]] auto const& d : std::filesystem::directory_iterator{"/proc/self/fd"}) ++n;
  return n;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_bells, *boost::unit_test::enable_if<sqlite_bell::is_possible>())

BOOST_AUTO_TEST_CASE(who_listens_hears_who_rings_and_nobody_else_does) {
  directory const home;
  bell listener{home};
  bell ringer{home};
  BOOST_TEST_REQUIRE(listener.listen());
  touches const file{home.file() + "-bell"};
  listener.wait(forever, true);  // what `touches` has just done
  ringer.ring();
  BOOST_TEST(file.any());
  listener.wait(forever, true);
  // Its own ring is not for itself, unless there are others.
  file.forget();
  listener.wait(forever, true);
  listener.ring();
  BOOST_TEST(!file.any());
  BOOST_TEST(ringer.listen());
  listener.ring();
  BOOST_TEST(file.any());
  ringer.wait(forever, true);
}

BOOST_AUTO_TEST_CASE(where_nobody_listens_nothing_is_touched) {
  directory const home;
  bell ringer{home};
  ringer.ring();
  BOOST_TEST(!std::filesystem::exists(home.file() + "-bell"));
  std::ofstream{home.file() + "-bell"};
  touches const file{home.file() + "-bell"};
  ringer.ring();
  BOOST_TEST(!file.any());
  {
    bell listener{home};
    BOOST_TEST_REQUIRE(listener.listen());
    ringer.ring();
    BOOST_TEST(file.any());
    file.forget();
    listener.ignore();
    ringer.ring();
    BOOST_TEST(!file.any());
    BOOST_TEST_REQUIRE(listener.listen());
  }
  ringer.ring();  // whoever listened is gone
  BOOST_TEST(!file.any());
}

BOOST_AUTO_TEST_CASE(a_ring_that_is_not_heeded_is_heard_by_the_next_wait) {
  directory const home;
  bell listener{home};
  bell ringer{home};
  BOOST_TEST_REQUIRE(listener.listen());
  ringer.ring();
  listener.wake();
  listener.wait(forever, false);
  listener.wait(forever, true);
  listener.wake();
  listener.wait(forever, true);
}

BOOST_AUTO_TEST_CASE(a_bell_that_was_deleted_is_hung_again) {
  directory const home;
  bell listener{home};
  bell ringer{home};
  BOOST_TEST_REQUIRE(listener.listen());
  ringer.ring();
  listener.wait(forever, true);
  std::filesystem::remove(home.file() + "-bell");
  ringer.ring();
  BOOST_TEST_REQUIRE(listener.listen());
  listener.wait(forever, true);  // of the deletion
  ringer.ring();
  listener.wait(forever, true);
}

BOOST_AUTO_TEST_CASE(what_is_no_plain_file_is_no_bell) {
  directory const home;
  auto const path = home.file() + "-bell";
  auto const refused = [&] {
    bell b{home};
    BOOST_TEST(!b.listen());
    BOOST_TEST(!b.cause().empty());
    b.ring();
    std::filesystem::remove(path);
  };
  std::filesystem::create_directory(path);
  refused();
  BOOST_TEST_REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  refused();
  std::ofstream{home.file("elsewhere")};
  std::filesystem::create_symlink(home.file("elsewhere"), path);
  refused();
}

BOOST_AUTO_TEST_CASE(a_store_hears_another_one_long_before_it_would_look) {
  directory const home;
  boost::asio::io_context io;
  sqlite_store const here{io.get_executor(), home.file(), patient()};
  sqlite_store const there{io.get_executor(), home.file(), patient()};
  BOOST_TEST(ask(io, here, command::inspect_lock{"k"}).has_value());
  // Ten minutes, if each were found by a look.
  for (std::uint64_t n = 1; n != 60; ++n) hears_of_job(io, here, there, n);
}

BOOST_AUTO_TEST_CASE(a_permit_that_another_store_frees_is_heard_of_too) {
  directory const home;
  boost::asio::io_context io;
  sqlite_store const here{io.get_executor(), home.file(), patient()};
  sqlite_store const there{io.get_executor(), home.file(), patient()};
  for (int n = 0; n != 60; ++n) {
    auto const fence = ask(io, there, command::acquire_permit{"k", "a", 1, 1h, {}})->fence;
    BOOST_TEST(!ask(io, here, command::acquire_permit{"k", "b", 1, 1h, 1h})->granted);
    heard(io, here, command::await_permit{"k", "b"},
          [&] { BOOST_TEST(ask(io, there, command::release_permit{"k", "a", fence})->freed); });
    auto const granted = ask(io, here, command::acquire_permit{"k", "b", 1, 1h, {}});
    BOOST_TEST_REQUIRE(granted->granted);
    BOOST_TEST(ask(io, here, command::release_permit{"k", "b", granted->fence})->freed);
  }
}

BOOST_AUTO_TEST_CASE(what_nobody_waits_for_rings_no_bell) {
  directory const home;
  boost::asio::io_context io;
  sqlite_store const here{io.get_executor(), home.file(), patient()};
  sqlite_store const there{io.get_executor(), home.file(), patient()};
  here.async_execute(command::await_jobs{}, [](error_code, hint) {});
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(ask(io, there, command::enqueue_jobs{"q", jobs}).has_value());  // it was told of this
  io.restart();
  io.run();
  here.async_execute(command::await_jobs{1}, [](error_code, hint) {});  // no such shard: it listens
  io.restart();
  io.run();
  auto const got = ask(io, here, command::dequeue_jobs{"q", "h", 0, 1, 1h});
  here.async_execute(command::await_jobs{}, [](error_code, hint) {});
  BOOST_TEST(ask(io, here, command::enqueue_jobs{"other", std::span<new_job const>{}}).has_error());
  BOOST_TEST(ask(io, here, command::inspect_permits{"k"}).has_value());
  touches const file{home.file() + "-bell"};
  std::array const quotas{quota::per_hour(5)};
  BOOST_TEST(ask(io, there, command::take{"k", quotas, 1, {}}).has_value());
  BOOST_TEST(ask(io, there, command::acquire_lock{"k", "h", 1h})->granted);
  std::array const done{finished_job{got->jobs[0].id, got->jobs[0].fence, {}}};
  BOOST_TEST(ask(io, there, command::complete_jobs{"q", done}).has_value());
  BOOST_TEST(!file.any());
  std::vector<new_job> const more{job_of(2)};
  BOOST_TEST(ask(io, there, command::enqueue_jobs{"q", more}).has_value());
  BOOST_TEST(file.any());
  here.close();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_CASE(an_application_s_transaction_rings_for_what_it_is_about_to_commit) {
  directory const home;
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), home.file(), quick()};
  BOOST_TEST(ask(io, store, command::inspect_lock{"k"}).has_value());
  bell listener{home};
  BOOST_TEST_REQUIRE(listener.listen());
  touches const file{home.file() + "-bell"};
  connection db{home.file()};
  sqlite_transaction tx{db.get()};
  db.must("BEGIN IMMEDIATE");
  BOOST_TEST(tx.execute(command::acquire_lock{"k", "h", 1h}).has_value());
  BOOST_TEST(!file.any());
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(tx.execute(command::enqueue_jobs{"q", jobs}).has_value());
  BOOST_TEST(file.any());
  heard(io, store, command::await_jobs{}, [&] { db.must("COMMIT"); });
}

BOOST_AUTO_TEST_CASE(without_a_bell_it_is_said_and_polled) {
  directory const home;
  std::filesystem::create_directory(home.file() + "-bell");
  heard_log const log;
  boost::asio::io_context io;
  sqlite_store const here{io.get_executor(), home.file(), quick()};
  sqlite_store const there{io.get_executor(), home.file(), quick()};
  for (std::uint64_t n = 1; n != 3; ++n) hears_of_job(io, here, there, n);
  BOOST_TEST(log.count("is noticed by polling: Is a directory") == 1U, log.all());
}

BOOST_AUTO_TEST_CASE(without_descriptors_too) {
  directory const home;
  bell b{home};
  ::rlimit before{};
  BOOST_TEST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  auto few = before;
  few.rlim_cur = 3;
  BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  bool const listens = b.listen();
  BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  BOOST_TEST(!listens);
  BOOST_TEST(b.cause() == std::error_code(EMFILE, std::system_category()).message());
  BOOST_TEST(b.listen());
}

BOOST_AUTO_TEST_CASE(a_process_has_64_stores_on_a_file_and_no_more) {
  directory const home;
  boost::asio::io_context io;
  std::deque<sqlite_store> all;
  auto const opens = [&] {
    all.emplace_back(io.get_executor(), home.file(), quick());
    return ask(io, all.back(), command::inspect_lock{"k"});
  };
  auto const before = descriptors();
  for (int n = 0; n != 64; ++n) BOOST_TEST_REQUIRE(opens().has_value());
  {
    heard_log const log;
    auto const one_more = opens();
    BOOST_TEST(one_more.error() == errc::invalid_option);
    BOOST_TEST(one_more.error().message().find("64 stores on it already") != std::string::npos,
               one_more.error().message());
  }
  // Of another file there may be as many, and a copy is no store of its own.
  directory const other;
  sqlite_store const elsewhere{io.get_executor(), other.file(), quick()};
  BOOST_TEST(ask(io, elsewhere, command::inspect_lock{"k"}).has_value());
  auto const copy = all.front();
  BOOST_TEST(ask(io, copy, command::inspect_lock{"k"}).has_value());
  // The database and its log; with a waiter a bell and two for what waits for it; with a write what
  // is kept for a full disk. One of all, for the index; one that SQLite keeps for the next that
  // opens it; and the other file's three.
  constexpr std::size_t others = 5;
  BOOST_TEST(descriptors() - before <= 64U * 2 + others);
  for (auto const& s : all) s.async_execute(command::await_jobs{}, [](error_code, hint) {});
  BOOST_TEST(ask(io, all.front(), command::acquire_lock{"k", "h", 1h}).has_value());
  for (auto const& s : all)
    BOOST_TEST(ask(io, s, command::acquire_lock{"k", "h", 1h}).has_value() != (&s == &all.back()));
  BOOST_TEST(descriptors() - before <= 64U * 6 + others);
  all.pop_front();
  BOOST_TEST(ask(io, copy, command::inspect_lock{"k"}).has_value());
  all.pop_front();
  BOOST_TEST(opens().has_value());  // one that is closed makes room
}

BOOST_AUTO_TEST_SUITE_END()
