// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_CLOCK_STEPS_HPP
#define WEIR_TEST_INTEGRATION_CLOCK_STEPS_HPP

#include "patience.hpp"
#include "weir/command/buckets.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/quota.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// What is bound to time, on a server whose clock is moved.
namespace weir_test {

using namespace weir;

inline constexpr std::int64_t an_hour = 3600;  // in seconds, as clocks are moved by

/// Somebody who has a lock, a permit, a job and all tokens of a bucket.
/// @tparam Ask called with a command; gives its result
template <class Ask>
class owner {
 public:
  /// @param name what is owned, and by whom
  /// @param span how long it lasts
  owner(Ask ask, std::string name, duration span) : ask_{std::move(ask)}, name_{std::move(name)} {
    auto const lock = ask_(command::acquire_lock{name_, name_, span});
    BOOST_TEST_REQUIRE(lock->granted);
    lock_ = lock->fence;
    auto const permit = ask_(command::acquire_permit{name_, name_, 1, span, duration{}});
    BOOST_TEST_REQUIRE(permit->granted);
    permit_ = permit->fence;
    BOOST_TEST_REQUIRE(enqueue(1).has_value());
    auto const jobs = ask_(command::dequeue_jobs{name_, name_, 1, 10, span});
    BOOST_TEST_REQUIRE(jobs->jobs.size() == 1U);
    job_ = jobs->jobs[0].fence;
    // So many that it takes `span` until all of them are there again.
    quotas_ = {quota::per(1000, span)};
    BOOST_TEST_REQUIRE(take(1000));
  }

  /// Nobody else gets any of it, and its owner can renew it.
  void has_it() {
    BOOST_TEST(!ask_(command::acquire_lock{name_, "other", renewed})->granted);
    BOOST_TEST(!ask_(command::acquire_permit{name_, "other", 1, renewed, duration{}})->granted);
    BOOST_TEST(ask_(command::dequeue_jobs{name_, "other", 1, 10, renewed})->jobs.empty());
    BOOST_TEST(!take(1000));
    BOOST_TEST(ask_(command::renew_lock{name_, name_, lock_, renewed}).has_value());
    BOOST_TEST(ask_(command::renew_permit{name_, name_, permit_, renewed}).has_value());
    BOOST_TEST(ask_(command::extend_lease{name_, job(1).id, job_, renewed}).has_value());
  }

  /// All of it is free soon, and its numbers grow (R5, R6).
  void loses_it() {
    lock_grant lock;
    BOOST_TEST_REQUIRE(happens([&] {
      lock = *ask_(command::acquire_lock{name_, "other", renewed});
      return lock.granted;
    }));
    BOOST_TEST(lock.fence > lock_);
    permit_grant permit;
    BOOST_TEST_REQUIRE(happens([&] {
      permit = *ask_(command::acquire_permit{name_, "other", 1, renewed, duration{}});
      return permit.granted;
    }));
    BOOST_TEST(permit.fence > permit_);
    dequeued jobs;
    BOOST_TEST_REQUIRE(happens([&] {
      jobs = *ask_(command::dequeue_jobs{name_, "other", 2, 10, renewed});
      return !jobs.jobs.empty();
    }));
    BOOST_TEST(jobs.jobs[0].fence > job_);
    BOOST_TEST_REQUIRE(happens([&] { return take(1000); }));
  }

  /// What is enqueued now is given now.
  void works() {
    BOOST_TEST_REQUIRE(enqueue(2).has_value());
    auto const jobs = ask_(command::dequeue_jobs{name_, "other", 3, 10, renewed});
    BOOST_TEST(jobs->jobs.size() == 1U);
  }

 private:
  static constexpr duration renewed = std::chrono::hours{2};

  static new_job job(std::uint8_t n) {
    new_job out;
    out.id.data()[0] = n;
    out.kind = "kind";
    return out;
  }
  auto enqueue(std::uint8_t n) {
    std::array const jobs{job(n)};
    return ask_(command::enqueue_jobs{name_, jobs});
  }
  bool take(std::uint64_t n) { return ask_(command::take{name_, quotas_, n})->allowed; }

  Ask ask_;
  std::string name_;
  std::vector<quota> quotas_;
  std::uint64_t lock_ = 0;
  std::uint64_t permit_ = 0;
  std::uint64_t job_ = 0;
};

/// A clock is set back: what was given is kept as long as it was given for.
/// @param move called with seconds: the clock is ahead by so many from then on
/// @param step how far it is set back
template <class Ask, class Move>
void set_back(Ask ask, Move move, std::int64_t step = an_hour) {
  owner lives{ask, "lives", std::chrono::minutes{30}};
  owner gone{ask, "gone", std::chrono::milliseconds{500}};
  move(-step);
  lives.has_it();
  gone.loses_it();
  gone.works();
  lives.has_it();
  move(-2 * step);  // and once more
  lives.has_it();
  gone.works();
}

/// A clock is an hour ahead for a moment: what that has ended is ended, and nothing waits for the
/// hour to pass.
template <class Ask, class Move>
void ahead_for_a_moment(Ask ask, Move move) {
  owner before{ask, "before", std::chrono::minutes{30}};
  move(an_hour);
  owner meanwhile{ask, "meanwhile", std::chrono::milliseconds{500}};
  owner long_after{ask, "long after", std::chrono::minutes{30}};
  move(0);
  long_after.has_it();
  before.loses_it();
  before.works();
  meanwhile.loses_it();
  meanwhile.works();
}

/// A clock is behind for a moment: nobody loses anything, then or when it is right again.
/// @param fast by so many seconds the clock was ahead before
/// @param slow by so many it is behind
template <class Ask, class Move>
void behind_for_a_moment(Ask ask, Move move, std::int64_t fast = 0, std::int64_t slow = an_hour) {
  move(fast);
  owner lives{ask, "lives", std::chrono::minutes{30}};
  move(-slow);
  lives.has_it();
  owner meanwhile{ask, "meanwhile", std::chrono::minutes{30}};
  move(0);
  lives.has_it();
  meanwhile.has_it();
  meanwhile.works();
}

}  // namespace weir_test

#endif
