// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the store adds to what its scripts cost: commands of the store, so many in flight at once on
// its one connection, beside redis-benchmark, which sends the same scripts to the same server, so
// many in flight over as many connections, or over one. And what jobs cost, beside Sidekiq on the
// same server, where it is installed. Medians of the rounds.
//
//     bench_redis [commands in a round] [in flight] [rounds]
//
// redis-benchmark cannot use one reply in the next request. So what it releases and completes was
// never held: the script ends early, and the comparison is in its favour.

#include "weir/store/redis.hpp"

#include "redis_rig.hpp"
#include "redis_worker.hpp"
#include "report.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace weir_bench;

/// A handler that goes on, and ends the program if the command failed.
template <class Result, class Next, class Check>
auto then(Next next, Check check) {
  return [next = std::move(next), check = std::move(check)](error_code ec, Result const& r) {
    if (ec || !check(r)) throw std::runtime_error{"a command did not do what it should"};
    next();
  };
}

constexpr auto fine = [](auto const&) { return true; };

/// All rounds of a command.
struct rounds {
  std::vector<figure> weir;
  std::vector<figure> many;  ///< redis-benchmark, over as many connections
  std::vector<figure> one;   ///< over one
};

void measure(rig& r, std::map<std::string, rounds>& out) {
  auto const& store = r.store();
  auto const commands = r.commands();
  auto const raw = [&](auto const&... c) {
    return [&](bool one) { return (r.raw(c, one) + ...); };
  };
  auto const note = [&](std::string const& what, figure const& weir, auto const& other) {
    auto& to = out[what];
    to.weir.push_back(weir);
    to.many.push_back(other(false));
    to.one.push_back(other(true));
  };

  std::vector<std::string> keys;
  for (int i = 0; i != 10'000; ++i) keys.push_back("key" + std::to_string(i));
  std::vector<std::string> holders;
  for (std::uint64_t i = 0; i != commands; ++i) holders.push_back("h" + std::to_string(i));

  r.forget_all();
  auto const take = r.together([&](std::uint64_t n, std::function<void()> next) {
    store.async_execute(command::take{keys[(n * 7919) % keys.size()], quotas, 1, {}},
                        then<decision>(std::move(next), fine));
  });
  auto const some_key = "k" + std::string{random_digits};
  note("take", take, raw(command::take{some_key, quotas, 1, {}}));

  r.forget_all();
  auto const permits = r.together([&](std::uint64_t n, std::function<void()> next) {
    auto const& holder = holders[n];
    store.async_execute(
        command::acquire_permit{"key", holder, 1000, 1h, {}},
        [&store, &holder, next = std::move(next)](error_code ec, permit_grant const& g) {
          if (ec || !g.granted) throw std::runtime_error{"no permit"};
          store.async_execute(command::release_permit{"key", holder, g.fence},
                              then<lease_release>(next, [](auto const& l) { return l.freed; }));
        });
  });
  note("acquire + release", permits,
       raw(command::acquire_permit{"other", random_digits, limits::permits, 1h, {}},
           command::release_permit{"key", random_digits, 1}));

  r.forget_all();
  auto const enqueue = r.together([&](std::uint64_t n, std::function<void()> next) {
    std::array const jobs{job_of(rig::numbered('e', n))};
    store.async_execute(command::enqueue_jobs{"queue", jobs},
                        then<command::enqueue_jobs::result>(std::move(next), fine));
  });
  std::array const some_job{job_of(id_of("jobs" + std::string{random_digits}))};
  note("enqueue", enqueue, raw(command::enqueue_jobs{"queue", some_job}));

  r.forget_all();
  r.fill(commands);
  auto const consume = r.together([&](std::uint64_t, std::function<void()> next) {
    store.async_execute(command::dequeue_jobs{"queue", "holder", 0, 1, 1h},
                        [&store, next = std::move(next)](error_code ec, dequeued const& d) {
                          if (ec || d.jobs.size() != 1) throw std::runtime_error{"no job"};
                          std::array const ended{finished_job{d.jobs[0].id, d.jobs[0].fence, {}}};
                          store.async_execute(
                              command::complete_jobs{"queue", ended},
                              then<command::complete_jobs::result>(next, [](auto const& all) {
                                return all[0] == complete_outcome::completed;
                              }));
                        });
  });
  r.forget_all();
  r.fill(2 * commands);
  std::array const nothing{finished_job{id_of("jobs" + std::string{random_digits}), 1, {}}};
  note("dequeue + complete", consume,
       raw(command::dequeue_jobs{"queue", "holder", 0, 1, 1h},
           command::complete_jobs{"queue", nothing}));
}

/// All rounds of what is done with jobs.
struct job_rounds {
  std::map<std::string, samples> weir;
  std::map<std::string, std::vector<figure>> speed;  ///< of those that are rates
  std::map<std::string, samples> sidekiq;
};

std::string const one_by_one_row = "enqueue one by one, 100 in flight";
std::string const bulk_row = "enqueue in bulk";
std::string const many_row = "worker, no-op jobs, 256 at once";
std::string const ten_row = "worker, no-op jobs, 10 at once";
std::string const scripts_row = "worker, scripts for each job, 256 at once";
std::string const p50_row = "enqueue to handler, idle, p50";
std::string const p99_row = "enqueue to handler, idle, p99";
std::string const pings_p50_row = "two PINGs in turn, idle, p50";
std::string const pings_p99_row = "two PINGs in turn, idle, p99";

void measure_jobs(rig& r, std::uint64_t in_flight, job_rounds& out) {
  auto const& store = r.store();
  auto const n = r.commands();
  static std::string const small = R"({"sent":0})";
  r.forget_all();
  auto const one_by_one = r.together(100, [&](std::uint64_t i, std::function<void()> next) {
    std::array const jobs{no_op_job(rig::numbered('e', i), small)};
    store.async_execute(command::enqueue_jobs{"queue", jobs},
                        then<command::enqueue_jobs::result>(std::move(next), fine));
  });
  auto const note = [&out](std::string const& what, figure const& f) {
    out.weir[what].push_back(f.rate);
    out.speed[what].push_back(f);
  };
  note(one_by_one_row, one_by_one);
  r.forget_all();
  note(bulk_row, enqueue_in_bulk(r, n, 4));
  auto const many =
      process(r, n, {.concurrency = static_cast<std::uint32_t>(4 * in_flight), .quantum = 128});
  note(many_row, many.speed);
  out.weir[scripts_row].push_back(many.scripts);
  r.forget_all();
  enqueue_in_bulk(r, n, 4);
  auto const ten = process(r, n, {.concurrency = 10});
  note(ten_row, ten.speed);
  r.forget_all();
  auto const latencies = idle_latencies(r, 300);
  out.weir[p50_row].push_back(latencies[latencies.size() / 2]);
  out.weir[p99_row].push_back(latencies[latencies.size() * 99 / 100]);
  auto const pings = idle_pings(r, 300);
  out.weir[pings_p50_row].push_back(pings[pings.size() / 2]);
  out.weir[pings_p99_row].push_back(pings[pings.size() * 99 / 100]);
}

/// Sidekiq on the same server; false: it is not installed.
bool measure_sidekiq(rig& r, job_rounds& out) {
  static std::map<std::string, std::string> const rows{{"push", one_by_one_row},
                                                       {"push_bulk", bulk_row},
                                                       {"process", ten_row},
                                                       {"latency_p50", p50_row},
                                                       {"latency_p99", p99_row}};
  r.forget_all();
  auto const said = rig::said_by(
      "ruby '" WEIR_BENCH_FOLDER "/redis_sidekiq.rb' " + std::to_string(r.port()) + " " +
      std::to_string(std::min<std::uint64_t>(r.commands(), 20'000)) + " 2>/dev/null");
  std::istringstream lines{said};
  std::string what;
  double value = 0;
  bool any = false;
  while (lines >> what >> value) {
    auto const found = rows.find(what);
    if (found == rows.end()) continue;
    out.sidekiq[found->second].push_back(value);
    any = true;
  }
  return any;
}

samples of(std::vector<figure> const& all, double figure::* field) {
  samples out;
  for (auto const& f : all) out.push_back(f.*field);
  return out;
}

/// redis-benchmark sends one constant command and looks at no reply.
void report_commands(report& out, std::map<std::string, rounds> const& all,
                     std::string const& flight) {
  auto const beside = [&](std::string name, std::string unit, double figure::* field,
                          rounds const& r, bool one) {
    weir_bench::row line{.name = std::move(name), .unit = std::move(unit)};
    line.ours = of(r.weir, field);
    line.reference_name = one ? "redis-benchmark, one connection" : "redis-benchmark, connections";
    line.reference = of(one ? r.one : r.many, field);
    if (field == &figure::rate) line.goal = ratio_at_least(0.85);
    out.add(std::move(line));
  };
  out.section(flight + ", weir's on one connection");
  for (auto const& [what, r] : all) beside(what, "/s", &figure::rate, r, false);
  out.section("beside as many over one connection");
  for (auto const& [what, r] : all) {
    beside(what + ", one connection", "/s", &figure::rate, r, true);
  }
  out.section("processor time of each command");
  for (auto const& [what, r] : all) {
    beside(what + ", client", "us", &figure::client, r, true);
    beside(what + ", server", "us", &figure::server, r, true);
  }
  auto const pairs = all.find("acquire + release");
  if (pairs == all.end()) return;
  out.add({.name = "acquire + release, pairs",
           .unit = "/s",
           .ours = of(pairs->second.weir, &figure::rate),
           .goal = at_least(70'000)});
}

void report_jobs(report& out, job_rounds const& jobs, bool sidekiq) {
  out.section(sidekiq ? "jobs, beside Sidekiq, whose enqueues one by one come from one thread that "
                        "waits for each answer"
                      : "jobs; Sidekiq is not installed: Debian's package is ruby-sidekiq");
  auto const add = [&](std::string const& name, std::string unit, std::optional<target> goal) {
    auto const ours = jobs.weir.find(name);
    if (ours == jobs.weir.end()) return;
    weir_bench::row line{.name = name, .unit = std::move(unit), .ours = ours->second};
    line.goal = goal;
    if (auto const peer = jobs.sidekiq.find(name); peer != jobs.sidekiq.end()) {
      line.reference_name = "Sidekiq";
      line.reference = peer->second;
    }
    out.add(std::move(line));
  };
  add(one_by_one_row, "jobs/s", at_least(90'000));
  add(bulk_row, "jobs/s", at_least(200'000));
  add(many_row, "jobs/s", at_least(80'000));
  add(ten_row, "jobs/s", std::nullopt);
  add(scripts_row, "scripts", std::nullopt);
  add(p50_row, "us", at_most(200));
  add(p99_row, "us", at_most(600));
  add(pings_p50_row, "us", std::nullopt);
  add(pings_p99_row, "us", std::nullopt);
}

/// Why it is not more: a server runs its scripts on one core, so nobody gets more out of it than
/// that core allows.
void report_limits(report& out, std::map<std::string, std::vector<figure>> const& all) {
  out.section("the server's core: how busy it was, and what it would allow");
  for (auto const& [what, figures] : all) {
    constexpr double micros = 1e6;
    constexpr double percent = 100;
    samples busy;
    samples allows;
    for (auto const& f : figures) {
      busy.push_back(percent * f.rate * f.server / micros);
      allows.push_back(micros / f.server);
    }
    out.add({.name = what + ", its core", .unit = "%", .ours = busy});
    out.add({.name = what + ", a core allows", .unit = "/s", .ours = allows});
  }
}

std::uint64_t argument(int argc, char** argv, int n, std::uint64_t usual) {
  return argc > n ? std::strtoull(argv[n], nullptr, 10) : usual;
}

}  // namespace

int main(int argc, char** argv) {
  auto const commands = argument(argc, argv, 1, 100'000);
  auto const in_flight = argument(argc, argv, 2, 64);
  auto const times = argument(argc, argv, 3, 3);
  if (commands < in_flight || in_flight == 0 || in_flight > 900 || times == 0) {
    std::fputs("usage: bench_redis [commands] [in flight, up to 900] [rounds]\n", stderr);
    return 2;
  }
  report out{"redis"};
  std::map<std::string, rounds> all;
  job_rounds jobs;
  bool sidekiq = true;
  for (std::uint64_t i = 0; i != times; ++i) {
    rig r{commands, in_flight};
    measure(r, all);
    measure_jobs(r, in_flight, jobs);
    sidekiq = sidekiq && measure_sidekiq(r, jobs);
  }
  auto const flight = std::to_string(in_flight) + " in flight";
  report_commands(out, all, flight);
  report_jobs(out, jobs, sidekiq);
  auto limits = jobs.speed;
  for (auto const& [what, r] : all) limits[what + ", " + flight] = r.weir;
  report_limits(out, limits);
  out.finish();
}
