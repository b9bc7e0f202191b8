#include "common/base/sha256.h"

#include "common/base/bytes.h"
#include "gtest/gtest.h"

namespace pagoda {
namespace {

// FIPS 180-4 examples.
TEST(Sha256Test, AgreesWithTheExamplesOfFips180) {
  EXPECT_EQ(ToHex(AsBytes(Sha256::Of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ToHex(AsBytes(Sha256::Of(""))),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256Test, FinishStartsAfresh) {
  Sha256 hash;
  hash.Update("a");
  hash.Update("bc");
  EXPECT_EQ(hash.Finish(), Sha256::Of("abc"));
  EXPECT_EQ(hash.Finish(), Sha256::Of(""));
}

// RFC 4231, test case 2.
TEST(Sha256Test, HmacAgreesWithRfc4231) {
  EXPECT_EQ(ToHex(AsBytes(HmacSha256("Jefe", "what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Sha256Test, HmacTakesAnEmptyKey) {
  EXPECT_EQ(ToHex(AsBytes(HmacSha256("", ""))),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

}  // namespace
}  // namespace pagoda
