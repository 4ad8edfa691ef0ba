// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "session.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iterator>
#include <tuple>
#include <utility>

namespace serving {

namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

constexpr auto as_answer = asio::as_tuple(asio::use_awaitable);
constexpr std::uint64_t largest_question = 64 * 1024;
constexpr std::chrono::seconds client_patience{30};  // for a request to come, or a response to go

/// The answer to a request that cannot be read; nothing if nobody is there to be told.
std::optional<response> objection(service const& by, beast::error_code const& ec) {
  if (ec == http::error::body_limit) {
    return by.refusal(http::status::payload_too_large, "64 KiB at most");
  }
  if (ec == http::error::header_limit || ec == http::error::buffer_overflow) {
    return by.refusal(http::status::request_header_fields_too_large, "8 KiB at most");
  }
  bool const malformed = ec.category() == http::make_error_code(http::error::bad_value).category();
  if (!malformed || ec == http::error::end_of_stream || ec == http::error::partial_message) {
    return std::nullopt;
  }
  return by.refusal(http::status::bad_request, ec.message());
}

/// Is the body sent in a way other than the one that is known here? Where it ends is then anybody's
/// guess, and what one guesses to be its end another may take for the next request (RFC 9112, 6.1).
bool coding_is_unknown(request const& head) {
  auto const [first, last] = head.equal_range(http::field::transfer_encoding);
  return std::any_of(first, last, [&](auto const& field) {
    return std::next(first) != last || !beast::iequals(field.value(), "chunked");
  });
}

}  // namespace

session::session(tcp::socket socket, service& how) : stream_{std::move(socket)}, service_{how} {}

void session::start(std::function<void(bool)> ended) {
  auto done = [self = shared_from_this(), ended = std::move(ended)](std::exception_ptr) {
    beast::error_code ignored;
    self->stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    ended(self->unanswered_);
  };
  auto running = run();
  asio::co_spawn(stream_.get_executor(), std::move(running),
                 asio::bind_cancellation_slot(cut_off_.slot(), std::move(done)));
}

void session::finish() {
  asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
    self->finishing_ = true;
    if (!self->working_) self->stream_.cancel();
    if (self->streaming_) self->cut_off_.emit(asio::cancellation_type::terminal);
  });
}

void session::cut_off() {
  asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
    self->unanswered_ = self->working_;
    self->cut_off_.emit(asio::cancellation_type::terminal);
  });
}

void session::give_way() {
  asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
    if (!self->working_ || self->writing_) {
      self->cut_off_.emit(asio::cancellation_type::terminal);
    }
  });
}

asio::awaitable<void> session::run() {
  beast::error_code ignored;
  stream_.socket().set_option(tcp::no_delay{true}, ignored);
  stream_.socket().non_blocking(true, ignored);  // for `client_gone`
  while (!finishing_ && co_await serve_one() == after::next_request) {
  }
}

asio::awaitable<session::after> session::serve_one() {
  request_parser parser;
  parser.body_limit(largest_question);
  stream_.expires_after(client_patience);
  waits_since_ = std::chrono::steady_clock::now();
  auto const read = co_await read_into(parser);
  waits_since_ = time_point::max();
  if (!read) co_return after::end;
  auto const asked = parser.release();
  stream_.expires_never();
  working_ = true;
  if (auto endless = service_.open(asked)) {
    co_await stream(std::move(*endless));
    working_ = false;
    co_return after::end;
  }
  auto reply = co_await answer_unless_gone(asked);
  if (!reply) co_return after::end;
  reply->version(asked.version());  // of 1.0 it says whether the connection stays
  auto const next =
      co_await send(std::move(*reply), asked.keep_alive(), asked.method() == http::verb::head);
  working_ = false;
  co_return next;
}

/// False: what came is no request; its sender has been told so.
asio::awaitable<bool> session::read_into(request_parser& parser) {
  auto const [no_head, head_size] =
      co_await http::async_read_header(stream_, buffer_, parser, as_answer);
  std::optional<response> reply;
  if (no_head) {
    reply = objection(service_, no_head);
  } else if (coding_is_unknown(parser.get())) {
    reply = service_.refusal(http::status::not_implemented, "Transfer-Encoding: chunked, or none");
  } else {
    auto const [unread, size] = co_await http::async_read(stream_, buffer_, parser, as_answer);
    if (!unread) co_return true;
    reply = objection(service_, unread);
  }
  if (reply) co_await send(std::move(*reply), false);
  if (reply) co_await linger();
  co_return false;
}

asio::awaitable<session::after> session::send(response reply, bool keep_alive, bool head) {
  reply.keep_alive(keep_alive && !finishing_);
  reply.prepare_payload();
  stream_.expires_after(client_patience);
  writing_ = true;
  waits_since_ = std::chrono::steady_clock::now() + std::chrono::seconds{2};
  http::response_serializer<response::body_type> written{reply};
  auto const [unsent, size] = head ? co_await http::async_write_header(stream_, written, as_answer)
                                   : co_await http::async_write(stream_, written, as_answer);
  writing_ = false;
  waits_since_ = time_point::max();
  co_return unsent || !reply.keep_alive() ? after::end : after::next_request;
}

/// Closing what has not been read breaks the connection, and the client may never see its
/// response.
asio::awaitable<void> session::stream(endless_response reply) {
  streaming_ = true;
  http::response_serializer<http::empty_body> head{reply.head};
  stream_.expires_after(client_patience);
  auto [ec, size] = co_await http::async_write_header(stream_, head, as_answer);
  while (!ec && !finishing_) {
    stream_.expires_never();
    auto const next = co_await reply.next();
    stream_.expires_after(client_patience);
    std::tie(ec, size) = co_await asio::async_write(
        stream_, http::make_chunk(asio::buffer(next.data(), next.size())), as_answer);
  }
}

asio::awaitable<void> session::linger() {
  beast::error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  stream_.expires_after(std::chrono::seconds{1});
  std::array<char, 4096> unread;
  while (std::get<0>(co_await stream_.async_read_some(asio::buffer(unread), as_answer)) ==
         beast::error_code{}) {
  }
}

// Whoever has gone waits for nothing: its place in line, or its permit, is another's then.
asio::awaitable<std::optional<response>> session::answer_unless_gone(request const& asked) {
  using namespace asio::experimental::awaitable_operators;
  auto answered = answer(asked);
  auto gone = client_gone();
  auto both = std::move(answered) || std::move(gone);
  auto first = co_await std::move(both);
  if (first.index() != 0) co_return std::nullopt;
  co_return std::get<0>(std::move(first));
}

/// Empty if there is nothing to be said, since it was cancelled.
asio::awaitable<std::optional<response>> session::answer(request const& asked) {
  try {
    co_return co_await service_.answer(asked);
  } catch (std::exception const&) {
    co_return std::nullopt;
  }
}

/// Ends when the client has closed its end, or all of the connection.
asio::awaitable<void> session::client_gone() {
  auto& socket = stream_.socket();
  for (;;) {
    co_await socket.async_wait(tcp::socket::wait_read, asio::use_awaitable);
    char next = 0;
    beast::error_code ec;
    auto const size = socket.receive(asio::buffer(&next, 1), tcp::socket::message_peek, ec);
    if (ec == asio::error::would_block) continue;
    if (ec || size == 0) co_return;
    // Its next request is here already, and hides what comes behind: only a broken connection
    // shows.
    co_await socket.async_wait(tcp::socket::wait_error, asio::use_awaitable);
    co_return;
  }
}

}  // namespace serving
