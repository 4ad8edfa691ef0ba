// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_IMAGE_WRITER_HPP
#define WEIR_STORE_NATS_IMAGE_WRITER_HPP

#include "weir/clock/system.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/store/nats/image_maker.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/job_feed.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/request.hpp"
#include "weir/store/nats/reserve.hpp"
#include "weir/time.hpp"

#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// Writes an image of a shard, and cuts the log by what is in it. In the strand of the link.
///
/// The records of a shard's images have three places. The steps are: look at them, make the parts,
/// write them, say in one of the places that there is an image unless somebody was there meanwhile,
/// cut the log, tell everybody, and remove the parts of no image. A process that ends between two
/// of them leaves an image that counts or one that does not, and parts that go with a later image.
///
/// A server acknowledges before the disk has what it acknowledged. So an image is safe when it was
/// complete two `sync_interval` ago, and the log is cut behind the newest one that is; what is
/// after that is still there if power fails and takes all later images with it. The record of a
/// safe image stays until a newer one is safe: the two older places grow old, and the newest image
/// is written over until then. In place of a damaged image one before it serves, or all of the log
/// (F93).
///
/// While the parts are made the shard is not read any further, and its commands wait; other shards
/// and nouns do not, since that is done in portions.
class nats_image_writing : public std::enable_shared_from_this<nats_image_writing> {
 public:
  nats_image_writing(std::shared_ptr<nats_link> const& link,
                     std::shared_ptr<nats_job_feed> const& of, std::uint32_t shard,
                     job_id const& sender, bool full)
      : link_{link},
        feed_{of},
        shard_{shard},
        sender_{sender},
        full_{full} {}

  [[nodiscard]] bool over() const noexcept { return over_; }

  void start(nats_link& on) {
    connection_ = on.connection();
    look_at(on, 0, full_ ? &nats_image_writing::make_room : &nats_image_writing::begin);
  }

 private:
  static constexpr int at_a_time = 4;

  /// On another connection the log may be another one, of which this is no image: a server that has
  /// lost power has lost the end.
  void ask(nats_link& on, std::string subject, std::string data,
           std::function<void(nats_link&, nats_reply const&)> then,
           std::optional<std::uint64_t> expected = {}) {
    if (over_ || !on.up() || on.connection() != connection_) return end();
    auto const r =
        std::make_shared<nats_question>([self = shared_from_this(), then = std::move(then)](
                                            error_code, nats_reply const* reply, bool) {
          auto const link = self->link_.lock();
          if (!reply || !link) return self->end();
          if (!self->over()) then(*link, *reply);
        });
    r->subject = std::move(subject);
    r->data = std::move(data);
    r->expected = expected;
    on.submit(r);
  }

  /// Reads the last message of a subject.
  void look(nats_link& on, std::string const& subject,
            std::function<void(nats_link&, nats_record const&)> then) {
    ask(on, on.names().direct_get(subject), {},
        [this, then = std::move(then)](nats_link& l, nats_reply const& r) {
          auto const found = read_record(r);
          found.has_error() ? end() : then(l, *found);
        });
  }

  using step = void (nats_image_writing::*)(nats_link&);
  struct place {
    std::optional<nats_image_record> image;
    std::uint64_t sequence = 0;  // that it was written at
  };

