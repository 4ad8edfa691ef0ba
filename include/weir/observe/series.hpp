// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_SERIES_HPP
#define WEIR_OBSERVE_SERIES_HPP

#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Counters and histograms, and the text that Prometheus reads of them.
namespace weir::detail {

/// A number that only grows. Any number of threads.
class metric_counter {
 public:
  void add(std::uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// How long things took. Any number of threads; who reads it while others add may miss their last.
class metric_histogram {
 public:
  /// @param bounds of its buckets, growing; outlive this
  explicit metric_histogram(std::span<duration const> bounds)
      : bounds_{bounds},
        counts_(bounds.size() + 1) {}

  void add(duration d) noexcept {
    d = std::max(d, duration::zero());
    auto const bucket = std::ranges::lower_bound(bounds_, d) - bounds_.begin();
    counts_[static_cast<std::size_t>(bucket)].add();
    sum_.add(static_cast<std::uint64_t>(d.count()));
  }

  [[nodiscard]] std::span<duration const> bounds() const noexcept { return bounds_; }
  /// Of each bucket, and of what is above all of them.
  [[nodiscard]] std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> out;
    out.reserve(counts_.size());
    for (auto const& c : counts_) out.push_back(c.value());
    return out;
  }
  [[nodiscard]] duration sum() const noexcept {
    return duration{static_cast<duration::rep>(sum_.value())};
  }

 private:
  std::span<duration const> bounds_;
  std::vector<metric_counter> counts_;
  metric_counter sum_;
};

/// A label and its value. The name is weir's own, the value anything.
using metric_label = std::pair<std::string_view, std::string_view>;
using metric_labels = std::initializer_list<metric_label>;

/// Writes samples as Prometheus reads them: its text format 0.0.4, or OpenMetrics 1.0.
class metric_writer {
 public:
  explicit metric_writer(bool open) : open_{open} {}

  /// Begins a family. The name of a counter ends with `_total`.
  void family(std::string_view name, std::string_view type, std::string_view help) {
    auto of_family = name;
    if (open_ && type == "counter") of_family.remove_suffix(std::string_view{"_total"}.size());
    out_.append("# HELP ").append(of_family).append(" ").append(help).append("\n");
    out_.append("# TYPE ").append(of_family).append(" ").append(type).append("\n");
    name_ = name;
  }
  template <class Number>
  void sample(metric_labels labels, Number value) {
    line("", labels, {}, text_of(value));
  }
  void sample(metric_labels labels, metric_counter const& c) { sample(labels, c.value()); }
  void sample(metric_labels labels, metric_histogram const& h) {
    std::uint64_t upto = 0;
    auto const counts = h.counts();
    for (std::size_t i = 0; i != counts.size(); ++i) {
      upto += counts[i];
      auto const bound = i == h.bounds().size() ? std::string{"+Inf"} : seconds(h.bounds()[i]);
      line("_bucket", labels, bound, std::to_string(upto));
    }
    line("_sum", labels, {}, seconds(h.sum()));
    line("_count", labels, {}, std::to_string(upto));
  }

  [[nodiscard]] std::string take() && {
    if (open_) out_ += "# EOF\n";
    return std::move(out_);
  }

  [[nodiscard]] static std::string seconds(duration d) {
    return text_of(std::chrono::duration<double>(d).count());
  }

 private:
  template <std::integral Number>
  [[nodiscard]] static std::string text_of(Number n) {
    return std::to_string(n);
  }
  [[nodiscard]] static std::string text_of(double value) {
    std::array<char, 400> text{};  // the longest that there is
    auto const end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed).ptr;
    std::string out{text.data(), end};
    if (out.find('.') == out.npos) out += ".0";  // OpenMetrics wants a bound to be one
    return out;
  }

  void line(std::string_view suffix, metric_labels labels, std::string_view bound,
            std::string_view value) {
    out_.append(name_).append(suffix);
    char before = '{';
    auto const add = [&](std::string_view name, std::string_view text) {
      out_.append(1, std::exchange(before, ',')).append(name).append("=\"");
      for (char const c : text) {
        if (c == '\\' || c == '"') out_ += '\\';
        out_ += c;
      }
      out_ += '"';
    };
    for (auto const& [name, text] : labels) add(name, text);
    if (!bound.empty()) add("le", bound);
    if (before == ',') out_ += '}';
    out_.append(" ").append(value).append("\n");
  }

  bool open_;
  std::string name_;
  std::string out_;
};

}  // namespace weir::detail

#endif
