// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/error.hpp"

#include <boost/system/errc.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

using weir::condition;
using weir::errc;
using weir::error_code;

namespace {

struct expectation {
  errc code;
  condition kind;
};

// Each error, and what its kind is promised to be.
constexpr std::array expectations{
    expectation{errc::timed_out, condition::refused},
    expectation{errc::unique_conflict, condition::refused},
    expectation{errc::not_found, condition::refused},
    expectation{errc::store_full, condition::transient},
    expectation{errc::closed, condition::refused},
    expectation{errc::lease_lost, condition::refused},
    expectation{errc::store_unavailable, condition::transient},
    expectation{errc::outcome_unknown, condition::transient},
    expectation{errc::disk_full, condition::transient},
    expectation{errc::store_read_only, condition::refused},
    expectation{errc::store_corrupt, condition::refused},
    expectation{errc::permission_denied, condition::refused},
    expectation{errc::store_foreign, condition::refused},
    expectation{errc::store_evicts, condition::refused},
    expectation{errc::schema_too_new, condition::refused},
    expectation{errc::schema_outdated, condition::refused},
    expectation{errc::not_in_transaction, condition::refused},
    expectation{errc::invalid_key, condition::bad_input},
    expectation{errc::invalid_holder, condition::bad_input},
    expectation{errc::invalid_limit, condition::bad_input},
    expectation{errc::invalid_ttl, condition::bad_input},
    expectation{errc::invalid_wait, condition::bad_input},
    expectation{errc::invalid_quota, condition::bad_input},
    expectation{errc::quota_too_large, condition::bad_input},
    expectation{errc::invalid_cost, condition::bad_input},
    expectation{errc::cost_exceeds_capacity, condition::bad_input},
    expectation{errc::invalid_queue, condition::bad_input},
    expectation{errc::invalid_kind, condition::bad_input},
    expectation{errc::payload_too_large, condition::bad_input},
    expectation{errc::invalid_attempts, condition::bad_input},
    expectation{errc::invalid_batch, condition::bad_input},
    expectation{errc::invalid_unique_key, condition::bad_input},
    expectation{errc::invalid_shard, condition::bad_input},
    expectation{errc::invalid_option, condition::bad_input},
    expectation{errc::undecodable_payload, condition::bad_input},
    expectation{errc::unencodable_payload, condition::bad_input},
};

constexpr std::array kinds{condition::bad_input, condition::transient, condition::refused};

}  // namespace

BOOST_AUTO_TEST_SUITE(error)

BOOST_AUTO_TEST_CASE(the_table_has_every_error) {
  // Values are consecutive, so what follows the last one has no message of its own.
  std::set<int> values;
  for (auto const& [code, kind] : expectations) values.insert(static_cast<int>(code));
  BOOST_TEST(values.size() == expectations.size());
  BOOST_TEST(*values.begin() == 1);
  BOOST_TEST(*values.rbegin() == static_cast<int>(expectations.size()));
  int const next = static_cast<int>(expectations.size()) + 1;
  BOOST_TEST(weir::error_category().message(next) == "unknown weir error");
}

BOOST_AUTO_TEST_CASE(every_error_is_a_failure_of_weirs_category) {
  for (auto const& [code, kind] : expectations) {
    error_code const ec = code;  // by is_error_code_enum
    BOOST_TEST(ec.failed());
    BOOST_TEST(static_cast<bool>(ec));
    BOOST_TEST((ec == code));
    BOOST_TEST((ec == make_error_code(code)));
    BOOST_TEST((ec.category() == weir::error_category()));
    BOOST_TEST(ec.value() == static_cast<int>(code));
  }
  BOOST_TEST(weir::error_category().name() == std::string_view{"weir"});
}

BOOST_AUTO_TEST_CASE(every_error_has_a_message_of_its_own) {
  std::set<std::string> messages;
  for (auto const& [code, kind] : expectations) {
    error_code const ec = code;
    BOOST_TEST(!ec.message().empty());
    BOOST_TEST(ec.message() != "unknown weir error");
    std::array<char, 8> small{};
    BOOST_TEST(ec.message() == ec.message(small.data(), small.size()));
    messages.insert(ec.message());
  }
  BOOST_TEST(messages.size() == expectations.size());
}

BOOST_AUTO_TEST_CASE(every_error_is_of_exactly_one_kind) {
  for (auto const& [code, expected] : expectations) {
    error_code const ec = code;
    for (auto const kind : kinds) {
      BOOST_TEST((ec == kind) == (kind == expected), ec.message());
      BOOST_TEST((kind == ec) == (kind == expected), ec.message());
    }
  }
}

BOOST_AUTO_TEST_CASE(success_and_others_errors_are_of_no_kind) {
  for (auto const kind : kinds) {
    BOOST_TEST((error_code{} != kind));
    BOOST_TEST((error_code{1, boost::system::generic_category()} != kind));
    BOOST_TEST((error_code{1, boost::system::system_category()} != kind));
  }
}

BOOST_AUTO_TEST_CASE(weirs_errors_equal_no_others) {
  for (auto const& [code, kind] : expectations) {
    error_code const ec = code;
    BOOST_TEST((ec != error_code{ec.value(), boost::system::generic_category()}));
    BOOST_TEST((ec != boost::system::errc::make_error_condition(boost::system::errc::timed_out)));
    BOOST_TEST((ec.default_error_condition() == ec));
  }
}

BOOST_AUTO_TEST_CASE(kinds_have_names) {
  std::set<std::string> names;
  for (auto const kind : kinds) names.insert(make_error_condition(kind).message());
  BOOST_TEST(names.size() == kinds.size());
  BOOST_TEST(make_error_condition(condition::refused).category().name() ==
             std::string_view{"weir.condition"});
  BOOST_TEST(make_error_condition(condition{99}).message() == "unknown weir condition");
}

BOOST_AUTO_TEST_CASE(errors_are_the_standard_librarys_too) {
  std::error_code const ec = error_code{errc::lease_lost};
  BOOST_TEST(static_cast<bool>(ec));
  BOOST_TEST(ec.message() == error_code{errc::lease_lost}.message());
  BOOST_TEST((ec == std::error_condition{make_error_condition(condition::refused)}));
}

BOOST_AUTO_TEST_CASE(a_result_holds_a_value_or_an_error) {
  weir::result<int> const value = 3;
  BOOST_TEST(value.has_value());
  BOOST_TEST(*value == 3);
  weir::result<int> const failed = make_error_code(errc::not_found);
  BOOST_TEST(failed.has_error());
  BOOST_TEST((failed.error() == errc::not_found));
  BOOST_CHECK_THROW((void)failed.value(), boost::system::system_error);
}

BOOST_AUTO_TEST_SUITE_END()
