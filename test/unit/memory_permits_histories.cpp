// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Generated histories: the memory store against a model that is as naive as can be, compared after
// every step.

#include "weir/store/memory.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;

// ---------------------------------------------------------------------------- the model

struct entry {
  std::string holder;
  std::uint64_t fence;  // of a permit
  time_point end;
};

struct model_key {
  std::vector<entry> permits;  // in the order in which they were granted
  std::vector<entry> tickets;  // in the order in which they arrived

  void purge(time_point now) {
    auto const over = [now](entry const& e) { return !(now < e.end); };
    std::erase_if(permits, over);
    std::erase_if(tickets, over);
  }
};

entry* find(std::vector<entry>& in, std::string_view holder) {
  for (auto& e : in) {
    if (e.holder == holder) return &e;
  }
  return nullptr;
}

struct model {
  std::map<std::string, model_key> keys;
  std::size_t capacity;

  std::size_t live(time_point now) {
    std::size_t n = 0;
    for (auto& [name, k] : keys) {
      k.purge(now);
      n += k.permits.size() + k.tickets.size();
    }
    return n;
  }

  // The fence is the store's to choose.
  result<permit_grant> acquire(command::acquire_permit const& c, time_point now,
                               std::uint64_t fence) {
    auto& k = keys[std::string{c.key}];
    k.purge(now);
    permit_grant g;
    g.in_use = static_cast<std::uint32_t>(k.permits.size());
    if (auto* held = find(k.permits, c.holder)) {
      g.granted = true;
      g.fence = held->fence;
      g.expires_in = held->end - now;
      return g;
    }
    std::size_t ahead = 0;
    bool waits = false;
    for (auto const& t : k.tickets) {
      if (t.holder == c.holder) {
        waits = true;
        break;
      }
      ++ahead;
    }
    auto const drop = [&] {
      std::erase_if(k.tickets, [&](entry const& t) { return t.holder == c.holder; });
    };
    if (k.permits.size() + ahead < c.limit) {
      if (!waits && live(now) >= capacity) return make_error_code(errc::store_full);
      drop();
      k.permits.push_back({std::string{c.holder}, fence, now + c.ttl});
      g.granted = true;
      g.fence = fence;
      g.expires_in = c.ttl;
      ++g.in_use;
      return g;
    }
    std::vector<time_point> others;
    for (auto const& p : k.permits) others.push_back(p.end);
    std::sort(others.begin(), others.end());
    if (c.patience == 0s) {
      drop();
      ahead = k.tickets.size();
    }
    auto const need = k.permits.size() + ahead - c.limit + 1;
    if (need <= others.size()) {
      g.retry_after = others[need - 1] - now;
    } else {
      for (auto const& t : k.tickets) {
        if (t.holder != c.holder) others.push_back(t.end);
      }
      g.retry_after = *std::max_element(others.begin(), others.end()) - now;
    }
    if (c.patience > 0s) {
      g.place = static_cast<std::uint32_t>(ahead + 1);
      if (waits) {
        find(k.tickets, c.holder)->end = now + c.patience;
      } else {
        if (live(now) >= capacity) return make_error_code(errc::store_full);
        k.tickets.push_back({std::string{c.holder}, 0, now + c.patience});
      }
    }
    return g;
  }

  result<lease_renewal> renew(command::renew_permit const& c, time_point now) {
    auto& k = keys[std::string{c.key}];
    k.purge(now);
    auto* held = find(k.permits, c.holder);
    if (held == nullptr || held->fence != c.fence) return make_error_code(errc::lease_lost);
    held->end = now + c.ttl;
    return lease_renewal{c.ttl};
  }

  lease_release release(command::release_permit const& c, time_point now) {
    auto& k = keys[std::string{c.key}];
    k.purge(now);
    lease_release r;
    r.freed = std::erase_if(k.permits, [&](entry const& p) {
                return p.holder == c.holder && (c.fence == 0 || c.fence == p.fence);
              }) > 0;
    r.left_line = c.fence == 0 && std::erase_if(k.tickets, [&](entry const& t) {
                                    return t.holder == c.holder;
                                  }) > 0;
    return r;
  }
};

// ---------------------------------------------------------------------------- a history

struct shape {
  std::uint32_t keys;
  std::uint32_t holders;
  std::uint32_t max_limit;
  std::size_t capacity;
  bool backwards;
  int longest = 60;  // ttl and patience, in milliseconds
};

class history {
 public:
  history(std::uint64_t seed, shape const& s)
      : shape_{s},
        seed_{seed},
        random_{seed},
        store_{io_.get_executor(), memory_options{.max_permits = s.capacity}} {
    expected_.capacity = s.capacity;
  }

