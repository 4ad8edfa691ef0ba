// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_WORKER_HPP
#define WEIR_STORE_SQLITE_WORKER_HPP

#include "weir/detail/explained.hpp"
#include "weir/detail/outage.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/file.hpp"
#include "weir/store/sqlite/ledger.hpp"
#include "weir/store/sqlite/options.hpp"
#include "weir/store/sqlite/request.hpp"
#include "weir/store/sqlite/waiters.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// What is shared by the handles of a store and its thread, which alone touches the file.
///
/// The thread takes what waits and executes it in one transaction, in the order of arrival: while
/// one group is on its way to the disk, the next one gathers. A group ends when its commands and
/// answers fill `limits::batch_bytes`, so that what it holds until its commit is bounded by that
/// and one command more. Nothing is answered before its commit. A group whose transaction fails is
/// executed again, each command alone, so that each gets an answer of its own. Where a transaction
/// cannot even begin, all are told so. A command that needs no room and meets a full disk is
/// executed again with the reserve given up.
class sqlite_worker {
 public:
  sqlite_worker(std::string path, sqlite_options const& options, sqlite_clock clock)
      : path_{std::move(path)},
        options_{options},
        clock_{std::move(clock)},
        state_{"SQLite store in " + path_} {}
  sqlite_worker(sqlite_worker const&) = delete;
  sqlite_worker& operator=(sqlite_worker const&) = delete;

  [[nodiscard]] sqlite_options const& options() const noexcept { return options_; }
  [[nodiscard]] sqlite_waiters& waiters() noexcept { return waiters_; }
  /// Whether the file can be used. Of any thread.
  [[nodiscard]] outage const& state() const noexcept { return state_; }

  /// Queues a request, or fails it: `closed`, or `store_full`.
  void submit(std::unique_ptr<sqlite_request> r) {
    error_code ec;
    bool first = false;
    {
      std::lock_guard const lock{mutex_};
      if (stopping_) {
        ec = errc::closed;
      } else if (queued_.size() >= options_.max_pending) {
        ec = errc::store_full;
      } else {
        first = queued_.empty();
        queued_.push_back(std::exchange(r, nullptr));
      }
    }
    if (r) return r->fail(ec);
    if (first) arrived_.notify_one();  // who is at work looks again by itself
  }

  /// Lets `run` return once what is queued was executed. What comes later is `closed`.
  void stop() noexcept {
    {
      std::lock_guard const lock{mutex_};
      stopping_ = true;
    }
    arrived_.notify_one();
  }

  /// The body of the thread.
  void run() noexcept {
    requests batch;
    while (next(batch)) {
      for (std::span rest{batch}; !rest.empty();) {
        auto first = rest.first(std::min<std::size_t>(rest.size(), options_.max_group));
        auto const ec = serve(first);
        rest = rest.subspan(first.size());
        // Whoever stops is waiting: what cannot begin now is not tried time and again.
        if (ec && stops()) fail(std::exchange(rest, {}), ec);
      }
      bool const idle = batch.empty();
      batch.clear();
      look_around(idle);
    }
    waiters_.fail(boost::asio::error::operation_aborted);
    file_.reset();
  }

 private:
  using requests = std::vector<std::unique_ptr<sqlite_request>>;
  using group = std::span<std::unique_ptr<sqlite_request>>;

  [[nodiscard]] bool stops() {
    std::lock_guard const lock{mutex_};
    return stopping_;
  }

  /// Waits for requests, or for the time to look around. False: it is over.
  bool next(requests& batch) {
    std::unique_lock lock{mutex_};
    auto const come = [&] { return stopping_ || !queued_.empty(); };
    if (waiters_.empty()) {
      arrived_.wait(lock, come);
    } else {
      arrived_.wait_for(lock, options_.poll_interval, come);
    }
    batch.swap(queued_);
    return !batch.empty() || !stopping_;
  }

  static bool writes(group all) noexcept {
    return !std::ranges::all_of(all, [](auto const& r) { return r->reads_only(); });
  }

  static void fail(group all, error_code ec) noexcept {
    for (auto const& r : all) {
      if (r) r->fail(ec);
    }
  }

  /// Executes a group and completes it. What is left over, because its bytes fill the group, is
  /// taken off its end. Returns why it could not begin, if it could not.
  error_code serve(group& all) noexcept {
    if (auto const ec = begin(writes(all))) {
      fail(all, ec);
      return ec;
    }
    auto const ec = execute(all);
    if (!ec) {
      complete(all);
      return {};
    }
    if (all.size() != 1) return serve_each(all);
    return serve_again(all, ec);
  }

  error_code serve_each(group all) noexcept {
    for (; !all.empty(); all = all.subspan(1)) {
      auto one = all.first(1);
      if (!one[0]) continue;
      if (auto const ec = begin(writes(one))) {
        fail(all, ec);
        return ec;
      }
      if (auto const ec = execute(one); !ec) {
        complete(one);
      } else if (auto const again = serve_again(one, ec)) {
        return again;
      }
    }
    return {};
  }

