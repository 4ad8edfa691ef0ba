// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_PLACE_HPP
#define WEIR_STORE_NATS_PLACE_HPP

#include "weir/clock/system.hpp"
#include "weir/command/jobs.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/hint_line.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/parking.hpp"
#include "weir/store/nats/errand.hpp"
#include "weir/store/nats/followers.hpp"
#include "weir/store/nats/home.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/request.hpp"
#include "weir/store/nats/service.hpp"
#include "weir/store/nats/waiting.hpp"
#include "weir/store/nats/wire.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Records and logs are right whoever writes them: a record is written back only if nobody else has,
// and a log has one order for all. But processes that write at the same time are in each other's
// way: one is faster, and all others have done their work in vain (F67). So for each part of the
// keys, and for each shard of the jobs, one process is the owner, and all others ask it to execute
// their commands. It combines them, and nobody is faster.
//
// A record names the owner, and is written with the same compare-and-set. It is advice:
// a process that believes to be the owner and is not, since it stood still or was cut off, breaks
// no promise; it is overtaken, looks, and asks like everybody else. So there is no lease to keep,
// no time to agree on, and nothing to wait for when an owner dies: whoever asks it hears from the
// server at once that nobody listens, or nothing for `owner_patience`, and takes its place.
namespace weir::detail {

class nats_place;

/// A question to an owner: commands that are asked together.
class nats_asking final : public nats_request, public std::enable_shared_from_this<nats_asking> {
 public:
  explicit nats_asking(std::weak_ptr<nats_place> from) : from_{std::move(from)} {}

  [[nodiscard]] bool wanted() const noexcept override { return true; }
  [[nodiscard]] bool done() const noexcept override { return over || open == 0; }
  inline void answered(nats_reply const& reply) override;
  inline void failed(error_code why, bool given) override;

  std::vector<std::shared_ptr<nats_errand>> errands{};  // null: it was answered
  std::size_t open = 0;      // those that were not; a question without any has one
  std::size_t coming = 0;    // bytes that their answers may have
  std::string owner{};       // the process that is asked
  std::uint64_t order = 0;   // in the order in which they were asked
  steady_time since{};       // when it was asked
  bool waits = false;        // for hints, which may come late or never
  bool over = false;         // what is heard of it concerns nobody
  std::uint32_t pieces = 0;  // that were heard
  std::string heard{};       // a part of an answer

 private:
  std::weak_ptr<nats_place> const from_;
};

/// One part, as this process sees it: who its owner is, and what is to be done about it. In the
/// strand of the link.
class nats_place final : public nats_feed, public std::enable_shared_from_this<nats_place> {
 public:
  nats_place(std::shared_ptr<nats_link> const& link, std::shared_ptr<nats_home> home,
             std::uint32_t part)
      : link_{link},
        home_{std::move(home)},
        part_{part},
        waiting_{link->state()} {}

  /// Begins to listen to what happens to the connection.
  void start() {
    if (auto const on = link_.lock()) on->follow({}, shared_from_this());
  }

  void submit(std::shared_ptr<nats_errand> e) {
    auto const on = link_.lock();
    if (!on || on->closed()) return e->fail(errc::closed);
    switch (state_) {
      case state::mine:
      case state::nobodys:
        if (state_ == state::mine && nats_is_owners_own(home_->refusal(part_), false)) resign();
        if (state_ == state::mine && !may_own(*on)) become(state::nobodys);
        home_->execute(part_, e);
        return look_again(*on);
      case state::theirs: outgoing_.push_back(std::move(e)); return flush_soon(*on);
      case state::unknown: wait(std::move(e)); return look();
    }
  }

  /// The owner that a record names; empty: none that could be asked.
  [[nodiscard]] static std::string_view owner_in(std::string_view record) noexcept {
    if (!record.starts_with(tag)) return {};
    record.remove_prefix(tag.size());
    // A subject is made of it: strangers' bytes are none.
    bool const plain = record.size() <= longest_owner && std::ranges::all_of(record, plain_in_nats);
    return plain ? record : std::string_view{};
  }

  /// Somebody is said to be the owner. If this process believes to be it, it looks.
  void heard_of_owner(std::string_view name) {
    if (state_ == state::mine && name != claim_) look();
  }
  /// It is being found out who the owner is.
  [[nodiscard]] bool is_looking() const noexcept { return looking_; }
  /// May this process take it over from its owner now?
  [[nodiscard]] bool may_be_taken() const {
    auto const on = link_.lock();
    bool const others = state_ == state::theirs || state_ == state::unknown;
    return on && on->up() && may_own(*on) && others && !looking_ && !service_;
  }
  /// Takes it over from its owner, for balance.
  /// @param sequence of the owner's record: if that has changed, nothing is taken
  /// @param then hears whether it was, unless the connection ends before
  /// @return false: not now
  [[nodiscard]] bool take(std::uint64_t sequence, std::function<void(bool)> then) {
    auto const on = link_.lock();
    if (!on || !may_be_taken()) return false;
    taken_ = std::move(then);
    sequence_ = sequence;
    claim_part(*on);
    return true;
  }

