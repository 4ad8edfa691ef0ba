// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "jobs_bed.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/model/jobs.hpp"

#include <boost/pfr/core.hpp>
#include <boost/test/results_collector.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Generated histories: each command is given to the store and to a naive model, and every answer
// must be the same.

namespace {

using namespace test;

/// Are all their parts equal?
template <class T>
bool same(T const& a, T const& b) {
  if constexpr (std::is_convertible_v<T, std::string_view>) {
    return a == b;
  } else if constexpr (requires { a.has_value(); }) {
    if (a.has_value() && b.has_value()) return same(a.value(), b.value());
    if constexpr (requires { a.error(); }) return a.error() == b.error();
    return a.has_value() == b.has_value();
  } else if constexpr (std::ranges::range<T>) {
    return std::ranges::equal(a, b, [](auto const& x, auto const& y) { return same(x, y); });
  } else if constexpr (std::is_aggregate_v<T>) {
    bool out = true;
    boost::pfr::for_each_field(a, [&](auto const& field, auto i) {
      out = out && same(field, boost::pfr::get<decltype(i)::value>(b));
    });
    return out;
  } else {
    return a == b;
  }
}

/// Text is made of them only where they differ.
template <class T>
void expect_same(char const* name, T const& got, T const& expected) {
  if (same(got, expected)) return;
  BOOST_ERROR(name << ": got " << testing::to_text(testing::fields_of(got)) << ", expected "
                   << testing::to_text(testing::fields_of(expected)));
}

/// What the histories have met, over all of them: an outcome that never comes is not tested.
std::set<std::string> met;

class history {
 public:
  explicit history(std::uint32_t seed) : random_{seed} {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      pass_time();
      step();
      check_promises();
      if (i % 16 == 0) check_everything();
      BOOST_TEST_REQUIRE(boost::unit_test::results_collector
                                 .results(boost::unit_test::framework::current_test_case().p_id)
                                 .p_assertions_failed == 0U,
                         "the history stops at step " << i);
    }
    check_everything();
    if (model_.displaced > 0) met.insert("a job that cannot run gives its key up");
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  duration seconds(std::uint32_t least, std::uint32_t most) {
    return std::chrono::seconds{least + below(most - least + 1)};
  }
  template <class T, std::size_t N>
  T pick(std::array<T, N> const& from) {
    return from[below(N)];
  }
  std::string_view queue() { return pick(queues); }
  std::string_view holder() {
    return pick(std::array<std::string_view, 3>{"ann", "bob", "a holder with a longer name"});
  }

  /// A lease that somebody got some time ago, or nothing real.
  leased_job lease() {
    leased_job l;
    if (leases_.empty() || one_in(20)) {
      l.id = id_of(1 + below(next_id_));
      l.fence = below(5);
      queue_ = queue();
      return l;
    }
    auto const recent = std::min<std::size_t>(leases_.size(), 12);
    auto const& [q, id, fence] =
        leases_[leases_.size() - 1 - below(static_cast<std::uint32_t>(recent))];
    queue_ = q;
    l.id = id;
    l.fence = fence;
    return l;
  }
  job_id known_id() {
    return id_of(one_in(3) ? 1 + below(next_id_) : next_id_ - below(std::min(next_id_, 12U)));
  }

  bool leased(testing::job_model::entry const& e) const {
    return model_.state(e) == job_state::leased;
  }
  /// A leased job whose run lock another one has; null: there is none. It is seldom met by chance.
  testing::job_model::entry const* kept_waiting() const {
    for (auto const& e : model_.jobs) {
      if (!leased(e) || e.running || !holds_while_running(e.strategy)) continue;
      for (auto const& o : model_.jobs) {
        if (o.running && leased(o) && o.queue == e.queue && o.key == e.key) return &e;
      }
    }
    return nullptr;
  }

  void pass_time() {
    switch (below(4)) {
      case 0: break;
      case 1: now_ += std::chrono::milliseconds{below(1000)}; break;
      case 2: now_ += seconds(1, 3); break;
      default:
        if (one_in(6)) now_ += seconds(5, 30);
    }
    model_.now = now_;
  }

  /// Asks both, and gives what both answered.
  template <class C>
  auto both(char const* name, C const& c) {
    BOOST_TEST_REQUIRE(!rule::validate(c));
    auto answer = jobs_.apply(c, now_);
    auto const expected = model_.execute(c, now_);
    expect_same(name, answer, expected);
    if (answer.has_error()) {
      met.insert(name + std::string{": "} + answer.error().message());
    } else {
      meet(name, answer.value());
    }
    return answer;
  }

