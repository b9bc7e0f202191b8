#include <nlohmann/json.hpp>

#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pagoda/v1/kvstore.grpc.pb.h"
#include "services/ctl/command.h"

namespace pagoda::ctl {
namespace {

using testing::HasSubstr;

class FakeStore final : public v1::KvStore::Service {
 public:
  grpc::Status Describe(grpc::ServerContext*, const v1::DescribeRequest*,
                        v1::DescribeResponse* response) override {
    response->set_shard_id("shard-7");
    response->set_version("1.2.3");
    return grpc::Status::OK;
  }
};

class FakeAdmin final : public v1::KvAdmin::Service {
 public:
  grpc::Status Stats(grpc::ServerContext*, const v1::StatsRequest*,
                     v1::StatsResponse* response) override {
    AddTier(*response, v1::RAM, 12, 3 << 20, 0);
    AddTier(*response, v1::DISK, 345, 80 << 20, 6);
    auto* owner = response->add_owners();
    owner->set_tenant("acme");
    owner->set_blocks(300);
    owner->set_bytes(80 << 20);
    owner = response->add_owners();  // the one without a name
    owner->set_blocks(57);
    owner->set_bytes(3 << 20);
    response->set_divergent_puts(8);
    response->set_corrupt_blocks(9);
    response->set_uptime_ms(3'723'999);
    return grpc::Status::OK;
  }

 private:
  static void AddTier(v1::StatsResponse& response, v1::Tier name, uint64_t blocks, uint64_t bytes,
                      uint64_t evicted) {
    auto* tier = response.add_tiers();
    tier->set_tier(name);
    tier->set_blocks(blocks);
    tier->set_bytes_used(bytes);
    tier->set_bytes_limit(1 << 30);
    tier->set_evicted_blocks(evicted);
  }
};

struct Result {
  int status;
  std::string output;
  std::string error;
};

Result Kv(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "kv");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Result result;
  result.status = RunKv(static_cast<int>(arguments.size()), arguments.data());
  result.output = testing::internal::GetCapturedStdout();
  result.error = testing::internal::GetCapturedStderr();
  return result;
}

class KvCommandTest : public testing::Test {
 protected:
  FakeStore store_;
  FakeAdmin admin_;
  std::unique_ptr<rpc::Server> server_ =
      *rpc::Server::Start({.address = "127.0.0.1:0", .services = {&store_, &admin_}});
  std::string address_ = server_->address();
};

TEST_F(KvCommandTest, StatsAreTablesOfTiersAndOwners) {
  Result result = Kv({"stats", "--kvstore", address_.c_str()});
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(result.output,
            "shard shard-7, version 1.2.3, up 1 h 02 min 03 s\n"
            "\n"
            "tier  blocks  used    limit  evicted\n"
            "ram   12      3 MiB   1 GiB  0\n"
            "disk  345     80 MiB  1 GiB  6\n"
            "\n"
            "owner        blocks  used\n"
            "acme         300     80 MiB\n"
            "(no tenant)  57      3 MiB\n"
            "\n"
            "8 divergent puts, 9 corrupt blocks\n");
}

TEST_F(KvCommandTest, JsonHasEveryNumber) {
  Result result = Kv({"stats", "--kvstore", address_.c_str(), "--output", "json"});
  EXPECT_EQ(result.status, 0) << result.error;
  auto object = nlohmann::json::parse(result.output);
  EXPECT_EQ(object["shard_id"], "shard-7");
  EXPECT_EQ(object["version"], "1.2.3");
  EXPECT_EQ(object["uptime_ms"], 3'723'999);
  EXPECT_EQ(object["divergent_puts"], 8);
  EXPECT_EQ(object["corrupt_blocks"], 9);
  EXPECT_EQ(object["tiers"][1], nlohmann::json::parse(
                                    R"({"tier":"disk","blocks":345,"bytes_used":83886080,
                "bytes_limit":1073741824,"evicted_blocks":6,"index_bytes":0})"));
  EXPECT_EQ(object["owners"][0],
            nlohmann::json::parse(R"({"tenant":"acme","blocks":300,"bytes":83886080})"));
}

TEST_F(KvCommandTest, NobodyThereIsAFailureWithWords) {
  server_.reset();
  Result result = Kv({"stats", "--kvstore", address_.c_str()});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.error, HasSubstr("pagoda kv stats: " + address_ + ": "));
}

TEST(KvUsageTest, HelpListsTheCommandsAndAnythingElseIsWrongUsage) {
  Result help = Kv({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.output, HasSubstr("  stats "));
  EXPECT_EQ(Kv({}).status, 2);
  EXPECT_EQ(Kv({"stats", "--kvstore", "nowhere"}).status, 2);
  EXPECT_EQ(Kv({"stats", "--output", "xml"}).status, 2);
  Result unknown = Kv({"stat"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.error, HasSubstr("unknown command \"stat\""));
  EXPECT_THAT(unknown.error, HasSubstr(help.output));
}

}  // namespace
}  // namespace pagoda::ctl
