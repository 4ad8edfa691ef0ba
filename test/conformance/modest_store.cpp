// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/memory_driver.hpp"
#include "conformance/suite.hpp"
#include "weir/clock/manual.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/store/memory.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

// A store that is less than the rule, and says so, keeps what it does promise; one that does not
// say so is found out. It has milliseconds, rounds TTLs up to whole ones, takes none below three,
// keeps no line, and counts its fences from 1.

namespace weir::testing {
namespace {

using namespace std::chrono_literals;

class modest_store {
 public:
  using executor_type = boost::asio::any_io_executor;
  using base = basic_memory_store<manual_clock>;

  explicit modest_store(base store)
      : store_{std::move(store)},
        numbers_{std::make_shared<numbers>()} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }

  template <class C, class Token>
    requires(executes_now<base, C> && !is_told<C>)
  auto async_execute(C const& c, Token&& token) const {
    return weir::detail::async_lift<typename C::result>(
        store_.get_executor(), [self = *this, c] { return self.step(c); },
        std::forward<Token>(token));
  }

 private:
  struct numbers {
    std::mutex mutex;
    std::uint64_t last = 0;
    std::map<std::uint64_t, std::uint64_t> told;  // by the fence that stands behind it
    std::map<std::uint64_t, std::uint64_t> meant;
  };

  template <class C>
  result<typename C::result> step(C c) const {
    std::lock_guard const lock{numbers_->mutex};
    if constexpr (requires { c.ttl; }) {
      if (c.ttl > 0s && c.ttl < 3ms) return errc::invalid_ttl;
      if (c.ttl > 0s && c.ttl < limits::span)
        c.ttl = std::chrono::ceil<std::chrono::milliseconds>(c.ttl);
    }
    if constexpr (requires { c.patience; }) {
      if (c.patience > 0s && c.patience <= limits::span) c.patience = 0s;
    }
    if constexpr (requires { c.fence; }) {
      auto const known = numbers_->meant.find(c.fence);
      if (c.fence != 0)
        c.fence = known == numbers_->meant.end() ? ~std::uint64_t{0} : known->second;
    }
    auto answer = store_.execute(c);
    if (answer.has_error()) return answer;
    if constexpr (requires { answer->fence; }) tell(answer->fence);
    if constexpr (requires { answer->holders; }) {
      for (auto& h : answer->holders) tell(h.fence);
    }
    return answer;
  }

  void tell(std::uint64_t& fence) const {
    if (fence == 0) return;
    auto& told = numbers_->told[fence];
    if (told == 0) {
      told = ++numbers_->last;
      numbers_->meant[told] = fence;
    }
    fence = told;
  }

  base store_;
  std::shared_ptr<numbers> numbers_;
};

struct modest_driver {
  capabilities can{};
  manual_clock clock{};

  modest_store make(boost::asio::any_io_executor const& ex) {
    return modest_store{basic_memory_store<manual_clock>{ex, {}, clock}};
  }
  capabilities declared() const { return can; }
  void advance(duration d) { clock.advance(d); }
};

capabilities modest() {
  capabilities c;
  c.precision = 1ms;
  c.shortest_ttl = 3ms;
  c.line = false;
  c.fences_follow_time = false;
  return c;
}

bool fails(report const& r, std::string_view number) {
  return std::any_of(r.findings().begin(), r.findings().end(), [&](finding const& f) {
    return f.number == number && f.outcome == verdict::failed;
  });
}

constexpr std::string_view no_line = "declared: refused holders keep no place in line";
constexpr std::string_view no_time_in_fences = "declared: fences do not follow the store's time";

BOOST_AUTO_TEST_SUITE(modest_stores)

BOOST_AUTO_TEST_CASE(keep_what_they_promise) {
  modest_driver driver{modest()};
  report found;
  suite::of<lock_commands>(driver, found);
  suite::of<permit_commands>(driver, found);
  require_all(found, {no_line, no_time_in_fences, no_way_back, no_bound, not_known});
  require_numbers(found, {"R1", "R2", "F1", "F4", "F9", "F13", "F17", "F27", "F47"});
}

BOOST_AUTO_TEST_CASE(are_found_out_if_they_do_not_say_what_they_lack) {
  settings s;
  s.concurrent = 0;
  auto const lacking = [&](auto&& unsay) {
    modest_driver driver{modest()};
    unsay(driver.can);
    report found;
    suite::of<permit_commands>(driver, found, s);
    return found;
  };
  BOOST_TEST(fails(lacking([](capabilities& c) { c.line = true; }), "F10"));
  BOOST_TEST(fails(lacking([](capabilities& c) { c.shortest_ttl = duration{1}; }), "F9"));
  auto const as_fine = lacking([](capabilities& c) { c.precision = c.shortest_ttl = duration{1}; });
  BOOST_TEST(fails(as_fine, "F9"));
}

BOOST_AUTO_TEST_CASE(are_asked_only_what_is_selected) {
  modest_driver driver{modest()};
  report found;
  settings s;
  s.only = "F13";
  suite::of<lock_commands>(driver, found, s);
  BOOST_TEST(found.findings().size() == 2U, "F13 has two checks");
  BOOST_TEST(found.ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::testing
