// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_NAMES_HPP
#define WEIR_STORE_NATS_NAMES_HPP

#include "weir/store/nats/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace weir {

namespace detail {

[[nodiscard]] constexpr bool plain_in_nats(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

[[nodiscard]] constexpr bool valid_nats_prefix(std::string_view prefix) noexcept {
  constexpr std::size_t longest = 64;
  return !prefix.empty() && prefix.size() <= longest && std::ranges::all_of(prefix, plain_in_nats);
}

/// Any bytes as one token of a subject: letters, digits, `-` and `_` stand for themselves, every
/// other byte is `=XX`. No two keys have the same token, and none has a dot, a wildcard or a space
/// (F27). A key of `limits::key_size` stays within the 4 KiB that a server allows a subject.
[[nodiscard]] inline std::string nats_token(std::string_view bytes) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(bytes.size() + 8);
  for (char const c : bytes) {
    if (plain_in_nats(c)) {
      out += c;
      continue;
    }
    auto const byte = static_cast<unsigned char>(c);
    out += '=';
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
  return out;
}

/// How the store's stream and subjects are called. A record is `PREFIX.k.KIND.TOKEN`, a hint
/// `PREFIX.h.KIND.TOKEN`, a reply `PREFIX.r.CONNECTION.REQUEST`, a question `PREFIX.q.OWNER`,
/// and what a new owner says to all `PREFIX.h.owner.PART.OWNER`.
class nats_names {
 public:
  explicit nats_names(std::string prefix)
      : prefix_{std::move(prefix)},
        stream_{prefix_ + "-keys"},
        direct_{"$JS.API.DIRECT.GET." + stream_ + "."} {}

  [[nodiscard]] std::string const& prefix() const noexcept { return prefix_; }
  [[nodiscard]] std::string const& stream() const noexcept { return stream_; }
  [[nodiscard]] std::string subjects() const { return prefix_ + ".k.>"; }
  [[nodiscard]] std::string hints() const { return prefix_ + ".h.>"; }
  /// The beginning of the subjects of a connection's replies. They are not in `_INBOX`, where every
  /// user of the account may listen (F95).
  [[nodiscard]] std::string replies() const { return prefix_ + ".r."; }
  [[nodiscard]] std::string replies(std::string const& connection) const {
    return replies() + connection + ".";
  }

  [[nodiscard]] std::string record(char kind, std::string_view key) const {
    return prefix_ + ".k." + kind + "." + nats_token(key);
  }
  /// Of the record of that subject.
  [[nodiscard]] std::string hint(std::string const& record) const {
    auto out = record;
    out[prefix_.size() + 1] = 'h';
    return out;
  }
  /// The reverse.
  [[nodiscard]] std::string hinted(std::string_view hint) const {
    std::string out{hint};
    if (out.size() > prefix_.size() + 1) out[prefix_.size() + 1] = 'k';
    return out;
  }

  /// The hint that a job was cancelled which the holder has a lease of.
  [[nodiscard]] std::string cancelled(std::string_view holder) const {
    return hint(record('c', holder));
  }

  /// Where the last message of a subject is asked for: at any server that has it, or at the one
  /// that leads.
  [[nodiscard]] std::string direct_get(std::string const& record) const { return direct_ + record; }
  [[nodiscard]] std::string leader_get() const { return "$JS.API.STREAM.MSG.GET." + stream_; }
  /// The record that is asked for at any server; empty: it is no such question.
  [[nodiscard]] std::string record_in(std::string const& subject) const {
    return subject.starts_with(direct_) ? subject.substr(direct_.size()) : std::string{};
  }
  [[nodiscard]] std::string info() const { return "$JS.API.STREAM.INFO." + stream_; }
  [[nodiscard]] std::string create() const { return "$JS.API.STREAM.CREATE." + stream_; }

  /// The note of the time.
  [[nodiscard]] std::string time() const { return prefix_ + ".k.time"; }

  // Of a part: the record of its owner, and where an owner is asked: under what needs a right of
  // its own, since who may ask may have everything done.
  [[nodiscard]] std::string owner(std::uint32_t part) const {
    return prefix_ + ".k.owner." + std::to_string(part);
  }
  /// The subject of the message by which a new owner says to all that it is one.
  [[nodiscard]] std::string owner_hint(std::uint32_t part, std::string_view claim) const {
    auto out = hint(owner(part)) + ".";
    return out += claim;
  }
  /// The part and the claim, of what `hinted` made of that; empty: it is something else.
  [[nodiscard]] std::optional<std::pair<std::uint32_t, std::string_view>> claim_in(
      std::string_view hinted) const {
    auto const begin = prefix_ + ".k.owner.";
    if (!hinted.starts_with(begin)) return std::nullopt;
    hinted.remove_prefix(begin.size());
    std::uint32_t part = 0;
    auto const [end, ec] = std::from_chars(hinted.data(), hinted.data() + hinted.size(), part);
    auto const digits = static_cast<std::size_t>(end - hinted.data());
    if (ec != std::errc{} || digits == hinted.size() || *end != '.') return std::nullopt;
    return std::pair{part, hinted.substr(digits + 1)};
  }
  [[nodiscard]] std::string questions() const { return prefix_ + ".q."; }
  [[nodiscard]] std::string questions(std::string_view claim) const {
    auto out = questions();
    out += claim;
    return out;
  }

  // Of the jobs of a shard: the stream of its log, the one subject of that, and where the server
  // says again what it has stored there.
  [[nodiscard]] std::string log_stream(std::uint32_t shard) const {
    return prefix_ + "-jobs-" + std::to_string(shard);
  }
  [[nodiscard]] std::string log(std::uint32_t shard) const {
    return prefix_ + ".j." + std::to_string(shard);
  }
  [[nodiscard]] std::string echo(std::uint32_t shard) const {
    return prefix_ + ".e." + std::to_string(shard);
  }

  // Records about jobs: how many shards there are; which images of a shard there are, each in one
  // of `images` places; and the parts of an image.
  [[nodiscard]] std::string shards() const { return prefix_ + ".k.jobs.shards"; }
  static constexpr std::size_t images = 3;
  [[nodiscard]] std::string image(std::uint32_t shard, std::size_t place) const {
    return prefix_ + ".k.jobs." + std::to_string(shard) + ".image." + std::to_string(place);
  }
  [[nodiscard]] std::string part(std::uint32_t shard, std::string_view image,
                                 std::size_t number) const {
    auto out = prefix_ + ".k.jobs." + std::to_string(shard) + ".part.";
    out += image;
    return out + "." + std::to_string(number);
  }
  [[nodiscard]] std::string parts(std::uint32_t shard) const {
    return prefix_ + ".k.jobs." + std::to_string(shard) + ".part.>";
  }
  [[nodiscard]] std::string parts(std::uint32_t shard, std::string_view image) const {
    auto out = parts(shard);
    out.pop_back();
    out += image;
    return out += ".*";
  }
  [[nodiscard]] std::string purge() const { return "$JS.API.STREAM.PURGE." + stream_; }

  /// Under which all reserves are. That some of them was given up a process says by a hint, with
  /// its name behind that.
  [[nodiscard]] std::string reserves() const { return prefix_ + ".k.reserve."; }
  // Of a reserve: its records, and how `info` is asked how many of some records there are.
  [[nodiscard]] std::string reserve(std::string_view name) const {
    auto out = reserves();
    out += name;
    return out += ".*";
  }
  [[nodiscard]] std::string reserve(std::string_view name, std::size_t number) const {
    auto out = reserve(name);
    out.pop_back();
    return out += std::to_string(number);
  }
  [[nodiscard]] static std::string counting(std::string const& records) {
    return R"({"subjects_filter":")" + records + R"("})";
  }
  /// Of records that are removed.
  [[nodiscard]] static std::string removing(std::string const& records) {
    return R"({"filter":")" + records + R"("})";
  }

 private:
  std::string prefix_;
  std::string stream_;
  std::string direct_;
};

/// The configuration that both kinds of streams have alike, and what else this one has.
[[nodiscard]] inline std::string nats_config(nats_options const& o, std::string const& name,
                                             std::string const& subject, std::string const& more) {
  return R"({"name":")" + name + R"(","subjects":[")" + subject +
         R"("],"retention":"limits","max_msgs":-1,"max_consumers":-1,"max_age":0,"max_bytes":)" +
         (o.max_bytes == 0 ? "-1" : std::to_string(o.max_bytes)) +
         R"(,"discard":"new","storage":")" + (o.in_memory ? "memory" : "file") +
         R"(","num_replicas":)" + std::to_string(o.replicas) +
         R"(,"allow_direct":true,"deny_delete":false,"deny_purge":false,)" + more + "}";
}

}  // namespace detail

/// The configuration of the stream that a store with these options needs, as JSON: what
/// `nats stream add --config` and JetStream's `STREAM.CREATE` take. Its subjects keep one message
/// each; where it is full, writes are refused, and nothing is forgotten for them.
[[nodiscard]] inline std::string nats_stream_config(nats_options const& options) {
  auto const o = detail::bounded(options);
  detail::nats_names const names{std::string{o.prefix}};
  return detail::nats_config(o, names.stream(), names.subjects(),
                             R"("max_msgs_per_subject":1,"allow_msg_ttl":true)");
}

/// The same for the log of a shard of jobs. What is stored is said again, so that every process
/// hears of it at once; and it goes when an image holds what came of it, never by itself.
[[nodiscard]] inline std::string nats_log_config(nats_options const& options, std::uint32_t shard) {
  auto const o = detail::bounded(options);
  detail::nats_names const names{std::string{o.prefix}};
  return detail::nats_config(o, names.log_stream(shard), names.log(shard),
                             R"("republish":{"src":")" + names.log(shard) + R"(","dest":")" +
                                 names.echo(shard) + R"("})");
}

}  // namespace weir

#endif
