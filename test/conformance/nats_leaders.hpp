// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_NATS_LEADERS_HPP
#define WEIR_TEST_CONFORMANCE_NATS_LEADERS_HPP

#include "conformance/nats_driver.hpp"
#include "conformance/suite.hpp"
#include "integration/nats_nodes.hpp"
#include "weir/command/at.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/list.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/concept.hpp"
#include "weir/error.hpp"
#include "weir/posting.hpp"
#include "weir/store/nats.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/driver.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The conformance suite on a cluster of three servers that loses, in the middle of each check, the
// one that leads the stream: by a request to step down, or by kill -9. What is repeatable is asked
// again, as the primitives and the worker do.
//
// Left out are buckets, since a take is not repeatable; generated histories, since their model
// knows no answer that was lost; and concurrent jobs, whose clients take an unknown outcome for a
// failure: integration.nats_job_cluster audits such histories.
namespace weir::testing {

using nats_test::cluster;

/// Asked again after its answer was lost, it answers the same.
template <class C>
inline constexpr bool answers_the_same =
    command::reads_only<C> || command::waits_for_event<C> ||
    std::same_as<C, command::acquire_permit> || std::same_as<C, command::renew_permit> ||
    std::same_as<C, command::acquire_lock> || std::same_as<C, command::renew_lock> ||
    std::same_as<C, command::obtain_lease> || std::same_as<C, command::extend_lease> ||
    std::same_as<C, command::obtain_queue_lease> || std::same_as<C, command::pause_queue> ||
    std::same_as<C, command::resume_queue>;

template <class C>
inline constexpr bool answers_the_same<command::at<C>> = answers_the_same<C>;

/// The loss of a leader that one store of the suite meets.
struct trial {
  std::string stream;                  ///< that loses its leader
  std::size_t strike_after = 0;        ///< so many answers, while a command is under way; 0: never
  bool asks_again = true;              ///< what was lost
  std::size_t before = cluster::size;  ///< the server that led it; that many: it led on
  bool killed = false;
  bool struck = false;
  std::size_t answers = 0;
  bool chosen = true;
  bool over = false;
  bool blurred = false;  ///< something was asked again that may answer otherwise then
};

/// A command under way.
template <class C>
class repeated : public std::enable_shared_from_this<repeated<C>> {
 public:
  using answer = typename C::result;
  using handler = boost::asio::any_completion_handler<void(error_code, answer)>;

  repeated(nats_store store, std::shared_ptr<trial> in, C const& c, handler h)
      : store_{std::move(store)},
        in_{std::move(in)},
        command_{c},
        handler_{std::move(h)},
        cancelled_{boost::asio::get_associated_cancellation_slot(handler_)} {}

  void ask() {
    auto on_answer = [self = this->shared_from_this()](error_code ec, answer got) {
      self->cancelled_.slot().clear();
      self->answered(ec, std::move(got));
    };
    store_.async_execute(
        command_, boost::asio::bind_cancellation_slot(
                      cancelled_.slot(),
                      boost::asio::bind_executor(store_.get_executor(), std::move(on_answer))));
  }

 private:
  void answered(error_code ec, answer got) {
    bool const lost = ec == errc::outcome_unknown;
    bool const again = ec == errc::store_unavailable || (lost && in_->asks_again);
    if (again && !in_->over && cancelled_.cancelled() == boost::asio::cancellation_type::none) {
      in_->blurred = in_->blurred || (lost && !answers_the_same<C>);
      return ask();
    }
    ++in_->answers;
    post_completion(store_.get_executor(), std::move(handler_), ec, std::move(got));
  }

  nats_store store_;
  std::shared_ptr<trial> in_;
  C command_;
  handler handler_;
  boost::asio::cancellation_state cancelled_;
};

/// The leaders of one cluster, and what becomes of them.
class nemesis {
 public:
  nemesis() : all_{"max_payload: " + std::to_string(nats_engine::max_payload) + "\n"} {}

  [[nodiscard]] weir::nats_address addresses() const { return all_.addresses(); }
  [[nodiscard]] std::string new_prefix() { return "led" + std::to_string(++made_); }
  [[nodiscard]] std::size_t strikes() const noexcept { return strikes_; }
  [[nodiscard]] std::size_t kills() const noexcept { return kills_; }
  [[nodiscard]] std::size_t moved() const noexcept { return moved_; }

