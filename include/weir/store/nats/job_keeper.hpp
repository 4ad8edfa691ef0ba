// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOB_KEEPER_HPP
#define WEIR_STORE_NATS_JOB_KEEPER_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/hint_line.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/store/nats/image_writer.hpp"
#include "weir/store/nats/job_calls.hpp"
#include "weir/store/nats/job_feed.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/store/nats/job_replica.hpp"
#include "weir/store/nats/job_room.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/request.hpp"
#include "weir/store/nats/reserve.hpp"
#include "weir/store/nats/waiting.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// The jobs of a shard are what the log of the shard makes of them (job_log.hpp): a command is
// published to the log, and its answer is what the replica of this process says when it has read
// the command there, at the time that the server gave it. So every command is one atomic step, in
// one order for everybody, and does exactly what the rule says.
//
// A record for each job, written by compare-and-set, would need no replica. But then a queue's
// order, its unique keys, its counters and its pointer are records of their own, each command has
// to write several of them in one batch that is refused whenever anybody else was faster, and to
// find the next job somebody has to know them all anyway.
//
// The price: in the process that owns the shard memory for all its jobs; on the server the
// bytes of each command until an image takes their place, about 50 and what the command has in
// texts.
namespace weir::detail {

/// Executes the commands on a shard, in the strand of the link.
///
/// What is asked for together goes in one message. What only reads, or finds nothing to do, is not
/// written: the replica is brought to where the log was when it was asked for, and answers then.
class nats_job_keeper final : public nats_job_room {
 public:
  /// @param common the reserve of all that is in the store
  nats_job_keeper(std::shared_ptr<nats_link> const& link, std::uint32_t shard,
                  std::shared_ptr<nats_reserve> common)
      : nats_job_room{link, shard, std::move(common)} {}

  void submit(call c) {
    auto const on = link();
    if (!on || on->closed()) return c->fail(errc::closed);
    if (refusal()) return c->fail(refusal());
    if (current()) return route(std::move(c));
    wait(std::move(c));
  }

  /// Resumes it when there is reason to ask for jobs.
  void await(bool schedules, hint_waiter w) {
    if (current() && any_due(schedules)) {
      wake(w);
    } else {
      line_of(schedules).add(std::move(w));
    }
  }

  /// Nobody will ask here again: what is known of the shard is forgotten once all is answered that
  /// was asked.
  void leave() {
    for (auto& line : lines_) line.wake_all();
    auto const on = link();
    if (!on) return;
    if (!idle()) {
      auto const soon = saturating_add(system_clock{}.steady_now(), std::chrono::milliseconds{100});
      return leaving_.start(on->strand(), soon, [self = self()] { self->leave(); });
    }
    left_ = true;
    on->unfollow(*this);
    forget();
  }
  /// Somebody does ask.
  void stay() { leaving_.stop(); }
  /// Is that so?
  [[nodiscard]] bool left() const noexcept { return left_; }

 private:
  static constexpr std::size_t most_flights = 4;  // messages that are not known to be stored
  static constexpr std::size_t batch_size = 128U << 10U;  // bytes, unless one command has more
  static constexpr std::size_t most_commands = 1000;      // in a message

  struct flight {
    std::vector<call> calls;
    std::uint64_t stored = 0;  // its sequence, once that is known
    bool doubtful = false;     // whether it arrived is not known
  };

  /// Nothing waits for an answer.
  [[nodiscard]] bool idle() const noexcept {
    return waiting_.empty() && outgoing_.empty() && flights_.empty() && nobody_wants_room() &&
           reads_.empty() && asked_.empty() && due_.empty();
  }

  [[nodiscard]] nats_now time() override {
    auto const on = link();
    if (!on) return {};
    return nats_agreed(on->now(), replica().seen(), system_clock{}.steady_now() - read_at_);
  }

  // ------------------------------------------------------------------- what waits for a connection

  void wait(call c) override {
    auto const on = link();
    if (!on) return c->fail(errc::closed);
    waiting_.add(self(), on->strand(), std::move(c), on->options().offline_patience);
  }

