// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_ARENA_HPP
#define WEIR_TESTING_ARENA_HPP

#include "weir/clock/system.hpp"
#include "weir/error.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/dice.hpp"
#include "weir/testing/linearizability.hpp"
#include "weir/testing/report.hpp"
#include "weir/time.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

// Concurrent histories: several clients, each with one command at a time under way, on several
// threads where the store may be shared by them. What they see is written down and judged
// afterwards.
namespace weir::testing {

/// Where clients meet a store. Time stands still or passes, but nobody's lease ends while it runs.
template <class Commands>
class arena {
  /// What clients share. It outlives the arena with them, where a store answers too late.
  struct meeting {
    explicit meeting(bench<Commands>& b) : place{b} {}

    bench<Commands>& place;  // not after `over`
    std::atomic<std::uint64_t> ticks{0};
    std::atomic<std::size_t> running{0};
    std::atomic<bool> over{false};

    std::uint64_t tick() noexcept { return ++ticks; }
    void leave() {
      if (--running == 0) place.context().stop();
    }
  };

 public:
  /// One client; made by `std::make_shared`. It calls `ask` for its first command, and again from
  /// each answer.
  class client : public std::enable_shared_from_this<client> {
   public:
    explicit client(arena& in) : at_{in.meeting_} {}
    client(client const&) = delete;
    client& operator=(client const&) = delete;
    virtual ~client() = default;

    /// Asks for one command, or returns false: it has finished.
    virtual bool next() = 0;

   protected:
    /// Executes a command of which every view lives in this client. `then(answer, invoked,
    /// returned)` writes it down.
    template <class C, class Then>
    void ask(C const& c, Then then) {
      auto const invoked = at_->tick();
      auto on_answer = [self = this->shared_from_this(), invoked,
                        then](error_code ec, typename C::result got) mutable {
        auto& at = *self->at_;
        auto const returned = at.tick();
        if (at.over) return;
        result<typename C::result> answer{ec};
        if (!ec) answer = std::move(got);
        then(answer, invoked, returned);
        if (!self->next()) at.leave();
      };
      at_->place.store().template find<C>()->start(
          c, typename port<C>::handler{boost::asio::bind_executor(
                 at_->place.context().get_executor(), std::move(on_answer))});
    }

   private:
    std::shared_ptr<meeting> at_;
  };

  explicit arena(bench<Commands>& b) : meeting_{std::make_shared<meeting>(b)} {}
  arena(arena const&) = delete;
  arena& operator=(arena const&) = delete;
  ~arena() { meeting_->over = true; }

  /// Lets all of them run to their end.
  void run(std::vector<std::shared_ptr<client>> const& clients) {
    auto& at = *meeting_;
    auto const& s = at.place.settings();
    auto& io = at.place.context();
    at.running = clients.size();
    auto const guard = boost::asio::make_work_guard(io);
    io.restart();
    for (auto const& c : clients) {
      if (!c->next()) at.leave();
    }
    auto const give_up = system_clock{}.steady_now() + s.patience;
    std::mutex mutex;
    std::exception_ptr thrown;  // the first; one that left its thread would end the process
    auto const work = [&] {
      try {
        while (at.running > 0 && !at.over && system_clock{}.steady_now() < give_up) {
          io.run_for(std::chrono::milliseconds{20});
        }
      } catch (...) {
        std::lock_guard const lock{mutex};
        if (!thrown) thrown = std::current_exception();
        at.over = true;
      }
    };
    std::vector<std::thread> threads;
    auto const n = at.place.can().thread_safe ? std::max<std::size_t>(s.threads, 1) : 1;
    for (std::size_t i = 1; i < n; ++i) threads.emplace_back(work);
    work();
    for (auto& t : threads) t.join();
    if (thrown) std::rethrow_exception(thrown);
    expect(at.running == 0, std::to_string(at.running) + " clients never got an answer");
  }

 private:
  std::shared_ptr<meeting> meeting_;
};

/// A client that writes down its commands on a few objects, each as an event with its answer.
template <class Commands, class Event, std::size_t Objects>
class recording_client : public arena<Commands>::client {
 public:
  using history = std::vector<recorded<Event>>;

