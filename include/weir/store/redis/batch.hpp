// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_BATCH_HPP
#define WEIR_STORE_REDIS_BATCH_HPP

#include "weir/error.hpp"
#include "weir/store/redis/convoy.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/request.hpp"
#include "weir/store/redis/resp.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

// Commands that are given to a connection in the same turn travel together; each is answered as
// soon as its own reply is there.
namespace weir::detail {

/// Owner interface of a batch.
class redis_batch_owner {
 public:
  redis_batch_owner() = default;
  redis_batch_owner(redis_batch_owner const&) = delete;
  redis_batch_owner& operator=(redis_batch_owner const&) = delete;

  /// The reply to one of a batch. Called while the connection reads: what is given to it meanwhile
  /// is only added to what it is to send.
  virtual void answered(std::shared_ptr<redis_request> const& r,
                        std::span<redis_reply::node const> reply) = 0;
  /// One was not executed, and perhaps it would be if it had travelled by itself.
  virtual void parted(std::shared_ptr<redis_request> const& r) = 0;

 protected:
  ~redis_batch_owner() = default;
};

/// Commands that travel together, to one connection.
class redis_batch final : public redis_receiver {
 public:
  /// @param owner told of the replies; outlives all of them
  void belongs_to(redis_batch_owner& owner) noexcept { owner_ = &owner; }

  void add(std::shared_ptr<redis_request> r) { commands_.push_back(std::move(r)); }
  /// It is to be sent. Takes those out that nobody wants any more.
  [[nodiscard]] std::vector<std::shared_ptr<redis_request>> leave() {
    std::vector<std::shared_ptr<redis_request>> out;
    std::erase_if(commands_, [&out](auto& r) {
      bool const wanted = r->leaves();
      if (!wanted) out.push_back(std::move(r));
      return !wanted;
    });
    return out;
  }
  /// @param alone scripts whose commands do not travel as one
  /// @param known scripts that the server knows for that; those that are sent are added
  void encode(redis_known_scripts const& alone, redis_known_scripts& known) {
    convoy_.arrange(commands_, alone);
    convoy_.push(wire_, commands_, known);
  }
  [[nodiscard]] redis_wire const& wire() const noexcept { return wire_; }

  [[nodiscard]] redis_bounds bounds() const noexcept override {
    return redis_bounds::of(convoy_.next().bytes, convoy_.next().commands);
  }
  void reply(std::span<redis_value const> nodes) override {
    if (commands_[answered_]->asks_first() && !std::exchange(asked_, true)) return;
    asked_ = false;
    auto const n = convoy_.next().commands;
    convoy_.done();
    if (n == 1) return tell(nodes);
    convoy_.divide(nodes, n, commands_[answered_]->call().merges(),
                   [this](std::span<redis_value const> part) { tell(part); });
  }

  /// Those without a reply.
  [[nodiscard]] std::span<std::shared_ptr<redis_request> const> unanswered() const noexcept {
    return std::span{commands_}.subspan(answered_);
  }

  /// Makes it as good as new.
  void clear() noexcept {
    commands_.clear();
    answered_ = 0;
    asked_ = false;
    wire_.clear();
  }

 private:
  /// About the next one, which may have been executed also where there is no memory to say so.
  void tell(std::span<redis_value const> reply) {
    auto const r = std::move(commands_[answered_++]);
    try {
      reply.empty() ? owner_->parted(r) : owner_->answered(r, reply);
    } catch (...) {
      r->fail(errc::outcome_unknown);
      throw;
    }
  }

  redis_batch_owner* owner_ = nullptr;
  std::vector<std::shared_ptr<redis_request>> commands_;
  std::size_t answered_ = 0;
  bool asked_ = false;  // for the right to execute the next one
  redis_convoy convoy_;
  redis_wire wire_;
};

/// Batches that were answered, to be used again.
class redis_spare_batches {
 public:
  [[nodiscard]] std::shared_ptr<redis_batch> take() {
    if (all_.empty()) return std::make_shared<redis_batch>();
    auto out = std::move(all_.back());
    all_.pop_back();
    return out;
  }

  void keep(std::shared_ptr<redis_batch> batch) {
    constexpr std::size_t enough = 8;
    if (all_.size() >= enough) return;
    batch->clear();
    all_.push_back(std::move(batch));
  }

 private:
  std::vector<std::shared_ptr<redis_batch>> all_;
};

}  // namespace weir::detail

#endif
