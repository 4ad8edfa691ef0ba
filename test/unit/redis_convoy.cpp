// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Commands that travel as one, their order, and the answer to each.

#include "weir/command/buckets.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/store/redis/buckets.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/convoy.hpp"
#include "weir/store/redis/enqueues.hpp"
#include "weir/store/redis/job_ends.hpp"
#include "weir/store/redis/locks.hpp"
#include "weir/store/redis/permits.hpp"
#include "weir/store/redis/request.hpp"
#include "weir/store/redis/resp.hpp"
#include "weir/testing/dice.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;
using detail::redis_call;
using detail::redis_convoy;
using detail::redis_kind;
using detail::redis_value;

detail::redis_names const names{"weir", 1};
detail::redis_names const shards{"weir", 2};

struct idle final : detail::redis_request {
  explicit idle(redis_call call) : redis_request{std::move(call)} {}
  [[nodiscard]] bool wanted() const noexcept override { return true; }
  void complete(detail::redis_reply&) noexcept override {}
  void fail(error_code) noexcept override {}
};

template <class C>
redis_convoy::request request_of(C const& c, detail::redis_names const& of = names) {
  return std::make_shared<idle>(encode(of, c, {}).value());
}

redis_convoy::request take(std::string_view key, detail::redis_names const& of = names) {
  static std::array const q{quota::per_second(5)};
  return request_of(command::take{key, q, 1, {}}, of);
}

redis_convoy::request enqueue(std::string_view queue, std::uint8_t id, std::size_t bytes = 3) {
  std::string const payload(bytes, 'p');
  new_job j;
  j.id.data[0] = id;
  j.kind = "kind";
  j.payload = payload;
  return request_of(command::enqueue_jobs{queue, {&j, 1}});
}

/// How many commands each run has, in their order.
std::vector<std::size_t> runs(std::vector<redis_convoy::request>& commands,
                              detail::redis_known_scripts const& alone = {}) {
  redis_convoy convoy;
  convoy.arrange(commands, alone);
  detail::redis_wire wire;
  detail::redis_known_scripts known;
  convoy.push(wire, commands, known);
  std::vector<std::size_t> out;
  for (std::size_t sent = 0; sent != commands.size(); sent += out.back()) {
    out.push_back(convoy.next().commands);
    convoy.done();
  }
  return out;
}

using sizes = std::vector<std::size_t>;

redis_value value(redis_kind kind, std::size_t size, std::size_t depth, std::string text = {}) {
  return {kind, size, depth, std::move(text)};
}
redis_value number(std::size_t depth, std::string text) {
  return value(redis_kind::number, 1, depth, std::move(text));
}

std::vector<std::string> divided(std::vector<redis_value> const& reply, std::size_t commands,
                                 bool merged = false) {
  std::vector<std::string> out;
  redis_convoy convoy;
  convoy.divide(reply, commands, merged, [&](std::span<redis_value const> part) {
    std::string text;
    for (auto const& v : part) {
      text += v.data_type == redis_kind::array ? "[" + std::to_string(v.aggregate_size) : v.value;
      text += " ";
    }
    out.push_back(text);
  });
  return out;
}

using texts = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_convoy_parts)

BOOST_AUTO_TEST_CASE(commands_of_a_kind_travel_as_one_up_to_a_bound) {
  std::vector<redis_convoy::request> all;
  for (int i = 0; i != 40; ++i) all.push_back(take("key" + std::to_string(i)));
  BOOST_TEST(runs(all) == (sizes{16, 16, 8}));
  BOOST_TEST(runs(all, {&all[0]->call().joined_script()}) == sizes(40, 1));
  all.resize(1);
  BOOST_TEST(runs(all) == sizes{1});
}