  /// Waits for jobs of the shard. One wait of this process is for all that wait here.
  void await(command::await_jobs const& c, nats_operation<command::await_jobs> op) {
    auto const on = link_.lock();
    if (!on || on->closed()) {
      wake(op, errc::closed);
      return;
    }
    if (state_ == state::mine || state_ == state::nobodys) return await_here(c, std::move(op));
    line_of(c.schedules).waiting.add(std::move(op));
    if (state_ == state::theirs) arm(c.schedules);
    if (state_ == state::unknown) look();
  }

 private:
  friend class nats_asking;

  enum class state : std::uint8_t {
    unknown,  ///< who it is is to be found
    mine,     ///< this process is the owner
    theirs,   ///< another one is
    nobodys,  ///< nobody is, and this one cannot be, or does not want to
  };

  static constexpr std::size_t most_open = 8;             // questions that are not answered
  static constexpr std::size_t batch_size = 128U << 10U;  // bytes, unless one command has more
  static constexpr std::size_t most_commands = 1000;      // in a question
  static constexpr int most_asked = 16;                   // of a command, each time in vain
  static constexpr std::size_t longest_owner = 64;        // bytes of its name
  static constexpr std::size_t most_heard = 256U << 20U;  // bytes of an answer in pieces
  static constexpr int most_claims = 4;                   // in a minute
  static constexpr duration least_patience = std::chrono::seconds{1};
  static constexpr std::string_view tag = "weir:o1 ";

  // -------------------------------------------------------------------------------- the owner

  /// Asks who is the owner. What is asked for meanwhile goes where it went before.
  void look() {
    auto const on = link_.lock();
    if (!on || std::exchange(looking_, true)) return;
    auto const r = std::make_shared<nats_question>(
        [weak = weak_from_this()](error_code why, nats_reply const* reply, bool given) {
          auto const self = weak.lock();
          if (!self) return;
          reply ? self->found(read_record(*reply)) : self->not_found(why, given);
        });
    r->subject = on->names().direct_get(on->names().owner(part_));
    on->submit(r);
  }
  /// Looks now and then, and where somebody else was seen to do the owner's work.
  void look_again(nats_link const& on) {
    auto const now = system_clock{}.steady_now();
    bool const seen = seen_ != on.times_overtaken();
    if (looking_ || now < look_at_ || (state_ == state::mine && !seen)) return;
    seen_ = on.times_overtaken();
    look_at_ = saturating_add(now, state_ == state::mine ? least_pause : pause);
    look();
  }
  static constexpr duration least_pause = std::chrono::milliseconds{100};
  static constexpr duration pause = std::chrono::seconds{1};

  void found(result<nats_record> const& record) {
    looking_ = false;
    if (record.has_error()) return not_found(record.error(), false);
    sequence_ = record->sequence;
    auto const owner = owner_in(record->value);
    if (owner.empty()) return vacant();
    if (owner == claim_) return service_ ? become(state::mine) : vacant();
    if (owner == dead_ && system_clock{}.steady_now() < dead_until_) return vacant();
    auto const now = system_clock{}.steady_now();
    if (owner == stranger_ && now < stranger_until_) return become(state::nobodys);
    if (owner_ != owner) misses_ = 0;
    owner_ = owner;
    if (auto const on = link_.lock()) subject_ = on->names().questions(owner_);
    become(state::theirs);
  }
  [[nodiscard]] bool may_own(nats_link const& on) const noexcept { return !unfit_ && on.may_own(); }
  /// Is there reason to find out who it is?
  [[nodiscard]] bool has_to_know() const noexcept {
    return !waiting_.empty() || anybody_waits() || service_ || was_mine_;
  }
  /// Does this process own what it does not use?
  [[nodiscard]] bool is_for_others() const noexcept {
    auto const on = link_.lock();
    return on && on->options().owns_unused && may_own(*on);
  }
  /// Asks now and then whether the owner lives: a process that asks nothing else would not find out
  /// that it is gone.
  void watch_for_others() {
    auto const on = link_.lock();
    if (!on || !is_for_others() || state_ == state::mine) return;
    auto const mean = 4 * on->options().health_check_interval;
    auto const some = static_cast<std::int64_t>(random_.entropy() % 1024);
    for_others_.start(on->strand(),
                      saturating_add(system_clock{}.steady_now(), mean / 2 + mean / 1024 * some),
                      [self = shared_from_this()] {
                        auto const link = self->link_.lock();
                        if (!link || !link->up()) return;
                        if (self->state_ != state::theirs) return self->look();
                        if (self->open_.empty()) self->ask_for_life(*link);
                        self->watch_for_others();
                      });
  }
  /// There is no answer. If that may pass, it is waited for; if we may not know, commands are
  /// executed here, and fail by themselves if they may not either.
  void not_found(error_code why, bool given) {
    looking_ = false;
    auto const on = link_.lock();
    if (!on || on->closed()) return;
    bool const passes = given || why == errc::store_unavailable || why == errc::outcome_unknown;
    if (!passes) return become(state::nobodys);
    if (!has_to_know()) return watch_for_others();
    pause_.start(on->strand(), saturating_add(system_clock{}.steady_now(), moment),
                 [self = shared_from_this()] { self->look(); });
  }
  static constexpr duration moment = std::chrono::milliseconds{50};

