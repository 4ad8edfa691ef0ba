// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_JOB_EXPLANATION_HPP
#define WEIR_JOB_EXPLANATION_HPP

#include "weir/job.hpp"

#include <string>
#include <vector>

namespace weir {

/// One reason why a job does not run.
struct job_reason {
  std::string code;  ///< such as `not_due`, for programs
  std::string text;  ///< a sentence, for people
};

/// Why a job does not run, and until when, as `async_explain` gives it.
struct job_explanation {
  job record;                        ///< of which it is said
  std::vector<job_reason> because;   ///< as far as the store tells
  std::vector<std::string> unknown;  ///< what only its workers know: each completes "not known: …"
};

}  // namespace weir

#endif
