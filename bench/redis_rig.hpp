// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_REDIS_RIG_HPP
#define WEIR_BENCH_REDIS_RIG_HPP

#include "../test/integration/redis_process.hpp"
#include "weir/store/redis.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir_bench {

using namespace redis_test;

inline constexpr std::uint64_t million = 1'000'000;
inline std::array const quotas{quota::per_second(million).burst(million)};
// 257 bytes: its size has no zero byte, which would end an argument of a program.
inline std::string const usual_kind(257, 'k');
inline std::string const usual_payload(100, 'p');

/// Eleven random digits and a letter, as redis-benchmark makes them.
inline constexpr std::string_view random_digits = "__rand_int__";

inline job_id id_of(std::string_view text) {
  job_id out{};
  std::copy_n(text.begin(), std::min(text.size(), out.size()), out.begin());
  return out;
}

inline new_job job_of(job_id const& id) {
  new_job j;
  j.id = id;
  j.kind = usual_kind;
  j.payload = usual_payload;
  return j;
}

/// What a measurement gave: how many in a second, and the processor time of each, in microseconds.
struct figure {
  double rate = 0;
  double client = 0;
  double server = 0;

  /// One of these after the other.
  friend figure operator+(figure const& a, figure const& b) {
    return {1 / (1 / a.rate + 1 / b.rate), a.client + b.client, a.server + b.server};
  }
};

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
  /// does the n-th, and calls `next`.
  figure together(std::function<void(std::uint64_t, std::function<void()>)> const& one) {
    return together(in_flight_, one);
  }
  figure together(std::uint64_t in_flight,
                  std::function<void(std::uint64_t, std::function<void()>)> const& one) {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    std::function<void()> next = [&] {
      if (begun != commands_)
        one(begun++, [&] {
          ++ended;
          next();
        });
    };
    return measure(commands_, RUSAGE_SELF, [&] {
      for (std::uint64_t i = 0; i != in_flight; ++i) next();
      io_.restart();
      while (ended != commands_) io_.run_one();
    });
  }

  /// Does n things. Whose processor time counts: RUSAGE_SELF, or RUSAGE_CHILDREN.
  figure measure(std::uint64_t n, int whose, std::function<void()> const& work) const {
    auto const server_before = server_time();
    auto const client_before = time_of(whose);
    auto const start = std::chrono::steady_clock::now();
    work();
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
    auto const client_after = time_of(whose);
    auto const all = static_cast<double>(n);
    return {all / took.count(), (client_after - client_before) / all,
            (server_time() - server_before) / all};
  }

  /// How many scripts the server has run.
  [[nodiscard]] std::uint64_t scripts() const {
    auto const said = server_.ask("info commandstats");
    auto const at = said.find("cmdstat_evalsha:calls=");
    return at == said.npos ? 0 : std::strtoull(said.c_str() + said.find('=', at) + 1, nullptr, 10);
  }

  [[nodiscard]] boost::asio::io_context& io() noexcept { return io_; }
  [[nodiscard]] std::uint16_t port() const noexcept { return server_.port(); }
  [[nodiscard]] std::uint64_t commands() const noexcept { return commands_; }

  /// The same script from redis-benchmark.
  template <class C>
  figure raw(C const& c, bool one_connection) const {
    auto call = detail::encode(detail::redis_names{"weir", 1}, c, {}).value();
    auto const n = std::to_string(in_flight_);
    std::string line = "redis-benchmark -q -h 127.0.0.1 -p " + std::to_string(server_.port()) +
                       " -n " + std::to_string(commands_) + " -r 100000000000";
    line += one_connection ? " -c 1 -P " + n : " -c " + n;
    line += " EVALSHA";
    for (auto const& part : call.parts()) line += " '" + part + "'";
    std::string out;
    auto got = measure(commands_, RUSAGE_CHILDREN, [&] { out = said_by(line); });
    auto const end = out.rfind(" requests per second");
    auto const begin = end == out.npos ? out.npos : out.rfind(' ', end - 1);
    if (begin == out.npos) throw std::runtime_error{"redis-benchmark says: " + out};
    got.rate = std::strtod(out.c_str() + begin, nullptr);
    return got;
  }

  /// What a program prints.
  static std::string said_by(std::string const& line) {
    std::string out;
    std::FILE* const pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error{"cannot be run: " + line};
    std::array<char, 4096> buffer{};
    for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) != 0;) {
      out.append(buffer.data(), got);
    }
    ::pclose(pipe);
    return out;
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
      for (; i != n && jobs.size() != 1000; ++i) jobs.push_back(job_of(numbered('f', i)));
      must(command::enqueue_jobs{"queue", jobs});
    }
  }

  static job_id numbered(char letter, std::uint64_t n) {
    return id_of(letter + std::to_string(million * 10 + n));
  }

 private:
  static double time_of(int whose) {
    ::rusage used{};
    ::getrusage(whose, &used);
    constexpr double second = 1e6;
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * second +
           static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  }
  [[nodiscard]] double server_time() const {
    auto const said = server_.ask("info cpu");
    double out = 0;
    for (std::string const what : {"used_cpu_sys:", "used_cpu_user:"}) {
      auto const at = said.find(what);
      if (at != said.npos) out += std::strtod(said.c_str() + at + what.size(), nullptr);
    }
    return out * 1e6;
  }

  std::uint64_t commands_;
  std::uint64_t in_flight_;
  server server_{};
  boost::asio::io_context io_{};
  redis_store store_{io_.get_executor(), server_.address()};
};

}  // namespace weir_bench

#endif