  template <class T>
  static void meet(std::string const& name, T const& answer) {
    if constexpr (std::is_enum_v<T>) {
      met.insert(name + " " + std::to_string(static_cast<int>(answer)));
    } else if constexpr (requires { answer.outcome; }) {
      meet(name, answer.outcome);
    } else if constexpr (std::is_same_v<T, dequeued>) {
      if (answer.dead_lettered > 0) met.insert("dequeue buries");
      if (answer.held) met.insert("dequeue of a held queue");
      if (answer.held && !answer.jobs.empty()) met.insert("dequeue repeated on a held queue");
    } else if constexpr (requires { answer.begin(); }) {
      for (auto const& e : answer) meet(name, e);
    } else if constexpr (std::is_same_v<T, bool>) {
      met.insert(name + (answer ? " yes" : " no"));
    } else if constexpr (std::is_same_v<T, std::uint32_t>) {
      met.insert(name + (answer > 0 ? " some" : " none"));
    } else if constexpr (requires { answer.granted; }) {
      met.insert(name + (answer.granted ? " yes" : " no"));
    } else if constexpr (requires { answer.freed; }) {
      met.insert(name + (answer.freed ? " yes" : " no"));
    }
  }

  void note(std::string_view q, job_id id, std::uint64_t fence) {
    if (granted_.insert(fence).second) {  // an answer may be one that was given before
      BOOST_TEST(fence > last_fence_, "R5: fences grow");
      last_fence_ = fence;
      leases_.emplace_back(q, id, fence);
    } else {
      met.insert("lease given again");
    }
  }

  new_job newcomer() {
    new_job j;
    j.id = one_in(10) ? known_id() : id_of(++next_id_);
    j.kind = one_in(2) ? "k" : "a kind whose name is rather long";
    j.payload = one_in(2) ? "p" : "a payload that does not fit into a small string";
    j.priority = pick(std::array<std::uint8_t, 4>{0, 1, 100, 255});
    j.delay = one_in(2) ? duration{} : seconds(0, 10);
    j.max_attempts = 1 + below(3);
    j.strategy = static_cast<unique_strategy>(below(6));
    j.on_conflict = static_cast<conflict_policy>(below(5));
    if (j.strategy != unique_strategy::none)
      j.unique_key = pick(std::array<std::string_view, 3>{"x", "y", "z"});
    if (j.strategy == unique_strategy::until_expired) j.unique_ttl = seconds(1, 20);
    if (one_in(4)) j.deadline = seconds(1, 20);
    if (one_in(2)) j.retention = seconds(1, 20);
    return j;
  }

  void step() {
    switch (below(40)) {
      default: {
        std::vector<new_job> batch(one_in(4) ? 1 + below(4) : 1);
        for (auto& j : batch) j = newcomer();
        both("enqueue", command::enqueue_jobs{.queue = queue(), .jobs = batch});
        break;
      }
      case 10:
      case 11:
      case 12:
      case 13:
      case 14:
      case 15: {
        command::dequeue_jobs c{.queue = queue(),
                                .holder = holder(),
                                .sequence = sequence(),
                                .limit = 1 + below(4),
                                .lease = seconds(1, 15)};
        if (one_in(4)) c = last_dequeue_;  // its reply was lost
        last_dequeue_ = c;
        auto const got = both("dequeue", c).value();
        for (auto const& j : got.jobs) note(c.queue, j.id, j.fence);
        break;
      }
      case 16: {
        command::obtain_lease const c{
            .queue = queue(), .id = known_id(), .holder = holder(), .lease = seconds(1, 15)};
        if (auto const got = both("obtain_lease", c).value()) note(c.queue, got->id, got->fence);
        break;
      }
      case 17:
      case 18:
      case 19: {
        std::vector<finished_job> done;
        auto const l = lease();
        done.push_back({l.id, l.fence, "a result"});
        if (one_in(4)) done.push_back({l.id, l.fence, "another"});
        both("complete", command::complete_jobs{.queue = queue_, .jobs = done});
        break;
      }
      case 20: {
        auto const l = lease();
        both("extend", command::extend_lease{.queue = queue_,
                                             .id = l.id,
                                             .fence = l.fence,
                                             .lease = seconds(1, 15),
                                             .progress = one_in(2) ? "1/2" : "",
                                             .checkpoint = one_in(2) ? "as far as here" : ""});
        break;
      }
      case 21:
      case 22:
      case 23: {
        auto l = lease();
        std::string q{queue_};
        if (auto const* const e = one_in(2) ? kept_waiting() : nullptr) {
          q = e->queue;
          l.id = e->id;
          l.fence = e->fence;
        }
        both("start", command::start_job{.queue = q, .id = l.id, .fence = l.fence});
        break;
      }
      case 24: {
        auto const l = lease();
        both("requeue", command::requeue_job{.queue = queue_,
                                             .id = l.id,
                                             .fence = l.fence,
                                             .delay = seconds(0, 9),
                                             .reason = "why"});
        break;
      }
      case 25: {
        auto const l = lease();
        both("snooze", command::snooze_job{.queue = queue_,
                                           .id = l.id,
                                           .fence = l.fence,
                                           .delay = seconds(0, 9),
                                           .memo = "memo"});
        break;
      }
      case 26: {
        auto const l = lease();
        both("return", command::return_job{.queue = queue_, .id = l.id, .fence = l.fence});
        break;
      }
      case 27: {
        auto const l = lease();
        if (one_in(2))
          both("bury",
               command::bury_job{.queue = queue_, .id = l.id, .fence = l.fence, .reason = "r"});
        break;
      }
      case 28:
        both("cancel",
             command::cancel_job{.queue = queue(), .id = known_id(), .running = one_in(2)});
        break;
      case 29:
        both("replay", command::replay_dead_letter{
                           .queue = queue(), .id = known_id(), .delay = seconds(0, 5)});
        break;
      case 30: both("purge", command::purge_job{.queue = queue(), .id = known_id()}); break;
      case 31: both("update pointer", command::update_queue_pointer{.queue = queue()}); break;
      case 32:
        both("gc", command::gc_stale_pointers{
                       .shard = 0, .limit = 1 + below(3), .grace = seconds(0, 10)});
        break;
      case 33:
        if (one_in(3))
          both("snooze queue", command::snooze_queue{.queue = queue(), .delay = seconds(0, 10)});
        break;
      case 34:
        if (one_in(4)) both("pause", command::pause_queue{.queue = queue()});
        break;
      case 35: both("resume", command::resume_queue{.queue = queue()}); break;
      case 36: {
        command::obtain_queue_lease const c{
            .queue = queue(), .holder = holder(), .lease = seconds(1, 15)};
        auto const got = both("obtain queue lease", c).value();
        if (got.granted) queue_fence_ = got.fence;
        last_fence_ = std::max(last_fence_, got.fence);
        break;
      }
      case 37:
        both("release queue lease",
             command::release_queue_lease{
                 .queue = queue(), .holder = holder(), .fence = one_in(2) ? 0 : queue_fence_});
        break;
      case 38: both("peek", command::peek_jobs{.queue = queue(), .limit = 1 + below(5)}); break;
      case 39: both("scan", command::scan_visible_queues{.shard = 0, .limit = 1 + below(3)}); break;
    }
  }

