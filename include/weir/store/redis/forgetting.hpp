// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_FORGETTING_HPP
#define WEIR_STORE_REDIS_FORGETTING_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/parking.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
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

/// The collection of queues that have nothing left but their counters (F83); pointers are never
/// stale on Redis. A script touches no key that was not named to it, so the first one reads some
/// queues' names, and the second is named all keys that these may have.
class redis_forgetting final : public redis_request {
 public:
  using operation = std::shared_ptr<parked<error_code, std::uint32_t>>;

  /// @param seen queues of the shard, by those that came before
  redis_forgetting(std::shared_ptr<redis_backend> link, operation op,
                   command::gc_stale_pointers const& c, std::uint64_t seen)
      : redis_request{shard_call(lua::some_queues(), link->names(), c.shard, {}).arg(seen),
                      most_names * limits::key_size},
        link_{std::move(link)},
        operation_{std::move(op)},
        command_{c} {}

  [[nodiscard]] bool wanted() const noexcept override { return operation_->waiting(); }

  void complete(redis_reply& reply) noexcept override {
    try {
      std::vector<std::string> queues;
      for (auto n = reply.array(); n != 0 && reply.good(); --n) queues.emplace_back(reply.text());
      if (!reply.good() || !reply.complete()) return fail(errc::outcome_unknown);
      if (queues.empty()) return done({});
      auto const& names = link_->names();
      redis_call out{lua::forget_queues()};
      out.key(names, command_.shard, "names");
      for (auto const& q : queues) add_redis_queue(out, names, command_.shard, q);
      out.time(names, {});
      for (auto const& q : queues) out.arg(q);
      auto next = std::make_shared<redis_command<command::gc_stale_pointers>>(operation_, command_,
                                                                              std::move(out));
      post_task(link_->strand(), [link = link_, r = std::move(next)] { link->submit(r); });
    } catch (...) {
      fail(make_error_code(boost::system::errc::not_enough_memory));
    }
  }
  void fail(error_code ec) noexcept override { done(ec); }
  using redis_request::fail;

 private:
  static constexpr std::size_t most_names = 100;  ///< as the script has it

  void done(error_code ec) noexcept {
    try {
      operation_->resume(ec, 0);
    } catch (...) {  // no memory to post it with: its handler is gone
    }
  }

  std::shared_ptr<redis_backend> link_;
  operation operation_;
  command::gc_stale_pointers command_;
};

}  // namespace weir::detail

#endif
