// expect: specialise weir::job_traits for this job type
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/job_queue.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/detached.hpp>
#include <nlohmann/json.hpp>

struct nameless {
  int n = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(nameless, n)

void enqueue(weir::job_queue<weir::memory_store>& queue) {
  nameless const job{};
  queue.async_enqueue(job, {}, boost::asio::detached);
}
