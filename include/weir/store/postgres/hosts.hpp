// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_HOSTS_HPP
#define WEIR_STORE_POSTGRES_HOSTS_HPP

#include "weir/error.hpp"

#include <boost/asio/ip/address.hpp>

#include <libpq-fe.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// A connection string taken apart, and where its hosts are. libpq looks up a host's name itself,
/// and blocks meanwhile, unless it is told the address beside it.
class postgres_hosts {
 public:
  using addresses = std::map<std::string, std::vector<std::string>>;  ///< by the hosts' names

  explicit postgres_hosts(std::string conninfo) : conninfo_{std::move(conninfo)} {
    char* said = nullptr;
    options const given{PQconninfoParse(conninfo_.c_str(), &said)};
    valid_ = given != nullptr;
    if (said != nullptr) problem_ = without_secrets(said);
    PQfreemem(said);
    for (auto const* o = given.get(); o != nullptr && o->keyword != nullptr; ++o) {
      if (o->val != nullptr) parameters_[o->keyword] = o->val;
    }
    // libpq ends the user's part of a URL at its first "@": the host is a part of the password
    // (F98).
    if (std::ranges::any_of(split(of("host")), [](auto const& each) {
          return is_name(each) && each.find('@') != each.npos;
        })) {
      valid_ = false;
      problem_ = "a host has an \"@\": in a password it is written as %40";
      parameters_.clear();
    }
    if (!valid_ || parameters_.contains("service")) return;  // which only libpq reads
    options const defaults{PQconndefaults()};
    for (auto const* o = defaults.get(); o != nullptr && o->keyword != nullptr; ++o) {
      std::string_view const name = o->keyword;
      constexpr std::string_view needed[] = {"host", "hostaddr", "port", "target_session_attrs",
                                             "load_balance_hosts"};
      if (o->val == nullptr || std::ranges::find(needed, name) == std::end(needed)) continue;
      parameters_.try_emplace(o->keyword, o->val);
    }
  }

  /// Was it a connection string?
  [[nodiscard]] bool valid() const noexcept { return valid_; }
  /// What is wrong with it, in words.
  [[nodiscard]] std::string const& problem() const noexcept { return problem_; }