  void vacant() {
    auto const on = link_.lock();
    if (!on) return;
    // Those who cannot hear each other must not take each other's place without end.
    auto const now = system_clock{}.steady_now();
    if (now - first_claim_ > std::chrono::minutes{1}) {
      first_claim_ = now;
      claims_ = 0;
    }
    if (!may_own(*on) || (!service_ && ++claims_ > most_claims)) {
      disown(*on);
      return become(state::nobodys);
    }
    claim_part(*on);
  }
  void claim_part(nats_link& on) {
    if (!service_) {
      claim_ = home_->claims().next(taken_ != nullptr);
      service_ = std::make_shared<nats_service>(on.shared_from_this(), home_, part_, listener());
      // It listens before others know of it.
      on.follow(on.names().questions(claim_), service_);
      if (!service_) return;  // that has ended the connection
    }
    auto const r = std::make_shared<nats_question>(
        [weak = weak_from_this()](error_code why, nats_reply const* reply, bool given) {
          auto const self = weak.lock();
          if (!self) return;
          reply ? self->claimed(read_written(reply->data())) : self->not_claimed(why, given);
        });
    r->subject = on.names().owner(part_);
    r->data = std::string{tag} + claim_;
    r->expected = sequence_;
    looking_ = true;
    on.submit(r);
  }
  [[nodiscard]] nats_service::listener listener() {
    auto const calls = [weak = weak_from_this()](auto what) {
      return [weak, what] {
        if (auto const self = weak.lock()) what(*self);
      };
    };
    return {.doubts = calls([](nats_place& p) { p.look(); }),
            .asked = calls([](nats_place& p) {
              if (auto const on = p.link_.lock()) p.look_again(*on);
            }),
            .unfit = calls([](nats_place& p) { p.resign(); })};
  }
  /// This process cannot do what others may be able to, such as read a log of a later version
  /// (F82): it leaves that to them.
  void resign() {
    unfit_ = true;
    auto const on = link_.lock();
    if (!on || state_ != state::mine) return;
    say_nobody_is(*on);
    become(state::nobodys);
    look();
  }
  /// The owner does not understand us, or may not be asked. It may be another one later.
  void do_without_owner() {
    stranger_ = owner_;
    stranger_until_ = saturating_add(system_clock{}.steady_now(), std::chrono::minutes{1});
    become(state::nobodys);
  }
  /// Nobody is to ask an owner any more that does not answer, and it is to know so when it comes
  /// back.
  void disown(nats_link& on) {
    if (dead_.empty() || sequence_ == 0) return;
    dead_.clear();
    say_nobody_is(on);
  }
  void say_nobody_is(nats_link& on) {
    auto const r = std::make_shared<nats_question>([](error_code, nats_reply const*, bool) {});
    r->subject = on.names().owner(part_);
    r->data = tag;
    r->expected = sequence_;
    on.submit(r);
  }
  void claimed(nats_written const& w) {
    looking_ = false;
    if (w.overtaken || !service_) return look();
    if (w.failed) return not_claimed(w.failed, w.failed == errc::outcome_unknown);
    sequence_ = w.sequence;
    become(state::mine);
  }
  /// @param given it may be claimed nevertheless
  void not_claimed(error_code why, bool given) {
    if (given || !taken_) return not_found(why, given);
    // Its owner goes on.
    looking_ = false;
    drop_service();
    if (state_ == state::unknown) look();
    if (auto const taken = std::exchange(taken_, {})) taken(false);
  }

