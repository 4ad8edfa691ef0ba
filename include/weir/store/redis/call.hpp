// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_CALL_HPP
#define WEIR_STORE_REDIS_CALL_HPP

#include "weir/detail/whole_number.hpp"
#include "weir/rule/shards.hpp"
#include "weir/store/redis/resp.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  /// @param process names the channels on which nobody but this process listens
  /// @param max_buckets as `redis_options` has it
  redis_names(std::string const& prefix, std::uint32_t shards, std::string process = {},
              std::size_t max_buckets = 0)
      : process_{std::move(process)},
        max_buckets_{max_buckets} {
    heads_.reserve(shards);
    for (std::uint32_t i = 0; i != shards; ++i) {
      heads_.push_back("{" + prefix + ":" + std::to_string(i) + "}:");
    }
  }

  [[nodiscard]] std::uint32_t shards() const noexcept {
    return static_cast<std::uint32_t>(heads_.size());
  }

  [[nodiscard]] std::uint32_t shard_of(std::string_view name) const noexcept {
    return rule::shard_of(name, heads_.size());
  }

  /// What the keys of a shard begin with. The shard is one of those that there are.
  [[nodiscard]] std::string_view head(std::uint32_t shard) const noexcept { return heads_[shard]; }

  /// By what a cluster places the keys of a shard: what is between the braces.
  [[nodiscard]] std::string_view tag(std::uint32_t shard) const noexcept {
    auto const whole = head(shard);
    return whole.substr(1, whole.size() - 3);
  }

  /// The shard of one of the store's keys; empty: it is none.
  [[nodiscard]] std::optional<std::uint32_t> shard_in(std::string_view key) const noexcept {
    auto const end = key.find('}');
    auto const begin = key.find_last_of(':', end) + 1;
    if (end == key.npos || begin == 0) return std::nullopt;
    auto const out = whole_number<std::uint32_t>(key.substr(begin, end - begin));
    if (!out || *out >= shards() || !key.starts_with(head(*out))) return std::nullopt;
    return out;
  }

  /// A key of the shard itself.
  [[nodiscard]] std::string key(std::uint32_t shard, std::string_view kind) const {
    std::string out;
    out.reserve(heads_[shard].size() + kind.size());
    out.append(heads_[shard]).append(kind);
    return out;
  }
  [[nodiscard]] std::string key(std::uint32_t shard, std::string_view kind,
                                std::string_view user) const {
    auto out = key(shard, kind);
    out.reserve(out.size() + 1 + user.size());
    out.append(":").append(user);
    return out;
  }

  [[nodiscard]] std::string const& process() const noexcept { return process_; }
  /// Of each shard; 0: there is no bound, and a shard's buckets have no key in common.
  [[nodiscard]] std::size_t max_buckets() const noexcept { return max_buckets_; }

  /// The kind of the key that has a scan's queues, by the instant from which it finds them.
  [[nodiscard]] static constexpr std::string_view due(bool schedules) noexcept {
    return schedules ? "ticks" : "due";
  }

  /// The kind of the key that has the processes which wait in turn for one of those.
  [[nodiscard]] static constexpr std::string_view idle(bool schedules) noexcept {
    return schedules ? "idle_ticks" : "idle";
  }

  /// Where it is published that a shard's queue has become due.
  [[nodiscard]] std::string channel(std::uint32_t shard) const { return key(shard, "hints"); }
  /// The channel, of all shards, on which it is published that a leased job was cancelled, and what
  /// is published there for the holder of its lease.
  [[nodiscard]] std::string cancels() const { return key(0, "cancels"); }
  [[nodiscard]] std::string cancelled(std::string_view holder) const {
    return key(0, "cancels", holder);
  }
  /// Where this process is told that its waiters' turn has come.
  [[nodiscard]] std::string own_channel(std::uint32_t shard) const {
    return key(shard, "hints", process_);
  }
  /// How a waiter of a key's line is named there.
  [[nodiscard]] std::string turn(std::string_view key, std::string_view holder) const {
    auto out = this->key(shard_of(key), "pe", key);
    out.append("|").append(holder);
    return out;
  }

 private:
  std::vector<std::string> heads_;
  std::string process_;
  std::size_t max_buckets_;
};

