// SHA-256 and HMAC-SHA256 (OpenSSL) for identities: content digests, block keys, namespaces.
#ifndef PAGODA_COMMON_BASE_SHA256_H_
#define PAGODA_COMMON_BASE_SHA256_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

namespace pagoda {

using Digest256 = std::array<uint8_t, 32>;

inline std::string_view AsBytes(const Digest256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// One reusable hashing context: Update any number of times, then Finish, which also starts afresh.
//
// Concurrency: one thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(std::string_view bytes);
  Digest256 Finish();

  static Digest256 Of(std::string_view bytes);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Digest256 HmacSha256(std::string_view key, std::string_view message);

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_SHA256_H_
