// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_PLACES_HPP
#define WEIR_STORE_NATS_PLACES_HPP

#include "weir/command/jobs.hpp"
#include "weir/store/nats/balancer.hpp"
#include "weir/store/nats/errand.hpp"
#include "weir/store/nats/home.hpp"
#include "weir/store/nats/link.hpp"
#include "weir/store/nats/place.hpp"
#include "weir/store/nats/request.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// All parts of a store that this process has to do with. In the strand of the link.
class nats_places final : public nats_hinted, public std::enable_shared_from_this<nats_places> {
 public:
  explicit nats_places(std::shared_ptr<nats_link> const& link)
      : link_{link},
        home_{std::make_shared<nats_home>(link)},
        places_(home_->parts()) {}

  template <class C>
  [[nodiscard]] std::uint32_t part_of(C const& c) const noexcept {
    return home_->part_of(c);
  }
  void hinted(std::string const& record) override {
    auto const claim = link_->names().claim_in(record);
    if (!claim) return home_->hinted()->hinted(record);
    auto const [part, owner] = *claim;
    if (part < places_.size() && places_[part]) places_[part]->heard_of_owner(owner);
    if (balancer_) balancer_->heard_of(part, owner);
  }

  /// The store runs.
  void start() {
    auto const& o = link_->options();
    if (!o.owner || !o.owns_unused || !link_->usable()) return;
    for (std::uint32_t part = 0; part != places_.size(); ++part) (void)of(part);
  }

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
    begin_to_balance();
    return *place(part);
  }
  [[nodiscard]] std::shared_ptr<nats_place> place(std::uint32_t part) {
    auto& at = places_[part];
    if (!at) {
      at = std::make_shared<nats_place>(link_, home_, part);
      at->start();
    }
    return at;
  }
  /// With the first command: a store that is not used owns nothing.
  void begin_to_balance() {
    if (balancer_ || !link_->options().owner) return;
    balancer_ = std::make_shared<nats_balancer>(link_, home_, weak_from_this(),
                                                [weak = weak_from_this()](std::uint32_t part) {
                                                  auto const self = weak.lock();
                                                  return self ? self->place(part) : nullptr;
                                                });
    balancer_->start();
  }

  std::shared_ptr<nats_link> const link_;
  std::shared_ptr<nats_home> const home_;
  std::vector<std::shared_ptr<nats_place>> places_;
  std::shared_ptr<nats_balancer> balancer_;
};

}  // namespace weir::detail

#endif
