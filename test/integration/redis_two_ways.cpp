// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Scripts have a fast way for what is asked most, and a slow one for all: both answer the same, and
// readers find the same afterwards. What may differ is what no reader sees: a queue's pointer may
// be too early, and what time has ended may still be there.

#include "redis_process.hpp"
#include "redis_raw.hpp"
#include "redis_server.hpp"
#include "weir/store/redis/buckets.hpp"
#include "weir/store/redis/enqueues.hpp"
#include "weir/store/redis/job_ends.hpp"
#include "weir/store/redis/jobs.hpp"
#include "weir/store/redis/permits.hpp"
#include "weir/store/redis/queues.hpp"
#include "weir/store/redis/script/generated.hpp"
#include "weir/testing/dice.hpp"

#include <boost/container/small_vector.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace redis_test;
using detail::redis_script;
namespace lua = detail::lua;

/// Conditions under which scripts go the fast way.
constexpr std::array conditions{
    "if easy and live < tonumber(ARGV[3]) then",  // a permit is to be had, and nobody is in line
    "if easy and not unnoted then",               // nobody waits for the permit that is given up
    "if takes and (not value or value:sub(1, #quotas) == quotas) then",  // one known quota
    "if n == 1 then return",                                             // one job is looked up
    "if strategy == 0 and retention == 0 then",  // completed jobs leave nothing
    "if extras == 0 then\n        room",         // a claimed job is one string
};

/// How long it takes to ask: so the next fence is the time, whether or not the last was given away.
constexpr duration asking = 100us;

class two_ways {
 public:
  explicit two_ways(std::uint16_t port) : server_{port} {}
  /// Every script that was run has gone both ways, and every condition is still in one of them.
  ~two_ways() { BOOST_TEST(met_.size() == conditions.size()); }
  two_ways(two_ways const&) = delete;
  two_ways& operator=(two_ways const&) = delete;

  void advance(duration d) { now_ += std::chrono::floor<std::chrono::microseconds>(d).count(); }

  /// Asks in both ways, each about keys of its own, at the same time.
  template <class C>
  result<typename C::result> operator()(C const& c) {
    advance(asking);
    auto const fast = run(detail::encode(fast_, c, now_).value(), false);
    auto const slow = run(detail::encode(slow_, c, now_).value(), true);
    BOOST_TEST_REQUIRE(fast.size() == slow.size());
    for (std::size_t i = 0; i != fast.size(); ++i) {
      BOOST_TEST_REQUIRE(!fast[i].is_error(), fast[i].value);
      BOOST_TEST_REQUIRE((fast[i].data_type == slow[i].data_type));
      BOOST_TEST_REQUIRE(fast[i].aggregate_size == slow[i].aggregate_size);
      BOOST_TEST_REQUIRE(fast[i].value == slow[i].value);
    }
    detail::redis_reply reply{fast};
    return detail::decode(c, reply);
  }

 private:
  std::string slowly(redis_script const& script) {
    // Enqueues that hold no key have a script of their own; that of all others takes them, too.
    auto out = (&script == &lua::enqueue_plain() ? lua::enqueue_jobs() : script).source();
    for (std::string_view const condition : conditions) {
      auto const at = out.find(condition);
      if (at == out.npos) continue;
      met_.insert(condition);
      out.replace(at, condition.find(" then"), "if false");
    }
    return out;
  }

  std::vector<detail::redis_value> run(detail::redis_call const& call, bool slow) {
    auto words = call.parts();
    words[0] = slow ? slowly(call.script()) : call.script().source();
    std::string encoded;
    detail::redis_bulk(encoded, "EVAL");
    for (auto const& word : words) detail::redis_bulk(encoded, word);
    detail::redis_wire wire;
    wire.push_encoded(1 + words.size(), encoded);
    return server_.ask(wire);
  }

  raw server_;
  detail::redis_names fast_{"fast", 1};
  detail::redis_names slow_{"slow", 1, {}, 1000};  // a bound that is not reached changes nothing
  std::int64_t now_ = 1'800'000'000'000'000;
  std::set<std::string_view> met_;
};

constexpr std::array<std::string_view, 4> holders{"a", "b", "c", "d"};

