// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/plan.hpp"
#include "weir/clock/system.hpp"
#include "weir/id_source.hpp"
#include "weir/parking.hpp"
#include "weir/posting.hpp"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// A store with a known defect, to see that the auditor finds it.
namespace soak {

using namespace weir::command;
using weir::error_code;

namespace {

/// Passes every command on to another engine.
struct passing {
  std::shared_ptr<engine> to;
  bool hangs;
  bool sticks;
  bool stuck = false;
  std::uint64_t passed = 0;

  [[nodiscard]] boost::asio::any_io_executor get_executor() const noexcept {
    return to->get_executor();
  }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return to->shard_count(); }
  void close() { to->close(); }

  template <class C>
  void async_execute(C const& c, handler_of<C> handler) {
    if (sticks) {
      if (stuck) {
        return weir::post_completion(get_executor(), std::move(handler),
                                     make_error_code(weir::errc::store_unavailable),
                                     typename C::result{});
      }
      auto const ex = boost::asio::get_associated_executor(handler, get_executor());
      to->run(c, boost::asio::bind_executor(ex, [this, h = std::move(handler)](
                                                    error_code ec, typename C::result r) mutable {
                stuck = stuck || ec == weir::errc::store_unavailable;
                std::move(h)(ec, std::move(r));
              }));
      return;
    }
    if (hangs && ++passed % 200 == 0) {
      forgotten.push_back(
          weir::park<error_code, typename C::result>(get_executor(), std::move(handler)));
      return;
    }
    to->run(c, std::move(handler));
  }

  std::vector<std::shared_ptr<weir::detail::parked_base>> forgotten{};
};

/// The handler of a command, as one that is called with another outcome.
template <class C, class Change>
handler_of<C> seeing(handler_of<C> handler, boost::asio::any_io_executor const& fallback,
                     Change change) {
  auto const ex = boost::asio::get_associated_executor(handler, fallback);
  return boost::asio::bind_executor(ex, [h = std::move(handler), change = std::move(change)](
                                            error_code ec, typename C::result answer) mutable {
    change(ec, answer);
    std::move(h)(ec, std::move(answer));
  });
}

/// The same, with another answer where there is one.
template <class C, class Change>
handler_of<C> changing(handler_of<C> handler, boost::asio::any_io_executor const& fallback,
                       Change change) {
  return seeing<C>(std::move(handler), fallback,
                   [change = std::move(change)](error_code const& ec, auto& answer) mutable {
                     if (!ec) change(answer);
                   });
}

class spoiled final : public engine_on<passing> {
 public:
  spoiled(std::shared_ptr<engine> to, std::string defect)
      : engine_on<passing>{passing{std::move(to), defect == "hang", defect == "stuck-connection"}},
        defect_{std::move(defect)} {}
  spoiled(spoiled const&) = delete;
  spoiled& operator=(spoiled const&) = delete;
  ~spoiled() override {
    while (defect_ == "clinging" && waiting_ != 0) std::this_thread::sleep_for(10ms);
  }

  using engine_on<passing>::run;

