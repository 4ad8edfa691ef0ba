// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "../../example/manifest/progress.hpp"
#include "../../example/manifest/report.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>

using manifest::bytes_text;
using manifest::count_text;
using manifest::pace;
using manifest::progress;
using manifest::reminder;
using manifest::report;
using manifest::seconds;
using manifest::time_text;

namespace {

progress half() {
  progress p;
  p.files_found = 8'000;
  p.files_done = 4'000;
  p.bytes_found = 132'000'000;
  p.bytes_done = 66'000'000;
  p.walking = false;
  return p;
}

manifest::queue_tally tally(std::string queue, std::uint64_t found, std::uint64_t done,
                            std::uint64_t retries, std::uint64_t dead, std::uint64_t bytes) {
  manifest::queue_tally q;
  q.queue = std::move(queue);
  q.found = found;
  q.done = done;
  q.retries = retries;
  q.dead = dead;
  q.bytes = bytes;
  return q;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(manifest_progress)

BOOST_AUTO_TEST_CASE(quantities_are_short) {
  BOOST_TEST(count_text(0) == "0");
  BOOST_TEST(count_text(999) == "999");
  BOOST_TEST(count_text(1'000) == "1,000");
  BOOST_TEST(count_text(1'234'567) == "1,234,567");
  BOOST_TEST(bytes_text(0) == "0 B");
  BOOST_TEST(bytes_text(999) == "999 B");
  BOOST_TEST(bytes_text(1'000) == "1.00 kB");
  BOOST_TEST(bytes_text(9'999) == "10.0 kB");
  BOOST_TEST(bytes_text(99'960) == "100 kB");
  BOOST_TEST(bytes_text(999'600) == "1.00 MB");
  BOOST_TEST(bytes_text(132'456'789) == "132 MB");
  BOOST_TEST(bytes_text(1e30) == "1000000000000 EB");
  BOOST_TEST(time_text(seconds{0.44}) == "0.4 s");
  BOOST_TEST(time_text(seconds{9.96}) == "10 s");
  BOOST_TEST(time_text(seconds{59.4}) == "59 s");
  BOOST_TEST(time_text(seconds{59.6}) == "1:00");
  BOOST_TEST(time_text(seconds{187}) == "3:07");
  BOOST_TEST(time_text(seconds{3723}) == "1:02:03");
  BOOST_TEST(time_text(seconds{-1}) == "0.0 s");
  BOOST_TEST(!time_text(seconds{1e300}).empty());
}

BOOST_AUTO_TEST_CASE(a_line_tells_how_far_how_fast_and_how_long) {
  auto p = half();
  pace speed;
  speed.add(seconds{2}, p);
  BOOST_TEST(progress_line(p, speed) ==
             " 50 %  4,000 of 8,000 files  66.0 MB of 132 MB  33.0 MB/s  2.0 s left");
  p.retries = 1;
  p.dead = 2;
  BOOST_TEST(progress_line(p, speed).ends_with("  1 retry  2 dead"));
}

BOOST_AUTO_TEST_CASE(while_the_walk_goes_on_the_end_is_not_known) {
  auto p = half();
  p.walking = true;
  pace speed;
  speed.add(seconds{2}, p);
  BOOST_TEST(progress_line(p, speed) == "4,000 of 8,000+ files  66.0 MB of 132 MB+  33.0 MB/s");
  BOOST_TEST(!p.fraction().has_value());
}

BOOST_AUTO_TEST_CASE(all_of_it_is_100_percent_and_nothing_less_is) {
  auto p = half();
  p.bytes_done = 200'000'000;  // the files grew
  p.files_done = 7'999;
  BOOST_TEST(p.fraction().value() < 1);
  p.files_done = 8'000;
  p.bytes_done = 1'000;  // or shrank
  BOOST_TEST(p.fraction().value() == 1);
  BOOST_TEST((progress{.walking = false}.fraction().value() == 1));  // no files at all
}

BOOST_AUTO_TEST_CASE(the_pace_is_that_of_the_last_ten_seconds) {
  pace speed;
  BOOST_TEST(speed.bytes_per_second() == 0);
  BOOST_TEST(!speed.left().has_value());
  auto p = half();
  p.files_found = p.files_done = 0;
  p.bytes_done = 0;
  for (int t = 1; t <= 30; ++t) {  // 1 MB/s for 15 s, then 2 MB/s
    p.bytes_done += t <= 15 ? 1'000'000 : 2'000'000;
    speed.add(seconds{static_cast<double>(t)}, p);
  }
  BOOST_TEST(speed.bytes_per_second() == 2'000'000, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(speed.left()->count() == (132 - 45) / 2.0, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_standstill_has_no_estimate) {
  pace speed;
  auto const p = half();
  for (int t = 1; t <= 30; ++t) speed.add(seconds{static_cast<double>(t)}, p);
  BOOST_TEST(speed.bytes_per_second() == 0);
  BOOST_TEST(!speed.left().has_value());
}

BOOST_AUTO_TEST_CASE(the_bar_fits_into_its_terminal) {
  auto const p = half();
  pace speed;
  speed.add(seconds{2}, p);
  auto const wide = progress_bar(p, speed, 120);
  BOOST_TEST(wide.starts_with("[###############---------------]  50 %"));
  for (std::size_t columns = 0; columns < 130; ++columns) {
    BOOST_TEST(progress_bar(p, speed, columns).size() <= columns);
  }
  BOOST_TEST(progress_bar(p, speed, 72) == progress_line(p, speed));
}

BOOST_AUTO_TEST_CASE(a_bar_is_drawn_at_most_ten_times_a_second) {
  reminder bar{true};
  int drawn = 0;
  for (int ms = 0; ms < 10'000; ++ms) drawn += bar.due(seconds{ms / 1000.0}, 0.5);
  BOOST_TEST(drawn <= 100);
  BOOST_TEST(drawn >= 90);
}

BOOST_AUTO_TEST_CASE(lines_are_few_on_a_short_run_and_on_a_long_one) {
  for (int length : {1, 20, 100, 3'600, 360'000}) {
    reminder lines{false};
    int told = 0;
    for (int step = 0; step <= 100'000; ++step) {
      told += lines.due(seconds{length * (step / 100'000.0)}, step / 100'000.0);
    }
    BOOST_TEST(told <= std::max(20, length / 30 + 20));
    if (length >= 20) BOOST_TEST(told >= 10);
  }
}

BOOST_AUTO_TEST_CASE(the_table_has_the_largest_queues_first_and_a_sum) {
  report r;
  r.queues = {tally(".", 2, 2, 0, 0, 10), tally("linux", 1'200, 1'198, 3, 2, 5'000'000),
              tally("\x1B[31m", 7, 7, 0, 0, 700)};
  r.time = seconds{2};
  BOOST_TEST(report_text(r) == "queue     files   done  retries  dead     read\n"
                               "linux     1,200  1,198        3     2  5.00 MB\n"
                               "\\x1B[31m      7      7        0     0    700 B\n"
                               ".             2      2        0     0     10 B\n"
                               "all       1,209  1,207        3     2  5.00 MB\n"
                               "\n"
                               "1,207 files, 5.00 MB in 2.0 s: 2.50 MB/s, 603 files/s\n");
}

BOOST_AUTO_TEST_CASE(names_that_are_not_ASCII_keep_the_columns) {
  report r;
  r.queues = {tally("gr\xC3\xBC\xC3\x9F", 2, 2, 0, 0, 10), tally("abcdef", 1, 1, 0, 0, 1)};
  auto const text = report_text(r);
  BOOST_TEST(text.find("gr\xC3\xBC\xC3\x9F        2") != std::string::npos);
  BOOST_TEST(text.find("abcdef      1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_table_stays_short_however_many_there_are) {
  report r;
  for (std::uint64_t i = 0; i < 500; ++i) {
    r.queues.push_back(tally("q" + std::to_string(i), 1, 1, 0, 0, 1));
    r.dead_letters.push_back({"d" + std::to_string(i), "Permission denied"});
  }
  auto const text = report_text(r);
  BOOST_TEST(std::ranges::count(text, '\n') < 60);
  BOOST_TEST(text.find("480 more queues") != std::string::npos);
  BOOST_TEST(text.find("  and 480 more\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_missing_is_listed_with_its_reason) {
  report r;
  r.dead_letters = {{"/a\nb", "Permission denied"}};
  r.unwalked = {{"/c", "Input/output error"}};
  auto const text = report_text(r);
  BOOST_TEST(text.find("\ndead letters (not in the manifest):\n  /a\\nb: Permission denied\n") !=
             std::string::npos);
  BOOST_TEST(text.find("\n  /c: Input/output error\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_was_not_read_here_has_its_own_columns) {
  report r;
  r.queues = {tally("a", 10, 9, 0, 1, 2'000), tally("b", 5, 5, 0, 0, 0)};
  r.queues[0].stored = 3;
  r.queues[1].stored = 5;
  r.time = seconds{2};
  BOOST_TEST(report_text(r) == "queue  files  done  retries  dead  stored     read\n"
                               "a         10     9        0     1       3  2.00 kB\n"
                               "b          5     5        0     0       5      0 B\n"
                               "all       15    14        0     1       8  2.00 kB\n"
                               "\n"
                               "8 files unchanged, from the store\n"
                               "6 files read, 2.00 kB in 2.0 s: 1.00 kB/s, 3 files/s\n");
  r.queues[0].others = 6;
  auto const text = report_text(r);
  BOOST_TEST(text.find("dead  stored  others     read\n") != std::string::npos);
  BOOST_TEST(text.find("\n6 files read by other processes meanwhile\n") != std::string::npos);
  BOOST_TEST(text.find("\nnothing to read; done in 2.0 s\n") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
