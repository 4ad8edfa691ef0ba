// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_ENGINE_HPP
#define WEIR_STORE_SQLITE_ENGINE_HPP

#include "weir/clock/system.hpp"
#include "weir/command/list.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/detail/engine_way.hpp"
#include "weir/detail/patience.hpp"
#include "weir/error.hpp"
#include "weir/failure.hpp"
#include "weir/parking.hpp"
#include "weir/posting.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/sqlite/host.hpp"
#include "weir/store/sqlite/options.hpp"
#include "weir/store/sqlite/request.hpp"
#include "weir/store/sqlite/wait_request.hpp"
#include "weir/store/sqlite/worker.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/system/errc.hpp>

#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#if !defined(_WIN32) && __has_include(<pthread.h>) && __has_include(<signal.h>)
#define WEIR_HAS_SIGNAL_MASKS 1
#include <pthread.h>
#include <signal.h>
#endif

namespace weir::detail {

/// A worker with its thread. Destroying it waits until what is queued was executed.
class sqlite_engine {
 public:
  sqlite_engine(boost::asio::any_io_executor executor, std::string path,
                sqlite_options const& options, sqlite_host host)
      : executor_{std::move(executor)},
        worker_{std::make_shared<sqlite_worker>(std::move(path), options, std::move(host))},
        patience_{std::make_shared<patience_watch<system_clock>>(
            executor_, [worker = worker_] { return worker->state().error(); })} {
    [[maybe_unused]] no_signals const here;
    thread_ = std::thread{[w = worker_] { w->run(); }};
  }
  sqlite_engine(sqlite_engine const&) = delete;
  sqlite_engine& operator=(sqlite_engine const&) = delete;
  ~sqlite_engine() {
    worker_->stop();
    if (thread_.get_id() == std::this_thread::get_id()) {
      thread_.detach();  // the last handle was in a handler that died there
    } else {
      thread_.join();
    }
  }

  template <class C>
  void execute(C const& c, call_terms const& terms, erased_handler<C> handler) {
    using answer = typename C::result;
    if (auto const ec = rule::validate(c)) {
      return post_completion(executor_, std::move(handler), ec, answer{});
    }
    if constexpr (!command::waits_for_event<C>) {
      if (auto done = worker_->execute_here(c, terms.at)) {
        return deliver(std::move(handler), std::move(*done));
      }
    }
    auto const op = park<error_code, answer>(executor_, std::move(handler));
    if (!op->waiting()) return;  // its handler is gone, and with it what the command views
    // From here on it completes, and so does not throw.
    try {
      if constexpr (command::waits_for_event<C>) {
        worker_->submit(std::make_unique<sqlite_wait_request<C>>(op, c, worker_->waiters()));
      } else {
        auto copy = std::make_unique<sqlite_command<C>>(op, c, terms.at);
        patience_->add(op, terms.patience);  // which may end it at once
        worker_->submit(std::move(copy));
      }
    } catch (std::bad_alloc const&) {
      op->resume(make_error_code(boost::system::errc::not_enough_memory), answer{});
    }
  }

  void open(boost::asio::any_completion_handler<void(error_code)> handler) {
    auto const op = park<error_code>(executor_, std::move(handler));
    try {
      worker_->submit(std::make_unique<sqlite_open_request>(op));
    } catch (std::bad_alloc const&) {
      op->resume(make_error_code(boost::system::errc::not_enough_memory));
    }
  }

  void close() noexcept { worker_->stop(); }
  [[nodiscard]] store_failure last_failure() const { return worker_->state().last(); }

 private:
  struct delivery {
    void operator()(sqlite_worker* to) const noexcept { to->delivered(); }
  };

  /// Completes with an answer that was made in place.
  template <class Handler, class Answer>
  void deliver(Handler handler, result<Answer> answer) noexcept try {
    auto const own = boost::asio::get_associated_executor(handler, executor_);
    auto told = [worker = worker_,
                 on_its_way = std::unique_ptr<sqlite_worker, delivery>{worker_.get()},
                 handler = std::move(handler)](error_code ec, Answer a) mutable {
      on_its_way.reset();
      std::move(handler)(ec, std::move(a));
    };
    error_code const ec = answer.has_error() ? answer.error() : error_code{};
    post_completion(executor_, boost::asio::bind_executor(own, std::move(told)), ec,
                    answer.has_value() ? std::move(answer).value() : Answer{});
  } catch (...) {  // no memory to post it with: its handler is gone, but the command is done
  }

  /// A thread that is started meanwhile leaves the process's signals to the others.
  class no_signals {
   public:
    no_signals(no_signals const&) = delete;
    no_signals& operator=(no_signals const&) = delete;
#ifdef WEIR_HAS_SIGNAL_MASKS
    no_signals() noexcept {
      ::sigset_t all;
      sigfillset(&all);  // a macro on some systems
      ::pthread_sigmask(SIG_BLOCK, &all, &before_);
    }
    ~no_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

   private:
    ::sigset_t before_;
#else
    no_signals() noexcept = default;
#endif
  };

  boost::asio::any_io_executor executor_;
  std::shared_ptr<sqlite_worker> worker_;
  std::shared_ptr<patience_watch<system_clock>> patience_;
  std::thread thread_;
};

WEIR_DECL std::shared_ptr<sqlite_engine> make_sqlite_engine(boost::asio::any_io_executor executor,
                                                            std::string path,
                                                            sqlite_options const& options,
                                                            sqlite_host host) {
  return std::make_shared<sqlite_engine>(std::move(executor), std::move(path), options,
                                         std::move(host));
}

WEIR_DECL void open_sqlite(sqlite_engine& engine,
                           boost::asio::any_completion_handler<void(error_code)> handler) {
  engine.open(std::move(handler));
}

WEIR_DECL void close_engine(sqlite_engine& engine) noexcept { engine.close(); }

WEIR_DECL store_failure last_failure_of(sqlite_engine const& engine) {
  return engine.last_failure();
}

}  // namespace weir::detail

#endif
