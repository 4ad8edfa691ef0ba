// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F63: the file has one time of its own, which begins at a boot of the host and goes on in suspend.
// The host's clocks are the test's.

#include "sqlite_bed.hpp"
#include "weir/clock/manual.hpp"
#include "weir/store/sqlite/ledger.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace sqlite_test;

// ------------------------------------------------------------------------------- boots and suspend

/// The clocks of a host during one boot.
class boot : public manual_clock {
 public:
  boot(std::string id, time_point date, duration uptime = 1h)
      : manual_clock{date, steady_time{uptime}},
        id_{std::move(id)} {}

  [[nodiscard]] std::string boot_id() const { return id_; }

  /// The host sleeps: its boot clock and its date go on.
  void suspend(duration d) { advance(d); }

 private:
  std::string id_;
};

constexpr auto new_year = manual_clock::default_date;

/// A process of the host.
struct process {
  process(std::string const& file, boot const& clock)
      : store{io.get_executor(), file, quick(), clock} {}

  template <class C>
  [[nodiscard]] auto operator()(C const& c) {
    return ask(io, store, c);
  }
  [[nodiscard]] bool locks(std::string const& key, std::string const& holder, duration ttl = 10h) {
    return (*this)(command::acquire_lock{key, holder, ttl})->granted;
  }

  boost::asio::io_context io{};
  basic_sqlite_store<boot> store;
};

/// Takes one lease of each kind, and a place in line.
void take_all(process& p, std::string const& me) {
  BOOST_TEST(p.locks("lock", me));
  BOOST_TEST(p(command::acquire_permit{"permits", me, 1, 10h, {}})->granted);
  BOOST_TEST(p(command::obtain_queue_lease{"jobs", me, 10h})->granted);
  BOOST_TEST(p(command::dequeue_jobs{"jobs", me, 1, 1, 10h})->jobs.size() == 1U);
}

std::array const five_an_hour{quota::per_hour(5).burst(5)};

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_time)

BOOST_AUTO_TEST_CASE(F63_at_a_new_boot_leases_are_over_and_what_time_ends_goes_on) {
  for (auto const off : {-24h * 365, 0h, 1h}) {  // what the date says that it was off for
    directory const home;
    std::uint64_t fence = 0;
    {
      process p{home.file(), boot{"one", new_year}};
      std::vector<new_job> jobs{job_of(1), job_of(2), job_of(3)};
      jobs[1].delay = 2h;
      jobs[2].strategy = unique_strategy::until_expired;
      jobs[2].unique_key = "key";
      jobs[2].unique_ttl = 2h;
      jobs[2].delay = 100h;
      BOOST_TEST(p(command::enqueue_jobs{"jobs", jobs}).has_value());
      std::vector<new_job> kept{job_of(4)};
      kept[0].retention = 2h;
      BOOST_TEST(p(command::enqueue_jobs{"kept", kept}).has_value());
      auto const d = *p(command::dequeue_jobs{"kept", "h", 1, 1, 1h});
      std::array const finished{finished_job{id(4), d.jobs.at(0).fence, "result"}};
      BOOST_TEST(p(command::complete_jobs{"kept", finished}).has_value());
      BOOST_TEST(p(command::take{"bucket", five_an_hour, 5, {}})->allowed);
      take_all(p, "one");
      BOOST_TEST(!p(command::acquire_permit{"permits", "waiter", 1, 10h, 10h})->granted);
      fence = p(command::inspect_lock{"lock"})->fence;
    }
    auto const passed = std::max<duration>(off, detail::sqlite_clock::grain);
    boot two{"two", new_year + off, 5min};
    process p{home.file(), two};
    // A command that only reads is the first that comes.
    BOOST_TEST(p(command::read_queue_stats{"jobs"})->leased == 0U);
    auto const due = p(command::scan_visible_queues{})->queues;
    BOOST_TEST(std::ranges::count(due, "jobs") == 1);
    BOOST_TEST((p(command::read_queue_stats{"jobs"})->next_in <= duration{}));
    take_all(p, "two");
    BOOST_TEST(p(command::inspect_lock{"lock"})->fence > fence);
    BOOST_TEST(p(command::peek_bucket{"bucket", five_an_hour, 1, {}})->allowed == (off > 0h));
    BOOST_TEST((*p(command::min_vesting_time{"jobs"}) == 2h - passed));
    std::vector<new_job> same{job_of(5)};
    same[0].strategy = unique_strategy::until_expired;
    same[0].unique_key = "key";
    same[0].unique_ttl = 2h;
    auto const outcome = [&] {
      return p(command::enqueue_jobs{"jobs", same})->at(0).outcome != enqueue_outcome::enqueued;
    };
    BOOST_TEST(outcome(), "the key is held until its time is over");
    BOOST_TEST((*p(command::find_job{"kept", id(4)})).has_value());
    two.advance(2h - passed);
    BOOST_TEST(!outcome());
    BOOST_TEST(!(*p(command::find_job{"kept", id(4)})).has_value());
    BOOST_TEST((p(command::dequeue_jobs{"jobs", "two", 2, 10, 10h})->jobs.size() == 2U));
  }
}

