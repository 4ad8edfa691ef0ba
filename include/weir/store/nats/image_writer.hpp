// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_IMAGE_WRITER_HPP
#define WEIR_STORE_NATS_IMAGE_WRITER_HPP

#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/store/nats/job_replica.hpp"
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
#include <string_view>
#include <utility>

namespace weir::detail {

/// Writes an image of a shard, and cuts the log by what is in it. In the strand of the link.
///
/// The steps are: look at which image is the last one, write the parts, say that this is the last
/// one unless there was another one meanwhile, cut the log, tell everybody, and remove older parts.
/// Who ends between two of them leaves an image that counts or one that does not, and parts that go
/// with the next image. Nothing is removed that the last image or the log after it needs: whoever
/// removes was the last one to say which that is, and all that is written later is behind it.
class nats_image_writing : public std::enable_shared_from_this<nats_image_writing> {
 public:
  nats_image_writing(std::shared_ptr<nats_link> const& link, std::uint32_t shard,
                     nats_job_replica const& replica, job_id const& sender)
      : link_{link},
        shard_{shard},
        sender_{sender},
        bytes_{replica.image()} {
    record_.position = replica.position();
    record_.size = bytes_.size();
    record_.parts =
        (bytes_.size() + nats_image_record::part_size - 1) / nats_image_record::part_size;
    record_.id = boost::uuids::to_string(sender) + "-" + std::to_string(record_.position);
  }

  [[nodiscard]] bool over() const noexcept { return over_; }

  void start() {
    auto const on = link_.lock();
    if (!on) return end();
    bool const from_leader = on->replicated();
    auto const subject = on->names().image(shard_);
    ask(from_leader ? on->names().leader_get() : on->names().direct_get(subject),
        from_leader ? R"({"last_by_subj":")" + subject + R"("})" : std::string{},
        [this, from_leader](nats_reply const& r) {
          auto const found = from_leader ? read_leader(r.data()) : read_direct(r);
          if (found.has_error()) return end();
          last_ = found->sequence;
          if (auto const record = nats_image_record::read(found->value);
              record && record->position >= record_.position) {
            return end();  // it is no news
          }
          for (int i = 0; i != at_a_time; ++i) write_part();
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

  void write_part() {
    auto const on = link_.lock();
    if (!on || over_) return end();
    if (next_ == record_.parts) return;
    auto const n = next_++;
    ask(on->names().part(shard_, record_.id, n),
        bytes_.substr(n * nats_image_record::part_size, nats_image_record::part_size),
        [this](nats_reply const& r) {
          auto const written = read_written(r.data());
          if (written.sequence == 0) return end();
          first_ = std::min(first_, written.sequence);
          if (++written_ == record_.parts) return say();
          write_part();
        });
  }
  void say() {
    auto const on = link_.lock();
    if (!on) return end();
    bytes_ = {};
    ask(
        on->names().image(shard_), record_.write(),
        [this](nats_reply const& r) { read_written(r.data()).sequence == 0 ? end() : cut(); },
        last_);
  }
  void cut() {
    auto const on = link_.lock();
    if (!on) return end();
    ask("$JS.API.STREAM.PURGE." + on->names().log_stream(shard_),
        R"({"seq":)" + std::to_string(record_.position + 1) + "}",
        [this](nats_reply const&) { tell(); });
  }
  void tell() {
    auto const on = link_.lock();
    if (!on) return end();
    ask(on->names().log(shard_), nats_batch_writer{{sender_, 0}, record_.size}.take(),
        [this](nats_reply const&) { clean(); });
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
    bytes_ = {};
  }

  std::weak_ptr<nats_link> const link_;
  std::uint32_t const shard_;
  job_id const sender_;
  std::string bytes_;
  nats_image_record record_;
  std::uint64_t last_ = 0;  // what the record of the last image was written at
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

  void write(std::shared_ptr<nats_link> const& link, std::uint32_t shard,
             nats_job_replica const& replica, job_id const& sender) {
    if ((writing_ && !writing_->over()) || replica.position() == 0) return;
    writing_ = std::make_shared<nats_image_writing>(link, shard, replica, sender);
    writing_->start();
  }

 private:
  std::shared_ptr<nats_image_writing> writing_;
};

}  // namespace weir::detail

#endif
