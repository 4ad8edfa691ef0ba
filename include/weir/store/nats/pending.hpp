// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_PENDING_HPP
#define WEIR_STORE_NATS_PENDING_HPP

#include "weir/error.hpp"
#include "weir/owned_command.hpp"
#include "weir/parking.hpp"
#include "weir/store/nats/errand.hpp"
#include "weir/store/nats/wire.hpp"
#include "weir/time.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// The part of every errand that has to do with its caller.
/// @tparam Errand the kind of it, `nats_errand` or of that
template <class Errand, class C>
class nats_pending : public Errand {
 public:
  using result_type = typename C::result;
  using operation = std::shared_ptr<resumable<error_code, result_type>>;
  using counter = std::shared_ptr<std::atomic<std::size_t>>;

  /// @param pending how many there are of them
  nats_pending(operation op, C const& c, std::optional<time_point> told, counter pending)
      : command_{c},
        told_{told},
        pending_{std::move(pending)},
        operation_{std::move(op)} {
    ++*pending_;
  }
  ~nats_pending() override { --*pending_; }

  [[nodiscard]] bool wanted() const noexcept final { return operation_->waiting(); }
  [[nodiscard]] bool leaves() noexcept final { return operation_->leaves(); }
  void stays() noexcept final { operation_->stays(); }
  using nats_errand::fail;
  void fail(error_code ec) noexcept final { end_with(ec, result_type{}); }
  void complete(result<result_type> r) noexcept {
    if (r.has_error()) return fail(r.error());
    end_with({}, std::move(r).value());
  }

  void ask(std::string& to) const final { nats_put_command(to, command_.get(), told_); }
  [[nodiscard]] bool hear(std::string_view result) final {
    result_type r{};
    if (!nats_take_answer(result, r) || !nats_answers(command_.get(), r)) return false;
    end_with({}, std::move(r));
    return true;
  }

 protected:
  owned_command<C> command_;
  std::optional<time_point> told_;  ///< the time that it was told; empty: the server's counts

 private:
  void end_with(error_code ec, result_type r) noexcept {
    try {
      operation_->resume(ec, std::move(r));
    } catch (...) {  // no memory to post it with: its handler is gone
    }
  }

  counter pending_;
  operation operation_;
};

}  // namespace weir::detail

#endif