/// Numbers that travel as one argument, in decimals with a space after each.
class redis_numbers {
 public:
  template <std::integral T>
  redis_numbers& add(T number) {
    constexpr std::size_t most = 24;
    std::array<char, most> digits;
    auto* end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    *end++ = ' ';
    text_.append(digits.data(), end);
    return *this;
  }
  /// In microseconds.
  redis_numbers& add(duration d) {
    return add(std::chrono::floor<std::chrono::microseconds>(d).count());
  }
  [[nodiscard]] std::string const& text() const noexcept { return text_; }

 private:
  std::string text_;
};

/// One run of a script with its keys and arguments, as it travels.
class redis_call {
 public:
  explicit redis_call(redis_script const& script) : script_{&script} { wire_.reserve(usual_size); }

  [[nodiscard]] redis_script const& script() const noexcept { return *script_; }
  /// Whose keys it has.
  [[nodiscard]] std::uint32_t shard() const noexcept { return shard_; }

  /// Of its keys and arguments, as they travel.
  [[nodiscard]] std::size_t bytes() const noexcept { return wire_.size(); }

  /// Adds EVALSHA, or EVAL, to a request.
  void push(redis_wire& to) const { push_as(to, "EVALSHA", script_->encoded_digest()); }
  void push_with_source(redis_wire& to) const {
    std::string source;
    redis_bulk(source, script_->source());
    push_as(to, "EVAL", source);
  }

  /// Can it travel with others, as one call?
  [[nodiscard]] bool joins() const noexcept {
    return merges_ || (head_ != 0 && script_->together() != nullptr);
  }
  /// The same, with this one.
  [[nodiscard]] bool joins(redis_call const& other) const noexcept {
    return script_ == other.script_ && shard_ == other.shard_ && keys_ == other.keys_ &&
           parts_ == other.parts_ && common() == other.common() &&
           (!merges_ || item() != other.item());
  }
  /// Is it merged with others, by a script that takes any number? Then its answer is an array, to
  /// which each of them contributes as much.
  [[nodiscard]] bool merges() const noexcept { return merges_; }
  /// By which script it travels with others.
  [[nodiscard]] redis_script const& joined_script() const noexcept {
    return merges_ ? *script_ : *script_->together();
  }
  /// The first of its keys, which it is about. Calls about another one may overtake it.
  [[nodiscard]] std::string_view about() const noexcept {
    return std::string_view{wire_}.substr(0, first_key_);
  }

  /// Adds several that `joins` says yes to, of which there are two at least.
  ///
  /// @param known whether the server knows their script; otherwise it comes along
  template <class Calls>
  static void push_together(redis_wire& to, Calls const& calls, bool known) {
    redis_call const& first = *calls.front();
    bool const timed = first.time_.second != 0;
    auto const own_keys = first.keys_ - static_cast<std::size_t>(timed);
    std::size_t keys = first.keys_;
    std::size_t parts = first.head_parts_;
    if (!first.merges_) {
      keys = own_keys * calls.size() + static_cast<std::size_t>(timed);
      parts = keys + 2;
    }
    parts += (first.parts_ - first.head_parts_) * calls.size();
    std::string head;
    redis_bulk(head, known ? "EVALSHA" : "EVAL");
    redis_bulk(head, known ? first.joined_script().digest() : first.joined_script().source());
    redis_bulk(head, std::to_string(keys));
    to.push_encoded(3 + parts, head);
    if (first.merges_) {
      to.append(first.common());
    } else {
      for (auto const* const c : calls) to.append(c->wire_view().substr(0, c->own_keys_));
      std::string n;
      redis_bulk(n, std::to_string(calls.size()));
      to.append(first.common());
      to.append(n);
    }
    for (auto const* const c : calls) to.append(c->wire_view().substr(c->head_));
  }

  /// All that follows EVALSHA, one by one.
  [[nodiscard]] std::vector<std::string> parts() const {
    std::vector<std::string> out{script_->digest(), std::to_string(keys_)};
    for (std::string_view rest = wire_; !rest.empty();) {
      auto const end = rest.find('\r');
      std::size_t size = 0;
      std::from_chars(rest.data() + 1, rest.data() + end, size);
      out.emplace_back(rest.substr(end + 2, size));
      rest.remove_prefix(end + 2 + size + 2);
    }
    return out;
  }

