// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "stores.hpp"
#include "weir/store/memory.hpp"

namespace manifest {

any_store open_memory_store(asio::any_io_executor const& executor) {
  return make_any_store(weir::memory_store{executor});
}

}  // namespace manifest
