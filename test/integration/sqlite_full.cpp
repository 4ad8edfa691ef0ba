// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A file store on a disk that is full (F61): what makes records is refused, what empties the store
// goes on to the last job, and all goes on when there is room.

#include "sqlite_bed.hpp"
#include "sqlite_disk.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace sqlite_test;

constexpr std::uint64_t reserve = 512 * 1024;

/// The disk that `posix_fallocate` below takes room from.
disk* the_disk = nullptr;

/// A store that is alone on a small disk.
struct full_fixture {
  full_fixture() {
    d.folder = home.path();
    the_disk = &d;
  }
  full_fixture(full_fixture const&) = delete;
  full_fixture& operator=(full_fixture const&) = delete;
  ~full_fixture() { the_disk = nullptr; }

  [[nodiscard]] static sqlite_options options() {
    auto o = quick();
    o.reserve = reserve;
    return o;
  }
  [[nodiscard]] sqlite_store open() {
    return sqlite_store{io.get_executor(), home.file(), options()};
  }

  template <class C>
  [[nodiscard]] result<typename C::result> operator()(sqlite_store const& store, C const& c) {
    return ask(io, store, c);
  }

  /// One job more.
  error_code enqueue(sqlite_store const& store) {
    std::vector<new_job> const jobs{job_of(last + 1, payload)};
    auto const answer = ask(io, store, command::enqueue_jobs{"q", jobs});
    if (answer.has_error()) return answer.error();
    ++last;
    return {};
  }

  /// Enqueues until there is no room.
  void fill(sqlite_store const& store) {
    error_code ec;
    while (!ec) {
      ec = enqueue(store);
      BOOST_TEST_REQUIRE(last < 100'000U);
    }
    BOOST_TEST(ec == errc::disk_full);
  }

  /// Claims and completes up to `limit` jobs, one by one; how many there were.
  std::size_t drain(sqlite_store const& store, std::size_t limit) {
    std::size_t count = 0;
    for (; count < limit; ++count) {
      auto const got = ask(io, store, command::dequeue_jobs{"q", "worker", 0, 1, 1h});
      BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
      if (got->jobs.empty()) break;
      auto const& job = got->jobs.front();
      BOOST_TEST((ask(io, store, command::extend_lease{"q", job.id, job.fence, 1h}).has_value()));
      finished_job const f{job.id, job.fence, {}};
      auto const ended = ask(io, store, command::complete_jobs{"q", {&f, 1}});
      BOOST_TEST_REQUIRE(ended.has_value(), ended.error().message());
      BOOST_TEST((ended->front() == complete_outcome::completed));
      BOOST_TEST(done.insert(job.id).second);
    }
    return count;
  }

  [[nodiscard]] std::uint64_t reserved() const {
    auto const file = home.file() + "-reserve";
    return std::filesystem::exists(file) ? std::filesystem::file_size(file) : 0;
  }

  directory home{};
  disk d{};
  boost::asio::io_context io{};
  std::string payload = std::string(1000, 'p');
  std::uint64_t last = 0;
  std::set<job_id> done;
};

}  // namespace

/// Takes the C library's place for the whole program, SQLite included: it knows no small disks.
extern "C" int posix_fallocate(int file, ::off_t offset, ::off_t length) {
  struct ::stat s{};
  if (::fstat(file, &s) != 0) return errno;
  auto const end = offset + length;
  if (end <= s.st_size) return 0;
  auto const more = static_cast<std::uint64_t>(end - s.st_size);
  if (the_disk != nullptr && !the_disk->has_room(more)) return ENOSPC;
  return ::ftruncate(file, end) == 0 ? 0 : errno;
}

BOOST_AUTO_TEST_SUITE(sqlite_full)