  void find(trial& t) { t.before = nats_test::leader_of(all_, t.stream); }

  /// The leader is lost now.
  void strike(trial& t) {
    constexpr std::size_t every = 6;
    t.killed = ++strikes_ % every == 0;
    if (t.killed) {
      ++kills_;
      all_[t.before].kill();
    } else {
      nats_test::stranger{all_[t.before]}.say("$JS.API.STREAM.LEADER.STEPDOWN." + t.stream, {});
    }
    t.struck = true;
  }

  /// Another one leads, all are there again, and the streams, each of which costs them much, go.
  void heal(trial const& t) {
    if (t.before != cluster::size) {
      auto const now = nats_test::leader_of(all_, t.stream, t.killed ? t.before : cluster::size);
      moved_ += now != t.before ? 1U : 0U;
      if (t.killed) all_[t.before].start();
    }
    if (t.answers == 0) return;
    auto const prefix = t.stream.substr(0, t.stream.find('-'));
    try {
      nats_test::stranger who{all_[(t.before + 1) % cluster::size], {}, std::chrono::seconds{2}};
      for (auto const* stream : {"-keys", "-jobs-0"}) {
        (void)who.ask("$JS.API.STREAM.DELETE." + prefix + stream);
      }
    } catch (std::exception const&) {  // then they stay
    }
  }

 private:
  cluster all_;
  std::size_t made_ = 0;
  std::size_t strikes_ = 0;
  std::size_t kills_ = 0;
  std::size_t moved_ = 0;
};

inline constexpr std::string_view not_chosen = "another check is tried";

/// The store, asked again.
class struck_store {
 public:
  using executor_type = nats_store::executor_type;
  using clock_type = nats_store::clock_type;

  struck_store(nats_store store, std::shared_ptr<trial> in, nemesis& by)
      : store_{std::move(store)},
        in_{std::move(in)},
        by_{&by} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }
  template <class Token>
  auto async_run(Token&& token) const {
    return store_.async_run(std::forward<Token>(token));
  }
  void close() const {
    in_->over = true;
    store_.close();
  }

  template <class C, class Handler>
    requires(executes<nats_store, C> && C::repeatable)
  void async_execute(C const& c, Handler&& h) const {
    if (!in_->chosen) throw not_applicable{std::string{not_chosen}};
    auto const after = in_->strike_after;
    bool const now = after != 0 && in_->answers >= after && in_->before == cluster::size;
    if (now) by_->find(*in_);
    std::make_shared<repeated<C>>(store_, in_, c, std::forward<Handler>(h))->ask();
    if (!now) return;
    // When the command is on its way.
    boost::asio::post(get_executor(), [ex = get_executor(), in = in_, by = by_] {
      boost::asio::post(ex, [in, by] { by->strike(*in); });
    });
  }

 private:
  nats_store store_;
  std::shared_ptr<trial> in_;
  nemesis* by_;
};

/// The first store of each check is struck, or every store.
class struck_driver {
 public:
  struct settings {
    std::size_t after = 1;     ///< answers; 0: never
    bool asks_again = true;    ///< what was lost
    bool every_store = false;  ///< a check has several
    std::size_t one_in = 1;    ///< so many checks
  };

  /// @param stream what its name ends with
  struck_driver(nemesis& by, std::string stream, report const& found, settings const& s)
      : by_{by},
        stream_{std::move(stream)},
        found_{found},
        settings_{s} {}

  [[nodiscard]] static capabilities declared() { return nats_driver::declared(); }

