// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOB_LOG_HPP
#define WEIR_STORE_NATS_JOB_LOG_HPP

#include "weir/command/jobs.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/nats/bytes.hpp"
#include "weir/store/nats/compact.hpp"
#include "weir/store/nats/job_fields.hpp"
#include "weir/store/nats/store_time.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// A message of a shard's log: who sent it and its number there, by which the sender knows it again,
// what time it was, and the commands, which are executed one after the other at the time of the
// message.
//
// Every process has to read the same out of a message. So one that is damaged ends where it is, for
// all of them, and what follows it is executed (F93). One of a later version of weir is executed by
// no process that does not know it, and nothing after it either. So that damage is not taken for a
// later version, those have a checksum behind their number: of all that follows it. Version 1 has
// none; version 2 has more commands; version 3, which stores write, has the time;
// version 4, which they write where it is needed, knows holds that end no longer one.
namespace weir::detail {

/// Who sent a message, and which of its.
struct nats_batch_id {
  job_id sender{};  ///< drawn at random by a process for each of its stores
  std::uint64_t number = 0;

  friend bool operator==(nats_batch_id const&, nats_batch_id const&) = default;
};

inline constexpr std::string_view nats_log_tag = "weir:j";
inline constexpr std::uint32_t nats_log_version = 4;
inline constexpr std::uint32_t nats_log_version_of_time = 3;
inline constexpr std::uint32_t nats_log_version_of_at_least = 4;

/// The checksum of a message of version 2 or later, in 8 bytes, lowest first: of what is behind it,
/// and of the version, but for version 2.
[[nodiscard]] inline std::uint64_t nats_log_checksum(std::uint32_t version,
                                                     std::string_view rest) noexcept {
  auto const sum = nats_checksum(rest);
  return version == 2 ? sum : sum ^ version;
}

/// What is said in the log beside commands.
enum class nats_notice : std::uint8_t {
  none,
  image,  ///< an image was written, of the size that follows
};

/// Writes a command behind its number and, where it was told one, its time.
template <bool Extended, class C>
void nats_put_command(compact_writer& to, std::size_t number, C const& c,
                      std::optional<time_point> told) {
  auto const add_jobs = [&to](auto const& jobs) {
    to(jobs.size());
    for (auto const& j : jobs) job_fields<Extended>(to, j);
  };
  to(2 * number + (told ? 1 : 0));
  if (told) to(*told);
  job_command_fields<Extended>(to, c);
  if constexpr (requires { c.jobs; }) add_jobs(c.jobs);
  if constexpr (requires { c.next; }) add_jobs(c.next);
}

/// The same with the number that it has, which depends on what is in it. True: of version 2.
template <nats_logged_command C>
bool nats_put_command(compact_writer& to, C c, std::optional<time_point> told) {
  // Nobody keeps more of it, and so nobody need read more.
  if constexpr (requires { c.reason; }) c.reason = rule::kept_reason(c.reason);
  if constexpr (nats_logged_command<nats_extended<C>>) {
    if (needs_extension(c)) {
      nats_put_command<true>(to, nats_job_number<nats_extended<C>>, c, told);
      return true;
    }
  }
  nats_put_command<false>(to, nats_job_number<C>, c, told);
  return false;
}

/// Reads commands behind their numbers. Each views what it is read from, and this, until the next.
class nats_command_reader {
 public:
  /// @return null: it cannot be read, or the rule does not allow it
  template <class Logged>
  [[nodiscard]] auto read(compact_reader& from) {
    constexpr bool extended = is_nats_extended<Logged>;
    std::optional<typename nats_plain<Logged>::type> out{std::in_place};
    auto& c = *out;
    job_command_fields<extended>(from, c);
    if constexpr (requires { c.jobs; }) {
      if constexpr (std::is_same_v<decltype(c.jobs), std::span<new_job const>>) {
        read_jobs<extended>(from, c.jobs, new_);
      } else {
        read_jobs<extended>(from, c.jobs, finished_);
      }
    }
    if constexpr (requires { c.next; }) read_jobs<extended>(from, c.next, next_);
    if (!from.good() || rule::validate(c)) out.reset();
    return out;
  }

 private:
  template <bool Extended, class Job>
  static void read_jobs(compact_reader& from, std::span<Job const>& to, std::vector<Job>& jobs) {
    // Anew: of a command of version 1 no headers are read, and an earlier one's would stay.
    jobs.assign(std::min<std::size_t>(from.count(), limits::batch + 1), Job{});
    for (auto& j : jobs) job_fields<Extended>(from, j);
    to = jobs;
  }

  std::vector<new_job> new_;
  std::vector<new_job> next_;
  std::vector<finished_job> finished_;
};

/// Writes a message.
class nats_batch_writer {
 public:
  /// @param stamp empty: as an earlier version did
  explicit nats_batch_writer(nats_batch_id const& id, std::optional<nats_stamp> const& stamp = {})
      : extended_{stamp.has_value()} {
    begin(id, nats_notice::none, stamp);
  }
  /// Says that there is an image of this size.
  nats_batch_writer(nats_batch_id const& id, std::uint64_t image,
                    std::optional<nats_stamp> const& stamp = {})
      : extended_{stamp.has_value()} {
    begin(id, nats_notice::image, stamp);
    compact_writer{bytes_}(image);
  }

  /// @param told the time that the command is executed at; empty: that of the message
  template <nats_logged_command C>
  void add(C const& c, std::optional<time_point> told) {
    extended_before_ = extended_;
    newest_before_ = newest_;
    if constexpr (requires { c.at_least; }) newest_ = newest_ || c.at_least;
    compact_writer to{bytes_};
    if (nats_put_command(to, c, told)) extended_ = true;
  }

