// Fetching over HTTP: faults of the origin (B12), bounds (B85), forbidden addresses (B80).
#include <condition_variable>
#include <cstdlib>

#include <fcntl.h>

#include "fault_server.h"
#include "media/http_fetcher.h"
#include "support.h"

namespace vitrove::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto for_ever = Clock::time_point::max();

FetchPolicy local_policy() {
  FetchPolicy policy;
  policy.allow_private_media = true;
  return policy;
}

std::string fetch(const FetchPolicy& policy, const std::string& url) {
  return to_text(MediaFetcher(policy).fetch(url));
}

Failure fetch_failure(const FetchPolicy& policy, const std::string& url) {
  const Failure failure = failure_of([&] { fetch(policy, url); });
  expect_safe_for_clients(failure.message);
  return failure;
}

FaultServer::Handler always(std::string status, std::string body) {
  return [=](Exchange& exchange) { exchange.reply(status, body); };
}

TEST(HttpFetch, BringsTheBytes) {
  const std::string body = to_text(picture("plain.jpg"));
  const FaultServer server(always("200 OK", body));
  EXPECT_EQ(fetch(local_policy(), server.url("/a.jpg?x=y#fragment")), body);
}

// B83
TEST(HttpFetch, AsksForRoomAsTheBytesArriveAndEndsWhereThereIsNone) {
  const std::string body(300'000, 'x');
  const FaultServer server(always("200 OK", body));
  const MediaFetcher fetcher(local_policy());
  std::uint64_t asked = 0;
  const auto note = [&](std::uint64_t total) {
    EXPECT_GT(total, asked);
    asked = total;
  };
  EXPECT_EQ(to_text(fetcher.fetch(server.url("/"), for_ever, {}, note)), body);
  EXPECT_EQ(asked, body.size());
  const auto refuse = [](std::uint64_t total) {
    if (total > 100'000) throw Error(ErrorCode::unavailable, "no room");
  };
  const Failure failure = failure_of([&] { fetcher.fetch(server.url("/"), for_ever, {}, refuse); });
  EXPECT_EQ(failure.status(), 503);
  EXPECT_EQ(to_text(fetcher.fetch(server.url("/"))), body) << "the connections go on";
}

TEST(HttpFetch, AsksForPlainBytesAndSendsNothingPersonal) {
  const FaultServer server(always("200 OK", "x"));
  fetch(local_policy(), server.url("/a.jpg"));
  const std::string head = server.last_head();
  EXPECT_NE(head.find("Accept-Encoding: identity\r\n"), std::string::npos);
  EXPECT_EQ(head.find("Authorization"), std::string::npos);
  EXPECT_EQ(head.find("Cookie"), std::string::npos);
}

TEST(HttpFetch, LeavesCompressedBodiesAsTheyAre) {
  const FaultServer server([](Exchange& exchange) {
    exchange.reply("200 OK", "\x1f\x8b bomb", "Content-Encoding: gzip\r\n");
  });
  EXPECT_EQ(fetch(local_policy(), server.url("/")), "\x1f\x8b bomb");
}

TEST(HttpFetch, UsesNoProxyOfTheEnvironment) {
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  ::setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
  const FaultServer server(always("200 OK", "direct"));
  EXPECT_EQ(fetch(local_policy(), server.url("/")), "direct");
  ::unsetenv("http_proxy");
  ::unsetenv("ALL_PROXY");
}

TEST(HttpFetch, ReusesConnections) {
  const FaultServer server(always("200 OK", "x"));
  const MediaFetcher fetcher(local_policy());
  for (int i = 0; i < 5; ++i) fetcher.fetch(server.url("/" + std::to_string(i)));
  EXPECT_EQ(server.requests(), 5);
  EXPECT_EQ(server.connections(), 1);
}

// Field case B27: a URL is no identity.
TEST(HttpFetch, BringsWhatIsThereNow) {
  std::atomic<int> count = 0;
  const FaultServer server(
      [&](Exchange& exchange) { exchange.reply("200 OK", std::string(1, "AB"[count++ % 2])); });
  const MediaFetcher fetcher(local_policy());
  EXPECT_EQ(to_text(fetcher.fetch(server.url("/same"))), "A");
  EXPECT_EQ(to_text(fetcher.fetch(server.url("/same"))), "B");
}

TEST(HttpFetch, ServesManyThreadsAtOnce) {
  const FaultServer server([](Exchange& exchange) { exchange.reply("200 OK", exchange.path()); });
  const MediaFetcher fetcher(local_policy());
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 10; ++i) {
          const std::string path = "/" + std::to_string(t) + "/" + std::to_string(i);
          if (to_text(fetcher.fetch(server.url(path))) == path) ++good;
        }
      });
    }
  }
  EXPECT_EQ(good, 80);
}

