// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_ENGINE_HPP
#define WEIR_STORE_REDIS_ENGINE_HPP

#if !__has_include(<openssl/ssl.h>)
#error "weir/store/redis.hpp needs OpenSSL: openssl/ssl.h is not on the include path"
#endif

#include "weir/clock/system.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/list.hpp"
#include "weir/command/permits.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/detail/engine_way.hpp"
#include "weir/detail/patience.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/failure.hpp"
#include "weir/id_source.hpp"
#include "weir/parking.hpp"
#include "weir/posting.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/backend.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/cluster.hpp"
#include "weir/store/redis/forgetting.hpp"
#include "weir/store/redis/link.hpp"
#include "weir/store/redis/options.hpp"
#include "weir/store/redis/request.hpp"
#include "weir/store/redis/url_reader.hpp"
#include "weir/store/redis/waits.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir::detail {

/// What the handles of a Redis store share.
class redis_engine {
 public:
  redis_engine(boost::asio::any_io_executor executor, redis_address const& address,
               redis_options const& options)
      : executor_{std::move(executor)},
        link_{make_backend(executor_, address, without_replicas(options), id_source{}.holder())},
        sure_{options.replicas == 0 ? nullptr : make_backend(executor_, address, options, {})},
        watches_{std::make_shared<redis_scan_watches>()},
        seen_(link_->names().shards()),
        patience_{std::make_shared<patience_watch<system_clock>>(
            executor_, [link = link_] { return link->state().gives_up(); })} {
    // Not all processes begin with the same queues, or some would never come up.
    id_source ids;
    for (auto& seen : seen_) seen = ids.entropy() % (std::uint64_t{1} << 32U);
  }

  void run(boost::asio::any_completion_handler<void(error_code)> handler) {
    link_->run(park<error_code>(executor_, std::move(handler)));
    if (sure_) sure_->run({});
  }

  template <class C>
  void execute(C const& c, call_terms const& terms, erased_handler<C> handler) {
    using answer = typename C::result;
    auto const ec = rule::validate(c);
    auto call = ec ? result<redis_call>{ec} : encoded(c, terms.at);
    if (call.has_error()) {
      return post_completion(executor_, std::move(handler), call.error(), answer{});
    }
    auto op = park<error_code, answer>(executor_, std::move(handler));
    if constexpr (command::waits_for_event<C>) {
      wait(c, std::move(op));
    } else {
      patience_->add(op, terms.patience);
      if constexpr (std::is_same_v<C, command::gc_stale_pointers>) {
        // Of a time that is told nothing is known about two days.
        if (!terms.at) {
          constexpr std::uint64_t at_once = 100;
          auto const seen = seen_[c.shard].fetch_add(at_once, std::memory_order_relaxed);
          return link_->submit(std::make_shared<redis_forgetting>(link_, std::move(op), c, seen));
        }
      }
      auto request = std::make_shared<redis_command<C>>(std::move(op), c, std::move(call).value());
      if constexpr (std::is_same_v<C, command::scan_visible_queues>) {
        look(c, std::move(request));
      } else {
        auto const& way = !command::reads_only<C> && sure_ ? sure_ : link_;
        way->submit(std::move(request));
      }
    }
  }

  /// It asks the server for nothing.
  void execute(command::await_cancel const& c, call_terms const&,
               erased_handler<command::await_cancel> handler) {
    if (auto const ec = rule::validate(c)) {
      return post_completion(executor_, std::move(handler), ec, hint{});
    }
    auto add = [link = link_, watches = cancels_, holder = std::string{c.holder},
                op = park<error_code, hint>(executor_, std::move(handler))] {
      watches->add(link, holder, op);
    };
    dispatch_task(link_->strand(), std::move(add));
  }

  [[nodiscard]] store_failure last_failure() const { return link_->state().last(); }

  void close() {
    link_->close();
    if (sure_) sure_->close();
  }

 private:
  static redis_options without_replicas(redis_options options) noexcept {
    options.replicas = 0;
    return options;
  }
  static std::shared_ptr<redis_backend> make_backend(boost::asio::any_io_executor const& executor,
                                                     redis_address const& address,
                                                     redis_options const& options,
                                                     std::string process) {
    if (address.is_cluster()) {
      return std::make_shared<redis_cluster>(executor, address, options, std::move(process));
    }
    return std::make_shared<redis_link>(executor, address, options, std::move(process));
  }

  template <class C>
  [[nodiscard]] result<redis_call> encoded(C const& c, [[maybe_unused]] told_time at) const {
    if constexpr (command::waits_for_event<C>) {
      return encode_wait(link_->names(), c);
    } else {
      return encode(link_->names(), c, redis_time(at));
    }
  }

  void wait(command::await_permit const& c, hint_waiter op) const {
    auto const watch = std::make_shared<redis_permit_watch>(link_, c, std::move(op));
    dispatch_task(link_->strand(), [link = link_, watch] { watch->start(*link); });
  }
  void wait(command::await_jobs const& c, hint_waiter op) const {
    dispatch_task(link_->strand(), [link = link_, watches = watches_, c, op = std::move(op)] {
      watches->add(*link, c, op);
    });
  }
  /// An idle worker looks at all shards in one turn: that is one round trip to each server.
  void look(command::scan_visible_queues const& c, std::shared_ptr<redis_request> r) const {
    post_task(link_->strand(), [watches = watches_, link = link_, c, r = std::move(r)] {
      watches->looked(*link, c);
      link->submit(r);
    });
  }

  boost::asio::any_io_executor executor_;
  std::shared_ptr<redis_backend> link_;
  std::shared_ptr<redis_backend> sure_;  // for what replicas are to confirm; or null
  std::shared_ptr<redis_scan_watches> watches_;
  std::shared_ptr<redis_cancel_watches> cancels_ = std::make_shared<redis_cancel_watches>();
  std::vector<std::atomic<std::uint64_t>> seen_;  // queues of each shard, by what forgets them
  std::shared_ptr<patience_watch<system_clock>> patience_;
};

WEIR_DECL std::shared_ptr<redis_engine> make_redis_engine(
    boost::asio::any_io_executor const& executor, redis_address const& address,
    redis_options const& options) {
  return std::make_shared<redis_engine>(executor, address, options);
}

WEIR_DECL void run_redis(redis_engine& engine,
                         boost::asio::any_completion_handler<void(error_code)> handler) {
  engine.run(std::move(handler));
}

WEIR_DECL void close_engine(redis_engine& engine) { engine.close(); }

WEIR_DECL store_failure last_failure_of(redis_engine const& engine) {
  return engine.last_failure();
}

}  // namespace weir::detail

#endif
