#include "media/downmix.h"

#include <cmath>
#include <cstring>

namespace vitrove {
namespace {

float to_float(std::uint8_t sample) { return (static_cast<float>(sample) - 128.0F) / 128.0F; }
float to_float(std::int16_t sample) { return static_cast<float>(sample) / 32768.0F; }
float to_float(std::int32_t sample) { return static_cast<float>(sample) / 2147483648.0F; }
float to_float(float sample) { return sample; }
float to_float(double sample) { return static_cast<float>(sample); }

template <typename Sample>
void add_channels(const AVFrame& frame, std::vector<float>& mono) {
  const auto channels = static_cast<std::size_t>(frame.ch_layout.nb_channels);
  const bool is_planar = av_sample_fmt_is_planar(static_cast<AVSampleFormat>(frame.format)) != 0;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const std::uint8_t* from = frame.extended_data[is_planar ? channel : 0];
    for (std::size_t i = 0; i < mono.size(); ++i) {
      Sample sample;
      std::memcpy(&sample, from + sizeof sample * (is_planar ? i : i * channels + channel),
                  sizeof sample);
      mono[i] += to_float(sample);
    }
  }
  const auto count = static_cast<float>(channels);
  for (float& sample : mono) sample /= count;
}

bool add_all(const AVFrame& frame, std::vector<float>& mono) {
  switch (av_get_packed_sample_fmt(static_cast<AVSampleFormat>(frame.format))) {
    case AV_SAMPLE_FMT_U8:
      add_channels<std::uint8_t>(frame, mono);
      return true;
    case AV_SAMPLE_FMT_S16:
      add_channels<std::int16_t>(frame, mono);
      return true;
    case AV_SAMPLE_FMT_S32:
      add_channels<std::int32_t>(frame, mono);
      return true;
    case AV_SAMPLE_FMT_FLT:
      add_channels<float>(frame, mono);
      return true;
    case AV_SAMPLE_FMT_DBL:
      add_channels<double>(frame, mono);
      return true;
    default:
      return false;
  }
}

}  // namespace

void downmix(const AVFrame& frame, std::vector<float>& mono) {
  mono.assign(static_cast<std::size_t>(frame.nb_samples), 0.0F);
  if (frame.ch_layout.nb_channels <= 0 || !add_all(frame, mono)) {
    throw Error(ErrorCode::unsupported_format, "this kind of samples is not supported");
  }
  for (const float sample : mono) {
    if (std::isfinite(sample)) continue;
    throw Error(ErrorCode::invalid_argument, "the sound has samples that are no finite numbers");
  }
}

}  // namespace vitrove
