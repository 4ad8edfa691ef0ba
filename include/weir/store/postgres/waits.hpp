// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_WAITS_HPP
#define WEIR_STORE_POSTGRES_WAITS_HPP

#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"
#include "weir/detail/hint_line.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/rule/shards.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/listener.hpp"
#include "weir/store/postgres/options.hpp"
#include "weir/store/postgres/pool.hpp"
#include "weir/store/postgres/request.hpp"
#include "weir/store/postgres/rows.hpp"
#include "weir/store/postgres/socket.hpp"
#include "weir/time.hpp"

#include <boost/algorithm/hex.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

// Waiting for hints. Who waits asks the server again and again, at the poll interval. When the
// listener hears of it, the first waiter is woken at once, and the server is asked only for those
// that remain. So a lost notification delays, and strands nobody.
namespace weir::detail {

class postgres_watch;

/// Who has watches. Watches do not keep it, or what they have asked would keep itself.
class postgres_watch_owner : public postgres_audience {
 public:
  [[nodiscard]] virtual postgres_pool& pool() noexcept = 0;
  /// It knows now what it is told of.
  virtual void named(postgres_watch const& watch) = 0;
  /// Nobody waits in it any more.
  virtual void left(postgres_watch const& watch) = 0;
};

/// Those who wait for one thing, a shard's jobs or a holder's turn. Lives as long as it waits for
/// an answer, or for the time to ask again.
class postgres_watch : public std::enable_shared_from_this<postgres_watch> {
 public:
  /// @param number of its owner's
  postgres_watch(std::weak_ptr<postgres_watch_owner> owner, postgres_strand const& strand,
                 postgres_call call, std::uint64_t number)
      : owner_{std::move(owner)},
        question_{std::move(call)},
        sleep_{strand},
        number_{number} {}

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  /// The name under which news of it come; empty: the server has not said it yet.
  [[nodiscard]] std::string const& topic() const noexcept { return topic_; }

  void add(hint_waiter op) {
    waiters_.add(std::move(op));
    look();
  }

  /// Asks now, unless it is asking; then once more afterwards.
  void look() {
    if (!wanted()) return;
    if (asking_) {
      again_ = true;
      return;
    }
    auto const owner = owner_.lock();
    if (!owner) {  // nor the store: they are told that it was aborted
      (void)waiters_.take();
      return;
    }
    sleep_.stop();
    asking_ = true;
    again_ = false;
    owner->pool().submit(std::make_unique<question>(question_, shared_from_this()));
  }

  /// There is news. Who waits may as well ask for themselves at once, which saves a look.
  void hear() {
    if (!topic_.empty()) waiters_.wake_one();
    look();
  }

  /// Does anybody still wait? If not, it lets go of the time.
  [[nodiscard]] bool wanted() {
    waiters_.drop_ended();
    if (waiters_.empty()) sleep_.stop();
    return !waiters_.empty();
  }

  void fail(error_code ec) noexcept {
    waiters_.wake_all(ec);
    sleep_.stop();
    try {
      if (auto const owner = owner_.lock()) owner->left(*this);
    } catch (std::bad_alloc const&) {  // the next one that leaves settles it
    }
  }

 private:
  class question final : public postgres_request {
   public:
    question(postgres_call call, std::shared_ptr<postgres_watch> watch)
        : postgres_request{std::move(call)},
          watch_{std::move(watch)} {}

    [[nodiscard]] bool waiting() const noexcept override { return watch_->waiters_.any_waits(); }
    void finish(error_code ec, postgres_rows const& rows) noexcept override {
      watch_->asking_ = false;
      if (ec) return watch_->fail(ec);
      try {
        watch_->answered(rows);
      } catch (postgres_malformed const&) {
        watch_->fail(errc::store_corrupt);
      } catch (...) {  // no memory
        watch_->fail(make_error_code(boost::system::errc::not_enough_memory));
      }
    }

   private:
    std::shared_ptr<postgres_watch> watch_;
  };

  /// Each look that finds something wakes one of those who wait, so that it is no herd.
  void answered(postgres_rows const& rows) {
    auto const owner = owner_.lock();
    if (!owner) {
      (void)waiters_.take();
      return;
    }
    if (topic_.empty()) {
      topic_ = rows.text(0, 2);
      owner->named(*this);
    }
    bool const due = rows.yes(0, 0);
    if (due) waiters_.wake_one();
    if (!wanted()) return owner->left(*this);
    if (again_) return look();
    auto until = owner->pool().options().poll_interval;
    auto const in = due || rows.null(0, 1) ? until : rows.span(0, 1);
    if (in > duration::zero()) {
      until = std::clamp(in, std::min(least_sleep, until), until);
      pause_ = least_sleep;
    } else {
      // Others are about to commit something. It is looked for again soon, and less and less often:
      // a stranger may have the lock for ever (F94).
      until = std::min(pause_, until);
      pause_ = std::min(2 * pause_, longest_pause);
    }
    sleep_.set(saturating_add(sleep_.now(), until),
               [self = shared_from_this(), owner] { self->look(); });
  }

