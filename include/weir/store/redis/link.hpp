// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_LINK_HPP
#define WEIR_STORE_REDIS_LINK_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/backend.hpp"
#include "weir/store/redis/batch.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/confirm.hpp"
#include "weir/store/redis/dial.hpp"
#include "weir/store/redis/options.hpp"
#include "weir/store/redis/question.hpp"
#include "weir/store/redis/relay.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/request.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/store/redis/shard_count.hpp"
#include "weir/store/redis/switchboard.hpp"
#include "weir/store/redis/waiting.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/redis/adapter/any_adapter.hpp>
#include <boost/redis/connection.hpp>
#include <boost/redis/error.hpp>
#include <boost/redis/logger.hpp>
#include <boost/redis/request.hpp>
#include <boost/redis/response.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// One connection, on a strand of its own or on that of a switchboard, and the commands that wait
/// for it.
///
/// A command is given to the connection only while that is up. So what waits here was definitely
/// not executed, and what was given away when the connection ends is of unknown outcome.
class redis_link final : public redis_backend, private redis_batch_owner {
 public:
  redis_link(boost::asio::any_io_executor const& executor, redis_address address,
             redis_options const& options)
      : redis_backend{boost::asio::make_strand(executor), options},
        address_{std::move(address)} {}

  /// One of several.
  redis_link(std::weak_ptr<redis_switchboard> board, executor_type const& strand,
             redis_address address, redis_options const& options)
      : redis_backend{strand, options},
        address_{std::move(address)},
        board_{std::move(board)},
        is_one_of_several_{true} {}

  // For the switchboard, within the strand.

  [[nodiscard]] redis_address const& address() const noexcept { return address_; }
  [[nodiscard]] bool up() const noexcept { return up_; }
  [[nodiscard]] std::size_t under_way() const noexcept { return given_ + unconfirmed_.size(); }

  /// Makes a connection, and others after it, until `close`.
  void start() override { connect(); }

  /// What is asked is answered while the connection lasts, or not at all.
  void ask_slots(std::function<void(boost::redis::generic_response const&)> then) {
    auto const slots = std::make_shared<redis_question>();
    slots->wire.push("CLUSTER", "SLOTS");
    ask(slots, [then = std::move(then)](error_code ec, redis_question& q) {
      if (!ec) then(q.response);
    });
  }

  /// Sends it while it is up, with all others of this turn of the strand.
  void give(std::shared_ptr<redis_request> const& r) {
    ++given_;
    if (!next_) {
      next_ = spare_.take();
      boost::asio::post(strand_, [self = shared_from_this()] { self->send(); });
    }
    next_->add(r);
  }

 private:
  std::shared_ptr<redis_link> shared_from_this() {
    return std::static_pointer_cast<redis_link>(redis_backend::shared_from_this());
  }

  void accept(std::shared_ptr<redis_request> const& r) override {
    if (closed_) return r->fail(errc::closed);
    if (!usable_) return r->fail(errc::invalid_option);
    if (refused_) return r->fail(refused_);
    if (under_way() + waiting_.size() >= options_.max_pending) return r->fail(errc::store_full);
    if (up_) return give(r);
    r->give_up_at = saturating_add(system_clock{}.steady_now(), options_.offline_patience);
    waiting_.add(*this, r);
  }

  // ---------------------------------------------------------------------------- while it is up

  void send() {
    auto const batch = std::move(next_);
    given_ -= batch->drop_unwanted();
    if (!up_) {  // it ended meanwhile, and they were not sent
      given_ -= batch->unanswered().size();
      for (auto const& r : batch->unanswered()) is_one_of_several_ ? not_given(r) : accept(r);
      return;
    }
    if (batch->unanswered().empty()) return;
    batch->encode();
    redis_batch::replies replies{batch.get(), this};
    auto on_end = [self = shared_from_this(), held = connection_,
                   batch](error_code ec, std::size_t) { self->sent(batch, ec); };
    connection_->async_exec(batch->wire(), boost::redis::any_adapter{replies},
                            boost::asio::bind_executor(strand_, std::move(on_end)));
  }