void ask_for_permits(two_ways& ask, testing::dice& random) {
  auto const holder = random.pick(holders);
  auto const ms = [&] { return 1ms * (1 + static_cast<int>(random.below(40))); };
  if (random.chance(60)) {
    auto const limit = static_cast<std::uint32_t>(1 + random.below(3));
    ask(command::acquire_permit{"key", holder, limit, ms(), random.chance(30) ? ms() : 0ms});
  } else {
    ask(command::release_permit{"key", holder, 0});
  }
  ask(command::inspect_permits{"key", 10});
}

void ask_a_bucket(two_ways& ask, testing::dice& random) {
  static std::array const quotas{quota::per_second(333).burst(5), quota::per_second(70)};
  auto const& q = quotas[random.chance(90) ? 0 : 1];
  command::take const take{"key", {&q, 1}, 1 + random.below(3), random.chance(30) ? 20ms : 0ms};
  auto const taken = ask(take);
  if (!taken->allowed) {  // as nearly as possible when it will be
    ask.advance(taken->retry_after - asking - random.below(3) * 1us);
    ask(take);
  } else if (random.chance(20)) {
    ask(command::refund{"key", {&q, 1}, take.cost, taken->mark, random.chance(50)});
  }
  ask(command::peek_bucket{"key", {&q, 1}});
}

job_id numbered(std::uint64_t n) {
  job_id out{};
  out.data[15] = static_cast<std::uint8_t>(n + 1);
  return out;
}

void ask_for_jobs(two_ways& ask, testing::dice& random, std::vector<finished_job>& held) {
  constexpr std::uint64_t ids = 8;
  static std::string const payload(300, 'x');
  if (random.chance(40)) {
    std::vector<new_job> jobs(1 + random.below(3));
    auto id = random.below(ids);
    for (auto& j : jobs) {
      j.id = numbered(id++ % ids);
      j.kind = "kind";
      j.payload = std::string_view{payload}.substr(0, random.pick(std::array{3U, 300U}));
      j.priority = static_cast<std::uint8_t>(random.below(3));
      j.delay = random.chance(30) ? 10ms : 0ms;
      j.retention = random.chance(30) ? 30ms : 0ms;
      j.headers = random.chance(30) ? "headers" : "";
      if (random.chance(30)) {
        j.unique_key = "unique";
        j.strategy = unique_strategy::while_executing;
      }
    }
    ask(command::enqueue_jobs{"queue", jobs});
  } else if (random.chance(50)) {
    auto const limit = static_cast<std::uint32_t>(1 + random.below(3));
    held.clear();  // those of before are nearly over
    auto const got = ask(command::dequeue_jobs{"queue", "me", 0, limit, 100ms});
    for (auto const& j : got->jobs) {
      held.push_back({j.id, j.fence, random.chance(50) ? "done" : ""});
      ask(command::start_job{"queue", j.id, j.fence});
    }
  } else if (!held.empty()) {
    auto const n = std::min<std::size_t>(held.size(), 1 + random.below(3));
    if (random.chance(20)) {  // it has a memo from then on
      ask(command::snooze_job{"queue", held[0].id, held[0].fence, 5ms, "memo"});
    }
    ask(command::complete_jobs{"queue", std::span{held}.first(n)});
    held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(n));
  }
  for (std::uint64_t i = 0; i != ids; ++i) ask(command::find_job{"queue", numbered(i)});
  ask(command::peek_jobs{"queue", 10});
  ask(command::read_queue_stats{"queue"});
  ask(command::min_vesting_time{"queue"});
}

/// How many bodies that stand by themselves are read by what `step` asks for.
template <class Step>
int bodies_read(server const& s, Step step) {
  s.ask("config set slowlog-max-len 10000");
  s.ask("slowlog reset");
  s.ask("config set slowlog-log-slower-than 0");
  step();
  s.ask("config set slowlog-log-slower-than -1");
  raw by{s.port()};
  auto const log = by.ask("SLOWLOG", "GET", "10000");
  int records = 0;
  int bodies = 0;
  for (std::size_t i = 0; i + 2 < log.size(); ++i) {
    if (log[i].value != "HGET" && log[i].value != "HMGET") continue;
    auto const& field = log[i + 2].value;
    records += field.size() == 16;
    bodies += field.size() == 17 && field.ends_with('b');
  }
  BOOST_TEST(records > 0);  // or this sees nothing
  return bodies;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_two_ways)

