// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_ENTRANCE_HPP
#define WEIR_CONSOLE_ENTRANCE_HPP

#include "weir/console/any_store.hpp"
#include "weir/console/options.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/erased.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <functional>
#include <memory>
#include <string>

// In front of the seam between a console and its pages: what is behind it, weir/console/site.hpp,
// is compiled once where a program wants that.
namespace weir::detail::web {

class query;
class site;

using request = boost::beast::http::request<boost::beast::http::string_body>;
using response = boost::beast::http::response<boost::beast::http::string_body>;
using request_header = boost::beast::http::request_header<>;

/// Throws `std::invalid_argument` for an option out of its range.
[[nodiscard]] std::shared_ptr<site> open_site(console_store store, any_clock clock,
                                              std::function<time_point()> date, console_options o);
[[nodiscard]] boost::asio::any_io_executor executor_of(site const& of) noexcept;

/// Answers a request.
void answer(std::shared_ptr<site> const& of, request asked,
            boost::asio::any_completion_handler<void(error_code, response)> handler);

/// The page that is to be kept up to date, if the request asks for one and may. Empty: it does not,
/// or may not, or so many are kept up to date already.
[[nodiscard]] std::shared_ptr<query const> watched(std::shared_ptr<site> const& of,
                                                   request_header const& asked);
/// The head of what keeps a page up to date.
[[nodiscard]] boost::beast::http::response<boost::beast::http::empty_body> stream_head();
/// The next event of such a page: what it is now, if that is not `last`.
void next_event(std::shared_ptr<site> const& of, std::shared_ptr<query const> const& view,
                std::shared_ptr<std::string> const& last,
                boost::asio::any_completion_handler<void(error_code, std::string)> handler);

}  // namespace weir::detail::web

#endif
