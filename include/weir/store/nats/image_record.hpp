// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_IMAGE_RECORD_HPP
#define WEIR_STORE_NATS_IMAGE_RECORD_HPP

#include "weir/store/nats/compact.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::detail {

/// The record that says which image of a shard is the last complete one.
struct nats_image_record {
  std::uint64_t position = 0;          ///< the last message of the log that is in it
  std::uint64_t size = 0;              ///< in bytes
  std::uint64_t parts = 0;             ///< messages that it is in
  std::string id;                      ///< what their subjects have
  std::size_t part_size = usual_part;  ///< bytes of each but the last
  /// Of the last message: when the server stored it, by its clock; empty: at the time of the image.
  std::optional<time_point> stored{};
  time_point told{};      ///< what time it was for its sender
  time_point complete{};  ///< when all parts were acknowledged, in the store's time

  static constexpr std::size_t usual_part = 128U << 10U;

  /// Bytes of a part on a server that takes messages of so many bytes.
  [[nodiscard]] static constexpr std::size_t part_within(std::size_t max_payload) noexcept {
    return std::clamp(max_payload, least_part, usual_part);
  }

  [[nodiscard]] std::string write() const {
    std::string out{tag};
    compact_writer to{out};
    to(position);
    to(size);
    to(parts);
    to(std::string_view{id});
    to(part_size);
    to(stored.value_or(time_point{}));
    to(told);
    to(complete);
    return out;
  }
  /// Empty: it is none.
  [[nodiscard]] static std::optional<nats_image_record> read(std::string_view bytes) {
    bool const first = bytes.starts_with(first_tag);
    bool const second = bytes.starts_with(second_tag);
    if (!first && !second && !bytes.starts_with(tag)) return std::nullopt;
    compact_reader from{bytes.substr(tag.size())};
    nats_image_record out;
    from(out.position);
    from(out.size);
    from(out.parts);
    from(out.id);
    if (!first) from(out.part_size);
    if (!first && !second) {
      from(out.stored.emplace());
      from(out.told);
      from(out.complete);
    }
    constexpr std::size_t longest_id = 64;
    bool const plain = std::ranges::all_of(out.id, [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-';
    });
    if (!from.complete() || !plain || out.id.empty() || out.id.size() > longest_id ||
        out.part_size < least_part || out.part_size > usual_part ||
        out.parts != out.size / out.part_size + (out.size % out.part_size == 0 ? 0 : 1) ||
        out.parts == 0 || out.parts > most_parts) {
      return std::nullopt;
    }
    return out;
  }

 private:
  static constexpr std::string_view first_tag = "weir:i1\n";   // parts of the usual size
  static constexpr std::string_view second_tag = "weir:i2\n";  // without times
  static constexpr std::string_view tag = "weir:i3\n";
  static_assert(tag.size() == first_tag.size() && tag.size() == second_tag.size());
  static constexpr std::size_t least_part = 4U << 10U;
  static constexpr std::uint64_t most_parts = 1U << 20U;
};

}  // namespace weir::detail

#endif
