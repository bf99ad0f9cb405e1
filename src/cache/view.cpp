#include <utility>

#include "cache/controller_impl.h"

namespace vitrove {

EmbeddingView::EmbeddingView(EmbeddingView&& other) noexcept
    : entry_(std::exchange(other.entry_, nullptr)) {}

EmbeddingView& EmbeddingView::operator=(EmbeddingView&& other) noexcept {
  if (this != &other) {
    if (Entry* const entry = std::exchange(entry_, std::exchange(other.entry_, nullptr))) {
      entry->unpin();
    }
  }
  return *this;
}

EmbeddingView::~EmbeddingView() {
  if (entry_ != nullptr) entry_->unpin();
}

std::uint32_t EmbeddingView::rows() const { return entry_->rows; }
std::uint32_t EmbeddingView::dim() const { return entry_->dim; }
DType EmbeddingView::dtype() const { return entry_->dtype; }
Modality EmbeddingView::modality() const { return entry_->modality; }
std::uint64_t EmbeddingView::bytes() const { return entry_->payload_bytes(); }

std::chrono::microseconds EmbeddingView::encode_cost() const {
  return std::chrono::microseconds(entry_->details->header.encode_cost_us);
}

const SideData& EmbeddingView::side_data() const { return entry_->details->side.data; }

Digest256 EmbeddingView::model_fingerprint() const {
  return entry_->details->header.model_fingerprint;
}

Digest256 EmbeddingView::tenant() const { return entry_->details->header.tenant; }
EmbeddingKey EmbeddingView::stored_key() const { return entry_->key; }

std::span<const std::span<const std::byte>> EmbeddingView::runs() const { return entry_->runs; }
bool EmbeddingView::pooled() const { return entry_->pooled; }

void EmbeddingView::detach() {
  if (entry_ == nullptr || !entry_->pooled) return;
  EntryPin copy = entry_->core->make_detached(*entry_);
  std::exchange(entry_, copy.release())->unpin();
}

void EmbeddingView::release() noexcept {
  if (Entry* const entry = std::exchange(entry_, nullptr)) entry->unpin();
}

void EmbeddingView::release(const Completion& after) {
  const EntryPin pin(std::exchange(entry_, nullptr));  // goes in any case
  if (after) after();
}

}  // namespace vitrove
