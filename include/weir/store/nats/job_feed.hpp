// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOB_FEED_HPP
#define WEIR_STORE_NATS_JOB_FEED_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/alarm.hpp"
#include "weir/detail/reconnect_pace.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/log.hpp"
#include "weir/store/nats/image_reader.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/job_replica.hpp"
#include "weir/store/nats/job_requests.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/log_info.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/table_digest.hpp"
#include "weir/store/nats/turn.hpp"
#include "weir/time.hpp"
#include "weir/version.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
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
///
/// A shard may be large and its log long, so what takes long is done in portions, between which the
/// strand is free for others.
class nats_job_feed : public nats_job_requests {
 public:
  nats_job_feed(std::shared_ptr<nats_link> const& link, std::uint32_t shard)
      : nats_job_requests{link, shard},
        retry_{link->options().least_reconnect_wait, link->options().longest_reconnect_wait} {}

  /// Begins to listen.
  void start() {
    if (auto const on = link()) on->follow(on->names().echo(number()), shared_from_this());
  }

  /// A replica that stays as it is while this is there. What comes meanwhile is read afterwards.
  class held_replica {
   public:
    explicit held_replica(nats_job_feed& feed)
        : feed_{feed.weak_from_this()},
          replica_{feed.replica_} {
      ++feed.held_;
    }
    held_replica(held_replica const&) = delete;
    held_replica& operator=(held_replica const&) = delete;
    ~held_replica() {
      auto const feed = feed_.lock();
      if (feed && --as_feed(*feed).held_ == 0) as_feed(*feed).advance_later();
    }
    [[nodiscard]] nats_job_replica const& operator*() const noexcept { return *replica_; }

   private:
    std::weak_ptr<nats_job_requests> feed_;
    std::shared_ptr<nats_job_replica> replica_;
  };
  /// Null: there is none at the moment.
  [[nodiscard]] std::unique_ptr<held_replica> hold() {
    return current_ ? std::make_unique<held_replica>(*this) : nullptr;
  }

  /// Is it known of this image that it cannot be read?
  [[nodiscard]] bool is_damaged(std::string const& image) const noexcept {
    return std::ranges::find(damaged_, image) != damaged_.end();
  }

  /// Why the shard cannot be read; empty: it can, for all that is known.
  [[nodiscard]] error_code refusal() const noexcept { return refused_; }

  /// Does the replica know all that the log has, for all that is known?
  [[nodiscard]] bool current() const noexcept { return current_; }

  /// An image was written, or could not be.
  /// @param full so that there is room in the log
  /// @param made there is one, or there is room without
  virtual void image_ended(bool full, bool made) = 0;
  /// There is no room for an image: gives some up, and then more.
  virtual void give_room(int step, std::function<void()> then) = 0;

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

  /// Only while it is current.
  [[nodiscard]] nats_job_replica& replica() noexcept { return *replica_; }

  /// There is a message of that sequence.
  void reach(std::uint64_t sequence) {
    target_ = std::max(target_, sequence);
    if (following_) advance();
  }

  /// Looks at everything again.
  void begin_again() { begin_later(); }

  /// Is good for nothing any more.
  void forget() {
    need_no_more();
    later_.stop();
    following_ = current_ = false;
    replica_.reset();
    reader_.reset();
    ahead_.clear();
  }

  /// The log ends before what it was read to, or begins after: begins again.
  /// @param read what it was read to when that was asked for: the answer may be older than what was
  ///             heard since
  void check(nats_log_info const& info, std::uint64_t read) {
    if (!following_) return;
    bool const same = info.last >= read && info.first <= replica_->position() + 1;
    same ? reach(info.last) : begin_later();
  }

 private:
  static constexpr std::size_t window = 64;        // messages asked for at a time
  static constexpr std::size_t most_ahead = 4096;  // messages that wait for one before them
  // And in bytes (F60): a server ends the connection of who is too slow for what was asked for.
  static constexpr std::size_t window_bytes = 4U << 20U;
  static constexpr std::size_t most_ahead_bytes = 16U << 20U;
  static constexpr std::size_t most_parts = 8;  // of an image, asked for at a time
  static constexpr std::size_t most_shard_digits = 4;
  static constexpr std::size_t bytes_at_least = 16U << 10U;  // read in a turn, if they are there
  /// What is missing for so long, or as long as a connection would be waited for, is lost.
  static constexpr duration least_patience = std::chrono::seconds{5};

  // ------------------------------------------------------------------------------- connections

