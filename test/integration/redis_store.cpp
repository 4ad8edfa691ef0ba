// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The store on real servers that fail in the ways that servers do.

#include "counted_executor.hpp"
#include "heard_log.hpp"
#include "integration/server_process.hpp"
#include "patience.hpp"
#include "redis_server.hpp"
#include "weir/command/at.hpp"
#include "weir/store/redis/buckets.hpp"
#include "weir/store/redis/enqueues.hpp"
#include "weir/store/redis/job_ends.hpp"
#include "weir/store/redis/jobs.hpp"
#include "weir/store/redis/locks.hpp"
#include "weir/store/redis/permits.hpp"
#include "weir/store/redis/reply.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace redis_test;
using weir_test::happens;

constexpr duration lasting = 1h;

job_id id_of(std::uint32_t n) {
  job_id out{};
  std::copy_n(reinterpret_cast<std::uint8_t const*>(&n), sizeof(n), out.begin());
  out.data[15] = 1;
  return out;
}

result<command::enqueue_jobs::result> enqueue(bed& on, std::uint32_t n, std::string_view payload) {
  new_job j;
  j.id = id_of(n);
  j.kind = "kind";
  j.payload = payload;
  return on(command::enqueue_jobs{"queue", std::span{&j, 1}});
}

/// All keys of the server with what they are left to live (-1: for ever), at one moment.
std::vector<std::pair<std::string, long>> keys_of(server const& s) {
  std::vector<std::pair<std::string, long>> out;
  std::istringstream lines{s.ask(R"sh(eval "
    local all = {}
    for _, key in ipairs(redis.call('keys', '*')) do
      all[#all + 1] = redis.call('ttl', key) .. ' ' .. key
    end
    return table.concat(all, '\n')" 0)sh")};
  for (std::string line; std::getline(lines, line);) {
    auto const space = line.find(' ');
    out.emplace_back(line.substr(space + 1), std::stol(line));
  }
  return out;
}

/// A digest of all that the server has, but for how long.
std::string contents(server const& s) {
  return s.ask(R"sh(eval "
    local all, keys = '', redis.call('keys', '*')
    table.sort(keys)
    for _, key in ipairs(keys) do all = all .. key .. redis.call('dump', key) end
    return redis.sha1hex(all)" 0)sh");
}

/// A script that a server is busy with, from some moment on, until this ends.
class endless_script {
 public:
  explicit endless_script(server& s)
      : server_{s},
        asks_{[this] {
          server_.ask("eval 'while true do end' 0");
          over_ = true;
        }} {}
  endless_script(endless_script const&) = delete;
  endless_script& operator=(endless_script const&) = delete;
  ~endless_script() {
    // It may not have begun yet: what is killed too early is killed again.
    bool const killed = happens([&] {
      if (!over_) server_.ask("script kill");
      return over_.load();
    });
    BOOST_TEST(killed);
    if (!killed) server_.kill();  // which ends it all the same
  }

 private:
  server& server_;
  std::atomic<bool> over_{false};
  std::jthread asks_;
};

template <class T>
bool is_error(result<T> const& r, errc e) {
  return r.has_error() && r.error() == e;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_store_on_servers)

BOOST_AUTO_TEST_CASE(the_server_is_the_one_that_was_asked_for) {
  server const s;
  auto const* const asked = std::getenv("WEIR_TEST_REDIS_SERVER");
  bool const is_valkey =
      asked != nullptr && std::string_view{asked}.find("valkey") != std::string_view::npos;
  auto const said = s.ask("info server");
  BOOST_TEST((said.find("valkey_version:") != said.npos) == is_valkey);
}

BOOST_AUTO_TEST_CASE(a_reply_that_makes_no_sense_is_a_typed_error) {
  using node = weir::detail::redis_value;
  using type = weir::detail::redis_kind;
  auto const bad = [](auto const& c, std::vector<node> const& nodes) {
    detail::redis_reply r{nodes};
    auto const out = detail::decode(c, r);
    BOOST_TEST((out.has_error() || !r.complete()));
  };
  command::acquire_permit const permit{"key", "holder", 1, lasting, {}};
  std::vector<node> const good{{type::array, 6, 0, ""},   {type::number, 1, 1, "1"},
                               {type::number, 1, 1, "7"}, {type::number, 1, 1, "9"},
                               {type::number, 1, 1, "1"}, {type::number, 1, 1, "0"},
                               {type::number, 1, 1, "0"}};
  detail::redis_reply whole{good};
  BOOST_TEST(detail::decode(permit, whole).value().fence == 7U);
  BOOST_TEST(whole.complete());

  bad(permit, {});
  bad(permit, {{type::number, 1, 0, "1"}});
  for (std::size_t n = 0; n != good.size(); ++n) {
    auto cut = good;
    cut.resize(n);
    bad(permit, cut);
    auto other = good;
    other[n].data_type = type::blob_string;
    bad(permit, other);
    other = good;
    other[n].value = "1x";
    if (n != 0) bad(permit, other);
  }
  auto more = good;
  more.push_back(good.back());
  bad(permit, more);
  auto negative = good;
  negative[2].value = "-7";
  bad(permit, negative);

  bad(command::find_job{"q", id_of(1)}, {{type::array, 1, 0, ""}, {type::array, 16, 1, ""}});
  bad(command::complete_jobs{"q", {}}, {{type::array, 1, 0, ""}, {type::number, 1, 1, "0"}});
  bad(command::cancel_job{"q", id_of(1), false}, {{type::number, 1, 0, "4"}});
  bad(command::inspect_lock{"k"}, {{type::null, 1, 0, ""}});
}

BOOST_AUTO_TEST_CASE(F27_keys_are_any_bytes_and_never_alias) {
  server s;
  bed on{s};
  using namespace std::string_literals;
  std::vector<std::string> keys{"plain",
                                "with space",
                                "'\"`",
                                "a\0b"s,
                                "a",
                                "a\0"s,
                                "\r\n",
                                "*3\r\n$4\r\nEVAL\r\n",
                                "{",
                                "}",
                                "{}",
                                "{x}",
                                "}{weir:0}:pe:x",
                                "x:y",
                                "x",
                                ":x",
                                "*",
                                ">",
                                "\\",
                                "\xff\xfe\x80",
                                "..",
                                "|",
                                "1:2|3",
                                "%s%n",
                                "]]",
                                "--",
                                std::string(1024, '\xfe'),
                                std::string(1023, '\xfe')};
  quota const once[] = {quota::per(1, 1h)};
  std::set<std::uint64_t> fences;
  for (auto const& key : keys) {
    auto const lock = on(command::acquire_lock{key, key.substr(0, 128), lasting}).value();
    BOOST_TEST(lock.granted);
    auto const permit =
        on(command::acquire_permit{key, key.substr(0, 128), 1, lasting, {}}).value();
    BOOST_TEST(permit.granted);
    BOOST_TEST(fences.insert(lock.fence).second);
    BOOST_TEST(fences.insert(permit.fence).second);
    BOOST_TEST(on(command::take{key, once, 1, {}}).value().allowed);
    new_job j;
    j.id = id_of(1);
    j.kind = key;
    j.payload = key;
    j.strategy = unique_strategy::until_executed;
    j.unique_key = key;
    auto const queued = on(command::enqueue_jobs{key, std::span{&j, 1}}).value();
    BOOST_TEST((queued[0].outcome == enqueue_outcome::enqueued));
  }
  for (auto const& key : keys) {
    BOOST_TEST(on(command::inspect_lock{key}).value().holder == key.substr(0, 128));
    auto const permits = on(command::inspect_permits{key, 9}).value();
    BOOST_TEST_REQUIRE(permits.holders.size() == 1U);
    BOOST_TEST(permits.holders[0].holder == key.substr(0, 128));
    BOOST_TEST(!on(command::take{key, once, 1, {}}).value().allowed);
    auto const jobs = on(command::dequeue_jobs{key, key.substr(0, 128), 1, 9, lasting}).value();
    BOOST_TEST_REQUIRE(jobs.jobs.size() == 1U);
    BOOST_TEST(jobs.jobs[0].kind == key);
    BOOST_TEST(jobs.jobs[0].payload == key);
    BOOST_TEST(jobs.jobs[0].unique_key == key);
  }
  std::set<std::string> listed;
  std::string cursor;
  do {
    auto const page = on(command::list_queues{0, 5, cursor}).value();
    listed.insert(page.queues.begin(), page.queues.end());
    cursor = page.cursor;
  } while (!cursor.empty());
  BOOST_TEST((listed == std::set<std::string>(keys.begin(), keys.end())));

  std::string const long_one(64 * 1024, 'x');
  BOOST_TEST(is_error(on(command::inspect_lock{long_one}), errc::invalid_key));
  std::string payload(limits::payload_size, '\0');
  for (std::size_t i = 0; i != payload.size(); ++i) payload[i] = static_cast<char>(i * 7);
  BOOST_TEST(enqueue(on, 2, payload).has_value());
  BOOST_TEST((on(command::find_job{"queue", id_of(2)}).value()->payload == payload));
}

/// How many commands the server has executed since the last `config resetstat`, by clients and in
/// scripts; but for those that look after connections.
long commands_of(server const& s) {
  long all = 0;
  std::istringstream lines{s.ask("info commandstats")};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("cmdstat_") || line.starts_with("cmdstat_ping")) continue;
    all += std::stol(line.substr(line.find('=') + 1));  // calls=
  }
  return all;
}

