// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_FORGETTING_HPP
#define WEIR_STORE_REDIS_FORGETTING_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/store/redis/backend.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/job_calls.hpp"
#include "weir/store/redis/queues.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/request.hpp"
#include "weir/store/redis/script/generated.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// The housekeeping of some of a shard's queues: what time has ended is removed in pieces (F80),
/// and queues that have nothing left but their counters are forgotten (F83); pointers are never
/// stale on Redis. A script touches no key that was not named to it, so the first one reads the
/// queues' names, and the others are named all keys that these may have.
///
/// While it waits for an answer the link has it: so it must not own the link.
class redis_forgetting final : public redis_request {
 public:
  using operation = std::shared_ptr<parked<error_code, std::uint32_t>>;

  /// @param seen queues of the shard, by those that came before
  redis_forgetting(std::shared_ptr<redis_backend> const& link, operation op,
                   command::gc_stale_pointers const& c, std::uint64_t seen)
      : redis_request{shard_call(lua::some_queues(), link->names(), c.shard, {}).arg(seen),
                      most_names * limits::key_size},
        link_{link},
        operation_{std::move(op)},
        shard_{c.shard} {}
  /// The next piece, of these queues.
  redis_forgetting(redis_names const& names, redis_forgetting const& before,
                   std::vector<std::string> queues)
      : redis_request{piece_of(names, before.shard_, queues)},
        link_{before.link_},
        operation_{before.operation_},
        shard_{before.shard_},
        queues_{std::move(queues)},
        pieces_{before.pieces_ + 1} {}

  [[nodiscard]] bool wanted() const noexcept override { return operation_->waiting(); }
  [[nodiscard]] bool leaves() noexcept override { return operation_->leaves(); }
  void stays() noexcept override {
    if (!begun()) operation_->stays();
  }

  void complete(redis_reply& reply) noexcept override {
    try {
      auto left = pieces_ == 0 ? names_in(reply) : queues_behind(reply.number<std::size_t>());
      if (!reply.good() || !reply.complete()) return fail(errc::outcome_unknown);
      if (left.empty() || pieces_ == most_pieces) return done({});
      auto const link = link_.lock();
      if (!link) return done(pieces_ == 0 ? errc::closed : errc::outcome_unknown);
      auto next = std::make_shared<redis_forgetting>(link->names(), *this, std::move(left));
      post_task(link->strand(), [link, n = std::move(next)] { link->submit(n); });
    } catch (...) {
      fail(make_error_code(boost::system::errc::not_enough_memory));
    }
  }
  void fail(error_code ec) noexcept override {
    done(begun() ? make_error_code(errc::outcome_unknown) : ec);
  }
  using redis_request::fail;

 private:
  static constexpr std::size_t most_names = 100;  ///< as the script has it
  static constexpr int most_pieces = 100;  ///< and then it is over until it is asked for again

  /// Was one before it executed that changes something? The first only reads names.
  [[nodiscard]] bool begun() const noexcept { return pieces_ > 1; }

  static redis_call piece_of(redis_names const& names, std::uint32_t shard,
                             std::vector<std::string> const& queues) {
    redis_call out{lua::forget_queues()};
    out.key(names, shard, "names");
    for (auto const& q : queues) add_redis_queue(out, names, shard, q);
    out.time(names, {});
    for (auto const& q : queues) out.arg(q);
    return out;
  }
  static std::vector<std::string> names_in(redis_reply& reply) {
    std::vector<std::string> out;
    for (auto n = reply.array(); n != 0 && reply.good(); --n) out.emplace_back(reply.text());
    return out;
  }
  /// @param more the number of the first one that has more; 0: none has
  std::vector<std::string> queues_behind(std::size_t more) {
    if (more == 0 || more > queues_.size()) return {};
    return {queues_.begin() + static_cast<std::ptrdiff_t>(more - 1), queues_.end()};
  }

  void done(error_code ec) noexcept {
    try {
      operation_->resume(ec, 0);
    } catch (...) {  // no memory to post it with: its handler is gone
    }
  }

  std::weak_ptr<redis_backend> link_;
  operation operation_;
  std::uint32_t shard_;
  std::vector<std::string> queues_{};
  int pieces_ = 0;
};

}  // namespace weir::detail

#endif
