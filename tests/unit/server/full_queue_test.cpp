// What a server with a full queue answers without taking a body in (B71).
#include <vector>

#include "running_server.h"

namespace vitrove::test {
namespace {

TEST(FullQueue, RefusesABodyOfUntoldLengthBeforeItComes) {
  ServerConfig config = socket_config();
  config.service_threads = 1;
  config.max_queue = 1;
  Running running(config);
  running.parts.encoder->gate.close();
  std::vector<RawClient> clients;
  for (std::uint32_t i = 0; i < 8; ++i) {
    clients.emplace_back(running.port());
    clients.back().send(encode_text({png_url(i)}));
  }
  ASSERT_TRUE(eventually([&] {
    return get(running.port(), "/metrics").body.find(R"(code="429",route="/encode"} 6)") !=
           std::string::npos;
  }));
  RawClient client(running.port());
  client.send("POST /encode HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(client.reply().status, 429);
  running.parts.encoder->gate.open();
}

}  // namespace
}  // namespace vitrove::test
