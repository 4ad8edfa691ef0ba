// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_TABLE_DIGEST_HPP
#define WEIR_STORE_NATS_TABLE_DIGEST_HPP

#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/store/nats/bytes.hpp"
#include "weir/store/nats/command_codec.hpp"
#include "weir/store/nats/wire.hpp"
#include "weir/time.hpp"
#include "weir/version.hpp"

#include <boost/endian/conversion.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// The jobs of a shard are what each process makes of the same log. Two versions of weir, or a
// defect, may make two things of it, and then the owner's successor goes on with other jobs than
// the owner had. So each keeps a digest of what it has made of the log, and notes it now and then
// with a message that it writes there; whoever reads that compares.
//
// A note is a header of its message. Earlier versions do not look at it, and the server gives it
// to all who read the message: each note is compared by each reader. A record beside the log would
// be compared once, by those who begin to read, and might be of another log by then.
namespace weir::detail {

/// A note in a log: the digest of what a process has made of it.
struct nats_table_note {
  std::uint64_t begin = 0;     ///< the digest is of what comes after this message
  std::uint64_t position = 0;  ///< up to this one
  time_point stored{};         ///< when the server stored that one: in another log, another time
  std::uint64_t digest = 0;    ///< of the answers to their commands, and of the log's time
  std::string by{};            ///< the process's version of weir

  [[nodiscard]] std::string write() const {
    std::string out{form};
    auto const add = [&out](auto n) { (out += ' ') += std::to_string(n); };
    // An answer has other members in another version of that.
    add(nats_wire_version);
    add(begin);
    add(position);
    add(stored.time_since_epoch().count());
    add(digest);
    (out += ' ') += by;
    add(nats_checksum(out));
    return out;
  }
  /// Empty: it is none, or one of another version, which is not to be compared.
  [[nodiscard]] static std::optional<nats_table_note> read(std::string_view text) {
    nats_table_note out;
    auto const end = text.rfind(' ');
    if (end == text.npos) return std::nullopt;
    std::uint64_t sum = 0;
    if (!nats_digits(text.substr(end + 1), sum) || sum != nats_checksum(text.substr(0, end))) {
      return std::nullopt;
    }
    auto rest = text.substr(0, end);
    auto const word = [&rest] {
      auto const one = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
      return one;
    };
    std::uint32_t answers = 0;
    duration::rep stored = 0;
    if (word() != form || !nats_digits(word(), answers) || answers != nats_wire_version ||
        !nats_digits(word(), out.begin) || !nats_digits(word(), out.position) ||
        !nats_digits(word(), stored) || !nats_digits(word(), out.digest)) {
      return std::nullopt;
    }
    out.stored = time_point{duration{stored}};
    out.by = word();
    constexpr std::size_t longest = 32;
    bool const plain = std::ranges::all_of(out.by, [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '-';
    });
    if (!rest.empty() || !plain || out.by.empty() || out.by.size() > longest) return std::nullopt;
    return out;
  }

 private:
  static constexpr std::string_view form = "1";
};

/// Mixes values into a number, a word at a time. Each answer goes through it: to write it down and
/// hash its bytes would make reading a log half as dear again. Nobody gains by a collision, so this
/// need not be hard to deceive.
class nats_mixer {
 public:
  void operator()(std::unsigned_integral auto n) noexcept { mix(n); }
  void operator()(std::int64_t n) noexcept { mix(static_cast<std::uint64_t>(n)); }
  template <class E>
    requires std::is_enum_v<E>
  void operator()(E e) noexcept {
    mix(static_cast<std::uint64_t>(e));
  }
  void operator()(duration d) noexcept { (*this)(std::int64_t{d.count()}); }
  void operator()(time_point t) noexcept { (*this)(t.time_since_epoch()); }
  void operator()(job_id const& id) noexcept {
    for (auto at = id.begin(); at != id.end(); at += word) mix(boost::endian::load_little_u64(at));
  }
  /// Its size, its beginning and its end. A text is what came with its job, so the same job has the
  /// same; and it may be long.
  void operator()(std::string_view t) noexcept {
    auto const* const at = reinterpret_cast<unsigned char const*>(t.data());
    if (t.size() >= word) {
      auto const first = boost::endian::load_little_u64(at);
      auto const last = boost::endian::load_little_u64(at + t.size() - word);
      return mix(t.size() ^ std::rotl(first, 8) ^ last);
    }
    std::uint64_t all = t.size();
    for (std::size_t i = 0; i != t.size(); ++i) all = all << 8U | at[i];
    mix(all);
  }

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

 private:
  static constexpr std::size_t word = sizeof(std::uint64_t);

  /// Another word makes another number, and so does another number before it.
  void mix(std::uint64_t w) noexcept {
    constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;  // 2^64 by the golden ratio
    number_ = std::rotl((number_ ^ w) * odd, 29);
  }

  std::uint64_t number_ = 0;
};

/// A digest of what a replica makes of its log: of the answers, and of the log's time.
///
/// A replica that begins with an image does not know what came before. So all begin the digest anew
/// where the log says that there is an image; until then one is unknown, and nothing is compared.
class nats_table_digest {
 public:
  /// All that came before is unknown.
  void forget() noexcept { begin_.reset(); }
  /// It is of what comes after this message.
  void begin(std::uint64_t position) {
    begin_ = position;
    mixed_ = {};
  }

  /// A command was executed. What is in an answer because of the process must be added to it later.
  template <class R>
  void add(result<R> const& answer) {
    if (!begin_) return;
    mixed_(answer.has_error());
    if (answer.has_error()) {
      mixed_(std::int64_t{answer.error().value()});
    } else {
      nats_values_to<nats_mixer&>{mixed_}(*answer);
    }
  }
  /// A message was read.
  /// @param seen the log's time
  /// @param whole all of it
  void read(std::uint64_t position, time_point stored, time_point seen, bool whole) {
    if (!begin_) return;
    mixed_(seen);
    mixed_(whole);
    recent_[position % recent_.size()] = {*begin_, position, stored, mixed_.number()};
  }

  /// Of the message that was read last; empty: it is unknown.
  [[nodiscard]] std::optional<nats_table_note> of(std::uint64_t position) const {
    auto const& at = recent_[position % recent_.size()];
    if (at.position != position || position == 0) return std::nullopt;
    return nats_table_note{at.begin, at.position, at.stored, at.digest, std::string{version}};
  }
  /// Is that of the same log, as far as is known here, and something else?
  [[nodiscard]] bool contradicts(nats_table_note const& note) const noexcept {
    auto const& at = recent_[note.position % recent_.size()];
    return note.position != 0 && at.position == note.position && at.begin == note.begin &&
           at.stored == note.stored && at.digest != note.digest;
  }

 private:
  /// The writer of a note has read all but what is under way.
  static constexpr std::size_t remembered = 64;

  struct at_message {
    std::uint64_t begin = 0;
    std::uint64_t position = 0;  // 0: none
    time_point stored{};
    std::uint64_t digest = 0;
  };

  std::optional<std::uint64_t> begin_{0};
  nats_mixer mixed_;
  std::array<at_message, remembered> recent_{};
};

}  // namespace weir::detail

#endif