  void run(int steps) {
    for (step_ = 0; step_ < steps; ++step_) {
      move_time();
      switch (auto const what = upto(100); what / 10) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4: acquire(); break;
        case 5:
        case 6: renew(); break;
        case 7:
        case 8: release(); break;
        default: break;
      }
      compare();
    }
  }

  std::uint64_t grants = 0, refusals = 0, lost = 0, freed = 0, full = 0;
  std::size_t most = 0;

 private:
  std::uint64_t upto(std::uint64_t n) { return random_() % n; }
  std::string pick(char const* prefix, std::uint64_t n) { return prefix + std::to_string(upto(n)); }

  template <class C>
  result<typename C::result> execute(C const& c) {
    return store_.execute(command::at<C>{c, now_});
  }

  duration some_time() {
    return 1ms * static_cast<int>(1 + upto(static_cast<std::uint64_t>(shape_.longest)));
  }

  void expect(bool ok, char const* what) {
    if (!ok) {
      BOOST_FAIL(what << ": seed " << seed_ << ", step " << step_ << ", keys " << shape_.keys
                      << ", holders " << shape_.holders << ", limit " << shape_.max_limit
                      << ", capacity " << shape_.capacity << ", backwards " << shape_.backwards);
    }
  }

  void move_time() {
    if (shape_.backwards && upto(30) == 0) {
      now_ -= 1ms * static_cast<int>(upto(40));
    } else if (upto(3) == 0) {
      now_ += 1ms * static_cast<int>(upto(12));
    }
  }

  void acquire() {
    auto const key = pick("k", shape_.keys);
    auto const holder = pick("holder-", shape_.holders);
    command::acquire_permit const c{key, holder,
                                    static_cast<std::uint32_t>(1 + upto(shape_.max_limit)),
                                    some_time(), upto(3) == 0 ? 0ms : some_time()};

    auto& k = expected_.keys[key];
    k.purge(now_);
    auto const live = k.permits.size();
    auto const had = find(k.permits, holder) != nullptr;
    std::size_t ahead = 0;
    while (ahead < k.tickets.size() && k.tickets[ahead].holder != holder) ++ahead;

    auto const got = execute(c);
    auto const wanted = expected_.acquire(c, now_, got ? got->fence : 0);
    expect(got.has_value() == wanted.has_value(), "acquire: refused for room");
    if (!got) {
      expect(got.error() == wanted.error(), "acquire: error");
      ++full;
      return;
    }
    expect(got->granted == wanted->granted, "acquire: granted");
    expect(got->fence == wanted->fence, "acquire: fence");
    expect(got->expires_in == wanted->expires_in, "acquire: expires_in");
    expect(got->in_use == wanted->in_use, "acquire: in_use");
    expect(got->place == wanted->place, "acquire: place");
    expect(got->retry_after == wanted->retry_after, "acquire: retry_after");
    if (got->granted && !had) {
      ++grants;
      expect(live < c.limit, "R1: live permits below the limit");
      expect(live + ahead < c.limit, "R1: nobody in line was overtaken");
      auto& last = last_fence_[key];
      expect(got->fence > last, "R5: fences grow");
      expect(got->fence >= static_cast<std::uint64_t>(now_.time_since_epoch() / 1us), "R5: micros");
      last = got->fence;
      fences_.push_back(got->fence);
    } else if (!got->granted) {
      ++refusals;
      expect(got->retry_after > 0s, "acquire: a refusal that waits for nothing");
    }
  }

  // Of a live permit mostly, else any that ever was, or none.
  std::uint64_t fence_for(std::string const& key, std::string& holder) {
    auto& live = expected_.keys[key].permits;
    if (!live.empty() && upto(3) != 0) {
      auto const& p = live[upto(live.size())];
      holder = p.holder;
      return upto(5) == 0 ? 0 : p.fence;
    }
    return fences_.empty() || upto(3) == 0 ? 0 : fences_[upto(fences_.size())];
  }

  void renew() {
    auto const key = pick("k", shape_.keys);
    auto holder = pick("holder-", shape_.holders);
    auto const fence = fence_for(key, holder);
    command::renew_permit const c{key, holder, fence, some_time()};
    auto const got = execute(c);
    auto const wanted = expected_.renew(c, now_);
    expect(got.has_value() == wanted.has_value(), "renew");
    expect(got ? got->expires_in == wanted->expires_in : got.error() == wanted.error(), "renew");
    lost += got ? 0 : 1;
  }

  void release() {
    auto const key = pick("k", shape_.keys);
    auto holder = pick("holder-", shape_.holders);
    auto const fence = fence_for(key, holder);
    command::release_permit const c{key, holder, fence};
    auto const got = execute(c);
    auto const wanted = expected_.release(c, now_);
    expect(got->freed == wanted.freed, "release: freed");
    expect(got->left_line == wanted.left_line, "release: left_line");
    freed += got->freed ? 1 : 0;
  }

  void compare() {
    for (std::uint32_t i = 0; i < shape_.keys; ++i) {
      auto const key = "k" + std::to_string(i);
      auto& k = expected_.keys[key];
      k.purge(now_);
      auto const shown = static_cast<std::uint32_t>(upto(2) == 0 ? 0 : 1 + upto(40));
      auto const got = execute(command::inspect_permits{key, shown}).value();
      expect(got.in_use == k.permits.size(), "inspect: in_use");
      expect(got.waiting == k.tickets.size(), "inspect: waiting");
      expect(got.holders.size() == std::min<std::size_t>(shown, k.permits.size()), "inspect: list");
      for (std::size_t n = 0; n < got.holders.size(); ++n) {
        expect(got.holders[n].holder == k.permits[n].holder, "inspect: holder");
        expect(got.holders[n].fence == k.permits[n].fence, "inspect: fence");
        expect(got.holders[n].expires_in == k.permits[n].end - now_, "inspect: expires_in");
      }
      most = std::max(most, k.permits.size());
    }
  }

  shape shape_;
  std::uint64_t seed_;
  int step_ = 0;
  std::mt19937_64 random_;
  time_point now_{1'000'000s};
  boost::asio::io_context io_{1};
  memory_store store_;
  model expected_;
  std::map<std::string, std::uint64_t> last_fence_;
  std::vector<std::uint64_t> fences_;
};

