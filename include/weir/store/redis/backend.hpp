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

#include <boost/asio/strand.hpp>

#include <memory>
#include <string>
#include <utility>

namespace weir::detail {

/// What executes a store's commands: a server, or the servers of a cluster. The handles of a store
/// share it.
class redis_backend {
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
  virtual void run(std::shared_ptr<parked<error_code>> op) = 0;
  virtual void submit(std::shared_ptr<redis_request> r) = 0;
  virtual void close() = 0;

  /// Within the strand: who is to be told of hints.
  [[nodiscard]] redis_hints& hints() noexcept { return hints_; }

 protected:
  executor_type const strand_;
  redis_options options_;
  redis_names const names_;
  bool const usable_;
  redis_hints hints_;  // the strand's own
};

}  // namespace weir::detail

#endif
