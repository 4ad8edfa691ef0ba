// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Holds a store to the conformance suite, as one does who has made a store of his own.

#include "weir/store/memory.hpp"
#include "weir/testing/conformance/locks.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <iostream>

namespace {

struct driver {
  weir::memory_store make(boost::asio::any_io_executor const& ex) { return weir::memory_store{ex}; }
};

}  // namespace

int main() {
  driver subject;
  weir::testing::report found;
  weir::testing::conformance::locks(subject, found);
  std::cout << "weir::testing: " << found.findings().size() << " findings\n";
  return found.ok() && !found.findings().empty() ? 0 : 1;
}
