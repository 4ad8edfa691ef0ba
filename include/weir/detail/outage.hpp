// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_OUTAGE_HPP
#define WEIR_DETAIL_OUTAGE_HPP

#include "weir/detail/config.hpp"
#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/failure.hpp"
#include "weir/log.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// What is told of a store that keeps a connection, and has never run.
inline constexpr std::string_view store_never_run = "async_run was not called on this store";

/// Whether a store can be used, and why not. The log is told when an outage begins, when its cause
/// becomes another one, and when it ends, but not of each attempt in it. May be shared by threads.
class outage {
 public:
  /// @param who names the store in the log
  explicit outage(std::string who) : who_{std::move(who)} {}

  /// An outage from the beginning, of which the log is not told: the user has yet to do something.
  /// @param todo what
  outage(std::string who, std::string_view todo) : outage{std::move(who)} {
    last_ = {explained(errc::store_unavailable, todo), std::string{todo}, date(), false};
    away_ = true;
  }

  /// The store failed as a whole. Returns the error with the text in it.
  /// @param text where and why; empty: what `ec` carries
  error_code failed(error_code ec, std::string_view text = {}) noexcept {
    auto const full = explained(ec, text);
    try {
      std::string line;
      {
        std::lock_guard const lock{mutex_};
        if (!away_.exchange(true)) {
          last_.since = date();
          told_.clear();
        }
        last_.error = full;
        last_.text = printable(text.empty() ? explanation_of(ec) : text);
        if (last_.text.empty()) last_.text = ec.message();
        last_.over = false;
        line = who_ + ": " + ec.message();
        if (explanation_of(ec).empty() && !text.empty()) line += ": " + last_.text;
        if (!is_news(line)) return full;
      }
      bool const passes = ec == condition::transient;
      tell_log(passes ? log::level::warning : log::level::error, log::topic::store, line);
    } catch (...) {  // out of memory
    }
    return full;
  }
  error_code failed(errc e, std::string_view text) noexcept {
    return failed(make_error_code(e), text);
  }

  /// Tells the log of something that is not as it should be, once.
  void warn_once(log::topic about, std::string const& warning) {
    constexpr std::size_t most = 16;
    {
      std::lock_guard const lock{mutex_};
      if (warned_.size() == most || std::ranges::find(warned_, warning) != warned_.end()) return;
      warned_.push_back(warning);
    }
    tell_log(log::level::warning, about, who_ + ": " + warning);
  }

  /// The error of a command that has waited for too long. The log is told of an outage from the
  /// beginning now.
  error_code gives_up() noexcept {
    auto const own = error();
    return own ? failed(own)
               : explained(errc::store_unavailable,
                           reached_ ? "it did not serve this in time" : "no connection so far");
  }

  /// The user has done it, and nothing was tried yet. Nobody is told.
  void forget() noexcept {
    std::lock_guard const lock{mutex_};
    last_ = {};
    away_ = false;
  }

  /// The store answers.
  void recovered() noexcept {
    reached_ = true;
    if (!away_.load(std::memory_order_relaxed)) return;
    try {
      std::string line;
      {
        std::lock_guard const lock{mutex_};
        if (!away_.exchange(false)) return;
        last_.over = true;
        if (told_.empty()) return;
        auto const lasted = std::chrono::ceil<std::chrono::seconds>(date() - last_.since);
        line = who_ + ": it answers again, after " + std::to_string(lasted.count()) + " s";
      }
      tell_log(log::level::warning, log::topic::store, line);
    } catch (...) {  // out of memory
    }
  }

  [[nodiscard]] store_failure last() const {
    std::lock_guard const lock{mutex_};
    return last_;
  }

  /// The error while the store is away; empty: it is not.
  [[nodiscard]] error_code error() const noexcept {
    if (!away_.load(std::memory_order_relaxed)) return {};
    std::lock_guard const lock{mutex_};
    return last_.over ? error_code{} : last_.error;
  }

 private:
  static time_point date() noexcept {
    return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
  }

  /// Was this not told in this outage?
  bool is_news(std::string const& line) {
    constexpr std::size_t most = 8;
    if (told_.size() == most || std::ranges::find(told_, line) != told_.end()) return false;
    told_.push_back(line);
    return true;
  }

  std::string const who_;
  std::atomic<bool> away_{false};
  std::atomic<bool> reached_{false};  ///< at any time
  mutable std::mutex mutex_;          ///< of what follows
  store_failure last_{};
  std::vector<std::string> told_;    ///< in this outage
  std::vector<std::string> warned_;  ///< in all
};

}  // namespace weir::detail

#endif
