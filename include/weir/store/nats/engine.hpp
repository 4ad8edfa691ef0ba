// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_ENGINE_HPP
#define WEIR_STORE_NATS_ENGINE_HPP

#if !__has_include(<nats/nats.h>)
#error                                                                                             \
    "weir/store/nats.hpp needs the NATS C client 3.4 or later: nats/nats.h is not on the include path"
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
#include "weir/parking.hpp"
#include "weir/posting.hpp"
#include "weir/rule/bucket_scale.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/nats/address.hpp"
#include "weir/store/nats/home.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/options.hpp"
#include "weir/store/nats/places.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <concepts>
#include <memory>
#include <utility>

namespace weir::detail {

/// What the handles of a store share: its link, and what is on top of it.
class nats_engine {
 public:
  nats_engine(boost::asio::any_io_executor executor, nats_address address,
              nats_options const& options)
      : executor_{std::move(executor)},
        link_{std::make_shared<nats_link>(executor_, std::move(address), options)},
        places_{std::make_shared<nats_places>(link_)},
        patience_{std::make_shared<patience_watch<system_clock>>(
            executor_, [state = link_->state()] { return state->gives_up(); })} {}

  void run(boost::asio::any_completion_handler<void(error_code)> handler) {
    auto op = park<error_code>(executor_, std::move(handler));
    dispatch_task(link_->strand(), [link = link_, places = places_] {
      link->listen(places);
      places->start();
    });
    link_->run(std::move(op));
  }
  void close() { link_->close(); }
  [[nodiscard]] store_failure last_failure() const { return link_->state()->last(); }

  template <class C>
  void execute(C const& c, call_terms const& terms, erased_handler<C> handler) {
    using answer = typename C::result;
    auto ec = problem_of(c);
    if (!ec && terms.at && nats_is_far(*terms.at)) ec = errc::invalid_option;
    if (ec) {
      return post_completion(executor_, std::move(handler), ec, answer{});
    }
    auto op = park<error_code, answer>(executor_, std::move(handler));
    if (!op->waiting()) return;  // its handler is gone, and with it what the command views
    start(c, terms, std::move(op));
  }

 private:
  template <class C>
  using waiting_for = std::shared_ptr<parked<error_code, typename C::result>>;

  template <class C>
  [[nodiscard]] error_code problem_of(C const& c) const {
    if (auto const ec = rule::validate(c)) return ec;
    if constexpr (requires { c.quotas; }) {
      if (!rule::bucket_scales::of(c.quotas)) return errc::quota_too_large;
    }
    if constexpr (!command::waits_for_event<C>) {
      if (*link_->pending() >= link_->options().max_pending) return errc::store_full;
    }
    return {};
  }

  template <class C>
  void start(C const& c, call_terms const& terms, waiting_for<C> op) {
    if constexpr (std::same_as<C, command::await_jobs>) {
      dispatch_task(link_->strand(),
                    [places = places_, c, op = std::move(op)] { places->await(c, op); });
    } else if constexpr (std::same_as<C, command::await_cancel>) {
      dispatch_task(link_->strand(), [link = link_, holder = std::string{c.holder},
                                      op = std::move(op)] { link->await_cancel(holder, op); });
    } else {
      auto errand = nats_errand_of(op, c, terms.at, link_->pending());
      auto const part = places_->part_of(c);
      patience_->add(op, terms.patience);  // which may end it at once
      dispatch_task(link_->strand(), [places = places_, part, errand = std::move(errand)] {
        places->submit(part, errand);
      });
    }
  }

  boost::asio::any_io_executor executor_;
  std::shared_ptr<nats_link> link_;
  std::shared_ptr<nats_places> places_;
  std::shared_ptr<patience_watch<system_clock>> patience_;
};

WEIR_DECL std::shared_ptr<nats_engine> make_nats_engine(boost::asio::any_io_executor executor,
                                                        nats_address address,
                                                        nats_options const& options) {
  return std::make_shared<nats_engine>(std::move(executor), std::move(address), options);
}

WEIR_DECL void run_nats(nats_engine& engine,
                        boost::asio::any_completion_handler<void(error_code)> handler) {
  engine.run(std::move(handler));
}

WEIR_DECL void close_engine(nats_engine& engine) { engine.close(); }

WEIR_DECL store_failure last_failure_of(nats_engine const& engine) { return engine.last_failure(); }

}  // namespace weir::detail

#endif
