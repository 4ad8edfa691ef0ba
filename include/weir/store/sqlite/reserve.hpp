// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_RESERVE_HPP
#define WEIR_STORE_SQLITE_RESERVE_HPP

#include <cstdint>
#include <string>

#if !defined(_WIN32) && __has_include(<fcntl.h>) && __has_include(<unistd.h>)
#define WEIR_HAS_SQLITE_RESERVE 1
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>
#endif

namespace weir::detail {

/// Room on the disk that is kept for the commands which empty a full store: a file beside the
/// database, which is cut to nothing when they need its blocks.
///
/// The processes that share a database share the file, so each looks at it again before it relies
/// on it. Where there are no POSIX files there is no reserve, and it counts as whole. For one
/// thread.
class sqlite_reserve {
 public:
  /// @param database the file that it is for
  /// @param bytes its size; 0: there is none
  sqlite_reserve(std::string const& database, std::uint64_t bytes)
      : path_{database + "-reserve"},
        bytes_{bytes} {}
  sqlite_reserve(sqlite_reserve const&) = delete;
  sqlite_reserve& operator=(sqlite_reserve const&) = delete;

#ifdef WEIR_HAS_SQLITE_RESERVE
  ~sqlite_reserve() {
    if (file_ >= 0) ::close(file_);
  }

  /// Takes what is missing from the disk. False: there is no such room, and the file is empty.
  [[nodiscard]] bool fill() noexcept {
    if (is_whole()) return true;
    if (!open(true)) return false;
    if (is_whole() || allocate(static_cast<::off_t>(bytes_))) return true;
    static_cast<void>(give_up());
    return false;
  }

  /// Is it there, as far as is known without making it?
  [[nodiscard]] bool is_whole() const noexcept {
    if (bytes_ == 0) return true;
    struct ::stat s{};
    return ::fstat(file_, &s) == 0 && s.st_nlink != 0 &&
           static_cast<std::uint64_t>(s.st_size) >= bytes_;
  }

  /// Gives its room back to the disk. False: there was none.
  [[nodiscard]] bool give_up() noexcept {
    return bytes_ != 0 && open(false) && size() != 0 && ::ftruncate(file_, 0) == 0;
  }

 private:
  /// The file may be another process's, or have been deleted since.
  [[nodiscard]] bool open(bool make) noexcept {
    if (file_ >= 0 && names_of_file() != 0) return true;
    if (file_ >= 0) ::close(file_);
    file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0666);
    return file_ >= 0;
  }
  [[nodiscard]] bool allocate(::off_t bytes) noexcept {
#ifdef __APPLE__
    ::fstore_t blocks{F_ALLOCATEALL, F_PEOFPOSMODE, 0, bytes, 0};
    return ::fcntl(file_, F_PREALLOCATE, &blocks) != -1 && ::ftruncate(file_, bytes) == 0;
#else
    return ::posix_fallocate(file_, 0, bytes) == 0;
#endif
  }
  [[nodiscard]] std::uint64_t names_of_file() const noexcept {
    struct ::stat s{};
    return ::fstat(file_, &s) == 0 ? s.st_nlink : 0;
  }
  [[nodiscard]] std::uint64_t size() const noexcept {
    struct ::stat s{};
    return ::fstat(file_, &s) == 0 ? static_cast<std::uint64_t>(s.st_size) : 0;
  }

  int file_ = -1;
#else
  [[nodiscard]] bool fill() noexcept { return true; }
  [[nodiscard]] bool is_whole() const noexcept { return true; }
  [[nodiscard]] bool give_up() noexcept { return false; }

 private:
#endif

  std::string path_;
  [[maybe_unused]] std::uint64_t bytes_;
};

}  // namespace weir::detail

#endif
