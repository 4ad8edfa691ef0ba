// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_WAIT_REQUEST_HPP
#define WEIR_STORE_SQLITE_WAIT_REQUEST_HPP

#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"
#include "weir/detail/hint_line.hpp"
#include "weir/error.hpp"
#include "weir/owned_command.hpp"
#include "weir/rule/permits.hpp"
#include "weir/store/sqlite/request.hpp"
#include "weir/store/sqlite/tables.hpp"
#include "weir/store/sqlite/waiters.hpp"
#include "weir/time.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace weir::detail {

/// Looks whether there is a hint already, and joins the waiters if not. Its operation may be
/// cancelled all the time.
template <class C>
class sqlite_wait_request final : public sqlite_request {
 public:
  sqlite_wait_request(hint_waiter op, C const& c, sqlite_waiters& waiters)
      : operation_{std::move(op)},
        command_{c},
        waiters_{waiters} {}

  [[nodiscard]] bool reads_only() const noexcept override { return true; }
  [[nodiscard]] bool waits() const noexcept override { return true; }
  [[nodiscard]] bool start() noexcept override { return operation_->waiting(); }
  void run(sqlite_tables& tables) override { join_ = plan(tables, command_.get(), tables.now()); }

  void complete() noexcept override {
    try {
      if (join_) {
        join_(std::move(operation_));
      } else {
        wake(operation_, invalid_);
      }
    } catch (...) {  // no memory: then it ends as if the store had forgotten it
    }
  }

  void fail(error_code ec) noexcept override { wake(operation_, ec); }

 private:
  using joining = std::function<void(hint_waiter)>;

  joining plan(sqlite_tables& tables, command::await_permit const& c, time_point now) {
    tables.events().lines_watched = true;  // by what follows in this transaction
    return tables.permits().look(c.key, now, [&](rule::permit_line& line) -> joining {
      if (rule::should_ask(line, c, now)) return {};
      return [this, key = c.key, ticket = *line.tickets.find(c.holder)](auto operation) {
        waiters_.add(key, ticket, std::move(operation));
      };
    });
  }

  joining plan(sqlite_tables& tables, command::await_jobs const& c, time_point now) {
    invalid_ = c.shard < tables.shards() ? error_code{} : make_error_code(errc::invalid_shard);
    if (invalid_) return {};
    tables.events().queues_watched = true;
    auto const scan = rule::scan_number(c.shard, c.schedules);
    tables.events().scans_watched.insert(scan);
    auto const first = tables.jobs().first_due(scan);
    if (first && rule::job_visible(*first, now)) return {};
    return [this, scan, first](auto operation) { waiters_.add(scan, first, std::move(operation)); };
  }

  joining plan(sqlite_tables& tables, command::await_cancel const& c, time_point) {
    // Without those of this transaction, which `settle` adds after its end.
    auto const before = tables.cancels() - tables.events().cancelled.size();
    return [this, holder = c.holder, cancels = before](auto operation) {
      waiters_.add(holder, cancels, std::move(operation));
    };
  }

  hint_waiter operation_;
  owned_command<C> command_;
  sqlite_waiters& waiters_;
  joining join_;
  error_code invalid_;
};

}  // namespace weir::detail

#endif