TEST(OriginFaults, AClientErrorIsFinal) {
  for (const char* status :
       {"400 Bad Request", "403 Forbidden", "404 Not Found", "410 Gone", "429 Too Many Requests"}) {
    const FaultServer server(always(status, "<html>no</html>"));
    const Failure failure = fetch_failure(local_policy(), server.url("/"));
    EXPECT_EQ(failure.status(), 424) << status;
    EXPECT_NE(failure.message.find(std::string(status, 3)), std::string::npos) << failure.message;
    EXPECT_EQ(server.requests(), 1) << status;
  }
}

TEST(OriginFaults, AServerErrorIsTriedAFewTimes) {
  const FaultServer server(always("503 Service Unavailable", ""));
  FetchPolicy policy = local_policy();
  policy.max_retries = 2;
  EXPECT_EQ(fetch_failure(policy, server.url("/")).status(), 424);
  EXPECT_EQ(server.requests(), 3);
}

TEST(OriginFaults, AnOriginThatHealsIsBelieved) {
  std::atomic<int> count = 0;
  const FaultServer server(
      [&](Exchange& exchange) { exchange.reply(count++ == 0 ? "500 Oops" : "200 OK", "healed"); });
  EXPECT_EQ(fetch(local_policy(), server.url("/")), "healed");

  std::atomic<bool> is_well = false;
  const FaultServer other(
      [&](Exchange& exchange) { exchange.reply(is_well ? "200 OK" : "404 Not Found", "healed"); });
  const MediaFetcher fetcher(local_policy());
  EXPECT_THROW(fetcher.fetch(other.url("/")), Error);
  is_well = true;
  EXPECT_EQ(to_text(fetcher.fetch(other.url("/"))), "healed");
}

TEST(OriginFaults, AnAnswerWithoutDataIsAFailure) {
  const FaultServer empty(always("200 OK", ""));
  EXPECT_EQ(fetch_failure(local_policy(), empty.url("/")).status(), 424);
  const FaultServer no_content([](Exchange& e) { e.send("HTTP/1.1 204 No Content\r\n\r\n"); });
  EXPECT_EQ(fetch_failure(local_policy(), no_content.url("/")).status(), 424);
  const FaultServer not_modified([](Exchange& e) { e.send("HTTP/1.1 304 Nope\r\n\r\n"); });
  EXPECT_EQ(fetch_failure(local_policy(), not_modified.url("/")).status(), 424);
  const FaultServer partial(always("206 Partial Content", "half"));
  EXPECT_EQ(fetch_failure(local_policy(), partial.url("/")).status(), 424);
}

TEST(OriginFaults, AnErrorPageWithStatus200IsRefusedByTheDecoder) {
  const FaultServer server(always("200 OK", "<!doctype html><h1>Not here</h1>"));
  const Bytes bytes = MediaFetcher(local_policy()).fetch(server.url("/a.png"));
  EXPECT_EQ(decode_failure(bytes).status(), 415);
}

