// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/key_policy.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace {

std::string hex(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (char const c : bytes) {
    auto const byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

struct no_view {
  std::string_view operator()(std::string_view key) const { return key; }
};
struct with_view {
  struct value {
    std::string text;
    std::string_view view() const { return text; }
  };
  value operator()(std::string_view key) const { return {"app:" + std::string{key}}; }
};

static_assert(weir::key_policy<with_view>);
static_assert(!weir::key_policy<no_view>);
static_assert(!weir::key_policy<int>);

}  // namespace

BOOST_AUTO_TEST_SUITE(key_policies)

BOOST_AUTO_TEST_CASE(sha256_of_known_texts) {
  weir::sha256_key const policy;
  // FIPS 180-4, the examples.
  BOOST_TEST(hex(policy("abc").view()) ==
             "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  BOOST_TEST(hex(policy("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").view()) ==
             "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

BOOST_AUTO_TEST_CASE(hmac_of_a_known_text) {
  weir::hmac_key const policy{"Jefe"};  // RFC 4231, test case 2
  BOOST_TEST(hex(policy("what do ya want for nothing?").view()) ==
             "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  BOOST_TEST(hex(policy("what do ya want for nothing?").view()) ==  // a policy is not used up
             "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  BOOST_TEST(weir::hmac_key{"Jefe!"}("x").view() != weir::hmac_key{"Jefe"}("x").view());
}

BOOST_AUTO_TEST_CASE(raw_keys_pass_through) {
  weir::raw_key const policy;
  using namespace std::string_literals;
  for (std::size_t const n : {1U, 47U, 48U, 49U, 1024U, 5000U}) {
    auto text = std::string(n, 'x');
    text[n / 2] = '\0';
    auto const copy = policy(text);
    BOOST_TEST(copy.view() == text);
    BOOST_TEST((copy.view().data() != text.data()));
    auto moved = copy;
    auto const again = std::move(moved);
    BOOST_TEST(again.view() == text);
  }
}

BOOST_AUTO_TEST_CASE(an_empty_key_stays_empty_under_every_policy) {
  BOOST_TEST(weir::sha256_key{}("").view().empty());
  BOOST_TEST(weir::hmac_key{"secret"}("").view().empty());
  BOOST_TEST(weir::raw_key{}("").view().empty());
  BOOST_TEST(weir::sha256_key{}(std::string_view{}).view().empty());
  BOOST_TEST(weir::raw_key{}(std::string_view{}).view().empty());
}

BOOST_AUTO_TEST_CASE(keys_of_any_length_become_32_bytes) {
  weir::sha256_key const policy;
  for (std::size_t const n : {1U, 55U, 56U, 64U, 65'536U}) {
    BOOST_TEST(policy(std::string(n, 'k')).view().size() == 32U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