  void became_current() override {
    look_for_room();  // before anything is added
    read_at_ = system_clock{}.steady_now();
    // What was given to the connection before, and is not in the log, is not known to be refused
    // either: a server may still have it.
    fail_flights([this](flight const& f) {
      return f.doubtful || (f.stored != 0 && f.stored <= replica().position());
    });
    doubts_.stop();
    for (auto& c : waiting_.take()) route(std::move(c));
    // What made a queue due was read, but for what is in an image.
    for (bool const schedules : {false, true}) {
      if (any_due(schedules)) line_of(schedules).wake_all();
    }
    flush_soon();
  }
  void lost_connection() override {
    auto const on = link();
    if (!on) return;
    for (auto& c : std::exchange(outgoing_, {})) wait(std::move(c));
    want_no_room();
    for (auto& c : std::exchange(reads_, {})) wait(std::move(c));
    for (auto& c : std::exchange(asked_, {})) wait(std::move(c));
    for (auto& [at, c] : std::exchange(due_, {})) wait(std::move(c));
    asking_ = false;
    ++barrier_;
    adding_ = 0;
    if (flights_.empty()) return;
    // Also what was acknowledged and not read: a server that has lost power may have lost it.
    for (auto& [n, f] : flights_) f.doubtful = f.doubtful || f.stored != 0;
    auto const until = saturating_add(system_clock{}.steady_now(), on->options().offline_patience);
    doubts_.start(on->strand(), until, [self = self()] {
      self->fail_flights([](flight const& f) { return f.doubtful; });
    });
  }
  template <class Which>
  void fail_flights(Which const& which) {
    for (auto it = flights_.begin(); it != flights_.end();) {
      if (which(it->second)) {
        for (auto const& c : take(it++)) c->fail(errc::outcome_unknown);
      } else {
        ++it;
      }
    }
  }
  [[nodiscard]] std::vector<call> take(std::map<std::uint64_t, flight>::iterator at) {
    auto calls = std::move(at->second.calls);
    flights_.erase(at);
    return calls;
  }
  void stopped(error_code why) override {
    lost_connection();
    doubts_.stop();
    for (auto const& c : waiting_.take()) c->fail(why);
    fail_flights([](flight const&) { return true; });
    if (why != errc::closed) return;
    for (auto& line : lines_) line.wake_all(why);
  }

  // --------------------------------------------------------------------------------- what is read

  void route(call c) {
    auto const now = time();
    if (!c->only_reads() && c->may_change(replica().shard(), now)) return log(std::move(c), now);
    reads_.push_back(std::move(c));
    ask_barrier();
  }

  /// Asks how far the log goes: what was asked for until now is answered when it was read so far.
  void ask_barrier() {
    if (asking_ || reads_.empty() || !current()) return;
    asking_ = true;
    asked_ = std::exchange(reads_, {});
    ask_info(
        [this, now = barrier_, read = replica().position()](nats_log_info const& info) {
          if (now != barrier_) return;
          asking_ = false;
          if (info.error != 0 || !info.has_state) {
            // Until there is a leader nobody knows how far the log goes. They wait for it.
            if (info.error == static_cast<int>(nats_code::unavailable)) return begin_again();
            auto const ec = info.error != 0 ? nats_refusal(info.error)
                                            : make_error_code(errc::store_unavailable);
            for (auto const& c : std::exchange(asked_, {})) c->fail(ec);
            if (info.error == static_cast<int>(nats_code::stream_not_found)) return begin_again();
            return ask_barrier();
          }
          for (auto& c : std::exchange(asked_, {})) due_.emplace_back(info.last, std::move(c));
          check(info, read);
          answer_reads();
          ask_barrier();
        },
        [this, now = barrier_](error_code why, bool given) {
          // Where the connection has ended, they wait for another one.
          if (now != barrier_ || why == errc::outcome_unknown) return;
          asking_ = false;
          auto const ec = given ? make_error_code(errc::store_unavailable) : why;
          for (auto const& c : std::exchange(asked_, {})) c->fail(ec);
          ask_barrier();
        });
  }
  void answer_reads() {
    while (current() && !due_.empty() && due_.front().first <= replica().position()) {
      auto const c = std::move(due_.front().second);
      due_.pop_front();
      if (!c->wanted()) continue;
      auto const now = time();
      if (!c->look(replica().shard(), now)) log(c, now);
    }
  }

