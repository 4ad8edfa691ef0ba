// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "count.hpp"
#include "weir/key_policy.hpp"
#include "weir/quota.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir_bench {
namespace {

using namespace weir;
namespace asio = boost::asio;

constexpr std::string_view key = "tenant/00000000000001";
constexpr auto generous = quota::per_second(100).burst(1'000'000'000);

using raw_limiter = rate_limiter<memory_store, system_clock, raw_key>;

void in_place() {
  asio::io_context io;
  memory_store const store{io.get_executor()};
  raw_limiter const limiter{store, generous};
  count_each("take, accepted", [&] { must(limiter.try_take(key)->allowed); });
  raw_limiter const strict{store, quota::per_hour(1)};
  (void)strict.try_take("spent");
  count_each("take, refused", [&] { must(!strict.try_take("spent")->allowed); });
  raw_limiter const seventh{store, quota::per_second(7).burst(1'000'000'000)};
  count_each("take, accepted, of a quota that needs more than 64 bits",
             [&] { must(seventh.try_take("tenant/0000000000sevenths")->allowed); });
  auto const kept = limiter.bucket(key);
  count_each("take, accepted, of a bucket that is kept", [&] { must(kept.try_take()->allowed); });
  rate_limiter const digesting{store, generous};
  count_each("take, accepted, key digested", [&] { must(digesting.try_take(key)->allowed); });
  std::vector<std::string> keys;
  for (int i = 0; i != 1000; ++i) keys.push_back("tenant/" + std::to_string(i));
  std::size_t next = 0;
  count_each("take, accepted, one of 1,000 keys",
             [&] { must(limiter.try_take(keys[next++ % keys.size()])->allowed); });
}

asio::awaitable<void> take_often(raw_limiter const& limiter) {
  for (std::uint64_t i = 0; i != often; ++i) {
    must((co_await limiter.async_try_take(key, asio::use_awaitable)).allowed);
  }
}

void awaited() {
  asio::io_context io;
  raw_limiter const limiter{memory_store{io.get_executor()}, generous};
  auto const all = [&] {
    asio::co_spawn(io, take_often(limiter), asio::detached);
    io.restart();
    io.run();
  };
  all();
  count("take, accepted, awaited", often, all);
}

}  // namespace

void buckets() {
  in_place();
  awaited();
}

}  // namespace weir_bench