  /// What was not answered by now never will be.
  void sent(std::shared_ptr<redis_batch> const& batch, error_code ec) {
    bool const unsent = ec == boost::redis::error::not_connected;
    given_ -= batch->unanswered().size();
    for (auto const& r : batch->unanswered()) {
      unsent ? not_given(r) : r->fail(errc::outcome_unknown);
    }
    if (!ec) spare_.keep(batch);
  }

  void answered(std::shared_ptr<redis_request> const& r,
                std::span<redis_reply::node const> nodes) override {
    --given_;
    heard_ = true;
    using kind = redis_reply::kind;
    auto const& first = nodes.front();
    if (first.data_type != kind::simple_error && first.data_type != kind::blob_error) {
      if (options_.replicas != 0) return confirm(r, nodes);
      redis_reply reply{nodes};
      return r->complete(reply);
    }
    // Not from here: the connection is in the middle of reading.
    boost::asio::post(
        strand_, [self = shared_from_this(), r, text = first.value] { self->refused(r, text); });
  }

  void refused(std::shared_ptr<redis_request> const& r, std::string_view text) {
    if (text.starts_with("NOSCRIPT")) return teach(r);
    auto const board = board_.lock();
    if (board && board->refused(*this, r, text)) return;
    r->fail(redis_refusal(text));
  }

  /// It is done. Whether the replicas have it, the server is asked, for all that are done by then.
  void confirm(std::shared_ptr<redis_request> const& r, std::span<redis_reply::node const> nodes) {
    if (!unconfirmed_.add(r, nodes)) return;
    boost::asio::post(strand_, [self = shared_from_this()] { self->ask_replicas(); });
  }

  void ask_replicas() {
    auto const batch = std::make_shared<redis_unconfirmed::batch>(unconfirmed_.take());
    if (!up_) return confirmed(*batch, false);
    auto const timeout = std::chrono::ceil<std::chrono::milliseconds>(options_.replica_timeout);
    auto const wait = std::make_shared<redis_question>();
    wait->wire.push("WAIT", options_.replicas, timeout.count());
    auto on_reply = [self = shared_from_this(), held = connection_, wait, batch](error_code ec,
                                                                                 std::size_t) {
      bool enough = false;
      if (!ec && wait->response.has_value()) {
        self->heard_ = true;
        redis_reply reply{wait->response.value()};
        enough = reply.number<std::uint32_t>() >= self->options_.replicas && reply.complete();
      }
      self->confirmed(*batch, enough);
    };
    connection_->async_exec(wait->wire, wait->response,
                            boost::asio::bind_executor(strand_, std::move(on_reply)));
  }

  void confirmed(redis_unconfirmed::batch const& batch, bool enough) {
    if (unconfirmed_.more()) ask_replicas();
    redis_unconfirmed::settle(batch, enough);
  }

  /// It was definitely not executed.
  void not_given(std::shared_ptr<redis_request> const& r) {
    if (auto const board = board_.lock()) return board->not_given(r);
    r->fail(errc::store_unavailable);
  }

  /// The server has forgotten its scripts (F46), so this command was not executed. It is told the
  /// script, once for all that are under way, and then asked again; where it will not keep scripts,
  /// the command brings its own.
  void teach(std::shared_ptr<redis_request> const& r) {
    if (!up_) return not_given(r);
    switch (r->try_again()) {
      case redis_request::attempt::by_digest: {
        auto const* const script = &r->script();
        if (!taught_.insert(script).second) break;
        auto const lesson = std::make_shared<redis_question>();
        lesson->wire.push("SCRIPT", "LOAD", script->source());
        ask(lesson, [this, script](error_code, redis_question&) { taught_.erase(script); });
        break;
      }
      case redis_request::attempt::by_source: break;
      case redis_request::attempt::none: return not_given(r);
    }
    give(r);
  }

  /// Asks something of this connection. `then` is called if the connection is still this one.
  void ask(std::shared_ptr<redis_question> const& q,
           std::function<void(error_code, redis_question&)> then) {
    auto on_reply = [self = shared_from_this(), held = connection_, q,
                     then = std::move(then)](error_code ec, std::size_t) {
      if (held != self->connection_) return;
      if (!ec) self->heard_ = true;
      then(ec, *q);
    };
    connection_->async_exec(q->wire, q->response,
                            boost::asio::bind_executor(strand_, std::move(on_reply)));
  }

