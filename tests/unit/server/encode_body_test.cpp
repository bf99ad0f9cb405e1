#include "server/encode_body.h"

#include "support.h"

namespace vitrove::test {
namespace {

EncodeBody parse(const json& body, std::uint32_t max_items = 64) {
  std::string req_id;
  return parse_encode_body(body.dump(), max_items, req_id);
}

Failure refusal(const std::string& text) {
  return failure_of([&] {
    std::string req_id;
    parse_encode_body(text, 64, req_id);
  });
}

const json one_item = json::array({"data:,x"});
const std::string hash(64, 'a');

TEST(EncodeBody, HasDefaults) {
  const EncodeBody body = parse({{"mm_items", one_item}});
  EXPECT_EQ(body.req_id, "");
  EXPECT_EQ(body.num_parts, 1U);
  EXPECT_EQ(body.part_idx, 0U);
  EXPECT_EQ(body.form, ReturnForm::metadata);
  ASSERT_EQ(body.items.size(), 1U);
  EXPECT_EQ(body.items[0].url, "data:,x");
  EXPECT_FALSE(body.items[0].modality);
  EXPECT_FALSE(body.items[0].digest);
  EXPECT_EQ(body.items[0].mm_processor_kwargs, "");
}

TEST(EncodeBody, TakesNullForWhatIsNotGiven) {
  const EncodeBody body = parse({{"mm_items", one_item},
                                 {"modality", nullptr},
                                 {"req_id", nullptr},
                                 {"num_parts", nullptr},
                                 {"part_idx", nullptr},
                                 {"hashes", nullptr},
                                 {"mm_processor_kwargs", nullptr},
                                 {"return", nullptr}});
  EXPECT_EQ(body.num_parts, 1U);
}

TEST(EncodeBody, ItemFieldsOverrideTheRequests) {
  const EncodeBody body =
      parse({{"mm_items",
              {"data:,a",
               {{"url", "data:,b"}, {"modality", "video"}, {"mm_processor_kwargs", {{"fps", 2}}}}}},
             {"modality", "image"},
             {"mm_processor_kwargs", {{"fps", 1}, {"max_pixels", 100}}}});
  EXPECT_EQ(body.items[0].modality, Modality::image);
  EXPECT_EQ(json::parse(body.items[0].mm_processor_kwargs),
            (json{{"fps", 1}, {"max_pixels", 100}}));
  EXPECT_EQ(body.items[1].modality, Modality::video);
  EXPECT_EQ(json::parse(body.items[1].mm_processor_kwargs),
            (json{{"fps", 2}, {"max_pixels", 100}}));
}

// Doubles whose last digit a fast reader gets wrong, and integers at the edges.
TEST(EncodeBody, NumbersAreWhatAnyOtherReaderMakesOfThem) {
  for (const std::string number :
       {"0.26862954258918762", "0.48145466", "0.27577711", "1e-5", "123456789012345678", "-7",
        "18446744073709551615", "2.2250738585072014e-308", "1.7976931348623157e308", "-0.0"}) {
    const std::string kwargs = R"({"image_mean":[)" + number + "]}";
    std::string req_id;
    const EncodeBody body = parse_encode_body(
        R"({"mm_items":["data:,x"],"mm_processor_kwargs":)" + kwargs + "}", 64, req_id);
    EXPECT_EQ(body.items[0].mm_processor_kwargs, json::parse(kwargs).dump()) << number;
  }
}

TEST(EncodeBody, NumbersThatNoDoubleHoldsAreRefusedAsSuchAndTinyOnesAreZero) {
  for (const std::string& number :
       {std::string("1e400"), std::string("-1e400"), "1" + std::string(400, '0')}) {
    const Failure failure =
        refusal(R"({"mm_items":["data:,x"],"mm_processor_kwargs":{"fps":)" + number + "}}");
    EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
    EXPECT_NE(failure.message.find("number"), std::string::npos) << failure.message;
  }
  std::string req_id;
  const EncodeBody body = parse_encode_body(
      R"({"mm_items":["data:,x"],"mm_processor_kwargs":{"fps":1e-400}})", 64, req_id);
  EXPECT_EQ(body.items[0].mm_processor_kwargs, R"({"fps":0.0})");
}

// B83: so many values would take many times the memory of their text.
TEST(EncodeBody, MoreValuesThanItemsCanHaveAreRefusedWhileTheyAreRead) {
  std::string many = R"({"mm_items":[0)";
  for (int i = 0; i < 1'000'000; ++i) many += ",0";
  // Never closed: nobody may read on to the end.
  EXPECT_EQ(refusal(many).code, ErrorCode::too_large);
  std::string named = R"({"mm_items":["data:,x"],"mm_processor_kwargs":{"a":1)";
  for (int i = 0; i < 100'000; ++i) named += ",\"" + std::to_string(i) + "\":[[]]";
  EXPECT_EQ(refusal(named).code, ErrorCode::too_large);
}

// Each item would get a copy.
TEST(EncodeBody, LongSettingsAreRefused) {
  const json long_ones = {{"x", std::string(16 * 1024, 'x')}};
  const json item = {{"url", "data:,x"}, {"mm_processor_kwargs", long_ones}};
  EXPECT_EQ(refusal(json{{"mm_items", one_item}, {"mm_processor_kwargs", long_ones}}.dump()).code,
            ErrorCode::too_large);
  const Failure of_item = refusal(json{{"mm_items", {"data:,x", item}}}.dump());
  EXPECT_EQ(of_item.code, ErrorCode::too_large);
  EXPECT_EQ(of_item.item, 1);
}

TEST(EncodeBody, TextIsReadAsItIsMeant) {
  std::string req_id;
  const EncodeBody body = parse_encode_body(
      R"({"mm_items":["data:,a\u00e9\n\"","data:,b"],"req\u005fid":"two"})", 64, req_id);
  EXPECT_EQ(body.items[0].url, "data:,a\u00e9\n\"");
  EXPECT_EQ(body.items[1].url, "data:,b");
  EXPECT_EQ(req_id, "two");
  EXPECT_EQ(refusal(R"({"mm_items":["data:,x"]} x)").code, ErrorCode::invalid_argument);
  EXPECT_EQ(refusal("{\"mm_items\":[\"data:,\xff\"]}").code, ErrorCode::invalid_argument);
}

TEST(EncodeBody, TakesDigestsFromItemsAndFromHashes) {
  const EncodeBody body = parse({{"mm_items", {"data:,a", {{"digest", hash}}, "data:,c"}},
                                 {"hashes", {hash, nullptr, nullptr}}});
  EXPECT_EQ(to_hex(body.items[0].digest.value()), hash);
  EXPECT_EQ(to_hex(body.items[1].digest.value()), hash);
  EXPECT_TRUE(body.items[1].url.empty());
  EXPECT_FALSE(body.items[2].digest);
}

TEST(EncodeBody, RefusesDigestsThatContradict) {
  const json items = json::array({{{"url", "data:,a"}, {"digest", hash}}});
  const Failure failure = failure_of([&] {
    parse({{"mm_items", items}, {"hashes", json::array({std::string(64, 'b')})}});
  });
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_EQ(failure.item, 0);
}

TEST(EncodeBody, RefusesUnknownFieldsByName) {
  EXPECT_NE(refusal(R"({"mm_items": ["data:,x"], "uuid": "mine"})").message.find("\"uuid\""),
            std::string::npos);
  const Failure in_item = refusal(R"({"mm_items": ["data:,x", {"url": "data:,x", "uuid": "m"}]})");
  EXPECT_NE(in_item.message.find("\"uuid\""), std::string::npos);
  EXPECT_EQ(in_item.item, 1);
  const Failure megabytes = refusal(json{{std::string(5'000'000, 'x'), 1}}.dump());
  EXPECT_LT(megabytes.message.size(), 200U);
}

TEST(EncodeBody, NamesTheFieldThatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "mm_items"},
      {R"({"mm_items": []})", "mm_items"},
      {R"({"mm_items": "x"})", "mm_items"},
      {R"({"mm_items": {"url": "x"}})", "mm_items"},
      {R"({"mm_items": [1]})", "item"},
      {R"({"mm_items": [null]})", "item"},
      {R"({"mm_items": [{}]})", "url"},
      {R"({"mm_items": [""]})", "url"},
      {R"({"mm_items": [{"url": 5}]})", "url"},
      {R"({"mm_items": [{"digest": "12"}]})", "digest"},
      {R"({"mm_items": [{"digest": 12}]})", "digest"},
      {R"({"mm_items": ["x"], "modality": "smell"})", "modality"},
      {R"({"mm_items": ["x"], "modality": 1})", "modality"},
      {R"({"mm_items": ["x"], "req_id": 7})", "req_id"},
      {R"({"mm_items": ["x"], "req_id": ""})", "req_id"},
      {R"({"mm_items": ["x"], "req_id": "a\r\nb"})", "req_id"},
      {R"({"mm_items": ["x"], "req_id": "../../\u0000"})", "req_id"},
      {R"({"mm_items": ["x"], "num_parts": 0})", "num_parts"},
      {R"({"mm_items": ["x"], "num_parts": -1})", "num_parts"},
      {R"({"mm_items": ["x"], "num_parts": 1.5})", "num_parts"},
      {R"({"mm_items": ["x"], "num_parts": 1e30})", "num_parts"},
      {R"({"mm_items": ["x"], "num_parts": 99999999999999999999})", "num_parts"},
      {R"({"mm_items": ["x"], "part_idx": "0"})", "part_idx"},
      {R"({"mm_items": ["x"], "num_parts": 2, "part_idx": 2})", "part_idx"},
      {R"({"mm_items": ["x"], "hashes": "x"})", "hashes"},
      {R"({"mm_items": ["x"], "hashes": []})", "hashes"},
      {R"({"mm_items": ["x"], "hashes": [null, null]})", "hashes"},
      {R"({"mm_items": ["x"], "hashes": [3]})", "hashes"},
      {R"({"mm_items": ["x"], "mm_processor_kwargs": []})", "mm_processor_kwargs"},
      {R"({"mm_items": ["x"], "return": "pickle"})", "return"},
      {R"({"mm_items": ["x"], "return": 1})", "return"},
  };
  for (const auto& [text, field] : cases) {
    const Failure failure = refusal(text);
    EXPECT_EQ(failure.code, ErrorCode::invalid_argument) << text;
    EXPECT_NE(failure.message.find(field), std::string::npos) << text << ": " << failure.message;
  }
}

