// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_RECORD_HPP
#define WEIR_STORE_NATS_RECORD_HPP

#include "weir/clock/system.hpp"
#include "weir/command/list.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/store/nats/bytes.hpp"
#include "weir/store/nats/errand.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/pending.hpp"
#include "weir/store/nats/request.hpp"
#include "weir/store/nats/reserve.hpp"
#include "weir/store/nats/store_time.hpp"
#include "weir/store/nats/wire.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// A key is one record, the last message of its subject, and a command on it is: read the record,
// let the rule decide, and write it back if nobody else has since (a compare-and-set on the
// sequence of the subject's last message). So every noun is exactly what the rule says, its line
// included, and the server has to know nothing of it.
//
// What that costs: one round trip, since a process remembers what it wrote, and takes a key that it
// never saw for a new one; a command that was overtaken by another process, or was wrong about
// that, has to read and write again. So that callers of one process do not overtake each other,
// there is one exchange at a time for each key and process, and all commands that have come
// meanwhile go into the next one together (F26).
namespace weir::detail {

/// A command that waits for its key. Everything but making it is done in the strand of the link.
template <class State>
class nats_step : public nats_errand {
 public:
  [[nodiscard]] nats_matter matter() const noexcept final { return State::matter; }
  [[nodiscard]] virtual std::string_view key() const noexcept = 0;
  /// The time that it was told; empty: the server's counts.
  [[nodiscard]] virtual std::optional<time_point> told() const noexcept = 0;
  /// May it add something to the record, or be what the record is made for?
  [[nodiscard]] virtual bool adds() const noexcept = 0;
  /// Finds its answer, and does to the state what it does.
  virtual void apply(State& state, nats_now now) = 0;
  virtual void answer() noexcept = 0;
};

template <class State, class C>
class nats_command final : public nats_pending<nats_step<State>, C> {
 public:
  using nats_pending<nats_step<State>, C>::nats_pending;

  [[nodiscard]] std::string_view key() const noexcept override { return this->command_.get().key; }
  [[nodiscard]] bool only_reads() const noexcept override { return command::reads_only<C>; }
  [[nodiscard]] std::optional<time_point> told() const noexcept override { return this->told_; }
  [[nodiscard]] bool adds() const noexcept override {
    return std::is_same_v<C, command::acquire_permit> || std::is_same_v<C, command::acquire_lock> ||
           std::is_same_v<C, command::take>;
  }
  void apply(State& state, nats_now now) override {
    answer_ = state.apply(this->command_.get(), now.earliest, now.doubt);
  }
  void answer() noexcept override { this->complete(std::move(answer_)); }

 private:
  result<typename C::result> answer_ = make_error_code(errc::outcome_unknown);
};

/// Who looks after a record, in the strand of the link.
template <class State>
class nats_keeper : public std::enable_shared_from_this<nats_keeper<State>> {
 public:
  /// @param part in which the record is
  nats_keeper(std::shared_ptr<nats_link> const& link, std::shared_ptr<nats_reserve> reserve,
              std::string subject, std::uint32_t part)
      : link_{link},
        reserve_{std::move(reserve)},
        subject_{std::move(subject)},
        part_{part} {}
  nats_keeper(nats_keeper const&) = delete;
  nats_keeper& operator=(nats_keeper const&) = delete;
  virtual ~nats_keeper() = default;

  [[nodiscard]] std::uint32_t part() const noexcept { return part_; }
  /// Null: it has gone with its execution context.
  [[nodiscard]] std::shared_ptr<nats_link> link() const noexcept { return link_.lock(); }

  /// Nothing is under way, or waits.
  [[nodiscard]] virtual bool idle() const noexcept {
    return !busy_ && queue_.empty() && regaining_ == 0;
  }

  void submit(std::shared_ptr<nats_step<State>> step) {
    queue_.push_back(std::move(step));
    if (!busy_) next();
  }

  /// Reads the record, and then calls `looked` in the turn of its commands.
  void look() {
    look_ = true;
    if (!busy_) next();
  }

 protected:
  /// The record was read just now; not called where it could not be.
  virtual void looked(State&, nats_now) {}
  virtual void look_failed(error_code) {}
  /// The record was written just now.
  virtual void changed() {}

