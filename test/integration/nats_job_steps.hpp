// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_NATS_JOB_STEPS_HPP
#define WEIR_TEST_INTEGRATION_NATS_JOB_STEPS_HPP

#include "integration/broken_network.hpp"
#include "integration/nats_server.hpp"
#include "weir/store/nats/compact.hpp"
#include "weir/store/nats/job_log.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// What the tests of jobs do with one queue. `on` is a bed, or something else that is called with a
// command.
namespace nats_test {

[[nodiscard]] inline job_id id_of(std::uint64_t n) {
  job_id out{};
  for (std::size_t i = 0; i != 8; ++i) {
    out.data[8 + i] = static_cast<std::uint8_t>(n >> (56 - 8 * i));
  }
  return out;
}

[[nodiscard]] inline new_job job_of(std::uint64_t n, std::string_view payload = "payload") {
  new_job j;
  j.id = id_of(n);
  j.kind = "kind";
  j.payload = payload;
  return j;
}

/// Images come often, and count at once.
[[nodiscard]] inline nats_options with_images(std::string_view prefix = "weir") {
  auto o = brisk();
  o.prefix = prefix;
  o.image_interval = 4096;
  o.sync_interval = 0s;
  return o;
}

template <class On>
error_code enqueue(On& on, std::uint64_t n, std::string_view payload = "payload") {
  auto const j = job_of(n, payload);
  auto const r = on(command::enqueue_jobs{"queue", {&j, 1}});
  return r.has_error() ? r.error() : error_code{};
}
template <class On>
dequeued dequeue(On& on, std::uint64_t sequence, std::uint32_t limit = 1) {
  return network_test::certain(
      on, command::dequeue_jobs{"queue", "me", sequence, limit, network_test::lasting});
}
template <class On>
void complete(On& on, leased_job const& j) {
  finished_job const f{j.id, j.fence, {}};
  auto const r = network_test::certain(on, command::complete_jobs{"queue", {&f, 1}});
  BOOST_TEST((r.front() == complete_outcome::completed));
}
template <class On>
queue_stats stats(On& on) {
  return network_test::certain(on, command::read_queue_stats{"queue"});
}

/// A message of a version of the log that is not known, with this in it.
[[nodiscard]] inline std::string later_message(std::string_view content) {
  return weir::detail::nats_log_message(content, weir::detail::nats_log_version + 1);
}

/// What of the log there is.
struct log_state {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};
[[nodiscard]] inline log_state log_of(stranger& who, std::string const& prefix = "weir",
                                      std::uint32_t shard = 0) {
  auto const said = nlohmann::json::parse(
      who.ask("$JS.API.STREAM.INFO." + prefix + "-jobs-" + std::to_string(shard)));
  return {said["state"]["first_seq"], said["state"]["last_seq"]};
}

}  // namespace nats_test

#endif