  // ---------------------------------------------------------------------------- the connection

  void connect() {
    if (closed_) return finish();
    auto address = address_;
    try {
      connection_ = make_redis_connection(strand_, address_);
      if (!address_.path().empty()) {
        relay_ = std::make_shared<redis_relay>(strand_, address_.path());
        address = address_.at("127.0.0.1", relay_->port());
        relay_->start(connection_);
      }
    } catch (boost::system::system_error const&) {  // such as an unreadable file of authorities
      return retry();
    }
    taught_.clear();
    silent_ = 0;
    // What Boost.Redis has no limit for: the greeting.
    constexpr int steps = 4;
    after(steps * options_.connect_timeout, &redis_link::hang_up);
    greet();
    attempt_ = std::make_shared<boost::asio::cancellation_signal>();
    connection_->async_run(
        redis_config(address, options_),
        boost::redis::logger{boost::redis::logger::level::disabled},
        boost::asio::bind_cancellation_slot(
            attempt_->slot(),
            boost::asio::bind_executor(strand_, [self = shared_from_this(), held = connection_,
                                                 signal = attempt_](error_code) {
              signal->slot().clear();
              self->ended(held);
            })));
  }

  /// Before any command; it waits until there is a connection.
  void greet() {
    auto const hello = std::make_shared<redis_question>();
    if (is_one_of_several_) {
      hello->wire.push("CLUSTER", "SLOTS");
      return ask(hello, [this](error_code ec, redis_question& q) {
        if (ec || closed_) return;  // `ended` follows
        auto const board = board_.lock();
        board && board->greeted(*this, q.response) ? welcome() : hang_up();
      });
    }
    auto const call = redis_shard_count_call(names_);
    call.push_with_source(hello->wire);
    ask(hello, [this](error_code ec, redis_question& q) { greeted(ec, q); });
  }

  void greeted(error_code ec, redis_question const& hello) {
    if (ec || closed_) return;  // `ended` follows
    error_code wrong;
    if (hello.response.has_value()) {
      redis_reply reply{hello.response.value()};
      wrong = redis_shard_count_error(names_, reply);
    } else {
      wrong = redis_refusal(hello.response.error().diagnostic);
      // Loading its data, busy, or a replica without its master: that passes, so those who wait may
      // go on waiting.
      if (wrong != errc::store_foreign && wrong != errc::invalid_option) return hang_up();
    }
    refused_ = wrong;
    welcome();
  }

  /// Nobody waits for hints where commands are to be confirmed.
  void welcome() { options_.replicas == 0 ? listen() : open(); }

  /// Commands may go. Not before the subscription is answered: Boost.Redis 1.88 takes a reply that
  /// comes while it is being written for a message, and the refusal of a subscription for the reply
  /// to the next command; either way all later replies would go to the wrong commands.
  void open() {
    opening_ = false;
    waited_ = {};
    up_ = heard_ = true;
    after(options_.health_check_interval, &redis_link::beat);
    if (refused_) return waiting_.fail(refused_);
    if (options_.warn != nullptr) ask_policy();
    for (auto const& r : waiting_.take()) give(r);
    if (auto const board = board_.lock()) board->opened(*this);
  }

  /// Asks for a sign of life, and gives the connection up when twice there was none.
  void beat() {
    silent_ = std::exchange(heard_, false) ? 0 : silent_ + 1;
    constexpr int most = 2;
    if (silent_ == most) return hang_up();
    auto const ping = std::make_shared<redis_question>();
    ping->wire.push("PING");
    ask(ping, [](error_code, redis_question&) {});
    after(options_.health_check_interval, &redis_link::beat);
  }

  void ask_policy() {
    auto const policy = std::make_shared<redis_question>();
    policy->wire.push("CONFIG", "GET", "maxmemory-policy");
    ask(policy, [this](error_code, redis_question& q) {
      auto const warning = redis_eviction_warning(q.response);
      if (warning.empty() || options_.warn == nullptr) return;
      std::exchange(options_.warn, nullptr)(warning);
    });
  }