  /// Are the commands of all processes executed by this one? Then what it remembers, and was the
  /// record a moment ago, is so still, for all who are only to be told something.
  [[nodiscard]] bool owns() const noexcept {
    auto const on = link_.lock();
    return on && known_ && !told_ && on->knows_time() && on->owns(part_) &&
           is_of_this_connection() &&
           system_clock{}.steady_now() - confirmed_at_ < std::chrono::seconds{1};
  }
  [[nodiscard]] State& remembered() noexcept { return state_; }
  [[nodiscard]] nats_now remembered_time() const {
    auto const on = link_.lock();
    return on ? agreed(*on) : nats_now{};
  }

 private:
  using steps = std::vector<std::shared_ptr<nats_step<State>>>;

  /// So long after a record is over it is still known. The server forgets it by its own clock,
  /// which may be set forward: what is held outlives that, or somebody else would get it, and so
  /// does a bucket that takes longer than a minute to be full.
  static constexpr duration grace = std::chrono::minutes{1};
  static constexpr duration long_grace = std::chrono::hours{2};
  static constexpr std::size_t most = 1000;          // commands in one exchange
  static constexpr std::uint32_t most_tries = 1000;  // each of which another one has won
  static constexpr std::uint32_t most_lost = 3;      // reads, with their connections

  class reading final : public nats_request {
   public:
    explicit reading(std::shared_ptr<nats_keeper> keeper) : keeper_{std::move(keeper)} {}
    [[nodiscard]] bool wanted() const noexcept override { return keeper_->wanted(); }
    void answered(nats_reply const& r) override { keeper_->read(read_record(r)); }
    void failed(error_code why, bool given) override {
      // What only reads was not executed, whatever became of it, and may wait for another
      // connection.
      if (given && why == errc::outcome_unknown && ++keeper_->lost_ != most_lost) {
        return keeper_->ask();
      }
      given ? keeper_->failed(make_error_code(errc::store_unavailable)) : keeper_->refused(why);
    }

   private:
    std::shared_ptr<nats_keeper> keeper_;
  };
  class writing final : public nats_request {
   public:
    explicit writing(std::shared_ptr<nats_keeper> keeper) : keeper_{std::move(keeper)} {}
    [[nodiscard]] bool wanted() const noexcept override { return true; }
    void answered(nats_reply const& r) override { keeper_->written(read_written(r.data())); }
    void failed(error_code why, bool given) override {
      if (given) return keeper_->failed(make_error_code(errc::outcome_unknown));
      why == errc::store_full ? keeper_->too_large() : keeper_->refused(why);
    }

   private:
    std::shared_ptr<nats_keeper> keeper_;
  };

  [[nodiscard]] static bool adds(std::shared_ptr<nats_step<State>> const& s) noexcept {
    return s->adds();
  }
  [[nodiscard]] bool wanted() const {
    if (look_) return true;
    for (auto const& s : steps_) {
      if (s->wanted()) return true;
    }
    return false;
  }

  /// The time for this record, once that is known.
  [[nodiscard]] nats_now agreed(nats_link const& on) const {
    if (!known_) return on.now();
    return nats_agreed(on.now(), seen_, system_clock{}.steady_now() - known_since_);
  }

  void next() {
    steps_.clear();
    tries_ = 0;
    lost_ = 0;
    gave_ = false;
    while (!queue_.empty() && steps_.size() < together_) {
      auto& first = queue_.front();
      if (!first->wanted()) {
        queue_.pop_front();
        continue;
      }
      // A time that was told is for one command only.
      if (first->told() && !steps_.empty()) break;
      bool const alone = first->told().has_value();
      steps_.push_back(std::move(first));
      queue_.pop_front();
      if (alone) break;
    }
    busy_ = !steps_.empty() || look_;
    if (!busy_) return;
    if (auto const link = link_.lock()) {
      patient_until_ =
          saturating_add(system_clock{}.steady_now(), link->options().offline_patience);
    }
    known_ && !look_ && is_of_this_connection() ? decide(false) : ask();
  }

  void confirmed() {
    confirmed_at_ = system_clock{}.steady_now();
    if (auto const link = link_.lock()) connection_ = link->connection();
  }
  /// The stream that another connection meets may have begun anew: then the sequence is another
  /// record's, and a write that expects it would undo what others were granted since.
  [[nodiscard]] bool is_of_this_connection() const noexcept {
    auto const link = link_.lock();
    return sequence_ == 0 || (link && link->connection() == connection_);
  }

  void ask() {
    auto const link = link_.lock();
    if (!link) return failed(make_error_code(errc::closed));
    for (auto const& s : steps_) s->stays();
    auto const r = std::make_shared<reading>(this->shared_from_this());
    r->subject = link->names().direct_get(subject_);
    link->submit(r);
  }

