// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_REQUEST_HPP
#define WEIR_STORE_REDIS_REQUEST_HPP

#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/rule/bytes.hpp"
#include "weir/store/redis/buckets.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/enqueues.hpp"
#include "weir/store/redis/job_ends.hpp"
#include "weir/store/redis/jobs.hpp"
#include "weir/store/redis/locks.hpp"
#include "weir/store/redis/permits.hpp"
#include "weir/store/redis/queues.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/resp.hpp"
#include "weir/store/redis/room.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace weir::detail {

/// One run of a script, on its way. Owns all that travels, so that it may outlive the operation
/// that it is for. Everything but making it is done in the strand of the link.
class redis_request {
 public:
  /// @param answer bytes that its answer may have, where those are many
  explicit redis_request(redis_call call, std::size_t answer = 0)
      : call_{std::move(call)},
        bytes_{call_.bytes() + answer} {}
  redis_request(redis_request const&) = delete;
  redis_request& operator=(redis_request const&) = delete;
  virtual ~redis_request() = default;

  /// Does somebody still want it?
  [[nodiscard]] virtual bool wanted() const noexcept = 0;

  /// Is it to be sent? False: nobody wants it any more. `stays`: it was not sent, or not executed.
  [[nodiscard]] virtual bool leaves() noexcept { return wanted(); }
  virtual void stays() noexcept {}

  virtual void complete(redis_reply& reply) noexcept = 0;
  virtual void fail(error_code ec) noexcept = 0;
  void fail(errc e) noexcept { fail(make_error_code(e)); }

  /// Adds it to what travels.
  void push(redis_wire& to) {
    sent_ = &call_.script();
    together_ = false;
    if (asking_) to.push("ASKING");
    if (by_source_) return call_.push_with_source(to);
    call_.push(to);
  }
  /// It travels with others, as one call, which may be of another script.
  [[nodiscard]] bool joins() const noexcept {
    return !alone_ && !by_source_ && !asking_ && call_.joins();
  }
  [[nodiscard]] redis_call const& joined() noexcept {
    sent_ = &call_.joined_script();
    together_ = true;
    return call_;
  }
  /// Did it, when it was sent last?
  [[nodiscard]] bool went_together() const noexcept { return together_; }
  /// From now on it travels by itself.
  void stay_alone() noexcept { alone_ = true; }
  [[nodiscard]] redis_call const& call() const noexcept { return call_; }

  /// The one that the server was asked to run.
  [[nodiscard]] redis_script const& script() const noexcept {
    return sent_ == nullptr ? call_.script() : *sent_;
  }
  [[nodiscard]] std::uint32_t shard() const noexcept { return call_.shard(); }
  /// Of it and, where those are many, of its answer.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// It was sent elsewhere, where scripts may be unknown once more.
  void anew() noexcept {
    attempts_ = 0;
    by_source_ = asking_ = false;
  }
  /// As redis_call has it.
  bool leave_time_out() { return call_.leave_time_out(); }
  /// It is for a node that takes a slot over: such a node executes only what asks for that right
  /// before. With its source, so that nothing has to be said in between.
  void ask_first() noexcept { by_source_ = asking_ = true; }
  /// Does another reply come before its own?
  [[nodiscard]] bool asks_first() const noexcept { return asking_; }
  /// It was not executed, because of this; another server may do it.
  void refuse(error_code why) noexcept { refusal_ = why; }
  [[nodiscard]] error_code refusal() const noexcept { return refusal_; }
  /// It is to be sent again later.
  void hold() noexcept { was_held_ = true; }
  [[nodiscard]] bool was_held() const noexcept { return was_held_; }
  /// How often it was sent elsewhere.
  [[nodiscard]] int& redirections() noexcept { return redirections_; }

  /// How a command whose script the server does not know goes to it again.
  enum class attempt : std::uint8_t { by_digest, by_source, none };
  [[nodiscard]] attempt try_again() {
    switch (++attempts_) {
      case 1: return attempt::by_digest;
      case 2: by_source_ = true; return attempt::by_source;
      default: return attempt::none;
    }
  }

  steady_time give_up_at{};

 private:
  redis_call call_;
  redis_script const* sent_ = nullptr;
  std::size_t bytes_;
  int attempts_ = 0;
  int redirections_ = 0;
  error_code refusal_;
  bool by_source_ = false;
  bool asking_ = false;
  bool alone_ = false;
  bool together_ = false;
  bool was_held_ = false;
};

/// A command. Its operation may be cancelled all the time; then the reply is nobody's.
template <class C>
class redis_command final : public redis_request {
 public:
  using answer = typename C::result;

  redis_command(std::shared_ptr<parked<error_code, answer>> op, C const& c, redis_call call)
      : redis_request{std::move(call), rule::largest_answer(c)},
        operation_{std::move(op)},
        command_{c} {}

  [[nodiscard]] bool wanted() const noexcept override { return operation_->waiting(); }
  [[nodiscard]] bool leaves() noexcept override { return operation_->leaves(); }
  void stays() noexcept override { operation_->stays(); }

  void complete(redis_reply& reply) noexcept override {
    // While it is claimed, what the command views is there.
    if (!operation_->claim()) return;
    try {
      result<answer> out = make_error_code(boost::system::errc::not_enough_memory);
      try {
        out = decode(command_, reply);
        if constexpr (redis_asks_bucket<C>) {
          if (call().is_timeless() && out.has_value()) ask_again_soon(*out);
        }
        if (!reply.good() || (out.has_value() && !reply.complete())) out = errc::outcome_unknown;
      } catch (std::bad_alloc const&) {
      }
      if (out.has_value()) {
        operation_->finish(error_code{}, std::move(out).value());
      } else {
        operation_->finish(out.error(), answer{});
      }
    } catch (...) {  // no memory to post it with: its handler is gone
    }
  }

  void fail(error_code ec) noexcept override {
    try {
      operation_->resume(ec, answer{});
    } catch (...) {
    }
  }
  using redis_request::fail;

 private:
  std::shared_ptr<parked<error_code, answer>> operation_;
  C command_;
};

}  // namespace weir::detail

#endif