// Housekeeping asks only when something can be over, as far as the store knows.
BOOST_AUTO_TEST_CASE(what_is_over_is_removed_by_later_steps_of_its_kind) {
  directory const home;
  boot clock{"one", new_year};
  process p{home.file(), clock};
  BOOST_TEST(p.locks("first", "h", 1min));
  connection db{home.file()};
  auto const rows = [&](std::string const& of) { return db.number("SELECT count(*) FROM " + of); };
  auto const use_all = [&](std::uint64_t n, duration until) {
    auto const key = "key" + std::to_string(n);
    BOOST_TEST(p.locks(key, "h", until));
    BOOST_TEST(p(command::acquire_permit{key, "h", 1, until, {}})->granted);
    std::array const quotas{quota::per(1, until)};
    BOOST_TEST(p(command::take{key, quotas, 1, {}})->allowed);
    std::vector<new_job> jobs{job_of(n)};
    jobs[0].retention = until;
    jobs[0].strategy = unique_strategy::until_expired;
    jobs[0].unique_key = key;
    jobs[0].unique_ttl = until;
    BOOST_TEST(p(command::enqueue_jobs{"jobs", jobs}).has_value());
    auto const d = *p(command::dequeue_jobs{"jobs", "h", 1, 1, 1h});
    BOOST_TEST_REQUIRE(d.jobs.size() == 1U);
    std::array const finished{finished_job{id(n), d.jobs[0].fence, {}}};
    BOOST_TEST(p(command::complete_jobs{"jobs", finished}).has_value());
  };
  std::array const tables{"weir_locks", "weir_permits", "weir_buckets", "weir_jobs", "weir_keys"};
  for (std::uint64_t n = 1; n != 9; ++n) {
    // In turns one that is over later than the one before it, and one that is over earlier.
    use_all(2 * n, 3h);
    use_all(2 * n + 1, 1h);
    for (auto const* const t : tables) BOOST_TEST(rows(t) >= 2, t);
    clock.advance(2h);
    use_all(100 + n, 1min);
    for (auto const* const t : tables) BOOST_TEST(rows(t) == 2, t << ": " << rows(t));
    clock.advance(2h);
    use_all(200 + n, 1min);
    for (auto const* const t : tables) BOOST_TEST(rows(t) == 1, t << ": " << rows(t));
    clock.advance(1h);
  }
}

