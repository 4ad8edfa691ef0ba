// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOB_REPLICA_HPP
#define WEIR_STORE_NATS_JOB_REPLICA_HPP

#include "weir/store/nats/compact.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/store/nats/log_info.hpp"
#include "weir/table/job_budget.hpp"
#include "weir/table/job_image.hpp"
#include "weir/table/job_shard.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

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
  /// The time of that message.
  [[nodiscard]] time_point seen() const noexcept { return seen_; }
  /// Records that it has.
  [[nodiscard]] std::size_t used() const noexcept { return everything - budget_.left(); }

  /// Bytes of the log since the last image that is known of, and the size of that.
  [[nodiscard]] std::size_t since_image() const noexcept { return since_image_; }
  [[nodiscard]] std::size_t last_image() const noexcept { return last_image_; }

  [[nodiscard]] std::string image() const {
    std::string out;
    compact_writer to{out};
    to(seen_);
    job_image::save(shard_, to);
    return out;
  }
  /// Requires that nothing was read. False: it is none, and this is good for nothing.
  [[nodiscard]] bool load(std::string_view image, std::uint64_t position) {
    compact_reader from{image};
    from(seen_);
    position_ = position;
    last_image_ = image.size();
    return job_image::load(shard_, from) && from.complete();
  }

  /// Reads the next message. `each(command, answer)` is told of each command in it.
  /// False: a later version of weir wrote it, and it was not read.
  template <class Each>
  [[nodiscard]] bool read(nats_logged const& m, nats_batch_reader& message, Each&& each) {
    if (message.what() == nats_batch_reader::kind::later) return false;
    position_ = m.sequence;
    since_image_ += m.data.size() + overhead;
    seen_ = m.time;
    if (message.what() == nats_batch_reader::kind::foreign) return true;
    if (message.notice() == nats_notice::image) {
      since_image_ = 0;
      last_image_ = static_cast<std::size_t>(message.image());
    }
    (void)message.for_each([&](auto const& c, std::optional<time_point> told) {
      each(c, shard_.apply(c, told.value_or(m.time)));
    });
    return true;
  }

 private:
  static constexpr std::size_t everything = std::numeric_limits<std::size_t>::max() / 2;
  static constexpr std::size_t overhead = 64;  // of a message in the stream

  job_budget budget_{everything};
  job_shard shard_{job_allowance{budget_, 1, 1}};
  std::uint64_t position_ = 0;
  time_point seen_ = time_point::min();
  std::size_t since_image_ = 0;
  std::size_t last_image_ = 0;
};

}  // namespace weir::detail

#endif
