// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the file store costs, beside what SQLite itself costs through its C interface, on the same
// disk in the same run. `raw` are the least that such a thing can be: single prepared statements,
// each a transaction of its own, or 256 in one. `weir` are commands, with so many in flight at
// once, that is, up to 256 in one transaction. Durable (power_loss): with an fsync for each
// transaction.

#include "weir/store/sqlite.hpp"

#include "../test/integration/directory.hpp"
#include "google.hpp"

#include <benchmark/benchmark.h>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;

constexpr std::uint64_t million = 1'000'000;
constexpr std::size_t most_in_flight = 1000;
constexpr std::int64_t behind_rounds = 2000;
constexpr std::int64_t rows_at_once = 20'000;
constexpr std::int64_t no_end = std::int64_t{1} << 62U;

// ------------------------------------------------------------------------------------------ raw

void check(int rc) {
  if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW) {
    throw std::runtime_error{sqlite3_errstr(rc)};
  }
}

struct raw {
  explicit raw(bool durable) {
    check(sqlite3_open(home.file().c_str(), &db));
    run("PRAGMA journal_mode = WAL; CREATE TABLE t (k BLOB PRIMARY KEY, v INTEGER, p BLOB)");
    run(durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  }
  raw(raw const&) = delete;
  raw& operator=(raw const&) = delete;
  ~raw() {
    for (auto* s : prepared) sqlite3_finalize(s);
    sqlite3_close(db);
  }

  void run(char const* sql) { check(sqlite3_exec(db, sql, nullptr, nullptr, nullptr)); }
  sqlite3_stmt* prepare(char const* sql) {
    sqlite3_stmt* s = nullptr;
    check(sqlite3_prepare_v2(db, sql, -1, &s, nullptr));
    prepared.push_back(s);
    return s;
  }
  static void step(sqlite3_stmt* s, std::int64_t key) {
    sqlite3_bind_blob(s, 1, &key, sizeof(key), SQLITE_TRANSIENT);
    for (int rc = SQLITE_ROW; rc == SQLITE_ROW;) check(rc = sqlite3_step(s));
    sqlite3_reset(s);
  }

  weir_test::directory const home{std::filesystem::current_path()};  // for /tmp may be memory
  sqlite3* db = nullptr;
  std::vector<sqlite3_stmt*> prepared;
};

void durable_or_not(benchmark::internal::Benchmark* b) {
  b->ArgNames({"durable", "together"});
  for (int durable : {0, 1}) {
    for (int together : {1, 256}) b->Args({durable, together});
  }
  b->UseRealTime();
}

constexpr char insert_row[] = "INSERT INTO t VALUES (?, 1, zeroblob(100))";

/// Runs statements, `together` of them in one transaction; the second one for the same keys in the
/// next, as a command that needs the answer to another.
void in_transactions(benchmark::State& state, char const* first, char const* second,
                     std::int64_t keys, bool filled = false) {
  raw r{state.range(0) != 0};
  auto* const begin = r.prepare("BEGIN IMMEDIATE");
  auto* const commit = r.prepare("COMMIT");
  auto* const fill = r.prepare(insert_row);
  auto* const a = r.prepare(first);
  auto* const b = second == nullptr ? nullptr : r.prepare(second);
  auto const one = [](sqlite3_stmt* s) {
    check(sqlite3_step(s));
    sqlite3_reset(s);
  };
  auto const all = [&](sqlite3_stmt* s, std::int64_t from, std::int64_t n) {
    one(begin);
    for (auto key = from; key != from + n; ++key) raw::step(s, key % keys);
    one(commit);
  };
  auto const together = state.range(1);
  std::int64_t next = 0;
  std::int64_t left = 0;
  for (auto _ : state) {
    if (filled && left < together) {
      state.PauseTiming();
      all(fill, next + left, rows_at_once);
      left += rows_at_once;
      state.ResumeTiming();
    }
    all(a, next, together);
    if (b != nullptr) all(b, next, together);
    next += together;
    left -= together;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * together);
}

void raw_insert(benchmark::State& state) { in_transactions(state, insert_row, nullptr, no_end); }
void raw_update_then_delete(benchmark::State& state) {
  in_transactions(state, "UPDATE t SET v = v + 1 WHERE k = ?", "DELETE FROM t WHERE k = ?", no_end,
                  true);
}
void raw_insert_then_delete(benchmark::State& state) {
  in_transactions(state, "INSERT INTO t VALUES (?, 1, x'')", "DELETE FROM t WHERE k = ?", no_end);
}
void raw_upsert(benchmark::State& state) {
  in_transactions(
      state, "INSERT INTO t VALUES (?, 1, x'') ON CONFLICT DO UPDATE SET v = v + 1 RETURNING v",
      nullptr, 10'000);
}
BENCHMARK(raw_insert)->Apply(durable_or_not);
BENCHMARK(raw_update_then_delete)->Apply(durable_or_not);
BENCHMARK(raw_insert_then_delete)->Apply(durable_or_not);
BENCHMARK(raw_upsert)->Apply(durable_or_not);

// ------------------------------------------------------------------------------------------ weir

struct rig {
  explicit rig(bool durable) {
    sqlite_options o;
    o.durable = durable ? durability::power_loss : durability::process_crash;
    store.emplace(io.get_executor(), home.file(), o);
  }

  /// Executes one command and waits for it.
  template <class C>
  typename C::result ask(C const& c) {
    typename C::result out{};
    store->async_execute(c, [&](error_code ec, typename C::result r) {
      if (ec) throw std::runtime_error{ec.message()};
      out = std::move(r);
    });
    io.restart();
    io.run();
    return out;
  }

  /// Starts `n` chains of operations, and waits until all have come to their ends.
  template <class Start>
  void together(std::int64_t n, Start&& start) {
    for (std::int64_t i = 0; i != n; ++i) start(static_cast<std::size_t>(i));
    io.restart();
    io.run();
  }

  weir_test::directory const home{std::filesystem::current_path()};  // for /tmp may be memory
  boost::asio::io_context io;
  std::optional<sqlite_store> store;
};

void in_flight(benchmark::internal::Benchmark* b) {
  b->ArgNames({"durable", "in_flight"});
  for (int durable : {0, 1}) {
    for (int n : {1, 100, 1000}) b->Args({durable, n});
  }
  b->UseRealTime();
}

template <class Result>
auto must(Result& kept) {
  return [&](error_code ec, Result r) {
    if (ec) throw std::runtime_error{ec.message()};
    kept = std::move(r);
  };
}

std::string const payload(100, 'p');

job_id id(std::uint64_t n) {
  job_id out{};
  for (std::size_t i = 0; i != 8; ++i) out.data[7 - i] = static_cast<std::uint8_t>(n >> (8 * i));
  return out;
}

new_job job_of(std::uint64_t n) {
  new_job j;
  j.id = id(n);
  j.kind = "kind";
  j.payload = payload;
  return j;
}

void fill(rig& r, std::string_view queue, std::uint64_t n, std::uint64_t first,
          std::uint8_t priority = 100, duration delay = {}) {
  std::vector<new_job> jobs;
  for (auto end = first + n; first != end;) {
    jobs.clear();
    for (; first != end && jobs.size() != limits::batch; ++first) {
      jobs.push_back(job_of(first));
      jobs.back().priority = priority;
      jobs.back().delay = delay;
    }
    r.ask(command::enqueue_jobs{queue, jobs});
  }
}

void done(benchmark::State& state) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(1));
}

