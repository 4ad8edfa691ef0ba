// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_FILE_DIGEST_HPP
#define WEIR_EXAMPLE_MANIFEST_FILE_DIGEST_HPP

#include "file_descriptor.hpp"
#include "file_stamp.hpp"

#include <openssl/evp.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace manifest {

/// A file that cannot be read to its end; `what` says why.
struct unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// SHA-256 of bytes that come in pieces.
class sha256 {
 public:
  sha256() : context_{::EVP_MD_CTX_new()} {
    if (!context_) throw std::bad_alloc{};
    if (::EVP_DigestInit_ex(context_.get(), ::EVP_sha256(), nullptr) != 1) failed();
  }

  void update(std::span<char const> bytes) {
    if (::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) failed();
  }

  /// The digest in lower-case hexadecimal. Nothing can be added any more.
  [[nodiscard]] std::string finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned int size = 0;
    if (::EVP_DigestFinal_ex(context_.get(), bytes.data(), &size) != 1) failed();
    constexpr std::string_view digits = "0123456789abcdef";
    std::string hex;
    for (unsigned char const byte : std::span{bytes}.first(size)) {
      hex += digits[byte >> 4U];
      hex += digits[byte & 0xFU];
    }
    return hex;
  }

 private:
  struct free_context {
    void operator()(EVP_MD_CTX* context) const noexcept { ::EVP_MD_CTX_free(context); }
  };

  [[noreturn]] static void failed() { throw std::runtime_error{"SHA-256 is not available"}; }

  std::unique_ptr<EVP_MD_CTX, free_context> context_;
};

/// How much to read next of a file that was `size` bytes long when it was opened: at most `chunk`,
/// at least 1, for only a read that finds nothing shows the end. Some files (in /proc, say) have
/// more than their size tells.
[[nodiscard]] constexpr std::uint64_t next_read(std::uint64_t size, std::uint64_t offset,
                                                std::uint64_t chunk) noexcept {
  if (offset < size) return std::min(size - offset, chunk);
  return offset == size ? 1 : std::min<std::uint64_t>(chunk, 4096);
}

/// Reads one file and digests it, in blocking steps that belong on a thread where nobody minds.
/// Every step may throw `unreadable`.
class file_digest {
 public:
  explicit file_digest(std::string const& path)
      // A file may have become a link or a pipe since it was found: neither is followed nor waited
      // for.
      : fd_{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK)} {
    if (!fd_) throw unreadable{system_text(errno)};
    status(opened_);
    if (!S_ISREG(opened_.st_mode)) throw unreadable{"not a regular file any more"};
  }

  /// When it was opened.
  [[nodiscard]] std::uint64_t size() const noexcept {
    return static_cast<std::uint64_t>(opened_.st_size);
  }
  [[nodiscard]] file_stamp stamp() const noexcept { return file_stamp::of(opened_); }
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

  /// Reads and digests up to `wanted` bytes. Less were read: that was the end.
  std::uint64_t read(std::uint64_t wanted) {
    thread_local std::vector<char> buffer(std::size_t{1} << 17U);
    std::uint64_t done = 0;
    while (done < wanted) {
      auto const most = std::min<std::uint64_t>(wanted - done, buffer.size());
      auto const n = ::read(fd_.get(), buffer.data(), static_cast<std::size_t>(most));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw unreadable{system_text(errno)};
      if (n == 0) break;
      digest_.update(std::span{buffer}.first(static_cast<std::size_t>(n)));
      done += static_cast<std::uint64_t>(n);
    }
    offset_ += done;
    return done;
  }

  /// The digest of what was read. A file that was written to meanwhile, as far as its size and its
  /// time of modification tell, has none: what was read may be something that it never was.
  [[nodiscard]] std::string finish() {
    struct stat now{};
    status(now);
    if (now.st_size != opened_.st_size || now.st_mtim.tv_sec != opened_.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != opened_.st_mtim.tv_nsec) {
      throw unreadable{"changed while it was read"};
    }
    return digest_.finish();
  }

 private:
  void status(struct stat& filled) const {
    if (::fstat(fd_.get(), &filled) != 0) throw unreadable{system_text(errno)};
  }

  file_descriptor fd_;
  struct stat opened_{};
  std::uint64_t offset_ = 0;
  sha256 digest_;
};

}  // namespace manifest

#endif