  std::uint64_t sequence() {
    if (one_in(3)) return 0;
    return one_in(2) ? sequence_ : ++sequence_;
  }

  void check_promises() {
    auto const scan =
        jobs_.apply(command::scan_visible_queues{.shard = 0, .limit = 10}, now_).value();
    for (auto const q : queues) {
      auto const s = both("stats", command::read_queue_stats{.queue = q}).value();
      BOOST_TEST(s.enqueued == s.pending + s.leased + s.completed + s.dead + s.cancelled + s.purged,
                 "R4");
      // A queue with a visible job that is not held is found by a scan; one with jobs is scanned no
      // later than they vest.
      auto const head = jobs_.apply(command::min_vesting_time{.queue = q}, now_).value();
      if (!head || model_.held(q)) continue;
      bool const found = std::find(scan.queues.begin(), scan.queues.end(), q) != scan.queues.end();
      BOOST_TEST((found || (*head > duration::zero() && scan.next_in && *scan.next_in <= *head)),
                 "pointer of " << q);
    }
  }

  void check_everything() {
    std::map<std::pair<std::string, std::string>, int> until_executed;
    std::map<std::pair<std::string, std::string>, int> running;
    for (auto const& e : model_.jobs) {
      auto const found = both("find", command::find_job{.queue = e.queue, .id = e.id}).value();
      if (e.forgotten || !found) continue;
      BOOST_TEST(found->attempts <= found->max_attempts, "R4");
      if (!is_terminal(found->state) && e.strategy == unique_strategy::until_executed)
        ++until_executed[{e.queue, e.key}];
      if (e.running && found->state == job_state::leased) ++running[{e.queue, e.key}];
    }
    for (auto const& [key, n] : until_executed) BOOST_TEST(n <= 1, "R2: one job of a key");
    for (auto const& [key, n] : running) BOOST_TEST(n <= 1, "R2: one running job of a key");
    for (auto const q : queues) {
      std::vector<job> pages;
      std::string cursor;
      do {
        auto page =
            jobs_
                .apply(
                    command::list_dead_letters{.queue = q, .limit = 1 + below(3), .cursor = cursor},
                    now_)
                .value();
        for (auto& j : page.jobs) pages.push_back(std::move(j));
        cursor = page.cursor;
      } while (!cursor.empty());
      command::list_dead_letters const all{.queue = q, .limit = 1, .cursor = {}};
      expect_same("dead letters", pages, model_.execute(all, now_)->jobs);
      both("peek", command::peek_jobs{.queue = q, .limit = 100});
    }
    both("scan", command::scan_visible_queues{.shard = 0, .limit = 10});
    command::list_queues const names{.shard = 0, .limit = 10, .cursor = {}};
    BOOST_TEST(jobs_.apply(names, now_)->queues == model_.execute(names, now_)->queues);
  }

