// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_JOB_FILES_HPP
#define WEIR_EXAMPLE_MANIFEST_JOB_FILES_HPP

#include "any_store.hpp"
#include "file_stamp.hpp"
#include "hash_file.hpp"
#include "ledger.hpp"
#include "tree_walk.hpp"
#include "weir/job_queue.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace manifest {

/// Sees to it that every file of this run has a job in the store, and learns there what became of
/// it.
///
/// A file's job is known by its id, which is made of path and stamp. What an earlier run left of it
/// decides what happens: the result of a completed one is taken, a dead one is replayed, so that an
/// unreadable file is tried again, and one that waits or runs is waited for. A job that waits to
/// read what a file was before it changed gives way; one that runs already reads what the file is
/// now, which is right, but under the earlier id, so that the next run reads the file once more.
class job_files {
 public:
  job_files(any_store const& store, std::string const& directory, ledger& files,
            asio::io_context& io)
      : queue_{store},
        ledger_{files},
        io_{io},
        given_{directory.ends_with('/') ? directory : directory + '/'} {
    std::error_code unknown;
    auto const found = std::filesystem::canonical(directory, unknown).native();
    root_ = unknown ? directory : found;
    sha256 digest;
    digest.update(root_);
    tree_ = digest.finish().substr(0, 16);
  }

  /// Takes files of one queue into the ledger and the store.
  asio::awaitable<void> place(std::span<found_file> files) {
    auto const queue = queue_of(files.front().top);
    std::vector<weir::job_id> ids;
    for (auto const& file : files) ids.push_back(job_of(absolute(file.path), file.stamp));
    std::vector<std::optional<weir::job>> known(files.size());
    if (co_await has_jobs(queue)) {
      std::vector<std::string> const queues(files.size(), queue);
      known = co_await find(queues, ids);
    }

    std::vector<std::size_t> added;
    for (std::size_t i = 0; i != files.size(); ++i) {
      auto const stamp = files[i].stamp;
      auto const at = ledger_.add(std::move(files[i]), ids[i]);
      if (known[i] && co_await settled(at, queue, *known[i], &stamp)) continue;
      added.push_back(at);
    }
    if (!added.empty()) co_await enqueue(queue, added, true);
  }

  /// Asks the store about up to `most` files whose end nobody here has told of.
  asio::awaitable<void> look_at(std::size_t most, bool const& over) {
    auto const open = ledger_.open_ones(most);
    if (open.empty()) co_return;
    std::vector<std::string> queues;
    std::vector<weir::job_id> ids;
    for (auto const at : open) {
      queues.push_back(queue_of(ledger_.top_of(ledger_.at(at))));
      ids.push_back(ledger_.at(at).id);
    }
    auto const known = co_await find(queues, ids);
    for (std::size_t i = 0; i != open.size() && !over; ++i) {
      auto const at = open[i];
      if (!ledger_.is_open(at)) continue;
      if (known[i] && co_await settled(at, queues[i], *known[i], nullptr)) continue;
      // Somebody has made the store forget it.
      if (over) co_return;
      std::vector<std::size_t> const one{at};
      co_await enqueue(queues[i], one, false);
    }
  }

 private:
  [[nodiscard]] std::string queue_of(std::string const& top) const { return tree_ + '/' + top; }

  /// Where any process finds the file: unless no program could open so long a path.
  [[nodiscard]] std::string absolute(std::string const& path) const {
    constexpr std::size_t longest = 4095;
    if (!path.starts_with(given_)) return root_;  // the root is a file
    auto whole = (root_ == "/" ? "" : root_) + '/' + path.substr(given_.size());
    return whole.size() > longest ? path : whole;
  }

  asio::awaitable<bool> has_jobs(std::string queue) {
    auto const [place, first] = has_jobs_.try_emplace(queue, false);
    bool known = place->second;
    if (first) {
      auto const stats = co_await queue_.async_stats(queue, asio::use_awaitable);
      known = has_jobs_[queue] = stats.enqueued != stats.purged;
    }
    co_return known;
  }

