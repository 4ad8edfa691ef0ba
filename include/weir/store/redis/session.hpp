// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_SESSION_HPP
#define WEIR_STORE_REDIS_SESSION_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/dial.hpp"
#include "weir/store/redis/inquiry.hpp"
#include "weir/store/redis/options.hpp"
#include "weir/store/redis/question.hpp"
#include "weir/store/redis/relay.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/redis/adapter/any_adapter.hpp>
#include <boost/redis/connection.hpp>
#include <boost/redis/error.hpp>
#include <boost/redis/logger.hpp>
#include <boost/redis/request.hpp>
#include <boost/redis/response.hpp>
#include <boost/system/system_error.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace weir::detail {

/// Who has a session.
class redis_session_owner {
 public:
  redis_session_owner() = default;
  redis_session_owner(redis_session_owner const&) = delete;
  redis_session_owner& operator=(redis_session_owner const&) = delete;
  virtual ~redis_session_owner() = default;

  /// Adds the requests that come before any command.
  virtual void greeting(boost::redis::request&) {}
  /// What it answered. An error: the session is of no use, because of that.
  virtual error_code greeted(boost::redis::generic_response const&) { return {}; }
  /// Commands may go; or it is subscribed.
  virtual void opened() = 0;
  /// A hint.
  virtual void published(std::string const&) {}
  /// It is over, or could not begin; the last that is told. `why` is what `greeted` returned, or
  /// what the server has against the address; success: something else.
  virtual void ended(error_code why) = 0;
};

/// One connection, from its beginning to its end; nobody connects it again. In its owner's strand.
/// It is for commands, or it subscribes to hints.
/// It lives by what is under way, until the end has come and all of that is over; until then its
/// owner does, too, which must not own it in turn.
class redis_session : public std::enable_shared_from_this<redis_session> {
 public:
  using executor_type = boost::asio::strand<boost::asio::any_io_executor>;

  redis_session(executor_type strand, std::shared_ptr<redis_session_owner> owner,
                redis_options const& options)
      : strand_{std::move(strand)},
        owner_{std::move(owner)},
        options_{options} {}

  /// Throws `boost::system::system_error`, such as for a file of authorities that cannot be read.
  ///
  /// @param channel to subscribe to; empty: it is for commands
  void start(redis_target const& target, std::string const& channel) {
    auto const& address = target.address;
    connection_ = make_redis_connection(strand_, address);
    address_ = address;
    channel_ = channel;
    auto reached = address;
    if (!target.ip.empty()) reached = address.at(target.ip, address.port());
    if (!address.path().empty()) {
      relay_ = std::make_shared<redis_relay>(strand_, address.path());
      reached = address.at("127.0.0.1", relay_->port());
      relay_->start(connection_);
    }
    // What Boost.Redis has no limit for: the greeting.
    auto const steps = address.uses_tls() ? 4 : 2;
    after(steps * options_.connect_timeout, &redis_session::hang_up);
    greet();
    connection_->async_run(redis_config(reached, options_),
                           boost::redis::logger{boost::redis::logger::level::disabled},
                           boost::asio::bind_cancellation_slot(
                               attempt_->slot(), boost::asio::bind_executor(
                                                     strand_, [self = shared_from_this(),
                                                               signal = attempt_](error_code ec) {
                                                       signal->slot().clear();
                                                       self->over(ec);
                                                     })));
  }

  /// May commands go?
  [[nodiscard]] bool up() const noexcept { return up_; }
  /// No more commands: it is to end when what is under way is answered.
  void retire() noexcept { up_ = false; }
  /// There was a sign of life.
  void alive() noexcept { heard_ = true; }

  /// Sends a request. It, and what takes the replies, live until `on_end(error_code)` is called.
  template <class F>
  void execute(boost::redis::request const& wire, boost::redis::any_adapter replies, F on_end) {
    auto const bytes = wire.payload().size();
    sending_ += bytes;
    auto whole = [self = shared_from_this(), bytes,
                  on_end = std::move(on_end)](error_code ec, std::size_t) mutable {
      self->sending_ -= bytes;
      on_end(ec);
    };
    connection_->async_exec(wire, std::move(replies),
                            boost::asio::bind_executor(strand_, std::move(whole)));
  }

  /// Asks something. `then` is called unless the session ends before: it may rely on the owner.
  void ask(std::shared_ptr<redis_question> const& q,
           std::function<void(error_code, redis_question&)> then) {
    execute(q->wire, boost::redis::any_adapter{q->response},
            [this, q, then = std::move(then)](error_code ec) {
              if (ended_) return;
              if (!ec) alive();
              then(ec, *q);
            });
  }

  /// Makes it end. The owner is told later, but Boost.Redis forgets to cancel what it is told to
  /// between two of the steps in which it connects: so it is told again.
  void hang_up() {
    up_ = opening_ = false;
    gone_ = true;
    if (auto const asks = inquiry_.lock()) return asks->stop();
    attempt_->emit(boost::asio::cancellation_type::terminal);
    connection_->cancel();
    if (!ended_) after(std::chrono::milliseconds{10}, &redis_session::hang_up);
  }

