// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Payloads of jobs: any bytes are decoded or refused with a reason, what was decoded comes back
// from its own encoding, and a worker ends each job as what its payload is: handled once, or a dead
// letter with its reason.

#include "input.hpp"
#include "weir/clock/manual.hpp"
#include "weir/job_codec.hpp"
#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct part {
  std::string name;
  double weight = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(part, name, weight)

/// Left to itself, the JSON library converts any number to any arithmetic type, 1e300 and -1 too.
struct whole_number {
  std::uint64_t value = 0;
};
void to_json(nlohmann::json& json, whole_number const& n) { json = n.value; }
void from_json(nlohmann::json const& json, whole_number& n) {
  if (!json.is_number_unsigned()) throw std::invalid_argument{"not a whole number"};
  n.value = json.get<std::uint64_t>();
}

/// Something of everything that a job may hold.
struct order {
  std::string text;
  whole_number number;
  bool urgent = false;
  std::vector<part> parts;
  std::map<std::string, std::string> labels;
  nlohmann::json extra;  // whatever its sender put there
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(order, text, number, urgent, parts, labels, extra)

}  // namespace

template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
};

namespace {

/// Returns whether the payload is an order.
bool check_decode(std::string_view payload) {
  auto const decoded = weir::decode<order>(payload);
  if (!decoded.ok) {
    fuzz::require(!decoded.reason.empty(), "a refused payload has a reason");
    return false;
  }
  auto const encoded = weir::encode(decoded.value);
  fuzz::require(encoded.has_value(), "what was decoded can be encoded");
  auto const again = weir::decode<order>(encoded.value());
  fuzz::require(again.ok, "and decoded again");
  fuzz::require(weir::encode(again.value).value() == encoded.value(), "to the same");
  return true;
}

void check_strings(std::string_view bytes) {
  order o;
  o.text = bytes;
  o.labels.emplace(bytes, "");
  auto const encoded = weir::encode(o);
  if (encoded.has_error()) {
    fuzz::require(encoded.error() == weir::errc::unencodable_payload, "why it has no JSON form");
    return;
  }
  auto const decoded = weir::decode<order>(encoded.value());
  fuzz::require(decoded.ok && decoded.value.text == bytes && decoded.value.labels == o.labels,
                "any UTF-8 comes back");
}

void check_worker(std::string_view payload, bool is_order) {
  using store_type = weir::basic_memory_store<weir::manual_clock>;
  weir::manual_clock const clock;
  boost::asio::io_context io{1};
  store_type const store{io.get_executor(), {}, clock};

  weir::new_job job;
  job.id.data[0] = 1;
  job.kind = "order";
  job.payload = payload;
  job.retention = std::chrono::hours{1};
  auto const enqueued = store.execute(weir::command::enqueue_jobs{"orders", {&job, 1}});
  if (payload.size() > weir::limits::payload_size) {
    fuzz::require(enqueued.error() == weir::errc::payload_too_large, "payloads are bounded");
    return;
  }
  fuzz::require(enqueued.has_value(), "any bytes can be enqueued");

  int handled = 0;
  weir::worker<store_type, weir::manual_clock> worker{store, {}, clock};
  worker.handle<order>([&](order const&) { ++handled; });
  worker.on_event([&](weir::worker_event const& e) {
    using kind = weir::worker_event_kind;
    if (e.kind == kind::completed || e.kind == kind::dead_lettered) worker.stop();
  });
  bool ended = false;
  worker.async_run([&](weir::error_code ec) { ended = !ec; });
  while (io.poll() != 0) {
  }
  fuzz::require(ended, "the worker ends, whatever the payload is");

  auto const found = store.execute(weir::command::find_job{"orders", job.id}).value();
  fuzz::require(found.has_value(), "there is a record of the job");
  fuzz::require(handled == (is_order ? 1 : 0), "handled once if it can be decoded");
  if (is_order) {
    fuzz::require(found->state == weir::job_state::completed, "and then completed");
  } else {
    fuzz::require(found->state == weir::job_state::dead, "otherwise dead at once");
    fuzz::require(found->reason.starts_with("undecodable payload: "), "which is its reason");
    fuzz::require(found->reason.size() <= weir::limits::reason_size, "cut where it is too long");
  }
}

/// What would close the brackets that are open at the end of a text without strings.
std::string closing(std::string_view text) {
  std::string out;
  for (char const c : text) {
    if (c == '[') out += ']';
    if (c == '{') out += '}';
    if ((c == ']' || c == '}') && !out.empty()) out.pop_back();
  }
  return {out.rbegin(), out.rend()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::input in{data, size};
  // Depth and length are out of a fuzzer's reach, so the end of its text is repeated.
  auto const times = in.bits<std::uint16_t>();
  auto const shape = in.byte();
  auto const text = in.rest();
  auto const repeated = text.substr(text.size() - std::min<std::size_t>(text.size(), shape % 16U));
  std::string payload{text.substr(0, text.size() - repeated.size())};
  for (std::size_t i = 0; i < times; ++i) payload += repeated;
  if (shape >= 128) payload += closing(payload);

  check_strings(text);
  check_worker(payload, check_decode(payload));
  return 0;
}
