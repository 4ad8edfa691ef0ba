// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_SOCKET_HPP
#define WEIR_STORE_POSTGRES_SOCKET_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/explained.hpp"
#include "weir/detail/os_entropy.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/store/postgres/hosts.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/strand.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <libpq-fe.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
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

/// An alarm on a strand, and the time that it goes by.
class postgres_timer {
 public:
  explicit postgres_timer(postgres_strand strand) : strand_{std::move(strand)} {}

  /// Calls `expired` at `t`, unless it is stopped or set anew by then. `expired` keeps alive
  /// whatever owns this.
  void set(steady_time t, std::function<void()> expired) {
    alarm_.start(strand_, t, std::move(expired));
  }
  void stop() { alarm_.stop(); }

  [[nodiscard]] steady_time now() const noexcept { return system_clock{}.steady_now(); }

 private:
  postgres_strand strand_;
  alarm<system_clock> alarm_;
};

/// What a server may send beside whole answers, and what reading it may cost. libpq has no bound of
/// its own: it keeps what belongs to an answer until that is whole, and parameters for good, each
/// of which it looks for among all that it has. On a connection that is not TCP nothing is counted:
/// such a server is on this machine.
class postgres_allowance {
 public:
  /// The bytes of the largest answer: its texts, one job more, and what each row has besides.
  static constexpr std::uint64_t answer =
      limits::answer_bytes + 2 * limits::payload_size + std::uint64_t{320} * limits::batch;
  /// Bytes of anything else: more than any server has to say.
  static constexpr std::uint64_t others = 256 << 10;

  /// Bytes of an answer were read.
  void answered(std::uint64_t bytes) noexcept {
    // With it come the ends of messages, or a short notice, and about 30 bytes of each TLS record
    // of 8 KiB.
    constexpr std::uint64_t trimmings = 128;
    answered_ += bytes + bytes / 256 + trimmings;
    spent_ = 0;
  }

  /// To be called before what has come is read.
  void begin() noexcept { begun_ = besides_ > others ? spent_here() : 0; }

  /// To be called when it was read: the bytes that belong to no whole answer. 0: not known.
  [[nodiscard]] std::uint64_t besides(int socket) noexcept {
    constexpr std::int64_t most = 2'000'000'000;
    auto const all = received(socket);
    answered_ = std::min(answered_, all);  // what one answer spared is not for another
    besides_ = all - answered_;
    int unread = 0;
    if (besides_ > others && ::ioctl(socket, FIONREAD, &unread) == 0) {
      besides_ -= std::min<std::uint64_t>(besides_, static_cast<unsigned>(unread));
    }
    if (begun_ != 0) spent_ += spent_here() - std::exchange(begun_, 0);
    return spent_ > most ? besides_ + answer : besides_;
  }

 private:
  /// The beginning of Linux' structure, of which the C library declares less.
  struct info {
    ::tcp_info known;
    std::uint64_t pacing_rate;
    std::uint64_t max_pacing_rate;
    std::uint64_t bytes_acked;
    std::uint64_t bytes_received;
  };

  [[nodiscard]] static std::uint64_t received(int socket) noexcept {
    info about{};
    ::socklen_t n = sizeof(about);
    bool const known = ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &about, &n) == 0;
    return known ? about.bytes_received : 0;
  }

  /// This thread's processor time, in nanoseconds.
  [[nodiscard]] static std::int64_t spent_here() noexcept {
    ::timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  }

  std::uint64_t answered_ = 0;
  std::uint64_t besides_ = 0;
  std::int64_t begun_ = 0;
  std::int64_t spent_ = 0;  // on what is no whole answer yet
};

