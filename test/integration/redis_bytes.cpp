// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Jobs of a megabyte each, on servers that end a connection to which too much is on its way.

#include "patience.hpp"
#include "redis_server.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace redis_test;
using weir_test::happens;

constexpr duration lasting = 1h;

job_id numbered(std::uint32_t n) {
  job_id out{};
  for (std::size_t i = 0; i != 4; ++i) out.data[i] = static_cast<std::uint8_t>(n >> (8 * i));
  return out;
}

/// A store and somebody who waits for hints, and small commands that are asked all the time.
struct fixture {
  fixture(server& s, redis_options const& o = unhurried()) : on{s, o} {
    on.store.async_execute(command::acquire_permit{"key", "a", 1, lasting, {}},
                           [](error_code ec, permit_grant const&) { BOOST_TEST(!ec); });
    on.store.async_execute(command::acquire_permit{"key", "b", 1, lasting, lasting},
                           [this](error_code ec, permit_grant const& g) {
                             BOOST_TEST((!ec && g.place == 1U));
                             wait();
                           });
    ask();
  }
  ~fixture() { over = true; }

  void wait() {
    on.store.async_execute(command::await_permit{"key", "b"}, [this](error_code ec, hint) {
      if (over) return;
      BOOST_TEST(!ec, ec.message());
      wait();
    });
  }
  void ask() {
    on.store.async_execute(command::inspect_lock{"lock"}, [this](error_code ec, lock_info const&) {
      if (over) return;
      BOOST_TEST(!ec, ec.message());
      ++small;
      ask();
    });
  }

  template <class C>
  typename C::result must(C const& c) {
    auto out = on(c);
    BOOST_TEST_REQUIRE(out.has_value(), out.error().message());
    return std::move(out).value();
  }

  /// Enqueues jobs of the largest size, from a number on.
  void enqueue(std::string_view queue, std::uint32_t first, std::uint32_t n) {
    std::string const payload(limits::payload_size, 'p');
    for (std::uint32_t i = 0; i < n; i += 15) {
      std::vector<new_job> jobs(std::min<std::uint32_t>(15, n - i));
      for (std::uint32_t k = 0; k != jobs.size(); ++k) {
        jobs[k].id = numbered(first + i + k);
        jobs[k].kind = "kind";
        jobs[k].payload = payload;
        jobs[k].retention = lasting;
      }
      must(command::enqueue_jobs{queue, jobs});
    }
  }

  bool over = false;
  bed on;
  std::size_t small = 0;
};

/// Answers of the same command, asked many times at once.
template <class C>
std::vector<typename C::result> at_once(bed& on, std::vector<C> const& commands) {
  std::vector<typename C::result> out;
  std::size_t answered = 0;
  for (auto const& c : commands) {
    on.store.async_execute(c, [&](error_code ec, typename C::result r) {
      BOOST_TEST(!ec, ec.message());
      ++answered;
      out.push_back(std::move(r));
    });
  }
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return answered == commands.size(); }));
  return out;
}

/// A hundred jobs of a megabyte: looked at, given out to many at once, completed with results of a
/// megabyte, or dead and listed.
void live_through(std::vector<std::string> const& server_options) {
  server s{server_options};
  fixture f{s};
  constexpr std::uint32_t all = 100;
  f.enqueue("queue", 1, all);
  auto const peeked = f.must(command::peek_jobs{"queue", all});
  BOOST_TEST(peeked.size() == 3U);

  std::vector<std::string> holders;
  for (int i = 0; i != 16; ++i) holders.push_back("holder" + std::to_string(i));
  std::vector<leased_job> claimed;
  for (std::uint64_t sequence = 1; claimed.size() != all; ++sequence) {
    std::vector<command::dequeue_jobs> together;
    for (auto const& h : holders) together.push_back({"queue", h, sequence, all, lasting});
    auto const before = claimed.size();
    for (auto& d : at_once(f.on, together)) {
      for (auto& j : d.jobs) claimed.push_back(std::move(j));
      BOOST_TEST(d.more == (d.jobs.size() == 3U && claimed.size() != all));
    }
    BOOST_TEST_REQUIRE(claimed.size() > before);
  }
  for (auto const& j : claimed) BOOST_TEST(j.payload.size() == limits::payload_size);

  std::string const result(limits::payload_size, 'r');
  constexpr std::uint32_t done = 50;
  for (std::uint32_t i = 0; i != done; i += 10) {
    std::vector<finished_job> ended;
    for (auto k = i; k != i + 10; ++k) ended.push_back({claimed[k].id, claimed[k].fence, result});
    for (auto const outcome : f.must(command::complete_jobs{"queue", ended})) {
      BOOST_TEST((outcome == complete_outcome::completed));
    }
  }
  BOOST_TEST(f.must(command::find_job{"queue", claimed[0].id})->result.size() == result.size());
  for (auto k = done; k != all; ++k) {
    f.must(command::bury_job{"queue", claimed[k].id, claimed[k].fence, "why"});
  }
  std::uint32_t dead = 0;
  std::string cursor;
  do {
    auto const page = f.must(command::list_dead_letters{"queue", all, cursor});
    BOOST_TEST_REQUIRE(!page.jobs.empty());
    dead += static_cast<std::uint32_t>(page.jobs.size());
    cursor = page.cursor;
  } while (!cursor.empty());
  BOOST_TEST(dead == all - done);
  BOOST_TEST(f.small > 0U);
}