BOOST_AUTO_TEST_CASE(F5_a_refusal_costs_the_same_whatever_the_limit_is) {
  server s;
  bed on{s};
  auto const cost_of_refusal = [&](std::string const& key, std::uint32_t limit) {
    for (std::uint32_t i = 0; i != limit; ++i) {
      auto const holder = std::to_string(i);
      BOOST_TEST_REQUIRE(on(command::acquire_permit{key, holder, limit, lasting})->granted);
    }
    s.ask("config resetstat");
    BOOST_TEST(!on(command::acquire_permit{key, "one more", limit, lasting})->granted);
    return commands_of(s);
  };
  BOOST_TEST(cost_of_refusal("low", 2) == cost_of_refusal("high", 200));
}

BOOST_AUTO_TEST_CASE(F46_forgotten_scripts_are_sent_again) {
  server s;
  bed on{s};
  for (std::uint32_t i = 0; i != 20; ++i) {
    if (i % 5 == 2) s.ask("script flush");
    BOOST_TEST(enqueue(on, i, "x").has_value());
    BOOST_TEST(on(command::acquire_lock{"key" + std::to_string(i), "me", lasting}).has_value());
  }
  BOOST_TEST(on(command::read_queue_stats{"queue"}).value().enqueued == 20U);
}

BOOST_AUTO_TEST_CASE(F45_a_connection_that_is_killed_leaves_typed_errors_and_comes_back) {
  server s;
  bed on{s};
  BOOST_TEST(enqueue(on, 0, "x").has_value());
  std::size_t done = 0;
  std::size_t unknown = 0;
  constexpr std::size_t all = 2000;
  std::vector<std::string> keys(all);
  for (std::size_t i = 0; i != all; ++i) {
    keys[i] = "key" + std::to_string(i);
    on.store.async_execute(command::acquire_lock{keys[i], "me", lasting}, [&](error_code ec,
                                                                              lock_grant const& g) {
      BOOST_TEST((ec ? ec == errc::outcome_unknown || ec == errc::store_unavailable : g.granted),
                 ec.message());
      ++(ec ? unknown : done);
    });
  }
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return done >= 10; }));
  s.ask("client kill type normal skipme yes");
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return done + unknown == all; }));
  BOOST_TEST(enqueue(on, 1, "x").has_value());
  for (auto const& key : keys) {  // an unknown outcome is asked again, and is the same lease
    BOOST_TEST_REQUIRE(on(command::acquire_lock{key, "me", lasting}).value().granted);
  }
}

BOOST_AUTO_TEST_CASE(R5_what_was_acknowledged_survives_a_crash_of_a_server_that_writes_all_down) {
  server s{{"--appendonly", "yes", "--appendfsync", "always"}};
  bed on{s};
  auto const lock = on(command::acquire_lock{"key", "me", lasting}).value();
  for (std::uint32_t i = 0; i != 50; ++i) BOOST_TEST(enqueue(on, i, "x").has_value());
  auto const first = on(command::dequeue_jobs{"queue", "me", 1, 10, lasting}).value();
  s.kill();
  s.start();
  auto survived = on(command::acquire_lock{"key", "me", lasting});
  if (is_error(survived, errc::outcome_unknown)) {  // the connection had not noticed
    survived = on(command::acquire_lock{"key", "me", lasting});
  }
  auto const again = survived.value();
  BOOST_TEST(again.fence == lock.fence);
  auto const stats = on(command::read_queue_stats{"queue"}).value();
  BOOST_TEST(stats.pending == 40U);
  BOOST_TEST(stats.leased == 10U);
  auto const repeated = on(command::dequeue_jobs{"queue", "me", 1, 10, lasting}).value();
  BOOST_TEST_REQUIRE(repeated.jobs.size() == first.jobs.size());
  for (std::size_t i = 0; i != first.jobs.size(); ++i) {
    BOOST_TEST(repeated.jobs[i].fence == first.jobs[i].fence);
  }
  BOOST_TEST(on(command::dequeue_jobs{"queue", "me", 2, 1, lasting}).value().jobs[0].fence >
             first.jobs.back().fence);
}

BOOST_AUTO_TEST_CASE(F47_a_server_that_lost_everything_gives_no_fence_twice) {
  server s;
  bed on{s};
  auto const before = on(command::acquire_lock{"key", "me", lasting}).value().fence;
  s.kill();
  s.start();
  command::acquire_lock const asked{"key", "you", lasting};
  auto after = on(asked);  // the connection may not have noticed
  if (is_error(after, errc::outcome_unknown)) after = on(asked);
  BOOST_TEST_REQUIRE(after.has_value(), after.error().message());
  BOOST_TEST(after->granted);
  BOOST_TEST(after->fence > before);
}

BOOST_AUTO_TEST_CASE(F46_a_server_without_memory_changes_nothing_and_says_so) {
  server s;
  bed on{s};
  BOOST_TEST(enqueue(on, 1, "x").has_value());
  BOOST_TEST(on(command::acquire_lock{"held", "me", lasting}).has_value());
  s.ask("config set maxmemory 1");
  BOOST_TEST(is_error(enqueue(on, 2, "x"), errc::store_full));
  BOOST_TEST(is_error(on(command::acquire_lock{"key", "me", lasting}), errc::store_full));
  BOOST_TEST(is_error(on(command::acquire_permit{"key", "me", 1, lasting, {}}), errc::store_full));
  quota const q[] = {quota::per_second(1)};
  BOOST_TEST(is_error(on(command::take{"key", q, 1, {}}), errc::store_full));
  BOOST_TEST(on(command::release_lock{"held", "me", 0}).value().freed);
  BOOST_TEST(on(command::read_queue_stats{"queue"}).value().pending == 1U);
  s.ask("config set maxmemory 0");
  BOOST_TEST(!on(command::inspect_lock{"key"}).value().held);
  BOOST_TEST(on(command::inspect_permits{"key", 1}).value().in_use == 0U);
  BOOST_TEST(on(command::take{"key", q, 1, {}}).value().allowed);
  auto const stats = on(command::read_queue_stats{"queue"}).value();
  BOOST_TEST(stats.enqueued == 1U);
  BOOST_TEST(on(command::dequeue_jobs{"queue", "me", 1, 1, lasting}).value().jobs.size() == 1U);
}

BOOST_AUTO_TEST_CASE(F61_a_full_server_is_drained_to_the_last_job) {
  server s;
  bed on{s};
  constexpr std::uint32_t all = 3000;
  constexpr std::uint32_t kept = 3;  // each third job stays after its end
  std::vector<new_job> jobs(all);
  for (std::uint32_t i = 0; i != all; ++i) {
    jobs[i].id = id_of(i);
    jobs[i].kind = "kind";
    jobs[i].payload = "payload";
    if (i % kept == 0) jobs[i].retention = lasting;
  }
  BOOST_TEST_REQUIRE(on(command::enqueue_jobs{"queue", jobs}).has_value());
  s.ask("config set maxmemory 1");

  std::size_t completed = 0;
  std::ptrdiff_t without = 0;
  for (std::uint64_t sequence = 1; completed != all; ++sequence) {
    auto const got = on(command::dequeue_jobs{"queue", "me", sequence, 100, lasting});
    BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
    BOOST_TEST_REQUIRE(got->jobs.size() == 100U);
    std::vector<finished_job> ended;
    for (auto const& j : got->jobs) ended.push_back({j.id, j.fence, "result"});
    auto const outcomes = on(command::complete_jobs{"queue", ended});
    BOOST_TEST_REQUIRE(outcomes.has_value(), outcomes.error().message());
    BOOST_TEST(std::ranges::count(*outcomes, complete_outcome::lease_lost) == 0);
    without += std::ranges::count(*outcomes, complete_outcome::completed_without_result);
    completed += ended.size();
  }
  BOOST_TEST(on(command::read_queue_stats{"queue"}).value().completed == all);
  BOOST_TEST(!on(command::find_job{"queue", id_of(1)}).value());
  // A result would need room: it is left out, and the job says so.
  BOOST_TEST(without == all / kept);
  auto const first = on(command::find_job{"queue", id_of(0)}).value();
  BOOST_TEST_REQUIRE(first.has_value());
  BOOST_TEST((first->state == job_state::completed));
  BOOST_TEST(first->result == "");
  BOOST_TEST(first->reason == result_had_no_room);
}

/// Asks for several things at once, which travel together, and waits for all of them.
class at_once {
 public:
  explicit at_once(bed& on) : on_{on} {}

  template <class C>
  at_once& operator()(C const& c, std::function<void(error_code, typename C::result const&)> use) {
    ++asked_;
    on_.store.async_execute(c, [this, use = std::move(use)](error_code ec, auto const& got) {
      use(ec, got);
      ++answered_;
    });
    return *this;
  }
  template <class C>
  at_once& operator()(C const& c, error_code expected = {}) {
    return (*this)(c, [expected](error_code ec, auto const&) { BOOST_TEST(ec == expected); });
  }
  void wait() {
    on_.io.restart();
    while (answered_ != asked_) on_.io.run_one();
  }

 private:
  bed& on_;
  std::size_t asked_ = 0;
  std::size_t answered_ = 0;
};

