// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_INQUIRY_HPP
#define WEIR_STORE_REDIS_INQUIRY_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/dial.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/redis/request.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// Asks a server that has refused a greeting what it has against it: Boost.Redis only tells that it
/// has something. On a connection of its own, with the parts of the greeting one by one. In one
/// strand, and alive until `then` was called.
class redis_inquiry : public std::enable_shared_from_this<redis_inquiry> {
 public:
  /// @param then told `permission_denied` or `invalid_option`, or success: nothing that would not
  ///             pass
  redis_inquiry(boost::asio::any_io_executor const& strand, redis_address address,
                std::function<void(error_code)> then)
      : strand_{strand},
        address_{std::move(address)},
        then_{std::move(then)},
        resolver_{strand},
        context_{redis_tls(address_)},
        remote_{strand, context_},
        local_{strand} {}

  void start(duration patience) {
    address_.password().empty() ? request_.push("PING")
                                : request_.push("AUTH", address_.user(), address_.password());
    if (address_.database() != 0) request_.push("SELECT", address_.database());
    missing_ = address_.database() != 0 ? 2 : 1;
    sleep_.start(strand_, saturating_add(system_clock{}.steady_now(), patience),
                 [self = shared_from_this()] { self->stop(); });
    address_.path().empty() ? resolve() : reach();
  }

  /// `then` is told of nothing.
  void stop() { end({}); }

 private:
  using tcp = boost::asio::ip::tcp;
  using local = boost::asio::local::stream_protocol;

  /// What comes after a step that went well.
  template <class F>
  auto on(F next) {
    return boost::asio::bind_executor(strand_, [self = shared_from_this(), next = std::move(next)](
                                                   error_code ec, auto const&... results) mutable {
      if (ec || !self->then_) return self->end({});
      next(results...);
    });
  }

  void reach() {
    local_.async_connect(local::endpoint{address_.path()}, on([this] { say(local_); }));
  }

  void resolve() {
    resolver_.async_resolve(address_.host(), std::to_string(address_.port()),
                            on([this](auto const& places) {
                              boost::asio::async_connect(remote_.next_layer(), places,
                                                         on([this](auto const&) { connected(); }));
                            }));
  }

  void connected() {
    if (!address_.uses_tls()) return say(remote_.next_layer());
    redis_verify(remote_, address_);
    remote_.async_handshake(boost::asio::ssl::stream_base::client, on([this] { say(remote_); }));
  }

  template <class Stream>
  void say(Stream& to) {
    boost::asio::async_write(to, boost::asio::buffer(request_.payload()),
                             on([this, &to](std::size_t) { listen(to); }));
  }

  /// Each answer is a line.
  template <class Stream>
  void listen(Stream& to) {
    constexpr std::size_t longest = 4096;
    boost::asio::async_read_until(to, boost::asio::dynamic_buffer(heard_, longest), '\n',
                                  on([this, &to](std::size_t size) {
                                    auto const line = std::string_view{heard_}.substr(0, size);
                                    if (line.starts_with('-')) return refused(line.substr(1));
                                    heard_.erase(0, size);
                                    --missing_ == 0 ? end({}) : listen(to);
                                  }));
  }

  void refused(std::string_view text) {
    auto const why = redis_refusal(text);
    end(redis_refusal_stays(why) ? why : error_code{});
  }

  void end(error_code why) {
    auto const then = std::exchange(then_, {});
    if (!then) return;
    sleep_.stop();
    resolver_.cancel();
    error_code ignored;
    remote_.next_layer().close(ignored);
    local_.close(ignored);
    then(why);
  }

  boost::asio::any_io_executor strand_;
  redis_address address_;
  std::function<void(error_code)> then_;
  boost::redis::request request_;
  int missing_ = 0;  // answers
  std::string heard_;
  tcp::resolver resolver_;
  boost::asio::ssl::context context_;
  boost::asio::ssl::stream<tcp::socket> remote_;
  local::socket local_;
  alarm<system_clock> sleep_;
};

}  // namespace weir::detail

#endif
