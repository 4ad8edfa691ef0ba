// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_IMAGE_WRITER_HPP
#define WEIR_STORE_NATS_IMAGE_WRITER_HPP

#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/store/nats/image_maker.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/job_feed.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/request.hpp"

#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// Writes an image of a shard, and cuts the log by what is in it. In the strand of the link.
///
/// The steps are: look at which image is the last one, make the parts, write them, say that this is
/// the last one and which one was before it unless there was another one meanwhile, cut the log,
/// tell everybody, and remove older parts. A process that ends between two of them leaves an image
/// that counts or one that does not, and parts that go with a later image. Nothing is removed that
/// the last image, the one before it or the log after that needs: the process that removes was the
/// last one to say which these are, and all that is written later is behind them. In place of a
/// damaged image the one before it serves, or all of the log (F93).
///
/// While the parts are made the shard is not read any further, and its commands wait; other shards
/// and nouns do not, since that is done in portions.
class nats_image_writing : public std::enable_shared_from_this<nats_image_writing> {
 public:
  nats_image_writing(std::shared_ptr<nats_link> const& link,
                     std::shared_ptr<nats_job_feed> const& of, std::uint32_t shard,
                     job_id const& sender)
      : link_{link},
        feed_{of},
        shard_{shard},
        sender_{sender} {}

  [[nodiscard]] bool over() const noexcept { return over_; }

  void start() {
    auto const on = link_.lock();
    if (!on) return end();
    look(on->names().image_before(shard_), [this](nats_record const& before) {
      said_before_ = before.sequence;
      kept_ = nats_image_record::read(before.value);
      auto const now = link_.lock();
      if (!now) return end();
      look(now->names().image(shard_), [this](nats_record const& found) {
        last_ = found.sequence;
        auto const record = nats_image_record::read(found.value);
        replaces_ = record.has_value();
        if (record) kept_ = record;
        begin(record ? record->position : 0);
      });
    });
  }

 private:
  static constexpr int at_a_time = 4;

  class exchange final : public nats_request {
   public:
    exchange(std::shared_ptr<nats_image_writing> writing,
             std::function<void(nats_reply const&)> then)
        : writing_{std::move(writing)},
          then_{std::move(then)} {}
    [[nodiscard]] bool wanted() const noexcept override { return !writing_->over(); }
    void answered(nats_reply const& r) override {
      if (!writing_->over()) then_(r);
    }
    void failed(error_code, bool) override { writing_->end(); }

   private:
    std::shared_ptr<nats_image_writing> writing_;
    std::function<void(nats_reply const&)> then_;
  };

  void ask(std::string subject, std::string data, std::function<void(nats_reply const&)> then,
           std::optional<std::uint64_t> expected = {}) {
    auto const on = link_.lock();
    if (!on) return end();
    auto const r = std::make_shared<exchange>(shared_from_this(), std::move(then));
    r->subject = std::move(subject);
    r->data = std::move(data);
    r->expected = expected;
    on->submit(r);
  }

  /// Reads the last message of a subject.
  void look(std::string const& subject, std::function<void(nats_record const&)> then) {
    auto const on = link_.lock();
    if (!on) return end();
    ask(on->names().direct_get(subject), {}, [this, then = std::move(then)](nats_reply const& r) {
      auto const found = read_record(r);
      found.has_error() ? end() : then(*found);
    });
  }

  /// @param last what the last image holds
  void begin(std::uint64_t last) {
    auto const on = link_.lock();
    auto const feed = feed_.lock();
    if (!on) return end();
    held_ = feed ? feed->hold() : nullptr;
    if (!held_ || (**held_).position() <= last) return end();  // it would be no news
    record_.position = (**held_).position();
    record_.id = boost::uuids::to_string(sender_) + "-" + std::to_string(record_.position);
    record_.part_size = nats_image_record::part_within(on->max_payload());
    maker_ = std::make_unique<nats_image_maker>(**held_, record_.part_size);
    make_parts();
  }
  void make_parts() {
    auto const on = link_.lock();
    if (!on || over_) return end();
    if (maker_->go_on()) {
      return post_task(on->strand(), [self = shared_from_this()] { self->make_parts(); });
    }
    record_.size = maker_->size();
    parts_ = std::move(*maker_).take();
    record_.parts = parts_.size();
    maker_.reset();
    held_.reset();
    for (int i = 0; i != at_a_time; ++i) write_part();
  }

