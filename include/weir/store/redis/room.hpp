// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_ROOM_HPP
#define WEIR_STORE_REDIS_ROOM_HPP

#include "weir/limits.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>

namespace weir::detail {

/// The room on a connection: how many bytes of commands, and of the largest answers that they may
/// get, can be under way at once. A server keeps an answer in its memory until it is read, and the
/// commands of a connection that it lets wait, and ends a connection that has too much of either
/// there (client-output-buffer-limit, client-query-buffer-limit), with all that is under way on it
/// (F59, F60).
class redis_room {
 public:
  /// More than a command alone ever needs.
  static constexpr std::size_t most = std::size_t{64} << 20U;
  static_assert(limits::batch_bytes + limits::answer_bytes < most / 2);

  /// Up to this size, commands do not wait for larger ones.
  static constexpr std::size_t small = std::size_t{16} << 10U;

  [[nodiscard]] static constexpr bool is_small(std::size_t bytes) noexcept {
    return bytes <= small;
  }
  [[nodiscard]] bool has(std::size_t bytes) const noexcept {
    return used_ == 0 || used_ + bytes <= (is_small(bytes) ? 2 * most : most);
  }
  void take(std::size_t bytes) noexcept { used_ += bytes; }
  void give_back(std::size_t bytes) noexcept { used_ -= bytes; }

 private:
  std::size_t used_ = 0;
};

/// Requests that wait for room. Small ones go past large ones, but no more of them than a
/// connection has room for: then the first large one is next, or it might wait for as long as they
/// come.
///
/// @tparam Request points to something that has `bytes()`
template <class Request>
class redis_room_queue {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return small_.size() + large_.size(); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  void push(Request r) {
    (redis_room::is_small(r->bytes()) ? small_ : large_).push_back(std::move(r));
  }

  /// Takes the next one that there is room for; none: they wait.
  [[nodiscard]] std::optional<Request> next(redis_room const& room) {
    if (has(room, large_)) {
      passed_ = 0;
      return take(large_);
    }
    if (!has(room, small_) || passed_ >= redis_room::most) return std::nullopt;
    if (!large_.empty()) passed_ += small_.front()->bytes();
    return take(small_);
  }

  /// All of them; small ones first.
  [[nodiscard]] std::deque<Request> take_all() {
    passed_ = 0;
    auto out = std::exchange(small_, {});
    std::ranges::move(std::exchange(large_, {}), std::back_inserter(out));
    return out;
  }

 private:
  using line = std::deque<Request>;

  [[nodiscard]] static bool has(redis_room const& room, line const& from) {
    return !from.empty() && room.has(from.front()->bytes());
  }
  static Request take(line& from) {
    auto out = std::move(from.front());
    from.pop_front();
    return out;
  }

  line small_;
  line large_;
  std::size_t passed_ = 0;  // bytes of small ones, since the first large one waits
};

}  // namespace weir::detail

#endif
