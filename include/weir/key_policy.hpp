// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_KEY_POLICY_HPP
#define WEIR_KEY_POLICY_HPP

#include <boost/hash2/sha2.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

/// @file
/// How a rate limiter's keys are given to its store. Callers' keys are often secrets (bearer
/// tokens, API keys, addresses), so by default a store sees only their digests.

namespace weir {

/// Turns a caller's key into a store's: an owning value, whose `view()` is empty if and only if the
/// caller's key is, so that an empty key is `errc::invalid_key` under every policy. The same key
/// always becomes the same.
template <class P>
concept key_policy = std::copy_constructible<P> && requires(P const& policy, std::string_view key) {
  { policy(key).view() } -> std::convertible_to<std::string_view>;
  requires std::move_constructible<decltype(policy(key))>;
};

/// 32 bytes, or none for an empty key.
class digest_key {
 public:
  /// Of an empty key.
  digest_key() = default;
  /// Of a digest.
  explicit digest_key(boost::hash2::digest<32> const& digest) noexcept : size_{bytes_.size()} {
    std::memcpy(bytes_.data(), digest.data(), bytes_.size());
  }
  /// The bytes that the store is given: all 32, or none. The view lives as long as this.
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.data(), size_}; }

 private:
  std::array<char, 32> bytes_{};
  std::size_t size_ = 0;
};

/// Keys are stored as their SHA-256 (FIPS 180-4), keys of any length in 32 bytes. A reader of the
/// store cannot read the keys, but can tell whether a guessed key is among them: where keys can be
/// guessed, use `hmac_key`.
class sha256_key {
 public:
  /// The digest of a key.
  [[nodiscard]] digest_key operator()(std::string_view key) const noexcept {
    if (key.empty()) return {};
    boost::hash2::sha2_256 hash;
    hash.update(key.data(), key.size());
    return digest_key{hash.result()};
  }
};

/// Keys are stored as their HMAC-SHA-256 (RFC 2104) under a secret: without it, guesses cannot be
/// tried either. Limiters with different secrets share no bucket.
class hmac_key {
 public:
  /// @param secret any bytes, not kept as they are; as good as random, and 32 bytes or more, to be
  /// of use
  explicit hmac_key(std::string_view secret) noexcept : keyed_{secret.data(), secret.size()} {}

  /// The keyed digest of a key.
  [[nodiscard]] digest_key operator()(std::string_view key) const noexcept {
    if (key.empty()) return {};
    auto hash = keyed_;
    hash.update(key.data(), key.size());
    return digest_key{hash.result()};
  }

 private:
  boost::hash2::hmac_sha2_256 keyed_;
};

/// Keys are stored as they are, visible to whoever can read the store, and 1…`limits::key_size`
/// bytes long. The fastest.
class raw_key {
 public:
  /// A copy: short keys are kept without an allocation.
  class copy {
   public:
    /// Copies the key.
    explicit copy(std::string_view key) : size_{key.size()} {
      if (size_ > short_.size()) {
        long_ = key;
      } else if (size_ != 0) {
        std::memcpy(short_.data(), key.data(), size_);
      }
    }
    /// The key. It lives as long as this, and is not moved with it.
    [[nodiscard]] std::string_view view() const noexcept {
      return {size_ > short_.size() ? long_.data() : short_.data(), size_};
    }

   private:
    std::size_t size_;
    std::array<char, 48> short_;
    std::string long_{};
  };

  /// The key itself, not copied: for steps that are over before the caller goes on.
  class reference {
   public:
    /// The key must outlive it.
    explicit reference(std::string_view key) noexcept : text_{key} {}
    /// The key.
    [[nodiscard]] std::string_view view() const noexcept { return text_; }

   private:
    std::string_view text_;
  };

  /// A copy of the key.
  [[nodiscard]] copy operator()(std::string_view key) const { return copy{key}; }
  /// The key itself, which must outlive the result.
  [[nodiscard]] reference borrow(std::string_view key) const noexcept { return reference{key}; }
};

static_assert(key_policy<sha256_key> && key_policy<hmac_key> && key_policy<raw_key>);

}  // namespace weir

#endif
