// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Commands that travel as one are answered as if each had travelled alone, and readers find the
// same afterwards. What they are is random, and how many travel together.

#include "redis_raw.hpp"
#include "redis_server.hpp"
#include "weir/store/redis/batch.hpp"
#include "weir/store/redis/buckets.hpp"
#include "weir/store/redis/enqueues.hpp"
#include "weir/store/redis/job_ends.hpp"
#include "weir/store/redis/jobs.hpp"
#include "weir/store/redis/locks.hpp"
#include "weir/store/redis/permits.hpp"
#include "weir/store/redis/queues.hpp"
#include "weir/store/redis/script/generated.hpp"
#include "weir/testing/dice.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace redis_test;
namespace lua = detail::lua;
using nodes = std::vector<detail::redis_value>;

bool same(nodes const& a, nodes const& b) {
  return std::ranges::equal(a, b, [](auto const& x, auto const& y) {
    return x.data_type == y.data_type && x.aggregate_size == y.aggregate_size && x.value == y.value;
  });
}

std::string text(nodes const& all) {
  std::string out;
  for (auto const& n : all) out += n.value + " ";
  return out;
}

/// A command that is somewhere in a batch, and notes its reply.
struct noted final : detail::redis_request {
  noted(detail::redis_call together, detail::redis_call apart)
      : redis_request{std::move(together)},
        alone{std::move(apart)} {}
  [[nodiscard]] bool wanted() const noexcept override { return true; }
  void complete(detail::redis_reply&) noexcept override {}
  void fail(error_code) noexcept override {}

  detail::redis_call alone;  ///< the same, about keys of its own
  std::function<void(nodes const&)> use;
  nodes reply;
  bool was_parted = false;
};

class batches final : detail::redis_batch_owner {
 public:
  /// @param max_buckets of what travels together: a bound that is not reached changes nothing
  explicit batches(std::uint16_t port, std::size_t max_buckets = 0)
      : server_{port},
        together_{"together", 1, {}, max_buckets} {}

  void advance(duration d) { now_ += std::chrono::floor<std::chrono::microseconds>(d).count(); }
  raw& server() noexcept { return server_; }

  /// @param use is given the answer
  template <class C>
  void add(C const& c, std::function<void(typename C::result const&)> use = {}) {
    auto r = std::make_shared<noted>(detail::encode(together_, c, now_).value(),
                                     detail::encode(alone_, c, now_).value());
    if (use) {
      r->use = [c, use = std::move(use)](nodes const& reply) {
        detail::redis_reply read{reply};
        if (auto const got = detail::decode(c, read)) use(*got);
      };
    }
    batch_.add(r);
    all_.push_back(std::move(r));
  }

  /// Sends what was added. What is about one thing keeps its order; so each is asked by itself in
  /// the order that they have now.
  void go() {
    batch_.encode({}, known_);
    std::vector<std::shared_ptr<detail::redis_request>> const order{batch_.unanswered().begin(),
                                                                    batch_.unanswered().end()};
    BOOST_TEST_REQUIRE(order.size() == all_.size());
    std::size_t runs = 0;
    teach();
    server_.send(batch_.wire());
    batch_.belongs_to(*this);
    while (!batch_.unanswered().empty()) {
      batch_.reply(server_.reply());
      ++runs;
    }
    BOOST_TEST(runs == batch_.wire().commands());
    runs_ += runs;
    commands_ += all_.size();
    for (auto const& r : order) {
      auto& one = static_cast<noted&>(*r);
      if (one.was_parted) continue;
      auto const apart = eval(one.alone);
      BOOST_TEST_REQUIRE(same(one.reply, apart), text(one.reply) + "instead of " + text(apart));
      if (one.use) one.use(one.reply);
    }
    all_.clear();
    batch_.clear();
  }

  /// What a reader finds.
  template <class C>
  void find(C const& c) {
    auto const a = eval(detail::encode(together_, c, now_).value());
    auto const b = eval(detail::encode(alone_, c, now_).value());
    BOOST_TEST_REQUIRE(same(a, b), text(a) + "instead of " + text(b));
  }