// The latest commits may have left the time as it was in the file.
BOOST_AUTO_TEST_CASE(F63_at_a_new_boot_time_goes_on_from_the_latest_commit_or_later) {
  directory const home;
  command::take const take{"bucket", five_an_hour};
  command::peek_bucket const peek{"bucket", five_an_hour, 1, {}};
  duration before{};
  {
    boot one{"one", new_year};
    process p{home.file(), one};
    BOOST_TEST(p(take)->allowed);
    one.advance(detail::sqlite_clock::grain - duration{1});
    BOOST_TEST(p(take)->allowed);
    before = p(peek)->reset_after;
  }
  process p{home.file(), boot{"two", new_year - 24h, 5min}};
  BOOST_TEST((p(peek)->reset_after <= before));
}

// The bucket's, and not that of the file's time as well.
BOOST_AUTO_TEST_CASE(a_take_writes_one_page) {
  directory const home;
  boot clock{"one", new_year};
  process p{home.file(), clock};
  command::take const take{"bucket", five_an_hour};
  auto const pages = [&] {
    constexpr std::uintmax_t page = 4096 + 24;
    return std::filesystem::file_size(home.file() + "-wal") / page;
  };
  BOOST_TEST(p(take)->allowed);
  auto before = pages();
  clock.advance(1ms);
  BOOST_TEST(p(take)->allowed);
  BOOST_TEST(pages() == before + 1);
  clock.advance(detail::sqlite_clock::grain);
  before = pages();
  BOOST_TEST(p(take)->allowed);
  BOOST_TEST(pages() == before + 2);
}

BOOST_AUTO_TEST_CASE(F63_a_process_of_the_same_boot_ends_no_lease) {
  directory const home;
  boot const clock{"one", new_year};
  process a{home.file(), clock};
  BOOST_TEST(a.locks("lock", "a"));
  process b{home.file(), clock};
  BOOST_TEST(!b.locks("lock", "b"));
}

BOOST_AUTO_TEST_CASE(F63_processes_have_one_time_whatever_their_dates) {
  directory const home;
  boot early{"one", new_year - 24h * 365};
  boot late{"one", new_year + 24h * 365};
  process a{home.file(), early};
  BOOST_TEST(a.locks("lock", "a"));
  process b{home.file(), late};
  BOOST_TEST(!b.locks("lock", "b"));
  BOOST_TEST((b(command::inspect_lock{"lock"})->expires_in == 10h));
  early.advance(4h);
  late.advance(4h);
  BOOST_TEST((b(command::inspect_lock{"lock"})->expires_in == 6h));
  early.set_system(new_year + 24h * 1000);
  late.set_system(new_year - 24h * 1000);
  BOOST_TEST((a(command::inspect_lock{"lock"})->expires_in == 6h));
  BOOST_TEST((b(command::inspect_lock{"lock"})->expires_in == 6h));
  BOOST_TEST(b.locks("other", "b"));
  BOOST_TEST((a(command::inspect_lock{"other"})->expires_in == 10h));
}

BOOST_AUTO_TEST_CASE(F63_suspend_counts) {
  directory const home;
  boot clock{"one", new_year};
  process a{home.file(), clock};
  BOOST_TEST(a.locks("lock", "a"));
  clock.suspend(10h);
  clock.set_system(new_year);  // whatever the date says afterwards
  BOOST_TEST(a.locks("lock", "b"));
  process b{home.file(), clock};
  BOOST_TEST(!b.locks("lock", "a"));
}

BOOST_AUTO_TEST_CASE(F63_an_application_s_transaction_has_the_file_s_time) {
  directory const home;
  {
    process p{home.file(), boot{"one", new_year}};
    BOOST_TEST(p.locks("lock", "h"));
  }
  auto const locks = [&](connection& db, boot const& clock) {
    basic_sqlite_transaction<boot> tx{db.get(), {}, clock};
    return tx.execute(command::acquire_lock{"lock", "t", 10h});
  };
  {
    connection db{home.file()};
    db.must("BEGIN IMMEDIATE");
    auto const held = *locks(db, boot{"one", new_year + 24h * 365});
    BOOST_TEST(!held.granted);
    BOOST_TEST((held.expires_in == 10h));
    db.must("COMMIT");

    // It may be the first after a boot; what it has begun is undone with it.
    db.must("BEGIN IMMEDIATE");
    BOOST_TEST(locks(db, boot{"two", new_year})->granted);
    db.must("ROLLBACK");
    BOOST_TEST(db.text("SELECT boot_id FROM weir_state") == "one");
    db.must("BEGIN IMMEDIATE");
    BOOST_TEST(locks(db, boot{"two", new_year})->granted);
    db.must("COMMIT");
    BOOST_TEST(db.text("SELECT boot_id FROM weir_state") == "two");
  }
  process p{home.file(), boot{"two", new_year}};
  BOOST_TEST(!p.locks("lock", "h"));
}

