// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_KEYS_HPP
#define WEIR_TABLE_JOB_KEYS_HPP

#include "weir/detail/string_hash.hpp"
#include "weir/job.hpp"
#include "weir/table/job_budget.hpp"
#include "weir/table/job_record.hpp"
#include "weir/table/job_records.hpp"
#include "weir/table/tighten.hpp"
#include "weir/time.hpp"

#include <boost/intrusive/set.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// An enqueue key and the job in possession of it. One that is held until_expired may outlive its
/// job's record.
struct enqueue_key : boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>> {
  enqueue_key(std::string_view t, memory_queue& q) : text{t}, home{&q} {}

  std::string const text;
  job_id owner{};
  time_point expiry = time_point::max();  ///< max: its job's end frees it
  memory_queue* const home;
};

struct by_expiry {
  bool operator()(enqueue_key const& a, enqueue_key const& b) const noexcept {
    return a.expiry < b.expiry;
  }
};

/// Keys that time frees, over all queues of a shard.
using expiring_keys = boost::intrusive::multiset<enqueue_key, boost::intrusive::compare<by_expiry>,
                                                 boost::intrusive::constant_time_size<false>>;

/// What the queues of a shard share.
struct job_common {
  job_allowance allowance;
  kept_jobs kept{};
  expiring_keys expiring{};
  std::uint64_t last_fence = 0;
};

/// The enqueue keys of one queue. A key that time frees counts as a record of its own, since it may
/// be all that is left of its job (R8): whoever holds one here has taken it from the allowance.
template <class>
class basic_enqueue_keys {
 public:
  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }

  /// Who has the key now; null: nobody.
  [[nodiscard]] enqueue_key const* find(std::string_view key, time_point now) const noexcept {
    auto const it = keys_.find(key);
    return it == keys_.end() || it->second->expiry <= now ? nullptr : it->second.get();
  }

  /// Makes sure that so many may be held, each as one that is `made`, without an allocation,
  /// whatever is freed in between, until this is asked for none.
  void provide(std::size_t n) {
    auto const all = keys_.size() + n;
    for (auto places = all; n != 0 && keys_.max_load() < all; places *= 2) keys_.rehash(places);
    provided_ = n != 0;
  }

  /// Gives the key to a job, whoever had it.
  void hold(job_common& common, std::string_view key, memory_queue& home, job_id owner,
            time_point expiry, std::unique_ptr<enqueue_key> made = {}) {
    auto it = keys_.find(key);
    if (it == keys_.end()) {
      if (!made) made = std::make_unique<enqueue_key>(key, home);
      std::string_view const text = made->text;
      it = keys_.emplace(text, std::move(made)).first;
    }
    auto& k = *it->second;
    let_expire(k, common);
    k.owner = owner;
    k.expiry = expiry;
    if (expiry != time_point::max()) common.expiring.insert(k);
  }

  /// Frees the key, if this job has it.
  void free(job_common& common, std::string_view key, job_id const& owner) noexcept {
    auto const it = keys_.find(key);
    if (it == keys_.end() || it->second->owner != owner) return;
    let_expire(*it->second, common);
    keys_.erase(it);
    if (!provided_) tighten(keys_);
  }

  void erase(job_common& common, enqueue_key& k) noexcept {
    let_expire(k, common);
    keys_.erase(keys_.find(k.text));
    tighten(keys_);
  }

  void shrink() noexcept { keys_ = decltype(keys_)(); }

 private:
  friend class job_image;

  static void let_expire(enqueue_key& k, job_common& common) noexcept {
    if (!k.is_linked()) return;
    common.expiring.erase(common.expiring.iterator_to(k));
    common.allowance.give(1);
  }

  boost::unordered_flat_map<std::string_view, std::unique_ptr<enqueue_key>, string_hash> keys_;
  bool provided_ = false;
};

using enqueue_keys = basic_enqueue_keys<void>;

/// The run locks of one queue, each with the job that took it. They stand as long as that job is
/// claimed and started.
template <class>
class basic_run_locks {
 public:
  /// The job that took the lock last; null: nobody.
  [[nodiscard]] job_record const* find(std::string_view key) const noexcept {
    auto const it = locks_.find(key);
    return it == locks_.end() ? nullptr : it->second;
  }

  void take(job_record& r) {
    // The key lives in the record that holds the lock: it must not stay that of the one before.
    auto const it = locks_.find(r.unique_key());
    if (it != locks_.end()) {
      if (it->second == &r) return;
      locks_.erase(it);
    }
    locks_.emplace(r.unique_key(), &r);
  }

  void free(job_record const& r) noexcept {
    auto const it = locks_.find(r.unique_key());
    if (it == locks_.end() || it->second != &r) return;
    locks_.erase(it);
    tighten(locks_);
  }

  void shrink() noexcept { locks_ = decltype(locks_)(); }

 private:
  friend class job_image;

  boost::unordered_flat_map<std::string_view, job_record*, string_hash> locks_;
};

using run_locks = basic_run_locks<void>;

}  // namespace weir::detail

#endif