  void connected() final { begin(); }
  void disconnected() final {
    need_no_more();
    following_ = current_ = false;
    refused_ = {};
    missing_since_.reset();
    later_.stop();
    lost_connection();
  }
  void refused(error_code why) final { stop(why); }
  void closed() final { stop(make_error_code(errc::closed)); }

  void stop(error_code why) final {
    need_no_more();
    following_ = current_ = false;
    refused_ = why;
    damaged_.clear();
    later_.stop();
    stopped(why);
    // It may be otherwise one day.
    constexpr duration least = std::chrono::seconds{1};
    if (why != errc::closed) begin_after(std::max(retry_.next(), least));
  }
  void begin_later() final { begin_after(retry_.next()); }
  void begin_after(duration wait) {
    need_no_more();
    bool const was = std::exchange(current_, false);
    following_ = false;
    if (was) lost_connection();
    auto const on = link();
    if (!on) return;
    later_.start(on->strand(), saturating_add(system_clock{}.steady_now(), wait),
                 [weak = weak_from_this()] {
                   if (auto const feed = weak.lock()) as_feed(*feed).begin();
                 });
  }

  void begin() {
    auto const on = link();
    if (!on || on->closed()) return;
    later_.stop();
    need_no_more();
    following_ = current_ = false;
    reader_.reset();
    ahead_.clear();
    ahead_bytes_ = 0;
    likely_size_.reset();
    gets_ = 0;
    target_ = 0;  // what is heard from here on is behind what is looked at
    images_.clear();
    passed_over_ = later_image_ = false;
    check_shards();
  }

  /// All have to mean the same shards.
  void check_shards() {
    auto const ours = std::to_string(options().shards);
    need_record(names().shards(), [this, ours](nats_record&& found) {
      if (found.sequence == 0) return note_shards(ours);
      if (found.value == ours) return find_image(0);
      bool const number =
          !found.value.empty() && found.value.size() <= most_shard_digits &&
          std::ranges::all_of(found.value, [](char c) { return c >= '0' && c <= '9'; });
      if (!number) return stop(make_error_code(errc::store_corrupt));
      stop(explained(errc::invalid_option, "nats_options::shards is " + ours +
                                               ", and what is on the servers has " + found.value));
    });
  }
  void note_shards(std::string const& ours) {
    need(
        names().shards(), ours,
        [this](nats_reply const& r) {
          auto const written = read_written(r.data());
          if (written.overtaken) return begin_later();
          if (written.failed && written.failed != errc::store_unavailable) {
            return stop(written.failed);
          }
          written.failed ? begin_later() : find_image(0);
        },
        0);
  }

  /// Looks at which images there are, before it looks at the log: that is not behind them, then.
  void find_image(std::size_t place) {
    if (place == nats_names::images) {
      std::ranges::sort(images_, std::greater{}, &nats_image_record::position);
      return open();
    }
    need_record(names().image(number(), place), [this, place](nats_record&& found) {
      auto record = nats_image_record::read(found.value);
      bool const later = nats_image_record::is_later(found.value);
      later_image_ = later_image_ || later;
      if (!record && !later && found.sequence != 0) passed_over_ = true;
      if (record && !is_damaged(record->id)) {
        images_.push_back(std::move(*record));
      }
      find_image(place + 1);
    });
  }