BOOST_AUTO_TEST_CASE(what_travels_together_for_the_first_time_is_not_overtaken) {
  server s;
  bed on{s};
  std::array<std::string, 8> const holders{"a", "b", "c", "d", "e", "f", "g", "h"};
  for (auto const& who : holders) {
    BOOST_TEST(on(command::acquire_permit{"key", who, 8, lasting, {}}).value().granted);
  }
  at_once all{on};
  for (auto const& who : holders) all(command::release_permit{"key", who, 0});
  all(command::acquire_permit{"key", "next", 1, lasting, {}},
      [](error_code ec, permit_grant const& g) { BOOST_TEST((!ec && g.granted)); });
  all.wait();
  // Nor after the server has forgotten its scripts, once they are known again.
  s.ask("script flush");
  at_once again{on};
  for (auto const& who : holders) again(command::acquire_permit{who, who, 1, lasting, {}});
  for (auto const& who : holders) again(command::acquire_lock{who, who, lasting});
  again.wait();
}

BOOST_AUTO_TEST_CASE(what_travels_together_is_kept_as_long_as_it_is_needed) {
  server s;
  bed on{s};
  std::array<std::string, 8> const holders{"a", "b", "c", "d", "e", "f", "g", "h"};
  quota const q[] = {quota::per_minute(1).burst(10)};
  std::set<std::uint64_t> fences;
  at_once all{on};
  for (auto const& who : holders) {
    all(command::acquire_permit{"key", who, 10, 1h, {}},
        [&](error_code, permit_grant const& g) { fences.insert(g.fence); });
    all(command::acquire_lock{who, who, 1h},
        [&](error_code, lock_grant const& g) { fences.insert(g.fence); });
    all(command::take{who, q, 2, {}});
  }
  all.wait();
  BOOST_TEST(fences.size() == 16U);
  BOOST_TEST(*fences.begin() > 0U);
  auto const lives = [&](std::string const& key, std::int64_t least, std::int64_t most) {
    auto const ms = std::strtoll(s.ask("pttl '" + key + "'").c_str(), nullptr, 10);
    BOOST_TEST((ms > least && ms <= most), key << " lives for " << ms << " ms");
  };
  constexpr std::int64_t hour = 3'600'000;
  constexpr std::int64_t minute = 60'000;
  for (auto const* const kind : {"pe", "pf"}) {
    lives(std::string{"{weir:0}:"} + kind + ":key", hour, hour + minute + 1);
  }
  lives("{weir:0}:l:h", hour, hour + minute + 1);
  lives("{weir:0}:b:h", 2 * minute, 3 * minute + 1);
}

BOOST_AUTO_TEST_CASE(a_large_damaged_lock_is_no_matter_of_the_connection) {
  server s;
  bed on{s};
  s.ask("hset '{weir:0}:l:key' holder " + std::string(6000, 'x') +
        " fence 1 until 8000000000000000");
  at_once all{on};
  for (int i = 0; i != 40; ++i) {
    all(command::acquire_lock{"key", "me", lasting}, [](error_code ec, lock_grant const&) {
      BOOST_TEST((ec == errc::store_corrupt), ec.message());
    });
  }
  all.wait();
}

BOOST_AUTO_TEST_CASE(F61_what_travels_together_takes_no_memory_where_there_is_none) {
  server s;
  bed on{s};
  std::array const q{quota::per_minute(1).burst(100)};
  std::array const two{quota::per_minute(1).burst(100), quota::per_minute(1).burst(90)};
  BOOST_TEST(on(command::take{"old", q, 1, {}}).value().allowed);
  BOOST_TEST(on(command::take{"order", q, 10, {}}).value().allowed);
  BOOST_TEST(enqueue(on, 1, "x").has_value());
  BOOST_TEST(on(command::take{"old pair", two, 1, {}}).value().allowed);
  BOOST_TEST(on(command::acquire_permit{"line", "first", 1, lasting, lasting}).value().granted);
  BOOST_TEST(on(command::acquire_permit{"line", "next", 1, lasting, lasting}).value().place == 1U);
  BOOST_TEST(on(command::release_permit{"line", "first", 0}).value().freed);
  auto const lock = on(command::acquire_lock{"held", "me", lasting}).value();
  s.ask("config set maxmemory 1");

  // Each after one that frees some before it takes some: alone, that is refused nothing.
  at_once give{on};
  error_code const full = make_error_code(errc::store_full);
  for (int i = 0; i != 3; ++i) {
    give(command::take{"old", q, 1, {}});
    give(command::take{"new", q, 1, {}}, full);
    give(command::take{"old pair", two, 1, {}});
    give(command::take{"new pair", two, 1, {}}, full);
    give(command::acquire_permit{"line", "next", 1, lasting, lasting});
    give(command::acquire_permit{"new", "me", 1, lasting, lasting}, full);
    give(command::acquire_permit{"newer", "me", 1, lasting, lasting}, full);
    give(command::renew_lock{"held", "me", lock.fence, lasting});
    give(command::acquire_lock{"new", "me", lasting}, full);
    give(command::acquire_lock{"newer", "me", lasting}, full);
  }
  // A job that is there already takes no memory, and a look sees the take before it.
  new_job known;
  known.id = id_of(1);
  known.kind = "kind";
  new_job unknown = known;
  unknown.id = id_of(2);
  give(command::enqueue_jobs{"queue", {&known, 1}});
  give(command::enqueue_jobs{"queue", {&unknown, 1}}, full);
  give(command::take{"order", q, 50, {}});
  give(command::peek_bucket{"order", q}, [](error_code ec, bucket_info const& b) {
    BOOST_TEST((!ec && b.remaining == 40U), b.remaining);
  });
  give.wait();
  BOOST_TEST(s.ask("keys '*new*'").find("new") == std::string::npos);
  s.ask("config set maxmemory 0");
  BOOST_TEST(on(command::take{"old", q, 1, {}}).value().remaining == 95U);
  BOOST_TEST(on(command::inspect_permits{"line", 5}).value().in_use == 1U);
  BOOST_TEST(on(command::inspect_permits{"new", 5}).value().in_use == 0U);
}

BOOST_AUTO_TEST_CASE(F61_what_needs_no_room_goes_on_while_a_server_is_full) {
  server s;
  bed on{s};
  quota const q[] = {quota::per_second(1).burst(10)};
  for (std::uint32_t i = 0; i != 20; ++i) BOOST_TEST_REQUIRE(enqueue(on, i, "x").has_value());
  auto const claimed = on(command::dequeue_jobs{"queue", "me", 1, 6, lasting}).value().jobs;
  BOOST_TEST_REQUIRE(claimed.size() == 6U);
  new_job over;  // ended, and its retention is over
  over.id = id_of(100);
  over.kind = "kind";
  over.priority = 0;
  over.retention = 1us;
  BOOST_TEST_REQUIRE(on(command::enqueue_jobs{"queue", std::span{&over, 1}}).has_value());
  auto const brief = on(command::dequeue_jobs{"queue", "me", 2, 1, lasting}).value().jobs.at(0);
  finished_job const done{brief.id, brief.fence, {}};
  BOOST_TEST_REQUIRE(on(command::complete_jobs{"queue", std::span{&done, 1}}).has_value());
  auto const lock = on(command::acquire_lock{"held", "me", lasting}).value();
  auto const permit = on(command::acquire_permit{"held", "me", 1, lasting, {}}).value();
  BOOST_TEST(on(command::acquire_permit{"held", "next", 1, lasting, lasting}).value().place == 1U);
  BOOST_TEST(on(command::take{"held", q, 1, {}}).value().allowed);
  s.ask("config set maxmemory 1");

  // What grows is refused, also where it would first remove something.
  auto const refused = [&](auto const& c) { return is_error(on(c), errc::store_full); };
  BOOST_TEST(is_error(enqueue(on, 50, "x"), errc::store_full));
  BOOST_TEST(refused(command::enqueue_jobs{"queue", std::span{&over, 1}}));
  over.strategy = unique_strategy::until_executed;
  over.unique_key = "unique";
  BOOST_TEST(refused(command::enqueue_jobs{"queue", std::span{&over, 1}}));
  BOOST_TEST(refused(command::enqueue_jobs{"new", std::span{&over, 1}}));
  BOOST_TEST(refused(command::pause_queue{"new"}));
  BOOST_TEST(refused(command::acquire_lock{"new", "me", lasting}));
  BOOST_TEST(refused(command::acquire_permit{"new", "me", 1, lasting, {}}));
  BOOST_TEST(refused(command::acquire_permit{"held", "last", 1, lasting, lasting}));
  BOOST_TEST(refused(command::take{"new", q, 1, {}}));

  // Leases, the line and buckets that are there.
  BOOST_TEST(on(command::renew_lock{"held", "me", lock.fence, lasting}).has_value());
  BOOST_TEST(on(command::renew_permit{"held", "me", permit.fence, lasting}).has_value());
  BOOST_TEST(on(command::acquire_permit{"held", "next", 1, lasting, lasting}).value().place == 1U);
  BOOST_TEST(on(command::release_permit{"held", "me", permit.fence}).value().freed);
  BOOST_TEST(on(command::acquire_permit{"held", "next", 1, lasting, {}}).value().granted);
  BOOST_TEST(on(command::release_lock{"held", "me", lock.fence}).value().freed);
  BOOST_TEST(on(command::take{"held", q, 1, {}}).value().allowed);

  // Jobs, whatever becomes of them.
  auto const id = [&](std::size_t i) { return claimed[i].id; };
  auto const fence = [&](std::size_t i) { return claimed[i].fence; };
  BOOST_TEST(on(command::extend_lease{"queue", id(0), fence(0), lasting}).has_value());
  BOOST_TEST(refused(command::extend_lease{"queue", id(0), fence(0), lasting, "1/2", {}}));
  BOOST_TEST(refused(command::extend_lease{"queue", id(0), fence(0), lasting, {}, "here"}));
  BOOST_TEST(on(command::start_job{"queue", id(0), fence(0)}).has_value());
  BOOST_TEST(on(command::requeue_job{"queue", id(1), fence(1), {}, "reason"}).has_value());
  BOOST_TEST(on(command::snooze_job{"queue", id(2), fence(2), {}, "memo"}).has_value());
  BOOST_TEST(on(command::return_job{"queue", id(3), fence(3)}).has_value());
  BOOST_TEST(on(command::bury_job{"queue", id(4), fence(4), "reason"}).has_value());
  BOOST_TEST((on(command::cancel_job{"queue", id(5), true}).value() == cancel_outcome::cancelled));
  BOOST_TEST(on(command::list_dead_letters{"queue", 10, {}}).value().jobs.size() == 1U);
  BOOST_TEST((on(command::replay_dead_letter{"queue", id(4), {}}).value().outcome ==
              replay_outcome::replayed));
  auto const leased = on(command::obtain_lease{"queue", id(4), "me", lasting}).value();
  BOOST_TEST_REQUIRE(leased.has_value());
  BOOST_TEST(on(command::bury_job{"queue", id(4), leased->fence, "reason"}).has_value());
  BOOST_TEST(on(command::purge_job{"queue", id(4)}).value());

  // Queues that are there.
  BOOST_TEST(on(command::pause_queue{"queue"}).has_value());
  BOOST_TEST(on(command::resume_queue{"queue"}).has_value());
  BOOST_TEST(on(command::snooze_queue{"queue", 1us}).has_value());
  BOOST_TEST(on(command::update_queue_pointer{"queue"}).has_value());
  BOOST_TEST(on(command::list_queues{0, 10, {}}).value().queues.size() == 1U);
  BOOST_TEST(on(command::scan_visible_queues{0, 10, 0}).value().queues.size() == 1U);
  BOOST_TEST(on(command::peek_jobs{"queue", 100}).value().size() == 17U);

  s.ask("config set maxmemory 0");
  auto const stats = on(command::read_queue_stats{"queue"}).value();
  BOOST_TEST(stats.enqueued == 21U);
  BOOST_TEST(stats.pending == 17U);
  BOOST_TEST(stats.leased == 1U);
  BOOST_TEST(on(command::inspect_permits{"held", 10}).value().waiting == 0U);
}