/// A number of the server's in its answer to `info`.
long info(server const& s, std::string const& section, std::string const& name) {
  auto const said = s.ask("info " + section);
  auto const at = said.find(name + ":");
  return at == said.npos ? -1 : std::atol(said.c_str() + at + name.size() + 1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_bytes)

BOOST_AUTO_TEST_CASE(F60_a_hundred_jobs_of_a_megabyte_on_a_server_as_it_comes) { live_through({}); }

BOOST_AUTO_TEST_CASE(F60_the_same_where_who_subscribes_may_have_little_on_its_way) {
  live_through({"--client-output-buffer-limit", "pubsub 64kb 32kb 1"});
}

// Each of them is within its bound, and all of them together are four times what this server lets a
// connection have.
BOOST_AUTO_TEST_CASE(F60_answers_that_are_on_their_way_together_are_bounded) {
  server s{{"--client-output-buffer-limit", "normal 80mb 0 0"}};
  fixture f{s};
  f.enqueue("queue", 1, 4);
  for (auto const& jobs :
       at_once(f.on, std::vector<command::peek_jobs>(100, command::peek_jobs{"queue", 100}))) {
    BOOST_TEST(jobs.size() == 3U);
  }
  auto const found =
      at_once(f.on, std::vector<command::find_job>(200, command::find_job{"queue", numbered(1)}));
  for (auto const& j : found) BOOST_TEST(j->payload.size() == limits::payload_size);
  BOOST_TEST(info(s, "clients", "connected_clients") == 3);  // this one, the hints', and who asks
}

// A server that lets its clients wait reads on, and ends those of which it has read too much.
BOOST_AUTO_TEST_CASE(F59_commands_that_are_on_their_way_together_are_bounded) {
  server s{{"--client-query-buffer-limit", "100mb"}};
  fixture f{s};
  std::string const payload(limits::payload_size, 'p');
  constexpr std::uint32_t batches = 12;
  std::vector<std::vector<new_job>> jobs(batches, std::vector<new_job>(15));
  std::vector<command::enqueue_jobs> together;
  std::uint32_t number = 0;
  for (auto& batch : jobs) {
    for (auto& j : batch) {
      j.id = numbered(++number);
      j.kind = "kind";
      j.payload = payload;
    }
    together.push_back({"queue", batch});
  }
  f.must(command::read_queue_stats{"queue"});  // it is connected
  BOOST_TEST_REQUIRE(s.ask("client pause 3600000 write") == "OK");
  std::uint32_t enqueued = 0;
  for (auto const& c : together) {
    f.on.store.async_execute(c, [&](error_code ec, auto const&) {
      BOOST_TEST(!ec, ec.message());
      ++enqueued;
    });
  }
  // Until it has read what is sent.
  long seen = -1;
  BOOST_TEST_REQUIRE(happens([&] {
    f.on.io.restart();
    f.on.io.run_for(100ms);
    auto const now = info(s, "memory", "mem_clients_normal");
    return enqueued != 0 || (std::exchange(seen, now) == now && now > (20L << 20U));
  }));
  BOOST_TEST(enqueued == 0U);
  BOOST_TEST(s.ask("client unpause") == "OK");
  BOOST_TEST_REQUIRE(happens(f.on.io, [&] { return enqueued == batches; }));
  BOOST_TEST(f.must(command::read_queue_stats{"queue"}).pending == number);
}

BOOST_AUTO_TEST_SUITE_END()
