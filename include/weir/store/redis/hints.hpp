// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_HINTS_HPP
#define WEIR_STORE_REDIS_HINTS_HPP

#include "weir/detail/string_hash.hpp"

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// Somebody who looks by himself from time to time, and at once when told to.
class redis_listener {
 public:
  redis_listener() = default;
  redis_listener(redis_listener const&) = delete;
  redis_listener& operator=(redis_listener const&) = delete;
  virtual ~redis_listener() = default;

  virtual void look() = 0;
  /// Something was published. False: it is of no use here any more.
  virtual bool hinted() = 0;
};

/// Who is to look when something was published about a key. All in one strand.
class redis_hints {
 public:
  void add(std::string const& key, std::weak_ptr<redis_listener> listener) {
    auto& all = listeners_[key];
    std::erase_if(all, [](auto const& l) { return l.expired(); });
    all.push_back(std::move(listener));
    if (listeners_.size() > crowded_) prune();
  }

  /// False: nobody has use for it.
  bool give(std::string const& key) {
    auto const found = listeners_.find(key);
    if (found == listeners_.end()) return false;
    auto const all = std::exchange(found->second, {});
    std::vector<std::weak_ptr<redis_listener>> rest;
    bool used = false;
    for (auto const& weak : all) {
      if (auto const listener = weak.lock()) {
        rest.push_back(weak);
        used = listener->hinted() || used;
      }
    }
    // Looking may have added others.
    auto& now = listeners_[key];
    now.insert(now.end(), rest.begin(), rest.end());
    if (now.empty()) listeners_.erase(key);
    return used;
  }

  /// All are to look whose keys begin so.
  void look(std::string_view head) {
    std::vector<std::shared_ptr<redis_listener>> all;
    for (auto const& [key, some] : listeners_) {
      if (!key.starts_with(head)) continue;
      for (auto const& weak : some) {
        if (auto listener = weak.lock()) all.push_back(std::move(listener));
      }
    }
    for (auto const& listener : all) listener->look();
  }

  void clear() noexcept { listeners_.clear(); }

 private:
  void prune() {
    boost::unordered::erase_if(listeners_, [](auto& entry) {
      std::erase_if(entry.second, [](auto const& l) { return l.expired(); });
      return entry.second.empty();
    });
    crowded_ = 2 * listeners_.size() + few;
  }

  static constexpr std::size_t few = 64;

  boost::unordered_flat_map<std::string, std::vector<std::weak_ptr<redis_listener>>, string_hash>
      listeners_;
  std::size_t crowded_ = few;
};

/// Hints that came before their waiters: between the answer that its turn has not come and its wait
/// for a hint, a waiter's turn may come. The latest ones.
class redis_early_hints {
 public:
  void keep(std::string const& key) {
    constexpr std::size_t most = 1024;
    if (!keys_.insert(key).second) return;
    order_.push_back(key);
    if (order_.size() <= most) return;
    keys_.erase(order_.front());
    order_.pop_front();
  }
  /// Was there one? Then it is used up.
  bool take(std::string const& key) {
    if (keys_.erase(key) == 0) return false;
    order_.erase(std::ranges::find(order_, key));
    return true;
  }

 private:
  boost::unordered_flat_set<std::string, string_hash> keys_;
  std::deque<std::string> order_;
};

}  // namespace weir::detail

#endif
