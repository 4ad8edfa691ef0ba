// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_ANSWER_ROOM_HPP
#define WEIR_STORE_NATS_ANSWER_ROOM_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// The room for answers of owners. A server keeps 64 MiB for a connection, and ends that of a
/// client which is slower than what comes (F60). In the strand of the link.
class nats_answer_room {
 public:
  static constexpr std::size_t most = 60U << 20U;  // bytes
  static constexpr std::size_t kept = 8U << 20U;   // of them

  explicit nats_answer_room(std::uint32_t shards) noexcept : share_{most / shards} {}

  /// May an answer of so many bytes be asked for? One may in any case.
  ///
  /// A part that is refused for want of room is the next one to get some, or smaller answers would
  /// pass it for ever. What is slow holds up no others: a part has one answer, or its share; and an
  /// owner of whom nothing comes gets one past those of an owner that may be mute, for which some
  /// room is kept.
  /// @param part   that asks
  /// @param coming bytes for it, already
  /// @param owner  the process that is asked
  [[nodiscard]] bool has(std::size_t answer, void const* part, std::size_t coming,
                         std::string_view owner) {
    bool const fair = coming == 0 || coming + answer <= share_;
    bool const first = !of_owner_.contains(owner);
    bool const next = next_ == nullptr || next_ == part;
    bool const turn = next || (first && of_owner_.contains(next_owner_));
    bool const fits = coming_ + answer <= (first ? most : most - kept);
    bool const room = coming_ == 0 || (fair && fits && turn);
    if (room || !fair) {
      wants_none(part);
    } else if (next) {
      next_ = part;
      next_owner_ = owner;
    }
    return room;
  }
  /// A part waits for no turn any more.
  void wants_none(void const* part) {
    if (next_ != part) return;
    next_ = nullptr;
    tell();
  }

  /// So many bytes may come.
  void expect(std::string_view owner, std::size_t answer) {
    if (answer == 0) return;
    of_owner_[std::string{owner}] += answer;  // or it throws, and nothing comes
    coming_ += answer;
  }
  /// They have, or will not.
  void came(std::string_view owner, std::size_t answer) {
    if (answer == 0) return;
    coming_ -= answer;
    if (coming_ == 0) next_ = nullptr;
    auto const at = of_owner_.find(owner);
    if ((at->second -= answer) == 0) of_owner_.erase(at);
    tell();
  }
  /// Does something when there is room for more.
  void wait(std::function<void()> then) { waiting_.push_back(std::move(then)); }

 private:
  void tell() {
    for (auto const& then : std::exchange(waiting_, {})) then();
  }

  std::size_t const share_;  // of a part
  std::size_t coming_ = 0;
  std::map<std::string, std::size_t, std::less<>> of_owner_;
  void const* next_ = nullptr;  // part that gets room
  std::string next_owner_;      // that it asks
  std::vector<std::function<void()>> waiting_;
};

}  // namespace weir::detail

#endif