  void read(result<nats_record> const& found) {
    if (found.has_error()) return refused(found.error());
    confirmed();
    // Nobody has written it since: its time goes on.
    if (found->sequence != sequence_) known_since_ = confirmed_at_;
    sequence_ = found->sequence;
    size_ = found->value.size();
    if (sequence_ == 0) {
      state_ = State{};
      seen_ = time_point::min();
    } else {
      nats_reader from{found->value};
      seen_ = time_point{duration{from.signed_number()}};
      auto state = State::read(from.rest());
      if (!state) return failed(make_error_code(errc::store_corrupt));
      state_ = std::move(*state);
    }
    known_ = true;
    decide(true);
  }

  /// @param sure the record was read just now. What it was when it was last written is good enough
  /// for what writes it again, since that fails if it is wrong; not for what changes nothing.
  void decide(bool sure) {
    auto const link = link_.lock();
    if (!link) return failed(make_error_code(errc::closed));
    // Before there was a connection it is not known what time it is.
    if (!sure && !link->knows_time() && !steps_.front()->told()) return ask();
    // A read may wait for a connection and be forgotten; what is decided is written at once.
    if (!sure && !link->up()) return ask();
    try {
      auto now = agreed(*link);
      if (look_ && sure) {
        look_ = false;
        auto looks = state_;
        looked(looks, now);
      }
      if (steps_.empty()) return next();
      auto const told = steps_.front()->told();
      if (told) now = {*told, duration::zero()};
      told_ = told_ || told;
      auto state = state_;
      state.expire(now.earliest);
      auto const before = state.write();
      for (auto const& s : steps_) {
        if (s->leaves()) s->apply(state, now);
      }
      auto const after = state.write();
      if (after == before) return sure ? answer() : ask();
      std::string value;
      nats_writer{value}.number(std::int64_t{now.earliest.time_since_epoch().count()});
      value += after;
      grows_ = value.size() > size_ && std::ranges::any_of(steps_, adds);
      sure_ = sure;
      if (grows_ && !reserve_->whole()) return no_room();
      wrote_size_ = value.size();
      auto const r = std::make_shared<writing>(this->shared_from_this());
      r->subject = subject_;
      r->data = std::move(value);
      r->expected = sequence_;
      auto const left = std::chrono::ceil<std::chrono::seconds>(state.lasts(now.earliest));
      bool const dear = left > (State::kind == 'b' ? grace : duration::zero());
      auto const kept = std::max(left, std::chrono::seconds{0}) +
                        std::chrono::ceil<std::chrono::seconds>(dear ? long_grace : grace);
      // The server's clock knows nothing of a time that was told: what lives by it stays.
      r->ttl = told ? 0 : static_cast<std::uint64_t>(kept.count());
      written_ = std::move(state);
      wrote_at_ = now.earliest;
      link->submit(r);
    } catch (std::bad_alloc const&) {
      failed(make_error_code(boost::system::errc::not_enough_memory));
    }
  }

  void written(nats_written const& w) {
    if (w.overtaken) {
      known_ = false;
      if (auto const link = link_.lock()) link->overtaken();
      if (++tries_ == most_tries) return failed(make_error_code(errc::store_unavailable));
      return ask();
    }
    if (w.failed == errc::store_full) return no_room();
    if (w.failed) return w.failed == errc::outcome_unknown ? failed(w.failed) : refused(w.failed);
    together_ = std::min(2 * together_, most);
    sequence_ = w.sequence;
    size_ = wrote_size_;
    state_ = std::move(written_);
    seen_ = wrote_at_;
    confirmed();
    known_since_ = confirmed_at_;
    if (state_.news() && !owns()) {
      if (auto const link = link_.lock()) link->tell(link->names().hint(subject_));
    }
    changed();
    answer();
  }

  void answer() {
    for (auto const& s : std::exchange(steps_, {})) s->answer();
    next();
  }

  /// The record that the commands have made together fits into no message. Each is tried with
  /// fewer others until one alone does not fit, so that it costs no other one anything (F59). In
  /// another turn, since a thousand may come one after the other.
  void too_large() {
    auto const link = link_.lock();
    if (!link) return failed(make_error_code(errc::closed));
    if (steps_.size() > 1) {
      together_ = steps_.size() / 2;
      auto const kept = steps_.begin() + static_cast<std::ptrdiff_t>(together_);
      queue_.insert(queue_.begin(), std::make_move_iterator(kept),
                    std::make_move_iterator(steps_.end()));
      steps_.erase(kept, steps_.end());
      post_task(link->strand(), [self = this->shared_from_this()] { self->decide(false); });
      return;
    }
    for (auto const& s : std::exchange(steps_, {})) s->fail(make_error_code(errc::store_full));
    next_later();
  }