  /// What has to be looked up, each once.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> out;
    if (!of("hostaddr").empty()) return out;
    for (auto& each : split(of("host"))) {
      if (is_name(each) && std::ranges::find(out, each) == out.end())
        out.push_back(std::move(each));
    }
    return out;
  }

  /// Says where they are. A host is tried at each of its addresses, as libpq does; one that has
  /// none is left out. False: none is left.
  [[nodiscard]] bool locate(addresses const& found) {
    auto const hosts = split(of("host"));
    auto const ports = split(of("port"));
    if (ports.size() != 1 && ports.size() != hosts.size()) return true;  // libpq refuses it
    std::vector<std::string> to[3];
    for (std::size_t i = 0; i != hosts.size(); ++i) {
      std::vector<std::string> at{""};  // it is an address, or a socket
      if (is_name(hosts[i])) {
        auto const known = found.find(hosts[i]);
        at = known == found.end() ? std::vector<std::string>{} : known->second;
      }
      for (auto& address : at) {
        to[0].push_back(hosts[i]);
        to[1].push_back(std::move(address));
        to[2].push_back(ports.size() == 1 ? ports[0] : ports[i]);
      }
    }
    parameters_["host"] = joined(to[0]);
    parameters_["hostaddr"] = joined(to[1]);
    parameters_["port"] = joined(to[2]);
    return !to[0].empty();
  }

  /// How many attempts there are to make, one after another: each is at one host, so that each has
  /// a time of its own. libpq, which would go through them by itself, waits for one that is mute
  /// for as long as it is asked to (F70).
  [[nodiscard]] std::size_t attempts() const {
    auto const n = hosts();
    return n == 0 ? 1 : n * (prefers_standby() ? 2 : 1);
  }

  /// In which order the attempts' hosts are taken.
  ///
  /// @param entropy of 64 bits, for hosts that are to be taken in any order
  void mix(std::uint64_t entropy) {
    auto const n = hosts();
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    if (of("load_balance_hosts") != "random") return;
    std::ranges::shuffle(order_, std::mt19937_64{entropy});
  }

  /// Begins an attempt, below `attempts()`.
  [[nodiscard]] PGconn* start(std::size_t attempt) const {
    auto const n = hosts();
    if (n == 0) return PQconnectStart(conninfo_.c_str());
    auto with = parameters_;
    auto const i = order_.size() == n ? order_[attempt % n] : attempt % n;
    for (std::string const name : {"host", "hostaddr", "port"}) {
      auto const list = split(of(name));
      with[name] = list.size() == 1 ? list[0] : list[i];
    }
    if (prefers_standby()) with["target_session_attrs"] = attempt < n ? "standby" : "any";
    std::vector<char const*> keywords;
    std::vector<char const*> values;
    for (auto const& [keyword, value] : with) {
      keywords.push_back(keyword.c_str());
      values.push_back(value.c_str());
    }
    keywords.push_back(nullptr);
    values.push_back(nullptr);
    return PQconnectStartParams(keywords.data(), values.data(), 0);
  }

  /// What was given for a keyword, or is the default; where it is, once that was said.
  [[nodiscard]] std::string of(std::string const& keyword) const {
    auto const at = parameters_.find(keyword);
    return at == parameters_.end() ? std::string{} : at->second;
  }

 private:
  /// libpq repeats what it cannot read, which may be a part of a password (F98): only what comes
  /// close to one of its keywords is told.
  [[nodiscard]] static std::string without_secrets(std::string_view said) {
    auto const begin = said.find('"');
    auto const end = begin == said.npos ? begin : said.find('"', begin + 1);
    if (end == said.npos) return std::string{said};
    auto const quoted = said.substr(begin + 1, end - begin - 1);
    options const known{PQconndefaults()};
    for (auto const* o = known.get(); o != nullptr && o->keyword != nullptr; ++o) {
      if (quoted == o->keyword) return std::string{said};
      if (alike(quoted, o->keyword)) {
        return "there is no option \"" + std::string{quoted} + "\": is \"" + o->keyword +
               "\" meant?";
      }
    }
    return std::string{said.substr(0, begin)} + "..., which is not repeated here";
  }

  /// Do they differ by one or two letters that were left out, added or changed?
  [[nodiscard]] static bool alike(std::string_view one, std::string_view other) {
    constexpr std::size_t most = 2;
    std::vector<std::size_t> row(other.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i != one.size(); ++i) {
      auto before = std::exchange(row[0], i + 1);
      for (std::size_t j = 0; j != other.size(); ++j) {
        auto const same = before + (one[i] == other[j] ? 0 : 1);
        before = row[j + 1];
        row[j + 1] = std::min({same, before + 1, row[j] + 1});
      }
    }
    return row.back() <= most && other.size() > 2 * most;
  }

  struct forget {
    void operator()(PQconninfoOption* o) const noexcept { PQconninfoFree(o); }
  };
  using options = std::unique_ptr<PQconninfoOption, forget>;

  /// How many hosts there are; 0: only libpq knows, or what was given is for it to refuse.
  [[nodiscard]] std::size_t hosts() const {
    if (!valid_ || parameters_.contains("service")) return 0;
    auto const named = split(of("host")).size();
    auto const placed = split(of("hostaddr")).size();
    auto const ports = split(of("port")).size();
    auto const n = of("hostaddr").empty() ? named : placed;
    bool const fits = (named == n || of("host").empty()) && (ports == n || ports == 1);
    return fits ? n : 0;
  }
  /// First at each host for a standby, then at each for any server.
  [[nodiscard]] bool prefers_standby() const {
    return of("target_session_attrs") == "prefer-standby";
  }

  [[nodiscard]] static bool is_name(std::string const& host) {
    if (host.empty() || host.front() == '/' || host.front() == '@') return false;  // a socket
    error_code no_address;
    boost::asio::ip::make_address(host, no_address);
    return static_cast<bool>(no_address);
  }

  [[nodiscard]] static std::vector<std::string> split(std::string_view list) {
    std::vector<std::string> out;
    for (;;) {
      auto const comma = list.find(',');
      out.emplace_back(list.substr(0, comma));
      if (comma == std::string_view::npos) return out;
      list.remove_prefix(comma + 1);
    }
  }
  [[nodiscard]] static std::string joined(std::vector<std::string> const& list) {
    std::string out;
    for (auto const& each : list) out.append(&each == list.data() ? "" : ",").append(each);
    return out;
  }

  std::string conninfo_;
  std::map<std::string, std::string> parameters_;
  bool valid_ = false;
  std::string problem_;
  std::vector<std::size_t> order_;
};

}  // namespace weir::detail

#endif
