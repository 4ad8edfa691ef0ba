// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_WAITS_HPP
#define WEIR_STORE_REDIS_WAITS_HPP

#include "weir/clock/system.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/hint_line.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/store/redis/backend.hpp"
#include "weir/store/redis/hints.hpp"
#include "weir/store/redis/queues.hpp"
#include "weir/store/redis/request.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

// Waiting for hints. A script that makes it worth while publishes it. A waiter also looks by
// itself: seldom while its hints arrive, and at the poll interval while they do not, so a lost
// message delays, and strands nobody.
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
    if (!wanted()) return stop_sleeping();
    if (asking_) {
      again_ = true;
      return;
    }
    stop_sleeping();
    auto const link = link_.lock();
    if (!link) return failed(make_error_code(errc::closed));
    asking_ = true;
    again_ = false;
    link->submit(std::make_shared<question>(ask(link->names()), shared_from_this()));
  }

 protected:
  /// Where its hints come from.
  [[nodiscard]] virtual std::string const& channel() const = 0;
  [[nodiscard]] virtual bool wanted() = 0;
  [[nodiscard]] virtual redis_call ask(redis_names const& names) = 0;
  /// Gives how long it is before there is reason to look again, whether or not hints arrive.
  virtual duration answered(redis_reply& reply) = 0;
  virtual void failed(error_code ec) noexcept = 0;

  /// Looks after the pause in which it relies on hints, or at once where they do not arrive.
  /// `anew`: also if it sleeps, and knows when there will be reason to look.
  void rely_on_hints(bool anew) {
    auto const link = link_.lock();
    if (!link || !link->hears(channel())) return look();
    if (!asking_ && (anew || !sleeps_)) sleep(*link, duration::max());
  }
  void stop_sleeping() {
    sleeps_ = false;
    sleep_.stop();
  }
  [[nodiscard]] std::shared_ptr<redis_backend> link() const noexcept { return link_.lock(); }

 private:
  class question final : public redis_request {
   public:
    question(redis_call call, std::shared_ptr<redis_watch> watch)
        : redis_request{std::move(call)},
          watch_{std::move(watch)} {}

    /// Also if nobody waits any more: were it dropped, the watch would wait for it for ever.
    [[nodiscard]] bool wanted() const noexcept override { return true; }
    void complete(redis_reply& reply) noexcept override {
      try {
        watch_->asking_ = false;
        watch_->go_on(watch_->answered(reply));
      } catch (...) {  // no memory, perhaps for the next question
        watch_->asking_ = false;
        watch_->stop_sleeping();
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

  void go_on(duration most) {
    if (!wanted()) return;
    auto const link = link_.lock();
    if (again_ || !link) return look();
    sleep(*link, most);
  }

  void sleep(redis_backend& link, duration most) {
    constexpr duration trust = std::chrono::seconds{2};
    auto const poll = link.options().poll_interval;
    auto const pause = link.hears(channel()) ? std::max(poll, trust) : poll;
    sleep_.start(link.strand(), saturating_add(system_clock{}.steady_now(), std::min(pause, most)),
                 [self = shared_from_this()] { self->look(); });
    sleeps_ = true;
  }

  std::weak_ptr<redis_backend> link_;
  alarm<system_clock> sleep_;
  bool sleeps_ = false;
  bool asking_ = false;
  bool again_ = false;
};

/// One holder's turn in one line.
class redis_permit_watch final : public redis_watch {
 public:
  redis_permit_watch(std::shared_ptr<redis_backend> const& link, command::await_permit const& c,
                     hint_waiter op)
      : redis_watch{link},
        key_{c.key},
        holder_{c.holder},
        channel_{link->names().own_channel(link->names().shard_of(key_))},
        operation_{std::move(op)} {}

  void start(redis_backend& link) {
    auto const turn = link.names().turn(key_, holder_);
    if (link.was_hinted(turn)) {
      wake(operation_);
      return;
    }
    link.hear(channel_, turn, weak_from_this());
    rely_on_hints(false);
  }

  /// Whose turn it is asks for the permit itself: asking before would only be another round trip.
  bool hinted() override {
    if (!wanted()) return false;
    stop_sleeping();
    wake(operation_);
    return true;
  }

 private:
  [[nodiscard]] std::string const& channel() const override { return channel_; }
  bool wanted() override { return operation_->waiting(); }
  redis_call ask(redis_names const& names) override {
    return encode_wait(names, command::await_permit{key_, holder_}).value();
  }
  duration answered(redis_reply& reply) override {
    if (reply.boolean()) wake(operation_);
    if (!reply.complete()) wake(operation_, errc::outcome_unknown);
    return duration::max();
  }
  void failed(error_code ec) noexcept override { wake(operation_, ec); }

  std::string key_;
  std::string holder_;
  std::string channel_;
  hint_waiter operation_;
};

/// The due queues of a scan. Each look that finds one wakes one who waits, so that it is no herd.
class redis_scan_watch final : public redis_watch {
 public:
  redis_scan_watch(redis_backend& link, command::await_jobs const& c)
      : redis_watch{link.weak_from_this()},
        command_{c},
        channel_{c.in_turn ? link.names().own_channel(c.shard) : link.names().channel(c.shard)},
        due_{link.names().key(c.shard, c.in_turn ? redis_names::idle(c.schedules)
                                                 : redis_names::due(c.schedules))} {}

  void add(redis_backend& link, hint_waiter op) {
    if (link.was_hinted(due_)) {
      passes_.stop();
      wake(op);
      return;
    }
    waiters_.add(std::move(op));
    if (!std::exchange(listens_, true)) link.hear(channel_, due_, weak_from_this());
    rely_on_hints(false);
  }

  /// Somebody looks for due queues: what was published before is found now. If it is the only one
  /// who waits, there is no other reason to look for a while; others may serve other queues.
  void looked(redis_backend& link) {
    (void)link.was_hinted(due_);
    passes_.stop();
    if (wanted() && waiters_.size() == 1 && link.hears(channel_)) rely_on_hints(true);
  }

  /// Who is woken looks for itself: asking before would only be another round trip.
  bool hinted() override {
    if (!wanted() || !waiters_.wake_one()) {
      if (command_.in_turn) pass_on();
      return false;
    }
    look();
    return true;
  }

 private:
  [[nodiscard]] std::string const& channel() const override { return channel_; }
  bool wanted() override {
    waiters_.drop_ended();
    return !waiters_.empty();
  }
  redis_call ask(redis_names const& names) override { return encode_wait(names, command_).value(); }
  duration answered(redis_reply& reply) override {
    auto const due = read_optional(reply);
    if (!reply.complete()) failed(errc::outcome_unknown);
    if (!due || !wanted()) return duration::max();
    if (*due > duration::zero()) return *due;
    waiters_.wake_one();
    return duration::max();
  }
  void failed(error_code ec) noexcept override { waiters_.wake_all(ec); }
  void failed(errc e) noexcept { failed(make_error_code(e)); }

  /// Nobody waits. Unless somebody does in a moment, or looks, another process is told.
  void pass_on() {
    auto const backend = link();
    if (!backend) return;
    constexpr duration moment = std::chrono::milliseconds{10};
    passes_.start(backend->strand(), saturating_add(system_clock{}.steady_now(), moment),
                  [self = shared_from_this(), this] {
                    auto const to = link();
                    if (!to) return;
                    command::scan_visible_queues const pass{.shard = command_.shard,
                                                            .limit = 1,
                                                            .schedules = command_.schedules,
                                                            .turn = command::hint_turn::passed};
                    auto nobody = [](error_code, visible_queues const&) {};
                    to->submit(std::make_shared<redis_command<command::scan_visible_queues>>(
                        park<error_code, visible_queues>(to->strand(), nobody), pass,
                        encode(to->names(), pass, redis_now{}).value()));
                  });
  }

  command::await_jobs command_;
  std::string channel_;
  std::string due_;
  bool listens_ = false;
  hint_line waiters_;
  alarm<system_clock> passes_;
};

/// The scans that somebody waits for. In the link's strand.
class redis_scan_watches {
 public:
  void add(redis_backend& link, command::await_jobs const& c, hint_waiter op) {
    auto& watch = watches_[{rule::scan_number(c.shard, c.schedules), c.in_turn}];
    if (!watch) watch = std::make_shared<redis_scan_watch>(link, c);
    watch->add(link, std::move(op));
  }

  /// Somebody looks for due queues.
  void looked(redis_backend& link, command::scan_visible_queues const& c) {
    bool const in_turn = c.turn == command::hint_turn::taken;
    auto const found = watches_.find({rule::scan_number(c.shard, c.schedules), in_turn});
    if (c.turn != command::hint_turn::passed && found != watches_.end())
      found->second->looked(link);
  }

 private:
  std::map<std::pair<std::uint32_t, bool>, std::shared_ptr<redis_scan_watch>> watches_;
};

/// Those who wait for the cancel of a holder's job. There is nothing on the server to look at, so
/// they are woken, too, wherever a hint may have been missed.
class redis_cancel_watch final : public redis_listener,
                                 public std::enable_shared_from_this<redis_cancel_watch> {
 public:
  explicit redis_cancel_watch(std::weak_ptr<redis_backend> link) : link_{std::move(link)} {}

  void listen(redis_backend& link, std::string const& holder) {
    link.hear(link.names().cancels(), link.names().cancelled(holder), weak_from_this());
  }
  void add(hint_waiter op) {
    waiters_.add(std::move(op));
    if (auto const link = link_.lock(); !link || link->closed()) look();
  }
  [[nodiscard]] bool wanted() {
    waiters_.drop_ended();
    return !waiters_.empty();
  }

  void look() override {
    auto const link = link_.lock();
    waiters_.wake_all(link && !link->closed() ? error_code{} : make_error_code(errc::closed));
  }
  bool hinted() override {
    waiters_.wake_all();
    return true;
  }

 private:
  std::weak_ptr<redis_backend> link_;
  hint_line waiters_;
};

/// Those of all holders. In the link's strand.
class redis_cancel_watches {
 public:
  void add(std::shared_ptr<redis_backend> const& link, std::string const& holder, hint_waiter op) {
    auto& watch = watches_[holder];
    if (!watch) {
      std::erase_if(watches_, [](auto const& w) { return w.second && !w.second->wanted(); });
      watch = std::make_shared<redis_cancel_watch>(link);
      watch->listen(*link, holder);
    }
    watch->add(std::move(op));
  }

 private:
  std::map<std::string, std::shared_ptr<redis_cancel_watch>> watches_;
};

}  // namespace weir::detail

#endif
