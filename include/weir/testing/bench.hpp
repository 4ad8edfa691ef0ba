// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_BENCH_HPP
#define WEIR_TESTING_BENCH_HPP

#include "weir/clock/system.hpp"
#include "weir/command/at.hpp"
#include "weir/error.hpp"
#include "weir/testing/driver.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"
#include "weir/testing/subject.hpp"
#include "weir/time.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace weir::testing {

/// Whose time decides in a run of the suite.
enum class time_source : std::uint8_t {
  told,      ///< every command says what time it is
  advanced,  ///< the store's own, moved by its driver
  real,      ///< the store's own, which passes by itself
};

[[nodiscard]] constexpr std::string_view to_text(time_source t) noexcept {
  constexpr std::string_view words[] = {"told", "advanced", "real"};
  return words[static_cast<std::size_t>(t)];
}

/// The handler of an operation that a check has started. Written out, because it is compiled once
/// for each kind of answer, and binders cost more.
template <class Answer>
class awaited {
 public:
  struct state {
    std::optional<result<Answer>> answer;
    boost::asio::cancellation_signal signal;
    int calls = 0;
  };
  using executor_type = boost::asio::io_context::executor_type;
  using cancellation_slot_type = boost::asio::cancellation_slot;

  awaited(std::shared_ptr<state> s, executor_type ex) : state_{std::move(s)}, executor_{ex} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept {
    return state_->signal.slot();
  }

  void operator()(error_code ec, Answer answer) {
    ++state_->calls;
    state_->answer.emplace(ec);
    if (!ec) state_->answer.emplace(std::move(answer));
  }

 private:
  std::shared_ptr<state> state_;
  executor_type executor_;
};

/// An operation that a check has started.
template <class C>
class pending {
 public:
  [[nodiscard]] bool done() const noexcept { return state_->answer.has_value(); }
  /// Requires `done()`.
  [[nodiscard]] result<typename C::result> const& answer() const { return *state_->answer; }
  void cancel() { state_->signal.emit(boost::asio::cancellation_type::terminal); }

 private:
  template <class>
  friend class bench;

  using state = typename awaited<typename C::result>::state;
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

/// One fresh store on an io_context of its own, and what a check does with it. Not thread-safe.
template <class Commands>
class bench {
 public:
  /// A store from the driver; with `bound`, one that has room for so many things only.
  bench(factory<Commands> const& f, time_source t, settings const& s, std::size_t bound = 0)
      : from_{f},
        source_{t},
        settings_{s},
        made_{bound == 0 ? f.make(io_.get_executor()) : f.make_bounded(io_.get_executor(), bound)} {
  }

  bench(bench const&) = delete;
  bench& operator=(bench const&) = delete;
  ~bench() {
    try {
      made_.store.close();
      io_.restart();
      io_.poll();
    } catch (...) {  // the check has its verdict
    }
  }

  [[nodiscard]] capabilities const& can() const noexcept { return from_.can; }
  [[nodiscard]] testing::settings const& settings() const noexcept { return settings_; }
  [[nodiscard]] factory<Commands> const& from() const noexcept { return from_; }
  [[nodiscard]] subject<Commands> const& store() const noexcept { return made_.store; }
  [[nodiscard]] transaction_hook const& transact() const noexcept { return made_.transact; }
  [[nodiscard]] boost::asio::io_context& context() noexcept { return io_; }

  /// Says that the check applies only if this is so.
  static void need(bool so, std::string const& why_not) {
    if (!so) throw not_applicable{why_not};
  }

  // -------------------------------------------------------------------------------------- time

  [[nodiscard]] time_source source() const noexcept { return source_; }

  /// Does time pass only when the check lets it?
  [[nodiscard]] bool exact() const noexcept { return source_ != time_source::real; }

  /// The least span that the store tells apart.
  [[nodiscard]] duration grain() const noexcept {
    return std::max(from_.can.precision, duration{1});
  }

  /// A short lease: one that a check can wait for. A multiple of the grain.
  [[nodiscard]] duration brief() const noexcept {
    auto const least =
        exact() ? duration{std::chrono::seconds{1}}
                : duration{std::chrono::milliseconds{20}} * std::max(settings_.scale, 1U);
    auto const wanted = std::max({least, 10 * grain(), from_.can.shortest_ttl});
    return (wanted + grain() - duration{1}) / grain() * grain();
  }

  /// A lease that no check sees the end of.
  static constexpr duration lasting = std::chrono::hours{1};

  /// How far a span of time in an answer may be from what it should be.
  [[nodiscard]] duration slack() const noexcept {
    if (!exact()) return brief() / 2;
    return from_.can.precision > duration{1} ? from_.can.precision : duration::zero();
  }

  /// The time by which an oracle decides; told: which the store is told, too.
  [[nodiscard]] time_point now() const noexcept {
    return exact() ? now_ : saturating_add(now_, system_clock{}.steady_now() - started_);
  }

