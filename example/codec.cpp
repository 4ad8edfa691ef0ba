// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Payloads that the engine's operators cannot read: a codec that encrypts another one's bytes. Jobs
// that were enqueued before, as JSON or under an older key, still run.

#include "weir.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

/// AES-256-GCM. What it writes is the key's number, a nonce, a tag, and what was encrypted. The
/// kind is authenticated with it, so a payload of one kind is not taken for one of another.
// begin: codec
class encrypted {
 public:
  static constexpr std::string_view name = "aes-256-gcm";

  template <class Job>
  std::string encode(Job const& job) const {
    return seal(weir::cbor_codec{}.encode(job), weir::job_policy<Job>::kind());
  }
  template <class Job>
  Job decode(std::string_view bytes) const {
    return weir::cbor_codec{}.decode<Job>(open(bytes, weir::job_policy<Job>::kind()));
  }

 private:
  static std::string seal(std::string_view text, std::string_view kind);
  static std::string open(std::string_view sealed, std::string_view kind);
};
// end: codec

namespace {

constexpr std::size_t nonce_size = 12;
constexpr std::size_t tag_size = 16;
constexpr std::size_t head_size = 1 + nonce_size + tag_size;
constexpr unsigned char newest = 2;

/// A service takes them from where it keeps its secrets. An old key stays until no job needs it.
std::array<unsigned char, 32> key(unsigned char number) {
  if (number == 0 || number > newest) throw std::runtime_error{"there is no such key"};
  std::array<unsigned char, 32> out{};
  out.fill(number);
  return out;
}

unsigned char const* bytes(std::string_view text) {
  return reinterpret_cast<unsigned char const*>(text.data());
}

/// One text, one way.
std::string crypt(bool sealing, unsigned char number, std::string_view nonce, std::string& tag,
                  std::string_view kind, std::string_view text) {
  auto const must = [](int ok) {
    if (ok != 1) throw std::runtime_error{"it is not what was encrypted"};
  };
  std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> const c{EVP_CIPHER_CTX_new(),
                                                                          &EVP_CIPHER_CTX_free};
  int const way = sealing ? 1 : 0;
  int n = 0;
  std::string out(text.size(), '\0');
  auto* const to = reinterpret_cast<unsigned char*>(out.data());
  must(EVP_CipherInit_ex(c.get(), EVP_aes_256_gcm(), nullptr, key(number).data(), bytes(nonce),
                         way));
  must(EVP_CipherUpdate(c.get(), nullptr, &n, bytes(kind), static_cast<int>(kind.size())));
  must(EVP_CipherUpdate(c.get(), to, &n, bytes(text), static_cast<int>(text.size())));
  if (!sealing) must(EVP_CIPHER_CTX_ctrl(c.get(), EVP_CTRL_GCM_SET_TAG, tag_size, tag.data()));
  must(EVP_CipherFinal_ex(c.get(), to + n, &n));
  if (sealing) must(EVP_CIPHER_CTX_ctrl(c.get(), EVP_CTRL_GCM_GET_TAG, tag_size, tag.data()));
  return out;
}

}  // namespace

std::string encrypted::seal(std::string_view text, std::string_view kind) {
  std::string nonce(nonce_size, '\0');
  std::string tag(tag_size, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), nonce_size) != 1) {
    throw std::runtime_error{"no random bytes"};
  }
  auto const sealed = crypt(true, newest, nonce, tag, kind, text);
  return static_cast<char>(newest) + nonce + tag + sealed;
}

std::string encrypted::open(std::string_view sealed, std::string_view kind) {
  if (sealed.size() < head_size) throw std::runtime_error{"it is too short"};
  std::string tag{sealed.substr(1 + nonce_size, tag_size)};
  return crypt(false, static_cast<unsigned char>(sealed[0]), sealed.substr(1, nonce_size), tag,
               kind, sealed.substr(head_size));
}

// begin: traits
struct payout {
  std::string iban;
  int cents = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(payout, iban, cents)

template <>
struct weir::job_traits<payout> {
  static constexpr std::string_view kind = "payout";
  static constexpr encrypted codec{};
};
// end: traits

int main() {
  namespace asio = boost::asio;
  asio::io_context io;
  weir::memory_store store{io.get_executor()};
  weir::job_queue queue{store};
  weir::worker worker{store};

  int paid = 0;
  worker.handle<payout>([&](payout const& p) {
    std::printf("%d cents to %s\n", p.cents, p.iban.c_str());
    if (++paid == 2) worker.stop();
  });

  // One that was enqueued before there was a codec.
  weir::new_job old;
  old.id = weir::id_source{}.job();
  old.kind = "payout";
  old.payload = R"({"iban":"DE02120300000000202051","cents":100})";
  store.execute(weir::command::enqueue_jobs{"default", {&old, 1}}).value();

  queue.async_enqueue(payout{"DE02500105170137075030", 250}, {}, asio::detached);
  io.run();
  io.restart();
  auto const stored = store.execute(weir::command::peek_jobs{"default", 2}).value();
  for (auto const& job : stored) {
    bool const readable = job.payload.find("iban") != std::string::npos;
    std::printf("stored: %zu bytes, %s\n", job.payload.size(), readable ? "readable" : "encrypted");
    if (&job == &stored.back() && readable) return 1;
  }
  worker.async_run(asio::detached);
  io.run();
  return paid == 2 ? 0 : 1;
}
