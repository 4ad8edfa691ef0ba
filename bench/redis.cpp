// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the store adds to what its scripts cost: commands of the store, so many in flight at once on
// its one connection, beside redis-benchmark, which sends the same scripts to the same server, so
// many in flight over as many connections, or over one. Medians of the rounds.
//
//     bench_redis [commands in a round] [in flight] [rounds]
//
// redis-benchmark cannot use one reply in the next request. So what it releases and completes was
// never held: the script ends early, and the comparison is in its favour.

#include "weir/store/redis.hpp"

#include "../test/integration/redis_process.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace redis_test;

constexpr std::uint64_t million = 1'000'000;
std::array const quotas{quota::per_second(million).burst(million)};
// 257 bytes: its size has no zero byte, which would end an argument of a program.
std::string const kind(257, 'k');
std::string const payload(100, 'p');

/// Eleven random digits and a letter, as redis-benchmark makes them.
constexpr std::string_view random_digits = "__rand_int__";

job_id id_of(std::string_view text) {
  job_id out{};
  std::copy_n(text.begin(), std::min(text.size(), out.size()), out.begin());
  return out;
}

new_job job_of(job_id const& id) {
  new_job j;
  j.id = id;
  j.kind = kind;
  j.payload = payload;
  return j;
}

class rig {
 public:
  rig(std::uint64_t commands, std::uint64_t in_flight)
      : commands_{commands},
        in_flight_{in_flight} {
    store_.async_run(boost::asio::detached);
  }
  rig(rig const&) = delete;
  rig& operator=(rig const&) = delete;
  ~rig() {
    store_.close();
    io_.restart();
    io_.run();
  }

  [[nodiscard]] redis_store const& store() const noexcept { return store_; }

  /// Runs chains, in each of which one follows the other, until there were enough. `one(n, next)`
  /// does the n-th, and calls `next`. Returns how many there were in a second.
  double together(std::function<void(std::uint64_t, std::function<void()>)> const& one) {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    std::function<void()> next = [&] {
      if (begun != commands_)
        one(begun++, [&] {
          ++ended;
          next();
        });
    };
    auto const start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i != in_flight_; ++i) next();
    io_.restart();
    while (ended != commands_) io_.run_one();
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
    return static_cast<double>(commands_) / took.count();
  }

  /// The same script from redis-benchmark.
  template <class C>
  double raw(C const& c, bool one_connection) const {
    auto call = detail::encode(detail::redis_names{"weir", 1}, c, {}).value();
    auto const n = std::to_string(in_flight_);
    std::string line = "redis-benchmark -q -h 127.0.0.1 -p " + std::to_string(server_.port()) +
                       " -n " + std::to_string(commands_) + " -r 100000000000";
    line += one_connection ? " -c 1 -P " + n : " -c " + n;
    line += " EVALSHA";
    for (auto const& part : call.parts()) line += " '" + part + "'";
    std::string out;
    std::FILE* const pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error{"redis-benchmark cannot be run"};
    std::array<char, 4096> buffer{};
    for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) != 0;) {
      out.append(buffer.data(), got);
    }
    ::pclose(pipe);
    auto const end = out.rfind(" requests per second");
    auto const begin = end == out.npos ? out.npos : out.rfind(' ', end - 1);
    if (begin == out.npos) throw std::runtime_error{"redis-benchmark says: " + out};
    return std::strtod(out.c_str() + begin, nullptr);
  }

  void forget_all() const { server_.ask("flushall"); }

  template <class C>
  void must(C const& c) {
    bool done = false;
    store_.async_execute(c, [&](error_code ec, typename C::result const&) {
      if (ec) throw std::runtime_error{ec.message()};
      done = true;
    });
    io_.restart();
    while (!done) io_.run_one();
  }

  /// Puts so many jobs into the queue.
  void fill(std::uint64_t n) {
    std::vector<new_job> jobs;
    for (std::uint64_t i = 0; i != n;) {
      jobs.clear();
      for (; i != n && jobs.size() != 1000; ++i) {
        jobs.push_back(job_of(id_of("f" + std::to_string(million * 10 + i))));
      }
      must(command::enqueue_jobs{"queue", jobs});
    }
  }

 private:
  std::uint64_t commands_;
  std::uint64_t in_flight_;
  server server_{};
  boost::asio::io_context io_{};
  redis_store store_{io_.get_executor(), server_.address()};
};

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
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2),
                   all.end());
  return all[all.size() / 2];
}

struct rates {
  std::vector<double> weir;
  std::vector<double> many;  // connections of redis-benchmark
  std::vector<double> one;
};

void measure(rig& r, std::uint64_t commands, std::map<std::string, rates>& out) {
  auto const& store = r.store();
  auto const raw = [&](auto const&... c) {
    return [&](bool one) {
      double time = 0;
      ((time += 1 / r.raw(c, one)), ...);
      return 1 / time;
    };
  };
  auto const note = [&](std::string const& what, double weir, auto const& other) {
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
    std::array const jobs{job_of(id_of("e" + std::to_string(million * 10 + n)))};
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
  std::map<std::string, rates> all;
  for (std::uint64_t i = 0; i != rounds; ++i) {
    rig r{commands, in_flight};
    measure(r, commands, all);
  }
  std::printf("per second, %llu in flight   %10s   %s\n",
              static_cast<unsigned long long>(in_flight), "weir",
              "redis-benchmark: as many connections; one connection");
  for (auto const& [what, of] : all) {
    auto const weir = median(of.weir);
    auto const many = median(of.many);
    auto const one = median(of.one);
    std::printf("%-27s %10.0f   %10.0f (weir has %.2f of it)   %10.0f (%.2f)\n", what.c_str(), weir,
                many, weir / many, one, weir / one);
  }
}
