// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_CLUSTER_MAP_HPP
#define WEIR_STORE_REDIS_CLUSTER_MAP_HPP

#include "weir/detail/whole_number.hpp"
#include "weir/store/redis/resp.hpp"

#include <boost/crc.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Who serves what in a cluster, as its nodes say. Pure: tests need no server for it.
namespace weir::detail {

inline constexpr std::uint16_t redis_slots = 16'384;

/// The slot of all keys with this tag.
[[nodiscard]] inline std::uint16_t redis_slot(std::string_view tag) noexcept {
  boost::crc_optimal<16, 0x1021, 0, 0, false, false> crc;
  crc.process_bytes(tag.data(), tag.size());
  return static_cast<std::uint16_t>(crc.checksum() % redis_slots);
}

/// Where a node is.
struct redis_place {
  std::string host;
  std::uint16_t port = 0;

  auto operator<=>(redis_place const&) const = default;
};

/// A node may leave out its host, or not know it: then it is where we asked.
[[nodiscard]] inline std::string redis_host(std::string_view told, std::string_view asked) {
  return std::string{told.empty() || told == "?" ? asked : told};
}

/// "MOVED SLOT HOST:PORT", or ASK: where the command is to go. Empty: it says something else.
[[nodiscard]] inline std::optional<redis_place> redis_redirection(std::string_view refusal,
                                                                  std::string_view asked) {
  auto const first = refusal.find(' ');
  auto const second = refusal.find(' ', first == refusal.npos ? first : first + 1);
  if (second == refusal.npos) return std::nullopt;
  auto where = refusal.substr(second + 1);
  auto const colon = where.rfind(':');
  if (colon == where.npos) return std::nullopt;
  auto const port = whole_number<std::uint16_t>(where.substr(colon + 1));
  if (!port || *port == 0) return std::nullopt;
  return redis_place{redis_host(where.substr(0, colon), asked), *port};
}

/// The slots, and who serves them.
class redis_cluster_map {
 public:
  struct range {
    std::uint16_t first = 0;
    std::uint16_t last = 0;
    redis_place master;
  };

  /// Bytes of the answer for a cluster of a thousand nodes.
  static constexpr std::size_t most_bytes = std::size_t{4} << 20U;

  /// Reads the answer to CLUSTER SLOTS. Empty: it is none.
  [[nodiscard]] static std::optional<redis_cluster_map> read(std::span<redis_value const> nodes,
                                                             std::string_view asked);

  /// Null: nobody serves it.
  [[nodiscard]] redis_place const* master_of(std::uint16_t slot) const noexcept {
    for (auto const& r : ranges_) {
      if (r.first <= slot && slot <= r.last) return &r.master;
    }
    return nullptr;
  }

  /// All nodes that serve slots, and their replicas.
  [[nodiscard]] std::vector<redis_place> const& everybody() const noexcept { return everybody_; }

 private:
  std::vector<range> ranges_;
  std::vector<redis_place> everybody_;
};

/// An array of ranges: first, last, the master, and its replicas. A node is an array of its host,
/// its port, and what we do not need.
inline std::optional<redis_cluster_map> redis_cluster_map::read(std::span<redis_value const> nodes,
                                                                std::string_view asked) {
  using kind = redis_kind;
  constexpr std::size_t most = 100'000;  // of a cluster of a thousand nodes
  if (nodes.empty() || nodes.size() > most || nodes.front().data_type != kind::array) return {};
  redis_cluster_map out;
  auto rest = nodes.subspan(1);
  auto const next = [&rest](std::size_t depth, kind wanted) -> std::string const* {
    if (rest.empty() || rest.front().depth != depth || rest.front().data_type != wanted) return {};
    auto const* const value = &rest.front().value;
    rest = rest.subspan(1);
    return value;
  };
  while (!rest.empty()) {
    if (next(1, kind::array) == nullptr) return {};
    auto const* const first_text = next(2, kind::number);
    auto const* const last_text = next(2, kind::number);
    if (first_text == nullptr || last_text == nullptr) return {};
    constexpr auto top = static_cast<std::uint16_t>(redis_slots - 1);
    auto const first = whole_number<std::uint16_t>(*first_text, top);
    auto const last = whole_number<std::uint16_t>(*last_text, top);
    if (!first || !last || *first > *last) return {};
    bool is_master = true;
    while (next(2, kind::array) != nullptr) {
      auto const* host = next(3, kind::blob_string);
      std::string const nowhere;
      if (host == nullptr && next(3, kind::null) != nullptr) host = &nowhere;
      auto const* const port_text = next(3, kind::number);
      if (host == nullptr || port_text == nullptr) return {};
      auto const port = whole_number<std::uint16_t>(*port_text);
      if (!port) return {};
      while (!rest.empty() && rest.front().depth > 2) rest = rest.subspan(1);
      bool const serves = std::exchange(is_master, false);
      if (*port == 0) continue;  // it has no port of this kind, such as for TLS
      redis_place const place{redis_host(*host, asked), *port};
      if (serves) out.ranges_.push_back({*first, *last, place});
      out.everybody_.push_back(place);
    }
  }
  return out;
}

}  // namespace weir::detail

#endif
