// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_ROSTER_HPP
#define WEIR_RULE_ROSTER_HPP

#include "weir/detail/string_hash.hpp"
#include "weir/rule/ranked_tree.hpp"
#include "weir/time.hpp"

#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace weir::rule {

/// Somebody who has something until an instant: a permit of a key, or a place in its line.
struct occupant {
  /// Copies the name of the holder.
  occupant(std::string_view h, std::uint64_t n, time_point end, std::uint32_t l)
      : holder{h},
        number{n},
        until{end},
        limit{l} {}

  std::string holder;    ///< who
  std::uint64_t number;  ///< the permit's fence, or the ticket's turn
  time_point until;      ///< over at this instant, whether or not anyone came since
  std::uint32_t limit;   ///< of the command that it stems from
};

namespace detail {

/// Many occupants: by holder in a hash table, which owns them, and by number and by end in trees.
template <class>
class basic_crowd {
 public:
  basic_crowd() = default;
  basic_crowd(basic_crowd const& other) {
    for (auto const* o = other.first(); o != nullptr; o = other.after(*o)) add(occupant{*o});
  }
  basic_crowd& operator=(basic_crowd const&) = delete;
  ~basic_crowd() = default;

  [[nodiscard]] std::size_t size() const noexcept { return holders_.size(); }

  [[nodiscard]] occupant const* find(std::string_view holder) const noexcept {
    auto const found = holders_.find(holder);
    return found == holders_.end() ? nullptr : found->second.get();
  }
  [[nodiscard]] occupant const* find(std::uint64_t number) const noexcept {
    return numbers_.find(number);
  }
  [[nodiscard]] std::size_t before(occupant const& o) const noexcept {
    return numbers_.rank(standing(o));
  }

  // By number.
  [[nodiscard]] occupant const* first() const noexcept { return numbers_.first(); }
  [[nodiscard]] occupant const* after(occupant const& o) const noexcept {
    return numbers_.after(standing(o));
  }

  // By end.
  [[nodiscard]] occupant const* nth_to_end(std::size_t k) const noexcept { return ends_.nth(k); }

  void add(occupant newcomer) {
    auto added = std::make_unique<place>(std::move(newcomer));
    auto& p = *added;
    holders_.emplace(p.holder, std::move(added));
    numbers_.insert(p);
    ends_.insert(p);
  }

  void change(occupant const& o, time_point until, std::uint32_t limit) noexcept {
    auto& changed = standing(o);
    ends_.erase(changed);
    changed.until = until;
    changed.limit = limit;
    ends_.insert(changed);
  }

  void erase(occupant const& o) noexcept {
    auto& gone = standing(o);
    numbers_.erase(gone);
    ends_.erase(gone);
    holders_.erase(holders_.find(gone.holder));
  }

 private:
  struct place : occupant {
    explicit place(occupant&& o) noexcept : occupant{std::move(o)} {}

    ranked_links<place> by_number;
    ranked_links<place> by_end;
  };

  struct number_of {
    std::uint64_t operator()(occupant const& o) const noexcept { return o.number; }
  };
  // Ends may be equal, so the number makes them different.
  struct end_of {
    std::pair<time_point, std::uint64_t> operator()(occupant const& o) const noexcept {
      return {o.until, o.number};
    }
  };

  // All that is handed out stands here, and is constant only to those whom it is handed to.
  static place& standing(occupant const& o) noexcept {
    return const_cast<place&>(static_cast<place const&>(o));
  }

  boost::unordered_flat_map<std::string_view, std::unique_ptr<place>, weir::detail::string_hash>
      holders_;  // the keys are its own
  ranked_tree<place, &place::by_number, number_of> numbers_;
  ranked_tree<place, &place::by_end, end_of> ends_;
};

using crowd = basic_crowd<void>;

}  // namespace detail

/// The occupants of one key: found by holder, ranked by number and by end. A value, and only a
/// container: it reads no clock and forgets nobody unless told to.
///
/// Most keys have a handful of occupants, some have ten thousand, and both are met on a hot path.
/// Up to `few` of them stand in a flat array that is simply scanned; the first `Inline` cost no
/// allocation. Beyond that they stand in a hash table and in two ranked trees, where
/// everything costs O(log n), and stay there until all are gone: an order of ends alone, say a
/// sorted array, would answer neither "who is this holder" nor "which place in line" without
/// walking along it, and moves half of itself on every release.
template <std::size_t Inline>
class roster {
 public:
  /// How many are simply scanned.
  static constexpr std::size_t few = 16;

  /// Nobody.
  roster() = default;
  /// The same ones once more.
  roster(roster const& other)
      : few_{other.few_},
        soonest_{other.soonest_},
        many_{other.many_ ? std::make_unique<detail::crowd>(*other.many_) : nullptr} {}
  /// Those of `other`, which has nobody then.
  roster(roster&& other) noexcept
      : few_{std::move(other.few_)},
        soonest_{std::exchange(other.soonest_, time_point::max())},
        many_{std::move(other.many_)} {
    other.few_.clear();
  }
  /// Those of `other` instead.
  roster& operator=(roster other) noexcept {
    few_ = std::move(other.few_);
    soonest_ = other.soonest_;
    many_ = std::move(other.many_);
    return *this;
  }
  ~roster() = default;

