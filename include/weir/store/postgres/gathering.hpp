// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_GATHERING_HPP
#define WEIR_STORE_POSTGRES_GATHERING_HPP

#include "weir/detail/string_hash.hpp"
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

/// Who is told how calls end that were gathered.
class postgres_gatherer {
 public:
  /// The server refused the call, or left these of its commands out, so none of them was executed:
  /// each is to be tried by itself.
  virtual void refused(std::string const& kind,
                       std::vector<std::unique_ptr<postgres_request>> parts) = 0;
  /// A call of this kind is not under way any more.
  virtual void ended(std::string const& kind) noexcept = 0;

 protected:
  ~postgres_gatherer() = default;
};

/// Commands of one kind that are executed as one call, in one transaction. If the server refuses
/// several, none of them was done, and each is tried by itself: no command fails because of
/// another. But those that wait for one lock are not: none of them would get it.
class postgres_joined final : public postgres_request {
 public:
  /// @param to    outlives this
  /// @param kind  of all the commands
  /// @param parts at least one
  postgres_joined(postgres_gatherer& to, std::string kind,
                  std::vector<std::unique_ptr<postgres_request>> parts)
      : postgres_request{postgres_call::joined(
            parts, [](auto const& r) -> postgres_call const& { return r->call(); })},
        gatherer_{to},
        kind_{std::move(kind)},
        parts_{std::move(parts)} {}
  postgres_joined(postgres_joined const&) = delete;
  postgres_joined& operator=(postgres_joined const&) = delete;
  ~postgres_joined() override { gatherer_.ended(kind_); }

  [[nodiscard]] bool waiting() const noexcept override {
    return std::ranges::any_of(parts_, [](auto const& r) { return r->waiting(); });
  }

  [[nodiscard]] bool may_move() const noexcept override {
    return !call().hurries() && (parts_.size() == 1 || call().shares_lock());
  }
  [[nodiscard]] bool leaves() noexcept override {
    std::size_t leaving = 0;
    for (auto const& r : parts_) leaving += r->leaves() ? 1 : 0;
    return leaving != 0;
  }
  /// It is sent again with the steps of all of them, whoever gives up in between: of one among
  /// others nobody can say then that it was not done.
  void stays() noexcept override {
    if (parts_.size() == 1) parts_.front()->stays();
  }

  void finish(error_code ec, postgres_rows const& rows) noexcept override {
    bool const alone = parts_.size() == 1 && !call().hurries();
    bool const all_alike = call().shares_lock() && ec == errc::store_unavailable;
    if (ec && ec != errc::outcome_unknown && !alone && !all_alike) {
      try {
        gatherer_.refused(kind_, std::move(parts_));
      } catch (...) {  // no memory to keep them: they are aborted
      }
      return;
    }
    try {
      divide(ec, rows);
    } catch (...) {  // no memory: whoever was not answered is aborted
    }
  }

  [[nodiscard]] std::vector<std::unique_ptr<postgres_request>> take_apart() && {
    return std::move(parts_);
  }

 private:
  /// Answers each with its part, but for those that were left out.
  void divide(error_code ec, postgres_rows const& rows) {
    if (parts_.size() == 1) return parts_.front()->finish(ec, rows);
    auto const numbers = shares(rows);
    std::vector<std::unique_ptr<postgres_request>> left_out;
    for (std::size_t i = 0; i != parts_.size(); ++i) {
      auto const part = rows.part(numbers[i], i == 0);
      if (!ec && parts_[i]->call().left_out(part)) {
        left_out.push_back(std::move(parts_[i]));
      } else {
        parts_[i]->finish(ec, part);
      }
    }
    if (!left_out.empty()) gatherer_.refused(kind_, std::move(left_out));
  }

  /// The numbers of each part's rows.
  [[nodiscard]] std::vector<std::vector<int>> shares(postgres_rows const& rows) const {
    std::vector<std::vector<int>> out(parts_.size());
    auto const division = call().division();
    if (division == postgres_division::by_part) {
      for (int row = 0; row != rows.size(); ++row) {
        auto const part = rows.whose(row);
        if (part < parts_.size()) out[part].push_back(row);
      }
      return out;
    }
    int const tail = division == postgres_division::with_tail ? 1 : 0;
    int row = 0;
    for (std::size_t i = 0; i != parts_.size(); ++i) {
      for (int n = parts_[i]->call().rows(); n != 0 && row < rows.size() - tail; --n) {
        out[i].push_back(row++);
      }
      if (tail != 0 && rows.size() != 0) out[i].push_back(rows.size() - 1);
    }
    return out;
  }

  postgres_gatherer& gatherer_;
  std::string const kind_;
  std::vector<std::unique_ptr<postgres_request>> parts_;
};

