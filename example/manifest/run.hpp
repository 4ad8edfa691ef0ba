// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_RUN_HPP
#define WEIR_EXAMPLE_MANIFEST_RUN_HPP

#include "display.hpp"
#include "hash_file.hpp"
#include "options.hpp"
#include "tree.hpp"
#include "weir.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace manifest {

/// Gives every file a job, runs a worker, and learns what became of all jobs, whoever ran them.
/// A job's id is made of the path and the stamp of its file, so what an earlier run left in the
/// store decides what happens: the result of a completed job is taken, a dead one is tried again,
/// and one that waits or runs is waited for.
///
/// All of it happens in the thread that runs the context, but for the reading: handlers have
/// threads of their own, so the worker's bookkeeping, the renewal of leases above all, never waits
/// for a disk.
template <class Store>
class run {
 public:
  run(asio::io_context& io, Store store, options const& o, tree& found, display& shown)
      : io_{io},
        store_{store},
        options_{o},
        found_{found},
        shown_{shown},
        queue_{store},
        worker_{store, {.concurrency = 2 * o.workers, .lease = lease_time, .drain = 400ms}},
        reader_{store, o, in_hand_},
        readers_{o.workers} {
    for (auto& f : found_.files) {
      f.queue = key_of(std::move(f.queue));
      f.id = job_of(f.absolute, f.stamp);
      by_id_.emplace(f.id, &f);
      ++progress_.files_found;
      progress_.bytes_found += f.size;
    }
    worker_.on_event([this](weir::worker_event const& event) { note(event); });
    worker_.template handle<hash_file>([this](hash_file const& job, weir::job_context& context) {
      return reader_.hash(job, context);
    });
  }

  /// Runs until every file is listed or dead, or until the first signal; a second one ends the
  /// process. False: there may be more to do.
  bool operator()() {
    signals_.async_wait([this](weir::error_code const& cancelled, int) {
      if (cancelled) return;
      signals_.clear();
      shown_.tell("manifest: stopping (once more: at once)\n");
      interrupted_ = true;
      stop();
    });
    asio::co_spawn(io_, follow_jobs(), rethrow);
    asio::co_spawn(io_, show_progress(), rethrow);
    try {
      io_.run();
    } catch (std::exception const& e) {  // threads may still use what is here: it stays
      // Of a server not the URL, which may have a password in it.
      shown_.give_up(failed,
                     options_.store.substr(0, options_.store.find("://")) + ": " + e.what());
    }
    shown_.report(progress_, found_);
    return !interrupted_;
  }

 private:
  using clock = std::chrono::steady_clock;

  static void rethrow(std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
  }

