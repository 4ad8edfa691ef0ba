// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_ERASED_HPP
#define WEIR_DETAIL_ERASED_HPP

#include "weir/concept.hpp"
#include "weir/detail/context_gate.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

// The policies of a primitive, erased. Operations of several steps are written for these, so that
// they are compiled once and not for each store, clock and backoff. A call here leads to a wait,
// beside which a virtual call is nothing; an operation that answers at once keeps its types.
namespace weir::detail {

/// A store that executes some commands, without its type.
template <class... Cs>
struct store_port;
template <>
struct store_port<> {
  store_port() = default;
  store_port(store_port const&) = delete;
  store_port& operator=(store_port const&) = delete;
  virtual ~store_port() = default;
  virtual void drop() noexcept = 0;

  boost::asio::any_io_executor executor;
  std::uint32_t shards = 1;               ///< of its queues
  bool executes_now = false;              ///< in the calling thread: `now`, never `start`
  bool has_hints = false;                 ///< executes a command of the list by which it polls less
  bool tells_in_turn = false;             ///< hints of due queues: one waiter, and not all
  std::shared_ptr<context_gate> gate{};   ///< of its context; null: that outlives all use
  std::function<error_code()> failure{};  ///< why it cannot be used now; empty: it does not say
};
template <class C, class... Rest>
struct store_port<C, Rest...> : store_port<Rest...> {
  using store_port<Rest...>::start;
  using store_port<Rest...>::now;
  virtual void start(C const& c, erased_handler<C> handler, bool patiently) = 0;
  virtual result<typename C::result> now(C const& c) = 0;
};
template <class C>
struct store_port<C> : store_port<> {
  virtual void start(C const& c, erased_handler<C> handler, bool patiently) = 0;
  virtual result<typename C::result> now(C const& c) = 0;
};

/// Does the store execute all steps of a port in the calling thread? If it does so with some of
/// them only, it is asked for none of them that way.
template <class Store, class Port>
inline constexpr bool answers_at_once = false;
template <class Store, class... Cs>
inline constexpr bool answers_at_once<Store, store_port<Cs...>> =
    ((executes_now<Store, Cs> || command::waits_for_event<Cs>) && ...);

/// Does it have handles whose calls end in time?
template <class Store>
concept has_patience = requires(Store const& s) {
  { s.with_patience(limits::span) } -> std::same_as<Store>;
};

template <class Store, class Port, class... Cs>
struct store_port_of;
template <class Store, class Port>
struct store_port_of<Store, Port> : Port {
  explicit store_port_of(Store s) : store{std::move(s)} {}
  void drop() noexcept override {
    this->executor = {};
    if (!this->executes_now) store.reset();
  }
  std::optional<Store> store;
};
template <class Store, class Port, class C, class... Rest>
struct store_port_of<Store, Port, C, Rest...> : store_port_of<Store, Port, Rest...> {
  using base = store_port_of<Store, Port, Rest...>;
  using base::base;
  using base::now;
  using base::start;
  static constexpr bool at_once = answers_at_once<Store, Port>;

  void start([[maybe_unused]] C const& c, [[maybe_unused]] erased_handler<C> handler,
             [[maybe_unused]] bool patiently) override {
    if constexpr (executes<Store, C> && !(executes_now<Store, C> && at_once)) {
      if constexpr (has_patience<Store>) {
        if (patiently) {
          this->store->with_patience(limits::span).async_execute(c, std::move(handler));
          return;
        }
      }
      this->store->async_execute(c, std::move(handler));
    }
  }
  result<typename C::result> now([[maybe_unused]] C const& c) override {
    if constexpr (executes_now<Store, C> && at_once) return this->store->execute(c);
    return make_error_code(errc::store_unavailable);
  }
};

/// Any store that executes these commands, but perhaps not those that wait for an event. A
/// handle: copies share the store's own handle.
template <class... Cs>
class any_store {
 public:
  using port_type = store_port<Cs...>;

  /// Erases a store.
  template <class Store>
  [[nodiscard]] static any_store of(Store store) {
    auto port = std::make_shared<store_port_of<Store, port_type, Cs...>>(std::move(store));
    port->executor = port->store->get_executor();
    if constexpr (requires { port->store->shard_count(); }) {
      port->shards = port->store->shard_count();
    }
    port->executes_now = answers_at_once<Store, port_type>;
    if constexpr (requires { port->store->last_failure().error; }) {
      port->failure = [raw = port.get()]() -> error_code {
        auto const last = raw->store->last_failure();
        return last.over ? error_code{} : last.error;
      };
    }
    port->has_hints = ((command::waits_for_event<Cs> && executes<Store, Cs> &&
                        !std::same_as<Cs, command::await_cancel>) ||
                       ...);
    if constexpr (requires { Store::tells_in_turn; }) port->tells_in_turn = Store::tells_in_turn;
    return any_store{std::move(port)};
  }

