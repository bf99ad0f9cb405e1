// URLs, and the file of MOONCAKE_CONFIG_PATH.
#include "stores/mooncake/options.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/temporary_directory.h"
#include "vitrove/error.h"

namespace vitrove::testing {
namespace {

using ::testing::HasSubstr;

class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

MooncakeStoreOptions read(const std::string& text) {
  StoreUrl url;
  if (text.find(':') == text.npos) {
    url.scheme = text;
  } else {
    url = StoreUrl::parse(text);
  }
  StoreOptions options(url.options);
  MooncakeStoreOptions chosen = mooncake::read_options(url, options);
  mooncake::check(chosen);
  return chosen;
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "taken";
}

class MooncakeFile : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path_) << text; }
  TemporaryDirectory directory_;
  const std::string path_ = directory_.path() / "mooncake.json";
  const Variable variable_{"MOONCAKE_CONFIG_PATH", path_};
};

TEST(MooncakeUrl, NamesMasterAndOptions) {
  const auto plain = read("mooncake://master");
  EXPECT_EQ(plain.master, "master:50051");
  EXPECT_EQ(plain.protocol, "tcp");
  EXPECT_EQ(plain.metadata, "P2PHANDSHAKE");
  EXPECT_EQ(plain.segment_bytes, 0u);
  EXPECT_EQ(plain.replicas, 1u);
  EXPECT_EQ(plain.python, "python3");
  EXPECT_TRUE(plain.library.empty());

  const auto full = read(
      "mooncake://[::1]:7000?protocol=RDMA&device=mlx5_0&metadata=http://meta:8080&hostname=node1&"
      "segment=1GiB&local_buffer=32MiB&replicas=2&soft_pin=true&tenant=t&prefix=a/&python=/x/"
      "python&"
      "staging=64MiB&threads=3&rpc_timeout=500ms&connect_timeout=250ms&start_timeout=5s&"
      "hang_timeout=1s&strict=false");
  EXPECT_EQ(full.master, "[::1]:7000");
  EXPECT_EQ(full.protocol, "rdma");
  EXPECT_EQ(full.device, "mlx5_0");
  EXPECT_EQ(full.metadata, "http://meta:8080");
  EXPECT_EQ(full.hostname, "node1");
  EXPECT_EQ(full.segment_bytes, 1u << 30);
  EXPECT_EQ(full.local_buffer_bytes, 32u << 20);
  EXPECT_EQ(full.replicas, 2u);
  EXPECT_TRUE(full.soft_pin);
  EXPECT_EQ(full.tenant, "t");
  EXPECT_EQ(full.prefix, "a/");
  EXPECT_EQ(full.python, "/x/python");
  EXPECT_EQ(full.staging_bytes, 64u << 20);
  EXPECT_EQ(full.threads, 3u);
  EXPECT_EQ(full.rpc_timeout.count(), 500);
  EXPECT_EQ(full.connect_timeout.count(), 250);
  EXPECT_EQ(full.start_timeout.count(), 5000);
  EXPECT_EQ(full.hang_timeout.count(), 1000);
}

TEST(MooncakeUrl, IsRefusedWhenAnythingInItIsWrong) {
  EXPECT_THAT(refusal("mooncake"), HasSubstr("MOONCAKE_CONFIG_PATH"));
  EXPECT_THAT(refusal("mooncake://m?replica=2"), HasSubstr("replica"));
  EXPECT_THAT(refusal("mooncake://user:pw@m"), HasSubstr("password"));
  EXPECT_THAT(refusal("mooncake://m/path"), HasSubstr("path"));
  EXPECT_THAT(refusal("mooncake://a:1,b:2"), HasSubstr("one master"));
  EXPECT_THAT(refusal("mooncake://m?replicas=0"), HasSubstr("replicas"));
  EXPECT_THAT(refusal("mooncake://m?threads=257"), HasSubstr("threads"));
  EXPECT_THAT(refusal("mooncake://m?staging=1KiB"), HasSubstr("staging"));
  EXPECT_THAT(refusal("mooncake://m?hang_timeout=0s"), HasSubstr("hang_timeout"));
  EXPECT_THAT(refusal("mooncake://m?soft_pin=true&hard_pin=true"), HasSubstr("hard_pin"));
  EXPECT_THAT(refusal("mooncake://m?python=p&library=l"), HasSubstr("not both"));
  EXPECT_THAT(refusal("mooncake://m?prefix=a%20b"), HasSubstr("prefix"));
  EXPECT_THAT(refusal("mooncake://m?protocol="), HasSubstr("protocol"));
}

