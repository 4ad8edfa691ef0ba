// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_JOB_TRAITS_NAMES_HPP
#define WEIR_DETAIL_JOB_TRAITS_NAMES_HPP

/// @file
/// A member of `job_traits` whose name is mistyped would be silently ignored, and the job would run
/// under the default instead (F88). The language cannot list the members of a class. It can be
/// asked for each name by itself: so it is asked for every name that is one edit (a letter too
/// many, too few, another, or two swapped) from one that has a meaning. 0.1 s of compiling for all
/// 10,000 of them, measured with both compilers.

namespace weir::detail {

#define WEIR_HAS(name)                                                                             \
  if constexpr (requires { T::name; }) ++found;

// clang-format off: tables of letters

// All names that one edit at a letter, the last argument, makes; none where that is empty. Where a
// letter takes its own place this is the name itself: it is counted, too, and `right_names` says how
// often.
#define WEIR_EDITS_AT(before, after, rest, ...)                                                   \
  __VA_OPT__(                                                                                     \
      WEIR_HAS(before##after##rest) WEIR_HAS(before##after##__VA_ARGS__##rest)                    \
      WEIR_HAS(before##a##after##rest) WEIR_HAS(before##b##after##rest)                           \
      WEIR_HAS(before##c##after##rest) WEIR_HAS(before##d##after##rest)                           \
      WEIR_HAS(before##e##after##rest) WEIR_HAS(before##f##after##rest)                           \
      WEIR_HAS(before##g##after##rest) WEIR_HAS(before##h##after##rest)                           \
      WEIR_HAS(before##i##after##rest) WEIR_HAS(before##j##after##rest)                           \
      WEIR_HAS(before##k##after##rest) WEIR_HAS(before##l##after##rest)                           \
      WEIR_HAS(before##m##after##rest) WEIR_HAS(before##n##after##rest)                           \
      WEIR_HAS(before##o##after##rest) WEIR_HAS(before##p##after##rest)                           \
      WEIR_HAS(before##q##after##rest) WEIR_HAS(before##r##after##rest)                           \
      WEIR_HAS(before##s##after##rest) WEIR_HAS(before##t##after##rest)                           \
      WEIR_HAS(before##u##after##rest) WEIR_HAS(before##v##after##rest)                           \
      WEIR_HAS(before##w##after##rest) WEIR_HAS(before##x##after##rest)                           \
      WEIR_HAS(before##y##after##rest) WEIR_HAS(before##z##after##rest)                           \
      WEIR_HAS(before##_##after##rest) WEIR_HAS(before##a##__VA_ARGS__##after##rest)              \
      WEIR_HAS(before##b##__VA_ARGS__##after##rest) WEIR_HAS(before##c##__VA_ARGS__##after##rest) \
      WEIR_HAS(before##d##__VA_ARGS__##after##rest) WEIR_HAS(before##e##__VA_ARGS__##after##rest) \
      WEIR_HAS(before##f##__VA_ARGS__##after##rest) WEIR_HAS(before##g##__VA_ARGS__##after##rest) \
      WEIR_HAS(before##h##__VA_ARGS__##after##rest) WEIR_HAS(before##i##__VA_ARGS__##after##rest) \
      WEIR_HAS(before##j##__VA_ARGS__##after##rest) WEIR_HAS(before##k##__VA_ARGS__##after##rest) \
      WEIR_HAS(before##l##__VA_ARGS__##after##rest) WEIR_HAS(before##m##__VA_ARGS__##after##rest) \
      WEIR_HAS(before##n##__VA_ARGS__##after##rest) WEIR_HAS(before##o##__VA_ARGS__##after##rest) \
      WEIR_HAS(before##p##__VA_ARGS__##after##rest) WEIR_HAS(before##q##__VA_ARGS__##after##rest) \
      WEIR_HAS(before##r##__VA_ARGS__##after##rest) WEIR_HAS(before##s##__VA_ARGS__##after##rest) \
      WEIR_HAS(before##t##__VA_ARGS__##after##rest) WEIR_HAS(before##u##__VA_ARGS__##after##rest) \
      WEIR_HAS(before##v##__VA_ARGS__##after##rest) WEIR_HAS(before##w##__VA_ARGS__##after##rest) \
      WEIR_HAS(before##x##__VA_ARGS__##after##rest) WEIR_HAS(before##y##__VA_ARGS__##after##rest) \
      WEIR_HAS(before##z##__VA_ARGS__##after##rest) WEIR_HAS(before##_##__VA_ARGS__##after##rest))

#define WEIR_EDITS_AFTER(name)                                                                    \
  WEIR_HAS(name##a) WEIR_HAS(name##b) WEIR_HAS(name##c) WEIR_HAS(name##d) WEIR_HAS(name##e)       \
  WEIR_HAS(name##f) WEIR_HAS(name##g) WEIR_HAS(name##h) WEIR_HAS(name##i) WEIR_HAS(name##j)       \
  WEIR_HAS(name##k) WEIR_HAS(name##l) WEIR_HAS(name##m) WEIR_HAS(name##n) WEIR_HAS(name##o)       \
  WEIR_HAS(name##p) WEIR_HAS(name##q) WEIR_HAS(name##r) WEIR_HAS(name##s) WEIR_HAS(name##t)       \
  WEIR_HAS(name##u) WEIR_HAS(name##v) WEIR_HAS(name##w) WEIR_HAS(name##x) WEIR_HAS(name##y)       \
  WEIR_HAS(name##z) WEIR_HAS(name##_)

// A name by its letters, of which the longest has seventeen.
#define WEIR_EDITS_OF_LETTERS(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, ...)             \
  template <class T>                                                                              \
  consteval int edits_of_##a##b##c##d##e##f##g##h##i##j##k##l##m##n##o##p##q() {                  \
    int found = 0;                                                                                \
    WEIR_EDITS_AT(, b, c##d##e##f##g##h##i##j##k##l##m##n##o##p##q, a)                            \
    WEIR_EDITS_AT(a, c, d##e##f##g##h##i##j##k##l##m##n##o##p##q, b)                              \
    WEIR_EDITS_AT(a##b, d, e##f##g##h##i##j##k##l##m##n##o##p##q, c)                              \
    WEIR_EDITS_AT(a##b##c, e, f##g##h##i##j##k##l##m##n##o##p##q, d)                              \
    WEIR_EDITS_AT(a##b##c##d, f, g##h##i##j##k##l##m##n##o##p##q, e)                              \
    WEIR_EDITS_AT(a##b##c##d##e, g, h##i##j##k##l##m##n##o##p##q, f)                              \
    WEIR_EDITS_AT(a##b##c##d##e##f, h, i##j##k##l##m##n##o##p##q, g)                              \
    WEIR_EDITS_AT(a##b##c##d##e##f##g, i, j##k##l##m##n##o##p##q, h)                              \
    WEIR_EDITS_AT(a##b##c##d##e##f##g##h, j, k##l##m##n##o##p##q, i)                              \
    WEIR_EDITS_AT(a##b##c##d##e##f##g##h##i, k, l##m##n##o##p##q, j)                              \
    WEIR_EDITS_AT(a##b##c##d##e##f##g##h##i##j, l, m##n##o##p##q, k)                              \
    WEIR_EDITS_AT(a##b##c##d##e##f##g##h##i##j##k, m, n##o##p##q, l)                              \
    WEIR_EDITS_AT(a##b##c##d##e##f##g##h##i##j##k##l, n, o##p##q, m)                              \
    WEIR_EDITS_AT(a##b##c##d##e##f##g##h##i##j##k##l##m, o, p##q, n)                              \
    WEIR_EDITS_AT(a##b##c##d##e##f##g##h##i##j##k##l##m##n, p, q, o)                              \
    WEIR_EDITS_AT(a##b##c##d##e##f##g##h##i##j##k##l##m##n##o, q, , p)                            \
    WEIR_EDITS_AT(a##b##c##d##e##f##g##h##i##j##k##l##m##n##o##p, , , q)                          \
    WEIR_EDITS_AFTER(a##b##c##d##e##f##g##h##i##j##k##l##m##n##o##p##q)                           \
    return found;                                                                                 \
  }
#define WEIR_EDITS_OF(...) WEIR_EDITS_OF_LETTERS(__VA_ARGS__, , , , , , , , , , , , , , , , , )

WEIR_EDITS_OF(k, i, n, d)
WEIR_EDITS_OF(c, o, d, e, c)
WEIR_EDITS_OF(q, u, e, u, e)
WEIR_EDITS_OF(p, r, i, o, r, i, t, y)
WEIR_EDITS_OF(m, a, x, _, a, t, t, e, m, p, t, s)
WEIR_EDITS_OF(m, a, x, _, s, n, o, o, z, e, s)
WEIR_EDITS_OF(b, a, c, k, o, f, f)
WEIR_EDITS_OF(t, i, m, e, o, u, t)
WEIR_EDITS_OF(d, e, a, d, l, i, n, e)
WEIR_EDITS_OF(r, e, t, e, n, t, i, o, n)
WEIR_EDITS_OF(u, n, i, q, u, e)
WEIR_EDITS_OF(u, n, i, q, u, e, _, k, e, y)
WEIR_EDITS_OF(u, n, i, q, u, e, _, t, t, l)
WEIR_EDITS_OF(o, n, _, c, o, n, f, l, i, c, t)
WEIR_EDITS_OF(c, o, n, c, u, r, r, e, n, c, y)
WEIR_EDITS_OF(c, o, n, c, u, r, r, e, n, c, y, _, k, e, y)
WEIR_EDITS_OF(c, o, n, c, u, r, r, e, n, c, y, _, s, c, o, p, e)
WEIR_EDITS_OF(r, a, t, e)
WEIR_EDITS_OF(r, a, t, e, _, k, e, y)
WEIR_EDITS_OF(r, a, t, e, _, c, o, s, t)
WEIR_EDITS_OF(r, a, t, e, _, s, c, o, p, e)
// clang-format on

#undef WEIR_EDITS_OF
#undef WEIR_EDITS_OF_LETTERS
#undef WEIR_EDITS_AFTER
#undef WEIR_EDITS_AT
#undef WEIR_HAS

// clang-format off: one line for each few names. Has every name.
struct right_names {
  static constexpr int kind = 0, codec = 0, queue = 0, priority = 0, max_attempts = 0, max_snoozes = 0,
                       backoff = 0, timeout = 0, deadline = 0, retention = 0, unique = 0,
                       unique_key = 0, unique_ttl = 0, on_conflict = 0, concurrency = 0,
                       concurrency_key = 0, concurrency_scope = 0, rate = 0, rate_key = 0,
                       rate_cost = 0, rate_scope = 0;
};
// clang-format on
#define WEIR_NO_EDIT_OF(name)                                                                      \
  static_assert(edits_of_##name<Traits>() ==                                                       \
                    (requires { Traits::name; } ? edits_of_##name<right_names>() : 0),             \
                "weir: job_traits has a member that is one letter from " #name                     \
                ": is it mistyped?")

/// Does not compile for traits with a member that is one edit from one with a meaning.
template <class Traits>
struct job_traits_names {
  WEIR_NO_EDIT_OF(kind);
  WEIR_NO_EDIT_OF(codec);
  WEIR_NO_EDIT_OF(queue);
  WEIR_NO_EDIT_OF(priority);
  WEIR_NO_EDIT_OF(max_attempts);
  WEIR_NO_EDIT_OF(max_snoozes);
  WEIR_NO_EDIT_OF(backoff);
  WEIR_NO_EDIT_OF(timeout);
  WEIR_NO_EDIT_OF(deadline);
  WEIR_NO_EDIT_OF(retention);
  WEIR_NO_EDIT_OF(unique);
  WEIR_NO_EDIT_OF(unique_key);
  WEIR_NO_EDIT_OF(unique_ttl);
  WEIR_NO_EDIT_OF(on_conflict);
  WEIR_NO_EDIT_OF(concurrency);
  WEIR_NO_EDIT_OF(concurrency_key);
  WEIR_NO_EDIT_OF(concurrency_scope);
  WEIR_NO_EDIT_OF(rate);
  WEIR_NO_EDIT_OF(rate_key);
  WEIR_NO_EDIT_OF(rate_cost);
  WEIR_NO_EDIT_OF(rate_scope);
};

#undef WEIR_NO_EDIT_OF

}  // namespace weir::detail

#endif