  [[nodiscard]] boost::asio::any_io_executor const& get_executor() const noexcept {
    return port_->executor;
  }
  /// Its context may end before its last use. `drop` is called then.
  void bind(std::shared_ptr<context_gate> gate) const noexcept { port_->gate = std::move(gate); }
  /// Its context ends, and with it what may not outlive that.
  void drop() const noexcept { port_->drop(); }

  [[nodiscard]] std::uint32_t shard_count() const noexcept { return port_->shards; }
  /// Does it execute its steps in the calling thread? Then they are given to `execute`.
  [[nodiscard]] bool executes_now() const noexcept { return port_->executes_now; }
  /// Does it tell of permits, or of jobs, that somebody waits for?
  [[nodiscard]] bool has_hints() const noexcept { return port_->has_hints; }
  /// Does it tell one of those who wait for jobs, if they like (`command::await_jobs::in_turn`)?
  [[nodiscard]] bool tells_in_turn() const noexcept { return port_->tells_in_turn; }

  /// Why the store cannot be used at the moment, as far as it says; empty: nothing is known.
  [[nodiscard]] error_code failure() const {
    gate_pass const inside{port_->gate};
    return inside && port_->failure ? port_->failure() : error_code{};
  }

  template <class C>
  [[nodiscard]] result<typename C::result> execute(C const& c) const {
    return port_->now(c);
  }
  /// As a store's `async_execute`, for any handler. Throws `operation_aborted` if its context has
  /// ended.
  template <class C>
  void start(C const& c, erased_handler<C> handler) const {
    gate_pass const inside{port_->gate};
    if (!inside) throw boost::system::system_error{boost::asio::error::operation_aborted};
    port_->start(c, std::move(handler), patient_);
  }

  /// The same store, whatever patience its handle was given: for what gives something back. Nobody
  /// waits for that, and where it is not done what was to be free again stays taken.
  [[nodiscard]] any_store patient() const {
    auto out = *this;
    out.patient_ = true;
    return out;
  }

 private:
  explicit any_store(std::shared_ptr<port_type> port) noexcept : port_{std::move(port)} {}

  std::shared_ptr<port_type> port_;
  bool patient_ = false;
};

/// Any clock. Models `weir::clock`; copies share what they were made of.
class any_clock {
 public:
  /// Erases a clock.
  template <clock Clock>
  [[nodiscard]] static any_clock of(Clock clock) {
    return any_clock{std::make_shared<port_of<Clock>>(std::move(clock))};
  }

  [[nodiscard]] steady_time steady_now() const noexcept { return port_->steady_now(); }

  template <class Token>
  auto async_wait_until(boost::asio::any_io_executor executor, steady_time t, Token&& token) const {
    auto initiate = [](handler_type handler, std::shared_ptr<port const> const& to,
                       boost::asio::any_io_executor const& on,
                       steady_time until) { to->wait_until(on, until, std::move(handler)); };
    return boost::asio::async_initiate<Token, void(error_code)>(initiate, token, port_, executor,
                                                                t);
  }

 private:
  using handler_type = boost::asio::any_completion_handler<void(error_code)>;

  struct port {
    port() = default;
    port(port const&) = delete;
    port& operator=(port const&) = delete;
    virtual ~port() = default;
    [[nodiscard]] virtual steady_time steady_now() const noexcept = 0;
    virtual void wait_until(boost::asio::any_io_executor const& executor, steady_time t,
                            handler_type handler) const = 0;
  };
  template <class Clock>
  struct port_of final : port {
    explicit port_of(Clock c) : clock{std::move(c)} {}
    [[nodiscard]] steady_time steady_now() const noexcept override { return clock.steady_now(); }
    void wait_until(boost::asio::any_io_executor const& executor, steady_time t,
                    handler_type handler) const override {
      clock.async_wait_until(executor, t, std::move(handler));
    }
    Clock clock;
  };

  explicit any_clock(std::shared_ptr<port const> to) noexcept : port_{std::move(to)} {}

  std::shared_ptr<port const> port_;
};

/// Any backoff: models `weir::backoff`.
using any_backoff =
    std::function<duration(std::uint32_t attempt, duration previous, std::uint64_t entropy)>;

}  // namespace weir::detail

#endif
