// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Records that somebody has damaged: what concerns them says so, and nothing else suffers.

#include "redis_process.hpp"
#include "redis_raw.hpp"
#include "redis_server.hpp"
#include "weir/limits.hpp"
#include "weir/store/redis.hpp"
#include "weir/store/redis/job_record.hpp"
#include "weir/store/redis/resp.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
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

/// Whatever is kept, but for the last fence, which may be skipped.
std::map<std::string, std::string> all_of(raw& by) {
  std::map<std::string, std::string> out;
  for (auto const& n : by.ask("KEYS", "*")) {
    if (n.data_type != detail::redis_kind::blob_string || n.value == key("fence")) continue;
    out[n.value] = by.ask("DUMP", n.value)[0].value;
  }
  return out;
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

BOOST_AUTO_TEST_CASE(F93_a_job_that_cannot_be_read_takes_no_unique_key_with_it) {
  stage t;
  auto const jobs = key("j", "queue");
  auto const damaged = bytes(numbered(2));
  std::array<new_job, 1> next{};
  next[0].id = numbered(9);
  next[0].kind = "kind";
  next[0].unique_key = "unique";
  next[0].strategy = unique_strategy::until_executed;
  auto const outcome = [&] {
    return t.on(command::enqueue_jobs{"queue", next}).value()[0].outcome;
  };
  for (std::string const& record : {std::string{}, std::string{"x"}}) {
    for (bool const is_set_aside : {false, true}) {
      t.by.ask("FLUSHALL");
      enqueue(t.on);
      BOOST_TEST((outcome() == enqueue_outcome::duplicate));
      record.empty() ? t.by.ask("HDEL", jobs, damaged) : t.by.ask("HSET", jobs, damaged, record);
      command::dequeue_jobs const all{"queue", "me", 0, 10, lasting};
      if (is_set_aside) BOOST_TEST(t.on(all).value().damaged == 1U);
      BOOST_TEST((outcome() == enqueue_outcome::enqueued));
      // It is the newcomer's from then on.
      BOOST_TEST(t.on(all).has_value());
      next[0].id = numbered(10);
      BOOST_TEST((outcome() == enqueue_outcome::duplicate));
      next[0].id = numbered(9);
    }
  }
}

/// Two claimed jobs like this one, whose payloads have records of their own.
std::vector<leased_job> two_with_bodies(stage& t, new_job const& like) {
  std::string const payload(1000, 'x');
  std::array jobs{like, like};
  for (std::uint8_t i = 0; i != 2; ++i) {
    jobs[i].id = numbered(static_cast<std::uint8_t>(i + 1));
    jobs[i].kind = "kind";
    jobs[i].payload = payload;
  }
  BOOST_TEST_REQUIRE(t.on(command::enqueue_jobs{"queue", jobs}).has_value());
  auto got = t.on(command::dequeue_jobs{"queue", "me", 0, 2, lasting}).value().jobs;
  BOOST_TEST_REQUIRE(got.size() == 2U);
  return got;
}

// A dead letter has to be readable, or nobody can replay it or purge it.
BOOST_AUTO_TEST_CASE(F93_a_job_whose_body_is_lost_is_set_aside_and_not_buried) {
  stage t;
  new_job once;
  once.max_attempts = 1;
  auto const got = two_with_bodies(t, once);
  for (auto const& j : got) t.by.ask("HDEL", key("j", "queue"), bytes(j.id) + "b");
  auto const buried = t.on(command::bury_job{"queue", got[0].id, got[0].fence, "reason"});
  BOOST_TEST((buried.error() == errc::lease_lost));
  auto const again = t.on(command::requeue_job{"queue", got[1].id, got[1].fence, 0s, "reason"});
  BOOST_TEST((again.error() == errc::lease_lost));
  for (auto const& j : got) {
    BOOST_TEST(t.on(command::extend_lease{"queue", j.id, j.fence, 1us}).has_value());
  }
  std::uint32_t damaged = 0;
  BOOST_TEST(weir_test::happens([&] {
    damaged += t.on(command::dequeue_jobs{"queue", "me", 0, 2, lasting}).value().damaged;
    return damaged == 2;
  }));
  auto const dead = t.on(command::list_dead_letters{"queue", 10, {}}).value();
  BOOST_TEST(dead.jobs.size() == 2U);
  for (auto const& j : dead.jobs) {
    BOOST_TEST(j.reason.starts_with(damaged_record));
    BOOST_TEST(t.on(command::purge_job{"queue", j.id}).value());
  }
}

BOOST_AUTO_TEST_CASE(F93_what_is_sound_beside_a_record_that_cannot_be_read_is_kept) {
  for (std::string_view const damaged : {"record", "record and body", "record and notes"}) {
    stage t;
    auto const got = two_with_bodies(t, {});
    auto const& j = got[0];
    command::extend_lease progress{"queue", j.id, j.fence, lasting};
    progress.checkpoint = "checkpoint";
    BOOST_TEST(t.on(progress).has_value());
    BOOST_TEST(t.on(command::snooze_job{"queue", j.id, j.fence, {}, "memo"}).has_value());
    auto const id = bytes(j.id);
    t.by.ask("HSET", key("j", "queue"), id, "x");
    if (damaged.ends_with("body")) t.by.ask("HSET", key("j", "queue"), id + "b", "x");
    if (damaged.ends_with("notes")) t.by.ask("HSET", key("j", "queue"), id + "n", "x");
    BOOST_TEST(t.on(command::dequeue_jobs{"queue", "me", 0, 2, lasting}).value().damaged == 1U);
    auto const dead = t.on(command::list_dead_letters{"queue", 10, {}}).value();
    BOOST_TEST_REQUIRE(dead.jobs.size() == 1U);
    auto const& letter = dead.jobs[0];
    bool const has_body = !damaged.ends_with("body");
    bool const has_notes = !damaged.ends_with("notes");
    BOOST_TEST(letter.reason == damaged_record);
    BOOST_TEST(letter.kind == (has_body ? "kind" : "damaged"));
    BOOST_TEST(letter.payload == (has_body ? got[0].payload : "x"));
    BOOST_TEST(letter.memo == (has_notes ? "memo" : ""));
    BOOST_TEST(letter.checkpoint == (has_notes ? "checkpoint" : ""));
    BOOST_TEST((t.on(command::replay_dead_letter{"queue", j.id, {}}).value().outcome ==
                replay_outcome::replayed));
    auto const again = t.on(command::dequeue_jobs{"queue", "me", 0, 2, lasting}).value();
    BOOST_TEST_REQUIRE(again.jobs.size() == 1U);
    BOOST_TEST(again.jobs[0].payload == letter.payload);
  }
}

BOOST_AUTO_TEST_CASE(F93_a_dead_letter_that_is_damaged_is_listed_and_can_be_purged) {
  for (bool const has_body : {false, true}) {
    for (std::string_view const record : {"", "x"}) {
      stage t;
      auto const got = two_with_bodies(t, {});
      for (auto const& j : got) {
        BOOST_TEST(t.on(command::bury_job{"queue", j.id, j.fence, "why"}).has_value());
      }
      auto const id = bytes(got[0].id);
      record.empty() ? t.by.ask("HDEL", key("j", "queue"), id)
                     : t.by.ask("HSET", key("j", "queue"), id, record);
      if (!has_body) t.by.ask("HDEL", key("j", "queue"), id + "b");
      auto const dead = t.on(command::list_dead_letters{"queue", 10, {}}).value();
      BOOST_TEST_REQUIRE(dead.jobs.size() == 2U);
      BOOST_TEST((dead.jobs[0].id == got[0].id && dead.jobs[1].id == got[1].id));
      BOOST_TEST((dead.jobs[0].state == job_state::dead));
      BOOST_TEST(dead.jobs[0].reason == damaged_record);
      BOOST_TEST(dead.jobs[0].kind == (has_body ? "kind" : "damaged"));
      BOOST_TEST(dead.jobs[0].payload == (has_body ? got[0].payload : record));
      BOOST_TEST(dead.jobs[1].reason == "why");
      for (auto const& j : got) BOOST_TEST(t.on(command::purge_job{"queue", j.id}).value());
      BOOST_TEST(!t.on(command::purge_job{"queue", got[0].id}).value());
      auto const stats = t.on(command::read_queue_stats{"queue"}).value();
      BOOST_TEST((stats.dead == 0U && stats.purged == 2U));
      BOOST_TEST(t.by.ask("EXISTS", key("j", "queue"))[0].value == "0");
    }
  }
}

BOOST_AUTO_TEST_CASE(F93_of_a_job_whose_body_is_lost_no_record_is_kept) {
  stage t;
  new_job kept;
  kept.retention = lasting;
  auto const got = two_with_bodies(t, kept);
  t.by.ask("HDEL", key("j", "queue"), bytes(got[0].id) + "b");
  for (auto const& j : got) {
    std::array const done{finished_job{j.id, j.fence, "result"}};
    BOOST_TEST(
        (t.on(command::complete_jobs{"queue", done}).value()[0] == complete_outcome::completed));
  }
  BOOST_TEST(t.on(command::read_queue_stats{"queue"}).value().completed == 2U);
  BOOST_TEST(t.on(command::find_job{"queue", got[1].id}).value()->result == "result");
  BOOST_TEST(!t.on(command::find_job{"queue", got[0].id}).value());
  BOOST_TEST(t.by.ask("HLEN", key("j", "queue"))[0].value == "3");  // of the other one
  BOOST_TEST(t.by.ask("ZCARD", key("e", "queue"))[0].value == "1");
}

BOOST_AUTO_TEST_CASE(R2_a_job_whose_body_is_lost_keeps_its_run_lock) {
  stage t;
  std::string const payload(1000, 'x');
  std::array<new_job, 2> jobs{};
  for (std::uint8_t i = 0; i != 2; ++i) {
    jobs[i].id = numbered(static_cast<std::uint8_t>(i + 1));
    jobs[i].kind = "kind";
    jobs[i].payload = payload;
    jobs[i].unique_key = "unique";
    jobs[i].strategy = unique_strategy::while_executing;
  }
  BOOST_TEST_REQUIRE(t.on(command::enqueue_jobs{"queue", jobs}).has_value());
  auto const got = t.on(command::dequeue_jobs{"queue", "me", 0, 2, lasting}).value().jobs;
  BOOST_TEST_REQUIRE(got.size() == 2U);
  BOOST_TEST(t.on(command::start_job{"queue", got[0].id, got[0].fence}).has_value());
  t.by.ask("HDEL", key("j", "queue"), bytes(got[0].id) + "b");
  // Its lease goes on, and so may its handler.
  BOOST_TEST(t.on(command::extend_lease{"queue", got[0].id, got[0].fence, lasting}).has_value());
  auto const second = t.on(command::start_job{"queue", got[1].id, got[1].fence}).value();
  BOOST_TEST((second.outcome == start_outcome::blocked));
  BOOST_TEST((second.other == got[0].id));
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

BOOST_AUTO_TEST_CASE(F97_what_is_computed_of_damaged_records_is_an_answer_or_corrupt) {
  stage t;
  enqueue(t.on);
  BOOST_TEST(t.on(command::dequeue_jobs{"queue", "me", 0, 2, lasting}).value().jobs.size() == 2U);
  t.by.ask("DEL", key("i", "queue"));
  for (std::string_view const counter : {"-1", "inf", "1e300", "nan", "18446744073709551615"}) {
    t.by.ask("HSET", key("q", "queue"), "completed", counter);
    auto const stats = t.on(command::read_queue_stats{"queue"});
    BOOST_TEST_REQUIRE(stats.has_value(), counter);
    BOOST_TEST((stats->pending == 0U && stats->leased == 2U && stats->completed == 0U), counter);
  }
  // A lease with a part that is missing, or no number of a fence's.
  auto const refused = [](auto const& out) {
    BOOST_TEST((out.has_error() && out.error() == errc::store_corrupt));
  };
  for (std::string_view const part : {"holder", "fence", "until"}) {
    BOOST_TEST(t.on(command::acquire_lock{"lock", "me", lasting}).value().granted);
    BOOST_TEST(t.on(command::obtain_queue_lease{"queue", "me", lasting}).value().granted);
    t.by.ask("HDEL", key("l", "lock"), part);
    t.by.ask("HDEL", key("q", "queue"), part);
    for (int i = 0; i != 2; ++i) {
      refused(t.on(command::acquire_lock{"lock", "you", lasting}));
      refused(t.on(command::inspect_lock{"lock"}));
      refused(t.on(command::release_lock{"lock", "me", 0}));
      refused(t.on(command::obtain_queue_lease{"queue", "you", lasting}));
      refused(t.on(command::release_queue_lease{"queue", "me", 0}));
      t.by.ask("HSET", key("l", "lock"), part, part == "holder" ? "me" : "nan");
      t.by.ask("HSET", key("q", "queue"), part, part == "holder" ? "me" : "nan");
      if (part == "holder") break;
    }
    t.by.ask("DEL", key("l", "lock"));
    t.by.ask("HDEL", key("q", "queue"), "holder", "fence", "until");
  }
  // Permits: damaged ones are skipped, or corrupt for who asks for them.
  for (std::string_view const holder : {"a", "b", "c"}) {
    BOOST_TEST(t.on(command::acquire_permit{"key", holder, 3, lasting, {}}).value().granted);
  }
  t.by.ask("ZADD", key("pf", "key"), "1e300", "a");
  t.by.ask("ZADD", key("pe", "key"), "inf", "b");
  auto const census = t.on(command::inspect_permits{"key", 10});
  BOOST_TEST_REQUIRE(census.has_value());
  BOOST_TEST((census->holders.size() == 1U && census->holders[0].holder == "c"));
  refused(t.on(command::acquire_permit{"key", "a", 3, lasting, {}}));
  refused(t.on(command::acquire_permit{"key", "b", 3, lasting, {}}));
  refused(t.on(command::release_permit{"key", "b", 0}));
  BOOST_TEST(t.on(command::acquire_permit{"key", "d", 3, lasting, lasting}).value().place == 1U);
  t.by.ask("ZADD", key("pt", "key"), "inf", "d");
  refused(t.on(command::acquire_permit{"key", "e", 3, lasting, lasting}));
}

BOOST_AUTO_TEST_CASE(F97_times_and_deaths_that_cannot_be_are_held_within_what_can) {
  stage t;
  enqueue(t.on);
  t.by.ask("ZADD", key("i", "queue"), "0", std::string(9, '\xff') + std::string(16, 'i'));
  auto const got = t.on(command::dequeue_jobs{"queue", "me", 0, 10, lasting}).value();
  BOOST_TEST_REQUIRE(got.jobs.size() == 3U);
  for (std::string_view const deaths : {"9223372036854775800", "-9"}) {
    auto const& j = got.jobs[deaths == "-9" ? 1 : 0];
    t.by.ask("HSET", key("q", "queue"), "deaths", deaths);
    BOOST_TEST(t.on(command::bury_job{"queue", j.id, j.fence, "why"}).has_value());
  }
  t.by.ask("ZADD", key("d", "queue"), "inf", bytes(got.jobs[1].id));
  t.by.ask("HSET", key("q", "queue"), "deaths", "x");
  BOOST_TEST(
      t.on(command::bury_job{"queue", got.jobs[2].id, got.jobs[2].fence, "why"}).has_value());
  std::size_t shown = 0;
  std::string cursor;
  do {
    auto const page = t.on(command::list_dead_letters{"queue", 1, cursor});
    BOOST_TEST_REQUIRE(page.has_value());
    shown += page->jobs.size();
    cursor = page->cursor;
  } while (!cursor.empty());
  BOOST_TEST(shown == 2U);  // the one whose death nobody can count is found by its id alone
  BOOST_TEST(t.on(command::find_job{"queue", got.jobs[1].id}).value().has_value());
  // No time of them is in the past: a worker would ask again at once.
  auto const first = t.on(command::min_vesting_time{"queue"}).value();
  BOOST_TEST_REQUIRE(first.has_value());
  BOOST_TEST((*first > lasting));
  t.by.ask("ZADD", key("due"), "inf", "queue");
  auto const later = t.on(command::scan_visible_queues{0, 10, 0}).value().next_in;
  BOOST_TEST_REQUIRE(later.has_value());
  BOOST_TEST((*later > lasting));
}

BOOST_AUTO_TEST_CASE(F60_names_that_are_no_queue_s_hide_none_and_end_no_connection) {
  stage t;
  enqueue(t.on);
  std::string const longest(limits::key_size, 'q');
  enqueue(t.on, longest);
  auto const damage = [&] {
    for (int i = 0; i != 3; ++i) {
      for (std::size_t const size : {std::size_t{0}, limits::key_size + 1, std::size_t{5} << 20U}) {
        std::string const name(size, static_cast<char>('a' + i));
        t.by.ask("ZADD", key("due"), "0", name);
        t.by.ask("ZADD", key("names"), "0", name);
      }
    }
  };
  auto const is_whole = [&](std::vector<std::string> all) {
    std::ranges::sort(all);
    return all == std::vector<std::string>{longest, "queue"};
  };
  for (std::uint32_t const limit : {1U, 2U, 10U}) {
    damage();
    std::vector<std::string> found;
    for (int look = 0; look != 10 && !is_whole(found); ++look) {
      auto const seen = t.on(command::scan_visible_queues{0, limit, 0});
      BOOST_TEST_REQUIRE(seen.has_value(), seen.error().message());
      for (auto const& name : seen->queues) {
        if (std::ranges::count(found, name) == 0) found.push_back(name);
      }
      if (limit != 1 || seen->queues.empty()) continue;
      BOOST_TEST(t.on(command::snooze_queue{seen->queues[0], lasting}).has_value());
    }
    BOOST_TEST(is_whole(found), limit);
    for (auto const& name : found) BOOST_TEST(t.on(command::resume_queue{name}).has_value());
    damage();
    std::vector<std::string> listed;
    std::string cursor;
    do {
      auto const page = t.on(command::list_queues{0, limit, cursor});
      BOOST_TEST_REQUIRE(page.has_value(), page.error().message());
      listed.insert(listed.end(), page->queues.begin(), page->queues.end());
      cursor = page->cursor;
    } while (!cursor.empty());
    BOOST_TEST(is_whole(listed), limit);
    damage();
    BOOST_TEST(t.on(command::gc_stale_pointers{0}).has_value());
  }
}

BOOST_AUTO_TEST_CASE(F60_holders_that_are_too_long_are_corrupt_or_skipped) {
  stage t;
  std::string const longest(limits::holder_size, 'h');
  BOOST_TEST(t.on(command::acquire_lock{"lock", longest, lasting}).value().granted);
  BOOST_TEST(t.on(command::inspect_lock{"lock"}).value().holder == longest);
  BOOST_TEST(t.on(command::acquire_permit{"key", longest, 3, lasting, {}}).value().granted);
  auto const corrupt = [](auto const& out) {
    BOOST_TEST((out.has_error() && out.error() == errc::store_corrupt));
  };
  for (std::size_t const size : {limits::holder_size + 1, std::size_t{5} << 20U}) {
    std::string const holder(size, 'h');
    t.by.ask("HSET", key("l", "lock"), "holder", holder);
    t.by.ask("HSET", key("q", "queue"), "holder", holder, "fence", "7", "until",
             "9007199254740991");
    corrupt(t.on(command::inspect_lock{"lock"}));
    corrupt(t.on(command::acquire_lock{"lock", "me", lasting}));
    corrupt(t.on(command::obtain_queue_lease{"queue", "me", lasting}));
    t.by.ask("ZADD", key("pe", "key"), "9007199254740991", holder);
    t.by.ask("ZADD", key("pf", "key"), "7", holder);
    auto const census = t.on(command::inspect_permits{"key", 10});
    BOOST_TEST_REQUIRE(census.has_value(), census.error().message());
    BOOST_TEST((census->holders.size() == 1U && census->holders[0].holder == longest));
  }
}

BOOST_AUTO_TEST_CASE(F60_a_record_that_is_longer_than_a_job_may_be_is_set_aside) {
  stage t;
  auto const jobs = key("j", "queue");
  auto const id = bytes(numbered(2));
  // As a body begins: the size of the kind, and where there are headers, that of them.
  auto const body = [](std::size_t kind, std::size_t headers, std::size_t payload) {
    auto const two = [](std::size_t n) {
      return std::string{static_cast<char>(n >> 8U), static_cast<char>(n & 0xffU)};
    };
    auto const sizes = headers == 0 ? two(kind) : two(kind + detail::redis_more) + two(headers);
    return sizes + std::string(kind + headers + payload, 'x');
  };
  auto const notes = [](std::uint32_t memo, std::uint32_t result, std::uint32_t progress,
                        std::uint32_t checkpoint, std::size_t reason) {
    std::string out;
    auto const add = [&](unsigned bytes, std::uint32_t n) {
      while (bytes-- != 0) out += static_cast<char>((n >> (8U * bytes)) & 0xffU);
    };
    add(2, memo + detail::redis_more);
    add(4, result);
    add(2, progress);
    add(4, checkpoint);
    return out + std::string(memo + result + progress + checkpoint + reason, 'x');
  };
  using limits::checkpoint_size, limits::headers_size, limits::key_size, limits::memo_size;
  using limits::payload_size, limits::progress_size, limits::reason_size;
  struct extras {
    std::string body;
    std::string notes;
  };
  auto const usual = body(4, 0, 7);
  auto const nothing = notes(0, 0, 0, 0, 0);
  auto const put = [&](extras const& with) {
    t.by.ask("FLUSHALL");
    enqueue(t.on);
    auto record = t.by.ask("HGET", jobs, id)[0].value;
    record[32] = '\x03';  // both are beside it
    record.resize(sizeof(detail::redis_record) + std::string_view{"unique"}.size());
    t.by.ask("HSET", jobs, id, record, id + "b", with.body, id + "n", with.notes);
  };
  put({body(key_size, headers_size, payload_size),
       notes(memo_size, payload_size, progress_size, checkpoint_size, reason_size)});
  BOOST_TEST(t.on(command::find_job{"queue", numbered(2)}).value().has_value());
  BOOST_TEST(t.on(command::dequeue_jobs{"queue", "me", 0, 10, lasting}).value().jobs.size() == 3U);
  for (auto const& with :
       {extras{body(key_size + 1, 0, 7), nothing}, extras{body(4, headers_size + 1, 7), nothing},
        extras{body(4, 0, payload_size + 1), nothing},
        extras{body(4, 0, std::size_t{5} << 20U), nothing},
        extras{usual, notes(memo_size + 1, 0, 0, 0, 0)},
        extras{usual, notes(0, payload_size + 1, 0, 0, 0)},
        extras{usual, notes(0, 0, progress_size + 1, 0, 0)},
        extras{usual, notes(0, 0, 0, checkpoint_size + 1, 0)},
        extras{usual, notes(0, 0, 0, 0, reason_size + 1)}}) {
    put(with);
    BOOST_TEST(t.on(command::peek_jobs{"queue", 10}).value().size() == 2U);
    BOOST_TEST((t.on(command::find_job{"queue", numbered(2)}).error() == errc::store_corrupt));
    auto const got = t.on(command::dequeue_jobs{"queue", "me", 0, 10, lasting});
    BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
    BOOST_TEST((got->jobs.size() == 2U && got->damaged == 1U));
    BOOST_TEST(t.on(command::list_dead_letters{"queue", 10, {}}).value().jobs.size() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(F60_a_page_that_ends_at_an_entry_of_any_length_has_a_cursor) {
  stage t;
  enqueue(t.on);
  auto const add = [&](std::string const& id) {
    t.by.ask("ZADD", key("i", "queue"), "0", std::string(9, '\0') + id);
  };
  for (int i = 0; i != 999; ++i) add(std::string(12, 'a') + std::to_string(1000 + i));
  add(std::string(std::size_t{9} << 20U, 'b'));
  std::size_t jobs = 0;
  std::string cursor;
  do {
    auto const page = t.on(command::list_jobs{"queue", job_state::pending, 10, cursor});
    BOOST_TEST_REQUIRE(page.has_value(), page.error().message());
    jobs += page->jobs.size();
    cursor = page->cursor;
  } while (!cursor.empty());
  BOOST_TEST(jobs == 3U);
}

BOOST_AUTO_TEST_CASE(F93_a_look_at_what_waits_ends_after_a_thousand_damaged_entries) {
  stage t;
  enqueue(t.on);
  detail::redis_wire many;
  constexpr int entries = 5000;
  for (int i = 0; i != entries; ++i) {
    many.push("ZADD", key("i", "queue"), "0",
              std::string(9, '\0') + std::string(12, 'i') + std::to_string(1000 + i));
  }
  t.by.send(many);
  for (int i = 0; i != entries; ++i) t.by.reply();
  t.by.ask("CONFIG", "RESETSTAT");
  BOOST_TEST(t.on(command::peek_jobs{"queue", 10}).has_value());
  auto const stats = t.by.ask("INFO", "commandstats")[0].value;
  std::string_view const field = "cmdstat_hget:calls=";
  auto const at = stats.find(field);
  BOOST_TEST_REQUIRE(at != stats.npos);
  BOOST_TEST(std::stoi(stats.substr(at + field.size())) <= 1010);
}

BOOST_AUTO_TEST_CASE(F60_a_list_reads_no_bodies_of_others_and_few_that_are_damaged) {
  stage t;
  constexpr std::size_t leased = 40;
  constexpr std::size_t damaged = 60;
  constexpr std::size_t sound = 5;
  std::string const payload(1000, 'x');
  std::vector<new_job> jobs(leased + damaged + sound);
  for (std::size_t i = 0; i != jobs.size(); ++i) {
    jobs[i].id = numbered(static_cast<std::uint8_t>(i + 1));
    jobs[i].kind = "kind";
    jobs[i].payload = payload;
  }
  BOOST_TEST_REQUIRE(t.on(command::enqueue_jobs{"queue", jobs}).has_value());
  BOOST_TEST(t.on(command::dequeue_jobs{"queue", "me", 0, leased, lasting})->jobs.size() == leased);
  for (std::size_t i = leased; i != leased + damaged; ++i) {
    auto const id = bytes(jobs[i].id);
    auto const record = t.by.ask("HGET", key("j", "queue"), id)[0].value;
    t.by.ask("HSET", key("j", "queue"), id, record + "x");
  }
  std::size_t found = 0;
  std::size_t read = 0;
  std::size_t most = 0;
  std::string cursor;
  do {
    t.by.ask("CONFIG", "RESETSTAT");
    auto const page = t.on(command::list_jobs{"queue", job_state::pending, 100, cursor});
    BOOST_TEST_REQUIRE(page.has_value(), page.error().message());
    found += page->jobs.size();
    cursor = page->cursor;
    auto const stats = t.by.ask("INFO", "commandstats")[0].value;
    std::string_view const field = "cmdstat_hget:calls=";
    auto const calls = std::stoul(stats.substr(stats.find(field) + field.size()));
    read += calls;
    most = std::max(most, calls);
  } while (!cursor.empty());
  BOOST_TEST(found == sound);
  // Records, bodies of those that are damaged, and bodies of the others, to see and to send.
  BOOST_TEST(read <= jobs.size() + damaged + 2 * sound);
  constexpr auto bodies = limits::answer_bytes / limits::payload_size + 1;
  BOOST_TEST(most <= leased + 2 * bodies + 3 * sound);
}

BOOST_AUTO_TEST_CASE(F97_a_key_of_another_type_stops_a_step_before_it_writes) {
  stage t;
  std::size_t refusals = 0;
  auto const kinds = {"q", "i", "j", "k", "r", "d", "e", "c", "due", "names"};
  for (std::string const kind : kinds) {
    auto const at = kind.size() > 1 ? key(kind) : key(kind, "queue");
    leased_job j;
    auto const check = [&](std::string_view what, auto step) {
      t.by.ask("FLUSHALL");
      enqueue(t.on);
      auto const got = t.on(command::dequeue_jobs{"queue", "me", 0, 1, lasting}).value();
      j = got.jobs.at(0);
      auto const second = t.on(command::dequeue_jobs{"queue", "me", 0, 1, lasting}).value();
      BOOST_TEST(t.on(command::start_job{"queue", second.jobs.at(0).id, second.jobs[0].fence})
                     .has_value());
      if (what == "replay" || what == "purge") {
        BOOST_TEST(t.on(command::bury_job{"queue", j.id, j.fence, "why"}).has_value());
      }
      t.by.ask("DEL", at);
      t.by.ask("SET", at, "text");
      auto const before = all_of(t.by);
      auto const ec = step();
      if (!ec) return;
      ++refusals;
      BOOST_TEST((ec == errc::store_foreign), kind << ", " << what << ": " << ec.message());
      BOOST_TEST((all_of(t.by) == before), kind << ", " << what << ": a step was done half");
    };
    auto const error = [&](auto const& c) {
      auto const out = t.on(c);
      return out.has_error() ? out.error() : error_code{};
    };
    std::array<new_job, 2> more{};
    for (std::uint8_t i = 0; i != 2; ++i) {
      more[i].id = numbered(static_cast<std::uint8_t>(9 + i));
      more[i].kind = "kind";
    }
    check("enqueue", [&] { return error(command::enqueue_jobs{"queue", more}); });
    more[1].unique_key = "unique";
    more[1].strategy = unique_strategy::until_executed;
    more[1].on_conflict = conflict_policy::replace;
    check("enqueue unique", [&] { return error(command::enqueue_jobs{"queue", more}); });
    check("dequeue", [&] { return error(command::dequeue_jobs{"queue", "me", 7, 9, lasting}); });
    check("obtain",
          [&] { return error(command::obtain_lease{"queue", numbered(3), "me", lasting}); });
    check("extend", [&] { return error(command::extend_lease{"queue", j.id, j.fence, lasting}); });
    check("start", [&] { return error(command::start_job{"queue", j.id, j.fence}); });
    check("requeue",
          [&] { return error(command::requeue_job{"queue", j.id, j.fence, {}, "why"}); });
    check("snooze", [&] { return error(command::snooze_job{"queue", j.id, j.fence, {}, "memo"}); });
    check("return", [&] { return error(command::return_job{"queue", j.id, j.fence}); });
    check("bury", [&] { return error(command::bury_job{"queue", j.id, j.fence, "why"}); });
    check("complete", [&] {
      std::array const over{finished_job{j.id, j.fence, {}}};
      return error(command::complete_jobs{"queue", over});
    });
    check("relay", [&] {
      command::relay_job c{.queue = "queue", .id = j.id, .fence = j.fence};
      std::array<new_job, 1> next{};
      next[0].id = numbered(9);
      next[0].kind = "kind";
      c.next = next;
      return error(c);
    });
    check("cancel", [&] { return error(command::cancel_job{"queue", numbered(2), true}); });
    check("replay", [&] { return error(command::replay_dead_letter{"queue", j.id, {}}); });
    check("purge", [&] { return error(command::purge_job{"queue", j.id}); });
    check("pause", [&] { return error(command::pause_queue{"queue"}); });
    check("resume", [&] { return error(command::resume_queue{"queue"}); });
    check("snooze queue", [&] { return error(command::snooze_queue{"queue", lasting}); });
    check("lease", [&] { return error(command::obtain_queue_lease{"queue", "me", lasting}); });
  }
  for (std::string const kind : {"pe", "pf", "pt", "pl", "pm"}) {
    auto const at = key(kind, "key");
    auto const check = [&](auto const& c) {
      t.by.ask("FLUSHALL");
      for (std::string_view const holder : {"a", "b", "c"}) {
        BOOST_TEST(t.on(command::acquire_permit{"key", holder, 1, lasting, lasting}).has_value());
      }
      t.by.ask("DEL", at);
      t.by.ask("SET", at, "text");
      auto const before = all_of(t.by);
      auto const out = t.on(c);
      if (!out.has_error()) return;
      ++refusals;
      BOOST_TEST((out.error() == errc::store_foreign), kind);
      BOOST_TEST((all_of(t.by) == before), kind << ": a step was done half");
    };
    check(command::acquire_permit{"key", "b", 2, lasting, lasting});
    check(command::acquire_permit{"key", "b", 1, lasting, {}});
    check(command::acquire_permit{"key", "d", 1, lasting, lasting});
    check(command::release_permit{"key", "a", 0});
    check(command::release_permit{"key", "c", 0});
  }
  BOOST_TEST(refusals > 100U);
}

BOOST_AUTO_TEST_SUITE_END()
