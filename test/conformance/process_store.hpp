// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_PROCESS_STORE_HPP
#define WEIR_TEST_CONFORMANCE_PROCESS_STORE_HPP

#include "conformance/wire.hpp"
#include "integration/sqlite_helper.hpp"
#include "weir/command/at.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/posting.hpp"
#include "weir/testing/commands.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <sys/socket.h>

#include <unistd.h>

#include <atomic>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

// A store whose commands are executed by several other processes, each with a store of its own on
// the same file: whichever one is next in turn. So whatever tests a store tests what such
// processes see of each other.
namespace weir::testing {

enum class message : std::uint8_t { open, close, command, cancel };

/// Messages over a socket, each with its length before it.
class message_socket {
 public:
  explicit message_socket(int fd) : fd_{fd} {}
  message_socket(message_socket const&) = delete;
  message_socket& operator=(message_socket const&) = delete;
  ~message_socket() { ::close(fd_); }

  void send(std::string const& m) {
    std::string frame(sizeof(std::size_t), '\0');
    auto const n = m.size();
    std::memcpy(frame.data(), &n, sizeof(n));
    frame += m;
    for (std::string_view rest{frame}; !rest.empty();) {
      auto const sent = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0) throw std::runtime_error{"the other process is gone"};
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  /// False: there are no more.
  bool receive(std::string& m) {
    std::size_t n = 0;
    if (!read(reinterpret_cast<char*>(&n), sizeof(n))) return false;
    m.resize(n);
    return read(m.data(), n);
  }

  void end() noexcept { ::shutdown(fd_, SHUT_RDWR); }

 private:
  bool read(char* to, std::size_t n) {
    while (n != 0) {
      auto const got = ::recv(fd_, to, n, 0);
      if (got <= 0) return false;
      to += got;
      n -= static_cast<std::size_t>(got);
    }
    return true;
  }

  int fd_;
};

/// An error code as both processes know it.
[[nodiscard]] inline std::pair<bool, int> plain_error(error_code ec) {
  return {ec.category() == make_error_code(errc::closed).category(), ec.value()};
}
[[nodiscard]] inline error_code error_of(bool own, int value) {
  if (own) return make_error_code(static_cast<errc>(value));
  return {value, boost::system::system_category()};
}

/// Another process, and what it is to answer. Thread-safe.
class process_link {
 public:
  using on_answer = std::function<void(error_code, std::string_view)>;

  explicit process_link(std::string const& test_case) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::runtime_error{"no socket"};
    ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    socket_.emplace(ends[0]);
    process_.emplace(test_case, std::vector{"WEIR_TEST_SOCKET=" + std::to_string(ends[1])});
    ::close(ends[1]);
    reader_ = std::thread{[this] { read(); }};
  }
  process_link(process_link const&) = delete;
  process_link& operator=(process_link const&) = delete;
  ~process_link() {
    socket_->end();
    reader_.join();
    process_->wait();
  }

  /// Returns the number by which `cancel` knows it.
  std::uint64_t send(message what, std::string const& body, on_answer then) {
    std::lock_guard const lock{mutex_};
    auto const id = ++last_;
    pending_.emplace(id, std::move(then));
    socket_->send(framed(what, id) + body);
    return id;
  }

  void cancel(std::uint64_t id) {
    std::lock_guard const lock{mutex_};
    socket_->send(framed(message::cancel, id));
  }

  /// Sends, and waits until all has been answered.
  void ask(message what, std::string const& body) {
    send(what, body, [](error_code, std::string_view) {});
    std::unique_lock lock{mutex_};
    answered_.wait(lock, [&] { return pending_.empty() && calling_ == 0; });
  }

 private:
  static std::string framed(message what, std::uint64_t id) {
    wire_writer out;
    out.put(what);
    out.put(id);
    return std::move(out).take();
  }

