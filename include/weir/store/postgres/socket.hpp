// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_SOCKET_HPP
#define WEIR_STORE_POSTGRES_SOCKET_HPP

#include "weir/clock/system.hpp"
#include "weir/error.hpp"
#include "weir/store/postgres/hosts.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/strand.hpp>

#include <libpq-fe.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

using postgres_strand = boost::asio::strand<boost::asio::any_io_executor>;

struct postgres_finish {
  void operator()(PGconn* c) const noexcept { PQfinish(c); }
};
struct postgres_clear {
  void operator()(PGresult* r) const noexcept { PQclear(r); }
};
using postgres_result = std::unique_ptr<PGresult, postgres_clear>;

/// A timer that is set, set anew and stopped, and keeps nobody busy while it is stopped. On a
/// strand.
class postgres_timer {
 public:
  explicit postgres_timer(postgres_strand strand) : strand_{std::move(strand)} {}
  postgres_timer(postgres_timer const&) = delete;
  postgres_timer& operator=(postgres_timer const&) = delete;

  /// Calls `expired` at `t`, unless it is stopped or set anew by then. `expired` keeps alive
  /// whatever owns this.
  template <class Expired>
  void set(steady_time t, Expired expired) {
    stop();
    auto const mine = std::make_shared<boost::asio::cancellation_signal>();
    signal_ = mine;
    clock_.async_wait_until(
        strand_, t,
        boost::asio::bind_cancellation_slot(
            mine->slot(), [this, mine, expired = std::move(expired)](error_code ec) {
              if (ec || signal_ != mine) return;
              signal_.reset();
              expired();
            }));
  }

  void stop() {
    if (auto const s = std::exchange(signal_, nullptr)) {
      s->emit(boost::asio::cancellation_type::terminal);
    }
  }

  [[nodiscard]] steady_time now() const noexcept { return clock_.steady_now(); }

 private:
  postgres_strand strand_;
  system_clock clock_;
  std::shared_ptr<boost::asio::cancellation_signal> signal_;
};

/// A connection of libpq whose socket Asio watches. On a strand.
class postgres_socket {
 public:
  using descriptor = boost::asio::posix::stream_descriptor;

  explicit postgres_socket(postgres_strand strand) : strand_{std::move(strand)} {}

  [[nodiscard]] PGconn* get() const noexcept { return connection_.get(); }
  [[nodiscard]] bool open() const noexcept { return connection_ != nullptr; }
  [[nodiscard]] postgres_strand const& strand() const noexcept { return strand_; }

  /// Connects, and then calls `done(error_code)`, which keeps alive whatever owns this. Once it is
  /// closed that does not matter any more.
  void connect(std::string const& conninfo, std::function<void(error_code)> done) {
    postgres_hosts hosts{conninfo};
    if (!hosts.valid()) return done(errc::store_unavailable);
    auto names = hosts.names();
    if (names.empty()) return begin(hosts, std::move(done));
    auto const s = std::make_shared<search>(std::move(hosts), std::move(names), std::move(done));
    resolver_ = std::make_unique<resolver>(strand_);
    look_up(s);
  }

  /// `h(error_code)` keeps alive whatever owns this.
  template <class Handler>
  void wait(descriptor::wait_type what, Handler&& h) {
    descriptor_->async_wait(what, std::forward<Handler>(h));
  }

  /// Ends its waits.
  void cancel() noexcept {
    error_code ignored;
    if (descriptor_) descriptor_->cancel(ignored);
  }

  [[nodiscard]] std::string message() const {
    return connection_ ? PQerrorMessage(connection_.get()) : "";
  }

  void close() noexcept {
    resolver_.reset();
    descriptor_.reset();
    connection_.reset();
  }

 private:
  using resolver = boost::asio::ip::basic_resolver<boost::asio::ip::tcp, postgres_strand>;

  /// For where hosts are.
  struct search {
    search(postgres_hosts h, std::vector<std::string> n, std::function<void(error_code)> d)
        : hosts{std::move(h)},
          names{std::move(n)},
          done{std::move(d)} {}

    postgres_hosts hosts;
    std::vector<std::string> names;  // that are still to be looked up
    postgres_hosts::addresses found{};
    std::function<void(error_code)> done;
  };

  void look_up(std::shared_ptr<search> const& s) {
    resolver_->async_resolve(s->names.back(), "", [this, s](error_code, auto const& at) {
      if (!resolver_) return s->done(errc::store_unavailable);
      for (auto const& each : at) {
        s->found[s->names.back()].push_back(each.endpoint().address().to_string());
      }
      s->names.pop_back();
      if (!s->names.empty()) return look_up(s);
      resolver_.reset();
      if (!s->hosts.locate(s->found)) return s->done(errc::store_unavailable);
      begin(s->hosts, std::move(s->done));
    });
  }

  void begin(postgres_hosts const& hosts, std::function<void(error_code)> done) {
    connection_.reset(hosts.start());
    if (!connection_) return done(make_error_code(boost::system::errc::not_enough_memory));
    PQsetNoticeReceiver(connection_.get(), [](void*, PGresult const*) {}, nullptr);
    polled_ = PQstatus(connection_.get()) == CONNECTION_BAD ? PGRES_POLLING_FAILED
                                                            : PGRES_POLLING_WRITING;
    go_on(std::move(done));
  }

  void go_on(std::function<void(error_code)> done) {
    if (polled_ == PGRES_POLLING_OK) return done({});
    if (polled_ == PGRES_POLLING_FAILED) return done(errc::store_unavailable);
    // libpq may have gone on to another socket, which may have the old one's number.
    if (auto const ec = watch()) return done(ec);
    auto const what =
        polled_ == PGRES_POLLING_READING ? descriptor::wait_read : descriptor::wait_write;
    descriptor_->async_wait(what, [this, done = std::move(done)](error_code ec) mutable {
      if (ec || !connection_) return done(errc::store_unavailable);
      polled_ = PQconnectPoll(connection_.get());
      go_on(std::move(done));
    });
  }

  error_code watch() {
    descriptor_.reset();
    int const own = ::dup(PQsocket(connection_.get()));
    if (own < 0) return errc::store_unavailable;
    descriptor_ = std::make_unique<descriptor>(strand_);
    error_code ec;
    descriptor_->assign(own, ec);
    if (ec) ::close(own);
    return ec;
  }

  postgres_strand strand_;
  std::unique_ptr<resolver> resolver_;
  std::unique_ptr<PGconn, postgres_finish> connection_;
  std::unique_ptr<descriptor> descriptor_;
  PostgresPollingStatusType polled_ = PGRES_POLLING_FAILED;
};

}  // namespace weir::detail

#endif
