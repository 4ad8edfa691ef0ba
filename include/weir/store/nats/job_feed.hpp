// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOB_FEED_HPP
#define WEIR_STORE_NATS_JOB_FEED_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/error.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/job_replica.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/log_info.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/request.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// Keeps a replica of a shard: from its last image, and from then on by its log. In the strand of
/// the link.
///
/// The server says again each message that it has stored, to whoever listens. What was not heard is
/// read. So a lost message delays, and nothing is passed by: messages are read by their sequence,
/// without a gap.
class nats_job_feed : public nats_feed, public std::enable_shared_from_this<nats_job_feed> {
 public:
  nats_job_feed(std::shared_ptr<nats_link> const& link, std::uint32_t shard)
      : link_{link},
        shard_{shard} {}

  /// Begins to listen.
  void start() {
    if (auto const on = link()) on->follow(on->names().echo(shard_), weak_from_this());
  }

 protected:
  /// The replica knows all that there was when the connection was made.
  virtual void became_current() = 0;
  virtual void lost_connection() = 0;
  /// Nothing will come of it before something changes on the server.
  virtual void stopped(error_code why) = 0;
  /// Reads a message that is the next one. False: it cannot be read.
  virtual bool read(nats_job_replica& replica, nats_logged const& message) = 0;
  /// Some messages were read.
  virtual void advanced() = 0;

  [[nodiscard]] std::shared_ptr<nats_link> link() const noexcept { return link_.lock(); }
  [[nodiscard]] std::uint32_t number() const noexcept { return shard_; }
  [[nodiscard]] bool current() const noexcept { return current_; }
  /// Only while it is current.
  [[nodiscard]] nats_job_replica& replica() noexcept { return *replica_; }
  [[nodiscard]] error_code refusal() const noexcept { return refused_; }

  using on_reply = std::function<void(nats_reply const&)>;
  using on_failure = std::function<void(error_code why, bool given)>;

  /// Asks for something, and is told what came of it on whatever connection.
  void ask(std::string subject, std::string data, on_reply then, on_failure otherwise,
           std::optional<std::uint64_t> expected = {}, std::uint64_t ttl = 0) {
    auto const on = link();
    if (!on) return otherwise(make_error_code(errc::closed), false);
    auto const r =
        std::make_shared<exchange>(shared_from_this(), std::move(then), std::move(otherwise));
    r->subject = std::move(subject);
    r->data = std::move(data);
    r->expected = expected;
    r->ttl = ttl;
    on->submit(r);
  }

  /// Asks what the log is like.
  void ask_info(std::function<void(nats_log_info const&)> then, on_failure otherwise) {
    auto const on = link();
    if (!on) return otherwise(make_error_code(errc::closed), false);
    ask(
        "$JS.API.STREAM.INFO." + on->names().log_stream(shard_), {},
        [this, then = std::move(then)](nats_reply const& r) { then(info_in(r)); },
        std::move(otherwise));
  }

  /// There is a message of that sequence.
  void reach(std::uint64_t sequence) {
    target_ = std::max(target_, sequence);
    if (following_) advance();
  }

  /// Looks at everything again.
  void begin_again() { begin_later(); }

  /// The log ends before what it was read to, or begins after: begins again.
  void check(nats_log_info const& info) {
    if (!following_) return;
    auto const at = replica_->position();
    if (info.last >= at && info.first <= at + 1) return reach(info.last);
    info_ = info;
    target_ = info.last;
    load();
  }

 private:
  static constexpr std::size_t window = 64;        // messages asked for at a time
  static constexpr std::size_t most_ahead = 4096;  // messages that wait for one before them
  static constexpr int most_tries = 50;

  class exchange final : public nats_request {
   public:
    exchange(std::shared_ptr<nats_job_feed> feed, on_reply then, on_failure otherwise)
        : feed_{std::move(feed)},
          then_{std::move(then)},
          otherwise_{std::move(otherwise)} {}
    [[nodiscard]] bool wanted() const noexcept override { return true; }
    void answered(nats_reply const& r) override { then_(r); }
    void failed(error_code why, bool given) override { otherwise_(why, given); }

   private:
    std::shared_ptr<nats_job_feed> feed_;
    on_reply then_;
    on_failure otherwise_;
  };

