// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the memory store takes of the heap for each thing that it holds, at 10^3 to 10^6 of them:
// what the allocator gives, with its own rounding and headers. The store's options are the usual.
// Beside it, what a std::unordered_map from a string takes for the same names (a job: for its id
// and texts).

#include "memory_bed.hpp"
#include "report.hpp"
#include "weir/key_policy.hpp"
#include "weir/quota.hpp"

#include <malloc.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace {

using namespace weir;
using namespace std::chrono_literals;
using weir_bench::memory_bed;

std::size_t heap() {
  auto const used = ::mallinfo2();
  return used.uordblks + used.hblkhd;
}

std::string name(std::uint64_t n) {
  auto const digits = std::to_string(n);
  return "tenant/" + std::string(14 - digits.size(), '0') + digits;
}

/// Bytes for each of `n`, of which `one(i)` makes the i-th.
double each(std::uint64_t n, std::function<void(std::uint64_t)> const& one) {
  auto const before = heap();
  for (std::uint64_t i = 0; i != n; ++i) one(i);
  return static_cast<double>(heap() - before) / static_cast<double>(n);
}

double weir_each(std::uint64_t n, std::function<void(memory_bed&, std::uint64_t)> const& one) {
  auto const bed = std::make_unique<memory_bed>(memory_options{});
  return each(n, [&](std::uint64_t i) { one(*bed, i); });
}

double map_each(std::uint64_t n) {
  std::unordered_map<std::string, std::int64_t> map;
  return each(n, [&](std::uint64_t i) { map.emplace(name(i), 0); });
}

struct plain_job {
  std::string kind;
  std::string payload;
  time_point vesting;
};

constexpr std::string_view kind = "send_mail";
constexpr std::string_view payload =
    "{\"to\":\"someone@example.com\",\"template\":\"welcome\",\"language\":\"en\"}";

double plain_jobs_each(std::uint64_t n) {
  std::unordered_map<std::uint64_t, plain_job> map;
  return each(n, [&](std::uint64_t i) {
    map.emplace(i, plain_job{std::string{kind}, std::string{payload}, {}});
  });
}

void take(memory_bed& bed, std::string_view key) {
  static auto const hourly = quota::per_hour(1);
  bed.ask(command::take{.key = key, .quotas = {&hourly, 1}, .cost = 1, .max_wait = {}});
}

struct held {
  char const* what;
  std::function<void(memory_bed&, std::uint64_t)> one;
  char const* reference_name;
  std::function<double(std::uint64_t)> reference;
  std::optional<weir_bench::target> goal;
};

}  // namespace

int main() {
  char const* const map = "unordered_map<string, int64>";
  std::string const holder = "0192d5e4-7b7a-7c3e-9c55-1b2f3a4d5e6f";
  held const all[] = {
      {"bucket, key of 21 bytes", [](memory_bed& bed, std::uint64_t i) { take(bed, name(i)); }, map,
       map_each, weir_bench::at_most(64)},
      {"bucket, key digested",
       [](memory_bed& bed, std::uint64_t i) { take(bed, sha256_key{}(name(i)).view()); }, map,
       map_each, weir_bench::at_most(64)},
      {"permit, one for each key",
       [&](memory_bed& bed, std::uint64_t i) {
         bed.ask(command::acquire_permit{name(i), holder, 1, 1h, {}});
       },
       map, map_each, std::nullopt},
      {"permit, all of one key",
       [](memory_bed& bed, std::uint64_t i) {
         bed.ask(command::acquire_permit{"key", name(i), 1'000'000, 1h, {}});
       },
       map, map_each, std::nullopt},
      {"lock",
       [&](memory_bed& bed, std::uint64_t i) {
         bed.ask(command::acquire_lock{name(i), holder, 1h});
       },
       map, map_each, std::nullopt},
      {"job, with 9 + 66 bytes of text",
       [](memory_bed& bed, std::uint64_t) {
         new_job j;
         j.id = bed.next_id();
         j.kind = kind;
         j.payload = payload;
         bed.ask(command::enqueue_jobs{"queue", {&j, 1}});
       },
       "unordered_map<uint64, {2 strings, time}>", plain_jobs_each, std::nullopt},
      {"queue, with one job",
       [](memory_bed& bed, std::uint64_t i) {
         new_job j;
         j.id = bed.next_id();
         j.kind = kind;
         j.payload = payload;
         bed.ask(command::enqueue_jobs{name(i), {&j, 1}});
       },
       map, map_each, std::nullopt},
  };
  weir_bench::report out{"memory"};
  for (auto const& of : all) {
    for (std::uint64_t const n : {1'000U, 10'000U, 100'000U, 1'000'000U}) {
      // Tables grow by doubling: what counts against the target is what a million take.
      out.add({.name = of.what + (", " + std::to_string(n)),
               .unit = "bytes",
               .ours = weir_each(n, of.one),
               .reference_name = of.reference_name,
               .reference = of.reference(n),
               .goal = n == 1'000'000 ? of.goal : std::nullopt});
    }
  }
  out.finish();
}
