// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_LINK_HPP
#define WEIR_STORE_NATS_LINK_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/parking.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/store/nats/absence.hpp"
#include "weir/store/nats/address.hpp"
#include "weir/store/nats/dial.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/options.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/request.hpp"
#include "weir/store/nats/server_time.hpp"
#include "weir/store/nats/socket.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <nats/nats.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// What the handles of a store share: one connection, on a strand of its own, and the requests that
/// wait for it.
///
/// A request is given to the connection only while that is up. So what waits here was definitely
/// not executed, and what was given away when the connection ends is of unknown outcome.
class nats_link : public std::enable_shared_from_this<nats_link> {
 public:
  nats_link(boost::asio::any_io_executor const& executor, nats_address address,
            nats_options const& options)
      : executor_{executor},
        strand_{boost::asio::make_strand(executor)},
        address_{std::move(address)},
        options_{bounded(options)},
        names_{std::string{options.prefix}},
        stream_config_{nats_stream_config(options)},
        usable_{valid_nats_prefix(options.prefix)} {
    options_.prefix = {};  // the caller's
  }
  nats_link(nats_link const&) = delete;
  nats_link& operator=(nats_link const&) = delete;

  [[nodiscard]] nats_options const& options() const noexcept { return options_; }
  [[nodiscard]] nats_names const& names() const noexcept { return names_; }
  [[nodiscard]] nats_strand const& strand() const noexcept { return strand_; }
  [[nodiscard]] bool usable() const noexcept { return usable_; }
  /// Commands that were not answered yet; of any thread.
  [[nodiscard]] std::shared_ptr<std::atomic<std::size_t>> const& pending() const noexcept {
    return pending_;
  }

  /// Keeps a connection until `close`. May be called from any thread, as the next one.
  void run(std::shared_ptr<parked<error_code>> op) {
    boost::asio::dispatch(strand_, [self = shared_from_this(), op = std::move(op)] {
      if (self->closed_) {
        op->resume(make_error_code(errc::closed));
      } else if (self->running_) {
        op->resume(boost::asio::error::already_started);
      } else {
        self->running_ = op;
        self->connect();
      }
    });
  }
  void close() {
    boost::asio::dispatch(strand_, [self = shared_from_this()] { self->close_now(); });
  }

  // The rest is within the strand.

  void listen(std::weak_ptr<nats_hinted> who) { hinted_ = std::move(who); }

  /// Follows a subject as long as somebody listens. May be asked for at any time.
  void follow(std::string subject, std::weak_ptr<nats_feed> who) {
    followed_.push_back({std::move(subject), std::move(who), nullptr});
    auto const feed = followed_.back().who.lock();
    if (!feed) return;
    if (closed_) return feed->closed();
    if (!socket_ || !replies_) return;
    followed_.back().heard = socket_->subscribe(followed_.back().subject);
    if (!followed_.back().heard) return hang_up();
    if (up_ && refused_) feed->refused(refused_);
    if (up_ && !refused_) feed->connected();
  }

  void submit(std::shared_ptr<nats_request> const& r) {
    if (closed_) return r->failed(errc::closed, false);
    if (refused_) return r->failed(refused_, false);
    if (up_) return give(r);
    r->give_up_at = saturating_add(system_clock{}.steady_now(), options_.offline_patience);
    waiting_.push_back(r);
    if (waiting_.size() == 1) sweep();
  }

  /// Does something in a moment, when what is refused now may be accepted. False: that would be
  /// after `until`, and it is not done.
  [[nodiscard]] bool later(steady_time until, std::function<void()> what) {
    constexpr duration moment = std::chrono::milliseconds{50};
    auto const at = saturating_add(system_clock{}.steady_now(), moment);
    if (closed_ || at > until) return false;
    later_.push_back(std::move(what));
    if (later_.size() == 1)
      moment_.start(strand_, at, [self = shared_from_this()] { self->now_do(); });
    return true;
  }

  /// Says something to whoever listens, if there is a connection.
  void tell(std::string const& subject) {
    natsMsg* made = nullptr;
    if (!up_ || natsMsg_Create(&made, subject.c_str(), nullptr, nullptr, 0) != NATS_OK) return;
    nats_owner<natsMsg> const message{made};
    (void)socket_->publish(message.get());
  }

  [[nodiscard]] bool closed() const noexcept { return closed_; }

