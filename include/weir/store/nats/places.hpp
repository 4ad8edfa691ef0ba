// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_PLACES_HPP
#define WEIR_STORE_NATS_PLACES_HPP

#include "weir/command/jobs.hpp"
#include "weir/store/nats/errand.hpp"
#include "weir/store/nats/home.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/place.hpp"
#include "weir/store/nats/request.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weir::detail {

/// All parts of a store that this process has to do with. In the strand of the link.
class nats_places {
 public:
  explicit nats_places(std::shared_ptr<nats_link> const& link)
      : link_{link},
        home_{std::make_shared<nats_home>(link)},
        places_(home_->parts()) {}

  template <class C>
  [[nodiscard]] std::uint32_t part_of(C const& c) const noexcept {
    return home_->part_of(c);
  }
  [[nodiscard]] std::shared_ptr<nats_hinted> hinted() const { return home_->hinted(); }

  void submit(std::uint32_t part, std::shared_ptr<nats_errand> e) {
    // A command that cannot be executed at all is refused where it would be.
    if (part >= places_.size() || !link_->usable()) return home_->execute(part, e);
    of(part).submit(std::move(e));
  }
  void await(command::await_jobs const& c, nats_operation<command::await_jobs> op) {
    auto const part = part_of(c);
    if (part >= places_.size() || !link_->usable()) {
      return home_->execute(part,
                            std::make_shared<nats_wait<command::await_jobs>>(std::move(op), c));
    }
    of(part).await(c, std::move(op));
  }

 private:
  [[nodiscard]] nats_place& of(std::uint32_t part) {
    auto& at = places_[part];
    if (!at) {
      at = std::make_shared<nats_place>(link_, home_, part);
      at->start();
    }
    return *at;
  }

  std::shared_ptr<nats_link> const link_;
  std::shared_ptr<nats_home> const home_;
  std::vector<std::shared_ptr<nats_place>> places_;
};

}  // namespace weir::detail

#endif
