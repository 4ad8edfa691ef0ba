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

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
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

double median(std::vector<double> all) {
  if (all.empty()) return 0;
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2),
                   all.end());
  return all[all.size() / 2];
}

/// All rounds of a row.
struct row {
  std::vector<figure> weir;
  std::vector<figure> many;  ///< redis-benchmark, over as many connections
  std::vector<figure> one;   ///< over one
};

double median(std::vector<figure> const& all, double figure::* of) {
  std::vector<double> values;
  for (auto const& f : all) values.push_back(f.*of);
  return median(std::move(values));
}

void measure(rig& r, std::map<std::string, row>& out) {
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

/// The jobs' rows, each with the target of this kind of machine.
struct job_rows {
  std::map<std::string, std::vector<double>> weir;
  std::map<std::string, std::vector<figure>> speed;  ///< of those that are rates
  std::map<std::string, std::vector<double>> sidekiq;
};

void measure_jobs(rig& r, std::uint64_t in_flight, job_rows& out) {
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
  note("enqueue one by one, 100 in flight", one_by_one);
  r.forget_all();
  note("enqueue in bulk", enqueue_in_bulk(r, n, 4));
  auto const many =
      process(r, n, {.concurrency = static_cast<std::uint32_t>(4 * in_flight), .quantum = 128});
  note("worker, no-op jobs, 256 at once", many.speed);
  out.weir["  scripts for each job"].push_back(many.scripts);
  r.forget_all();
  enqueue_in_bulk(r, n, 4);
  auto const ten = process(r, n, {.concurrency = 10});
  note("worker, no-op jobs, 10 at once", ten.speed);
  r.forget_all();
  auto const latencies = idle_latencies(r, 300);
  out.weir["enqueue to handler, idle, p50, us"].push_back(latencies[latencies.size() / 2]);
  out.weir["enqueue to handler, idle, p99, us"].push_back(latencies[latencies.size() * 99 / 100]);
}

/// Sidekiq on the same server; false: it is not installed.
bool measure_sidekiq(rig& r, job_rows& out) {
  static std::map<std::string, std::string> const rows{
      {"push", "enqueue one by one, 100 in flight"},
      {"push_bulk", "enqueue in bulk"},
      {"process", "worker, no-op jobs, 10 at once"},
      {"latency_p50", "enqueue to handler, idle, p50, us"},
      {"latency_p99", "enqueue to handler, idle, p99, us"}};
  r.forget_all();
  std::filesystem::path const here{__FILE__};
  auto const said =
      rig::said_by("ruby '" + (here.parent_path() / "redis_sidekiq.rb").string() + "' " +
                   std::to_string(r.port()) + " " +
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

nlohmann::json show_commands(std::map<std::string, row> const& all, std::uint64_t in_flight) {
  auto const cores = std::thread::hardware_concurrency();
  std::printf(
      "Per second, %llu in flight, medians; in brackets the processor time of each, in us: of the\n"
      "client, and of the server. redis-benchmark sends one constant command and looks at no "
      "reply.\n"
      "%u cores; the ratios are to hold 0.85.\n\n",
      static_cast<unsigned long long>(in_flight), cores);
  std::printf("%-20s %22s   %29s   %29s\n", "", "weir, one connection", "redis-benchmark, many",
              "redis-benchmark, one");
  auto out = nlohmann::json::object();
  for (auto const& [what, of] : all) {
    auto const value = [](auto const& figures, double figure::* field) {
      return median(figures, field);
    };
    auto const weir = value(of.weir, &figure::rate);
    auto const many = value(of.many, &figure::rate);
    auto const one = value(of.one, &figure::rate);
    auto& to = out[what];
    std::printf("%-20s %8.0f (%5.2f, %5.2f)", what.c_str(), weir, value(of.weir, &figure::client),
                value(of.weir, &figure::server));
    for (auto const& [name, figures, rate] :
         {std::tuple{"many", &of.many, many}, std::tuple{"one", &of.one, one}}) {
      std::printf("   %8.0f (%5.2f, %5.2f) %5.2f", rate, value(*figures, &figure::client),
                  value(*figures, &figure::server), weir / rate);
      to[name] = {{"rate", rate},
                  {"client_us", value(*figures, &figure::client)},
                  {"server_us", value(*figures, &figure::server)},
                  {"ratio", weir / rate}};
    }
    std::printf("\n");
    to["weir"] = {{"rate", weir},
                  {"client_us", value(of.weir, &figure::client)},
                  {"server_us", value(of.weir, &figure::server)}};
  }
  return out;
}

/// Why it is not more: a server runs its scripts on one core, so nobody gets more out of it than
/// that core allows.
nlohmann::json show_limits(std::map<std::string, std::vector<figure>> const& all) {
  std::printf("\n%-36s %10s %10s %10s %14s\n", "", "client, us", "server, us", "its core",
              "a core allows");
  auto out = nlohmann::json::object();
  for (auto const& [what, figures] : all) {
    auto const rate = median(figures, &figure::rate);
    auto const server = median(figures, &figure::server);
    auto const client = median(figures, &figure::client);
    constexpr double micros = 1e6;
    constexpr double percent = 100;
    std::printf("%-36s %10.2f %10.2f %9.0f%% %14.0f\n", what.c_str(), client, server,
                percent * rate * server / micros, micros / server);
    out[what] = {{"client_us", client},
                 {"server_us", server},
                 {"server_share", rate * server / micros},
                 {"server_limit", micros / server}};
  }
  return out;
}

nlohmann::json show_jobs(job_rows const& jobs, bool sidekiq) {
  static std::map<std::string, char const*> const targets{
      {"enqueue one by one, 100 in flight", ">= 90,000"},
      {"enqueue in bulk", ">= 200,000"},
      {"worker, no-op jobs, 256 at once", ">= 80,000"},
      {"enqueue to handler, idle, p50, us", "<= 200"},
      {"enqueue to handler, idle, p99, us", "<= 600"}};
  std::printf("\n%-36s %12s %12s %12s\n", "", "weir", "target", "Sidekiq");
  auto out = nlohmann::json::object();
  for (auto const& [what, values] : jobs.weir) {
    auto const target = targets.find(what);
    auto const peer = jobs.sidekiq.find(what);
    out[what]["weir"] = median(values);
    std::printf("%-36s %12.2f %12s", what.c_str(), median(values),
                target == targets.end() ? "" : target->second);
    if (peer != jobs.sidekiq.end()) {
      out[what]["sidekiq"] = median(peer->second);
      std::printf(" %12.2f", median(peer->second));
    }
    std::printf("\n");
  }
  std::printf(sidekiq ? "Sidekiq's enqueues one by one come from one thread, each waiting for its "
                        "answer; 10 at once.\n"
                      : "Sidekiq is not installed: Debian's package is ruby-sidekiq.\n");
  return out;
}
std::uint64_t argument(int argc, char** argv, int n, std::uint64_t usual) {
  return argc > n ? std::strtoull(argv[n], nullptr, 10) : usual;
}

}  // namespace

int main(int argc, char** argv) {
  auto const commands = argument(argc, argv, 1, 100'000);
  auto const in_flight = argument(argc, argv, 2, 64);
  auto const rounds = argument(argc, argv, 3, 3);
  if (commands < in_flight || in_flight == 0 || in_flight > 900 || rounds == 0) {
    std::fputs("usage: bench_redis [commands] [in flight, up to 900] [rounds]\n", stderr);
    return 2;
  }
  std::map<std::string, row> all;
  job_rows jobs;
  bool sidekiq = true;
  for (std::uint64_t i = 0; i != rounds; ++i) {
    rig r{commands, in_flight};
    measure(r, all);
    measure_jobs(r, in_flight, jobs);
    sidekiq = sidekiq && measure_sidekiq(r, jobs);
  }
  double load = 0;
  ::getloadavg(&load, 1);
  std::printf("Load of the machine, ours among it: %.1f.\n", load);
  auto const print = show_commands(all, in_flight);
  auto const more = show_jobs(jobs, sidekiq);
  auto limits = jobs.speed;
  for (auto const& [what, of] : all) limits[what + ", " + std::to_string(in_flight)] = of.weir;
  auto const why = show_limits(limits);
  nlohmann::json const out{{"load", load}, {"commands", print}, {"jobs", more}, {"limits", why}};
  auto const file = std::string{argv[0]} + ".json";
  std::ofstream{file} << out.dump(2) << '\n';
  std::printf("written: %s\n", file.c_str());
}
