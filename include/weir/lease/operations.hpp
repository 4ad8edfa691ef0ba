// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_OPERATIONS_HPP
#define WEIR_LEASE_OPERATIONS_HPP

#include "weir/detail/async_command.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/explained.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"
#include "weir/lease.hpp"
#include "weir/lease/agent.hpp"
#include "weir/lease/holding.hpp"
#include "weir/lease/pursuit.hpp"
#include "weir/lease/returns.hpp"
#include "weir/posting.hpp"
#include "weir/rule/validate.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

// What `limiter` and `uniqueness` do behind their seam: included where it is compiled.
namespace weir::detail {

template <class Noun>
struct lease_try_request {
  using agent_type = lease_agent<Noun>;

  lease_try_request(std::shared_ptr<agent_type> a, std::string key, duration t)
      : agent{std::move(a)},
        claim{agent->new_state(std::move(key))},
        ttl{t} {}

  [[nodiscard]] error_code problem() const noexcept { return agent->problem; }
  [[nodiscard]] typename Noun::acquire command() const noexcept {
    sent = agent->clock.steady_now();
    claim.known = true;
    return Noun::ask(agent->options, claim.state(), ttl, duration::zero());
  }
  void failed(error_code ec) noexcept { claim.known = may_have_happened(ec); }

  std::shared_ptr<agent_type> agent;
  mutable lease_claim claim;
  duration ttl;
  mutable steady_time sent{};
};

template <class Noun>
struct lease_release_request {
  [[nodiscard]] error_code problem() const noexcept {
    if (owner.state()->home == agent) return {};
    return explained(errc::invalid_option, "the handle is another primitive's");
  }
  [[nodiscard]] typename Noun::release command() const noexcept {
    return Noun::give_back(*owner.state());
  }

  std::shared_ptr<lease_agent<Noun>> agent;
  lease_owner owner;
};

template <class Noun>
struct lease_renew_request {
  [[nodiscard]] error_code problem() const noexcept {
    if (!lease) return make_error_code(errc::lease_lost);
    if (lease->home != agent) {
      return explained(errc::invalid_option, "the handle is another primitive's");
    }
    return {};
  }
  [[nodiscard]] typename Noun::renew command() const noexcept {
    sent = agent->clock.steady_now();
    return Noun::renewal(*lease, agent->options.ttl);
  }

  std::shared_ptr<lease_agent<Noun>> agent;
  std::shared_ptr<held_lease> lease;
  mutable steady_time sent{};
};

template <class Noun>
struct lease_inspect_request {
  [[nodiscard]] typename Noun::inspect command() const noexcept { return Noun::look(key, what); }

