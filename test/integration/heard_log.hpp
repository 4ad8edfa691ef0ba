// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_HEARD_LOG_HPP
#define WEIR_TEST_INTEGRATION_HEARD_LOG_HPP

#include "weir/log.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace weir_test {

/// Keeps what the log is told while it lives, in place of standard error.
class heard_log {
 public:
  struct line {
    weir::log::level level;
    weir::log::topic topic;
    std::string text;
  };

  heard_log() {
    weir::log::set_sink([own = own_](weir::log::record const& r) {
      std::lock_guard const lock{own->mutex};
      own->lines.push_back({r.level, r.topic, std::string{r.text}});
    });
  }
  heard_log(heard_log const&) = delete;
  heard_log& operator=(heard_log const&) = delete;
  ~heard_log() { weir::log::set_sink(&weir::log::to_stderr); }

  [[nodiscard]] std::vector<std::string> of(weir::log::topic topic) const {
    std::lock_guard const lock{own_->mutex};
    std::vector<std::string> out;
    for (auto const& l : own_->lines) {
      if (l.topic == topic) out.push_back(l.text);
    }
    return out;
  }
  [[nodiscard]] std::size_t count(std::string_view part) const {
    std::lock_guard const lock{own_->mutex};
    return static_cast<std::size_t>(std::ranges::count_if(
        own_->lines, [&](auto const& l) { return l.text.find(part) != l.text.npos; }));
  }
  /// As it would stand on standard error; empty: nothing was told.
  [[nodiscard]] std::string first() const {
    std::lock_guard const lock{own_->mutex};
    if (own_->lines.empty()) return {};
    auto const& l = own_->lines.front();
    return "weir: " + std::string{to_string(l.level)} + ": " + l.text;
  }
  [[nodiscard]] std::string all() const {
    std::lock_guard const lock{own_->mutex};
    std::string out;
    for (auto const& l : own_->lines) out += l.text + '\n';
    return out;
  }
  void forget() {
    std::lock_guard const lock{own_->mutex};
    own_->lines.clear();
  }

 private:
  struct kept {
    std::mutex mutex{};
    std::vector<line> lines{};
  };
  std::shared_ptr<kept> const own_ = std::make_shared<kept>();
};

}  // namespace weir_test

#endif