  /// Keys come before all arguments, and all of them are of one shard.
  redis_call& key(std::string_view name) {
    arg(name);
    return keyed();
  }
  redis_call& key(redis_names const& names, std::uint32_t shard, std::string_view kind) {
    shard_ = shard;
    whole(names.head(shard), kind);
    return keyed();
  }
  redis_call& key(redis_names const& names, std::uint32_t shard, std::string_view kind,
                  std::string_view user) {
    shard_ = shard;
    whole(names.head(shard), kind, ":", user);
    return keyed();
  }

  redis_call& arg(std::string_view bytes) { return whole(bytes); }
  redis_call& arg(std::string const& bytes) { return whole(bytes); }
  redis_call& arg(char const* text) { return whole(std::string_view{text}); }
  template <std::integral T>
  redis_call& arg(T number) {
    constexpr std::size_t most = 24;
    std::array<char, most> digits;
    auto const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return whole(std::string_view{digits.data(), static_cast<std::size_t>(end - digits.data())});
  }
  /// In microseconds.
  redis_call& arg(duration d) {
    return arg(std::chrono::floor<std::chrono::microseconds>(d).count());
  }
  /// Ends the keys with that of the shard's time. What time it is.
  redis_call& time(redis_names const& names, redis_now now) {
    own_keys_ = wire_.size();
    if (now) {
      arg(*now);
    } else {
      key(names, shard_, "time");
      time_ = {own_keys_, wire_.size() - own_keys_};
      arg("");
    }
    head_ = wire_.size();
    head_parts_ = parts_;
    return *this;
  }
  /// Ends what calls of the script have in common that are about one thing: it takes what follows,
  /// which begins with an id, of any number of them with different ids.
  redis_call& merges_from_here() {
    own_keys_ = 0;
    head_ = wire_.size();
    head_parts_ = parts_;
    merges_ = true;
    return *this;
  }
  /// Leaves it with one key, if it can do without the shard's time: while a slot moves its keys may
  /// be in two places. False: it cannot, or had no other.
  bool leave_time_out() {
    if (keys_ != 2 || time_.second == 0) return false;
    auto const [from, size] = std::exchange(time_, {});
    wire_.erase(from, size);
    --keys_;
    --parts_;
    head_ = 0;
    is_timeless_ = true;
    return true;
  }
  [[nodiscard]] bool is_timeless() const noexcept { return is_timeless_; }

  /// An argument of several pieces.
  template <class... Pieces>
  redis_call& whole(Pieces const&... pieces) {
    ++parts_;
    redis_count(wire_, '$', (std::string_view{pieces}.size() + ...));
    (wire_.append(pieces), ...);
    wire_.append("\r\n", 2);
    return *this;
  }

 private:
  static constexpr std::size_t usual_size = 768;

  redis_call& keyed() noexcept {
    if (++keys_ == 1) first_key_ = wire_.size();
    return *this;
  }

  [[nodiscard]] std::string_view wire_view() const noexcept { return wire_; }
  /// The id with which that begins which is to be merged, as it travels.
  [[nodiscard]] std::string_view item() const noexcept {
    constexpr std::size_t size = 5 + 16 + 2;
    return wire_view().substr(head_, size);
  }
  /// The part that all of those have which travel as one.
  [[nodiscard]] std::string_view common() const noexcept {
    return wire_view().substr(own_keys_, head_ - own_keys_);
  }

  void push_as(redis_wire& to, std::string_view command, std::string_view script) const {
    std::string head;
    redis_bulk(head, command);
    head.append(script);
    redis_bulk(head, std::to_string(keys_));
    to.push_encoded(3 + parts_, head, wire_);
  }

  redis_script const* script_;
  std::uint32_t shard_ = 0;
  std::size_t keys_ = 0;
  std::size_t parts_ = 0;
  std::pair<std::size_t, std::size_t> time_{};  // where its key is, and how long; none: {}
  std::size_t first_key_ = 0;                   // where it ends
  std::size_t own_keys_ = 0;                    // where they end that others do not have as well
  std::size_t head_ = 0;                        // where that ends which others have, too
  std::size_t head_parts_ = 0;
  bool merges_ = false;
  bool is_timeless_ = false;
  std::string wire_;
};

}  // namespace weir::detail

#endif
