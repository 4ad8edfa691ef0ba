// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_VIOLATIONS_HPP
#define WEIR_STORE_NATS_VIOLATIONS_HPP

#include "weir/error.hpp"
#include "weir/parking.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

[[nodiscard]] inline error_code nats_not_permitted() noexcept {
  return make_error_code(errc::permission_denied);
}

/// The subject of the publish that a server has not permitted, from what it said; empty: it said
/// something else. The client keeps no more than 255 bytes of it, so a long subject is cut.
struct nats_refused_subject {
  std::string_view text{};
  bool whole = true;

  [[nodiscard]] static nats_refused_subject of(std::string_view said) noexcept {
    constexpr std::string_view begin = "Permissions Violation for Publish to \"";
    auto const at = said.find(begin);
    if (at == said.npos) return {};
    said.remove_prefix(at + begin.size());
    auto const end = said.find('"');
    return {said.substr(0, end), end != said.npos};
  }

  [[nodiscard]] bool matches(std::string_view subject) const noexcept {
    return !text.empty() && (whole ? subject == text : subject.starts_with(text));
  }
};

/// What the server of one connection has not permitted. The client tells it in a thread of its own,
/// perhaps when the connection is gone already: so it is given a number to tell it to, and no
/// address.
class nats_violations {
 public:
  using listener = std::shared_ptr<parked<error_code>>;

  [[nodiscard]] static std::shared_ptr<nats_violations> make() {
    auto const out = std::make_shared<nats_violations>();
    auto& all = everybody();
    std::lock_guard const lock{all.mutex};
    out->number_ = ++all.last;
    all.known.emplace(out->number_, out);
    return out;
  }
  nats_violations() = default;
  nats_violations(nats_violations const&) = delete;
  nats_violations& operator=(nats_violations const&) = delete;
  ~nats_violations() {
    auto& all = everybody();
    std::lock_guard const lock{all.mutex};
    all.known.erase(number_);
  }

  [[nodiscard]] void* number() const noexcept {
    return reinterpret_cast<void*>(number_);  // NOLINT(performance-no-int-to-ptr): nobody follows
                                              // it
  }

  /// In a thread of the client.
  static void tell(void* number, std::string_view said) noexcept try {
    auto& all = everybody();
    std::shared_ptr<nats_violations> who;
    {
      std::lock_guard const lock{all.mutex};
      auto const found = all.known.find(reinterpret_cast<std::uintptr_t>(number));
      if (found != all.known.end()) who = found->second.lock();
    }
    if (who) who->add(said);
  } catch (...) {  // without memory for it: what was not permitted is not answered
  }

  /// Resumes `op` once there is something to take.
  void listen(listener op) {
    std::unique_lock lock{mutex_};
    if (said_.empty()) {
      listener_ = std::move(op);
      return;
    }
    lock.unlock();
    op->resume(error_code{});
  }

  [[nodiscard]] std::vector<std::string> take() {
    std::lock_guard const lock{mutex_};
    return std::exchange(said_, {});
  }

 private:
  struct register_of {
    std::mutex mutex{};
    std::map<std::uintptr_t, std::weak_ptr<nats_violations>> known{};
    std::uintptr_t last = 0;
  };
  // Never destroyed: the client's thread may end after the program's own variables.
  static register_of& everybody() {
    static auto& one = *new register_of;
    return one;
  }

  void add(std::string_view said) {
    listener who;
    {
      std::lock_guard const lock{mutex_};
      said_.emplace_back(said);
      who = std::exchange(listener_, {});
    }
    if (who) who->resume(error_code{});
  }

  std::uintptr_t number_ = 0;
  std::mutex mutex_;
  std::vector<std::string> said_;
  listener listener_;
};

}  // namespace weir::detail

#endif
