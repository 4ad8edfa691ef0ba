// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_SESSION_HPP
#define WEIR_STORE_REDIS_SESSION_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/keep_from_children.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/dial.hpp"
#include "weir/store/redis/options.hpp"
#include "weir/store/redis/question.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/resp.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// Owner interface of a session.
class redis_session_owner {
 public:
  redis_session_owner() = default;
  redis_session_owner(redis_session_owner const&) = delete;
  redis_session_owner& operator=(redis_session_owner const&) = delete;
  virtual ~redis_session_owner() = default;

  /// The question that goes before any command.
  [[nodiscard]] virtual std::shared_ptr<redis_question> greeting() { return {}; }
  /// What it answered. An error: the session is of no use, because of that.
  virtual error_code greeted(redis_question const&) { return {}; }
  /// Commands may go; or it is subscribed.
  virtual void opened() = 0;
  /// From now on, what is published on this channel comes.
  virtual void subscribed(std::string const&) {}
  /// A hint.
  virtual void published(std::string const&) {}
  /// The server's user has no right to a command of the session's own, as this text says.
  virtual void denied(std::string_view) {}
  /// It is over, or could not begin; the last that is told. `why` is what `greeted` returned, or
  /// what the server has against the address; success: something else. `cause` is in words.
  virtual void ended(error_code why, std::string_view cause) = 0;
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
        options_{options},
        socket_{boost::asio::any_io_executor{strand_}} {}

  /// Throws `boost::system::system_error`, such as for a file of authorities that cannot be read.
  ///
  /// @param channels to subscribe to; none: it is for commands
  void start(redis_target const& target, std::vector<std::string> channels) {
    address_ = target.address;
    channels_ = std::move(channels);
    subscribes_ = !channels_.empty();
    auto const place = endpoint(target);
    if (address_.uses_tls()) {
      tls_.emplace(socket_, context_.emplace(redis_tls(address_)));
      redis_verify(*tls_, address_);
    }
    after(options_.connect_timeout, &redis_session::too_late);
    connect(place);
  }

  /// Subscribes to another one.
  void subscribe(std::string const& channel) {
    channels_.push_back(channel);
    if (up_ || opening_) listen(channels_.size() - 1);
  }

  /// May commands go?
  [[nodiscard]] bool up() const noexcept { return up_; }
  /// No more commands: it is to end when what is under way is answered.
  void retire() noexcept { up_ = false; }

  /// Sends a request. It, and what takes the replies, live until `on_end(error_code)` is called:
  /// with success after the last reply, `not_connected` where it was not sent, or another error
  /// where the connection ended before.
  void execute(redis_wire const& wire, redis_receiver& replies,
               std::function<void(error_code)> on_end) {
    if (ended_) {
      return post_task(strand_,
                       [on_end = std::move(on_end)] { on_end(boost::asio::error::not_connected); });
    }
    out_ += wire.payload();
    asked_.push_back({&replies, wire.commands(), wire.payload().size(), std::move(on_end)});
    sending_ += wire.payload().size();
    ++unsent_;
    write();
  }

  /// Asks something. `then` is called unless the session ends before: it may rely on the owner.
  void ask(std::shared_ptr<redis_question> const& q,
           std::function<void(error_code, redis_question&)> then) {
    execute(q->wire, *q, [this, q, then = std::move(then)](error_code ec) {
      if (!ended_) then(ec, *q);
    });
  }

  /// Makes it end, because of this.
  void refuse(error_code why) {
    cause_ = explanation_of(why);
    if (cause_.empty()) cause_ = why.message();
    if (redis_refusal_stays(why)) why_ = why;
    hang_up();
  }

  /// Makes it end. The owner is told later.
  void hang_up() {
    up_ = opening_ = false;
    if (std::exchange(gone_, true)) return;
    error_code ignored;
    socket_.close(ignored);
    post_task(strand_, [self = shared_from_this()] { self->over(); });
  }

 private:
  using protocol = boost::asio::generic::stream_protocol;

  /// A request without all of its replies; or a subscription, which a push confirms, and only its
  /// refusal is a reply.
  struct asked {
    redis_receiver* replies;  // null: a subscription
    std::size_t missing;
    std::size_t bytes;
    std::function<void(error_code)> on_end;
  };

  static protocol::endpoint endpoint(redis_target const& target) {
    auto const& address = target.address;
    if (!address.path().empty()) {
      return boost::asio::local::stream_protocol::endpoint{address.path()};
    }
    return boost::asio::ip::tcp::endpoint{boost::asio::ip::make_address(target.ip), address.port()};
  }

  /// Calls `f` with the stream that carries the protocol.
  template <class F>
  void with_stream(F f) {
    tls_ ? f(*tls_) : f(socket_);
  }

  /// A handler that goes on with `next` after a success, and ends the session after a failure.
  template <class F>
  auto on(F next) {
    return boost::asio::bind_executor(strand_, [self = shared_from_this(), next = std::move(next)](
                                                   error_code ec, auto... results) mutable {
      if (self->gone_ || self->ended_) return;
      ec ? self->broken(ec.message()) : next(results...);
    });
  }

