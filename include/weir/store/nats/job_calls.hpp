// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOB_CALLS_HPP
#define WEIR_STORE_NATS_JOB_CALLS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/owned_command.hpp"
#include "weir/parking.hpp"
#include "weir/rule/bytes.hpp"
#include "weir/store/nats/errand.hpp"
#include "weir/store/nats/job_fields.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/store/nats/store_time.hpp"
#include "weir/store/nats/wire.hpp"
#include "weir/table/job_shard.hpp"
#include "weir/time.hpp"

#include <atomic>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// A command that the shards of a NATS store execute.
template <class C>
concept nats_job_step = requires(job_shard& s, C const& c, time_point now) {
  { s.apply(c, now) } -> std::same_as<result<typename C::result>>;
};

/// What a command has come to that was looked at in a shard that knows all that was done before.
enum class nats_verdict : std::uint8_t {
  answered,  ///< it has its answer, and changes nothing
  logged,    ///< it has to be done
};

/// A command that waits for its answer. Everything but making it is done in the strand of the link.
class nats_job_call : public nats_errand {
 public:
  [[nodiscard]] nats_matter matter() const noexcept final { return nats_matter::jobs; }

  /// May it change anything, as far as this shard knows? Where it may not, the shard has to be
  /// brought up to date before it is answered from it.
  [[nodiscard]] virtual bool may_change(job_shard& shard, nats_now now) = 0;
  /// Of one that may change nothing: answers it by a shard that is up to date.
  [[nodiscard]] virtual nats_verdict look(job_shard& shard, nats_now now) = 0;
  /// How many records it may add.
  [[nodiscard]] virtual std::size_t adds(job_shard& shard, nats_now now) = 0;
  virtual void write(nats_batch_writer& to) const = 0;
  /// Its number in the log.
  [[nodiscard]] virtual std::size_t number() const noexcept = 0;

  int waits_for_room = 0;  ///< how often it has waited for room in a log that was full
  std::optional<steady_time> refused_at{};  ///< when it was refused first by one without a leader
};

template <nats_job_step C>
class nats_job_call_of final : public nats_job_call {
 public:
  using result_type = typename C::result;

  /// @param pending how many there are of them
  nats_job_call_of(std::shared_ptr<parked<error_code, result_type>> op, C const& c,
                   std::optional<time_point> told,
                   std::shared_ptr<std::atomic<std::size_t>> pending)
      : pending_{std::move(pending)},
        operation_{std::move(op)},
        command_{c},
        told_{told} {
    ++*pending_;
  }
  ~nats_job_call_of() override { --*pending_; }

  [[nodiscard]] bool wanted() const noexcept override { return operation_->waiting(); }
  [[nodiscard]] bool leaves() noexcept override { return operation_->leaves(); }
  void stays() noexcept override { operation_->stays(); }
  using nats_errand::fail;
  void fail(error_code ec) noexcept override { complete(ec, result_type{}); }
  void answer(result<result_type> r) noexcept {
    if (r.has_error()) return fail(r.error());
    complete({}, std::move(r).value());
  }

  void ask(std::string& to) const override { nats_put_question(to, command_.get(), told_); }
  [[nodiscard]] bool hear(std::string_view result) override {
    result_type r{};
    if (!nats_take_answer(result, r)) return false;
    complete({}, std::move(r));
    return true;
  }

  [[nodiscard]] bool only_reads() const noexcept override { return !nats_logged_command<C>; }
  [[nodiscard]] std::size_t answer_bytes() const noexcept override {
    return rule::largest_answer(command_.get());
  }
  [[nodiscard]] bool may_change(job_shard& shard, nats_now now) override {
    if constexpr (!nats_logged_command<C>) {
      return false;
    } else if constexpr (rests_somewhere) {
      auto const [from, to] = span(now);
      return !shard.rests(command_.get(), from, to).has_value();
    } else {
      return true;
    }
  }
  [[nodiscard]] nats_verdict look(job_shard& shard, nats_now now) override {
    auto const [from, to] = span(now);
    if constexpr (!nats_logged_command<C>) {
      answer(shard.apply(command_.get(), from));
      return nats_verdict::answered;
    } else if constexpr (rests_somewhere) {
      if (auto rests = shard.rests(command_.get(), from, to)) {
        answer(std::move(*rests));
        return nats_verdict::answered;
      }
    }
    return nats_verdict::logged;
  }
  [[nodiscard]] std::size_t adds(job_shard& shard, nats_now now) override {
    if constexpr (requires { shard.unknown(command_.get(), now.earliest); }) {
      return shard.unknown(command_.get(), told_.value_or(now.earliest));
    } else {
      return 0;
    }
  }
  void write(nats_batch_writer& to) const override {
    if constexpr (nats_logged_command<C>) to.add(command_.get(), told_);
  }
  [[nodiscard]] std::size_t number() const noexcept override { return nats_job_number<C>; }

 private:
  static constexpr bool rests_somewhere =
      requires(job_shard& s, C const& c, time_point t) { s.rests(c, t, t); };

  [[nodiscard]] std::pair<time_point, time_point> span(nats_now now) const noexcept {
    if (told_) return {*told_, *told_};
    return {now.earliest, now.latest()};
  }
  void complete(error_code ec, result_type r) noexcept {
    try {
      operation_->resume(ec, std::move(r));
    } catch (...) {  // no memory to post it with: its handler is gone
    }
  }

  std::shared_ptr<std::atomic<std::size_t>> pending_;
  std::shared_ptr<parked<error_code, result_type>> operation_;
  owned_command<C> command_;
  std::optional<time_point> told_;
};

}  // namespace weir::detail

#endif
