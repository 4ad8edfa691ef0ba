// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Loaded into a server by LD_PRELOAD: its disk is full when a test says so, without the privileges
// that mounting a small one takes. While the file $WEIR_TEST_FULL exists, whatever is written to a
// file in a directory that is named in it fails for want of space.

#include <sys/types.h>
#include <sys/uio.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

namespace {

template <class Function>
Function next(char const* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool full(int fd) {
  auto const* const flag = ::getenv("WEIR_TEST_FULL");
  if (flag == nullptr) return false;
  int const said = ::open(flag, O_RDONLY | O_CLOEXEC);
  if (said < 0) return false;
  char where[64] = {};
  auto const n = ::read(said, where, sizeof(where) - 1);
  ::close(said);
  char link[64];
  char path[4096] = {};
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  bool const known = ::readlink(link, path, sizeof(path) - 1) > 0;
  if (n <= 0 || !known || ::strstr(path, where) == nullptr) return false;
  errno = ENOSPC;
  return true;
}

}  // namespace

extern "C" {

ssize_t write(int fd, void const* data, size_t n) {
  static auto const real = next<decltype(&::write)>("write");
  return full(fd) ? -1 : real(fd, data, n);
}
ssize_t pwrite(int fd, void const* data, size_t n, off_t at) {
  static auto const real = next<decltype(&::pwrite)>("pwrite");
  return full(fd) ? -1 : real(fd, data, n, at);
}
ssize_t pwrite64(int fd, void const* data, size_t n, off64_t at) {
  static auto const real = next<decltype(&::pwrite64)>("pwrite64");
  return full(fd) ? -1 : real(fd, data, n, at);
}
ssize_t pwritev(int fd, iovec const* data, int n, off_t at) {
  static auto const real = next<decltype(&::pwritev)>("pwritev");
  return full(fd) ? -1 : real(fd, data, n, at);
}
ssize_t pwritev64(int fd, iovec const* data, int n, off64_t at) {
  static auto const real = next<decltype(&::pwritev64)>("pwritev64");
  return full(fd) ? -1 : real(fd, data, n, at);
}
int posix_fallocate(int fd, off_t at, off_t n) {
  static auto const real = next<decltype(&::posix_fallocate)>("posix_fallocate");
  return full(fd) ? ENOSPC : real(fd, at, n);
}
int posix_fallocate64(int fd, off64_t at, off64_t n) {
  static auto const real = next<decltype(&::posix_fallocate64)>("posix_fallocate64");
  return full(fd) ? ENOSPC : real(fd, at, n);
}
}
