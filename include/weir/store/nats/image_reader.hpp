// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_IMAGE_READER_HPP
#define WEIR_STORE_NATS_IMAGE_READER_HPP

#include "weir/store/nats/compact.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/job_replica.hpp"
#include "weir/store/nats/turn.hpp"
#include "weir/table/paced.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// Makes a replica of the parts of an image: takes them in any order, and then reads them, a turn
/// at a time.
class nats_image_reader {
 public:
  explicit nats_image_reader(nats_image_record image) : image_{std::move(image)} {}
  nats_image_reader(nats_image_reader const&) = delete;
  nats_image_reader& operator=(nats_image_reader const&) = delete;

  [[nodiscard]] nats_image_record const& image() const noexcept { return image_; }

  /// The number of a part that is not asked for yet; empty: there is no more.
  [[nodiscard]] std::optional<std::size_t> next() noexcept {
    if (asked_ == image_.parts) return std::nullopt;
    return asked_++;
  }
  /// Each one once. False: it cannot be that part.
  [[nodiscard]] bool take(std::size_t number, std::string_view part) {
    auto const at = number * image_.part_size;
    auto const size = static_cast<std::size_t>(image_.size);
    if (part.size() != std::min(size - at, image_.part_size)) return false;
    early_.emplace(number, part);
    for (auto next = early_.begin(); next != early_.end() && next->first == in_order_;
         next = early_.erase(next), ++in_order_) {
      bytes_ += next->second;
    }
    return true;
  }
  [[nodiscard]] bool has_all() const noexcept { return in_order_ == image_.parts; }

  /// Requires that it has all. Reads some of it; false: that was all.
  [[nodiscard]] bool go_on() {
    if (!reading_) {
      replica_ = std::make_shared<nats_job_replica>();
      from_.emplace(std::string_view{bytes_});
      reading_.emplace(replica_->loading(*from_, image_));
    }
    nats_turn const turn;
    bool more = true;
    while (more && !turn.over()) more = reading_->go_on(few);
    return more;
  }
  /// Once all was read. Null: it was no image.
  [[nodiscard]] std::shared_ptr<nats_job_replica> replica() const noexcept {
    return reading_->succeeded() ? replica_ : nullptr;
  }

 private:
  static constexpr std::size_t few = 8;  // records between two looks at the clock

  nats_image_record image_;
  // Grows with what has come, whatever size the record of the image says (F93).
  std::string bytes_;
  std::map<std::size_t, std::string> early_;  // parts that others before them are waited for
  std::size_t asked_ = 0;
  std::size_t in_order_ = 0;  // parts that are in `bytes_`
  std::shared_ptr<nats_job_replica> replica_;
  std::optional<compact_reader> from_;
  std::optional<paced> reading_;
};

}  // namespace weir::detail

#endif
