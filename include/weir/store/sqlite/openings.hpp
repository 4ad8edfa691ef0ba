// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_OPENINGS_HPP
#define WEIR_STORE_SQLITE_OPENINGS_HPP

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

namespace weir::detail {

/// One of this process's connections to a file, which is counted while it lives: each has a thread,
/// a cache and descriptors, and waits for the others. May be used by any thread.
class sqlite_opening {
 public:
  static constexpr std::size_t most = 64;  ///< of one file

  /// @param name of the file, whole
  explicit sqlite_opening(std::string name) : name_{std::move(name)} {
    auto& all = registry::get();
    std::lock_guard const lock{all.mutex};
    too_many_ = ++all.open[name_] > most;
  }
  sqlite_opening(sqlite_opening const&) = delete;
  sqlite_opening& operator=(sqlite_opening const&) = delete;
  ~sqlite_opening() {
    auto& all = registry::get();
    std::lock_guard const lock{all.mutex};
    auto const own = all.open.find(name_);
    if (--own->second == 0) all.open.erase(own);
  }

  /// Were there `most` before it?
  [[nodiscard]] bool too_many() const noexcept { return too_many_; }

 private:
  struct registry {
    std::mutex mutex{};
    boost::unordered_flat_map<std::string, std::size_t> open{};

    [[nodiscard]] static registry& get() {
      static auto& only = *new registry;  // never destroyed: a store may end at the very end
      return only;
    }
  };

  std::string const name_;
  bool too_many_ = false;
};

}  // namespace weir::detail

#endif
