// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_ASIO_IN_USE_HPP
#define WEIR_TEST_ASIO_IN_USE_HPP

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>

// Asio's executors as nearly every file has them: where this is precompiled they are instantiated
// once, which takes clang most of a second.
inline void use_asio(boost::asio::io_context& io) {
  boost::asio::any_io_executor const any{io.get_executor()};
  boost::asio::any_completion_executor const least{any};
  boost::asio::any_completion_executor const of_context{io.get_executor()};
  boost::asio::any_io_executor const strand{boost::asio::make_strand(any)};
  (void)boost::asio::prefer(least, boost::asio::execution::outstanding_work.tracked);
  (void)boost::asio::prefer(any, boost::asio::execution::outstanding_work.tracked);
}

#endif
