// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_ENGINE_WAY_HPP
#define WEIR_DETAIL_ENGINE_WAY_HPP

#include "weir/detail/engine_call.hpp"
#include "weir/error.hpp"

#include <tuple>
#include <utility>

// Behind the seam: included where engines are compiled.
namespace weir::detail {

template <class Engine, class C>
void engine_way<Engine, C>::execute(Engine& on, C const& c, call_terms const& terms,
                                    erased_handler<C> handler) {
  on.execute(c, terms, std::move(handler));
}

template <class Engine, class C, class When>
result<typename C::result> step_way<Engine, C, When>::execute(Engine& on, C const& c, When at) {
  return on.execute(c, at);
}

/// Instantiated explicitly, has the ways of a list's commands compiled right there.
template <class Engine, class List>
struct engine_ways;
template <class Engine, class... Cs>
struct engine_ways<Engine, command::list_of<Cs...>> {
  static constexpr std::tuple all{&engine_way<Engine, Cs>::execute...};
};

/// The same of the list's steps, in the calling thread.
template <class Engine, class When, class List>
struct step_ways;
template <class Engine, class When, class... Cs>
struct step_ways<Engine, When, command::list_of<Cs...>> {
  template <class C>
  static constexpr auto way() {
    if constexpr (command::waits_for_event<C>) {
      return nullptr;
    } else {
      return &step_way<Engine, C, When>::execute;
    }
  }
  static constexpr std::tuple all{way<Cs>()...};
};

}  // namespace weir::detail

#endif