 private:
  /// Before any command; it waits until there is a connection. What Boost.Redis itself greets with
  /// travels along with the first thing that is asked, and may be refused: so that is nothing that
  /// changes the server, whose default user or database it would be done with.
  void greet() {
    auto const first = std::make_shared<redis_question>();
    first->wire.push("PING");
    ask(first, [this](error_code ec, redis_question&) {
      if (ec || gone_) return;  // `over` follows
      if (!channel_.empty()) return listen();
      auto const hello = std::make_shared<redis_question>();
      owner_->greeting(hello->wire);
      ask(hello, [this](error_code failed, redis_question& q) {
        if (failed || gone_) return;
        why_ = owner_->greeted(q.response);
        if (why_) return hang_up();
        open();
      });
    });
  }

  /// Hints that others publish.
  void listen() {
    opening_ = true;
    auto const heard = std::make_shared<redis_question>();
    heard->wire.push("SUBSCRIBE", channel_);
    connection_->set_receive_response(heard->response);
    receive(heard);
    ask(heard, [](error_code, redis_question&) {});
  }

  void receive(std::shared_ptr<redis_question> const& heard) {
    connection_->async_receive(boost::asio::bind_executor(
        strand_, [self = shared_from_this(), heard](error_code ec, std::size_t) {
          if (ec || self->ended_) return;
          self->alive();
          if (heard->response.has_value()) {
            redis_messages(heard->response.value(),
                           [&](auto const& key) { self->owner_->published(key); });
          }
          heard->response = {};
          if (self->opening_) self->open();  // the first: it is subscribed, or is not allowed to
          self->receive(heard);
        }));
  }

  /// Nothing is asked before the subscription is answered: Boost.Redis 1.88 takes a reply that
  /// comes while it is being written for a message, and the refusal of a subscription for the reply
  /// to the next command; either way all later replies would go to the wrong ones.
  void open() {
    opening_ = false;
    up_ = opened_ = heard_ = true;
    after(options_.health_check_interval, &redis_session::beat);
    owner_->opened();
  }

  /// Asks for a sign of life, and gives the connection up when twice there was none. The answer
  /// comes behind all that is being sent: for each megabyte of that, the server has a beat more.
  void beat() {
    silent_ = std::exchange(heard_, false) ? 0 : silent_ + 1;
    constexpr std::size_t megabyte = std::size_t{1} << 20U;
    if (silent_ >= 2 + sending_ / megabyte) return hang_up();
    auto const ping = std::make_shared<redis_question>();
    ping->wire.push("PING");
    ask(ping, [](error_code, redis_question&) {});
    after(options_.health_check_interval, &redis_session::beat);
  }

  void over(error_code ec) {
    ended_ = true;
    up_ = opening_ = false;
    time_.stop();
    connection_->cancel();  // whatever is still in it
    if (relay_) relay_->close();
    // Boost.Redis does not say what the server has against its greeting; nor, without its own signs
    // of life, that this is why it ended.
    bool const refused =
        ec == boost::redis::error::resp3_hello || ec == boost::asio::error::operation_aborted;
    if (!refused || gone_ || opened_) return tell(why_);
    std::shared_ptr<redis_inquiry> asks;
    try {
      asks = std::make_shared<redis_inquiry>(
          strand_, address_, [self = shared_from_this()](error_code why) { self->tell(why); });
    } catch (boost::system::system_error const&) {  // the file of authorities is gone
      return tell({});
    }
    inquiry_ = asks;
    asks->start(options_.connect_timeout);
  }

  void tell(error_code why) {
    auto const owner = std::exchange(owner_, {});
    owner->ended(why);
  }

  /// Does this next of all that is done by time.
  void after(duration wait, void (redis_session::*step)()) {
    time_.start(strand_, saturating_add(system_clock{}.steady_now(), wait),
                [self = shared_from_this(), step] { ((*self).*step)(); });
  }

  executor_type strand_;
  std::shared_ptr<redis_session_owner> owner_;
  redis_options options_;
  redis_address address_;
  std::string channel_;  // of the hints; empty: nobody waits for any
  redis_connection connection_;
  std::shared_ptr<redis_relay> relay_;    // to a unix socket
  std::weak_ptr<redis_inquiry> inquiry_;  // after the end; it keeps this alive
  std::shared_ptr<boost::asio::cancellation_signal> attempt_ =
      std::make_shared<boost::asio::cancellation_signal>();
  alarm<system_clock> time_;
  error_code why_;
  bool opening_ = false;
  bool up_ = false;
  bool opened_ = false;      // it was up
  bool gone_ = false;        // as far as we are concerned
  bool ended_ = false;       // as far as Boost.Redis is
  bool heard_ = false;       // a sign of life, since the last beat
  std::size_t silent_ = 0;   // beats without one
  std::size_t sending_ = 0;  // bytes of what has no answer yet
};

}  // namespace weir::detail

#endif
