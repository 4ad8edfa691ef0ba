// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_BACKEND_HPP
#define WEIR_STORE_REDIS_BACKEND_HPP

#include "weir/detail/parking.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/hints.hpp"
#include "weir/store/redis/options.hpp"
#include "weir/store/redis/request.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>

#include <memory>
#include <string>
#include <utility>

namespace weir::detail {

/// What executes a store's commands: a server, or the servers of a cluster. The handles of a store
/// share it.
class redis_backend : public std::enable_shared_from_this<redis_backend> {
 public:
  using executor_type = boost::asio::strand<boost::asio::any_io_executor>;

  redis_backend(executor_type strand, redis_options const& options)
      : strand_{std::move(strand)},
        options_{bounded(options)},
        names_{std::string{options.prefix}, options_.shards},
        usable_{valid_prefix(options.prefix)} {
    options_.prefix = {};  // the caller's
  }
  redis_backend(redis_backend const&) = delete;
  redis_backend& operator=(redis_backend const&) = delete;
  virtual ~redis_backend() = default;

  [[nodiscard]] redis_options const& options() const noexcept { return options_; }
  [[nodiscard]] redis_names const& names() const noexcept { return names_; }
  [[nodiscard]] executor_type const& strand() const noexcept { return strand_; }

  /// Keeps its connections until `close`. May be called from any thread, as the two below.
  /// @param op told of the end; or null
  void run(std::shared_ptr<parked<error_code>> op) {
    boost::asio::dispatch(strand_, [self = shared_from_this(), op = std::move(op)] {
      if (self->closed_) {
        if (op) op->resume(make_error_code(errc::closed));
      } else if (std::exchange(self->runs_, true)) {
        if (op) op->resume(boost::asio::error::already_started);
      } else {
        self->running_ = op;
        self->start();
      }
    });
  }

  void submit(std::shared_ptr<redis_request> r) {
    boost::asio::dispatch(strand_,
                          [self = shared_from_this(), r = std::move(r)] { self->accept(r); });
  }

  void close() {
    boost::asio::dispatch(strand_, [self = shared_from_this()] {
      if (!std::exchange(self->closed_, true)) self->stop();
    });
  }

  /// Within the strand: who is to be told of hints.
  [[nodiscard]] redis_hints& hints() noexcept { return hints_; }

 protected:
  // All in the strand, as what follows.
  virtual void start() = 0;
  virtual void accept(std::shared_ptr<redis_request> const& r) = 0;
  virtual void stop() = 0;

  void finish() {
    if (auto const op = std::exchange(running_, {})) op->resume(error_code{});
  }

  executor_type const strand_;
  redis_options options_;
  redis_names const names_;
  bool const usable_;

  // The strand's own.
  bool closed_ = false;
  bool runs_ = false;
  std::shared_ptr<parked<error_code>> running_;
  redis_hints hints_;
};

}  // namespace weir::detail

#endif