  void become(state s) {
    auto const on = link_.lock();
    if (!on || on->closed()) return;
    was_mine_ = false;
    auto const was = std::exchange(state_, s);
    on->owns(part_, s == state::mine);
    // A former owner that lives looks at once, and whoever is concerned with balance knows.
    if (s == state::mine && was != s) on->tell(on->names().owner_hint(part_, claim_));
    watch_for_others();
    look_at_ = saturating_add(system_clock{}.steady_now(), s == state::mine ? least_pause : pause);
    if (s != state::mine) was == state::mine ? retire_service(*on) : drop_service();
    if (auto const taken = std::exchange(taken_, {})) taken(s == state::mine);
    if (s == state::theirs) {
      if (was != s) home_->leave(part_);
      turn_from_others();
      for (auto& e : waiting_.take()) outgoing_.push_back(std::move(e));
      for (bool const schedules : {false, true}) arm(schedules);
      return flush_soon(*on);
    }
    if (auto const serves = service_; s == state::mine && serves) serves->resume();
    execute_here(waiting_.take());
    execute_here(take_outgoing());
    for (bool const schedules : {false, true}) {
      for (auto& w : line_of(schedules).waiting.take()) {
        await_here({part_ - nats_key_parts, schedules}, std::move(w));
      }
    }
  }

  void execute_here(std::deque<std::shared_ptr<nats_errand>> const& all) {
    for (auto const& e : all) {
      // An arm is of this process, which waits by itself here.
      e->matter() == nats_matter::wait_for_jobs ? e->fail(errc::timed_out)
                                                : home_->execute(part_, e);
    }
  }
  void drop_service() {
    auto const on = link_.lock();
    auto const was = std::exchange(service_, nullptr);
    if (on && was) on->unfollow(*was);
  }
  /// It goes on to say that the owner is another one: what comes after the end of a subscription is
  /// lost, and its asker would not know whether it was done.
  void retire_service(nats_link& on) {
    drop_former();
    former_ = std::exchange(service_, nullptr);
    if (!former_) return;
    former_->retire();
    retiring_.start(on.strand(), saturating_add(system_clock{}.steady_now(), retirement),
                    [self = shared_from_this()] { self->drop_former(); });
  }
  void drop_former() {
    retiring_.stop();
    auto const on = link_.lock();
    auto const was = std::exchange(former_, nullptr);
    if (on && was) on->unfollow(*was);
  }
  static constexpr duration retirement = std::chrono::seconds{10};

  // --------------------------------------------------------------------------- the connection

  void connected() override {
    misses_ = claims_ = 0;
    unfit_ = false;
    dead_.clear();
    stranger_.clear();
    if (state_ != state::nobodys && (has_to_know() || is_for_others())) look();
  }
  void disconnected() override {
    was_mine_ = was_mine_ || state_ == state::mine;
    looking_ = false;
    pause_.stop();
    // Its questions are lost, and who asked them has to know: it will be another one.
    drop_service();
    drop_former();
    forget_owner();
  }
  /// Nothing may go: what is asked for is done here, and is told why it cannot be.
  void refused(error_code) override { become(state::nobodys); }
  void closed() override {
    pause_.stop();
    for_others_.stop();
    forget_owner();
    drop_service();
    drop_former();
    for (auto const& e : waiting_.take()) e->fail(errc::closed);
    for (auto& line : lines_) line.waiting.wake_all(errc::closed);
  }
  void heard(nats_reply const&) override {}

  /// The owner is not known any more, and what it was asked is asked again, where that does no
  /// harm.
  void forget_owner() {
    auto const on = link_.lock();
    auto const open = std::exchange(open_, {});
    state_ = state::unknown;
    if (auto const taken = std::exchange(taken_, {})) taken(false);
    busy_ = 0;
    pulse_.stop();
    watching_ = false;
    if (on) on->owns(part_, false);
    for (auto const& [number, q] : open) {
      q->over = true;
      came(*q, q->coming);
      if (on) on->forget_question(*q);
      ask_elsewhere(*q, false);
    }
    for (auto& e : take_outgoing()) wait(std::move(e));
  }
  /// @param untouched it is certain that none of it was executed
  void ask_elsewhere(nats_asking& q, bool untouched) {
    for (auto& e : q.errands) {
      if (!e || !e->wanted()) continue;
      if (e->matter() == nats_matter::wait_for_jobs) {
        e->fail(errc::timed_out);  // this process armed itself, and does so again
        continue;
      }
      bool const certain = untouched || e->only_reads();
      if (!certain || e->asked >= most_asked) {
        e->fail(certain ? errc::store_unavailable : errc::outcome_unknown);
        continue;
      }
      e->stays();
      wait(std::move(e));
    }
    q.errands.clear();
  }
  void wait(std::shared_ptr<nats_errand> e) {
    auto const on = link_.lock();
    if (!on || on->closed()) return e->fail(errc::closed);
    if (state_ == state::mine || state_ == state::nobodys) return execute_here({std::move(e)});
    // Where there is a connection, to find the owner takes a moment even if nobody would wait for
    // one.
    auto const patience = on->up() ? std::max(on->options().offline_patience, least_patience)
                                   : on->options().offline_patience;
    waiting_.add(shared_from_this(), on->strand(), std::move(e), patience);
  }

