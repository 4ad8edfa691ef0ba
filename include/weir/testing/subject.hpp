// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SUBJECT_HPP
#define WEIR_TESTING_SUBJECT_HPP

#include "weir/command/at.hpp"
#include "weir/concept.hpp"
#include "weir/error.hpp"
#include "weir/testing/commands.hpp"

#include <boost/asio/any_completion_handler.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

// A store under test, without its type. The suite is written against this, so that it is compiled
// once and not once per store, and so that a store which lacks an optional command is asked for it
// at run time.
namespace weir::testing {

/// How a store executes one command. Thread-safe where the store is.
template <class C>
class port {
 public:
  using answer = typename C::result;
  using handler = boost::asio::any_completion_handler<void(error_code, answer)>;

  port() = default;
  port(port const&) = delete;
  port& operator=(port const&) = delete;
  virtual ~port() = default;

  /// May the caller say what time it is?
  [[nodiscard]] virtual bool told() const noexcept = 0;
  /// Does it execute without waiting, too?
  [[nodiscard]] virtual bool synchronous() const noexcept = 0;

  virtual void start(C const& c, handler h) = 0;
  /// Requires `told()`.
  virtual void start_at(command::at<C> const& c, handler h) = 0;
  /// Requires `synchronous()`.
  virtual result<answer> execute(C const& c) = 0;
};

namespace detail {

template <class Store, class C>
class store_port final : public port<C> {
 public:
  using typename port<C>::answer;
  using typename port<C>::handler;

  explicit store_port(Store& store) : store_{store} {}

  [[nodiscard]] bool told() const noexcept override { return executes_at<Store, C>; }
  [[nodiscard]] bool synchronous() const noexcept override { return executes_now<Store, C>; }

  void start(C const& c, handler h) override { store_.async_execute(c, std::move(h)); }

  void start_at([[maybe_unused]] command::at<C> const& c, [[maybe_unused]] handler h) override {
    if constexpr (executes<Store, command::at<C>>) {
      store_.async_execute(c, std::move(h));
    } else if constexpr (executes_now<Store, command::at<C>>) {
      auto answered = store_.execute(c);
      auto const ec = answered.has_error() ? answered.error() : error_code{};
      std::move(h)(ec, answered.has_value() ? std::move(answered).value() : answer{});
    }
  }

  result<answer> execute([[maybe_unused]] C const& c) override {
    if constexpr (executes_now<Store, C>) {
      return store_.execute(c);
    } else {
      return make_error_code(boost::system::errc::function_not_supported);
    }
  }

 private:
  Store& store_;
};

template <class C>
struct port_slot {
  std::unique_ptr<port<C>> port_of;  // null: the store does not execute it
};

// Slots and not a tuple: of many elements, that is half of what there is to compile.
template <class List>
struct port_slots;

template <class... Cs>
struct port_slots<command_list<Cs...>> : port_slot<Cs>... {
  template <class Store>
  explicit port_slots(Store& store) : port_slot<Cs>{make<Store, Cs>(store)}... {}

  [[nodiscard]] bool told() const noexcept {
    return ((waits_for_event<Cs> || way<Cs>() == nullptr || way<Cs>()->told()) && ...);
  }
  [[nodiscard]] bool synchronous() const noexcept {
    return ((waits_for_event<Cs> || way<Cs>() == nullptr || way<Cs>()->synchronous()) && ...);
  }
  template <class C>
  [[nodiscard]] port<C>* way() const noexcept {
    return static_cast<port_slot<C> const&>(*this).port_of.get();
  }

 private:
  template <class Store, class C>
  static std::unique_ptr<port<C>> make(Store& store) {
    if constexpr (executes<Store, C>) return std::make_unique<store_port<Store, C>>(store);
    return nullptr;
  }
};

}  // namespace detail

/// A store of any type that executes these commands, or some of them.
template <class Commands>
class subject {
 public:
  template <class Store>
  explicit subject(Store store) : subject{std::make_shared<Store>(std::move(store))} {}

  /// Lets go of the connection that the store may keep.
  void close() {
    if (close_) close_();
  }

  /// The way to execute a command; null: the store does not.
  template <class C>
  [[nodiscard]] port<C>* find() const noexcept {
    return ports_->template way<C>();
  }

  /// May the caller say what time it is, for every command that the store executes and that does
  /// not wait?
  [[nodiscard]] bool told() const noexcept { return ports_->told(); }

  /// Does it execute every such command without waiting, too?
  [[nodiscard]] bool synchronous() const noexcept { return ports_->synchronous(); }

  [[nodiscard]] std::uint32_t shard_count() const noexcept { return shards_; }

 private:
  using slots = detail::port_slots<typename Commands::list>;

  template <class Store>
  explicit subject(std::shared_ptr<Store> owned)
      : store_{owned},
        ports_{std::make_unique<slots>(*owned)} {
    if constexpr (requires { owned->shard_count(); }) shards_ = owned->shard_count();
    if constexpr (requires { owned->async_run([](error_code) {}); }) {
      owned->async_run([](error_code) {});
    }
    if constexpr (requires { owned->close(); }) {
      close_ = [store = owned.get()] { store->close(); };
    }
  }

  std::shared_ptr<void> store_;
  std::unique_ptr<slots> ports_;
  std::function<void()> close_;
  std::uint32_t shards_ = 1;
};

}  // namespace weir::testing

#endif
