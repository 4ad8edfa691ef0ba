// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_SWITCHBOARD_HPP
#define WEIR_STORE_REDIS_SWITCHBOARD_HPP

#include "weir/store/redis/question.hpp"
#include "weir/store/redis/request.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace weir::detail {

class redis_link;

/// Who has several links in one strand, decides which one a command goes by, and keeps those that
/// cannot go.
class redis_switchboard {
 public:
  redis_switchboard() = default;
  redis_switchboard(redis_switchboard const&) = delete;
  redis_switchboard& operator=(redis_switchboard const&) = delete;
  virtual ~redis_switchboard() = default;

  /// What the server answered to CLUSTER SLOTS, which is asked first of all; false: it is of no
  /// use.
  virtual bool greeted(redis_link& by, redis_question const& answer) = 0;
  virtual void opened(redis_link& which) = 0;
  virtual void ended(redis_link& which) = 0;  ///< or could not be made

  /// The link listens from now on to this channel: publications before were missed.
  virtual void missed(std::string const& channel) = 0;
  /// Something was published about this key, as the link's server tells.
  virtual void heard(redis_link& by, std::string const& key) = 0;

  /// A command was answered that had been held.
  virtual void answered_at_last() = 0;
  /// A command that was not executed.
  virtual void not_given(std::shared_ptr<redis_request> const& r) = 0;
  /// The same, because of what the server said; false: it is for who asked.
  virtual bool refused(redis_link& by, std::shared_ptr<redis_request> const& r,
                       std::string_view text) = 0;
};

}  // namespace weir::detail

#endif
