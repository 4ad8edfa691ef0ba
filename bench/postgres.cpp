// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the store costs beside plain SQL (postgres_plain.hpp), sent by pgbench (prepared) over as
// many connections to the same server, in turns; with a commit that waits for the disk, and
// without. What a worker makes of it. And what a dequeue costs in the server where a million jobs
// are not due yet, or a million were completed, beside one of an almost empty table.
//
//     bench_postgres [--jobs N] [--flight N] [--connections N] [--rounds N] [--growth N]

#include "weir/store/postgres.hpp"

#include "postgres_bed.hpp"
#include "postgres_plain.hpp"
#include "postgres_rig.hpp"
#include "report.hpp"
#include "worker.hpp"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;
using namespace weir_bench;

struct settings {
  std::uint64_t jobs = 20'000;
  std::uint64_t flight = 100;
  std::uint64_t connections = 8;
  std::uint64_t rounds = 5;
  std::uint64_t growth = 1'000'000;
};

/// Does a commit wait for the disk?
enum class commits { durable, quick };

std::string name_of(commits c) { return c == commits::durable ? "durable" : "quick"; }
std::string setting_of(commits c) {
  return std::string{"synchronous_commit = "} + (c == commits::durable ? "on" : "off");
}

class ids {
 public:
  job_id operator()() {
    job_id out{};
    for (auto& byte : out) byte = static_cast<std::uint8_t>(random_());
    return out;
  }

 private:
  std::mt19937_64 random_{std::random_device{}()};
};

new_job job_of(job_id const& id) {
  new_job j;
  j.id = id;
  j.kind = "kind";
  j.payload = job_payload;
  return j;
}

double weir_enqueue(rig& r, std::uint64_t jobs, std::uint64_t flight) {
  ids id;
  return r.together(jobs, flight, [&](std::uint64_t, std::function<void()> next) {
    std::array const one{job_of(id())};
    r.store().async_execute(
        command::enqueue_jobs{"queue", one},
        [next = std::move(next)](error_code ec, command::enqueue_jobs::result const& done) {
          if (ec || done.size() != 1) throw std::runtime_error{"enqueue: " + ec.message()};
          next();
        });
  });
}

/// Jobs in a second.
double weir_consume(rig& r, std::uint64_t jobs, std::uint64_t flight, std::uint32_t limit) {
  auto const pairs =
      r.together(jobs / limit, flight, [&](std::uint64_t, std::function<void()> next) {
        auto const complete = [&r, limit, next = std::move(next)](error_code ec,
                                                                  dequeued const& d) {
          if (ec || d.jobs.size() != limit) {
            throw std::runtime_error{"dequeue: " + std::to_string(d.jobs.size()) + ' ' +
                                     ec.message()};
          }
          std::vector<finished_job> ended;
          for (auto const& j : d.jobs) ended.push_back({j.id, j.fence, {}});
          r.store().async_execute(
              command::complete_jobs{"queue", ended},
              [next](error_code failed, command::complete_jobs::result const& all) {
                if (failed || std::ranges::count(all, complete_outcome::completed) !=
                                  static_cast<std::ptrdiff_t>(all.size())) {
                  throw std::runtime_error{"complete: " + failed.message()};
                }
                next();
              });
        };
        r.store().async_execute(command::dequeue_jobs{"queue", "holder", 0, limit, 1h}, complete);
      });
  return pairs * limit;
}

/// Jobs in a second, a thousand in a command.
double weir_bulk(rig& r, std::uint64_t jobs, std::uint64_t flight) {
  ids id;
  return limits::batch *
         r.together(jobs / limits::batch, flight, [&](std::uint64_t, std::function<void()> next) {
           std::vector<new_job> many;
           while (many.size() != limits::batch) many.push_back(job_of(id()));
           r.store().async_execute(
               command::enqueue_jobs{"queue", many},
               [next = std::move(next)](error_code ec, command::enqueue_jobs::result const&) {
                 if (ec) throw std::runtime_error{"enqueue: " + ec.message()};
                 next();
               });
         });
}

// ------------------------------------------------------------------------------------------ rates

