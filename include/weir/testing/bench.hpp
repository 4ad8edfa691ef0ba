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

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
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
#include <vector>

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

  struct state {
    std::optional<result<typename C::result>> answer;
    boost::asio::cancellation_signal signal;
    int calls = 0;
  };
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
    for (int i = 0; exact() ? i < enough : system_clock{}.steady_now() < give_up; ++i) {
      if (so()) return;
      pass(brief() / 4);
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
    auto on_answer = [state = p.state_](error_code ec, typename C::result answer) {
      ++state->calls;
      state->answer.emplace(ec);
      if (!ec) state->answer.emplace(std::move(answer));
    };
    typename port<C>::handler h{boost::asio::bind_cancellation_slot(
        p.state_->signal.slot(),
        boost::asio::bind_executor(io_.get_executor(), std::move(on_answer)))};
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
  template <class C>
  port<C>& way_of() const {
    auto* const p = made_.store.template find<C>();
    if (p == nullptr) {
      field_list f;
      fields(f, C{});
      throw not_applicable{"the store does not execute " + f.name};
    }
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

/// What a check is about.
struct topic {
  std::string_view noun;
  std::string_view number;
  std::string_view promise;

  [[nodiscard]] finding unproven(time_source t) const {
    return {std::string{noun},
            std::string{number},
            std::string{promise},
            std::string{to_text(t)},
            {},
            {},
            {}};
  }
};

/// One promise, and what finds out whether a store keeps it.
template <class Commands>
struct check {
  std::string_view number;
  std::string_view promise;
  void (*run)(bench<Commands>&);
};

/// The sources of time by which a store can be tested.
template <class Commands>
[[nodiscard]] std::vector<time_source> times_of(factory<Commands> const& f) {
  std::vector<time_source> out;
  boost::asio::io_context io;
  if (f.make(io.get_executor()).store.told()) out.push_back(time_source::told);
  out.push_back(f.advance ? time_source::advanced : time_source::real);
  return out;
}

/// Runs one check and says what became of it.
template <class Body>
finding run_check(finding f, Body&& body) {
  try {
    body();
    f.outcome = verdict::passed;
  } catch (not_applicable const& e) {
    f.outcome = verdict::skipped;
    f.detail = e.what();
  } catch (std::exception const& e) {
    f.outcome = verdict::failed;
    f.detail = e.what();
  } catch (...) {
    f.outcome = verdict::failed;
    f.detail = "something was thrown that is not a std::exception";
  }
  return f;
}

/// Should the run stop here?
[[nodiscard]] inline bool finished(report const& out, settings const& s) noexcept {
  return s.until_first_failure && out.count(verdict::failed) > 0;
}

/// Runs checks, each on a store of its own. In real time a check that fails is tried again with
/// longer leases, because the machine may have been too slow for the short ones.
template <class Commands, class Checks>
void run_checks(factory<Commands> const& f, std::string_view noun, Checks const& checks,
                report& out, settings const& s) {
  for (auto const t : times_of(f)) {
    for (auto const& c : checks) {
      if (finished(out, s)) return;
      if (!s.only.empty() && c.number.find(s.only) == c.number.npos &&
          c.promise.find(s.only) == c.promise.npos) {
        continue;
      }
      auto const unproven = topic{noun, c.number, c.promise}.unproven(t);
      auto scaled = s;
      for (int tries = t == time_source::real ? 3 : 1; tries > 0; --tries, scaled.scale *= 4) {
        auto found = run_check(unproven, [&] {
          bench<Commands> b{f, t, scaled};
          c.run(b);
        });
        if (found.outcome == verdict::failed && tries > 1) continue;
        out.add(std::move(found));
        break;
      }
    }
  }
}

}  // namespace weir::testing

#endif
