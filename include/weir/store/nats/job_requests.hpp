// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOB_REQUESTS_HPP
#define WEIR_STORE_NATS_JOB_REQUESTS_HPP

#include "weir/error.hpp"
#include "weir/store/nats/followers.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/log_info.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/options.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/request.hpp"
#include "weir/store/nats/violations.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace weir::detail {

/// What the keeper of a shard asks the server for. In the strand of the link.
class nats_job_requests : public nats_feed, public std::enable_shared_from_this<nats_job_requests> {
 public:
  nats_job_requests(std::shared_ptr<nats_link> const& link, std::uint32_t shard)
      : link_{link},
        shard_{shard},
        names_{link->names()},
        options_{link->options()} {}

 protected:
  using on_reply = std::function<void(nats_reply const&)>;
  using on_failure = std::function<void(error_code why, bool given)>;

  /// What was needed and did not come has to be asked for again, with all that goes with it.
  virtual void begin_later() = 0;
  /// What was needed is refused, and will be until something changes.
  virtual void stop(error_code why) = 0;

  [[nodiscard]] std::shared_ptr<nats_link> link() const noexcept { return link_.lock(); }
  [[nodiscard]] std::uint32_t number() const noexcept { return shard_; }
  [[nodiscard]] nats_names const& names() const noexcept { return names_; }
  [[nodiscard]] nats_options const& options() const noexcept { return options_; }

  /// Whatever is needed and was not answered yet is not needed any more.
  void need_no_more() noexcept { ++epoch_; }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }

  /// Asks for something, and is told what came of it on whatever connection.
  /// @param note as in `nats_request`
  void ask(std::string subject, std::string data, on_reply then, on_failure otherwise,
           std::optional<std::uint64_t> expected = {}, std::string note = {}) {
    auto const on = link();
    if (!on) return otherwise(make_error_code(errc::closed), false);
    auto const r = std::make_shared<nats_question>(
        [self = shared_from_this(), then = std::move(then),
         otherwise = std::move(otherwise)](error_code why, nats_reply const* reply, bool given) {
          reply ? then(*reply) : otherwise(why, given);
        });
    r->subject = std::move(subject);
    r->data = std::move(data);
    r->expected = expected;
    r->note = std::move(note);
    on->submit(r);
  }

  /// Asks what the log is like.
  void ask_info(std::function<void(nats_log_info const&)> then, on_failure otherwise) {
    ask(
        "$JS.API.STREAM.INFO." + names_.log_stream(shard_), {},
        [this, then = std::move(then)](nats_reply const& r) {
          auto const info = info_in(r);
          if (auto const now = link(); now && info.error == 0) now->served();
          then(info);
        },
        std::move(otherwise));
  }
  [[nodiscard]] nats_log_info info_in(nats_reply const& r) const {
    return read_log_info(r.data(), names_.log(shard_), names_.echo(shard_));
  }

  /// Asks for something that is of no use on another connection.
  void need(std::string subject, std::string data, on_reply then,
            std::optional<std::uint64_t> expected = {}) {
    auto const now = epoch_;
    ask(
        std::move(subject), std::move(data),
        [this, now, then = std::move(then)](nats_reply const& r) {
          if (now == epoch_) then(r);
        },
        [this, now](error_code why, bool) {
          if (now != epoch_) return;
          why == nats_not_permitted() ? stop(why) : begin_later();
        },
        expected);
  }
  /// The last message of a subject among the records.
  void need_record(std::string const& subject, std::function<void(nats_record&&)> then) {
    need(names_.direct_get(subject), {}, [this, then = std::move(then)](nats_reply const& r) {
      auto found = read_record(r);
      if (found.has_error()) return begin_later();
      then(std::move(found).value());
    });
  }
  /// A message of the log.
  void need_message(std::uint64_t sequence,
                    std::function<void(std::optional<nats_logged>&&)> then) {
    need("$JS.API.DIRECT.GET." + names_.log_stream(shard_),
         R"({"seq":)" + std::to_string(sequence) + "}",
         [then = std::move(then)](nats_reply const& r) { then(read_logged(r)); });
  }

 private:
  std::weak_ptr<nats_link> const link_;
  std::uint32_t const shard_;
  nats_names const names_;
  nats_options const options_;
  std::uint64_t epoch_ = 0;  // of what was asked for
};

}  // namespace weir::detail

#endif