BOOST_AUTO_TEST_CASE(the_fast_way_of_a_script_and_the_slow_one_answer_the_same) {
  server const s;
  two_ways ask{s.port()};
  testing::dice random{20261125};
  std::vector<finished_job> held;
  for (int step = 0; step != 3000; ++step) {
    ask.advance(random.below(5) * 2ms);
    switch (random.below(3)) {
      case 0: ask_for_permits(ask, random); break;
      case 1: ask_a_bucket(ask, random); break;
      default: ask_for_jobs(ask, random, held); break;
    }
  }
}

// The cost of a step may grow with the levels of a queue, not with the jobs of those that have none
// for it.
BOOST_AUTO_TEST_CASE(R8_of_levels_without_visible_jobs_only_the_heads_are_read) {
  server const s;
  bed on{s.address(), unhurried()};
  constexpr int levels = 256;
  std::vector<new_job> jobs(2 * levels);
  for (std::size_t i = 0; i != jobs.size(); ++i) {
    jobs[i].id.data[0] = static_cast<std::uint8_t>(1 + i / 256);
    jobs[i].id.data[1] = static_cast<std::uint8_t>(i % 256);
    jobs[i].kind = "kind";
    jobs[i].priority = static_cast<std::uint8_t>(i % levels);
    jobs[i].delay = i % levels == 100 ? 0s : 1h;
  }
  BOOST_TEST_REQUIRE(on(command::enqueue_jobs{"queue", jobs}).has_value());
  s.ask("config set slowlog-max-len 10000");
  s.ask("config set slowlog-log-slower-than 0");
  auto const found = on(command::peek_jobs{"queue", 1000});
  s.ask("config set slowlog-log-slower-than -1");
  BOOST_TEST_REQUIRE((found.has_value() && found->size() == 2U));
  raw by{s.port()};
  auto const log = by.ask("SLOWLOG", "GET", "10000");
  int asked_for = 0;
  for (std::size_t i = 0; i + 6 < log.size(); ++i) {
    if (log[i].value == "ZRANGEBYLEX") asked_for += std::stoi(log[i + 6].value);
  }
  BOOST_TEST(asked_for >= levels - 1);
  BOOST_TEST(asked_for < 2000);
}

// Of a level that has visible jobs, those that are not visible cost no more than in one that has
// none.
BOOST_AUTO_TEST_CASE(R8_of_levels_with_a_visible_job_the_delayed_ones_are_not_read) {
  server const s;
  bed on{s.address(), unhurried()};
  constexpr int levels = 256;
  std::vector<new_job> jobs(3 * levels);
  for (std::size_t i = 0; i != jobs.size(); ++i) {
    jobs[i].id.data[0] = static_cast<std::uint8_t>(1 + i / levels);
    jobs[i].id.data[1] = static_cast<std::uint8_t>(i % levels);
    jobs[i].kind = "kind";
    jobs[i].priority = static_cast<std::uint8_t>(i % levels);
    jobs[i].delay = i < levels ? 0s : 1h;
  }
  BOOST_TEST_REQUIRE(on(command::enqueue_jobs{"queue", jobs}).has_value());
  s.ask("config set slowlog-max-len 10000");
  s.ask("config set slowlog-log-slower-than 0");
  auto const found = on(command::peek_jobs{"queue", 1000});
  s.ask("config set slowlog-log-slower-than -1");
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST(found->size() == std::size_t{levels});
  raw by{s.port()};
  auto const log = by.ask("SLOWLOG", "GET", "10000");
  std::ptrdiff_t read = 0;
  for (std::size_t i = 0; i + 6 < log.size(); ++i) {
    if (log[i].value != "ZRANGEBYLEX") continue;
    auto const word = [&](std::size_t n) -> std::string const& { return log[i + n].value; };
    read += std::ranges::count_if(
        by.ask(word(0), word(1), word(2), word(3), word(4), word(5), word(6)),
        [](auto const& n) { return n.data_type == detail::redis_kind::blob_string; });
  }
  BOOST_TEST(read >= levels - 1);
  BOOST_TEST(read < 1000);
}

