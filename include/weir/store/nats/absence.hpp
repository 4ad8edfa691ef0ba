// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_ABSENCE_HPP
#define WEIR_STORE_NATS_ABSENCE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace weir::detail {

/// To which request nobody listened: a stream without a leader, or JetStream that is off. The
/// server says so at once, but the client tells only that it was said, and not of which request.
///
/// Where that is not clear, each request is from then on followed by a marker, a message of this
/// client to itself. A server takes what a client says in order, so what it says between two
/// markers is of the request between them. Requests are numbered without gaps. Of those before the
/// first marker only their number is known: if it is that of all which have no answer, it is them.
class nats_absence {
 public:
  nats_absence() = default;
  /// @param always each request is marked from the first one on
  explicit nats_absence(bool always) noexcept : always_{always}, marking_{always} {
    if (always) passed_ = 0;
  }

  /// Are markers to be sent?
  [[nodiscard]] bool marking() const noexcept { return marking_; }

  /// Nobody listened to one of the requests up to this one: from here on they are marked.
  void begin(std::uint64_t last) noexcept {
    marking_ = true;
    unclear_ = 1;
    since_ = last;
    passed_.reset();
    quiet_ = 0;
  }
  void end() noexcept { marking_ = false; }

  /// The marker of this request has come. Returns to how many of the requests up to it nobody
  /// listened, if that is not known of each.
  [[nodiscard]] std::size_t passed(std::uint64_t id) noexcept {
    if (!marking_ || id < since_) return 0;
    passed_ = id;
    if (++quiet_ > most_quiet && !always_) end();
    return std::exchange(unclear_, 0);
  }

  /// Where each request is marked: the marker of this request has come. Was it the one to which
  /// nobody listened?
  [[nodiscard]] bool passed_alone(std::uint64_t id) noexcept {
    bool const alone = unclear_ == 1 && passed_ && id == *passed_ + 1;
    passed_ = id;
    unclear_ = 0;
    return alone;
  }
  /// Nobody listened to one more of them. To which? Empty: that is not known.
  [[nodiscard]] std::optional<std::uint64_t> missed() noexcept {
    quiet_ = 0;
    if (marking_ && passed_ && !always_) return *passed_ + 1;
    if (marking_) ++unclear_;
    return std::nullopt;
  }

 private:
  static constexpr int most_quiet = 64;  // markers without an absence: it has passed

  bool always_ = false;
  bool marking_ = false;
  int quiet_ = 0;
  std::uint64_t since_ = 0;
  std::size_t unclear_ = 0;
  std::optional<std::uint64_t> passed_{};
};

}  // namespace weir::detail

#endif
