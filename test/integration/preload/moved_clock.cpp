// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Loaded into a server by LD_PRELOAD: its date is what a test makes it. The file $WEIR_TEST_CLOCK
// has how many seconds it is ahead, eight bytes, which may change while the server runs. Clocks
// that are no date go on as they do. (libfaketime and jemalloc, which redis-server uses, do not get
// along.)

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace {

std::int64_t const volatile* mapped() {
  static constexpr std::int64_t nothing = 0;
  auto const* const name = ::getenv("WEIR_TEST_CLOCK");
  int const file = name == nullptr ? -1 : ::open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return &nothing;
  auto* const at = ::mmap(nullptr, sizeof(nothing), PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  return at == MAP_FAILED ? &nothing : static_cast<std::int64_t const*>(at);
}

std::int64_t ahead() {
  static auto const* const at = mapped();
  return *at;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t which, timespec* t) noexcept {
  if (::syscall(SYS_clock_gettime, which, t) != 0) return -1;
  if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE) t->tv_sec += ahead();
  return 0;
}
int gettimeofday(timeval* t, void* /*zone*/) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *t = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}
time_t time(time_t* t) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (t != nullptr) *t = now.tv_sec;
  return now.tv_sec;
}
}
