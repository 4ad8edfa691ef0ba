// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/sqlite/job_front.hpp"
#include "weir/store/sqlite/schema.hpp"
#include "weir/testing/dice.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace {

using namespace weir;
using detail::sqlite_connection;
using detail::sqlite_job_front;
using place = sqlite_job_front::place;

job_id id_of(std::uint64_t n) {
  job_id out{};
  for (std::size_t i = 0; i != 8; ++i) out.data[15 - i] = static_cast<std::uint8_t>(n >> (8 * i));
  return out;
}
time_point at(std::int64_t t) { return time_point{duration{t}}; }

/// A queue's order in a database, and what it has to be.
struct bed {
  bed() { db.run(detail::sqlite_migrations[0]); }

  void add(sqlite_job_front* front, std::uint8_t priority, place const& p) {
    detail::sqlite_run(
        db,
        "INSERT INTO weir_jobs (queue, id, priority, vesting, state, attempts, max_attempts, "
        "snoozes, fence, holder, sequence, unclaimed, strategy, policy, enqueued, deadline_from, "
        "deadline, retention, unique_key, kind, memo, reason, result, payload) VALUES (1, ?, ?, ?, "
        "0, 0, 1, 0, 1, x'68', 0, 0, 0, 0, 0, 0, 0, 0, x'', x'6b', x'', x'', x'', x'')",
        p.id, priority, p.vesting);
    expected[priority].insert(p);
    if (front != nullptr) front->add(priority, p);
  }
  void remove(std::uint8_t priority, place const& p) {
    detail::sqlite_run(db, "DELETE FROM weir_jobs WHERE queue = 1 AND id = ?", p.id);
    expected[priority].erase(p);
    if (expected[priority].empty()) expected.erase(priority);
  }
  [[nodiscard]] std::vector<job_id> visible(unsigned priority, time_point now,
                                            std::size_t most) const {
    std::vector<job_id> out;
    auto const level = expected.lower_bound(static_cast<std::uint8_t>(priority));
    if (level == expected.end()) return out;
    for (auto const& p : level->second) {
      if (p.vesting > now || out.size() == most) break;
      out.push_back(p.id);
    }
    return out;
  }
  [[nodiscard]] std::optional<time_point> least() const {
    std::optional<time_point> out;
    for (auto const& [priority, places] : expected) {
      auto const first = places.begin()->vesting;
      out = out ? std::min(*out, first) : first;
    }
    return out;
  }

  sqlite_connection db{":memory:"};
  std::map<std::uint8_t, std::set<place>> expected;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_job_front_of_a_queue)

BOOST_AUTO_TEST_CASE(F41_what_is_read_ahead_is_what_is_there_whatever_happens) {
  for (std::uint64_t seed = 1; seed != 11; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      testing::dice chance{seed};
      bed b;
      std::uint64_t n = 0;
      auto const draw = [&] { return static_cast<std::uint8_t>(chance.below(3)); };
      auto const made = [&] {
        return place{at(static_cast<std::int64_t>(chance.below(1000))), id_of(++n)};
      };
      // More than it ever knows of a level, or next to nothing.
      for (auto left = chance.below(2) * 1500; left != 0; --left) b.add(nullptr, draw(), made());
      sqlite_job_front front{b.db, 1};
      for (int step = 0; step != 6000; ++step) {
        auto const now = at(static_cast<std::int64_t>(chance.below(1200)));
        auto const priority = draw();
        auto const level = b.expected.find(priority);
        auto const what = chance.below(10);
        bool const grows = step / 2000 % 2 == 0;
        if (what < (grows ? 7 : 2)) {
          b.add(&front, priority, made());
        } else if (what < 9 && level != b.expected.end()) {
          // Mostly the first one, as dequeues have it.
          auto const skip = chance.below(4) == 0 ? chance.below(level->second.size()) : 0;
          auto const p = *std::next(level->second.begin(), static_cast<std::ptrdiff_t>(skip));
          b.remove(priority, p);
          p.vesting > now ? front.remove(p.id, now) : front.remove(priority, p);
        }
        if (chance.below(3) != 0) continue;  // several changes come between two looks
        auto const most = 1 + chance.below(300);
        auto const found = front.visible(priority, now, most);
        auto const expected = b.visible(priority, now, most);
        BOOST_TEST_REQUIRE((found ? found->jobs : std::vector<job_id>{}) == expected);
        auto const least = front.min_vesting(now);
        BOOST_TEST_REQUIRE((least == b.least()), "step " << step);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(F93_a_job_that_has_no_place_is_told_apart) {
  bed b;
  for (std::uint64_t n = 1; n != 4; ++n) b.add(nullptr, 7, {at(5), id_of(n)});
  b.db.run("PRAGMA ignore_check_constraints = ON");
  b.db.run("UPDATE weir_jobs SET id = x'00' WHERE id = (SELECT min(id) FROM weir_jobs)");
  sqlite_job_front first{b.db, 1};
  BOOST_TEST(first.damaged().has_value());
  b.db.run("DELETE FROM weir_jobs WHERE id = x'00'");
  b.db.run("UPDATE weir_jobs SET id = x'7f' WHERE id = (SELECT max(id) FROM weir_jobs)");
  sqlite_job_front behind{b.db, 1};
  BOOST_TEST(!behind.damaged().has_value());
  BOOST_TEST((behind.visible(0, at(9), 9)->jobs == std::vector{id_of(2)}));
  BOOST_TEST(behind.damaged().has_value());
}

BOOST_AUTO_TEST_CASE(F93_jobs_behind_those_that_have_no_place_count) {
  bed b;
  for (std::uint64_t n = 1; n != 6; ++n)
    b.add(nullptr, 7, {at(static_cast<std::int64_t>(n)), id_of(n)});
  b.db.run("PRAGMA ignore_check_constraints = ON");
  b.db.run("UPDATE weir_jobs SET id = x'00' WHERE vesting = 2; "
           "UPDATE weir_jobs SET id = x'01' WHERE vesting = 3");
  sqlite_job_front front{b.db, 1};
  front.remove(7, {at(1), id_of(1)});
  b.db.run("DELETE FROM weir_jobs WHERE vesting = 1");
  BOOST_TEST((front.min_vesting(at(9)) == at(9)), "the two that are read next have none");
  for (int looks = 0; looks != 3; ++looks) {
    auto const found = front.visible(0, at(9), 9);
    BOOST_TEST_REQUIRE(found.has_value());
    BOOST_TEST((found->jobs == std::vector{id_of(4), id_of(5)}));
  }
}

BOOST_AUTO_TEST_SUITE_END()