  // ------------------------------------------------------------------------------ what is written

  void log(call c, nats_now now) override {
    auto const on = link();
    if (!on) return c->fail(errc::closed);
    if (auto const adds = c->adds(replica().shard(), now); adds != 0) {
      // Where the next step forgets something there will be room, or it is said then.
      if (replica().used() + adding_ + adds > on->options().max_jobs &&
          !replica().shard().forgets(now.earliest)) {
        return c->fail(errc::store_full);
      }
      if (!may_add()) return add_later(std::move(c));
      adding_ += adds;
    }
    outgoing_.push_back(std::move(c));
    flush_soon();
  }
  void flush_soon() {
    auto const on = link();
    if (!on || outgoing_.empty() || std::exchange(flushing_, true)) return;
    post_task(on->strand(), [self = self()] {
      self->flushing_ = false;
      self->flush();
    });
  }
  void flush() {
    auto const on = link();
    auto const room = on ? on->max_payload() : 0;
    if (room == 0) return;
    while (current() && !outgoing_.empty() && flights_.size() < most_flights) {
      nats_batch_id const id{sender_, ++sent_};
      nats_batch_writer batch{id, on->stamp()};
      flight f;
      while (!outgoing_.empty() && f.calls.size() != most_commands) {
        auto c = take_first(outgoing_);
        if (!c->leaves()) continue;
        auto const before = batch.size();
        c->write(batch);
        if (!batch.fits(room)) {
          batch.cut(before);
          if (f.calls.empty()) {  // it fits into no message
            c->fail(errc::payload_too_large);
            continue;
          }
          c->stays();
          outgoing_.push_front(std::move(c));
          break;
        }
        f.calls.push_back(std::move(c));
        if (batch.size() >= batch_size) break;
      }
      if (outgoing_.empty()) adding_ = 0;
      if (f.calls.empty()) continue;
      flights_.emplace(id.number, std::move(f));
      auto message = std::move(batch).take();
      auto const due = replica().note_due();
      auto note = due ? due->write() : std::string{};
      if (message.size() + note.size() + nats_request::most_headers > room) note.clear();
      ask(
          on->names().log(number()), std::move(message),
          [this, n = id.number](nats_reply const& r) { stored(n, read_written(r.data())); },
          [this, n = id.number](error_code why, bool given) { not_stored(n, why, given); }, {},
          std::move(note));
    }
  }
  void stored(std::uint64_t n, nats_written const& w) {
    auto const at = flights_.find(n);
    if (w.failed == errc::store_full && at != flights_.end()) {
      wait_for_room(take(at));
      return flush_soon();
    }
    if (w.failed == errc::store_unavailable) return put_off(n);
    if (w.failed || w.overtaken) {
      return fail(n, w.failed ? w.failed : make_error_code(errc::store_unavailable));
    }
    if (auto const on = link()) on->served();
    if (at == flights_.end()) return;
    at->second.stored = w.sequence;
    if (current() && w.sequence <= replica().position()) {
      // It went by in an image; or the log is another one.
      fail(n, make_error_code(errc::outcome_unknown));
      return begin_again();
    }
    reach(w.sequence);
  }
  void not_stored(std::uint64_t n, error_code why, bool given) {
    auto const at = flights_.find(n);
    if (at == flights_.end()) return;
    if (!given) {
      if (why == errc::store_unavailable) return put_off(n);
      bool const large = why == errc::store_full;  // as the link says it of a message
      return fail(n, large ? make_error_code(errc::payload_too_large) : why);
    }
    if (why != errc::outcome_unknown) return fail(n, make_error_code(errc::outcome_unknown));
    at->second.doubtful = true;  // the log will tell
  }
  /// The log cannot be served: it has no leader, or this server does not know yet who that is. It
  /// is tried again, for as long as a connection would be waited for.
  void put_off(std::uint64_t n) {
    auto const on = link();
    auto const at = flights_.find(n);
    if (!on || at == flights_.end()) return fail(n, make_error_code(errc::store_unavailable));
    auto const now = system_clock{}.steady_now();
    for (auto const& c : take(at)) {
      if (!c->refused_at) c->refused_at = now;
      if (now - *c->refused_at >= on->options().offline_patience) {
        c->fail(make_error_code(errc::store_unavailable));
        continue;
      }
      c->stays();
      wait(c);
    }
    begin_again();
  }
  void fail(std::uint64_t n, error_code ec) {
    auto const at = flights_.find(n);
    if (at == flights_.end()) return;
    for (auto const& c : take(at)) c->fail(ec);
    flush_soon();
  }

