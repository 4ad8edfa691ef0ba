// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_REQUEST_HPP
#define WEIR_STORE_SQLITE_REQUEST_HPP

#include "weir/command/list.hpp"
#include "weir/error.hpp"
#include "weir/owned_command.hpp"
#include "weir/parking.hpp"
#include "weir/store/sqlite/size.hpp"
#include "weir/store/sqlite/tables.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace weir::detail {

/// One command on its way to the thread of a store, and its operation. It is executed in that
/// thread, and completed and destroyed in any.
class sqlite_request {
 public:
  sqlite_request() = default;
  sqlite_request(sqlite_request const&) = delete;
  sqlite_request& operator=(sqlite_request const&) = delete;
  virtual ~sqlite_request() = default;

  [[nodiscard]] virtual bool reads_only() const noexcept = 0;

  /// Does it make records, which a store that is full refuses?
  [[nodiscard]] virtual bool needs_room() const noexcept { return false; }

  /// Does it wait for what others commit?
  [[nodiscard]] virtual bool waits() const noexcept { return false; }

  /// From now on it will be executed; may be called again. False: it was cancelled, or its context
  /// is gone; then nothing else is to be called.
  [[nodiscard]] virtual bool start() noexcept = 0;

  /// Executes it and keeps the answer; a later answer replaces an earlier one, whose transaction
  /// was rolled back. Throws `sqlite_failure`.
  virtual void run(sqlite_tables& tables) = 0;

  /// Answers instead of `run`.
  virtual void refuse(error_code) noexcept {}

  /// Of its texts and of its answer's, once it has run.
  [[nodiscard]] virtual std::size_t bytes() const noexcept { return 0; }

  /// Its answer was committed, and is on its way.
  virtual void answered() noexcept {}

  /// Lets not even the end of a context end it any more, until `complete`, which must follow soon.
  /// Returns the executor that it falls back to. Null: it has ended already, or it waits.
  [[nodiscard]] virtual boost::asio::any_io_executor const* claim() noexcept { return nullptr; }

  /// Completes it with its answer, which was committed.
  virtual void complete() noexcept = 0;

  /// Completes it with an error. May be called without `start`.
  virtual void fail(error_code ec) noexcept = 0;
};

/// `Result` is void where only the error tells anything.
template <class Result>
class sqlite_operation : public sqlite_request {
 public:
  using parked_type = std::conditional_t<
      std::is_void_v<Result>, parked<error_code>,
      parked<error_code, std::conditional_t<std::is_void_v<Result>, int, Result>>>;

  explicit sqlite_operation(std::shared_ptr<parked_type> op) noexcept : operation_{std::move(op)} {}
  ~sqlite_operation() override {
    if (started_) finish(boost::asio::error::operation_aborted);
  }

  [[nodiscard]] bool start() noexcept final {
    if (!started_) started_ = operation_->begins();
    return started_;
  }

  void answered() noexcept final { operation_->answered(); }
  [[nodiscard]] boost::asio::any_io_executor const* claim() noexcept final {
    claimed_ = operation_->claim();
    return claimed_ ? &operation_->fallback() : nullptr;
  }

  // Not begun for that: if its patience ends meanwhile, it was not executed.
  void fail(error_code ec) noexcept final { finish(ec); }

 protected:
  template <class... Args>
  void finish(error_code ec, Args... args) noexcept {
    started_ = false;
    try {
      if constexpr (!std::is_void_v<Result> && sizeof...(Args) == 0) {
        end(ec, Result{});
      } else {
        end(ec, std::move(args)...);
      }
    } catch (...) {  // no memory to post it with: its handler is gone
    }
  }

 private:
  template <class... Args>
  void end(Args... args) {
    if (claimed_ || operation_->claim()) operation_->finish(std::move(args)...);
  }

  std::shared_ptr<parked_type> operation_;
  bool started_ = false;
  bool claimed_ = false;
};

template <class C>
class sqlite_command final : public sqlite_operation<typename C::result> {
 public:
  /// @param time when it is to be executed at; empty: at the file's time
  sqlite_command(std::shared_ptr<parked<error_code, typename C::result>> op, C const& c,
                 std::optional<time_point> time)
      : sqlite_operation<typename C::result>{std::move(op)},
        command_{c},
        time_{time} {}

  [[nodiscard]] bool reads_only() const noexcept override { return command::reads_only<C>; }
  [[nodiscard]] bool needs_room() const noexcept override {
    return command::needs_room<C> || sqlite_notes_of(command_.get()) != 0;
  }
  void refuse(error_code ec) noexcept override { answer_ = ec; }

  void run(sqlite_tables& tables) override {
    answer_ = make_error_code(boost::system::errc::not_enough_memory);
    try {
      answer_ = tables.apply(command_.get(), tables.now_or(time_));
    } catch (std::bad_alloc const&) {  // half of the step may have been made
      throw sqlite_failure{SQLITE_NOMEM};
    }
  }

  [[nodiscard]] std::size_t bytes() const noexcept override {
    auto const answer = answer_.has_value() ? sqlite_bytes_of(*answer_) : std::size_t{0};
    return sqlite_bytes_of(command_.get()) + sqlite_notes_of(command_.get()) + answer;
  }

  void complete() noexcept override {
    if (answer_.has_value()) {
      this->finish(error_code{}, std::move(answer_).value());
    } else {
      this->finish(answer_.error());
    }
  }

 private:
  owned_command<C> command_;
  std::optional<time_point> time_;
  result<typename C::result> answer_ = make_error_code(boost::asio::error::operation_aborted);
};

/// Asks only that the file be open.
class sqlite_open_request final : public sqlite_operation<void> {
 public:
  using sqlite_operation<void>::sqlite_operation;

  [[nodiscard]] bool reads_only() const noexcept override { return true; }
  void run(sqlite_tables&) override {}
  void complete() noexcept override { this->finish(error_code{}); }
};

}  // namespace weir::detail

#endif
