// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOB_REPLICA_HPP
#define WEIR_STORE_NATS_JOB_REPLICA_HPP

#include "weir/command/jobs.hpp"
#include "weir/store/nats/compact.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/store/nats/log_info.hpp"
#include "weir/store/nats/table_digest.hpp"
#include "weir/table/job_budget.hpp"
#include "weir/table/job_image.hpp"
#include "weir/table/job_shard.hpp"
#include "weir/table/paced.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir::detail {

/// A shard of jobs as far as its log was read.
///
/// Nothing in it may depend on the process: not on its clock, its options or on what it has asked
/// for. So there is room for everything here, and whoever asks looks beforehand whether there is.
class nats_job_replica {
 public:
  nats_job_replica() = default;
  nats_job_replica(nats_job_replica const&) = delete;
  nats_job_replica& operator=(nats_job_replica const&) = delete;

  [[nodiscard]] job_shard& shard() noexcept { return shard_; }
  /// The message that was read last; 0: none.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// When the server stored that message, by its clock: another one has another time.
  [[nodiscard]] time_point stored() const noexcept { return stored_; }
  /// The log's time then. It does not run backwards.
  [[nodiscard]] time_point seen() const noexcept { return seen_; }
  /// The time then, as its sender knew it.
  [[nodiscard]] time_point told() const noexcept { return told_; }
  /// Records that it has.
  [[nodiscard]] std::size_t used() const noexcept { return everything - budget_.left(); }

  /// Bytes of the log since the last image that is known of, and the size of that.
  [[nodiscard]] std::size_t since_image() const noexcept { return since_image_; }
  [[nodiscard]] std::size_t last_image() const noexcept { return last_image_; }
  /// Records that there were when the last image was noted, or read.
  [[nodiscard]] std::size_t used_at_image() const noexcept { return used_at_image_; }

  /// The note that is due to be written into the log; empty: none is.
  [[nodiscard]] std::optional<nats_table_note> note_due() const {
    if (since_note_ < note_interval) return std::nullopt;
    return digest_.of(position_);
  }
  /// The note of another process that has made something else of the log. It is told of once,
  /// until the digest begins anew.
  [[nodiscard]] std::optional<nats_table_note> take_contradiction() {
    return std::exchange(contradiction_, std::nullopt);
  }

  /// Writes an image, with pauses. Nothing may be read meanwhile.
  [[nodiscard]] paced saving(compact_writer& to) const {
    to(seen_);
    for (auto work = job_image::saving(shard_, to); work.go_on();) co_await paced::pause{};
    co_return true;
  }
  [[nodiscard]] std::string image() const {
    std::string out;
    compact_writer to{out};
    saving(to).finish();
    return out;
  }
  /// Reads an image, with pauses. Requires that nothing was read. Without success it was none, and
  /// this is good for nothing.
  [[nodiscard]] paced loading(compact_reader& from, nats_image_record const& image) {
    last_image_ = from.left();
    digest_.forget();
    from(seen_);
    position_ = image.position;
    stored_ = image.stored;
    told_ = image.told;
    auto work = job_image::loading(shard_, from);
    while (work.go_on()) co_await paced::pause{};
    used_at_image_ = used();
    co_return work.succeeded() && from.complete();
  }

  /// Notes that something could not be read. The next dequeue in the log tells of it.
  void passed_over() noexcept {
    if (damaged_ != std::numeric_limits<std::uint32_t>::max()) ++damaged_;
  }

  /// Reads the next message. `each(command, answer)` is told of each command in it. A message that
  /// is damaged is passed over, from where it is damaged on.
  /// False: a later version of weir wrote it, and it was not read.
  template <class Each>
  [[nodiscard]] bool read(nats_logged const& m, nats_batch_reader& message, Each&& each) {
    if (message.what() == nats_batch_reader::kind::later) return false;
    if (message.what() == nats_batch_reader::kind::ours) {
      go_on(m.time, message.stamp().at(m.time));
    }
    stored_ = m.time;
    position_ = m.sequence;
    since_image_ += m.data.size() + overhead;
    since_note_ += m.data.size() + overhead;
    if (!m.note.empty()) compare(m.note);
    if (message.notice() == nats_notice::image) {
      // A size that no image of this log can have must not keep the next one from being written.
      auto const most = 4 * (last_image_ + since_image_) + least_bound;
      last_image_ = static_cast<std::size_t>(std::min<std::uint64_t>(message.image(), most));
      since_image_ = 0;
      used_at_image_ = used();
    }
    bool const whole = message.for_each([&](auto const& c, std::optional<time_point> told) {
      auto answer = shard_.apply(c, told.value_or(seen_));
      digest_.add(answer);
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(c)>, command::dequeue_jobs>) {
        if (answer.has_value()) answer->damaged += std::exchange(damaged_, 0);
      }
      each(c, std::move(answer));
    });
    if (!whole) passed_over();
    digest_.read(position_, stored_, seen_, whole);
    if (message.notice() == nats_notice::image) digest_.begin(position_);
    return true;
  }

 private:
  static constexpr std::size_t everything = std::numeric_limits<std::size_t>::max() / 2;
  static constexpr std::size_t overhead = 64;  // of a message in the stream
  static constexpr std::size_t least_bound = 1U << 20U;
  /// Bytes of the log between two notes of what was made of it: they add less than a hundredth.
  static constexpr std::size_t note_interval = 16U << 10U;

  void compare(std::string_view text) {
    auto note = nats_table_note::read(text);
    if (!note) return;
    since_note_ = 0;
    if (!digest_.contradicts(*note) || contradicted_ == note->begin) return;
    contradicted_ = note->begin;
    contradiction_ = std::move(note);
  }

  /// The time of the log does not run backwards, and does not wait for a sender who is behind: it
  /// goes on by as much as both the sender and the server say that has passed.
  void go_on(time_point stored, time_point told) noexcept {
    auto const passed = std::min(saturating_sub(stored, stored_), saturating_sub(told, told_));
    auto const least = saturating_add(seen_, std::max(passed, duration::zero()));
    seen_ = std::max(told, least);
    told_ = told;
  }

  job_budget budget_{everything};
  job_shard shard_{job_allowance{budget_, 1, 1}};
  std::uint64_t position_ = 0;
  time_point stored_ = time_point::min();
  time_point seen_ = time_point::min();
  time_point told_ = time_point::min();
  std::size_t since_image_ = 0;
  std::size_t last_image_ = 0;
  std::size_t used_at_image_ = 0;
  nats_table_digest digest_;
  std::size_t since_note_ = 0;                    // bytes of the log
  std::optional<nats_table_note> contradiction_;  // that was not told of yet
  std::optional<std::uint64_t> contradicted_;     // where the digest of the last one begins
  std::uint32_t damaged_ = 0;  // messages that were passed over, and not told of yet
};

}  // namespace weir::detail

#endif
