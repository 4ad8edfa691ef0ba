// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_COMMAND_CODEC_HPP
#define WEIR_STORE_NATS_COMMAND_CODEC_HPP

#include "weir/command/buckets.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/list.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/nats/compact.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <boost/mp11/algorithm.hpp>
#include <boost/pfr/core.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// Commands and results as they are written in logs and travel between processes: their members, one
// after the other. A member that is added, or means something else, is another version of both
// (job_log.hpp, wire.hpp).
namespace weir::detail {

/// All commands, each in the place of its number: a new one goes last, and none is ever moved or
/// removed. The first place is nobody's, so that a zero is no command. A new one that changes a
/// shard is of another version of the log.
using nats_commands = command::list_of<
    void, command::enqueue_jobs, command::dequeue_jobs, command::obtain_lease,
    command::extend_lease, command::start_job, command::complete_jobs, command::requeue_job,
    command::snooze_job, command::return_job, command::bury_job, command::cancel_job,
    command::update_queue_pointer, command::gc_stale_pointers, command::obtain_queue_lease,
    command::release_queue_lease, command::snooze_queue, command::pause_queue,
    command::resume_queue, command::replay_dead_letter, command::purge_job, command::relay_job,
    command::acquire_permit, command::renew_permit, command::release_permit,
    command::inspect_permits, command::await_permit, command::acquire_lock, command::renew_lock,
    command::release_lock, command::inspect_lock, command::take, command::peek_bucket,
    command::refund, command::reset_bucket, command::peek_jobs, command::find_job,
    command::min_vesting_time, command::scan_visible_queues, command::read_queue_stats,
    command::list_dead_letters, command::list_jobs, command::list_queues, command::await_jobs>;
inline constexpr std::size_t nats_command_count = boost::mp11::mp_size<nats_commands>::value;
static_assert(nats_command_count == 44);

/// The number of a command.
template <class C>
inline constexpr std::size_t nats_command_number = boost::mp11::mp_find<nats_commands, C>::value;

/// A command that changes a shard, and so goes into its log.
template <class C>
concept nats_logged_command = is_listed<C, command::job_commands::list> &&
                              !command::reads_only<C> && !command::waits_for_event<C>;

template <class T>
concept nats_list = requires(T& t, typename T::value_type v) { t.push_back(std::move(v)); } &&
                    !std::same_as<T, std::string>;

/// Gives values to what a `compact_writer` is, or is like.
template <class To>
class nats_values_to {
 public:
  template <class From>
  explicit nats_values_to(From& to) noexcept : to_{to} {}

  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void operator()(T v) {
    if constexpr (std::signed_integral<T>) {
      to_(std::int64_t{v});
    } else {
      to_(v);
    }
  }
  void operator()(duration d) { to_(d); }
  void operator()(std::string_view t) { to_(t); }
  void operator()(std::string const& t) { to_(std::string_view{t}); }
  void operator()(job_id const& id) { to_(id); }
  void operator()(quota const& q) {
    to_(q.tokens());
    to_(q.period());
    to_(q.capacity());
  }
  template <class T>
  void operator()(std::optional<T> const& v) {
    to_(v.has_value());
    if (v) (*this)(*v);
  }
  template <class T>
  void operator()(std::span<T const> all) {
    to_(all.size());
    for (auto const& v : all) (*this)(v);
  }
  template <nats_list T>
  void operator()(T const& all) {
    to_(all.size());
    for (auto const& v : all) (*this)(v);
  }
  template <class T, std::size_t N>
  void operator()(std::array<T, N> const& all) {
    for (auto const& v : all) (*this)(v);
  }
  template <class T>
    requires std::is_aggregate_v<T>
  void operator()(T const& v) {
    boost::pfr::for_each_field(v, [this](auto const& field) { (*this)(field); });
  }

 private:
  To to_;
};

/// Writes values.
using nats_value_writer = nats_values_to<compact_writer>;

/// Reads them. Texts of a command view what is read from, and its lists this.
class nats_value_reader {
 public:
  explicit nats_value_reader(compact_reader& from) noexcept : from_{from} {}

