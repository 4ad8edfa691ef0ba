// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_LOG_STATE_HPP
#define WEIR_DETAIL_LOG_STATE_HPP

#include "weir/detail/config.hpp"
#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/log_record.hpp"

#include <boost/system/system_error.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::log {

WEIR_DECL void to_stderr(record const& what) noexcept {
  auto const name = to_string(what.level);
  std::fprintf(stderr, "weir: %.*s: %.*s\n", static_cast<int>(name.size()), name.data(),
               static_cast<int>(what.text.size()), what.text.data());
}

}  // namespace weir::log

namespace weir::detail {

/// Ten in ten seconds, of each topic.
class log_pace {
 public:
  using instant = std::chrono::steady_clock::time_point;

  /// How many were left out since the last one; empty: this one is left out, too.
  [[nodiscard]] std::optional<std::uint64_t> admit(log::topic t, instant now) noexcept {
    constexpr std::uint32_t most = 10;
    constexpr std::chrono::seconds span{10};
    auto& of = topics_[static_cast<std::size_t>(t) % topics_.size()];
    if (of.told == 0 || now - of.begun >= span) {
      of.begun = now;
      of.told = 0;
    }
    if (of.told == most) {
      ++of.left_out;
      return std::nullopt;
    }
    ++of.told;
    return std::exchange(of.left_out, 0);
  }

 private:
  struct window {
    instant begun{};
    std::uint32_t told = 0;
    std::uint64_t left_out = 0;
  };
  std::array<window, 8> topics_{};
};

/// The process's.
struct log_state {
  std::atomic<log::level> least{log::level::warning};
  std::mutex mutex{};  ///< of what follows
  std::shared_ptr<log::sink const> to = std::make_shared<log::sink const>(&log::to_stderr);
  log_pace pace{};

  [[nodiscard]] static log_state& get() {
    static auto& only = *new log_state;  // never destroyed: something may be told at the very end
    return only;
  }
};

WEIR_DECL bool logs([[maybe_unused]] log::level level) noexcept {
#if defined(WEIR_NO_LOG)
  return false;
#else
  try {
    return level <= log_state::get().least.load(std::memory_order_relaxed);
  } catch (...) {
    return false;
  }
#endif
}

WEIR_DECL void tell_log(log::level level, log::topic topic, std::string_view text) noexcept {
  if (!logs(level)) return;
  try {
    auto& own = log_state::get();
    std::shared_ptr<log::sink const> to;
    std::optional<std::uint64_t> left_out;
    {
      std::lock_guard const lock{own.mutex};
      to = own.to;
      if (!to || !*to) return;
      left_out = own.pace.admit(topic, std::chrono::steady_clock::now());
    }
    if (!left_out) return;
    constexpr std::size_t longest = 1000;
    auto line = printable(text, longest);
    if (*left_out != 0) {
      line += " (" + std::to_string(*left_out) + " more about " +
              std::string{log::to_string(topic)} + " were left out)";
    }
    (*to)({level, topic, line});
  } catch (...) {  // nobody can be told
  }
}

WEIR_DECL void tell_failure_of(std::string_view operation, std::string_view why) noexcept {
  try {
    tell_log(log::level::error, log::topic::application,
             std::string{operation} + ": " + std::string{why});
  } catch (...) {  // out of memory
  }
}

WEIR_DECL void tell_failure_of(std::string_view operation, error_code const& ec) noexcept {
  if (!ec || ec == boost::system::errc::operation_canceled) return;
  try {
    tell_failure_of(operation, ec.message());
  } catch (...) {  // out of memory
  }
}

WEIR_DECL void tell_failure_of(std::string_view operation, std::exception_ptr const& e) noexcept {
  if (!e) return;
  try {
    std::rethrow_exception(e);
  } catch (boost::system::system_error const& error) {
    tell_failure_of(operation, error.code());
  } catch (std::exception const& error) {
    tell_failure_of(operation, error.what());
  } catch (...) {
    tell_failure_of(operation, "an exception that is not a std::exception");
  }
}

}  // namespace weir::detail

namespace weir::log {

WEIR_DECL void set_sink(sink to) {
  auto shared = std::make_shared<sink const>(std::move(to));
  auto& own = weir::detail::log_state::get();
  std::lock_guard const lock{own.mutex};
  std::swap(own.to, shared);
  own.pace = {};
}

WEIR_DECL void set_level(level least) noexcept {
  try {
    weir::detail::log_state::get().least.store(least, std::memory_order_relaxed);
  } catch (...) {  // no memory: it stays as it was
  }
}

}  // namespace weir::log

#endif
