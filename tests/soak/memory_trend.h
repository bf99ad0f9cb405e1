// MemoryTrend: whether memory grows, however slowly, over a soak of any length.
//
// A fixed allowance over what was there after the warm-up lets a slow leak pass whenever the soak
// is short. So the line through all that was seen is looked at as well: Theil and Sen's, whose
// slope is the median of the slopes between any two samples, so that peaks do not bend it. Memory
// that rises in steps and stays rises too little for it, and is left to the allowance.
//
// Holds a bounded number of samples: when there are too many, every second one goes, and from then
// on every second one is taken.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vitrove::soak {

class MemoryTrend {
 public:
  void add(double seconds, std::uint64_t bytes) {
    if (seen_++ % stride_ != 0) return;
    samples_.push_back({seconds, static_cast<double>(bytes)});
    if (samples_.size() < most_samples) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < samples_.size(); i += 2) samples_[kept++] = samples_[i];
    samples_.resize(kept);
    stride_ *= 2;
  }

  // From the first sample to the last.
  double seconds() const {
    return samples_.size() < 2 ? 0 : samples_.back().seconds - samples_.front().seconds;
  }

  // By how many bytes the line rises in that time.
  double growth() const {
    std::vector<double> slopes;
    for (std::size_t a = 0; a < samples_.size(); ++a) {
      for (std::size_t b = a + 1; b < samples_.size(); ++b) {
        const double time = samples_[b].seconds - samples_[a].seconds;
        if (time > 0) slopes.push_back((samples_[b].bytes - samples_[a].bytes) / time);
      }
    }
    if (slopes.empty()) return 0;
    const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
    std::nth_element(slopes.begin(), middle, slopes.end());
    return *middle * seconds();
  }

 private:
  static constexpr std::size_t most_samples = 512;
  struct Sample {
    double seconds = 0;
    double bytes = 0;
  };

  std::vector<Sample> samples_;
  std::size_t seen_ = 0;
  std::size_t stride_ = 1;
};

}  // namespace vitrove::soak
