// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_POOL_HPP
#define WEIR_STORE_POSTGRES_POOL_HPP

#include "weir/detail/explained.hpp"
#include "weir/detail/outage.hpp"
#include "weir/detail/reconnect_pace.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/gathering.hpp"
#include "weir/store/postgres/link.hpp"
#include "weir/store/postgres/options.hpp"
#include "weir/store/postgres/request.hpp"
#include "weir/store/postgres/rows.hpp"
#include "weir/store/postgres/socket.hpp"
#include "weir/store/postgres/turns.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// What is shared by the handles of a store: its connections, and the commands that wait for one.
///
/// One of several connections is for commands that were refused because somebody has a lock, such
/// as an application's transaction, so that nothing else stands behind them (F50, F71). Connections
/// are made when there is more to do than those that there are can take at once; nothing keeps an
/// executor busy while there is nothing to do. All of it happens on one strand.
///
/// Commands that may be made as one (postgres_gathering) wait until what is ready to run has run,
/// so that those that are issued together go together, and while enough calls of their kind are
/// under way. None waits for a time to pass, unless all those calls are held up.
class postgres_pool final : public postgres_link_owner, private postgres_gatherer {
 public:
  postgres_pool(boost::asio::any_io_executor const& executor, std::string conninfo,
                postgres_options const& options)
      : strand_{boost::asio::make_strand(executor)},
        conninfo_{std::move(conninfo)},
        schema_{options.schema},
        options_{bounded(options)},
        retry_{strand_},
        prod_{strand_},
        again_{strand_},
        tidied_{retry_.now()},
        state_{log_name(conninfo_)} {
    options_.schema = schema_;
    options_.listen_conninfo = {};  // is not copied here
    lanes_[1].waits = true;
  }

  [[nodiscard]] postgres_options const& options() const noexcept { return options_; }
  [[nodiscard]] std::string const& conninfo() const noexcept { return conninfo_; }
  [[nodiscard]] std::string const& schema() const noexcept { return schema_; }
  [[nodiscard]] postgres_strand const& strand() const noexcept { return strand_; }
  /// Whether the store can be used. Of any thread.
  [[nodiscard]] outage& state() noexcept { return state_; }
  /// How often all of its connections were given up, to be made anew. On the strand.
  [[nodiscard]] std::uint64_t renewals() const noexcept { return renewals_; }

  /// From any thread.
  void submit(std::unique_ptr<postgres_request> r) {
    dispatch_task(strand_,
                  [self = self(), r = std::move(r)]() mutable { self->admit(std::move(r)); });
  }

  /// From any thread. What commands at told times leave is not tidied by the server's clock.
  void tidy_no_more() noexcept { told_ = true; }

  /// Nobody has the store any more: nothing is done but what was asked for. On the strand.
  void rest() {
    rests_ = true;
    again_.stop();
  }

  /// From any thread. What is under way is still answered.
  void close() {
    dispatch_task(strand_, [self = self()] {
      self->closed_ = true;
      self->retry_.stop();
      self->prod_.stop();
      self->again_.stop();
      for (auto& each : self->lanes_) self->fail(each, boost::asio::error::operation_aborted);
      self->let_go();
    });
  }

 private:
  /// Commands of one kind, and the connections that they may take. Of those that wait for locks the
  /// next one is pending, and the rest has its turn later.
  struct lane {
    lane() = default;
    std::deque<std::unique_ptr<postgres_request>> pending;
    bool waits = false;
    bool opening = false;
    std::uint32_t links = 0;
  };

  /// Makes room; nobody waits for it.
  class tidying final : public postgres_request {
   public:
    explicit tidying(std::weak_ptr<postgres_pool> pool)
        : postgres_request{call()},
          pool_{std::move(pool)} {}
    [[nodiscard]] bool waiting() const noexcept override { return true; }
    void finish(error_code ec, postgres_rows const& r) noexcept override {
      auto const pool = pool_.lock();
      if (!pool) return;
      pool->tidying_ = false;
      try {
        if (!ec) pool->tidied(r.as<std::uint32_t>(0, 0));
      } catch (...) {  // no memory, or no answer to this: commands have it tidied later
      }
    }

   private:
    static postgres_call call() {
      postgres_call out{"tidy"};
      out.add(tidied_at_once).add(std::optional<time_point>{});
      return out;
    }

