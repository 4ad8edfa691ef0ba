// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_CLUSTER_HPP
#define WEIR_TESTING_SIMULATION_CLUSTER_HPP

#include "weir/id_source.hpp"
#include "weir/testing/simulation/audit.hpp"
#include "weir/testing/simulation/clock.hpp"
#include "weir/testing/simulation/context.hpp"
#include "weir/testing/simulation/network.hpp"
#include "weir/testing/simulation/world.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing::simulation {

/// A host with one process on it, which may crash and come back.
template <class Engine>
class node {
 public:
  using store = network_store<Engine>;

  node(world& in, network<Engine>& net, std::uint32_t number, std::int64_t skew)
      : world_{in},
        net_{net},
        number_{number},
        clock_{in, skew} {
    boot();
  }
  node(node const&) = delete;
  node& operator=(node const&) = delete;
  ~node() {
    if (up()) crash(true);
  }

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] bool up() const noexcept { return context_ != nullptr; }
  [[nodiscard]] simulated_clock const& clock() const noexcept { return clock_; }
  [[nodiscard]] simulated_context& context() noexcept { return *context_; }
  [[nodiscard]] boost::asio::any_io_executor executor() { return context_->get_executor(); }
  [[nodiscard]] store make_store() { return {net_, link_}; }
  [[nodiscard]] id_source ids() { return id_source::seeded(world_.choices.bits()); }
  void cut_off(bool yes) noexcept { link_->cut_off = yes; }

  /// What the process keeps until it ends; destroyed with it, before or after its executor.
  template <class T>
  void keep(std::shared_ptr<T> what) {
    kept_.push_back(std::move(what));
  }

  /// Starts a coroutine of the process. Its end is counted, and nothing may leave it but what a
  /// cancellation makes.
  void spawn(boost::asio::awaitable<void> body) {
    auto& at = threads_.emplace_back(std::make_shared<thread>());
    auto ended = [this, t = at](std::exception_ptr const& e) {
      t->over = true;
      if (e && !harmless(e)) world_.found_broken("R7", "an unexpected exception: " + text_of(e));
    };
    boost::asio::co_spawn(executor(), listening(at, std::move(body)),
                          boost::asio::bind_cancellation_slot(at->stop.slot(), std::move(ended)));
  }
  [[nodiscard]] std::size_t threads() {
    std::erase_if(threads_, [](auto const& t) { return t->over; });
    return threads_.size();
  }
  void cancel_all(boost::asio::cancellation_type type) {
    auto const all = threads_;
    for (auto const& t : all) {
      t->cancelled = true;
      if (!t->over) t->stop.emit(type);
    }
  }

  void boot() {
    context_ = std::make_unique<simulated_context>();
    link_ = std::make_shared<link>(context_->get_executor(), number_);
    world_.enter(*context_);
  }

  /// The process ends: everything that is queued or pending in it is destroyed, and never run.
  void crash(bool executor_first) {
    link_->dead = true;
    world_.leave(*context_);
    if (executor_first) context_.reset();
    kept_.clear();
    context_.reset();
    threads_.clear();
  }

 private:
  struct thread {
    boost::asio::cancellation_signal stop;
    bool cancelled = false;
    bool over = false;
  };

  /// Coroutines hear of total cancellation only if they ask for it, and of what came before they
  /// began not at all.
  static boost::asio::awaitable<void> listening(std::shared_ptr<thread> t,
                                                boost::asio::awaitable<void> body) {
    if (t->cancelled) co_return;
    co_await boost::asio::this_coro::reset_cancellation_state(
        boost::asio::enable_total_cancellation{});
    co_await std::move(body);
  }

  static bool harmless(std::exception_ptr const& e) {
    try {
      std::rethrow_exception(e);
    } catch (boost::system::system_error const& error) {
      return error.code() == boost::asio::error::operation_aborted;
    } catch (...) {
      return false;
    }
  }
  static std::string text_of(std::exception_ptr const& e) {
    try {
      std::rethrow_exception(e);
    } catch (std::exception const& error) {
      return error.what();
    } catch (...) {
      return "not a std::exception";
    }
  }

  world& world_;
  network<Engine>& net_;
  std::uint32_t number_;
  simulated_clock clock_;
  std::unique_ptr<simulated_context> context_;
  std::shared_ptr<link> link_;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<std::shared_ptr<thread>> threads_;
};

/// What the parts of a run share: the world, the store and the hosts.
template <class Engine>
class cluster {
 public:
  using node_type = node<Engine>;
  using store = network_store<Engine>;

  /// @param make_engine gives the store, from its process's executor and its clock
  template <class MakeEngine>
  cluster(std::uint64_t seed, bool telling, time_point date, weather w, MakeEngine&& make_engine)
      : in{seed, telling, date},
        audits{in},
        store_clock{in},
        server{std::make_unique<simulated_context>()},
        net{in, make_engine(server->get_executor(), store_clock), *server, w, audits} {
    in.enter(*server);
  }
  cluster(cluster const&) = delete;
  cluster& operator=(cluster const&) = delete;
  ~cluster() {
    nodes.clear();
    in.leave(*server);
    server.reset();
  }

  void add_node(std::int64_t skew) {
    auto const number = static_cast<std::uint32_t>(nodes.size());
    nodes.push_back(std::make_unique<node_type>(in, net, number, skew));
  }

  [[nodiscard]] Engine& engine() noexcept { return net.engine(); }

  /// The last time at which the store's clock jumped ahead: leases from before may have ended early
  /// by everybody else's time.
  duration last_jump{};

  world in;
  audit audits;
  simulated_clock store_clock;
  std::unique_ptr<simulated_context> server;
  network<Engine> net;
  std::vector<std::unique_ptr<node_type>> nodes;
};

/// A whole program, run by every node of a cluster.
template <class Engine>
class program {
 public:
  program() = default;
  program(program const&) = delete;
  program& operator=(program const&) = delete;
  virtual ~program() = default;

  /// Starts it on a node that has just come up.
  virtual void start(node<Engine>& on) = 0;
  /// A node is about to crash: says whether it holds a lease now.
  virtual bool holds_lease(node<Engine>& on) = 0;
  /// Nothing goes wrong any more: what is left is to be brought to its end.
  virtual void heal() = 0;
  /// Is everything done that there was to do? Asked after healing; it may give the last push.
  virtual bool drained() = 0;
  /// The promises that clients see, after every step.
  virtual void check() = 0;
};

}  // namespace weir::testing::simulation

#endif