void run(std::uint64_t first_seed, int histories, int steps, shape const& s) {
  std::uint64_t grants = 0, refusals = 0, lost = 0, freed = 0, full = 0;
  std::size_t most = 0;
  for (int i = 0; i < histories; ++i) {
    history h{first_seed + static_cast<std::uint64_t>(i), s};
    h.run(steps);
    grants += h.grants;
    refusals += h.refusals;
    lost += h.lost;
    freed += h.freed;
    full += h.full;
    most = std::max(most, h.most);
  }
  BOOST_TEST_MESSAGE(
      "seeds " << first_seed << " to " << first_seed + static_cast<std::uint64_t>(histories) - 1
               << ": " << grants << " grants, " << refusals << " refusals, " << lost << " lost, "
               << freed << " freed, " << full << " full, at most " << most << " permits of a key");
  // A history in which something never happens proves nothing about it.
  BOOST_TEST(grants > 0u);
  BOOST_TEST(refusals > 0u);
  BOOST_TEST(lost > 0u);
  BOOST_TEST(freed > 0u);
  BOOST_TEST((full > 0) == (s.capacity < 100));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_permits_histories)

BOOST_AUTO_TEST_CASE(R1_R5_a_few_holders_of_one_key) {
  run(1'000, 300, 300,
      {.keys = 1, .holders = 6, .max_limit = 3, .capacity = 1000, .backwards = false});
}

BOOST_AUTO_TEST_CASE(R1_R5_F52_time_runs_backwards) {
  run(2'000, 300, 300,
      {.keys = 1, .holders = 8, .max_limit = 3, .capacity = 1000, .backwards = true});
}

BOOST_AUTO_TEST_CASE(R1_R5_several_keys) {
  run(3'000, 200, 300,
      {.keys = 5, .holders = 10, .max_limit = 4, .capacity = 1000, .backwards = false});
}

BOOST_AUTO_TEST_CASE(R1_R5_a_crowded_key) {
  run(4'000, 100, 600,
      {.keys = 1,
       .holders = 90,
       .max_limit = 60,
       .capacity = 1000,
       .backwards = false,
       .longest = 900});
  run(4'300, 100, 600,
      {.keys = 1,
       .holders = 40,
       .max_limit = 19,
       .capacity = 1000,
       .backwards = true,
       .longest = 300});
  run(4'600, 100, 600,
      {.keys = 1,
       .holders = 60,
       .max_limit = 5,
       .capacity = 1000,
       .backwards = true,
       .longest = 900});
}

BOOST_AUTO_TEST_CASE(R8_at_the_bound) {
  run(5'000, 200, 300,
      {.keys = 4, .holders = 10, .max_limit = 4, .capacity = 7, .backwards = false});
  run(5'500, 100, 300,
      {.keys = 1, .holders = 10, .max_limit = 4, .capacity = 3, .backwards = true});
}

BOOST_AUTO_TEST_SUITE_END()
