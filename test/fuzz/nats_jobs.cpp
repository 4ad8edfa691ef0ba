// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What a process reads of the jobs that others keep on a NATS server: messages of a shard's log,
// and images of a shard.

#include "input.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/table/job_image.hpp"
#include "weir/table/job_shard.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace {

using namespace weir;
using detail::compact_reader;
using detail::compact_writer;
using detail::job_image;
using detail::job_shard;
using detail::nats_batch_reader;
using detail::nats_batch_writer;

struct replica {
  detail::job_budget budget{std::numeric_limits<std::size_t>::max() / 2};
  job_shard shard{detail::job_allowance{budget, 1, 1}, 4};

  [[nodiscard]] std::string image() const {
    std::string out;
    compact_writer to{out};
    job_image::save(shard, to);
    return out;
  }
  [[nodiscard]] bool load(std::string_view bytes) {
    compact_reader from{bytes};
    return job_image::load(shard, from) && from.complete();
  }
  /// Executes a message, and gives how many commands it had.
  std::size_t execute(std::string_view message, time_point now, std::string& again) {
    std::size_t commands = 0;
    nats_batch_reader reader{message};
    bool const image = reader.notice() == detail::nats_notice::image;
    nats_batch_writer writer{reader.id(), reader.stamp(),
                             image ? std::optional{reader.image()} : std::nullopt};
    (void)reader.for_each([&](auto const& c, std::optional<time_point> told) {
      ++commands;
      writer.add(c, told);
      (void)shard.apply(c, told.value_or(now));
    });
    again = std::move(writer).take();
    return commands;
  }
};

/// Whatever is taken for an image is one: it can be used, and written and read again.
void check_image(std::string_view bytes, std::string_view message, time_point now) {
  replica first;
  if (!first.load(bytes)) return;
  auto const image = first.image();
  replica second;
  fuzz::require(second.load(image), "what was read is an image");
  fuzz::require(second.image() == image, "an image comes back as it was");
  std::string again;
  (void)first.execute(message, now, again);
  (void)second.execute(message, now, again);
  fuzz::require(first.image() == second.image(), "equal shards answer and end equal");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::input in{data, size};
  time_point const now{in.span()};
  auto const text = in.rest();
  auto const cut =
      text.size() < 2 ? std::size_t{0} : static_cast<unsigned char>(text[0]) * text.size() / 256;
  // Its checksum shows damage on the way, so it has the right one here.
  auto const message = detail::nats_log_message(text);
  check_image(text.substr(cut), detail::nats_log_message(text.substr(0, cut)), now);
  check_image(text, message, now);
  (void)nats_batch_reader{text}.what();

  // The commands of a message, written again, do the same.
  replica one;
  replica other;
  std::string again;
  std::string thrice;
  auto const commands = one.execute(message, now, again);
  fuzz::require(other.execute(again, now, thrice) == commands, "a message is what was read of it");
  fuzz::require(again == thrice, "a message comes back as it was");
  fuzz::require(one.image() == other.image(), "equal commands make equal shards");
  check_image(one.image(), message, now);
  return 0;
}
