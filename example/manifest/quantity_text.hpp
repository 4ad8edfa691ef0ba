// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_QUANTITY_TEXT_HPP
#define WEIR_EXAMPLE_MANIFEST_QUANTITY_TEXT_HPP

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace manifest {

using seconds = std::chrono::duration<double>;

/// "8,005"
[[nodiscard]] inline std::string count_text(std::uint64_t count) {
  auto text = std::to_string(count);
  for (auto at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

/// "132 MB": in powers of 1000, with three digits that count.
[[nodiscard]] inline std::string bytes_text(double bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < units.size()) {
    bytes /= 1000;
    ++unit;
  }
  int const decimals = unit == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, bytes, units[unit]);
  return text.data();
}

/// "0.4 s", "42 s", "3:07", "1:02:03"
[[nodiscard]] inline std::string time_text(seconds time) {
  std::array<char, 64> text{};
  double const count = time.count() < 0 ? 0 : time.count();
  if (count < 9.95) {
    std::snprintf(text.data(), text.size(), "%.1f s", count);
    return text.data();
  }
  auto const whole = static_cast<unsigned long long>(count < 1e12 ? count + 0.5 : 1e12);
  if (whole < 60) {
    std::snprintf(text.data(), text.size(), "%llu s", whole);
  } else if (whole < 3600) {
    std::snprintf(text.data(), text.size(), "%llu:%02llu", whole / 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%llu:%02llu:%02llu", whole / 3600, whole / 60 % 60,
                  whole % 60);
  }
  return text.data();
}

}  // namespace manifest

#endif
