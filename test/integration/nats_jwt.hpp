// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_NATS_JWT_HPP
#define WEIR_TEST_INTEGRATION_NATS_JWT_HPP

#include <nlohmann/json.hpp>
#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

// The smallest set of keys and claims with which a NATS server knows users by what their account
// has signed: an operator, a system account, an account with JetStream, and a user's credentials
// file.
namespace nats_test {

/// Five bits a character, or six, without padding.
inline std::string digits_of(std::string_view bytes, unsigned bits, std::string_view alphabet) {
  std::string out;
  std::uint32_t held = 0;
  unsigned count = 0;
  for (char const c : bytes) {
    held = (held << 8U) | static_cast<unsigned char>(c);
    for (count += 8; count >= bits; count -= bits) {
      out += alphabet[(held >> (count - bits)) & ((1U << bits) - 1U)];
    }
  }
  if (count != 0) out += alphabet[(held << (bits - count)) & ((1U << bits) - 1U)];
  return out;
}

/// An Ed25519 key with a role, written as NATS writes them.
class nkey {
 public:
  enum class role : unsigned { account = 0, operator_ = 14U << 3U, user = 20U << 3U };

  explicit nkey(role r) : role_{static_cast<unsigned>(r)} {
    EVP_PKEY* made = nullptr;
    std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> const making{
        EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nullptr), &EVP_PKEY_CTX_free};
    if (EVP_PKEY_keygen_init(making.get()) != 1 || EVP_PKEY_keygen(making.get(), &made) != 1) {
      throw std::runtime_error{"no key"};
    }
    key_.reset(made);
  }

  [[nodiscard]] std::string name() const {
    std::string bytes(1, static_cast<char>(role_));
    return encoded(bytes + raw(&EVP_PKEY_get_raw_public_key));
  }
  [[nodiscard]] std::string seed() const {
    constexpr unsigned seeds = 18U << 3U;
    std::string bytes(1, static_cast<char>(seeds | (role_ >> 5U)));
    bytes += static_cast<char>((role_ & 31U) << 3U);
    return encoded(bytes + raw(&EVP_PKEY_get_raw_private_key));
  }

  /// What this one says about another one.
  [[nodiscard]] std::string signs(nkey const& about, nlohmann::json claims) const {
    constexpr std::string_view url =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    claims["version"] = 2;
    nlohmann::json const payload{{"jti", "test"},  {"iat", 1'700'000'000}, {"iss", name()},
                                 {"name", "weir"}, {"sub", about.name()},  {"nats", claims}};
    auto const text = digits_of(R"({"typ":"JWT","alg":"ed25519-nkey"})", 6, url) + "." +
                      digits_of(payload.dump(), 6, url);
    return text + "." + digits_of(signature(text), 6, url);
  }

 private:
  template <class Get>
  [[nodiscard]] std::string raw(Get get) const {
    std::array<unsigned char, 32> bytes{};
    auto size = bytes.size();
    if (get(key_.get(), bytes.data(), &size) != 1) throw std::runtime_error{"no raw key"};
    return {bytes.begin(), bytes.end()};
  }
  [[nodiscard]] std::string signature(std::string const& text) const {
    std::array<unsigned char, 64> out{};
    auto size = out.size();
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> const signing{EVP_MD_CTX_new(),
                                                                          &EVP_MD_CTX_free};
    if (EVP_DigestSignInit(signing.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
        EVP_DigestSign(signing.get(), out.data(), &size,
                       reinterpret_cast<unsigned char const*>(text.data()), text.size()) != 1) {
      throw std::runtime_error{"no signature"};
    }
    return {out.begin(), out.end()};
  }
  /// With a checksum: CRC-16, of polynomial 0x1021, low byte first.
  static std::string encoded(std::string bytes) {
    std::uint32_t crc = 0;
    for (char const c : bytes) {
      crc ^= static_cast<std::uint32_t>(static_cast<unsigned char>(c)) << 8U;
      for (int i = 0; i != 8; ++i) {
        crc = ((crc << 1U) ^ ((crc & 0x8000U) != 0 ? 0x1021U : 0U)) & 0xFFFFU;
      }
    }
    bytes += static_cast<char>(crc & 0xFFU);
    bytes += static_cast<char>(crc >> 8U);
    return digits_of(bytes, 5, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567");
  }

  unsigned role_;
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_{nullptr, &EVP_PKEY_free};
};

/// A server's configuration, and what a user of one of its accounts needs.
struct decentralised {
  /// @param payload the largest that the user may send; -1: as the server takes
  explicit decentralised(int payload = -1) {
    using json = nlohmann::json;
    json const limits{{"subs", -1},    {"data", -1},        {"payload", -1}, {"imports", -1},
                      {"exports", -1}, {"wildcards", true}, {"conn", -1},    {"leaf", -1}};
    auto with_jetstream = limits;
    with_jetstream.update(
        json{{"mem_storage", -1}, {"disk_storage", -1}, {"streams", -1}, {"consumer", -1}});
    nkey const boss{nkey::role::operator_};
    nkey const system{nkey::role::account};
    nkey const account{nkey::role::account};
    nkey const user{nkey::role::user};
    auto const accounts = [](json const& l) { return json{{"type", "account"}, {"limits", l}}; };
    configuration = "operator: " + boss.signs(boss, {{"type", "operator"}}) +
                    "\nsystem_account: " + system.name() +
                    "\nresolver: MEMORY\nresolver_preload: {\n  " + system.name() + ": " +
                    boss.signs(system, accounts(limits)) + "\n  " + account.name() + ": " +
                    boss.signs(account, accounts(with_jetstream)) + "\n}\n";
    json const may{{"type", "user"}, {"pub", json::object()}, {"sub", json::object()}, {"subs", -1},
                   {"data", -1},     {"payload", payload}};
    credentials = "-----BEGIN NATS USER JWT-----\n" + account.signs(user, may) +
                  "\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n" +
                  user.seed() + "\n------END USER NKEY SEED------\n";
  }

  std::string configuration{};
  std::string credentials{};
};

}  // namespace nats_test

#endif
