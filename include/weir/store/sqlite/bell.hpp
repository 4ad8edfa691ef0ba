// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_BELL_HPP
#define WEIR_STORE_SQLITE_BELL_HPP

#include "weir/time.hpp"

#include <string>
#include <utility>

#if defined(__linux__) && __has_include(<sys/inotify.h>) && __has_include(<sys/eventfd.h>)
#include <fcntl.h>
#if defined(F_OFD_GETLK)
#define WEIR_HAS_SQLITE_BELL 1
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <system_error>
#endif
#endif

namespace weir::detail {

/// How stores in several processes tell each other that something was committed: by an empty file
/// beside the database, whose name ends in `-bell`.
///
/// A store that waits for others' commits listens: it watches the file, and holds a shared lock on
/// it, which goes with its process. After a commit a store looks whether any other has such a lock,
/// and only then touches the file. A listener has its lock before it reads the database, so it
/// either reads a commit or is told of it. In an application's transaction the bell is rung before
/// the commit, which is not weir's; therefore a listener that was rung for looks often for a while.
///
/// It is Linux's: elsewhere, and where the file, its watch or its lock cannot be had, nobody
/// listens, and whoever waits has to poll. All but `wake` is for one thread at a time; `wait` may
/// go on beside the others.
class sqlite_bell {
 public:
  sqlite_bell() = default;
  sqlite_bell(sqlite_bell const&) = delete;
  sqlite_bell& operator=(sqlite_bell const&) = delete;

#ifdef WEIR_HAS_SQLITE_BELL
  static constexpr bool is_possible = true;  ///< on this system

  ~sqlite_bell() {
    for (int const fd : {file_, inotify_, event_}) {
      if (fd >= 0) ::close(fd);
    }
  }

  /// Says of which database it is.
  void hang(std::string const& database) {
    auto path = database + "-bell";
    if (path == path_) return;
    path_ = std::move(path);
    drop();
  }

  /// Listens from here on, if it does not yet. False: it cannot be, and `cause` says why.
  [[nodiscard]] bool listen() noexcept {
    if (listens_ && is_there()) return true;
    listens_ = open(O_CREAT) && prepare() && lock(F_RDLCK);
    return listens_;
  }

  /// Listens no more.
  void ignore() noexcept {
    if (std::exchange(listens_, false)) static_cast<void>(lock(F_UNLCK));
  }

  /// Tells the others who listen.
  void ring() noexcept {
    if (!open(0)) return;  // whoever listens has made it
    struct ::flock other = whole(F_WRLCK);
    bool const nobody = ::fcntl(file_, F_OFD_GETLK, &other) == 0 && other.l_type == F_UNLCK;
    if (!nobody) ::futimens(file_, nullptr);
  }

  /// Waits until somebody rings, or `wake` is called, or the time is over. Only after `listen`.
  /// @param heed if not, it waits for `wake` alone; a ring is told by the next call
  /// @returns whether somebody has rung
  bool wait(duration most, bool heed) const noexcept {
    std::array<::pollfd, 2> on{{{event_, POLLIN, 0}, {inotify_, POLLIN, 0}}};
    auto const left = std::max(most, duration::zero());
    auto const whole = std::chrono::duration_cast<std::chrono::seconds>(left);
    ::timespec const time{static_cast<std::time_t>(whole.count()),
                          static_cast<long>(std::chrono::nanoseconds{left - whole}.count())};
    if (::ppoll(on.data(), heed ? 2 : 1, &time, nullptr) <= 0) return false;
    // One event is as good as many.
    std::array<char, 4096> ignored;
    for (auto const& p : on) {
      while (p.revents != 0 && ::read(p.fd, ignored.data(), ignored.size()) > 0) {
      }
    }
    return on[1].revents != 0;
  }

  /// Ends a `wait`, or the next one. Of any thread, once `listen` has succeeded.
  void wake() const noexcept {
    std::uint64_t const one = 1;
    static_cast<void>(!::write(event_, &one, sizeof(one)));
  }

  /// Why `listen` has failed.
  [[nodiscard]] std::string cause() const {
    return std::error_code{failure_, std::system_category()}.message();
  }

 private:
  static struct ::flock whole(short type) noexcept {
    struct ::flock out{};
    out.l_type = type;
    out.l_whence = SEEK_SET;
    return out;
  }
  [[nodiscard]] bool lock(short type) noexcept {
    auto all = whole(type);
    return ::fcntl(file_, F_OFD_SETLK, &all) == 0 || fails();
  }
  bool fails() noexcept {
    failure_ = errno;
    return false;
  }

  /// The file may have been deleted since.
  [[nodiscard]] bool is_there() const noexcept {
    struct ::stat s{};
    return file_ >= 0 && ::fstat(file_, &s) == 0 && s.st_nlink != 0;
  }

  [[nodiscard]] bool open(int make) noexcept {
    if (is_there()) return true;
    drop();
    file_ = ::open(path_.c_str(), O_RDWR | make | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (file_ < 0) return fails();
    struct ::stat s{};
    if (::fstat(file_, &s) == 0 && S_ISREG(s.st_mode)) return true;
    drop();
    errno = EINVAL;
    return fails();
  }

  void drop() noexcept {
    if (file_ >= 0) ::close(std::exchange(file_, -1));
    listens_ = false;
  }

  /// Makes the descriptors that `wait` waits for. Watches of files that are gone go by themselves.
  [[nodiscard]] bool prepare() noexcept {
    if (event_ < 0) event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_ < 0) return fails();
    if (inotify_ < 0) inotify_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (inotify_ < 0) return fails();
    return ::inotify_add_watch(inotify_, path_.c_str(), IN_ATTRIB) >= 0 || fails();
  }

  std::string path_;
  int file_ = -1;
  int inotify_ = -1;
  int event_ = -1;
  int failure_ = 0;
  bool listens_ = false;
#else
  static constexpr bool is_possible = false;

  void hang(std::string const&) noexcept {}
  [[nodiscard]] bool listen() noexcept { return false; }
  void ignore() noexcept {}
  void ring() noexcept {}
  bool wait(duration, bool) const noexcept { return false; }
  void wake() const noexcept {}
  [[nodiscard]] std::string cause() const { return {}; }
#endif
};

}  // namespace weir::detail

#endif
