// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOB_CALLS_HPP
#define WEIR_STORE_NATS_JOB_CALLS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/rule/bytes.hpp"
#include "weir/store/nats/errand.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/store/nats/pending.hpp"
#include "weir/store/nats/store_time.hpp"
#include "weir/store/nats/wire.hpp"
#include "weir/table/job_shard.hpp"
#include "weir/time.hpp"

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

/// A command that waits for its answer. Everything but making it is done in the strand of the link.
class nats_job_call : public nats_errand {
 public:
  [[nodiscard]] nats_matter matter() const noexcept final { return nats_matter::jobs; }

  /// May it change anything, as far as this shard knows? Where it may not, the shard has to be
  /// brought up to date before it is answered from it.
  [[nodiscard]] virtual bool may_change(job_shard& shard, nats_now now) = 0;
  /// Of one that may change nothing: answers it by a shard that is up to date. False: it has to be
  /// done.
  [[nodiscard]] virtual bool look(job_shard& shard, nats_now now) = 0;
  /// How many records it may add.
  [[nodiscard]] virtual std::size_t adds(job_shard& shard, nats_now now) = 0;
  virtual void write(nats_batch_writer& to) const = 0;
  /// Its number in the log.
  [[nodiscard]] virtual std::size_t number() const noexcept = 0;

  int waits_for_room = 0;  ///< how often it has waited for room in a log that was full
  std::optional<steady_time> refused_at{};  ///< when it was refused first by one without a leader
};

template <nats_job_step C>
class nats_job_call_of final : public nats_pending<nats_job_call, C> {
 public:
  using nats_pending<nats_job_call, C>::nats_pending;

  [[nodiscard]] bool only_reads() const noexcept override { return !nats_logged_command<C>; }
  [[nodiscard]] std::size_t answer_bytes() const noexcept override {
    return rule::largest_answer(this->command_.get());
  }
  [[nodiscard]] bool may_change(job_shard& shard, nats_now now) override {
    if constexpr (!nats_logged_command<C>) {
      return false;
    } else if constexpr (rests_somewhere) {
      auto const [from, to] = span(now);
      return !shard.rests(this->command_.get(), from, to).has_value();
    } else {
      return true;
    }
  }
  [[nodiscard]] bool look(job_shard& shard, nats_now now) override {
    auto const [from, to] = span(now);
    if constexpr (!nats_logged_command<C>) {
      this->complete(shard.apply(this->command_.get(), from));
      return true;
    } else if constexpr (rests_somewhere) {
      if (auto rests = shard.rests(this->command_.get(), from, to)) {
        this->complete(std::move(*rests));
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] std::size_t adds(job_shard& shard, nats_now now) override {
    if constexpr (requires { shard.unknown(this->command_.get(), now.earliest); }) {
      return shard.unknown(this->command_.get(), this->told_.value_or(now.earliest));
    } else {
      return 0;
    }
  }
  void write(nats_batch_writer& to) const override {
    if constexpr (nats_logged_command<C>) to.add(this->command_.get(), this->told_);
  }
  [[nodiscard]] std::size_t number() const noexcept override { return nats_command_number<C>; }

 private:
  static constexpr bool rests_somewhere =
      requires(job_shard& s, C const& c, time_point t) { s.rests(c, t, t); };

  [[nodiscard]] std::pair<time_point, time_point> span(nats_now now) const noexcept {
    if (this->told_) return {*this->told_, *this->told_};
    return {now.earliest, now.latest()};
  }
};

}  // namespace weir::detail

#endif
