#include "vitrove/error.h"

#include <set>

#include <gtest/gtest.h>

namespace vitrove {
namespace {

struct Meaning {
  ErrorCode code;
  std::string_view name;
  int status;
};

constexpr Meaning meanings[] = {
    {ErrorCode::invalid_argument, "invalid_argument", 400},
    {ErrorCode::unauthorized, "unauthorized", 401},
    {ErrorCode::forbidden, "forbidden", 403},
    {ErrorCode::not_found, "not_found", 404},
    {ErrorCode::too_large, "too_large", 413},
    {ErrorCode::unsupported_format, "unsupported_format", 415},
    {ErrorCode::media_fetch_failed, "media_fetch_failed", 424},
    {ErrorCode::queue_full, "queue_full", 429},
    {ErrorCode::cancelled, "cancelled", 499},
    {ErrorCode::internal, "internal", 500},
    {ErrorCode::unavailable, "unavailable", 503},
    {ErrorCode::deadline_exceeded, "deadline_exceeded", 504},
};

TEST(Error, EachCodeHasTheNameAndStatusThatClientsKnow) {
  for (const Meaning& meaning : meanings) {
    EXPECT_EQ(to_string(meaning.code), meaning.name);
    EXPECT_EQ(http_status(meaning.code), meaning.status) << meaning.name;
  }
}

TEST(Error, NoTwoCodesShareANameOrAStatus) {
  std::set<std::string_view> names;
  std::set<int> statuses;
  for (const Meaning& meaning : meanings) {
    names.insert(to_string(meaning.code));
    statuses.insert(http_status(meaning.code));
  }
  EXPECT_EQ(names.size(), std::size(meanings));
  EXPECT_EQ(statuses.size(), std::size(meanings));
}

TEST(Error, KeepsTheDetailApartFromTheMessage) {
  const Error error(ErrorCode::not_found, "a file is missing", "/secret/path");
  EXPECT_STREQ(error.what(), "a file is missing");
  EXPECT_EQ(error.detail(), "/secret/path");
  EXPECT_EQ(error.item(), -1);
}

TEST(Error, ForItemNamesTheItemAndKeepsTheRest) {
  const Error error = Error(ErrorCode::too_large, "too big", "42 MB").for_item(3);
  EXPECT_EQ(error.code(), ErrorCode::too_large);
  EXPECT_STREQ(error.what(), "too big");
  EXPECT_EQ(error.detail(), "42 MB");
  EXPECT_EQ(error.item(), 3);
}

}  // namespace
}  // namespace vitrove
