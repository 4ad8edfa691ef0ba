// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Keys on their way into a store: what a policy makes of them, and the fixed size that the memory
// store keeps. Two keys never share a bucket (F27), so whatever can be undone is undone here.

#include "input.hpp"
#include "weir/key_policy.hpp"
#include "weir/store/memory/bucket_key.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace {

using weir::detail::bucket_key;

/// The text of a key that is kept as it is.
std::string text_of(bucket_key const& key) {
  auto const& words = key.words();
  std::size_t const n = key.kind();
  std::string out(n, '?');
  auto const put = [&](std::size_t at, void const* from, std::size_t size) {
    std::memcpy(out.data() + at, from, size);
  };
  if (n >= 16) {
    put(0, &words[0], 16);
    put(n - 16, &words[2], 16);
  } else if (n >= 8) {
    put(0, &words[0], 8);
    put(n - 8, &words[1], 8);
  } else if (n >= 4) {
    auto const low = static_cast<std::uint32_t>(words[0]);
    auto const high = static_cast<std::uint32_t>(words[0] >> 32U);
    put(0, &low, 4);
    put(n - 4, &high, 4);
  } else {
    for (std::size_t const i : {std::size_t{0}, n / 2, n - 1}) {
      if (i < n) out[i] = static_cast<char>(words[0] >> (i == 0 ? 0 : i == n / 2 ? 8 : 16));
    }
  }
  return out;
}

void check_bucket_key(std::string_view text) {
  bucket_key const key{text};
  bucket_key const again{std::string{text}};
  fuzz::require(key.words() == again.words() && key.kind() == again.kind() &&
                    key.hash() == again.hash(),
                "a key is always encoded the same");
  if (text.size() <= bucket_key::inline_size) {
    fuzz::require(key.kind() == text.size() && text_of(key) == text, "a short key is its own text");
  } else {
    fuzz::require(key.kind() == bucket_key::digest_kind, "a long key is a digest");
    auto const view = weir::sha256_key{}(text);
    fuzz::require(std::memcmp(key.words().data(), view.view().data(), 32) == 0,
                  "the digest is SHA-256");
  }
}

template <class Policy>
void check_policy(Policy const& policy, std::string_view one, std::string_view other) {
  auto const key = policy(one);
  fuzz::require(key.view().empty() == one.empty(), "only an empty key is an empty key");
  fuzz::require(key.view() == policy(std::string{one}).view(), "the same key becomes the same");
  fuzz::require((key.view() == policy(other).view()) == (one == other), "two keys stay two");
  auto moved = policy(one);
  auto const there = std::move(moved);
  fuzz::require(there.view() == key.view(), "a key may be moved");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::input in{data, size};
  auto const split = in.bits<std::uint16_t>();
  auto const text = in.rest();
  auto const one = text.substr(0, split % (text.size() + 1));
  auto const other = text.substr(one.size());

  check_bucket_key(one);
  check_bucket_key(other);
  bucket_key const a{one};
  bucket_key const b{other};
  fuzz::require((a.words() == b.words() && a.kind() == b.kind()) == (one == other),
                "two keys never share a bucket");

  check_policy(weir::sha256_key{}, one, other);
  check_policy(weir::raw_key{}, one, other);
  check_policy(weir::hmac_key{other}, one, other);
  fuzz::require(weir::raw_key{}(one).view() == one && weir::raw_key{}.borrow(one).view() == one,
                "a raw key is the key");
  if (!one.empty() && one != other) {
    // A secret is padded with zeros (RFC 2104), so those that differ in them only are the same.
    auto const bare = [](std::string_view secret) {
      return secret.substr(0, secret.find_last_not_of('\0') + 1);
    };
    auto const digest = weir::hmac_key{one}(one);
    fuzz::require(digest.view() != weir::sha256_key{}(one).view(), "a secret makes a difference");
    if (bare(one) != bare(other) && one.size() <= 64 && other.size() <= 64) {
      fuzz::require(digest.view() != weir::hmac_key{other}(one).view(),
                    "limiters with different secrets share no bucket");
    }
  }
  return 0;
}
