// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_HPP
#define WEIR_CONSOLE_HPP

#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/console/entrance.hpp"
#include "weir/console/options.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/erased.hpp"
#include "weir/error.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/default_completion_token.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace weir {

class console;

/// A page that is kept up to date: the body of a response that goes on until somebody leaves. It
/// counts among `console_options::streams` as long as it lives.
class console_stream {
 public:
  using executor_type = boost::asio::any_io_executor;  ///< of any kind
  /// The token of an operation that is given none: `deferred`, or what the executor was rebound to.
  using default_token = boost::asio::default_completion_token_t<executor_type>;

  /// The store's: where handlers without an executor of their own are called.
  [[nodiscard]] executor_type get_executor() const noexcept {
    return detail::web::executor_of(*site_);
  }

  /// The head of the response, which is chunked.
  [[nodiscard]] boost::beast::http::response<boost::beast::http::empty_body> head() const {
    return detail::web::stream_head();
  }

  /// Waits for what comes next of the body: at once the first time, then after
  /// `console_options::every`. One at a time.
  ///
  /// @param token completes with `void(error_code, std::string)`
  /// @return what is to be written as the next chunk, never empty
  /// Errors: `operation_aborted` (cancelled, which leaves nothing behind). That the store cannot be
  /// asked is said on the page.
  ///
  /// Executor: the associated one of the handler, or else the store's. Thread-safety: one stream
  /// may be used by one thread at a time.
  template <class Token = default_token>
  WEIR_OPERATION auto async_next(Token&& token = Token{}) const {
    auto initiate = [](boost::asio::any_completion_handler<void(error_code, std::string)> handler,
                       std::shared_ptr<detail::web::site> const& on,
                       std::shared_ptr<detail::web::query const> const& view,
                       std::shared_ptr<std::string> const& last) {
      detail::web::next_event(on, view, last, std::move(handler));
    };
    return boost::asio::async_initiate<Token, void(error_code, std::string)>(
        detail::bound_initiation{get_executor(), initiate}, token, site_, view_, last_);
  }

 private:
  friend class console;
  console_stream(std::shared_ptr<detail::web::site> on,
                 std::shared_ptr<detail::web::query const> view)
      : site_{std::move(on)},
        view_{std::move(view)},
        last_{std::make_shared<std::string>()} {}

  std::shared_ptr<detail::web::site> site_;
  std::shared_ptr<detail::web::query const> view_;
  std::shared_ptr<std::string> last_;
};

/// Pages about a store, for those who operate it: queues, jobs and why they do not run, dead
/// letters, leases, limits, schedules, and actions on them. It has no socket: it makes a response
/// of a request, in whatever server mounts it.
///
///     weir::console page{store, {.prefix = "/console", .allow = {weir::console_action::replay}}};
///     auto response = co_await page.async_handle(request);
///
/// It does not know who asks: whoever reaches it can read, and do what `console_options::allow`
/// says. Where that differs, a program has a console for each role, behind its own authentication.
/// It answers to the names in `console_options::hosts` only, and changes nothing unless its own
/// page asks for that. Pages have no script and no style within; texts of jobs are escaped.
///
/// A page asks the store for as much as it shows, and for 1,000 records at most where it filters.
///
/// A handle: copies are the same console. Thread-safety: it may be used by several threads.
class console {
 public:
  using executor_type = boost::asio::any_io_executor;  ///< of any kind
  /// The token of an operation that is given none: `deferred`, or what the executor was rebound to.
  using default_token = boost::asio::default_completion_token_t<executor_type>;
  /// A request, whole.
  using request_type = boost::beast::http::request<boost::beast::http::string_body>;
  /// The answer to one.
  using response_type = boost::beast::http::response<boost::beast::http::string_body>;

  /// @param store   what the pages are about; copied
  /// @param options how it looks, and what it may do
  /// @param clock   says what date it is, and waits between the events of a stream; copied
  /// Throws `std::invalid_argument` for an option out of its range.
  template <class Store, host_clock Clock = system_clock>
    requires(!std::same_as<Store, console> && job_store<Store>)
  explicit console(Store store, console_options options = {}, Clock clock = Clock{})
      : site_{detail::web::open_site(
            detail::console_store{store}, detail::any_clock::of(clock),
            [clock] { return clock.system_now(); }, std::move(options))} {}

  /// The store's: where handlers without an executor of their own are called.
  [[nodiscard]] executor_type get_executor() const noexcept {
    return detail::web::executor_of(*site_);
  }

  /// Answers a request.
  ///
  /// @param request whole: the server that mounts it bounds what it reads. Its target begins with
  ///                `console_options::prefix`; a body of more than 4 KiB is refused
  /// @param token   completes with `void(error_code, response_type)`
  /// @return the response, without `Content-Length` and the like: `prepare_payload` sets them. What
  /// is wrong with a request, or with the store, is a page that says so
  /// Errors: `operation_aborted` (cancelled), `not_enough_memory`. An action that was cancelled is
  /// done or not done, never half; of an action on many jobs some may be done.
  ///
  /// Executor: the associated one of the handler, or else the store's.
  template <class Token = default_token>
  WEIR_OPERATION auto async_handle(request_type request, Token&& token = Token{}) const {
    auto initiate = [](boost::asio::any_completion_handler<void(error_code, response_type)> handler,
                       std::shared_ptr<detail::web::site> const& on, request_type asked) {
      detail::web::answer(on, std::move(asked), std::move(handler));
    };
    return boost::asio::async_initiate<Token, void(error_code, response_type)>(
        detail::bound_initiation{get_executor(), initiate}, token, site_, std::move(request));
  }

  /// Is this a request for a page to be kept up to date? Then the server writes what the stream
  /// gives, for as long as the client is there. A server that cannot do that need not ask: the
  /// answer of `async_handle` is one event, and the browser asks again after ten seconds.
  ///
  /// @param request a request that has come whole
  /// @return empty: it is not, or may not be, or there are as many streams as there may be:
  /// `async_handle` has the answer
  [[nodiscard]] std::optional<console_stream> open_stream(request_type const& request) const {
    auto view = detail::web::watched(site_, request);
    if (!view) return std::nullopt;
    return console_stream{site_, std::move(view)};
  }

 private:
  std::shared_ptr<detail::web::site> site_;
};

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/console/site.hpp"
#endif

#endif
