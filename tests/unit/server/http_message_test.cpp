#include "server/http_message.h"

#include <set>

#include <gtest/gtest.h>

#include "server/response_head.h"

namespace vitrove {
namespace {

TEST(RequestTarget, IsSplitIntoPathAndQuery) {
  HttpRequest request;
  ASSERT_TRUE(parse_target("/flush?scope=all&model=%2A&empty=&flag", request));
  EXPECT_EQ(request.path, "/flush");
  EXPECT_EQ(request.query.at("scope"), "all");
  EXPECT_EQ(request.query.at("model"), "*");
  EXPECT_EQ(request.query.at("empty"), "");
  EXPECT_EQ(request.query.at("flag"), "");
}

TEST(RequestTarget, IsPercentDecodedOnce) {
  HttpRequest request;
  ASSERT_TRUE(parse_target("/a%2Fb%2525?x=a+b%20c", request));
  EXPECT_EQ(request.path, "/a/b%25");
  EXPECT_EQ(request.query.at("x"), "a b c");
}

TEST(RequestTarget, MayBeAWholeUrl) {
  HttpRequest request;
  ASSERT_TRUE(parse_target("http://example.com:80/health?x=1", request));
  EXPECT_EQ(request.path, "/health");
  ASSERT_TRUE(parse_target("http://example.com", request));
  EXPECT_EQ(request.path, "/");
  ASSERT_TRUE(parse_target("*", request));
  EXPECT_EQ(request.path, "*");
}

TEST(RequestTarget, IsRefusedWhenMalformed) {
  HttpRequest request;
  for (const auto* bad : {"", "health", "/a%2", "/a%zz", "/?x=%", "/?a=1&a=2"}) {
    EXPECT_FALSE(parse_target(bad, request)) << bad;
  }
}

TEST(RequestId, IsPrintableAsciiOfBoundedLength) {
  EXPECT_TRUE(is_valid_req_id("a"));
  EXPECT_TRUE(is_valid_req_id(std::string(256, 'x')));
  EXPECT_FALSE(is_valid_req_id(""));
  EXPECT_FALSE(is_valid_req_id(std::string(257, 'x')));
  EXPECT_FALSE(is_valid_req_id("a\r\nb"));
  EXPECT_FALSE(is_valid_req_id(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_valid_req_id("caf\xc3\xa9"));
}

TEST(RequestId, IsMadeUpDifferentlyEachTime) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(make_req_id());
  EXPECT_EQ(ids.size(), 1000U);
  EXPECT_TRUE(is_valid_req_id(*ids.begin()));
}

TEST(ResponseHead, NamesLengthOfBodyAndParts) {
  const std::string rows(100, 'r');
  HttpResponse response;
  response.body = "head";
  response.parts.push_back(std::as_bytes(std::span(rows)));
  response.req_id = "id-1";
  response.headers.emplace_back("Retry-After", "1");
  const std::string head = response_head(response);
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_NE(head.find("\r\nContent-Length: 104\r\n"), std::string::npos);
  EXPECT_NE(head.find("\r\nX-Request-Id: id-1\r\n"), std::string::npos);
  EXPECT_NE(head.find("\r\nRetry-After: 1\r\n"), std::string::npos);
  EXPECT_NE(head.find("\r\nConnection: keep-alive\r\n"), std::string::npos);
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
}

TEST(ResponseHead, OfNoContentHasNoLength) {
  HttpResponse response;
  response.status = 204;
  response.content_type.clear();
  response.close = true;
  const std::string head = response_head(response);
  EXPECT_EQ(head.find("Content-"), std::string::npos);
  EXPECT_NE(head.find("\r\nConnection: close\r\n"), std::string::npos);
}

}  // namespace
}  // namespace vitrove
