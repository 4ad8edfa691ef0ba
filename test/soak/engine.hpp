// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_ENGINE_HPP
#define WEIR_TEST_SOAK_ENGINE_HPP

#include "weir/command/list.hpp"
#include "weir/error.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Any engine behind one type, so that the roles and the scenarios are compiled once for all of
// them.
namespace soak {

template <class C>
using handler_of = boost::asio::any_completion_handler<void(weir::error_code, typename C::result)>;

template <class C>
struct runs {
  virtual void run(C const& c, handler_of<C> handler) = 0;

 protected:
  ~runs() = default;
};

template <class... Cs>
struct engine_of : runs<Cs>... {
  virtual ~engine_of() = default;
  using runs<Cs>::run...;
  [[nodiscard]] virtual boost::asio::any_io_executor get_executor() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t shard_count() const noexcept = 0;
  virtual void close() = 0;

  template <class C>
  static constexpr bool has = (std::same_as<C, Cs> || ...);
  template <template <class...> class Of, class First>
  using apply = Of<First, Cs...>;
};

template <class... A, class... B, class... C, class... D>
engine_of<A..., B..., C..., D...> of_all(weir::command::list_of<A...>, weir::command::list_of<B...>,
                                         weir::command::list_of<C...>,
                                         weir::command::list_of<D...>);

/// Every command that all stores have: buckets that are full are reaped in memory only.
using engine =
    decltype(of_all(weir::command::permit_commands::list{}, weir::command::lock_commands::list{},
                    weir::command::list_of<weir::command::take, weir::command::peek_bucket,
                                           weir::command::refund, weir::command::reset_bucket>{},
                    weir::command::job_commands::list{}));

/// An engine made of a store: one level for each command.
template <class Store, class... Cs>
struct level : engine {
  explicit level(Store s) : store{std::move(s)} {}
  [[nodiscard]] boost::asio::any_io_executor get_executor() const noexcept override {
    return store.get_executor();
  }
  [[nodiscard]] std::uint32_t shard_count() const noexcept override { return store.shard_count(); }
  void close() override { store.close(); }

  Store store;
};
template <class Store, class C, class... Cs>
struct level<Store, C, Cs...> : level<Store, Cs...> {
  using level<Store, Cs...>::level;
  using level<Store, Cs...>::run;
  void run(C const& c, handler_of<C> handler) override {
    this->store.async_execute(c, std::move(handler));
  }
};
template <class Store>
using engine_on = engine::apply<level, Store>;

/// How a process opens its engine.
struct opening {
  std::string url;              ///< redis://, nats://, postgresql:// or sqlite:PATH
  std::string prefix = "soak";  ///< of keys, subjects, or the schema
  std::uint64_t max_bytes = 0;  ///< SQLite's file; 0: no bound
  std::uint32_t shards = 1;     ///< of Redis
  std::uint32_t replicas = 1;   ///< of NATS' streams
};

/// The application's own connection, on which it enqueues together with a row of its own.
struct outbox {
  enum class outcome : std::uint8_t { committed, rolled_back, unknown };

  virtual ~outbox() = default;
  /// @return false: that is not possible now
  virtual bool begin() = 0;
  /// Enqueues, and writes a row with the first job's id.
  virtual weir::result<weir::command::enqueue_jobs::result> execute(
      weir::command::enqueue_jobs const& c) = 0;
  virtual outcome end(bool commit) = 0;
  /// The ids in all rows.
  virtual std::vector<std::string> rows() = 0;
};

std::shared_ptr<engine> open_sqlite(boost::asio::any_io_executor const& ex, opening const& o);
std::shared_ptr<engine> open_redis(boost::asio::any_io_executor const& ex, opening const& o);
std::shared_ptr<engine> open_postgres(boost::asio::any_io_executor const& ex, opening const& o);
void migrate_postgres(opening const& o);  ///< once, before the processes start
std::shared_ptr<engine> open_nats(boost::asio::any_io_executor const& ex, opening const& o);

std::unique_ptr<outbox> open_sqlite_outbox(opening const& o);
std::unique_ptr<outbox> open_postgres_outbox(opening const& o);

}  // namespace soak

#endif