TEST(MooncakeUrl, ChoosesTheProvider) {
  EXPECT_EQ(read("mooncake://m?library=/x/lib.so").library, "/x/lib.so");
  const Variable python("VITROVE_MOONCAKE_PYTHON", "/y/python");
  EXPECT_EQ(read("mooncake://m").python, "/y/python");
  const Variable library("VITROVE_MOONCAKE_LIBRARY", "/y/lib.so");
  EXPECT_EQ(read("mooncake://m").library, "/y/lib.so");
  EXPECT_EQ(read("mooncake://m?library=/x/lib.so").library, "/x/lib.so");
  EXPECT_TRUE(read("mooncake://m?python=/x/python").library.empty());
  EXPECT_EQ(read("mooncake://m?python=/x/python").python, "/x/python");
}

TEST_F(MooncakeFile, SaysWhatTheUrlDoesNot) {
  write(R"({"local_hostname": "node7", "metadata_server": "P2PHANDSHAKE",
            "global_segment_size": "1.5gb", "local_buffer_size": 1073741824, "protocol": "TCP",
            "device_name": "", "master_server_address": "127.0.0.1:50051", "tenant_id": "blue",
            "enable_ssd_offload": true, "something": ["else"]})");
  const auto options = read("mooncake");
  EXPECT_EQ(options.master, "127.0.0.1:50051");
  EXPECT_EQ(options.hostname, "node7");
  EXPECT_EQ(options.segment_bytes, 3ULL << 29);
  EXPECT_EQ(options.local_buffer_bytes, 1u << 30);
  EXPECT_EQ(options.protocol, "tcp");
  EXPECT_EQ(options.tenant, "blue");
  EXPECT_EQ(read("mooncake:?segment=0&protocol=rdma").segment_bytes, 0u);
  EXPECT_EQ(read("mooncake:?segment=0&protocol=rdma").protocol, "rdma");
  EXPECT_EQ(read("mooncake://other:1").hostname, "") << "the URL names a master: no file is read";
}

TEST_F(MooncakeFile, MayLeaveAllButTheMasterOut) {
  write(R"({"master_server_address": "etcd://a:1,b:2", "device_name": null})");
  const auto options = read("mooncake");
  EXPECT_EQ(options.master, "etcd://a:1,b:2");
  EXPECT_EQ(options.segment_bytes, 0u);
  EXPECT_EQ(options.metadata, "P2PHANDSHAKE");
}

TEST_F(MooncakeFile, IsRefusedWhenItIsNotWhatItShouldBe) {
  EXPECT_THAT(refusal("mooncake"), HasSubstr("cannot be read"));
  for (const char* text : {"", "[]", "{\"a\":", "null"}) {
    write(text);
    EXPECT_THAT(refusal("mooncake"), HasSubstr("not a JSON object")) << text;
  }
  write("{}");
  EXPECT_THAT(refusal("mooncake"), HasSubstr("master_server_address"));
  write(R"({"master_server_address": 5})");
  EXPECT_THAT(refusal("mooncake"), HasSubstr("not a text"));
  for (const char* size :
       {"\"lots\"", "\"4 xb\"", "-1", "1.5", "\"-1gb\"", "\"9999999tb\"", "[]"}) {
    write(std::string(R"({"master_server_address": "m:1", "global_segment_size": )") + size + "}");
    EXPECT_THAT(refusal("mooncake"), HasSubstr("not a size")) << size;
  }
}

}  // namespace
}  // namespace vitrove::testing
