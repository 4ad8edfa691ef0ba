// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_UNIT_LEASE_BED_HPP
#define WEIR_TEST_UNIT_LEASE_BED_HPP

#include "weir/clock/manual.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/lease.hpp"
#include "weir/parking.hpp"
#include "weir/rule/locks.hpp"
#include "weir/rule/permits.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/memory/locks.hpp"
#include "weir/store/memory/permits.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/io_context.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

// Two stores for testing what is built on stores: one in this process that answers at once, and one
// that stands for a remote engine, has no `execute`, and does with each command what a test tells
// it to.
namespace lease_test {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace weir;

template <class C>
concept permit_or_lock = requires(detail::memory_permits& p, C const& c, time_point t) {
  p.apply(c, t);
} || requires(detail::memory_locks& l, C const& c, time_point t) { l.apply(c, t); };

/// Executes at once and hints.
class local_store {
 public:
  using executor_type = asio::any_io_executor;

  local_store(executor_type ex, manual_clock clock)
      : executor_{std::move(ex)},
        clock_{std::move(clock)},
        state_{std::make_shared<state>()} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }

  template <permit_or_lock C>
  result<typename C::result> execute(C const& c) const {
    if (auto const ec = rule::validate(c)) return ec;
    return state_->apply(c, clock_.system_now());
  }
  template <permit_or_lock C, class Token>
  auto async_execute(C const& c, Token&& token) const {
    return detail::async_lift<typename C::result>(
        executor_, [self = *this, c] { return self.execute(c); }, std::forward<Token>(token));
  }
  template <class Token>
  auto async_execute(command::await_permit const& c, Token&& token) const {
    return asio::async_initiate<Token, void(error_code, hint)>(
        [](asio::any_completion_handler<void(error_code, hint)> handler, local_store self,
           command::await_permit await) {
          self.state_->await(await, self.clock_.system_now(), std::move(handler), self.executor_);
        },
        token, *this, c);
  }

 private:
  struct state : detail::memory_permits, detail::memory_locks {
    state() : detail::memory_permits{memory_options{}}, detail::memory_locks{memory_options{}} {}
    using detail::memory_locks::apply;
    using detail::memory_permits::apply;
  };

  executor_type executor_;
  manual_clock clock_;
  std::shared_ptr<state> state_;
};

/// What a remote engine does with one command.
struct treatment {
  bool answers = true;   ///< false: `deliver` has to be called for it
  bool executes = true;  ///< at once; not if it only answers later
  error_code error{};    ///< is the answer
  bool deaf = false;     ///< to cancellation
};

/// What all copies of a remote store share.
class engine {
 public:
  explicit engine(manual_clock c) : clock{std::move(c)} {}

  treatment usual{};
  std::deque<treatment> next;              ///< of the commands to come, before `usual` applies
  std::map<std::string, int> seen;         ///< commands by name
  std::deque<std::function<bool()>> held;  ///< what has not been answered

  /// Executes and answers the oldest command that was held back. False: it was given up.
  bool deliver() {
    auto const step = std::move(held.front());
    held.pop_front();
    return step();
  }
  void deliver_all() {
    while (!held.empty()) deliver();
  }

  result<permit_grant> apply(command::acquire_permit const& c) {
    ++seen["acquire"];
    return rule::apply(line(c), c, now(), fence);
  }
  result<lease_renewal> apply(command::renew_permit const& c) {
    ++seen["renew"];
    return rule::apply(line(c), c, now());
  }
  result<lease_release> apply(command::release_permit const& c) {
    ++seen["release"];
    return rule::apply(line(c), c, now());
  }
  result<permit_census> apply(command::inspect_permits const& c) {
    return rule::apply(line(c), c, now());
  }
  result<lock_grant> apply(command::acquire_lock const& c) {
    ++seen["acquire"];
    return rule::apply(lock(c), c, now(), fence, [] { return true; });
  }
  result<lease_renewal> apply(command::renew_lock const& c) {
    ++seen["renew"];
    return rule::apply(lock(c), c, now());
  }
  result<lease_release> apply(command::release_lock const& c) {
    ++seen["release"];
    return rule::apply(lock(c), c, now());
  }
  result<lock_info> apply(command::inspect_lock const& c) { return rule::apply(lock(c), c, now()); }

