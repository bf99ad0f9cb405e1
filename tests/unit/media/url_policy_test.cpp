// Which URLs may be fetched (field case B80), as far as the URL tells.
#include "media/url_policy.h"

#include "media/ip_address.h"
#include "support.h"

namespace vitrove::test {
namespace {

int status_of(std::string_view url, const HostRules& rules) {
  return failure_of([&] { parse_http_url(url, rules); }).status();
}

TEST(PublicAddress, KnowsWhatIsReserved) {
  for (const char* text : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.1",
                           "10.255.255.255",
                           "100.64.0.1",
                           "100.127.255.255",
                           "100.100.100.200",
                           "127.0.0.1",
                           "127.255.255.254",
                           "168.63.129.16",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.192",
                           "192.0.2.1",
                           "192.88.99.1",
                           "192.168.1.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.7",
                           "203.0.113.9",
                           "224.0.0.1",
                           "239.255.255.255",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "::127.0.0.1",
                           "::ffff:127.0.0.1",
                           "::ffff:10.0.0.1",
                           "::ffff:169.254.169.254",
                           "64:ff9b::127.0.0.1",
                           "64:ff9b::a9fe:a9fe",
                           "64:ff9b:1::1",
                           "100::1",
                           "2001::1",
                           "2001:db8::1",
                           "2001:20::1",
                           "2002:7f00:1::",
                           "2002:a00:1::1",
                           "2002:c0a8:101::1",
                           "3fff::1",
                           "fc00::1",
                           "fd00:ec2::254",
                           "fe80::1",
                           "fe80::1%eth0",
                           "2606:4700::1%lo",
                           "fec0::1",
                           "ff02::1",
                           "5f00::1",
                           "4000::1"}) {
    EXPECT_EQ(is_public_literal(text), false) << text;
  }
}

TEST(PublicAddress, LeavesTheInternetOpen) {
  for (const char* text : {"1.1.1.1",         "8.8.8.8",         "9.255.255.255",
                           "11.0.0.0",        "100.63.255.255",  "100.128.0.0",
                           "126.255.255.255", "128.0.0.1",       "168.63.129.17",
                           "169.253.255.255", "172.15.255.255",  "172.32.0.0",
                           "192.0.1.1",       "192.167.1.1",     "198.17.255.255",
                           "198.20.0.0",      "223.255.255.255", "2606:4700:4700::1111",
                           "2a00:1450::1",    "::ffff:8.8.8.8",  "64:ff9b::8.8.8.8",
                           "2002:808:808::1"}) {
    EXPECT_EQ(is_public_literal(text), true) << text;
  }
}

TEST(PublicAddress, NamesAreNoLiterals) {
  for (const char* text : {"example.com", "", "1.2.3", "localhost", "1.2.3.4.5", "[::1]"}) {
    EXPECT_EQ(is_public_literal(text), std::nullopt) << text;
  }
}

TEST(PublicAddress, OtherAddressFamiliesAreNotPublic) {
  sockaddr address{};
  address.sa_family = AF_UNIX;
  EXPECT_FALSE(is_public(address, sizeof address));
  address.sa_family = AF_INET6;  // but too short for one
  EXPECT_FALSE(is_public(address, sizeof address));
}

TEST(UrlPolicy, RefusesEverySpellingOfAPrivateAddress) {
  const HostRules rules({}, false);
  for (const std::string_view url : {"http://127.0.0.1/",
                                     "http://127.0.0.1:8080/x",
                                     "http://127.1/",
                                     "http://2130706433/",
                                     "http://0x7f000001/",
                                     "http://0x7f.0.0.1/",
                                     "http://0177.0.0.1/",
                                     "http://017700000001/",
                                     "http://127.0.0.1./",
                                     "http://0/",
                                     "http://0.0.0.0/",
                                     "http://[::1]/",
                                     "http://[::]/",
                                     "http://[0:0:0:0:0:0:0:1]/",
                                     "http://[::ffff:127.0.0.1]/",
                                     "http://[::ffff:7f00:1]/",
                                     "http://[64:ff9b::7f00:1]/",
                                     "http://[2002:7f00:1::]/",
                                     "http://[fe80::1%25lo]/",
                                     "http://169.254.169.254/latest/meta-data/",
                                     "http://[fd00:ec2::254]/",
                                     "http://10.1.2.3/",
                                     "http://192.168.0.1/",
                                     "http://172.16.9.9/",
                                     "http://100.64.0.1/",
                                     "HTTP://127.0.0.1/",
                                     "https://127.0.0.1/",
                                     "http://%31%32%37.0.0.1/",
                                     "http://2852039166/"}) {
    EXPECT_EQ(status_of(url, rules), 403) << url;
  }
}

TEST(UrlPolicy, RefusesWhatIsNoPlainHttpUrl) {
  const HostRules rules({}, false);
  const std::string long_url = "http://example.com/" + std::string(9000, 'a');
  for (const std::string_view url :
       {std::string_view("http://"), std::string_view("https://:80/"),
        std::string_view("http://user@example.com/"),
        std::string_view("http://user:secret@example.com/"),
        std::string_view("http://example.com\\@127.0.0.1/"),
        std::string_view("http://example.com/a b"), std::string_view("http://example.com/\r\nX: y"),
        std::string_view("http://example.com/a\0b", 22),
        std::string_view("http://example.com:99999/"), std::string_view("http://exa mple.com/"),
        std::string_view("http://[::1/"), std::string_view(long_url)}) {
    const Failure failure = failure_of([&] { parse_http_url(url, rules); });
    EXPECT_EQ(failure.status(), 400) << url;
    EXPECT_EQ(failure.message.find("secret"), std::string::npos);
    expect_safe_for_clients(failure.message);
  }
}

TEST(UrlPolicy, PublicHostsPass) {
  const HostRules rules({}, false);
  const HttpUrl url = parse_http_url("https://CDN.Example.com.:8443/a/b.png?token=secret", rules);
  EXPECT_EQ(url.host, "cdn.example.com");
  EXPECT_EQ(url.for_logs, "https://cdn.example.com/a/b.png");
  EXPECT_EQ(parse_http_url("http://8.8.8.8/x", rules).host, "8.8.8.8");
  EXPECT_EQ(parse_http_url("http://[2606:4700::1111]/x", rules).host, "2606:4700::1111");
  EXPECT_NO_THROW(parse_http_url("http://example.com/caf\xc3\xa9.png", rules));
  EXPECT_THROW(parse_http_url("http://caf\xc3\xa9.example/", rules), Error);
  EXPECT_THROW(parse_http_url("http://caf%C3%A9.example/", rules), Error);
  EXPECT_NO_THROW(parse_http_url("http://xn--caf-dma.example/", rules));
}

TEST(UrlPolicy, PrivateHostsPassOnlyWhenAskedFor) {
  const HostRules rules({}, true);
  EXPECT_NO_THROW(parse_http_url("http://127.0.0.1:8000/a.png", rules));
  EXPECT_NO_THROW(parse_http_url("http://[::1]/a.png", rules));
}

TEST(DomainList, ANameIsThatHostAlone) {
  const HostRules rules({"cdn.example.com"}, false);
  EXPECT_TRUE(rules.lists("cdn.example.com"));
  EXPECT_TRUE(rules.lists("CDN.Example.COM"));
  for (const char* host : {"example.com", "a.cdn.example.com", "xcdn.example.com",
                           "cdn.example.com.evil.org", "cdn.example.co", ""}) {
    EXPECT_FALSE(rules.lists(host)) << host;
  }
}

TEST(DomainList, ALeadingDotIsTheDomainAndAllBelowIt) {
  const HostRules rules({".example.com"}, false);
  for (const char* host : {"example.com", "a.example.com", "a.b.EXAMPLE.com"}) {
    EXPECT_TRUE(rules.lists(host)) << host;
  }
  for (const char* host : {"badexample.com", "example.com.evil.org", "com"}) {
    EXPECT_FALSE(rules.lists(host)) << host;
  }
}

TEST(DomainList, OtherHostsAreForbidden) {
  const HostRules rules({"good.example", ".cdn.example"}, false);
  EXPECT_EQ(status_of("http://evil.example/", rules), 403);
  EXPECT_EQ(status_of("http://8.8.8.8/", rules), 403);
  EXPECT_EQ(status_of("http://good.example.evil.example/", rules), 403);
  EXPECT_NO_THROW(parse_http_url("http://good.example./", rules));
  EXPECT_NO_THROW(parse_http_url("http://x.cdn.example/", rules));
}

TEST(DomainList, DoesNotMakeAPrivateAddressPublic) {
  EXPECT_EQ(status_of("http://127.0.0.1/", HostRules({"127.0.0.1"}, false)), 403);
  EXPECT_NO_THROW(parse_http_url("http://127.0.0.1/", HostRules({"127.0.0.1"}, true)));
}

TEST(DomainList, MalformedDomainsAreRefusedAtTheStart) {
  for (const char* domain : {"", ".", "http://a.example", "a.example/x", "*.example", "a:80"}) {
    EXPECT_EQ(failure_of([&] { HostRules({domain}, false); }).status(), 400) << domain;
  }
}

}  // namespace
}  // namespace vitrove::test
