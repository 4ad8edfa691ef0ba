// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_SERVICE_HPP
#define WEIR_STORE_NATS_SERVICE_HPP

#include "weir/clock/system.hpp"
#include "weir/command/list.hpp"
#include "weir/detail/hint_line.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/store/nats/followers.hpp"
#include "weir/store/nats/home.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/wire.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir::detail {

/// The answer of one question, as it comes. In the strand of the link.
class nats_answering : public std::enable_shared_from_this<nats_answering> {
 public:
  nats_answering(std::weak_ptr<nats_link> link, std::string_view to)
      : link_{std::move(link)},
        to_{to} {}

  template <class Result>
  void add(std::size_t place, error_code ec, Result const& r) {
    auto const before = found_.size();
    try {
      nats_put_answer(found_, place, ec, r);
    } catch (std::bad_alloc const&) {  // the others' go on their way
      found_.resize(before);
      throw;
    }
    if (std::exchange(flushing_, true)) return;
    // Answers that are found in one turn of the strand go together.
    if (auto const on = link_.lock()) {
      post_task(on->strand(), [self = shared_from_this()] { self->flush(); });
    }
  }

  /// Says something that carries no answers.
  /// @param place from which on it is so
  void say(nats_piece what, std::optional<std::size_t> place = {}) {
    auto const on = link_.lock();
    if (!on) return;
    auto piece = nats_answer_piece(what, pieces_++);
    if (place) compact_writer{piece}(*place);
    on->tell(to_, piece);
  }

 private:
  void flush() {
    flushing_ = false;
    auto const on = link_.lock();
    auto const found = std::exchange(found_, {});
    if (!on || on->max_payload() <= nats_piece_head) return;
    std::string_view rest = found;
    auto const most = on->max_payload() - nats_piece_head;
    while (!rest.empty()) {
      auto const some = rest.substr(0, most);
      rest.remove_prefix(some.size());
      auto const what = rest.empty() ? nats_piece::whole : nats_piece::part;
      on->tell(to_, nats_answer_piece(what, pieces_++) += some);
    }
  }

  std::weak_ptr<nats_link> const link_;
  std::string const to_;
  std::string found_;
  std::uint32_t pieces_ = 0;
  bool flushing_ = false;
};

/// Hears what is asked of the owner of a part, as one claim has made this process, and has it
/// executed here. Once somebody else is the owner, it says so to who asks. It ends with its
/// connection. In the strand of the link.
class nats_service final : public nats_feed, public std::enable_shared_from_this<nats_service> {
 public:
  /// The part, which is told something.
  struct listener {
    /// This process stood still, and may have been replaced since: then `resume` comes, or it is
    /// given up, and what is heard waits so long.
    std::function<void()> doubts{};
    /// Something is asked.
    std::function<void()> asked{};
    /// This process cannot do what others may be able to.
    std::function<void()> unfit{};
  };

  nats_service(std::shared_ptr<nats_link> const& link, std::shared_ptr<nats_home> home,
               std::uint32_t part, listener tell)
      : link_{link},
        home_{std::move(home)},
        part_{part},
        tell_{std::move(tell)} {}
  nats_service(nats_service const&) = delete;
  nats_service& operator=(nats_service const&) = delete;
  /// Somebody else is the owner, or will be.
  ~nats_service() override {
    for (auto const& q : held_) say_moved(q.to);
    // Commands that have not been given to a server yet are not given any more: their askers turn
    // to somebody else, and they must not be executed after that.
    for (auto const& w : under_way_) {
      if (auto const op = w.lock()) op->lapse(make_error_code(errc::closed));
    }
  }

  /// Somebody else is the owner. What was given to a server is answered here when it is done; what
  /// was not, and what is asked from now on, is sent to the new owner.
  void retire() {
    retired_ = true;
    for (auto const& q : std::exchange(held_, {})) say_moved(q.to);
    for (auto const& w : std::exchange(under_way_, {})) {
      auto const op = w.lock();
      if (op && !op->left()) op->lapse(make_error_code(errc::closed));
    }
    arms_.clear();
  }

  /// This process is the owner.
  void resume() {
    active_ = system_clock{}.steady_now();
    sure_ = true;
    held_bytes_ = 0;
    for (auto const& q : std::exchange(held_, {})) answer(q.data, q.to);
  }

  void connected() override {}
  void disconnected() override {}
  void refused(error_code) override {}
  void closed() override {}

  void heard(nats_reply const& message) override {
    auto const on = link_.lock();
    // Whatever is answered is published: it must not be where anything is kept.
    if (!on || !message.reply_to().starts_with(on->names().replies())) return;
    if (retired_) return say_moved(message.reply_to());
    auto const now = system_clock{}.steady_now();
    // An asker that has waited for so long has turned to somebody else by now.
    bool const stood_still = now - active_ > on->options().owner_patience / 4 * 3;
    active_ = now;
    if (sure_ && stood_still) {
      sure_ = false;
      tell_.doubts();
    }
    if (sure_) {
      auto const self = shared_from_this();
      answer(message.data(), message.reply_to());
      return tell_.asked();
    }
    held_bytes_ += message.data().size();
    if (held_bytes_ > most_held) return say_moved(message.reply_to());
    held_.push_back({std::string{message.data()}, std::string{message.reply_to()}});
  }

 private:
  static constexpr std::size_t most_held = 16U << 20U;  // bytes of questions
  static constexpr std::size_t most_commands = 1000;    // of a question
  static constexpr duration silence = std::chrono::seconds{3};