/// The bytes that an answer took on its way: the names of its columns and its rows, or the texts of
/// an error.
[[nodiscard]] inline std::uint64_t postgres_bytes(PGresult const* r) noexcept {
  constexpr std::uint64_t header = 7;
  constexpr std::uint64_t column = 19;
  auto const rows = PQntuples(r);
  auto const columns = PQnfields(r);
  auto out = header * static_cast<unsigned>(rows + 1);
  for (int k = 0; k != columns; ++k) out += column + std::strlen(PQfname(r, k));
  for (int i = 0; i != rows; ++i) {
    for (int k = 0; k != columns; ++k) {
      out += sizeof(std::int32_t) + static_cast<unsigned>(PQgetlength(r, i, k));
    }
  }
  if (PQresultStatus(r) == PGRES_FATAL_ERROR) {
    for (char const field : std::string_view{"SVCMDHPpqWstcdnFLR"}) {
      if (auto const* const text = PQresultErrorField(r, field)) out += std::strlen(text) + 2;
    }
  }
  return out;
}

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
  ///
  /// @param most how long looking up the names of hosts may take, and each attempt at one of them
  void connect(std::string const& conninfo, duration most, std::function<void(error_code)> done) {
    auto const s = std::make_shared<search>(postgres_hosts{conninfo}, most, std::move(done));
    if (!s->hosts.valid()) {
      return finish(*s,
                    explained(errc::invalid_option, "connection string: " + s->hosts.problem()));
    }
    s->names = s->hosts.names();
    if (s->names.empty()) return begin(s);
    resolver_ = std::make_unique<resolver>(strand_);
    timer_.set(saturating_add(timer_.now(), most), [this, s] {
      finish(*s, explained(errc::store_unavailable, "looking up the host takes too long"));
    });
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

  /// An answer is whole, of so many bytes.
  void answered(std::uint64_t bytes = 0) noexcept { allowance_.answered(bytes); }
  /// As those of an allowance.
  void begin_reading() noexcept { allowance_.begin(); }
  [[nodiscard]] std::uint64_t besides() noexcept {
    return descriptor_ ? allowance_.besides(descriptor_->native_handle()) : 0;
  }

  [[nodiscard]] std::string message() const {
    return connection_ ? PQerrorMessage(connection_.get()) : "";
  }

  void close() noexcept {
    timer_.stop();
    resolver_.reset();
    descriptor_.reset();
    connection_.reset();
  }

 private:
  using resolver = boost::asio::ip::basic_resolver<boost::asio::ip::tcp, postgres_strand>;

  /// For where hosts are, and for one that answers.
  struct search {
    search(postgres_hosts h, duration m, std::function<void(error_code)> d)
        : hosts{std::move(h)},
          most{m},
          done{std::move(d)} {}

    postgres_hosts hosts;
    duration most;
    std::vector<std::string> names{};  // that are still to be looked up
    postgres_hosts::addresses found{};
    std::size_t attempts = 0;              // that were begun
    std::string cause{};                   // why the last one failed, in words
    std::function<void(error_code)> done;  // empty: it is over
  };

  void finish(search& s, error_code ec) {
    timer_.stop();
    if (auto const done = std::exchange(s.done, nullptr)) done(ec);
  }

  void look_up(std::shared_ptr<search> const& s) {
    resolver_->async_resolve(s->names.back(), "", [this, s](error_code ec, auto const& at) {
      if (!s->done) return;
      if (ec) s->cause = s->names.back() + ": the name cannot be looked up: " + ec.message();
      if (!resolver_) return finish(*s, errc::store_unavailable);
      for (auto const& each : at) {
        s->found[s->names.back()].push_back(each.endpoint().address().to_string());
      }
      s->names.pop_back();
      if (!s->names.empty()) return look_up(s);
      resolver_.reset();
      if (!s->hosts.locate(s->found)) {
        return finish(*s, explained(errc::store_unavailable, s->cause));
      }
      begin(s);
    });
  }

  void begin(std::shared_ptr<search> const& s) {
    s->hosts.mix(os_entropy()[0]);
    try_next(s);
  }

  /// Tries the next host; the last one failed, or has had its time.
  void try_next(std::shared_ptr<search> const& s) {
    if (connection_ && *PQerrorMessage(connection_.get()) != 0) s->cause = message();
    descriptor_.reset();
    connection_.reset();
    allowance_ = {};
    if (s->attempts == s->hosts.attempts()) {
      return finish(*s, explained(errc::store_unavailable, s->cause));
    }
    auto const n = s->attempts++;
    timer_.set(saturating_add(timer_.now(), s->most), [this, s] { give_up(s); });
    connection_.reset(s->hosts.start(n));
    if (!connection_) {
      return finish(*s, make_error_code(boost::system::errc::not_enough_memory));
    }
    PQsetNoticeReceiver(connection_.get(), [](void*, PGresult const*) {}, nullptr);
    polled_ = PQstatus(connection_.get()) == CONNECTION_BAD ? PGRES_POLLING_FAILED
                                                            : PGRES_POLLING_WRITING;
    go_on(s);
  }

  /// The host that is tried is mute.
  void give_up(std::shared_ptr<search> const& s) {
    s->cause = "no answer within connect_timeout";
    if (connection_) {
      s->cause = std::string{PQhost(connection_.get())} + ":" + PQport(connection_.get()) + ": " +
                 s->cause;
      connection_.reset();
    }
    try_next(s);
  }

  void go_on(std::shared_ptr<search> const& s) {
    if (polled_ == PGRES_POLLING_OK) return finish(*s, {});
    if (polled_ == PGRES_POLLING_FAILED) return try_next(s);
    // libpq may have gone on to another socket, which may have the old one's number.
    if (watch()) return try_next(s);
    auto const what =
        polled_ == PGRES_POLLING_READING ? descriptor::wait_read : descriptor::wait_write;
    descriptor_->async_wait(what, [this, s, n = s->attempts](error_code ec) {
      if (!s->done || s->attempts != n) return;  // it is over, or another host's turn
      if (ec || !connection_) return finish(*s, errc::store_unavailable);
      polled_ = besides() > postgres_allowance::others ? PGRES_POLLING_FAILED
                                                       : PQconnectPoll(connection_.get());
      go_on(s);
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
  postgres_timer timer_{strand_};
  std::unique_ptr<resolver> resolver_;
  std::unique_ptr<PGconn, postgres_finish> connection_;
  std::unique_ptr<descriptor> descriptor_;
  postgres_allowance allowance_;
  PostgresPollingStatusType polled_ = PGRES_POLLING_FAILED;
};

}  // namespace weir::detail

#endif
