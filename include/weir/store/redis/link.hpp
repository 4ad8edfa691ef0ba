// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_LINK_HPP
#define WEIR_STORE_REDIS_LINK_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/outage.hpp"
#include "weir/detail/reconnect_pace.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/log.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/allowed.hpp"
#include "weir/store/redis/backend.hpp"
#include "weir/store/redis/batch.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/cluster_map.hpp"
#include "weir/store/redis/confirm.hpp"
#include "weir/store/redis/convoy.hpp"
#include "weir/store/redis/dial.hpp"
#include "weir/store/redis/hosts.hpp"
#include "weir/store/redis/options.hpp"
#include "weir/store/redis/question.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/request.hpp"
#include "weir/store/redis/room.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/store/redis/sentinel_watch.hpp"
#include "weir/store/redis/session.hpp"
#include "weir/store/redis/shard_count.hpp"
#include "weir/store/redis/switchboard.hpp"
#include "weir/store/redis/waiting.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// Names a store in the log.
[[nodiscard]] inline std::string redis_log_name(redis_address const& address) {
  return "Redis store at " + redis_place_text(address);
}

/// A server, on a strand of its own or on that of a switchboard: a session with it, which is
/// replaced when it ends, and the commands that wait for one.
///
/// A command is given to the connection only while that is up. So what waits here was definitely
/// not executed, and what was given away when the connection ends is of unknown outcome.
class redis_link final : public redis_backend,
                         public redis_session_owner,
                         public redis_sentinel_watch_owner,
                         private redis_batch_owner {
 public:
  /// @param process as `redis_names` has it
  redis_link(boost::asio::any_io_executor const& executor, redis_address address,
             redis_options const& options, std::string process = {})
      : redis_backend{boost::asio::make_strand(executor), options,
                      std::make_shared<outage>(redis_log_name(address), never_run),
                      std::move(process)},
        address_{std::move(address)},
        hosts_{strand_, address_, options_} {}

  /// One of several.
  redis_link(std::weak_ptr<redis_switchboard> board, executor_type const& strand,
             redis_address address, redis_options const& options, std::shared_ptr<outage> state)
      : redis_backend{strand, options, std::move(state), {}},
        address_{std::move(address)},
        hosts_{strand_, address_, options_},
        board_{std::move(board)},
        is_one_of_several_{true} {}

  // For the switchboard, within the strand.

  [[nodiscard]] redis_address const& address() const noexcept { return address_; }
  [[nodiscard]] bool up() const noexcept { return session() != nullptr; }
  /// Last refusal by the server; empty if there is none, or none is known.
  [[nodiscard]] error_code refusal() const noexcept { return refused_; }
  [[nodiscard]] std::size_t under_way() const noexcept {
    return given_ + queue_.size() + unconfirmed_.size();
  }

  std::optional<redis_target> hint_target() override {
    if (!up()) return std::nullopt;
    return target_;
  }

  /// Listens for hints on the switchboard's behalf.
  void listen_for_others(std::string const& channel) { subscribe(channel); }

  void missed(std::string const& channel) override {
    if (!is_one_of_several_) return redis_backend::missed(channel);
    if (auto const board = board_.lock()) board->missed(channel);
  }
  void hinted(std::string const& key) override {
    if (!is_one_of_several_) return redis_backend::hinted(key);
    if (auto const board = board_.lock()) board->heard(*this, key);
  }

  /// Makes a connection, and others after it, until `close`.
  void start() override { connect(); }

  /// What is asked is answered while the connection lasts, or not at all.
  void ask_slots(std::function<void(redis_question const&)> then) {
    auto const session = this->session();
    if (!session) return;
    auto const slots = std::make_shared<redis_question>(redis_cluster_map::most_bytes);
    slots->wire.push("CLUSTER", "SLOTS");
    session->ask(slots, [then = std::move(then)](error_code ec, redis_question& q) {
      if (!ec) then(q);
    });
  }

  /// Sends it while it is up, with all others of this turn of the strand: once there is room.
  void give(std::shared_ptr<redis_request> const& r) {
    if (queue_.empty() && room_.has(r->bytes())) return send_soon(r);
    queue_.push(r);
    send_queued();
  }

 private:
  /// As many as have room.
  void send_queued() {
    while (auto const next = queue_.next(room_)) {
      if ((*next)->wanted()) send_soon(*next);
    }
  }

  void send_soon(std::shared_ptr<redis_request> const& r) {
    if (!next_) {
      auto batch = spare_.take();
      post_task(strand_, [self = shared_from_this()] { self->send(); });
      next_ = std::move(batch);
    }
    next_->add(r);
    ++given_;
    room_.take(r->bytes());
    // Not all at once: the server does the first ones while the others are still being made.
    if (next_->unanswered().size() >= redis_convoy::most_together && up()) send();
  }

  std::shared_ptr<redis_link> shared_from_this() {
    return std::static_pointer_cast<redis_link>(redis_backend::shared_from_this());
  }

  /// That which is up, or null.
  [[nodiscard]] std::shared_ptr<redis_session> session() const noexcept {
    auto out = session_.lock();
    if (out && !out->up()) out.reset();
    return out;
  }

  void accept(std::shared_ptr<redis_request> const& r) override {
    if (closed_) return r->fail(errc::closed);
    if (!usable_) return r->fail(bad_prefix());
    if (malformed_) return r->fail(malformed_);
    if (refused_) return r->fail(refused_);
    if (under_way() + waiting_.size() >= options_.max_pending) return r->fail(errc::store_full);
    if (up()) return give(r);
    wait(r);
  }

  /// For another connection. Its patience begins when it first has to, and lasts for all of them.
  void wait(std::shared_ptr<redis_request> const& r, error_code refusal = {}) {
    if (r->give_up_at == steady_time{}) {
      r->give_up_at = saturating_add(system_clock{}.steady_now(), options_.offline_patience);
    }
    if (refusal) r->refuse(refusal);
    waiting_.add(*this, r);
  }

  // ---------------------------------------------------------------------------- while it is up

  void send() {
    auto const batch = std::move(next_);
    if (!batch) return;  // it has gone already
    auto const session = this->session();
    if (!session) {  // it ended meanwhile, and they were not sent
      for (auto const& r : batch->unanswered()) {
        returned(*r);
        not_given(r);
      }
      return;
    }
    auto const unwanted = batch->leave();
    if (!batch->unanswered().empty()) {
      batch->encode(parted_scripts(), known_);
      batch->belongs_to(*this);
      session->execute(batch->wire(), *batch, [self = shared_from_this(), batch](error_code ec) {
        self->sent(batch, ec);
      });
    }
    for (auto const& r : unwanted) returned(*r);  // others have room, behind these
  }

  /// Those whose commands travel by themselves at the moment.
  redis_known_scripts const& parted_scripts() {
    if (!alone_until_.empty()) {
      auto const now = system_clock{}.steady_now();
      alone_.clear();
      erase_if(alone_until_, [now](auto const& each) { return each.second <= now; });
      for (auto const& each : alone_until_) alone_.insert(each.first);
    }
    return alone_;
  }

  /// What was not answered by now never will be.
  void sent(std::shared_ptr<redis_batch> const& batch, error_code ec) {
    bool const unsent = ec == boost::asio::error::not_connected;
    for (auto const& r : batch->unanswered()) {
      returned(*r);
      unsent ? not_given(r) : r->fail(errc::outcome_unknown);
    }
    if (!ec) spare_.keep(batch);
  }

  /// It is under way no longer: others have room.
  void returned(redis_request const& r) {
    --given_;
    room_.give_back(r.bytes());
    send_queued();
    if (leaving_ && given_ == 0) {
      post_task(strand_, [self = shared_from_this()] { self->leave(); });
    }
  }

  void answered(std::shared_ptr<redis_request> const& r,
                std::span<redis_reply::node const> nodes) override {
    returned(*r);
    auto const& first = nodes.front();
    if (!first.is_error()) {
      if (r->was_held()) answered_at_last();
      if (options_.replicas != 0) return confirm(r, nodes);
      redis_reply reply{nodes};
      return r->complete(reply);
    }
    // Not from here: the connection is in the middle of reading.
    post_task(strand_,
              [self = shared_from_this(), r, text = first.value] { self->refused(r, text); });
  }

  void answered_at_last() {
    if (auto const board = board_.lock()) board->answered_at_last();
  }

  /// Memory is full, or there is no right to one of those that travelled as one. For a while none
  /// of this script do, or all of them would be parted.
  void parted(std::shared_ptr<redis_request> const& r) override {
    constexpr auto a_while = std::chrono::seconds{1};
    alone_until_[&r->script()] = saturating_add(system_clock{}.steady_now(), a_while);
    returned(*r);
    r->stays();
    r->stay_alone();
    post_task(strand_, [self = shared_from_this(), r] {
      self->up() && !self->closed_ ? self->give(r) : self->not_given(r);
    });
  }

  void refused(std::shared_ptr<redis_request> const& r, std::string_view text) {
    if (text.starts_with("NOSCRIPT")) return teach(r);
    auto const board = board_.lock();
    if (board && board->refused(*this, r, text)) return;
    auto const why = redis_refused(text);
    if (why == errc::permission_denied) tell_denied(text, r->script().source());
    if (!redis_refusal_moves(text)) return r->fail(why);
    if (closed_) return r->fail(errc::closed);
    wait(r, why);
    renew_soon();
  }

  /// The server does not do what it is asked for any more, and perhaps another one has its place:
  /// the session is to end, and its successor finds the server anew. What is refused all the same
  /// is no reason to do that faster and faster.
  void renew_soon() {
    if (renewing_ || !up()) return;
    renewing_ = true;
    auto const now = system_clock{}.steady_now();
    if (now > saturating_add(renewed_at_, 2 * options_.longest_reconnect_wait)) {
      renewal_pace_.reset();
    }
    pause_.start(strand_, saturating_add(now, renewal_pace_.next()),
                 [self = shared_from_this()] { self->renew(); });
  }

  void renew() {
    renewed_at_ = system_clock{}.steady_now();
    auto const session = this->session();
    if (!session) return;
    session->retire();
    leaving_ = true;
    return_queue();
    leave();
  }

  /// Ends a session that has retired, once all that it was given is answered.
  void leave() {
    auto const session = session_.lock();
    if (session && leaving_ && given_ == 0) session->hang_up();
  }

  /// It is done. Whether the replicas have it, the server is asked, for all that are done by then.
  void confirm(std::shared_ptr<redis_request> const& r, std::span<redis_reply::node const> nodes) {
    if (!unconfirmed_.add(r, nodes)) return;
    post_task(strand_, [self = shared_from_this()] { self->ask_replicas(); });
  }

  void ask_replicas() {
    auto const batch = std::make_shared<redis_unconfirmed::batch>(unconfirmed_.take());
    auto const session = this->session();
    if (!session) return confirmed(*batch, false);
    auto const timeout = std::chrono::ceil<std::chrono::milliseconds>(options_.replica_timeout);
    auto const wait = std::make_shared<redis_question>();
    wait->wire.push("WAIT", options_.replicas, timeout.count());
    session->execute(wait->wire, *wait, [self = shared_from_this(), wait, batch](error_code ec) {
      bool enough = false;
      if (wait->is_refused() && redis_refused(wait->refusal()) == errc::permission_denied) {
        self->denied(wait->refusal());
      }
      if (!ec) {
        redis_reply reply{wait->answer()};
        auto const have = reply.number<std::uint32_t>();
        enough = reply.complete() && have >= self->options_.replicas;
      }
      self->confirmed(*batch, enough);
    });
  }

  void confirmed(redis_unconfirmed::batch const& batch, bool enough) {
    redis_unconfirmed::settle(batch, enough);
    if (unconfirmed_.more()) ask_replicas();
  }

  /// Requests that had no room yet were not executed.
  void return_queue() {
    for (auto const& r : queue_.take_all()) not_given(r);
  }

  /// It was definitely not executed: so it may wait for another connection.
  void not_given(std::shared_ptr<redis_request> const& r) {
    if (auto const board = board_.lock()) return board->not_given(r);
    accept(r);
  }

  /// The server has forgotten its scripts (F46), so this command was not executed. It is told the
  /// script, once for all that are under way, and then asked again; where it will not keep scripts,
  /// the command brings its own.
  void teach(std::shared_ptr<redis_request> const& r) {
    auto const session = this->session();
    r->stays();
    if (!session) return not_given(r);
    switch (r->try_again()) {
      case redis_request::attempt::by_digest: {
        auto const* const script = &r->script();
        if (r->went_together()) {  // the next run brings it
          known_.erase(script);
          break;
        }
        if (!taught_.insert(script).second) break;
        auto const lesson = std::make_shared<redis_question>();
        lesson->wire.push("SCRIPT", "LOAD", script->source());
        session->ask(lesson,
                     [this, script](error_code, redis_question&) { taught_.erase(script); });
        break;
      }
      case redis_request::attempt::by_source: break;
      case redis_request::attempt::none: return r->fail(errc::store_unavailable);
    }
    give(r);
  }

  // ---------------------------------------------------------------------------- the session

  void connect() {
    if (closed_) return finish();
    taught_.clear();
    known_.clear();
    hosts_.find(
        [self = shared_from_this()](std::optional<redis_target> target, std::string const& cause) {
          self->dial(std::move(target), cause);
        });
  }

  void dial(std::optional<redis_target> target, std::string const& cause) {
    if (closed_) return finish();
    found_ = false;
    if (!target) return failed(cause);
    target_ = std::move(*target);
    auto const session = std::make_shared<redis_session>(strand_, shared_from_this(), options_);
    try {
      session->start(target_, {});
    } catch (boost::system::system_error const& e) {  // such as an unreadable file of authorities
      return failed(redis_place_text(target_.address) + ": " + e.what());
    }
    session_ = session;
  }

  std::shared_ptr<redis_question> greeting() override {
    if (is_one_of_several_) ask_policy();
    auto const most = is_one_of_several_ ? redis_cluster_map::most_bytes : limits::key_size;
    auto out = std::make_shared<redis_question>(most);
    is_one_of_several_ ? out->wire.push("CLUSTER", "SLOTS")
                       : redis_shard_count_call(names_).push_with_source(out->wire);
    return out;
  }

  error_code greeted(redis_question const& answer) override {
    error_code const refused =
        answer.is_refused() ? redis_greeting_refused(answer.refusal()) : error_code{};
    if (refused == errc::permission_denied) {
      tell_denied(answer.refusal(), redis_shard_count_call(names_).script().source());
    }
    if (is_one_of_several_ && refused != errc::permission_denied) {
      auto const board = board_.lock();
      bool const serves = board && board->greeted(*this, answer);
      return serves ? evicts_ : make_error_code(errc::store_unavailable);
    }
    if (refused) return refused;
    redis_reply reply{answer.answer()};
    redis_server_facts server;
    if (auto const wrong = redis_shard_count_error(names_, reply, server)) return wrong;
    if (server.reads_only && may_write_elsewhere()) return errc::store_read_only;
    return evicts(server.policy);
  }

  /// Each host is tried before one that only reads is kept.
  [[nodiscard]] bool may_write_elsewhere() const noexcept {
    auto const& others = address_.others();
    return tried_ <= others.size() && !(others.empty() && address_.service().empty());
  }

  /// A replica refuses no reads. So a server that became one, or was kept because there was no
  /// other, is asked now and then, and left (F70). So is one that would not be taken by now: whose
  /// policy was changed, or which was emptied and then used with another number of shards.
  void look_soon() {
    constexpr int beats = 15;
    auto const now = system_clock{}.steady_now();
    look_.start(strand_, saturating_add(now, beats * options_.health_check_interval),
                [self = shared_from_this()] { self->look(); });
  }
  void look() {
    auto const session = this->session();
    if (!session) return;
    session->ask(greeting(), [this](error_code ec, redis_question& q) {
      if (ec || q.is_refused()) return;
      redis_reply reply{q.answer()};
      redis_server_facts server;
      auto const wrong = redis_shard_count_error(names_, reply, server);
      if (wrong || server.reads_only || evicts(server.policy)) renew_soon();
    });
    look_soon();
  }

  void opened() override {
    found_ = true;
    tried_ = 0;
    pace_.reset();
    renew_hints();
    refused_ = {};
    state_->recovered();
    watch();
    follow();
    if (!is_one_of_several_) look_soon();
    for (auto const& r : waiting_.take()) give(r);
    if (auto const board = board_.lock()) board->opened(*this);
  }

  void ended(error_code why, std::string_view cause) override {
    session_.reset();
    look_.stop();
    bool const renews = std::exchange(leaving_, false);
    if (!closed_ && !renews) {
      why = state_->failed(why ? why : make_error_code(errc::store_unavailable),
                           redis_place_text(target_.address) + ": " + std::string{cause});
    }
    return_queue();
    redis_unconfirmed::settle(unconfirmed_.take(), false);
    (void)unconfirmed_.more();  // also if there was no memory for its question
    if (closed_) return finish();
    // What the server has against us is told at once, and it is asked again all the same.
    refused_ = redis_refusal_stays(why) ? why : error_code{};
    if (refused_) waiting_.fail(refused_);
    bool const other = renews || !found_;
    renewing_ = false;
    if (!renews) pause_.stop();
    if (other) next_host();
    if (!renews) return retry();
    post_task(strand_, [self = shared_from_this()] { self->connect(); });
  }

  void failed(std::string_view cause) {
    state_->failed(errc::store_unavailable, cause);
    next_host();
    retry();
  }

  void next_host() noexcept {
    ++tried_;
    hosts_.next();
  }

  void retry() {
    pause_.start(strand_, saturating_add(system_clock{}.steady_now(), pace_.next()),
                 [self = shared_from_this()] { self->connect(); });
    if (auto const board = board_.lock()) board->ended(*this);
  }

  void stop() override {
    waiting_.fail(make_error_code(errc::closed));
    return_queue();
    pause_.stop();
    if (watch_) watch_->close();
    if (auto const session = session_.lock()) return session->hang_up();
    hosts_.cancel();
    finish();
  }

  /// Has sentinels tell when the server is succeeded.
  void watch() {
    if (watch_ || address_.service().empty()) return;
    watch_ =
        std::make_shared<redis_sentinel_watch>(strand_, address_, options_, shared_from_this());
    watch_->connect();
  }

  [[nodiscard]] bool is_at(redis_place const& place) const noexcept {
    return place == redis_place{target_.address.host(), target_.address.port()};
  }

  void moved(redis_place const& to) override {
    moved_to_ = to;
    follow();
  }
  /// Once: if nobody serves there, sentinels are asked again.
  void follow() {
    if (!moved_to_ || !up()) return;
    auto const to = *std::exchange(moved_to_, std::nullopt);
    if (is_at(to)) return;
    hosts_.lead_to(to);
    renew_soon();
  }

  /// It may be the one that does not know yet: so another one is asked.
  void said(redis_place const& at) override {
    if (up() && !is_at(at)) renew_soon();
  }

  /// Of a node, whose greeting is no script. It is answered before the greeting, with which it
  /// goes.
  void ask_policy() {
    auto const session = session_.lock();
    if (!session) return;
    auto const info = std::make_shared<redis_question>();
    info->wire.push("INFO", "memory");
    session->ask(info, [this](error_code, redis_question& q) {
      evicts_ = evicts(redis_policy_in(q.answer().front().value));
    });
  }

  /// The server may forget what it has when its memory is short: then it is of no use, unless that
  /// is wanted (`redis_options::allow_eviction`).
  error_code evicts(std::string_view policy) {
    if (policy.empty()) return {};
    auto const warning = redis_eviction_warning(policy);
    if (!options_.allow_eviction) return explained(errc::store_evicts, warning);
    state_->warn_once(log::topic::settings, warning);
    return {};
  }

  void denied(std::string_view text) override { tell_denied(text, {}); }

  /// The error does not say what the user has no right to.
  void tell_denied(std::string_view text, std::string_view script) {
    state_->warn_once(log::topic::settings, redis_denied(text, script));
  }

  redis_address const address_;
  error_code const malformed_ = redis_allowed_error(address_);
  redis_hosts hosts_;
  std::weak_ptr<redis_switchboard> const board_;
  bool const is_one_of_several_ = false;

  // The strand's own.
  std::weak_ptr<redis_session> session_;
  error_code refused_;
  error_code evicts_;  // of a node: that it may forget what it has
  redis_waiting waiting_;
  std::size_t given_ = 0;
  redis_room room_;
  redis_room_queue<std::shared_ptr<redis_request>> queue_;
  std::shared_ptr<redis_batch> next_;  // will be sent at the end of this turn
  redis_spare_batches spare_;
  redis_unconfirmed unconfirmed_;
  boost::unordered_flat_set<redis_script const*> taught_;  // being sent
  redis_known_scripts known_;
  reconnect_pace pace_{options_.least_reconnect_wait, options_.longest_reconnect_wait};
  redis_target target_;    // of the session
  bool found_ = false;     // the session was up
  std::size_t tried_ = 0;  // hosts that were left since then
  bool renewing_ = false;  // the session is to end
  bool leaving_ = false;   // it has retired
  steady_time renewed_at_ = steady_time::min();
  boost::unordered_flat_map<redis_script const*, steady_time> alone_until_;
  redis_known_scripts alone_;  // at the moment
  reconnect_pace renewal_pace_{options_.least_reconnect_wait, options_.longest_reconnect_wait};
  std::shared_ptr<redis_sentinel_watch> watch_;
  std::optional<redis_place> moved_to_;  // while no session was up
  alarm<system_clock> pause_;
  alarm<system_clock> look_;
};

}  // namespace weir::detail

#endif
