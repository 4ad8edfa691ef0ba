// expect: this job type has no JSON form
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/job_queue.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/detached.hpp>
#include <nlohmann/json.hpp>

struct formless {
  int* p = nullptr;
};
template <>
struct weir::job_traits<formless> {
  static constexpr std::string_view kind = "formless";
};

void enqueue(weir::job_queue<weir::memory_store>& queue) {
  formless const job{};
  queue.async_enqueue(job, {}, boost::asio::detached);
}