  asio::awaitable<void> follow_jobs() {
    // What is wrong with the store is known before anything begins.
    co_await queue_.async_stats("any", asio::use_awaitable);
    // Handlers run where the operation's handler does: on the threads that may block.
    ++parts_;
    worker_.async_run(asio::bind_executor(readers_, [this](weir::error_code ec) {
      asio::post(io_, [this, ec] {
        if (ec) throw boost::system::system_error{ec, "worker"};
        part_ended();
      });
    }));

    for (auto rest = std::span{found_.files}; !rest.empty() && !stopping_;) {
      // Those of one queue go there in one step.
      std::vector<file*> files;
      for (auto& f : rest.first(std::min<std::size_t>(rest.size(), 500))) {
        if (f.queue != rest.front().queue) break;
        files.push_back(&f);
      }
      rest = rest.subspan(files.size());
      auto const stats = co_await queue_.async_stats(files[0]->queue, asio::use_awaitable);
      if (stats.enqueued != 0) files = co_await unsettled(std::move(files), true);
      if (!files.empty()) co_await enqueue(files);
    }
    placed_ = true;
    stop_when_done();

    // What other processes end is only seen in the store. They are asked about now and then, and
    // often once there is nothing else to do.
    while (!stopping_) {
      bool const idle = clock::now() - last_event_ > 100ms;
      auto const before = progress_.files_done;
      std::vector<file*> open;
      std::size_t const most = idle ? 2000 : 50;
      for (auto left = found_.files.size(); left != 0 && open.size() != most; --left) {
        auto& f = found_.files[next_++ % found_.files.size()];  // each as often as the others
        if (is_open(f)) open.push_back(&f);
      }
      open = co_await unsettled(std::move(open), false);
      for (auto* const f : open) {  // the store was made to forget them
        co_await enqueue(std::vector<file*>(1, f));
      }
      if (stopping_ || progress_.files_done != before) continue;
      learn_.expires_after(idle ? 50ms : 200ms);
      co_await learn_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    stop();
    part_ended();
  }

  /// Asks the store about files, all at once, and returns those that are to be enqueued.
  ///
  /// @param first whether what the store knows may be of an earlier run
  asio::awaitable<std::vector<file*>> unsettled(std::vector<file*> asked, bool first) {
    std::vector<std::optional<weir::job>> known(asked.size());
    std::size_t left = asked.size();
    weir::error_code failure;
    asio::steady_timer all{io_, asio::steady_timer::time_point::max()};
    for (std::size_t i = 0; i != asked.size(); ++i) {
      queue_.async_find(asked[i]->queue, asked[i]->id,
                        [&, i](weir::error_code ec, std::optional<weir::job> found) {
                          if (ec) failure = ec;
                          known[i] = std::move(found);
                          if (--left == 0) all.cancel();
                        });
    }
    // NOLINTNEXTLINE(bugprone-infinite-loop): the handlers count it down
    while (left != 0) co_await all.async_wait(asio::as_tuple(asio::use_awaitable));
    if (failure) throw boost::system::system_error{failure, "store"};

    std::vector<file*> unknown;
    for (std::size_t i = 0; i != asked.size(); ++i) {
      auto& f = *asked[i];
      auto const& job = known[i];
      if (!is_open(f) || (job && !weir::is_terminal(job->state))) continue;
      bool const done = job && job->state == weir::job_state::completed;
      if (first ? done && !options_.fresh && job->result.ends_with(' ' + f.stamp)
                : done || (job && job->state == weir::job_state::dead)) {
        close(f, job->state, done ? job->result : job->reason, true);
        continue;
      }
      if (job) co_await queue_.async_purge(f.queue, f.id, asio::use_awaitable);
      unknown.push_back(&f);
    }
    co_return unknown;
  }

  /// @param files of one queue
  asio::awaitable<void> enqueue(std::vector<file*> const& files) {
    std::vector<hash_file> jobs;
    std::vector<weir::job_id> ids;
    for (auto const* f : files) {
      jobs.push_back({f->absolute});
      ids.push_back(f->id);
    }
    std::span<hash_file const> const all{jobs};
    weir::enqueue_options const options{.queue = files[0]->queue, .ids = ids};
    auto const enqueued = co_await queue_.async_enqueue_many(all, options, asio::use_awaitable);
    for (std::size_t i = 0; i != files.size(); ++i) {
      // Another job reads the file already, as it is now.
      if (enqueued[i].outcome != weir::enqueue_outcome::duplicate) continue;
      files[i]->id = enqueued[i].other;
      by_id_.insert_or_assign(files[i]->id, files[i]);
    }
  }

  /// Runs in the context's thread, as all of the worker's bookkeeping does.
  void note(weir::worker_event const& event) {
    using kind = weir::worker_event_kind;
    last_event_ = clock::now();
    auto const known = event.job == nullptr ? by_id_.end() : by_id_.find(event.job->id);
    if (known == by_id_.end()) return;  // not of a file of this run
    auto& f = *known->second;
    f.here = event.kind == kind::started;
    if (event.kind == kind::completed) close(f, weir::job_state::completed, event.result, false);
    if (event.kind == kind::dead_lettered) close(f, weir::job_state::dead, event.reason, false);
    if (event.kind == kind::retried) ++progress_.retries;
  }

  void close(file& f, weir::job_state how, std::string_view text, bool stored) {
    if (f.state != weir::job_state::pending) return;
    f.state = how;
    ++progress_.files_done;
    progress_.bytes_done += f.size;
    if (how == weir::job_state::completed) {
      f.digest = text.substr(0, text.find(' '));
      stored ? ++progress_.stored : progress_.bytes_read += f.size;
    } else {
      found_.unread.push_back({f.path, std::string{text}});
      ++progress_.dead;
    }
    stop_when_done();
  }

  /// Is its end to be learnt from the store?
  [[nodiscard]] static bool is_open(file const& f) {
    return f.state == weir::job_state::pending && !f.here;
  }

  void stop_when_done() {
    if (placed_ && progress_.files_done == found_.files.size()) stop();
  }
  void stop() {
    stopping_ = true;
    learn_.cancel();
    worker_.stop();
  }

  asio::awaitable<void> show_progress() {
    while (parts_ > 0) {
      auto now = progress_;
      now.bytes_done += in_hand_;
      now.bytes_read += in_hand_;
      shown_.show(now);
      redraw_.expires_after(100ms);
      co_await redraw_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }

  /// After the last one nothing keeps the context busy.
  void part_ended() {
    if (--parts_ > 0) return;
    signals_.cancel();
    redraw_.cancel();
    if constexpr (requires { store_.close(); }) store_.close();
  }

  asio::io_context& io_;
  Store store_;
  options const& options_;
  tree& found_;
  display& shown_;
  asio::signal_set signals_{io_, SIGINT, SIGTERM};
  asio::steady_timer redraw_{io_};
  asio::steady_timer learn_{io_};

  progress progress_;
  std::atomic<std::uint64_t> in_hand_{0};
  boost::unordered_flat_map<weir::job_id, file*> by_id_;
  std::size_t next_ = 0;
  clock::time_point last_event_{};
  int parts_ = 1;  // follow_jobs, and the worker
  bool placed_ = false;
  bool interrupted_ = false;
  bool stopping_ = false;

  weir::job_queue<Store> queue_;
  weir::worker<Store> worker_;
  file_reader<Store> reader_;
  asio::thread_pool readers_;
};

}  // namespace manifest

#endif
