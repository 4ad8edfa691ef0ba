// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_CALL_HPP
#define WEIR_STORE_REDIS_CALL_HPP

#include "weir/store/redis/script.hpp"
#include "weir/time.hpp"

#include <boost/hash2/fnv1a.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace weir::detail {

/// A span of time in the server's precision, not shorter than it was: a lease may live longer.
[[nodiscard]] constexpr duration redis_ceil(duration d) noexcept {
  return std::chrono::ceil<std::chrono::microseconds>(d);
}

/// What time a script is told that it is; empty: the server's own.
using redis_now = std::optional<std::int64_t>;

/// Microseconds since 1970 within what the scripts can count with: from 1970 to 2223.
[[nodiscard]] constexpr redis_now redis_time(std::optional<time_point> t) noexcept {
  if (!t) return std::nullopt;
  constexpr std::int64_t latest = 8'000'000'000'000'000;
  auto const micros = std::chrono::floor<std::chrono::microseconds>(t->time_since_epoch()).count();
  return std::clamp<std::int64_t>(micros, 0, latest);
}

/// How the store's keys are called: `{PREFIX:SHARD}:KIND:USER`. The braces are the tag by which a
/// cluster places keys; the first pair counts, so what users write cannot move a key (F27). KIND
/// has no colon, so no two keys are the same that differ in anything.
class redis_names {
 public:
  redis_names(std::string prefix, std::uint32_t shards)
      : prefix_{std::move(prefix)},
        shards_{shards},
        channel_{"{" + prefix_ + "}:hints"} {}

  [[nodiscard]] std::uint32_t shards() const noexcept { return shards_; }

  /// A shard is a matter of the name alone, and of how many there are.
  [[nodiscard]] std::uint32_t shard_of(std::string_view name) const noexcept {
    if (shards_ == 1) return 0;
    boost::hash2::fnv1a_64 hash;
    hash.update(name.data(), name.size());
    return static_cast<std::uint32_t>(hash.result() % shards_);
  }

  /// By what a cluster places the keys of a shard.
  [[nodiscard]] std::string tag(std::uint32_t shard) const {
    return prefix_ + ":" + std::to_string(shard);
  }

  /// The shard of one of the store's keys; empty: it is none.
  [[nodiscard]] std::optional<std::uint32_t> shard_in(std::string_view key) const noexcept {
    auto const end = key.find('}');
    if (end == key.npos || end <= prefix_.size() + 2) return std::nullopt;
    std::uint32_t out = 0;
    auto const* const last = key.data() + end;
    auto const [at, ec] = std::from_chars(key.data() + prefix_.size() + 2, last, out);
    if (ec != std::errc{} || at != last || out >= shards_) return std::nullopt;
    return out;
  }

  /// A key of the shard itself.
  [[nodiscard]] std::string key(std::uint32_t shard, std::string_view kind) const {
    std::string out;
    out.reserve(prefix_.size() + kind.size() + 16);
    out.append("{").append(prefix_).append(":").append(std::to_string(shard)).append("}:");
    out.append(kind);
    return out;
  }
  [[nodiscard]] std::string key(std::uint32_t shard, std::string_view kind,
                                std::string_view user) const {
    auto out = key(shard, kind);
    out.reserve(out.size() + 1 + user.size());
    out.append(":").append(user);
    return out;
  }

  /// Where hints are published.
  [[nodiscard]] std::string const& channel() const noexcept { return channel_; }

 private:
  std::string prefix_;
  std::uint32_t shards_;
  std::string channel_;
};

/// One run of a script: EVALSHA with its keys and arguments.
class redis_call {
 public:
  explicit redis_call(redis_script const& script) : script_{&script}, parts_{script.digest(), {}} {}

  [[nodiscard]] redis_script const& script() const noexcept { return *script_; }

  /// All that follows the command's name; the first is the digest.
  [[nodiscard]] std::vector<std::string> const& parts() {
    parts_[1] = std::to_string(keys_);
    return parts_;
  }

  /// The same with the source in place of the digest, for EVAL.
  [[nodiscard]] std::vector<std::string> const& parts_with_source() {
    parts_[0] = script_->source();
    return parts();
  }

  [[nodiscard]] std::vector<std::string> const& parts_with_digest() {
    parts_[0] = script_->digest();
    return parts();
  }

  /// That of all its keys.
  [[nodiscard]] std::uint32_t shard() const noexcept {
    std::uint32_t out = 0;
    std::string_view const key = parts_[2];
    auto const end = key.find('}');
    auto const begin = key.rfind(':', end) + 1;
    std::from_chars(key.data() + begin, key.data() + end, out);
    return out;
  }

  /// Keys come before all arguments.
  redis_call& key(std::string name) {
    parts_.push_back(std::move(name));
    ++keys_;
    return *this;
  }
  redis_call& arg(std::string_view bytes) {
    parts_.emplace_back(bytes);
    return *this;
  }
  redis_call& arg(std::string bytes) {
    parts_.push_back(std::move(bytes));
    return *this;
  }
  redis_call& arg(char const* text) { return arg(std::string_view{text}); }
  template <std::integral T>
  redis_call& arg(T number) {
    return arg(std::to_string(number));
  }
  /// In microseconds.
  redis_call& arg(duration d) {
    return arg(std::chrono::floor<std::chrono::microseconds>(d).count());
  }
  redis_call& arg(redis_now now) { return now ? arg(*now) : arg(""); }

 private:
  redis_script const* script_;
  std::size_t keys_ = 0;
  std::vector<std::string> parts_;
};

}  // namespace weir::detail

#endif