TEST(OriginFaults, ABodyShorterThanPromisedIsAFailure) {
  const FaultServer server([](Exchange& exchange) {
    exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort");
    exchange.close();
  });
  EXPECT_EQ(fetch_failure(local_policy(), server.url("/")).status(), 424);
  const FaultServer chunked([](Exchange& exchange) {
    exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n");
    exchange.close();
  });
  EXPECT_EQ(fetch_failure(local_policy(), chunked.url("/")).status(), 424);
}

TEST(OriginFaults, ABrokenConnectionIsAFailure) {
  const FaultServer server([](Exchange& exchange) {
    exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort");
    exchange.reset();
  });
  EXPECT_EQ(fetch_failure(local_policy(), server.url("/")).status(), 424);
  const FaultServer garbage([](Exchange& exchange) {
    exchange.send("SSH-2.0-whatever\r\n");
    exchange.close();
  });
  EXPECT_EQ(fetch_failure(local_policy(), garbage.url("/")).status(), 424);
}

TEST(OriginFaults, AnOriginThatIsNotThereIsAFailure) {
  std::string port;
  {
    const FaultServer server(always("200 OK", "x"));
    port = server.port();
  }
  EXPECT_EQ(fetch_failure(local_policy(), "http://127.0.0.1:" + port + "/").status(), 424);
  FetchPolicy policy = local_policy();
  policy.total_timeout = std::chrono::seconds(5);
  policy.max_retries = 0;
  EXPECT_EQ(fetch_failure(policy, "http://does-not-exist.invalid/").status(), 424);
}

