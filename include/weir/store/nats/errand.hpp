// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_ERRAND_HPP
#define WEIR_STORE_NATS_ERRAND_HPP

#include "weir/error.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace weir::detail {

/// The matter of a command, which says where it is executed.
enum class nats_matter : std::uint8_t {
  permits,
  locks,
  buckets,
  jobs,
  wait_for_permit,
  wait_for_jobs
};

/// A command that waits for its answer: it is executed in this process, or its owner is asked.
/// Everything but making it is done in the strand of the link.
class nats_errand : public std::enable_shared_from_this<nats_errand> {
 public:
  nats_errand() = default;
  nats_errand(nats_errand const&) = delete;
  nats_errand& operator=(nats_errand const&) = delete;
  virtual ~nats_errand() = default;

  [[nodiscard]] virtual nats_matter matter() const noexcept = 0;
  /// Does it change nothing, so that it may be asked again though it may have been executed?
  [[nodiscard]] virtual bool only_reads() const noexcept = 0;
  /// How many bytes its answer may have, where those are many; otherwise 0.
  [[nodiscard]] virtual std::size_t answer_bytes() const noexcept { return 0; }
  /// Does somebody still want its answer?
  [[nodiscard]] virtual bool wanted() const noexcept = 0;
  /// It is about to be given away. False: nobody wants it any more. `stays`: it was not done.
  [[nodiscard]] virtual bool leaves() noexcept = 0;
  virtual void stays() noexcept = 0;
  virtual void fail(error_code ec) noexcept = 0;
  void fail(errc e) noexcept { fail(make_error_code(e)); }

  /// Adds it to a question.
  virtual void ask(std::string& to) const = 0;
  /// Takes the result that an owner has found. False: it is none.
  [[nodiscard]] virtual bool hear(std::string_view result) = 0;

  /// It has waited until `give_up_at`.
  void lose_patience(error_code why) noexcept { fail(why); }

  steady_time give_up_at{};
  int asked = 0;  ///< times that an owner was asked
};

}  // namespace weir::detail

#endif