    std::weak_ptr<postgres_pool> pool_;
  };

  std::shared_ptr<postgres_pool> self() {
    return std::static_pointer_cast<postgres_pool>(shared_from_this());
  }

  void admit(std::unique_ptr<postgres_request> r) {
    ++asked_;
    if (closed_) return r->finish(errc::closed, {});
    if (!valid_schema(schema_)) return r->finish(postgres_bad_schema(), {});
    if (r->call().joinable()) {
      if (gathered_.size() >= options_.max_pending) return r->finish(errc::store_full, {});
      gathered_.add(std::move(r));
      return gather();
    }
    auto& to = lanes_[0];
    if (to.pending.size() >= options_.max_pending) return r->finish(errc::store_full, {});
    to.pending.push_back(std::move(r));
    pump();
  }

  [[nodiscard]] lane& lane_of(postgres_call const& c) noexcept {
    return lanes_[c.may_wait() && options_.connections > 1 ? 1 : 0];
  }

  /// Sends what was gathered, once those have run who are about to add to it. Not by way of the
  /// strand's own queue: there it would come before what they are about to submit.
  void gather() {
    if (std::exchange(gathering_, true)) return;
    post_task(strand_.get_inner_executor(), [self = self()] {
      dispatch_task(self->strand_, [self] {
        self->gathering_ = false;
        self->pump();
      });
    });
  }

  void repeats(std::unique_ptr<postgres_request> r) override {
    auto& to = lane_of(r->call());
    repeat_in(to, std::move(r));
  }
  void held_up(std::unique_ptr<postgres_request> r) override { repeat_in(lanes_[1], std::move(r)); }
  void repeat_in(lane& to, std::unique_ptr<postgres_request> r) {
    if (closed_) return r->finish(boost::asio::error::operation_aborted, {});
    r->stays();
    if (to.waits && turns_.size() >= options_.max_pending) return r->finish(errc::store_full, {});
    try {
      if (to.waits) {
        if (!r->held_up_at) r->held_up_at = retry_.now();
        turns_.add(r);
      } else {
        to.pending.push_back(std::move(r));
      }
    } catch (std::bad_alloc const&) {
      r->finish(make_error_code(boost::system::errc::not_enough_memory), {});
    }
  }

  void refused(std::string const& kind,
               std::vector<std::unique_ptr<postgres_request>> parts) override {
    bool const in_line = parts.size() > 1 && parts.front()->call().hurries() && !closed_;
    if (in_line) return gathered_.add_singly(kind, std::move(parts));
    for (auto& each : parts) repeats(std::move(each));
  }

  void ended(std::string const& kind) noexcept override { gathered_.ended(kind); }

  void pump() {
    if (std::exchange(pumping_, true)) return;  // a link that ended meanwhile comes back here
    try {
      for (auto& each : lanes_) pump(each);
      if (!gathering_) pump_gathered();
    } catch (...) {  // no memory: the next one goes on
      pumping_ = false;
      throw;
    }
    pumping_ = false;
    if (closed_) let_go();
  }

  /// Has the next one that waits for a lock wait to be sent, if there is any.
  void have_next(lane& of) {
    auto r = turns_.take(retry_.now(), longest_wait, [](postgres_request& late) {
      late.finish(explained(errc::store_unavailable, "somebody has what it needs locked"), {});
    });
    if (r) of.pending.push_back(std::move(r));
  }

  void pump(lane& of) {
    for (;;) {
      if (of.waits && of.pending.empty()) have_next(of);
      if (of.pending.empty()) break;
      auto& first = of.pending.front();
      if (!first->waiting()) {
        of.pending.pop_front();
        continue;
      }
      auto const to = best(of);
      if (!to) break;
      bool const idle = to->load() == 0;
      auto r = std::move(first);
      of.pending.pop_front();
      if (!r->leaves()) continue;
      if (!to->send(r)) {
        r->stays();
        of.pending.push_front(std::move(r));
        continue;
      }
      tidy(*to);
      if (!idle) open(of);  // more to do than there are connections
    }
    if (!of.pending.empty()) open(of);
  }

