// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_WAITS_HPP
#define WEIR_STORE_REDIS_WAITS_HPP

#include "weir/clock/system.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/parking.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/backend.hpp"
#include "weir/store/redis/hints.hpp"
#include "weir/store/redis/request.hpp"
#include "weir/time.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

// Waiting for hints. Who waits asks the server again and again, at the poll interval, and at once
// when a script publishes that it may be worth while: so a lost message delays, and strands nobody.
namespace weir::detail {

/// Asks the server whether there is reason for a hint, now and then. Lives as long as it waits for
/// an answer, or for the time to ask again.
///
/// While it waits for an answer, the link has its question, and so it: it must not own the link.
class redis_watch : public redis_listener, public std::enable_shared_from_this<redis_watch> {
 public:
  explicit redis_watch(std::weak_ptr<redis_backend> link) : link_{std::move(link)} {}

  /// Asks now, unless it is asking; then once more afterwards. Nobody waits any more: it does not,
  /// either, or its context would have work until the time to ask again.
  void look() final {
    if (!wanted()) return sleep_.stop();
    if (asking_) {
      again_ = true;
      return;
    }
    sleep_.stop();
    auto const link = link_.lock();
    if (!link) return failed(make_error_code(errc::closed));
    asking_ = true;
    again_ = false;
    link->submit(std::make_shared<question>(ask(link->names()), shared_from_this()));
  }

 protected:
  [[nodiscard]] virtual bool wanted() = 0;
  [[nodiscard]] virtual redis_call ask(redis_names const& names) = 0;
  virtual void answered(redis_reply& reply) = 0;
  virtual void failed(error_code ec) noexcept = 0;

 private:
  class question final : public redis_request {
   public:
    question(redis_call call, std::shared_ptr<redis_watch> watch)
        : redis_request{std::move(call)},
          watch_{std::move(watch)} {}

    [[nodiscard]] bool wanted() const noexcept override { return watch_->wanted(); }
    void complete(redis_reply& reply) noexcept override {
      try {
        watch_->asking_ = false;
        watch_->answered(reply);
        watch_->go_on();
      } catch (...) {  // no memory
        watch_->failed(make_error_code(boost::system::errc::not_enough_memory));
      }
    }
    void fail(error_code ec) noexcept override {
      watch_->asking_ = false;
      watch_->failed(ec);
    }

   private:
    std::shared_ptr<redis_watch> watch_;
  };

  void go_on() {
    if (!wanted()) return;
    auto const link = link_.lock();
    if (again_ || !link) return look();
    sleep_.start(link->strand(),
                 saturating_add(system_clock{}.steady_now(), link->options().poll_interval),
                 [self = shared_from_this()] { self->look(); });
  }

  std::weak_ptr<redis_backend> link_;
  alarm<system_clock> sleep_;
  bool asking_ = false;
  bool again_ = false;
};

using redis_waiter = std::shared_ptr<parked<error_code, hint>>;

inline void wake(redis_waiter const& w, error_code ec = {}) noexcept {
  try {
    w->resume(ec, hint{});
  } catch (...) {  // it could not be posted; a hint promises nothing
  }
}

/// One holder's turn in one line.
class redis_permit_watch final : public redis_watch {
 public:
  redis_permit_watch(std::weak_ptr<redis_backend> link, command::await_permit const& c,
                     redis_waiter op)
      : redis_watch{std::move(link)},
        key_{c.key},
        holder_{c.holder},
        operation_{std::move(op)} {}

  void start(redis_backend& link) {
    auto const& names = link.names();
    link.hear(names.key(names.shard_of(key_), "pe", key_), weak_from_this());
    look();
  }

 private:
  bool wanted() override { return operation_->waiting(); }
  redis_call ask(redis_names const& names) override {
    return encode_wait(names, command::await_permit{key_, holder_}).value();
  }
  void answered(redis_reply& reply) override {
    if (reply.boolean()) wake(operation_);
    if (!reply.complete()) wake(operation_, errc::outcome_unknown);
  }
  void failed(error_code ec) noexcept override { wake(operation_, ec); }

  std::string key_;
  std::string holder_;
  redis_waiter operation_;
};

/// A shard's due queues. Each look that finds one wakes one who waits, so that it is no herd.
class redis_shard_watch final : public redis_watch {
 public:
  redis_shard_watch(std::weak_ptr<redis_backend> link, std::uint32_t shard)
      : redis_watch{std::move(link)},
        shard_{shard} {}

  void add(redis_waiter op) {
    waiters_.push_back(std::move(op));
    look();
  }

  /// Who is woken looks for itself: asking before would only be another round trip.
  void hinted() override {
    if (!wanted()) return;
    auto const first = std::move(waiters_.front());
    waiters_.pop_front();
    wake(first);
    look();
  }

 private:
  bool wanted() override {
    std::erase_if(waiters_, [](auto const& w) { return !w->waiting(); });
    return !waiters_.empty();
  }
  redis_call ask(redis_names const& names) override {
    return encode_wait(names, command::await_jobs{shard_}).value();
  }
  void answered(redis_reply& reply) override {
    auto const due = read_optional(reply);
    if (!reply.complete()) return failed(errc::outcome_unknown);
    if (!due || *due > duration::zero() || !wanted()) return;
    auto const first = std::move(waiters_.front());
    waiters_.pop_front();
    wake(first);
  }
  void failed(error_code ec) noexcept override {
    for (auto const& w : std::exchange(waiters_, {})) wake(w, ec);
  }
  void failed(errc e) noexcept { failed(make_error_code(e)); }

  std::uint32_t shard_;
  std::deque<redis_waiter> waiters_;  // first come, first woken
};

/// The shards that somebody waits for. In the link's strand.
class redis_shard_watches {
 public:
  void add(std::shared_ptr<redis_backend> const& link, std::uint32_t shard, redis_waiter op) {
    auto watch = watches_[shard].lock();
    if (!watch) {
      watch = std::make_shared<redis_shard_watch>(link, shard);
      watches_[shard] = watch;
      link->hear(link->names().key(shard, "due"), watch);
    }
    watch->add(std::move(op));
  }

 private:
  std::map<std::uint32_t, std::weak_ptr<redis_shard_watch>> watches_;
};

}  // namespace weir::detail

#endif
