// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_BUCKET_KEY_HPP
#define WEIR_STORE_MEMORY_BUCKET_KEY_HPP

#include <boost/container_hash/hash.hpp>
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
      std::memcpy(words_.data(), text.data(), text.size());
      kind_ = static_cast<std::uint8_t>(text.size());
    } else {
      boost::hash2::sha2_256 sha;
      sha.update(text.data(), text.size());
      auto const digest = sha.result();
      static_assert(sizeof(digest) == sizeof(words_));
      std::memcpy(words_.data(), digest.data(), sizeof(words_));
      kind_ = digest_kind;
    }
    hash_ = hash(words_, kind_);
  }

  [[nodiscard]] bucket_words const& words() const noexcept { return words_; }

  /// The length of a key that is its own text; `digest_kind` otherwise.
  [[nodiscard]] std::uint8_t kind() const noexcept { return kind_; }

  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

  /// Where keys that are crafted to share a hash can do no more harm than make each other's shard
  /// slow by microseconds, no secret is needed.
  [[nodiscard]] static std::uint64_t hash(bucket_words const& words, std::uint8_t kind) noexcept {
    if (kind == digest_kind) return words[0];
    auto const* const text = reinterpret_cast<char const*>(words.data());
    return boost::hash_range(text, text + kind);
  }

 private:
  bucket_words words_{};
  std::uint64_t hash_ = 0;
  std::uint8_t kind_ = 0;
};

}  // namespace weir::detail

#endif
