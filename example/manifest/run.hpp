// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_RUN_HPP
#define WEIR_EXAMPLE_MANIFEST_RUN_HPP

#include "checksum_lines.hpp"
#include "display.hpp"
#include "file_reader.hpp"
#include "hash_file.hpp"
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
#include <cstdint>
#include <exception>
#include <span>
#include <string>
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

/// Finds the files, has a worker hash them, and gathers the results.
///
/// All of it happens in the thread that runs the context, except for what blocks on files: the
/// handlers and the walk have threads of their own, so the worker's bookkeeping, the renewal of
/// leases above all, never waits for a disk.
template <class Store>
class run {
 public:
  run(asio::io_context& io, Store store, options const& o, tree_walk walk, display& shown)
      : io_{io},
        walk_{std::move(walk)},
        shown_{shown},
        queue_{store},
        worker_{store, {.concurrency = 2 * o.workers, .drain = patience}},
        reader_{store,
                {.open_files = o.open_files, .rate = o.rate, .attempts = o.attempts},
                bytes_read_},
        readers_{o.workers} {
    worker_.on_event([this](weir::worker_event const& event) { count(event); });
    worker_.template handle<hash_file>([this](hash_file const& job, weir::job_context& context) {
      return reader_.hash(job, context);
    });
  }

  run(run const&) = delete;
  run& operator=(run const&) = delete;

  /// Runs until every file that was found is done or dead, or until `interrupt`.
  asio::awaitable<outcome> execute() {
    asio::co_spawn(io_, find_files(), rethrow);
    asio::co_spawn(io_, show_progress(), rethrow);
    // Handlers run where the operation's handler does: on the threads that may block.
    worker_.async_run(asio::bind_executor(readers_, [this](weir::error_code ec) {
      asio::post(io_, [this, ec] { worker_ended(ec); });
    }));

    while (busy_ > 0 && std::chrono::steady_clock::now() < deadline_) {
      co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    redraw_.cancel();
    outcome result;
    result.interrupted = interrupted_;
    result.abandoned = busy_ > 0;
    if (!interrupted_) co_await ledger_.look_up_the_rest(queue_);
    result.sums = ledger_.close(result.told);
    result.told.unwalked = std::move(unwalked_);
    result.told.time = elapsed();
    co_return result;
  }

  /// Begins no file any more, and lets `execute` wait a moment for those that are being read.
  void interrupt() {
    interrupted_ = true;
    worker_.stop();
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
      for (auto rest = std::span{batch.files}; !rest.empty();) {
        // Those of one queue go there in one step.
        auto const end = std::ranges::find_if(
            rest, [&](found_file const& file) { return file.top != rest.front().top; });
        auto const count = static_cast<std::size_t>(end - rest.begin());
        co_await enqueue(rest.first(count));
        rest = rest.subspan(count);
      }
    }
    progress_.walking = false;
    part_ended();
    stop_when_done();
  }

  asio::awaitable<void> enqueue(std::span<found_file> files) {
    std::vector<hash_file> jobs;
    for (auto const& file : files) jobs.push_back({file.path});
    std::span<hash_file const> const all{jobs};
    auto const enqueued =
        co_await queue_.async_enqueue_many(all, {.queue = files.front().top}, asio::use_awaitable);
    for (std::size_t i = 0; i != files.size(); ++i) {
      ++progress_.files_found;
      progress_.bytes_found += files[i].size;
      // Somebody else may have enqueued the same file.
      bool const theirs = enqueued[i].outcome == weir::enqueue_outcome::duplicate;
      ledger_.add(std::move(files[i]), theirs ? enqueued[i].other : enqueued[i].id);
    }
  }

  // Runs in the context's thread, as all of the worker's bookkeeping does.
  void count(weir::worker_event const& event) {
    using kind = weir::worker_event_kind;
    switch (event.kind) {
      case kind::completed:
        ++progress_.files_done;
        ledger_.ended(event.job->id, weir::job_state::completed, event.result);
        break;
      case kind::dead_lettered:
        progress_.files_done += event.count;
        progress_.dead += event.count;
        if (event.job != nullptr) ledger_.ended(event.job->id, weir::job_state::dead, event.reason);
        break;
      case kind::retried:
        ++progress_.retries;
        ledger_.retried(event.queue);
        break;
      default: return;
    }
    stop_when_done();
  }

  void stop_when_done() {
    if (!progress_.walking && progress_.files_done >= progress_.files_found) worker_.stop();
  }

  asio::awaitable<void> show_progress() {
    while (busy_ > 0) {
      progress_.bytes_done = bytes_read_;
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

  progress progress_;
  std::atomic<std::uint64_t> bytes_read_{0};
  std::vector<missing_path> unwalked_;
  ledger ledger_;
  int busy_ = 2;  // the walk and the worker
  bool walked_ = false;
  bool interrupted_ = false;

  weir::job_queue<Store> queue_;
  weir::worker<Store> worker_;
  file_reader<Store> reader_;
  asio::thread_pool walker_{1};
  asio::thread_pool readers_;
};

}  // namespace manifest

#endif
