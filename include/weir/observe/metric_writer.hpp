// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_METRIC_WRITER_HPP
#define WEIR_OBSERVE_METRIC_WRITER_HPP

#include "weir/observe/series.hpp"
#include "weir/time.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

// The text that Prometheus reads.
namespace weir::detail {

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
  void sample(metric_labels labels, metric_cell const& c) { sample(labels, c.value()); }
  void sample(metric_labels labels, histogram_cells const& h) {
    std::uint64_t upto = 0;
    auto const counts = h.counts();
    for (std::size_t i = 0; i != counts.size(); ++i) {
      upto += counts[i];
      auto const bound = i == h.bounds().size() ? std::string{"+Inf"} : seconds(h.bounds()[i]);
      line("_bucket", labels, bound, std::to_string(upto));
    }
    line("_sum", labels, {}, text_of(h.sum()));
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