  void pump_gathered() {
    auto& of = lanes_[0];
    while (gathered_.ready()) {
      auto const to = best(of, calls_at_once);
      if (!to) break;
      bool const idle = to->load() == 0;
      auto r = gathered_.take(*this);
      if (!r) break;
      if (!to->send(r)) {
        gathered_.give_back(std::move(r));
        continue;
      }
      tidy(*to);
      if (!idle) open(of);
    }
    if (gathered_.ready()) open(of);
    prod_later();
  }

  /// Looks after those that wait for others of their kind, if they still do then.
  void prod_later() {
    if (gathered_.size() == 0 || closed_) {
      prod_.stop();
      prodding_ = false;
      return;
    }
    if (std::exchange(prodding_, true)) return;
    prod_.set(saturating_add(prod_.now(), prod_interval), [self = self()] {
      self->prodding_ = false;
      self->gathered_.prod();
      self->pump();
    });
  }

  /// The connection with the least to do, if it has room.
  ///
  /// @param joined how many calls that are several commands may be under way on it
  [[nodiscard]] std::shared_ptr<postgres_link> best(
      lane const& of, std::size_t joined = std::numeric_limits<std::size_t>::max()) const {
    std::shared_ptr<postgres_link> out;
    for (auto const& l : links_) {
      auto const most = of.waits ? std::min(options_.pipeline, waiting_at_once) : options_.pipeline;
      if (!l->ready() || l->waits() != of.waits || l->load() >= most) continue;
      if (l->joined() >= joined) continue;
      if (!out || l->load() < out->load()) out = l;
    }
    return out;
  }

  void open(lane& of) {
    auto const most = of.waits ? 1U : std::max(options_.connections - 1, 1U);
    if (of.opening || of.links >= most || closed_) return;
    if (retry_.now() < next_attempt_) {
      if (!retrying_) {
        retrying_ = true;
        retry_.set(next_attempt_, [self = self()] {
          self->retrying_ = false;
          self->pump();
        });
      }
      return;
    }
    of.opening = true;
    ++of.links;
    auto const l = std::make_shared<postgres_link>(*this, strand_, schema_, options_, of.waits);
    links_.push_back(l);
    l->open(conninfo_);
  }

  void connected(bool waits) override {
    lanes_[waits ? 1 : 0].opening = false;
    pace_.reset();
    next_attempt_ = {};
    state_.recovered();
  }

  /// All connections are made anew, wherever the host's name leads by then: those that there are
  /// may lead to a server that is none any more for writes, and has been replaced (F70).
  void renew() override {
    ++renewals_;
    next_attempt_ = std::max(next_attempt_, saturating_add(retry_.now(), renewal_interval));
    auto const all = links_;
    for (auto const& l : all) {
      if (l->ready()) l->retire();
    }
  }

  void progressed() override { pump(); }

  void ended(error_code why, bool connected) override {
    // What is closed on purpose, or one of several, is no outage.
    bool const expected = closed_ || (connected && explanation_of(why).empty());
    auto const works = [](auto const& l) { return l->ready(); };
    if (!expected && !std::any_of(links_.begin(), links_.end(), works)) why = fails(why);
    if (why == errc::outcome_unknown) why = explained(errc::store_unavailable, explanation_of(why));
    std::array<std::uint32_t, 2> left{};
    std::erase_if(links_, [](auto const& l) { return l->over(); });
    for (auto const& l : links_) ++left[l->waits() ? 1 : 0];
    for (std::size_t i = 0; i != lanes_.size(); ++i) {
      auto& of = lanes_[i];
      if (of.links == left[i]) continue;
      of.links = left[i];
      if (connected) continue;
      of.opening = false;
      next_attempt_ = saturating_add(retry_.now(), pace_.next());
      if (!best_exists(of)) fail(of, why);
    }
    if (!closed_) pump();
  }

  /// A connection ended, or there was none to be had: what waits for one was not executed.
  error_code fails(error_code why) noexcept {
    if (why != errc::outcome_unknown) return state_.failed(why);
    auto const said = explanation_of(why);
    return state_.failed(errc::store_unavailable, said.empty() ? "the connection was lost" : said);
  }

  /// Names a store in the log: by the place, and never by the password.
  static std::string log_name(std::string const& conninfo) {
    postgres_hosts const where{conninfo};
    auto const host = where.of("host");
    auto const database = where.of("dbname");
    return "PostgreSQL store" + (host.empty() ? "" : " at " + host) +
           (database.empty() ? "" : ", database " + database);
  }

