// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_LETTER_HPP
#define WEIR_TESTING_SIMULATION_LETTER_HPP

#include "weir/command/jobs.hpp"
#include "weir/concept.hpp"
#include "weir/quota.hpp"

#include <list>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing::simulation {

/// A command on its way: it owns what the command views, since it may arrive after its sender died.
template <command_type C>
class letter {
 public:
  explicit letter(C const& c) : command_{c} {
    if constexpr (requires { c.key; }) command_.key = own(c.key);
    if constexpr (requires { c.holder; }) command_.holder = own(c.holder);
    if constexpr (requires { c.queue; }) command_.queue = own(c.queue);
    if constexpr (requires { c.memo; }) command_.memo = own(c.memo);
    if constexpr (requires { c.reason; }) command_.reason = own(c.reason);
    if constexpr (requires { c.cursor; }) command_.cursor = own(c.cursor);
    if constexpr (requires { c.quotas; }) {
      quotas_.assign(c.quotas.begin(), c.quotas.end());
      command_.quotas = quotas_;
    }
    if constexpr (requires { c.jobs.front().kind; }) {
      new_jobs_.assign(c.jobs.begin(), c.jobs.end());
      for (auto& j : new_jobs_) {
        j.kind = own(j.kind);
        j.payload = own(j.payload);
        j.unique_key = own(j.unique_key);
      }
      command_.jobs = new_jobs_;
    } else if constexpr (requires { c.jobs; }) {
      finished_.assign(c.jobs.begin(), c.jobs.end());
      for (auto& j : finished_) j.result = own(j.result);
      command_.jobs = finished_;
    }
  }
  letter(letter const&) = delete;
  letter& operator=(letter const&) = delete;

  [[nodiscard]] C const& command() const noexcept { return command_; }

 private:
  std::string_view own(std::string_view text) { return texts_.emplace_back(text); }

  C command_;
  std::list<std::string> texts_;
  std::vector<quota> quotas_;
  std::vector<new_job> new_jobs_;
  std::vector<finished_job> finished_;
};

}  // namespace weir::testing::simulation

#endif
