// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_SERVICE_HPP
#define WEIR_STORE_NATS_SERVICE_HPP

#include "weir/clock/system.hpp"
#include "weir/command/list.hpp"
#include "weir/detail/parking.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/store/nats/followers.hpp"
#include "weir/store/nats/home.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/wire.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
    nats_put_answer(found_, place, ec, r);
    if (std::exchange(flushing_, true)) return;
    // What is found in one turn of the strand goes together.
    if (auto const on = link_.lock()) {
      post_task(on->strand(), [self = shared_from_this()] { self->flush(); });
    }
  }

  /// Says something that carries nothing.
  void say(nats_piece what) {
    if (auto const on = link_.lock()) on->tell(to_, nats_answer_piece(what, pieces_++));
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
/// executed here. In the strand of the link.
class nats_service final : public nats_feed, public std::enable_shared_from_this<nats_service> {
 public:
  /// @param doubt called when this process stood still, and may have been replaced since: then
  ///              `resume` or `resign` comes, and what is heard waits so long
  nats_service(std::shared_ptr<nats_link> const& link, std::shared_ptr<nats_home> home,
               std::uint32_t part, std::function<void()> doubt)
      : link_{link},
        home_{std::move(home)},
        part_{part},
        doubt_{std::move(doubt)} {}

  /// This process is the owner.
  void resume() {
    active_ = system_clock{}.steady_now();
    sure_ = true;
    for (auto const& q : std::exchange(held_, {})) answer(q.data, q.to);
  }
  /// Somebody else is.
  void resign() {
    for (auto const& q : std::exchange(held_, {})) {
      std::make_shared<nats_answering>(link_, q.to)->say(nats_piece::moved);
    }
  }

  void connected() override {}
  void disconnected() override {
    held_.clear();
    sure_ = false;
  }
  void refused(error_code) override { disconnected(); }
  void closed() override { held_.clear(); }

  void heard(nats_reply const& message) override {
    if (message.reply_to().empty()) return;
    auto const now = system_clock{}.steady_now();
    // Whoever has waited for so long has asked somebody else by now.
    auto const on = link_.lock();
    bool const stood_still = on && now - active_ > on->options().owner_patience / 4 * 3;
    active_ = now;
    if (sure_ && stood_still) {
      sure_ = false;
      doubt_();
    }
    if (sure_) return answer(message.data(), message.reply_to());
    if (held_.size() < most_held) {
      held_.push_back({std::string{message.data()}, std::string{message.reply_to()}});
    }
  }

 private:
  static constexpr std::size_t most_held = 1000;  // questions; others are asked again

  struct question {
    std::string data;
    std::string to;
  };
  /// Another process that waits for jobs.
  struct arm {
    std::string of;
    nats_operation<command::await_jobs> operation;
    steady_time heard;
  };

  void answer(std::string_view asked, std::string_view to) {
    auto const on = link_.lock();
    if (!on) return;
    auto const answering = std::make_shared<nats_answering>(link_, to);
    nats_question_reader reader{asked};
    if (!reader.known()) return answering->say(nats_piece::unknown);
    heard_of(to);
    std::size_t place = 0;
    bool const whole = reader.for_each([&](auto const& c, std::optional<time_point> told) {
      execute(*on, c, told, place++, answering, to);
    });
    if (place == 0 && whole) answering->say(nats_piece::alive);
    if (!whole) {
      answering->add(place, explained(errc::store_unavailable, "an owner could not read it"),
                     hint{});
    }
  }

  template <class C>
  void execute(nats_link& on, C const& c, std::optional<time_point> told, std::size_t place,
               std::shared_ptr<nats_answering> const& answering, std::string_view to) {
    using answer = typename C::result;
    if (*on.pending() >= on.options().max_pending) {
      return answering->add(place, make_error_code(errc::store_full), answer{});
    }
    auto op = park<error_code, answer>(
        boost::asio::any_io_executor{on.strand()},
        [answering, place](error_code ec, answer const& a) { answering->add(place, ec, a); });
    if constexpr (std::is_same_v<C, command::await_jobs>) {
      arms_.push_back({client_of(to), op, system_clock{}.steady_now()});
    }
    home_->execute(part_, nats_errand_of(std::move(op), c, told, on.pending()));
  }

  /// The connection that asks.
  [[nodiscard]] static std::string client_of(std::string_view to) {
    return std::string{to.substr(0, to.rfind('.') + 1)};
  }
  /// Who waits for jobs says something each second. One that has died must not be given hints.
  void heard_of(std::string_view to) {
    if (arms_.empty()) return;
    auto const now = system_clock{}.steady_now();
    constexpr duration silence = std::chrono::seconds{3};
    for (auto& a : arms_) {
      if (to.starts_with(a.of)) a.heard = now;
    }
    std::erase_if(arms_, [&](arm const& a) {
      if (a.operation->waiting() && now - a.heard > silence) {
        a.operation->resume(make_error_code(errc::timed_out), hint{});
      }
      return !a.operation->waiting();
    });
  }

  std::weak_ptr<nats_link> const link_;
  std::shared_ptr<nats_home> const home_;
  std::uint32_t const part_;
  std::function<void()> const doubt_;
  std::vector<question> held_;
  std::vector<arm> arms_;
  steady_time active_{};
  bool sure_ = false;
};

}  // namespace weir::detail

#endif