  /// Takes the last command off again.
  /// @param size what it was before that
  void cut(std::size_t size) {
    bytes_.resize(size);
    extended_ = extended_before_;
    newest_ = newest_before_;
  }

  /// Do the commands fit into a message of so many bytes, whatever its number is? Numbers grow, and
  /// what fits once has to fit always.
  [[nodiscard]] bool fits(std::size_t message) const noexcept {
    constexpr std::size_t largest_number = 10;
    constexpr std::size_t numbers = 4;  // its own, and those of the time
    constexpr std::size_t most =
        nats_log_tag.size() + 1 + job_id::static_size() + numbers * largest_number + 1;
    auto const checksum = extended_ ? sizeof(std::uint64_t) : 0;
    return bytes_.size() - before_ + most + checksum <= message;
  }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] std::string take() && {
    if (extended_) {
      constexpr auto version = nats_log_tag.size();
      auto const with_time = newest_ ? nats_log_version_of_at_least : nats_log_version_of_time;
      std::uint32_t const number = timed_ ? with_time : 2;
      std::string checksum;
      nats_writer{checksum}.number(
          nats_log_checksum(number, std::string_view{bytes_}.substr(version + 1)));
      bytes_[version] = static_cast<char>(number);
      bytes_.insert(version + 1, checksum);
    }
    return std::move(bytes_);
  }

 private:
  void begin(nats_batch_id const& id, nats_notice notice, std::optional<nats_stamp> const& stamp) {
    bytes_ = nats_log_tag;
    compact_writer to{bytes_};
    to(std::uint32_t{1});
    to(id.sender);
    to(id.number);
    if (stamp) {
      to(stamp->now.earliest);
      to(stamp->now.doubt);
      to(stamp->offset);
    }
    to(notice);
    timed_ = stamp.has_value();
    before_ = bytes_.size();
  }

  std::string bytes_;
  std::size_t before_ = 0;  // the commands
  bool timed_ = false;
  bool extended_ = false;  // it has a command of version 2, or the time
  bool extended_before_ = false;
  bool newest_ = false;  // it has one of version 4
  bool newest_before_ = false;
};

/// Reads a message, which it views.
class nats_batch_reader {
 public:
  enum class kind : std::uint8_t {
    ours,     ///< it has commands
    later,    ///< a later version of weir wrote it
    damaged,  ///< it cannot be read, or is none of weir's
  };

  explicit nats_batch_reader(std::string_view message) noexcept
      : from_{message.substr(std::min(nats_log_tag.size(), message.size()))} {
    if (!message.starts_with(nats_log_tag)) return;
    std::uint32_t version = 0;
    from_(version);
    if (!from_.good() || version == 0) return;
    extended_ = version > 1;
    if (extended_) {
      nats_reader rest{from_.rest()};
      auto const checksum = rest.number();
      if (!rest.good() || checksum != nats_log_checksum(version, rest.rest())) return;
      if (version > nats_log_version) {
        kind_ = kind::later;
        return;
      }
      from_ = compact_reader{rest.rest()};
    }
    from_(id_.sender);
    from_(id_.number);
    if (version >= nats_log_version_of_time) {
      auto& stamp = stamp_.emplace();
      from_(stamp.now.earliest);
      from_(stamp.now.doubt);
      from_(stamp.offset);
      if (stamp.now.doubt < duration::zero()) from_.refuse();
    }
    from_(notice_, nats_notice::image);
    if (notice_ == nats_notice::image) from_(image_);
    if (from_.good()) kind_ = kind::ours;
  }

  [[nodiscard]] kind what() const noexcept { return kind_; }
  [[nodiscard]] nats_batch_id const& id() const noexcept { return id_; }
  /// The time, as the sender knew it; empty: an earlier version wrote it, and the server's counts.
  [[nodiscard]] std::optional<nats_stamp> const& stamp() const noexcept { return stamp_; }
  [[nodiscard]] nats_notice notice() const noexcept { return notice_; }
  /// The size of the image that is spoken of.
  [[nodiscard]] std::uint64_t image() const noexcept { return image_; }

  /// Calls `f(command, told)` for each command. False: it ended before its end, and what came
  /// before was executed.
  template <class F>
  bool for_each(F&& f) {
    if (kind_ != kind::ours) return false;
    while (from_.good() && from_.left() != 0) {
      std::size_t number = 0;
      from_(number);
      std::optional<time_point> told;
      if (number % 2 != 0) from_(told.emplace());
      if (!from_.good() || !dispatch(number / 2, told, f, std::make_index_sequence<kinds>{})) {
        return false;
      }
    }
    return from_.good();
  }

 private:
  static constexpr std::size_t kinds = std::variant_size_v<nats_job_command>;

  template <class F, std::size_t... I>
  bool dispatch(std::size_t number, std::optional<time_point> told, F& f,
                std::index_sequence<I...>) {
    bool done = false;
    (void)((number == I && (done = read<I>(told, f), true)) || ...);
    return done;
  }

  template <std::size_t Number, class F>
  bool read(std::optional<time_point> told, F& f) {
    if constexpr (Number == 0) {
      return false;
    } else {
      using logged = std::variant_alternative_t<Number, nats_job_command>;
      // Version 1 has no such command.
      if (is_nats_extended<logged> && !extended_) return false;
      // What the rule does not allow was never asked for: nobody executes it.
      auto const c = commands_.read<logged>(from_);
      if (c) f(*c, told);
      return c.has_value();
    }
  }

  compact_reader from_;
  kind kind_ = kind::damaged;
  bool extended_ = false;
  nats_batch_id id_;
  std::optional<nats_stamp> stamp_;
  nats_notice notice_ = nats_notice::none;
  std::uint64_t image_ = 0;
  nats_command_reader commands_;
};

}  // namespace weir::detail

#endif
