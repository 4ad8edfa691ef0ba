// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_PUMP_HPP
#define WEIR_STORE_NATS_PUMP_HPP

#include "weir/store/nats/framing.hpp"

#include <sys/socket.h>
#include <sys/types.h>

#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace weir::detail {

/// How often the C client was called, and how often it returned: odd while it is at work.
using nats_calls = std::shared_ptr<std::atomic<unsigned>>;

/// Passes on what a server and the C client say to each other in TLS, in a thread of its own. That
/// client (3.4.1) polls without a timeout, and so in the strand, for the rest of a TLS record and
/// for room in its socket. Here it is given whole records, and all that it writes is taken: it
/// waits for this thread, and for no network. A call of it that lasts all the same, as with records
/// that have nothing in them, ends with the connection.
class nats_pump {
 public:
  /// @param server what is connected to it; closed here, as `client` is
  nats_pump(int server, int client, nats_calls calls)
      : server_{server},
        client_{client},
        calls_{std::move(calls)},
        thread_{[this] { run(); }} {}
  nats_pump(nats_pump const&) = delete;
  nats_pump& operator=(nats_pump const&) = delete;
  /// Ends both connections, and the thread, which waits for nothing else.
  ~nats_pump() {
    shut();
    thread_.join();
    ::close(server_);
    ::close(client_);
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t record_head = 5;  // bytes, of which the last two are a size
  static constexpr std::chrono::seconds look{1};
  static constexpr std::chrono::seconds longest_call{5};

  struct passing {
    std::string bytes{};
    std::size_t gone = 0;  // of them, and less than half
  };

  void shut() const noexcept {
    ::shutdown(server_, SHUT_RDWR);
    ::shutdown(client_, SHUT_RDWR);
  }
  void run() noexcept {
    try {
      while (step()) {
      }
    } catch (...) {  // there is no memory for it
    }
    shut();
  }

  /// Waits for something to do, and does it. False: that was all.
  [[nodiscard]] bool step() {
    auto const events = [](bool reads, bool writes) {
      return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
    };
    std::array<::pollfd, 2> both{{{server_, events(said_.bytes.empty(), !asked_.bytes.empty()), 0},
                                  {client_, events(true, !said_.bytes.empty()), 0}}};
    auto& [server, client] = both;
    if (ended_ || server.events == 0) server.fd = -1;  // its end is told whatever is asked for
    auto const millis = std::chrono::milliseconds{look}.count();
    if (::poll(both.data(), both.size(), static_cast<int>(millis)) < 0) return errno == EINTR;
    if (lasts()) return false;
    constexpr int readable = POLLIN | POLLHUP | POLLERR;
    if ((client.revents & readable) != 0 && !read(client_, asked_.bytes)) return false;
    if (server.revents != 0) {
      bool const reads = (server.revents & readable) != 0 && said_.bytes.empty();
      ended_ = (reads && !read(server_, part_)) || !write(server_, asked_);
      if (!pass()) return false;
    }
    if (ended_) asked_ = {};
    if (!write(client_, said_)) return false;
    // The client reads what was said last, and then ends its connection.
    if (ended_ && said_.bytes.empty()) ::shutdown(client_, SHUT_WR);
    return true;
  }

  /// Does the client wait in a call for what does not come?
  [[nodiscard]] bool lasts() noexcept {
    auto const now = clock::now();
    auto const calls = calls_->load();
    if (calls % 2 == 0 || std::exchange(seen_, calls) != calls) since_ = now;
    return now - since_ > longest_call;
  }

  /// Moves whole records from what was read to what is passed on. False: the server does not speak
  /// NATS before it speaks TLS.
  [[nodiscard]] bool pass() {
    std::string_view rest = part_;
    if (!greeted_) {  // INFO is a line
      auto const end = rest.find('\n');
      auto const some = rest.substr(0, end == rest.npos ? end : end + 1);
      rest.remove_prefix(some.size());
      if (!framing_.pass(some, said_.bytes)) return false;
      greeted_ = end != rest.npos;
    }
    while (greeted_ && rest.size() >= record_head) {
      auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
      auto const size = record_head + 256U * byte(3) + byte(4);
      if (rest.size() < size) break;
      said_.bytes += rest.substr(0, size);
      rest.remove_prefix(size);
    }
    part_.erase(0, part_.size() - rest.size());
    return true;
  }

  /// False: it has ended.
  [[nodiscard]] static bool read(int from, std::string& to) {
    std::array<char, 32U << 10U> some;
    auto const n = ::recv(from, some.data(), some.size(), MSG_DONTWAIT);
    if (n > 0) to.append(some.data(), static_cast<std::size_t>(n));
    return n > 0 || (n < 0 && may_pass());
  }
  [[nodiscard]] static bool write(int to, passing& what) {
    auto& [bytes, gone] = what;
    if (bytes.empty()) return true;
    auto const n =
        ::send(to, bytes.data() + gone, bytes.size() - gone, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) return may_pass();
    gone += static_cast<std::size_t>(n);
    if (2 * gone >= bytes.size()) bytes.erase(0, std::exchange(gone, 0));
    return true;
  }
  [[nodiscard]] static bool may_pass() noexcept {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  }

  int const server_;
  int const client_;
  nats_calls const calls_;
  bool ended_ = false;    // the server's connection
  bool greeted_ = false;  // INFO has come
  nats_framing framing_;
  std::string part_;   // of what the server said: no whole record
  passing said_;       // to the client
  passing asked_;      // to the server
  unsigned seen_ = 0;  // calls
  clock::time_point since_ = clock::now();
  std::thread thread_;  // that is all its own but for the end
};

}  // namespace weir::detail

#endif