  void run(acquire_permit const& c, handler_of<acquire_permit> h) override {
    auto changed = c;
    if (defect_ == "over-limit" && due(10)) ++changed.limit;
    if (defect_ == "long-tickets") changed.patience = 20 * c.patience;
    pass(changed, std::move(h));
  }
  void run(await_permit const& c, handler_of<await_permit> h) override {
    ++waiting_;
    pass(c, seeing<await_permit>(std::move(h), get_executor(),
                                 [this](error_code const&, auto const&) { --waiting_; }));
  }
  void run(renew_permit const& c, handler_of<renew_permit> h) override {
    if (defect_ == "starved-renewal" && due(5)) return refuse(std::move(h), weir::errc::lease_lost);
    if (is_full()) return refuse(std::move(h), weir::errc::store_full);
    pass(c, std::move(h));
  }
  void run(release_permit const& c, handler_of<release_permit> h) override {
    if (is_full()) return refuse(std::move(h), weir::errc::store_full);
    for (auto n = defect_ == "herd" ? waiting_ : 0; n != 0; --n) look_at(std::string{c.key});
    if (defect_ == "leaked-permit" && due(20)) {
      give(std::move(h), weir::lease_release{.freed = true, .left_line = false});
      // Somebody keeps it alive for ever.
      renew_for_ever(
          std::make_shared<kept>(kept{std::string{c.key}, std::string{c.holder}, c.fence}));
      return;
    }
    if (defect_ == "release-unchecked" && due(5)) release_another(std::string{c.key});
    pass(c, std::move(h));
  }
  void run(acquire_lock const& c, handler_of<acquire_lock> h) override {
    auto changed = c;
    if (defect_ == "early-expiry") changed.ttl = c.ttl / 10;
    pass(changed,
         changing<acquire_lock>(
             std::move(h), get_executor(),
             [this, key = std::string{c.key}, ttl = c.ttl](weir::lock_grant& g) {
               auto& last = last_fence_[key];
               if (defect_ == "shared-lock" && !g.granted && due(5)) {
                 g.granted = true;
                 g.fence = last + 1;
                 g.expires_in = ttl;
               } else if (defect_ == "repeated-fence" && g.granted && last != 0 && due(3)) {
                 g.fence = last;
               } else if (defect_ == "early-expiry" && g.granted) {
                 g.expires_in = ttl;
               } else if (defect_ == "fence-back" && g.granted && last != 0 && due(3)) {
                 g.fence = last - 1'000'000;
               }
               if (g.granted) last = g.fence;
             }));
  }
  void run(release_lock const& c, handler_of<release_lock> h) override {
    auto changed = c;
    bool const is_own = defect_ != "repeated-fence" && defect_ != "fence-back";
    if (!is_own) changed.fence = 0;  // its own would not be known
    pass(changed, std::move(h));
  }
  void run(take const& c, handler_of<take> h) override {
    if (defect_ != "free-tokens") return pass(c, std::move(h));
    pass(c, changing<take>(std::move(h), get_executor(), [this](weir::decision& d) {
           if (!d.allowed && due(3)) d.allowed = true;
         }));
  }
  void run(enqueue_jobs const& c, handler_of<enqueue_jobs> h) override {
    // The engine dies every ten seconds, and loses all that it acknowledged a moment before.
    if (defect_ == "lost-window" && boot_time() / 1'000'000 % 10'000 < 300) {
      enqueue_jobs::result all;
      all.resize(c.jobs.size());
      return give(std::move(h), std::move(all));
    }
    if (defect_ == "undrained") {
      auto const ex = boost::asio::get_associated_executor(h, get_executor());
      return pass(c, handler_of<enqueue_jobs>{boost::asio::bind_executor(
                         ex, [this, h = std::move(h)](error_code ec, auto all) mutable {
                           full_ =
                               full_ || ec == weir::errc::store_full || ec == weir::errc::disk_full;
                           std::move(h)(ec, std::move(all));
                         })});
    }
    if (defect_ == "hoard" && hoard_.empty()) {
      hoard_.emplace_back();
      read_all(std::make_shared<listing>(listing{std::string{c.queue}, {}}));
    }
    if (defect_ == "crossed-batches" && c.jobs.size() > 1) {
      if (std::exchange(crosses_, true)) return refuse(std::move(h), weir::errc::store_unavailable);
      return pass(
          c, seeing<enqueue_jobs>(std::move(h), get_executor(),
                                  [this](error_code const&, auto const&) { crosses_ = false; }));
    }
    if (defect_ == "lost-enqueue" && due(50)) {
      enqueue_jobs::result all;
      all.resize(c.jobs.size());
      return give(std::move(h), std::move(all));
    }
    if (defect_ == "leaked-key" && c.jobs.size() == 1 && !c.jobs[0].unique_key.empty()) {
      auto& earlier = had_key_[std::string{c.jobs[0].unique_key}];
      auto const now = boot_time();
      if (earlier.second != 0 && now > earlier.second + std::chrono::nanoseconds{5s}.count()) {
        enqueue_jobs::result all;
        all.push_back({weir::enqueue_outcome::duplicate, earlier.first});
        earlier.second = 0;
        return give(std::move(h), std::move(all));
      }
      return pass(c, changing<enqueue_jobs>(std::move(h), get_executor(),
                                            [&earlier, id = c.jobs[0].id, now](auto const& all) {
                                              if (all.front().outcome ==
                                                  weir::enqueue_outcome::enqueued) {
                                                earlier = {id, now};
                                              }
                                            }));
    }
    pass(c, std::move(h));
  }
  void run(scan_visible_queues const& c, handler_of<scan_visible_queues> h) override {
    if (defect_ != "hidden-queue") return pass(c, std::move(h));
    pass(c, changing<scan_visible_queues>(
                std::move(h), get_executor(), [](scan_visible_queues::result& found) {
                  std::erase_if(found.queues,
                                [](auto const& q) { return q == "plain-2" || q == "emptied"; });
                }));
  }
  void run(dequeue_jobs const& c, handler_of<dequeue_jobs> h) override {
    if (defect_ == "large-answers") {
      return pass(c, seeing<dequeue_jobs>(std::move(h), get_executor(),
                                          [](error_code& ec, weir::dequeued& d) {
                                            std::size_t bytes = 0;
                                            for (auto const& j : d.jobs) bytes += j.payload.size();
                                            if (bytes < 2 << 20U) return;
                                            ec = weir::errc::store_unavailable;
                                            d = {};
                                          }));
    }
    if (defect_ == "slow-beside-snapshot") {  // as if it went through all that is dead
      return later(std::chrono::microseconds{2 * ++asked_}, c, std::move(h));
    }
    if (defect_ == "one-by-one") {
      next_ = std::max(next_, boot_time()) + std::chrono::nanoseconds{5ms}.count();
      return later(std::chrono::nanoseconds{next_ - boot_time()}, c, std::move(h));
    }
    pass(c, std::move(h));
  }
  void run(complete_jobs const& c, handler_of<complete_jobs> h) override {
    if (is_full()) return refuse(std::move(h), weir::errc::store_full);
    if (defect_ == "double-run" && due(20)) {
      complete_jobs::result all;
      all.resize(c.jobs.size());
      return give(std::move(h), std::move(all));
    }
    pass(c, std::move(h));
  }
  void run(relay_job const& c, handler_of<relay_job> h) override {
    if (c.jobs.empty() || !due(5)) return pass(c, std::move(h));
    auto changed = c;
    auto job = c.jobs.front();
    if (defect_ == "lost-tick") {
      changed.jobs = {};
      changed.to = {};
    } else if (defect_ == "doubled-tick") {
      job.id = weir::id_source{}.job();
      store.async_execute(enqueue_jobs{.queue = c.to, .jobs = {&job, 1}}, [](auto&&...) {});
    }
    pass(changed, std::move(h));
  }
  void run(extend_lease const& c, handler_of<extend_lease> h) override {
    auto forget = [&](auto changed) {
      if constexpr (requires { changed.checkpoint; }) {
        if (defect_ == "lost-checkpoint" && !changed.checkpoint.empty() && due(3)) {
          changed.checkpoint = {};
        }
      }
      return changed;
    };
    pass(forget(c), std::move(h));
  }
  void run(snooze_job const& c, handler_of<snooze_job> h) override {
    auto changed = c;
    if (defect_ == "claimed-to-be-refused") changed.delay = {};
    pass(changed, std::move(h));
  }
  void run(requeue_job const& c, handler_of<requeue_job> h) override {
    auto changed = c;
    if (defect_ == "stuck-job" && due(3)) changed.delay = std::chrono::hours{1};
    pass(changed, std::move(h));
  }

