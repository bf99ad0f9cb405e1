#include "preprocess/sound_processor.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "preprocess/json_text.h"
#include "preprocess/processed_size.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::int64_t most_mels = 1024;
constexpr std::int64_t highest_rate = 384'000;
constexpr std::int64_t longest_frame = 16'384;
constexpr std::int64_t longest_chunk = 3600;

void take_params(ParamTaker& taker, LogMelParams& params) {
  taker.take_fixed("feature_size", params.feature_size, 1, most_mels);
  taker.take_fixed("sampling_rate", params.sampling_rate, 1000, highest_rate);
  taker.take_fixed("hop_length", params.hop_length, 1, longest_frame);
  taker.take_fixed("n_fft", params.n_fft, 2, longest_frame);
  taker.take("chunk_length", params.chunk_length, [](const std::string& name, const auto& value) {
    return static_cast<std::uint32_t>(read_whole(name, value, 1, longest_chunk));
  });
  taker.take("padding_value", params.padding_value, read_number);
  taker.take("return_attention_mask", params.return_attention_mask, read_bool);
}

// What would change every value, and cannot be followed.
void refuse_others(ParamTaker& taker) {
  double dither = 0;
  taker.take("dither", dither, read_number);
  if (dither != 0) refuse_params("parameter dither must be 0: noise makes no two features alike");
  const nlohmann::json side = taker.take("padding_side");
  if (!side.is_null() && side != "right") refuse_param_type("padding_side", "right");
}

LogMelParams log_mel_params_from(const ResolvedParams& resolved) {
  const ResolvedReader reader(resolved);
  LogMelParams params;
  params.feature_size = reader.edge("feature_size");
  params.sampling_rate = reader.edge("sampling_rate");
  params.hop_length = reader.edge("hop_length");
  params.n_fft = reader.edge("n_fft");
  params.chunk_length = reader.edge("chunk_length");
  params.padding_value = reader.get<double>("padding_value");
  params.return_attention_mask = reader.get<bool>("return_attention_mask");
  return params;
}

// Frames whose middle is of the sound and not of the padding.
std::size_t sounding(std::size_t samples, const LogMelParams& params) {
  const std::size_t kept = std::min(samples, params.samples());
  return std::min((kept + params.hop_length - 1) / params.hop_length, params.frames());
}

SoundLength length_of(std::size_t samples, const LogMelParams& params) {
  const auto seconds = [&params](std::size_t count) {
    return static_cast<double>(count) / params.sampling_rate;
  };
  return {seconds(samples), seconds(std::min(samples, params.samples()))};
}

Tensor mask_tensor(std::string_view name, std::size_t ones, std::size_t frames) {
  std::vector<std::int64_t> mask(frames, 0);
  std::fill_n(mask.begin(), ones, 1);
  return {std::string(name), {static_cast<std::int64_t>(frames)}, std::move(mask)};
}

// Whisper's second convolution halves the frames; Qwen2-Audio's pooling halves them once more.
std::uint32_t whisper_tokens(std::size_t frames) {
  return static_cast<std::uint32_t>((frames + 1) / 2);
}
std::uint32_t qwen2_audio_tokens(std::size_t frames) { return whisper_tokens(frames) / 2; }

}  // namespace

std::optional<SoundFamily> find_sound_family(const std::string& extractor,
                                             const std::string& processor) {
  if (extractor != "WhisperFeatureExtractor") return std::nullopt;
  if (processor == "Qwen2AudioProcessor") {
    SoundFamily family{"qwen2_audio", 2, "feature_attention_mask", true, {}};
    family.params.return_attention_mask = true;
    return family;
  }
  return SoundFamily{"whisper", 2, "attention_mask", false, {}};
}

void apply_json(const nlohmann::json& object, ParamSource source, SoundFamily& family) {
  ParamTaker taker(object, source);
  LogMelParams& params = family.params;
  take_params(taker, params);
  refuse_others(taker);
  taker.finish(family.name);
  if (params.hop_length > params.n_fft) refuse_params("hop_length is larger than n_fft");
  if (params.n_fft / 2 >= params.samples()) refuse_params("chunk_length is shorter than a frame");
  // The reference's processor of this family asks for it whatever the file says.
  if (family.counts_mask) params.return_attention_mask = true;
}

ResolvedParams SoundProcessor::resolve(Modality modality, std::string_view kwargs) const {
  if (modality != Modality::audio) throw_no_such_modality(family_.name, modality);
  SoundFamily family = family_;
  apply_json(parse_object(kwargs, "mm_processor_kwargs"), ParamSource::request, family);
  const LogMelParams& params = family.params;
  // Sounds are filled up to that, so it is what the encode costs.
  if (params.chunk_length > most_seconds_) {
    refuse_processed_size(
        "a sound would become " + std::to_string(params.chunk_length) + " seconds", most_seconds_,
        processed_seconds);
  }
  ResolvedParams result;
  auto& values = result.values;
  values["feature_size"] = std::int64_t{params.feature_size};
  values["sampling_rate"] = std::int64_t{params.sampling_rate};
  values["hop_length"] = std::int64_t{params.hop_length};
  values["n_fft"] = std::int64_t{params.n_fft};
  values["chunk_length"] = std::int64_t{params.chunk_length};
  values["padding_value"] = params.padding_value;
  values["return_attention_mask"] = params.return_attention_mask;
  return result;
}

std::uint64_t SoundProcessor::bytes_beside(std::uint32_t, std::uint32_t,
                                           const ResolvedParams&) const {
  throw_no_such_modality(family_.name, Modality::image);
}

PreprocessedItem SoundProcessor::run(const RgbImage&, const ResolvedParams&) const {
  throw_no_such_modality(family_.name, Modality::image);
}

std::uint32_t SoundProcessor::audio_rate(const ResolvedParams& resolved) const {
  return log_mel_params_from(resolved).sampling_rate;
}

std::uint64_t SoundProcessor::audio_bytes_beside(std::uint64_t,
                                                 const ResolvedParams& resolved) const {
  const LogMelParams params = log_mel_params_from(resolved);
  const std::uint64_t a_frame = sizeof(float) * params.feature_size + sizeof(std::int64_t);
  return a_frame * params.frames() + log_mel_scratch_bytes(params);
}

PreprocessedItem SoundProcessor::run_audio(const AudioClip& clip,
                                           const ResolvedParams& resolved) const {
  const LogMelParams params = log_mel_params_from(resolved);
  if (clip.samples.empty()) throw Error(ErrorCode::invalid_argument, "the sound has no samples");
  const std::size_t frames = params.frames();
  const std::size_t ones = sounding(clip.samples.size(), params);
  PreprocessedItem item;
  item.modality = Modality::audio;
  item.tokens = family_.counts_mask ? qwen2_audio_tokens(ones) : whisper_tokens(frames);
  if (item.tokens == 0) {
    throw Error(ErrorCode::invalid_argument, "the sound is too short: its " +
                                                 std::to_string(clip.samples.size()) +
                                                 " samples make no token");
  }
  item.side.sound = length_of(clip.samples.size(), params);
  item.tensors.push_back({"input_features",
                          {std::int64_t{params.feature_size}, static_cast<std::int64_t>(frames)},
                          log_mel(clip.samples, params)});
  if (params.return_attention_mask) {
    item.tensors.push_back(mask_tensor(family_.mask_name, ones, frames));
  }
  return item;
}

std::vector<PipelineVersion> SoundProcessor::versions() const {
  return {{std::string(family_.name), family_.version}};
}

}  // namespace vitrove