  /// There is no room for what the commands have made together. Those that would add something are
  /// refused, unless all of the reserve can be had again; for the others it is given up (F61). In
  /// another turn, as above.
  void no_room() {
    auto const link = link_.lock();
    if (!link) return failed(make_error_code(errc::closed));
    if (grows_ && !sure_) return ask();  // the record may be there
    steps adding;
    for (auto& step : std::exchange(steps_, {})) {
      (grows_ && adds(step) ? adding : steps_).push_back(std::move(step));
    }
    if (adding.empty()) {
      auto const now = system_clock{}.steady_now();
      auto again = [weak = this->weak_from_this()] {
        if (auto const self = weak.lock()) self->ask();
      };
      if (!std::exchange(gave_, true)) {
        room_until_ = saturating_add(now, nats_reserve::spread);
        return reserve_->give(std::move(again));
      }
      if (!link->later(room_until_, std::move(again))) failed(make_error_code(errc::store_full));
      return;
    }
    auto const refuse = [](steps const& all, error_code ec) {
      for (auto const& s : all) s->fail(ec);
    };
    if (reserve_->whole()) {
      refuse(adding, errc::store_full);
    } else {
      for (auto const& s : adding) s->stays();
      ++regaining_;
      reserve_->regain([weak = this->weak_from_this(), adding, refuse] {
        auto const self = weak.lock();
        if (self) --self->regaining_;
        auto const on = self ? self->link() : nullptr;
        if (!on) return refuse(adding, errc::closed);
        if (on->up() && !self->reserve_->whole()) {
          return refuse(adding, self->reserve_->refusal());
        }
        for (auto const& s : adding) self->submit(s);
      });
    }
    post_task(link->strand(), [self = this->shared_from_this()] {
      self->steps_.empty() && !self->look_ ? self->next() : self->ask();
    });
  }

  /// Nothing was executed. What may pass, such as a stream that has no leader at the moment, is
  /// asked for again, as long as a connection would be waited for.
  void refused(error_code ec) {
    auto const link = link_.lock();
    if (!link || ec != errc::store_unavailable || !wanted()) return failed(ec);
    auto again = [self = this->shared_from_this()] { self->ask(); };
    if (!link->later(patient_until_, std::move(again))) failed(ec);
  }
  void failed(error_code ec) {
    known_ = false;
    for (auto const& s : std::exchange(steps_, {})) s->fail(ec);
    if (std::exchange(look_, false)) look_failed(ec);
    next_later();
  }
  /// In another turn, since each of those that come next may fail at once.
  void next_later() {
    if (auto const link = link_.lock()) {
      return post_task(link->strand(), [self = this->shared_from_this()] { self->next(); });
    }
    busy_ = false;
    for (auto const& s : std::exchange(queue_, {})) s->fail(make_error_code(errc::closed));
  }

  // Requests belong to the link, and refer to their keepers.
  std::weak_ptr<nats_link> const link_;
  std::shared_ptr<nats_reserve> const reserve_;
  std::string const subject_;
  std::uint32_t const part_;
  std::deque<std::shared_ptr<nats_step<State>>> queue_;
  steps steps_;
  std::size_t together_ = most;  // commands in the next exchange: fewer where a record is full
  State state_{};
  State written_{};
  time_point seen_ = time_point::min();  // of the record
  time_point wrote_at_{};
  bool told_ = false;             // a time, so that it is not known what is over
  steady_time confirmed_at_{};    // when it was read or written last,
  std::uint64_t connection_ = 0;  // and on which connection
  steady_time known_since_{};     // when it was first seen as it is
  std::uint64_t sequence_ = 0;
  std::size_t size_ = 0;  // of the record, and of what was written last
  std::size_t wrote_size_ = 0;
  bool grows_ = false;        // by what was decided last
  bool sure_ = false;         // of what the record was then
  bool gave_ = false;         // the reserve up, for these commands
  int regaining_ = 0;         // turns of commands that wait until it is whole again
  steady_time room_until_{};  // is tried for then
  std::uint32_t tries_ = 0;
  std::uint32_t lost_ = 0;
  steady_time patient_until_{};
  bool known_ = true;  // of a key that was never seen: that it is new, until it is written
  bool busy_ = false;
  bool look_ = false;
};

}  // namespace weir::detail

#endif
