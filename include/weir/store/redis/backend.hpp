// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_BACKEND_HPP
#define WEIR_STORE_REDIS_BACKEND_HPP

#include "weir/detail/explained.hpp"
#include "weir/detail/outage.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/hint_line.hpp"
#include "weir/store/redis/hints.hpp"
#include "weir/store/redis/options.hpp"
#include "weir/store/redis/request.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// What executes a store's commands: a server, or the servers of a cluster. The handles of a store
/// share it.
class redis_backend : public redis_hint_line_owner,
                      public std::enable_shared_from_this<redis_backend> {
 public:
  using executor_type = redis_hint_line::executor_type;

  /// @param state whether it can be used; shared with who asks
  /// @param process as `redis_names` has it
  redis_backend(executor_type strand, redis_options const& options, std::shared_ptr<outage> state,
                std::string process)
      : state_{std::move(state)},
        strand_{std::move(strand)},
        options_{bounded(options)},
        names_{std::string{options.prefix}, options_.shards, std::move(process),
               options_.max_buckets},
        usable_{valid_prefix(options.prefix)} {
    options_.prefix = {};  // the caller's
  }
  /// What is told of a store that has never run.
  static constexpr std::string_view never_run = store_never_run;

  /// Whether it can be used. Of any thread.
  [[nodiscard]] outage& state() const noexcept { return *state_; }
  [[nodiscard]] redis_options const& options() const noexcept { return options_; }
  [[nodiscard]] redis_names const& names() const noexcept { return names_; }
  [[nodiscard]] executor_type const& strand() const noexcept { return strand_; }
  /// Within the strand.
  [[nodiscard]] bool closed() const noexcept { return closed_; }

  /// Keeps its connections until `close`. May be called from any thread, as the two below.
  /// @param op told of the end; or null
  void run(std::shared_ptr<parked<error_code>> op) {
    dispatch_task(strand_, [self = shared_from_this(), op = std::move(op)] {
      if (self->closed_) {
        if (op) op->resume(make_error_code(errc::closed));
      } else if (!self->usable_) {
        if (op) op->resume(bad_prefix());
      } else if (std::exchange(self->runs_, true)) {
        if (op) op->resume(boost::asio::error::already_started);
      } else {
        self->running_ = op;
        self->state_->forget();
        self->start();
        self->listen();
      }
    });
  }

  void submit(std::shared_ptr<redis_request> r) {
    dispatch_task(strand_, [self = shared_from_this(), r = std::move(r)] { self->accept(r); });
  }

  void close() {
    dispatch_task(strand_, [self = shared_from_this()] {
      if (std::exchange(self->closed_, true)) return;
      self->hints_.look({});  // whoever waits is told so, and no timer goes on
      self->hints_.clear();
      if (self->line_) self->line_->close();
      self->stop();
    });
  }

  /// Within the strand: who is to look when something is published about a key, on this channel.
  /// With the first of them comes the connection for that.
  void hear(std::string const& channel, std::string const& key,
            std::weak_ptr<redis_listener> listener) {
    if (closed_) return;
    hints_.add(key, std::move(listener));
    if (std::ranges::find(channels_, channel) != channels_.end()) return;
    channels_.push_back(channel);
    listen();
  }
  /// Does what is published there arrive?
  [[nodiscard]] virtual bool hears(std::string const& channel) const {
    return line_ && line_->hears(channel);
  }
  /// Was there a hint about this key that nobody had use for?
  [[nodiscard]] bool was_hinted(std::string const& key) { return early_.take(key); }

  void missed(std::string const& channel) override {
    hints_.look(std::string_view{channel}.substr(0, channel.find('}') + 1));
  }
  void hinted(std::string const& key) override {
    if (!hints_.give(key) && !key.starts_with(names_.cancels())) early_.keep(key);
  }

 protected:
  // All in the strand, as what follows.
  virtual void start() = 0;
  virtual void accept(std::shared_ptr<redis_request> const& r) = 0;
  virtual void stop() = 0;

  /// The server may be another one.
  void renew_hints() {
    if (line_) line_->renew();
  }

  void finish() {
    if (auto const op = std::exchange(running_, {})) op->resume(error_code{});
  }

  /// Subscribes to what somebody waits for.
  virtual void listen() {
    if (!runs_) return;
    for (auto const& channel : channels_) subscribe(channel);
  }

  void subscribe(std::string const& channel) {
    if (closed_) return;
    if (!line_) {
      line_ = std::make_shared<redis_hint_line>(strand_, options_, shared_from_this());
    }
    line_->want(channel);
  }

  /// Those on which somebody waits for hints.
  [[nodiscard]] std::vector<std::string> const& channels() const noexcept { return channels_; }

  /// Why nothing can be asked of a store with such options.
  [[nodiscard]] static error_code bad_prefix() noexcept {
    return explained(errc::invalid_option,
                     "redis_options::prefix is from 1 to 64 letters, digits, - _ . and :");
  }

  std::shared_ptr<outage> const state_;
  executor_type const strand_;
  redis_options options_;
  redis_names const names_;
  bool const usable_;

  // The strand's own.
  bool closed_ = false;
  bool runs_ = false;
  std::shared_ptr<parked<error_code>> running_;

 private:
  redis_hints hints_;
  redis_early_hints early_;
  std::vector<std::string> channels_;
  std::shared_ptr<redis_hint_line> line_;  // null: nobody has waited for a hint
};

}  // namespace weir::detail

#endif
