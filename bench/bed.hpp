// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_BED_HPP
#define WEIR_BENCH_BED_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace weir_bench {

/// A store, and the loop on which its operations complete. A bed of a kind of store makes it.
template <class Store>
class bed {
 public:
  using store_type = Store;

  bed() = default;
  bed(bed const&) = delete;
  bed& operator=(bed const&) = delete;
  virtual ~bed() = default;

  [[nodiscard]] virtual Store const& store() const noexcept = 0;
  [[nodiscard]] boost::asio::io_context& io() noexcept { return io_; }

  /// Executes one command, and waits for it.
  template <class C>
  typename C::result ask(C const& c) {
    typename C::result out{};
    bool done = false;
    store().async_execute(c, [&](weir::error_code ec, typename C::result r) {
      if (ec) throw std::runtime_error{ec.message()};
      out = std::move(r);
      done = true;
    });
    run_until([&] { return done; });
    return out;
  }

  /// Executes all of them at once, and waits for the last.
  template <class C>
  void ask_all(std::vector<C> const& commands) {
    auto left = commands.size();
    for (auto const& c : commands) {
      store().async_execute(c, [&](weir::error_code ec, typename C::result const&) {
        if (ec) throw std::runtime_error{ec.message()};
        --left;
      });
    }
    run_until([&] { return left == 0; });
  }

  template <class Condition>
  void run_until(Condition&& over) {
    io_.restart();
    while (!over()) io_.run_one();
  }

  /// Enqueues `n` jobs like this one, with ids of their own.
  void fill(std::string_view queue, std::uint64_t n, weir::new_job const& like) {
    constexpr std::size_t at_once = 4;
    while (n != 0) {
      std::vector<std::vector<weir::new_job>> batches;
      while (n != 0 && batches.size() != at_once) {
        auto& jobs = batches.emplace_back(std::min<std::uint64_t>(n, weir::limits::batch), like);
        for (auto& j : jobs) j.id = next_id();
        n -= jobs.size();
      }
      std::vector<weir::command::enqueue_jobs> commands;
      for (auto const& jobs : batches) commands.push_back({queue, jobs});
      ask_all(commands);
    }
  }

  /// In the order of the enqueues, as those of version 7 are.
  weir::job_id next_id() noexcept {
    weir::job_id out{};
    ++ids_;
    for (std::size_t i = 0; i != 8; ++i) {
      out.data[7 - i] = static_cast<std::uint8_t>(ids_ >> (8 * i));
    }
    return out;
  }

 private:
  boost::asio::io_context io_;
  std::uint64_t ids_ = 0;
};

}  // namespace weir_bench

#endif
