// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_FIELDS_BUCKETS_HPP
#define WEIR_TESTING_FIELDS_BUCKETS_HPP

#include "weir/command/buckets.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/fields/permits.hpp"

#include <span>
#include <string>

namespace weir::testing {

// The mark is the store's own affair: it is in the units of that store.
inline void fields(field_list& out, decision const& a) {
  out.add("allowed", a.allowed).add("shed", a.shed).add("binding", a.binding).add("cost", a.cost);
  out.add("capacity", a.capacity).add("remaining", a.remaining).add("wait", a.wait);
  out.add("retry_after", a.retry_after).add("reset_after", a.reset_after);
}
inline void fields(field_list& out, bucket_info const& a) {
  fields(out, static_cast<decision>(a));
  for (auto const& l : a.levels) {
    out.add("capacity", l.capacity).add("remaining", l.remaining).add("reset", l.reset_after);
  }
}
inline void fields(field_list& out, refund_receipt const& a) {
  out.add("credited", a.credited).add("forfeited", a.forfeited);
}

inline void fields(field_list& out, command::reaped const& a) {
  out.add("removed", a.removed).add("kept", a.kept);
}

[[nodiscard]] inline std::string quotas_text(std::span<quota const> quotas) {
  std::string out;
  for (auto const& q : quotas) {
    out.append(out.empty() ? "" : "+").append(std::to_string(q.tokens())).append("/");
    out.append(to_text(q.period())).append(" burst ").append(std::to_string(q.capacity()));
  }
  return out;
}

template <class C>
void bucket_fields(field_list& out, C const& c) {
  out.add("key", c.key).add_word("quotas", quotas_text(c.quotas)).add("cost", c.cost);
}
inline void fields(field_list& out, command::take const& c) {
  out.name = "take";
  bucket_fields(out, c);
  out.add("max_wait", c.max_wait);
}
inline void fields(field_list& out, command::peek_bucket const& c) {
  out.name = "peek_bucket";
  bucket_fields(out, c);
  out.add("max_wait", c.max_wait);
}
inline void fields(field_list& out, command::refund const& c) {
  out.name = "refund";
  bucket_fields(out, c);
  out.add("before_instant", c.before_instant);
}
inline void fields(field_list& out, command::reset_bucket const& c) {
  out.name = "reset_bucket";
  out.add("key", c.key);
}
inline void fields(field_list& out, command::reap_buckets const&) { out.name = "reap_buckets"; }

}  // namespace weir::testing

#endif
