// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BACKOFF_JITTERED_HPP
#define WEIR_BACKOFF_JITTERED_HPP

#include "weir/backoff/arithmetic.hpp"
#include "weir/concept.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace weir {

/// Anywhere from 0 to the wait: spreads callers best.
struct full_jitter {
  /// A wait from [0, what the inner backoff says].
  template <class B>
  [[nodiscard]] constexpr duration operator()(B const& inner, std::uint32_t attempt,
                                              duration previous, std::uint64_t entropy) const {
    return detail::part_of(detail::as_wait(inner(attempt, previous, std::rotl(entropy, 32))),
                           entropy);
  }
};

/// Anywhere from half the wait to the wait: never returns at once.
struct equal_jitter {
  /// A wait from [half of what the inner backoff says, all of it].
  template <class B>
  [[nodiscard]] constexpr duration operator()(B const& inner, std::uint32_t attempt,
                                              duration previous, std::uint64_t entropy) const {
    duration const wait = detail::as_wait(inner(attempt, previous, std::rotl(entropy, 32)));
    return wait - detail::part_of(wait / 2, entropy);
  }
};

/// Anywhere from the inner backoff's first wait to three times the previous wait. It grows from
/// what was drawn and not with the attempt, so it wants a `capped_backoff` around it. Failed
/// attempts of jobs have no previous wait that anybody remembers: there it does not grow.
struct decorrelated_jitter {
  /// A wait from [the inner backoff's first, three times `previous` or that first].
  template <class B>
  [[nodiscard]] constexpr duration operator()(B const& inner, std::uint32_t /*attempt*/,
                                              duration previous, std::uint64_t entropy) const {
    duration const least = detail::as_wait(inner(0, duration::zero(), std::rotl(entropy, 32)));
    duration const most = detail::multiply_wait(std::max(detail::as_wait(previous), least), 3);
    return detail::add_waits(least, detail::part_of(most - least, entropy));
  }
};

/// Another backoff, drawn at random, so that callers that failed together do not come back
/// together. The kinds of jitter are those of M. Brooker, "Exponential backoff and jitter", AWS
/// Architecture Blog, 2015.
///
///     constexpr weir::jittered_backoff retry{weir::exponential_backoff{100ms},
///     weir::equal_jitter{}};
template <backoff B, class Jitter = full_jitter>
class jittered_backoff {
 public:
  /// @param inner  what is drawn from
  /// @param jitter how
  constexpr explicit jittered_backoff(B inner, Jitter jitter = {})
      : inner_{std::move(inner)},
        jitter_{std::move(jitter)} {}

  /// A wait drawn by `entropy`; at most `limits::span`. `previous` is what this gave before.
  [[nodiscard]] constexpr duration operator()(std::uint32_t attempt, duration previous,
                                              std::uint64_t entropy) const
      noexcept(noexcept(std::declval<B const&>()(attempt, previous, entropy))) {
    return jitter_(inner_, attempt, previous, entropy);
  }

 private:
  B inner_;
  [[no_unique_address]] Jitter jitter_;
};

}  // namespace weir

#endif
