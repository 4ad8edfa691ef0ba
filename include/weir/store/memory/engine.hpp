// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_ENGINE_HPP
#define WEIR_STORE_MEMORY_ENGINE_HPP

#include "weir/detail/async_lift.hpp"
#include "weir/detail/context_gate.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/detail/engine_way.hpp"
#include "weir/error.hpp"
#include "weir/posting.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/memory/bucket_steps.hpp"
#include "weir/store/memory/buckets.hpp"
#include "weir/store/memory/jobs.hpp"
#include "weir/store/memory/locks.hpp"
#include "weir/store/memory/options.hpp"
#include "weir/store/memory/permits.hpp"
#include "weir/store/memory/time.hpp"

#include <memory>
#include <utility>

namespace weir::detail {

/// The four nouns of a memory store side by side. Each locks for itself; none knows the others, or
/// the clock.
template <class>
class basic_memory_state : memory_buckets, memory_permits, memory_locks, memory_jobs {
 public:
  basic_memory_state(std::shared_ptr<context_bound_executor const> executor,
                     memory_options const& options)
      : memory_buckets{options},
        memory_permits{options},
        memory_locks{options},
        memory_jobs{options},
        executor_{std::move(executor)} {}

  [[nodiscard]] memory_buckets& buckets() noexcept { return *this; }

  template <class C>
  result<typename C::result> execute(C const& c, memory_time when) {
    if (auto const ec = rule::validate(c)) return ec;
    if (when.told) {  // keep the store's clock from tidying what is live then
      memory_permits::told(when.at);
      memory_locks::told(when.at);
      memory_jobs::told(when.at);
    }
    return apply(c, when.at);
  }

  template <class C>
  void execute(C const& c, call_terms const& terms, erased_handler<C> handler) {
    if (auto const ec = rule::validate(c)) {
      post_completion(executor_->get(), std::move(handler), ec, typename C::result{});
      return;
    }
    await(c, *terms.at, std::move(handler), executor_->get());
  }

 private:
  using memory_buckets::apply;
  using memory_jobs::apply;
  using memory_jobs::await;
  using memory_locks::apply;
  using memory_permits::apply;
  using memory_permits::await;

  std::shared_ptr<context_bound_executor const> executor_;
};

using memory_state = basic_memory_state<void>;

template <class State>
std::shared_ptr<State> make_memory_state(std::shared_ptr<context_bound_executor const> executor,
                                         memory_options const& options, memory_buckets*& buckets) {
  auto out = std::make_shared<State>(std::move(executor), options);
  buckets = &out->buckets();
  return out;
}

}  // namespace weir::detail

#endif