  /// Completes one command, whose first execution failed.
  error_code serve_again(group one, error_code ec) noexcept {
    if (ec == errc::disk_full && !one[0]->needs_room() && make_room()) {
      if (auto const cannot = begin(writes(one))) {
        fail(one, cannot);
        return cannot;
      }
      ec = execute(one);
    }
    if (ec) {
      fail(one, ec);
    } else {
      complete(one);
    }
    return {};
  }

  [[nodiscard]] bool make_room() noexcept {
    try {
      if (file_) file_->make_room();
      return file_ != nullptr;
    } catch (...) {  // the limit could not be raised
      return false;
    }
  }

  /// Begins a transaction, in a file that is opened if need be.
  error_code begin(bool write) noexcept {
    for (bool again = false;; again = true) {
      try {
        if (!file_) {
          auto opened = sqlite_file::open(path_, options_, clock_);
          if (opened.has_error()) return fails(opened.error());
          file_ = std::move(opened).value();
          looked_at_.reset();
        }
        sqlite_patience{options_.busy_timeout}.until_free([&] { file_->begin(write); });
        waiters_.watch(file_->tables().events());
        state_.recovered();
        return {};
      } catch (sqlite_failure const& f) {
        bool const room = f.full() && !again && make_room();
        if (!f.busy() && !room) file_.reset();
        // The file was deleted, or replaced: the next attempt opens what is there now.
        if ((f.primary() != SQLITE_CANTOPEN && !room) || again) {
          return fails(explained(to_error(f), sqlite_file::cause_of(f, path_)));
        }
      } catch (std::bad_alloc const&) {
        return make_error_code(boost::system::errc::not_enough_memory);
      }
    }
  }

  /// Says of which file, too.
  error_code fails(error_code ec) noexcept {
    try {
      auto const cause = explanation_of(ec);
      return state_.failed(plain(ec), path_ + (cause.empty() ? "" : ": ") + std::string{cause});
    } catch (std::bad_alloc const&) {
      return ec;
    }
  }

  /// Executes requests in the transaction until their bytes fill it, and commits it or rolls it
  /// back. Takes off the end of the group what was not executed. Those that were cancelled until
  /// their turn are gone.
  error_code execute(group& all) noexcept {
    error_code ec;
    bool usable = true;
    try {
      std::size_t done = 0;
      std::optional<bool> room;
      for (std::size_t bytes = 0; done != all.size() && bytes < limits::batch_bytes; ++done) {
        auto& r = all[done];
        if (r && !r->start()) r.reset();
        if (!r) continue;
        if (r->needs_room() && !room) room = file_->has_room();
        if (r->needs_room() && !*room) {
          r->refuse(
              explained(errc::disk_full, "what room there is, is kept for emptying the store"));
        } else {
          r->run(file_->tables());
        }
        bytes += r->bytes();
      }
      all = all.first(done);
      file_->commit();
      return {};
    } catch (sqlite_damage const& f) {
      ec = to_error(f);
    } catch (sqlite_failure const& f) {
      ec = to_error(f);
      usable = f.busy() || f.full() || f.primary() == SQLITE_NOMEM;
      if (!f.busy()) ec = fails(explained(ec, f.what()));
    } catch (std::bad_alloc const&) {
      ec = make_error_code(boost::system::errc::not_enough_memory);
    }
    file_->rollback();
    if (!usable) file_.reset();
    return ec;
  }

  void complete(group all) noexcept {
    for (auto const& r : all) {
      if (r) r->complete();
    }
    try {
      waiters_.settle(file_->tables());
    } catch (...) {  // hints promise nothing
    }
    file_->write_back();
  }

  /// Notices what other processes have committed, while somebody waits for that.
  void look_around(bool idle) noexcept {
    if (waiters_.empty()) return;
    try {
      if (idle) waiters_.prune();
      if (file_ && !look_again_ && file_->tables().data_version() == looked_at_) return;
      look_again_ = false;
      if (begin(false)) return;
      looked_at_ = file_->tables().data_version();
      look_again_ = waiters_.look_around(file_->tables());
      file_->commit();
    } catch (...) {
      if (file_) file_->rollback();
    }
  }

  std::string const path_;
  sqlite_options const options_;
  sqlite_clock const clock_;
  outage state_;

  std::mutex mutex_;
  std::condition_variable arrived_;
  requests queued_;
  bool stopping_ = false;

  // The thread's own.
  std::unique_ptr<sqlite_file> file_;
  sqlite_waiters waiters_;
  std::optional<std::int64_t> looked_at_;
  bool look_again_ = false;
};

}  // namespace weir::detail

#endif