// A holder that asks again has its permit, and a limit that is in use goes on.
BOOST_AUTO_TEST_CASE(F61_permits_of_a_limit_that_is_in_use_need_no_room) {
  server s;
  bed on{s};
  auto const mine = on(command::acquire_permit{"key", "me", 3, lasting, {}}).value();
  BOOST_TEST(mine.granted);
  s.ask("config set maxmemory 1");
  auto const again = on(command::acquire_permit{"key", "me", 3, lasting, {}});
  BOOST_TEST_REQUIRE(again.has_value(), again.error().message());
  BOOST_TEST((again->granted && again->fence == mine.fence));
  auto const next = on(command::acquire_permit{"key", "next", 3, lasting, {}});
  BOOST_TEST_REQUIRE(next.has_value(), next.error().message());
  BOOST_TEST((next->granted && next->fence > mine.fence));
  at_once all{on};  // together, nothing else takes room by that
  all(command::acquire_permit{"key", "me", 3, lasting, {}},
      [&](error_code ec, permit_grant const& g) { BOOST_TEST((!ec && g.fence == mine.fence)); });
  all(command::acquire_permit{"key", "last", 3, lasting, {}},
      [&](error_code ec, permit_grant const& g) { BOOST_TEST((!ec && g.granted)); });
  all(command::acquire_permit{"new", "me", 3, lasting, {}}, make_error_code(errc::store_full));
  all.wait();
  BOOST_TEST(!on(command::acquire_permit{"key", "too many", 3, lasting, {}}).value().granted);
}

BOOST_AUTO_TEST_CASE(F53_a_key_of_another_type_is_foreign_and_nothing_is_written) {
  quota const q[] = {quota::per_second(1)};
  server s;
  auto const kept = [&s] {  // but for the time, which a slow machine has noted meanwhile
    s.ask("del '{weir:0}:time'");
    return contents(s);
  };
  for (std::string const kind :
       {"pe", "pf", "pt", "pl", "pm", "l", "b", "q", "i", "j", "k", "r", "d", "e", "c"}) {
    BOOST_TEST_REQUIRE(s.ask("flushall") == "OK");
    bed on{s};
    auto const key = "{weir:0}:" + kind + ":queue";
    BOOST_TEST_REQUIRE(s.ask("rpush '" + key + "' x") == "1");
    BOOST_TEST(on(command::inspect_lock{"other"}).has_value());  // it is connected
    auto before = kept();
    BOOST_TEST_REQUIRE(before.size() == 40U);
    bool found = false;
    auto const try_it = [&](auto const& c) {
      auto const got = on(c);
      auto const after = kept();
      if (got.has_value()) {
        before = after;
        return;
      }
      BOOST_TEST(is_error(got, errc::store_foreign), got.error().message());
      BOOST_TEST(after == before, kind);  // not even a fence was taken
      found = true;
    };
    try_it(command::acquire_permit{"queue", "me", 1, lasting, lasting});
    try_it(command::acquire_permit{"queue", "you", 1, lasting, lasting});  // in line
    try_it(command::acquire_lock{"queue", "me", lasting});
    try_it(command::take{"queue", q, 1, {}});
    new_job j;
    j.id = id_of(1);
    j.kind = "kind";
    try_it(command::enqueue_jobs{"queue", std::span{&j, 1}});
    BOOST_TEST(found, kind);
  }
}

BOOST_AUTO_TEST_CASE(R5_a_fence_is_written_once_and_grows_when_the_clock_steps_back) {
  server s;
  bed on{s};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  auto const writes = [&] {
    auto const said = s.ask("info commandstats");
    auto const at = said.find("cmdstat_set:calls=");
    return at == said.npos ? 0 : std::stoi(said.substr(at + 18));
  };
  auto const before = writes();
  std::uint64_t last = 0;
  for (int i = 0; i != 10; ++i) {
    auto const got = on(command::acquire_lock{"key" + std::to_string(i), "me", lasting}).value();
    BOOST_TEST(got.fence > last);
    last = got.fence;
  }
  BOOST_TEST(writes() == before + 10);
  // An hour earlier, and a minute earlier still.
  auto const past = time_point::clock::now() - 1h;
  for (int i = 0; i != 10; ++i) {
    auto const key = "other" + std::to_string(i);
    command::acquire_permit const permit{key, "me", 1, lasting, {}};
    auto const got = on(command::at{permit, past - i * 1min}).value();
    BOOST_TEST(got.fence > last);
    last = got.fence;
  }
  std::array<new_job, 3> jobs{};
  for (std::uint32_t i = 0; i != jobs.size(); ++i) {
    jobs[i].id = id_of(i);
    jobs[i].kind = "kind";
  }
  BOOST_TEST(on(command::at{command::enqueue_jobs{"queue", jobs}, past}).has_value());
  command::dequeue_jobs const dequeue{"queue", "me", 0, 3, lasting};
  auto const claimed = on(command::at{dequeue, past}).value().jobs;
  BOOST_TEST(claimed.size() == 3U);
  for (auto const& j : claimed) {
    BOOST_TEST(j.fence > last);
    last = j.fence;
  }
  BOOST_TEST(on(command::acquire_lock{"last", "me", lasting}).value().fence > last);
}

BOOST_AUTO_TEST_CASE(what_lives_by_told_times_does_not_end_by_the_servers_clock) {
  server s;
  bed on{s, unhurried()};
  auto const least = [&] {
    return std::stoll(
        s.ask("eval \"local least = -1 for _, key in ipairs(redis.call('KEYS', '*')) do "
              "local left = redis.call('PTTL', key) "
              "if left >= 0 and (least < 0 or left < least) then least = left end end "
              "return least\" 0"));
  };
  auto const past = time_point::clock::now() - 1h;
  constexpr auto a_year = 365LL * 24 * 3600 * 1000;
  std::array const quotas{quota::per_second(1)};
  std::array const two{quota::per_second(1), quota::per_minute(9)};
  new_job unique;
  unique.id = id_of(1);
  unique.kind = "kind";
  unique.unique_key = "key";
  unique.strategy = weir::unique_strategy::until_expired;
  unique.unique_ttl = 1s;
  std::array const jobs{unique};
  BOOST_TEST(on(command::at{command::acquire_lock{"lock", "me", 1s}, past}).value().granted);
  BOOST_TEST(least() > a_year);
  BOOST_TEST(
      on(command::at{command::acquire_permit{"permit", "me", 1, 1s, {}}, past}).value().granted);
  BOOST_TEST(
      on(command::at{command::acquire_permit{"permit", "you", 1, 1s, 1s}, past}).has_value());
  BOOST_TEST(least() > a_year);
  BOOST_TEST(on(command::at{command::take{"one", quotas, 1, {}}, past}).value().allowed);
  BOOST_TEST(on(command::at{command::take{"two", two, 1, {}}, past}).value().allowed);
  BOOST_TEST(least() > a_year);
  BOOST_TEST(on(command::at{command::enqueue_jobs{"queue", jobs}, past}).has_value());
  auto const claimed =
      on(command::at{command::dequeue_jobs{"queue", "me", 1, 1, 1s}, past}).value().jobs;
  BOOST_TEST_REQUIRE(claimed.size() == 1U);
  std::array const done{weir::finished_job{claimed[0].id, claimed[0].fence, {}}};
  BOOST_TEST(on(command::at{command::complete_jobs{"queue", done}, past}).has_value());
  BOOST_TEST(least() > a_year);
  // And what lives by the server's own time ends by it.
  BOOST_TEST(on(command::acquire_lock{"another", "me", 1s}).value().granted);
  BOOST_TEST(least() < 10 * 60 * 1000);
}

