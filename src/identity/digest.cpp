#include "vitrove/digest.h"

#include <openssl/evp.h>

#include "vitrove/error.h"

namespace vitrove {

// A member of Sha256::Context, so its type has a name outside this file too.
namespace evp {
struct Deleter {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, Deleter>;
}  // namespace evp

namespace {

void require(int openssl_result) {
  if (openssl_result != 1) throw Error(ErrorCode::internal, "SHA-256 failed");
}

// Looking an algorithm up takes longer than hashing a small item, so it is done once. Never freed:
// OpenSSL may have cleaned up by the time our statics go.
const EVP_MD* algorithm() {
  static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  if (fetched == nullptr) throw Error(ErrorCode::internal, "OpenSSL has no SHA-256");
  return fetched;
}

evp::Context make_context() {
  evp::Context context(EVP_MD_CTX_new());
  if (!context) throw std::bad_alloc();
  require(EVP_DigestInit_ex2(context.get(), algorithm(), nullptr));
  return context;
}

// Without an algorithm, the one the context has is started again.
void restart(EVP_MD_CTX* context) { require(EVP_DigestInit_ex2(context, nullptr, nullptr)); }

Digest256 finish_context(EVP_MD_CTX* context) {
  Digest256 digest;
  unsigned int length = 0;
  require(
      EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(digest.bytes.data()), &length));
  return digest;
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    const auto number = std::to_integer<unsigned>(byte);
    text.push_back(digits[number >> 4]);
    text.push_back(digits[number & 15]);
  }
  return text;
}

std::optional<Digest256> parse_digest(std::string_view hex) {
  Digest256 digest;
  if (hex.size() != 2 * digest.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = hex_value(hex[2 * i]);
    const int low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest.bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  return digest;
}

Digest256 sha256(std::span<const std::byte> bytes) {
  thread_local const evp::Context context = make_context();
  restart(context.get());
  require(EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()));
  return finish_context(context.get());
}

Digest256 sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

struct Sha256::Context {
  evp::Context evp = make_context();
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(context_->evp.get(), bytes.data(), bytes.size()));
}

Digest256 Sha256::finish() {
  const Digest256 digest = finish_context(context_->evp.get());
  restart(context_->evp.get());
  return digest;
}

}  // namespace vitrove