  /// Of the stream of a shard's log.
  [[nodiscard]] std::string log_config(std::uint32_t shard) const {
    auto o = options_;
    o.prefix = names_.prefix();
    return nats_log_config(o, shard);
  }

  /// Reads may be answered by any server that has the stream.
  [[nodiscard]] bool replicated() const noexcept { return replicated_; }

  [[nodiscard]] bool knows_time() const noexcept { return time_.known(); }
  /// Once it is known.
  [[nodiscard]] nats_now now() const noexcept {
    auto const now = system_clock{}.steady_now();
    return {time_.earliest(now), time_.doubt(now)};
  }

 private:
  static constexpr char mark_of = 'm';  // and the number of a request: a message to ourselves

  // ---------------------------------------------------------------------------- while it is down

  /// Fails those that have waited for too long, and looks again when the next one will have.
  void sweep() {
    auto const now = system_clock{}.steady_now();
    while (!waiting_.empty() &&
           (!waiting_.front()->wanted() || waiting_.front()->give_up_at <= now)) {
      auto const r = std::move(waiting_.front());
      waiting_.pop_front();
      r->failed(errc::store_unavailable, false);
    }
    if (waiting_.empty() || closed_) return;
    patience_.start(strand_, waiting_.front()->give_up_at,
                    [self = shared_from_this()] { self->sweep(); });
  }

  void fail_waiting(error_code ec) {
    auto const all = std::exchange(waiting_, {});
    patience_.stop();
    for (auto const& r : all) r->failed(ec, false);
  }

  // ---------------------------------------------------------------------------- while it is up

  void give(std::shared_ptr<nats_request> const& r) {
    if (!r->wanted()) return r->failed(errc::store_unavailable, false);
    auto const id = last_id_ + 1;
    natsMsg* made = nullptr;
    auto const inbox = inbox_ + std::to_string(id);
    if (natsMsg_Create(&made, r->subject.c_str(), inbox.c_str(), r->data.data(),
                       static_cast<int>(r->data.size())) != NATS_OK) {
      return r->failed(errc::store_unavailable, false);
    }
    nats_owner<natsMsg> const message{made};
    auto const header = [&](char const* name, std::string const& value) {
      return natsMsgHeader_Set(message.get(), name, value.c_str()) == NATS_OK;
    };
    bool good = true;
    if (r->expected) {
      good = header("Nats-Expected-Last-Subject-Sequence", std::to_string(*r->expected));
    }
    if (good && r->ttl != 0) good = header("Nats-TTL", std::to_string(r->ttl) + "s");
    if (!good) return r->failed(errc::store_unavailable, false);

    switch (socket_->publish(message.get())) {
      case nats_socket::sending::given: break;
      case nats_socket::sending::too_large: return r->failed(errc::store_full, false);
      case nats_socket::sending::refused: return r->failed(errc::store_unavailable, false);
    }
    auto const until = saturating_add(system_clock{}.steady_now(), options_.request_timeout);
    last_id_ = id;
    given_.emplace(id, r);
    if (absence_.marking()) mark();
    deadlines_.emplace_back(until, id);
    if (!watching_) watch_deadlines();
  }

  /// One timer for all: they come in order.
  void watch_deadlines() {
    watching_ = true;
    timeout_.start(strand_, deadlines_.front().first,
                   [self = shared_from_this()] { self->time_out(); });
  }
  void time_out() {
    auto const now = system_clock{}.steady_now();
    watching_ = false;
    while (!deadlines_.empty() && deadlines_.front().first <= now) {
      auto const id = deadlines_.front().second;
      deadlines_.pop_front();
      if (auto const r = take(id)) r->failed(errc::timed_out, true);
    }
    drop_answered();
    if (!deadlines_.empty() && !watching_) watch_deadlines();
  }
  void drop_answered() {
    while (!deadlines_.empty() && !given_.contains(deadlines_.front().second)) {
      deadlines_.pop_front();
    }
  }

  [[nodiscard]] std::shared_ptr<nats_request> take(std::uint64_t id) {
    auto const found = given_.find(id);
    if (found == given_.end()) return nullptr;
    auto const r = std::move(found->second);
    given_.erase(found);
    drop_answered();
    return r;
  }