BOOST_AUTO_TEST_CASE(F63_without_boot_ids_time_goes_on_and_leases_end_by_themselves) {
  directory const home;
  {
    boot clock{"", new_year};
    process p{home.file(), clock};
    BOOST_TEST(p.locks("lock", "h"));
    clock.advance(4h);
    BOOST_TEST(p.locks("other", "h"));
  }
  boot two{"", new_year + 5h, 1min};
  process p{home.file(), two};
  BOOST_TEST((p(command::inspect_lock{"lock"})->expires_in == 5h));
  // One that has an id, beside one that has none.
  boot const known{"two", new_year + 100h, 1min};
  process q{home.file(), known};
  BOOST_TEST(!q.locks("lock", "g"));
  two.advance(5h);
  BOOST_TEST(p.locks("lock", "g"));
}

BOOST_AUTO_TEST_CASE(F63_a_row_that_was_damaged_leaves_nothing_stuck) {
  struct damage {
    char const* sql;
    bool leases_last;
  };
  auto const damages = {
      damage{"boot_id = x''", true},
      damage{"boot_id = x'00ff'", false},  // as after a boot
      damage{"boot_offset = NULL", true},
      damage{"boot_offset = 0", true},
      damage{"boot_offset = -9223372036854775808", true},
      damage{"boot_offset = boot_offset + 36000000000000", false},  // ten hours have passed
  };
  for (auto const& d : damages) {
    directory const home;
    boot clock{"one", new_year};
    {
      process p{home.file(), clock};
      BOOST_TEST(p.locks("lock", "h"));
    }
    connection{home.file()}.must(std::string{"UPDATE weir_state SET "} + d.sql);
    clock.advance(1h);
    process p{home.file(), clock};
    BOOST_TEST(p.locks("lock", "g") != d.leases_last, d.sql);
    BOOST_TEST(p.locks("other", "g"), d.sql);
    process q{home.file(), clock};
    BOOST_TEST((q(command::inspect_lock{"other"})->expires_in == 10h), d.sql);
    clock.advance(10h);
    BOOST_TEST(q.locks("other", "h"), d.sql);
    BOOST_TEST(!p.locks("other", "g"), d.sql);
  }
  for (auto const* const sql :
       {"DELETE FROM weir_state", "UPDATE weir_state SET boot_offset = 9223372036854775807",
        "UPDATE weir_state SET time = 9223372036854775807"}) {
    directory const home;
    boot const clock{"one", new_year};
    {
      process p{home.file(), clock};
      BOOST_TEST(p.locks("lock", "h"));
    }
    connection{home.file()}.must(sql);
    process p{home.file(), clock};
    BOOST_TEST(p(command::acquire_lock{"lock", "g", 10h}).error() == errc::store_corrupt, sql);
  }
}

BOOST_AUTO_TEST_CASE(F63_the_host_tells_its_boot) {
#if defined(__linux__) || defined(__APPLE__)
  BOOST_TEST(system_clock::boot_id().size() == 36U);
#endif
  bed b;
  BOOST_TEST(b(command::acquire_lock{"k", "h", 1h})->granted);
  BOOST_TEST(connection{b.home.file()}.text("SELECT boot_id FROM weir_state") ==
             system_clock::boot_id());
}

BOOST_AUTO_TEST_SUITE_END()
