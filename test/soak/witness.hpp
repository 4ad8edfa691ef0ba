// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_WITNESS_HPP
#define WEIR_TEST_SOAK_WITNESS_HPP

#include "weir/clock/system.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"

#include <boost/asio/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

// What a process saw, outside of the store: a line for each event, appended with one write(), so
// that a process that is killed leaves all that it had seen.
namespace soak {

/// CLOCK_BOOTTIME in nanoseconds: one clock for all processes of a host.
[[nodiscard]] inline std::int64_t boot_now() {
  return weir::system_clock::steady_now().time_since_epoch().count();
}

[[nodiscard]] constexpr std::int64_t ns_of(weir::duration d) { return d.count(); }

/// One event. Words have no spaces; an empty one is written as `-`.
struct record {
  std::int64_t at = 0;      ///< CLOCK_BOOTTIME
  std::string kind{};       ///< ask, end, held, drop, run, ran, completed, dead, state, …
  std::uint64_t op = 0;     ///< of this process; 0: none
  std::string name{};       ///< of the operation
  std::string key{};        ///< permit, lock, bucket, queue or job
  std::uint64_t fence = 0;  ///< of the lease
  std::int64_t n = 0;       ///< ask: its bound; end of a lease's operation: its expiry; …
  std::string detail{};     ///< end: the outcome

  [[nodiscard]] std::string line() const {
    auto const word = [](std::string const& s) { return s.empty() ? std::string{"-"} : s; };
    std::ostringstream out;
    out << at << ' ' << word(kind) << ' ' << op << ' ' << word(name) << ' ' << word(key) << ' '
        << fence << ' ' << n << ' ' << word(detail) << '\n';
    return out.str();
  }
  [[nodiscard]] static record parse(std::string const& line) {
    record r;
    std::istringstream in{line};
    in >> r.at >> r.kind >> r.op >> r.name >> r.key >> r.fence >> r.n >> r.detail;
    if (!in) throw std::runtime_error{"a witness wrote what cannot be read: " + line};
    for (auto* word : {&r.name, &r.key, &r.detail}) {
      if (*word == "-") word->clear();
    }
    return r;
  }
};

/// An outcome in one word.
[[nodiscard]] inline std::string word_of(weir::error_code ec) {
  if (ec == weir::errc::timed_out) return "timed_out";
  if (ec == weir::errc::store_unavailable) return "store_unavailable";
  if (ec == weir::errc::outcome_unknown) return "outcome_unknown";
  if (ec == weir::errc::lease_lost) return "lease_lost";
  if (ec == weir::errc::store_full) return "store_full";
  if (ec == weir::errc::disk_full) return "disk_full";
  if (ec == boost::asio::error::operation_aborted) return "quit";
  auto text = ec.message();
  for (auto& c : text) c = c == ' ' || c == '\n' ? '_' : c;
  return text;
}

/// Writes the log of one process.
class witness {
 public:
  explicit witness(std::string const& path)
      : file_{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)} {
    if (file_ < 0) throw std::runtime_error{"no log at " + path};
  }
  witness(witness const&) = delete;
  witness& operator=(witness const&) = delete;
  ~witness() { ::close(file_); }

  void write(record r) {
    if (r.at == 0) r.at = boot_now();
    auto const line = r.line();
    if (::write(file_, line.data(), line.size()) != static_cast<::ssize_t>(line.size())) {
      throw std::runtime_error{"the log cannot be written"};
    }
  }

  /// The intent, before an operation begins. @param bound by when it has to have an outcome
  [[nodiscard]] std::uint64_t ask(std::string name, std::string key, weir::duration patience,
                                  std::string detail = {}) {
    auto const op = ++last_;
    write({.kind = "ask",
           .op = op,
           .name = std::move(name),
           .key = std::move(key),
           .n = ns_of(patience),
           .detail = std::move(detail)});
    return op;
  }
  /// The outcome.
  void end(std::uint64_t op, std::string outcome, std::uint64_t fence = 0, std::int64_t n = 0) {
    write({.kind = "end", .op = op, .fence = fence, .n = n, .detail = std::move(outcome)});
  }

 private:
  int file_;
  std::uint64_t last_ = 0;
};

}  // namespace soak

#endif