  /// How many there are, whether their ends have come or not.
  [[nodiscard]] std::size_t size() const noexcept { return many_ ? many_->size() : few_.size(); }
  /// Is there nobody?
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  /// Nobody's end is before this. It may be too early after somebody left or was prolonged, until
  /// `expire` passes it.
  [[nodiscard]] time_point soonest() const noexcept { return soonest_; }

  /// By name; null: there is none. Valid until the next change.
  [[nodiscard]] occupant const* find(std::string_view holder) const noexcept {
    if (many_) return many_->find(holder);
    for (auto const& o : few_) {
      if (o.holder == holder) return &o;
    }
    return nullptr;
  }

  /// By number; null: there is none. Valid until the next change.
  [[nodiscard]] occupant const* find(std::uint64_t number) const noexcept {
    if (many_) return many_->find(number);
    for (auto const& o : few_) {
      if (o.number == number) return &o;
    }
    return nullptr;
  }

  /// How many have a lower number.
  [[nodiscard]] std::size_t before(occupant const& o) const noexcept {
    return many_ ? many_->before(o) : static_cast<std::size_t>(&o - few_.data());
  }

  /// When `k` + 1 of them will have ended. Precondition: k < size().
  [[nodiscard]] time_point nth_end(std::size_t k) const noexcept {
    if (many_) return many_->nth_to_end(k)->until;
    std::array<time_point, few> ends;
    std::transform(few_.begin(), few_.end(), ends.begin(), [](auto const& o) { return o.until; });
    auto const nth = ends.begin() + static_cast<std::ptrdiff_t>(k);
    std::nth_element(ends.begin(), nth, ends.begin() + static_cast<std::ptrdiff_t>(few_.size()));
    return *nth;
  }

  /// When all of them but `except` (null: all) will have ended; the least time there is if nobody
  /// is left.
  [[nodiscard]] time_point last_end(occupant const* except = nullptr) const noexcept {
    auto last = time_point::min();
    if (many_) {
      auto n = many_->size();
      if (many_->nth_to_end(n - 1) == except) --n;
      return n == 0 ? last : many_->nth_to_end(n - 1)->until;
    }
    for (auto const& o : few_) {
      if (&o != except) last = std::max(last, o.until);
    }
    return last;
  }

  /// Visits at most `n`, in the order of their numbers.
  template <class Visit>
  void first(std::size_t n, Visit&& visit) const {
    if (many_) {
      auto const* o = many_->first();
      for (; o != nullptr && n > 0; o = many_->after(*o), --n) visit(*o);
    } else {
      for (std::size_t i = 0; i < std::min(n, few_.size()); ++i) visit(std::as_const(few_[i]));
    }
  }

  /// Adds a holder that is not there yet, with a number above all that are. Nothing changes if this
  /// throws.
  void add(std::string_view holder, std::uint64_t number, time_point until, std::uint32_t limit) {
    // Made before the array grows: if that throws, the array still has everybody.
    occupant newcomer{holder, number, until, limit};
    if (!many_ && few_.size() < few) {
      few_.push_back(std::move(newcomer));
    } else {
      if (!many_) use_indices();
      many_->add(std::move(newcomer));
    }
    soonest_ = std::min(soonest_, until);
  }

  /// Gives one of them another end and limit.
  void change(occupant const& o, time_point until, std::uint32_t limit) {
    if (many_) {
      many_->change(o, until, limit);
    } else {
      auto& changed = few_[before(o)];
      changed.until = until;
      changed.limit = limit;
    }
    soonest_ = std::min(soonest_, until);
  }

  /// Removes one of them.
  void erase(occupant const& o) noexcept {
    if (many_) {
      many_->erase(o);
    } else {
      few_.erase(few_.begin() + (&o - few_.data()));
    }
    if (empty()) clear();
  }

  /// Removes everybody whose end has come, after passing them to `gone`.
  template <class Gone>
  void expire(time_point now, Gone&& gone) noexcept {
    if (now < soonest_) return;
    soonest_ = time_point::max();
    if (many_) {
      auto const* next = many_->nth_to_end(0);
      for (; next != nullptr && next->until <= now; next = many_->nth_to_end(0)) {
        gone(*next);
        many_->erase(*next);
      }
      if (next != nullptr) soonest_ = next->until;
    } else {
      auto kept = few_.begin();
      for (auto it = few_.begin(); it != few_.end(); ++it) {
        if (it->until <= now) {
          gone(std::as_const(*it));
          continue;
        }
        soonest_ = std::min(soonest_, it->until);
        if (kept != it) *kept = std::move(*it);
        ++kept;
      }
      few_.erase(kept, few_.end());
    }
    if (empty()) clear();
  }

 private:
  void use_indices() {
    auto all = std::make_unique<detail::crowd>();
    for (auto const& o : few_) all->add(occupant{o});
    many_ = std::move(all);
    few_.clear();
  }

  void clear() noexcept {
    many_.reset();
    soonest_ = time_point::max();
  }

  boost::container::small_vector<occupant, Inline> few_;  // by number
  time_point soonest_ = time_point::max();
  std::unique_ptr<detail::crowd> many_;  // if not null, few_ is empty
};

}  // namespace weir::rule

#endif
