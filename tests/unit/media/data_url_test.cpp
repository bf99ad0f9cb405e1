// data: URLs in every form that clients send (field case B08).
#include <random>

#include "media/base64.h"
#include "support.h"
#include "vitrove/fetch.h"

namespace vitrove::test {
namespace {

// Plain and slow, to compare with.
std::string encode_base64(std::string_view text) {
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  unsigned bits = 0;
  int held = 0;
  for (const char c : text) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (held += 8; held >= 6; held -= 6) result += alphabet[bits >> (held - 6) & 63];
  }
  if (held > 0) result += alphabet[bits << (6 - held) & 63];
  while (result.size() % 4 != 0) result += '=';
  return result;
}

std::string without_padding(std::string text) {
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::string wrapped(std::string_view text, std::string_view line_break) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); at += 76) {
    result.append(text.substr(at, 76)).append(line_break);
  }
  return result;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    result += '%';
    result += digits[byte >> 4];
    result += digits[byte & 15];
  }
  return result;
}

Bytes fetch(std::string_view url) { return MediaFetcher({}).fetch(url); }

Failure fetch_failure(std::string_view url) {
  return failure_of([&] { fetch(url); });
}

TEST(DataUrl, EveryWrappingOfTheSameBytesGivesTheSameBytes) {
  const Bytes bytes = picture("plain.jpg");
  const std::string raw = to_text(bytes);
  const std::string base64 = encode_base64(raw);
  const std::vector<std::string> urls{
      "data:image/jpeg;base64," + base64,
      "data:image/png;base64," + base64,  // the type lies
      "data:;base64," + base64,
      "DATA:image/jpeg;BASE64," + base64,
      "data:image/jpeg;charset=utf-8;base64," + base64,
      "data:image/jpeg;name=a.jpg;x=y;base64," + base64,
      "data:image/jpeg; base64 ," + base64,
      "data:image/jpeg;base64," + without_padding(base64),
      "data:image/jpeg;base64," + wrapped(base64, "\n"),
      "data:image/jpeg;base64," + wrapped(base64, "\r\n"),
      "data:image/jpeg;base64, \t" + base64 + " \n",
      "data:image/jpeg;base64," + percent_encode(base64),
      "data:image/jpeg," + percent_encode(raw),
      "data:," + percent_encode(raw),
  };
  for (const std::string& url : urls) {
    EXPECT_EQ(fetch(url), bytes) << url.substr(0, 50);
  }
}

TEST(DataUrl, WithoutBase64TheDataArePercentEncodedText) {
  EXPECT_EQ(to_text(fetch("data:,A%20brief%20note")), "A brief note");
  EXPECT_EQ(to_text(fetch("data:text/plain;base64=no,x+y==")), "x+y==");
}

TEST(DataUrl, MalformedOnesAreRefused) {
  for (const std::string_view url : {"data:",
                                     "data:image/png;base64",
                                     "data:image/png;base64,",
                                     "data:,",
                                     "data:;base64, \n",
                                     "data:;base64,Zm9v!!",
                                     "data:;base64,Zm9vZ",
                                     "data:;base64,Zm9v=",
                                     "data:;base64,Zg=",
                                     "data:;base64,Zg===",
                                     "data:;base64,=Zg=",
                                     "data:;base64,Zm=v",
                                     "data:;base64,Zh==",
                                     "data:;base64,Zm9-",
                                     "data:;base64,Zm9_",
                                     "data:;base64,Zm9v%",
                                     "data:,%4",
                                     "data:,%zz",
                                     "data:;base64,====",
                                     "data:;base64,Zm9vZg==Zm9v"}) {
    const Failure failure = fetch_failure(url);
    EXPECT_EQ(failure.status(), 400) << url;
    expect_safe_for_clients(failure.message);
  }
}

TEST(DataUrl, ALimitIsALimitToTheByte) {
  FetchPolicy policy;
  policy.max_item_bytes = 1000;
  const MediaFetcher fetcher(policy);
  const auto url_of = [](std::size_t size) {
    return "data:;base64," + encode_base64(std::string(size, 'x'));
  };
  EXPECT_EQ(fetcher.fetch(url_of(1000)).size(), 1000u);
  EXPECT_EQ(failure_of([&] { fetcher.fetch(url_of(1001)); }).status(), 413);
  EXPECT_EQ(failure_of([&] { fetcher.fetch(url_of(100'000)); }).status(), 413);
  EXPECT_EQ(fetcher.fetch("data:," + percent_encode(std::string(1000, 'x'))).size(), 1000u);
}

TEST(Base64, DecodesWhatWasEncodedWhateverTheLength) {
  std::mt19937 random(7);
  for (std::size_t size = 0; size < 300; ++size) {
    std::string raw(size, '\0');
    for (char& c : raw) c = static_cast<char>(random());
    std::string text = encode_base64(raw);
    ASSERT_EQ(to_text(decode_base64(text).value()), raw);
    ASSERT_EQ(to_text(decode_base64(without_padding(text)).value()), raw);
    for (int i = 0; i < 5; ++i) {
      text.insert(text.begin() + static_cast<std::ptrdiff_t>(random() % (text.size() + 1)), '\n');
    }
    ASSERT_EQ(to_text(decode_base64(text).value()), raw);
  }
}

TEST(Base64, RefusesEveryCharacterOutsideItsAlphabetAtEveryPlace) {
  const std::string good = "QUJDREVGR0hJSktM";
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int c = 0; c < 256; ++c) {
      std::string text = good;
      text[at] = static_cast<char>(c);
      const bool is_alphabet = std::isalnum(c) != 0 || c == '+' || c == '/';
      const bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
      const auto decoded = decode_base64(text);
      if (is_alphabet) {
        EXPECT_TRUE(decoded) << text;
      } else if (!is_blank && !(c == '=' && at + 1 == text.size())) {
        EXPECT_FALSE(decoded) << text;
      }
    }
  }
}

TEST(MediaUrl, OtherSchemesAndBarePathsAreRefused) {
  for (const std::string_view url :
       {"", "picture.png", "/etc/passwd", "\\\\host\\share\\a.png", "C:\\a.png", "ftp://host/a.png",
        "gopher://127.0.0.1:70/", "javascript:alert(1)", "s3://bucket/a.png", "//host/a.png",
        " data:,x", "dat:a,x"}) {
    const Failure failure = fetch_failure(url);
    EXPECT_EQ(failure.status(), 400) << url;
    expect_safe_for_clients(failure.message);
  }
}

TEST(MediaUrl, LogsShowNoPayloadNoPasswordAndNoQuery) {
  EXPECT_EQ(redact_media_url("data:image/png;base64,AAAA"), "data:...");
  EXPECT_EQ(redact_media_url("https://user:secret@host/a.png?token=secret#x"),
            "https://host/a.png");
  EXPECT_EQ(redact_media_url("https://host/a@b.png"), "https://host/a@b.png");
  EXPECT_EQ(redact_media_url("http:user:secret@host"), "(malformed URL)");
  EXPECT_EQ(redact_media_url("file:///data/a.png"), "file:///data/a.png");
}

}  // namespace
}  // namespace vitrove::test
