#include "common/base/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdio>
#include <cstdlib>

namespace pagoda {
namespace {

// OpenSSL fails here only when it cannot allocate or is not installed whole; no key may then be
// made.
void Require(bool ok) {
  if (ok) return;
  std::fputs("fatal: OpenSSL refused SHA-256\n", stderr);
  std::abort();
}

}  // namespace

struct Sha256::Context {
  Context() : md(EVP_MD_CTX_new()) { Require(md != nullptr); }
  ~Context() { EVP_MD_CTX_free(md); }
  void Start() { Require(EVP_DigestInit_ex(md, EVP_sha256(), nullptr) == 1); }
  EVP_MD_CTX* md;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) { context_->Start(); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::string_view bytes) {
  Require(EVP_DigestUpdate(context_->md, bytes.data(), bytes.size()) == 1);
}

Digest256 Sha256::Finish() {
  Digest256 digest;
  unsigned length = 0;
  Require(EVP_DigestFinal_ex(context_->md, digest.data(), &length) == 1 && length == digest.size());
  context_->Start();
  return digest;
}

Digest256 Sha256::Of(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

Digest256 HmacSha256(std::string_view key, std::string_view message) {
  Digest256 digest;
  unsigned length = 0;
  Require(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
               reinterpret_cast<const unsigned char*>(message.data()), message.size(),
               digest.data(), &length) != nullptr &&
          length == digest.size());
  return digest;
}

}  // namespace pagoda
