#include "server/access_control.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "support.h"

namespace vitrove::test {
namespace {

class TenantFile {
 public:
  explicit TenantFile(const std::string& text) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "vitrove-tenants-XXXXXX").string();
    const int fd = ::mkstemp(pattern.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
    path_ = pattern;
    std::ofstream(path_) << text;
  }
  ~TenantFile() { std::filesystem::remove(path_); }
  TenantFile(const TenantFile&) = delete;
  TenantFile& operator=(const TenantFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Verdict {
  int status = 200;
  std::string tenant;
  bool is_admin = false;
};

Verdict check(const AccessControl& access, Access needed, const std::string& header) {
  HttpRequest request;
  request.authorization = header;
  try {
    access.check(needed, request);
  } catch (const Error& error) {
    return {http_status(error.code()), {}, false};
  }
  return {200, request.tenant, request.is_admin};
}

TEST(AccessControl, WithoutKeysOnLoopbackLetsEverybodyIn) {
  const AccessControl access(ServerConfig{}, false);
  for (const auto needed : {Access::open, Access::caller, Access::admin}) {
    EXPECT_EQ(check(access, needed, "").status, 200);
  }
}

TEST(AccessControl, ATenantFileThatCannotBeReadIsNoEmptyOne) {
  ServerConfig config;
  config.tenant_keys_file = std::filesystem::temp_directory_path();  // opens, and gives EISDIR
  EXPECT_EQ(failure_of([&] { AccessControl(config, false); }).message,
            "--tenant-keys: cannot read the file");
}

TEST(AccessControl, WithApiKeysAsksForOneOfThem) {
  ServerConfig config;
  config.api_keys = {"first", "second"};
  const AccessControl access(config, false);
  EXPECT_EQ(check(access, Access::open, "").status, 200);
  for (const auto needed : {Access::caller, Access::admin}) {
    EXPECT_EQ(check(access, needed, "").status, 401);
    EXPECT_EQ(check(access, needed, "Bearer wrong").status, 401);
    EXPECT_EQ(check(access, needed, "Basic first").status, 401);
    EXPECT_EQ(check(access, needed, "first").status, 401);
    EXPECT_EQ(check(access, needed, "Bearer ").status, 401);
    EXPECT_EQ(check(access, needed, "Bearer firs").status, 401);
    EXPECT_EQ(check(access, needed, "Bearer first").status, 200);
    EXPECT_EQ(check(access, needed, "bearer second").status, 200);
  }
}

TEST(AccessControl, BeyondLoopbackAdminRoutesNeedAnAdminKeyThatExists) {
  ServerConfig config;
  const AccessControl without(config, true);
  EXPECT_EQ(check(without, Access::caller, "").status, 200);
  EXPECT_EQ(check(without, Access::admin, "").status, 403);
  EXPECT_EQ(check(without, Access::admin, "Bearer guess").status, 403);

  config.admin_key = "boss";
  const AccessControl with(config, true);
  EXPECT_EQ(check(with, Access::admin, "").status, 401);
  EXPECT_EQ(check(with, Access::admin, "Bearer guess").status, 401);
  EXPECT_EQ(check(with, Access::admin, "Bearer boss").status, 200);
  EXPECT_TRUE(check(with, Access::admin, "Bearer boss").is_admin);
}

TEST(AccessControl, AnAdminKeyThatIsGivenIsAskedForOnLoopbackToo) {
  ServerConfig config;
  EXPECT_EQ(check(AccessControl(config, false), Access::admin, "").status, 200);
  config.admin_key = "boss";
  const AccessControl access(config, false);
  EXPECT_EQ(check(access, Access::admin, "").status, 401);
  EXPECT_EQ(check(access, Access::admin, "Bearer boss").status, 200);
  EXPECT_EQ(check(access, Access::caller, "").status, 200);
}

TEST(AccessControl, ACallersKeyIsNotEnoughForAdminRoutes) {
  ServerConfig config;
  config.api_keys = {"caller"};
  config.admin_key = "boss";
  const AccessControl access(config, true);
  EXPECT_EQ(check(access, Access::admin, "Bearer caller").status, 403);
  EXPECT_EQ(check(access, Access::caller, "Bearer boss").status, 200);
}

TEST(AccessControl, TenantsComeFromTheKeyAlone) {
  const TenantFile file("# keys\nkey-a tenant-a\n\n  key-b\ttenant-b  \n");
  ServerConfig config;
  config.tenant_keys_file = file.path();
  config.admin_key = "boss";
  const AccessControl access(config, false);
  EXPECT_TRUE(access.has_tenants());
  EXPECT_EQ(check(access, Access::caller, "Bearer key-a").tenant, "tenant-a");
  EXPECT_EQ(check(access, Access::caller, "Bearer key-b").tenant, "tenant-b");
  EXPECT_EQ(check(access, Access::caller, "").status, 401);
  EXPECT_EQ(check(access, Access::admin, "Bearer key-a").status, 403);
  EXPECT_EQ(check(access, Access::admin, "Bearer boss").status, 200);
  EXPECT_TRUE(check(access, Access::caller, "Bearer boss").is_admin);
}

TEST(AccessControl, RefusesABadTenantFileWithItsLine) {
  for (const auto* text : {"", "# nothing\n", "key\n", "key tenant more\n", "k t\nk u\n"}) {
    const TenantFile file(text);
    ServerConfig config;
    config.tenant_keys_file = file.path();
    EXPECT_EQ(failure_of([&] { AccessControl(config, false); }).code, ErrorCode::invalid_argument)
        << text;
  }
  ServerConfig config;
  config.tenant_keys_file = "/no/such/file";
  const Failure failure = failure_of([&] { AccessControl(config, false); });
  EXPECT_EQ(failure.message.find("/no/such"), std::string::npos);
}

TEST(AccessControl, RefusesKeysThatNoHeaderCanCarry) {
  ServerConfig config;
  config.api_keys = {"with blank"};
  EXPECT_EQ(failure_of([&] { AccessControl(config, false); }).code, ErrorCode::invalid_argument);
  config.api_keys = {"same"};
  config.admin_key = "same";
  EXPECT_EQ(failure_of([&] { AccessControl(config, false); }).code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace vitrove::test