  static constexpr std::array<std::string_view, 3> queues{"mail", "reports", "z"};

  std::mt19937 random_;
  detail::memory_jobs jobs_{memory_options{}};
  testing::job_model model_;
  time_point now_{1'800'000'000s};
  std::uint32_t next_id_ = 1;
  std::uint64_t sequence_ = 0;
  std::uint64_t last_fence_ = 0;
  std::uint64_t queue_fence_ = 0;
  std::set<std::uint64_t> granted_;
  std::deque<std::tuple<std::string, job_id, std::uint64_t>> leases_;
  std::string_view queue_ = "mail";
  command::dequeue_jobs last_dequeue_{
      .queue = "mail", .holder = "ann", .sequence = 1, .limit = 1, .lease = 1s};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_jobs_histories)

BOOST_AUTO_TEST_CASE(R2_R4_R5_short_histories) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) { history{seed}.run(100); }
  }
}

BOOST_AUTO_TEST_CASE(R2_R4_R5_long_histories) {
  for (std::uint32_t seed = 1000; seed < 1020; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) { history{seed}.run(1500); }
  }
}

// The histories have no such texts.
BOOST_AUTO_TEST_CASE(F60_long_reasons_and_large_answers_are_cut_alike) {
  detail::memory_jobs store{memory_options{}};
  testing::job_model model;
  time_point const now{1'800'000'000s};
  auto const both = [&](char const* name, auto const& c) {
    auto const got = store.apply(c, now);
    auto const expected = model.execute(c, now);
    BOOST_TEST_REQUIRE(got.has_value());
    expect_same(name, *got, *expected);
    return *got;
  };
  std::string const payload(limits::payload_size, 'p');
  std::vector<new_job> jobs(6);
  for (std::uint8_t i = 0; i < jobs.size(); ++i) {
    jobs[i].id.data[15] = i;
    jobs[i].kind = "kind";
    jobs[i].payload = payload;
  }
  both("enqueue", command::enqueue_jobs{.queue = "q", .jobs = jobs});
  BOOST_TEST(both("peek", command::peek_jobs{.queue = "q", .limit = 6}).size() == 3U);
  auto const first = both("dequeue", command::dequeue_jobs{"q", "ann", 1, 6, 1h}).jobs;
  BOOST_TEST_REQUIRE(first.size() == 3U);
  for (std::size_t i = 0; i < first.size(); ++i) {
    // Its last character is cut, is whole, or is no character.
    std::string const why = std::string(limits::reason_size - i % 2 - 1, 'r') +
                            (i == 2 ? std::string(9, '\x80') : "\xc3\xa9\xc3\xa9");
    both("requeue", command::requeue_job{"q", first[i].id, first[i].fence, 1h, why});
    both("find", command::find_job{"q", first[i].id});
  }
  auto const rest = both("dequeue", command::dequeue_jobs{"q", "ann", 2, 6, 1h});
  BOOST_TEST(rest.jobs.size() == 3U);
  std::string const why(2 * limits::reason_size, 'r');
  both("bury", command::bury_job{"q", rest.jobs[0].id, rest.jobs[0].fence, why});
  both("find", command::find_job{"q", rest.jobs[0].id});
}

BOOST_AUTO_TEST_CASE(the_histories_met_every_outcome) {
  std::vector<std::string> expected{"dequeue buries",
                                    "a job that cannot run gives its key up",
                                    "dequeue of a held queue",
                                    "dequeue repeated on a held queue",
                                    "lease given again",
                                    "purge yes",
                                    "purge no",
                                    "gc some",
                                    "gc none",
                                    "obtain queue lease yes",
                                    "obtain queue lease no",
                                    "release queue lease yes",
                                    "release queue lease no"};
  auto const outcomes = [&](std::string const& name, int n) {
    for (int i = 0; i < n; ++i) expected.push_back(name + " " + std::to_string(i));
  };
  outcomes("enqueue", 4);
  outcomes("complete", 2);
  outcomes("start", 2);
  outcomes("requeue", 2);
  outcomes("cancel", 4);
  outcomes("replay", 3);
  for (auto const* name : {"extend", "start", "requeue", "snooze", "return", "bury"}) {
    expected.push_back(std::string{name} + ": " + make_error_code(errc::lease_lost).message());
  }
  for (auto const& e : expected) BOOST_TEST(met.contains(e), "never met: " << e);
}

BOOST_AUTO_TEST_SUITE_END()
