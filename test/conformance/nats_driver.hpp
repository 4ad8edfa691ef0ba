// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_NATS_DRIVER_HPP
#define WEIR_TEST_CONFORMANCE_NATS_DRIVER_HPP

#include "conformance/memory_driver.hpp"
#include "integration/nats_nodes.hpp"
#include "integration/nats_server.hpp"
#include "weir/store/nats.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/report.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing {

/// Stores with prefixes, and so streams, of their own on one server, or, if WEIR_TEST_NATS_CLUSTER
/// is set, on three replicas in one cluster, which goes with the driver.
class nats_engine {
 public:
  /// A message has more than the largest payload of a job.
  static constexpr std::size_t max_payload = 4U << 20U;

  nats_engine() {
    auto const configuration = "max_payload: " + std::to_string(max_payload) + "\n";
    if (std::getenv("WEIR_TEST_NATS_CLUSTER") != nullptr) {
      cluster_.emplace(configuration);
    } else {
      server_.emplace(std::vector<std::string>{}, configuration);
    }
  }

  /// A store of a stream that there was not before, and, unless it is the first, others of it.
  nats_store make(boost::asio::any_io_executor const& ex, std::size_t of_it = 0,
                  nats_options o = {}) {
    if (of_it == 0) {
      ++made_;
      if (cluster_ && made_ > most) forget(name(made_ - most));
    }
    auto const prefix = name(made_);
    o.prefix = prefix;
    o.poll_interval = std::chrono::milliseconds{5};
    if (!cluster_) {
      never_gives_up(o);
      return nats_store{ex, server_->address(), o};
    }
    o.replicas = nats_test::cluster::size;
    o.in_memory = true;
    // What a stream is asked before it has a leader is never answered, only asked again.
    o.offline_patience = std::chrono::minutes{1};
    return nats_store{ex, cluster_->addresses(), o};
  }

  /// Not on a machine that is slow, either: for a server whose streams always have a leader.
  static void never_gives_up(nats_options& o) {
    o.connect_timeout = o.request_timeout = std::chrono::minutes{1};
    o.health_check_interval = std::chrono::seconds{10};
  }

 private:
  static constexpr std::size_t most = 8;  // streams in a cluster, each of which costs it much

  static std::string name(std::size_t n) { return "test" + std::to_string(n); }
  void forget(std::string const& prefix) {
    try {
      nats_test::stranger who{(*cluster_)[0]};
      for (auto const* stream : {"-keys", "-jobs-0"}) {  // where there is one
        (void)who.ask("$JS.API.STREAM.DELETE." + prefix + stream);
      }
    } catch (std::exception const&) {  // then it stays
    }
  }

  std::optional<nats_test::server> server_;
  std::optional<nats_test::cluster> cluster_;
  std::size_t made_ = 0;
};

class nats_driver {
 public:
  [[nodiscard]] static capabilities declared() {
    capabilities c;
    c.precision = std::chrono::milliseconds{10};  // what the server's time is not known by
    c.ends_are_final = false;                     // a step that only reads writes nothing down
    c.batch_bytes = nats_engine::max_payload - 65'536;  // a command is in one message
    return c;
  }

  nats_store make(boost::asio::any_io_executor const& ex) { return make_with(ex, nats_options{}); }

 protected:
  nats_store make_with(boost::asio::any_io_executor const& ex, nats_options const& o) {
    return engine_.make(ex, 0, o);
  }

 private:
  nats_engine engine_{};
};

/// The same in memory: what a mutant of it leaves behind need not survive.
class quick_nats_driver : public nats_driver {
 public:
  nats_store make(boost::asio::any_io_executor const& ex) {
    nats_options o;
    o.in_memory = true;
    return make_with(ex, o);
  }
};

inline constexpr std::string_view forgets = "the store's engine forgets keys by itself";
inline constexpr std::string_view too_slow = "the store was too slow for its precision to judge";

/// Nothing fails, and what is left out is left out because time passes by itself, or because a
/// server has no such thing.
inline void require_nats(report const& r) {
  require_all(r, {no_hints, told_only, no_way_back, not_known, passes, no_bound, no_transactions,
                  forgets, too_slow});
}

}  // namespace weir::testing

#endif
