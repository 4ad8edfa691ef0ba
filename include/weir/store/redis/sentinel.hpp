// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_SENTINEL_HPP
#define WEIR_STORE_REDIS_SENTINEL_HPP

#include "weir/detail/explained.hpp"
#include "weir/detail/whole_number.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/cluster_map.hpp"
#include "weir/store/redis/question.hpp"
#include "weir/store/redis/resp.hpp"
#include "weir/store/redis/session.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// Where a service is, as a sentinel answers SENTINEL GET-MASTER-ADDR-BY-NAME: an array of host and
/// port. Empty: it answers something else.
[[nodiscard]] inline std::optional<redis_place> redis_master_place(
    std::span<redis_value const> answer) {
  constexpr std::size_t longest = 255;
  if (answer.size() != 3 || answer[0].data_type != redis_kind::array) return std::nullopt;
  auto const& host = answer[1];
  auto const port = whole_number<std::uint16_t>(answer[2].value);
  bool const texts =
      host.data_type == redis_kind::blob_string && answer[2].data_type == redis_kind::blob_string;
  if (!texts || host.value.empty() || host.value.size() > longest || !port || *port == 0) {
    return std::nullopt;
  }
  return redis_place{host.value, *port};
}

/// One question to one sentinel, on a connection of its own: where is the service now?
class redis_sentinel_call final : public redis_session_owner {
 public:
  using then_type = std::function<void(std::optional<redis_place>, std::string const& cause)>;

  /// @param then called once, when the connection has ended; it keeps alive what asks
  redis_sentinel_call(std::string service, then_type then)
      : service_{std::move(service)},
        then_{std::move(then)} {}

  std::shared_ptr<redis_question> greeting() override {
    auto out = std::make_shared<redis_question>();
    out->wire.push("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service_);
    return out;
  }

  /// With its answer the connection has done what it is for.
  error_code greeted(redis_question const& answer) override {
    if (answer.is_refused()) return explained(errc::store_unavailable, answer.refusal());
    place_ = redis_master_place(answer.answer());
    if (place_) return errc::closed;
    return explained(errc::store_unavailable, answer.answer().front().data_type == redis_kind::null
                                                  ? "this sentinel knows no such service"
                                                  : "it does not answer as a sentinel");
  }

  void opened() override {}

  void ended(error_code, std::string_view cause) override {
    std::exchange(then_, {})(std::exchange(place_, std::nullopt), std::string{cause});
  }

 private:
  std::string service_;
  then_type then_;
  std::optional<redis_place> place_;
};

}  // namespace weir::detail

#endif
