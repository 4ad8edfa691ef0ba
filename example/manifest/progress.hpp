// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_PROGRESS_HPP
#define WEIR_EXAMPLE_MANIFEST_PROGRESS_HPP

#include "quantity_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace manifest {

/// How far the run is.
struct progress {
  std::uint64_t files_found = 0;
  std::uint64_t files_done = 0;  ///< listed or given up
  std::uint64_t bytes_found = 0;
  std::uint64_t bytes_done = 0;  ///< of files that are done, and read of those that are not
  std::uint64_t retries = 0;
  std::uint64_t dead = 0;
  bool walking = true;  ///< more files may be found

  /// The work done and to do, in bytes. A file costs time of its own, here that of reading so many
  /// bytes.
  static constexpr std::uint64_t bytes_per_file = 1 << 15;
  [[nodiscard]] double work_done() const noexcept { return work(bytes_done, files_done); }
  [[nodiscard]] double work_found() const noexcept { return work(bytes_found, files_found); }

  /// From 0 to 1. Not known while walking.
  [[nodiscard]] std::optional<double> fraction() const noexcept {
    if (walking) return std::nullopt;
    if (files_done >= files_found) return 1.0;
    return std::clamp(work_done() / work_found(), 0.0, 0.999);
  }

 private:
  [[nodiscard]] static double work(std::uint64_t bytes, std::uint64_t files) noexcept {
    return static_cast<double>(bytes) + static_cast<double>(files * bytes_per_file);
  }
};

/// The pace of the last ten seconds. Times are those since the start, and never run back.
class pace {
 public:
  void add(seconds now, progress const& p) {
    samples_.push_back(
        {now, static_cast<double>(p.bytes_done), p.work_done(), p.work_found() - p.work_done()});
    while (samples_.size() > 2 && now - samples_[1].time >= window) samples_.pop_front();
  }

  [[nodiscard]] double bytes_per_second() const noexcept { return per_second(&sample::bytes); }

  /// How long the rest takes. Not known before anything was done.
  [[nodiscard]] std::optional<seconds> left() const noexcept {
    double const speed = per_second(&sample::work);
    if (speed <= 0) return std::nullopt;
    return seconds{std::max(0.0, samples_.back().rest) / speed};
  }

 private:
  static constexpr seconds window{10};

  struct sample {
    seconds time;
    double bytes;
    double work;
    double rest;
  };

  [[nodiscard]] double per_second(double sample::* what) const noexcept {
    if (samples_.empty()) return 0;
    // The first ones count from the start, where nothing was done.
    sample const from = samples_.size() == 1 ? sample{} : samples_.front();
    seconds const time = samples_.back().time - from.time;
    return time.count() > 0 ? std::max(0.0, (samples_.back().*what - from.*what) / time.count())
                            : 0;
  }

  std::deque<sample> samples_;
};

/// When to show progress: a bar at most ten times a second; lines at most once a second, and only
/// when there is 5 % more to tell, or half a minute has passed.
class reminder {
 public:
  explicit reminder(bool bar) noexcept : bar_{bar} {}

  [[nodiscard]] bool due(seconds now, std::optional<double> fraction) noexcept {
    auto const since = now - shown_;
    double const more = fraction.value_or(0) - told_;
    bool const yes = bar_ ? since >= seconds{0.1}
                          : since >= seconds{30} || (since >= seconds{1} && more >= 0.05);
    if (yes) {
      shown_ = now;
      told_ = fraction.value_or(0);
    }
    return yes;
  }

 private:
  bool bar_;
  seconds shown_{0};
  double told_ = 0;
};

/// One line without its end: "45 %  3,602 of 8,005 files  59.1 MB of 132 MB  210 MB/s  3.1 s left
/// 2 retries  1 dead".
[[nodiscard]] inline std::string progress_line(progress const& p, pace const& speed) {
  std::string line;
  if (auto const fraction = p.fraction()) {
    auto const percent = std::to_string(static_cast<int>(*fraction * 100));
    line += std::string(3 - std::min<std::size_t>(3, percent.size()), ' ') + percent + " %  ";
  }
  line += count_text(p.files_done) + " of " + count_text(p.files_found) + (p.walking ? "+" : "") +
          " files  ";
  line += bytes_text(static_cast<double>(p.bytes_done)) + " of " +
          bytes_text(static_cast<double>(p.bytes_found)) + (p.walking ? "+" : "") + "  ";
  line += bytes_text(speed.bytes_per_second()) + "/s";
  if (auto const left = speed.left(); left && !p.walking) line += "  " + time_text(*left) + " left";
  if (p.retries > 0)
    line += "  " + count_text(p.retries) + (p.retries == 1 ? " retry" : " retries");
  if (p.dead > 0) line += "  " + count_text(p.dead) + " dead";
  return line;
}

/// The same with a bar before it, in at most `columns` columns: in a narrow terminal the bar goes
/// first, then the end of the line.
[[nodiscard]] inline std::string progress_bar(progress const& p, pace const& speed,
                                              std::size_t columns) {
  auto line = progress_line(p, speed);
  constexpr std::size_t widest = 30;
  std::size_t const room = columns > line.size() + 3 ? columns - line.size() - 3 : 0;
  if (auto const width = std::min(widest, room); width >= 5) {
    auto const filled =
        static_cast<std::size_t>(p.fraction().value_or(0) * static_cast<double>(width));
    line = "[" + std::string(filled, '#') + std::string(width - filled, '-') + "] " + line;
  }
  return line.substr(0, columns);
}

}  // namespace manifest

#endif
