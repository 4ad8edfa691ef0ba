// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/parking.hpp"

#include "weir/error.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using weir::error_code;
using weir::park;

namespace {

/// A move-only handler that notes what it is given, and whose life can be watched through a
/// weak_ptr.
struct note {
  std::vector<std::pair<error_code, int>>* calls;
  std::unique_ptr<int> alive = std::make_unique<int>(0);

  explicit note(std::vector<std::pair<error_code, int>>& to) : calls{&to} {}
  void operator()(error_code ec, int value) {
    BOOST_REQUIRE(alive);
    calls->emplace_back(ec, value);
  }
};

struct fixture {
  asio::io_context io;
  std::vector<std::pair<error_code, int>> calls;
  int gone = 0;

  auto told() {
    return [this]() noexcept { ++gone; };
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(parking, fixture)

BOOST_AUTO_TEST_CASE(resume_posts_the_handler_with_its_arguments) {
  auto const op = park<error_code, int>(io.get_executor(), note{calls}, told());
  BOOST_TEST(op->waiting());
  BOOST_TEST(op->resume({}, 7));
  BOOST_TEST(!op->waiting());
  BOOST_TEST(calls.empty());  // never inline
  io.poll();
  BOOST_REQUIRE(calls.size() == 1U);
  BOOST_TEST(!calls[0].first);
  BOOST_TEST(calls[0].second == 7);
  BOOST_TEST(gone == 0);  // its owner knows
}

BOOST_AUTO_TEST_CASE(only_the_first_resume_wins) {
  auto const op = park<error_code, int>(io.get_executor(), note{calls});
  BOOST_TEST(op->resume({}, 1));
  BOOST_TEST(!op->resume({}, 2));
  io.poll();
  BOOST_TEST(!op->resume({}, 3));
  io.poll();
  BOOST_REQUIRE(calls.size() == 1U);
  BOOST_TEST(calls[0].second == 1);
}

BOOST_AUTO_TEST_CASE(a_claimed_operation_is_its_owners_until_it_is_finished) {
  asio::cancellation_signal signal;
  auto const op = park<error_code, int>(
      io.get_executor(), asio::bind_cancellation_slot(signal.slot(), note{calls}), told());
  BOOST_TEST(op->claim());
  BOOST_TEST(!op->waiting());
  BOOST_TEST(!op->claim());
  BOOST_TEST(!op->resume({}, 1));
  signal.emit(asio::cancellation_type::terminal);
  io.poll();
  BOOST_TEST(!io.stopped());  // there is work to do
  BOOST_TEST(calls.empty());
  op->finish({}, 2);
  BOOST_TEST(calls.empty());
  io.run();
  BOOST_REQUIRE(calls.size() == 1U);
  BOOST_TEST(calls[0].second == 2);
  BOOST_TEST(gone == 0);
}

BOOST_AUTO_TEST_CASE(what_has_begun_cannot_be_cancelled_but_may_lapse) {
  for (bool const lapses : {false, true}) {
    asio::cancellation_signal signal;
    auto const op = park<error_code, int>(
        io.get_executor(), asio::bind_cancellation_slot(signal.slot(), note{calls}), told());
    BOOST_TEST(op->begins());
    BOOST_TEST(!op->begins());
    signal.emit(asio::cancellation_type::terminal);
    BOOST_TEST(op->waiting());
    if (lapses) op->lapse(weir::errc::store_unavailable);
    BOOST_TEST(op->resume({}, 2) != lapses);
    io.restart();
    io.run();
    BOOST_REQUIRE(calls.size() == 1U);
    BOOST_TEST((calls[0].first == weir::errc::outcome_unknown) == lapses);
    BOOST_TEST(calls[0].second == (lapses ? 0 : 2));
    calls.clear();
  }
  BOOST_TEST(gone == 0);
  auto const late = park<error_code, int>(io.get_executor(), note{calls});
  BOOST_TEST(late->resume({}, 1));
  BOOST_TEST(!late->begins());
}

BOOST_AUTO_TEST_CASE(resume_inside_a_handler_is_not_inline_either) {
  auto const op = park<error_code, int>(io.get_executor(), note{calls});
  asio::post(io, [&] {
    BOOST_TEST(op->resume({}, 1));
    BOOST_TEST(calls.empty());
  });
  io.poll();
  BOOST_TEST(calls.size() == 1U);
}

BOOST_AUTO_TEST_CASE(run_does_not_return_while_an_operation_waits) {
  auto const op = park<error_code, int>(io.get_executor(), note{calls});
  io.poll();
  BOOST_TEST(!io.stopped());
  op->resume({}, 1);
  io.run();  // returns
  BOOST_TEST(calls.size() == 1U);
}

BOOST_AUTO_TEST_CASE(both_contexts_have_work_while_an_operation_waits) {
  asio::io_context other;
  auto const op = park<error_code, int>(io.get_executor(), asio::bind_executor(other, note{calls}));
  io.poll();
  other.poll();
  BOOST_TEST(!io.stopped());
  BOOST_TEST(!other.stopped());
  op->resume({}, 1);
  io.poll();
  BOOST_TEST(calls.empty());
  other.poll();
  BOOST_TEST(calls.size() == 1U);
  BOOST_TEST(io.stopped());
  BOOST_TEST(other.stopped());
}

BOOST_AUTO_TEST_CASE(an_erased_handler_is_called_by_its_own_executor) {
  asio::io_context other;
  asio::any_completion_handler<void(error_code, int)> handler =
      asio::bind_executor(asio::make_strand(other), note{calls});
  auto const op = park<error_code, int>(io.get_executor(), std::move(handler));
  io.poll();
  other.poll();
  BOOST_TEST(!io.stopped());
  BOOST_TEST(!other.stopped());
  op->resume({}, 1);
  BOOST_TEST(calls.empty());
  io.poll();
  BOOST_TEST(calls.empty());  // it came by, on its way
  other.poll();
  BOOST_TEST(calls.size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_erased_handler_without_executor_is_called_by_the_fallback) {
  asio::any_completion_handler<void(error_code, int)> handler = note{calls};
  auto const op = park<error_code, int>(io.get_executor(), std::move(handler));
  op->resume({}, 1);
  BOOST_TEST(calls.empty());
  io.run();
  BOOST_TEST(calls.size() == 1U);
}

BOOST_AUTO_TEST_CASE(R7_every_kind_of_cancellation_completes_with_operation_aborted) {
  using type = asio::cancellation_type;
  for (auto const kind : {type::terminal, type::partial, type::total, type::all}) {
    calls.clear();
    gone = 0;
    asio::cancellation_signal signal;
    auto const op = park<error_code, int>(
        io.get_executor(), asio::bind_cancellation_slot(signal.slot(), note{calls}), told());
    signal.emit(kind);
    BOOST_TEST(!op->waiting());
    BOOST_TEST(gone == 1);
    BOOST_TEST(calls.empty());  // never inline
    BOOST_TEST(!op->resume({}, 7));
    io.restart();
    io.run();
    BOOST_REQUIRE(calls.size() == 1U);
    BOOST_TEST(calls[0].first == asio::error::operation_aborted);
    BOOST_TEST(calls[0].second == 0);
    signal.emit(kind);  // too late
    BOOST_TEST(gone == 1);
  }
}

BOOST_AUTO_TEST_CASE(R7_an_erased_handler_is_cancelled_by_every_kind) {
  using type = asio::cancellation_type;
  for (auto const kind : {type::terminal, type::partial, type::total}) {
    calls.clear();
    asio::cancellation_signal signal;
    asio::any_completion_handler<void(error_code, int)> handler =
        asio::bind_cancellation_slot(signal.slot(), note{calls});
    auto const op = park<error_code, int>(io.get_executor(), std::move(handler));
    signal.emit(kind);
    BOOST_TEST(!op->waiting());
    io.restart();
    io.run();
    BOOST_REQUIRE(calls.size() == 1U);
    BOOST_TEST(calls[0].first == asio::error::operation_aborted);
  }
}

BOOST_AUTO_TEST_CASE(no_kind_of_cancellation_is_no_cancellation) {
  asio::cancellation_signal signal;
  auto const op = park<error_code, int>(
      io.get_executor(), asio::bind_cancellation_slot(signal.slot(), note{calls}), told());
  signal.emit(asio::cancellation_type::none);
  BOOST_TEST(op->waiting());
  op->resume({}, 7);
  io.run();
  BOOST_REQUIRE(calls.size() == 1U);
  BOOST_TEST(calls[0].second == 7);
}

BOOST_AUTO_TEST_CASE(a_cancellation_after_resume_changes_nothing) {
  asio::cancellation_signal signal;
  auto const op = park<error_code, int>(
      io.get_executor(), asio::bind_cancellation_slot(signal.slot(), note{calls}), told());
  op->resume({}, 7);
  signal.emit(asio::cancellation_type::terminal);
  io.run();
  BOOST_REQUIRE(calls.size() == 1U);
  BOOST_TEST(!calls[0].first);
  BOOST_TEST(gone == 0);
}

BOOST_AUTO_TEST_CASE(an_operation_that_its_owner_forgets_is_aborted) {
  asio::cancellation_signal signal;  // its slot does not own the operation either
  auto op = park<error_code, int>(io.get_executor(),
                                  asio::bind_cancellation_slot(signal.slot(), note{calls}), told());
  op.reset();
  BOOST_TEST(calls.empty());
  io.run();
  BOOST_REQUIRE(calls.size() == 1U);
  BOOST_TEST(calls[0].first == asio::error::operation_aborted);
  BOOST_TEST(gone == 0);  // it was the owner who did it
}

BOOST_AUTO_TEST_CASE(what_is_kept_of_an_ended_operation_holds_nothing) {
  auto const witness = std::make_shared<int>(0);
  auto const op = park<error_code>(io.get_executor(), [witness](error_code) {});
  BOOST_TEST(witness.use_count() == 2);
  op->resume({});
  io.run();
  BOOST_TEST(witness.use_count() == 1);
  BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_CASE(a_handler_may_park_again) {
  std::shared_ptr<weir::parked<error_code>> op;
  int rounds = 0;
  auto again = [&](auto& self) -> void {
    op = park<error_code>(io.get_executor(), [&](error_code) {
      if (++rounds < 10'000) self(self);
    });
  };
  again(again);
  while (rounds < 10'000) {
    op->resume({});
    io.poll();
    io.restart();
  }
  BOOST_TEST(rounds == 10'000);
}

namespace {

/// An allocator that counts what it has given out.
template <class T>
struct counting {
  using value_type = T;
  int* count;

  explicit counting(int& c) noexcept : count{&c} {}
  template <class U>
  counting(counting<U> const& other) noexcept : count{other.count} {}

  T* allocate(std::size_t n) {
    ++*count;
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{alignof(T)}));
  }
  void deallocate(T* p, std::size_t) noexcept {
    --*count;
    ::operator delete(p, std::align_val_t{alignof(T)});
  }
  template <class U>
  bool operator==(counting<U> const& other) const noexcept {
    return count == other.count;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(all_of_the_handlers_memory_is_given_back_before_it_is_called) {
  int allocated = 0;
  std::optional<int> at_call;
  auto bound =
      asio::bind_allocator(counting<void>{allocated}, [&](error_code) { at_call = allocated; });
  auto const op = park<error_code>(io.get_executor(), asio::bind_executor(io, std::move(bound)));
  BOOST_TEST(allocated == 0);
  op->resume({});
  BOOST_TEST(allocated == 1);  // what is posted comes from it
  io.run();
  BOOST_TEST(at_call.value() == 0);  // although the owner still has the operation
}

BOOST_AUTO_TEST_CASE(the_lot_of_a_context_is_found_through_its_executors) {
  using weir::detail::context_of;
  asio::execution_context const* const context = &io;
  auto const strand = asio::make_strand(io);
  auto const strand_of_any = asio::make_strand(asio::any_io_executor{io.get_executor()});
  asio::any_io_executor const any = io.get_executor();
  asio::thread_pool pool{1};
  BOOST_TEST(context_of(io.get_executor()) == context);
  BOOST_TEST(context_of(strand) == context);
  BOOST_TEST(context_of(any) == context);
  BOOST_TEST(context_of(asio::any_completion_executor{io.get_executor()}) == context);
  BOOST_TEST(context_of(asio::any_completion_executor{any}) == context);
  BOOST_TEST(context_of(asio::any_completion_executor{strand}) == context);
  BOOST_TEST(context_of(asio::any_completion_executor{strand_of_any}) == context);
  BOOST_TEST(context_of(asio::any_completion_executor{asio::any_io_executor{strand}}) == context);
  BOOST_TEST(context_of(asio::any_completion_executor{pool.get_executor()}) == &pool);
}

BOOST_AUTO_TEST_SUITE_END()
