// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_DISPLAY_HPP
#define WEIR_EXAMPLE_MANIFEST_DISPLAY_HPP

#include "progress.hpp"

#include <sys/ioctl.h>

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

namespace manifest {

/// What people see, on standard error: a bar that is redrawn on a terminal, else lines. The
/// manifest itself may go to standard output.
class display {
 public:
  explicit display(bool plain) : bar_{!plain && draws()}, reminder_{bar_} {}

  /// Shows the progress if it is time to. A terminal that was stopped, or a pipe that nobody reads,
  /// is left out rather than waited for.
  void show(seconds now, progress const& p) {
    if (!reminder_.due(now, p.fraction())) return;
    pace_.add(now, p);
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
    if (bar_) {
      put("\r" + progress_bar(p, pace_, columns()) + "\x1B[K");
      drawn_ = true;
    } else {
      put(progress_line(p, pace_) + "\n");
    }
  }

  /// Shows text that stays, in place of the bar.
  void tell(std::string_view text) {
    if (drawn_) put("\r\x1B[K");
    drawn_ = false;
    put(text);
  }

 private:
  [[nodiscard]] static bool draws() {
    char const* const terminal = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr &&
           std::string_view{terminal} != "dumb";
  }

  // One less than there are, for a full line makes some terminals begin the next.
  [[nodiscard]] static std::size_t columns() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U
                                                                             : 79U;
  }

  // Nobody is left to tell that standard error cannot be written to.
  static void put(std::string_view text) {
    while (!text.empty()) {
      auto const n = ::write(STDERR_FILENO, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  bool bar_;
  bool drawn_ = false;
  reminder reminder_;
  pace pace_;
};

}  // namespace manifest

#endif
