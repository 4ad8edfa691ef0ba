// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_WORKER_HPP
#define WEIR_STORE_SQLITE_WORKER_HPP

#include "weir/detail/explained.hpp"
#include "weir/detail/outage.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/log.hpp"
#include "weir/store/sqlite/bell.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/file.hpp"
#include "weir/store/sqlite/ledger.hpp"
#include "weir/store/sqlite/options.hpp"
#include "weir/store/sqlite/request.hpp"
#include "weir/store/sqlite/size.hpp"
#include "weir/store/sqlite/waiters.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace weir::detail {

/// The right to work on a file: a mutex that its owner may try to lock, in vain. The application's
/// code that is called by an owner (its log, destructors of its handlers) may use the store again.
class sqlite_turn {
 public:
  void lock() {
    mutex_.lock();
    owner_ = std::this_thread::get_id();
  }
  bool try_lock() noexcept {
    if (owner_ == std::this_thread::get_id() || !mutex_.try_lock()) return false;
    owner_ = std::this_thread::get_id();
    return true;
  }
  void unlock() noexcept {
    owner_ = std::thread::id{};
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
};

/// The file of a store, the thread that works on it, and what the store's handles share with it.
///
/// The thread takes what waits and executes it in one transaction, in the order of arrival: while
/// one group is on its way to the disk, the next one gathers. A group ends when its commands and
/// answers fill `limits::batch_bytes`, so that what it holds until its commit is bounded by that
/// and one command more. Nothing is answered before its commit. A group whose transaction fails is
/// executed again, each command alone, so that each gets an answer of its own. Where a transaction
/// cannot even begin, all are told so. A command that needs no room and meets a full disk is
/// executed again with the reserve given up.
///
/// A brief command that finds nothing else to be done is executed by the thread that gives it, if
/// that need not wait for the disk: handing it over and back takes several times as long. Whatever
/// goes wrong there is the thread's to do again. Whoever works on the file, a thread or a caller,
/// has the turn.
class sqlite_worker {
 public:
  sqlite_worker(std::string path, sqlite_options const& options, sqlite_clock clock)
      : path_{lasting(std::move(path))},
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
    bool at_bell = false;
    {
      std::lock_guard const lock{mutex_};
      at_bell = at_bell_;
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
    if (first) wake(at_bell);  // who is at work looks again by itself
  }

  /// Lets `run` return once what is queued was executed. What comes later is `closed`.
  void stop() noexcept { call_for(stopping_); }

  /// Executes a command in the calling thread, if it can be done at once. Empty: it is to be
  /// submitted. From here until `delivered` no other is executed like this, so that who gives
  /// thousands at once is not kept from its other work.
  template <class C>
  std::optional<result<typename C::result>> execute_here(C const& c,
                                                         std::optional<time_point> time) noexcept {
    constexpr bool write = !command::reads_only<C>;
    if (!options_.in_place || due_ || delivering_ || !sqlite_brief(c)) return std::nullopt;
    std::unique_lock const turn{turn_, std::try_to_lock};
    if (!turn || !file_ || broken_ || !file_->is_brief(c, write) || !is_quiet()) {
      return std::nullopt;
    }
    result<typename C::result> answer =
        make_error_code(boost::asio::error::operation_aborted);  // named: see CONTRIBUTING.md
    try {
      file_->begin(write, true);
      waiters_.watch(file_->tables().events());
      answer = file_->tables().apply(c, file_->tables().now_or(time));
      file_->commit();
      state_.recovered();
    } catch (sqlite_failure const& f) {
      file_->rollback();
      if (!f.committing() || f.busy() || f.full()) return std::nullopt;
      broken_ = true;
      answer = fails(explained(to_error(f), f.what()));
    } catch (...) {  // no memory
      file_->rollback();
      return std::nullopt;
    }
    delivering_ = true;
    if (!broken_) settle();
    if (broken_ || file_->wants_write_back()) call_for(called_);
    return answer;
  }

  /// The answer of `execute_here` has come to its handler.
  void delivered() noexcept { delivering_ = false; }

  /// The body of the thread.
  void run() noexcept {
    requests batch;
    std::unique_lock turn{turn_, std::defer_lock};
    do {
      await();
      due_ = true;
      turn.lock();
      due_ = false;
      if (std::exchange(broken_, false)) file_.reset();
      take(batch);
      bool const idle = batch.empty();
      for (std::span rest{batch}; !rest.empty();) {
        auto first = rest.first(std::min<std::size_t>(rest.size(), options_.max_group));
        auto const ec = serve(first);
        rest = rest.subspan(first.size());
        // Whoever stops is waiting: what cannot begin now is not tried time and again.
        if (ec && stops()) fail(std::exchange(rest, {}), ec);
        if (rest.empty()) at_work(false);
        turn.unlock();
        answer(first);  // whoever goes on at once finds the file free
        turn.lock();
        if (file_) file_->write_back();
      }
      batch.clear();
      if (file_) file_->write_back();  // that commands in place have asked for
      look_around(idle);
      ignore_unless_waited_for();
      turn.unlock();
    } while (!is_over());
    turn.lock();
    waiters_.fail(boost::asio::error::operation_aborted);
    bell_.ignore();
    file_.reset();
  }