  /// Looks at all places, and chooses one.
  void look_at(nats_link& on, std::size_t n, step then) {
    if (n == places_.size()) {
      choose(on);
      return (this->*then)(on);
    }
    look(on, on.names().image(shard_, n), [this, n, then](nats_link& l, nats_record const& found) {
      if (nats_image_record::is_later(found.value)) return end();
      places_[n] = {nats_image_record::read(found.value), found.sequence};
      auto const feed = feed_.lock();
      auto& image = places_[n].image;
      if (image && feed && feed->is_damaged(image->id)) image.reset();
      check(l, n, then);
    });
  }
  /// An image that has lost a part is none.
  void check(nats_link& on, std::size_t n, step then) {
    auto& image = places_[n].image;
    if (!image) return look_at(on, n + 1, then);
    count_parts(on, *image, [this, n, then](nats_link& l, bool all) {
      if (!all) places_[n].image.reset();
      look_at(l, n + 1, then);
    });
  }
  /// `then(bool)`: are all of its parts there?
  void count_parts(nats_link& on, nats_image_record const& image,
                   std::function<void(nats_link&, bool)> then) {
    ask(on, on.names().info(), on.names().counting(on.names().parts(shard_, image.id)),
        [this, n = image.parts, then = std::move(then)](nats_link& l, nats_reply const& r) {
          auto const said = nats_json::parse(r.data());
          if (nats_stream_error(said) != 0 || !said.is_object() || !said.contains("state")) {
            return end();
          }
          auto const parts = said["state"].find("subjects");
          then(l, parts != said["state"].end() && parts->size() == n);
        });
  }

  /// The log takes no more. It is cut behind the newest image, if that helps; otherwise behind a
  /// new one.
  void make_room(nats_link& on) {
    auto const feed = feed_.lock();
    auto const held = feed ? feed->hold() : nullptr;
    if (!held) return end();
    if (!safe_ || newest_ > (**held).position()) return begin(on);
    purge(on, newest_, [this](nats_link& l, bool some) {
      made_ = some;
      some ? end() : begin(l);
    });
  }
  /// Cuts the log behind a message. `then(bool)`: was there something?
  void purge(nats_link& on, std::uint64_t position, std::function<void(nats_link&, bool)> then) {
    ask(on, "$JS.API.STREAM.PURGE." + on.names().log_stream(shard_),
        R"({"seq":)" + std::to_string(position + 1) + "}",
        [then = std::move(then)](nats_link& l, nats_reply const& r) {
          then(l, nats_json::number(nats_json::parse(r.data()), "purged") != 0);
        });
  }

  void begin(nats_link& on) {
    auto const feed = feed_.lock();
    held_ = feed ? feed->hold() : nullptr;
    made_ = held_ && (**held_).position() <= newest_;
    if (!held_ || made_) return end();  // it would be no news
    record_.position = (**held_).position();
    record_.id = boost::uuids::to_string(sender_) + "-" + std::to_string(record_.position);
    record_.part_size = nats_image_record::part_within(on.max_payload());
    record_.stored = (**held_).stored();
    record_.told = (**held_).told();
    maker_ = std::make_unique<nats_image_maker>(**held_, record_.part_size);
    make_parts(on);
  }
  /// Chooses the place of this image, and the image behind which the log is cut.
  void choose(nats_link const& on) {
    auto const safe_at = saturating_add(on.now().earliest, -2 * on.options().sync_interval);
    newest_ = 0;
    safe_.reset();
    std::optional<std::size_t> oldest;
    std::size_t last = 0;
    std::optional<std::size_t> free;
    for (std::size_t i = 0; i != places_.size(); ++i) {
      auto const& image = places_[i].image;
      if (!image) {
        free = i;
        continue;
      }
      if (!oldest || image->position < places_[*oldest].image->position) oldest = i;
      if (image->position >= newest_) {
        newest_ = image->position;
        last = i;
      }
      bool const safe = full_ || image->complete <= safe_at;
      if (safe && (!safe_ || image->position > places_[*safe_].image->position)) safe_ = i;
    }
    // One before the safe image is of no use any more.
    place_ = free ? *free : safe_ && safe_ != oldest ? *oldest : last;
  }
  void make_parts(nats_link& on) {
    if (over_) return end();
    try {
      if (maker_->go_on()) return post_task(on.strand(), on_link(&nats_image_writing::make_parts));
      record_.size = maker_->size();
      parts_ = std::move(*maker_).take();
    } catch (std::bad_alloc const&) {  // the log is kept, and tried again with later
      return end();
    }
    record_.parts = parts_.size();
    maker_.reset();
    held_.reset();
    auto begin = on_link([](nats_image_writing& w, nats_link& l) { w.write_part(l); });
    // In a cluster more would be written than there is room for, before a server knows of it.
    full_&& on.options().replicas > 1 ? make_way(on, begin) : begin();
  }