BOOST_AUTO_TEST_CASE(F46_a_server_that_cannot_write_to_its_disk_or_to_replicas_says_so) {
  server s;
  auto o = unhurried();
  o.offline_patience = 2s;
  bed on{s, o};
  BOOST_TEST(happens([&] { return on(command::acquire_lock{"key", "me", lasting}).has_value(); }));
  s.ask("config set min-replicas-to-write 1");
  command::acquire_lock const other{"other", "me", lasting};
  BOOST_TEST(is_error(on(other), errc::store_unavailable));
  BOOST_TEST(on(command::inspect_lock{"key"}).value().held);
  s.ask("config set min-replicas-to-write 0");
  BOOST_TEST(on(other).value().granted);

  // What stands where its snapshot is to go cannot be replaced.
  std::filesystem::create_directories(s.directory() + "/dump.rdb/in");
  s.ask("config set save '3600 1'");
  s.ask("bgsave");
  BOOST_TEST_REQUIRE(happens([&] {
    return s.ask("info persistence").find("rdb_last_bgsave_status:err") != std::string::npos;
  }));
  command::acquire_lock const third{"third", "me", lasting};
  BOOST_TEST(is_error(on(third), errc::store_read_only));
  BOOST_TEST(on(command::inspect_lock{"key"}).value().held);
  s.ask("config set save ''");
  BOOST_TEST(on(third).value().granted);
}

BOOST_AUTO_TEST_CASE(F46_no_server_is_a_typed_error_in_time) {
  redis_options o;
  o.offline_patience = 100ms;
  boost::asio::io_context io;
  redis_store const nowhere{io.get_executor(), redis_address{"127.0.0.1", 1}, o};
  BOOST_TEST(is_error(ask(io, nowhere, command::inspect_lock{"key"}), errc::store_unavailable));
  nowhere.async_run([](error_code) {});
  BOOST_TEST(is_error(ask(io, nowhere, command::inspect_lock{"key"}), errc::store_unavailable));
  nowhere.close();
  BOOST_TEST(is_error(ask(io, nowhere, command::inspect_lock{"key"}), errc::closed));
  io.restart();
  io.run();  // ends: nothing is left
}

BOOST_AUTO_TEST_CASE(F38_a_half_open_connection_is_noticed) {
  server s;
  auto o = unhurried();
  o.health_check_interval = 1s;
  bed on{s, o};
  // A server that takes longer than that to answer is asked once more.
  auto const answers = [&] { return on(command::inspect_lock{"key"}).has_value(); };
  BOOST_TEST(happens(answers));
  s.pause();
  BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::outcome_unknown));
  s.resume();
  BOOST_TEST(happens(answers));
}

BOOST_AUTO_TEST_CASE(a_busy_server_is_unavailable) {
  server s{{"--busy-reply-threshold", "50"}};
  bed on{s};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  {
    endless_script const busy{s};
    BOOST_TEST_REQUIRE(happens([&] { return s.ask("ping").starts_with("BUSY"); }));
    BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::store_unavailable));
  }
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
}

BOOST_AUTO_TEST_CASE(a_replica_is_read_only) {
  server s;
  auto o = unhurried();
  o.offline_patience = 2s;
  bed on{s, o};
  BOOST_TEST(happens([&] { return on(command::acquire_lock{"key", "me", lasting}).has_value(); }));
  s.ask("replicaof 127.0.0.1 1");
  BOOST_TEST(is_error(on(command::acquire_lock{"other", "me", lasting}), errc::store_read_only));
  BOOST_TEST(on(command::inspect_lock{"key"}).value().held);
}

