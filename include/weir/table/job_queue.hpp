// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_QUEUE_HPP
#define WEIR_TABLE_JOB_QUEUE_HPP

#include "weir/table/job_holders.hpp"
#include "weir/table/job_index.hpp"
#include "weir/table/job_keys.hpp"
#include "weir/table/job_pointers.hpp"
#include "weir/table/job_record.hpp"
#include "weir/table/job_records.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <string_view>

namespace weir::detail {

struct queue_name_tag;
struct jobless_tag;

/// One queue: its fields, and its jobs in their orders.
template <class>
class basic_memory_queue
    : public scanned_queue,
      public boost::intrusive::set_base_hook<boost::intrusive::tag<queue_name_tag>>,
      public boost::intrusive::list_base_hook<boost::intrusive::tag<jobless_tag>> {
 public:
  using name_hook = boost::intrusive::set_base_hook<boost::intrusive::tag<queue_name_tag>>;
  using jobless_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<jobless_tag>>;

  explicit basic_memory_queue(std::string_view n) : scanned_queue{n} {}
  basic_memory_queue(basic_memory_queue const&) = delete;
  basic_memory_queue& operator=(basic_memory_queue const&) = delete;

  /// Has it neither a record nor a key, so that only its counters and holds are left?
  [[nodiscard]] bool jobless() const noexcept { return records.empty() && keys.empty(); }

  /// Gives up memory that an empty queue does not need. Requires `jobless`.
  void shrink() noexcept {
    holders.shrink();
    index.shrink();
    keys.shrink();
    locks.shrink();
  }

  job_records records;
  job_index index;
  dead_jobs dead;
  claimed_jobs claimed;
  enqueue_keys keys;
  run_locks locks;
  job_holders holders;
};

}  // namespace weir::detail

#endif
