// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_RESP_HPP
#define WEIR_STORE_REDIS_RESP_HPP

#include "weir/store/redis/script.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// The protocol of the server, RESP3. Pure: tests need no server for it.
namespace weir::detail {

/// Kinds of values. What is read alike has one kind: a set is an array here.
enum class redis_kind : std::uint8_t {
  simple_string,
  simple_error,
  blob_string,
  blob_error,
  number,
  doublean,
  boolean,
  null,
  array,
  map,
  push,
};

/// One value of a reply. An aggregate is followed by its elements, one level deeper; those of a map
/// are keys and values in turn.
struct redis_value {
  redis_kind data_type = redis_kind::null;
  std::size_t aggregate_size = 1;  ///< elements, or pairs of a map; 1: no aggregate
  std::size_t depth = 0;
  std::string value{};

  [[nodiscard]] bool is_error() const noexcept {
    return data_type == redis_kind::simple_error || data_type == redis_kind::blob_error;
  }
};

/// How large a reply may be: what is larger is not read.
struct redis_bounds {
  std::size_t bytes;  ///< as it travels
  std::size_t nodes;

  /// Enough for a reply with texts of so many bytes in all, or for so many replies in one. A line
  /// of a reply is framed by fewer bytes than its own texts and `fixed`, and has fewer nodes than
  /// `nodes`.
  [[nodiscard]] static constexpr redis_bounds of(std::size_t texts,
                                                 std::size_t replies = 1) noexcept {
    constexpr std::size_t fixed = std::size_t{64} << 10U;
    constexpr std::size_t least = 1024;
    constexpr std::size_t most_nodes = 100'000;  // of 10,000 jobs, or a cluster of 1,000 nodes
    auto const bytes = replies * fixed + 2 * texts;
    return {bytes, std::min(most_nodes, replies * least + bytes / 8)};
  }
};

/// Reads one reply after the other from bytes as they arrive. It reserves nothing for what a server
/// merely declares, and refuses what exceeds the bounds as soon as it is declared.
class redis_parser {
 public:
  enum class outcome : std::uint8_t { incomplete, complete, refused };

  /// Reads on: `bytes` begins where the last call stopped. After `complete`, `clear` begins the
  /// next reply. What is refused cannot be read on: the connection is of no use.
  [[nodiscard]] outcome read(std::string_view bytes, redis_bounds const& most) {
    consumed_ = 0;
    while (depth_ != 0) {
      auto const rest = bytes.substr(consumed_);
      auto const took = value(rest, most);
      if (took == incomplete) {
        return taken_ + rest.size() > most.bytes ? outcome::refused : outcome::incomplete;
      }
      if (took == refused) return outcome::refused;
      consumed_ += took;
      taken_ += took;
      if (taken_ > most.bytes) return outcome::refused;
    }
    return outcome::complete;
  }

  /// How many bytes the last `read` is done with.
  [[nodiscard]] std::size_t consumed() const noexcept { return consumed_; }
  /// The reply, once it is complete.
  [[nodiscard]] std::span<redis_value const> nodes() const noexcept {
    return std::span{nodes_}.first(used_);
  }

  /// Begins another reply. What has held one keeps its memory for the next, unless that is much.
  void clear() {
    constexpr std::size_t much = std::size_t{1} << 18U;
    if (taken_ > much) nodes_ = {};
    used_ = taken_ = 0;
    owed_ = 1;
    missing_[0] = depth_ = 1;
  }

 private:
  static constexpr std::size_t incomplete = 0;
  static constexpr std::size_t refused = static_cast<std::size_t>(-1);
  static constexpr std::size_t deepest = 8;

  /// Takes the next value, or the beginning of an aggregate; how many bytes that is, or one of the
  /// two above.
  std::size_t value(std::string_view rest, redis_bounds const& most) {
    constexpr std::size_t longest_line = std::size_t{16} << 10U;
    auto const end = rest.substr(0, longest_line).find('\n');
    if (end == rest.npos) return rest.size() >= longest_line ? refused : incomplete;
    if (end < 2 || rest[end - 1] != '\r' || used_ >= most.nodes) return refused;
    auto const line = rest.substr(1, end - 2);
    auto const size = end + 1;
    switch (rest.front()) {
      case '+': return scalar(redis_kind::simple_string, line, size);
      case '-': return scalar(redis_kind::simple_error, line, size);
      case ':':
      case '(': return scalar(redis_kind::number, line, size);
      case ',': return scalar(redis_kind::doublean, line, size);
      case '#': return scalar(redis_kind::boolean, line, size);
      case '_': return scalar(redis_kind::null, line, size);
      case '$':
      case '=': return blob(redis_kind::blob_string, rest, line, size, most);
      case '!': return blob(redis_kind::blob_error, rest, line, size, most);
      case '*':
      case '~': return aggregate(redis_kind::array, line, size, most);
      case '%': return aggregate(redis_kind::map, line, size, most);
      case '>': return aggregate(redis_kind::push, line, size, most);
      default: return refused;  // streams and attributes, which nobody asks for, included
    }
  }

