// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_REQUEST_HPP
#define WEIR_STORE_NATS_REQUEST_HPP

#include "weir/error.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// A message that wants an answer. Everything but making it is done in the strand of the link.
class nats_request {
 public:
  nats_request() = default;
  nats_request(nats_request const&) = delete;
  nats_request& operator=(nats_request const&) = delete;
  virtual ~nats_request() = default;

  /// Does somebody still want it?
  [[nodiscard]] virtual bool wanted() const noexcept = 0;
  virtual void answered(nats_reply const& reply) = 0;
  /// Is that all of its answer? Otherwise it is told of more.
  [[nodiscard]] virtual bool done() const noexcept { return true; }
  /// @param why `timed_out`: there was no answer in time; `outcome_unknown`: the connection ended
  /// @param given it was given to a connection: whatever it does may have been done
  virtual void failed(error_code why, bool given) = 0;
  /// It has waited for a connection until `give_up_at`.
  void lose_patience(error_code why) { failed(why, false); }

  std::string subject{};
  std::string data{};
  /// Of a write: the sequence of the subject's last message, 0 being that there is none.
  std::optional<std::uint64_t> expected{};
  std::string note{};     ///< of a message of a log: its `nats_note_header`; empty: none
  std::uint64_t ttl = 0;  ///< of a write: seconds until the server forgets it; 0: never
  steady_time give_up_at{};
  std::uint64_t number = 0;  ///< of the request, in its conversation, once it was given

  /// Bytes of the message, headers included, at most: what a server's `max_payload` bounds.
  [[nodiscard]] std::size_t size() const noexcept {
    bool const any = expected || ttl != 0 || !note.empty();
    return data.size() + note.size() + (any ? most_headers : 0);
  }
  /// Of all headers but the note's text, with numbers of 20 digits, and more.
  static constexpr std::size_t most_headers = 128;
};

/// Who is told of hints, in the strand.
class nats_hinted {
 public:
  nats_hinted() = default;
  nats_hinted(nats_hinted const&) = delete;
  nats_hinted& operator=(nats_hinted const&) = delete;
  virtual ~nats_hinted() = default;
  virtual void hinted(std::string const& record) = 0;
};

/// A question that is wanted whatever happens. `then(error_code, nats_reply const*, bool given)`
/// hears the answer, or why there is none: null, and whether it was given to a connection.
class nats_question final : public nats_request {
 public:
  using heard = std::function<void(error_code, nats_reply const*, bool given)>;

  explicit nats_question(heard then) : then_{std::move(then)} {}
  [[nodiscard]] bool wanted() const noexcept override { return true; }
  void answered(nats_reply const& r) override { then_({}, &r, true); }
  void failed(error_code why, bool given) override { then_(why, nullptr, given); }

 private:
  heard then_;
};

}  // namespace weir::detail

#endif