/// Commands that wait to be sent and may be made as one with others of their kind. Kinds take
/// turns, so that none waits for a busy one to end. On a strand.
///
/// A command goes at once while few calls of its kind are under way; what comes meanwhile goes
/// together with the next one. So the more there is to do the less each costs: what a call and its
/// commit cost is shared, and who is alone waits for nobody.
class postgres_gathering {
 public:
  /// Is there anything that may be sent now?
  [[nodiscard]] bool ready() const noexcept { return !turns_.empty(); }
  /// How many commands wait.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void add(std::unique_ptr<postgres_request> r) {
    r->stays();
    auto name = r->call().common();
    auto const at = kinds_.try_emplace(std::move(name)).first;
    at->second.alone = r->call().shares_lock();
    at->second.rows += r->call().rows();
    at->second.waiting.push_back(std::move(r));
    ++size_;
    let_go(at);
  }

  /// The next ones, as one call; null: there is nothing that may be sent.
  [[nodiscard]] std::unique_ptr<postgres_request> take(postgres_gatherer& to) {
    std::vector<std::unique_ptr<postgres_request>> parts;
    while (!turns_.empty()) {
      auto const at = kinds_.find(turns_.front());
      turns_.pop_front();
      auto& from = at->second;
      from.listed = false;
      int rows = 0;
      std::size_t bytes = 0;
      while (!from.waiting.empty()) {
        auto& r = from.waiting.front();
        if (r->waiting()) {
          rows += r->call().rows();
          bytes += r->call().bytes();
          auto const most = from.alone ? most_rows_alone : most_rows;
          if (!parts.empty() && (from.singly != 0 || rows > most || bytes > most_bytes)) break;
        }
        from.rows -= r->call().rows();
        if (r->leaves()) parts.push_back(std::move(r));
        from.waiting.pop_front();
        --size_;
        if (from.singly != 0) {
          --from.singly;
          if (!parts.empty()) break;
        }
      }
      auto name = at->first;
      if (!parts.empty()) ++from.under_way;
      settle(at);
      if (parts.empty()) continue;  // nobody waits for any
      return std::make_unique<postgres_joined>(to, std::move(name), std::move(parts));
    }
    return nullptr;
  }

  /// What was taken and not sent.
  void give_back(std::unique_ptr<postgres_request> r) {
    auto parts = std::move(dynamic_cast<postgres_joined&>(*r)).take_apart();
    r.reset();
    for (auto& each : parts) add(std::move(each));
  }

  /// Those that were refused together go before all others of their kind, one at a time: so only
  /// who has to wait is refused again, and one connection is held up by that.
  void add_singly(std::string const& name, std::vector<std::unique_ptr<postgres_request>> parts) {
    auto const at = kinds_.try_emplace(name).first;
    auto& k = at->second;
    for (auto r = parts.rbegin(); r != parts.rend(); ++r) {
      (*r)->stays();
      k.rows += (*r)->call().rows();
      k.waiting.push_front(std::move(*r));
      ++k.singly;
      ++size_;
    }
    let_go(at);
  }

  /// A call of this kind has ended.
  void ended(std::string const& name) noexcept {
    auto const at = kinds_.find(name);
    if (at == kinds_.end()) return;
    --at->second.under_way;
    at->second.stuck = 0;
    at->second.moved = true;
    try {
      settle(at);
    } catch (...) {  // no memory to list it: the next prod does
    }
  }

  /// To be called from time to time while commands wait: each kind of which no call has ended since
  /// the last time may send one more. What holds up its calls, an application's transaction, say,
  /// does not hold up the others of the kind for long.
  void prod() {
    for (auto at = kinds_.begin(); at != kinds_.end(); ++at) {
      auto& k = at->second;
      if (!std::exchange(k.moved, false) && !k.waiting.empty()) ++k.stuck;
      let_go(at);
    }
  }

  void fail(error_code ec) {
    std::vector<std::unique_ptr<postgres_request>> all;
    all.reserve(size_);
    for (auto& [name, k] : kinds_) {
      for (auto& r : k.waiting) all.push_back(std::move(r));
      k.waiting.clear();
      k.singly = 0;
      k.listed = false;
      k.rows = 0;
    }
    std::erase_if(kinds_, [](auto const& k) { return k.second.under_way == 0; });
    turns_.clear();
    size_ = 0;
    for (auto const& r : all) r->finish(ec, {});
  }

 private:
  // From there on a call costs what its rows cost, and several connections do more than one.
  static constexpr int most_rows = 64;
  // Of calls that are made one at a time. What is locked refuses so many of them at once.
  static constexpr int most_rows_alone = 512;
  static constexpr std::size_t most_bytes = std::size_t{1} << 20U;
  // One is executed while the other one is committed.
  static constexpr int calls_at_once = 2;
  // By then the server has told who waits for a lock, so it is the connection that is silent.
  static constexpr int most_prods = 150;

  struct kind {
    std::deque<std::unique_ptr<postgres_request>> waiting{};
    int rows = 0;       // of what waits
    int under_way = 0;  // calls
    int stuck = 0;      // for how many prods none of them has ended
    bool moved = true;  // one has, since the last prod
    bool listed = false;
    bool alone = false;      // one call at a time
    std::size_t singly = 0;  // so many of the first that wait are not to go with others
  };
  using kinds = std::unordered_map<std::string, kind, string_hash>;

  /// Lists a kind that may be sent.
  void let_go(kinds::iterator at) {
    auto& k = at->second;
    if (k.listed || k.waiting.empty()) return;
    if (k.alone || k.singly != 0 ? k.under_way > k.stuck / most_prods
                                 : k.under_way >= calls_at_once + k.stuck && k.rows < most_rows) {
      return;
    }
    turns_.push_back(at->first);
    k.listed = true;
  }
  void settle(kinds::iterator at) {
    auto const& k = at->second;
    if (k.waiting.empty() && k.under_way == 0 && !k.listed) {
      kinds_.erase(at);
    } else {
      let_go(at);
    }
  }

  kinds kinds_;
  std::deque<std::string> turns_;
  std::size_t size_ = 0;
};

}  // namespace weir::detail

#endif