BOOST_FIXTURE_TEST_CASE(F61_a_full_disk_is_drained_to_the_last_job, full_fixture) {
  d.capacity = 12 << 20;
  payload.resize(8000, 'p');
  auto const store = open();
  BOOST_TEST((*this)(store, command::acquire_lock{"held", "holder", 1h})->granted);
  fill(store);
  BOOST_TEST(reserved() == reserve);
  BOOST_TEST(last > 300U);

  BOOST_TEST(drain(store, 10) == 10U);
  // The reserve is not for what makes records.
  BOOST_TEST(enqueue(store) == errc::disk_full);
  BOOST_TEST((*this)(store, command::acquire_lock{"k", "holder", 1h}).error() == errc::disk_full);
  BOOST_TEST((*this)(store, command::acquire_permit{"k", "holder", 1, 1h}).error() ==
             errc::disk_full);
  auto const got = (*this)(store, command::dequeue_jobs{"q", "worker", 0, 1, 1h});
  BOOST_TEST_REQUIRE((got.has_value() && got->jobs.size() == 1U));
  auto const& job = got->jobs[0];
  std::string const checkpoint(limits::checkpoint_size, 'c');
  BOOST_TEST(
      (*this)(store, command::extend_lease{"q", job.id, job.fence, 1h, {}, checkpoint}).error() ==
      errc::disk_full);
  BOOST_TEST((*this)(store, command::extend_lease{"q", job.id, job.fence, 1h}).has_value());
  BOOST_TEST((*this)(store, command::return_job{"q", job.id, job.fence}).has_value());
  BOOST_TEST((*this)(store, command::inspect_lock{"held"})->held);
  BOOST_TEST((*this)(store, command::release_lock{"held", "holder"}).has_value());
  BOOST_TEST((*this)(store, command::cancel_job{"q", id(last)}).has_value());
  BOOST_TEST((*this)(store, command::list_queues{}).has_value());

  // All but the ten and the cancelled one.
  BOOST_TEST(drain(store, last) == last - 11);
  BOOST_TEST(done.size() == last - 1);
  BOOST_TEST((*this)(store, command::read_queue_stats{"q"})->completed == last - 1);
}

BOOST_FIXTURE_TEST_CASE(F61_so_is_one_that_is_opened_when_it_is_full, full_fixture) {
  d.capacity = 3 << 20;
  fill(open());
  auto const count = last;
  BOOST_TEST(drain(open(), 5) == 5U);
  BOOST_TEST(drain(open(), count) == count - 5);
}

BOOST_FIXTURE_TEST_CASE(F61_what_was_freed_within_the_file_is_room, full_fixture) {
  d.capacity = 12 << 20;
  payload.resize(8000, 'p');
  auto const store = open();
  fill(store);
  BOOST_TEST(drain(store, last) == last);
  auto const before = last;
  fill(store);
  BOOST_TEST(last > before + 100);
  BOOST_TEST(drain(store, last) == last - before);
}

BOOST_FIXTURE_TEST_CASE(F61_the_reserve_is_taken_again_when_there_is_room, full_fixture) {
  d.capacity = 3 << 20;
  auto const one = open();
  auto const two = open();
  fill(one);
  BOOST_TEST(drain(one, 20) == 20U);
  BOOST_TEST(reserved() == 0U);
  BOOST_TEST(enqueue(two) == errc::disk_full);
  d.capacity = 16 << 20;
  BOOST_TEST(!enqueue(two));
  BOOST_TEST(reserved() == reserve);
  BOOST_TEST(!enqueue(one));
}

BOOST_FIXTURE_TEST_CASE(F61_a_file_at_its_limit_is_drained, full_fixture) {
  auto o = options();
  o.max_bytes = 400'000;
  sqlite_store const store{io.get_executor(), home.file(), o};
  fill(store);
  BOOST_TEST(drain(store, last) == last);
  BOOST_TEST(!enqueue(store));
}

BOOST_FIXTURE_TEST_CASE(without_a_reserve_nothing_is_kept, full_fixture) {
  auto o = options();
  o.reserve = 0;
  d.capacity = 3 << 20;
  sqlite_store const store{io.get_executor(), home.file(), o};
  fill(store);
  BOOST_TEST(!std::filesystem::exists(home.file() + "-reserve"));
}

BOOST_AUTO_TEST_SUITE_END()