  // What is due may be found a moment later than the clock says.
  static constexpr duration least_sleep = std::chrono::milliseconds{1};
  static constexpr duration longest_pause = std::chrono::milliseconds{256};

  std::weak_ptr<postgres_watch_owner> owner_;
  postgres_call question_;
  postgres_timer sleep_;
  std::string topic_;
  std::uint64_t const number_;
  hint_line waiters_;
  duration pause_ = least_sleep;
  bool asking_ = false;
  bool again_ = false;
};

/// Who waits, and the listener for them. On the pool's strand.
class postgres_waits final : public postgres_watch_owner {
 public:
  postgres_waits(std::shared_ptr<postgres_pool> pool, std::string listen_at)
      : pool_{std::move(pool)},
        listener_{*this, pool_->strand(), std::move(listen_at), pool_->schema(), pool_->options()},
        linger_{pool_->strand()} {}

  /// From any thread.
  template <class C>
  void wait(boost::asio::any_io_executor const& executor,
            boost::asio::any_completion_handler<void(error_code, hint)> handler, C const& c) {
    constexpr bool for_cancel = std::is_same_v<C, command::await_cancel>;
    std::uint64_t number = no_number;
    if constexpr (std::is_same_v<C, command::await_jobs>) {
      number = rule::scan_number(c.shard, c.schedules);
    } else if constexpr (!for_cancel) {
      number = last_number_.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    auto op = park<error_code, hint>(
        executor, std::move(handler), [weak = self_weakly(), number]() noexcept {
          try {
            if (auto const self = weak.lock())
              post_task(self->pool_->strand(), [self, number] { self->look_after(number); });
          } catch (...) {  // then the next look notices
          }
        });
    if (!op->waiting()) return;  // its handler is gone, and with it what the command views
    if constexpr (for_cancel) {
      dispatch_task(pool_->strand(), [self = self_weakly().lock(), topic = cancelled(c.holder),
                                      op = std::move(op)] { self->add(topic, op); });
    } else {
      dispatch_task(pool_->strand(), [self = self_weakly().lock(), call = call(c), number,
                                      op = std::move(op)]() mutable {
        self->add(std::move(call), number, std::move(op));
      });
    }
  }

  /// From any thread.
  void close() {
    dispatch_task(pool_->strand(), [self = self_weakly().lock()] { self->end(errc::closed); });
  }

  /// Ends what waits, once no handle of the store is left: whoever listens for it keeps it. Posted,
  /// so that it comes after the waits of the handles that there were.
  static void forsake(std::shared_ptr<postgres_waits> const& all) noexcept try {
    post_task(all->pool_->strand(), [all] { all->end(boost::asio::error::operation_aborted); });
  } catch (...) {  // no memory: they go on waiting
  }

 private:
  void end(error_code why) {
    closed_ = true;
    for (auto const& w : all()) w->fail(why);
    cancels_.wake_all(why);
    linger_.stop();
    listener_.close();
    pool_->rest();
  }

  [[nodiscard]] std::weak_ptr<postgres_waits> self_weakly() {
    return std::static_pointer_cast<postgres_waits>(shared_from_this());
  }

  [[nodiscard]] postgres_call call(command::await_jobs const& c) const {
    postgres_call out{"await_jobs"};
    out.add(rule::scan_number(c.shard, c.schedules)).add(pool_->options().poll_interval);
    out.add(std::optional<time_point>{});
    return out;
  }
  [[nodiscard]] postgres_call call(command::await_permit const& c) const {
    postgres_call out{"await_permits"};
    out.add_each<std::string_view>(std::array{c.key}, std::identity{});
    out.add_each<std::string_view>(std::array{c.holder}, std::identity{});
    out.add(std::optional<time_point>{});
    out.let_join(1, postgres_division::in_turn);
    return out;
  }

  void add(postgres_call call, std::uint64_t number, hint_waiter op) {
    if (closed_) {
      op->resume(errc::closed, hint{});
      return;
    }
    auto watch = watch_of(number);
    if (!watch) {
      forget(number);
      watch =
          std::make_shared<postgres_watch>(self_weakly(), pool_->strand(), std::move(call), number);
      watches_.insert_or_assign(number, known{watch, {}});
      unnamed_.insert(number);
    }
    watch->add(std::move(op));
    look_after(number);
    settle();
  }

  /// The topic of news that a job was cancelled which the holder has a lease of.
  [[nodiscard]] static std::string cancelled(std::string_view holder) {
    std::string out{"c"};
    boost::algorithm::hex_lower(holder, std::back_inserter(out));
    return out;
  }
  /// No state of the database tells of that: there is nothing to look at.
  void add(std::string_view topic, hint_waiter op) {
    if (closed_) {
      wake(op, errc::closed);
      return;
    }
    cancels_.add(topic, std::move(op));
    settle();
  }

  [[nodiscard]] std::shared_ptr<postgres_watch> watch_of(std::uint64_t number) const {
    auto const found = watches_.find(number);
    return found == watches_.end() ? nullptr : found->second.watch.lock();
  }

  [[nodiscard]] std::vector<std::shared_ptr<postgres_watch>> all() const {
    std::vector<std::shared_ptr<postgres_watch>> out;
    for (auto const& [number, each] : watches_) {
      if (auto w = each.watch.lock()) out.push_back(std::move(w));
    }
    return out;
  }

  [[nodiscard]] postgres_pool& pool() noexcept override { return *pool_; }

  void named(postgres_watch const& watch) override {
    auto const number = watch.number();
    if (watch_of(number).get() != &watch || unnamed_.erase(number) == 0) return;
    watches_.find(number)->second.topic = watch.topic();
    topics_.emplace(watch.topic(), number);
  }

  void left(postgres_watch const& watch) override {
    if (watch_of(watch.number()).get() == &watch) forget(watch.number());
    settle();
  }

  /// Somebody may not wait any more.
  void look_after(std::uint64_t number) {
    auto const watch = watch_of(number);
    if (watch && watch->wanted()) return;
    if (number == no_number) cancels_.drop_ended();
    forget(number);
    settle();
  }

  void forget(std::uint64_t number) {
    auto const found = watches_.find(number);
    if (found == watches_.end()) return;
    if (unnamed_.erase(number) == 0) {
      auto [at, end] = topics_.equal_range(found->second.topic);
      at = std::find_if(at, end, [&](auto const& t) { return t.second == number; });
      if (at != end) topics_.erase(at);
    }
    watches_.erase(found);
  }

  /// Listens while somebody waits, and a moment longer: whoever was told to look is likely to wait
  /// again, and beginning to listen is a transaction, and one more look.
  void settle() {
    if (closed_) return;
    if (std::exchange(renewals_, pool_->renewals()) != pool_->renewals()) listener_.renew();
    if (!watches_.empty() || !cancels_.empty()) {
      linger_.stop();
      lingers_ = false;
      if (pool_->options().listen) listener_.resume();
    } else if (listener_.wanted() && !std::exchange(lingers_, true)) {
      linger_.set(saturating_add(linger_.now(), linger), [self = self_weakly().lock()] {
        self->lingers_ = false;
        self->listener_.pause();
      });
    }
  }

  /// News may be of any watch whose topic is not known yet: those look once more.
  void heard(std::string_view topic) override {
    std::vector<std::uint64_t> concerned{unnamed_.begin(), unnamed_.end()};
    auto const [from, to] = topics_.equal_range(std::string{topic});
    std::transform(from, to, std::back_inserter(concerned), [](auto const& t) { return t.second; });
    for (auto const number : concerned) {
      if (auto const watch = watch_of(number)) watch->hear();
      look_after(number);
    }
    cancels_.take(topic).wake_all();
    settle();
  }
  void listening() override {
    for (auto const& w : all()) w->look();
    cancels_.wake_all();  // nobody has told of what was cancelled meanwhile
    settle();
  }

  struct known {
    std::weak_ptr<postgres_watch> watch;
    std::string topic;  // that it is told of, once it knows
  };

  static constexpr duration linger = std::chrono::milliseconds{100};
  // Those before are of scans, which are waited for together.
  static constexpr std::uint64_t no_number = ~std::uint64_t{0};
  static constexpr std::uint64_t first_number = 2 * std::uint64_t{rule::most_shards};

  std::shared_ptr<postgres_pool> pool_;
  postgres_listener listener_;
  postgres_timer linger_;
  bool lingers_ = false;
  std::uint64_t renewals_ = 0;  // of the pool's, since when it listens
  std::atomic<std::uint64_t> last_number_{first_number};
  std::unordered_map<std::uint64_t, known> watches_;  // by their numbers
  std::unordered_set<std::uint64_t> unnamed_;  // those that do not know yet what they are told of
  std::unordered_multimap<std::string, std::uint64_t> topics_;  // and the others, by that
  cancel_lines cancels_;                                        // by the topics of their news
  bool closed_ = false;
};

}  // namespace weir::detail

#endif