  manual_clock clock;
  std::uint64_t fence = 0;

 private:
  template <class C>
  rule::permit_line& line(C const& c) {
    return lines_[std::string{c.key}];
  }
  template <class C>
  rule::lock_state& lock(C const& c) {
    return locks_[std::string{c.key}];
  }
  [[nodiscard]] time_point now() const { return clock.system_now(); }

  std::map<std::string, rule::permit_line> lines_;
  std::map<std::string, rule::lock_state> locks_;
};

/// Has no `execute` and gives no hints.
class remote_store {
 public:
  using executor_type = asio::any_io_executor;

  remote_store(executor_type ex, std::shared_ptr<engine> e)
      : executor_{std::move(ex)},
        engine_{std::move(e)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }

  template <permit_or_lock C, class Token>
  auto async_execute(C const& c, Token&& token) const {
    using R = typename C::result;
    return asio::async_initiate<Token, void(error_code, R)>(
        [](asio::any_completion_handler<void(error_code, R)> handler, remote_store self,
           C command) { self.begin(std::move(handler), command); },
        token, *this, c);
  }

 private:
  template <class R, class C>
  void begin(asio::any_completion_handler<void(error_code, R)> handler, C const& c) const {
    treatment how = engine_->usual;
    if (!engine_->next.empty()) {
      how = engine_->next.front();
      engine_->next.pop_front();
    }
    std::shared_ptr<parked<error_code, R>> op;
    if (how.deaf) {
      auto unheard = asio::bind_cancellation_slot(asio::cancellation_slot{}, std::move(handler));
      op = park<error_code, R>(executor_, std::move(unheard));
    } else {
      op = park<error_code, R>(executor_, std::move(handler));
    }
    auto const answer = [e = engine_.get(), op, c, how] {
      if (!op->waiting()) return false;
      if (auto const bad = rule::validate(c)) return op->resume(bad, R{});
      if (how.error && !how.executes) return op->resume(how.error, R{});
      auto got = e->apply(c);
      error_code const ec = how.error ? how.error : got.error();
      return op->resume(ec, ec ? R{} : std::move(got).value());
    };
    if (how.answers) {
      answer();
    } else if (how.executes && how.error) {  // done, and nobody ever hears of it
      (void)engine_->apply(c);
      engine_->held.push_back([op] { return op->waiting(); });
    } else {
      engine_->held.push_back(answer);
    }
  }

  executor_type executor_;
  std::shared_ptr<engine> engine_;
};

/// A context, a clock, and both stores on them.
struct ground {
  manual_clock clock;
  std::shared_ptr<engine> wire = std::make_shared<engine>(clock);
  asio::io_context io;
  local_store local{io.get_executor(), clock};
  remote_store remote{io.get_executor(), wire};

  /// Runs all that can run now.
  std::size_t settle() {
    io.restart();
    return io.poll();
  }
  /// Lets time pass from one deadline to the next, up to `d` from now.
  void pass(duration d) {
    auto const end = clock.steady_now() + d;
    settle();
    for (auto next = clock.next_deadline(); next && *next <= end; next = clock.next_deadline()) {
      clock.advance_to_next();
      settle();
    }
    clock.set(end);
    settle();
  }
};

[[nodiscard]] inline error_code code(errc e) { return make_error_code(e); }

/// What is on a key now: permits and tickets.
[[nodiscard]] inline permit_census census(local_store const& s, std::string_view key) {
  return s.execute(command::inspect_permits{.key = key, .limit = 100}).value();
}
[[nodiscard]] inline permit_census census(engine& e, std::string_view key) {
  return e.apply(command::inspect_permits{.key = key, .limit = 100}).value();
}

/// Remembers how an operation ended.
template <class T>
struct outcome {
  struct sink {
    outcome* to;
    void operator()(error_code e, T v = {}) const {
      ++to->calls;
      to->ec = e;
      to->value = std::move(v);
    }
  };
  sink handler() { return sink{this}; }
  [[nodiscard]] bool done() const { return calls == 1; }

  int calls = 0;
  error_code ec;
  T value{};
};

}  // namespace lease_test

#endif