  /// Goes on with something later, if there is still the link.
  template <class Step>
  [[nodiscard]] std::function<void()> on_link(Step then) {
    return [self = shared_from_this(), then] {
      auto const link = self->link_.lock();
      link ? std::invoke(then, *self, *link) : self->end();
    };
  }

  void write_part(nats_link& on) {
    if (next_ != record_.parts) write_part(on, next_++);
  }
  void write_part(nats_link& on, std::size_t n) {
    if (over_) return end();
    if (gives_up_) return;
    ask(on, on.names().part(shard_, record_.id, n), parts_[n],
        [this, n](nats_link& l, nats_reply const& r) {
          auto const written = read_written(r.data());
          if (written.failed == errc::store_full && full_) return no_room(l, n);
          if (written.sequence == 0) return give_up(l);
          if (gives_up_) return;
          first_ = std::min(first_, written.sequence);
          std::string{}.swap(parts_[n]);
          if (++written_ == record_.parts) return look_at(l, 0, &nats_image_writing::count_own);
          // The first part is the oldest one: cleaning keeps all that is not older than that.
          for (int i = n == 0 ? at_a_time : 1; i != 0; --i) write_part(l);
        });
  }
  /// A part found no room. At the first time the images before the newest one are removed, and the
  /// shard's own reserves; at the second the common one.
  void no_room(nats_link& on, std::size_t part) {
    if (gives_up_) return;
    refused_.push_back(part);
    if (refused_.size() != 1) return;  // that is on its way
    auto again = on_link([](nats_image_writing& w, nats_link& l) {
      for (auto const n : std::exchange(w.refused_, {})) w.write_part(l, n);
    });
    if (on.later(room_until_, again)) return;
    given_ == most_given ? give_up(on) : make_way(on, std::move(again));
  }
  void make_way(nats_link& on, std::function<void()> then) {
    auto const feed = feed_.lock();
    if (!feed) return end();
    remove_older(on, 0, [self = shared_from_this(), feed, then = std::move(then)] {
      feed->give_room(self->given_++, [self, then] {
        self->room_until_ = self->known_by_all();
        then();
      });
    });
  }
  /// When all servers know of the room that was made now.
  [[nodiscard]] steady_time known_by_all() const {
    auto const on = link_.lock();
    auto const spread = on && on->options().replicas > 1 ? nats_reserve::spread : duration{};
    return saturating_add(system_clock{}.steady_now(), spread);
  }
  void remove_older(nats_link& on, std::size_t n, std::function<void()> then) {
    while (n != places_.size() &&
           (given_ != 0 || !places_[n].image || places_[n].image->position == newest_)) {
      ++n;
    }
    if (n == places_.size()) return then();
    remove_parts(on, places_[n].image->id,
                 [this, n, then = std::move(then)](nats_link& l) { remove_older(l, n + 1, then); });
  }
  /// There is no room for all parts: those that were written would fill what others need (F61).
  void give_up(nats_link& on) {
    if (std::exchange(gives_up_, true)) return;
    remove_parts(on, record_.id, [this](nats_link&) { end(); });
  }
  /// Another process that made room may have taken some.
  void count_own(nats_link& on) {
    count_parts(on, record_, [this](nats_link& l, bool all) { all ? say(l) : give_up(l); });
  }
  void say(nats_link& on) {
    if (record_.position <= newest_) return end();  // another one is newer by now
    record_.complete = on.now().latest();
    ask(
        on, on.names().image(shard_, place_), record_.write(),
        [this](nats_link& l, nats_reply const& r) {
          made_ = read_written(r.data()).sequence != 0;
          made_ ? cut(l) : end();
        },
        places_[place_].sequence);
  }
  void cut(nats_link& on) {
    if (full_) return purge(on, record_.position, [this](nats_link& l, bool) { tell(l); });
    if (!safe_) return tell(on);
    purge(on, places_[*safe_].image->position, [this](nats_link& l, bool) { tell(l); });
  }
  void tell(nats_link& on) {
    ask(on, on.names().log(shard_),
        nats_batch_writer{{sender_, 0}, on.stamp(), record_.size}.take(),
        [this](nats_link& l, nats_reply const&) { find_first(l, 0); });
  }
  /// The parts of the images that are kept stay. The first one of each was written first.
  void find_first(nats_link& on, std::size_t n) {
    if (full_) return clean(on);  // there is no room for those of before
    if (n == places_.size()) return remove_replaced(on);
    if (n == place_ || !places_[n].image) return find_first(on, n + 1);
    look(on, on.names().part(shard_, places_[n].image->id, 0),
         [this, n](nats_link& l, nats_record const& found) {
           if (found.sequence != 0) first_ = std::min(first_, found.sequence);
           find_first(l, n + 1);
         });
  }
  void remove_replaced(nats_link& on) {
    auto const& replaced = places_[place_].image;
    replaced ? remove_parts(on, replaced->id, [this](nats_link& l) { clean(l); }) : clean(on);
  }
  void remove_parts(nats_link& on, std::string const& image, std::function<void(nats_link&)> then) {
    ask(on, on.names().purge(), on.names().removing(on.names().parts(shard_, image)),
        [then = std::move(then)](nats_link& l, nats_reply const&) { then(l); });
  }
  /// Removes parts of processes that ended before they said that their image is there.
  void clean(nats_link& on) {
    ask(on, on.names().purge(),
        R"({"filter":")" + on.names().parts(shard_) + R"(","seq":)" + std::to_string(first_) + "}",
        [this](nats_link&, nats_reply const&) { end(); });
  }
  void end() {
    maker_.reset();
    held_.reset();
    parts_.clear();
    if (std::exchange(over_, true)) return;
    if (auto const feed = feed_.lock()) feed->image_ended(full_, made_);
  }

