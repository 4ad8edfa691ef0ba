// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_SQLITE_PROCESS_HPP
#define WEIR_TEST_CONFORMANCE_SQLITE_PROCESS_HPP

#include "conformance/process_store.hpp"
#include "conformance/sqlite_driver.hpp"
#include "conformance/suite.hpp"
#include "conformance/wire.hpp"
#include "weir/command/at.hpp"
#include "weir/store/sqlite.hpp"
#include "weir/testing/commands.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace weir::testing {

/// One of the processes that share the file: executes what it is told by its socket.
template <class Commands>
class sqlite_process {
  using list = typename Commands::list;

 public:
  explicit sqlite_process(int fd) : socket_{fd} {}

  /// Until whoever tells it is gone.
  void run() {
    auto const work = boost::asio::make_work_guard(io_);
    std::thread thread{[this] { io_.run(); }};
    for (auto m = std::make_shared<std::string>(); socket_.receive(*m);
         m = std::make_shared<std::string>()) {
      boost::asio::post(io_, [this, m] { obey(m); });
    }
    boost::asio::post(io_, [this] {
      store_.reset();
      io_.stop();
    });
    thread.join();
  }

 private:
  struct task {
    explicit task(std::shared_ptr<std::string> m) : text{std::move(m)}, in{*text} {}
    std::shared_ptr<std::string> text;
    wire_reader in;
  };

  void obey(std::shared_ptr<std::string> const& m) {
    auto const t = std::make_shared<task>(m);
    message what{};
    std::uint64_t id = 0;
    t->in.get(what);
    t->in.get(id);
    switch (what) {
      case message::open: {
        std::string path;
        std::size_t bound = 0;
        t->in.get(path);
        t->in.get(bound);
        auto o = sqlite_test::quick();
        o.poll_interval = std::chrono::milliseconds{1};
        o.busy_timeout = std::chrono::seconds{30};
        if (bound != 0) o.max_buckets = o.max_permits = o.max_locks = o.max_jobs = bound;
        store_.emplace(io_.get_executor(), path, o);
        return answer(id, {}, {});
      }
      case message::close:
        store_.reset();  // what it was told is executed, and its handlers are posted
        return boost::asio::post(io_, [this, id] { answer(id, {}, {}); });
      case message::command: return begin(id, t, list{});
      case message::cancel:
        if (auto const s = signals_.find(id); s != signals_.end()) {
          s->second.emit(boost::asio::cancellation_type::terminal);
        }
    }
  }

  template <class... Cs>
  void begin(std::uint64_t id, std::shared_ptr<task> const& t, command_list<Cs...>) {
    std::uint8_t which = 0;
    t->in.get(which);
    (void)((position_in<Cs>(list{}) == which && (start<Cs>(id, t), true)) || ...);
  }

  template <class C>
  void start(std::uint64_t id, std::shared_ptr<task> const& t) {
    std::optional<time_point> time;
    C c{};
    t->in.get(time);
    t->in.get(c);
    if (!store_) return answer(id, errc::closed, {});
    auto done = boost::asio::bind_cancellation_slot(
        signals_[id].slot(), [this, id, t](error_code ec, typename C::result const& a) {
          wire_writer out;
          out.put(a);
          answer(id, ec, std::move(out).take());
        });
    if constexpr (!waits_for_event<C>) {
      if (time) return store_->async_execute(command::at<C>{c, *time}, std::move(done));
    }
    store_->async_execute(c, std::move(done));
  }

  void answer(std::uint64_t id, error_code ec, std::string_view body) {
    signals_.erase(id);
    auto const [own, value] = plain_error(ec);
    wire_writer out;
    out.put(id);
    out.put(own);
    out.put(value);
    out.put(body);
    socket_.send(std::move(out).take());
  }

  message_socket socket_;
  boost::asio::io_context io_;
  std::map<std::uint64_t, boost::asio::cancellation_signal> signals_;
  std::optional<sqlite_store> store_;
};

/// Stores on files that processes share, by the system's clock; each command is executed by the one
/// whose turn it is.
template <class Commands>
class sqlite_processes : public sqlite_driver<system_clock> {
 public:
  using store = process_store<Commands>;

  /// @param helper    the disabled test case that is such a process
  /// @param processes how many there are
  sqlite_processes(std::string const& helper, std::size_t processes)
      : pool_{std::make_shared<process_pool>(helper, processes)} {}

  [[nodiscard]] capabilities declared() const {
    auto c = sqlite_capabilities();
    c.precision = std::chrono::milliseconds{5};  // how long an answer may take
    return c;
  }

  store make(boost::asio::any_io_executor const& ex) { return make_bounded(ex, 0); }
  store make_bounded(boost::asio::any_io_executor const& ex, std::size_t n) {
    wire_writer body;
    body.put(next_file());
    body.put(n);
    pool_->ask_all(message::open, std::move(body).take());
    return store{ex, pool_};
  }

  result<command::enqueue_jobs::result> transact(store&, command::enqueue_jobs const& c,
                                                 bool commit) {
    return in_transaction(c, commit);
  }

 private:
  std::shared_ptr<process_pool> pool_;
};

/// What the helper does.
template <class Commands>
void be_one_of_them() {
  sqlite_process<Commands>{std::stoi(sqlite_test::told("WEIR_TEST_SOCKET"))}.run();
}

/// In manual time.
template <class Commands>
void sqlite_keeps_every_promise() {
  manual_sqlite_driver driver;
  report found;
  suite::of<Commands>(driver, found);
  require_sqlite(found);
  require_each(found);
}

/// By the system's clock, and each command by the process whose turn it is.
/// @param helper the test that is one of them
template <class Commands>
void processes_keep_every_promise(std::string const& helper) {
  for (std::size_t const processes : {1U, 4U}) {
    BOOST_TEST_CONTEXT(processes << " processes") {
      sqlite_processes<Commands> driver{helper, processes};
      report found;
      suite::of<Commands>(driver, found);
      require_sqlite(found);
    }
  }
}

}  // namespace weir::testing

#endif
