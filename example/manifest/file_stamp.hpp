// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_FILE_STAMP_HPP
#define WEIR_EXAMPLE_MANIFEST_FILE_STAMP_HPP

#include "weir/job.hpp"

#include <boost/hash2/sha2.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace manifest {

/// What shows, without reading it, that a file is the one that it was: its size, its time of
/// modification and its inode. A program that writes to a file and sets all of these back to what
/// they were is not noticed, as with `make` and `rsync`.
struct file_stamp {
  std::uint64_t size = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  std::uint64_t inode = 0;

  [[nodiscard]] static file_stamp of(struct stat const& s) noexcept {
    return {static_cast<std::uint64_t>(s.st_size), s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_ino};
  }

  friend bool operator==(file_stamp const&, file_stamp const&) = default;
};

[[nodiscard]] inline std::string to_text(file_stamp const& s) {
  return std::to_string(s.size) + "," + std::to_string(s.seconds) + "," +
         std::to_string(s.nanoseconds) + "," + std::to_string(s.inode);
}

/// The id of the job that reads this file as it is: whoever finds it makes the same one, and one
/// that has changed is another job. A version 8 UUID (RFC 9562) of the SHA-256 of path and stamp.
[[nodiscard]] inline weir::job_id job_of(std::string_view path, file_stamp const& stamp) {
  auto const text = to_text(stamp);
  boost::hash2::sha2_256 sha;
  sha.update(text.data(), text.size() + 1);  // with the NUL, which neither of them has
  sha.update(path.data(), path.size());
  auto const digest = sha.result();
  weir::job_id id;
  std::copy_n(digest.begin(), id.size(), id.begin());
  id.data[6] = static_cast<std::uint8_t>(0x80U | (id.data[6] & 0x0FU));
  id.data[8] = static_cast<std::uint8_t>(0x80U | (id.data[8] & 0x3FU));
  return id;
}

/// A job's result: the digest, and the stamp of the file that it is the digest of.
[[nodiscard]] inline std::string result_text(std::string const& digest, file_stamp const& read) {
  return digest + " " + to_text(read);
}

[[nodiscard]] inline std::string digest_of(std::string_view result) {
  return std::string{result.substr(0, result.find(' '))};
}

/// Is the result that of the file as it was found?
[[nodiscard]] inline bool is_result_of(std::string_view result, file_stamp const& found) {
  auto const space = result.find(' ');
  return space != std::string_view::npos && result.substr(space + 1) == to_text(found);
}

}  // namespace manifest

#endif