  void write_part() {
    auto const on = link_.lock();
    if (!on || over_) return end();
    if (next_ == record_.parts) return;
    auto const n = next_++;
    ask(on->names().part(shard_, record_.id, n), std::move(parts_[n]), [this](nats_reply const& r) {
      auto const written = read_written(r.data());
      if (written.sequence == 0) return end();
      first_ = std::min(first_, written.sequence);
      if (++written_ == record_.parts) return say_before();
      write_part();
    });
  }
  /// Makes the last image the one before. If the last one is damaged, the one before it stays that.
  void say_before() {
    auto const on = link_.lock();
    if (!on) return end();
    if (!replaces_) return say();
    ask(
        on->names().image_before(shard_), kept_->write(),
        [this](nats_reply const& r) { read_written(r.data()).sequence == 0 ? end() : say(); },
        said_before_);
  }
  void say() {
    auto const on = link_.lock();
    if (!on) return end();
    ask(
        on->names().image(shard_), record_.write(),
        [this](nats_reply const& r) { read_written(r.data()).sequence == 0 ? end() : cut(); },
        last_);
  }
  void cut() {
    auto const on = link_.lock();
    if (!on) return end();
    if (!kept_) return tell();
    ask("$JS.API.STREAM.PURGE." + on->names().log_stream(shard_),
        R"({"seq":)" + std::to_string(kept_->position + 1) + "}",
        [this](nats_reply const&) { tell(); });
  }
  void tell() {
    auto const on = link_.lock();
    if (!on) return end();
    ask(on->names().log(shard_), nats_batch_writer{{sender_, 0}, record_.size}.take(),
        [this](nats_reply const&) { find_first(); });
  }
  /// The parts of the image that is kept stay, too. The first one was written first.
  void find_first() {
    auto const on = link_.lock();
    if (!on) return end();
    if (!kept_) return clean();
    look(on->names().part(shard_, kept_->id, 0), [this](nats_record const& found) {
      if (found.sequence != 0) first_ = std::min(first_, found.sequence);
      clean();
    });
  }
  void clean() {
    auto const on = link_.lock();
    if (!on) return end();
    ask(on->names().purge(),
        R"({"filter":")" + on->names().parts(shard_) + R"(","seq":)" + std::to_string(first_) + "}",
        [this](nats_reply const&) { end(); });
  }
  void end() noexcept {
    over_ = true;
    maker_.reset();
    held_.reset();
    parts_.clear();
  }

  std::weak_ptr<nats_link> const link_;
  std::weak_ptr<nats_job_feed> const feed_;
  std::uint32_t const shard_;
  job_id const sender_;
  nats_image_record record_;
  std::unique_ptr<nats_job_feed::held_replica> held_;
  std::unique_ptr<nats_image_maker> maker_;  // of what is held
  std::vector<std::string> parts_;
  std::optional<nats_image_record> kept_;  // the image before this one
  bool replaces_ = false;                  // which was the last one until now
  std::uint64_t last_ = 0;                 // what the record of the last image was written at
  std::uint64_t said_before_ = 0;          // and that of the one before it
  std::uint64_t first_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t next_ = 0;
  std::uint64_t written_ = 0;
  bool over_ = false;
};

/// Writes one image at a time.
class nats_image_writer {
 public:
  /// Has the log grown far enough by its last message?
  [[nodiscard]] static bool due(std::size_t before, std::size_t now, std::size_t last_image,
                                std::shared_ptr<nats_link> const& link) noexcept {
    if (!link) return false;
    auto const interval = std::max(link->options().image_interval, last_image);
    return before / interval < now / interval;
  }

  void write(std::shared_ptr<nats_link> const& link, std::shared_ptr<nats_job_feed> const& of,
             std::uint32_t shard, job_id const& sender) {
    if (writing_ && !writing_->over()) return;
    writing_ = std::make_shared<nats_image_writing>(link, of, shard, sender);
    writing_->start();
  }

 private:
  std::shared_ptr<nats_image_writing> writing_;
};

}  // namespace weir::detail

#endif
