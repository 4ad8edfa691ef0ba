// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_COMPACT_HPP
#define WEIR_STORE_NATS_COMPACT_HPP

#include "weir/job.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

// What the log of a shard and its images are written in: numbers of seven bits to the byte, the
// lowest first, so that small ones are short; texts behind their lengths.
namespace weir::detail {

/// Bytes of the largest number.
inline constexpr std::size_t longest_compact = 10;

class compact_writer {
 public:
  explicit compact_writer(std::string& to) noexcept : to_{to} {}

  void operator()(std::unsigned_integral auto n) {
    std::uint64_t rest = n;
    std::array<char, longest_compact> bytes;
    std::size_t size = 0;
    for (; rest > 0x7fU; rest >>= 7U) bytes[size++] = static_cast<char>((rest & 0x7fU) | 0x80U);
    bytes[size++] = static_cast<char>(rest);
    to_.append(bytes.data(), size);
  }
  /// The sign goes last, so that what is near zero is short.
  void operator()(std::int64_t n) {
    auto const twice = static_cast<std::uint64_t>(n) << 1U;
    (*this)(n < 0 ? ~twice : twice);
  }
  template <class E>
    requires std::is_enum_v<E>
  void operator()(E e) {
    (*this)(static_cast<std::uint64_t>(e));
  }
  void operator()(duration d) { (*this)(std::int64_t{d.count()}); }
  void operator()(time_point t) { (*this)(t.time_since_epoch()); }
  void operator()(job_id const& id) {
    for (auto const byte : id) to_ += static_cast<char>(byte);
  }
  void operator()(std::string_view t) {
    (*this)(t.size());
    to_ += t;
  }

 private:
  std::string& to_;
};

/// Reads what the writer wrote. What is not there, or could not have been written, reads as
/// nothing, and `good` says so. Texts view what is read from.
class compact_reader {
 public:
  explicit compact_reader(std::string_view from) noexcept : from_{from} {}

  template <std::unsigned_integral T>
  void operator()(T& out) noexcept {
    auto const n = number();
    good_ = good_ && n <= std::numeric_limits<T>::max();
    out = good_ ? static_cast<T>(n) : T{};
  }
  void operator()(std::int64_t& out) noexcept {
    auto const n = number();
    auto const half = static_cast<std::int64_t>(n >> 1U);
    out = (n & 1U) != 0 ? ~half : half;
  }
  void operator()(duration& out) noexcept {
    std::int64_t n = 0;
    (*this)(n);
    out = duration{n};
  }
  void operator()(time_point& out) noexcept {
    duration d{};
    (*this)(d);
    out = time_point{d};
  }
  void operator()(job_id& out) noexcept {
    if (!has(out.size())) return;
    std::copy_n(from_.begin(), out.size(), out.begin());
    from_.remove_prefix(out.size());
  }
  void operator()(std::string_view& out) noexcept {
    auto const size = number();
    out = {};
    if (!has(size)) return;
    out = from_.substr(0, static_cast<std::size_t>(size));
    from_.remove_prefix(out.size());
  }
  void operator()(std::string& out) {
    std::string_view text;
    (*this)(text);
    out = text;
  }
  /// An enumerator from the first one to `last`.
  template <class E>
    requires std::is_enum_v<E>
  void operator()(E& out, E last) noexcept {
    auto const n = number();
    good_ = good_ && n <= static_cast<std::uint64_t>(last);
    out = good_ ? static_cast<E>(n) : E{};
  }

  /// How many elements follow: no more than there are bytes, so that nobody makes room for what
  /// cannot come.
  [[nodiscard]] std::size_t count() noexcept {
    auto const n = number();
    good_ = good_ && n <= from_.size();
    return good_ ? static_cast<std::size_t>(n) : 0;
  }

  /// What was read cannot be.
  void refuse() noexcept { good_ = false; }
  /// All that was not read yet.
  [[nodiscard]] std::string_view rest() const noexcept { return from_; }
  [[nodiscard]] std::size_t left() const noexcept { return from_.size(); }
  [[nodiscard]] bool good() const noexcept { return good_; }
  /// All was read, and all was there.
  [[nodiscard]] bool complete() const noexcept { return good_ && from_.empty(); }

 private:
  [[nodiscard]] bool has(std::uint64_t size) noexcept {
    good_ = good_ && size <= from_.size();
    return good_;
  }
  [[nodiscard]] std::uint64_t number() noexcept {
    std::uint64_t n = 0;
    auto const most = good_ ? std::min(from_.size(), longest_compact) : 0;
    for (std::size_t i = 0; i != most; ++i) {
      auto const byte = static_cast<unsigned char>(from_[i]);
      // There is one way to write a number.
      if ((i == longest_compact - 1 && byte > 1) || (byte == 0 && i != 0)) break;
      n |= (byte & std::uint64_t{0x7f}) << (7 * i);
      if (byte > 0x7fU) continue;
      from_.remove_prefix(i + 1);
      return n;
    }
    good_ = false;
    return 0;
  }

  std::string_view from_;
  bool good_ = true;
};

}  // namespace weir::detail

#endif
