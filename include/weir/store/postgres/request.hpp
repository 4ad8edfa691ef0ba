// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_REQUEST_HPP
#define WEIR_STORE_POSTGRES_REQUEST_HPP

#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/rows.hpp"
#include "weir/store/postgres/step.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// The turn of a request among those that wait for locks (postgres_turns).
struct postgres_turn {
  postgres_turn() = default;
  postgres_turn(postgres_turn const&) = delete;
  postgres_turn& operator=(postgres_turn const&) = delete;
  virtual ~postgres_turn() = default;

  bool refused = false;  ///< it ended without the lock
};

/// One statement on its way to the server, and who waits for its answer.
class postgres_request {
 public:
  explicit postgres_request(postgres_call call) noexcept : call_{std::move(call)} {}
  postgres_request(postgres_request const&) = delete;
  postgres_request& operator=(postgres_request const&) = delete;
  virtual ~postgres_request() = default;

  [[nodiscard]] postgres_call const& call() const noexcept { return call_; }
  [[nodiscard]] bool repair() noexcept { return call_.repair(); }
  [[nodiscard]] virtual std::string text(std::string_view schema) const {
    return call_.text(schema);
  }

  /// Does anybody still wait for it?
  [[nodiscard]] virtual bool waiting() const noexcept = 0;

  /// Is all of it held up by one lock? Then it is asked for again as it is, where it may wait.
  [[nodiscard]] virtual bool may_move() const noexcept { return true; }

  /// Is it to be sent? False: nobody waits for it any more. `stays`: it was not sent, or not
  /// executed.
  [[nodiscard]] virtual bool leaves() noexcept { return waiting(); }
  virtual void stays() noexcept {}

  /// When it was first refused because of a lock that somebody has.
  std::optional<steady_time> held_up_at{};
  std::unique_ptr<postgres_turn> turn{};
  bool unnamed = false;  ///< its prepared statement was of no use

  /// Ends it: with an answer that was committed, or with an error.
  virtual void finish(error_code ec, postgres_rows const& answer) noexcept = 0;

 private:
  postgres_call call_;
};

template <class C>
class postgres_command final : public postgres_request {
 public:
  using operation = parked<error_code, typename C::result>;

  postgres_command(std::shared_ptr<operation> op, C const& c, postgres_scope const& in)
      : postgres_request{postgres_nouns::call(c, in)},
        operation_{std::move(op)},
        note_{c} {}

  [[nodiscard]] bool waiting() const noexcept override { return operation_->waiting(); }

  [[nodiscard]] bool leaves() noexcept override { return operation_->leaves(); }
  void stays() noexcept override { operation_->stays(); }

  void finish(error_code ec, postgres_rows const& r) noexcept override {
    if (!operation_->waiting()) return;  // cancelled: nobody wants to know
    try {
      result<typename C::result> answer{ec};
      if (!ec) answer = read_answer<C>(note_, r);
      if (answer.has_value()) {
        operation_->resume(error_code{}, std::move(answer).value());
      } else {
        operation_->resume(answer.error(), typename C::result{});
      }
    } catch (...) {  // no memory to post it with: its handler is gone
    }
  }

 private:
  std::shared_ptr<operation> operation_;
  [[no_unique_address]] postgres_note<C> note_;
};

}  // namespace weir::detail

#endif