  [[nodiscard]] bool best_exists(lane const& of) const noexcept {
    return std::any_of(links_.begin(), links_.end(),
                       [&](auto const& l) { return l->ready() && l->waits() == of.waits; });
  }

  void fail(lane& of, error_code ec) {
    auto all = std::exchange(of.pending, {});
    for (auto const& r : all) r->finish(ec, {});
    if (of.waits) {
      for (auto const& r : turns_.take_all()) r->finish(ec, {});
    } else {
      gathered_.fail(ec);
    }
  }

  /// By time, and by what may have been made since: a store that is left alone after a flood has
  /// most of it removed by then.
  void tidy(postgres_link& on) {
    if (asked_ >= stride_ || retry_.now() - tidied_ >= options_.tidy_interval) tidy_by(on);
  }

  void tidy_by(postgres_link& on) {
    if (told_.load(std::memory_order_relaxed) || tidying_ || on.load() >= options_.pipeline) return;
    tidied_ = retry_.now();
    asked_ = 0;
    std::unique_ptr<postgres_request> r = std::make_unique<tidying>(self());
    tidying_ = true;  // unless sending it ends it
    if (!on.send(r)) tidying_ = false;
  }

  /// @param found how much there was to do
  void tidied(std::uint32_t found) {
    constexpr std::uint64_t widest = 64 * tidied_at_once;
    stride_ = found >= tidied_at_once / 2 ? tidied_at_once : std::min(2 * stride_, widest);
    if (found >= tidied_at_once) tidy_again();
  }

  /// Goes on while there is more, and leaves the server twice as long for others as it took: so
  /// what time ends is removed as fast as it is made (F78).
  void tidy_again() {
    if (closed_ || rests_) return;
    auto const now = retry_.now();
    auto const pause = std::max(2 * (now - tidied_), shortest_pause);
    again_.set(saturating_add(now, pause), [self = self()] {
      if (auto const on = self->best(self->lanes_[0])) self->tidy_by(*on);
    });
  }

  /// Closes what has nothing to do.
  void let_go() {
    auto const all = links_;
    for (auto const& l : all) {
      if (l->load() == 0) l->close();
    }
  }

  postgres_strand strand_;
  std::string const conninfo_;
  std::string const schema_;
  postgres_options options_;
  static constexpr std::size_t calls_at_once = 2;
  /// Where commands wait for locks: one that is sent waits for those before it, a second each.
  static constexpr std::uint32_t waiting_at_once = 2;
  /// A command that was refused because of a lock is not sent again after this, unless nothing is
  /// known of that lock. On the server it waits for a second.
  static constexpr duration longest_wait = std::chrono::seconds{2};
  // How long nothing is connected to after all connections were given up.
  static constexpr duration renewal_interval = std::chrono::milliseconds{50};
  static constexpr duration prod_interval = std::chrono::milliseconds{20};
  // Between two times that it tidies, so that no server can keep it at that.
  static constexpr duration shortest_pause = std::chrono::milliseconds{10};
  static constexpr std::uint32_t tidied_at_once = 1000;

  postgres_gathering gathered_;  // outlives what is in the lanes, some of which it is told of
  postgres_turns turns_;
  std::array<lane, 2> lanes_;
  std::vector<std::shared_ptr<postgres_link>> links_;
  reconnect_pace pace_{std::chrono::milliseconds{20}, std::chrono::seconds{2}};
  postgres_timer retry_;
  postgres_timer prod_;
  postgres_timer again_;                   // to go on tidying
  steady_time tidied_;                     // when it was begun last
  std::uint64_t asked_ = 0;                // commands, since then
  std::uint64_t stride_ = tidied_at_once;  // after so many it is begun again
  steady_time next_attempt_{};
  std::uint64_t renewals_ = 0;
  std::atomic<bool> told_{false};
  outage state_;
  bool retrying_ = false;
  bool pumping_ = false;
  bool gathering_ = false;
  bool prodding_ = false;
  bool tidying_ = false;
  bool rests_ = false;
  bool closed_ = false;
};

}  // namespace weir::detail

#endif
