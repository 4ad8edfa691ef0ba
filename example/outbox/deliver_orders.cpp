// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The worker. It may be killed at any moment: what it had claimed is free again when the lease is
// over, so each order is delivered at least once, and sometimes twice.

#include "../printable.hpp"
#include "orders.hpp"
#include "weir/worker.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <sys/types.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <system_error>

namespace outbox {

namespace {

/// Stands for whoever delivers, far away. A delivery bears an idempotency key: the job's id, which
/// stays the same however often it is tried, so that who receives it twice can tell.
class carrier {
 public:
  explicit carrier(std::string const& list)
      : fd_{::open(list.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)} {
    if (fd_ < 0) throw std::runtime_error{list + ": " + std::generic_category().message(errno)};
  }
  carrier(carrier const&) = delete;
  carrier& operator=(carrier const&) = delete;
  ~carrier() { ::close(fd_); }

  void deliver(deliver_order const& order, weir::job_context const& job) {
    auto const line = example::printable(order.reference) +
                      " idempotency-key=" + to_string(job.id()) +
                      " attempt=" + std::to_string(job.attempt()) + "\n";
    auto const written = ::write(fd_, line.data(), line.size());
    if (written != static_cast<ssize_t>(line.size())) {
      throw std::system_error{errno, std::generic_category(), "the carrier"};  // tried again later
    }
  }

 private:
  int fd_;
};

void tell(weir::worker_event const& event) {
  using kind = weir::worker_event_kind;
  bool const job_failed = event.kind == kind::retried || event.kind == kind::dead_lettered;
  if (!job_failed && event.kind != kind::store_failed) return;
  auto const why = job_failed ? std::string{event.reason} : event.error.message();
  std::fprintf(stderr, "outbox: %s: %s\n", std::string{to_string(event.kind)}.c_str(),
               example::printable(why).c_str());
}

}  // namespace

void deliver_orders(std::string const& file, std::string const& list) {
  using namespace std::chrono_literals;
  make_store(file);
  carrier out{list};

  boost::asio::io_context io{1};
  boost::asio::signal_set signals{io, SIGINT, SIGTERM};
  weir::sqlite_store store{io.get_executor(), file, store_options()};
  // The lease is renewed while a delivery takes; it is short, so that what a killed worker had
  // claimed is soon delivered by the next.
  weir::worker worker{store, {.concurrency = 4, .lease = 2s, .poll = 200ms}};
  worker.on_event(tell);
  worker.handle<deliver_order>([&out](deliver_order const& order, weir::job_context const& job) {
    out.deliver(order, job);
  });
  signals.async_wait([&](weir::error_code const& cancelled, int) {
    if (!cancelled) worker.stop();  // what has begun is finished
  });
  worker.async_run([&](weir::error_code const& ec) {
    signals.cancel();
    if (ec) throw std::runtime_error{ec.message()};
  });
  io.run();
}

}  // namespace outbox