  /// Hints that others publish.
  void listen() {
    opening_ = true;
    auto const heard = std::make_shared<redis_question>();
    heard->wire.push("SUBSCRIBE", names_.channel());
    connection_->set_receive_response(heard->response);
    receive(connection_, heard);
    ask(heard, [](error_code, redis_question&) {});
  }

  void receive(redis_connection const& from, std::shared_ptr<redis_question> const& heard) {
    from->async_receive(boost::asio::bind_executor(
        strand_, [self = shared_from_this(), from, heard](error_code ec, std::size_t) {
          if (ec || from != self->connection_) return;
          self->heard_ = true;
          if (heard->response.has_value()) {
            redis_messages(heard->response.value(), [&](auto const& key) { self->hint(key); });
          }
          heard->response = {};
          if (self->opening_) self->open();  // the first: it is subscribed, or is not allowed to
          self->receive(from, heard);
        }));
  }

  void hint(std::string const& key) {
    if (!is_one_of_several_) return hints_.give(key);
    if (auto const board = board_.lock()) board->heard(*this, key);
  }

  void ended(redis_connection const& which) {
    if (which != connection_) return;
    up_ = opening_ = false;
    refused_ = {};
    beat_.stop();
    which->cancel();  // whatever is still in it
    connection_.reset();
    if (auto const relay = std::exchange(relay_, {})) relay->close();
    redis_unconfirmed::settle(unconfirmed_.take(), false);
    closed_ ? finish() : retry();
  }

  void retry() {
    connection_.reset();
    // Doubled each time; half of it is random, so that not all come back at once.
    waited_ =
        std::clamp(2 * waited_, options_.least_reconnect_wait, options_.longest_reconnect_wait);
    auto const half = waited_ / 2;
    auto const wait = half + duration{static_cast<duration::rep>(
                                 ids_.entropy() % static_cast<std::uint64_t>(half.count() + 1))};
    pause_.start(strand_, saturating_add(system_clock{}.steady_now(), wait),
                 [self = shared_from_this()] { self->connect(); });
    if (auto const board = board_.lock()) board->ended(*this);
  }

  void stop() override {
    waiting_.fail(make_error_code(errc::closed));
    hints_.clear();
    if (connection_) return hang_up();
    pause_.stop();
    finish();
  }

  /// Makes the connection end. `ended` follows, but Boost.Redis forgets to cancel what it is told
  /// to between two of the steps in which it connects: so it is told again.
  void hang_up() {
    auto const which = connection_;
    up_ = opening_ = false;
    attempt_->emit(boost::asio::cancellation_type::terminal);
    which->cancel();
    if (which == connection_) after(std::chrono::milliseconds{10}, &redis_link::hang_up);
  }

  /// Does this next of all that is done about the connection by time.
  void after(duration wait, void (redis_link::*step)()) {
    beat_.start(strand_, saturating_add(system_clock{}.steady_now(), wait),
                [self = shared_from_this(), step] { ((*self).*step)(); });
  }

  redis_address const address_;
  std::weak_ptr<redis_switchboard> const board_;
  bool const is_one_of_several_ = false;
  id_source ids_;

  // The strand's own.
  bool up_ = false;
  bool opening_ = false;
  bool heard_ = false;  // a sign of life, since the last beat
  int silent_ = 0;      // beats without one
  error_code refused_;
  redis_connection connection_;
  std::shared_ptr<redis_relay> relay_;  // to a unix socket
  std::shared_ptr<boost::asio::cancellation_signal> attempt_;
  redis_waiting waiting_;
  std::size_t given_ = 0;
  std::shared_ptr<redis_batch> next_;  // will be sent at the end of this turn
  redis_spare_batches spare_;
  redis_unconfirmed unconfirmed_;
  boost::unordered_flat_set<redis_script const*> taught_;  // being sent
  duration waited_{};
  alarm<system_clock> pause_;
  alarm<system_clock> beat_;
};

}  // namespace weir::detail

#endif
