// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOBS_HPP
#define WEIR_STORE_NATS_JOBS_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/hint_line.hpp"
#include "weir/error.hpp"
#include "weir/rule/shards.hpp"
#include "weir/store/nats/job_calls.hpp"
#include "weir/store/nats/job_keeper.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/reserve.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// The shards of a store that this process has to do with. In the strand of the link.
class nats_jobs {
 public:
  nats_jobs(std::shared_ptr<nats_link> const& link, std::shared_ptr<nats_reserve> reserve)
      : link_{link},
        reserve_{std::move(reserve)},
        keepers_(link->options().shards) {}

  /// Of a command on two queues that are in two shards: one that there is not.
  template <class C>
  [[nodiscard]] std::uint32_t shard_of(C const& c) const noexcept {
    if constexpr (requires { c.shard; }) {
      return c.shard;
    } else {
      auto const shard = rule::shard_of(c.queue, keepers_.size());
      if constexpr (requires { c.to; }) {
        if (!c.to.empty() && rule::shard_of(c.to, keepers_.size()) != shard) {
          return static_cast<std::uint32_t>(keepers_.size());
        }
      }
      return shard;
    }
  }

  [[nodiscard]] std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>(keepers_.size());
  }

  /// Forgets a shard once nothing of it is under way, until it is asked for again.
  void leave(std::uint32_t shard) {
    if (shard < keepers_.size() && keepers_[shard]) keepers_[shard]->leave();
  }

  /// Why a shard cannot be read; empty: it can, for all that is known.
  [[nodiscard]] error_code refusal(std::uint32_t shard) const {
    bool const known = shard < keepers_.size() && keepers_[shard];
    return known ? keepers_[shard]->refusal() : error_code{};
  }

  /// Has a shard read. `leave` ends it.
  void prepare(std::uint32_t shard) {
    if (shard < keepers_.size()) (void)of(shard);
  }
  /// Is all of it read?
  [[nodiscard]] bool is_ready(std::uint32_t shard) const {
    return shard < keepers_.size() && keepers_[shard] && keepers_[shard]->current();
  }

  void submit(std::uint32_t shard, std::shared_ptr<nats_job_call> call) {
    if (auto const error = wrong(shard)) return call->fail(error);
    of(shard).submit(std::move(call));
  }
  void await(command::await_jobs const& c, hint_waiter w) {
    if (auto const error = wrong(c.shard)) {
      wake(w, error);
      return;
    }
    of(c.shard).await(c.schedules, std::move(w));
  }

 private:
  [[nodiscard]] error_code wrong(std::uint32_t shard) const {
    auto const on = link_.lock();
    if (!on) return errc::closed;
    if (!on->usable()) return nats_bad_prefix();
    if (shard >= keepers_.size()) return errc::invalid_shard;
    return {};
  }
  [[nodiscard]] nats_job_keeper& of(std::uint32_t shard) {
    auto& at = keepers_[shard];
    if (!at || at->left()) {
      at = std::make_shared<nats_job_keeper>(link_.lock(), shard, reserve_);
      at->start();
    }
    at->stay();
    return *at;
  }

  std::weak_ptr<nats_link> const link_;
  std::shared_ptr<nats_reserve> const reserve_;
  std::vector<std::shared_ptr<nats_job_keeper>> keepers_;
};

}  // namespace weir::detail

#endif