  template <class T>
    requires std::is_integral_v<T>
  void operator()(T& v) {
    if constexpr (std::signed_integral<T>) {
      std::int64_t n = 0;
      from_(n);
      v = static_cast<T>(n);
      if (v != n) from_.refuse();
    } else {
      from_(v);
    }
  }
  void operator()(duration& d) { from_(d); }
  void operator()(std::string_view& t) { from_(t); }
  void operator()(std::string& t) { from_(t); }
  void operator()(job_id& id) { from_(id); }
  void operator()(unique_strategy& s) { from_(s, unique_strategy::until_expired); }
  void operator()(conflict_policy& p) { from_(p, conflict_policy::reschedule); }
  void operator()(job_state& s) { from_(s, job_state::cancelled); }
  void operator()(command::hint_turn& t) { from_(t, command::hint_turn::passed); }
  void operator()(enqueue_outcome& o) { from_(o, enqueue_outcome::rescheduled); }
  void operator()(complete_outcome& o) { from_(o, complete_outcome::completed_without_result); }
  void operator()(start_outcome& o) { from_(o, start_outcome::blocked); }
  void operator()(requeue_outcome& o) { from_(o, requeue_outcome::dead_lettered); }
  void operator()(relay_outcome& o) { from_(o, relay_outcome::not_found); }
  void operator()(cancel_outcome& o) { from_(o, cancel_outcome::not_found); }
  void operator()(replay_outcome& o) { from_(o, replay_outcome::not_found); }
  void operator()(quota& q) {
    std::uint64_t tokens = 0;
    duration period{};
    std::uint64_t capacity = 0;
    from_(tokens);
    from_(period);
    from_(capacity);
    q = quota::per(tokens, period).burst(capacity);
  }
  template <class T>
  void operator()(std::optional<T>& v) {
    bool has = false;
    from_(has);
    v.reset();
    if (has) (*this)(v.emplace());
  }
  /// A command has two lists of a kind at most.
  template <class T>
  void operator()(std::span<T const>& all) {
    auto& [list, other] = std::get<std::array<std::vector<T>, 2>>(lists_);
    list.swap(other);
    list.resize(std::min<std::size_t>(from_.count(), limits::batch + 1));
    for (auto& v : list) (*this)(v);
    all = list;
  }
  template <nats_list T>
  void operator()(T& all) {
    auto const n = from_.count();
    for (std::size_t i = 0; i != n && from_.good(); ++i) {
      typename T::value_type v{};
      (*this)(v);
      all.push_back(std::move(v));
    }
  }
  template <class T, std::size_t N>
  void operator()(std::array<T, N>& all) {
    for (auto& v : all) (*this)(v);
  }
  template <class T>
    requires std::is_aggregate_v<T>
  void operator()(T& v) {
    boost::pfr::for_each_field(v, [this](auto& field) { (*this)(field); });
  }

 private:
  compact_reader& from_;
  std::tuple<std::array<std::vector<quota>, 2>, std::array<std::vector<new_job>, 2>,
             std::array<std::vector<finished_job>, 2>>
      lists_;
};

/// Writes a command behind its number and, where it was told one, its time.
template <class C>
void nats_put_command(std::string& to, C c, std::optional<time_point> told) {
  static_assert(nats_command_number<C> < nats_command_count, "not one of nats_commands");
  // Nobody keeps more of it, and so nobody need read more.
  if constexpr (requires { c.reason; }) c.reason = rule::kept_reason(c.reason);
  compact_writer out{to};
  out(2 * nats_command_number<C> + (told ? 1 : 0));
  if (told) out(*told);
  nats_value_writer{out}(c);
}

/// Is a time that somebody tells beyond what all arithmetic can be done with?
[[nodiscard]] inline bool nats_is_far(time_point told) noexcept {
  constexpr duration most = std::chrono::hours{24 * 365 * 200};
  return told < time_point{-most} || told > time_point{most};
}

/// Reads commands behind their numbers. Each views what it is read from, and this, until the next.
class nats_command_reader {
 public:
  nats_command_reader(nats_command_reader const&) = delete;
  nats_command_reader& operator=(nats_command_reader const&) = delete;

  /// Calls `f(command, told)` for each, which says whether to go on. False: it ended before its
  /// end.
  template <class F>
  bool for_each(F&& f) {
    while (from_.good() && from_.left() != 0) {
      std::size_t number = 0;
      from_(number);
      std::optional<time_point> told;
      if (number % 2 != 0) from_(told.emplace());
      number /= 2;
      if (!from_.good() || number >= nats_command_count || (told && nats_is_far(*told)) ||
          !boost::mp11::mp_with_index<nats_command_count>(number, [&](auto i) {
            return read<boost::mp11::mp_at<nats_commands, decltype(i)>>(told, f);
          })) {
        return false;
      }
    }
    return from_.good();
  }

 protected:
  explicit nats_command_reader(std::string_view from) noexcept : from_{from} {}
  ~nats_command_reader() = default;

  compact_reader from_;

 private:
  template <class C, class F>
  bool read(std::optional<time_point> told, F& f) {
    if constexpr (std::is_void_v<C>) {
      return false;
    } else {
      C c{};
      values_(c);
      // Nobody executes something that the rule does not allow: it was never asked for.
      return from_.good() && !rule::validate(c) && f(std::as_const(c), told);
    }
  }

  nats_value_reader values_{from_};
};

}  // namespace weir::detail

#endif