  // -------------------------------------------------------------------------------- questions

  void flush_soon(nats_link const& on) {
    bool const any = !outgoing_.empty() || !large_.empty();
    if (!any || std::exchange(flushing_, true)) return;
    post_task(on.strand(), [self = shared_from_this()] {
      self->flushing_ = false;
      self->flush();
    });
  }
  void flush() {
    auto const on = link_.lock();
    auto const room = on ? on->max_payload() : 0;
    if (room == 0 || state_ != state::theirs) return;
    while (state_ == state::theirs && !(outgoing_.empty() && large_.empty())) {
      auto const q = std::make_shared<nats_asking>(weak_from_this());
      nats_begin_question(q->data, on->options().shards);
      q->owner = nats_claims::process_of(owner_);
      while (q->errands.size() != most_commands) {
        auto e = next(*on);
        if (!e) break;
        bool const waits = is_wait(*e);
        // Large answers are counted otherwise, and one whose turn it is must not let it pass.
        bool const may_open = waits || e->answer_bytes() != 0 || busy_ < most_open;
        bool const goes = q->errands.empty() ? may_open : waits == q->waits;
        if (!goes) {
          put_back(std::move(e));
          break;
        }
        if (!e->leaves()) continue;
        auto const before = q->data.size();
        e->ask(q->data);
        if (q->data.size() > room) {
          q->data.resize(before);
          e->stays();
          if (q->errands.empty()) {  // it fits into no question
            if (e->matter() == nats_matter::jobs && !e->only_reads()) {
              e->fail(errc::payload_too_large);  // nor into the log, for which nobody need load it
              continue;
            }
            home_->execute(part_, e);  // by ourselves it may
            home_->leave(part_);       // once that is done
            continue;
          }
          put_back(std::move(e));
          break;
        }
        ++e->asked;
        q->waits = waits;
        auto const bytes = e->answer_bytes();
        q->errands.push_back(std::move(e));
        expect(*on, *q, bytes);
        if (q->data.size() >= batch_size) break;
      }
      if (q->errands.empty()) break;
      give(*on, q);
    }
    if (large_.empty()) on->room().wants_none(this);
    if (large_.empty() || std::exchange(wants_room_, true)) return;
    on->room().wait([weak = weak_from_this()] {
      auto const self = weak.lock();
      auto const link = self ? self->link_.lock() : nullptr;
      if (!link) return;
      self->wants_room_ = false;
      self->flush_soon(*link);
    });
  }
  /// The command that is to be asked next. Null: there is none, or no room for its answer. One that
  /// waits for room stays before others that need some, and lets all others pass.
  [[nodiscard]] std::shared_ptr<nats_errand> next(nats_link& on) {
    auto const may_go = [&](nats_errand const& e) {
      auto const answer = e.answer_bytes();
      return answer == 0 || on.room().has(answer, this, coming_, nats_claims::process_of(owner_));
    };
    while (!large_.empty() && !large_.front()->wanted()) large_.pop_front();
    if (!large_.empty() && may_go(*large_.front())) return take_first(large_);
    while (!outgoing_.empty()) {
      auto e = take_first(outgoing_);
      bool const waits = e->answer_bytes() != 0 && !large_.empty();
      if (!waits && may_go(*e)) return e;
      large_.push_back(std::move(e));
    }
    return nullptr;
  }
  void put_back(std::shared_ptr<nats_errand> e) {
    (e->answer_bytes() != 0 ? large_ : outgoing_).push_front(std::move(e));
  }
  [[nodiscard]] std::deque<std::shared_ptr<nats_errand>> take_outgoing() {
    wants_room_ = false;  // the connection that was to say so may be another one
    if (auto const on = link_.lock()) on->room().wants_none(this);
    auto all = std::exchange(large_, {});
    for (auto& e : std::exchange(outgoing_, {})) all.push_back(std::move(e));
    return all;
  }
  [[nodiscard]] static bool is_wait(nats_errand const& e) noexcept {
    return e.matter() == nats_matter::wait_for_permit || e.matter() == nats_matter::wait_for_jobs;
  }
  void give(nats_link& on, std::shared_ptr<nats_asking> const& q) {
    q->open = std::max<std::size_t>(q->errands.size(), 1);
    q->subject = subject_;
    q->since = system_clock{}.steady_now();
    q->order = ++given_;
    if (open_.empty()) heard_ = q->since;  // nothing was to be heard before
    open_.emplace(given_, q);
    if (!q->waits) ++busy_;
    on.ask_owner(q);
    watch(on);
  }
  /// Is the owner of now asked?
  [[nodiscard]] bool is_current(nats_asking const& q) const noexcept {
    return state_ == state::theirs && q.subject == subject_;
  }
  /// Nobody waits for hints of a former owner.
  void turn_from_others() {
    auto const all = open_;
    for (auto const& [number, q] : all) {
      if (q->waits && !is_current(*q)) drop(q, true);
    }
    heard_ = system_clock{}.steady_now();
  }
  void ended(std::shared_ptr<nats_asking> const& q) {
    q->over = true;
    if (open_.erase(q->order) == 0) return;
    if (!q->waits) --busy_;
    came(*q, q->coming);
  }
  /// So many bytes may come as answers to a question.
  void expect(nats_link& on, nats_asking& q, std::size_t bytes) {
    on.room().expect(q.owner, bytes);
    q.coming += bytes;
    coming_ += bytes;
  }
  /// They have, or will not.
  void came(nats_asking& q, std::size_t bytes) {
    q.coming -= bytes;
    coming_ -= bytes;
    if (auto const on = link_.lock()) on->room().came(q.owner, bytes);
  }

