// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/id_source.hpp"

#include <boost/test/unit_test.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#if __has_include(<sys/wait.h>)
#include <sys/wait.h>

#include <unistd.h>
#endif

using weir::id_source;
using weir::job_id;

static_assert(std::copy_constructible<id_source>);
static_assert(std::is_nothrow_copy_constructible_v<id_source>);

namespace {

std::uint64_t milliseconds_of(job_id const& id) {
  std::uint64_t ms = 0;
  for (std::size_t i = 0; i < 6; ++i) ms = ms << 8U | id.data[i];
  return ms;
}

std::uint64_t milliseconds_now() {
  using std::chrono::duration_cast;
  auto const now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(duration_cast<std::chrono::milliseconds>(now).count());
}

/// A form of the source, so that each promise can be asked of both.
template <class Check>
void for_both(Check const& check) {
  check(id_source{});
  check(id_source::seeded(1));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ids)

BOOST_AUTO_TEST_CASE(a_job_id_is_a_version_7_uuid) {
  for_both([](id_source const& ids) {
    for (int i = 0; i < 100; ++i) {
      auto const id = ids.job();
      BOOST_TEST(id.version() == boost::uuids::uuid::version_time_based_v7);
      BOOST_TEST(id.variant() == boost::uuids::uuid::variant_rfc_4122);
    }
  });
}

BOOST_AUTO_TEST_CASE(job_ids_strictly_increase) {
  for_both([](id_source const& ids) {
    auto last = ids.job();
    for (int i = 0; i < 200'000; ++i) {  // many within a millisecond, and within a tick
      auto const next = ids.job();
      BOOST_REQUIRE(next > last);
      last = next;
    }
  });
}

BOOST_AUTO_TEST_CASE(F52_order_grows_when_the_date_is_set_back) {
  weir::detail::growing_number order;
  BOOST_TEST(order.next(100) == 100U);
  BOOST_TEST(order.next(100) == 101U);
  BOOST_TEST(order.next(7) == 102U);
  BOOST_TEST(order.next(102) == 103U);
  BOOST_TEST(order.next(200) == 200U);
}

BOOST_AUTO_TEST_CASE(order_is_given_out_once) {
  weir::detail::growing_number order;
  std::array<std::vector<std::uint64_t>, 4> given;
  std::vector<std::thread> threads;
  for (auto& mine : given) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 50'000; ++i) mine.push_back(order.next(i / 1000));
    });
  }
  for (auto& thread : threads) thread.join();
  std::set<std::uint64_t> all;
  for (auto const& mine : given) all.insert(mine.begin(), mine.end());
  BOOST_TEST(all.size() == 200'000U);
}