  /// Asks for something that is of no use on another connection. What is not answered is asked for
  /// again after a while, with all that goes with it.
  void need(std::string subject, std::string data, on_reply then,
            std::optional<std::uint64_t> expected = {}) {
    auto const now = epoch_;
    ask(
        std::move(subject), std::move(data),
        [this, now, then = std::move(then)](nats_reply const& r) {
          if (now == epoch_) then(r);
        },
        [this, now](error_code, bool) {
          if (now == epoch_) begin_later();
        },
        expected);
  }
  /// The last message of a subject among the records.
  void need_record(std::string const& subject, std::function<void(nats_record&&)> then) {
    auto const on = link();
    if (!on) return;
    bool const from_leader = on->replicated();
    need(from_leader ? on->names().leader_get() : on->names().direct_get(subject),
         from_leader ? R"({"last_by_subj":")" + subject + R"("})" : std::string{},
         [this, from_leader, then = std::move(then)](nats_reply const& r) {
           auto found = from_leader ? read_leader(r.data()) : read_direct(r);
           if (found.has_error()) return begin_later();
           then(std::move(found).value());
         });
  }

  // ------------------------------------------------------------------------------- connections

  void connected() final { begin(); }
  void disconnected() final {
    ++epoch_;
    following_ = current_ = false;
    refused_ = {};
    later_.stop();
    lost_connection();
  }
  void refused(error_code why) final { stop(why); }
  void closed() final { stop(make_error_code(errc::closed)); }

  void stop(error_code why) {
    ++epoch_;
    following_ = current_ = false;
    refused_ = why;
    later_.stop();
    stopped(why);
    // It may be otherwise one day.
    if (why != errc::closed) begin_after(std::chrono::seconds{1});
  }
  void begin_later() { begin_after(std::chrono::milliseconds{50}); }
  void begin_after(duration wait) {
    ++epoch_;
    bool const was = std::exchange(current_, false);
    following_ = false;
    if (was) lost_connection();
    auto const on = link();
    if (!on) return;
    later_.start(on->strand(), saturating_add(system_clock{}.steady_now(), wait),
                 [weak = weak_from_this()] {
                   if (auto const self = weak.lock()) self->begin();
                 });
  }

  void begin() {
    auto const on = link();
    if (!on || on->closed()) return;
    later_.stop();
    ++epoch_;
    following_ = current_ = false;
    ahead_.clear();
    gets_ = 0;
    check_shards();
  }

  /// All have to mean the same shards.
  void check_shards() {
    auto const on = link();
    if (!on) return;
    auto const ours = std::to_string(on->options().shards);
    need_record(on->names().shards(), [this, ours](nats_record&& found) {
      if (found.sequence == 0) return note_shards(ours);
      if (found.value != ours) return stop(make_error_code(errc::invalid_option));
      open();
    });
  }
  void note_shards(std::string const& ours) {
    auto const on = link();
    if (!on) return;
    need(
        on->names().shards(), ours,
        [this](nats_reply const& r) {
          auto const written = read_written(r.data());
          if (written.overtaken) return begin_later();
          if (written.failed && written.failed != errc::store_unavailable) {
            return stop(written.failed);
          }
          written.failed ? begin_later() : open();
        },
        0);
  }

  void open() {
    auto const on = link();
    if (!on) return;
    need("$JS.API.STREAM.INFO." + on->names().log_stream(shard_), {},
         [this](nats_reply const& r) { opened(info_in(r), true); });
  }
  void opened(nats_log_info const& info, bool make) {
    auto const on = link();
    if (!on) return;
    if (info.error == static_cast<int>(nats_code::stream_not_found)) {
      if (!on->options().create_stream) return stop(make_error_code(errc::schema_outdated));
      if (!make) return begin_later();
      return need("$JS.API.STREAM.CREATE." + on->names().log_stream(shard_), on->log_config(shard_),
                  [this](nats_reply const& r) { opened(info_in(r), false); });
    }
    if (info.error != 0) {
      auto const ec = nats_refusal(info.error);
      return ec == errc::store_unavailable ? begin_later() : stop(ec);
    }
    if (!info.fits) return stop(make_error_code(errc::store_foreign));
    if (!info.has_state) return begin_later();
    refused_ = {};
    info_ = info;
    target_ = info.last;
    if (!replica_ || info.last < replica_->position() || info.first > replica_->position()) {
      return load();
    }
    go_on();
  }
  /// Follows the log from where it was read to, if that is still the same log: a server that was
  /// not able to keep the end of it may have given its numbers to other messages.
  void go_on() {
    auto const on = link();
    if (!on) return;
    need("$JS.API.DIRECT.GET." + on->names().log_stream(shard_),
         R"({"seq":)" + std::to_string(replica_->position()) + "}", [this](nats_reply const& r) {
           auto const logged = read_logged(r);
           bool const same = logged && logged->time == replica_->seen();
           same ? follow() : load();
         });
  }
  [[nodiscard]] nats_log_info info_in(nats_reply const& r) const {
    auto const on = link();
    if (!on) return {};
    return read_log_info(r.data(), on->names().log(shard_), on->names().echo(shard_));
  }

  // -------------------------------------------------------------------------------- the image

