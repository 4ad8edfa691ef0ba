// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_REPORT_HPP
#define WEIR_EXAMPLE_MANIFEST_REPORT_HPP

#include "path_text.hpp"
#include "quantity_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace manifest {

/// What became of one queue's files.
struct queue_tally {
  std::string queue;
  std::uint64_t found = 0;
  std::uint64_t done = 0;
  std::uint64_t stored = 0;  ///< of them, those whose checksum was in the store before
  std::uint64_t others = 0;  ///< of them, those that other processes read meanwhile
  std::uint64_t retries = 0;
  std::uint64_t dead = 0;
  std::uint64_t bytes = 0;  ///< of those that are done and were read here
};

/// A path that is not in the manifest, and why.
struct missing_path {
  std::string path;
  std::string reason;
};

struct report {
  std::vector<queue_tally> queues;
  std::vector<missing_path> dead_letters;
  std::vector<missing_path> unwalked;
  seconds time{};
};

namespace detail {

using table_row = std::vector<std::string>;

// The columns that a terminal gives to it, near enough: one for each code point.
[[nodiscard]] inline std::size_t width_of(std::string const& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// The first column is set left, the others right.
[[nodiscard]] inline std::string table_text(std::vector<table_row> const& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (auto const& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (auto const& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string const padding(widths[i] - width_of(row[i]), ' ');
      text += i == 0 ? row[i] + padding : "  " + padding + row[i];
    }
    text += '\n';
  }
  return text;
}

/// Which columns there are beside those that always are.
struct extra_columns {
  bool stored = false;
  bool others = false;
};

[[nodiscard]] inline table_row row_of(std::string name, queue_tally const& q, extra_columns with) {
  table_row row{std::move(name), count_text(q.found), count_text(q.done), count_text(q.retries),
                count_text(q.dead)};
  if (with.stored) row.push_back(count_text(q.stored));
  if (with.others) row.push_back(count_text(q.others));
  row.push_back(bytes_text(static_cast<double>(q.bytes)));
  return row;
}

[[nodiscard]] inline std::string files_text(std::uint64_t n) {
  return count_text(n) + (n == 1 ? " file" : " files");
}

[[nodiscard]] inline queue_tally sum_of(std::vector<queue_tally> const& queues,
                                        std::size_t from = 0) {
  queue_tally sum;
  for (std::size_t i = from; i < queues.size(); ++i) {
    sum.found += queues[i].found;
    sum.done += queues[i].done;
    sum.stored += queues[i].stored;
    sum.others += queues[i].others;
    sum.retries += queues[i].retries;
    sum.dead += queues[i].dead;
    sum.bytes += queues[i].bytes;
  }
  return sum;
}

[[nodiscard]] inline std::string missing_text(std::string const& what,
                                              std::vector<missing_path> const& missing,
                                              std::size_t most) {
  if (missing.empty()) return {};
  std::string text = "\n" + what + ":\n";
  for (std::size_t i = 0; i < std::min(most, missing.size()); ++i) {
    text += "  " + for_terminal(missing[i].path) + ": " + for_terminal(missing[i].reason) + "\n";
  }
  if (missing.size() > most) text += "  and " + count_text(missing.size() - most) + " more\n";
  return text;
}

}  // namespace detail

/// The table of all queues, those with the most files first, the throughput, and what is missing
/// and why. At most `most` lines for each of them.
[[nodiscard]] inline std::string report_text(report r, std::size_t most = 20) {
  std::ranges::sort(r.queues, [](queue_tally const& a, queue_tally const& b) {
    return a.found != b.found ? a.found > b.found : a.queue < b.queue;
  });
  auto const all = detail::sum_of(r.queues);

  std::vector<detail::table_row> rows;
  detail::extra_columns const with{all.stored > 0, all.others > 0};
  detail::table_row head{"queue", "files", "done", "retries", "dead"};
  if (with.stored) head.emplace_back("stored");
  if (with.others) head.emplace_back("others");
  head.emplace_back("read");
  rows.push_back(std::move(head));
  // One row too many is no longer than saying so.
  auto const shown = r.queues.size() <= most + 1 ? r.queues.size() : most;
  for (std::size_t i = 0; i < shown; ++i) {
    rows.push_back(detail::row_of(for_terminal(r.queues[i].queue), r.queues[i], with));
  }
  if (shown < r.queues.size()) {
    rows.push_back(detail::row_of(count_text(r.queues.size() - shown) + " more queues",
                                  detail::sum_of(r.queues, shown), with));
  }
  rows.push_back(detail::row_of("all", all, with));

  auto text = detail::table_text(rows);
  double const time = std::max(r.time.count(), 1e-3);
  // What was read is what took the time.
  auto const read = all.done - all.stored - all.others;
  text += "\n";
  if (with.stored) text += detail::files_text(all.stored) + " unchanged, from the store\n";
  if (with.others) text += detail::files_text(all.others) + " read by other processes meanwhile\n";
  if (read == 0 && (with.stored || with.others)) {
    text += "nothing to read; done in " + time_text(r.time) + "\n";
  } else {
    text += detail::files_text(read) + (with.stored || with.others ? " read, " : ", ") +
            bytes_text(static_cast<double>(all.bytes)) + " in " + time_text(r.time) + ": " +
            bytes_text(static_cast<double>(all.bytes) / time) + "/s, " +
            count_text(static_cast<std::uint64_t>(static_cast<double>(read) / time)) + " files/s\n";
  }
  text += detail::missing_text("dead letters (not in the manifest)", r.dead_letters, most);
  text +=
      detail::missing_text("not walked (their files are not in the manifest)", r.unwalked, most);
  return text;
}

}  // namespace manifest

#endif
