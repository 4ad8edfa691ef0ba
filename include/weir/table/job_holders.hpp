// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_HOLDERS_HPP
#define WEIR_TABLE_JOB_HOLDERS_HPP

#include "weir/job.hpp"
#include "weir/rule/jobs.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir::detail {

/// Who has leases in a queue: its name, once for all of them, and what its latest numbered dequeue
/// was given (F54).
struct job_holder {
  struct grant {
    job_id id;
    std::uint64_t fence;
  };

  std::string_view name;       ///< of the key that it is kept under
  std::uint64_t leases = 0;    ///< claimed jobs that name it, whether their leases live or not
  std::uint64_t sequence = 0;  ///< of the dequeue whose leases `latest` lists; 0: none is
                               ///< remembered
  std::vector<grant> latest;

  void remember(std::uint64_t number, job_id const& id, std::uint64_t fence) {
    if (number == 0) return;
    latest.push_back({id, fence});
    sequence = number;
  }
  void forget() noexcept {
    sequence = 0;
    latest.clear();
  }
};

/// The holders of one queue. One without leases is forgotten with what it was given, so that there
/// are never more of them than claimed jobs, and one: who works alone on a queue is not forgotten
/// after each job.
template <class>
class basic_job_holders {
 public:
  [[nodiscard]] job_holder* find(std::string_view name) noexcept {
    auto const it = holders_.find(name);
    return it == holders_.end() ? nullptr : &it->second;
  }

  /// The holder of this name, who may be new; it must be given a lease.
  job_holder& obtain(std::string_view name) {
    if (auto* const known = find(name)) return *known;
    auto& [key, made] = *holders_.try_emplace(std::string{name}).first;
    made.name = key;
    return made;
  }

  void add_lease(job_holder& h) noexcept {
    if (&h == idle_) idle_ = nullptr;
    ++h.leases;
  }

  /// `stands(grant)`: is that lease still in the holder's hands, live or not?
  template <class Stands>
  void remove_lease(job_holder& h, Stands const& stands) noexcept {
    if (--h.leases != 0) {
      // What it was given may be much, and nearly all of it have ended.
      if (h.latest.size() > few && h.latest.size() > 4 * h.leases) {
        std::erase_if(h.latest, [&](auto const& g) { return !stands(g); });
        h.latest.shrink_to_fit();
      }
      return;
    }
    h.forget();
    if (h.latest.capacity() > few) h.latest.shrink_to_fit();
    if (idle_ != nullptr) holders_.erase(holders_.find(idle_->name));
    idle_ = &h;
  }

  void shrink() noexcept {
    holders_.clear();
    idle_ = nullptr;
  }

 private:
  friend class job_image;

  static constexpr std::size_t few = 32;

  /// Ordered, since a queue has few: in a hash table the first of them would cost most.
  std::map<std::string, job_holder, std::less<>> holders_;
  job_holder* idle_ = nullptr;  ///< the one without leases; null: there is none
};

using job_holders = basic_job_holders<void>;

}  // namespace weir::detail

#endif
