// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "integration/nats_nodes.hpp"
#include "integration/nats_process.hpp"
#include "soak/family.hpp"
#include "soak/target.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace soak {

namespace {

using nats_test::server;

/// Its clock is moved by a program that traces it, and that is slow.
std::string clock_of(wish const& w) { return w.clocks ? WEIR_TRACED_CLOCK : ""; }

void start(server& s) {
  keep_connections();
  s.start();
}

class nats_target final : public target {
 public:
  explicit nats_target(wish const& w)
      : clocks_{w.clocks},
        server_{{}, w.small ? "jetstream { max_file_store: 24MB }\n" : "", clock_of(w)} {}
  [[nodiscard]] opening direct() const override {
    return {.url = "nats://127.0.0.1:" + std::to_string(server_.port()), .prefix = "soak"};
  }
  [[nodiscard]] std::vector<fault> faults() override {
    std::vector<fault> out{
        {"kill-server", 500ms, 2s, [this] { server_.kill(); }, [this] { start(server_); }}};
    if (!clocks_) {
      out.push_back({"stop-server", 500ms, 2500ms, [this] { server_.pause(); },
                     [this] { server_.resume(); }});
      return out;
    }
    auto const back = [this] { server_.move_clock(0); };
    out.push_back({"clock-ahead", 2s, 2s, [this] { server_.move_clock(3600); }, back});
    out.push_back({"clock-back", 3s, 6s, [this] { server_.move_clock(-3600); }, back});
    return out;
  }
  [[nodiscard]] std::vector<fault> staged() override {
    return {{"synchronise", 1ms, 1ms, [this] { synchronise(); }},
            {"power-failure", 1ms, 1ms, [this] { fail(); }}};
  }
  [[nodiscard]] std::optional<std::uint64_t> records() override {
    auto const said = nlohmann::json::parse(
        nats_test::stranger{server_}.ask("$JS.API.STREAM.INFO." + keys), nullptr, false);
    if (!said.is_object() || !said.contains("state")) return 0;
    return said["state"]["messages"].get<std::uint64_t>();
  }
  /// Each begins with this question.
  [[nodiscard]] std::string beginnings() override {
    if (!listener_) {
      listener_.emplace(server_);
      listener_->overhear_one("$JS.API.DIRECT.GET." + keys + ".soak.k.jobs.shards");
    }
    auto const heard = listener_->heard();
    for (std::size_t at = 0; (at = heard.find("MSG ", at)) != heard.npos; ++at) ++beginnings_;
    return std::to_string(beginnings_);
  }

 private:
  // Of keys and of images; each shard's log is one of its own.
  inline static std::string const keys = "soak-keys";

  [[nodiscard]] std::filesystem::path streams() const {
    return std::filesystem::path{server_.directory()} / "js/jetstream/$G/streams";
  }
  [[nodiscard]] std::filesystem::path kept() const {
    return std::filesystem::path{server_.directory()} / "kept";
  }
  /// The disk has all that was written until now.
  void synchronise() {
    server_.kill();
    std::filesystem::copy(streams() / keys, kept(), std::filesystem::copy_options::recursive);
    start(server_);
  }
  /// Power fails, and what was written since is lost but for the logs.
  void fail() {
    server_.kill();
    std::filesystem::remove_all(streams() / keys);
    std::filesystem::copy(kept(), streams() / keys, std::filesystem::copy_options::recursive);
    start(server_);
  }

  bool clocks_;
  server server_;
  std::optional<nats_test::stranger> listener_{};
  std::uint64_t beginnings_ = 0;
};

/// Three servers with all that is stored.
class nats_cluster_target final : public target {
 public:
  explicit nats_cluster_target(wish const& w)
      : chance_{w.chance},
        clocks_{w.clocks},
        all_{{}, clock_of(w)} {}
  [[nodiscard]] opening direct() const override {
    std::string url;
    for (std::size_t i = 0; i != nats_test::cluster::size; ++i) {
      url += (i == 0 ? "nats://127.0.0.1:" : ",nats://127.0.0.1:") + std::to_string(all_[i].port());
    }
    return {.url = url, .prefix = "soak", .replicas = nats_test::cluster::size};
  }
  [[nodiscard]] std::vector<fault> faults() override {
    std::vector<fault> out{
        {"kill-server", 500ms, 3s, [this] { any().kill(); }, [this] { start(all_[which_]); }},
        {"step-down", 100ms, 1s, [this] { step_down(); }}};
    if (!clocks_) {
      out.push_back(
          {"stop-server", 500ms, 5s, [this] { any().pause(); }, [this] { all_[which_].resume(); }});
      return out;
    }
    // Of one of them: leadership goes from clock to clock.
    auto const back = [this] { all_[which_].move_clock(0); };
    out.push_back({"clock-ahead", 2s, 4s, [this] { any().move_clock(3600); }, back});
    out.push_back({"clock-back", 3s, 6s, [this] { any().move_clock(-3600); }, back});
    return out;
  }

 private:
  server& any() {
    which_ = static_cast<std::size_t>(chance_() % nats_test::cluster::size);
    return all_[which_];
  }
  /// The leaders of all streams leave that to others, if they are heard of in time.
  void step_down() {
    auto const said = nlohmann::json::parse(ask("STREAM.NAMES"), nullptr, false);
    if (!said.is_object() || !said.contains("streams") || said["streams"].is_null()) return;
    for (auto const& name : said["streams"]) {
      (void)ask("STREAM.LEADER.STEPDOWN." + name.get<std::string>());
    }
  }
  std::string ask(std::string const& what) {
    try {
      return nats_test::stranger{all_[0], {}, 2s}.ask("$JS.API." + what);
    } catch (std::exception const&) {  // it is busy, or elects another leader
      return {};
    }
  }

  chance_source chance_;
  bool clocks_;
  nats_test::cluster all_;
  std::size_t which_ = 0;
};

}  // namespace

std::unique_ptr<target> make_nats(wish const& w) { return std::make_unique<nats_target>(w); }
std::unique_ptr<target> make_nats_cluster(wish const& w) {
  return std::make_unique<nats_cluster_target>(w);
}

}  // namespace soak