  struck_store make(boost::asio::any_io_executor const& ex) {
    settle();
    check_ = found_.findings().size();
    checks_.resize(check_ + 1);
    auto const prefix = by_.new_prefix();
    nats_options o;
    o.prefix = prefix;
    o.replicas = cluster::size;
    o.in_memory = true;
    o.poll_interval = std::chrono::milliseconds{5};
    o.offline_patience = o.connect_timeout = std::chrono::minutes{1};
    o.request_timeout = std::chrono::seconds{1};  // whoever led took what it was asked with it
    o.longest_reconnect_wait = std::chrono::milliseconds{100};
    now_ = std::make_shared<trial>(
        trial{.stream = prefix + stream_, .asks_again = settings_.asks_again});
    now_->chosen = check_ % settings_.one_in == 0;
    if (settings_.every_store || !checks_[check_].struck) now_->strike_after = settings_.after;
    return struck_store{nats_store{ex, by_.addresses(), o}, now_, by_};
  }

  /// Heals the last store's cluster; to be called once more at the end.
  void settle() {
    if (!now_) return;
    auto& c = checks_[check_];
    c.struck = c.struck || now_->struck;
    c.blurred = c.blurred || now_->blurred;
    by_.heal(*std::exchange(now_, nullptr));
  }

  /// Was the leader lost in the middle of this check?
  [[nodiscard]] bool struck(std::size_t check) const { return checks_.at(check).struck; }
  /// Was something asked again in it that may answer otherwise then?
  [[nodiscard]] bool blurred(std::size_t check) const { return checks_.at(check).blurred; }

 private:
  struct seen {
    bool struck = false;
    bool blurred = false;
  };

  nemesis& by_;
  std::string stream_;
  report const& found_;
  settings settings_;
  std::vector<seen> checks_{};
  std::size_t check_ = 0;
  std::shared_ptr<trial> now_{};
};

/// The check that is not struck: it has one command, and looks at how that is answered.
inline constexpr std::string_view too_short = "a handler is never called inline";

/// Holds a noun to its promises, or to one in so many of them, in each kind of time. In told time
/// what fails has failed, unless something was asked again that may answer otherwise then; the
/// suite itself tries again what fails in real time, where a brief lease may be over before there
/// is another leader.
template <class Commands>
void lose_leaders(nemesis& by, std::string const& stream, std::size_t checks,
                  std::size_t one_in = 1) {
  settings s;
  s.concurrent = s.histories = s.real_histories = 0;
  s.patience = std::chrono::minutes{2};
  report found;
  struck_driver driver{by, stream, found, {.one_in = one_in}};
  suite::of<Commands>(driver, found, s);
  driver.settle();

  report judged;
  std::size_t struck = 0;
  std::size_t unclear = 0;
  for (std::size_t i = 0; i != found.findings().size(); ++i) {
    auto f = found.findings()[i];
    if (f.outcome == verdict::failed && driver.blurred(i)) {
      BOOST_TEST_MESSAGE("once more, and nothing is lost: " << f);
      ++unclear;
      report again;
      struck_driver calm{by, stream, again, {.after = 0}};
      s.only = f.promise;
      suite::of<Commands>(calm, again, s);
      calm.settle();
      for (auto const& g : again.findings()) {
        if (g.promise == f.promise && g.time == f.time) f = g;
      }
    }
    // It failed while a leader was lost, and was tried again without that.
    if (f.outcome == verdict::passed && !f.detail.empty()) ++unclear;
    if (f.detail == not_chosen) continue;
    if (f.outcome != verdict::skipped && f.promise != too_short) {
      ++struck;
      BOOST_TEST(driver.struck(i), f.promise << ": no leader was lost");
    }
    judged.add(f);
  }
  BOOST_TEST_MESSAGE(struck << " checks, " << unclear << " of them unclear");
  require_nats(judged);
  BOOST_TEST(struck == checks);
  BOOST_TEST(2 * unclear < checks);
}

/// Holds concurrent histories to an order, in which what was lost may have its place or none.
template <class Commands>
void lose_leaders_among_many(nemesis& by, std::string const& stream) {
  constexpr std::size_t histories = 4;
  settings s;
  s.concurrent = histories;
  s.threads = 1;
  s.patience = std::chrono::minutes{2};
  report found;
  struck_driver driver{by, stream, found, {.after = 100, .asks_again = false, .every_store = true}};
  auto const before = by.strikes();
  suite::concurrency(factory<Commands>{driver}, found, s);
  driver.settle();
  require_nats(found);
  BOOST_TEST(by.strikes() - before == histories);
}

}  // namespace weir::testing

#endif