  void open() {
    need("$JS.API.STREAM.INFO." + names().log_stream(number()), {},
         [this](nats_reply const& r) { opened(info_in(r), true); });
  }
  void opened(nats_log_info const& info, bool make) {
    auto const on = link();
    if (!on) return;
    if (info.error == static_cast<int>(nats_code::stream_not_found)) {
      if (!on->options().create_stream) return stop(make_error_code(errc::schema_outdated));
      if (!make) return begin_later();
      return need("$JS.API.STREAM.CREATE." + on->names().log_stream(number()),
                  on->log_config(number()),
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
    target_ = std::max(target_, info.last);
    bool const knows_one = replica_ && replica_->position() != 0;
    bool const lost_end = !images_.empty() && images_.front().position > info.last;
    if (!knows_one || lost_end || info.last < replica_->position() ||
        info.first > replica_->position()) {
      return load();
    }
    go_on();
  }
  /// Follows the log from where it was read to, if that is still the same log: a server that was
  /// not able to keep the end of it may have given its numbers to other messages.
  void go_on() {
    need_message(replica_->position(), [this](std::optional<nats_logged>&& logged) {
      if (!logged) return missed();
      bool const same = logged->time == replica_->stored();
      same ? follow() : load();
    });
  }

  // -------------------------------------------------------------------------------- the image

  void load() {
    if (std::exchange(current_, false)) lost_connection();
    following_ = false;
    need_no_more();
    replica_.reset();
    load_image();
  }
  /// The newest one; if that is damaged, one before it; if there is none, the whole log.
  void load_image() {
    if (images_.empty()) {
      auto const why = later_image_ ? errc::schema_too_new : errc::store_corrupt;
      if (info_.first > 1) return stop(make_error_code(why));
      return follow(std::make_shared<nats_job_replica>());
    }
    reader_ = std::make_unique<nats_image_reader>(images_.front());
    images_.erase(images_.begin());
    for (std::size_t i = 0; i != most_parts; ++i) load_part();
  }
  void image_is_damaged() {
    damaged_.push_back(reader_->image().id);
    passed_over_ = true;
    missing_since_.reset();
    need_no_more();
    reader_.reset();
    load_image();
  }
  void load_part() {
    auto const n = reader_ ? reader_->next() : std::nullopt;
    if (!n) return;
    need_record(names().part(number(), reader_->image().id, *n), [this, n](auto&& found) {
      // Later images have taken its place meanwhile.
      if (found.sequence == 0) return missed(&nats_job_feed::image_is_damaged);
      if (!reader_->take(*n, found.value)) return image_is_damaged();
      if (reader_->has_all()) return read_image();
      load_part();
    });
  }
  void read_image() {
    if (reader_->go_on()) return in_another_turn([this] { read_image(); });
    auto made = reader_->replica();
    if (!made) return image_is_damaged();
    auto const position = reader_->image().position;
    // There is a newer one by now.
    if (info_.first > position + 1) return missed(&nats_job_feed::image_is_damaged);
    if (info_.last < position) return missed(&nats_job_feed::continue_log, least_patience);
    reader_.reset();
    follow(std::move(made));
  }
  /// A server that has lost power may have lost the end of the log, which an image has. Nobody
  /// writes to the log before it has the image; and what is written comes behind that.
  void continue_log() {
    auto const next = std::to_string(reader_->image().position + 1);
    need("$JS.API.STREAM.PURGE." + names().log_stream(number()), R"({"seq":)" + next + "}",
         [this](nats_reply const& r) {
           auto const said = nats_json::error(nats_json::parse(r.data()));
           auto const ec = said == 0 ? error_code{} : nats_refusal(said);
           !ec || ec == errc::store_unavailable ? begin_later() : stop(ec);
         });
  }
  void follow(std::shared_ptr<nats_job_replica> from) {
    replica_ = std::move(from);
    if (std::exchange(passed_over_, false)) replica_->passed_over();
    follow();
  }

  // ---------------------------------------------------------------------------------- the log

  void heard(nats_reply const& message) final {
    auto logged = read_logged(message);
    if (!logged) return;
    auto const sequence = logged->sequence;
    target_ = std::max(target_, sequence);
    if (!following_) return;
    if (sequence <= replica_->position()) {
      // It was read; or the log has lost its end, and this is another message in its place.
      if (logged->time > replica_->stored()) begin_later();
      return;
    }
    bool const room = ahead_.size() < most_ahead && ahead_bytes_ < most_ahead_bytes;
    if (room || sequence == replica_->position() + 1) keep(std::move(*logged));
    advance();
  }

  void follow() {
    following_ = true;
    next_get_ = 0;
    advance();
  }

  /// Reads what is there, asks for what is missing, and says when there is nothing more.
  void advance() {
    if (held_ != 0 || advancing_) return;
    nats_turn const turn;
    std::size_t unlooked = 0;  // bytes since the clock was looked at
    bool any = false;
    auto const now = epoch();
    for (auto next = ahead_.begin();
         next != ahead_.end() && next->first <= replica_->position() + 1; next = ahead_.begin()) {
      // Not after each: whoever is kept from running must not fall behind the others for it.
      if (unlooked >= bytes_at_least) {
        unlooked = 0;
        if (turn.over()) {
          advance_later();
          break;
        }
      }
      auto const message = std::move(next->second);
      ahead_.erase(next);
      ahead_bytes_ -= message.data.size();
      if (message.sequence <= replica_->position()) continue;
      try {
        if (!read(*replica_, message)) return stop(make_error_code(errc::schema_too_new));
      } catch (std::bad_alloc const&) {  // it may have executed a part of the message
        replica_.reset();
        return begin_later();
      }
      if (auto const other = replica_->take_contradiction()) tell_of(*other);
      unlooked += message.data.size();
      any = true;
      missing_since_.reset();
      if (now != epoch()) return;
    }
    fetch();
    if (replica_->position() >= target_ && !current_) {
      current_ = true;
      missing_since_.reset();
      retry_.reset();
      became_current();
    } else if (any && current_) {
      advanced();
    }
  }
  /// Somebody has to serve the shard, so all goes on.
  void tell_of(nats_table_note const& other) const {
    auto const on = link();
    if (!on) return;
    tell_log(log::level::error, log::topic::store,
             on->log_name() + ": shard " + std::to_string(number()) +
                 ": of its log up to message " + std::to_string(other.position) +
                 " this process, with weir " + std::string{version} +
                 ", makes other jobs than a process with weir " + other.by + " does");
  }
  void advance_later() {
    auto const on = link();
    if (!on || std::exchange(advancing_, true)) return;
    post_task(on->strand(), [self = self()] {
      self->advancing_ = false;
      if (self->following_) self->advance();
    });
  }

  void keep(nats_logged&& message) {
    auto const sequence = message.sequence;
    auto const size = message.data.size();
    if (ahead_.emplace(sequence, std::move(message)).second) ahead_bytes_ += size;
  }

  /// How many messages to ask for at a time: they may all be as large as the largest lately, and
  /// the first ones as large as any.
  [[nodiscard]] std::size_t at_a_time() const {
    auto const on = link();
    if (!on) return 1;
    auto const size = std::max<std::size_t>(likely_size_.value_or(on->max_payload()), 1);
    return std::clamp<std::size_t>(window_bytes / size, 1, window);
  }
  void fetch() {
    next_get_ = std::max(next_get_, replica_->position() + 1);
    for (; gets_ < at_a_time() && next_get_ <= target_; ++next_get_) {
      if (ahead_.contains(next_get_)) continue;
      ++gets_;
      need_message(next_get_, [this](std::optional<nats_logged>&& logged) {
        --gets_;
        if (!logged) return missed();
        auto const before = likely_size_.value_or(0);
        likely_size_ = std::max(logged->data.size(), before - before / 8);
        if (logged->sequence > replica_->position()) keep(std::move(*logged));
        advance();
      });
    }
  }
  /// A message of the log or a part of an image is not there: not yet, on this server, or not any
  /// more, since later images have taken its place. All is looked at again for a while.
  /// @param otherwise what is done then
  void missed(void (nats_job_feed::*otherwise)() = &nats_job_feed::is_corrupt) {
    missed(otherwise, std::max(options().offline_patience, least_patience));
  }
  void missed(void (nats_job_feed::*otherwise)(), duration patience) {
    auto const now = system_clock{}.steady_now();
    if (!missing_since_) missing_since_ = now;
    if (saturating_sub(now, *missing_since_) > patience) return (this->*otherwise)();
    begin_later();
  }
  void is_corrupt() { stop(make_error_code(errc::store_corrupt)); }

  /// Unless something has happened by then.
  template <class F>
  void in_another_turn(F then) {
    auto const on = link();
    if (!on) return;
    post_task(on->strand(), [self = self(), now = epoch(), then] {
      if (now == self->epoch()) then();
    });
  }
  [[nodiscard]] static nats_job_feed& as_feed(nats_job_requests& r) noexcept {
    return static_cast<nats_job_feed&>(r);
  }
  [[nodiscard]] std::shared_ptr<nats_job_feed> self() {
    return std::static_pointer_cast<nats_job_feed>(shared_from_this());
  }

  std::shared_ptr<nats_job_replica> replica_;
  error_code refused_{};
  bool following_ = false;
  bool current_ = false;
  std::optional<steady_time> missing_since_;  // something is
  std::uint64_t target_ = 0;                  // the last message that there is known to be
  std::uint64_t next_get_ = 0;                // not asked for yet
  std::size_t gets_ = 0;
  std::optional<std::size_t> likely_size_;  // of what is asked for next
  std::map<std::uint64_t, nats_logged> ahead_;
  std::size_t ahead_bytes_ = 0;
  std::size_t held_ = 0;    // nothing is read
  bool advancing_ = false;  // in another turn
  nats_log_info info_;
  std::unique_ptr<nats_image_reader> reader_;
  std::vector<nats_image_record> images_;  // that were not tried yet, the newest one first
  std::vector<std::string> damaged_;       // those of them that cannot be read
  bool passed_over_ = false;               // something that cannot be read
  bool later_image_ = false;               // a later version of weir has written one
  reconnect_pace retry_;
  alarm<system_clock> later_;
};

}  // namespace weir::detail

#endif
