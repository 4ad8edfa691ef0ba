// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_RECORDS_HPP
#define WEIR_TABLE_JOB_RECORDS_HPP

#include "weir/job.hpp"
#include "weir/table/job_record.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <cstdint>

// The orders in which records are kept. All are intrusive: to move a record from one to another
// allocates nothing, and so cannot fail half-way.
namespace weir::detail {

struct by_vesting {
  bool operator()(job_record const& a, job_record const& b) const noexcept {
    return a.vesting != b.vesting ? a.vesting < b.vesting : a.id < b.id;
  }
};

struct by_end_of_retention {
  bool operator()(job_record const& a, job_record const& b) const noexcept {
    return a.vesting < b.vesting;
  }
};

struct by_death {
  using type = std::uint64_t;
  type const& operator()(job_record const& r) const noexcept { return r.death; }
};

using job_order_hook = boost::intrusive::base_hook<job_set_hook<order_tag>>;

/// Ended records that stay for a while, over all queues of a shard.
using kept_jobs = boost::intrusive::multiset<job_record, job_order_hook,
                                             boost::intrusive::compare<by_end_of_retention>,
                                             boost::intrusive::constant_time_size<false>>;

/// The dead letters of a queue, the oldest first.
using dead_jobs =
    boost::intrusive::set<job_record, job_order_hook, boost::intrusive::key_of_value<by_death>>;

/// The claimed jobs of a queue, whether their leases live or not.
using claimed_jobs = boost::intrusive::list<job_record, boost::intrusive::base_hook<claimed_hook>,
                                            boost::intrusive::constant_time_size<false>>;

/// Every record of a queue, by id, and their owner.
///
/// A tree and not a hash table: version 7 ids come in order, so a new one is known to be new and
/// goes to the end without a search, those in use at a time lie side by side, and no table is ever
/// rebuilt while a queue waits. Ids at random cost a search each.
template <class>
class basic_job_records {
 public:
  basic_job_records() = default;
  basic_job_records(basic_job_records const&) = delete;
  basic_job_records& operator=(basic_job_records const&) = delete;
  ~basic_job_records() { records_.clear_and_dispose(job_record::destroy{}); }

  [[nodiscard]] bool empty() const noexcept { return records_.empty(); }
  [[nodiscard]] job_record* find(job_id const& id) noexcept {
    if (records_.empty() || records_.rbegin()->id < id) return nullptr;
    auto const it = records_.find(id);
    return it == records_.end() ? nullptr : &*it;
  }
  /// Calls `f(record)` for those after the id, by id, until it returns false: then there is more.
  template <class F>
  bool each_after(job_id const& id, F&& f) {
    for (auto it = records_.upper_bound(id); it != records_.end(); ++it) {
      if (!f(*it)) return true;
    }
    return false;
  }
  void add(job_record::owner r) noexcept { records_.insert(records_.end(), *r.release()); }
  void remove(job_record& r) noexcept {
    records_.erase_and_dispose(records_.iterator_to(r), job_record::destroy{});
  }

 private:
  friend class job_image;

  struct by_id {
    using type = job_id;
    type const& operator()(job_record const& r) const noexcept { return r.id; }
  };
  boost::intrusive::set<job_record, boost::intrusive::base_hook<job_set_hook<records_tag>>,
                        boost::intrusive::key_of_value<by_id>,
                        boost::intrusive::constant_time_size<false>>
      records_;
};

using job_records = basic_job_records<void>;

}  // namespace weir::detail

#endif