  /// Something was heard of a question.
  void heard(std::shared_ptr<nats_asking> const& q, nats_reply const& reply) {
    compact_reader from{reply.data().substr(std::min(nats_answer_tag.size(), reply.data().size()))};
    std::uint32_t version = 0;
    nats_piece what{};
    std::uint32_t number = 0;
    from(version);
    from(what, nats_piece::unknown);
    from(number);
    bool const ours = reply.data().starts_with(nats_answer_tag) && from.good() &&
                      (version == nats_wire_version || what == nats_piece::unknown);
    if (!ours || number != q->pieces++) return lost(q, false);  // a piece of it was, too
    if (is_current(*q)) {
      heard_ = system_clock{}.steady_now();
      misses_ = 0;
    }
    switch (what) {
      case nats_piece::alive:
        if (q->errands.empty()) ended(q);
        return;
      case nats_piece::part:
        q->heard += from.rest();
        if (q->heard.size() > most_heard) lost(q, false);
        return;
      case nats_piece::whole: return answered(q, from.rest());
      case nats_piece::moved: lost(q, true); return;
      case nats_piece::unknown: {
        std::size_t place = 0;
        bool const understands = from.left() != 0;
        if (understands) from(place);
        return do_ourselves(q, place, understands);
      }
    }
  }
  /// The owner does not understand us, or not this command, or may not be asked: what it has not
  /// taken is done here.
  void do_ourselves(std::shared_ptr<nats_asking> const& q, std::size_t place, bool understands) {
    std::deque<std::shared_ptr<nats_errand>> all;
    for (; place < q->errands.size(); ++place) {
      auto& e = q->errands[place];
      if (!e) continue;
      e->stays();
      all.push_back(std::move(e));
      e.reset();
      --q->open;
    }
    bool const current = is_current(*q);
    if (q->open == 0 || q->errands.empty()) ended(q);
    // One that does not know a new command may know all others.
    if (current && !understands) do_without_owner();
    execute_here(all);
    if (auto const on = link_.lock()) flush_soon(*on);
  }
  void answered(std::shared_ptr<nats_asking> const& q, std::string_view rest) {
    auto const text = std::exchange(q->heard, {}).append(rest);
    std::deque<std::shared_ptr<nats_errand>> own;
    bool ends = false;
    compact_reader from{text};
    while (auto const a = nats_next_answer(from)) {
      if (a->place >= q->errands.size() || !q->errands[a->place]) {
        from.refuse();
        break;
      }
      auto const e = std::move(q->errands[a->place]);
      q->errands[a->place].reset();
      --q->open;
      came(*q, e->answer_bytes());
      if (nats_is_owners_own(a->error, e->only_reads())) {
        own.push_back(e);
      } else if (a->error == errc::closed) {  // it was not executed: the owner gives up its place
        ends = true;
        e->stays();
        wait(e);
      } else if (a->error) {
        e->fail(a->error);
      } else if (!e->hear(a->value)) {
        e->fail(errc::outcome_unknown);
      }
    }
    bool const current = is_current(*q);
    if (q->open == 0) ended(q);
    if (!own.empty()) {  // they were not executed, and would not be by that owner
      for (auto const& e : own) e->stays();
      if (current) do_without_owner();
      execute_here(own);
    }
    if (!from.complete()) return lost(q, false);
    if (ends) find_another();
    if (auto const on = link_.lock()) flush_soon(*on);
  }

