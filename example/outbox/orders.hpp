// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_OUTBOX_ORDERS_HPP
#define WEIR_EXAMPLE_OUTBOX_ORDERS_HPP

#include "weir/job_traits.hpp"
#include "weir/store/sqlite.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace outbox {

/// What is to be done outside once an order is placed: it is committed with the order, or not at
/// all.
struct deliver_order {
  std::string reference;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(deliver_order, reference)

/// weir's tables stand in the application's own file, beside its own.
[[nodiscard]] inline weir::sqlite_options store_options() {
  weir::sqlite_options options;
  options.in_application_database = true;
  return options;
}

/// Places orders, one transaction each, of which every third is rolled back: that customer has
/// changed their mind. Throws `std::runtime_error`.
void place_orders(std::string const& file, std::uint32_t count);

/// Delivers what is ordered until SIGINT or SIGTERM: for each order, a line in `list`. Throws
/// `std::runtime_error`.
void deliver_orders(std::string const& file, std::string const& list);

/// Opens the store, if need be makes its tables. Throws `std::runtime_error`, which says what is
/// wrong with the file.
void make_store(std::string const& file);

}  // namespace outbox

template <>
struct weir::job_traits<outbox::deliver_order> {
  static constexpr std::string_view kind = "deliver_order";
  static constexpr std::string_view queue = "deliveries";
};

#endif
