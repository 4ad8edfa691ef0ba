// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOB_LOG_HPP
#define WEIR_STORE_NATS_JOB_LOG_HPP

#include "weir/job.hpp"
#include "weir/store/nats/bytes.hpp"
#include "weir/store/nats/command_codec.hpp"
#include "weir/store/nats/compact.hpp"
#include "weir/store/nats/store_time.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

// A message of a shard's log: who sent it and its number there, by which the sender knows it again,
// what time it was, and the commands, which are executed one after the other at the time of the
// message.
//
// Every process has to read the same out of a message. So one that is damaged ends where it is, for
// all of them, and what follows it is executed (F93). One of a later version of weir is executed by
// no process that does not know it, and nothing after it either. So that damage is not taken for a
// later version, there is a checksum behind the number. What is added to the log one day is written
// in a version of its own, and only where it is needed: processes that do not know it go on until
// then.
namespace weir::detail {

/// Who sent a message, and which of its.
struct nats_batch_id {
  job_id sender{};  ///< drawn at random by a process for each of its stores
  std::uint64_t number = 0;

  friend bool operator==(nats_batch_id const&, nats_batch_id const&) = default;
};

inline constexpr std::string_view nats_log_tag = "weir:j";
inline constexpr std::uint32_t nats_log_version = 5;  // no release has written an earlier one

/// A message of a version that has this in it.
[[nodiscard]] inline std::string nats_log_message(std::string_view content,
                                                  std::uint32_t version = nats_log_version) {
  std::string out{nats_log_tag};
  compact_writer{out}(version);
  nats_writer{out}.number(nats_checksum(content) ^ version);
  return out.append(content);
}

/// What is said in the log beside commands.
enum class nats_notice : std::uint8_t {
  none,
  image,  ///< an image was written, of the size that follows
};

/// Writes a message.
class nats_batch_writer {
 public:
  /// @param image says that there is an image of this size
  explicit nats_batch_writer(nats_batch_id const& id, nats_stamp const& stamp = {},
                             std::optional<std::uint64_t> image = {}) {
    compact_writer to{bytes_};
    to(id.sender);
    to(id.number);
    to(stamp.now.earliest);
    to(stamp.now.doubt);
    to(stamp.offset);
    to(image ? nats_notice::image : nats_notice::none);
    before_ = bytes_.size();
    if (image) to(*image);
  }

  /// @param told the time that the command is executed at; empty: that of the message
  template <nats_logged_command C>
  void add(C const& c, std::optional<time_point> told) {
    nats_put_command(bytes_, c, told);
  }

  /// Takes the last command off again.
  /// @param size what it was before that
  void cut(std::size_t size) { bytes_.resize(size); }

  /// Do the commands fit into a message of so many bytes, whatever its number is? Numbers grow, and
  /// what fits once has to fit always.
  [[nodiscard]] bool fits(std::size_t message) const noexcept {
    constexpr std::size_t largest_number = 10;
    constexpr std::size_t numbers = 4;  // its own, and those of the time
    constexpr std::size_t most = nats_log_tag.size() + 1 + sizeof(std::uint64_t) +
                                 job_id::static_size() + numbers * largest_number + 1;
    return bytes_.size() - before_ + most <= message;
  }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] std::string take() && { return nats_log_message(bytes_); }

 private:
  std::string bytes_;
  std::size_t before_ = 0;  // the commands
};

/// Reads a message, which it views.
class nats_batch_reader : private nats_command_reader {
 public:
  enum class kind : std::uint8_t {
    ours,     ///< it has commands
    later,    ///< a later version of weir wrote it
    damaged,  ///< it cannot be read, or is none of weir's
  };

  explicit nats_batch_reader(std::string_view message) noexcept
      : nats_command_reader{message.substr(std::min(nats_log_tag.size(), message.size()))} {
    if (!message.starts_with(nats_log_tag)) return;
    std::uint32_t version = 0;
    from_(version);
    nats_reader rest{from_.rest()};
    auto const checksum = rest.number() ^ version;
    if (!from_.good() || !rest.good() || checksum != nats_checksum(rest.rest())) return;
    if (version != nats_log_version) {
      kind_ = kind::later;
      return;
    }
    from_ = compact_reader{rest.rest()};
    from_(id_.sender);
    from_(id_.number);
    from_(stamp_.now.earliest);
    from_(stamp_.now.doubt);
    from_(stamp_.offset);
    if (stamp_.now.doubt < duration::zero()) from_.refuse();
    from_(notice_, nats_notice::image);
    if (notice_ == nats_notice::image) from_(image_);
    if (from_.good()) kind_ = kind::ours;
  }

  [[nodiscard]] kind what() const noexcept { return kind_; }
  [[nodiscard]] nats_batch_id const& id() const noexcept { return id_; }
  /// The time, as the sender knew it.
  [[nodiscard]] nats_stamp const& stamp() const noexcept { return stamp_; }
  [[nodiscard]] nats_notice notice() const noexcept { return notice_; }
  /// The size of the image that is spoken of.
  [[nodiscard]] std::uint64_t image() const noexcept { return image_; }

  /// Calls `f(command, told)` for each command. False: it ended before its end, and what came
  /// before was executed.
  template <class F>
  bool for_each(F&& f) {
    return kind_ == kind::ours &&
           nats_command_reader::for_each([&](auto const& c, std::optional<time_point> told) {
             constexpr bool logged = nats_logged_command<std::remove_cvref_t<decltype(c)>>;
             if constexpr (logged) f(c, told);
             return logged;
           });
  }

 private:
  kind kind_ = kind::damaged;
  nats_batch_id id_;
  nats_stamp stamp_;
  nats_notice notice_ = nats_notice::none;
  std::uint64_t image_ = 0;
};

}  // namespace weir::detail

#endif
