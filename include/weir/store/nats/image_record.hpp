// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_IMAGE_RECORD_HPP
#define WEIR_STORE_NATS_IMAGE_RECORD_HPP

#include "weir/store/nats/compact.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::detail {

/// The record that says which image of a shard is the last complete one.
struct nats_image_record {
  std::uint64_t position = 0;  ///< the last message of the log that is in it
  std::uint64_t size = 0;      ///< in bytes
  std::uint64_t parts = 0;     ///< messages that it is in
  std::string id;              ///< what their subjects have

  static constexpr std::string_view tag = "weir:i1\n";
  static constexpr std::size_t part_size = 128U << 10U;

  [[nodiscard]] std::string write() const {
    std::string out{tag};
    compact_writer to{out};
    to(position);
    to(size);
    to(parts);
    to(std::string_view{id});
    return out;
  }
  /// Empty: it is none.
  [[nodiscard]] static std::optional<nats_image_record> read(std::string_view bytes) {
    if (!bytes.starts_with(tag)) return std::nullopt;
    compact_reader from{bytes.substr(tag.size())};
    nats_image_record out;
    from(out.position);
    from(out.size);
    from(out.parts);
    from(out.id);
    constexpr std::size_t longest_id = 64;
    bool const plain = std::ranges::all_of(out.id, [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-';
    });
    if (!from.complete() || !plain || out.id.empty() || out.id.size() > longest_id ||
        out.parts != (out.size + part_size - 1) / part_size || out.parts == 0 ||
        out.parts > most_parts) {
      return std::nullopt;
    }
    return out;
  }

 private:
  static constexpr std::uint64_t most_parts = 1U << 20U;
};

}  // namespace weir::detail

#endif
