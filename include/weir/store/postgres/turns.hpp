// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_TURNS_HPP
#define WEIR_STORE_POSTGRES_TURNS_HPP

#include "weir/detail/string_hash.hpp"
#include "weir/store/postgres/request.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weir::detail {

/// Commands that were refused because of a lock, and are to be sent where they may wait for it.
/// Those that contend for the same are a line: lines take turns, and of each one command is under
/// way at a time. So a lock that somebody keeps costs no other line its turn. On a strand.
class postgres_turns {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Adds a command, also one that has had its turn. Where memory runs out it stays the caller's.
  void add(std::unique_ptr<postgres_request>& r) {
    r->turn.reset();
    auto name = r->call().contended();
    auto& at = lines_[name];
    if (!at) {
      auto fresh = std::make_shared<line>();
      fresh->name = std::move(name);
      turns_.push_back(fresh);
      at = std::move(fresh);
    }
    at->waiting.push_back(std::move(r));
    ++size_;
  }

  /// The next command, whose turn lasts until it is destroyed or added again; null: there is none.
  /// One that has waited for `most` is given to `late` instead, if another one of its line was sent
  /// since it came, and was refused, too: it waits for the same lock.
  template <class Late>
  [[nodiscard]] std::unique_ptr<postgres_request> take(steady_time now, duration most, Late late) {
    for (auto n = turns_.size(); n != 0; --n) {
      auto const at = turns_.front();
      turns_.pop_front();
      while (!at->taken && !at->waiting.empty()) {
        auto r = std::move(at->waiting.front());
        at->waiting.pop_front();
        --size_;
        if (!r->waiting()) continue;
        if (at->refused >= *r->held_up_at && now >= saturating_add(*r->held_up_at, most)) {
          late(*r);
          continue;
        }
        r->turn = std::make_unique<turn>(at, now);
        turns_.push_back(at);
        return r;
      }
      if (at->taken) {
        turns_.push_back(at);
      } else {
        lines_.erase(at->name);
      }
    }
    return nullptr;
  }

  [[nodiscard]] std::vector<std::unique_ptr<postgres_request>> take_all() {
    std::vector<std::unique_ptr<postgres_request>> out;
    out.reserve(size_);
    for (auto const& at : turns_) {
      for (auto& r : at->waiting) out.push_back(std::move(r));
      at->waiting.clear();
    }
    size_ = 0;
    return out;
  }

 private:
  struct line {
    std::string name{};
    std::deque<std::unique_ptr<postgres_request>> waiting{};
    bool taken = false;
    steady_time refused = steady_time::min();  // when the last one was sent that was refused
  };

  class turn final : public postgres_turn {
   public:
    turn(std::shared_ptr<line> of, steady_time began) : of_{std::move(of)}, began_{began} {
      of_->taken = true;
    }
    turn(turn const&) = delete;
    turn& operator=(turn const&) = delete;
    ~turn() override {
      of_->taken = false;
      if (refused) of_->refused = began_;
    }

   private:
    std::shared_ptr<line> of_;
    steady_time began_;
  };

  std::unordered_map<std::string, std::shared_ptr<line>, string_hash> lines_;
  std::deque<std::shared_ptr<line>> turns_;
  std::size_t size_ = 0;
};

}  // namespace weir::detail

#endif
