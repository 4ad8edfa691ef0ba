// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_ENQUEUE_REQUEST_HPP
#define WEIR_DETAIL_ENQUEUE_REQUEST_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"

#include <boost/container/small_vector.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

// The requests that own more than a few strings: what `enqueue_jobs` and `complete_jobs` view.
namespace weir::detail {

/// A job with the texts that a `new_job` only views.
struct owned_job {
  owned_job(new_job job, std::string kind, std::string payload, std::string unique_key)
      : fields{job},
        kind_text{std::move(kind)},
        payload_text{std::move(payload)},
        unique_text{std::move(unique_key)} {}

  [[nodiscard]] new_job view() const noexcept {
    new_job out = fields;
    out.kind = kind_text;
    out.payload = payload_text;
    out.unique_key = unique_text;
    return out;
  }

  new_job fields;
  std::string kind_text;
  std::string payload_text;
  std::string unique_text;
};

/// Owns what one `enqueue_jobs` views. The views are made anew whenever the command is, since a
/// move may have moved the texts themselves.
class enqueue_request {
 public:
  /// @param headers of all its jobs
  explicit enqueue_request(std::string queue, std::string headers = {})
      : queue_{std::move(queue)},
        headers_{std::move(headers)} {}

  void add(owned_job job) { jobs_.push_back(std::move(job)); }

  /// Remembers the first thing that is wrong with what was to be added: the command is not executed
  /// then.
  void fail(error_code ec) noexcept {
    if (!problem_) problem_ = ec;
  }
  [[nodiscard]] error_code problem() const noexcept { return problem_; }

  [[nodiscard]] std::string_view queue() const noexcept { return queue_; }
  [[nodiscard]] job_id id(std::size_t i) const noexcept { return jobs_[i].fields.id; }

  [[nodiscard]] command::enqueue_jobs command() const {
    views_.clear();
    for (auto const& job : jobs_) views_.push_back(job.view());
    if (!headers_.empty()) {
      for (auto& view : views_) view.headers = headers_;
    }
    return {.queue = queue_, .jobs = {views_.data(), views_.size()}};
  }

 private:
  std::string queue_;
  std::string headers_;
  error_code problem_;
  boost::container::small_vector<owned_job, 1> jobs_;
  mutable boost::container::small_vector<new_job, 1> views_;
};

/// Owns what one `complete_jobs` views.
class complete_request {
 public:
  explicit complete_request(std::string queue) : queue_{std::move(queue)} {}

  void add(job_id id, std::uint64_t fence, std::string stored) {
    jobs_.push_back({id, fence, {}});
    results_.push_back(std::move(stored));
  }
  [[nodiscard]] std::size_t size() const noexcept { return jobs_.size(); }

  [[nodiscard]] command::complete_jobs command() const {
    for (std::size_t i = 0; i != jobs_.size(); ++i) jobs_[i].result = results_[i];
    return {.queue = queue_, .jobs = {jobs_.data(), jobs_.size()}};
  }

 private:
  std::string queue_;
  boost::container::small_vector<std::string, 1> results_;
  mutable boost::container::small_vector<finished_job, 1> jobs_;
};

}  // namespace weir::detail

#endif
