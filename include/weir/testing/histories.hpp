// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_HISTORIES_HPP
#define WEIR_TESTING_HISTORIES_HPP

#include "weir/clock/system.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/dice.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"
#include "weir/testing/shrink.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Model checking by generated histories: a random sequence of commands is executed by the store and
// by an oracle, and every answer is compared. A sequence that shows a difference is made as short
// as it can be and printed.
//
// Where time passes by itself, the sequence is a series of bursts with pauses between them. What is
// brief lives through a burst and is over after a pause, what is lasting lives on, and a burst that
// took too long proves nothing.
namespace weir::testing {

/// Spans of time to choose from.
class time_choices {
 public:
  template <class Commands>
  explicit time_choices(bench<Commands> const& b)
      : grain_{b.grain()},
        brief_{b.brief()},
        exact_{b.exact()},
        reversible_{b.source() == time_source::told && b.can().ends_are_final} {}

  [[nodiscard]] bool exact() const noexcept { return exact_; }
  /// May time run backwards?
  [[nodiscard]] bool reversible() const noexcept { return reversible_; }
  [[nodiscard]] duration brief() const noexcept { return brief_; }
  [[nodiscard]] duration grain() const noexcept { return grain_; }

  /// How long a lease is to last.
  [[nodiscard]] duration ttl(dice& d) const noexcept {
    if (!exact_) return d.chance(60) ? brief_ : std::chrono::hours{1};
    duration const some[] = {brief_, brief_, 2 * brief_, 3 * brief_ + grain_,
                             std::chrono::hours{1}};
    return d.pick(some);
  }

  /// A wait that may be none.
  [[nodiscard]] duration wait(dice& d) const noexcept {
    return d.chance(40) ? duration::zero() : ttl(d);
  }

  /// How much later the next command comes.
  [[nodiscard]] duration step(dice& d) const noexcept {
    if (!exact_) return d.chance(93) ? duration::zero() : 2 * brief_;
    if (d.chance(60)) return duration::zero();
    duration const some[] = {
        grain_,     brief_ - grain_,     brief_,    brief_ + grain_, brief_ / 2 / grain_ * grain_,
        2 * brief_, 2 * brief_ - grain_, 4 * brief_};
    return d.pick(some);
  }

  /// The same, where time may run backwards.
  [[nodiscard]] duration step_either_way(dice& d) const noexcept {
    if (!reversible_ || d.chance(90)) return step(d);
    duration const some[] = {-grain_, -brief_, -3 * brief_};
    return d.pick(some);
  }

 private:
  duration grain_;
  duration brief_;
  bool exact_;
  bool reversible_;
};

/// A store and an oracle side by side. `Model` has `result<C::result> execute(C const&,
/// time_point)` for every command.
template <class Commands, class Model>
class duel {
 public:
  duel(bench<Commands>& b, bool verbose) : bench_{b}, verbose_{verbose} {}

  [[nodiscard]] bench<Commands>& store() noexcept { return bench_; }
  [[nodiscard]] Model& model() noexcept { return model_; }
  [[nodiscard]] fence_book& fences() noexcept { return fences_; }

  /// What the store did that the rule would not; empty: nothing so far.
  [[nodiscard]] std::optional<std::string> const& mismatch() const noexcept { return mismatch_; }
  /// Can the rest not be judged, because a burst took too long, or the store's precision decides?
  [[nodiscard]] bool inconclusive() const noexcept { return inconclusive_; }
  [[nodiscard]] bool over() const noexcept { return mismatch_.has_value() || inconclusive_; }
  [[nodiscard]] std::string const& transcript() const noexcept { return transcript_; }

  void pass(duration d) {
    passed_ += d;
    if (d < duration::zero()) {
      bench_.step_back(-d);
    } else if (d > duration::zero()) {
      bench_.pass(d);
      burst_ = system_clock{}.steady_now();
    }
  }