BOOST_AUTO_TEST_CASE(bytes_are_bounded_too) {
  std::vector<redis_convoy::request> all;
  for (std::uint8_t i = 0; i != 6; ++i) all.push_back(enqueue("queue", i, 20'000));
  all.push_back(enqueue("queue", 7, 100'000));
  all.push_back(enqueue("queue", 8, 100'000));
  BOOST_TEST(runs(all) == (sizes{3, 3, 1, 1}));
}

BOOST_AUTO_TEST_CASE(some_travel_alone) {
  std::vector all{take("a"), take("b"), take("c"), take("d")};
  all[0]->stay_alone();
  all[1]->ask_first();
  BOOST_TEST(runs(all) == (sizes{1, 1, 2}));
  std::vector others{request_of(command::inspect_lock{"a"}),
                     request_of(command::inspect_lock{"a"})};
  BOOST_TEST(runs(others) == (sizes{1, 1}));
  // Another shard has another time, and another slot.
  std::string elsewhere = "b";
  while (shards.shard_of(elsewhere) == shards.shard_of("a")) elsewhere += "b";
  std::vector two{take("a", shards), take(elsewhere, shards), take("a", shards)};
  BOOST_TEST(runs(two) == (sizes{2, 1}));
  // Once the key of the time is left out, since a slot moves.
  std::vector<redis_convoy::request> moving{take("a"), take("a"), take("a")};
  BOOST_TEST(moving[1]->leave_time_out());
  BOOST_TEST(runs(moving).size() == 3U);
}

BOOST_AUTO_TEST_CASE(an_id_is_in_one_merged_call_once_and_a_queue_has_its_own) {
  std::vector all{enqueue("queue", 1), enqueue("queue", 2), enqueue("queue", 1),
                  enqueue("other", 3), enqueue("queue", 3)};
  BOOST_TEST(runs(all) == (sizes{2, 2, 1}));
}

BOOST_AUTO_TEST_CASE(what_is_about_one_thing_keeps_its_order) {
  testing::dice random{1};
  std::array<std::string, 3> const keys{"one", "two", "three"};
  for (int round = 0; round != 2000; ++round) {
    std::vector<redis_convoy::request> all;
    for (auto n = 1 + random.below(60); n != 0; --n) {
      auto const& key = random.pick(keys);
      switch (random.below(6)) {
        case 0: all.push_back(take(key)); break;
        case 1: all.push_back(request_of(command::acquire_permit{key, "me", 1, 1s, {}})); break;
        case 2: all.push_back(request_of(command::release_permit{key, "me", 0})); break;
        case 3: all.push_back(request_of(command::inspect_permits{key, 1})); break;
        case 4: all.push_back(request_of(command::acquire_lock{key, "me", 1s})); break;
        default: all.push_back(enqueue(key, static_cast<std::uint8_t>(random.below(4)))); break;
      }
    }
    auto const before = all;
    auto const each = runs(all);
    std::map<std::string_view, std::vector<detail::redis_request const*>> was;
    std::map<std::string_view, std::vector<detail::redis_request const*>> is;
    for (auto const& r : before) was[r->call().about()].push_back(r.get());
    for (auto const& r : all) is[r->call().about()].push_back(r.get());
    BOOST_TEST_REQUIRE((was == is));
    std::size_t at = 0;
    for (auto const n : each) {
      for (std::size_t i = 1; i < n; ++i) {
        BOOST_TEST_REQUIRE(all[at]->call().joins(all[at + i]->call()));
      }
      at += n;
    }
    BOOST_TEST_REQUIRE(at == all.size());
  }
}

BOOST_AUTO_TEST_CASE(each_gets_what_the_reply_has_for_it) {
  // An answer with an array in it, an error, and what was not executed.
  std::vector const reply{value(redis_kind::array, 4, 0),
                          value(redis_kind::array, 2, 1),
                          number(2, "1"),
                          value(redis_kind::array, 1, 2),
                          number(3, "2"),
                          value(redis_kind::simple_error, 1, 1, "OOM"),
                          value(redis_kind::null, 1, 1),
                          number(1, "3")};
  BOOST_TEST(divided(reply, 4) == (texts{"[2 1 [1 2 ", "OOM ", "", "3 "}));
}

BOOST_AUTO_TEST_CASE(merged_ones_get_as_much_of_the_reply_each) {
  BOOST_TEST(divided({value(redis_kind::array, 0, 0)}, 2, true) == (texts{"[0 ", "[0 "}));
  std::vector const reply{value(redis_kind::array, 4, 0), number(1, "1"), number(1, "2"),
                          number(1, "3"), number(1, "4")};
  BOOST_TEST(divided(reply, 2, true) == (texts{"[2 1 2 ", "[2 3 4 "}));
  BOOST_TEST(divided(reply, 4, true) == (texts{"[1 1 ", "[1 2 ", "[1 3 ", "[1 4 "}));
}

BOOST_AUTO_TEST_CASE(a_refusal_or_nonsense_is_told_to_each) {
  std::vector const refusal{value(redis_kind::simple_error, 1, 0, "NOSCRIPT")};
  std::vector const rights{value(redis_kind::simple_error, 1, 0, "NOPERM")};
  // As servers from 7.0 on say it, and those before.
  texts const full{"OOM command not allowed",
                   "ERR Error running script: @user_script:1: -OOM command not allowed"};
  std::vector const short_of_one{value(redis_kind::array, 2, 0), number(1, "1"), number(1, "2")};
  std::vector const nested{value(redis_kind::array, 3, 0), value(redis_kind::array, 0, 1),
                           value(redis_kind::array, 1, 1), number(2, "1"), number(1, "2")};
  for (bool const merged : {false, true}) {
    BOOST_TEST(divided(refusal, 3, merged) == texts(3, "NOSCRIPT "));
    // Not of all of them, perhaps: each is to try by itself.
    BOOST_TEST(divided(rights, 3, merged) == texts(3, ""));
    // On its way: what came before that was done.
    std::string const late = "NOPERM ACL failure in script: no permissions to run the 'x' command";
    BOOST_TEST(divided({value(redis_kind::simple_error, 1, 0, late)}, 3, merged) ==
               texts(3, late + " "));
    for (auto const& text : full) {
      BOOST_TEST(divided({value(redis_kind::simple_error, 1, 0, text)}, 3, merged) ==
                 texts(3, merged ? "" : text + " "));
    }
    BOOST_TEST(divided(short_of_one, 3, merged) == texts(3, "[2 1 2 "));
  }
  BOOST_TEST(divided(nested, 3, true) == texts(3, "[3 [0 [1 1 2 "));
}

BOOST_AUTO_TEST_SUITE_END()