 private:
  using requests = std::vector<std::unique_ptr<sqlite_request>>;
  using group = std::span<std::unique_ptr<sqlite_request>>;

  [[nodiscard]] bool stops() {
    std::lock_guard const lock{mutex_};
    return stopping_;
  }

  /// Is there nothing that is to be done before what comes now?
  [[nodiscard]] bool is_quiet() {
    std::lock_guard const lock{mutex_};
    return queued_.empty() && !at_work_ && !stopping_;
  }
  [[nodiscard]] bool is_over() {
    std::lock_guard const lock{mutex_};
    return queued_.empty() && stopping_;
  }
  void at_work(bool is) {
    std::lock_guard const lock{mutex_};
    at_work_ = is;
  }

  /// Waits for requests, or for the time to look around.
  void await() {
    std::unique_lock lock{mutex_};
    auto const come = [&] { return stopping_ || called_ || !queued_.empty(); };
    if (!attentive_) return arrived_.wait(lock, come);
    if (!by_bell_) {
      arrived_.wait_for(lock, (unhurried_ ? 10 : 1) * options_.poll_interval, come);
      return;
    }
    auto const wait = [&](duration most, bool heed) {
      if (come()) return;
      at_bell_ = true;
      lock.unlock();
      if (bell_.wait(most, heed)) heard_ = std::chrono::steady_clock::now();
      lock.lock();
      at_bell_ = false;
    };
    // Others may ring all the time, for what does not concern this process.
    duration const silence = std::chrono::steady_clock::now() - heard_;
    auto const pace = unhurried_ ? 10 * most_pace : pace_;
    if (silence < pace) wait(pace - silence, false);
    wait(look_after(silence), true);
  }

  /// How long until the file is looked at again that nobody has rung for.
  [[nodiscard]] duration look_after(duration silence) const noexcept {
    constexpr duration second = std::chrono::seconds{1};
    auto const often = options_.poll_interval;
    if (silence < second || look_again_) return often;
    return std::max(often, std::min(10 * often, second));
  }

  /// Wakes the thread. Its own mutex is not held.
  void wake(bool at_bell) noexcept { at_bell ? bell_.wake() : arrived_.notify_one(); }

  /// Wakes the thread for one of these.
  void call_for(bool& reason) noexcept {
    bool at_bell = false;
    {
      std::lock_guard const lock{mutex_};
      reason = true;
      at_bell = at_bell_;
    }
    wake(at_bell);
  }

  void take(requests& batch) {
    std::lock_guard const lock{mutex_};
    called_ = false;
    batch.swap(queued_);
    at_work_ = !batch.empty();
  }

  static bool writes(group all) noexcept {
    return !std::ranges::all_of(all, [](auto const& r) { return r->reads_only(); });
  }

  static void fail(group all, error_code ec) noexcept {
    for (auto& r : all) {
      if (r) r->fail(ec);
      r.reset();
    }
  }

  /// Executes a group, and leaves of it what is to be answered. What is left over, because its
  /// bytes fill the group, is taken off its end. Returns why it could not begin, if it could not.
  error_code serve(group& all) noexcept {
    attentive_ = attentive_ || std::ranges::any_of(all, [](auto const& r) { return r->waits(); });
    if (auto const ec = begin(writes(all))) {
      fail(all, ec);
      return ec;
    }
    auto const ec = execute(all);
    if (!ec) {
      commit(all);
      return {};
    }
    if (ec == errc::outcome_unknown) {  // once more may be twice
      fail(all, ec);
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
        commit(one);
      } else if (auto const again = serve_again(one, ec)) {
        return again;
      }
    }
    return {};
  }

