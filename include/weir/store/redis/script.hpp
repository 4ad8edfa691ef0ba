// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_SCRIPT_HPP
#define WEIR_STORE_REDIS_SCRIPT_HPP

#include <boost/hash2/sha1.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

// The scripts that the server runs, one for each command. They restate weir/rule/*, and the same
// tests hold them to it.
//
// What all of them keep to:
// - A key is named by KEYS alone. All of a command's keys have the tag of one shard, and so one
//   cluster slot.
// - Times are whole microseconds in a double, which is exact up to the year 2255. They are sent and
//   kept as decimals, written by '%d' or by the server's own conversion: Lua's `..` and
//   `tostring` would round them.
// - The server's clock decides, unless ARGV[1] says what time it is.
// - What is read and written has the expected type, or nothing was written before that shows: a
//   script that fails half-way keeps its first writes (F53).
// - The work is bounded by what the caller asked for, whatever is kept.
namespace weir::detail {

/// The largest number that scripts count with: below it, a double is exact.
inline constexpr std::int64_t redis_exact = std::int64_t{1} << 53;
/// How far ahead of a clock that may be right a time may have been noted, in microseconds: ten
/// years. One that is farther was not.
inline constexpr std::int64_t redis_farthest = 315'360'000'000'000;
/// The beginning of 2025. A clock that shows less is wrong: so one without a battery begins in
/// 1970.
inline constexpr std::int64_t redis_past = 1'735'689'600'000'000;
/// How old the noted time is at most when a script runs on, in microseconds.
inline constexpr std::int64_t redis_noted = 200'000;
/// How far fences go ahead of a time that is behind the noted one, or goes on from it, in
/// microseconds: a replica may lack what was written last, a note of a later time among it.
inline constexpr std::int64_t redis_lead = 2'000'000;
/// So many fields may go at once, when their time comes: what has more is removed in pieces (F80).
inline constexpr std::int64_t redis_whole = 10'000;
/// So many of what time has ended one run of the housekeeping removes.
inline constexpr std::int64_t redis_piece = 250;

/// A number behind a letter, such as how many bytes or elements follow, and the end of its line.
inline void redis_count(std::string& to, char kind, std::size_t n) {
  constexpr std::size_t most = 24;
  std::array<char, most> line{kind};
  auto* end = std::to_chars(line.data() + 1, line.data() + line.size(), n).ptr;
  *end++ = '\r';
  *end++ = '\n';
  to.append(line.data(), end);
}
/// A string of any bytes.
inline void redis_bulk(std::string& to, std::string_view bytes) {
  redis_count(to, '$', bytes.size());
  to.append(bytes).append("\r\n", 2);
}

/// A script and the digest by which the server knows it.
class redis_script {
 public:
  redis_script(std::initializer_list<std::string_view> parts) {
    for (auto const part : parts) source_ += part;
    name();
  }

  /// One of which several calls can travel as one: `once` is done once for all of them, and `each`
  /// for each, between `begin` and `end` (see shared/together.lua).
  redis_script(std::initializer_list<std::string_view> once,
               std::initializer_list<std::string_view> each, std::string_view begin,
               std::string_view end) {
    std::string together;
    for (auto const part : once) together += part;
    source_ = together + "\nlocal together\n";
    together += begin;
    for (auto const part : each) {
      source_ += part;
      together += part;
    }
    name();
    together_ = std::make_unique<redis_script const>(
        std::initializer_list<std::string_view>{together, end});
  }

  /// The script for several calls at once; null: there is none.
  [[nodiscard]] redis_script const* together() const noexcept { return together_.get(); }

  [[nodiscard]] std::string const& source() const noexcept { return source_; }
  [[nodiscard]] std::string const& digest() const noexcept { return digest_; }
  [[nodiscard]] std::string const& encoded_digest() const noexcept { return encoded_digest_; }

 private:
  void name() {
    boost::hash2::sha1_160 hash;
    hash.update(source_.data(), source_.size());
    constexpr std::string_view digits = "0123456789abcdef";
    for (unsigned char const byte : hash.result()) {
      digest_ += digits[byte >> 4U];
      digest_ += digits[byte & 15U];
    }
    redis_bulk(encoded_digest_, digest_);
  }

  std::string source_;
  std::string digest_;
  std::string encoded_digest_;
  std::unique_ptr<redis_script const> together_;
};

}  // namespace weir::detail

#endif
