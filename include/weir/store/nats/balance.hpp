// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_BALANCE_HPP
#define WEIR_STORE_NATS_BALANCE_HPP

#include "weir/id_source.hpp"
#include "weir/time.hpp"

#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The decisions by which processes share the ownership of parts evenly. Nobody leads: each process
// counts what others own, and takes a part from one that has at least two more than itself. So each
// take brings the two nearer, and where none has two more than another, all is quiet.
namespace weir::detail {

/// The names under which a process claims parts: `PROCESS-N`, or `PROCESS-Nb` where the part is
/// taken from a living owner, for balance. PROCESS is a UUID, the same as long as the store lives.
/// Any other name is a process of its own.
class nats_claims {
 public:
  [[nodiscard]] std::string const& process() const noexcept { return process_; }
  [[nodiscard]] std::string next(bool for_balance) {
    return process_ + "-" + std::to_string(++given_) + (for_balance ? "b" : "");
  }

  /// The process that has made a claim.
  [[nodiscard]] static std::string_view process_of(std::string_view claim) noexcept {
    return is_known(claim) ? claim.substr(0, process_size) : claim;
  }
  /// Was the part taken for balance, and not because its owner could not be heard?
  [[nodiscard]] static bool is_for_balance(std::string_view claim) noexcept {
    return is_known(claim) && claim.ends_with('b');
  }

 private:
  static constexpr std::size_t process_size = 36;

  [[nodiscard]] static bool is_known(std::string_view claim) noexcept {
    if (claim.size() < process_size + 2 || claim[process_size] != '-') return false;
    auto number = claim.substr(process_size + 1);
    if (number.ends_with('b')) number.remove_suffix(1);
    return !number.empty() &&
           std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  }

  std::string const process_ = boost::uuids::to_string(id_source{}.job());
  std::uint64_t given_ = 0;
};

/// The part that a process is to take over; empty: none. It is one of those whose owner has the
/// most, and at least two more than the process.
///
/// @param owners the process that owns each part of a kind; empty: nobody, or it is not known.
///        Those of `self` have to be known. Of the others fewer may be: they own what is known at
///        least, so that what is taken is right.
/// @param may_take `bool(std::size_t part)`
/// @param entropy chooses among several, so that two processes rarely choose the same
template <class MayTake>
[[nodiscard]] std::optional<std::size_t> nats_part_to_take(std::span<std::string_view const> owners,
                                                           std::string_view self,
                                                           MayTake const& may_take,
                                                           std::uint64_t entropy) {
  std::map<std::string_view, std::size_t> counts;
  for (auto const owner : owners) ++counts[owner];
  auto const own = counts[self];
  std::size_t most = own + 2;
  std::vector<std::size_t> best;
  for (std::size_t part = 0; part != owners.size(); ++part) {
    if (owners[part].empty() || owners[part] == self) continue;
    auto const count = counts[owners[part]];
    if (count < most || !may_take(part)) continue;
    if (count > most) best.clear();
    most = count;
    best.push_back(part);
  }
  if (best.empty()) return std::nullopt;
  return best[entropy % best.size()];
}

/// Keeps a process from taking again and again what it cannot keep: after each loss it waits twice
/// as long, until it has kept something for as long as it had to wait.
class nats_reluctance {
 public:
  static constexpr int most_losses = 6;  // that count: 64 times as long as after the first

  [[nodiscard]] bool may_take(steady_time now) const noexcept { return now >= until_; }

  /// @param first how long it waits after the first loss
  void lost(steady_time now, duration first) noexcept {
    wait_ = (std::int64_t{1} << losses_) * first;
    losses_ = std::min(losses_ + 1, most_losses);
    until_ = saturating_add(now, wait_);
  }
  /// A part that was taken then is kept until now.
  void kept(steady_time since, steady_time now) noexcept {
    if (losses_ != 0 && saturating_sub(now, since) >= wait_) losses_ = 0;
  }

 private:
  int losses_ = 0;
  duration wait_{};
  steady_time until_{};
};

}  // namespace weir::detail

#endif
