// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_HPP
#define WEIR_TESTING_CONFORMANCE_HPP

#include "weir/testing/conformance/buckets.hpp"
#include "weir/testing/conformance/jobs.hpp"
#include "weir/testing/conformance/locks.hpp"
#include "weir/testing/conformance/permits.hpp"

/// @file
/// Does a store keep weir's promises? One call for each noun that it has, in whatever test
/// framework there is:
///
///     struct my_driver {  // see weir/testing/driver.hpp
///       my_store make(boost::asio::any_io_executor const& ex) {
///         return my_store{ex, "prefix" + std::to_string(++stores)};
///       }
///       weir::testing::capabilities declared() const { return {.line = false}; }
///       int stores = 0;
///     };
///
///     my_driver driver;
///     weir::testing::report found;
///     weir::testing::conformance::permits(driver, found);
///     for (auto const& f : found.findings()) {
///       BOOST_TEST((f.outcome != weir::testing::verdict::failed), f);
///     }
///
/// Each noun has its named checks, one for each promise (R1-R8) and failure (F1 and on) that a
/// client can see; generated histories, compared with the rule; and concurrent histories, judged by
/// whether they have a legal order. The folder of its name has a file for each. A noun takes a
/// while to compile: give each a translation unit of its own.
///
/// What is not asked for, because no client of a store can see it in an answer: how many round
/// trips or how much time a command takes (F5, F26, F43, F44), what the limiter, the rate limiter
/// and the worker do with answers (F2, F12, F37, F42, F51, F55), and what becomes of a connection,
/// a server or a replica that fails (F46, F50, F53; F45 and F47 as far as they are the store's
/// own). A store that survives its process is to be tested for that besides.

#endif