BOOST_AUTO_TEST_CASE(F38_who_may_not_subscribe_has_all_but_the_messages) {
  server s;
  s.ask("acl setuser limited on '>secret' '~*' +@all resetchannels");
  auto o = unhurried();
  o.poll_interval = 10ms;
  boost::asio::io_context io;
  redis_store const store{io.get_executor(), s.address().authenticate("secret", "limited"), o};
  store.async_run([](error_code) {});
  // Several at once: an answer that went to the wrong one would show.
  std::vector<std::string> keys;
  for (int i = 0; i != 50; ++i) keys.push_back("key" + std::to_string(i));
  int right = 0;
  int answered = 0;
  for (auto const& key : keys) {
    store.async_execute(command::acquire_lock{key, key, lasting},
                        [&](error_code ec, lock_grant const& g) {
                          right += !ec && g.granted;
                          ++answered;
                        });
    store.async_execute(command::inspect_lock{key}, [&](error_code ec, lock_info const& i) {
      right += !ec && i.holder == key;
      ++answered;
    });
  }
  BOOST_TEST_REQUIRE(happens(io, [&] { return answered == 100; }));
  BOOST_TEST(right == 100);

  BOOST_TEST(ask(io, store, command::acquire_permit{"key", "x", 1, lasting, {}}).value().granted);
  BOOST_TEST(
      ask(io, store, command::acquire_permit{"key", "y", 1, lasting, lasting}).value().place == 1U);
  BOOST_TEST(ask(io, store, command::release_permit{"key", "x", 0}).value().freed);
  BOOST_TEST(ask(io, store, command::await_permit{"key", "y"}).has_value());
  new_job j;
  j.id = id_of(1);
  j.kind = "kind";
  BOOST_TEST(ask(io, store, command::enqueue_jobs{"queue", std::span{&j, 1}}).has_value());
  BOOST_TEST(ask(io, store, command::await_jobs{0}).has_value());
  store.close();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_CASE(F38_who_is_given_the_right_to_subscribe_hears_without_a_new_store) {
  server s;
  s.ask("acl setuser limited on '>secret' '~*' +@all resetchannels");
  auto o = unhurried();
  o.health_check_interval = 50ms;
  weir_test::heard_log const heard;
  bed on{redis_address{s.address()}.authenticate("secret", "limited"), o};
  BOOST_TEST(on(command::acquire_permit{"key", "x", 1, lasting, {}}).value().granted);
  on.store.async_execute(command::await_permit{"key", "y"}, [](error_code, hint) {});
  BOOST_TEST(happens(on.io, [&] { return heard.count("no right") == 1; }), heard.all());
  s.ask("acl setuser limited '&*'");
  BOOST_TEST(happens(on.io, [&] { return !s.ask("pubsub channels").empty(); }));
}

BOOST_AUTO_TEST_CASE(unix_sockets_have_all_that_ports_have) {
  weir_test::directory const home;
  auto const path = home.file("server");
  {
    server s{{"--unixsocket", path, "--unixsocketperm", "700"}};
    s.ask("acl setuser me on '>secret' '~*' '&*' +@all");
    auto const url = "redis+unix://me:secret@" + path + "?db=3";
    auto slow = unhurried();
    slow.poll_interval = 10s;
    bed on{redis_address::parse(url).value(), slow};
    BOOST_TEST(on(command::acquire_lock{"key", "me", lasting}).value().granted);
    BOOST_TEST(s.ask("-n 3 exists '{weir:0}:l:key'") == "1");
    std::string payload(limits::payload_size, '\0');
    for (std::size_t i = 0; i != payload.size(); ++i) payload[i] = static_cast<char>(i * 7);
    BOOST_TEST(enqueue(on, 1, payload).has_value());
    BOOST_TEST((on(command::find_job{"queue", id_of(1)}).value()->payload == payload));

    // Hints come, too; and a connection that ends comes back.
    bool woken = false;
    BOOST_TEST(on(command::dequeue_jobs{"queue", "me", 1, 1, lasting}).value().jobs.size() == 1U);
    on.store.async_execute(command::await_jobs{0}, [&](error_code ec, hint) {
      BOOST_TEST(!ec);
      woken = true;
    });
    on.io.restart();
    on.io.run_for(100ms);
    BOOST_TEST(!woken);
    BOOST_TEST(enqueue(on, 2, "x").has_value());
    auto const start = std::chrono::steady_clock::now();
    while (!woken && std::chrono::steady_clock::now() - start < 30s) on.io.run_one_for(10ms);
    BOOST_TEST((std::chrono::steady_clock::now() - start < 8s));
    s.ask("client kill type normal skipme yes");
    auto again = on(command::inspect_lock{"key"});
    if (is_error(again, errc::outcome_unknown)) again = on(command::inspect_lock{"key"});
    BOOST_TEST_REQUIRE(again.has_value(), again.error().message());
    BOOST_TEST(again->held);
  }
  redis_options hasty;
  hasty.offline_patience = 100ms;
  bed nobody{redis_address{}.unix_socket(home.file("none")), hasty};
  BOOST_TEST(is_error(nobody(command::inspect_lock{"key"}), errc::store_unavailable));
}

BOOST_AUTO_TEST_CASE(encrypted_connections_are_for_whom_the_certificate_names_only) {
  weir_test::directory const home;
  auto const key = home.file("key.pem");
  auto const certificate = home.file("certificate.pem");
  auto const make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=weir -addext "
                    "subjectAltName=IP:127.0.0.1 -keyout " +
                    key + " -out " + certificate + " 2> /dev/null";
  BOOST_TEST_REQUIRE(std::system(make.c_str()) == 0);
  auto const port = server_test::free_port();
  server const s{{"--tls-port", std::to_string(port), "--tls-cert-file", certificate,
                  "--tls-key-file", key, "--tls-auth-clients", "no", "--tls-ca-cert-file",
                  certificate}};
  auto hasty = unhurried();
  hasty.offline_patience = 500ms;
  boost::asio::io_context io;
  auto const try_it = [&](redis_address const& address, redis_options const& o) {
    redis_store const store{io.get_executor(), address, o};
    store.async_run([](error_code) {});
    auto out = ask(io, store, command::acquire_lock{"key", "me", lasting});
    store.close();
    return out;
  };
  auto const right = try_it(redis_address{"127.0.0.1", port}.tls(certificate), unhurried());
  BOOST_TEST_REQUIRE(right.has_value(), right.error().message());
  BOOST_TEST(right->granted);
  auto const nobody = redis_address{"127.0.0.1", port}.tls(certificate).authenticate("x", "who");
  BOOST_TEST(is_error(try_it(nobody, unhurried()), errc::permission_denied));
  auto const unavailable = errc::store_unavailable;
  for (auto const& wrong :
       {redis_address{"localhost", port}.tls(certificate), redis_address{"127.0.0.1", port}.tls(),
        redis_address{"127.0.0.1", port}.tls("/none"), redis_address{"127.0.0.1", port}}) {
    BOOST_TEST(is_error(try_it(wrong, hasty), unavailable));
  }
  // A server that asks its clients for a certificate.
  auto const wary_port = server_test::free_port();
  server const wary{{"--tls-port", std::to_string(wary_port), "--tls-cert-file", certificate,
                     "--tls-key-file", key, "--tls-ca-cert-file", certificate}};
  auto const us = "rediss://127.0.0.1:" + std::to_string(wary_port) + "?cacert=" + certificate;
  auto const files = "&cert=" + certificate + "&key=" + key;
  auto const known = try_it(redis_address::parse(us + files).value(), unhurried());
  BOOST_TEST(known.has_value(), known.error().message());
  for (auto const& wrong : {us, us + "&cert=" + certificate + "&key=/none"}) {
    BOOST_TEST(is_error(try_it(redis_address::parse(wrong).value(), hasty), unavailable));
  }
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_CASE(stores_that_disagree_about_the_shards_are_told_so) {
  server s;
  auto four = unhurried();
  four.shards = 4;
  bed on{s, four};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  bed one{s};
  BOOST_TEST(is_error(one(command::inspect_lock{"key"}), errc::invalid_option));
  auto bad = unhurried();
  bad.prefix = "a{b";
  bed braces{s, bad};
  BOOST_TEST(is_error(braces(command::inspect_lock{"key"}), errc::invalid_option));
  for (std::uint32_t i = 0; i != 20; ++i) {
    new_job j;
    j.id = id_of(i);
    j.kind = "kind";
    auto const queue = "queue" + std::to_string(i);
    BOOST_TEST(on(command::enqueue_jobs{queue, std::span{&j, 1}}).has_value());
  }
  std::size_t queues = 0;
  for (std::uint32_t shard = 0; shard != 4; ++shard) {
    auto const found = on(command::scan_visible_queues{shard, 100, 0}).value().queues.size();
    BOOST_TEST(found > 0U);
    queues += found;
  }
  BOOST_TEST(queues == 20U);
  BOOST_TEST(is_error(on(command::scan_visible_queues{4, 1, 0}), errc::invalid_shard));
}

// An answer's size is bounded (F90), and the largest answers are within the bound.
BOOST_AUTO_TEST_CASE(F59_the_largest_answers_are_read) {
  server s;
  bed on{s};
  std::string const name(limits::holder_size - 4, 'h');
  for (std::uint32_t i = 0; i != 700; ++i) {
    auto const holder = name + std::to_string(1000 + i);
    BOOST_TEST(on(command::acquire_permit{"key", holder, 1000, 1min})->granted);
  }
  auto const census = on(command::inspect_permits{"key", limits::batch});
  BOOST_TEST_REQUIRE(census.has_value());
  BOOST_TEST(census->holders.size() == 700U);
  for (std::uint32_t i = 0; i != 100; ++i) {
    new_job j;
    j.id = id_of(i);
    j.kind = "kind";
    auto const queue = std::string(limits::key_size - 4, 'q') + std::to_string(1000 + i);
    BOOST_TEST(on(command::enqueue_jobs{queue, std::span{&j, 1}}).has_value());
  }
  BOOST_TEST(on(command::gc_stale_pointers{0, 100, {}}).has_value());
}

// Only time ends what is left of such a queue: an enqueue that adds nothing leaves it to that.
BOOST_AUTO_TEST_CASE(F11_what_is_asked_again_keeps_no_queue_for_ever) {
  server s;
  bed on{s};
  std::array<std::string_view, 2> const queues{"plain", "unique"};
  for (auto const queue : queues) {
    new_job j;
    j.id = id_of(1);
    j.kind = "kind";
    j.retention = 1h;
    if (queue == "unique") {
      j.strategy = unique_strategy::until_expired;
      j.unique_key = "key";
      j.unique_ttl = 1h;
    }
    auto const enqueue = [&](std::uint32_t id) {
      j.id = id_of(id);
      return on(command::enqueue_jobs{queue, std::span{&j, 1}}).value();
    };
    auto const left = [&] {
      return std::stoll(s.ask("pttl '{weir:0}:j:" + std::string{queue} + "'"));
    };
    enqueue(1);
    BOOST_TEST(left() == -1);
    auto const claimed = on(command::dequeue_jobs{queue, "w", 0, 1, 1min}).value();
    BOOST_TEST_REQUIRE(claimed.jobs.size() == 1U);
    finished_job const end{id_of(1), claimed.jobs[0].fence, ""};
    BOOST_TEST(on(command::complete_jobs{queue, std::span{&end, 1}}).has_value());
    BOOST_TEST(left() > 0);
    enqueue(1);
    if (queue == "unique") {
      BOOST_TEST((enqueue(2).at(0).outcome == enqueue_outcome::duplicate));
    }
    BOOST_TEST(left() > 0);
    j.strategy = unique_strategy::none;
    j.unique_key = {};
    j.unique_ttl = {};
    enqueue(3);
    BOOST_TEST(left() == -1);
  }
}

BOOST_AUTO_TEST_CASE(F83_a_queue_that_is_empty_and_left_alone_is_forgotten) {
  server s;
  bed on{s};
  new_job j;
  j.kind = "kind";
  for (std::uint32_t i = 0; i != 250; ++i) {
    j.id = id_of(i);
    auto const queue = "queue" + std::to_string(i);
    BOOST_TEST(on(command::enqueue_jobs{queue, std::span{&j, 1}}).has_value());
    if (i == 7) continue;
    BOOST_TEST((on(command::cancel_job{queue, j.id}).value() == cancel_outcome::cancelled));
    if (i == 8) BOOST_TEST(on(command::pause_queue{queue}).has_value());
    if (i == 9) BOOST_TEST(on(command::obtain_queue_lease{queue, "me", 1min})->granted);
  }
  auto const queues = [&] { return std::stoi(s.ask("zcard '{weir:0}:names'")); };
  auto const of = [](std::uint32_t i) { return "'{weir:0}:q:queue" + std::to_string(i) + "' "; };
  auto const for_all = [&](std::string const& what) {
    return s.ask(
        "eval \"local n = 0 for _, k in ipairs(redis.call('keys', '{weir:0}:q:*')) do n = n + "
        "redis.call(" +
        what + ") end return n\" 0");
  };
  // Each empty queue is marked when it is seen, wherever among the others it is.
  BOOST_TEST(happens(on.io, [&] {
    BOOST_TEST(on(command::gc_stale_pointers{0, 100, {}}).value() == 0U);
    return for_all("'hexists', k, 'idle'") == "247";
  }));
  BOOST_TEST(queues() == 250);
  // As if that had been three days ago; one of them was used since.
  auto const then = std::chrono::system_clock::now() - std::chrono::days{3};
  auto const micros = std::chrono::floor<std::chrono::microseconds>(then.time_since_epoch());
  for_all("'hset', k, 'idle', '" + std::to_string(micros.count()) + ":1'");
  s.ask("hset " + of(10) + "enqueued 2");
  BOOST_TEST(happens(on.io, [&] {
    BOOST_TEST(on(command::gc_stale_pointers{0, 100, {}}).has_value());
    return queues() == 4;
  }));
  for (std::uint32_t const stays : {7U, 8U, 9U, 10U}) {
    BOOST_TEST(s.ask("exists " + of(stays)) == "1");
  }
  BOOST_TEST(s.ask("exists " + of(11)) == "0");
  BOOST_TEST(s.ask("hexists " + of(8) + "idle") == "0");  // its two days begin when it is not held
  BOOST_TEST(on(command::read_queue_stats{"queue7"})->pending == 1U);
  // And it begins anew.
  j.id = id_of(11);
  BOOST_TEST(on(command::enqueue_jobs{"queue11", std::span{&j, 1}}).has_value());
  BOOST_TEST(on(command::read_queue_stats{"queue11"})->enqueued == 1U);
  BOOST_TEST(queues() == 5);
}

BOOST_AUTO_TEST_CASE(F61_a_server_that_evicts_is_refused_unless_that_is_wanted) {
  weir_test::heard_log heard;
  auto o = unhurried();
  server s;
  {
    bed on{s, o};
    BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
    BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  }
  BOOST_TEST(heard.all() == "");
  s.ask("config set maxmemory-policy allkeys-lru");
  {
    bed on{s, o};
    BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::store_evicts));
    BOOST_TEST(happens(on.io, [&] { return heard.count("allkeys-lru") == 1; }), heard.all());
  }
  o.allow_eviction = true;
  {
    bed on{s, o};
    for (int i = 0; i != 5; ++i) BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
    BOOST_TEST(happens(on.io, [&] { return heard.count("allkeys-lru") == 2; }), heard.all());
  }
  // A user who may not ask is served.
  s.ask("acl setuser some reset on '>secret' '~*' '&*' +@all -info -config");
  bed on{redis_address{s.address()}.authenticate("secret", "some"), unhurried()};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
}