  [[nodiscard]] std::vector<std::shared_ptr<noted>> const& all() const noexcept { return all_; }
  [[nodiscard]] std::size_t runs() const noexcept { return runs_; }
  [[nodiscard]] std::size_t commands() const noexcept { return commands_; }
  [[nodiscard]] std::size_t scripts() const noexcept { return taught_.size(); }

 private:
  void answered(std::shared_ptr<detail::redis_request> const& r,
                std::span<detail::redis_value const> reply) override {
    static_cast<noted&>(*r).reply.assign(reply.begin(), reply.end());
  }
  void parted(std::shared_ptr<detail::redis_request> const& r) override {
    static_cast<noted&>(*r).was_parted = true;
  }

  nodes eval(detail::redis_call const& call) {
    detail::redis_wire wire;
    call.push_with_source(wire);
    return server_.ask(wire);
  }

  void teach() {
    for (auto const& r : all_) {
      auto const* const script = &r->script();
      if (taught_.insert(script).second) server_.ask("SCRIPT", "LOAD", script->source());
    }
  }

  raw server_;
  detail::redis_names together_;
  detail::redis_names alone_{"alone", 1};
  std::int64_t now_ = 1'800'000'000'000'000;
  detail::redis_batch batch_;
  detail::redis_known_scripts known_;
  std::vector<std::shared_ptr<noted>> all_;
  std::set<detail::redis_script const*> taught_;
  std::size_t runs_ = 0;
  std::size_t commands_ = 0;
};

constexpr std::array<std::string_view, 2> keys{"one", "other"};
constexpr std::array<std::string_view, 4> holders{"a", "b", "c", "d"};
using held = std::pair<std::string_view, std::string_view>;  // key and holder

duration some_time(testing::dice& random) { return 1ms * (1 + static_cast<int>(random.below(40))); }

void add_permits(batches& to, testing::dice& random, std::map<held, std::uint64_t>& fences) {
  held const who{random.pick(keys), random.pick(holders)};
  auto const fence = fences[who];
  if (random.chance(50)) {
    auto const limit = static_cast<std::uint32_t>(1 + random.below(4));
    auto const patience = random.chance(40) ? some_time(random) : duration{};
    to.add(command::acquire_permit{who.first, who.second, limit, some_time(random), patience},
           [&fences, who](permit_grant const& g) {
             if (g.granted) fences[who] = g.fence;
           });
  } else if (random.chance(40) && fence != 0) {
    to.add(command::renew_permit{who.first, who.second, fence, some_time(random)});
  } else {
    to.add(command::release_permit{who.first, who.second, random.chance(50) ? fence : 0});
  }
}

void add_locks(batches& to, testing::dice& random, std::map<held, std::uint64_t>& fences) {
  held const who{random.pick(keys), random.pick(holders)};
  auto const fence = fences[who];
  if (random.chance(50)) {
    to.add(command::acquire_lock{who.first, who.second, some_time(random)},
           [&fences, who](lock_grant const& g) {
             if (g.granted) fences[who] = g.fence;
           });
  } else if (random.chance(40) && fence != 0) {
    to.add(command::renew_lock{who.first, who.second, fence, some_time(random)});
  } else {
    to.add(command::release_lock{who.first, who.second, random.chance(50) ? fence : 0});
  }
}

void add_a_bucket(batches& to, testing::dice& random,
                  std::map<std::string_view, bucket_mark>& marks) {
  static std::array const one{quota::per_second(333).burst(5)};
  static std::array const others{quota::per_second(70).burst(9), quota::per_minute(900).burst(20)};
  auto const key = random.pick(keys);
  bool const usual = random.chance(70);
  std::span<quota const> const quotas = usual ? std::span<quota const>{one} : others;
  auto const cost = 1 + random.below(3);
  if (random.chance(80)) {
    to.add(command::take{key, quotas, cost, random.chance(30) ? 20ms : 0ms},
           [&marks, key, usual](decision const& d) {
             if (d.allowed && usual) marks[key] = d.mark;
           });
  } else if (auto const mark = marks.find(key); mark != marks.end()) {
    to.add(command::refund{key, one, cost, mark->second, random.chance(50)});
  }
}