  // ---------------------------------------------------------------------------- the beginning

  void connect(protocol::endpoint const& to) {
    error_code ignored;  // what has failed fails again below
    (void)socket_.open(to.protocol(), ignored);
    keep_from_children(socket_.native_handle());
    socket_.async_connect(to, on([this] { connected(); }));
  }

  void connected() {
    error_code ignored;  // such as of a unix socket
    socket_.set_option(boost::asio::ip::tcp::no_delay{true}, ignored);
    if (!tls_) return greet();
    stage_ = "TLS: ";
    after(options_.connect_timeout, &redis_session::too_late);
    tls_->async_handshake(boost::asio::ssl::stream_base::client, on([this] { greet(); }));
  }

  /// Before any command. The server may refuse it: so nothing is sent along that changes the
  /// server, whose default user or database it would be done with.
  void greet() {
    stage_ = "greeting: ";
    after(options_.connect_timeout, &redis_session::too_late);
    auto const hello = std::make_shared<redis_question>();
    auto& wire = hello->wire;
    if (address_.password().empty()) {
      wire.push("HELLO", "3", "SETNAME", "weir");
    } else {
      wire.push("HELLO", "3", "AUTH", address_.user(), address_.password(), "SETNAME", "weir");
    }
    if (address_.database() != 0) wire.push("SELECT", address_.database());
    is_connected_ = true;
    ask(hello, [this](error_code ec, redis_question& q) {
      if (ec || gone_) return;
      tell_denied(q.refusal());
      if (q.is_refused()) return refuse(redis_greeting_refused(without_secrets(q.refusal())));
      if (subscribes_) {
        opening_ = true;
        return listen(0);
      }
      ask(owner_->greeting(), [this](error_code failed, redis_question& answer) {
        if (failed || gone_) return;
        if (auto const no = owner_->greeted(answer)) return refuse(no);
        open();
      });
    });
    read();
  }

  /// A server may say what it was told.
  [[nodiscard]] std::string_view without_secrets(std::string_view text) const noexcept {
    auto const& secret = address_.password();
    bool const told = !secret.empty() && text.find(secret) != text.npos;
    return told ? text.substr(0, text.find(' ')) : text;
  }

  /// A refused password is no matter of commands.
  void tell_denied(std::string_view refusal) {
    if (refusal.starts_with("NOPERM")) owner_->denied(refusal);
  }

  /// Hints that others publish. That it is subscribed, a message says; that it may not subscribe, a
  /// reply.
  ///
  /// @param first of the channels
  void listen(std::size_t first) {
    redis_wire wire;
    for (; first != channels_.size(); ++first) {
      wire.push("SUBSCRIBE", channels_[first]);
      asked_.push_back({nullptr, 1, 0, {}});
      ++unsent_;
    }
    out_ += wire.payload();
    write();
  }

  void open() {
    stage_ = "connection lost: ";
    opening_ = false;
    up_ = heard_ = true;
    after(options_.health_check_interval, &redis_session::beat);
    owner_->opened();
  }

  /// Asks for a sign of life, and gives the connection up when twice there was none, or when it is
  /// the answer to something else: then all answers are. It comes behind all that is being sent:
  /// for each megabyte of that, the server has a beat more.
  void beat() {
    silent_ = std::exchange(heard_, false) ? 0 : silent_ + 1;
    constexpr std::size_t megabyte = std::size_t{1} << 20U;
    if (silent_ >= 2 + sending_ / megabyte) return broken_off("no sign of life");
    auto const ping = std::make_shared<redis_question>();
    ping->wire.push("PING", ++beats_);
    ask(ping, [this, own = std::to_string(beats_)](error_code ec, redis_question& q) {
      if (!ec && !q.is_refused() && q.answer().front().value != own)
        broken_off("it answers something else");
    });
    after(options_.health_check_interval, &redis_session::beat);
  }

  // ---------------------------------------------------------------------------- bytes

  void write() {
    if (!is_connected_ || writes_ || gone_ || out_.empty()) return;
    writes_ = true;
    std::swap(out_, writing_);
    unsent_ = 0;
    with_stream([this](auto& stream) {
      boost::asio::async_write(stream, boost::asio::buffer(writing_), on([this](std::size_t) {
                                 constexpr std::size_t much = std::size_t{1} << 20U;
                                 if (writing_.capacity() > much) writing_ = {};
                                 writing_.clear();
                                 writes_ = false;
                                 write();
                               }));
    });
  }

  void read() {
    constexpr std::size_t least = std::size_t{16} << 10U;
    // Grows by what has arrived, not by what was announced.
    if (in_.size() - filled_ < least / 2) in_.resize(std::max(least, 2 * in_.size()));
    auto const room = boost::asio::buffer(in_.data() + filled_, in_.size() - filled_);
    with_stream([&](auto& stream) {
      stream.async_read_some(room, on([this](std::size_t n) {
                               filled_ += n;
                               if (!take()) return broken("it speaks something else than RESP3");
                               if (!gone_) read();
                             }));
    });
  }

