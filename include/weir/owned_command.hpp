// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OWNED_COMMAND_HPP
#define WEIR_OWNED_COMMAND_HPP

#include "weir/command/jobs.hpp"
#include "weir/decision.hpp"
#include "weir/job.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"

#include <boost/pfr/core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace weir {

/// A command with copies of all that it views. An operation may end, and its caller's texts with
/// it, while the store still reads them: in a thread of its own, or in several steps. For authors
/// of stores. It is neither copied nor moved, because the command views it.
///
/// @tparam C one of the commands (`weir/command/`)
template <class C>
class owned_command {
 public:
  /// Copies the command, and its texts. Throws `std::bad_alloc`.
  explicit owned_command(C const& c) : command_{c} {
    boost::pfr::for_each_field(command_, [this](auto& field) { this->keep(field); });
  }
  owned_command(owned_command const&) = delete;
  owned_command& operator=(owned_command const&) = delete;

  /// The command. It is valid as long as this is.
  [[nodiscard]] C const& get() const noexcept { return command_; }

 private:
  void keep(std::string_view& text) {
    auto* const copy = static_cast<char*>(memory_.allocate(text.size() + 1, 1));
    std::copy(text.begin(), text.end(), copy);
    text = {copy, text.size()};
  }
  void keep(new_job& j) {
    keep(j.kind);
    keep(j.payload);
    keep(j.unique_key);
    keep(j.headers);
  }
  void keep(finished_job& j) { keep(j.result); }
  void keep(quota&) noexcept {}
  void keep(bucket_mark&) noexcept {}
  void keep(job_id&) noexcept {}
  void keep(duration&) noexcept {}
  template <class Value>
    requires std::is_arithmetic_v<Value> || std::is_enum_v<Value>
  void keep(Value&) noexcept {}
  template <class Value>
  void keep(std::optional<Value>& value) {
    if (value) keep(*value);
  }

  template <class T>
  void keep(std::span<T const>& all) {
    static_assert(std::is_trivially_destructible_v<T>);
    auto* const copy = static_cast<T*>(memory_.allocate(all.size_bytes() + 1, alignof(T)));
    std::uninitialized_copy(all.begin(), all.end(), copy);
    for (std::size_t i = 0; i != all.size(); ++i) keep(copy[i]);
    all = {copy, all.size()};
  }

  alignas(std::max_align_t) std::array<std::byte, 256> first_;
  std::pmr::monotonic_buffer_resource memory_{first_.data(), first_.size()};
  C command_;
};

}  // namespace weir

#endif
