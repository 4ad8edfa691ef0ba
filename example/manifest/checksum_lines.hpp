// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_CHECKSUM_LINES_HPP
#define WEIR_EXAMPLE_MANIFEST_CHECKSUM_LINES_HPP

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace manifest {

struct checksum {
  std::string path;
  std::string digest;  ///< in lower-case hexadecimal
};

/// One line as coreutils' `sha256sum` 9 prints it: digest, two spaces, path. A path with a
/// backslash, newline or carriage return has these escaped, and then the line begins with a
/// backslash.
inline void append_line(std::string& out, checksum const& sum) {
  if (sum.path.find_first_of("\\\n\r") == std::string::npos) {
    out.append(sum.digest).append("  ").append(sum.path).append("\n");
    return;
  }
  out.append("\\").append(sum.digest).append("  ");
  for (char const c : sum.path) {
    switch (c) {
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      default: out += c;
    }
  }
  out += '\n';
}

/// The order of a manifest's lines: by the bytes of their paths, as `LC_ALL=C sort` has it.
inline void sort_by_path(std::vector<checksum>& sums) {
  std::ranges::sort(sums, {}, &checksum::path);
}

}  // namespace manifest

#endif
