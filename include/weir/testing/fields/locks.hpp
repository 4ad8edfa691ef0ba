// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_FIELDS_LOCKS_HPP
#define WEIR_TESTING_FIELDS_LOCKS_HPP

#include "weir/command/locks.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/fields/permits.hpp"

namespace weir::testing {

inline void fields(field_list& out, lock_grant const& a) {
  out.add("granted", a.granted).add_fence("fence", a.fence);
  out.add("expires_in", a.expires_in).add("holder", a.holder);
}
inline void fields(field_list& out, lock_info const& a) {
  out.add("held", a.held).add("holder", a.holder).add_fence("fence", a.fence);
  out.add("expires_in", a.expires_in);
}

inline void fields(field_list& out, command::acquire_lock const& c) {
  out.name = "acquire_lock";
  out.add("key", c.key).add("holder", c.holder).add("ttl", c.ttl);
}
inline void fields(field_list& out, command::renew_lock const& c) {
  out.name = "renew_lock";
  out.add("key", c.key).add("holder", c.holder).add_fence("fence", c.fence).add("ttl", c.ttl);
}
inline void fields(field_list& out, command::release_lock const& c) {
  out.name = "release_lock";
  out.add("key", c.key).add("holder", c.holder).add_fence("fence", c.fence);
}
inline void fields(field_list& out, command::inspect_lock const& c) {
  out.name = "inspect_lock";
  out.add("key", c.key);
}

}  // namespace weir::testing

#endif
