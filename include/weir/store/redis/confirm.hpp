// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_CONFIRM_HPP
#define WEIR_STORE_REDIS_CONFIRM_HPP

#include "weir/error.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/request.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace weir::detail {

/// Commands that the server has done, with their replies, which are kept until its replicas have
/// confirmed them. One question (WAIT) is under way at a time, about all that were done before it.
class redis_unconfirmed {
 public:
  struct done {
    std::shared_ptr<redis_request> command;
    std::vector<redis_reply::node> reply;
  };
  using batch = std::vector<done>;

  [[nodiscard]] std::size_t size() const noexcept { return done_.size(); }

  /// True: the question has to be asked.
  [[nodiscard]] bool add(std::shared_ptr<redis_request> const& r,
                         std::span<redis_reply::node const> nodes) {
    done_.push_back({r, {nodes.begin(), nodes.end()}});
    return !std::exchange(asking_, true);
  }

  /// What it is about.
  [[nodiscard]] batch take() { return std::exchange(done_, {}); }

  /// It is answered. True: another one has to be asked.
  [[nodiscard]] bool more() noexcept { return asking_ = !done_.empty(); }

  static void settle(batch const& all, bool confirmed) {
    for (auto const& d : all) {
      redis_reply reply{d.reply};
      confirmed ? d.command->complete(reply) : d.command->fail(errc::outcome_unknown);
    }
  }

 private:
  batch done_;
  bool asking_ = false;
};

}  // namespace weir::detail

#endif