  /// Executes a command on both sides and compares the answers.
  ///
  /// @param to_rule, to_store the same command, with either side's own fences
  /// @param scope             the key that the fences belong to
  /// @returns the rule's answer and the store's
  template <class C>
  std::pair<result<typename C::result>, result<typename C::result>> ask(C const& to_rule,
                                                                        C const& to_store,
                                                                        std::string const& scope) {
    auto of_rule = model_.execute(to_rule, bench_.now());
    auto of_store = ++asked_ % 2 == 0 ? bench_.ask_now(to_store) : bench_.ask(to_store);
    inconclusive_ = !bench_.exact() && system_clock{}.steady_now() - burst_ > bench_.brief() / 2;
    if (!inconclusive_) compare(to_store, of_rule, of_store, scope);
    return {std::move(of_rule), std::move(of_store)};
  }

  /// Compares answers that were come by otherwise.
  template <class C, class A>
  void judge(C const& c, result<A> const& of_rule, result<A> const& of_store,
             std::string const& scope) {
    compare(c, of_rule, of_store, scope);
  }

  /// Says that something else is wrong.
  void fail(std::string what) {
    if (verbose_) transcript_ += "  <-- " + what;
    mismatch_ = std::move(what);
  }

 private:
  template <class C, class Answer>
  void compare(C const& c, Answer const& of_rule, Answer const& of_store,
               std::string const& scope) {
    auto const store = fields_of(of_store);
    if (verbose_) {
      transcript_ += "\n" + to_text(passed_) + "\t" + to_text(c) + "\n\t  -> " + to_text(store);
    }
    if (auto wrong = difference(fields_of(of_rule), store, bench_.slack(), fences_, scope))
      fail(std::move(*wrong));
  }

  bench<Commands>& bench_;
  bool verbose_;
  Model model_;
  fence_book fences_;
  duration passed_{};
  steady_time burst_ = system_clock{}.steady_now();
  std::size_t asked_ = 0;
  std::optional<std::string> mismatch_;
  bool inconclusive_ = false;
  std::string transcript_;
};

/// Plays generated histories until one shows a difference, and reports that one shrunk.
///
/// `Game<Commands>`: `op`, a copyable step; `static std::vector<op> generate(time_choices const&,
/// capabilities const&, std::size_t steps, dice)`; `static std::vector<op> simpler(op const&)`; a
/// constructor from `bench<Commands>&, bool verbose`; `play(op)`; and `duel()`.
template <class Game, class Commands>
void check_histories(factory<Commands> const& f, time_source t, topic const& about, report& out,
                     settings const& s) {
  struct ending {
    std::optional<std::string> mismatch;
    bool inconclusive = false;
    std::string story;
  };
  auto const play = [&](std::vector<typename Game::op> const& ops, bool verbose) {
    bench<Commands> b{f, t, s};
    Game game{b, verbose};
    for (auto const& op : ops) {
      game.play(op);
      if (game.duel().over()) break;
    }
    return ending{game.duel().mismatch(), game.duel().inconclusive(), game.duel().transcript()};
  };

  auto const rounds = t == time_source::real ? s.real_histories : s.histories;
  if (rounds == 0 || !selected(about, s)) return;
  auto blank = about.unproven(t);
  blank.seed = s.seed;
  out.add(run_check(blank, [&] {
    std::size_t inconclusive = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      auto const seed = s.seed + i;
      auto const ops = [&] {
        bench<Commands> b{f, t, s};
        return Game::generate(time_choices{b}, b.can(), s.steps, dice{seed});
      }();
      auto const first = play(ops, false);
      inconclusive += first.inconclusive ? 1U : 0U;
      if (!first.mismatch) continue;
      auto const still_fails = [&](auto const& fewer) {
        return play(fewer, false).mismatch.has_value();
      };
      auto const attempts = t == time_source::real ? s.shrinking / 20 : s.shrinking;
      auto const shortest = shrink(ops, still_fails, &Game::simpler, attempts);
      auto const last = play(shortest, true);
      throw broken_promise{
          "store and rule part after " + std::to_string(shortest.size()) + " steps (seed " +
          std::to_string(seed) + "):" + last.story +
          (last.mismatch ? "" : "\nthe first time, and not again: " + *first.mismatch)};
    }
    if (inconclusive == rounds)
      throw not_applicable{"the store was too slow for its precision to judge"};
  }));
}

}  // namespace weir::testing

#endif