  void read() {
    auto const held = socket_;
    natsMsg* next = nullptr;
    // First of all, since a server says again what it has stored before it says that it has.
    for (std::size_t i = 0; held == socket_ && i < followed_.size(); ++i) {
      while (held == socket_ && followed_[i].heard &&
             natsSubscription_NextMsg(&next, followed_[i].heard.get(), 0) == NATS_OK) {
        nats_owner<natsMsg> const message{next};
        heard_ = true;
        if (auto const who = followed_[i].who.lock()) who->heard(nats_reply{next});
      }
    }
    while (held == socket_ && replies_) {
      auto const status = natsSubscription_NextMsg(&next, replies_.get(), 0);
      if (status == NATS_NO_RESPONDERS) {
        nobody();
        continue;
      }
      if (status != NATS_OK) break;
      nats_owner<natsMsg> const message{next};
      heard_ = true;
      std::string_view const subject{natsMsg_GetSubject(next)};
      auto digits = subject.substr(std::min(inbox_.size(), subject.size()));
      bool const marker = digits.starts_with(mark_of);
      if (marker) digits.remove_prefix(1);
      std::uint64_t id = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), id);
      if (marker) {
        marked(id);
      } else if (auto const r = take(id)) {
        r->answered(nats_reply{next});
      }
    }
    while (held == socket_ && hints_ &&
           natsSubscription_NextMsg(&next, hints_.get(), 0) == NATS_OK) {
      nats_owner<natsMsg> const message{next};
      heard_ = true;
      if (auto const who = hinted_.lock()) who->hinted(names_.hinted(natsMsg_GetSubject(next)));
    }
  }

  /// Nobody listens where a request went: JetStream is off, or the stream has no leader or is gone.
  void nobody() {
    heard_ = true;
    auto missed = absence_.missed();
    if (given_.size() == 1) missed = given_.begin()->first;
    if (missed) {
      if (auto const r = take(*missed)) r->failed(errc::store_unavailable, false);
    } else if (!absence_.marking() && may_mark_) {
      absence_.begin(last_id_);
      mark();
    }
  }
  void marked(std::uint64_t last) {
    auto const unclear = absence_.passed(last);
    if (unclear == 0) return;
    std::vector<std::uint64_t> before;
    for (auto const& [id, r] : given_) {
      if (id <= last) before.push_back(id);
    }
    if (before.size() != unclear) return;  // what is not told apart waits for its time
    for (auto const id : before) {
      if (auto const r = take(id)) r->failed(errc::store_unavailable, false);
    }
  }
  void mark() {
    natsMsg* made = nullptr;
    auto const subject = inbox_ + mark_of + std::to_string(last_id_);
    if (natsMsg_Create(&made, subject.c_str(), nullptr, nullptr, 0) != NATS_OK) {
      return absence_.end();
    }
    nats_owner<natsMsg> const message{made};
    if (socket_->publish(message.get()) != nats_socket::sending::given) absence_.end();
  }

  void await_violations() {
    auto told = [weak = weak_from_this(), from = std::weak_ptr{socket_}](error_code ec) {
      auto const self = weak.lock();
      auto const socket = from.lock();
      if (ec || !self || !socket || socket != self->socket_) return;
      for (auto const& said : socket->violations().take()) self->not_permitted(said);
      if (socket == self->socket_) self->await_violations();
    };
    socket_->violations().listen(
        park<error_code>(boost::asio::any_io_executor{strand_}, std::move(told)));
  }
  /// The server has not done something. Whom it concerns has to be certain.
  void not_permitted(std::string const& said) {
    heard_ = true;
    if (said.find("Subscription to \"" + inbox_) != said.npos) return open(permission_denied());
    auto const subject = nats_refused_subject::of(said);
    if (subject.text.starts_with(inbox_)) {
      may_mark_ = false;  // a mark was not
      return absence_.end();
    }
    std::uint64_t concerned = 0;
    for (auto const& [id, r] : given_) {
      if (!subject.matches(r->subject)) continue;
      if (concerned != 0 && !subject.whole) return;
      if (concerned == 0 || id < concerned) concerned = id;
    }
    if (auto const r = take(concerned)) r->failed(permission_denied(), false);
  }
  [[nodiscard]] static error_code permission_denied() noexcept {
    return make_error_code(boost::system::errc::permission_denied);
  }

  // ---------------------------------------------------------------------------- the connection

  void ask(std::string subject, std::string data, nats_question::heard then) {
    auto const q = std::make_shared<nats_question>(std::move(then));
    q->subject = std::move(subject);
    q->data = std::move(data);
    give(q);
  }

  void connect() {
    if (closed_) return finish();
    dialer_.start(
        strand_, address_, options_,
        [self = shared_from_this()](error_code ec, std::shared_ptr<nats_connection> made) {
          self->arrived(ec, std::move(made));
        });
  }

  void arrived(error_code ec, std::shared_ptr<nats_connection> made) {
    dialer_.forget();
    if (closed_) return finish();
    refused_ = {};
    if (ec == permission_denied()) {
      refused_ = ec;
      for_each_feed([ec](nats_feed& f) { f.refused(ec); });
      fail_waiting(ec);
    }
    if (ec || !made) return retry();
    socket_ = std::make_shared<nats_socket>(strand_, std::move(made));
    // Timers keep this alive as long as there is a connection, so that nothing here refers to
    // itself when its execution context is destroyed.
    auto const then = [weak = weak_from_this()](void (nats_link::*step)()) {
      return [weak, step] {
        if (auto const self = weak.lock()) ((*self).*step)();
      };
    };
    if (!socket_->start(then(&nats_link::read), then(&nats_link::ended))) return hang_up();
    natsInbox* inbox = nullptr;
    if (natsInbox_Create(&inbox) != NATS_OK) return hang_up();
    inbox_ = std::string{inbox} + ".";
    natsInbox_Destroy(inbox);
    replies_ = socket_->subscribe(inbox_ + "*");
    hints_ = socket_->subscribe(names_.hints());
    if (!replies_ || !hints_) return hang_up();
    await_violations();
    absence_.end();
    may_mark_ = true;
    for (auto& f : followed_) {
      f.heard = socket_->subscribe(f.subject);
      if (!f.heard) return hang_up();
    }
    silent_ = 0;
    after(options_.connect_timeout, [](nats_link& l) { l.hang_up(); });
    greet();
  }

  /// Before any command.
  void greet() {
    auto const sent = system_clock{}.steady_now();
    ask(names_.info(), {}, [this, sent](error_code ec, std::string_view text) {
      if (ec) return not_greeted(ec);
      auto const info = read_stream_info(text);
      if (info.error == static_cast<int>(nats_code::stream_not_found)) {
        if (options_.create_stream) return create();
        return open(errc::schema_outdated);
      }
      greeted(info, sent);
    });
  }
  void create() {
    auto const sent = system_clock{}.steady_now();
    ask(names_.create(), stream_config_, [this, sent](error_code ec, std::string_view text) {
      ec ? not_greeted(ec) : greeted(read_stream_info(text), sent);
    });
  }
  void not_greeted(error_code ec) {
    if (!socket_) return;  // it has ended
    ec == permission_denied() ? open(ec) : hang_up();
  }
  void greeted(nats_stream_info const& info, steady_time sent) {
    if (info.error != 0) {
      auto const ec = nats_refusal(info.error);
      // That may pass, so those who wait may go on waiting.
      if (ec == errc::store_unavailable) return hang_up();
      return open(ec);
    }
    if (!info.fits) return open(errc::store_foreign);
    if (!info.time) return greet();  // what was just made is told without it
    learn(info, sent);
    open({});
  }

  void learn(nats_stream_info const& info, steady_time sent) {
    time_.learn(*info.time, sent, system_clock{}.steady_now());
    replicated_ = info.replicated;
  }

  /// Commands may go.
  void open(error_code wrong) {
    refused_ = wrong;
    waited_ = {};
    up_ = heard_ = true;
    after(options_.health_check_interval, [](nats_link& l) { l.beat(); });
    if (refused_) {
      for_each_feed([this](nats_feed& f) { f.refused(refused_); });
      return fail_waiting(refused_);
    }
    auto const all = std::exchange(waiting_, {});
    patience_.stop();
    for (auto const& r : all) submit(r);
    for_each_feed([](nats_feed& f) { f.connected(); });
  }
  void open(errc wrong) { open(make_error_code(wrong)); }

  /// Asks for a sign of life, and the time, and gives the connection up when twice there was none.
  void beat() {
    silent_ = std::exchange(heard_, false) ? 0 : silent_ + 1;
    constexpr int most = 2;
    if (silent_ == most) return hang_up();
    auto const sent = system_clock{}.steady_now();
    ask(names_.info(), {}, [this, sent](error_code ec, std::string_view text) {
      if (ec) return;
      auto const info = read_stream_info(text);
      if (info.error == static_cast<int>(nats_code::stream_not_found) && up_ && !refused_) {
        return hang_up();  // it was deleted: begin anew
      }
      if (info.error != 0 || !info.time) return;
      learn(info, sent);
      // It was missing, or something else, when it was last looked at.
      if (refused_ && up_ && info.fits) {
        refused_ = {};
        for_each_feed([](nats_feed& f) { f.connected(); });
      }
    });
    if (socket_) after(options_.health_check_interval, [](nats_link& l) { l.beat(); });
  }

  /// The connection has ended.
  void ended() {
    replies_.reset();
    hints_.reset();
    for (auto& f : followed_) f.heard.reset();
    socket_.reset();
    bool const was_up = std::exchange(up_, false);
    refused_ = {};
    beat_.stop();
    timeout_.stop();
    watching_ = false;
    deadlines_.clear();
    auto const all = std::exchange(given_, {});
    for (auto const& [id, r] : all) r->failed(errc::outcome_unknown, true);
    if (was_up) for_each_feed([](nats_feed& f) { f.disconnected(); });
    if (closed_) return finish();
    if (!dialer_.dialing()) retry();
  }
  void hang_up() {
    if (socket_) socket_->close();
    ended();
  }

  template <class F>
  void for_each_feed(F const& f) {
    for (std::size_t i = 0; i < followed_.size(); ++i) {
      if (auto const who = followed_[i].who.lock()) f(*who);
    }
  }

  void retry() {
    // Doubled each time; half of it is random, so that not all come back at once.
    waited_ =
        std::clamp(2 * waited_, options_.least_reconnect_wait, options_.longest_reconnect_wait);
    auto const half = waited_ / 2;
    auto const wait = half + duration{static_cast<duration::rep>(
                                 ids_.entropy() % static_cast<std::uint64_t>(half.count() + 1))};
    pause_.start(strand_, saturating_add(system_clock{}.steady_now(), wait),
                 [self = shared_from_this()] { self->connect(); });
  }

  void close_now() {
    if (std::exchange(closed_, true)) return;
    fail_waiting(make_error_code(errc::closed));
    now_do();
    for_each_feed([](nats_feed& f) { f.closed(); });
    if (socket_) return hang_up();
    pause_.stop();
    dialer_.forget();  // who dials is not waited for
    finish();
  }
  void finish() {
    if (auto const op = std::exchange(running_, {})) op->resume(error_code{});
  }

  void now_do() {
    moment_.stop();
    for (auto const& what : std::exchange(later_, {})) what();
  }

  /// Does this next of all that is done about the connection by time.
  template <class Step>
  void after(duration wait, Step step) {
    beat_.start(strand_, saturating_add(system_clock{}.steady_now(), wait),
                [self = shared_from_this(), step] { step(*self); });
  }

  struct followed {
    std::string subject;
    std::weak_ptr<nats_feed> who;
    nats_owner<natsSubscription> heard;
  };

  boost::asio::any_io_executor const executor_;
  nats_strand const strand_;
  nats_address const address_;
  nats_options options_;
  nats_names const names_;
  std::string const stream_config_;
  bool const usable_;
  id_source ids_;
  std::shared_ptr<std::atomic<std::size_t>> const pending_ =
      std::make_shared<std::atomic<std::size_t>>(0);

  // The strand's own.
  bool closed_ = false;
  bool up_ = false;
  bool heard_ = false;  // a sign of life, since the last beat
  bool replicated_ = false;
  int silent_ = 0;  // beats without one
  error_code refused_;
  std::shared_ptr<parked<error_code>> running_;
  nats_dialer dialer_;
  std::shared_ptr<nats_socket> socket_;
  std::string inbox_;
  nats_owner<natsSubscription> replies_;
  nats_owner<natsSubscription> hints_;
  std::weak_ptr<nats_hinted> hinted_;
  std::vector<followed> followed_;
  nats_server_time time_;
  std::deque<std::shared_ptr<nats_request>> waiting_;
  std::uint64_t last_id_ = 0;
  boost::unordered_flat_map<std::uint64_t, std::shared_ptr<nats_request>> given_;
  std::deque<std::pair<steady_time, std::uint64_t>> deadlines_;
  bool watching_ = false;
  nats_absence absence_;
  bool may_mark_ = true;
  std::vector<std::function<void()>> later_;
  duration waited_{};
  alarm<system_clock> pause_;
  alarm<system_clock> patience_;
  alarm<system_clock> beat_;
  alarm<system_clock> timeout_;
  alarm<system_clock> moment_;
};

}  // namespace weir::detail

#endif
