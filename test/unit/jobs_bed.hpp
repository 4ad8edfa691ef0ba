// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_UNIT_JOBS_BED_HPP
#define WEIR_TEST_UNIT_JOBS_BED_HPP

#include "weir/rule/validate.hpp"
#include "weir/store/memory/jobs.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace test {

using namespace weir;
using namespace std::chrono_literals;

/// Ids that order as their numbers do.
inline job_id id_of(std::uint64_t n) {
  job_id id;
  for (std::size_t i = 0; i < 8; ++i) {
    id.data[8 + i] = static_cast<std::uint8_t>(n >> (8 * (7 - i)));
  }
  return id;
}

/// The same, backwards, for messages.
inline std::uint64_t number_of(job_id const& id) {
  std::uint64_t n = 0;
  for (std::size_t i = 8; i < 16; ++i) n = n << 8 | id.data[i];
  return n;
}

inline new_job make_job(std::uint64_t n) {
  new_job j;
  j.id = id_of(n);
  j.kind = "kind";
  j.payload = "payload";
  return j;
}

inline new_job unique_job(std::uint64_t n, unique_strategy s,
                          conflict_policy p = conflict_policy::discard,
                          std::string_view key = "key") {
  auto j = make_job(n);
  j.strategy = s;
  j.on_conflict = p;
  j.unique_key = key;
  if (s == unique_strategy::until_expired) j.unique_ttl = 60s;
  return j;
}

/// The jobs of a memory store at a time that the test sets, and short ways to say what is asked of
/// them. What is asked is valid, and R4's sum is checked whenever a queue was changed.
class jobs_bed {
 public:
  explicit jobs_bed(memory_options const& options = {}) : jobs{options} {}

  template <class C>
  auto ask(C const& c) {
    BOOST_TEST_REQUIRE(!rule::validate(c));
    auto out = jobs.apply(c, now);
    if constexpr (requires { c.queue; }) check_sum(c.queue);
    return out;
  }
  template <class C>
  auto get(C const& c) {
    auto r = ask(c);
    BOOST_TEST_REQUIRE(r.has_value(), "answered " << r.error().message());
    return std::move(r).value();
  }
  template <class C>
  error_code error(C const& c) {
    auto const r = ask(c);
    return r.has_value() ? error_code{} : r.error();
  }

  enqueued enqueue(new_job const& j) {
    return get(command::enqueue_jobs{.queue = queue, .jobs = {&j, 1}}).front();
  }
  void enqueue(std::uint64_t n) { enqueue(make_job(n)); }

  dequeued dequeue(std::uint32_t limit = 10, duration lease = 30s, std::string_view holder = "h",
                   std::uint64_t sequence = 0) {
    return get(command::dequeue_jobs{
        .queue = queue, .holder = holder, .sequence = sequence, .limit = limit, .lease = lease});
  }
  /// Claims the one job that there must be.
  leased_job claim(duration lease = 30s, std::string_view holder = "h") {
    auto got = dequeue(1, lease, holder);
    BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
    return got.jobs.front();
  }
  std::vector<std::uint64_t> claim_all(std::uint32_t limit = 10, duration lease = 30s) {
    return numbers(dequeue(limit, lease).jobs);
  }
  template <class Jobs>
  static std::vector<std::uint64_t> numbers(Jobs const& jobs) {
    std::vector<std::uint64_t> out;
    for (auto const& j : jobs) out.push_back(number_of(j.id));
    return out;
  }

  complete_outcome complete(leased_job const& j, std::string_view result = {}) {
    finished_job const f{.id = j.id, .fence = j.fence, .result = result};
    return get(command::complete_jobs{.queue = queue, .jobs = {&f, 1}}).front();
  }
  requeue_outcome requeue(leased_job const& j, duration delay = {},
                          std::string_view reason = "failed") {
    return get(command::requeue_job{
        .queue = queue, .id = j.id, .fence = j.fence, .delay = delay, .reason = reason});
  }
  void snooze(leased_job const& j, duration delay = {}, std::string_view memo = {}) {
    get(command::snooze_job{
        .queue = queue, .id = j.id, .fence = j.fence, .delay = delay, .memo = memo});
  }
  void give_back(leased_job const& j) {
    get(command::return_job{.queue = queue, .id = j.id, .fence = j.fence});
  }
  void bury(leased_job const& j, std::string_view reason = "hopeless") {
    get(command::bury_job{.queue = queue, .id = j.id, .fence = j.fence, .reason = reason});
  }
  void extend(leased_job const& j, duration lease) {
    get(command::extend_lease{.queue = queue, .id = j.id, .fence = j.fence, .lease = lease});
  }
  started start(leased_job const& j) {
    return get(command::start_job{.queue = queue, .id = j.id, .fence = j.fence});
  }
  cancel_outcome cancel(std::uint64_t n, bool running = false) {
    return get(command::cancel_job{.queue = queue, .id = id_of(n), .running = running});
  }
  replayed replay_of(std::uint64_t n, duration delay = {}) {
    return get(command::replay_dead_letter{.queue = queue, .id = id_of(n), .delay = delay});
  }
  replay_outcome replay(std::uint64_t n, duration delay = {}) {
    return replay_of(n, delay).outcome;
  }
  bool purge(std::uint64_t n) { return get(command::purge_job{.queue = queue, .id = id_of(n)}); }
  std::optional<job> find(std::uint64_t n) {
    return get(command::find_job{.queue = queue, .id = id_of(n)});
  }
  job require(std::uint64_t n) {
    auto j = find(n);
    BOOST_TEST_REQUIRE(j.has_value());
    return *j;
  }
  std::optional<duration> min_vesting() { return get(command::min_vesting_time{.queue = queue}); }
  queue_stats stats() { return get(command::read_queue_stats{.queue = queue}); }
  job_page dead_letters(std::uint32_t limit = 100, std::string_view cursor = {}) {
    return get(command::list_dead_letters{.queue = queue, .limit = limit, .cursor = cursor});
  }
  visible_queues scan(std::uint32_t limit = 100) {
    return get(command::scan_visible_queues{.shard = 0, .limit = limit});
  }
  std::uint32_t gc(duration grace = {}) {
    return get(command::gc_stale_pointers{.shard = 0, .limit = 100, .grace = grace});
  }

  /// R4: every job is in exactly one state.
  void check_sum(std::string_view name) {
    auto const s = jobs.apply(command::read_queue_stats{.queue = name}, now).value();
    auto const sum = s.pending + s.leased + s.completed + s.dead + s.cancelled + s.purged;
    BOOST_TEST(s.enqueued == sum, "enqueued " << s.enqueued << ", in states " << sum);
  }

  detail::memory_jobs jobs;
  time_point now{1'800'000'000s};
  std::string_view queue = "q";
};

using list = std::vector<std::uint64_t>;

}  // namespace test

namespace weir {

// So that BOOST_TEST can print what it compares.
template <class E>
  requires std::is_enum_v<E>
std::ostream& operator<<(std::ostream& out, E e) {
  return out << static_cast<int>(e);
}

}  // namespace weir

template <>
struct boost::test_tools::tt_detail::print_log_value<std::optional<weir::duration>> {
  void operator()(std::ostream& out, std::optional<weir::duration> const& d) {
    if (d) {
      out << d->count() << " ns";
    } else {
      out << "none";
    }
  }
};

template <>
struct boost::test_tools::tt_detail::print_log_value<weir::duration> {
  void operator()(std::ostream& out, weir::duration const& d) { out << d.count() << " ns"; }
};

#endif