  /// Lets so much of the store's time pass, or a little more in real time.
  void pass(duration d) {
    if (source_ == time_source::real) {
      auto const work = boost::asio::make_work_guard(io_);
      io_.restart();
      io_.run_for(d + 2 * from_.can.precision + std::chrono::milliseconds{1});
      return;
    }
    if (source_ == time_source::advanced) from_.advance(d);
    now_ += d;
    settle();
  }

  /// Moves the told time back.
  void step_back(duration d) noexcept { now_ -= d; }

  /// Lets time pass until this is so.
  template <class Condition>
  void eventually(Condition&& so, std::string_view what) {
    auto const give_up = system_clock{}.steady_now() + settings_.patience;
    constexpr int enough = 40;
    for (int i = 0; !exact() || i < enough; ++i) {
      if (so()) return;
      if (!exact() && system_clock{}.steady_now() >= give_up) break;
      if (exact()) let_it_think();
      pass(brief() / 4);
    }
    while (exact() && !made_.store.synchronous() && system_clock{}.steady_now() < give_up) {
      if (so()) return;
      let_it_think();
    }
    throw broken_promise{std::string{what} + ", however long one waits"};
  }

  // -------------------------------------------------------------------------------------- commands

  template <class C>
  [[nodiscard]] bool executes() const noexcept {
    return made_.store.template find<C>() != nullptr;
  }

  /// Starts an operation. Its views must live until it is done.
  template <class C>
  pending<C> start(C const& c) {
    pending<C> p;
    auto& to = way_of<C>();
    typename port<C>::handler h{awaited<typename C::result>{p.state_, io_.get_executor()}};
    if (source_ == time_source::told && to.told()) {
      to.start_at(command::at<C>{c, now_}, std::move(h));
    } else {
      to.start(c, std::move(h));
    }
    return p;
  }

  /// Executes a command to its end.
  template <class C>
  result<typename C::result> ask(C const& c) {
    auto const p = start(c);
    if (!p.done()) finish(p, way_of<C>().synchronous());
    if (!p.done()) throw broken_promise{to_text(c) + ": the operation never ended"};
    if (p.state_->calls != 1) throw broken_promise{to_text(c) + ": its handler was called twice"};
    return p.answer();
  }

  /// Executes a command in the calling thread, if the store can and time is not told; otherwise as
  /// `ask`.
  template <class C>
  result<typename C::result> ask_now(C const& c) {
    auto& to = way_of<C>();
    return to.synchronous() && source_ != time_source::told ? to.execute(c) : ask(c);
  }

  /// Executes a command that has to succeed.
  template <class C>
  typename C::result must(C const& c, std::source_location at = std::source_location::current()) {
    auto answer = ask(c);
    if (answer.has_error()) expect(false, to_text(c) + " failed: " + answer.error().message(), at);
    return std::move(answer).value();
  }

  /// Executes a command that has to fail in this way.
  template <class C>
  void refuses(C const& c, errc wanted, std::source_location at = std::source_location::current()) {
    auto const answer = ask(c);
    if (answer.has_error() && answer.error() == wanted) return;
    expect(false,
           to_text(c) + " should fail with \"" + make_error_code(wanted).message() + "\", but " +
               (answer.has_error() ? "failed with \"" + answer.error().message() + '"'
                                   : "was executed"),
           at);
  }

  /// Runs what is ready to run.
  void settle() {
    io_.restart();
    io_.poll();
  }

 private:
  /// Gives a store that has threads or a server a moment of real time.
  void let_it_think() {
    if (made_.store.synchronous()) return;
    auto const work = boost::asio::make_work_guard(io_);
    io_.restart();
    io_.run_one_for(std::chrono::milliseconds{1});
  }

  template <class C>
  port<C>& way_of() const {
    auto* const p = made_.store.template find<C>();
    if (p == nullptr) throw not_applicable{"the store does not execute " + fields_of(C{}).name};
    return *p;
  }

  template <class C>
  void finish(pending<C> const& p, bool synchronous) {
    auto const give_up = system_clock{}.steady_now() + settings_.patience;
    io_.restart();
    while (!p.done() && system_clock{}.steady_now() < give_up) {
      io_.run_one_for(std::chrono::milliseconds{50});
      if (p.done() || !io_.stopped()) continue;
      if (synchronous) return;  // it was executed already: nothing else can come
      auto const work = boost::asio::make_work_guard(io_);
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds{1});
    }
  }

  factory<Commands> const& from_;
  time_source source_;
  testing::settings settings_;
  boost::asio::io_context io_;
  typename factory<Commands>::made made_;
  time_point now_ = std::chrono::sys_days{std::chrono::year{2026} / 6 / 1};
  steady_time started_ = system_clock{}.steady_now();
};

}  // namespace weir::testing

#endif
