// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_LINK_HPP
#define WEIR_STORE_NATS_LINK_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/hint_line.hpp"
#include "weir/detail/reconnect_pace.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/parking.hpp"
#include "weir/store/nats/address.hpp"
#include "weir/store/nats/answer_room.hpp"
#include "weir/store/nats/connection.hpp"
#include "weir/store/nats/conversation.hpp"
#include "weir/store/nats/dial.hpp"
#include "weir/store/nats/followers.hpp"
#include "weir/store/nats/framing.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/options.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/request.hpp"
#include "weir/store/nats/socket.hpp"
#include "weir/store/nats/store_time.hpp"
#include "weir/store/nats/violations.hpp"
#include "weir/store/nats/waiting.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <nats/nats.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
      : state_{std::make_shared<outage>(log_name(address), store_never_run)},
        executor_{executor},
        strand_{boost::asio::make_strand(executor)},
        address_{std::move(address)},
        options_{bounded(options)},
        names_{std::string{options.prefix}},
        stream_config_{nats_stream_config(options)},
        usable_{valid_nats_prefix(options.prefix)},
        retry_{options_.least_reconnect_wait, options_.longest_reconnect_wait} {
    options_.prefix = {};  // the caller's
  }
  nats_link(nats_link const&) = delete;
  nats_link& operator=(nats_link const&) = delete;

  /// Whether the store can be used. Of any thread.
  [[nodiscard]] std::shared_ptr<outage> const& state() const noexcept { return state_; }
  [[nodiscard]] nats_options const& options() const noexcept { return options_; }
  [[nodiscard]] nats_names const& names() const noexcept { return names_; }
  [[nodiscard]] nats_strand const& strand() const noexcept { return strand_; }
  /// The same, for what is parked.
  [[nodiscard]] boost::asio::any_io_executor const& erased_strand() const noexcept {
    return erased_strand_;
  }
  [[nodiscard]] bool usable() const noexcept { return usable_; }
  /// Names the store in the log.
  [[nodiscard]] std::string log_name() const { return log_name(address_); }
  /// Commands that were not answered yet; of any thread.
  [[nodiscard]] std::shared_ptr<std::atomic<std::size_t>> const& pending() const noexcept {
    return pending_;
  }

  /// Keeps a connection until `close`. May be called from any thread, as the next one.
  void run(std::shared_ptr<parked<error_code>> op) {
    dispatch_task(strand_, [self = shared_from_this(), op = std::move(op)] {
      if (self->closed_) {
        op->resume(make_error_code(errc::closed));
      } else if (self->running_) {
        op->resume(boost::asio::error::already_started);
      } else {
        self->running_ = op;
        self->state_->forget();
        self->connect();
      }
    });
  }
  void close() {
    dispatch_task(strand_, [self = shared_from_this()] { self->close_now(); });
  }

  // The rest is within the strand.

  /// Waits until a job of the holder's is cancelled.
  void await_cancel(std::string_view holder, hint_waiter w) {
    if (closed_) {
      wake(w, errc::closed);
    } else {
      cancels_.add(names_.cancelled(holder), std::move(w));
    }
  }
  void listen(std::weak_ptr<nats_hinted> who) { hinted_ = std::move(who); }
  /// Tells what the stream is like whenever that was asked, and how many of some records it has.
  void count(std::string const& records, std::function<void(nats_stream_info const&)> then) {
    counting_ = names_.counting(records);
    counted_ = std::move(then);
  }

  /// Follows a subject as long as somebody listens. May be asked for at any time.
  void follow(std::string subject, std::shared_ptr<nats_feed> const& feed) {
    if (!followers_.add(std::move(subject), feed, socket_.get())) return hang_up();
    if (closed_) return feed->closed();
    if (up_ && refused_) return feed->refused(refused_);
    if (up_) feed->connected();
  }

  void submit(std::shared_ptr<nats_request> const& r) {
    if (closed_) return r->failed(errc::closed, false);
    if (refused_) return r->failed(refused_, false);
    if (up_) {
      address(*r);
      return conversation_->give(r);
    }
    waiting_.add(shared_from_this(), strand_, r, options_.offline_patience);
  }

  /// Nothing is heard of that any more.
  void unfollow(nats_feed const& feed) { followers_.remove(feed); }

  /// Asks an owner. What is asked has to end by itself, or is forgotten: nobody waits for so long
  /// that it would be told.
  void ask_owner(std::shared_ptr<nats_request> const& r) {
    if (!up_ || refused_) return r->failed(errc::store_unavailable, false);
    owners_->give(r);
  }
  void forget_question(nats_request const& r) {
    if (owners_) owners_->drop(r.number);
  }

  /// For answers of owners.
  [[nodiscard]] nats_answer_room& room() noexcept { return room_; }

  /// Is it wanted, and permitted, that others ask this process?
  [[nodiscard]] bool may_own() const noexcept { return may_own_ && options_.owner; }
  /// Is this process the owner of a part, as far as it knows?
  [[nodiscard]] bool owns(std::uint32_t part) const noexcept {
    return part < owned_.size() && owned_[part];
  }
  void owns(std::uint32_t part, bool does) {
    if (owned_.size() <= part) owned_.resize(part + 1);
    owned_[part] = does;
  }

  /// Somebody else has done something where an owner is alone.
  void overtaken() noexcept { ++overtaken_; }
  /// How often.
  [[nodiscard]] std::uint64_t times_overtaken() const noexcept { return overtaken_; }

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

  /// Says something to whoever listens, if there is a connection and their clients have room for
  /// the subject: that of a hint about a long key is left out, where TLS hides it from their side.
  void tell(std::string const& subject, std::string const& data = {}) {
    bool const fits = subject.size() <= nats_framing::longest_subjects;
    auto const message = up_ && fits ? nats_message(subject, data) : nullptr;
    if (message) (void)socket_->publish(message.get());
  }

  /// Counts the connections, so that what belongs to one of them is not done on another.
  [[nodiscard]] std::uint64_t connection() const noexcept { return connections_; }

  [[nodiscard]] bool closed() const noexcept { return closed_; }
  /// May requests go?
  [[nodiscard]] bool up() const noexcept { return up_; }

  /// JetStream has answered on this connection as a server that can be used does.
  void served() noexcept { served_ = true; }

  /// Bytes of the largest message that the server takes; 0: there is no connection.
  [[nodiscard]] std::size_t max_payload() const noexcept {
    return socket_ ? socket_->max_payload() : 0;
  }

  /// Of the stream of a shard's log.
  [[nodiscard]] std::string log_config(std::uint32_t shard) const {
    auto o = options_;
    o.prefix = names_.prefix();
    return nats_log_config(o, shard);
  }

  [[nodiscard]] bool knows_time() const noexcept { return time_.known(); }
  /// Once it is known.
  [[nodiscard]] nats_now now() const noexcept { return time_.now(system_clock{}.steady_now()); }
  [[nodiscard]] nats_stamp stamp() const noexcept {
    return time_.stamp(system_clock{}.steady_now());
  }

 private:
  void fail_waiting(error_code ec) {
    for (auto const& r : waiting_.take()) r->failed(ec, false);
  }

  // ---------------------------------------------------------------------------- what is heard

  void read() {
    heard_ = true;
    // First of all, since a server says again what it has stored before it says that it has.
    followers_.hear();
    if (auto const talk = conversation_) talk->read();
    if (auto const talk = owners_) talk->read();
    natsMsg* next = nullptr;
    while (hints_ && natsSubscription_NextMsg(&next, hints_.get(), 0) == NATS_OK) {
      nats_owner<natsMsg> const message{next};
      std::string_view const subject = natsMsg_GetSubject(next);
      cancels_.take(subject).wake_all();
      if (auto const who = hinted_.lock()) who->hinted(names_.hinted(subject));
    }
  }

  void await_violations() {
    auto told = [weak = weak_from_this(), from = std::weak_ptr{socket_}](error_code ec) {
      auto const self = weak.lock();
      auto const socket = from.lock();
      if (ec || !self || !socket) return;
      for (auto const& said : socket->violations().take()) {
        if (socket != self->socket_) return;
        self->not_permitted(said);
      }
      if (socket == self->socket_) self->await_violations();
    };
    socket_->violations().listen(park<error_code>(erased_strand_, std::move(told)));
  }
  void not_permitted(std::string const& said) {
    heard_ = true;
    if (conversation_->is_deaf(said)) return open(nats_not_permitted());
    bool const hears_none = said.find("Subscription to \"" + names_.questions()) != said.npos;
    auto const silent = nats_refused_subject::of(said).text.starts_with(names_.replies());
    if (hears_none || silent) may_own_ = false;
    auto const owners = owners_;
    auto const talk = conversation_;  // either may end the connection
    talk->not_permitted(said);
    owners->not_permitted(said);
  }

  // ---------------------------------------------------------------------------- the connection

  void ask(std::string subject, std::string data, nats_question::heard then) {
    auto const q = std::make_shared<nats_question>(std::move(then));
    q->subject = std::move(subject);
    q->data = std::move(data);
    conversation_->give(q);
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
    if (ec) ec = state_->failed(ec);
    if (ec == nats_not_permitted() || ec == errc::invalid_option) {
      refused_ = ec;
      followers_.for_each([ec](nats_feed& f) { f.refused(ec); });
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
    auto const converse = [&](duration patience, bool many) {
      return std::make_shared<nats_conversation>(
          strand_, socket_, patience, names_.replies(boost::uuids::to_string(id_source{}.job())),
          many);
    };
    conversation_ = converse(options_.request_timeout, false);
    owners_ = converse(duration::max(), true);
    may_own_ = may_note_ = true;
    ++connections_;
    if (!conversation_->start() || !owners_->start()) return hang_up();
    hints_ = socket_->subscribe(names_.hints());
    if (!hints_ || !followers_.listen(*socket_)) return hang_up();
    await_violations();
    silent_ = 0;
    greetings_ = 0;
    greet();
  }

  /// Before any command.
  void greet() {
    after(options_.connect_timeout, [](nats_link& l) { l.hang_up(); });
    auto const sent = system_clock{}.steady_now();
    ask(names_.info(), counting_, [this, sent](error_code ec, nats_reply const* reply, bool) {
      if (ec) return not_greeted(ec);
      auto const info = read_stream_info(reply->data());
      if (info.error == static_cast<int>(nats_code::stream_not_found)) {
        if (options_.create_stream) return create();
        return open(explained(errc::schema_outdated,
                              "there is no stream: make it by nats_stream_config, or set "
                              "nats_options::create_stream"));
      }
      greeted(info, sent);
    });
  }
  void create() {
    auto const sent = system_clock{}.steady_now();
    ask(names_.create(), stream_config_,
        [this, sent](error_code ec, nats_reply const* reply, bool) {
          ec ? not_greeted(ec) : greeted(read_stream_info(reply->data()), sent);
        });
  }
  void not_greeted(error_code ec) {
    if (!socket_) return;  // it has ended
    if (ec == nats_not_permitted()) return open(explained(ec, "JetStream's API"));
    cause_ = "JetStream does not answer: " + ec.message();
    hang_up();
  }
  void greeted(nats_stream_info const& info, steady_time sent) {
    if (info.error != 0) {
      auto const ec =
          explained(nats_refusal(info.error), "JetStream error " + std::to_string(info.error) +
                                                  ", of the stream " + names_.stream());
      cause_ = explanation_of(ec);
      // That may pass, so those who wait may go on waiting.
      if (ec == errc::store_unavailable) return hang_up();
      return open(ec);
    }
    if (!info.fits) {
      return open(explained(errc::store_foreign, "the stream " + names_.stream() +
                                                     " was not made by weir, or is changed"));
    }
    if (info.time) learn(info, sent);
    // A stream that was just made is told of without the time; and after a slow answer, leases
    // would be as much longer until the next.
    auto const doubt = time_.doubt(system_clock{}.steady_now());
    bool const well = info.time && doubt <= nats_server_time::vague;
    if (!well && ++greetings_ < most_greetings) return greet();
    if (!info.time) return hang_up();
    look_for_note(info.last, [this, info](error_code ec) {
      if (ec) return not_greeted(ec);
      open(large_enough() ? error_code{} : nats_small_payload());
      if (up_ && !refused_ && counted_) counted_(info);
    });
  }

  /// Reads what is noted of the time.
  void look_for_note(std::optional<time_point> last, std::function<void(error_code)> then) {
    auto const q = std::make_shared<nats_question>(
        [this, last, then = std::move(then)](error_code ec, nats_reply const* reply, bool) {
          if (ec) return then(ec);
          auto const found = read_record(*reply);
          if (found.has_error()) return then(found.error());
          nats_found_note note{.sequence = found->sequence};
          if (found->stored) {
            note.note = nats_time_note::read(found->value);
            note.stored = *found->stored;
          }
          time_.looked(note, last, options_.health_check_interval, system_clock{}.steady_now());
          then({});
        });
    q->subject = names_.direct_get(names_.time());
    address(*q);
    conversation_->give(q);
  }
  /// Notes the time where that is due. Where somebody else was faster, that is seen at the next
  /// look; where there is no room, or no right, it is not noted.
  void note_time() {
    auto const note = time_.due(system_clock{}.steady_now());
    if (!note || !up_ || refused_ || !may_note_) return;
    auto const q = std::make_shared<nats_question>([this](error_code ec, nats_reply const*, bool) {
      if (ec == nats_not_permitted()) may_note_ = false;
    });
    q->subject = names_.time();
    q->data = note->write();
    q->expected = time_.noted();
    conversation_->give(q);
  }

  /// The server tells a user's own bound once it knows the user; it may be below that of others.
  [[nodiscard]] bool large_enough() const noexcept { return max_payload() >= nats_least_payload; }

  /// Of several servers that have the stream, only the one that leads is sure to have all of it.
  /// How many they are is known once there is a connection.
  void address(nats_request& r) const {
    if (!replicated_) return;
    auto const record = names_.record_in(r.subject);
    if (record.empty()) return;
    r.subject = names_.leader_get();
    r.data = R"({"last_by_subj":")" + record + R"("})";
  }

  void learn(nats_stream_info const& info, steady_time sent) {
    time_.heard(*info.time, sent, system_clock{}.steady_now());
    replicated_ = info.replicated;
  }

  /// Commands may go.
  void open(error_code wrong) {
    refused_ = wrong ? state_->failed(wrong) : wrong;
    if (!wrong) state_->recovered();
    retry_.reset();
    up_ = heard_ = served_ = true;
    unserved_ = 0;
    after(options_.health_check_interval, [](nats_link& l) { l.beat(); });
    if (refused_) {
      followers_.for_each([this](nats_feed& f) { f.refused(refused_); });
      return fail_waiting(refused_);
    }
    note_time();
    for (auto const& r : waiting_.take()) submit(r);
    followers_.for_each([](nats_feed& f) { f.connected(); });
    cancels_.wake_all();  // nobody has told of what was cancelled meanwhile
  }
  void open(errc wrong) { open(make_error_code(wrong)); }

  /// Asks for a sign of life, and the time, and gives the connection up when twice there was none.
  /// Also when JetStream has served nothing for longer than it takes to elect a leader: the server
  /// may be cut off from the others of its cluster, where a leader is (F70).
  void beat() {
    silent_ = std::exchange(heard_, false) ? 0 : silent_ + 1;
    unserved_ = std::exchange(served_, false) ? 0 : unserved_ + 1;
    if (silent_ == most_silent || unserved_ == most_unserved) {
      cause_ = silent_ == most_silent ? "no sign of life" : "JetStream serves nothing";
      return hang_up();
    }
    auto const sent = system_clock{}.steady_now();
    ask(names_.info(), counting_, [this, sent](error_code ec, nats_reply const* reply, bool) {
      if (ec == nats_not_permitted()) served();
      if (ec) return;
      auto const info = read_stream_info(reply->data());
      if (info.error == 0 || nats_refusal(info.error) != errc::store_unavailable) served();
      if (info.error == static_cast<int>(nats_code::stream_not_found) && up_ && !refused_) {
        return hang_up();  // it was deleted: begin anew
      }
      if (info.error != 0 || !info.time) return;
      if (!info.fits && up_ && !refused_) return hang_up();  // it was changed: look at it anew
      learn(info, sent);
      if (up_ && !refused_ && counted_) counted_(info);
      // It was missing, or something else, when it was last looked at.
      bool const mended = refused_ && up_ && info.fits && large_enough();
      look_for_note(info.last, [this, mended](error_code wrong) {
        if (wrong) return;
        note_time();
        if (!mended || !refused_ || !up_) return;
        refused_ = {};
        state_->recovered();
        followers_.for_each([](nats_feed& f) { f.connected(); });
      });
    });
    if (socket_) after(options_.health_check_interval, [](nats_link& l) { l.beat(); });
  }

  /// The connection has ended.
  void ended() {
    hints_.reset();
    followers_.fall_silent();
    socket_.reset();
    bool const was_up = std::exchange(up_, false);
    refused_ = {};
    beat_.stop();
    if (auto const talk = std::exchange(conversation_, {})) talk->end();
    if (auto const talk = std::exchange(owners_, {})) talk->end();
    if (was_up) followers_.for_each([](nats_feed& f) { f.disconnected(); });
    auto const cause = std::exchange(cause_, {});
    if (closed_) return finish();
    state_->failed(errc::store_unavailable,
                   cause.empty() ? std::string{"the connection was lost"} : cause);
    if (!dialer_.dialing()) retry();
  }
  void hang_up() {
    if (socket_) socket_->close();
    ended();
  }

  void retry() {
    pause_.start(strand_, saturating_add(system_clock{}.steady_now(), retry_.next()),
                 [self = shared_from_this()] { self->connect(); });
  }

  void close_now() {
    if (std::exchange(closed_, true)) return;
    fail_waiting(make_error_code(errc::closed));
    now_do();
    followers_.for_each([](nats_feed& f) { f.closed(); });
    cancels_.wake_all(errc::closed);
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

  /// Names a store in the log: by the place, and never by a password.
  static std::string log_name(nats_address const& address) {
    auto const server = nats_server_url::of(address.urls().front());
    return "NATS store at " + server.host + ":" + server.port +
           (address.urls().size() == 1 ? "" : " and others");
  }

  static constexpr int most_greetings = 4;
  static constexpr int most_silent = 2;    // beats, as the options say
  static constexpr int most_unserved = 5;  // beats, as the options say

  std::shared_ptr<outage> const state_;
  boost::asio::any_io_executor const executor_;
  nats_strand const strand_;
  boost::asio::any_io_executor const erased_strand_{strand_};
  nats_address const address_;
  nats_options options_;
  nats_names const names_;
  std::string const stream_config_;
  bool const usable_;
  std::shared_ptr<std::atomic<std::size_t>> const pending_ =
      std::make_shared<std::atomic<std::size_t>>(0);

  // The strand's own.
  bool closed_ = false;
  bool up_ = false;
  bool heard_ = false;   // a sign of life, since the last beat
  bool served_ = false;  // by JetStream, since the last beat
  bool replicated_ = false;
  int silent_ = 0;     // beats without a sign of life
  int unserved_ = 0;   // beats without JetStream
  int greetings_ = 0;  // on this connection, in vain or slow
  error_code refused_;
  std::shared_ptr<parked<error_code>> running_;
  nats_dialer dialer_;
  std::shared_ptr<nats_socket> socket_;
  std::shared_ptr<nats_conversation> conversation_;  // with JetStream, as long as there is the
                                                     // socket
  std::shared_ptr<nats_conversation> owners_;        // with owners of parts, likewise
  std::vector<bool> owned_;                          // parts
  nats_answer_room room_{options_.shards};
  bool may_own_ = true;
  bool may_note_ = true;  // the time
  std::uint64_t overtaken_ = 0;
  std::uint64_t connections_ = 0;
  nats_owner<natsSubscription> hints_;
  std::weak_ptr<nats_hinted> hinted_;
  cancel_lines cancels_;  // by the subjects of their hints
  std::string counting_;
  std::function<void(nats_stream_info const&)> counted_;
  nats_followers followers_;
  nats_store_time time_;
  std::string cause_;  // of the connection's end, once it is known
  nats_waiting<nats_request> waiting_{state_};
  std::vector<std::function<void()>> later_;
  reconnect_pace retry_;
  alarm<system_clock> pause_;
  alarm<system_clock> beat_;
  alarm<system_clock> moment_;
};

}  // namespace weir::detail

#endif
