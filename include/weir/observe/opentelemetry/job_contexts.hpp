// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_OPENTELEMETRY_JOB_CONTEXTS_HPP
#define WEIR_OBSERVE_OPENTELEMETRY_JOB_CONTEXTS_HPP

#include "weir/job.hpp"

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/uuid/uuid_hash.hpp>
#include <opentelemetry/trace/span_context.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace weir::detail {

/// Where a leased job comes from, and where it is processed.
struct job_context_pair {
  opentelemetry::trace::SpanContext creation = opentelemetry::trace::SpanContext::GetInvalid();
  opentelemetry::trace::SpanContext process = opentelemetry::trace::SpanContext::GetInvalid();
};

/// The spans of leased jobs, for the command that ends the lease: it has no headers. Of more than
/// `most` leases the latest are kept, since some end without a command.
class job_contexts {
 public:
  explicit job_contexts(std::size_t most) : places_(most) {}

  /// @param change is called with what is known so far
  template <class Change>
  void remember(job_id id, std::uint64_t fence, Change change) {
    std::lock_guard const lock{mutex_};
    key const lease{id, fence};
    auto const [at, added] = known_.try_emplace(lease);
    change(at->second);
    if (!added) return;
    auto const before = std::exchange(places_[next_], lease);
    next_ = (next_ + 1) % places_.size();
    if (before != lease) known_.erase(before);
  }

  /// Gives the entry, and forgets it if that is wanted.
  [[nodiscard]] job_context_pair find(job_id id, std::uint64_t fence, bool forget) {
    std::lock_guard const lock{mutex_};
    auto const at = known_.find(key{id, fence});
    if (at == known_.end()) return {};
    auto out = at->second;
    if (forget) known_.erase(at);
    return out;
  }

 private:
  using key = std::pair<job_id, std::uint64_t>;

  std::mutex mutex_;  ///< of what follows
  boost::unordered_flat_map<key, job_context_pair, boost::hash<key>> known_;
  std::vector<key> places_;  ///< of what was remembered last, in a ring
  std::size_t next_ = 0;
};

}  // namespace weir::detail

#endif
