// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "integration/redis_nodes.hpp"
#include "integration/redis_process.hpp"
#include "integration/redis_sentinels.hpp"
#include "soak/family.hpp"
#include "soak/target.hpp"
#include "weir/rule/shards.hpp"
#include "weir/store/redis/cluster_map.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace soak {

namespace {

using redis_test::cluster;
using redis_test::server;

std::vector<std::string> options_of(wish const& w) {
  if (w.small) return {"--maxmemory", "24mb", "--maxmemory-policy", "noeviction"};
  if (!w.lasting) return {};
  return {"--appendonly", "yes", "--appendfsync", "always"};
}

/// The faults of one of several servers, or of the only one.
class redis_servers : public target {
 public:
  explicit redis_servers(wish const& w) : wish_{w} {}

  [[nodiscard]] std::vector<fault> faults() override {
    return {{"kill-server", 500ms, 2s, [this] { any().kill(); }, [this] { start(the()); },
             wish_.lasting ? std::nullopt : std::optional{0s}},
            {"stop-server", 500ms, 2500ms, [this] { any().pause(); }, [this] { the().resume(); }},
            {"flush-scripts", 100ms, 200ms, ask("script flush")},
            {"kill-clients", 100ms, 200ms, ask("client kill type normal")},
            {"kill-subscribers", 100ms, 200ms, ask("client kill type pubsub")},
            // Whatever it has is more than that.
            {"full", 1s, 4s, ask("config set maxmemory 1mb"), ask("config set maxmemory 0")},
            {"clock-ahead", 2s, 2s, move(3600), move(0), {}, 1h, 3s},
            {"clock-back", 3s, 6s, move(-3600), move(0), {}, 0s, 3s}};
  }
  [[nodiscard]] std::vector<fault> staged() override {
    return {{"days-ahead", 1ms, 1ms, [this] { move(days_ahead_ += 3 * 86'400)(); }}};
  }
  [[nodiscard]] std::optional<std::uint64_t> records() override {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i != count(); ++i) all += std::stoull(at(i).ask("dbsize"));
    return all;
  }
  [[nodiscard]] std::string largest() override {
    constexpr auto* script =
        "eval \"local most, all = 0, 0 for _, k in ipairs(redis.call('keys', '*')) do "
        "local is = redis.call('type', k).ok local n = is == 'hash' and redis.call('hlen', k) or "
        "is == 'zset' and redis.call('zcard', k) or 0 all = math.max(all, n) "
        "local ms = redis.call('pttl', k) if ms >= 0 and ms < 86400000 then most = math.max(most, "
        "n) end end "
        "return most .. ' ' .. all\" 0";
    std::array<std::uint64_t, 2> most{};
    for (std::size_t i = 0; i != count(); ++i) {
      std::istringstream said{at(i).ask(script)};
      for (auto& n : most) {
        std::uint64_t here = 0;
        said >> here;
        n = std::max(n, here);
      }
    }
    return std::to_string(most[0]) + " " + std::to_string(most[1]);
  }

 protected:
  [[nodiscard]] virtual std::size_t count() const { return 1; }
  [[nodiscard]] virtual server& at(std::size_t i) = 0;
  [[nodiscard]] wish const& given() const noexcept { return wish_; }
  [[nodiscard]] std::uint64_t chance() const { return wish_.chance(); }

  static void start(server& s) {
    keep_connections();
    s.start();
  }

 private:
  /// One by chance, until another is drawn.
  server& any() {
    which_ = static_cast<std::size_t>(chance() % count());
    return the();
  }
  server& the() { return at(which_); }
  /// All of them.
  std::function<void()> ask(char const* what) {
    return [this, what] {
      for (std::size_t i = 0; i != count(); ++i) at(i).ask(what);
    };
  }
  std::function<void()> move(std::int64_t seconds) {
    return [this, seconds] {
      for (std::size_t i = 0; i != count(); ++i) at(i).move_clock(seconds);
    };
  }

  wish wish_;
  std::size_t which_ = 0;
  std::int64_t days_ahead_ = 0;  // in seconds
};

class redis_target final : public redis_servers {
 public:
  explicit redis_target(wish const& w)
      : redis_servers{w},
        server_{options_of(w), WEIR_MOVED_CLOCK} {}
  [[nodiscard]] opening direct() const override {
    return {.url = "redis://127.0.0.1:" + std::to_string(server_.port())};
  }

 private:
  [[nodiscard]] server& at(std::size_t) override { return server_; }

  server server_;
};

/// Three masters, each with a replica. Masters have no successor but by a fail-over that is asked
/// for; with one that is forgetful they have, and what it had not passed on is lost.
class redis_cluster_target final : public redis_servers {
 public:
  static constexpr std::uint32_t shards = 6;

  explicit redis_cluster_target(wish const& w)
      : redis_servers{w},
        nodes_{with_successors(w), 1, WEIR_MOVED_CLOCK} {}
  [[nodiscard]] opening direct() const override {
    std::string url = "redis+cluster://";
    for (std::size_t i = 0; i != cluster::size; ++i) {
      url += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(nodes_[i].port());
    }
    return {.url = url, .shards = shards};
  }
  [[nodiscard]] std::vector<fault> faults() override {
    auto out = redis_servers::faults();
    out.push_back(
        {"move-slot", 500ms, 3s, [this] { begin_move(any_tag()); }, [this] { end_move(); }});
    out.push_back({"fail-over", 100ms, 1s, [this] { fail_over(); }});
    return out;
  }
  [[nodiscard]] std::vector<fault> staged() override {
    auto out = redis_servers::staged();
    auto const tag = "soak:" + std::to_string(weir::rule::shard_of(moved_queue, shards));
    out.push_back(
        {"move-queue", 1ms, 1ms, [this, tag] { begin_move(tag); }, [this] { end_move(); }});
    return out;
  }

 private:
  static std::vector<std::string> with_successors(wish const& w) {
    auto out = options_of(w);
    for (auto& each : w.lasting ? std::vector<std::string>{} : redis_test::succeeded()) {
      out.push_back(std::move(each));
    }
    return out;
  }
  [[nodiscard]] std::size_t count() const override { return cluster::size; }
  [[nodiscard]] server& at(std::size_t i) override { return nodes_[i]; }

  [[nodiscard]] std::string any_tag() const { return "soak:" + std::to_string(chance() % shards); }
  [[nodiscard]] bool is_master(std::size_t i) {
    return nodes_[i].ask("role").starts_with("master");
  }

  /// A slot is on its way: what is new goes where it is to be.
  void begin_move(std::string const& tag) {
    slot_ = std::to_string(weir::detail::redis_slot(tag));
    from_ = nodes_.serves(tag);
    do {
      to_ = static_cast<std::size_t>(chance() % cluster::size);
    } while (to_ == from_ || !is_master(to_));
    nodes_[to_].ask("cluster setslot " + slot_ + " importing " + nodes_.id_of(from_));
    nodes_[from_].ask("cluster setslot " + slot_ + " migrating " + nodes_.id_of(to_));
  }
  /// Moves the keys that are there, one after the other, and says so to all.
  void end_move() {
    auto const port = std::to_string(nodes_[from_].port());
    nodes_[from_].ask("--cluster fix 127.0.0.1:" + port + " --cluster-yes");
  }

  /// A replica takes its master's place, and lacks nothing. The other masters may refuse their
  /// votes: of two in two minutes they give one. Then the master has only kept its clients waiting.
  void fail_over() {
    auto const master = nodes_.serves(any_tag());
    auto const replica = nodes_.replica_of(master);
    nodes_[replica].ask("cluster failover");
    for (auto const until = boot_now() + ns_of(10s); boot_now() < until;) {
      if (is_master(replica) && !is_master(master)) return;
      std::this_thread::sleep_for(50ms);
    }
  }

  cluster nodes_;
  std::string slot_;
  std::size_t from_ = 0;
  std::size_t to_ = 0;
};

/// A server, its replica and three sentinels: what the replica had not got when it succeeded is
/// lost.
class redis_sentinel_target final : public redis_servers {
 public:
  explicit redis_sentinel_target(wish const& w)
      : redis_servers{w},
        all_{options_of(w), patience(), WEIR_MOVED_CLOCK} {}
  [[nodiscard]] opening direct() const override { return {.url = all_.url()}; }
  [[nodiscard]] std::vector<fault> faults() override {
    auto out = redis_servers::faults();
    // A server that stands still for long has a successor, and serves beside it for a while.
    for (auto& f : out) {
      if (f.name == "stop-server" || f.name == "kill-server") f.forgets = 15s;
    }
    out.push_back({"fail-over", 100ms, 1s, [this] { all_.fail_over(); }, {}, 15s});
    out.push_back({"kill-master", 100ms, 1s, [this] { kill_master(); },
                   [this] { start(all_[killed_]); }, 15s});
    return out;
  }

 private:
  /// A machine that has much else to do lets servers stand still, too.
  static std::string patience() {
    return "sentinel down-after-milliseconds " + std::string{redis_test::watched::service} +
           " 5000";
  }

  [[nodiscard]] std::size_t count() const override { return 2; }
  [[nodiscard]] server& at(std::size_t i) override { return all_[i]; }

  void kill_master() {
    all_.wait_for_replica();
    killed_ = all_.serving();
    all_[killed_].kill();
    all_.until_it_serves(1 - killed_);
  }

  redis_test::watched all_;
  std::size_t killed_ = 0;
};

}  // namespace

std::unique_ptr<target> make_redis(wish const& w) { return std::make_unique<redis_target>(w); }
std::unique_ptr<target> make_redis_cluster(wish const& w) {
  return std::make_unique<redis_cluster_target>(w);
}
std::unique_ptr<target> make_redis_sentinel(wish const& w) {
  return std::make_unique<redis_sentinel_target>(w);
}

}  // namespace soak
