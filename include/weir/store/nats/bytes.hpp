// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_BYTES_HPP
#define WEIR_STORE_NATS_BYTES_HPP

#include <boost/endian/conversion.hpp>
#include <boost/hash2/fnv1a.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

// What the records of the store are written in: little-endian numbers of 64 bits, and texts behind
// their lengths.
namespace weir::detail {

/// Of the numbers in a record that grow, such as fences: more is damage, and would come to an end
/// (F97).
inline constexpr std::uint64_t nats_largest_number = std::uint64_t{1} << 62U;

/// Reads a decimal number, and nothing beside it.
template <class T>
[[nodiscard]] bool nats_digits(std::string_view text, T& out) noexcept {
  auto const [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  return ec == std::errc{} && end == text.data() + text.size();
}

/// Tells what was damaged from what was written.
[[nodiscard]] inline std::uint64_t nats_checksum(std::string_view of) noexcept {
  boost::hash2::fnv1a_64 hash;
  hash.update(of.data(), of.size());
  return hash.result();
}

class nats_writer {
 public:
  explicit nats_writer(std::string& to) noexcept : to_{to} {}

  void number(std::uint64_t n) {
    unsigned char bytes[sizeof(n)];
    boost::endian::store_little_u64(bytes, n);
    to_.append(reinterpret_cast<char const*>(bytes), sizeof(n));
  }
  void number(std::int64_t n) { number(static_cast<std::uint64_t>(n)); }
  void text(std::string_view t) {
    number(std::uint64_t{t.size()});
    to_.append(t);
  }

 private:
  std::string& to_;
};

/// Reads what the writer wrote. What is not there reads as nothing, and `good` says so.
class nats_reader {
 public:
  explicit nats_reader(std::string_view from) noexcept : from_{from} {}

  [[nodiscard]] std::uint64_t number() noexcept {
    std::uint64_t n = 0;
    if (!has(sizeof(n))) return 0;
    n = boost::endian::load_little_u64(reinterpret_cast<unsigned char const*>(from_.data()));
    from_.remove_prefix(sizeof(n));
    return n;
  }
  [[nodiscard]] std::int64_t signed_number() noexcept {
    return static_cast<std::int64_t>(number());
  }
  [[nodiscard]] std::string_view text() noexcept {
    auto const size = number();
    if (!has(size)) return {};
    auto const out = from_.substr(0, static_cast<std::size_t>(size));
    from_.remove_prefix(out.size());
    return out;
  }

  /// All that was not read yet.
  [[nodiscard]] std::string_view rest() const noexcept {
    return good_ ? from_ : std::string_view{};
  }
  [[nodiscard]] std::size_t left() const noexcept { return from_.size(); }
  [[nodiscard]] bool good() const noexcept { return good_; }
  /// All was read, and all was there.
  [[nodiscard]] bool complete() const noexcept { return good_ && from_.empty(); }

 private:
  bool has(std::uint64_t size) noexcept {
    good_ = good_ && size <= from_.size();
    return good_;
  }

  std::string_view from_;
  bool good_ = true;
};

}  // namespace weir::detail

#endif
