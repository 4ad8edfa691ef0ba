// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F79: what a job costs beside an old snapshot, and that the floors which keep it so hide no job.

#include "patience.hpp"
#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace postgres_test;

std::string id_of(std::string const& name) { return "md5('" + name + "')::uuid"; }

/// The statements of one job. Times are in milliseconds.
std::string enqueue(std::string const& queue, std::string const& name, bool own = true,
                    int priority = 0, int delay = 0) {
  return "SELECT outcome FROM weir.enqueue_jobs('" + queue + "', 0, true, ARRAY[" + id_of(name) +
         "], ARRAY['k'::bytea], ARRAY[convert_to('" + name +
         "', 'UTF8')], ARRAY[''::bytea], ARRAY[" + std::to_string(priority) +
         "], ARRAY[1000000], ARRAY[0], ARRAY[0], ARRAY[" + std::to_string(delay) +
         "000000::bigint], ARRAY[0::bigint], ARRAY[0::bigint], " +
         "ARRAY[0::bigint], ARRAY[''::bytea], " + (own ? "true" : "false") + ", NULL)";
}
std::string dequeue(std::string const& queue, std::string const& sequence = "0",
                    std::string const& holder = "h", int lease = 30'000) {
  return "SELECT convert_from(payload, 'UTF8') FROM weir.dequeue_jobs('" + queue + "', 0, ARRAY['" +
         holder + "'::bytea], ARRAY[1], " + sequence + ", " + std::to_string(lease) +
         "000000, true, NULL) WHERE id IS NOT NULL";
}
std::string fence_of(std::string const& queue, std::string const& name) {
  return "(SELECT fence FROM weir.find_job('" + queue + "', " + id_of(name) + ", NULL))";
}
std::string complete(std::string const& queue, std::string const& name) {
  return "SELECT * FROM weir.complete_jobs(ARRAY['" + queue + "'::bytea], ARRAY[0], ARRAY[" +
         id_of(name) + "], ARRAY[" + fence_of(queue, name) +
         "], ARRAY[''::bytea], ARRAY[1], false, true, NULL)";
}
/// @param how 0: it failed, and vests after the delay; 2: it is given back
std::string end(std::string const& queue, std::string const& name, int how, int delay = 0) {
  return "SELECT weir.end_lease('" + queue + "', 0, " + id_of(name) + ", " + fence_of(queue, name) +
         ", " + std::to_string(how) + ", " + std::to_string(delay) + "000000, '', true, NULL)";
}

/// A queue whose time is told: in steps of a millisecond.
class stepped : public bed {
 public:
  stepped() {
    db.must("CREATE SEQUENCE weir.ticks MINVALUE 0; "
            "CREATE OR REPLACE FUNCTION weir.clock() RETURNS bigint LANGUAGE sql VOLATILE "
            "AS 'SELECT 1780272000000000000 + pg_sequence_last_value(''weir.ticks'') * 1000000'; "
            "SELECT setval('weir.ticks', 10000)");
  }
  void pass(std::int64_t milliseconds) {
    db.must("SELECT setval('weir.ticks', pg_sequence_last_value('weir.ticks') + " +
            std::to_string(milliseconds) + ")");
  }

  /// Jobs that are enqueued, dequeued and completed, one after the other. `then` after each.
  void jobs(int n, std::string const& queue = "q", int priority = 0, int lease = 30'000) {
    for (; n != 0; --n) {
      auto const name = std::to_string(++made_);
      pass(1);
      db.must(enqueue(queue, name, true, priority));
      BOOST_TEST_REQUIRE(db.must(dequeue(queue, std::to_string(made_), "h", lease)) == name);
      db.must(complete(queue, name));
    }
  }

  /// How many entries of indexes a look by the queue's name reads.
  double reads_of_a_look() {
    auto const before = read();
    for (int i = 0; i != 20; ++i) db.must("SELECT weir.min_vesting_time('q', NULL)");
    return static_cast<double>(read() - before) / 20;
  }
  /// How many entries of indexes a job reads, on average over so many.
  double reads(int n, std::string const& queue = "q", int priority = 0) {
    auto const before = read();
    jobs(n, queue, priority);
    return static_cast<double>(read() - before) / n;
  }