  std::string key;
  typename Noun::inspection what;
};

template <class Noun>
lease_agent<Noun>::lease_agent(store_type s, options_type const& o, any_clock c, any_backoff b,
                               id_source i)
    : store{std::move(s)},
      options{o},
      clock{std::move(c)},
      backoff{std::move(b)},
      ids{std::move(i)},
      executor{store.get_executor()},
      gate{executor ? gate_of(executor) : nullptr},
      keeper_executor{context_bound_executor::make(executor)},
      problem{Noun::problem(o)},
      returns_{store.executes_now() ? nullptr : std::make_unique<lease_returns>(executor)} {
  store.bind(gate);
}

template <class Noun>
lease_agent<Noun>::~lease_agent() = default;

template <class Noun>
void lease_agent<Noun>::watch_context() {
  if (executor) watch_of(executor).tell(this->weak_from_this());
}

template <class Noun>
void lease_agent<Noun>::context_ends() noexcept {
  store.drop();
  executor = {};
}

template <class Noun>
void lease_agent<Noun>::give_back(std::shared_ptr<held_lease const> const lease) noexcept {
  if (returns_) returns_->start(store.patient(), lease, Noun::give_back(*lease));
}

template <class Noun>
void lease_agent<Noun>::leave(lease_claim& claim) noexcept {
  if (!returns_ || !claim.known || !claim.owner.state()) return;
  claim.expected = returns_->expect(claim.owner.state());
}

template <class Noun>
void lease_agent<Noun>::try_it(handler<std::optional<handle>> h, std::string key) {
  using request = lease_try_request<Noun>;
  auto const mapping = [](grant const& g, request& asked) {
    return settle(asked.claim, g, asked.sent, asked.agent->clock);
  };
  begin_command<std::optional<handle>>(
      store, request{this->shared_from_this(), std::move(key), options.ttl}, mapping, std::move(h));
}

template <class Noun>
void lease_agent<Noun>::claim(handler<bool> h, std::string key, duration ttl) {
  using request = lease_try_request<Noun>;
  auto const mapping = [](grant const& g, request& asked) -> result<bool> {
    asked.claim.known = false;
    return g.granted;
  };
  begin_command<bool>(store, request{this->shared_from_this(), std::move(key), ttl}, mapping,
                      std::move(h));
}

template <class Noun>
void lease_agent<Noun>::release(handler<bool> h, lease_owner owner) {
  using request = lease_release_request<Noun>;
  if (!owner.state()) {
    post_completion(executor, std::move(h), error_code{}, false);
    return;
  }
  auto const mapping = [](lease_release answer, request& asked) -> result<bool> {
    asked.owner.disarm();
    return answer.freed;
  };
  begin_command<bool>(store, request{this->shared_from_this(), std::move(owner)}, mapping,
                      std::move(h));
}

template <class Noun>
void lease_agent<Noun>::renew(handler<steady_time> h, std::shared_ptr<held_lease> lease) {
  using request = lease_renew_request<Noun>;
  auto const mapping = [](lease_renewal answer, request& asked) -> result<steady_time> {
    asked.lease->expires_at(saturating_add(asked.sent, answer.expires_in));
    return asked.lease->expires_at();
  };
  request what{this->shared_from_this(), std::move(lease)};
  begin_command<steady_time>(store, std::move(what), mapping, std::move(h));
}

template <class Noun>
void lease_agent<Noun>::inspect(handler<typename Noun::inspect::result> h, std::string key,
                                typename Noun::inspection what) {
  lease_inspect_request<Noun> request{std::move(key), what};
  begin_command<typename Noun::inspect::result>(store, std::move(request), unchanged{},
                                                std::move(h));
}

template <class Noun>
void lease_agent<Noun>::drain(boost::asio::any_completion_handler<void(error_code)> h) {
  if (returns_) {
    returns_->drain(executor, std::move(h));
  } else {
    post_completion(executor, std::move(h), error_code{});
  }
}

/// Is this wait allowed, and are the options?
template <class Noun>
error_code lease_agent<Noun>::problem_with(duration wait) const noexcept {
  if (problem || rule::valid_wait(wait)) return problem;
  return make_error_code(errc::invalid_wait);
}

template <class Noun>
void lease_agent<Noun>::pursue(handler<handle> h, std::string key, duration wait) {
  using pursuit_type = lease_pursuit<Noun>;
  typename pursuit_type::ending end;
  try {
    if (error_code const ec = problem_with(wait)) {
      end.emplace(ec);
    } else {
      auto claim = std::make_shared<lease_claim>(new_state(std::move(key)));
      pursuit_type pursuit{this->shared_from_this(), std::move(claim), wait};
      // What nobody contends for is had without a coroutine.
      bool const now = store.executes_now();
      if (now) end = pursuit.settle(pursuit.ask_now());
      if (!end) {
        auto rest = pursuit_type::run(std::move(pursuit), now);
        spawn(executor, std::move(rest), std::move(h));
        return;
      }
    }
  } catch (...) {
    if (!h) throw;
    end.emplace(error_of(std::current_exception()));
  }
  if (end->has_value()) {
    post_completion(executor, std::move(h), error_code{}, std::move(*end).value());
  } else {
    post_completion(executor, std::move(h), end->error(), handle{});
  }
}

template <class Noun>
void lease_agent<Noun>::hold(held_handler h, boost::asio::any_io_executor on, std::string key,
                             duration wait, std::unique_ptr<lease_body<Noun>> body) {
  namespace asio = boost::asio;
  using holding = lease_holding<Noun>;
  if (error_code const ec = problem_with(wait)) {
    boost::system::system_error const error{ec};
    post_completion(executor, std::move(h), std::make_exception_ptr(error), false);
    return;
  }
  auto const control = std::make_shared<body_control>(on);
  if (auto slot = asio::get_associated_cancellation_slot(h); slot.is_connected()) {
    slot.assign([weak = std::weak_ptr{control}](asio::cancellation_type_t type) {
      body_control::cancel(weak, type);
    });
  }
  auto own = asio::get_associated_executor(h, executor);
  auto const end = std::make_shared<typename holding::end>(std::move(h));
  auto work =
      holding::run(this->shared_from_this(), control, end, std::move(key), wait, std::move(body));
  std::shared_ptr<asio::cancellation_signal> const stop{control, &control->signal};
  spawn_on(control->strand, std::move(work), spawned_handler{stop, own, end});
}

}  // namespace weir::detail

#endif