 private:
  struct listing {
    std::string queue, cursor;
  };
  struct kept {
    std::string key, holder;
    std::uint64_t fence;
  };

  /// Is it the n-th time, again?
  bool due(std::uint64_t n) { return ++asked_ % n == 0; }

  static std::int64_t boot_time() {
    return weir::system_clock::steady_now().time_since_epoch().count();
  }

  template <class C>
  void pass(C const& c, handler_of<C> h) {
    store.async_execute(c, std::move(h));
  }
  void later(std::chrono::nanoseconds wait, dequeue_jobs const& c, handler_of<dequeue_jobs> h) {
    auto const timer = std::make_shared<boost::asio::steady_timer>(get_executor(), wait);
    timer->async_wait([this, timer, queue = std::string{c.queue}, holder = std::string{c.holder}, c,
                       h = std::move(h)](error_code) mutable {
      auto again = c;
      again.queue = queue;
      again.holder = holder;
      pass(again, std::move(h));
    });
  }
  template <class Handler, class Answer>
  void give(Handler h, Answer answer) {
    weir::post_completion(get_executor(), std::move(h), error_code{}, std::move(answer));
  }
  template <class R>
  void refuse(boost::asio::any_completion_handler<void(error_code, R)> h, error_code why) {
    weir::post_completion(get_executor(), std::move(h), std::move(why), R{});
  }
  /// It lets nothing go on that would make room.
  [[nodiscard]] bool is_full() const noexcept { return full_; }
  /// Keeps all jobs that are there, a page after the other.
  void read_all(std::shared_ptr<listing> at) {
    store.async_execute(list_jobs{.queue = at->queue, .limit = 500, .cursor = at->cursor},
                        [this, at](error_code ec, weir::job_page page) {
                          hoard_.push_back(std::move(page.jobs));
                          at->cursor = std::move(page.cursor);
                          if (!ec && !at->cursor.empty()) read_all(at);
                        });
  }
  void look_at(std::string key) {
    auto const name = std::make_shared<std::string const>(std::move(key));
    store.async_execute(inspect_permits{.key = *name, .limit = 1},
                        [name](error_code, weir::permit_census const&) {});
  }
  void release_another(std::string key) {
    auto const name = std::make_shared<std::string const>(std::move(key));
    auto then = [this, name](error_code ec, weir::permit_census const& census) {
      if (ec || census.holders.empty()) return;
      auto const victim = std::make_shared<weir::permit_info const>(census.holders.front());
      store.async_execute(
          release_permit{.key = *name, .holder = victim->holder, .fence = victim->fence},
          [name, victim](error_code, weir::lease_release) {});
    };
    store.async_execute(inspect_permits{.key = *name, .limit = 1}, std::move(then));
  }
  void renew_for_ever(std::shared_ptr<kept const> k) {
    store.async_execute(
        renew_permit{
            .key = k->key, .holder = k->holder, .fence = k->fence, .ttl = std::chrono::hours{1}},
        [k](error_code, weir::lease_renewal) {});
  }

