// ValueVerifier: whether a value that a store delivered is what it should be.
//
// It watches the pieces of the get where the store reports them, so that checksum and finiteness
// are computed while the bytes are in the CPU's cache, and reads whatever it did not see
// afterwards. Nothing in the value is believed before the header's own checksum held, and nothing
// is taken for an embedding before everything held (field cases B37, B45, B56, B86).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vitrove/embedding_store.h"
#include "vitrove/side_data.h"
#include "vitrove/value_format.h"

namespace vitrove {

// What a reader wants under a key. Without `expected` (GET /embeddings/{key}) only key and tenant.
struct WantedValue {
  EmbeddingKey key;
  std::optional<ValueExpectation> expected;
  std::optional<Digest256> tenant;

  static WantedValue of(const ValueExpectation& expectation) {
    return {expectation.key, expectation, std::nullopt};
  }
};

struct VerifiedValue {
  Reject reject = Reject::none;
  ValueHeader header;
  SideData side;
  std::vector<std::byte> side_bytes;
};

class ValueVerifier {
 public:
  // `buffers`: the 256 bytes of the header first, then the payload. They outlive the verifier.
  ValueVerifier(WantedValue wanted, std::span<const MutableBuffer> buffers);

  // As PieceObserver::on_piece.
  void on_piece(std::uint64_t offset, ConstBuffer piece) noexcept;
  // After the get answered ok.
  VerifiedValue finish();

 private:
  // Finiteness of rows that come in pieces of any size.
  class FiniteScan {
   public:
    void begin(DType dtype) {
      dtype_ = dtype;
      carried_ = 0;
      finite_ = true;
    }
    void update(ConstBuffer bytes);
    bool finite() const { return finite_; }

   private:
    DType dtype_ = DType::float32;
    std::array<std::byte, 4> carry_{};
    std::size_t carried_ = 0;
    bool finite_ = true;
  };

  void begin_payload();
  void take_payload(ConstBuffer piece);
  bool lies_in_buffers(std::uint64_t offset, ConstBuffer piece) const;
  Reject check_header();
  bool read_side();

  const WantedValue wanted_;
  const std::span<const MutableBuffer> buffers_;
  std::uint64_t total_ = 0;

  std::uint64_t seen_ = 0;  // bytes from the start of the value that were watched
  bool trusted_ = true;     // pieces came as promised
  VerifiedValue value_;
  PayloadChecksum checksum_;
  FiniteScan scan_;
  std::uint64_t rows_left_ = 0;  // bytes of rows that the scan has not seen
};

}  // namespace vitrove
