#include "preprocess/patch_writer.h"

#include <algorithm>
#include <utility>

#include "base/large_vector.h"

namespace vitrove {

Tensor patch_tensor(std::string name, const Grid& grid, const PatchParams& params) {
  const std::int64_t patch_floats =
      std::int64_t{3} * params.temporal_patch_size * params.patch_size * params.patch_size;
  const std::int64_t patches = std::int64_t{grid.t} * grid.h * grid.w;
  return {std::move(name),
          {patches, patch_floats},
          make_large_vector<float>(static_cast<std::size_t>(patches * patch_floats))};
}

PatchWriter::PatchWriter(const PatchParams& params)
    : patch_(params.patch_size), temporal_(params.temporal_patch_size), merge_(params.merge_size) {
  for (std::size_t channel = 0; channel < tables_.size(); ++channel) {
    tables_[channel] = make_channel_table(params.normalization, channel);
  }
}

std::size_t PatchWriter::step_floats(const Size& size) const {
  return 3 * temporal_ * size.width * size.height;
}

void PatchWriter::write_step(std::span<const RgbImage* const> frames, std::span<float> out) const {
  const std::size_t block = patch_ * merge_;
  const std::size_t patch_floats = 3 * temporal_ * patch_ * patch_;
  float* to = out.data();
  for (std::size_t top = 0; top < frames.front()->height; top += block) {
    for (std::size_t left = 0; left < frames.front()->width; left += block) {
      for (std::size_t i = 0; i < merge_ * merge_; ++i, to += patch_floats) {
        write_patch(frames, top + i / merge_ * patch_, left + i % merge_ * patch_, to);
      }
    }
  }
}

void PatchWriter::write_patch(std::span<const RgbImage* const> frames, std::size_t top,
                              std::size_t left, float* out) const {
  const std::size_t plane = patch_ * patch_;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const ChannelTable& table = tables_[channel];
    for (std::size_t t = 0; t < temporal_; ++t, out += plane) {
      if (t > 0 && frames[t] == frames[t - 1]) {
        std::copy_n(out - plane, plane, out);
        continue;
      }
      float* to = out;
      for (std::size_t y = 0; y < patch_; ++y, to += patch_) {
        const std::uint8_t* from = frames[t]->row(top + y) + 3 * left + channel;
        for (std::size_t x = 0; x < patch_; ++x) to[x] = table[from[3 * x]];
      }
    }
  }
}

}  // namespace vitrove
