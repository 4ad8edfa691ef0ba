// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "stores.hpp"

#include <initializer_list>
#include <string_view>

namespace console {

any_store open_store(asio::any_io_executor const& executor, options const& o) {
  using open_engine = decltype(&open_sqlite);
  struct engine {
    open_engine open;
    std::initializer_list<std::string_view> schemes;
  };
  static engine const engines[] = {
      {open_sqlite, {"sqlite:"}},
      {open_redis,
       {"redis://", "rediss://", "redis+cluster://", "rediss+cluster://", "redis+sentinel://",
        "rediss+sentinel://", "redis+unix://", "unix://"}},
      {open_postgres, {"postgresql://", "postgres://"}},
      {open_nats, {"nats://", "tls://"}},
  };
  for (auto const& engine : engines) {
    for (auto const scheme : engine.schemes) {
      if (!o.store.starts_with(scheme)) continue;
      if (auto store = engine.open(executor, o)) return *store;
      throw failure{unusable, "this weirctl was built without stores of " + std::string{scheme}};
    }
  }
  throw failure{wrong_usage, "--store begins with sqlite:, redis://, postgresql:// or nats:// (see "
                             "weirctl --help)"};
}

}  // namespace console
