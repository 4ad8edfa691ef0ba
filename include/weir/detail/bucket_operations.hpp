// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_BUCKET_OPERATIONS_HPP
#define WEIR_DETAIL_BUCKET_OPERATIONS_HPP

#include "weir/command/buckets.hpp"
#include "weir/decision.hpp"
#include "weir/detail/async_command.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/bucket_agent.hpp"
#include "weir/detail/context_gate.hpp"
#include "weir/detail/pending_take.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"
#include "weir/posting.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/take_options.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associator.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// What a rate limiter does behind its seam: included where it is compiled.
namespace weir::detail {

/// Completes a take as its options say while the store is away.
class away_handler {
 public:
  using handler = boost::asio::any_completion_handler<void(error_code, decision)>;

  away_handler(handler h, take_options const& o) : handler_{std::move(h)}, options_{o} {}

  void operator()(error_code ec, decision d) {
    if (is_away(ec, options_))
      return std::move(handler_)(error_code{}, decision_while_away(options_));
    std::move(handler_)(ec, d);
  }

  [[nodiscard]] handler const& inner() const noexcept { return handler_; }

 private:
  handler handler_;
  take_options options_;
};

}  // namespace weir::detail

/// @cond
template <template <class, class> class Associator, class Default>
struct boost::asio::associator<Associator, weir::detail::away_handler, Default>
    : Associator<weir::detail::away_handler::handler, Default> {
  using inner = Associator<weir::detail::away_handler::handler, Default>;
  static auto get(weir::detail::away_handler const& h) noexcept { return inner::get(h.inner()); }
  static auto get(weir::detail::away_handler const& h, Default const& d) noexcept
      -> decltype(inner::get(h.inner(), d)) {
    return inner::get(h.inner(), d);
  }
};
/// @endcond

namespace weir::detail {

/// Owns what one command views; see detail/async_command.hpp. `make(agent, key)` makes it.
template <class Agent, class Make>
class bucket_request {
 public:
  bucket_request(std::shared_ptr<Agent> agent, std::string key, Make make)
      : agent_{std::move(agent)},
        key_{std::move(key)},
        make_{std::move(make)} {}

  [[nodiscard]] auto command() const { return make_(*agent_, std::string_view{key_}); }

 private:
  std::shared_ptr<Agent> agent_;  // and with it the quotas
  std::string key_;
  Make make_;
};

template <class Same>
basic_bucket_agent<Same>::basic_bucket_agent(store_type s, std::span<quota const> limits,
                                             any_clock c)
    : any{std::move(s)},
      clock{std::move(c)},
      executor{any.get_executor()},
      gate{any.executes_now() ? nullptr : gate_of(executor)},
      size_{limits.size() <= limits_.size() ? limits.size() : 0} {
  std::copy_n(limits.begin(), size_, limits_.begin());
}

template <class Same>
template <class Result, class Make>
void basic_bucket_agent<Same>::ask(handler<Result> h, std::string key, Make make) {
  bucket_request request{this->shared_from_this(), std::move(key), std::move(make)};
  begin_command<Result>(any, std::move(request), unchanged{}, std::move(h));
}

template <class Same>
void basic_bucket_agent<Same>::start_reserve(handler<decision> h, std::string key,
                                             take_options options) {
  if (options.while_away != while_away::fail) h = away_handler{std::move(h), options};
  ask(std::move(h), std::move(key), [options](basic_bucket_agent const& a, std::string_view k) {
    return a.take(k, options.cost, options.wait);
  });
}

template <class Same>
void basic_bucket_agent<Same>::start_peek(handler<bucket_info> h, std::string key,
                                          take_options options) {
  ask(std::move(h), std::move(key), [options](basic_bucket_agent const& a, std::string_view k) {
    return a.peek(k, options.cost, options.wait);
  });
}

template <class Same>
void basic_bucket_agent<Same>::start_refund(handler<refund_receipt> h, std::string key,
                                            decision grant, refund_options options) {
  bucket_request request{this->shared_from_this(), std::move(key),
                         [grant, options](basic_bucket_agent const& a, std::string_view k) {
                           return grant.allowed
                                      ? a.refund(k, grant.cost, grant.mark, options.before_instant)
                                      : a.refund(k, 1, rule::no_mark, false);
                         }};
  auto const answer = [granted = grant.allowed](refund_receipt receipt,
                                                auto&) -> result<refund_receipt> {
    return granted ? receipt : refund_receipt{};
  };
  begin_command<refund_receipt>(any, std::move(request), answer, std::move(h));
}

template <class Same>
void basic_bucket_agent<Same>::start_reset(handler<hint> h, std::string key) {
  ask(std::move(h), std::move(key), [](basic_bucket_agent const&, std::string_view k) {
    return command::reset_bucket{.key = k};
  });
}

template <class Same>
void basic_bucket_agent<Same>::start_take(handler<decision> h, std::string key,
                                          take_options options) {
  if (options.while_away != while_away::fail) h = away_handler{std::move(h), options};
  error_code failure;
  decision answer;
  try {
    auto claim = std::make_shared<token_claim<basic_bucket_agent>>(this->shared_from_this(),
                                                                   std::move(key), options.cost);
    std::optional<decision> known;
    if (any.executes_now()) {
      auto const taken = any.execute(claim->question(options.wait));
      if (taken.has_error()) {
        failure = taken.error();
      } else {
        answer = taken.value();
        claim->note(answer);
        known = answer;
      }
    }
    if (!failure && (!known || answer.wait > duration::zero())) {
      auto body = take_and_wait(std::move(claim), options.wait, known);
      spawn<decision>(executor, std::move(body), std::move(h));
      return;
    }
    claim->deliver();
  } catch (...) {
    if (!h) throw;
    failure = error_of(std::current_exception());
    answer = decision{};
  }
  post_completion(executor, std::move(h), failure, answer);
}

}  // namespace weir::detail

#endif