/// A store that looks at its server often.
struct watchful {
  watchful() { BOOST_TEST(on(command::inspect_lock{"key"}).has_value()); }

  bool comes_to(errc e) {
    return happens([&] { return is_error(on(command::inspect_lock{"key"}), e); });
  }

  server s;
  bed on{s, [] {
           auto o = unhurried();
           o.health_check_interval = 100ms;
           return o;
         }()};
};

BOOST_AUTO_TEST_CASE(F61_a_server_that_is_set_to_evict_while_it_is_used_is_left) {
  watchful store;
  store.s.ask("config set maxmemory-policy allkeys-lru");
  BOOST_TEST(store.comes_to(errc::store_evicts));
}

BOOST_AUTO_TEST_CASE(stores_that_disagree_about_the_shards_of_an_emptied_server_are_told_so) {
  watchful store;
  store.s.ask("flushall");
  auto other = unhurried();
  other.shards = 2;
  bed later{store.s, other};
  BOOST_TEST(later(command::inspect_lock{"key"}).has_value());
  BOOST_TEST(store.comes_to(errc::invalid_option));
}

BOOST_AUTO_TEST_CASE(F38_hints_come_by_message_long_before_the_next_look) {
  server s;
  auto slow = unhurried();
  slow.poll_interval = 10s;
  bed one{s, slow};
  bed two{s, slow};
  BOOST_TEST(one(command::acquire_permit{"key", "x", 1, lasting, {}}).value().granted);
  BOOST_TEST(two(command::acquire_permit{"key", "y", 1, lasting, lasting}).value().place == 1U);
  int woken = 0;
  two.store.async_execute(command::await_permit{"key", "y"}, [&](error_code ec, hint) {
    BOOST_TEST(!ec);
    ++woken;
  });
  two.store.async_execute(command::await_jobs{0}, [&](error_code ec, hint) {
    BOOST_TEST(!ec);
    ++woken;
  });
  two.io.restart();
  two.io.run_for(200ms);
  BOOST_TEST(woken == 0);
  auto const start = std::chrono::steady_clock::now();
  BOOST_TEST(one(command::release_permit{"key", "x", 0}).value().freed);
  BOOST_TEST(enqueue(one, 1, "x").has_value());
  while (woken != 2 && std::chrono::steady_clock::now() - start < 30s) two.io.run_one_for(10ms);
  BOOST_TEST(woken == 2);
  BOOST_TEST((std::chrono::steady_clock::now() - start < 8s));  // sooner than anybody looked
}

