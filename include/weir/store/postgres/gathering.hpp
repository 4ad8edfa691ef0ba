// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_GATHERING_HPP
#define WEIR_STORE_POSTGRES_GATHERING_HPP

#include "weir/error.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/request.hpp"
#include "weir/store/postgres/rows.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weir::detail {

/// Who tries the commands again, one by one, that were refused together.
class postgres_second_try {
 public:
  virtual void refused(std::vector<std::unique_ptr<postgres_request>> parts) = 0;

 protected:
  ~postgres_second_try() = default;
};

/// Several commands that are executed as one call, in one transaction. If the server refuses it,
/// none of them was done, and each is tried by itself: no command fails because of another.
class postgres_joined final : public postgres_request {
 public:
  /// @param again outlives this
  postgres_joined(postgres_second_try& again, std::vector<std::unique_ptr<postgres_request>> parts)
      : postgres_request{postgres_call::joined(
            parts, [](auto const& r) -> postgres_call const& { return r->call(); })},
        again_{again},
        parts_{std::move(parts)} {}

  [[nodiscard]] bool waiting() const noexcept override {
    return std::ranges::any_of(parts_, [](auto const& r) { return r->waiting(); });
  }

  void finish(error_code ec, postgres_rows const& rows) noexcept override {
    if (ec && ec != errc::outcome_unknown) {
      try {
        again_.refused(std::move(parts_));
      } catch (...) {  // no memory to keep them: they are aborted
      }
      return;
    }
    int from = 0;
    for (auto const& r : parts_) {
      int const n = r->call().rows();
      r->finish(ec, rows.part(from, n, call().tail()));
      from += n;
    }
  }

  [[nodiscard]] std::vector<std::unique_ptr<postgres_request>> take_apart() && {
    return std::move(parts_);
  }

 private:
  postgres_second_try& again_;
  std::vector<std::unique_ptr<postgres_request>> parts_;
};

/// Commands that wait to be sent and may be made as one with others of their kind. Kinds take
/// turns, so that none waits for a busy one to end. On a strand.
class postgres_gathering {
 public:
  [[nodiscard]] bool empty() const noexcept { return turns_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void add(std::unique_ptr<postgres_request> r) {
    auto kind = r->call().common();
    auto& to = kinds_[kind];
    if (to.empty()) turns_.push_back(std::move(kind));
    to.push_back(std::move(r));
    ++size_;
  }

  /// The next ones, as one; null: nobody waits for any.
  [[nodiscard]] std::unique_ptr<postgres_request> take(postgres_second_try& again) {
    std::vector<std::unique_ptr<postgres_request>> parts;
    while (parts.empty() && !turns_.empty()) {
      auto kind = std::move(turns_.front());
      turns_.pop_front();
      auto const at = kinds_.find(kind);
      auto& from = at->second;
      int rows = 0;
      std::size_t bytes = 0;
      while (!from.empty()) {
        auto& r = from.front();
        if (r->waiting()) {
          rows += r->call().rows();
          bytes += r->call().bytes();
          if (!parts.empty() && (rows > most_rows || bytes > most_bytes)) break;
          parts.push_back(std::move(r));
        }
        from.pop_front();
        --size_;
      }
      if (from.empty()) {
        kinds_.erase(at);
      } else {
        turns_.push_back(std::move(kind));
      }
    }
    if (parts.size() < 2) return parts.empty() ? nullptr : std::move(parts.front());
    return std::make_unique<postgres_joined>(again, std::move(parts));
  }

  /// What was taken and not sent.
  void give_back(std::unique_ptr<postgres_request> r) {
    if (auto* const several = dynamic_cast<postgres_joined*>(r.get())) {
      for (auto& each : std::move(*several).take_apart()) add(std::move(each));
    } else {
      add(std::move(r));
    }
  }

  void fail(error_code ec) {
    auto all = std::exchange(kinds_, {});
    turns_.clear();
    size_ = 0;
    for (auto const& [kind, requests] : all) {
      for (auto const& r : requests) r->finish(ec, {});
    }
  }

 private:
  // From there on a call costs what its rows cost, and several connections do more than one.
  static constexpr int most_rows = 64;
  static constexpr std::size_t most_bytes = std::size_t{1} << 20U;

  std::unordered_map<std::string, std::deque<std::unique_ptr<postgres_request>>> kinds_;
  std::deque<std::string> turns_;
  std::size_t size_ = 0;
};

}  // namespace weir::detail

#endif