  /// Reads what has arrived. False: it makes no sense.
  bool take() {
    std::string_view rest{in_.data(), filled_};
    try {
      while (!rest.empty() && !gone_) {
        if (!std::exchange(within_, true)) {
          is_push_ = rest.front() == '>';
          if (!is_push_ && asked_.empty()) return false;
        }
        auto const outcome = parser_.read(rest, bounds());
        if (outcome == redis_parser::outcome::refused) return false;
        rest.remove_prefix(parser_.consumed());
        received(parser_.consumed());
        if (outcome == redis_parser::outcome::incomplete) break;
        is_push_ ? pushed(parser_.nodes()) : replied(parser_.nodes());
        parser_.clear();
        within_ = false;
      }
    } catch (std::bad_alloc const&) {  // this connection can make no sense any more
      return false;
    }
    filled_ = rest.size();
    std::copy(rest.begin(), rest.end(), in_.begin());
    constexpr std::size_t much = std::size_t{1} << 20U;
    if (filled_ == 0 && in_.size() > much) in_ = {};
    return true;
  }

  /// A long reply is a sign of life before its end.
  void received(std::size_t bytes) noexcept {
    constexpr std::size_t part = std::size_t{64} << 10U;
    received_ += bytes;
    if (received_ >= part) alive();
  }
  void alive() noexcept {
    heard_ = true;
    received_ = 0;
  }

  /// Of what comes next.
  [[nodiscard]] redis_bounds bounds() const noexcept {
    constexpr std::size_t hint = 4 * limits::key_size;
    bool const is_reply = !is_push_ && !asked_.empty() && asked_.front().replies != nullptr;
    return is_reply ? asked_.front().replies->bounds() : redis_bounds::of(hint);
  }

  void replied(std::span<redis_value const> nodes) {
    alive();
    if (asked_.front().replies == nullptr) {
      asked_.pop_front();
      if (nodes.front().is_error()) tell_denied(nodes.front().value);
      if (opening_) open();  // without hints
      return;
    }
    asked_.front().replies->reply(nodes);
    if (--asked_.front().missing != 0) return;
    auto const done = std::move(asked_.front());
    asked_.pop_front();
    sending_ -= done.bytes;
    done.on_end({});
  }

  /// A push is "message", the channel and what was published; or "subscribe", the channel and more.
  void pushed(std::span<redis_value const> nodes) {
    constexpr std::size_t length = 4;
    if (!subscribes_ || nodes.size() < length) return;
    auto const& what = nodes[1].value;
    alive();
    if (std::ranges::find(channels_, nodes[2].value) == channels_.end()) return;
    if (what == "subscribe") {
      if (asked_.empty() || asked_.front().replies != nullptr) return;
      asked_.pop_front();
      if (opening_) open();
      owner_->subscribed(nodes[2].value);
    }
    if (what == "message") owner_->published(nodes[3].value);
  }

  // ---------------------------------------------------------------------------- the end

  void too_late() { broken_off("no answer within connect_timeout"); }
  void broken_off(std::string_view cause) {
    if (cause_.empty()) cause_ = stage_ + std::string{cause};
    hang_up();
  }
  void broken(std::string_view cause) {
    if (cause_.empty()) cause_ = stage_ + std::string{cause};
    over();
  }

  void over() {
    if (std::exchange(ended_, true)) return;
    gone_ = true;
    up_ = opening_ = false;
    time_.stop();
    error_code ignored;
    socket_.close(ignored);
    auto sent = asked_.size() - unsent_;
    for (auto const& a : std::exchange(asked_, {})) {
      if (a.on_end) {
        a.on_end(sent != 0 ? boost::asio::error::operation_aborted
                           : boost::asio::error::not_connected);
      }
      sent -= sent != 0;
    }
    auto const owner = std::exchange(owner_, {});
    owner->ended(why_, cause_);
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
  std::vector<std::string> channels_;  // of the hints
  bool subscribes_ = false;            // otherwise it is for commands
  protocol::socket socket_;
  std::optional<boost::asio::ssl::context> context_;
  std::optional<boost::asio::ssl::stream<protocol::socket&>> tls_;
  alarm<system_clock> time_;
  error_code why_;
  std::string stage_ = "connect: ";
  std::string cause_;  // of the end, once it is known
  std::deque<asked> asked_;
  std::size_t unsent_ = 0;  // of those, from the last one on
  std::string out_;         // to be sent
  std::string writing_;     // being sent
  std::string in_;          // what has arrived, and room for more
  std::size_t filled_ = 0;  // of that
  redis_parser parser_;
  bool within_ = false;  // a reply or a push, of which a part has arrived
  bool is_push_ = false;
  bool is_connected_ = false;
  bool writes_ = false;
  bool opening_ = false;  // it subscribes
  bool up_ = false;
  bool gone_ = false;         // it is to end
  bool ended_ = false;        // it has ended
  bool heard_ = false;        // a sign of life, since the last beat
  std::size_t received_ = 0;  // bytes, since the last sign of life
  std::uint64_t beats_ = 0;
  std::size_t silent_ = 0;   // beats without one
  std::size_t sending_ = 0;  // bytes of what has no answer yet
};

}  // namespace weir::detail

#endif