  void read() {
    for (std::string m; socket_->receive(m);) {
      wire_reader in{m};
      std::uint64_t id = 0;
      bool own = false;
      int value = 0;
      std::string_view body;
      in.get(id);
      in.get(own);
      in.get(value);
      in.get(body);
      on_answer then;
      {
        std::lock_guard const lock{mutex_};
        auto const it = pending_.find(id);
        then = std::move(it->second);
        pending_.erase(it);
        ++calling_;
      }
      then(error_of(own, value), body);
      then = nullptr;
      std::lock_guard const lock{mutex_};
      --calling_;
      answered_.notify_all();
    }
    std::lock_guard const lock{mutex_};
    pending_.clear();  // it died: nobody will be told
    answered_.notify_all();
  }

  std::optional<message_socket> socket_;
  std::optional<sqlite_test::helper> process_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::map<std::uint64_t, on_answer> pending_;
  std::size_t calling_ = 0;
  std::uint64_t last_ = 0;
  std::thread reader_;
};

/// So many of them.
class process_pool {
 public:
  process_pool(std::string const& test_case, std::size_t n) {
    for (; n != 0; --n) links_.push_back(std::make_unique<process_link>(test_case));
  }

  [[nodiscard]] process_link& next() noexcept { return *links_[turn_++ % links_.size()]; }
  void ask_all(message what, std::string const& body) {
    for (auto const& l : links_) l->ask(what, body);
  }

 private:
  std::vector<std::unique_ptr<process_link>> links_;
  std::atomic<std::size_t> turn_{0};
};

/// The position of C in a list; the size of the list: it is not there.
template <class C, class... Cs>
[[nodiscard]] constexpr std::uint8_t position_in(command_list<Cs...>) {
  std::uint8_t at = 0;
  (void)((std::same_as<C, Cs> || (++at, false)) || ...);
  return at;
}
template <class... Cs>
[[nodiscard]] constexpr std::uint8_t size_of(command_list<Cs...>) {
  return sizeof...(Cs);
}

template <class Commands>
class process_store {
  using list = typename Commands::list;

 public:
  using executor_type = boost::asio::any_io_executor;

  process_store(executor_type executor, std::shared_ptr<process_pool> pool)
      : executor_{std::move(executor)},
        pool_{std::move(pool)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return 1; }

  template <class C, class Token>
    requires(position_in<C>(list{}) < size_of(list{}))
  auto async_execute(C const& c, Token&& token) const {
    return start(c, std::nullopt, std::forward<Token>(token));
  }
  template <class C, class Token>
    requires(position_in<C>(list{}) < size_of(list{}) && !waits_for_event<C>)
  auto async_execute(command::at<C> const& a, Token&& token) const {
    return start(a.command, a.time, std::forward<Token>(token));
  }

  void close() const { pool_->ask_all(message::close, {}); }

 private:
  template <class C, class Token>
  auto start(C const& c, std::optional<time_point> at, Token&& token) const {
    using answer = typename C::result;
    using handler_type = boost::asio::any_completion_handler<void(error_code, answer)>;
    auto initiate = [](handler_type handler, process_store const& self, C const& command,
                       std::optional<time_point> time) {
      wire_writer body;
      body.put(position_in<C>(list{}));
      body.put(time);
      body.put(command);
      auto& link = self.pool_->next();
      auto slot = boost::asio::get_associated_cancellation_slot(handler);
      struct operation {
        handler_type handler;
        executor_type executor;
        weir::detail::tracked_executor<executor_type> work;
      };
      auto const op = std::make_shared<operation>(
          operation{std::move(handler), self.executor_, weir::detail::tracked(self.executor_)});
      auto const id = link.send(
          message::command, std::move(body).take(), [op](error_code ec, std::string_view bytes) {
            answer a{};
            if (!ec) wire_reader{bytes}.get(a);
            weir::post_completion(op->executor, std::move(op->handler), ec, std::move(a));
          });
      if (!slot.is_connected()) return;
      slot.assign([pool = self.pool_, &link, id](boost::asio::cancellation_type_t type) {
        if (type != boost::asio::cancellation_type::none) link.cancel(id);
      });
    };
    return boost::asio::async_initiate<Token, void(error_code, answer)>(std::move(initiate), token,
                                                                        *this, c, at);
  }

  executor_type executor_;
  std::shared_ptr<process_pool> pool_;
};

}  // namespace weir::testing

#endif
