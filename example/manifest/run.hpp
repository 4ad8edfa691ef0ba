// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_RUN_HPP
#define WEIR_EXAMPLE_MANIFEST_RUN_HPP

#include "any_store.hpp"
#include "checksum_lines.hpp"
#include "display.hpp"
#include "file_reader.hpp"
#include "hash_file.hpp"
#include "job_files.hpp"
#include "ledger.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "tree_walk.hpp"
#include "weir/job_queue.hpp"
#include "weir/worker.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>
#include <vector>

namespace manifest {

/// What a run brought about.
struct outcome {
  std::vector<checksum> sums;  ///< sorted by path
  report told;
  bool interrupted = false;  ///< there may be more to do
  bool abandoned = false;    ///< some thread still hangs in a read: nothing waits for it
};

/// Finds the files, has a worker hash those whose checksums are not in the store, and gathers the
/// results, whoever made them.
///
/// All of it happens in the thread that runs the context, except for what blocks on files: the
/// handlers and the walk have threads of their own, so the worker's bookkeeping, the renewal of
/// leases above all, never waits for a disk.
class run {
 public:
  run(asio::io_context& io, any_store const& store, options const& o, tree_walk walk,
      display& shown)
      : io_{io},
        walk_{std::move(walk)},
        shown_{shown},
        files_{store, o.directory, ledger_, io},
        worker_{store, {.concurrency = 2 * o.workers, .lease = lease_time, .drain = patience}},
        reader_{store,
                {.open_files = o.open_files, .rate = o.rate, .attempts = o.attempts},
                bytes_read_},
        readers_{o.workers} {
    worker_.on_event([this](weir::worker_event const& event) { count(event); });
    worker_.handle<hash_file>([this](hash_file const& job, weir::job_context& context) {
      return reader_.hash(job, context);
    });
  }

  run(run const&) = delete;
  run& operator=(run const&) = delete;

  /// Runs until every file that was found is done or dead, or until `interrupt`.
  asio::awaitable<outcome> execute() {
    asio::co_spawn(io_, find_files(), rethrow);
    asio::co_spawn(io_, learn_from_others(), rethrow);
    asio::co_spawn(io_, show_progress(), rethrow);
    // Handlers run where the operation's handler does: on the threads that may block.
    worker_.async_run(asio::bind_executor(readers_, [this](weir::error_code ec) {
      asio::post(io_, [this, ec] { worker_ended(ec); });
    }));

    while (busy_ > 0 && std::chrono::steady_clock::now() < deadline_) {
      co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    redraw_.cancel();
    over_ = true;
    outcome result;
    result.interrupted = interrupted_;
    result.abandoned = busy_ > 0;
    result.sums = ledger_.close(result.told);
    result.told.unwalked = std::move(unwalked_);
    result.told.time = elapsed();
    co_return result;
  }

  /// Begins no file any more, and lets `execute` wait a moment for those that are being read.
  void interrupt() {
    interrupted_ = true;
    stop();
    // What hangs even then is left behind.
    deadline_ = std::chrono::steady_clock::now() + 3 * patience;
    changed_.expires_at(deadline_);
  }

 private:
  static constexpr std::chrono::milliseconds patience{400};

  static void rethrow(std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
  }

  asio::awaitable<void> find_files() {
    auto const walk_on = [this]() -> asio::awaitable<walk_batch> {
      walk_batch batch;
      walked_ = !walk_.next(batch, 500);
      co_return batch;
    };
    while (!walked_ && !interrupted_) {
      auto batch = co_await asio::co_spawn(walker_, walk_on, asio::use_awaitable);
      for (auto& problem : batch.problems) {
        unwalked_.push_back({std::move(problem.path), std::move(problem.reason)});
      }
      for (auto rest = std::span{batch.files}; !rest.empty() && !over_;) {
        // Those of one queue go there in one step.
        auto const end = std::ranges::find_if(
            rest, [&](found_file const& file) { return file.top != rest.front().top; });
        auto const count = static_cast<std::size_t>(end - rest.begin());
        for (auto const& file : rest.first(count)) {
          ++progress_.files_found;
          progress_.bytes_found += file.size;
        }
        co_await files_.place(rest.first(count));
        rest = rest.subspan(count);
      }
    }
    progress_.walking = false;
    part_ended();
    stop_when_done();
  }

  /// What other processes end is only seen in the store. They are asked about now and then, and
  /// often once there is nothing else to do.
  asio::awaitable<void> learn_from_others() {
    while (!stopping_) {
      bool const idle = elapsed() - last_event_ > seconds{0.1};
      learn_.expires_after(std::chrono::milliseconds{idle ? 50 : 200});
      co_await learn_.async_wait(asio::as_tuple(asio::use_awaitable));
      if (stopping_) break;
      co_await files_.look_at(idle ? 2000 : 50, over_);
      stop_when_done();
    }
    part_ended();
  }

  // Runs in the context's thread, as all of the worker's bookkeeping does.
  void count(weir::worker_event const& event) {
    using kind = weir::worker_event_kind;
    last_event_ = elapsed();
    if (event.job == nullptr) return;
    auto const id = event.job->id;
    ledger_.runs_here(id, event.kind == kind::started);
    switch (event.kind) {
      case kind::completed: ledger_.ended(id, weir::job_state::completed, event.result); break;
      case kind::dead_lettered: ledger_.ended(id, weir::job_state::dead, event.reason); break;
      case kind::retried:
        ++progress_.retries;
        ledger_.retried(id);
        break;
      default: return;
    }
    stop_when_done();
  }

  void stop_when_done() {
    if (!progress_.walking && ledger_.all_closed()) stop();
  }

  void stop() {
    stopping_ = true;
    learn_.cancel();
    worker_.stop();
  }

  asio::awaitable<void> show_progress() {
    while (busy_ > 0) {
      progress_.files_done = ledger_.closed();
      progress_.dead = ledger_.dead();
      progress_.bytes_done = bytes_read_ + ledger_.bytes_elsewhere();
      shown_.show(elapsed(), progress_);
      redraw_.expires_after(std::chrono::milliseconds{50});
      auto const [stopped] = co_await redraw_.async_wait(asio::as_tuple(asio::use_awaitable));
      if (stopped) break;
    }
  }

  void worker_ended(weir::error_code ec) {
    if (ec) throw boost::system::system_error{ec, "worker"};
    part_ended();
  }

  void part_ended() {
    if (--busy_ == 0) changed_.cancel();
  }

  [[nodiscard]] seconds elapsed() const { return std::chrono::steady_clock::now() - began_; }

  asio::io_context& io_;
  tree_walk walk_;
  display& shown_;
  std::chrono::steady_clock::time_point const began_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  asio::steady_timer changed_{io_, deadline_};
  asio::steady_timer redraw_{io_};
  asio::steady_timer learn_{io_};

  progress progress_;
  std::atomic<std::uint64_t> bytes_read_{0};
  std::vector<missing_path> unwalked_;
  ledger ledger_;
  int busy_ = 3;  // the walk, the worker, and who learns from others
  seconds last_event_{0};
  bool walked_ = false;
  bool interrupted_ = false;
  bool stopping_ = false;
  bool over_ = false;

  job_files files_;
  weir::worker<any_store> worker_;
  file_reader<any_store> reader_;
  asio::thread_pool walker_{1};
  asio::thread_pool readers_;
};

}  // namespace manifest

#endif
