// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Records that somebody has damaged: what concerns them says so, and nothing else suffers.

#include "redis_process.hpp"
#include "redis_raw.hpp"
#include "redis_server.hpp"
#include "weir/store/redis.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace redis_test;

constexpr duration lasting = 1h;
constexpr std::string_view head = "{weir:0}:";

std::string key(std::string_view kind, std::string_view user = {}) {
  auto out = std::string{head}.append(kind);
  return user.empty() ? out : out.append(":").append(user);
}

job_id numbered(std::uint8_t n) {
  job_id out{};
  out.data[0] = n;
  return out;
}
std::string bytes(job_id const& id) { return {id.begin(), id.end()}; }

/// Three jobs, of which the second has a unique key.
void enqueue(bed& on, std::string_view queue = "queue") {
  std::array<new_job, 3> all{};
  for (std::uint8_t i = 0; i != 3; ++i) {
    all[i].id = numbered(static_cast<std::uint8_t>(i + 1));
    all[i].kind = "kind";
    all[i].payload = "payload";
  }
  all[1].unique_key = "unique";
  all[1].strategy = unique_strategy::until_executed;
  BOOST_TEST_REQUIRE(on(command::enqueue_jobs{queue, all}).has_value());
}

struct stage {
  server s;
  bed on{s};
  raw by{s.port()};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_damage)

BOOST_AUTO_TEST_CASE(F93_a_record_that_cannot_be_read_is_set_aside_and_its_queue_goes_on) {
  stage t;
  auto const jobs = key("j", "queue");
  auto const id = bytes(numbered(2));
  std::string whole;
  enqueue(t.on);
  for (auto const& n : t.by.ask("HGET", jobs, id)) whole = n.value;
  BOOST_TEST_REQUIRE(whole.size() > 85U);
  auto const changed = [&](std::size_t at, std::string_view by) {
    auto out = whole;
    return out.replace(at, by.size(), by);
  };
  std::string const ones(8, '\xff');
  for (std::string const& record :
       {std::string{},       std::string{"x"},    whole.substr(0, 84), whole.substr(0, 90),
        changed(4, ones),    changed(12, ones),   changed(20, ones),   changed(28, "\xff\xff"),
        changed(30, "\x05"), changed(31, "\x07"), changed(32, "\x01"), changed(32, "\x02"),
        changed(32, "\x04"), changed(37, ones),   changed(45, ones),   changed(53, "\xff\xff"),
        changed(55, "\x09"), changed(56, "\x09"), changed(61, ones),   changed(69, ones),
        changed(77, ones)}) {
    t.by.ask("FLUSHALL");
    enqueue(t.on);
    record.empty() ? t.by.ask("HDEL", jobs, id) : t.by.ask("HSET", jobs, id, record);
    BOOST_TEST(t.on(command::peek_jobs{"queue", 10}).value().size() >= 2U);
    auto const got = t.on(command::dequeue_jobs{"queue", "me", 0, 10, lasting});
    BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
    BOOST_TEST(got->jobs.size() == 2U);
    BOOST_TEST(got->damaged == 1U);
    BOOST_TEST(!got->next_in.has_value() == false);
    auto const dead = t.on(command::list_dead_letters{"queue", 10, {}}).value();
    BOOST_TEST_REQUIRE(dead.jobs.size() == 1U);
    BOOST_TEST((dead.jobs[0].id == numbered(2)));
    BOOST_TEST(dead.jobs[0].kind == "damaged");
    BOOST_TEST(dead.jobs[0].payload == record);
    BOOST_TEST(dead.jobs[0].reason.starts_with(damaged_record));
    // It is not met again, and can be purged as any other.
    BOOST_TEST(t.on(command::dequeue_jobs{"queue", "you", 0, 10, lasting}).value().damaged == 0U);
    BOOST_TEST(t.on(command::purge_job{"queue", numbered(2)}).value());
    auto const stats = t.on(command::read_queue_stats{"queue"}).value();
    BOOST_TEST((stats.leased == 2U && stats.pending == 0U && stats.dead == 0U));
  }
}

BOOST_AUTO_TEST_CASE(F93_entries_of_an_index_that_are_no_jobs_are_set_aside_a_hundred_at_a_time) {
  stage t;
  enqueue(t.on);
  auto const index = key("i", "queue");
  for (std::string const& member :
       {std::string{"\0", 1}, std::string{"short"}, std::string(30, '\0'), std::string(24, '\0')}) {
    t.by.ask("ZADD", index, "0", member);
  }
  for (int i = 0; i != 150; ++i)
    t.by.ask("ZADD", index, "0",
             std::string(9, '\0') + std::string(13, 'i') + std::to_string(100 + i));
  std::size_t jobs = 0;
  std::size_t damaged = 0;
  for (int step = 0; step != 3; ++step) {
    auto const got = t.on(command::dequeue_jobs{"queue", "me", 0, 10, lasting});
    BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
    BOOST_TEST(got->damaged <= 100U);
    jobs += got->jobs.size();
    damaged += got->damaged;
  }
  BOOST_TEST(jobs == 3U);
  BOOST_TEST(damaged == 154U);
  BOOST_TEST(t.on(command::read_queue_stats{"queue"}).value().dead == 154U);
}