// A megabyte takes a millisecond to be read, in which the server does nothing else.
BOOST_AUTO_TEST_CASE(R8_who_has_a_lease_goes_on_and_ends_without_the_payload_being_read) {
  server const s;
  bed on{s.address(), unhurried()};
  std::string const payload(1000, 'x');
  std::array<new_job, 6> jobs{};
  for (std::size_t i = 0; i != jobs.size(); ++i) {
    jobs[i].id = numbered(i);
    jobs[i].kind = "kind";
    jobs[i].payload = payload;
    jobs[i].retention = i == 1 ? 1h : 0s;
  }
  BOOST_TEST_REQUIRE(on(command::enqueue_jobs{"queue", jobs}).has_value());
  auto const got = on(command::dequeue_jobs{"queue", "me", 0, 6, 1h}).value().jobs;
  BOOST_TEST_REQUIRE(got.size() == jobs.size());
  auto const by = [&](std::size_t i) { return got[i].fence; };
  auto const id = [&](std::size_t i) { return got[i].id; };
  boost::container::small_vector<complete_outcome, 1> completed;
  auto const bodies = bodies_read(s, [&] {
    std::array const ends{finished_job{id(0), by(0), {}}, finished_job{id(1), by(1), "result"}};
    completed = on(command::complete_jobs{"queue", ends}).value();
    BOOST_TEST(on(command::start_job{"queue", id(2), by(2)}).has_value());
    BOOST_TEST(on(command::extend_lease{"queue", id(2), by(2), 1h}).has_value());
    BOOST_TEST(on(command::snooze_job{"queue", id(2), by(2), 1h, "memo"}).has_value());
    BOOST_TEST(on(command::requeue_job{"queue", id(3), by(3), 1h, "reason"}).has_value());
    BOOST_TEST(on(command::bury_job{"queue", id(4), by(4), "reason"}).has_value());
    BOOST_TEST(on(command::relay_job{"queue", id(5), by(5)}).has_value());
  });
  BOOST_TEST(bodies == 1);  // of the job that is buried, which has to stay readable
  for (auto const outcome : completed) BOOST_TEST((outcome == complete_outcome::completed));
  for (std::size_t i = 1; i != 5; ++i) {
    auto const found = on(command::find_job{"queue", id(i)}).value();
    BOOST_TEST_REQUIRE(found.has_value());
    BOOST_TEST(found->payload == payload);
  }
}

BOOST_AUTO_TEST_CASE(R8_who_asks_for_a_key_that_is_taken_does_not_have_the_payload_read) {
  server const s;
  bed on{s.address(), unhurried()};
  std::string const payload(1000, 'x');
  std::array<new_job, 1> job{};
  job[0] = {.id = numbered(0),
            .kind = "kind",
            .payload = payload,
            .unique_key = "key",
            .strategy = unique_strategy::until_executed};
  auto const ask = [&](std::uint64_t n, conflict_policy p) {
    job[0].id = numbered(n);
    job[0].on_conflict = p;
    return on(command::enqueue_jobs{"queue", job}).value()[0].outcome;
  };
  BOOST_TEST((ask(0, conflict_policy::reject) == enqueue_outcome::enqueued));
  auto const bodies = bodies_read(s, [&] {
    BOOST_TEST((ask(1, conflict_policy::reject) == enqueue_outcome::duplicate));
    BOOST_TEST((ask(2, conflict_policy::reschedule) == enqueue_outcome::rescheduled));
    BOOST_TEST((ask(3, conflict_policy::replace) == enqueue_outcome::replaced));
  });
  BOOST_TEST(bodies == 0);
  BOOST_TEST(on(command::peek_jobs{"queue", 10}).value().size() == 1U);
}

BOOST_AUTO_TEST_CASE(R8_a_step_buries_few_jobs_whose_payloads_are_large) {
  server const s;
  bed on{s.address(), unhurried()};
  constexpr std::uint32_t many = 16;
  std::string const payload(limits::payload_size, 'x');
  for (std::uint64_t i = 0; i != many; ++i) {
    std::array<new_job, 1> job{};
    job[0].id = numbered(i);
    job[0].kind = "kind";
    job[0].payload = payload;
    job[0].deadline = 1us;
    BOOST_TEST_REQUIRE(on(command::enqueue_jobs{"queue", job}).has_value());
  }
  std::uint32_t buried = 0;
  for (int steps = 0; buried != many && steps != 10; ++steps) {
    auto const got = on(command::dequeue_jobs{"queue", "me", 0, 100, 1h}).value();
    BOOST_TEST(got.dead_lettered > 0U);
    BOOST_TEST(got.dead_lettered <= 5U);
    buried += got.dead_lettered;
    BOOST_TEST(got.more == (buried != many));
  }
  BOOST_TEST(buried == many);
}

BOOST_AUTO_TEST_SUITE_END()
