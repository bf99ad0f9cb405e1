// JPEGs that are whole and of a kind that nobody here decodes: refused for that, and not as
// damaged.
#include "support.h"

namespace vitrove::test {
namespace {

struct FramePatch {
  const char* kind;
  std::size_t at;  // behind the marker's first byte
  std::string bytes;
};

Bytes with_frame(const FramePatch& patch) {
  Bytes bytes = picture("plain.jpg");
  const std::size_t frame = find(bytes, "\xff\xc0");
  std::memcpy(bytes.data() + frame + patch.at, patch.bytes.data(), patch.bytes.size());
  return bytes;
}

TEST(JpegKinds, ThatNobodyDecodesAreNamedAsSuch) {
  const std::vector<FramePatch> table{{"12 bits", 4, "\x0c"},
                                      {"lossless", 1, "\xc3"},
                                      {"hierarchical", 1, "\xc5"},
                                      {"hierarchical and progressive", 1, "\xc6"},
                                      {"lossless and arithmetic", 1, "\xcb"},
                                      {"a height that comes later", 5, std::string(2, '\0')}};
  for (const FramePatch& patch : table) {
    SCOPED_TRACE(patch.kind);
    const Failure failure = decode_failure(with_frame(patch));
    EXPECT_EQ(failure.status(), 415);
    EXPECT_EQ(failure.message, "this kind of jpeg is not supported");
    EXPECT_FALSE(failure.detail.empty());
  }
}

TEST(JpegKinds, ThatDoNotExistAreDamaged) {
  const std::vector<FramePatch> table{{"77 bits", 4, "\x4d"},
                                      {"no width", 7, std::string(2, '\0')},
                                      {"no size", 5, std::string(4, '\0')}};
  for (const FramePatch& patch : table) {
    SCOPED_TRACE(patch.kind);
    EXPECT_EQ(decode_failure(with_frame(patch)).status(), 400);
  }
}

// A baseline scan has no choice; other numbers than none are damage.
TEST(JpegKinds, ScanParametersThatAreNeitherRightNorMissingAreDamage) {
  Bytes bytes = picture("scan_of_zeros.jpg");
  const std::size_t scan = find(bytes, "\xff\xda");
  bytes[scan + 5 + 2 * 3] = std::byte{5};
  EXPECT_EQ(decode_failure(bytes).status(), 400);
}

}  // namespace
}  // namespace vitrove::test