// A script writes short bodies anew at each step, and long ones once.
BOOST_AUTO_TEST_CASE(bodies_and_notes_of_any_size_are_kept) {
  server s;
  bed on{s};
  constexpr std::uint32_t sizes[] = {0, 1, 193, 194, 195, 196, 1000, 100'000};
  std::vector<std::string> payloads;
  std::vector<new_job> jobs;
  for (auto const size : sizes) payloads.emplace_back(size, 'p');
  for (std::uint32_t i = 0; i != std::size(sizes); ++i) {
    auto& j = jobs.emplace_back();
    j.id = id_of(i);
    j.kind = "kind";
    j.payload = payloads[i];
    j.retention = lasting;
  }
  auto const check = [&](auto const& found, std::string const& memo) {
    BOOST_TEST_REQUIRE(found.size() == payloads.size());
    for (std::size_t i = 0; i != found.size(); ++i) {
      BOOST_TEST(found[i].id == jobs[i].id);
      BOOST_TEST(found[i].kind == "kind");
      BOOST_TEST((found[i].payload == payloads[i]), "of " << payloads[i].size());
      BOOST_TEST(found[i].memo == memo);
    }
  };
  for (bool const together : {true, false}) {
    BOOST_TEST_REQUIRE(s.ask("flushall") == "OK");
    if (together) {
      BOOST_TEST(on(command::enqueue_jobs{"queue", jobs}).has_value());
    } else {
      for (auto const& j : jobs) {
        BOOST_TEST(on(command::enqueue_jobs{"queue", std::span{&j, 1}}).has_value());
      }
    }
    BOOST_TEST(on(command::read_queue_stats{"queue"}).value().enqueued == jobs.size());
    check(on(command::peek_jobs{"queue", 100}).value(), "");
    auto const claimed = on(command::dequeue_jobs{"queue", "me", 0, 100, lasting}).value().jobs;
    check(claimed, "");
    for (auto const& j : claimed) {
      BOOST_TEST(on(command::snooze_job{"queue", j.id, j.fence, {}, "memo"}).has_value());
    }
    auto const again = on(command::dequeue_jobs{"queue", "me", 0, 100, lasting}).value().jobs;
    check(again, "memo");
    for (auto const& j : again) {
      finished_job const f{j.id, j.fence, "result"};
      BOOST_TEST(on(command::complete_jobs{"queue", std::span{&f, 1}}).has_value());
    }
    std::vector<job> ended;
    for (auto const& j : jobs) {
      auto const found = on(command::find_job{"queue", j.id}).value();
      BOOST_TEST_REQUIRE(found.has_value());
      BOOST_TEST((found->state == job_state::completed));
      BOOST_TEST(found->result == "result");
      ended.push_back(*found);
    }
    check(ended, "memo");
    for (auto const& j : jobs) {
      BOOST_TEST(on(command::purge_job{"queue", j.id}).value());
    }
    BOOST_TEST(s.ask("hlen '{weir:0}:j:queue'") == "0");
  }
}

BOOST_AUTO_TEST_CASE(a_batch_may_be_as_large_as_the_limit) {
  server s;
  bed on{s};
  std::string const long_payload(300, 'p');
  for (auto const strategy : {unique_strategy::none, unique_strategy::until_executed}) {
    std::vector<std::string> keys;
    std::vector<new_job> jobs;
    for (std::uint32_t i = 0; i != limits::batch; ++i) keys.push_back("key" + std::to_string(i));
    for (std::uint32_t i = 0; i != limits::batch; ++i) {
      auto& j = jobs.emplace_back();
      j.id = id_of(i);
      j.kind = "kind";
      if (i % 2 == 0) j.payload = long_payload;
      j.strategy = strategy;
      if (strategy != unique_strategy::none) j.unique_key = keys[i];
    }
    for (int times = 0; times != 2; ++times) {  // the second one changes nothing
      auto const answer = on(command::enqueue_jobs{"queue", jobs});
      BOOST_TEST_REQUIRE(answer.has_value(), answer.error().message());
      BOOST_TEST(answer->size() == jobs.size());
      for (auto const& e : *answer) BOOST_TEST_REQUIRE((e.outcome == enqueue_outcome::enqueued));
    }
    auto const claimed =
        on(command::dequeue_jobs{"queue", "me", 0, limits::batch, lasting}).value().jobs;
    BOOST_TEST_REQUIRE(claimed.size() == jobs.size());
    std::vector<finished_job> finished;
    for (auto const& j : claimed) finished.push_back({j.id, j.fence, {}});
    auto const outcomes = on(command::complete_jobs{"queue", finished}).value();
    BOOST_TEST(std::ranges::count(outcomes, complete_outcome::completed) ==
               static_cast<std::ptrdiff_t>(jobs.size()));
    auto const stats = on(command::read_queue_stats{"queue"}).value();
    BOOST_TEST(stats.enqueued == stats.completed);
    BOOST_TEST(s.ask("hlen '{weir:0}:j:queue'") == "0");
    BOOST_TEST(s.ask("hlen '{weir:0}:k:queue'") == "0");
  }
}

// Those that are leased are not looked for among those that wait, of which a page looks at 1,000.
BOOST_AUTO_TEST_CASE(leases_are_listed_whatever_waits) {
  server s;
  bed on{s};
  std::vector<new_job> jobs(5);
  for (std::uint32_t i = 0; i != 5; ++i) {
    jobs[i].id = id_of(i);
    jobs[i].kind = "kind";
  }
  BOOST_TEST_REQUIRE(on(command::enqueue_jobs{"queue", jobs}).has_value());
  auto const held = on(command::dequeue_jobs{"queue", "me", 0, 5, lasting}).value().jobs;
  BOOST_TEST_REQUIRE(held.size() == 5U);
  auto const waiting = jobs.front();
  jobs.assign(1500, waiting);
  for (std::uint32_t i = 0; i != 1500; ++i) jobs[i].id = id_of(100 + i);
  BOOST_TEST_REQUIRE(on(command::enqueue_jobs{"queue", jobs}).has_value());
  std::set<job_id> listed;
  std::string cursor;
  for (int pages = 0; pages != 3; ++pages) {  // of one instant, so it is their ids that go on
    auto const page = on(command::list_jobs{"queue", job_state::leased, 2, cursor}).value();
    BOOST_TEST(page.jobs.size() == 2U);
    for (auto const& j : page.jobs) listed.insert(j.id);
    cursor = page.cursor;
    // One that was listed moves behind the others, which are found all the same, and is listed
    // again.
    if (pages == 0) {
      auto const& moved = page.jobs.back().id;
      auto const lease = std::ranges::find(held, moved, &leased_job::id);
      BOOST_TEST_REQUIRE(
          on(command::extend_lease{"queue", moved, lease->fence, 2 * lasting}).has_value());
    }
  }
  BOOST_TEST(listed.size() == 5U);
}

BOOST_AUTO_TEST_CASE(F11_records_that_are_over_go_as_jobs_are_dequeued) {
  server s;
  bed on{s};
  new_job later;
  later.id = id_of(100);
  later.kind = "kind";
  later.delay = lasting;  // so the queue does not become empty
  BOOST_TEST(on(command::enqueue_jobs{"queue", std::span{&later, 1}}).has_value());
  for (std::uint32_t i = 0; i != 20; ++i) {
    new_job j;
    j.id = id_of(i);
    j.kind = "kind";
    j.retention = 50ms;
    BOOST_TEST(on(command::enqueue_jobs{"queue", std::span{&j, 1}}).has_value());
  }
  auto const claimed = on(command::dequeue_jobs{"queue", "me", 0, 20, lasting}).value().jobs;
  BOOST_TEST_REQUIRE(claimed.size() == 20U);
  std::vector<finished_job> finished;
  for (auto const& j : claimed) finished.push_back({j.id, j.fence, {}});
  BOOST_TEST(on(command::complete_jobs{"queue", finished}).has_value());
  BOOST_TEST(happens([&] {
    BOOST_TEST(on(command::dequeue_jobs{"queue", "me", 0, 1, lasting}).value().jobs.empty());
    return s.ask("hlen '{weir:0}:j:queue'") == "1" && s.ask("zcard '{weir:0}:e:queue'") == "0";
  }));
}

BOOST_AUTO_TEST_CASE(F11_what_is_over_leaves_nothing_behind) {
  server s;
  bed on{s};
  quota const q[] = {quota::per_second(10)};
  for (int i = 0; i != 5; ++i) {
    auto const key = "key" + std::to_string(i);
    BOOST_TEST(on(command::acquire_lock{key, "me", 50ms}).has_value());
    BOOST_TEST(on(command::acquire_permit{key, "me", 1, 50ms, {}}).has_value());
    BOOST_TEST(on(command::acquire_permit{key, "you", 1, 50ms, 50ms}).has_value());
    BOOST_TEST(on(command::take{key, q, 1, {}}).has_value());
  }
  for (std::uint32_t i = 0; i != 5; ++i) {
    new_job j;
    j.id = id_of(i);
    j.kind = "kind";
    j.retention = 100ms;
    j.strategy = i % 2 == 0 ? unique_strategy::until_expired : unique_strategy::while_executing;
    auto const key = "key" + std::to_string(i);
    j.unique_key = key;
    if (i % 2 == 0) j.unique_ttl = 100ms;
    BOOST_TEST(on(command::enqueue_jobs{"queue", std::span{&j, 1}}).has_value());
    auto const got = on(command::dequeue_jobs{"queue", "me", i + 1, 1, lasting}).value();
    BOOST_TEST(
        on(command::start_job{"queue", got.jobs.at(0).id, got.jobs.at(0).fence}).has_value());
    finished_job const f{got.jobs.at(0).id, got.jobs.at(0).fence, "result"};
    BOOST_TEST(on(command::complete_jobs{"queue", std::span{&f, 1}}).has_value());
  }
  std::set<std::string> const stay{"{weir:0}:shards", "{weir:0}:fence", "{weir:0}:names",
                                   "{weir:0}:time", "{weir:0}:q:queue"};
  auto const all = keys_of(s);
  BOOST_TEST(all.size() > stay.size());
  for (auto const& [key, ttl] : all) {
    // What a lease of an hour gave out is remembered for as long.
    bool const expires = ttl >= 0 && ttl <= (key.find(":h:") != key.npos ? 3660 : 62);
    BOOST_TEST((stay.contains(key) || expires), key << " " << ttl);
  }
}

BOOST_AUTO_TEST_CASE(R7_operations_end_when_their_context_does_and_leave_nothing) {
  server s;
  for (int round = 0; round != 10; ++round) {
    auto io = std::make_unique<boost::asio::io_context>();
    auto const kept = std::make_shared<std::atomic<int>>();
    auto const left = std::make_shared<std::atomic<int>>();
    std::optional<redis_store> handle{
        std::in_place, test::counted_executor{io->get_executor(), left}, s.address(), unhurried()};
    auto const& store = *handle;
    store.async_run([kept](error_code) {});
    BOOST_TEST(ask(*io, store, command::inspect_lock{"key"}).has_value());
    for (int i = 0; i != 50; ++i) {
      store.async_execute(command::inspect_lock{"key"}, [kept](error_code, lock_info const&) {});
    }
    store.async_execute(command::await_jobs{0}, [kept](error_code, hint) {});
    store.async_execute(command::await_permit{"key", "me"}, [kept](error_code, hint) {});
    for (int i = 0; i != round; ++i) io->poll_one();
    handle.reset();
    io.reset();
    BOOST_TEST(kept.use_count() == 1);
    BOOST_TEST(left.use_count() == 1);
  }
}

BOOST_AUTO_TEST_CASE(R7_housekeeping_that_waits_for_a_connection_ends_with_its_context) {
  auto io = std::make_unique<boost::asio::io_context>();
  auto const kept = std::make_shared<std::atomic<int>>();
  auto const left = std::make_shared<std::atomic<int>>();
  std::optional<redis_store> store{std::in_place, test::counted_executor{io->get_executor(), left},
                                   redis_address{}, unhurried()};
  store->async_execute(command::gc_stale_pointers{}, [kept](error_code, std::uint32_t) {});
  io->poll();
  store.reset();
  io.reset();
  BOOST_TEST(kept.use_count() == 1);
  BOOST_TEST(left.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(R8_commands_under_way_are_bounded) {
  redis_options o;
  o.max_pending = 3;
  boost::asio::io_context io;
  redis_store const store{io.get_executor(), redis_address{"127.0.0.1", 1}, o};
  int full = 0;
  for (int i = 0; i != 10; ++i) {
    store.async_execute(command::inspect_lock{"key"}, [&](error_code ec, lock_info const&) {
      if (ec == errc::store_full) ++full;
    });
  }
  io.poll();
  BOOST_TEST(full == 7);
  store.close();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_CASE(R7_R8_what_is_cancelled_before_it_leaves_is_not_executed_and_takes_no_room) {
  server s;
  auto o = unhurried();
  o.max_pending = 11;  // those, until their turn is over, and one more
  bed on{s, o};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  for (int i = 0; i != 5; ++i) {
    int cancelled = 0;
    for (int k = 0; k != 10; ++k) {
      boost::asio::cancellation_signal signal;
      on.store.async_execute(
          command::acquire_lock{"key", "me", lasting},
          boost::asio::bind_cancellation_slot(signal.slot(), [&](error_code ec, lock_grant const&) {
            cancelled += ec == boost::asio::error::operation_aborted;
          }));
      signal.emit(boost::asio::cancellation_type::terminal);
    }
    BOOST_TEST(!on(command::inspect_lock{"key"}).value().held);
    BOOST_TEST(cancelled == 10);
  }
}

BOOST_AUTO_TEST_CASE(R8_what_a_dead_connection_had_not_answered_takes_no_room) {
  server s;
  auto o = unhurried();
  o.max_pending = 10;
  o.least_reconnect_wait = 10ms;
  bed on{s, o};
  for (int round = 0; round != 3; ++round) {
    BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
    s.pause();
    int unknown = 0;
    for (int k = 0; k != 10; ++k) {
      on.store.async_execute(command::inspect_lock{"key"}, [&](error_code ec, lock_info const&) {
        unknown += ec == errc::outcome_unknown;
      });
    }
    on.io.restart();
    on.io.poll();
    s.kill();
    s.start();
    BOOST_TEST_REQUIRE(happens(on.io, [&] { return unknown == 10; }));
  }
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
}

BOOST_AUTO_TEST_CASE(R7_cancelling_before_there_is_a_connection_executes_nothing) {
  server s;
  bed on{s};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  weir_test::R7_cancelled_before_there_is_a_connection<redis_store>(s.address(), unhurried());
}

BOOST_AUTO_TEST_SUITE_END()