  std::string defect_;
  bool full_ = false;
  bool crosses_ = false;
  std::size_t waiting_ = 0;
  std::int64_t next_ = 0;
  std::uint64_t asked_ = 0;
  std::vector<std::vector<weir::job>> hoard_;
  std::map<std::string, std::uint64_t> last_fence_;
  std::map<std::string, std::pair<weir::job_id, std::int64_t>> had_key_;
};

}  // namespace

std::vector<known_defect> const& defects() {
  static std::vector<known_defect> const all{
      {"over-limit", "R1", "a permit is granted above the limit"},
      {"release-unchecked", "R1", "a release frees the permit of another holder"},
      {"starved-renewal", "R1", "who renews in time loses its permit", "67"},
      {"shared-lock", "R2", "a lock is granted to a second holder"},
      {"early-expiry", "R2", "a lock ends before its time", "63"},
      {"leaked-key", "R2", "an ended job keeps its unique key"},
      {"free-tokens", "R3", "a take beyond the quota is granted"},
      {"lost-enqueue", "R4", "an enqueue is acknowledged and not kept"},
      {"lost-window", "R4", "what was acknowledged right before a failure is lost", "58"},
      {"double-run", "R4", "a completed job is run again"},
      {"lost-tick", "R4", "a schedule's tick is booked and its job is not enqueued"},
      {"doubled-tick", "R4", "a schedule's tick has two jobs"},
      {"lost-checkpoint", "F104", "a checkpoint is acknowledged and not kept", "104"},
      {"repeated-fence", "R5", "a lock is granted under the fence of the grant before", "47"},
      {"fence-back", "R5", "a lock is granted under a fence that is lower than before", "64"},
      {"leaked-permit", "R6", "a permit is never free again"},
      {"stuck-job", "R6", "a failed job waits for an hour"},
      {"hidden-queue", "R6", "a queue with jobs is not found by scans", "57"},
      {"stuck-connection", "R6", "who was refused once is never answered again", "70"},
      {"hang", "hang", "a command is never answered"},
      {"clinging", "R7", "the end of a process waits for what nobody waits for any more"},
      {"leak", "R8", "memory grows with every operation"},
      {"undrained", "", "a full engine cannot be drained", "61", "full"},
      {"claimed-to-be-refused", "", "a limit refuses over and over", "73", "limits"},
      {"herd", "", "a release wakes all who wait", "68", "waiters"},
      {"long-tickets", "", "who has died waiting is waited for", "10", "killed-waiters"},
      {"large-answers", "", "an answer that is large ends the connection", "60", "payloads"},
      {"crossed-batches", "", "two batches end each other", "72", "batches"},
      {"one-by-one", "", "one queue is claimed from after the other", "74", "queues"},
      {"hoard", "", "a process has all jobs in memory", "81", "newcomer"},
      {"slow-beside-snapshot", "", "a claim goes through all that is dead", "79", "snapshot"},
  };
  return all;
}

store open_store(boost::asio::any_io_executor const& ex, opening const& o,
                 std::string const& defect) {
  std::shared_ptr<engine> e;
  if (o.url.starts_with("sqlite:")) e = open_sqlite(ex, o);
  if (o.url.starts_with("redis")) e = open_redis(ex, o);
  if (o.url.starts_with("postgres")) e = open_postgres(ex, o);
  if (o.url.starts_with("nats")) e = open_nats(ex, o);
  if (!e) throw std::runtime_error{"no engine is built in for " + o.url};
  if (!defect.empty()) e = std::make_shared<spoiled>(std::move(e), defect);
  return store{std::move(e)};
}

}  // namespace soak
