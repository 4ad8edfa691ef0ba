// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_FIELDS_PERMITS_HPP
#define WEIR_TESTING_FIELDS_PERMITS_HPP

#include "weir/command/permits.hpp"
#include "weir/testing/fields.hpp"

namespace weir::testing {

inline void fields(field_list& out, permit_grant const& a) {
  out.add("granted", a.granted).add_fence("fence", a.fence).add("expires_in", a.expires_in);
  out.add("in_use", a.in_use).add("place", a.place).add("retry_after", a.retry_after);
}
inline void fields(field_list& out, lease_renewal const& a) { out.add("expires_in", a.expires_in); }
inline void fields(field_list& out, lease_release const& a) {
  out.add("freed", a.freed).add("left_line", a.left_line);
}
inline void fields(field_list&, hint const&) {}
inline void fields(field_list& out, permit_census const& a) {
  out.add("in_use", a.in_use).add("waiting", a.waiting);
  std::size_t i = 0;
  for (auto const& h : a.holders) {
    out.within("holders", i++, [&] {
      out.add("holder", h.holder).add_fence("fence", h.fence).add("expires_in", h.expires_in);
    });
  }
}

inline void fields(field_list& out, command::acquire_permit const& c) {
  out.name = "acquire_permit";
  out.add("key", c.key).add("holder", c.holder).add("limit", c.limit).add("ttl", c.ttl);
  out.add("patience", c.patience);
}
inline void fields(field_list& out, command::renew_permit const& c) {
  out.name = "renew_permit";
  out.add("key", c.key).add("holder", c.holder).add_fence("fence", c.fence).add("ttl", c.ttl);
}
inline void fields(field_list& out, command::release_permit const& c) {
  out.name = "release_permit";
  out.add("key", c.key).add("holder", c.holder).add_fence("fence", c.fence);
}
inline void fields(field_list& out, command::await_permit const& c) {
  out.name = "await_permit";
  out.add("key", c.key).add("holder", c.holder);
}
inline void fields(field_list& out, command::inspect_permits const& c) {
  out.name = "inspect_permits";
  out.add("key", c.key).add("limit", c.limit);
}

}  // namespace weir::testing

#endif
