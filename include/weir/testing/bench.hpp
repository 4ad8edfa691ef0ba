// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_BENCH_HPP
#define WEIR_TESTING_BENCH_HPP

#include "weir/clock/system.hpp"
#include "weir/command/at.hpp"
#include "weir/error.hpp"
#include "weir/testing/driver.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"
#include "weir/testing/subject.hpp"
#include "weir/time.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::testing {

/// Whose time decides in a run of the suite.
enum class time_source : std::uint8_t {
  told,      ///< every command says what time it is
  advanced,  ///< the store's own, moved by its driver
  real,      ///< the store's own, which passes by itself
};

[[nodiscard]] constexpr std::string_view to_text(time_source t) noexcept {
  constexpr std::string_view words[] = {"told", "advanced", "real"};
  return words[static_cast<std::size_t>(t)];
}

/// One fresh store on an io_context of its own, and everything that a check does with it. Not thread-safe.
template <class Commands>
class bench {
 public:
  bench(factory<Commands> const& f, time_source t, settings const& s)
      : bench{f, t, s, f.make(io_of(*this).get_executor())} {}

  bench(bench const&) = delete;
  bench& operator=(bench const&) = delete;
  ~bench() {
    made_.store.close();
    try {
      io_->restart();
      io_->poll();
    } catch (...) {  // the check has its verdict
    }
  }

 private:
  bench(factory<Commands> const& f, time_source t, settings const& s, typename factory<Commands>::made m);
};

}  // namespace weir::testing

#endif
