// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_SUCCESSION_HPP
#define WEIR_DETAIL_SUCCESSION_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/enqueue_request.hpp"

#include <string>
#include <vector>

namespace weir::detail {

/// The jobs that come in the place of one that has ended well: see `command::relay_job`.
struct succession {
  std::vector<owned_job> next;  ///< to its queue
  std::string to;               ///< another queue, if there are
  std::vector<owned_job> jobs;  ///< to that one

  [[nodiscard]] static std::vector<new_job> views(std::vector<owned_job> const& of) {
    std::vector<new_job> out;
    out.reserve(of.size());
    for (auto const& j : of) out.push_back(j.view());
    return out;
  }
};

}  // namespace weir::detail

#endif
