// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_IMAGE_RECORD_HPP
#define WEIR_STORE_NATS_IMAGE_RECORD_HPP

#include "weir/store/nats/bytes.hpp"
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
  time_point stored{};                 ///< when the server stored the last message, by its clock
  time_point told{};                   ///< what time it was for its sender
  time_point complete{};               ///< when all parts were acknowledged, in the store's time

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
    to(stored);
    to(told);
    to(complete);
    nats_writer{out}.number(nats_checksum(out));
    return out;
  }
  /// Has a later version of weir written it? Then nobody who does not know it writes over it (F82).
  [[nodiscard]] static bool is_later(std::string_view bytes) {
    constexpr auto number = tag.size() - 2;
    return bytes.size() > tag.size() && bytes.starts_with(tag.substr(0, number)) &&
           bytes[number] > tag[number] && bytes[number] <= '9' && bytes[number + 1] == '\n' &&
           summed(bytes);
  }
  /// Empty: it is none.
  [[nodiscard]] static std::optional<nats_image_record> read(std::string_view bytes) {
    auto const said = summed(bytes);
    if (!said || !bytes.starts_with(tag)) return std::nullopt;
    compact_reader from{said->substr(tag.size())};
    nats_image_record out;
    from(out.position);
    from(out.size);
    from(out.parts);
    from(out.id);
    from(out.part_size);
    from(out.stored);
    from(out.told);
    from(out.complete);
    constexpr std::size_t longest_id = 64;
    bool const plain = std::ranges::all_of(out.id, [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-';
    });
    if (!from.complete() || !plain || out.id.empty() || out.id.size() > longest_id ||
        out.part_size < least_part || out.part_size > usual_part ||
        out.parts != out.size / out.part_size + (out.size % out.part_size == 0 ? 0 : 1) ||
        out.parts == 0 || out.parts > most_parts || out.position > nats_largest_number) {
      return std::nullopt;
    }
    return out;
  }

 private:
  /// The bytes before the checksum at their end; empty: that is wrong.
  [[nodiscard]] static std::optional<std::string_view> summed(std::string_view bytes) {
    constexpr auto sum = sizeof(std::uint64_t);
    if (bytes.size() < tag.size() + sum) return std::nullopt;
    auto const said = bytes.substr(0, bytes.size() - sum);
    bool const good = nats_reader{bytes.substr(said.size())}.number() == nats_checksum(said);
    return good ? std::optional{said} : std::nullopt;
  }

  static constexpr std::string_view tag = "weir:i4\n";
  static constexpr std::size_t least_part = 4U << 10U;
  static constexpr std::uint64_t most_parts = 1U << 20U;
};

}  // namespace weir::detail

#endif