  /// Executes one command once more, whose first execution failed.
  error_code serve_again(group one, error_code ec) noexcept {
    if (one[0] && ec == errc::disk_full && !one[0]->needs_room() && make_room()) {
      if (auto const cannot = begin(writes(one))) {
        fail(one, cannot);
        return cannot;
      }
      ec = execute(one);
    }
    if (ec) {
      fail(one, ec);
    } else {
      commit(one);
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

  /// The file is opened again after a failure, and the process may have changed its folder by then.
  [[nodiscard]] static std::string lasting(std::string path) {
    bool const is_file = !path.empty() && !path.starts_with(':') && !path.starts_with("file:");
    std::error_code failed;
    auto const whole = is_file ? std::filesystem::absolute(path, failed) : std::filesystem::path{};
    return !is_file || failed ? path : whole.string();
  }

  /// Begins a transaction, in a file that is opened if need be.
  error_code begin(bool write) noexcept {
    for (bool again = false;; again = true) {
      try {
        if (!file_) {
          auto opened = sqlite_file::open(path_, options_, clock_);
          if (opened.has_error()) return fails(opened.error());
          bell_.hang(opened.value()->name());
          file_ = std::move(opened).value();
          looked_at_.reset();
        }
        if (attentive_) listen();  // before anything is read
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
        if (file_ && !file_->rollback()) file_.reset();
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
    if (!file_->rollback() || !usable) file_.reset();
    return ec;
  }

  /// After a commit: lets those wait who are to. The others are answered without the turn.
  void commit(group all) noexcept {
    for (auto& r : all) {
      if (!r || !r->waits()) continue;
      r->complete();
      r.reset();
    }
    settle();
  }

  /// Answers a group, all but the first by one post: a thread that each answer wakes would be
  /// asleep again when the next one comes. What is posted to cannot end while the first is claimed.
  static void answer(group all) noexcept {
    for (auto const& r : all) {
      if (r) r->answered();
    }
    boost::asio::any_io_executor const* to = nullptr;
    auto const first =
        std::ranges::find_if(all, [&](auto const& r) { return r && (to = r->claim()); });
    if (first == all.end()) return;
    group const others{std::next(first), all.end()};
    std::shared_ptr<requests> carried;
    try {
      if (!others.empty()) {
        carried = std::make_shared<requests>(std::move_iterator{others.begin()},
                                             std::move_iterator{others.end()});
        post_task(*to, [carried] { complete(*carried); });
      }
      complete({first, 1});
    } catch (...) {  // no memory; those that are not claimed may end a context
      complete({first, 1});
      complete(carried ? group{*carried} : others);
    }
  }
  static void complete(group all) noexcept {
    for (auto& r : all) {
      if (r) r->complete();
      r.reset();
    }
  }

  /// Tells whom the latest commit may concern, in this process and in others.
  void settle() noexcept {
    if (file_->tables().gave()) bell_.ring();
    try {
      waiters_.settle(file_->tables());
    } catch (...) {  // hints promise nothing
    }
  }

  void listen() noexcept {
    by_bell_ = bell_.listen();
    if (by_bell_ || !sqlite_bell::is_possible || std::exchange(told_of_bell_, true)) return;
    try {
      tell_log(log::level::warning, log::topic::store,
               "SQLite store in " + path_ +
                   ": what other processes commit is noticed by polling: " + bell_.cause());
    } catch (...) {  // no memory
    }
  }

  void ignore_unless_waited_for() noexcept {
    attentive_ = !waiters_.empty();
    unhurried_ = waiters_.for_cancels_only();
    if (attentive_) return;
    bell_.ignore();
    by_bell_ = false;
  }

  /// Notices what other processes have committed, while somebody waits for that.
  void look_around(bool idle) noexcept {
    if (waiters_.empty()) return;
    if (file_) listen();  // the file of the bell may be another one now
    try {
      if (idle) waiters_.prune();
      if (file_ && !look_again_ && file_->tables().data_version() == looked_at_) return;
      look_again_ = false;
      if (begin(false)) return looked_at_.reset();  // the next poll looks in any case
      looked_at_ = file_->tables().data_version();
      static_cast<void>(waiters_.woke());
      look_again_ = waiters_.look_around(file_->tables());
      pace_ = waiters_.woke() ? least_pace : std::min(2 * pace_, most_pace);
      file_->commit();
    } catch (...) {
      looked_at_.reset();
      if (file_ && !file_->rollback()) file_.reset();
    }
  }

  std::string const path_;
  sqlite_options const options_;
  sqlite_clock const clock_;
  outage state_;

  std::mutex mutex_;  // of what follows
  std::condition_variable arrived_;
  requests queued_;
  bool stopping_ = false;
  bool at_work_ = false;  // the thread has commands that it has not executed
  bool called_ = false;   // there is something to do, though nothing is queued
  bool at_bell_ = false;  // the thread waits for the bell, not for `arrived_`

  sqlite_turn turn_;  // of what follows; taken before `mutex_`
  std::unique_ptr<sqlite_file> file_;
  sqlite_waiters waiters_;
  sqlite_bell bell_;
  bool broken_ = false;  // the file is to be opened anew

  std::atomic<bool> due_ = false;         // the thread waits for its turn
  std::atomic<bool> delivering_ = false;  // an answer that was made in place is on its way

  // The thread's own.
  std::optional<std::int64_t> looked_at_;
  static constexpr duration least_pace = std::chrono::milliseconds{1};
  static constexpr duration most_pace = std::chrono::milliseconds{10};
  duration pace_ = least_pace;                     // between rings that are heeded
  std::chrono::steady_clock::time_point heard_{};  // when the bell was rung last
  bool look_again_ = false;
  bool attentive_ = false;     // somebody waits for what others commit
  bool unhurried_ = false;     // and for nothing but cancels
  bool by_bell_ = false;       // and is told of it
  bool told_of_bell_ = false;  // that it cannot be heard
};

}  // namespace weir::detail

#endif
