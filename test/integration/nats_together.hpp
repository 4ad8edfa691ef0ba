// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_NATS_TOGETHER_HPP
#define WEIR_TEST_INTEGRATION_NATS_TOGETHER_HPP

#include "integration/nats_server.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/table.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Processes that ask each other: some own parts, and others do not.
namespace nats_test {

[[nodiscard]] inline nats_options owning() {
  auto o = brisk();
  o.owner = true;
  o.owner_patience = 1min;  // no owner is given up because a machine is slow
  return o;
}
[[nodiscard]] inline nats_options asking() {
  auto o = owning();
  o.owner = false;
  return o;
}

/// A store that runs together with others, in one context: as processes do that all live.
class together {
 public:
  explicit together(server& s) : server_{&s} {}
  together(together const&) = delete;
  together& operator=(together const&) = delete;
  ~together() {
    for (auto const& s : all_) s.close();
    io.restart();
    io.run();
  }

  nats_store add(nats_options const& o) {
    all_.emplace_back(io.get_executor(), server_->address(), o);
    all_.back().async_run([](error_code) {});
    return all_.back();
  }

  boost::asio::io_context io{};

 private:
  server* server_;
  std::vector<nats_store> all_{};
};

/// Asks one of them, as the tests of jobs do.
struct via {
  template <class C>
  [[nodiscard]] result<typename C::result> operator()(C const& c) {
    return ask(all.io, store, c);
  }
  together& all;
  nats_store store;
};

inline detail::nats_names const names{"weir"};

/// Of a key or, if it is empty, of the first shard.
[[nodiscard]] inline std::uint32_t part_of(std::string_view key) {
  return key.empty() ? detail::nats_key_parts : detail::nats_part_of(key);
}

/// The owner, by its record.
[[nodiscard]] inline std::string owner_of(stranger& who, std::uint32_t part) {
  auto const text = who.ask("$JS.API.STREAM.MSG.GET.weir-keys",
                            R"({"last_by_subj":")" + names.owner(part) + R"("})");
  auto const said = nlohmann::json::parse(text);
  if (!said.contains("message")) return {};
  auto const value = detail::nats_base64(said["message"]["data"].get<std::string>());
  BOOST_TEST_REQUIRE(value.has_value());
  return value->substr(value->find(' ') + 1);
}
[[nodiscard]] inline std::string owner_of(stranger& who, std::string_view key) {
  return owner_of(who, part_of(key));
}

}  // namespace nats_test

#endif
