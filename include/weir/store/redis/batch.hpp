// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_BATCH_HPP
#define WEIR_STORE_REDIS_BATCH_HPP

#include "weir/error.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/request.hpp"

#include <boost/redis/request.hpp>
#include <boost/redis/resp3/node.hpp>
#include <boost/redis/resp3/type.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

// Commands that are given to a connection in the same turn travel as one request of Boost.Redis,
// which costs it as much as a command alone; each is answered as soon as its own reply is there.
namespace weir::detail {

/// The pieces of one reply. What has held one keeps its memory for the next.
class redis_pieces {
 public:
  /// Adds one; true: the reply is complete.
  template <class Node>
  bool add(Node const& n) {
    if (used_ == nodes_.size()) nodes_.emplace_back();
    auto& to = nodes_[used_++];
    to.data_type = n.data_type;
    to.aggregate_size = n.aggregate_size;
    to.depth = n.depth;
    to.value.assign(n.value.data(), n.value.size());
    text_ += n.value.size();
    namespace resp3 = boost::redis::resp3;
    if (resp3::is_aggregate(n.data_type)) {
      missing_ += n.aggregate_size * resp3::element_multiplicity(n.data_type);
    }
    return --missing_ == 0;
  }

  [[nodiscard]] std::span<redis_reply::node const> all() const noexcept {
    return std::span{nodes_}.first(used_);
  }

  /// Begins another reply.
  void clear() noexcept {
    constexpr std::size_t much = 1U << 18U;
    if (text_ > much || used_ > much) nodes_ = {};
    used_ = text_ = 0;
    missing_ = 1;
  }

 private:
  std::vector<redis_reply::node> nodes_;
  std::size_t used_ = 0;
  std::size_t text_ = 0;
  std::size_t missing_ = 1;
};

class redis_batch;

/// Who gives batches to a connection.
class redis_batch_owner {
 public:
  redis_batch_owner() = default;
  redis_batch_owner(redis_batch_owner const&) = delete;
  redis_batch_owner& operator=(redis_batch_owner const&) = delete;

  /// The reply to one of a batch. Called while the connection reads: it must not be given anything.
  virtual void answered(std::shared_ptr<redis_request> const& r,
                        std::span<redis_reply::node const> reply) = 0;
  /// A part of a long reply.
  virtual void received() noexcept = 0;

 protected:
  ~redis_batch_owner() = default;
};

/// Commands that travel together, to one connection.
class redis_batch {
 public:
  redis_batch() : wire_{config()} {}
  redis_batch(redis_batch const&) = delete;
  redis_batch& operator=(redis_batch const&) = delete;

  void add(std::shared_ptr<redis_request> r) { commands_.push_back(std::move(r)); }
  /// Drops those that nobody wants any more, and calls `f` with each.
  template <class F>
  void drop_unwanted(F f) {
    std::erase_if(commands_, [&f](auto const& r) {
      bool const wanted = r->wanted();
      if (!wanted) f(*r);
      return !wanted;
    });
  }
  void encode() {
    for (auto const& r : commands_) r->push(wire_);
  }
  [[nodiscard]] boost::redis::request const& wire() const noexcept { return wire_; }

  /// What Boost.Redis gives what it reads to.
  struct adapter {
    redis_batch* batch;
    redis_batch_owner* owner;

    // What Boost.Redis 1.88 calls,
    [[nodiscard]] std::size_t get_supported_response_size() const noexcept {
      return static_cast<std::size_t>(-1);
    }
    template <class Node>
    void operator()(std::size_t, Node const& n, boost::system::error_code& ec) const {
      batch->take(n, *owner, ec);
    }
    // and what later ones do.
    void on_init() const noexcept {}
    void on_done() const noexcept {}
    template <class Node>
    void on_node(Node const& n, boost::system::error_code& ec) const {
      batch->take(n, *owner, ec);
    }
  };
  struct replies {
    redis_batch* batch;
    redis_batch_owner* owner;
    friend adapter boost_redis_adapt(replies& r) noexcept { return {r.batch, r.owner}; }
  };

  /// Those without a reply.
  [[nodiscard]] std::span<std::shared_ptr<redis_request> const> unanswered() const noexcept {
    return std::span{commands_}.subspan(answered_);
  }

  /// Makes it as good as new; it keeps its memory, unless that is much.
  void clear() noexcept {
    commands_.clear();
    answered_ = 0;
    pieces_.clear();
    constexpr std::size_t much = 1U << 20U;
    if (wire_.payload().size() > much) {
      wire_ = boost::redis::request{config()};
    } else {
      wire_.clear();
    }
  }

 private:
  static boost::redis::request::config config() noexcept {
    boost::redis::request::config out;
    out.cancel_if_not_connected = true;
    return out;
  }

  template <class Node>
  void take(Node const& n, redis_batch_owner& owner, boost::system::error_code& ec) {
    try {
      constexpr std::size_t part = std::size_t{64} << 10U;
      received_ += n.value.size();
      if (received_ >= part) {
        received_ = 0;
        owner.received();
      }
      if (!pieces_.add(n)) return;
      if (commands_[answered_]->asks_first() && !std::exchange(asked_, true)) {
        return pieces_.clear();
      }
      asked_ = false;
      auto const r = std::move(commands_[answered_++]);
      owner.answered(r, pieces_.all());
      pieces_.clear();
    } catch (std::bad_alloc const&) {  // this connection can make no sense any more
      ec = make_error_code(boost::system::errc::not_enough_memory);
    }
  }

  std::vector<std::shared_ptr<redis_request>> commands_;
  std::size_t answered_ = 0;
  std::size_t received_ = 0;  // bytes, since that was last said
  bool asked_ = false;        // for the right to execute the next one
  boost::redis::request wire_;
  redis_pieces pieces_;
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
