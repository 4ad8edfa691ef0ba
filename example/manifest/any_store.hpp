// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_ANY_STORE_HPP
#define WEIR_EXAMPLE_MANIFEST_ANY_STORE_HPP

#include "weir/command/buckets.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"
#include "weir/error.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

// A store is whatever executes commands, so one that is picked at run time is a table of them. The
// worker and all that belongs to it are compiled once then, and not for each store.
namespace manifest {

namespace asio = boost::asio;

template <class C>
using answer_handler = asio::any_completion_handler<void(weir::error_code, typename C::result)>;

template <class C>
class executes_one {
 public:
  virtual void execute(C const& c, answer_handler<C> handler) = 0;

 protected:
  ~executes_one() = default;
};

template <class... Commands>
class executes_all : public executes_one<Commands>... {
 public:
  virtual ~executes_all() = default;
  using executes_one<Commands>::execute...;
  [[nodiscard]] virtual std::uint32_t shard_count() const noexcept = 0;
  virtual void close() = 0;

  template <class C>
  static constexpr bool has = (std::same_as<C, Commands> || ...);
};

/// What the primitives that the program uses ask for.
namespace ask {
using namespace weir::command;
using all =
    executes_all<acquire_permit, renew_permit, release_permit, inspect_permits, await_permit, take,
                 peek_bucket, refund, reset_bucket, enqueue_jobs, peek_jobs, dequeue_jobs,
                 obtain_lease, extend_lease, start_job, complete_jobs, requeue_job, snooze_job,
                 return_job, bury_job, cancel_job, find_job, min_vesting_time, scan_visible_queues,
                 update_queue_pointer, gc_stale_pointers, obtain_queue_lease, release_queue_lease,
                 snooze_queue, pause_queue, resume_queue, read_queue_stats, list_dead_letters,
                 replay_dead_letter, purge_job, list_queues, await_jobs>;
}  // namespace ask

/// A handle, as every store is: copies share it.
class any_store {
 public:
  using executor_type = asio::any_io_executor;

  any_store(executor_type executor, std::shared_ptr<ask::all> store)
      : executor_{std::move(executor)},
        store_{std::move(store)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_->shard_count(); }

  /// Ends what keeps the context busy though nobody waits for it, such as a connection.
  void close() const { store_->close(); }

  template <class C, class Token>
    requires(ask::all::has<C>)
  auto async_execute(C const& c, Token&& token) const {
    return asio::async_initiate<Token, void(weir::error_code, typename C::result)>(
        initiation{executor_}, token, store_, c);
  }

 private:
  struct initiation {
    using executor_type = any_store::executor_type;
    executor_type executor;
    [[nodiscard]] executor_type get_executor() const noexcept { return executor; }

    template <class Handler, class C>
    void operator()(Handler&& handler, std::shared_ptr<ask::all> const& store, C const& c) const {
      store->execute(c, answer_handler<C>{std::forward<Handler>(handler)});
    }
  };

  executor_type executor_;
  std::shared_ptr<ask::all> store_;
};

/// One store behind the table. A link for each command, each on top of the one before.
template <class Store, class Base, class... Commands>
class store_link : public Base {
 public:
  explicit store_link(Store store) : store_{std::move(store)} {}
  [[nodiscard]] std::uint32_t shard_count() const noexcept override { return store_.shard_count(); }
  void close() override {
    if constexpr (requires(Store s) { s.close(); }) store_.close();
  }

 protected:
  Store store_;
};

template <class Store, class Base, class C, class... Rest>
class store_link<Store, Base, C, Rest...> : public store_link<Store, Base, Rest...> {
 public:
  using store_link<Store, Base, Rest...>::store_link;
  using store_link<Store, Base, Rest...>::execute;
  void execute(C const& c, answer_handler<C> handler) override {
    this->store_.async_execute(c, std::move(handler));
  }
};

template <class Store, class... Commands>
std::shared_ptr<ask::all> erase(Store store, executes_all<Commands...> const*) {
  return std::make_shared<store_link<Store, ask::all, Commands...>>(std::move(store));
}

template <class Store>
any_store make_any_store(Store store) {
  auto executor = store.get_executor();
  return {std::move(executor), erase(std::move(store), static_cast<ask::all const*>(nullptr))};
}

}  // namespace manifest

#endif
