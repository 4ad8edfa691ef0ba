// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "backend.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/verb.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/system/errc.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace gateway {

namespace {

namespace beast = boost::beast;
namespace http = beast::http;

constexpr auto as_answer = asio::as_tuple(asio::use_awaitable);

class pretended_model final : public backend {
 public:
  explicit pretended_model(weir::duration think) : think_{think} {}

  asio::awaitable<weir::result<std::string>> ask(std::string const& question) override {
    asio::steady_timer thinking{co_await asio::this_coro::executor, think_};
    auto const [ec] = co_await thinking.async_wait(as_answer);
    if (ec) co_return ec;
    co_return question.empty() ? "42" : "That is a good question: " + question;
  }

 private:
  weir::duration think_;
};

/// A connection for each question: the backend is slow, so that costs nothing to speak of. It may
/// think for as long as it likes, since its permit is renewed meanwhile.
class http_backend final : public backend {
 public:
  http_backend(std::string host, std::uint16_t port) : host_{std::move(host)} {
    asio::io_context io;
    asio::ip::tcp::resolver resolver{io};
    weir::error_code ec;
    places_ = resolver.resolve(host_, std::to_string(port), ec);
    if (ec) throw serving::place_error{host_, port, ec.message()};
  }

  asio::awaitable<weir::result<std::string>> ask(std::string const& question) override {
    beast::tcp_stream stream{co_await asio::this_coro::executor};
    stream.expires_after(std::chrono::seconds{5});
    auto const [unconnected, place] = co_await stream.async_connect(places_, as_answer);
    if (unconnected) co_return unconnected;

    http::request<http::string_body> request{http::verb::post, "/", 11, question};
    request.set(http::field::host, host_);
    request.set(http::field::connection, "close");
    request.prepare_payload();
    auto const [unsent, sent] = co_await http::async_write(stream, request, as_answer);
    if (unsent) co_return unsent;

    stream.expires_never();
    beast::flat_buffer buffer;
    http::response_parser<http::string_body> response;
    auto const [unread, read] = co_await http::async_read(stream, buffer, response, as_answer);
    if (unread) co_return unread;
    if (response.get().result() != http::status::ok) {
      co_return make_error_code(boost::system::errc::protocol_error);
    }
    co_return std::move(response.get().body());
  }

 private:
  std::string host_;
  asio::ip::tcp::resolver::results_type places_;
};

}  // namespace

std::unique_ptr<backend> make_backend(options const& options) {
  if (options.backend_host.empty()) return std::make_unique<pretended_model>(options.think);
  return std::make_unique<http_backend>(options.backend_host, options.backend_port);
}

}  // namespace gateway