  recording_client(arena<Commands>& in, std::uint32_t number, std::size_t operations, dice d)
      : arena<Commands>::client{in},
        number_{number},
        left_{operations},
        dice_{d} {}

  /// Its history of one of the objects, as it saw it.
  [[nodiscard]] history const& seen(std::size_t object) const noexcept { return seen_[object]; }

  bool next() override {
    if (left_ == 0) return false;
    --left_;
    ask_next();
    return true;
  }

 protected:
  virtual void ask_next() = 0;

  /// Executes a command. `read(event, answer)` takes into the event what the store said.
  template <class C, class Read>
  void run(std::size_t object, Event e, C const& c, Read read) {
    this->ask(c, [this, object, e, read](result<typename C::result> const& a, std::uint64_t invoked,
                                         std::uint64_t returned) mutable {
      if (a.has_value()) read(e, a.value());
      if (a.has_error() && a.error() != errc::lease_lost) returned = recorded<Event>::never;
      seen_[object].push_back({e, invoked, returned});
    });
  }

  std::uint32_t number_;  // from 1
  std::size_t left_;
  dice dice_;

 private:
  std::array<history, Objects> seen_;
};

/// Throws `broken_promise` with the end of the history, unless it has a legal order, and
/// `not_applicable` if the search for one was given up.
template <class Model>
void expect_order(std::vector<recorded<typename Model::event>> history, std::string const& what,
                  typename Model::state const& start = {}) {
  std::sort(history.begin(), history.end(),
            [](auto const& a, auto const& b) { return a.invoked < b.invoked; });
  auto const found = find_order<Model>(history, start);
  if (found.exists) return;
  if (!found.decided)
    throw not_applicable{what + ": too many orders are possible to look at them all"};

  std::string text =
      what +
      ": no order of these operations explains every answer. The longest that does, its end:";
  auto const show = [&](std::size_t i) {
    auto const& r = history[i];
    text += "\n  [" + std::to_string(r.invoked) + ", " +
            (r.returned == r.never ? "never" : std::to_string(r.returned)) + "] " +
            to_text(r.event);
  };
  constexpr std::size_t shown = 6;
  auto const& longest = found.longest;
  for (auto i = longest.size() - std::min(shown, longest.size()); i < longest.size(); ++i)
    show(longest[i]);
  text += "\nWhat does not fit in after it:";
  std::size_t left = 0;
  for (std::size_t i = 0; i < history.size() && left < shown; ++i) {
    if (std::find(longest.begin(), longest.end(), i) != longest.end()) continue;
    show(i);
    ++left;
  }
  throw broken_promise{text};
}

/// Runs `run(bench, seed)` for several seeds, by the store's own time.
template <class Commands>
void check_concurrency(factory<Commands> const& f, topic const& about,
                       void (*run)(bench<Commands>&, std::uint64_t), report& out,
                       settings const& s) {
  if (s.concurrent == 0 || finished(out, s) || !selected(about, s)) return;
  auto const t = f.advance ? time_source::advanced : time_source::real;
  auto blank = about.unproven(t);
  blank.seed = s.seed;
  out.add(run_check(std::move(blank), [&] {
    for (std::size_t i = 0; i < s.concurrent; ++i) {
      bench<Commands> b{f, t, s};
      run(b, s.seed + i);
    }
  }));
}

/// Lets so many clients meet, and looks for a legal order of what they saw of each object.
///
/// @param names of the objects
/// @param more  for each client
template <class Model, class Client, class Commands, std::size_t Objects, class... More>
void expect_orders(bench<Commands>& b, std::uint64_t seed, std::size_t clients,
                   std::string_view const (&names)[Objects], More... more) {
  arena<Commands> in{b};
  dice d{seed};
  std::vector<std::shared_ptr<Client>> all;
  for (std::uint32_t i = 1; i <= clients; ++i) {
    all.push_back(std::make_shared<Client>(in, i, b.settings().operations, d.fork(), more...));
  }
  in.run({all.begin(), all.end()});
  for (std::size_t object = 0; object < Objects; ++object) {
    typename Client::history history;
    for (auto const& c : all) {
      history.insert(history.end(), c->seen(object).begin(), c->seen(object).end());
    }
    expect_order<Model>(std::move(history), std::string{names[object]});
  }
}

}  // namespace weir::testing

#endif
