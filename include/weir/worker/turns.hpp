// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_TURNS_HPP
#define WEIR_WORKER_TURNS_HPP

#include "weir/time.hpp"
#include "weir/worker/options.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// The queues that may be claimed from now, and which of them is next.
///
/// Those of one entry of `worker_options::queues` have their turns in the order in which they were
/// added. The entries share the worker by start-time fair queuing (Goyal, Vin and Cheng, 1996): the
/// next turn is that of the one whose jobs so far, divided by its weight, are fewest. One that had
/// nothing to do begins where the others are, so it neither saves up turns nor waits for them. Two
/// entries that both always have jobs are never apart by more than a claim of each, by weight.
class turns {
 public:
  using entry = std::uint32_t;
  static constexpr entry nobody = std::numeric_limits<entry>::max();

  explicit turns(std::vector<served_queues> const& served) {
    if (served.empty()) {
      entries_.emplace_back();
      prefixes_.emplace_back(std::string{}, 0);
    }
    for (auto const& s : served) {
      auto const i = static_cast<entry>(entries_.size());
      auto& e = entries_.emplace_back();
      e.price = 1.0 / s.weight;
      if (s.concurrency != 0) {
        e.most = s.concurrency;
        bounded_ = true;
      }
      if (s.name.empty()) {
        prefixes_.emplace_back(s.prefix, i);
      } else {
        names_.emplace(s.name, i);
      }
    }
    serves_all_ = served.empty() || std::ranges::any_of(served, [](auto const& s) {
                    return s.name.empty() && s.prefix.empty();
                  });
    auto const longer = [](auto const& a, auto const& b) {
      return a.first.size() > b.first.size();
    };
    std::ranges::sort(prefixes_, longer);
  }

  /// The entry that serves the queue; `nobody`: the worker does not serve it.
  [[nodiscard]] entry of(std::string_view queue) const {
    if (auto const found = names_.find(queue); found != names_.end()) return found->second;
    for (auto const& [prefix, e] : prefixes_) {
      if (queue.starts_with(prefix)) return e;
    }
    return nobody;
  }
  /// Is every queue the worker's?
  [[nodiscard]] bool serves_all() const noexcept { return serves_all_; }
  /// Does a queue have to be found before its name is known?
  [[nodiscard]] bool has_prefixes() const noexcept { return !prefixes_.empty(); }
  /// The queues that have an entry of their own.
  [[nodiscard]] std::map<std::string, entry, std::less<>> const& names() const noexcept {
    return names_;
  }

  /// How many more jobs an entry may have at once.
  [[nodiscard]] std::uint32_t room_of(entry e) const noexcept {
    auto const& at = entries_[e];
    return at.most - std::min(at.most, at.busy);
  }
  /// Has any entry a concurrency of its own? Jobs are counted for each entry only then.
  [[nodiscard]] bool bounded() const noexcept { return bounded_; }
  void has(entry e, std::uint32_t more) noexcept { entries_[e].busy += more; }
  void has_no_more(entry e, std::uint32_t fewer) noexcept { entries_[e].busy -= fewer; }

  /// Room that an entry keeps for jobs that may come.
  class kept_room {
   public:
    kept_room(turns& of, entry e, std::uint32_t jobs) noexcept
        : of_{of.bounded() ? &of : nullptr},
          entry_{e},
          jobs_{jobs} {
      if (of_ != nullptr) of_->has(entry_, jobs_);
    }
    kept_room(kept_room const&) = delete;
    kept_room& operator=(kept_room const&) = delete;
    ~kept_room() { end(); }

    void end() noexcept {
      if (of_ != nullptr) std::exchange(of_, nullptr)->has_no_more(entry_, jobs_);
    }

   private:
    turns* of_;
    entry entry_;
    std::uint32_t jobs_;
  };

  void add(std::string&& queue, entry e) {
    auto& at = entries_[e];
    if (at.queues.empty()) at.served = std::max(at.served, now_);
    at.queues.push_back(std::move(queue));
    ++size_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void clear() noexcept {
    for (auto& e : entries_) e.queues.clear();
    size_ = 0;
  }

  struct turn {
    turn(std::string&& of, entry e) : queue{std::move(of)}, by{e} {}

    std::string queue;
    entry by;
  };
  /// Is there a queue of an entry that has room?
  [[nodiscard]] bool any() const noexcept { return best() != nobody; }
  /// The next one; it is taken out.
  ///
  /// @param since claims of queues with a backlog that began then or later are waited for, if their
  ///              entry has had less
  [[nodiscard]] std::optional<turn> next(steady_time since) {
    auto const by = best();
    if (by == nobody || (claims_ != 0 && is_before_its_turn(by, since))) return std::nullopt;
    auto& e = entries_[by];
    now_ = e.served;
    turn out{std::move(e.queues.front()), by};
    e.queues.pop_front();
    --size_;
    return out;
  }
  /// A claim of a queue with a backlog is under way: its entry will have more to do.
  void begin_claim(entry e, steady_time now) noexcept {
    ++claims_;
    ++entries_[e].claims;
    entries_[e].last_claim = now;
  }
  void end_claim(entry e) noexcept {
    --claims_;
    --entries_[e].claims;
  }

  /// An entry is given so many jobs, or, where it was given more than there were, takes them back.
  void charge(entry e, std::uint32_t jobs) noexcept {
    entries_[e].served += entries_[e].price * jobs;
  }
  void refund(entry e, std::uint32_t jobs) noexcept {
    entries_[e].served -= entries_[e].price * jobs;
  }

 private:
  [[nodiscard]] entry best() const noexcept {
    auto best = nobody;
    for (entry i = 0; size_ != 0 && i != entries_.size(); ++i) {
      auto const& e = entries_[i];
      if (e.queues.empty() || room_of(i) == 0) continue;
      if (best == nobody || e.served < entries_[best].served) best = i;
    }
    return best;
  }

  [[nodiscard]] bool is_before_its_turn(entry e, steady_time since) const noexcept {
    return std::ranges::any_of(entries_, [&](state const& other) {
      return other.claims != 0 && other.last_claim >= since && other.served < entries_[e].served;
    });
  }

  struct state {
    std::deque<std::string> queues;
    double served = 0;  ///< jobs, divided by the weight
    double price = 1;   ///< of a job
    std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t busy = 0;    ///< jobs that it has, or may get
    std::uint32_t claims = 0;  ///< that are under way, of queues with a backlog
    steady_time last_claim = steady_time::min();
  };

  std::vector<state> entries_;
  std::map<std::string, entry, std::less<>> names_;
  std::vector<std::pair<std::string, entry>> prefixes_;  ///< the longest first
  std::size_t size_ = 0;
  std::size_t claims_ = 0;
  double now_ = 0;  ///< `served` of the entry that had the last turn, before that turn
  bool bounded_ = false;
  bool serves_all_ = false;
};

}  // namespace weir::detail

#endif
