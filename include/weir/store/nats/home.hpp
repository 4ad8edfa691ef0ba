// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_HOME_HPP
#define WEIR_STORE_NATS_HOME_HPP

#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"
#include "weir/detail/hint_line.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/store/nats/balance.hpp"
#include "weir/store/nats/errand.hpp"
#include "weir/store/nats/job_calls.hpp"
#include "weir/store/nats/jobs.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/record.hpp"
#include "weir/store/nats/reserve.hpp"
#include "weir/store/nats/table.hpp"
#include "weir/store/nats/waits.hpp"
#include "weir/store/nats/wire.hpp"

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir::detail {

template <class C>
using nats_operation = std::shared_ptr<resumable<error_code, typename C::result>>;

/// A wait for a hint.
template <class C>
  requires command::waits_for_event<C>
class nats_wait final : public nats_errand {
 public:
  nats_wait(nats_operation<C> op, C const& c) : operation_{std::move(op)}, command_{c} {}

  [[nodiscard]] C const& command() const noexcept { return command_.get(); }
  [[nodiscard]] nats_operation<C> const& operation() const noexcept { return operation_; }

  [[nodiscard]] nats_matter matter() const noexcept override {
    return std::same_as<C, command::await_permit> ? nats_matter::wait_for_permit
                                                  : nats_matter::wait_for_jobs;
  }
  [[nodiscard]] bool only_reads() const noexcept override { return true; }
  [[nodiscard]] bool wanted() const noexcept override { return operation_->waiting(); }
  [[nodiscard]] bool leaves() noexcept override { return wanted(); }
  void stays() noexcept override {}
  using nats_errand::fail;
  void fail(error_code ec) noexcept override { wake(operation_, ec); }
  void ask(std::string& to) const override { nats_put_command(to, command_.get(), std::nullopt); }
  [[nodiscard]] bool hear(std::string_view) override {
    fail(error_code{});
    return true;
  }

 private:
  nats_operation<C> operation_;
  owned_command<C> command_;
};

/// Makes the errand of a command.
template <class C>
[[nodiscard]] std::shared_ptr<nats_errand> nats_errand_of(
    nats_operation<C> op, C const& c, std::optional<time_point> told,
    std::shared_ptr<std::atomic<std::size_t>> const& pending) {
  if constexpr (command::waits_for_event<C>) {
    return std::make_shared<nats_wait<C>>(std::move(op), c);
  } else if constexpr (!std::is_void_v<nats_state_of<C>>) {
    return std::make_shared<nats_command<nats_state_of<C>, C>>(std::move(op), c, told, pending);
  } else {
    static_assert(
        !requires { c.key; },
        "no record (permits.hpp, locks.hpp, buckets.hpp) applies this command of a key");
    return std::make_shared<nats_job_call_of<C>>(std::move(op), c, told, pending);
  }
}

/// Where commands are executed in this process. In the strand of the link.
class nats_home {
 public:
  explicit nats_home(std::shared_ptr<nats_link> const& link)
      : reserve_{std::make_shared<nats_reserve>(link, "all", claims_.process())},
        table_{std::make_shared<nats_table>(link, reserve_)},
        jobs_{link, reserve_} {
    auto const size = link->options().reserve;
    if (size == 0) return;
    link->count(link->names().reserve("all"),
                [kept = std::weak_ptr{reserve_}, size](nats_stream_info const& info) {
                  auto const reserve = kept.lock();
                  if (!reserve) return;
                  auto const most = info.max_bytes == 0 ? size : info.max_bytes / 8;
                  auto const bytes = std::min<std::size_t>(size, most);
                  reserve->is_to_be(bytes, bytes);
                  reserve->found(info.numbers);
                });
  }

  /// Of all that a command may be about: those of keys come first, and then the shards.
  template <class C>
  [[nodiscard]] std::uint32_t part_of(C const& c) const noexcept {
    if constexpr (requires { c.key; }) {
      return nats_part_of(c.key);
    } else {
      return nats_key_parts + jobs_.shard_of(c);
    }
  }
  [[nodiscard]] std::uint32_t parts() const noexcept { return nats_key_parts + jobs_.count(); }

  void execute(std::uint32_t part, std::shared_ptr<nats_errand> const& e) {
    switch (e->matter()) {
      case nats_matter::permits: return on_key<nats_permits>(e);
      case nats_matter::locks: return on_key<nats_lock>(e);
      case nats_matter::buckets: return on_key<nats_bucket>(e);
      case nats_matter::jobs:
        return jobs_.submit(part - nats_key_parts, std::static_pointer_cast<nats_job_call>(e));
      case nats_matter::wait_for_permit: {
        auto const w = std::static_pointer_cast<nats_wait<command::await_permit>>(e);
        return table_->wait(w->command().key, std::string{w->command().holder}, w->operation());
      }
      case nats_matter::wait_for_jobs: {
        auto const w = std::static_pointer_cast<nats_wait<command::await_jobs>>(e);
        return jobs_.await(w->command(), w->operation());
      }
    }
  }

  /// Why nothing can be executed here; empty: it can, for all that is known.
  [[nodiscard]] error_code refusal(std::uint32_t part) const {
    return part >= nats_key_parts ? jobs_.refusal(part - nats_key_parts) : error_code{};
  }
  /// Has a shard read, so that commands need not wait for that once this process owns it. `leave`
  /// ends it.
  void prepare(std::uint32_t part) {
    if (part >= nats_key_parts) jobs_.prepare(part - nats_key_parts);
  }
  /// Is all of it read?
  [[nodiscard]] bool is_ready(std::uint32_t part) const {
    return part < nats_key_parts || jobs_.is_ready(part - nats_key_parts);
  }
  /// Somebody else owns it from here on: what is kept of it can go, and who waits for a hint of it
  /// is woken, so that it waits elsewhere.
  void leave(std::uint32_t part) {
    part >= nats_key_parts ? jobs_.leave(part - nats_key_parts) : table_->leave(part);
  }

  /// The names of this process as an owner.
  [[nodiscard]] nats_claims& claims() noexcept { return claims_; }

  /// Listens to the hints of others.
  [[nodiscard]] std::shared_ptr<nats_hinted> hinted() const { return table_; }

 private:
  template <class State>
  void on_key(std::shared_ptr<nats_errand> const& e) {
    table_->submit(std::static_pointer_cast<nats_step<State>>(e));
  }

  nats_claims claims_;
  std::shared_ptr<nats_reserve> reserve_;
  std::shared_ptr<nats_table> table_;
  nats_jobs jobs_;
};

}  // namespace weir::detail

#endif