  static bool number(std::string_view line, std::size_t& out) noexcept {
    auto const* const end = line.data() + line.size();
    auto const [at, ec] = std::from_chars(line.data(), end, out);
    return ec == std::errc{} && at == end;
  }

  redis_value& add(redis_kind kind, std::size_t elements) {
    if (used_ == nodes_.size()) nodes_.emplace_back();
    auto& out = nodes_[used_++];
    out.data_type = kind;
    out.aggregate_size = elements;
    out.depth = depth_ - 1;
    out.value.clear();
    --owed_;
    return out;
  }

  /// A value is there as a whole, and so may be the aggregates that end with it.
  void close_value() noexcept {
    while (depth_ != 0 && --missing_[depth_ - 1] == 0) --depth_;
  }

  std::size_t scalar(redis_kind kind, std::string_view text, std::size_t size) {
    add(kind, 1).value = text;
    close_value();
    return size;
  }

  std::size_t blob(redis_kind kind, std::string_view rest, std::string_view line, std::size_t size,
                   redis_bounds const& most) {
    std::size_t length = 0;
    if (!number(line, length) || length > most.bytes - std::min(taken_, most.bytes)) {
      return refused;
    }
    if (rest.size() - size < length + 2) return incomplete;
    if (rest.substr(size + length, 2) != "\r\n") return refused;
    return scalar(kind, rest.substr(size, length), size + length + 2);
  }

  std::size_t aggregate(redis_kind kind, std::string_view line, std::size_t size,
                        redis_bounds const& most) {
    std::size_t count = 0;
    if (!number(line, count) || count > most.nodes) return refused;
    if (kind == redis_kind::map) count *= 2;
    if (used_ + owed_ + count > most.nodes) return refused;
    if (kind == redis_kind::push && depth_ != 1) return refused;
    add(kind, kind == redis_kind::map ? count / 2 : count);
    if (count == 0) {
      close_value();
    } else if (depth_ == deepest) {
      return refused;
    } else {
      missing_[depth_++] = count;
      owed_ += count;
    }
    return size;
  }

  std::vector<redis_value> nodes_;
  std::size_t used_ = 0;
  std::size_t owed_ = 1;                         // values that are declared and not there yet
  std::size_t taken_ = 0;                        // bytes of this reply
  std::size_t consumed_ = 0;                     // bytes by the last call
  std::size_t depth_ = 1;                        // of the next value; 0: the reply is complete
  std::array<std::size_t, deepest> missing_{1};  // values, of each level
};

/// Commands as they travel.
class redis_wire {
 public:
  /// Adds a command of these parts: texts and numbers.
  template <class... Args>
  void push(std::string_view command, Args const&... args) {
    begin(1 + sizeof...(args));
    part(command);
    (part(args), ...);
  }
  /// Adds a command of so many parts that are encoded already.
  template <class... Pieces>
  void push_encoded(std::size_t parts, Pieces const&... pieces) {
    begin(parts);
    (payload_.append(pieces), ...);
  }

  /// Adds more parts of the last command, which are encoded already, too.
  void append(std::string_view encoded) { payload_.append(encoded); }

  [[nodiscard]] std::string const& payload() const noexcept { return payload_; }
  [[nodiscard]] std::size_t commands() const noexcept { return commands_; }

  /// Makes it as good as new; it keeps its memory, unless that is much.
  void clear() noexcept {
    constexpr std::size_t much = std::size_t{1} << 20U;
    if (payload_.capacity() > much) payload_ = {};
    payload_.clear();
    commands_ = 0;
  }

 private:
  void begin(std::size_t parts) {
    ++commands_;
    redis_count(payload_, '*', parts);
  }
  void part(std::string_view text) { redis_bulk(payload_, text); }
  template <std::integral T>
  void part(T number) {
    redis_bulk(payload_, std::to_string(number));
  }

  std::string payload_;
  std::size_t commands_ = 0;
};

/// Takes the replies to what was sent together, one after the other.
class redis_receiver {
 public:
  redis_receiver() = default;
  redis_receiver(redis_receiver const&) = delete;
  redis_receiver& operator=(redis_receiver const&) = delete;

  /// Of the next reply.
  [[nodiscard]] virtual redis_bounds bounds() const noexcept = 0;
  virtual void reply(std::span<redis_value const> nodes) = 0;

 protected:
  ~redis_receiver() = default;
};

}  // namespace weir::detail

#endif
