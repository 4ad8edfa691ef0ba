// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_FILE_DESCRIPTOR_HPP
#define WEIR_EXAMPLE_MANIFEST_FILE_DESCRIPTOR_HPP

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace manifest {

/// Owns a descriptor, or none (-1).
class file_descriptor {
 public:
  file_descriptor() = default;
  explicit file_descriptor(int fd) noexcept : fd_{fd} {}
  file_descriptor(file_descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~file_descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  /// Closes it; what `close` answers.
  int close() noexcept { return fd_ < 0 ? 0 : ::close(std::exchange(fd_, -1)); }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// The system's words for an error number, such as "Permission denied".
[[nodiscard]] inline std::string system_text(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] inline void throw_errno(int error, std::string const& what) {
  throw std::system_error{error, std::generic_category(), what};
}

}  // namespace manifest

#endif
