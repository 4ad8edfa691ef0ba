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

// clang-format off: a table of letters, and one line for each place of an edit

// All names that one edit at `at` makes. Where a letter takes its own place this is the name
// itself: it is counted, too, and `right_names` says how often.
#define WEIR_EDITS_AT(before, at, after, rest)                                                    \
  WEIR_HAS(before##after##rest) WEIR_HAS(before##after##at##rest)                                 \
  WEIR_HAS(before##a##after##rest) WEIR_HAS(before##b##after##rest)                               \
  WEIR_HAS(before##c##after##rest) WEIR_HAS(before##d##after##rest)                               \
  WEIR_HAS(before##e##after##rest) WEIR_HAS(before##f##after##rest)                               \
  WEIR_HAS(before##g##after##rest) WEIR_HAS(before##h##after##rest)                               \
  WEIR_HAS(before##i##after##rest) WEIR_HAS(before##j##after##rest)                               \
  WEIR_HAS(before##k##after##rest) WEIR_HAS(before##l##after##rest)                               \
  WEIR_HAS(before##m##after##rest) WEIR_HAS(before##n##after##rest)                               \
  WEIR_HAS(before##o##after##rest) WEIR_HAS(before##p##after##rest)                               \
  WEIR_HAS(before##q##after##rest) WEIR_HAS(before##r##after##rest)                               \
  WEIR_HAS(before##s##after##rest) WEIR_HAS(before##t##after##rest)                               \
  WEIR_HAS(before##u##after##rest) WEIR_HAS(before##v##after##rest)                               \
  WEIR_HAS(before##w##after##rest) WEIR_HAS(before##x##after##rest)                               \
  WEIR_HAS(before##y##after##rest) WEIR_HAS(before##z##after##rest)                               \
  WEIR_HAS(before##_##after##rest) WEIR_HAS(before##a##at##after##rest)                           \
  WEIR_HAS(before##b##at##after##rest) WEIR_HAS(before##c##at##after##rest)                       \
  WEIR_HAS(before##d##at##after##rest) WEIR_HAS(before##e##at##after##rest)                       \
  WEIR_HAS(before##f##at##after##rest) WEIR_HAS(before##g##at##after##rest)                       \
  WEIR_HAS(before##h##at##after##rest) WEIR_HAS(before##i##at##after##rest)                       \
  WEIR_HAS(before##j##at##after##rest) WEIR_HAS(before##k##at##after##rest)                       \
  WEIR_HAS(before##l##at##after##rest) WEIR_HAS(before##m##at##after##rest)                       \
  WEIR_HAS(before##n##at##after##rest) WEIR_HAS(before##o##at##after##rest)                       \
  WEIR_HAS(before##p##at##after##rest) WEIR_HAS(before##q##at##after##rest)                       \
  WEIR_HAS(before##r##at##after##rest) WEIR_HAS(before##s##at##after##rest)                       \
  WEIR_HAS(before##t##at##after##rest) WEIR_HAS(before##u##at##after##rest)                       \
  WEIR_HAS(before##v##at##after##rest) WEIR_HAS(before##w##at##after##rest)                       \
  WEIR_HAS(before##x##at##after##rest) WEIR_HAS(before##y##at##after##rest)                       \
  WEIR_HAS(before##z##at##after##rest) WEIR_HAS(before##_##at##after##rest)

#define WEIR_EDITS_AFTER(name)                                                                    \
  WEIR_HAS(name##a) WEIR_HAS(name##b) WEIR_HAS(name##c) WEIR_HAS(name##d) WEIR_HAS(name##e)       \
  WEIR_HAS(name##f) WEIR_HAS(name##g) WEIR_HAS(name##h) WEIR_HAS(name##i) WEIR_HAS(name##j)       \
  WEIR_HAS(name##k) WEIR_HAS(name##l) WEIR_HAS(name##m) WEIR_HAS(name##n) WEIR_HAS(name##o)       \
  WEIR_HAS(name##p) WEIR_HAS(name##q) WEIR_HAS(name##r) WEIR_HAS(name##s) WEIR_HAS(name##t)       \
  WEIR_HAS(name##u) WEIR_HAS(name##v) WEIR_HAS(name##w) WEIR_HAS(name##x) WEIR_HAS(name##y)       \
  WEIR_HAS(name##z) WEIR_HAS(name##_)

template <class T>
consteval int edits_of_kind() {
  int found = 0;
  WEIR_EDITS_AT(, k, i, nd)
  WEIR_EDITS_AT(k, i, n, d)
  WEIR_EDITS_AT(ki, n, d, )
  WEIR_EDITS_AT(kin, d, , )
  WEIR_EDITS_AFTER(kind)
  return found;
}
template <class T>
consteval int edits_of_codec() {
  int found = 0;
  WEIR_EDITS_AT(, c, o, dec)
  WEIR_EDITS_AT(c, o, d, ec)
  WEIR_EDITS_AT(co, d, e, c)
  WEIR_EDITS_AT(cod, e, c, )
  WEIR_EDITS_AT(code, c, , )
  WEIR_EDITS_AFTER(codec)
  return found;
}
template <class T>
consteval int edits_of_queue() {
  int found = 0;
  WEIR_EDITS_AT(, q, u, eue)
  WEIR_EDITS_AT(q, u, e, ue)
  WEIR_EDITS_AT(qu, e, u, e)
  WEIR_EDITS_AT(que, u, e, )
  WEIR_EDITS_AT(queu, e, , )
  WEIR_EDITS_AFTER(queue)
  return found;
}
template <class T>
consteval int edits_of_priority() {
  int found = 0;
  WEIR_EDITS_AT(, p, r, iority)
  WEIR_EDITS_AT(p, r, i, ority)
  WEIR_EDITS_AT(pr, i, o, rity)
  WEIR_EDITS_AT(pri, o, r, ity)
  WEIR_EDITS_AT(prio, r, i, ty)
  WEIR_EDITS_AT(prior, i, t, y)
  WEIR_EDITS_AT(priori, t, y, )
  WEIR_EDITS_AT(priorit, y, , )
  WEIR_EDITS_AFTER(priority)
  return found;
}
template <class T>
consteval int edits_of_max_attempts() {
  int found = 0;
  WEIR_EDITS_AT(, m, a, x_attempts)
  WEIR_EDITS_AT(m, a, x, _attempts)
  WEIR_EDITS_AT(ma, x, _, attempts)
  WEIR_EDITS_AT(max, _, a, ttempts)
  WEIR_EDITS_AT(max_, a, t, tempts)
  WEIR_EDITS_AT(max_a, t, t, empts)
  WEIR_EDITS_AT(max_at, t, e, mpts)
  WEIR_EDITS_AT(max_att, e, m, pts)
  WEIR_EDITS_AT(max_atte, m, p, ts)
  WEIR_EDITS_AT(max_attem, p, t, s)
  WEIR_EDITS_AT(max_attemp, t, s, )
  WEIR_EDITS_AT(max_attempt, s, , )
  WEIR_EDITS_AFTER(max_attempts)
  return found;
}
template <class T>
consteval int edits_of_max_snoozes() {
  int found = 0;
  WEIR_EDITS_AT(, m, a, x_snoozes)
  WEIR_EDITS_AT(m, a, x, _snoozes)
  WEIR_EDITS_AT(ma, x, _, snoozes)
  WEIR_EDITS_AT(max, _, s, noozes)
  WEIR_EDITS_AT(max_, s, n, oozes)
  WEIR_EDITS_AT(max_s, n, o, ozes)
  WEIR_EDITS_AT(max_sn, o, o, zes)
  WEIR_EDITS_AT(max_sno, o, z, es)
  WEIR_EDITS_AT(max_snoo, z, e, s)
  WEIR_EDITS_AT(max_snooz, e, s, )
  WEIR_EDITS_AT(max_snooze, s, , )
  WEIR_EDITS_AFTER(max_snoozes)
  return found;
}
template <class T>
consteval int edits_of_backoff() {
  int found = 0;
  WEIR_EDITS_AT(, b, a, ckoff)
  WEIR_EDITS_AT(b, a, c, koff)
  WEIR_EDITS_AT(ba, c, k, off)
  WEIR_EDITS_AT(bac, k, o, ff)
  WEIR_EDITS_AT(back, o, f, f)
  WEIR_EDITS_AT(backo, f, f, )
  WEIR_EDITS_AT(backof, f, , )
  WEIR_EDITS_AFTER(backoff)
  return found;
}
template <class T>
consteval int edits_of_timeout() {
  int found = 0;
  WEIR_EDITS_AT(, t, i, meout)
  WEIR_EDITS_AT(t, i, m, eout)
  WEIR_EDITS_AT(ti, m, e, out)
  WEIR_EDITS_AT(tim, e, o, ut)
  WEIR_EDITS_AT(time, o, u, t)
  WEIR_EDITS_AT(timeo, u, t, )
  WEIR_EDITS_AT(timeou, t, , )
  WEIR_EDITS_AFTER(timeout)
  return found;
}
template <class T>
consteval int edits_of_deadline() {
  int found = 0;
  WEIR_EDITS_AT(, d, e, adline)
  WEIR_EDITS_AT(d, e, a, dline)
  WEIR_EDITS_AT(de, a, d, line)
  WEIR_EDITS_AT(dea, d, l, ine)
  WEIR_EDITS_AT(dead, l, i, ne)
  WEIR_EDITS_AT(deadl, i, n, e)
  WEIR_EDITS_AT(deadli, n, e, )
  WEIR_EDITS_AT(deadlin, e, , )
  WEIR_EDITS_AFTER(deadline)
  return found;
}
template <class T>
consteval int edits_of_retention() {
  int found = 0;
  WEIR_EDITS_AT(, r, e, tention)
  WEIR_EDITS_AT(r, e, t, ention)
  WEIR_EDITS_AT(re, t, e, ntion)
  WEIR_EDITS_AT(ret, e, n, tion)
  WEIR_EDITS_AT(rete, n, t, ion)
  WEIR_EDITS_AT(reten, t, i, on)
  WEIR_EDITS_AT(retent, i, o, n)
  WEIR_EDITS_AT(retenti, o, n, )
  WEIR_EDITS_AT(retentio, n, , )
  WEIR_EDITS_AFTER(retention)
  return found;
}
template <class T>
consteval int edits_of_unique() {
  int found = 0;
  WEIR_EDITS_AT(, u, n, ique)
  WEIR_EDITS_AT(u, n, i, que)
  WEIR_EDITS_AT(un, i, q, ue)
  WEIR_EDITS_AT(uni, q, u, e)
  WEIR_EDITS_AT(uniq, u, e, )
  WEIR_EDITS_AT(uniqu, e, , )
  WEIR_EDITS_AFTER(unique)
  return found;
}
template <class T>
consteval int edits_of_unique_key() {
  int found = 0;
  WEIR_EDITS_AT(, u, n, ique_key)
  WEIR_EDITS_AT(u, n, i, que_key)
  WEIR_EDITS_AT(un, i, q, ue_key)
  WEIR_EDITS_AT(uni, q, u, e_key)
  WEIR_EDITS_AT(uniq, u, e, _key)
  WEIR_EDITS_AT(uniqu, e, _, key)
  WEIR_EDITS_AT(unique, _, k, ey)
  WEIR_EDITS_AT(unique_, k, e, y)
  WEIR_EDITS_AT(unique_k, e, y, )
  WEIR_EDITS_AT(unique_ke, y, , )
  WEIR_EDITS_AFTER(unique_key)
  return found;
}
template <class T>
consteval int edits_of_unique_ttl() {
  int found = 0;
  WEIR_EDITS_AT(, u, n, ique_ttl)
  WEIR_EDITS_AT(u, n, i, que_ttl)
  WEIR_EDITS_AT(un, i, q, ue_ttl)
  WEIR_EDITS_AT(uni, q, u, e_ttl)
  WEIR_EDITS_AT(uniq, u, e, _ttl)
  WEIR_EDITS_AT(uniqu, e, _, ttl)
  WEIR_EDITS_AT(unique, _, t, tl)
  WEIR_EDITS_AT(unique_, t, t, l)
  WEIR_EDITS_AT(unique_t, t, l, )
  WEIR_EDITS_AT(unique_tt, l, , )
  WEIR_EDITS_AFTER(unique_ttl)
  return found;
}
template <class T>
consteval int edits_of_on_conflict() {
  int found = 0;
  WEIR_EDITS_AT(, o, n, _conflict)
  WEIR_EDITS_AT(o, n, _, conflict)
  WEIR_EDITS_AT(on, _, c, onflict)
  WEIR_EDITS_AT(on_, c, o, nflict)
  WEIR_EDITS_AT(on_c, o, n, flict)
  WEIR_EDITS_AT(on_co, n, f, lict)
  WEIR_EDITS_AT(on_con, f, l, ict)
  WEIR_EDITS_AT(on_conf, l, i, ct)
  WEIR_EDITS_AT(on_confl, i, c, t)
  WEIR_EDITS_AT(on_confli, c, t, )
  WEIR_EDITS_AT(on_conflic, t, , )
  WEIR_EDITS_AFTER(on_conflict)
  return found;
}
template <class T>
consteval int edits_of_concurrency() {
  int found = 0;
  WEIR_EDITS_AT(, c, o, ncurrency)
  WEIR_EDITS_AT(c, o, n, currency)
  WEIR_EDITS_AT(co, n, c, urrency)
  WEIR_EDITS_AT(con, c, u, rrency)
  WEIR_EDITS_AT(conc, u, r, rency)
  WEIR_EDITS_AT(concu, r, r, ency)
  WEIR_EDITS_AT(concur, r, e, ncy)
  WEIR_EDITS_AT(concurr, e, n, cy)
  WEIR_EDITS_AT(concurre, n, c, y)
  WEIR_EDITS_AT(concurren, c, y, )
  WEIR_EDITS_AT(concurrenc, y, , )
  WEIR_EDITS_AFTER(concurrency)
  return found;
}
template <class T>
consteval int edits_of_concurrency_key() {
  int found = 0;
  WEIR_EDITS_AT(, c, o, ncurrency_key)
  WEIR_EDITS_AT(c, o, n, currency_key)
  WEIR_EDITS_AT(co, n, c, urrency_key)
  WEIR_EDITS_AT(con, c, u, rrency_key)
  WEIR_EDITS_AT(conc, u, r, rency_key)
  WEIR_EDITS_AT(concu, r, r, ency_key)
  WEIR_EDITS_AT(concur, r, e, ncy_key)
  WEIR_EDITS_AT(concurr, e, n, cy_key)
  WEIR_EDITS_AT(concurre, n, c, y_key)
  WEIR_EDITS_AT(concurren, c, y, _key)
  WEIR_EDITS_AT(concurrenc, y, _, key)
  WEIR_EDITS_AT(concurrency, _, k, ey)
  WEIR_EDITS_AT(concurrency_, k, e, y)
  WEIR_EDITS_AT(concurrency_k, e, y, )
  WEIR_EDITS_AT(concurrency_ke, y, , )
  WEIR_EDITS_AFTER(concurrency_key)
  return found;
}
template <class T>
consteval int edits_of_concurrency_scope() {
  int found = 0;
  WEIR_EDITS_AT(, c, o, ncurrency_scope)
  WEIR_EDITS_AT(c, o, n, currency_scope)
  WEIR_EDITS_AT(co, n, c, urrency_scope)
  WEIR_EDITS_AT(con, c, u, rrency_scope)
  WEIR_EDITS_AT(conc, u, r, rency_scope)
  WEIR_EDITS_AT(concu, r, r, ency_scope)
  WEIR_EDITS_AT(concur, r, e, ncy_scope)
  WEIR_EDITS_AT(concurr, e, n, cy_scope)
  WEIR_EDITS_AT(concurre, n, c, y_scope)
  WEIR_EDITS_AT(concurren, c, y, _scope)
  WEIR_EDITS_AT(concurrenc, y, _, scope)
  WEIR_EDITS_AT(concurrency, _, s, cope)
  WEIR_EDITS_AT(concurrency_, s, c, ope)
  WEIR_EDITS_AT(concurrency_s, c, o, pe)
  WEIR_EDITS_AT(concurrency_sc, o, p, e)
  WEIR_EDITS_AT(concurrency_sco, p, e, )
  WEIR_EDITS_AT(concurrency_scop, e, , )
  WEIR_EDITS_AFTER(concurrency_scope)
  return found;
}
template <class T>
consteval int edits_of_rate() {
  int found = 0;
  WEIR_EDITS_AT(, r, a, te)
  WEIR_EDITS_AT(r, a, t, e)
  WEIR_EDITS_AT(ra, t, e, )
  WEIR_EDITS_AT(rat, e, , )
  WEIR_EDITS_AFTER(rate)
  return found;
}
template <class T>
consteval int edits_of_rate_key() {
  int found = 0;
  WEIR_EDITS_AT(, r, a, te_key)
  WEIR_EDITS_AT(r, a, t, e_key)
  WEIR_EDITS_AT(ra, t, e, _key)
  WEIR_EDITS_AT(rat, e, _, key)
  WEIR_EDITS_AT(rate, _, k, ey)
  WEIR_EDITS_AT(rate_, k, e, y)
  WEIR_EDITS_AT(rate_k, e, y, )
  WEIR_EDITS_AT(rate_ke, y, , )
  WEIR_EDITS_AFTER(rate_key)
  return found;
}
template <class T>
consteval int edits_of_rate_cost() {
  int found = 0;
  WEIR_EDITS_AT(, r, a, te_cost)
  WEIR_EDITS_AT(r, a, t, e_cost)
  WEIR_EDITS_AT(ra, t, e, _cost)
  WEIR_EDITS_AT(rat, e, _, cost)
  WEIR_EDITS_AT(rate, _, c, ost)
  WEIR_EDITS_AT(rate_, c, o, st)
  WEIR_EDITS_AT(rate_c, o, s, t)
  WEIR_EDITS_AT(rate_co, s, t, )
  WEIR_EDITS_AT(rate_cos, t, , )
  WEIR_EDITS_AFTER(rate_cost)
  return found;
}
template <class T>
consteval int edits_of_rate_scope() {
  int found = 0;
  WEIR_EDITS_AT(, r, a, te_scope)
  WEIR_EDITS_AT(r, a, t, e_scope)
  WEIR_EDITS_AT(ra, t, e, _scope)
  WEIR_EDITS_AT(rat, e, _, scope)
  WEIR_EDITS_AT(rate, _, s, cope)
  WEIR_EDITS_AT(rate_, s, c, ope)
  WEIR_EDITS_AT(rate_s, c, o, pe)
  WEIR_EDITS_AT(rate_sc, o, p, e)
  WEIR_EDITS_AT(rate_sco, p, e, )
  WEIR_EDITS_AT(rate_scop, e, , )
  WEIR_EDITS_AFTER(rate_scope)
  return found;
}
// clang-format on

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
