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
#include "weir/detail/parking.hpp"
#include "weir/detail/patience.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/failure.hpp"
#include "weir/rule/bucket_scale.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/nats/address.hpp"
#include "weir/store/nats/job_calls.hpp"
#include "weir/store/nats/jobs.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/options.hpp"
#include "weir/store/nats/record.hpp"
#include "weir/store/nats/table.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <string>
#include <utility>

namespace weir::detail {

/// What the handles of a store share: its link, and what is on top of it.
class nats_engine {
 public:
  nats_engine(boost::asio::any_io_executor executor, nats_address address,
              nats_options const& options)
      : executor_{std::move(executor)},
        link_{std::make_shared<nats_link>(executor_, std::move(address), options)},
        table_{std::make_shared<nats_table>(link_)},
        jobs_{std::make_shared<nats_jobs>(link_)},
        patience_{std::make_shared<patience_watch<system_clock>>(
            executor_, [state = link_->state()] { return state->gives_up(); })} {}

  void run(boost::asio::any_completion_handler<void(error_code)> handler) {
    auto op = park<error_code>(executor_, std::move(handler));
    dispatch_task(link_->strand(), [link = link_, table = table_] { link->listen(table); });
    link_->run(std::move(op));
  }
  void close() { link_->close(); }
  [[nodiscard]] store_failure last_failure() const { return link_->state()->last(); }

  template <class C>
  void execute(C const& c, call_terms const& terms, erased_handler<C> handler) {
    using answer = typename C::result;
    if (auto const ec = problem_of(c)) {
      return post_completion(executor_, std::move(handler), ec, answer{});
    }
    auto op = park<error_code, answer>(executor_, std::move(handler));
    if constexpr (!command::waits_for_event<C>) patience_->add(op, terms.patience);
    start(c, terms.at, std::move(op));
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

  template <nats_key_command C>
  void start(C const& c, told_time told, waiting_for<C> op) {
    using state = typename nats_state_of<C>::type;
    auto const step =
        std::make_shared<nats_command<state, C>>(std::move(op), c, told, link_->pending());
    dispatch_task(link_->strand(), [table = table_, step] { table->template submit<C>(step); });
  }

  template <nats_job_step C>
  void start(C const& c, told_time told, waiting_for<C> op) {
    auto const call =
        std::make_shared<nats_job_call_of<C>>(std::move(op), c, told, link_->pending());
    dispatch_task(link_->strand(),
                  [jobs = jobs_, shard = jobs_->shard_of(c), call] { jobs->submit(shard, call); });
  }

  void start(command::await_permit const& c, told_time, waiting_for<command::await_permit> op) {
    dispatch_task(link_->strand(),
                  [table = table_, key = std::string{c.key}, holder = std::string{c.holder},
                   op = std::move(op)] { table->wait(key, holder, op); });
  }

  void start(command::await_jobs const& c, told_time, waiting_for<command::await_jobs> op) {
    dispatch_task(link_->strand(), [jobs = jobs_, c, op = std::move(op)] { jobs->await(c, op); });
  }

  boost::asio::any_io_executor executor_;
  std::shared_ptr<nats_link> link_;
  std::shared_ptr<nats_table> table_;
  std::shared_ptr<nats_jobs> jobs_;
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

WEIR_DECL void close_nats(nats_engine& engine) { engine.close(); }

WEIR_DECL store_failure last_failure_of(nats_engine const& engine) { return engine.last_failure(); }

}  // namespace weir::detail

#endif
