// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_HPP
#define WEIR_STORE_NATS_HPP

#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/detail/config.hpp"
#include "weir/engine_store.hpp"
#include "weir/error.hpp"
#include "weir/failure.hpp"
#include "weir/store/nats/address.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/options.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/deferred.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace weir {

namespace detail {

class nats_engine;

[[nodiscard]] std::shared_ptr<nats_engine> make_nats_engine(boost::asio::any_io_executor executor,
                                                            nats_address address,
                                                            nats_options const& options);
void run_nats(nats_engine& engine, boost::asio::any_completion_handler<void(error_code)> handler);
void close_engine(nats_engine& engine);
[[nodiscard]] store_failure last_failure_of(nats_engine const& engine);

/// Full buckets the server forgets by itself.
template <class C>
inline constexpr bool engine_executes<nats_engine, C> =
    engine_step<C> && !std::same_as<C, command::reap_buckets>;

}  // namespace detail

/// All four nouns on NATS JetStream (server 2.12 or later), shared by any number of processes and
/// hosts.
///
///     weir::nats_store store{io.get_executor(), "nats://127.0.0.1:4222"};
///     store.async_run(weir::log::failures{"store"});
///     weir::limiter limiter{store, ...};
///
/// Programs link the CMake target weir::nats, which brings the NATS C client.
///
/// A handle: copies share the state, and any number of threads may use them at once; none may
/// outlive the execution context, which ends with whatever is under way. There is one connection,
/// on a strand of its own, which exists while `async_run` runs. The C client connects to a relay in
/// the strand, on the loopback interface, and the relay to a server. The relay ends attempts in
/// time, and passes on only what a server may say; within TLS, where the server has shown a
/// certificate, it passes on everything. The client blocks while it connects, in a thread of its
/// own; a connection with TLS has a thread for as long as it lasts.
///
/// Of several servers each has its own time to answer, so that a mute one only causes a delay. A
/// connection to a server that serves nothing, because it is cut off from the others of its
/// cluster, is ended within five of `health_check_interval`. Then one of the servers is chosen
/// anew, and its name looked up: another server may be behind the address by then.
///
/// Each key is one record in a stream, and a command is: read it, let the rule decide, and write it
/// back unless somebody else has. A process remembers its records, so that most commands take one
/// round trip, and combines the commands on a key that are under way at once. What is written grows
/// with the holders and waiters of a key, by about 60 bytes each: with the usual `max_payload` of
/// 1 MiB about 16,000 of them fit into a message. Another one is `store_full`, while those who are
/// there renew and leave as always.
///
/// Processes that write one record by turns are in each other's way: all but one have done their
/// work in vain. So the keys are in eight parts, and one process is the owner of each: the first
/// one that has a command for it, unless `nats_options::owner` is false. All others ask it to
/// execute their commands, and it combines them. The shards of the jobs have owners, too.
///
/// Parts and shards are spread evenly over the processes that may own and are used, as they come
/// and go. One that has had a connection for about ten of `health_check_interval` looks who owns
/// what, a record at a time, and takes over, one after the other, what a process owns that has at
/// least two more parts, or shards, than itself. A shard is read before it is taken, so that
/// commands need not wait for it. The former owner sends those who still ask it to the new one, and
/// no command fails for it. What is taken and cannot be kept is not taken again for a minute,
/// and each time for twice as long, up to an hour.
///
/// Owners are a matter of speed alone: records and logs are right whoever writes them. An owner
/// that stood still or was cut off finds that it was replaced, and asks like the others. Nobody
/// waits for a lease to end: a process that asks an owner which has ended hears at once that nobody
/// listens, and takes its place; so it does when it hears nothing for `owner_patience`. Commands
/// that the old owner was asked, and may have done, are `outcome_unknown`; those that only read are
/// asked again.
///
/// The server's clock decides. Clients know it by what replies say, to within the fastest round
/// trip lately and half a thousandth of the time since: leases live longer by that much, and never
/// shorter. A connection opens with up to four such replies, until one was quick. In a cluster the
/// clocks of its servers have to agree: by how much they do not, a lease may be shorter when the
/// stream gets another leader.
///
/// Leases end when they say, to the precision above: their ends are in the records, and are
/// compared with the server's time. The server forgets a record by itself, by a time to live of
/// whole seconds, the least that it knows, two hours after the last lease in it is over (a minute
/// where nothing is held, or of a bucket that is full within a minute).
///
/// Errors of every command, besides its own: `store_unavailable` when for `offline_patience` there
/// was no connection, or JetStream could not serve it, as when the stream has no leader, or when a
/// read got no answer; `outcome_unknown` when the connection ended, or no answer came within
/// `request_timeout`, after a write was given to it; `permission_denied` when the servers do not
/// know who asks, or do not permit it what a command needs, at once; `store_full` when
/// `max_pending` commands are under way, the stream or the account is full, or a record too large
/// for a message; `store_read_only` when the stream is sealed; `store_foreign` when the stream is
/// not weir's; `store_corrupt` when the record of its key cannot be read, which concerns no other
/// key; `schema_outdated` when the stream is missing and not to be made; `invalid_option` when the
/// prefix is not valid, or the servers do not make such a stream, as with more replicas than a
/// server without a cluster can have, or when `command::at` tells a time more than 200 years from
/// 1970; `closed`. For a command that another process executes, as the owner, the owner's options
/// hold, and its `max_pending` counts what it is asked, too; only `with_patience` is the caller's.
///
/// The store asks again for what a server refuses, as long as the cause may pass and patience
/// lasts; but not where the outcome is unknown. In a cluster a leader that dies takes with it what
/// it was asked last, and its successor is elected within seconds.
///
/// The jobs of a shard are what a log of their commands makes of them, in a stream of its own. The
/// shard's owner keeps all of it in memory: 270 bytes for a job with a payload of 64, by a
/// measurement with 900,000. It writes each command to the log, and executes it when it reads it
/// there: a command is one step, in one order for everybody, at the time that its message has;
/// what is asked for together travels together. What only reads, and a dequeue that finds
/// nothing, writes nothing: it asks the server how far the log goes, reads so far, and answers
/// then. Where the log has grown by `image_interval`, and by as much as all jobs take, an image of
/// the shard is written. The log is cut behind the newest image that is safe: that was complete
/// twice `sync_interval` ago, by when the disk has it. So a shard costs the server, for each
/// command, about 80 bytes and the command's texts for at least four minutes, as `sync_interval` is
/// by default, and for eight or a little longer where images are frequent; and for each of three
/// images 65 bytes for each job and its texts. A log that is full is cut sooner. Other processes
/// keep nothing of it but the commands that they wait for. Where there is no owner, and may be none
/// of those that are there, each does as an owner would for as long.
///
/// What takes long with many jobs is done for about a millisecond at a time, so that other commands
/// go on: making an image, during which the commands on its shard wait, and reading one, with which
/// an owner begins; about half a second each for a million jobs, on one slow core. At once are
/// done, for a million jobs: giving back the memory of an image that was read, in 11 ms; and, where
/// the log was cut before a process that was away had read it, forgetting what that process knew of
/// the shard, in 0.12 s. What a dequeue costs does not grow with the jobs that are not due.
///
/// A command about jobs has to fit into a message, and a message into the server's `max_payload`,
/// which each connection learns when it begins. So what is legal here is what fits: a job with its
/// texts, its queue's name and about 100 bytes, or a result with its queue's name and as much; and,
/// since a batch is one step, all of its jobs or results together. What does not fit is
/// `payload_too_large` before it is sent, by itself: commands that are joined into one message are
/// so only as far as they fit. Everything else about a job that was taken fits, too, and so does an
/// image of it, which is in as many messages as it needs. A server with a `max_payload` below 8 KiB
/// is `invalid_option`.
///
/// A message of the log that is damaged is passed over by all processes alike, from where it is
/// damaged on: what stands in it is commands, so there is no job to make a dead letter of. The
/// caller who sent it gets `outcome_unknown`, and the next dequeue that the log has tells of it
/// (`dequeued::damaged`). In place of a damaged image, or of one that has lost a part, one before
/// it serves, or all of the log.
///
/// Beside the errors above, jobs have `store_full` for more than `max_jobs`
/// in a shard, `schema_too_new` where a later version of weir has written to the log, from there
/// on, `store_corrupt` where a part of the log is missing or all images are damaged, and
/// `invalid_option` where other processes use another number of shards. Who waited when the
/// connection ended learns from the log what became of a command, or, if it is not there, that its
/// outcome is unknown.
///
/// JetStream acknowledges before it has synchronised its file to the disk,
/// unless the server's `sync_interval` is `always`: a host that loses power may forget what was
/// acknowledged in the last two minutes, leases among it; fences still grow. What came before is
/// kept, where `sync_interval` here is what the servers have.
///
/// A user needs to publish to `PREFIX.k.>`, `PREFIX.h.>`, `PREFIX.r.>`,
/// `$JS.API.STREAM.INFO.PREFIX-keys`, `$JS.API.DIRECT.GET.PREFIX-keys.>` and, where there are
/// replicas, `$JS.API.STREAM.MSG.GET.PREFIX-keys`; to subscribe to `PREFIX.r.>` and `PREFIX.h.>`;
/// for the jobs of each shard N, to publish to `PREFIX.j.N`,
/// `$JS.API.STREAM.INFO.PREFIX-jobs-N`, `$JS.API.DIRECT.GET.PREFIX-jobs-N`,
/// `$JS.API.STREAM.PURGE.PREFIX-jobs-N` and `$JS.API.STREAM.PURGE.PREFIX-keys`, and to subscribe to
/// `PREFIX.e.N`; to ask owners, to publish to `PREFIX.q.>`, and to be one, to subscribe to that;
/// and, to make the streams, to publish to `$JS.API.STREAM.CREATE.` with the name of each. Who may
/// publish to `PREFIX.q.>` has anything executed with the owner's rights. Without these two rights
/// a process does all by itself, in the way of others. Without the right to publish to `PREFIX.r.>`
/// it is told only after `request_timeout`, and not at once, that a stream has no leader, while
/// many commands are under way, and must not be an owner. Without the right to subscribe to
/// anything but `PREFIX.r.>` what others do is found when it is looked for, and a waiter waits
/// longer.
///
/// All that the store says and hears is under `PREFIX.` and `$JS.API.`; replies are under
/// `PREFIX.r.`, not in `_INBOX.`. So other users of the account see no payload, no result and no
/// holder if they may neither publish nor subscribe to `PREFIX.>`, and may not publish to
/// `$JS.API.>`: a stream or a consumer that they make could copy any stream of the account. By
/// subscribing to `$JS.API.>` they see the names of keys. Give users who need JetStream an account
/// of their own.
///
/// A command that is cancelled was executed, or not. A wait for a permit ends at most
/// `poll_interval` after there is reason for it; one for jobs when some queue of the shard may be
/// due, whichever process made it so, and a lost connection may lose such hints. `close` ends the
/// connection: writes under way are `outcome_unknown`, whatever else is, and later ones, are
/// `closed` or `store_unavailable`, and `async_run` completes.
///
/// On the server stays: for each key a message, until two hours after all of it is over (a minute
/// where nothing is held, or of a bucket that is full within a minute); eight and one for each
/// shard, which name the owners; one with the time; for each shard its last three images and the
/// log since one of them; and what is kept for a store that is full: `nats_options::reserve`, and
/// for each shard that takes more than half of that 1.4 times its image.
class nats_store : public engine_store<nats_store, detail::nats_engine> {
 public:
  using clock_type = system_clock;  ///< how primitives on it wait