  /// Of one question nothing more is to be expected.
  void lost(std::shared_ptr<nats_asking> const& q, bool untouched) {
    if (q->over) return;
    drop(q, untouched);
    find_another();
  }
  void drop(std::shared_ptr<nats_asking> const& q, bool untouched) {
    ended(q);
    if (auto const on = link_.lock()) on->forget_question(*q);
    ask_elsewhere(*q, untouched);
  }
  /// Asks nobody until it is known again who is the owner. Of what was asked as much may be heard,
  /// or it is given up in time.
  void find_another() {
    ask_nobody();
    look();
  }
  void ask_nobody() {
    if (state_ != state::theirs) return;
    state_ = state::unknown;
    for (auto& e : take_outgoing()) wait(std::move(e));
  }
  /// Nobody listened. Where it is a matter of moments that another server knows who does, it is
  /// asked once more.
  void failed(std::shared_ptr<nats_asking> const& q, error_code why, bool given) {
    if (q->over) return;
    bool const current = is_current(*q);
    ended(q);
    if (why == nats_not_permitted()) return do_ourselves(q, 0, false);
    ask_elsewhere(*q, !given);
    if (given) return;  // the connection has ended: that is told to all
    auto const on = link_.lock();
    if (!on || !on->up()) return forget_owner();
    // The server takes what is asked in order. What that owner was asked before had come to it, and
    // is lost; of what it was asked since the same will be said.
    auto const all = open_;
    for (auto const& [number, other] : all) {
      if (number < q->order && other->subject == q->subject) drop(other, false);
    }
    if (current) {
      if (++misses_ > 1) given_up();
      ask_nobody();
    }
    pause_.start(on->strand(), saturating_add(system_clock{}.steady_now(), instant),
                 [self = shared_from_this()] { self->look(); });
  }
  static constexpr duration instant = std::chrono::milliseconds{10};

  /// The owner is taken for dead for a while.
  void given_up() {
    dead_ = owner_;
    dead_until_ = saturating_add(system_clock{}.steady_now(), std::chrono::seconds{10});
  }

  // -------------------------------------------------------------------------- signs of life

  /// As long as something is asked, the owner is asked for a sign of life, too, if it says nothing.
  void watch(nats_link& on) {
    if (watching_) return;
    watching_ = true;
    auto const soon = busy_ != 0 ? std::chrono::milliseconds{250} : std::chrono::milliseconds{1000};
    pulse_at_ = saturating_add(system_clock{}.steady_now(),
                               std::min<duration>(soon, on.options().owner_patience / 4));
    pulse_.start(on.strand(), pulse_at_, [self = shared_from_this()] { self->beat(); });
  }
  void beat() {
    watching_ = false;
    auto const on = link_.lock();
    if (!on || open_.empty()) return;
    auto const& o = on->options();
    auto const now = system_clock{}.steady_now();
    // Where it was this process that stood still, it has not heard yet what there is.
    if (now - pulse_at_ > o.owner_patience / 2) heard_ = now;
    bool const asks =
        std::ranges::any_of(open_, [&](auto const& q) { return is_current(*q.second); });
    if (asks && now - heard_ > o.owner_patience) {
      given_up();
      forget_owner();
      return look();
    }
    // An answer may be lost, too, though its owner lives.
    auto const longest = o.offline_patience + 2 * o.request_timeout;
    auto const all = open_;
    for (auto const& [number, q] : all) {
      if (q->waits && !q->errands.empty()) {
        bool const old = now - q->since > longest_wait;
        bool const wanted = std::ranges::any_of(
            q->errands, [this](auto const& e) { return e && e->wanted() && is_of_use(*e); });
        if (wanted && !old) continue;
        ended(q);
        on->forget_question(*q);
        if (wanted) is_current(*q) ? wait_anew(*on, *q) : ask_elsewhere(*q, true);
      } else if (now - q->since > longest) {
        lost(q, false);
      }
    }
    bool const asked = std::ranges::any_of(open_, [this](auto const& q) {
      return q.second->errands.empty() && is_current(*q.second);
    });
    if (open_.empty()) return;
    if (asked || state_ != state::theirs) return watch(*on);
    ask_for_life(*on);
    watch(*on);
  }
  void ask_for_life(nats_link& on) {
    auto const q = std::make_shared<nats_asking>(weak_from_this());
    nats_begin_question(q->data, on.options().shards);
    q->waits = true;
    give(on, q);
  }