job_id numbered(std::uint64_t n) {
  job_id out{};
  out.data[15] = static_cast<std::uint8_t>(n + 1);
  return out;
}
constexpr std::uint64_t ids = 12;

void add_jobs(batches& to, testing::dice& random, std::vector<finished_job>& claimed) {
  static std::string const payload(300, 'x');
  auto const queue = random.pick(keys);
  if (random.chance(60)) {
    std::vector<new_job> jobs(random.chance(80) ? 1 : 3);
    auto id = random.below(ids);
    for (auto& j : jobs) {
      j.id = numbered(id++ % ids);
      j.kind = "kind";
      j.payload = std::string_view{payload}.substr(0, random.pick(std::array{3U, 300U}));
      j.priority = static_cast<std::uint8_t>(random.below(3));
      j.delay = random.chance(30) ? 10ms : 0ms;
      j.retention = random.chance(30) ? 30ms : 0ms;
    }
    to.add(command::enqueue_jobs{queue, jobs});
  } else if (random.chance(30)) {
    to.add(command::dequeue_jobs{queue, "me", 0, 1 + static_cast<std::uint32_t>(random.below(3)),
                                 50ms},
           [&claimed](dequeued const& got) {
             for (auto const& j : got.jobs) claimed.push_back({j.id, j.fence, {}});
           });
  } else if (!claimed.empty()) {
    auto const at = claimed.begin() + static_cast<std::ptrdiff_t>(random.below(claimed.size()));
    finished_job done = *at;
    done.result = random.chance(50) ? "done" : "";
    to.add(command::complete_jobs{queue, std::span{&done, 1}});
    if (random.chance(80)) claimed.erase(at);
  }
}

void compare(batches& ask) {
  for (auto const key : keys) {
    ask.find(command::inspect_permits{key, 10});
    ask.find(command::inspect_lock{key});
    static std::array const some{quota::per_second(333).burst(5)};
    ask.find(command::peek_bucket{key, some});
    ask.find(command::peek_jobs{key, 20});
    ask.find(command::read_queue_stats{key});
    for (std::uint64_t i = 0; i != ids; ++i) ask.find(command::find_job{key, numbered(i)});
  }
}

void answer_as_if_each_travelled_alone(std::size_t max_buckets) {
  server const s;
  batches ask{s.port(), max_buckets};
  testing::dice random{20261128 + max_buckets};
  std::map<held, std::uint64_t> permits;
  std::map<held, std::uint64_t> locks;
  std::map<std::string_view, bucket_mark> marks;
  std::vector<finished_job> claimed;
  for (int round = 0; round != 500; ++round) {
    ask.advance(100us + random.below(5) * 2ms);
    for (auto n = 1 + random.below(40); n != 0; --n) {
      switch (random.below(4)) {
        case 0: add_permits(ask, random, permits); break;
        case 1: add_locks(ask, random, locks); break;
        case 2: add_a_bucket(ask, random, marks); break;
        default: add_jobs(ask, random, claimed); break;
      }
    }
    if (!ask.all().empty()) ask.go();
    compare(ask);
  }
  BOOST_TEST(ask.runs() * 3 < ask.commands() * 2);
  // Eight of which several calls travel as one, each in two forms; two that take any number;
  // dequeues.
  BOOST_TEST(ask.scripts() == 19U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_together)

BOOST_AUTO_TEST_CASE(what_travels_as_one_is_answered_as_if_each_travelled_alone) {
  answer_as_if_each_travelled_alone(0);
}
BOOST_AUTO_TEST_CASE(F21_bounded_buckets_are_asked_together_as_if_each_travelled_alone) {
  answer_as_if_each_travelled_alone(1000);
}

BOOST_AUTO_TEST_SUITE_END()