  /// Connects to nothing yet.
  ///
  /// @param executor where the connection lives, and operations without an executor of their own
  /// complete
  /// @param address where the servers are
  /// @param options how it behaves
  explicit nats_store(executor_type executor, nats_address address = nats_address{},
                      nats_options const& options = {})
      : engine_store{executor, detail::bounded(options).shards,
                     detail::make_nats_engine(executor, std::move(address), options)} {}

  /// The same, with the addresses in one line.
  ///
  /// @param executor as above
  /// @param urls     what `nats_address::parse` reads. Throws `boost::system::system_error` with
  ///                 `invalid_option`, which says what is wrong, if it is none.
  /// @param options  as above
  nats_store(executor_type executor, std::string_view urls, nats_options const& options = {})
      : nats_store{std::move(executor), nats_address::parse(urls).value(), options} {}

  /// Keeps a connection to a server, and makes another one whenever it ends, until `close`.
  /// Completes with `void(error_code)`: success once `close` is called, `closed` where it was
  /// called before, `already_started` where it runs. Cancelling it (any kind) completes it with
  /// `operation_aborted`; the connection goes on.
  template <class Token = boost::asio::deferred_t>
  WEIR_OPERATION auto async_run(Token&& token = {}) const {
    return async_start(&detail::run_nats, std::forward<Token>(token));
  }
};

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/store/nats/engine.hpp"
#endif

#endif