BOOST_AUTO_TEST_CASE(order_tells_dates_apart_within_a_millisecond) {
  weir::time_point const date = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};
  BOOST_TEST((weir::detail::uuid_order(date) >> 16U) == 1'767'225'600'000U);
  BOOST_TEST((weir::detail::uuid_order(date) & 0xffffU) == 0U);
  BOOST_TEST((weir::detail::uuid_order(date + weir::duration{500'000}) & 0xffffU) == 0x8000U);
  BOOST_TEST((weir::detail::uuid_order(date + weir::duration{999'999}) & 0xffffU) == 0xffffU);
  BOOST_TEST(weir::detail::uuid_order(date + weir::duration{1'000'000}) ==
             weir::detail::uuid_order(date) + 0x10000U);
}

BOOST_AUTO_TEST_CASE(a_job_id_begins_with_the_date) {
  id_source const ids;
  auto const before = milliseconds_now();
  auto const id = ids.job();
  auto const after = milliseconds_now();
  BOOST_TEST(milliseconds_of(id) >= before);
  BOOST_TEST(milliseconds_of(id) <= after);
}

BOOST_AUTO_TEST_CASE(job_ids_of_threads_differ_and_increase_in_each) {
  for_both([](id_source const& ids) {
    constexpr std::size_t per_thread = 20'000;
    std::array<std::vector<job_id>, 4> made;
    std::vector<std::thread> threads;
    for (auto& mine : made) {
      threads.emplace_back([ids, &mine] {
        for (std::size_t i = 0; i < per_thread; ++i) mine.push_back(ids.job());
      });
    }
    for (auto& thread : threads) thread.join();
    std::set<job_id> all;
    for (auto const& mine : made) {
      BOOST_TEST(std::is_sorted(mine.begin(), mine.end()));
      all.insert(mine.begin(), mine.end());
    }
    BOOST_TEST(all.size() == made.size() * per_thread);
  });
}

BOOST_AUTO_TEST_CASE(a_holder_id_is_short_printable_and_unique) {
  for_both([](id_source const& ids) {
    std::set<std::string> seen;
    for (int i = 0; i < 10'000; ++i) {
      auto const holder = ids.holder();
      BOOST_TEST(holder.size() == 26U);
      BOOST_TEST(holder.find_first_not_of("0123456789abcdefghjkmnpqrstvwxyz") == std::string::npos);
      seen.insert(holder);
    }
    BOOST_TEST(seen.size() == 10'000U);
  });
}

BOOST_AUTO_TEST_CASE(every_digit_of_a_holder_id_varies) {
  for_both([](id_source const& ids) {
    std::array<std::set<char>, 26> seen;
    for (int i = 0; i < 1000; ++i) {
      auto const holder = ids.holder();
      for (std::size_t k = 0; k < seen.size(); ++k) seen[k].insert(holder[k]);
    }
    // The first digit has three bits; of two others, six bits in all are a UUID's and fixed.
    BOOST_TEST(seen[0].size() == 8U);
    for (auto const& digits : seen) BOOST_TEST(digits.size() >= 2U);
    auto const all_32 = std::ranges::count(seen, 32U, &std::set<char>::size);
    BOOST_TEST(all_32 >= 21);
  });
}

BOOST_AUTO_TEST_CASE(entropy_uses_all_bits_evenly) {
  for_both([](id_source const& ids) {
    std::array<int, 64> ones{};
    constexpr int draws = 4000;
    for (int i = 0; i < draws; ++i) {
      auto const bits = ids.entropy();
      for (std::size_t k = 0; k < ones.size(); ++k) ones[k] += static_cast<int>(bits >> k & 1U);
    }
    for (int const n : ones) {  // 6.3 standard deviations
      BOOST_TEST(n > draws / 2 - 200);
      BOOST_TEST(n < draws / 2 + 200);
    }
  });
}

BOOST_AUTO_TEST_CASE(copies_share_the_source) {
  auto const one = id_source::seeded(5);
  auto const copy = one;
  auto const reference = id_source::seeded(5);
  BOOST_TEST(one.entropy() == reference.entropy());
  BOOST_TEST(copy.entropy() == reference.entropy());
  BOOST_TEST(one.job() == reference.job());
  BOOST_TEST(copy.job() == reference.job());
}

BOOST_AUTO_TEST_CASE(equal_seeds_give_equal_sequences) {
  for (std::uint64_t const seed : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    auto const a = id_source::seeded(seed);
    auto const b = id_source::seeded(seed);
    for (int i = 0; i < 100; ++i) {
      BOOST_TEST(a.entropy() == b.entropy());
      BOOST_TEST(a.holder() == b.holder());
      BOOST_TEST(a.job() == b.job());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_seeded_sequence_is_the_same_in_every_release) {
  auto const ids = id_source::seeded(42);
  BOOST_TEST(ids.entropy() == 13888494192909975590U);
  BOOST_TEST(ids.holder() == "17j61spv4wnwjs30fx5xy39ft2");
  BOOST_TEST(to_string(ids.job()) == "019b76da-a800-7000-8370-fc7a2696a089");
  BOOST_TEST(to_string(ids.job()) == "019b76da-a800-7004-84bb-eecd90507c86");
}

BOOST_AUTO_TEST_CASE(seeded_sequences_do_not_depend_on_each_other) {
  auto const a = id_source::seeded(9);
  auto const b = id_source::seeded(9);
  for (int i = 0; i < 10; ++i) (void)a.entropy();
  (void)a.holder();
  BOOST_TEST(a.job() == b.job());
  BOOST_TEST(a.holder() != b.holder());
}

BOOST_AUTO_TEST_CASE(sources_and_seeds_differ) {
  std::set<std::string> holders;
  std::set<std::uint64_t> bits;
  std::set<job_id> jobs;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (auto const& ids : {id_source::seeded(seed), id_source{}}) {
      for (int i = 0; i < 10; ++i) {
        holders.insert(ids.holder());
        bits.insert(ids.entropy());
        jobs.insert(ids.job());
      }
    }
  }
  BOOST_TEST(holders.size() == 2000U);
  BOOST_TEST(bits.size() == 2000U);
  BOOST_TEST(jobs.size() == 2000U);
}

#if __has_include(<sys/wait.h>)

BOOST_AUTO_TEST_CASE(a_forked_process_makes_other_ids) {
  id_source const ids;
  (void)ids.holder();  // the generator is there before it is copied
  std::array<int, 2> ends{};
  BOOST_REQUIRE(::pipe(ends.data()) == 0);
  auto const child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    auto const made = ids.holder();
    auto const written = ::write(ends[1], made.data(), made.size());
    ::_exit(written == static_cast<ssize_t>(made.size()) ? 0 : 1);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
  std::string theirs(26, ' ');
  BOOST_REQUIRE(::read(ends[0], theirs.data(), theirs.size()) == 26);
  ::close(ends[0]);
  ::close(ends[1]);
  BOOST_TEST(theirs != ids.holder());
}

#endif

BOOST_AUTO_TEST_SUITE_END()