 private:
  std::int64_t read() {
    db.must("SELECT pg_stat_force_next_flush()");
    return connection{the_server().conninfo(database)}.number(
        "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = 'weir'");
  }

  int made_ = 0;
};

void change(connection& db, std::string const& function, std::string const& from,
            std::string const& to) {
  db.must("DO $do$ DECLARE f text := pg_get_functiondef('weir." + function +
          "'::regproc); BEGIN "
          "ASSERT position('" +
          from + "' IN f) > 0; EXECUTE replace(f, '" + from + "', '" + to + "'); END $do$");
}

/// Floors are never looked below: what they hide stays hidden.
void never_look_at_all(connection& db) { change(db, "floors", "1000000000", "360000000000000"); }

/// Sessions are taken for busy from their first claim on, and never find it cheap to look ahead.
void always_busy(connection& db) {
  change(db, "rest", ">= 256", ">= 1");
  change(db, "rest", "took_ > 200000 THEN least(took_ * 30", "true THEN least(20000000");
}

constexpr char is_due[] =
    "SELECT count(*) FROM weir.scan_visible_queues(0, 1, 0, NULL) s WHERE queue IS NOT NULL";

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_floors)

BOOST_AUTO_TEST_CASE(F79_a_job_reads_as_much_as_before) {
  stepped b;
  never_look_at_all(b.db);
  always_busy(b.db);
  connection holds{the_server().conninfo(b.database)};
  b.jobs(100);
  auto const before = b.reads(100);
  holds.must("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM weir.state");
  b.jobs(1'250);
  auto const after = b.reads(100);
  b.jobs(2'200);
  auto const at_last = b.reads(100);
  // As the server does by itself. It finds that each table has one row, or none, and any index is
  // as good as any other then.
  b.db.must("VACUUM ANALYZE");
  auto const with_other_plans = b.reads(100);
  BOOST_TEST(before > 0);
  BOOST_TEST(after < before + 400, after << " instead of " << before);
  BOOST_TEST(at_last < before + 600, at_last << " instead of " << before);
  BOOST_TEST(with_other_plans < before + 600, with_other_plans << " instead of " << before);
}

BOOST_AUTO_TEST_CASE(F79_a_look_by_name_reads_as_much_as_before) {
  stepped b;
  never_look_at_all(b.db);
  always_busy(b.db);
  connection holds{the_server().conninfo(b.database)};
  holds.must("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM weir.state");
  // Short leases: it has to go through where they would have ended, as far as that is ahead.
  b.jobs(100, "q", 0, 2);
  auto const before = b.reads_of_a_look();
  b.jobs(1'500, "q", 0, 2);
  auto const after = b.reads_of_a_look();
  BOOST_TEST(after < before + 400, after << " instead of " << before);
}

// Each has its floor, and what was claimed of one is not gone through for another.
BOOST_AUTO_TEST_CASE(F79_several_levels_and_queues_read_as_much_as_before) {
  stepped b;
  never_look_at_all(b.db);
  always_busy(b.db);
  connection holds{the_server().conninfo(b.database)};
  holds.must("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM weir.state");
  auto const all = [&](int n) {
    for (; n != 0; --n) {
      b.jobs(1, "q", 3);
      b.jobs(1, "q", 7);
      b.jobs(1, "r", 0);
    }
  };
  all(200);
  auto const before = b.reads(30, "q", 3) + b.reads(30, "q", 7) + b.reads(30, "r");
  all(200);
  auto const after = b.reads(30, "q", 3) + b.reads(30, "q", 7) + b.reads(30, "r");
  BOOST_TEST(after < before + 300, after << " instead of " << before);
}

// It read the time before a thousand others were claimed, and is committed after it.
BOOST_AUTO_TEST_CASE(F79_a_job_of_a_transaction_that_stayed_open_is_found) {
  stepped b;
  never_look_at_all(b.db);
  for (std::string const level : {"READ COMMITTED", "REPEATABLE READ"}) {
    b.jobs(50);
    connection application{the_server().conninfo(b.database)};
    application.must("BEGIN ISOLATION LEVEL " + level);
    application.must(enqueue("q", "early " + level, false));
    b.jobs(1'000);
    application.must("COMMIT");
    b.pass(1);
    BOOST_TEST(b.db.must(is_due) == "1");
    BOOST_TEST(b.db.must(dequeue("q")) == "early " + level);
    b.db.must(complete("q", "early " + level));
  }
}

// It has read the time, and has to wait before it brings its job.
BOOST_AUTO_TEST_CASE(F79_a_job_of_a_step_that_stood_still_is_found) {
  stepped b;
  never_look_at_all(b.db);
  let_locks_take_long(b.db);
  b.jobs(50);
  connection other{the_server().conninfo(b.database)};
  other.must("BEGIN; LOCK TABLE weir.jobs IN SHARE MODE");
  std::thread waits{
      [&] { connection{the_server().conninfo(b.database)}.must(enqueue("q", "early")); }};
  until_somebody_waits(b.io, b.database);
  for (int i = 0; i != 20; ++i) {
    b.pass(20);
    BOOST_TEST(b.db.must(dequeue("q")) == "");
    BOOST_TEST(b.db.must(is_due) == "0");
  }
  other.must("COMMIT");
  waits.join();
  BOOST_TEST(b.db.must(is_due) == "1");
  BOOST_TEST(b.db.must(dequeue("q")) == "early");
}

// The number of a dequeue is lower than that of a job which was enqueued before it read the time.
BOOST_AUTO_TEST_CASE(F79_a_job_that_came_while_a_dequeue_waited_is_found) {
  stepped b;
  never_look_at_all(b.db);
  let_locks_take_long(b.db);
  b.jobs(50);
  connection other{the_server().conninfo(b.database)};
  connection application{the_server().conninfo(b.database)};
  other.must("BEGIN");
  other.must(dequeue("q", "1000"));  // of the same holder, so that this is waited for
  std::thread waits{[&] { b.db.must(dequeue("q", "1001")); }};
  until_somebody_waits(b.io, b.database);
  application.must("BEGIN");
  application.must(enqueue("q", "early", false));
  other.must("SELECT setval('weir.ticks', pg_sequence_last_value('weir.ticks') + 20); ROLLBACK");
  waits.join();
  for (int i = 0; i != 20; ++i) {
    b.pass(20);
    BOOST_TEST(b.db.must(dequeue("q")) == "");
  }
  application.must("COMMIT");
  BOOST_TEST(b.db.must(dequeue("q")) == "early");
}

// The first one stays where it is while others are looked for.
BOOST_AUTO_TEST_CASE(F79_jobs_that_wait_are_found_in_their_order) {
  stepped b;
  never_look_at_all(b.db);
  connection other{the_server().conninfo(b.database)};
  b.jobs(50);
  for (int i = 0; i != 20; ++i) b.db.must(enqueue("q", std::to_string(-i)));
  b.db.must(
      "UPDATE weir.jobs SET vesting = vesting - 1000 * convert_from(payload, 'UTF8')::integer");
  other.must("BEGIN");
  BOOST_TEST(other.must(dequeue("q")) == "0");
  b.pass(100);
  BOOST_TEST(b.db.must(dequeue("q")) == "-1");
  other.must("ROLLBACK");
  for (int const i : {0, -2, -3, -4, -5, -6, -7, -8, -9, -10}) {
    b.pass(20);
    BOOST_TEST(b.db.must(dequeue("q")) == std::to_string(i));
  }
}

// The place that it had is below what is looked at.
BOOST_AUTO_TEST_CASE(F79_a_job_that_is_given_back_is_found) {
  stepped b;
  never_look_at_all(b.db);
  connection other{the_server().conninfo(b.database)};
  b.jobs(50);
  b.db.must(enqueue("q", "back"));
  BOOST_TEST(other.must(dequeue("q")) == "back");
  b.jobs(300);
  other.must(end("q", "back", 2));
  b.db.must(enqueue("q", "next"));
  BOOST_TEST(b.db.must(is_due) == "1");
  BOOST_TEST(b.db.must(dequeue("q")) == "back");
  BOOST_TEST(b.db.must(dequeue("q")) == "next");
}

// A level that a session has not met yet is looked at, too, and so is one that was empty for long.
BOOST_AUTO_TEST_CASE(F79_a_job_of_another_level_is_found) {
  stepped b;
  never_look_at_all(b.db);
  connection other{the_server().conninfo(b.database)};
  b.jobs(50, "q", 5);
  for (int const priority : {9, 0, 5, 255, 6}) {
    auto const name = "level " + std::to_string(priority);
    other.must(enqueue("q", name, true, priority));
    BOOST_TEST(b.db.must(dequeue("q")) == name);
    b.db.must(complete("q", name));
    b.jobs(50, "q", 5);
  }
}

// It is the last transaction that has a number, so that no snapshot has a higher one.
BOOST_AUTO_TEST_CASE(F79_a_job_of_the_last_transaction_is_found) {
  bed b;
  never_look_at_all(b.db);
  change(b.db, "scan_from", "> 100000", "> -1");
  auto const scan = [&] {
    for (int i = 0; i != 100; ++i) {
      BOOST_TEST(b.db.must(is_due) == "0");
      b.db.must("SELECT pg_sleep(0.001)");
    }
  };
  scan();
  connection application{the_server().conninfo(b.database)};
  application.must("BEGIN");
  application.must(enqueue("q", "early", false));
  scan();
  application.must("COMMIT");
  BOOST_TEST(b.db.must(is_due) == "1");
}

// Delays and leases end ahead of the time, which is not looked through for each job, but soon
// enough.
BOOST_AUTO_TEST_CASE(F79_delays_and_leases_that_end_are_found) {
  stepped b;
  always_busy(b.db);
  auto const found_by = [&](std::string const& name, int milliseconds) {
    for (; milliseconds >= 0; --milliseconds) {
      if (b.db.must(is_due) == "1" && b.db.must(dequeue("q")) == name) return true;
      b.pass(1);
    }
    return false;
  };
  b.jobs(300, "q", 0, 60'000);
  b.db.must(enqueue("q", "lost"));
  b.pass(1);
  BOOST_TEST(b.db.must(dequeue("q", "0", "h", 500)) == "lost");
  b.db.must(enqueue("q", "now"));
  b.db.must(enqueue("q", "later", true, 0, 700));
  BOOST_TEST(b.db.must(dequeue("q", "0", "h", 60'000)) == "now");
  b.db.must(complete("q", "now"));
  b.jobs(100, "q", 0, 60'000);
  BOOST_TEST(b.db.must(dequeue("q")) == "");
  BOOST_TEST(b.db.must(is_due) == "0");
  b.pass(399);
  BOOST_TEST(found_by("lost", 130));
  b.pass(50);
  BOOST_TEST(found_by("later", 160));
}

// It has relied on a pointer that a dequeue was about to remove, and came after the time that this
// read.
BOOST_AUTO_TEST_CASE(F57_a_job_that_is_enqueued_while_another_is_claimed_has_a_pointer) {
  stepped b;
  always_busy(b.db);
  let_locks_take_long(b.db);
  connection other{the_server().conninfo(b.database)};
  b.jobs(50);
  for (int i = 0; i != 25; ++i) {
    auto const n = std::to_string(i);
    b.pass(1);
    b.db.must(enqueue("q", "first " + n));
    other.must("BEGIN; LOCK TABLE weir.jobs IN SHARE MODE");
    std::string got;
    std::thread waits{[&] { got = b.db.must(dequeue("q")); }};
    until_somebody_waits(b.io, b.database);
    other.must("SELECT nextval('weir.ticks')");
    other.must(enqueue("q", "second " + n));
    other.must("COMMIT");
    waits.join();
    BOOST_TEST(got == "first " + n);
    BOOST_TEST(other.must(is_due) == "1");
    BOOST_TEST(b.db.must(dequeue("q")) == "second " + n);
    b.db.must(complete("q", "first " + n));
    b.db.must(complete("q", "second " + n));
  }
}

// Once nothing is claimed any more, a queue has no pointer that nothing is behind.
BOOST_AUTO_TEST_CASE(F79_a_queue_that_is_not_busy_any_more_has_no_pointer) {
  stepped b;
  b.jobs(300, "q", 0, 2'000);
  for (int i = 0; i != 10; ++i) {
    b.pass(1'000);
    if (b.db.must(is_due) == "1") BOOST_TEST(b.db.must(dequeue("q", "0", "h", 2'000)) == "");
  }
  BOOST_TEST(b.db.must("SELECT count(*) FROM weir.pointers") == "0");
}

// By less than a second, which nobody notices.
BOOST_AUTO_TEST_CASE(F102_a_job_below_a_floor_is_found_within_a_second) {
  for (int const jobs : {80, 300}) {  // the session is busy, or it is not
    for (int const afterwards : {0, 1, 30}) {
      stepped b;
      connection other{the_server().conninfo(b.database)};
      b.jobs(jobs);
      b.pass(-200);
      other.must(enqueue("q", "behind"));
      b.pass(200);
      b.jobs(afterwards);
      int after = 0;
      for (; after != 1'100; after += 10) {
        if (b.db.must(is_due) == "1" && b.db.must(dequeue("q")) == "behind") break;
        b.pass(10);
      }
      BOOST_TEST(after <= 1'000);
    }
  }
}

// Nor is its pointer removed by who does not see it.
BOOST_AUTO_TEST_CASE(F102_a_job_below_a_floor_keeps_its_pointer) {
  stepped b;
  never_look_at_all(b.db);
  connection other{the_server().conninfo(b.database)};
  b.jobs(80);
  b.pass(-200);
  other.must(enqueue("q", "behind"));
  b.pass(200);
  change(b.db, "floors", "f[5] <= now_", "order_ & 511 = weir.queue_lock(''q'') & 511");
  BOOST_TEST(b.db.must(dequeue("q")) == "");  // who knows floors of the queue, and none of its
                                              // pointers
  BOOST_TEST(other.must(is_due) == "1");
}

namespace {

/// Enqueues, claims and all that moves a job or a pointer, on connections of their own, by the
/// server's clock. Whatever a floor hid would stay hidden.
class crowd {
 public:
  crowd() {
    never_look_at_all(b_.db);
    always_busy(b_.db);
    change(b_.db, "scan_visible_queues", "again_ > 64", "again_ > 0");
  }

  void run() {
    std::vector<std::thread> threads;
    for (int i = 0; i != 3; ++i) threads.emplace_back([this, i] { bring(i); });
    for (int i = 0; i != 4; ++i) threads.emplace_back([this, i] { work(i); });
    threads.emplace_back([this] { tidy(); });
    auto const all = weir_test::happens([&] { return over_ || (open_ == 0 && done_ == brought_); });
    over_ = true;
    for (auto& t : threads) t.join();
    BOOST_TEST(refused_ == "");
    BOOST_TEST(all, done_ << " of " << brought_ << " jobs were found");
    BOOST_TEST(b_.db.number("SELECT count(*) FROM weir.jobs") == 0);
  }

 private:
  class caller {
   public:
    caller(crowd& c, unsigned seed)
        : random{seed},
          crowd_{c},
          db_{PQconnectdb(the_server().conninfo(c.b_.database).c_str())} {}

    /// The first field of the answer. Threads tell of no failure by themselves.
    std::string must(std::string const& sql) {
      weir::detail::postgres_result const r{PQexec(db_.get(), sql.c_str())};
      auto const status = PQresultStatus(r.get());
      if (status == PGRES_COMMAND_OK) return "";
      if (status == PGRES_TUPLES_OK) return PQntuples(r.get()) > 0 ? PQgetvalue(r.get(), 0, 0) : "";
      std::lock_guard const lock{crowd_.refusing_};
      crowd_.refused_ = sql + ": " + PQerrorMessage(db_.get());
      crowd_.over_ = true;
      return "";
    }
    unsigned below(unsigned n) { return static_cast<unsigned>(random() % n); }
    std::string queue() { return std::string(1, static_cast<char>('a' + below(3))); }

    std::mt19937 random;

   private:
    crowd& crowd_;
    std::unique_ptr<PGconn, weir::detail::postgres_finish> db_;
  };

  void bring(int who) {
    caller c{*this, static_cast<unsigned>(who)};
    for (int n = 0; n != 300 && !over_; ++n) {
      auto const name = std::to_string(who) + "-" + std::to_string(n);
      auto const own = c.below(2) == 0;
      auto const sql =
          enqueue(c.queue(), name, own, static_cast<int>(c.below(3)) * 3, c.below(4) == 0 ? 5 : 0);
      if (own) {
        c.must(sql);
        ++brought_;
        continue;
      }
      c.must(c.below(2) == 0 ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ");
      if (c.below(2) == 0) c.must("SELECT count(*) FROM weir.state");
      c.must(sql);
      c.must("SELECT pg_sleep(" + std::to_string(c.below(30)) + " * 0.001)");
      if (c.below(5) == 0) {
        c.must("ROLLBACK");
      } else {
        c.must("COMMIT");
        ++brought_;
      }
    }
    --open_;
  }

  void work(int who) {
    caller c{*this, static_cast<unsigned>(who) + 100};
    for (int sequence = 1; !over_; ++sequence) {
      auto const due = c.must("SELECT convert_from(queue, 'UTF8') FROM weir.scan_visible_queues("
                              "0, 3, " +
                              std::to_string(c.random()) +
                              ", NULL) "
                              "WHERE queue IS NOT NULL ORDER BY random() LIMIT 1");
      if (due.empty()) {
        c.must("SELECT pg_sleep(0.001)");
        continue;
      }
      auto const name = c.below(3) == 0
                            ? c.must(many(due, sequence, who))
                            : c.must(dequeue(due, std::to_string(c.below(2) == 0 ? 0 : sequence),
                                             std::to_string(who)));
      if (name.empty()) continue;
      switch (c.below(6)) {
        case 0: c.must(end(due, name, 2)); break;
        case 1: c.must(end(due, name, 0, static_cast<int>(c.below(2)) * 5)); break;
        default: c.must(complete(due, name)); ++done_;
      }
    }
  }

  /// Of this queue and of one that is empty.
  static std::string many(std::string const& queue, int sequence, int who) {
    auto const twice = [](std::string const& each) { return "ARRAY[" + each + ", " + each + "]"; };
    return "SELECT convert_from(payload, 'UTF8') FROM weir.dequeue_each(ARRAY['" + queue +
           "'::bytea, 'none'::bytea], " + twice("0") + ", " +
           twice("'" + std::to_string(who) + "'::bytea") + ", " + twice("1") + ", " +
           twice(std::to_string(sequence) + "::bigint") +
           ", 30000000000, true, NULL) WHERE id IS NOT NULL";
  }

  void tidy() {
    caller c{*this, 1'000};
    while (!over_) {
      c.must("SELECT weir.gc_stale_pointers(0, 100, 0, NULL)");
      c.must("SELECT weir.update_queue_pointer('" + c.queue() + "', 0, true, NULL)");
      c.must("SELECT weir.tidy(100, NULL)");
      // A transaction that writes, and then stays open: floors stand still.
      c.must("BEGIN; SELECT pg_current_xact_id(); SELECT pg_sleep(0.02); COMMIT");
      c.must("SELECT pg_sleep(0.02)");
    }
  }

  bed b_;
  std::atomic<int> open_ = 3;
  std::atomic<int> brought_ = 0;
  std::atomic<int> done_ = 0;
  std::atomic<bool> over_ = false;
  std::mutex refusing_;
  std::string refused_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(F79_no_job_of_many_is_hidden) { crowd{}.run(); }

BOOST_AUTO_TEST_SUITE_END()
