# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""What may be wrong in the store on PostgreSQL itself: each with the tests that have to notice. What
is wrong in the answers of its schema is hunted by conformance.postgres_*.

(name, what is wrong, header below include/weir, text that stands there once, how it is changed,
{program: [test cases]})"""

from run import after, before, instead, value

STORE, CONNECTIONS = "integration.postgres_store", "integration.postgres_connections"
TRANSACTION, JOINED = "integration.postgres_transaction", "integration.postgres_joined"
FAILURES, CRASHES = "integration.postgres_failures", "integration.postgres_crashes"
PLANS, WAITERS = "integration.postgres_plans", "integration.postgres_waiters"
FAILOVER, STRANGERS = "integration.postgres_failover", "integration.postgres_strangers"
MANY = "integration.postgres_many_queues"
DAMAGE, PLANTED = "integration.postgres_damage", "conformance.postgres_planted"

FAILURE, HOSTS = "store/postgres/failure.hpp", "store/postgres/hosts.hpp"
SOCKET, LINK = "store/postgres/socket.hpp", "store/postgres/link.hpp"
POOL, GATHERING = "store/postgres/pool.hpp", "store/postgres/gathering.hpp"
LISTENER, WAITS = "store/postgres/listener.hpp", "store/postgres/waits.hpp"
IN_TRANSACTION = "store/postgres/transaction_steps.hpp"
MIGRATION = "store/postgres/engine.hpp"


def in_sql(old, new):
    """Another text in the schema, wherever it stands, and it does. (Header, text, change.)"""
    change = f"""{{
  std::string const from = R"x({old})x", to = R"x({new})x";
  auto at = out.find(from);
  if (at == out.npos) std::abort();
  for (; at != out.npos; at = out.find(from, at + to.size())) out.replace(at, from.size(), to);
}}"""
    return MIGRATION, 'add("COMMIT;\\n");', before(change)


MUTANTS = [
    ("denied_is_outdated", "a missing privilege is taken for a missing migration", FAILURE,
     'if (state == "42501") return errc::permission_denied;', instead(";"),
     {STORE: ["what_the_server*"]}),
    ("full_is_unavailable", "a full disk is taken for one that is not there", FAILURE,
     'if (state == "53100") return errc::disk_full;', instead(";"),
     {FAILURES: ["a_full_disk*", "a_small_disk*"]}),
    ("standby_is_unavailable", "a server that only reads is told to wait for", FAILURE,
     'if (state == "25006") return errc::store_read_only;', instead(";"),
     {FAILURES: ["a_standby*"]}),
    ("names_block", "libpq looks up names", SOCKET,
     "s->names = s->hosts.names();", instead(";"),
     {CONNECTIONS: ["names*"]}),
    ("any_host", "whom the certificate is to name is forgotten", HOSTS,
     "to[0].push_back(hosts[i]);", instead("to[0].push_back(address);"),
     {CONNECTIONS: ["a_verified*"]}),
    ("first_host_only", "a host that cannot be found is the end", HOSTS,
     "return !to[0].empty();", before("if (to[0].size() < hosts.size()) return false;"),
     {CONNECTIONS: ["names*"]}),
    ("lost_is_not_done", "what is under way when the connection ends is said not to be done", LINK,
     "s.request->finish(known ? s.failed : make_error_code(errc::outcome_unknown), {});",
     instead("s.request->finish(known ? s.failed : make_error_code(errc::store_unavailable), {});"),
     {STORE: ["a_connection_that_is_cut*"]}),
    ("any_isolation", "a transaction is of the database's default level", LINK,
     'rows.bytes(0, 2) != "read committed"', value("false"),
     {STORE: ["no_command_fails*"]}),
    ("idle_deaths", "that an idle connection has ended is not noticed", LINK,
     "under_way_.empty() && !alive()", value("false"),
     {STORE: ["a_backend_that_was_ended*"]}),
    ("prepared_for_good", "what was prepared is taken for good, whatever the server says", LINK,
     "if (first.prepares || stale(r.get())) named_ = false;", instead(";"),
     {STORE: ["functions_may*", "a_function_that*"]}),
    ("one_line", "who may have to wait stands before all others", POOL,
     "c.may_wait() && options_.connections > 1", value("false"),
     {TRANSACTION: ["an_open_transaction*"]}),
    ("each_alone", "nothing goes together", GATHERING,
     "rows > most_rows || bytes > most_bytes", value("true"),
     {JOINED: ["commands_that_are*"]}),
    ("answers_of_others", "who went together gets the first one's answer", GATHERING,
     "rows.part(numbers[i], i == 0)", value("rows.part(numbers[0], i == 0)"),
     {JOINED: ["dequeues*", "completions*", "threads*"], MANY: ["whatever*"]}),
    ("parts_of_others", "the rows of one part are taken for another's", GATHERING,
     "out[part].push_back(row)", value("out[0].push_back(row)"),
     {MANY: ["whatever*"]}),
    ("none_left_out", "what a common answer leaves out is taken for an answer", GATHERING,
     "!ec && parts_[i]->call().left_out(part)", value("false"),
     {MANY: ["whatever*", "large*", "a_job_that_is_locked*"]}),
    ("locked_in_line", "who has to wait for a locked job stands before all others", POOL,
     "lane_of(each->call()).pending", value("lanes_[0].pending"),
     {MANY: ["a_job_that_is_locked*"]}),
    ("waits_with_others", "who waits for a locked job keeps others of its call waiting",
     *in_sql("FOR UPDATE SKIP LOCKED) l);", "FOR UPDATE) l);"),
     {MANY: ["a_job_that_is_locked*"]}),
    ("given_to_two", "two dequeues of one queue that go together are given the same jobs",
     *in_sql("array_position(queues_, q.queue) = q.part\n", "true\n"),
     {MANY: ["whatever*"]}),
    ("not_plain", "what is spent, late or damaged is claimed where many queues are",
     *in_sql("bool_and(l.sound) OVER () AS plain", "true AS plain"),
     {MANY: ["whatever*"]}),
    ("numbers_of_before", "what a holder had under a number before is given again",
     *in_sql("AND j.holder = u.holder AND j.sequence >= u.sequence", "AND false"),
     {MANY: ["a_holder*"]}),
    ("some_of_a_command", "of a command with a locked job the others are completed",
     *in_sql("WHERE u.command IN (SELECT whose[k.n]", "WHERE u.n IN (SELECT k.n"),
     {MANY: ["a_command*"]}),
    ("counted_in_each_row", "who counts completed jobs chooses a row for every row",
     *in_sql("FROM chosen f WHERE c.queue = f.queue AND c.stripe = f.stripe",
             "FROM chosen f WHERE c.queue = f.queue"),
     {MANY: ["ends_are_counted*"]}),
    ("lower_levels_first", "jobs of one level are all that a claim of many queues gives",
     *in_sql("(h.levels = 1 OR count(*) OVER () = q.most)", "true"),
     {MANY: ["whatever*"]}),
    ("one_for_all", "jobs of many queues that end together are counted as one",
     *in_sql("completed = c.completed + f.jobs", "completed = c.completed + 1"),
     {MANY: ["whatever*"]}),
    ("fail_together", "what fails because of one fails for all", GATHERING,
     "ec && ec != errc::outcome_unknown && parts_.size() > 1", value("false"),
     {JOINED: ["no_command_fails*"]}),
    ("wait_together", "what is held up holds up its kind", GATHERING,
     "if (!std::exchange(k.moved, false) && !k.waiting.empty()) ++k.stuck;", instead(";"),
     {JOINED: ["no_command_waits*"]}),
    ("no_sign_of_life", "who is silent is listened to for ever", LISTENER,
     "if (unanswered_ != 0 || broken_) return lost();", instead(";"),
     {WAITERS: ["a_listener*"]}),
    ("deaf", "what the server says is not passed on", LISTENER,
     "owner_.heard(news->extra);", instead(";"),
     {WAITERS: ["who_waits_is_told*", "an_applications*"]}),
    ("never_looks", "who is not told finds out never", WAITS,
     "auto until = owner->pool().options().poll_interval;", after("until = std::chrono::hours{1};"),
     {WAITERS: ["who_waits_finds*"]}),
    ("listens_for_ever", "who waits no more keeps the executor busy", WAITS,
     "self->listener_.pause();", instead(";"),
     {WAITERS: ["a_wait_that_is_cancelled*"]}),
    ("outlives_its_handles", "who waits keeps a store that nobody has any more", WAITS,
     "all->end(boost::asio::error::operation_aborted);", instead(";"),
     {WAITERS: ["a_wait_ends_with*"]}),
    ("no_savepoint", "a command that fails takes the transaction with it", IN_TRANSACTION,
     'send("SAVEPOINT weir_command")', value("true"),
     {TRANSACTION: ["a_command_that_fails*"]}),
    ("stays_with_a_standby", "a server that takes no writes is kept", LINK,
     "if (read_only(r.get())) read_only_ = true;", instead(";"),
     {FAILOVER: ["F70_a_primary*", "F70_a_standby*"]}),
    ("mute_host_is_the_end", "no other host is tried after one that is silent", SOCKET,
     "timer_.set(saturating_add(timer_.now(), s->most), [this, s] { give_up(s); });",
     instead("timer_.set(saturating_add(timer_.now(), s->most), "
             "[this, s] { finish(*s, errc::store_unavailable); });"),
     {FAILOVER: ["F70_a_mute*"]}),
    ("any_owner", "the schema may be anybody's", FAILURE,
     'if (state == "WEIR1") return errc::store_foreign;', instead(";"),
     {STRANGERS: ["F89_a_schema*"]}),
    ("lost_behind_a_pooler", "what a pooler has lost is taken for not done", FAILURE,
     'if (state.starts_with("08") || state == "40003") return errc::outcome_unknown;', instead(";"),
     {DAMAGE: ["F97_errors*"]}),
    ("names_of_others", "names are looked up where others can plant them",
     *in_sql("SET search_path = pg_catalog, pg_temp SET lock", "SET lock"),
     {PLANTED: ["F89_nothing*"]}),
    ("mark_for_good", "a mark of a clock that was ahead stays",
     *in_sql("WHERE s.forgotten > \"weir\".bucket_time(now_)", "WHERE false"),
     {STRANGERS: ["F101*"]}),
    ("any_number_of_locks", "one call deletes the pointers of any number of queues",
     *in_sql("LIMIT least(limit_, 100)", "LIMIT limit_"),
     {STRANGERS: ["F94_stale*"]}),
    ("told_each_time", "every enqueue notifies",
     *in_sql("DELETE FROM \"weir\".hints h WHERE h.topic = (SELECT k.topic FROM \"weir\".hints k "
             "WHERE k.topic = topic_\n      FOR UPDATE SKIP LOCKED);", "PERFORM 1;"),
     {WAITERS: ["it_is_said*"]}),
    ("looks_once", "news under way when somebody begins to wait is not looked for again",
     *in_sql("IF NOT settled THEN", "IF false THEN"),
     {WAITERS: ["news*"]}),
    ("waits_for_pointer", "an enqueue waits for who moves the pointer",
     *in_sql("own_ AND pg_try_advisory_xact_lock_shared(\"weir\".queue_lock(queue_))",
             "own_ AND pg_advisory_xact_lock_shared(\"weir\".queue_lock(queue_)) IS NOT NULL"),
     {TRANSACTION: ["an_enqueue_waits*"]}),
    ("waits_for_counter", "a step waits for the first counter that there is",
     *in_sql("LIMIT 1 FOR UPDATE SKIP LOCKED);", "LIMIT 1 FOR UPDATE);"),
     {TRANSACTION: ["an_enqueue_waits*"]}),
    ("pointers_of_others", "an application's step relies on a pointer that may go",
     *in_sql("IF own_ AND pg_try_advisory_xact_lock_shared", "IF pg_try_advisory_xact_lock_shared"),
     {TRANSACTION: ["a_job_is_found*"]}),
    ("waits_for_ever", "who waits for an application's transaction is not told to come back",
     *in_sql("SET lock_timeout = '1s'", "SET lock_timeout = '1h'"),
     {TRANSACTION: ["who_wants*"]}),
    ("any_plan", "a step goes through all jobs if the server thinks that they are few",
     *in_sql("SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET "
             "enable_mergejoin = off", "SET enable_nestloop = off"),
     {PLANS: ["no_step*"]}),
    ("any_order", "claimed jobs come as the plan has it",
     *in_sql("FROM claimed j ORDER BY j.place", "FROM claimed j"),
     {PLANS: ["jobs_come*"]}),
    ("fences_set_back", "who raises the fences does not look again",
     *in_sql("IF nextval('\"weir\".fences') < now_ / 1000 THEN\n    PERFORM setval",
             "IF true THEN\n    PERFORM setval"),
     {PLANS: ["the_sequence*"]}),
    ("cold_tables", "what is dead stays until a fifth of the table is",
     *in_sql("autovacuum_vacuum_scale_factor = 0.01, ", ""),
     {PLANS: ["every_table*"]}),
    ("keys_are_free", "a unique key is taken for free",
     *in_sql("AND NOT w.run AND w.key = keys_[i]\n", "AND NOT w.run AND false\n"),
     {CRASHES: ["an_application*", "promises*"]}),
    ("credit_twice", "what was taken from a bucket is forgotten",
     *in_sql("a[i + 1] := greatest(a[i + 1],", "a[i + 1] := least(a[i + 1],"),
     {CRASHES: ["promises*"]}),
    ("fences_again", "a fence is given out again where no row remembers the last one",
     *in_sql("RETURN greatest(f, last_ + 1)", "RETURN last_ + 1"),
     {CRASHES: ["promises*"], FAILURES: ["a_standby*"]}),
    ("too_many_permits", "a permit is granted over the limit",
     *in_sql("IF l.live + ahead < limits_[i] THEN", "IF l.live + ahead <= limits_[i] THEN"),
     {CRASHES: ["promises*"]}),
]