  std::weak_ptr<nats_link> const link_;
  std::weak_ptr<nats_job_feed> const feed_;
  std::uint32_t const shard_;
  job_id const sender_;
  bool const full_;
  std::uint64_t connection_ = 0;
  nats_image_record record_;
  std::unique_ptr<nats_job_feed::held_replica> held_;
  std::unique_ptr<nats_image_maker> maker_;  // of what is held
  std::vector<std::string> parts_;
  std::array<place, nats_names::images> places_{};
  std::uint64_t newest_ = 0;         // what the newest image holds
  std::optional<std::size_t> safe_;  // the place of the newest one that the disk has
  std::size_t place_ = 0;            // and of this one
  std::uint64_t first_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t next_ = 0;
  std::uint64_t written_ = 0;
  static constexpr int most_given = 2;  // times that room is given up
  int given_ = 0;
  steady_time room_until_ = steady_time::min();  // what was given up may be of no use until then
  std::vector<std::size_t> refused_;             // parts, for want of room
  bool gives_up_ = false;
  bool made_ = false;
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

  /// @param full the log takes no more: it is cut behind the newest image, whether the disk has
  /// that
  ///        or not
  void write(std::shared_ptr<nats_link> const& link, std::shared_ptr<nats_job_feed> const& of,
             std::uint32_t shard, job_id const& sender, bool full) {
    if (writing_ && !writing_->over()) return;
    writing_ = std::make_shared<nats_image_writing>(link, of, shard, sender, full);
    writing_->start(*link);
  }

 private:
  std::shared_ptr<nats_image_writing> writing_;
};

}  // namespace weir::detail

#endif
