// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_SQLITE_HISTORIES_HPP
#define WEIR_TEST_INTEGRATION_SQLITE_HISTORIES_HPP

#include "sqlite_bed.hpp"
#include "weir/owned_command.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/fields.hpp"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace sqlite_test {

/// A generated history, which a file and the memory store are told alike.
///
/// Commands come in batches, which are one transaction of the file's store, or of another store on
/// the same file, or of an application that executes them on its own connection; some of these are
/// rolled back, which is as if they had never been.
class history {
 public:
  history(std::uint64_t seed, sqlite_options const& options, memory_options const& bounds)
      : random{seed},
        options_{options},
        memory_{io_.get_executor(), bounds},
        stores_{sqlite_store{io_.get_executor(), home_.file(), options},
                sqlite_store{io_.get_executor(), home_.file(), options}} {}

  [[nodiscard]] std::uint64_t below(std::uint64_t n) { return random() % n; }
  [[nodiscard]] bool chance(std::uint64_t percent) { return below(100) < percent; }
  template <class T>
  [[nodiscard]] T const& any(std::vector<T> const& of) {
    return of[below(of.size())];
  }
  /// The fence by which the file knows what the memory store knows by `fence`.
  [[nodiscard]] std::uint64_t fence_of(std::string const& scope, std::uint64_t fence) const {
    return fences_.of_store(scope, fence);
  }

  /// Lets time pass, mostly a little.
  void pass() {
    auto const ms = chance(10) ? below(20'000) : chance(50) ? below(300) : 0;
    now += 1ms + std::chrono::milliseconds{ms};
  }

  /// Adds a command to the batch. `for_file` is `c` with the file's fences; `scope` what the fences
  /// are compared within; `seen` is told the memory store's answer, once it is known.
  template <class C>
  void tell(C const& c, C const& for_file, std::string const& scope,
            std::function<void(typename C::result const&)> seen = {}) {
    auto step = std::make_shared<told<C>>(*this, c, for_file, scope, now, std::move(seen));
    batch_.push_back(std::move(step));
  }
  template <class C>
  void tell(C const& c, std::string const& scope = {},
            std::function<void(typename C::result const&)> seen = {}) {
    tell(c, c, scope, std::move(seen));
  }

  /// Executes the batch on both, and compares the answers.
  void play() {
    if (!batch_.empty() && chance(25)) {
      play_in_transaction(chance(30));
      batch_.clear();
    } else {
      play_in(stores_[chance(20) ? 1 : 0]);
    }
  }

  /// Is what the file says of itself as a whole the sum of what is in it?
  void check_sums() {
    auto& db = application();
    for (std::string const what : {"permits", "locks", "buckets"}) {
      BOOST_TEST_REQUIRE(db.number("SELECT " + what + " FROM weir_state") ==
                         db.number("SELECT count(*) FROM weir_" + what));
    }
    BOOST_TEST_REQUIRE(db.number("SELECT jobs FROM weir_state") ==
                       db.number("SELECT (SELECT count(*) FROM weir_jobs) + (SELECT count(*) FROM "
                                 "weir_keys WHERE until IS NOT NULL)"));
    BOOST_TEST_REQUIRE(db.number("SELECT idle FROM weir_state") ==
                       db.number("SELECT count(*) FROM weir_queues WHERE idle IS NOT NULL"));
    BOOST_TEST_REQUIRE(db.number("SELECT count(*) FROM weir_payloads") ==
                       db.number("SELECT count(*) FROM weir_jobs WHERE body IS NOT NULL"));
    BOOST_TEST_REQUIRE(db.text("PRAGMA integrity_check") == "ok");
  }

  /// `play`, by the store.
  void play_now() { play_in(stores_[0]); }

  time_point now{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1}};
  std::mt19937_64 random;

 private:
  struct told_base {
    virtual ~told_base() = default;
    virtual void start(sqlite_store const& s) = 0;
    virtual void execute(sqlite_transaction& tx) = 0;
    virtual void compare() = 0;
  };

  template <class C>
  struct told final : told_base {
    using answer = typename C::result;

    told(history& h, C const& c, C const& file, std::string s, time_point t,
         std::function<void(answer const&)> f)
        : in{h},
          command{owned_command<C>{c}},
          for_file{owned_command<C>{file}},
          scope{std::move(s)},
          at{t},
          seen{std::move(f)} {}

    void start(sqlite_store const& s) override {
      s.async_execute(command::at<C>{for_file.get(), at}, [this](error_code ec, answer a) {
        if (ec) {
          got = ec;
        } else {
          got = std::move(a);
        }
      });
    }
    void execute(sqlite_transaction& tx) override {
      got = tx.execute(command::at<C>{for_file.get(), at});
    }
    void compare() override {
      auto const expected = in.memory_.execute(command::at<C>{command.get(), at});
      auto const wrong = testing::difference(testing::fields_of(expected), testing::fields_of(got),
                                             duration{}, in.fences_, scope);
      BOOST_TEST_REQUIRE(!wrong.has_value(),
                         testing::to_text(command.get())
                             << "\n  " << *wrong
                             << "\n  memory: " << testing::to_text(testing::fields_of(expected))
                             << "\n  sqlite: " << testing::to_text(testing::fields_of(got)));
      if (seen && expected.has_value()) seen(*expected);
    }

    history& in;
    owned_command<C> command;
    owned_command<C> for_file;
    std::string scope;
    time_point at;
    std::function<void(answer const&)> seen;
    result<answer> got = make_error_code(errc::closed);
  };

  void play_in(sqlite_store const& store) {
    for (auto const& step : batch_) step->start(store);
    io_.restart();
    io_.run();
    for (auto const& step : batch_) step->compare();
    batch_.clear();
  }

  void play_in_transaction(bool roll_back) {
    application().must("BEGIN IMMEDIATE");
    {
      sqlite_transaction tx{application().get(), options_};
      for (auto const& step : batch_) step->execute(tx);
    }
    application().must(roll_back ? "ROLLBACK" : "COMMIT");
    if (roll_back) return;
    for (auto const& step : batch_) step->compare();
  }

  connection& application() {
    if (!application_) {
      ask(io_, stores_[0], command::inspect_lock{"is the file there?"}).value();
      application_ = std::make_unique<connection>(home_.file());
    }
    return *application_;
  }

  directory home_{};
  sqlite_options options_;
  boost::asio::io_context io_{};
  memory_store memory_;
  std::vector<sqlite_store> stores_;
  std::unique_ptr<connection> application_;
  testing::fence_book fences_{};
  std::vector<std::shared_ptr<told_base>> batch_;
};

}  // namespace sqlite_test

#endif
