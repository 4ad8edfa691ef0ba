// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_DISPLAY_HPP
#define WEIR_EXAMPLE_MANIFEST_DISPLAY_HPP

#include "../printable.hpp"
#include "tree.hpp"

#include <sys/ioctl.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace manifest {

/// How far the run is.
struct progress {
  std::uint64_t files_found = 0, bytes_found = 0;
  std::uint64_t files_done = 0;  ///< listed or given up
  std::uint64_t bytes_done = 0;  ///< of files that are done, and read of those that are not
  std::uint64_t bytes_read = 0;  ///< of them, those that this process read
  std::uint64_t stored = 0;      ///< files read before, or by another process
  std::uint64_t retries = 0, dead = 0;
};

/// What people see, on standard error: a bar that is redrawn on a terminal, else lines. Names are
/// shown as printable ASCII.
class display {
 public:
  explicit display(bool plain) : bar_{!plain && ::isatty(STDERR_FILENO) == 1} {}

  /// Redraws the bar; or, without one, says a line if there is 5 % more to tell and a second has
  /// passed, or half a minute.
  void show(progress const& p) {
    // A file costs time of its own, here that of reading so many bytes.
    auto const work = [](auto files, auto bytes) {
      return static_cast<double>(files * 32768 + bytes);
    };
    auto const all = std::max(work(p.files_found, p.bytes_found), 1.0);
    auto const fraction = std::min(work(p.files_done, p.bytes_done) / all, 1.0);
    auto const now = elapsed();
    if (!bar_ && now < shown_ + 30 && (now < shown_ + 1 || fraction < told_ + 0.05)) return;
    shown_ = now;
    told_ = fraction;

    auto line = format("%3d %%  ", static_cast<int>(fraction * 100));
    if (p.bytes_read > 0 && p.bytes_done < p.bytes_found) {
      auto const left = now * static_cast<double>(p.bytes_found - p.bytes_done);
      line += time(left / static_cast<double>(p.bytes_read)) + " left  ";
    }
    line += count(p.files_done) + " of " + count(p.files_found) + " files  " + bytes(p.bytes_done) +
            " of " + bytes(p.bytes_found) + "  " + rate(p.bytes_read);
    if (p.retries > 0) line += "  " + count(p.retries) + " retried";
    if (p.dead > 0) line += "  " + count(p.dead) + " dead";
    if (!bar_) return tell(line + "\n");
    auto const filled = static_cast<std::size_t>(fraction * 10);
    line = "[" + std::string(filled, '#') + std::string(10 - filled, '-') + "] " + line;
    winsize size{};
    bool const known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    // A full line makes some terminals begin the next.
    std::fputs(("\r" + line.substr(0, known ? size.ws_col - 1U : 79U) + "\x1B[K").c_str(), stderr);
    drawn_ = true;
  }

  /// Shows text that stays, in place of the bar.
  void tell(std::string const& text) {
    if (std::exchange(drawn_, false)) std::fputs("\r\x1B[K", stderr);
    std::fputs(text.c_str(), stderr);
  }

  /// Ends the process at once, and says why, without passwords. Threads may go on until then.
  [[noreturn]] void give_up(exit_code code, std::string_view why) {
    tell("manifest: " + example::printable(example::without_password(why)) + "\n");
    std::_Exit(code);
  }

  /// What became of the files, how fast, and what is missing and why.
  void report(progress const& p, tree const& found) {
    tell(count(p.files_found) + " files: " + count(p.files_done - p.dead) + " listed (" +
         count(p.stored) + " from the store, " + count(p.files_done - p.dead - p.stored) +
         " read), " + count(p.retries) + " retries, " + count(p.dead) + " dead; " +
         bytes(p.bytes_read) + " in " + time(elapsed()) + ", " + rate(p.bytes_read) + "\n");
    list("dead letters (not in the manifest)", found.unread);
    list("not walked (their files are not in the manifest)", found.unwalked);
  }

 private:
  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>{std::chrono::steady_clock::now() - began_}.count();
  }

  template <class... Values>
  static std::string format(char const* pattern, Values... values) {
    std::array<char, 128> text{};
    std::snprintf(text.data(), text.size(), pattern, values...);
    return text.data();
  }

  /// "8,005"
  static std::string count(std::uint64_t n) {
    auto text = std::to_string(n);
    for (auto at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
    return text;
  }

  /// "132 MB": in powers of 1000, with three digits that count.
  static std::string bytes(std::uint64_t n) {
    auto value = static_cast<double>(n);
    std::string_view units = "BkMGTPE";
    for (; value >= 999.5; value /= 1000) units.remove_prefix(1);
    int const decimals = n < 1000 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    return format("%.*f %.*s", decimals, value, 1, units.data()) + (n < 1000 ? "" : "B");
  }
  [[nodiscard]] std::string rate(std::uint64_t n) const {
    return bytes(static_cast<std::uint64_t>(static_cast<double>(n) / std::max(elapsed(), 1e-3))) +
           "/s";
  }

  /// "3.2 s", "42 s", "3:07"
  static std::string time(double seconds) {
    if (seconds < 59.5) return format(seconds < 9.95 ? "%.1f s" : "%.0f s", seconds);
    auto const whole = std::llround(seconds);
    return format("%lld:%02lld", whole / 60, whole % 60);
  }

  void list(std::string const& what, std::vector<missing_path> const& missing) {
    constexpr std::size_t most = 20;
    if (!missing.empty()) tell(what + ":\n");
    for (std::size_t i = 0; i < std::min(most, missing.size()); ++i) {
      tell(example::printable("  " + missing[i].path + ": " + missing[i].reason) + "\n");
    }
    if (missing.size() > most) tell("  and " + count(missing.size() - most) + " more\n");
  }

  bool bar_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point const began_ = std::chrono::steady_clock::now();
  double shown_ = 0;  // when, in seconds since then
  double told_ = 0;   // which fraction
};

}  // namespace manifest

#endif