  struct question {
    std::string data;
    std::string to;
  };
  /// Another process that waits for jobs.
  struct arm {
    std::string of;
    bool schedules;
    nats_operation<command::await_jobs> operation;
    steady_time heard;
  };

  /// A command that is executed for another process. All of it is in the strand, so that its answer
  /// needs no way there.
  template <class C>
  class asked_here final : public resumable<error_code, typename C::result> {
   public:
    using result_type = typename C::result;

    asked_here(std::weak_ptr<nats_service> by, std::shared_ptr<nats_answering> answering,
               std::size_t place)
        : by_{std::move(by)},
          answering_{std::move(answering)},
          place_{place} {}

    bool resume(error_code ec, result_type r) override {
      if (!this->take()) return false;
      end(ec, r);
      return true;
    }
    void lapse(error_code untouched) noexcept override {
      if (!this->take_unanswered()) return;
      try {
        end(this->left() ? make_error_code(errc::outcome_unknown) : untouched, result_type{});
      } catch (...) {  // no memory to say so: its asker will ask again
      }
    }

   private:
    void end(error_code ec, result_type const& r) {
      answering_->add(place_, ec, r);
      if (auto const by = by_.lock()) by->ended(nats_is_owners_own(ec, command::reads_only<C>));
    }
    void abandon() noexcept override {}

    std::weak_ptr<nats_service> const by_;
    std::shared_ptr<nats_answering> const answering_;
    std::size_t const place_;
  };

  /// Others may be able to do what this process cannot. It is told later, since it may end all
  /// this.
  void ended(bool unfit) {
    auto const on = unfit ? link_.lock() : nullptr;
    if (!on) return;
    post_task(on->strand(), [weak = weak_from_this()] {
      if (auto const self = weak.lock()) self->tell_.unfit();
    });
  }

  void say_moved(std::string_view to) const {
    std::make_shared<nats_answering>(link_, to)->say(nats_piece::moved);
  }

  void answer(std::string_view asked, std::string_view to) {
    auto const on = link_.lock();
    if (!on) return;
    nats_question_reader reader{asked};
    auto const answering = std::make_shared<nats_answering>(link_, to);
    // One that has other shards means other things by the same part.
    if (!reader.known() || reader.shards() != on->options().shards) {
      return answering->say(nats_piece::unknown);
    }
    heard_of(to);
    std::size_t place = 0;
    bool const whole = reader.for_each([&](auto const& c, std::optional<time_point> told) {
      // A collection is of the shard that is asked, and says it nowhere.
      constexpr bool is_here =
          std::is_same_v<std::remove_cvref_t<decltype(c)>, command::gc_stale_pointers>;
      if (place == most_commands || (!is_here && home_->part_of(c) != part_)) return false;
      execute(*on, c, told, place++, answering, to);
      return true;
    });
    if (!whole) return answering->say(nats_piece::unknown, place);
    if (place == 0) answering->say(nats_piece::alive);
  }

  template <class C>
  void execute(nats_link& on, C const& c, std::optional<time_point> told, std::size_t place,
               std::shared_ptr<nats_answering> const& answering, std::string_view to) {
    constexpr bool is_arm = std::is_same_v<C, command::await_jobs>;  // one for each process
    if (!is_arm && *on.pending() >= on.options().max_pending) {
      return answering->add(place, make_error_code(errc::store_full), typename C::result{});
    }
    auto const op = std::make_shared<asked_here<C>>(weak_from_this(), answering, place);
    note(op);
    if constexpr (is_arm) replace_arm(c.schedules, op, to);
    home_->execute(part_, nats_errand_of<C>(op, c, told, on.pending()));
  }
  void note(std::weak_ptr<parked_base> op) {
    if (under_way_.size() >= crowded_) {
      std::erase_if(under_way_, [](auto const& w) { return w.expired(); });
      crowded_ = 2 * under_way_.size() + 64;
    }
    under_way_.push_back(std::move(op));
  }

  /// The connection that asks.
  [[nodiscard]] static std::string_view client_of(std::string_view to) {
    return to.substr(0, to.rfind('.') + 1);
  }
  /// A process waits for one hint at a time.
  void replace_arm(bool schedules, nats_operation<command::await_jobs> const& op,
                   std::string_view to) {
    auto const of = client_of(to);
    std::erase_if(arms_, [&](arm const& a) {
      if (a.schedules != schedules || a.of != of) return !a.operation->waiting();
      wake(a.operation, make_error_code(errc::timed_out));
      return true;
    });
    arms_.push_back({std::string{of}, schedules, op, system_clock{}.steady_now()});
  }
  /// A process that waits for jobs says something each second. A dead one must not be given hints.
  void heard_of(std::string_view to) {
    auto const now = system_clock{}.steady_now();
    for (auto& a : arms_) {
      if (to.starts_with(a.of)) a.heard = now;
    }
    std::erase_if(arms_, [&](arm const& a) {
      if (now - a.heard <= silence) return false;
      wake(a.operation, make_error_code(errc::timed_out));
      return true;
    });
  }

  std::weak_ptr<nats_link> const link_;
  std::shared_ptr<nats_home> const home_;
  std::uint32_t const part_;
  listener const tell_;
  std::vector<question> held_;
  std::size_t held_bytes_ = 0;
  std::vector<arm> arms_;
  std::vector<std::weak_ptr<parked_base>> under_way_;
  std::size_t crowded_ = 64;
  steady_time active_{};
  bool sure_ = false;
  bool retired_ = false;
};

}  // namespace weir::detail

#endif