  /// Where an owner lives, and the answer was lost, a wait would not end.
  static constexpr duration longest_wait = std::chrono::seconds{30};
  void wait_anew(nats_link const& on, nats_asking& q) {
    for (auto& e : q.errands) {
      if (!e || !e->wanted()) continue;
      e->asked = 0;
      outgoing_.push_back(std::move(e));
    }
    flush_soon(on);
  }
  /// An arm behind which nobody waits would take a hint from others.
  [[nodiscard]] bool is_of_use(nats_errand const& e) noexcept {
    if (e.matter() != nats_matter::wait_for_jobs) return true;
    for (auto& line : lines_) line.waiting.drop_ended();
    return anybody_waits();
  }

  // ---------------------------------------------------------------------------- waits for jobs

  struct waiters {
    hint_line waiting;
    bool armed = false;
  };

  [[nodiscard]] waiters& line_of(bool schedules) noexcept { return lines_[schedules ? 1 : 0]; }
  [[nodiscard]] bool anybody_waits() const noexcept {
    return !lines_[0].waiting.empty() || !lines_[1].waiting.empty();
  }
  void await_here(command::await_jobs const& c, nats_operation<command::await_jobs> op) {
    home_->execute(part_, std::make_shared<nats_wait<command::await_jobs>>(std::move(op), c));
  }
  void arm(bool schedules) {
    auto& line = line_of(schedules);
    auto const on = link_.lock();
    if (!on || line.waiting.empty() || std::exchange(line.armed, true)) return;
    auto op = park<error_code, hint>(on->erased_strand(),
                                     [weak = weak_from_this(), schedules](error_code ec, hint) {
                                       if (auto const self = weak.lock())
                                         self->armed(schedules, ec);
                                     });
    outgoing_.push_back(std::make_shared<nats_wait<command::await_jobs>>(
        std::move(op), command::await_jobs{part_ - nats_key_parts, schedules}));
    flush_soon(*on);
  }
  void armed(bool schedules, error_code ec) {
    auto& line = line_of(schedules);
    line.armed = false;
    if (!ec) line.waiting.wake_one();
    // After a refusal it is armed again with the next wait.
    if (state_ == state::theirs && (!ec || ec == errc::timed_out)) arm(schedules);
  }

  std::weak_ptr<nats_link> const link_;
  std::shared_ptr<nats_home> const home_;
  std::uint32_t const part_;
  state state_ = state::unknown;
  bool looking_ = false;
  steady_time look_at_{};       // before that it is not looked again
  std::uint64_t seen_ = 0;      // times that the link was overtaken
  std::uint64_t sequence_ = 0;  // of the owner's record
  std::string owner_;           // who is asked
  std::string subject_;         // where
  std::string dead_;            // an owner that does not answer
  steady_time dead_until_{};
  std::string stranger_;          // an owner that does not understand us, or may not be asked
  steady_time stranger_until_{};  // and then it is tried again
  bool was_mine_ = false;         // on a former connection, and the shard is kept: whose is it now?
  bool unfit_ = false;            // to be an owner, on this connection
  int claims_ = 0;
  steady_time first_claim_{};
  std::string claim_;  // what this process calls itself as the owner
  int misses_ = 0;     // times that nobody listened
  std::shared_ptr<nats_service> service_;
  std::shared_ptr<nats_service> former_;  // of a claim that is over
  std::function<void(bool)> taken_;       // from a living owner, for balance
  nats_waiting<nats_errand> waiting_;     // until it is known who the owner is
  std::deque<std::shared_ptr<nats_errand>> outgoing_;
  std::deque<std::shared_ptr<nats_errand>> large_;  // outgoing, until there is room for its answer
  std::map<std::uint64_t, std::shared_ptr<nats_asking>> open_;
  std::uint64_t given_ = 0;  // questions
  std::size_t busy_ = 0;     // of those, the ones that do not wait for hints
  std::size_t coming_ = 0;   // bytes that their answers may have
  bool flushing_ = false;
  bool wants_room_ = false;  // for answers
  steady_time heard_{};      // of the owner
  bool watching_ = false;
  steady_time pulse_at_{};
  std::array<waiters, 2> lines_;  // for the jobs, and for the schedules
  alarm<system_clock> pause_;
  alarm<system_clock> pulse_;
  alarm<system_clock> retiring_;
  alarm<system_clock> for_others_;
  id_source random_;
};

inline void nats_asking::answered(nats_reply const& reply) {
  auto const place = over ? nullptr : from_.lock();
  if (place) place->heard(shared_from_this(), reply);
}
inline void nats_asking::failed(error_code why, bool given) {
  auto const place = over ? nullptr : from_.lock();
  if (place) place->failed(shared_from_this(), why, given);
}

}  // namespace weir::detail

#endif
