// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_PROCESS_HPP
#define WEIR_TEST_SOAK_PROCESS_HPP

#include "soak/plan.hpp"
#include "soak/witness.hpp"
#include "weir/backoff/constant.hpp"
#include "weir/job_traits.hpp"
#include "weir/testing/dice.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The parts of every process of the application, and the jobs that they do.
namespace asio = boost::asio;

namespace weir {
class job_context;
}  // namespace weir

namespace soak {

/// Work, of which some fails, some is put off, and some takes longer.
struct plain_job {
  std::uint32_t number = 0;
  std::string filling{};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(plain_job, number, filling)

/// At most one of each name is waiting or running.
struct unique_job {
  std::string name;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(unique_job, name)

/// Three at once, thirty a second.
struct limited_job {
  std::uint32_t number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(limited_job, number)

/// The job that a schedule enqueues for each of its ticks.
struct tick_job {
  std::string schedule;
  std::string tick{};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(tick_job, schedule, tick)

}  // namespace soak

// Records are kept for a while, so that the auditor finds jobs in their last state.
template <>
struct weir::job_traits<soak::plain_job> {
  static constexpr std::string_view kind = "plain";
  static constexpr std::uint32_t max_attempts = soak::max_attempts;
  static constexpr weir::constant_backoff backoff{std::chrono::milliseconds{100}};
  static constexpr weir::duration retention = soak::retention;
};
template <>
struct weir::job_traits<soak::unique_job> {
  static constexpr std::string_view kind = "unique";
  static constexpr std::string_view queue = "unique";
  static constexpr std::uint32_t max_attempts = soak::max_attempts;
  static constexpr weir::constant_backoff backoff{std::chrono::milliseconds{100}};
  static constexpr weir::duration retention = soak::retention;
  static constexpr auto unique = unique_strategy::until_executed;
  static constexpr auto on_conflict = conflict_policy::discard;
  static std::string unique_key(soak::unique_job const& j) { return j.name; }
};
template <>
struct weir::job_traits<soak::limited_job> {
  static constexpr std::string_view kind = "limited";
  static constexpr std::string_view queue = "limited";
  static constexpr std::uint32_t max_attempts = soak::strange_attempts;
  static constexpr weir::constant_backoff backoff{std::chrono::milliseconds{100}};
  static constexpr weir::duration retention = soak::retention;
  static constexpr std::uint32_t concurrency = 3;
  static constexpr weir::quota rate = weir::quota::per_second(30).burst(10);
};
template <>
struct weir::job_traits<soak::tick_job> {
  static constexpr std::string_view kind = "tick";
  static constexpr std::uint32_t max_attempts = soak::strange_attempts;
  static constexpr weir::constant_backoff backoff{std::chrono::milliseconds{100}};
  static constexpr weir::duration retention = std::chrono::hours{24};
};

namespace soak {

inline constexpr auto token = asio::as_tuple(asio::use_awaitable);
using weir::error_code;
using weir::testing::dice;
template <class T = void>
using awaitable = asio::awaitable<T>;

[[nodiscard]] inline std::string text(weir::job_id id) { return boost::uuids::to_string(id); }

/// A process: its loop, its store, its log.
class process {
 public:
  explicit process(assignment a)
      : given{std::move(a)},
        log{given.log},
        at{open_store(io.get_executor(), given.at, given.defect)},
        chance{given.seed},
        end_{io, SIGTERM, SIGINT} {
    end_.async_wait([this](error_code, int) {
      ending = true;
      if (on_end) on_end();
    });
  }

  awaitable<> pause(weir::duration d) {
    asio::steady_timer timer{io, std::chrono::duration_cast<asio::steady_timer::duration>(d)};
    co_await timer.async_wait(token);
  }
  /// A time of the order of this, at random.
  std::chrono::milliseconds moment(std::chrono::milliseconds most) {
    return std::chrono::milliseconds{
        static_cast<std::int64_t>(1 + chance.below(static_cast<std::uint64_t>(most.count())))};
  }
  awaitable<> think(std::chrono::milliseconds most) {
    co_await pause(moment(most));
    if (given.defect == "leak") hoard_.push_back(std::string(1U << 20U, 'x'));
  }
  /// Starts a client. The process ends when all of its clients have.
  void client(std::function<awaitable<>()> what) {
    ++clients_;
    asio::co_spawn(io, std::move(what), [this](std::exception_ptr e) {
      if (e) std::rethrow_exception(e);
      if (--clients_ == 0) {
        end_.cancel();
        at.close();
      }
    });
  }

  assignment given;
  witness log;
  asio::io_context io{1};
  store at;
  dice chance;
  bool ending = false;
  std::function<void()> on_end{};

 private:
  asio::signal_set end_;
  std::size_t clients_ = 0;
  std::vector<std::string> hoard_;
};

// The roles, by what they work with; each is one of a process' clients until that is to end.

awaitable<> permit_client(process& p);
awaitable<> lock_client(process& p);
awaitable<> rate_client(process& p);
awaitable<> crowd_client(process& p);      ///< one of many who wait for the same permit
awaitable<> key_flood_client(process& p);  ///< buckets that nobody comes back to
awaitable<> enqueue_client(process& p);
awaitable<> sprawl_client(process& p);  ///< many queues, of one job each
awaitable<> outbox_client(process& p);  ///< enqueues in transactions of the application
awaitable<> administrator(process& p);
awaitable<> deploys(process& p);  ///< of schedules
awaitable<> inspector(process& p);

/// The work of every handler: a little, now and then badly.
awaitable<> handle(process& p, weir::job_context& job);
/// The record of a tick's job.
[[nodiscard]] record tick_record(tick_job const& job, weir::job_id id);

}  // namespace soak

#endif
