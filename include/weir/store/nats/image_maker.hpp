// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_IMAGE_MAKER_HPP
#define WEIR_STORE_NATS_IMAGE_MAKER_HPP

#include "weir/store/nats/compact.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/job_replica.hpp"
#include "weir/store/nats/turn.hpp"
#include "weir/table/paced.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// Makes the parts of an image, a turn at a time. Until all are made the replica has to stay as it
/// is.
class nats_image_maker {
 public:
  /// @param part_size bytes of each part but the last
  explicit nats_image_maker(nats_job_replica const& of,
                            std::size_t part_size = nats_image_record::usual_part)
      : saving_{of.saving(to_)},
        part_size_{part_size} {}
  nats_image_maker(nats_image_maker const&) = delete;
  nats_image_maker& operator=(nats_image_maker const&) = delete;

  /// Makes some of it. False: that was all.
  [[nodiscard]] bool go_on() {
    nats_turn const turn;
    bool more = true;
    while (more && !turn.over()) more = saving_.go_on(few);
    cut(more ? part_size_ : 1);
    return more;
  }

  /// Bytes that are in parts.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::vector<std::string> take() && noexcept { return std::move(parts_); }

 private:
  static constexpr std::size_t few = 8;  // records between two looks at the clock

  /// Takes parts off what was made, as long as that has so many bytes.
  void cut(std::size_t least) {
    std::size_t at = 0;
    for (; made_.size() - at >= least; at += parts_.back().size()) {
      parts_.push_back(made_.substr(at, part_size_));
      size_ += parts_.back().size();
    }
    made_.erase(0, at);
  }

  std::string made_;  // and not in a part yet
  compact_writer to_{made_};
  paced saving_;
  std::size_t part_size_;
  std::vector<std::string> parts_;
  std::uint64_t size_ = 0;
};

}  // namespace weir::detail

#endif
