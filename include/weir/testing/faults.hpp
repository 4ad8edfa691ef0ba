// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_FAULTS_HPP
#define WEIR_TESTING_FAULTS_HPP

#include "weir/parking.hpp"
#include "weir/testing/dice.hpp"
#include "weir/time.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace weir::testing {

/// The faults that a command can meet on its way.
enum class fault : std::uint8_t {
  none,         ///< it is executed and answered
  delay,        ///< it is executed later
  late_answer,  ///< it is executed at once and answered later: what was read is stale by then
  fail_before,  ///< it is not executed: `store_unavailable`
  fail_after,   ///< it is executed, and the answer is lost: `outcome_unknown`
  duplicate,    ///< it is executed twice, and either answer comes; only for commands that are
                ///< repeatable
  never,        ///< it is not executed and never answered, until it is cancelled
  silence,      ///< it is executed and never answered, until it is cancelled
};

/// How many kinds of faults there are, `none` among them.
inline constexpr std::size_t fault_kinds = 8;

/// How often what happens, in thousandths of the commands.
struct fault_rates {
  std::uint32_t delay = 0;                           ///< `fault::delay`
  std::uint32_t late_answer = 0;                     ///< `fault::late_answer`
  std::uint32_t fail_before = 0;                     ///< `fault::fail_before`
  std::uint32_t fail_after = 0;                      ///< `fault::fail_after`
  std::uint32_t duplicate = 0;                       ///< `fault::duplicate`
  std::uint32_t never = 0;                           ///< `fault::never`
  std::uint32_t silence = 0;                         ///< `fault::silence`
  duration longest_delay = std::chrono::seconds{1};  ///< delays are between 0 and this
};

/// Decides what happens to each command of a faulty store, by a script, by a seed, or not at all. A
/// handle: copies share what is left of the script, and the counts. May be shared by threads; only
/// one thread makes the same choices again.
class fault_injector {
 public:
  /// What happens to one command.
  struct injected {
    fault what = fault::none;  ///< which
    duration delay{};          ///< delay and late_answer: by how much
    bool second = false;       ///< duplicate: it is the second answer that comes
  };

  /// Nothing happens but what is scripted.
  fault_injector() : fault_injector{0, fault_rates{}} {}

  /// Faults at these rates: equal seeds and equal commands have equal fates.
  fault_injector(std::uint64_t seed, fault_rates const& rates)
      : state_{std::make_shared<state>(seed, rates)} {}

  /// Scripts what happens to the next command that nothing is scripted for yet.
  void next(fault f, duration delay = {}) { script(nullptr, 0, f, delay); }

  /// Scripts what happens to the next command of type `C`, after `skipped` others of it.
  template <class C>
  void next_of(fault f, duration delay = {}, std::size_t skipped = 0) {
    script(tag<C>(), skipped, f, delay);
  }

  /// From now on nothing happens; what is scripted is forgotten. Commands that wait for their
  /// cancellation go on doing so.
  void heal() {
    std::lock_guard const lock{state_->mutex};
    state_->healed = true;
    state_->script.clear();
  }

  /// How often this happened.
  [[nodiscard]] std::uint64_t count(fault f) const {
    std::lock_guard const lock{state_->mutex};
    return state_->counts[static_cast<std::size_t>(f)];
  }

  /// For a faulty store: what happens to this command of type `C`.
  template <class C>
  injected draw() {
    std::lock_guard const lock{state_->mutex};
    auto const out = state_->draw(tag<C>(), C::repeatable);
    ++state_->counts[static_cast<std::size_t>(out.what)];
    return out;
  }

  /// For a faulty store: keeps an operation that is never answered.
  void keep(std::shared_ptr<weir::detail::parked_base> op) {
    std::lock_guard const lock{state_->mutex};
    std::erase_if(state_->unanswered, [](auto const& o) { return !o->waiting(); });
    state_->unanswered.push_back(std::move(op));
  }

 private:
  struct scripted {
    void const* command;  // null: any
    std::size_t skipped;
    fault what;
    duration delay;
  };

  struct state {
    state(std::uint64_t seed, fault_rates const& r) : choices{seed}, rates{r} {}

    injected draw(void const* command, bool repeatable) {
      for (auto it = script.begin(); it != script.end(); ++it) {
        if (it->command != nullptr && it->command != command) continue;
        if (it->skipped > 0) {
          --it->skipped;
          continue;
        }
        injected const out{allowed(it->what, repeatable), it->delay, false};
        script.erase(it);
        return out;
      }
      if (healed) return {};
      auto throw_of = choices.below(1000);
      auto const longest = static_cast<std::uint64_t>(rates.longest_delay.count());
      duration const delay{static_cast<duration::rep>(choices.below(longest + 1))};
      bool const second = choices.chance(50);
      std::pair<fault, std::uint32_t> const all[] = {{fault::delay, rates.delay},
                                                     {fault::late_answer, rates.late_answer},
                                                     {fault::fail_before, rates.fail_before},
                                                     {fault::fail_after, rates.fail_after},
                                                     {fault::duplicate, rates.duplicate},
                                                     {fault::never, rates.never},
                                                     {fault::silence, rates.silence}};
      for (auto const& [what, rate] : all) {
        if (throw_of < rate) return {allowed(what, repeatable), delay, second};
        throw_of -= rate;
      }
      return {};
    }

    static fault allowed(fault f, bool repeatable) noexcept {
      return f == fault::duplicate && !repeatable ? fault::none : f;
    }

    std::mutex mutex;
    dice choices;
    fault_rates rates;
    bool healed = false;
    std::list<scripted> script;
    std::array<std::uint64_t, fault_kinds> counts{};
    std::vector<std::shared_ptr<weir::detail::parked_base>> unanswered;
  };

  template <class C>
  static void const* tag() noexcept {
    static constexpr char here = 0;
    return &here;
  }

  void script(void const* command, std::size_t skipped, fault f, duration delay) {
    std::lock_guard const lock{state_->mutex};
    state_->script.push_back({command, skipped, f, delay});
  }

  std::shared_ptr<state> state_;
};

}  // namespace weir::testing

#endif
