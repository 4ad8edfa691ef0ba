// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_JOB_CURSOR_HPP
#define WEIR_RULE_JOB_CURSOR_HPP

#include "weir/detail/whole_number.hpp"
#include "weir/job.hpp"

#include <boost/algorithm/hex.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace weir::rule {

/// How many records `command::list_jobs` looks at for one page.
inline constexpr std::size_t records_per_page = 1000;

/// Any bytes as a text that may stand in an address or in JSON.
[[nodiscard]] inline std::string cursor_text(std::string_view bytes) {
  std::string out;
  boost::algorithm::hex_lower(bytes.begin(), bytes.end(), std::back_inserter(out));
  return out;
}

/// The bytes again. Empty: it is no such text.
[[nodiscard]] inline std::optional<std::string> cursor_bytes(std::string_view text) {
  try {
    std::string out;
    boost::algorithm::unhex(text.begin(), text.end(), std::back_inserter(out));
    return out;
  } catch (boost::algorithm::hex_decode_error const&) {
    return std::nullopt;
  }
}

/// The number that the cursor of a page of dead letters is; 0 at the beginning. Empty: no page gave
/// this cursor.
[[nodiscard]] inline std::optional<std::uint64_t> number_of_cursor(std::string_view cursor) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  return cursor.empty() ? 0 : weir::detail::whole_number<std::uint64_t>(cursor, most);
}

/// The cursor of a listing by id that goes on after this one.
[[nodiscard]] inline std::string cursor_after(job_id const& id) {
  return cursor_text({reinterpret_cast<char const*>(id.data()), id.size()});
}

/// The id after which such a listing goes on; nil, which no job has, at its beginning. Empty: no
/// page gave this cursor.
[[nodiscard]] inline std::optional<job_id> id_of_cursor(std::string_view cursor) {
  job_id out{};
  if (cursor.empty()) return out;
  auto const bytes = cursor_bytes(cursor);
  if (!bytes || bytes->size() != out.size()) return std::nullopt;
  std::copy(bytes->begin(), bytes->end(), reinterpret_cast<char*>(out.begin()));
  return out;
}

}  // namespace weir::rule

#endif
