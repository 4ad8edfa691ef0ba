// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_RECORD_HPP
#define WEIR_TABLE_JOB_RECORD_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/rule/job_fields.hpp"
#include "weir/table/job_holders.hpp"
#include "weir/time.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>

namespace weir::detail {

template <class>
class basic_memory_queue;
using memory_queue = basic_memory_queue<void>;

/// What only some jobs have.
struct job_notes {
  std::string memo;
  std::string result;
  std::string reason;
  std::string headers;
  std::string progress;
  std::string checkpoint;
};

struct records_tag;
struct order_tag;
struct claimed_tag;

template <class Tag>
using job_set_hook = boost::intrusive::set_base_hook<boost::intrusive::tag<Tag>,
                                                     boost::intrusive::optimize_size<true>>;
using claimed_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<claimed_tag>>;

/// One job, in one block of memory with its texts. It is in exactly one order: its queue's index
/// until it ends, then the dead letters, or the records that are kept until their retention is
/// over. What is compared stands next to the links.
struct job_record : job_set_hook<records_tag>,
                    job_set_hook<order_tag>,
                    rule::job_fields<job_holder*>,
                    claimed_hook {
  std::uint16_t kind_size = 0;
  std::uint16_t key_size = 0;
  std::uint32_t payload_size = 0;

  memory_queue* home = nullptr;
  std::unique_ptr<job_notes> rare;

  [[nodiscard]] std::string_view kind() const noexcept { return {text(), kind_size}; }
  [[nodiscard]] std::string_view unique_key() const noexcept {
    return {text() + kind_size, key_size};
  }
  [[nodiscard]] std::string_view payload() const noexcept {
    return {text() + kind_size + key_size, payload_size};
  }
  /// Kind, unique key and payload follow the record in its own block of memory.
  [[nodiscard]] char const* text() const noexcept {
    return reinterpret_cast<char const*>(this + 1);
  }
  [[nodiscard]] char* text() noexcept { return reinterpret_cast<char*>(this + 1); }

  struct destroy {
    void operator()(job_record* r) const noexcept {
      r->~job_record();
      ::operator delete(r);
    }
  };
  using owner = std::unique_ptr<job_record, destroy>;

  [[nodiscard]] std::string_view memo() const noexcept { return note(&job_notes::memo); }
  [[nodiscard]] std::string_view result() const noexcept { return note(&job_notes::result); }
  [[nodiscard]] std::string_view reason() const noexcept { return note(&job_notes::reason); }
  [[nodiscard]] std::string_view headers() const noexcept { return note(&job_notes::headers); }
  [[nodiscard]] std::string_view progress() const noexcept { return note(&job_notes::progress); }
  [[nodiscard]] std::string_view checkpoint() const noexcept {
    return note(&job_notes::checkpoint);
  }
  void note_memo(std::string_view text) { note(&job_notes::memo, text); }
  void note_result(std::string_view text) { note(&job_notes::result, text); }
  void note_reason(std::string_view text) { note(&job_notes::reason, text); }
  void note_headers(std::string_view text) { note(&job_notes::headers, text); }
  /// Each, unless it is empty; both, or none.
  void note_progress(std::string_view progress, std::string_view checkpoint) {
    if (progress.empty() && checkpoint.empty()) return;
    std::string first{progress};
    std::string second{checkpoint};
    auto& to = notes();
    if (!first.empty()) to.progress = std::move(first);
    if (!second.empty()) to.checkpoint = std::move(second);
  }
  [[nodiscard]] std::string_view holder_name() const noexcept { return holder->name; }

  /// As `rule::bytes_of` the job that is described from it.
  [[nodiscard]] std::size_t text_bytes() const noexcept {
    auto const all = std::size_t{kind_size} + key_size + payload_size;
    if (!rare) return all;
    return all + rare->memo.size() + rare->result.size() + rare->reason.size() +
           rare->headers.size() + rare->progress.size() + rare->checkpoint.size();
  }

  [[nodiscard]] job_notes& notes() {
    if (!rare) rare = std::make_unique<job_notes>();
    return *rare;
  }

 private:
  [[nodiscard]] std::string_view note(std::string job_notes::* which) const noexcept {
    return rare ? std::string_view{(*rare).*which} : std::string_view{};
  }
  void note(std::string job_notes::* which, std::string_view text) {
    if (rare || !text.empty()) notes().*which = text;
  }
};

[[nodiscard]] inline job_record::owner make_record(new_job const& j, time_point now,
                                                   memory_queue& home) {
  auto const text_size = j.kind.size() + j.unique_key.size() + j.payload.size();
  job_record::owner r{::new (::operator new(sizeof(job_record) + text_size)) job_record};
  r->vesting = saturating_add(now, j.delay);
  r->id = j.id;
  r->max_attempts = j.max_attempts;
  r->priority = j.priority;
  r->strategy = j.strategy;
  r->on_conflict = j.on_conflict;
  r->kind_size = static_cast<std::uint16_t>(j.kind.size());
  r->key_size = static_cast<std::uint16_t>(j.unique_key.size());
  r->payload_size = static_cast<std::uint32_t>(j.payload.size());
  auto* to = std::copy(j.kind.begin(), j.kind.end(), r->text());
  to = std::copy(j.unique_key.begin(), j.unique_key.end(), to);
  std::copy(j.payload.begin(), j.payload.end(), to);
  r->enqueued = now;
  r->deadline_from = now;
  r->deadline = j.deadline;
  r->retention = j.retention;
  r->home = &home;
  r->note_headers(j.headers);
  return r;
}

}  // namespace weir::detail

#endif