  /// All at once: the store answers them in few transactions.
  asio::awaitable<std::vector<std::optional<weir::job>>> find(
      std::vector<std::string> const& queues, std::vector<weir::job_id> const& ids) {
    std::vector<std::optional<weir::job>> out(ids.size());
    std::size_t left = ids.size();
    weir::error_code failed;
    asio::steady_timer done{io_, asio::steady_timer::time_point::max()};
    for (std::size_t i = 0; i != ids.size(); ++i) {
      queue_.async_find(queues[i], ids[i],
                        [&, i](weir::error_code ec, std::optional<weir::job> found) {
                          if (ec) failed = ec;
                          out[i] = std::move(found);
                          if (--left == 0) done.cancel();
                        });
    }
    while (left != 0) co_await done.async_wait(asio::as_tuple(asio::use_awaitable));
    if (failed) throw boost::system::system_error{failed, "store"};
    co_return out;
  }

  /// Does what the store knows of a job settle the matter, now or by waiting? False: it is to be
  /// enqueued.
  ///
  /// @param stamp what its result must be of, if it was there before; null: made meanwhile
  asio::awaitable<bool> settled(std::size_t at, std::string const& queue, weir::job const& job,
                                file_stamp const* stamp) {
    auto const by = stamp != nullptr ? told_by::store : told_by::others;
    switch (job.state) {
      case weir::job_state::pending:
      case weir::job_state::leased: ledger_.placed(at); co_return true;
      case weir::job_state::completed:
        if (stamp != nullptr && !is_result_of(job.result, *stamp)) break;
        ledger_.close(at, job.state, job.result, by);
        co_return true;
      case weir::job_state::dead:
        if (stamp != nullptr) {
          auto const again = co_await queue_.async_replay(queue, job.id, {}, asio::use_awaitable);
          if (again.outcome != weir::replay_outcome::conflict) {  // or somebody else has replayed
                                                                  // it
            ledger_.placed(at);
            co_return true;
          }
        }
        ledger_.close(at, job.state, job.reason, by);
        co_return true;
      case weir::job_state::cancelled: break;
    }
    co_await queue_.async_purge(queue, job.id, asio::use_awaitable);
    co_return false;
  }

  /// @param displace whether jobs that wait to read an earlier state of a file give way
  asio::awaitable<void> enqueue(std::string queue, std::vector<std::size_t> const& added,
                                bool displace) {
    std::vector<hash_file> jobs;
    std::vector<weir::job_id> ids;
    for (auto const at : added) {
      jobs.push_back({absolute(ledger_.at(at).path)});
      ids.push_back(ledger_.at(at).id);
    }
    std::span<hash_file const> const all{jobs};
    weir::enqueue_options const options{.queue = queue, .ids = ids};
    auto const enqueued = co_await queue_.async_enqueue_many(all, options, asio::use_awaitable);
    std::vector<std::size_t> again;
    for (std::size_t i = 0; i != added.size(); ++i) {
      if (enqueued[i].outcome == weir::enqueue_outcome::duplicate) {
        auto const other = enqueued[i].other;
        if (displace && co_await queue_.async_cancel(queue, other, false, asio::use_awaitable) ==
                            weir::cancel_outcome::cancelled) {
          again.push_back(added[i]);
          continue;
        }
        ledger_.follow(added[i], other);
      }
      ledger_.placed(added[i]);
    }
    if (!again.empty()) co_await enqueue(std::move(queue), again, false);
  }

  weir::job_queue<any_store> queue_;
  ledger& ledger_;
  asio::io_context& io_;
  std::string given_;  // the root as it was given, with a slash at the end
  std::string root_;   // as any process can open it
  std::string tree_;   // its digest, by which its queues are told from those of other trees
  boost::unordered_flat_map<std::string, bool> has_jobs_;
};

}  // namespace manifest

#endif
