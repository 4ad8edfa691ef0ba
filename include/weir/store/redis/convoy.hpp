// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_CONVOY_HPP
#define WEIR_STORE_REDIS_CONVOY_HPP

#include "weir/error.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/request.hpp"
#include "weir/store/redis/resp.hpp"

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

// Commands that travel as one, and the answer to each.
namespace weir::detail {

/// The scripts for several calls that a server has been sent.
using redis_known_scripts = boost::unordered_flat_set<redis_script const*>;

/// Commands in the order in which they travel, and how many of them each script runs for.
///
/// A server spends more on the beginning of a script than on what most scripts do, so commands of
/// one kind are done by one run. It does not last: what is behind it waits for no more than
/// `most_together` of them. Commands about one thing are not put in another order than the one in
/// which they came: who gives up a permit may have asked for it just before. For the same reason
/// the first run brings its script along: were it refused as unknown, others would be done before
/// it. (What a server refuses, and is sent again, may come behind others that were under way.)
class redis_convoy {
 public:
  using request = std::shared_ptr<redis_request>;

  /// How many commands a script runs for at most. Twice as many gained 3 %; and while a server is
  /// busy with one run, its client prepares the next.
  static constexpr std::size_t most_together = 16;
  /// Bytes that they have in all, unless one alone has more.
  static constexpr std::size_t most_bytes = std::size_t{64} << 10U;

  /// Puts commands together that may travel so, in an order of its own.
  ///
  /// @param alone scripts whose commands travel by themselves
  void arrange(std::vector<request>& commands, redis_known_scripts const& alone) {
    runs_.clear();
    if (commands.size() == 1) {
      for (auto const& r : commands) runs_.push_back({1, r->bytes()});
      return;
    }
    open_.clear();
    last_.clear();
    place_.clear();
    first_.clear();
    for (auto const& r : commands) place_.push_back(place(*r, commands, alone));
    // In the order of their runs, and of one run in their own.
    auto at = std::move(starts_);
    at.clear();
    for (std::size_t next = 0; auto const& run : runs_) {
      at.push_back(next);
      next += run.commands;
    }
    sorted_.resize(commands.size());
    for (std::size_t i = 0; i != commands.size(); ++i) {
      sorted_[at[place_[i]]++] = std::move(commands[i]);
    }
    commands.swap(sorted_);
    sorted_.clear();
    starts_ = std::move(at);
  }

  /// Adds all of them to what travels.
  void push(redis_wire& to, std::span<request const> commands, redis_known_scripts& known) {
    for (auto const& run : runs_) {
      if (run.commands == 1) {
        commands.front()->push(to);
      } else {
        calls_.clear();
        for (auto const& r : commands.first(run.commands)) calls_.push_back(&r->joined());
        bool const is_new = known.insert(&calls_.front()->joined_script()).second;
        redis_call::push_together(to, calls_, !is_new);
      }
      commands = commands.subspan(run.commands);
    }
    next_ = 0;
  }

  /// Of a run.
  struct group {
    std::size_t commands;
    std::size_t bytes;
  };
  /// The one whose reply comes next.
  [[nodiscard]] group const& next() const noexcept { return runs_[next_]; }
  /// Its reply is there.
  void done() noexcept { ++next_; }

  /// Calls `f` with what the reply to a run has for each of its commands, in their order; empty:
  /// the command was not executed, and is to travel by itself.
  template <class F>
  void divide(std::span<redis_value const> reply, std::size_t commands, bool merged, F f) {
    auto const& head = reply.front();
    // Nothing was executed, and perhaps it would be but for one of them: so these are told apart.
    // A merged run is refused for lack of memory before it writes, whatever is there already; a
    // right that it lacks on its way is another matter.
    bool const within = head.value.find("@user_script") != head.value.npos ||
                        head.value.find("ACL failure in script") != head.value.npos;
    bool const parts =
        head.is_error() && ((!within && head.value.starts_with("NOPERM")) ||
                            (merged && redis_refusal(head.value) == errc::store_full));
    if (parts) reply = {};
    auto const size = head.aggregate_size;
    bool const divides =
        merged ? size % commands == 0 && reply.size() == size + 1 : size == commands;
    if (head.data_type != redis_kind::array || !divides) {
      // All of them were refused, or nobody understands it.
      for (; commands != 0; --commands) f(reply);
      return;
    }
    reply = reply.subspan(1);
    for (auto const each = size / commands; merged && commands != 0; --commands) {
      part_.assign(1, head);
      part_.front().aggregate_size = each;
      part_.insert(part_.end(), reply.begin(), reply.begin() + static_cast<std::ptrdiff_t>(each));
      reply = reply.subspan(each);
      f(part_);
    }
    for (; !merged && commands != 0; --commands) {
      auto const depth = reply.front().depth;
      auto const end = std::find_if(reply.begin() + 1, reply.end(),
                                    [depth](auto const& v) { return v.depth <= depth; });
      auto const part = reply.first(static_cast<std::size_t>(end - reply.begin()));
      reply = reply.subspan(part.size());
      f(part.front().data_type == redis_kind::null ? part.first(0) : part);
    }
  }

 private:
  static constexpr auto none = std::numeric_limits<std::uint32_t>::max();

  /// In which run it travels: one that has room, and is behind all that is about the same thing.
  std::uint32_t place(redis_request const& r, std::vector<request> const& commands,
                      redis_known_scripts const& alone) {
    auto& last =
        last_.try_emplace(std::hash<std::string_view>{}(r.call().about()), none).first->second;
    bool const joins = r.joins() && !alone.contains(&r.call().joined_script());
    auto const nth = static_cast<std::uint32_t>(place_.size());
    if (joins) {
      for (auto& o : open_) {
        if (last != none && last > o) continue;
        if (runs_[o].bytes + r.bytes() > most_bytes || !fits(r, o, commands)) continue;
        ++runs_[o].commands;
        runs_[o].bytes += r.bytes();
        last = o;
        if (runs_[o].commands == most_together) {
          std::swap(o, open_.back());
          open_.pop_back();
        }
        return last;
      }
    }
    last = static_cast<std::uint32_t>(runs_.size());
    runs_.push_back({1, r.bytes()});
    first_.push_back(nth);
    if (joins) open_.push_back(last);
    return last;
  }

  /// Does it go with all of a run?
  [[nodiscard]] bool fits(redis_request const& r, std::uint32_t run,
                          std::vector<request> const& commands) const {
    if (!r.call().merges()) return r.call().joins(commands[first_[run]]->call());
    for (std::size_t i = first_[run]; i != place_.size(); ++i) {
      if (place_[i] == run && !r.call().joins(commands[i]->call())) return false;
    }
    return true;
  }

  std::vector<group> runs_;
  std::size_t next_ = 0;

  // While it is arranged.
  std::vector<std::uint32_t> place_;                            // of each command so far: its run
  std::vector<std::uint32_t> first_;                            // of each run: its first command
  std::vector<std::uint32_t> open_;                             // runs that more may travel with
  boost::unordered_flat_map<std::size_t, std::uint32_t> last_;  // about each thing: the last run
  std::vector<std::size_t> starts_;
  std::vector<request> sorted_;

  std::vector<redis_call const*> calls_;
  std::vector<redis_value> part_;
};

}  // namespace weir::detail

#endif