  // ---------------------------------------------------------------------------------- the log

  bool read(nats_job_replica& to, nats_logged const& message) override {
    nats_batch_reader batch{message.data};
    std::vector<call> calls;
    bool const known = batch.what() == nats_batch_reader::kind::ours;
    bool const ours = known && batch.id().sender == sender_;
    if (auto const on = link(); on && known && !ours && current()) on->overtaken();
    auto at = ours ? flights_.find(batch.id().number) : flights_.end();
    if (batch.what() == nats_batch_reader::kind::damaged) {  // whose it was it may not say
      at = std::ranges::find_if(flights_,
                                [&](auto const& f) { return f.second.stored == message.sequence; });
    }
    bool const was_sent = at != flights_.end();
    if (was_sent) calls = take(at);
    std::size_t i = 0;
    read_at_ = system_clock{}.steady_now();
    auto const before = to.since_image();
    bool const done = to.read(message, batch, [&](auto const& c, auto answer) {
      using C = std::remove_cvref_t<decltype(c)>;
      if (i == calls.size()) return;
      auto const asked = std::move(calls[i++]);
      if (asked->number() == nats_command_number<C>) {
        static_cast<nats_job_call_of<C>&>(*asked).complete(std::move(answer));
      } else {
        asked->fail(errc::outcome_unknown);
      }
    });
    for (; i != calls.size(); ++i) calls[i]->fail(errc::outcome_unknown);
    for (bool const schedules : {false, true}) {
      if (to.shard().take_event(schedules)) line_of(schedules).wake_one();
    }
    for (auto const& holder : to.shard().take_cancelled()) {
      if (auto const on = link(); on && was_sent) on->tell(on->names().cancelled(holder));
    }
    // Whoever's message it was that is one too many: nobody else, and somebody, if not this time
    // then the next.
    if (ours && done) keep_room();
    if (ours && done && images_.due(before, to.since_image(), to.last_image(), link()))
      image_due_ = true;
    return done;
  }
  void advanced() override {
    answer_reads();
    if (std::exchange(image_due_, false)) write_image(false);
    if (!outgoing_.empty()) flush_soon();
  }

  void write_image(bool full) override {
    auto const on = link();
    if (on && current()) images_.write(on, self(), number(), sender_, full);
  }

  // -------------------------------------------------------------------------------------- hints

  /// Is a queue of the scan due, for all that is known?
  [[nodiscard]] bool any_due(bool schedules) {
    auto const now = time();
    return replica().shard().any_due(schedules, now.latest());
  }

  [[nodiscard]] hint_line& line_of(bool schedules) noexcept { return lines_[schedules ? 1 : 0]; }

  [[nodiscard]] std::shared_ptr<nats_job_keeper> self() {
    return std::static_pointer_cast<nats_job_keeper>(shared_from_this());
  }

  job_id const sender_ = id_source{}.job();
  std::uint64_t sent_ = 0;
  nats_waiting<nats_job_call> waiting_{link()->state()};
  std::deque<call> outgoing_;
  std::size_t adding_ = 0;  // records, by what is outgoing
  bool flushing_ = false;
  std::map<std::uint64_t, flight> flights_;
  std::deque<call> reads_;                          // that no barrier was asked for yet
  std::deque<call> asked_;                          // whose barrier was asked for
  std::deque<std::pair<std::uint64_t, call>> due_;  // whose barrier is known
  bool asking_ = false;
  std::uint64_t barrier_ = 0;
  std::array<hint_line, 2> lines_;  // for the jobs, and for the schedules
  bool image_due_ = false;
  nats_image_writer images_;
  steady_time read_at_{};  // the last message
  alarm<system_clock> doubts_;
  alarm<system_clock> leaving_;
  bool left_ = false;
};

}  // namespace weir::detail

#endif