void empty(rig& r) {
  r.db().ask("TRUNCATE weir.jobs, weir.pointers, weir.counters, plain.jobs, plain.pointers, "
             "lean.jobs, lean.pointers");
}

/// Fills both tables with the same number of jobs.
void fill(rig& r, std::uint64_t jobs) {
  empty(r);
  auto const n = std::to_string(jobs);
  for (std::string const schema : {"plain", "lean"}) {
    r.db().ask("INSERT INTO " + schema +
               ".jobs (id, queue, priority, vesting, max_attempts, kind, payload) SELECT "
               "gen_random_uuid(), 'queue', 0, clock_timestamp(), 25, 'kind', '" +
               job_payload + "' FROM generate_series(1, " + n + ")");
    r.db().ask("VACUUM ANALYZE " + schema + ".jobs");
  }
  r.db().ask(
      "INSERT INTO weir.jobs (queue, id, state, priority, strategy, policy, max_attempts, vesting, "
      "enqueued, deadline_from, deadline, retention, unique_key, kind, payload) SELECT 'queue', "
      "gen_random_uuid(), 0, 0, 0, 0, 25, t, t, t, 0, 0, '', 'kind', '" +
      job_payload + "' FROM (SELECT weir.clock() AS t FROM generate_series(1, " + n +
      ")) i; INSERT INTO weir.pointers VALUES (0, 0, 'queue')");
  r.db().ask("VACUUM ANALYZE weir.jobs");
  r.db().ask("CHECKPOINT");
}

/// A row of a rate beside both plain queues.
struct rate {
  std::string what;
  std::optional<target> goal;  // of the rate itself
  samples weir;
  samples plain;  // the equivalent queue's
  samples lean;
};

void add(report& to, commits how, rate const& r) {
  auto const name = name_of(how) + ": " + r.what;
  to.add({.name = name,
          .unit = "jobs/s",
          .ours = r.weir,
          .reference_name = "pgbench, equivalent SQL",
          .reference = r.plain,
          .goal = ratio_at_least(0.85)});
  to.add({.name = name + ", beside a bare table",
          .unit = "jobs/s",
          .ours = r.weir,
          .reference_name = "pgbench, table and index",
          .reference = r.lean,
          .goal = r.goal});
}

