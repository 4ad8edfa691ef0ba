// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_JOBS_HPP
#define WEIR_STORE_MEMORY_JOBS_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/hint_line.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/rule/shards.hpp"
#include "weir/store/memory/options.hpp"
#include "weir/table/job_budget.hpp"
#include "weir/table/job_shard.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/config.hpp>
#include <boost/system/errc.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

namespace weir::detail {

template <class C>
concept job_step = requires(job_shard& s, C const& c, time_point now) {
  { s.apply(c, now) } -> std::same_as<result<typename C::result>>;
};

template <class C> concept queue_command = job_step<C> && requires(C const& c) { c.queue; };

template <class C> concept shard_command = job_step<C> && requires(C const& c) { c.shard; };

/// The jobs of a memory store: its shards, each behind a lock of its own.
///
/// Thread-safety: any number of threads. Each command locks one shard for its length; commands on
/// different shards share nothing but a counter that they rarely touch. Input must be valid; a
/// shard number out of range is `invalid_shard`.
///
/// Memory: at most `max_jobs` records over all queues, of about 200 bytes each beside kind, key,
/// payload and notes (a key held until_expired counts as one); and the queues without jobs that a
/// shard remembers (queue_registry.hpp).
template <class>
class basic_memory_jobs {
 public:
  using hint_handler = boost::asio::any_completion_handler<void(error_code, hint)>;

  explicit basic_memory_jobs(memory_options const& options)
      : budget_{options.max_jobs},
        count_{std::max(options.shards, std::uint32_t{1})} {
    for (std::uint32_t i = 0; i < count_; ++i) {
      shards_.emplace_back(job_allowance{budget_, options.max_jobs, count_});
    }
  }
  basic_memory_jobs(basic_memory_jobs const&) = delete;
  basic_memory_jobs& operator=(basic_memory_jobs const&) = delete;

  [[nodiscard]] std::uint32_t shard_count() const noexcept { return count_; }

  /// Commands are executed at such times, too: what is live then is not tidied at others.
  void told(time_point at) noexcept {
    for (auto& s : shards_) {
      std::lock_guard const lock{s.mutex};
      s.jobs.told(at);
    }
  }

  template <queue_command C>
  result<typename C::result> apply(C const& c, time_point now) {
    if constexpr (requires { c.to; }) {
      if (!c.to.empty() && &shard_of(c.to) != &shard_of(c.queue)) return errc::invalid_shard;
    }
    turn t{*this, shard_of(c.queue)};
    return t.in.jobs.apply(c, now);
  }

  template <shard_command C>
  result<typename C::result> apply(C const& c, time_point now) {
    if (c.shard >= count_) return errc::invalid_shard;
    turn t{*this, shards_[c.shard]};
    return t.in.jobs.apply(c, now);
  }

  /// Completes the handler, never inline, with a hint when a queue of the shard is due already, or
  /// one becomes due, or the first to become due comes to be due earlier. Each such event completes
  /// one waiter.
  void await(command::await_jobs const& c, time_point now, hint_handler handler,
             boost::asio::any_io_executor fallback) {
    // Parked before the lock is taken and resumed after it is released: either may run code of the
    // handler's.
    auto const op = park<error_code, hint>(fallback, std::move(handler));
    if (!op->waiting()) return;  // its handler is gone, and with it what the command views
    if (c.shard >= count_) {
      op->resume(make_error_code(errc::invalid_shard), hint{});
      return;
    }
    error_code ec;
    try {
      auto& s = shards_[c.shard];
      std::lock_guard const lock{s.mutex};
      if (!s.jobs.any_due(c.schedules, now)) return s.of(c.schedules).add(op);
    } catch (std::bad_alloc const&) {
      ec = make_error_code(boost::system::errc::not_enough_memory);
    }
    op->resume(ec, hint{});
  }

  /// Completes the handler, never inline, when a job was cancelled that the holder has a lease of.
  void await(command::await_cancel const& c, time_point, hint_handler handler,
             boost::asio::any_io_executor fallback) {
    auto const op = park<error_code, hint>(fallback, std::move(handler));
    if (!op->waiting()) return;  // its handler is gone, and with it what the command views
    try {
      std::lock_guard const lock{cancels_mutex_};
      return cancels_.add(c.holder, op);
    } catch (std::bad_alloc const&) {
    }
    op->resume(make_error_code(boost::system::errc::not_enough_memory), hint{});
  }

 private:
  static constexpr std::size_t cache_line = 64;

  struct alignas(cache_line) shard {
    explicit shard(job_allowance allowance) : jobs{allowance} {}

    std::mutex mutex;
    job_shard jobs;
    hint_line for_jobs;
    hint_line for_schedules;

    [[nodiscard]] hint_line& of(bool schedules) noexcept {
      return schedules ? for_schedules : for_jobs;
    }
  };

  /// One step in a shard. Whatever way it ends, the event that it may have been is then given to
  /// one waiter, and a cancelled job's to its holder.
  struct turn {
    turn(basic_memory_jobs& a, shard& s) : all{a}, in{s}, lock{s.mutex} {}
    turn(turn const&) = delete;
    turn& operator=(turn const&) = delete;
    ~turn() {
      if (in.jobs.take_event(false)) wake_one(in.for_jobs);
      if (in.jobs.take_event(true)) wake_one(in.for_schedules);
      if (in.jobs.any_cancelled()) tell_cancelled();
    }

    void wake_one(hint_line& waiters) noexcept {
      for (bool woken = false; !woken && !waiters.empty();) {
        auto const first = waiters.take_first();
        lock.unlock();
        woken = wake(first);
        lock.lock();
      }
    }

    BOOST_NOINLINE void tell_cancelled() noexcept {
      auto const holders = in.jobs.take_cancelled();
      lock.unlock();
      for (auto const& holder : holders) {
        std::unique_lock of_lines{all.cancels_mutex_};
        auto waiters = all.cancels_.take(holder);
        of_lines.unlock();
        waiters.wake_all();
      }
    }

    basic_memory_jobs& all;
    shard& in;
    std::unique_lock<std::mutex> lock;
  };

  [[nodiscard]] shard& shard_of(std::string_view queue) noexcept {
    return shards_[rule::shard_of(queue, count_)];
  }

  job_budget budget_;
  std::deque<shard> shards_;
  std::uint32_t count_;
  std::mutex cancels_mutex_;
  cancel_lines cancels_;
};

using memory_jobs = basic_memory_jobs<void>;

}  // namespace weir::detail

#endif