void weir_enqueue(benchmark::State& state) {
  rig r{state.range(0) != 0};
  std::uint64_t n = 1;
  command::enqueue_jobs::result kept;
  for (auto _ : state) {
    r.together(state.range(1), [&](std::size_t) {
      std::array const jobs{job_of(n++)};
      r.store->async_execute(command::enqueue_jobs{"q", jobs}, must(kept));
    });
  }
  done(state);
}

/// Takes one job and completes it, `n` times at once.
void consume(rig& r, std::int64_t n, std::string_view queue, dequeued& kept,
             command::complete_jobs::result& ended) {
  r.together(n, [&](std::size_t) {
    r.store->async_execute(
        command::dequeue_jobs{queue, "holder", 0, 1, 1h}, [&](error_code ec, dequeued d) {
          if (ec || d.jobs.size() != 1) throw std::runtime_error{"no job"};
          kept = std::move(d);
          std::array const finished{finished_job{kept.jobs[0].id, kept.jobs[0].fence, {}}};
          r.store->async_execute(command::complete_jobs{queue, finished}, must(ended));
        });
  });
}

void weir_dequeue_and_complete(benchmark::State& state) {
  rig r{state.range(0) != 0};
  dequeued kept;
  command::complete_jobs::result ended;
  std::uint64_t filled = 0;
  std::uint64_t left = 0;
  auto const n = static_cast<std::uint64_t>(state.range(1));
  for (auto _ : state) {
    if (left < n) {
      state.PauseTiming();
      fill(r, "q", 20'000, 1 + filled);
      filled += 20'000;
      left += 20'000;
      state.ResumeTiming();
    }
    consume(r, state.range(1), "q", kept, ended);
    left -= n;
  }
  done(state);
}

void weir_acquire_and_release(benchmark::State& state) {
  rig r{state.range(0) != 0};
  std::vector<std::string> holders;
  for (std::size_t i = 0; i != most_in_flight; ++i) holders.push_back("holder" + std::to_string(i));
  lease_release kept;
  for (auto _ : state) {
    r.together(state.range(1), [&](std::size_t i) {
      r.store->async_execute(command::acquire_permit{"key", holders[i], 2000, 1h, {}},
                             [&, i](error_code ec, permit_grant const& g) {
                               if (ec || !g.granted) throw std::runtime_error{"no permit"};
                               r.store->async_execute(
                                   command::release_permit{"key", holders[i], g.fence}, must(kept));
                             });
    });
  }
  done(state);
}

void weir_take(benchmark::State& state) {
  rig r{state.range(0) != 0};
  std::array const quotas{quota::per_second(million).burst(million)};
  std::vector<std::string> keys;
  for (int i = 0; i != 10'000; ++i) keys.push_back("key" + std::to_string(i));
  std::mt19937 random{1};
  decision kept;
  for (auto _ : state) {
    r.together(state.range(1), [&](std::size_t) {
      r.store->async_execute(command::take{keys[random() % keys.size()], quotas, 1, {}},
                             must(kept));
    });
  }
  done(state);
}

BENCHMARK(weir_enqueue)->Apply(in_flight);
BENCHMARK(weir_dequeue_and_complete)->Apply(in_flight);
BENCHMARK(weir_acquire_and_release)->Apply(in_flight);
BENCHMARK(weir_take)->Apply(in_flight);

// ------------------------------------------------------------------------------------------ order

/// Dequeues of ten jobs, which are then given back outside the measurement, in turn from a queue
/// that has nothing else, and from one that has a million jobs of a higher priority that are not
/// due. Medians, so that what else the machine does matters little.
void weir_dequeue_behind_future_jobs(benchmark::State& state) {
  std::array<std::optional<rig>, 2> rigs;
  std::array<std::vector<double>, 2> took;
  for (auto& r : rigs) {
    r.emplace(false);
    if (&r == &rigs[1]) fill(*r, "q", million, 10 * million, 1, 24h);
    fill(*r, "q", 100, 1);
  }
  auto const measure = [&](std::size_t which) {
    auto& r = *rigs[which];
    auto const start = std::chrono::steady_clock::now();
    auto const got = r.ask(command::dequeue_jobs{"q", "holder", 0, 10, 1h});
    std::chrono::duration<double> const time = std::chrono::steady_clock::now() - start;
    if (got.jobs.size() != 10) throw std::runtime_error{"no jobs"};
    took[which].push_back(time.count());
    hint ignored;
    for (auto const& j : got.jobs) {
      r.store->async_execute(command::return_job{"q", j.id, j.fence}, must(ignored));
    }
    r.io.restart();
    r.io.run();
    return time.count();
  };
  for (auto _ : state) {
    auto const first = took[0].size() % 2;
    auto const time = measure(first) + measure(1 - first);
    state.SetIterationTime(time);
  }
  auto const median = [](std::vector<double>& all) {
    auto const middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    return *middle;
  };
  state.counters["empty_ns"] = 1e9 * median(took[0]);
  state.counters["million_ns"] = 1e9 * median(took[1]);
}
BENCHMARK(weir_dequeue_behind_future_jobs)->UseManualTime()->Iterations(behind_rounds);

// ------------------------------------------------------------------------------------------ rows

/// What weir does beside what SQLite does, alone and many together.
std::vector<weir_bench::google_row> rows() {
  std::vector<weir_bench::google_row> out;
  for (auto const& [what, bare] : {std::pair{"enqueue", "insert"},
                                   {"dequeue_and_complete", "update_then_delete"},
                                   {"acquire_and_release", "insert_then_delete"},
                                   {"take", "upsert"}}) {
    for (int const durable : {0, 1}) {
      auto const setting = "/durable:" + std::to_string(durable);
      for (auto const& [flight, together] : {std::pair{1, 1}, {1000, 256}}) {
        out.push_back(
            {.benchmark = std::string{"weir_"} + what + setting +
                          "/in_flight:" + std::to_string(flight) + "/real_time",
             .reference = std::string{"raw_"} + bare + setting +
                          "/together:" + std::to_string(together) + "/real_time",
             .counter = "items_per_second",
             .unit = "/s",
             .name = std::string{what} + (durable != 0 ? ", power_loss, " : ", process_crash, ") +
                     std::to_string(flight) + " in flight",
             .reference_name =
                 std::string{"raw "} + bare + ", " + std::to_string(together) + " together"});
      }
    }
  }
  std::string const behind =
      "weir_dequeue_behind_future_jobs/iterations:" + std::to_string(behind_rounds) +
      "/manual_time";
  out.push_back({.benchmark = behind,
                 .reference = behind,
                 .goal = weir_bench::ratio_at_most(1.5),
                 .counter = "million_ns",
                 .reference_counter = "empty_ns",
                 .name = "dequeue of 10 behind 1,000,000 future jobs",
                 .reference_name = "alone in the queue"});
  return out;
}

}  // namespace

int main(int argc, char** argv) { return weir_bench::run_google(argc, argv, "sqlite", rows()); }