void drip(Exchange& exchange) {
  exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
  while (exchange.send("x")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

TEST(OriginFaults, ASlowOriginIsGivenUpAfterTheTotalTimeout) {
  const FaultServer server(drip);
  FetchPolicy policy = local_policy();
  policy.total_timeout = std::chrono::milliseconds(200);
  EXPECT_EQ(fetch_failure(policy, server.url("/")).status(), 424);
}

TEST(OriginFaults, TheCallersOwnDeadlineIsATimeout) {
  const FaultServer server(drip);
  const MediaFetcher fetcher(local_policy());
  const auto deadline = Clock::now() + std::chrono::milliseconds(100);
  EXPECT_EQ(failure_of([&] { fetcher.fetch(server.url("/"), deadline); }).status(), 504);
}

TEST(OriginFaults, ACallThatIsStoppedLeaves) {
  std::mutex mutex;
  std::condition_variable arrived;
  bool is_waiting = false;
  const FaultServer server([&](Exchange& exchange) {
    {
      const std::lock_guard lock(mutex);
      is_waiting = true;
    }
    arrived.notify_all();
    exchange.wait_for_end();
  });
  const MediaFetcher fetcher(local_policy());
  ErrorCode code = ErrorCode::internal;
  std::jthread caller([&](std::stop_token stop) {
    code = failure_of([&] { fetcher.fetch(server.url("/"), for_ever, stop); }).code;
  });
  {
    std::unique_lock lock(mutex);
    arrived.wait(lock, [&] { return is_waiting; });
  }
  caller.request_stop();
  caller.join();
  EXPECT_EQ(code, ErrorCode::cancelled);
}

TEST(DownloadLimit, IsExactAndNeverCutsShort) {
  FetchPolicy policy = local_policy();
  policy.max_item_bytes = 100'000;
  const FaultServer server([](Exchange& exchange) {
    exchange.reply("200 OK", std::string(std::stoul(exchange.path().substr(1)), 'x'));
  });
  EXPECT_EQ(fetch(policy, server.url("/99999")).size(), 99'999u);
  EXPECT_EQ(fetch(policy, server.url("/100000")).size(), 100'000u);
  EXPECT_EQ(fetch_failure(policy, server.url("/100001")).status(), 413);
  EXPECT_EQ(server.requests(), 3);
}

TEST(DownloadLimit, HoldsForBodiesThatDoNotSayHowLongTheyAre) {
  FetchPolicy policy = local_policy();
  policy.max_item_bytes = 100'000;
  std::atomic<std::size_t> sent = 0;
  const FaultServer server([&](Exchange& exchange) {
    exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    const std::string chunk = "1000\r\n" + std::string(4096, 'x') + "\r\n";
    while (exchange.send(chunk)) sent += 4096;
  });
  EXPECT_EQ(fetch_failure(policy, server.url("/")).status(), 413);
  EXPECT_LT(sent, 32u << 20);  // what socket buffers may hold
}

TEST(DownloadLimit, TheBodyOfAnErrorIsAnErrorAndNotTooLarge) {
  FetchPolicy policy = local_policy();
  policy.max_item_bytes = 1000;
  const FaultServer server(always("404 Not Found", std::string(1'000'000, 'x')));
  const Failure failure = fetch_failure(policy, server.url("/"));
  EXPECT_EQ(failure.status(), 424);
  EXPECT_NE(failure.message.find("404"), std::string::npos);
}

TEST(DownloadLimit, ContentLengthIsTheEndOfTheBody) {
  const FaultServer server([](Exchange& exchange) {
    exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxyz");
    exchange.close();
  });
  EXPECT_EQ(fetch(local_policy(), server.url("/")), "x");
}

TEST(Redirects, AreFollowedOnTheSameHost) {
  const FaultServer server([](Exchange& exchange) {
    if (exchange.path() == "/old") return exchange.redirect("/dir/newer");
    if (exchange.path() == "/dir/newer") return exchange.redirect("newest", "308 Permanent");
    exchange.reply("200 OK", exchange.path());
  });
  EXPECT_EQ(fetch(local_policy(), server.url("/old")), "/dir/newest");
}

TEST(Redirects, EndSomewhere) {
  const FaultServer server([](Exchange& exchange) { exchange.redirect("/again"); });
  FetchPolicy policy = local_policy();
  policy.max_redirects = 3;
  EXPECT_EQ(fetch_failure(policy, server.url("/")).status(), 424);
  EXPECT_EQ(server.requests(), 4);
  const FaultServer nowhere([](Exchange& exchange) { exchange.reply("302 Found", ""); });
  EXPECT_EQ(fetch_failure(policy, nowhere.url("/")).status(), 424);
}

TEST(Redirects, LeadToHttpOnly) {
  for (const char* target : {"file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1:70/_",
                             "data:image/png;base64,AAAA", "http://user:secret@127.0.0.1/"}) {
    const FaultServer server([&](Exchange& exchange) { exchange.redirect(target); });
    EXPECT_EQ(fetch_failure(local_policy(), server.url("/")).status(), 424) << target;
  }
}

TEST(Redirects, AreHeldToTheDomainList) {
  const FaultServer canary(always("200 OK", "secret"));
  const FaultServer server([&](Exchange& exchange) {
    exchange.redirect(exchange.path() == "/out" ? "http://localhost:" + canary.port() + "/"
                                                : canary.url("/"));
  });
  FetchPolicy policy = local_policy();
  policy.allowed_media_domains = {"127.0.0.1"};
  EXPECT_EQ(fetch(policy, server.url("/in")), "secret");
  const int before = canary.connections();
  EXPECT_EQ(fetch_failure(policy, server.url("/out")).status(), 403);
  EXPECT_EQ(canary.connections(), before);
}

TEST(ForbiddenAddresses, NoSpellingOfLoopbackReachesAServerThere) {
  const FaultServer canary(always("200 OK", "secret"));
  const std::string port = ":" + canary.port() + "/";
  for (const std::string host : {"127.0.0.1",
                                 "127.1",
                                 "127.0.1",
                                 "127.255.255.254",
                                 "2130706433",
                                 "0x7f000001",
                                 "0x7f.1",
                                 "0177.0.0.1",
                                 "017700000001",
                                 "127.0.0.1.",
                                 "0",
                                 "0.0.0.0",
                                 "[::1]",
                                 "[::]",
                                 "[0:0:0:0:0:0:0:1]",
                                 "[::ffff:127.0.0.1]",
                                 "[::ffff:7f00:1]",
                                 "[::127.0.0.1]",
                                 "[64:ff9b::127.0.0.1]",
                                 "[2002:7f00:1::]",
                                 "[fe80::1%25lo]",
                                 "localhost",
                                 "LOCALHOST.",
                                 "ip6-localhost",
                                 "%6c%6f%63%61%6chost",
                                 "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1"}) {
    const Failure failure = fetch_failure({}, "http://" + host + port);
    EXPECT_TRUE(failure.status() == 403 || failure.status() == 424 || failure.status() == 400)
        << host << " " << failure.status();
  }
  EXPECT_EQ(canary.connections(), 0);
}

// What a name resolves to counts, whatever was said when it was looked at: the check is made for
// the socket that is about to be opened.
TEST(ForbiddenAddresses, ANameThatResolvesToLoopbackIsRefusedAtTheSocket) {
  const FaultServer canary(always("200 OK", "secret"));
  const HttpFetcher fetcher({}, {"public.example:" + canary.port() + ":127.0.0.1"});
  const std::string url = "http://public.example:" + canary.port() + "/";
  const Failure failure = failure_of([&] { fetcher.fetch(url, for_ever, {}); });
  EXPECT_EQ(failure.status(), 424);
  EXPECT_EQ(canary.connections(), 0);

  FetchPolicy open = local_policy();
  open.allowed_media_domains = {"public.example"};
  const HttpFetcher allowed(open, {"public.example:" + canary.port() + ":127.0.0.1"});
  EXPECT_EQ(to_text(allowed.fetch(url, for_ever, {})), "secret");
}

// A stranger must not learn which names lead somewhere inside. (No name has a part this long, so
// nobody need be asked for it.)
TEST(ForbiddenAddresses, PrivateNamesAndNamesThatAreNotThereAreAnsweredAlike) {
  const FaultServer canary(always("200 OK", "secret"));
  const HttpFetcher fetcher({}, {"inside.example:" + canary.port() + ":127.0.0.1"});
  const auto answer_to = [&](const std::string& host) {
    return failure_of([&] { fetcher.fetch("http://" + host + ":" + canary.port(), for_ever, {}); });
  };
  const Failure nowhere = answer_to(std::string(64, 'x') + ".example");
  for (const std::string host : {"inside.example", "localhost"}) {
    const Failure inside = answer_to(host);
    EXPECT_EQ(inside.status(), nowhere.status()) << host;
    EXPECT_EQ(inside.message, nowhere.message) << host;
  }
  EXPECT_EQ(nowhere.status(), 424) << "to be tried again, as after an outage of the resolver";
  EXPECT_EQ(answer_to("127.0.0.1").status(), 403) << "which the client wrote himself";
  EXPECT_EQ(canary.connections(), 0);
}

TEST(ForbiddenAddresses, WherePrivateMediaIsAllowedAMissingNameIsAnOriginOutOfReach) {
  EXPECT_EQ(fetch_failure(local_policy(), "http://" + std::string(64, 'x') + ".example/").status(),
            424);
}

TEST(ForbiddenAddresses, BeingOnTheDomainListDoesNotOpenThem) {
  const FaultServer canary(always("200 OK", "secret"));
  FetchPolicy policy;
  policy.allowed_media_domains = {"public.example", "127.0.0.1"};
  const HttpFetcher fetcher(policy, {"public.example:" + canary.port() + ":127.0.0.1"});
  for (const auto& [host, status] : {std::pair("public.example", 424), {"127.0.0.1", 403}}) {
    const std::string url = std::string("http://") + host + ":" + canary.port() + "/";
    EXPECT_EQ(failure_of([&] { fetcher.fetch(url, for_ever, {}); }).status(), status);
  }
  EXPECT_EQ(canary.connections(), 0);
}

}  // namespace
}  // namespace vitrove::test