  void load() {
    auto const on = link();
    if (!on) return;
    if (std::exchange(current_, false)) lost_connection();
    following_ = false;
    ++epoch_;
    replica_.reset();
    need_record(on->names().image(shard_), [this](nats_record&& found) {
      if (found.sequence == 0) {
        // Nothing is purged before there is an image.
        if (info_.first > 1) return stop(make_error_code(errc::store_corrupt));
        replica_ = std::make_unique<nats_job_replica>();
        return follow();
      }
      auto record = nats_image_record::read(found.value);
      if (!record) return stop(make_error_code(errc::store_foreign));
      image_ = std::move(*record);
      parts_.assign(image_.parts, {});
      missing_parts_ = parts_.size();
      next_part_ = 0;
      for (std::size_t i = 0; i != most_parts; ++i) load_part();
    });
  }
  void load_part() {
    auto const on = link();
    if (!on || next_part_ == parts_.size()) return;
    auto const n = next_part_++;
    need_record(on->names().part(shard_, image_.id, n), [this, n](nats_record&& found) {
      // Another image has taken its place meanwhile.
      if (found.sequence == 0) return begin_later();
      parts_[n] = std::move(found.value);
      if (--missing_parts_ == 0) return loaded();
      load_part();
    });
  }
  void loaded() {
    std::string all;
    all.reserve(image_.size);
    for (auto& p : std::exchange(parts_, {})) all += p;
    auto made = std::make_unique<nats_job_replica>();
    if (all.size() != image_.size || !made->load(all, image_.position)) {
      return stop(make_error_code(errc::store_corrupt));
    }
    // Either may be older than the other; not for long.
    if (info_.first > image_.position + 1 || info_.last < image_.position) return missed();
    replica_ = std::move(made);
    follow();
  }

  // ---------------------------------------------------------------------------------- the log

  void heard(nats_reply const& message) final {
    auto logged = read_logged(message);
    if (!logged) return;
    auto const sequence = logged->sequence;
    target_ = std::max(target_, sequence);
    if (!following_ || sequence <= replica_->position()) return;
    if (sequence == replica_->position() + 1 || ahead_.size() < most_ahead) {
      ahead_.emplace(sequence, std::move(*logged));
    }
    advance();
  }

  void follow() {
    following_ = true;
    next_get_ = 0;
    advance();
  }

  /// Reads what is there, asks for what is missing, and says when there is nothing more.
  void advance() {
    bool any = false;
    auto const now = epoch_;
    for (auto next = ahead_.begin();
         next != ahead_.end() && next->first <= replica_->position() + 1; next = ahead_.begin()) {
      auto const message = std::move(next->second);
      ahead_.erase(next);
      if (message.sequence <= replica_->position()) continue;
      if (!read(*replica_, message)) return stop(make_error_code(errc::schema_too_new));
      any = true;
      tries_ = 0;
      if (now != epoch_) return;
    }
    fetch();
    if (replica_->position() >= target_ && !current_) {
      current_ = true;
      tries_ = 0;
      became_current();
    } else if (any && current_) {
      advanced();
    }
  }

  void fetch() {
    next_get_ = std::max(next_get_, replica_->position() + 1);
    for (; gets_ < window && next_get_ <= target_; ++next_get_) {
      if (ahead_.contains(next_get_)) continue;
      auto const on = link();
      if (!on) return;
      ++gets_;
      need("$JS.API.DIRECT.GET." + on->names().log_stream(shard_),
           R"({"seq":)" + std::to_string(next_get_) + "}", [this](nats_reply const& r) {
             --gets_;
             auto logged = read_logged(r);
             if (!logged) return missed();
             auto const sequence = logged->sequence;
             if (sequence > replica_->position()) ahead_.emplace(sequence, std::move(*logged));
             advance();
           });
    }
  }
  /// A message is not there: it is not there yet, on this server, or it has gone into an image.
  void missed() {
    if (++tries_ > most_tries) return stop(make_error_code(errc::store_corrupt));
    begin_later();
  }

  static constexpr std::size_t most_parts = 8;  // asked for at a time

  std::weak_ptr<nats_link> const link_;
  std::uint32_t const shard_;
  std::unique_ptr<nats_job_replica> replica_;
  error_code refused_{};
  bool following_ = false;
  bool current_ = false;
  int tries_ = 0;
  std::uint64_t epoch_ = 0;     // of what was asked for
  std::uint64_t target_ = 0;    // the last message that there is known to be
  std::uint64_t next_get_ = 0;  // not asked for yet
  std::size_t gets_ = 0;
  std::map<std::uint64_t, nats_logged> ahead_;
  nats_log_info info_;
  nats_image_record image_;
  std::vector<std::string> parts_;
  std::size_t next_part_ = 0;
  std::size_t missing_parts_ = 0;
  alarm<system_clock> later_;
};

}  // namespace weir::detail

#endif