void report_rates(report& to, postgres_test::server const& server, settings const& s, commits how) {
  rig r{server, name_of(how), static_cast<std::uint32_t>(s.connections)};
  r.db().ask(std::string{plain_tables});
  r.db().ask("ALTER DATABASE " + name_of(how) + " SET " + setting_of(how));
  auto const of = [&](std::string const& what, std::uint64_t flight,
                      std::optional<target> goal = {}) {
    return rate{what + ", " + std::to_string(flight) + " in flight", goal, {}, {}, {}};
  };
  std::array<rate, 2> enqueue{of("enqueue", s.flight, at_least(20'000)),
                              of("enqueue", s.connections)};
  std::array<rate, 2> one{of("dequeue + complete 1", s.flight),
                          of("dequeue + complete 1", s.connections)};
  auto many = of("dequeue + complete 100", s.connections);
  // What the connections and plans cost to make is nobody's.
  weir_enqueue(r, 1000, s.flight);
  weir_consume(r, 1000, s.flight, 1);
  auto const plain = equivalent();
  auto const bare = lean();
  for (std::uint64_t round = 0; round != s.rounds; ++round) {
    std::array const flights{s.flight, s.connections};
    for (std::size_t i = 0; i != flights.size(); ++i) {
      empty(r);
      enqueue[i].weir.push_back(weir_enqueue(r, s.jobs, flights[i]));
      enqueue[i].plain.push_back(r.pgbench(plain.enqueue, s.jobs));
      enqueue[i].lean.push_back(r.pgbench(bare.enqueue, s.jobs));
      fill(r, s.jobs + s.jobs / 10);
      one[i].weir.push_back(weir_consume(r, s.jobs, flights[i], 1));
      one[i].plain.push_back(r.pgbench(plain.consume_one, s.jobs));
      one[i].lean.push_back(r.pgbench(bare.consume_one, s.jobs));
    }
    fill(r, 3 * s.jobs);
    many.weir.push_back(weir_consume(r, 2 * s.jobs, s.connections, batch));
    many.plain.push_back(batch * r.pgbench(plain.consume_many, 2 * s.jobs / batch));
    many.lean.push_back(batch * r.pgbench(bare.consume_many, 2 * s.jobs / batch));
  }
  for (auto const* const rates : {&enqueue, &one}) {
    for (auto const& each : *rates) add(to, how, each);
  }
  add(to, how, many);
}

// ----------------------------------------------------------------------------------------- worker

/// On the server of this benchmark.
template <commits How>
class bed_here : public postgres_bed {
 public:
  inline static postgres_test::server const* here = nullptr;

  bed_here() : postgres_bed{*here, setting_of(How)} {}
};

/// What comes in at once, and what a worker makes of it, beside the plain queue's; then how long it
/// takes from an enqueue to the handler where nothing else happens, beside the enqueue and the
/// claim of the plain queue, on one connection, one after the other.
template <commits How>
void report_worker_rows(report& to, postgres_test::server const& server, settings const& s) {
  using bed_type = bed_here<How>;
  bed_type::here = &server;
  rig r{server, "worker_" + name_of(How), static_cast<std::uint32_t>(s.connections)};
  rig alone{server, "worker_" + name_of(How) + "_alone", 1};
  for (auto* const each : {&r, &alone}) {
    each->db().ask(std::string{plain_tables});
    each->db().ask("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET " + setting_of(How) +
                   "', current_database()); END $$");
  }
  std::string const plain_bulk =
      "INSERT INTO plain.jobs (id, queue, priority, vesting, max_attempts, kind, payload) SELECT "
      "gen_random_uuid(), 'queue', 0, clock_timestamp(), 25, 'kind', '" +
      job_payload + "' FROM generate_series(1, " + std::to_string(limits::batch) +
      ") ON CONFLICT DO NOTHING;\n";
  auto const plain = equivalent();
  auto const jobs = std::max(s.jobs / limits::batch, s.connections) * limits::batch;
  samples bulk;
  samples bulk_plain;
  samples worked;
  samples worked_plain;
  for (std::uint64_t round = 0; round != s.rounds; ++round) {
    empty(r);
    bulk.push_back(weir_bulk(r, jobs, s.connections));
    bulk_plain.push_back(limits::batch * r.pgbench(plain_bulk, jobs / limits::batch));
    fill(r, jobs);
    worked_plain.push_back(batch * r.pgbench(plain.consume_many, jobs / batch / 2));
    worker_bed<bed_type> w{hands(limits::batch, limits::batch)};
    worked.push_back(w.busy(jobs));
  }
  auto const name = name_of(How) + ": ";
  to.add({.name = name + "enqueue in bulk, 1,000 in a command",
          .unit = "jobs/s",
          .ours = bulk,
          .reference_name = "pgbench, equivalent SQL",
          .reference = bulk_plain,
          .goal = at_least(150'000)});
  to.add({.name = name + "a worker, jobs that do nothing",
          .unit = "jobs/s",
          .ours = worked,
          .reference_name = "pgbench, equivalent SQL",
          .reference = worked_plain,
          .goal = at_least(60'000)});
  constexpr std::size_t times = 500;
  samples const steps = alone.pgbench_idle(plain.enqueue + plain.consume_one, 2, times);
  worker_bed<bed_type> idle{hands(10, 10)};
  auto const latencies = idle.idle(times);
  to.add({.name = name + "enqueue to handler, idle, p50",
          .unit = "us",
          .ours = latencies,
          .reference_name = "pgbench, enqueue + claim, idle, mean",
          .reference = steps,
          .goal = at_most(800)});
  to.add({.name = name + "enqueue to handler, idle, p99",
          .unit = "us",
          .ours = latencies.quantile(0.99),
          .reference_name = "pgbench, enqueue + claim, idle, mean",
          .reference = steps,
          .goal = at_most(1500)});
}

// ----------------------------------------------------------------------------------------- growth

/// Tables with two levels, of which the first has jobs that are not due, and the second `due` ones.
class grown {
 public:
  grown(postgres_test::server const& server, std::string const& name) : rig_{server, name, 1} {
    // Each dequeue is a transaction; its time is that in the server.
    rig_.db().ask(R"sql(
SET synchronous_commit = off;
CREATE TABLE took (n integer, us double precision);
CREATE PROCEDURE measure(n integer, times integer) LANGUAGE plpgsql AS $$
DECLARE
  start timestamptz;
  ended timestamptz;
  got uuid[];
  fences bigint[];
BEGIN
  FOR i IN 1 .. times LOOP
    start := clock_timestamp();
    SELECT array_agg(d.id), array_agg(d.fence) INTO got, fences
      FROM weir.dequeue_jobs('queue', 0, ARRAY['h'::bytea], ARRAY[n], 0, 3600000000000, true, NULL) d
      WHERE d.id IS NOT NULL;
    ended := clock_timestamp();
    COMMIT;
    IF cardinality(got) <> n THEN
      RAISE EXCEPTION 'no jobs';
    END IF;
    PERFORM weir.complete_jobs(array_fill('queue'::bytea, ARRAY[n]), array_fill(0, ARRAY[n]), got,
      fences, array_fill(''::bytea, ARRAY[n]), ARRAY[n], false, true, NULL);
    INSERT INTO took VALUES (n, extract(epoch FROM ended - start) * 1000000);
    COMMIT;
  END LOOP;
END $$;
CREATE PROCEDURE complete_many(jobs integer) LANGUAGE plpgsql AS $$
DECLARE
  got uuid[];
  fences bigint[];
BEGIN
  FOR i IN 1 .. jobs / 1000 LOOP
    SELECT array_agg(d.id), array_agg(d.fence) INTO got, fences
      FROM weir.dequeue_jobs('queue', 0, ARRAY['h'::bytea], ARRAY[1000], 0, 3600000000000, true,
        NULL) d WHERE d.id IS NOT NULL;
    COMMIT;
    PERFORM weir.complete_jobs(array_fill('queue'::bytea, ARRAY[1000]), array_fill(0, ARRAY[1000]),
      got, fences, array_fill(''::bytea, ARRAY[1000]), ARRAY[1000], false, true, NULL);
    COMMIT;
  END LOOP;
END $$)sql");
    add(1, 0, 24 * 3600);
  }

  session& db() noexcept { return rig_.db(); }

  void add(std::uint64_t jobs, int level, int seconds) {
    rig_.db().ask(
        "INSERT INTO weir.jobs (queue, id, state, priority, strategy, policy, max_attempts, "
        "vesting, "
        "enqueued, deadline_from, deadline, retention, unique_key, kind, payload) SELECT 'queue', "
        "gen_random_uuid(), 0, " +
        std::to_string(level) + ", 0, 0, 25, t + " + std::to_string(seconds) +
        " * 1000000000::bigint + i, t, t, 0, 0, '', 'kind', '" + job_payload +
        "' FROM (SELECT weir.clock() AS t, i FROM generate_series(1, " + std::to_string(jobs) +
        ") i) i");
  }

  /// The median of so many dequeues of `n` jobs: microseconds.
  double measure(int n, int times) {
    rig_.db().ask("TRUNCATE took");
    rig_.db().ask("CALL measure(" + std::to_string(n) + ", " + std::to_string(times) + ")");
    auto const text =
        rig_.db().ask("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY us) FROM took");
    return std::strtod(text.c_str(), nullptr);
  }

 private:
  rig rig_;
};

/// What a dequeue costs in the server: of one job, and of ten.
struct cost {
  std::string what;
  std::optional<target> goal;
  std::array<samples, 2> took;
};

constexpr std::array dequeued_at_once{1, 10};

void report_growth(report& to, postgres_test::server const& server, settings const& s) {
  constexpr int times = 20;
  constexpr int rounds = 10;
  constexpr std::uint64_t due = 1 + 11 * times * (rounds + 1);
  grown small{server, "small"};
  grown future{server, "future"};
  grown completed{server, "completed"};
  grown seen{server, "seen"};
  future.add(s.growth, 0, 24 * 3600);
  session old{server, "seen"};
  old.ask("BEGIN ISOLATION LEVEL REPEATABLE READ");
  old.ask("SELECT count(*) FROM weir.state");
  auto const under = s.growth / 10;  // of which each dequeue goes through all
  for (auto* const each : {&completed, &seen}) {
    auto const many = each == &seen ? under : s.growth;
    each->add(many, 1, -3600);
    each->db().ask("CALL complete_many(" + std::to_string(many) + ")");
  }
  auto const many = std::to_string(s.growth);
  std::vector<std::pair<cost, grown*>> all;
  all.push_back({{"an almost empty table", {}, {}}, &small});
  all.push_back({{many + " future jobs in front", ratio_at_most(1.5), {}}, &future});
  all.push_back({{many + " completed jobs, vacuum running", ratio_at_most(1.5), {}}, &completed});
  for (auto& [what, each] : all) each->add(due, 1, -1);
  auto const measure = [](cost& of, grown& in) {
    for (std::size_t i = 0; i != dequeued_at_once.size(); ++i) {
      of.took[i].push_back(in.measure(dequeued_at_once[i], times));
    }
  };
  for (int round = 0; round <= rounds; ++round) {
    for (auto& [what, each] : all) {
      if (round == 1) what.took = {};  // warm from here on
      measure(what, *each);
    }
  }
  seen.add(due, 1, -1);
  for (bool const open : {true, false}) {
    if (!open) old.ask("COMMIT");
    all.push_back({{std::to_string(under) + " completed jobs, " +
                        (open ? "under a snapshot that is older" : "right after that is closed"),
                    {},
                    {}},
                   &seen});
    measure(all.back().first, seen);
  }
  to.section("\na dequeue in the server");
  for (std::size_t i = 0; i != dequeued_at_once.size(); ++i) {
    for (auto const& [what, each] : all) {
      row r{.name = "dequeue of " + std::to_string(dequeued_at_once[i]) + ", " + what.what,
            .unit = "us",
            .ours = what.took[i]};
      if (each != &small) {
        r.reference_name = "an almost empty table";
        r.reference = all.front().first.took[i];
        r.goal = what.goal;
      }
      to.add(std::move(r));
    }
  }
}

// ----------------------------------------------------------------------------------------- report

settings arguments(int argc, char** argv) {
  settings s;
  std::map<std::string_view, std::uint64_t*> const numbers{{"--jobs", &s.jobs},
                                                           {"--flight", &s.flight},
                                                           {"--connections", &s.connections},
                                                           {"--rounds", &s.rounds},
                                                           {"--growth", &s.growth}};
  for (int i = 1; i + 1 < argc; i += 2) {
    auto const found = numbers.find(argv[i]);
    if (found != numbers.end()) {
      *found->second = std::strtoull(argv[i + 1], nullptr, 10);
    } else {
      s.jobs = 0;
    }
  }
  if (argc % 2 == 0 || s.jobs < 1000 || s.flight == 0 || s.connections < 2 || s.connections > 50 ||
      s.rounds == 0 || s.growth < 10'000) {
    std::fputs("usage: bench_postgres [--jobs N] [--flight N] [--connections N] [--rounds N] "
               "[--growth N]\n",
               stderr);
    std::exit(2);
  }
  return s;
}

template <commits How>
void report_all(report& to, postgres_test::server const& server, settings const& s) {
  to.section(std::string{How == commits::durable ? "every commit waits for the disk"
                                                 : "synchronous_commit = off"} +
             ", " + std::to_string(s.connections) + " connections each");
  report_rates(to, server, s, How);
  report_worker_rows<How>(to, server, s);
}

}  // namespace

int main(int argc, char** argv) {
  auto const s = arguments(argc, argv);
  // Not in /tmp, which may be memory, unless somebody says so.
  ::setenv("TMPDIR", "/var/tmp", 0);
  postgres_test::server const server{{.settings = {"fsync=on", "shared_buffers=256MB",
                                                   "max_wal_size=4GB", "autovacuum_naptime=1s"}}};
  report out{"postgres"};
  report_all<commits::durable>(out, server, s);
  out.section("");
  report_all<commits::quick>(out, server, s);
  report_growth(out, server, s);
  out.finish();
}
