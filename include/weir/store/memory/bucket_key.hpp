// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_BUCKET_KEY_HPP
#define WEIR_STORE_MEMORY_BUCKET_KEY_HPP

#include "weir/detail/string_hash.hpp"

#include <boost/hash2/sha2.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir::detail {

using bucket_words = std::array<std::uint64_t, 4>;

/// A key in a fixed size: itself up to 32 bytes, and its SHA-256 beyond. The kind tells which, and
/// how long, so two different keys never are the same (a longer one as surely as SHA-256 has no
/// collision).
class bucket_key {
 public:
  static constexpr std::size_t inline_size = 32;
  static constexpr std::uint8_t digest_kind = inline_size + 1;

  explicit bucket_key(std::string_view text) noexcept {
    if (text.size() <= inline_size) {
      kind_ = static_cast<std::uint8_t>(text.size());
      copy(text);
    } else {
      boost::hash2::sha2_256 sha;
      sha.update(text.data(), text.size());
      auto const digest = sha.result();
      static_assert(sizeof(digest) == sizeof(words_));
      std::memcpy(words_.data(), digest.data(), sizeof(words_));
      kind_ = digest_kind;
    }
  }

  [[nodiscard]] bucket_words const& words() const noexcept { return words_; }

  /// The length of a key that is its own text; `digest_kind` otherwise.
  [[nodiscard]] std::uint8_t kind() const noexcept { return kind_; }

  [[nodiscard]] std::uint64_t hash() const noexcept { return hash(words_, kind_); }

  /// Chooses the shard and the slot, by the secret of this process (F91, F92). Words that only
  /// repeat others are left out.
  [[nodiscard]] static std::uint64_t hash(bucket_words const& words, std::uint8_t kind) noexcept {
    sip_hash all{hash_key()};
    all.add(words[0]);
    if (kind > 8) all.add(words[1]);
    if (kind > 24) all.add(words[2]);
    if (kind > 16) all.add(words[3]);
    return all.end(kind);
  }

 private:
  // The first and the last bytes, which overlap: together with the length they are the text, and
  // there is no loop.
  void copy(std::string_view text) noexcept {
    auto const n = text.size();
    auto const* const first = text.data();
    if (n >= 16) {
      std::memcpy(&words_[0], first, 16);
      std::memcpy(&words_[2], first + n - 16, 16);
    } else if (n >= 8) {
      std::memcpy(&words_[0], first, 8);
      std::memcpy(&words_[1], first + n - 8, 8);
    } else if (n >= 4) {
      std::uint32_t low = 0;
      std::uint32_t high = 0;
      std::memcpy(&low, first, 4);
      std::memcpy(&high, first + n - 4, 4);
      words_[0] = low | std::uint64_t{high} << 32;
    } else if (n > 0) {
      auto const byte = [first](std::size_t i) {
        return std::uint64_t{static_cast<unsigned char>(first[i])};
      };
      words_[0] = byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16;
    }
  }

  bucket_words words_{};
  std::uint8_t kind_ = 0;
};

}  // namespace weir::detail

#endif
