// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_MUTANT_STORE_HPP
#define WEIR_TEST_CONFORMANCE_MUTANT_STORE_HPP

#include "weir/clock/manual.hpp"
#include "weir/command/at.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/posting.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/commands.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <future>
#include <iomanip>
#include <iostream>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Deliberate defects, to see that the suite finds them: each is a memory store in which one command
// does the wrong thing. A noun's defects are one class, of which a number picks one, so that they
// are compiled once.
namespace weir::testing {

/// What a noun's defects start from: no defect.
///
/// `step` overloads do a command, in place of the store; `next(command, time)` is the store. A
/// command for which `splits` is true is done in two steps between which others may come: `look`,
/// whose result `step` gets.
struct no_defects {
  explicit no_defects(int w) : which{w} {}

  int which;

  template <class C>
  [[nodiscard]] bool splits(C const&) const {
    return false;
  }
  template <class C, class Next>
  std::int64_t look(C const&, time_point, Next const&) {
    return 0;
  }

  /// What becomes of a wait for a hint.
  enum class waiting : std::uint8_t { as_it_should, told_at_once, never_told };
  [[nodiscard]] waiting wait() const { return waiting::as_it_should; }
};

/// The key as a careless store sees it.
[[nodiscard]] inline std::string without_case(std::string_view key) {
  std::string out{key};
  for (auto& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return out;
}

/// A memory store with a defect; or another one with a `now`, that executes without waiting.
template <class Defects, class Store = basic_memory_store<manual_clock>>
class mutant_store {
 public:
  using executor_type = boost::asio::any_io_executor;
  using base = Store;

  mutant_store(base store, int which)
      : store_{std::move(store)},
        shared_{std::make_shared<shared>(which)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }

  template <class C>
    requires executes_now<Store, command::at<C>>
  result<typename C::result> execute(C const& c) const {
    return step(c, store_.now());
  }
  template <class C>
    requires executes_now<Store, command::at<C>>
  result<typename C::result> execute(command::at<C> const& a) const {
    return step(a.command, a.time);
  }

  template <class C, class Token>
    requires executes_now<Store, command::at<C>>
  auto async_execute(C const& c, Token&& token) const {
    using answer = typename C::result;
    auto initiate = [](boost::asio::any_completion_handler<void(error_code, answer)> handler,
                       mutant_store self, C command) {
      auto const ex = self.get_executor();
      if (!self.splits(command)) {
        weir::detail::async_lift<answer>(
            ex, [&] { return self.execute(command); }, std::move(handler));
        return;
      }
      auto const looked = self.look(command);
      boost::asio::post(ex, [self, command, looked, h = std::move(handler)]() mutable {
        auto act = [&] { return self.act(command, self.store_.now(), looked); };
        weir::detail::async_lift<answer>(self.get_executor(), act, std::move(h));
      });
    };
    return boost::asio::async_initiate<Token, void(error_code, answer)>(std::move(initiate), token,
                                                                        *this, c);
  }
  template <class C, class Token>
    requires waits_for_event<C>
  auto async_execute(C const& c, Token&& token) const {
    auto initiate = [](boost::asio::any_completion_handler<void(error_code, hint)> handler,
                       mutant_store self, C command) {
      switch (self.shared_->defects.wait()) {
        case no_defects::waiting::as_it_should:
          self.store_.async_execute(command, std::move(handler));
          break;
        case no_defects::waiting::told_at_once:
          weir::post_completion(self.get_executor(), std::move(handler), error_code{}, hint{});
          break;
        case no_defects::waiting::never_told: break;
      }
    };
    return boost::asio::async_initiate<Token, void(error_code, hint)>(std::move(initiate), token,
                                                                      *this, c);
  }

 private:
  struct shared {
    explicit shared(int which) : defects{which} {}
    std::mutex mutex;
    Defects defects;
  };

  [[nodiscard]] auto next() const {
    return [this](auto const& c, time_point now) {
      using C = std::remove_cvref_t<decltype(c)>;
      return store_.execute(command::at<C>{c, now});
    };
  }

  template <class C>
  bool splits(C const& c) const {
    std::lock_guard const lock{shared_->mutex};
    return shared_->defects.splits(c);
  }
  template <class C>
  std::int64_t look(C const& c) const {
    std::lock_guard const lock{shared_->mutex};
    return shared_->defects.look(c, store_.now(), next());
  }
  template <class C>
  result<typename C::result> act(C const& c, time_point now, std::int64_t looked) const {
    std::lock_guard const lock{shared_->mutex};
    return shared_->defects.step(c, now, next(), looked);
  }
  template <class C>
  result<typename C::result> step(C const& c, time_point now) const {
    std::lock_guard const lock{shared_->mutex};
    auto const looked = shared_->defects.look(c, now, next());
    return shared_->defects.step(c, now, next(), looked);
  }

  base store_;
  std::shared_ptr<shared> shared_;
};

/// Makes mutants, all with the same defect.
template <class Defects>
struct mutant_driver {
  explicit mutant_driver(int w) : which{w} {}

  mutant_store<Defects> make(boost::asio::any_io_executor const& ex) { return make_with(ex, {}); }
  mutant_store<Defects> make_bounded(boost::asio::any_io_executor const& ex, std::size_t n) {
    memory_options o;
    o.max_buckets = o.max_permits = o.max_locks = o.max_jobs = n;
    return make_with(ex, o);
  }
  void advance(duration d) { clock.advance(d); }

  int which;
  manual_clock clock{};

 private:
  mutant_store<Defects> make_with(boost::asio::any_io_executor const& ex, memory_options const& o) {
    return {basic_memory_store<manual_clock>{ex, o, clock}, which};
  }
};

struct mutant {
  int which;
  std::string_view failure;  ///< the known failure, or the promise broken, that it brings back
  std::string_view defect;
};

/// Runs the suite on each mutant, first what looks for the failure that it brings back, and prints
/// what caught it. Fails for every one that survives, and if the suite finds fault with the store
/// that has no defect.
/// @param hunters how many mutants are run at a time: most of those on an engine wait
template <class Defects, class Driver = mutant_driver<Defects>, class Suite>
void hunt(std::span<mutant const> mutants, Suite const& suite, std::size_t hunters = 1) {
  settings all;
  all.histories = 40;
  all.concurrent = 4;
  all.operations = 40;
  all.threads = 1;  // races are between the two steps of a command: the same in every run
  all.shrinking = 60;
  auto const caught_by = [&](int which, std::string_view only) {
    auto s = all;
    // Some mutants never answer; the store without a defect does, on however slow a machine.
    s.patience = std::chrono::seconds{which < 0 ? 120 : 3};
    s.until_first_failure = which >= 0;
    s.only = only;
    Driver driver{which};
    report found;
    suite(driver, found, s);
    std::string checks;
    for (auto const& f : found.findings()) {
      if (f.outcome != verdict::failed) continue;
      checks.append("\n      ").append(f.number).append(": ").append(f.promise);
    }
    return checks;
  };

  auto const without = caught_by(-1, "");
  BOOST_TEST(without.empty(), "the suite finds fault with no defect:" << without);
  std::vector<std::string> found(mutants.size());
  {
    boost::asio::thread_pool pool{hunters};
    std::vector<std::future<void>> hunts;
    for (std::size_t i = 0; i != mutants.size(); ++i) {
      auto hunt_one = [&, i] {
        found[i] = caught_by(mutants[i].which, mutants[i].failure);
        if (found[i].empty()) found[i] = caught_by(mutants[i].which, "");
      };
      hunts.push_back(boost::asio::post(pool, boost::asio::use_future(hunt_one)));
    }
    for (auto& h : hunts) h.get();
  }
  std::size_t caught = 0;
  for (std::size_t i = 0; i != mutants.size(); ++i) {
    auto const& m = mutants[i];
    auto const& checks = found[i];
    std::cout << "  " << std::left << std::setw(4) << m.failure << ' ' << m.defect
              << (checks.empty() ? "\n      SURVIVED" : checks) << std::endl;
    caught += checks.empty() ? 0U : 1U;
    BOOST_TEST(!checks.empty(), "the suite does not find " << m.failure << ", " << m.defect);
  }
  std::cout << "  " << caught << " of " << mutants.size() << " defects are caught" << std::endl;
}

}  // namespace weir::testing

#endif