BOOST_AUTO_TEST_CASE(F93_counters_and_flags_that_are_damaged_begin_anew) {
  stage t;
  enqueue(t.on);
  for (auto const* const field : {"flags", "enqueued", "deaths", "completed"}) {
    t.by.ask("HSET", key("q", "queue"), field, "no number");
  }
  std::array<new_job, 1> more{};
  more[0].id = numbered(9);
  more[0].kind = "kind";
  BOOST_TEST(t.on(command::enqueue_jobs{"queue", more}).has_value());
  auto const got = t.on(command::dequeue_jobs{"queue", "me", 0, 10, lasting}).value();
  BOOST_TEST_REQUIRE(got.jobs.size() == 4U);
  std::array const done{finished_job{got.jobs[0].id, got.jobs[0].fence, {}}};
  BOOST_TEST(
      (t.on(command::complete_jobs{"queue", done}).value()[0] == complete_outcome::completed));
  for (std::size_t i = 1; i != 3; ++i) {
    BOOST_TEST(
        t.on(command::bury_job{"queue", got.jobs[i].id, got.jobs[i].fence, "why"}).has_value());
  }
  auto const dead = t.on(command::list_dead_letters{"queue", 10, {}}).value();
  BOOST_TEST(dead.jobs.size() == 2U);
  BOOST_TEST(t.on(command::read_queue_stats{"queue"}).value().completed == 1U);
}

BOOST_AUTO_TEST_CASE(F97_a_fence_does_not_pass_what_a_script_can_count) {
  stage t;
  for (std::string const fence : {"9007199254740992", "18446744073709551615", "x", "1e300", "-5"}) {
    t.by.ask("SET", key("fence"), fence);
    auto const is_corrupt = [&](auto const& out) {
      BOOST_TEST((out.has_error() && out.error() == errc::store_corrupt), fence);
    };
    is_corrupt(t.on(command::acquire_lock{"key", "me", lasting}));
    is_corrupt(t.on(command::acquire_permit{"key", "me", 1, lasting, {}}));
    is_corrupt(t.on(command::obtain_queue_lease{"other", "me", lasting}));
    t.by.ask("DEL", key("fence"));
    enqueue(t.on, fence);
    t.by.ask("SET", key("fence"), fence);
    is_corrupt(t.on(command::dequeue_jobs{fence, "me", 0, 10, lasting}));
    BOOST_TEST(t.by.ask("GET", key("fence"))[0].value == fence);
    BOOST_TEST(t.on(command::read_queue_stats{fence}).value().pending == 3U);
  }
  t.by.ask("SET", key("fence"), "9007199254740991");
  BOOST_TEST(t.on(command::acquire_lock{"key", "me", lasting}).value().fence == 9007199254740992U);
}

BOOST_AUTO_TEST_CASE(F97_damaged_records_of_one_key_are_corrupt_and_block_nothing_else) {
  stage t;
  t.by.ask("HSET", key("l", "key"), "holder", "x", "fence", "no", "until", "never");
  BOOST_TEST((t.on(command::acquire_lock{"key", "me", lasting}).error() == errc::store_corrupt));
  BOOST_TEST((t.on(command::inspect_lock{"key"}).error() == errc::store_corrupt));
  constexpr std::array one{quota::per_second(10)};
  constexpr std::array two{quota::per_second(10), quota::per_second(20)};
  BOOST_TEST(t.on(command::take{"key", one, 1, {}}).has_value());
  auto const at = key("b", "key");
  auto const value = t.by.ask("GET", at)[0].value;
  BOOST_TEST_REQUIRE(value.size() > 16U);
  // With the second, a division that looks for the end of nothing would never find it.
  for (std::string const& bad :
       {value.substr(0, value.size() - 3), "0 0 0 0 |" + std::string(16, '\0'),
        std::string(400, '9') + " 1 1 1 |" + std::string(16, '\0'),
        value.substr(0, value.size() - 16) + std::string(16, '\x7f')}) {
    for (int i = 0; i != 2; ++i) {
      t.by.ask("SET", at, bad);
      auto const out =
          i == 0 ? t.on(command::take{"key", one, 1, {}}) : t.on(command::take{"key", two, 1, {}});
      BOOST_TEST((out.has_error() && out.error() == errc::store_corrupt), bad);
    }
  }
  BOOST_TEST(t.on(command::take{"other", one, 1, {}}).has_value());
  BOOST_TEST(t.on(command::acquire_lock{"other", "me", lasting}).value().granted);
}

BOOST_AUTO_TEST_SUITE_END()
