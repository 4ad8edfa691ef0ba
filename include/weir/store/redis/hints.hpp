// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_HINTS_HPP
#define WEIR_STORE_REDIS_HINTS_HPP

#include "weir/detail/string_hash.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <cstddef>
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
  /// Something was published.
  virtual void hinted() { look(); }
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

  void give(std::string const& key) {
    auto const found = listeners_.find(key);
    if (found == listeners_.end()) return;
    auto const all = std::exchange(found->second, {});
    std::vector<std::weak_ptr<redis_listener>> rest;
    for (auto const& weak : all) {
      if (auto const listener = weak.lock()) {
        rest.push_back(weak);
        listener->hinted();
      }
    }
    // Looking may have added others.
    auto& now = listeners_[key];
    now.insert(now.end(), rest.begin(), rest.end());
    if (now.empty()) listeners_.erase(key);
  }

  /// All are to look.
  void look() {
    std::vector<std::shared_ptr<redis_listener>> all;
    for (auto const& [key, some] : listeners_) {
      for (auto const& weak : some) {
        if (auto listener = weak.lock()) all.push_back(std::move(listener));
      }
    }
    for (auto const& listener : all) listener->look();
  }

  [[nodiscard]] bool empty() const noexcept { return listeners_.empty(); }
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

}  // namespace weir::detail

#endif
