// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_JOB_PROGRESS_HPP
#define WEIR_JOB_PROGRESS_HPP

#include "weir/limits.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace weir {

/// How far a handler has come, for those who watch its job: so many of so many, and a note. A store
/// keeps it as text: `3/10 the third page`.
struct job_progress {
  std::uint64_t done = 0;   ///< how much is done
  std::uint64_t total = 0;  ///< how much there is to do; 0: unknown
  std::string note{};       ///< for people

  friend bool operator==(job_progress const&, job_progress const&) = default;  ///< all of it

  /// As a store keeps it. The note is cut so that it has at most `limits::progress_size` bytes,
  /// never within a character of UTF-8.
  [[nodiscard]] std::string text() const {
    auto out = std::to_string(done) + '/' + std::to_string(total);
    if (note.empty()) return out;
    auto room = limits::progress_size - out.size() - 1;
    if (note.size() > room) {
      while (room != 0 && (static_cast<unsigned char>(note[room]) & 0xc0U) == 0x80U) --room;
    }
    return out.append(" ").append(note, 0, room);
  }

  /// Of the text that a store keeps (`job::progress`). Empty: there is none, or it is something
  /// else.
  [[nodiscard]] static std::optional<job_progress> of(std::string_view text) {
    job_progress out;
    auto const* const end = text.data() + text.size();
    auto const [slash, e1] = std::from_chars(text.data(), end, out.done);
    if (e1 != std::errc{} || slash == end || *slash != '/') return std::nullopt;
    auto const [rest, e2] = std::from_chars(slash + 1, end, out.total);
    if (e2 != std::errc{} || (rest != end && *rest != ' ')) return std::nullopt;
    if (rest != end) out.note.assign(rest + 1, end);
    return out;
  }
};

}  // namespace weir

#endif