TEST(EncodeBody, RefusesWhatIsNotAJsonObject) {
  for (const std::string text :
       {"", "{", "[]", "null", "1", "\xff\xfe", "{\"mm_items\": [\"\xff\"]}", "{} {}",
        "{\"mm_items\": [\"x\"],}"}) {
    EXPECT_EQ(refusal(text).code, ErrorCode::invalid_argument) << text;
  }
}

// Readers do not agree on which of the two counts.
TEST(EncodeBody, RefusesAFieldThatIsThereTwice) {
  const std::pair<const char*, const char*> bodies[] = {
      {R"({"mm_items": ["data:,x"], "mm_items": ["data:,y"]})", "mm_items"},
      {R"({"mm_items": ["data:,x"], "mm_items": ["data:,x"]})", "mm_items"},
      {R"({"mm_items": [{"url": "data:,x", "url": "data:,y"}]})", "url"},
      {R"({"mm_items": ["data:,x"], "modality": null, "modality": "image"})", "modality"},
      {R"({"mm_items": ["data:,x"], "mm_processor_kwargs": {"size": {"a": 1, "\u0061": 2}}})", "a"},
  };
  for (const auto& [body, field] : bodies) {
    const Failure failure = refusal(body);
    EXPECT_EQ(failure.code, ErrorCode::invalid_argument) << body;
    EXPECT_EQ(failure.message, "the field \"" + std::string(field) + "\" is there twice");
  }
  std::string req_id;
  EXPECT_NO_THROW(parse_encode_body(
      R"({"mm_items": [{"url": "data:,x"}, {"url": "data:,y"}], "mm_processor_kwargs": {"url": 1}})",
      64, req_id))
      << "the same name in several objects";
}

TEST(EncodeBody, RefusesDeepNestingWithoutFollowingIt) {
  EXPECT_EQ(refusal("{\"mm_items\":" + std::string(1'000'000, '[')).code,
            ErrorCode::invalid_argument);
}

TEST(EncodeBody, BoundsTheNumberOfItems) {
  const json items = {"data:,1", "data:,2", "data:,3"};
  EXPECT_EQ(parse({{"mm_items", items}}, 3).items.size(), 3U);
  EXPECT_EQ(failure_of([&] { parse({{"mm_items", items}}, 2); }).code, ErrorCode::too_large);
}

TEST(EncodeBody, KeepsTheRequestIdWhenALaterFieldIsBad) {
  std::string req_id = "made-up";
  failure_of([&] { parse_encode_body(R"({"req_id": "mine", "mm_items": 5})", 64, req_id); });
  EXPECT_EQ(req_id, "mine");
}

}  // namespace
}  // namespace vitrove::test
