// Preprocessor: what a model family does between pixels and tensors.
//
// Families come from the model's own preprocessor_config.json, by `image_processor_type`,
// `feature_extractor_type` or `video_processor_type` (also the names ending in "Fast"): CLIP,
// SigLIP, ViT, DeiT, Bit (DINOv2), ConvNeXT, EfficientNet for pictures; Qwen2-VL (also 2.5) and
// Qwen3-VL for pictures and clips; Whisper and Qwen2-Audio for sounds. The arithmetic is that of
// Hugging Face's processors on numpy and Pillow: resizing equals Pillow's bit for bit (frames of
// clips: that of torchvision, which is all that the reference has for them), tensors agree within
// 1e-5, log-mel features within 1e-4. The page for people is docs/media.md.
//
// resolve() makes every parameter explicit, so that a default and the same value given in a request
// make the same key (B22); run() reads nothing else. Unknown parameters and wrong types are
// invalid_argument (400) naming them.
//
// How large an item becomes for the model is what its encode costs, so it has bounds, those of
// PreprocessLimits. Without: what the files (with the server's overrides) allow, 2^24 pixels where
// they leave a picture's size open, 2^27 for a clip whose frames alone they bound. Beyond is
// too_large (413) naming the limit, before anything is decoded or allocated.
//
// A family takes pictures, clips or sounds, or several of them. The functions of a modality that it
// does not take throw Error{unsupported_format}; what resolve() accepted, they take.
//
// Immutable after construction, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "vitrove/audio.h"
#include "vitrove/digest.h"
#include "vitrove/embedding_key.h"
#include "vitrove/media.h"
#include "vitrove/params.h"
#include "vitrove/side_data.h"
#include "vitrove/types.h"
#include "vitrove/video.h"

namespace vitrove {

struct Tensor {
  std::string name;  // "pixel_values", "input_features", ...
  std::vector<std::int64_t> shape;
  std::variant<std::vector<float>, std::vector<std::int64_t>, std::vector<std::uint8_t>> data;

  std::string_view dtype() const;  // "float32", "int64", "uint8"
  std::span<const std::byte> bytes() const;
  // Throws std::bad_variant_access for other types.
  std::span<const float> floats() const { return std::get<std::vector<float>>(data); }
};

struct PreprocessedItem {
  Modality modality = Modality::image;
  // The first is the primary one: "pixel_values" [C, H, W] or, for the Qwen-VL families, patches:
  // "pixel_values" and "pixel_values_videos" [t * h * w, C * temporal patch * patch * patch] by the
  // grid, patches that are merged into one token next to each other; "input_features" [mels,
  // frames].
  std::vector<Tensor> tensors;
  std::optional<Grid> grid;  // only for families whose model takes one
  // Rows that the language model counts for the item, where the family knows: the grid's patches
  // over merge_size squared. Follows from what is hashed already.
  std::optional<std::uint32_t> tokens;
  SideData side;

  const Tensor& primary() const { return tensors.front(); }
  // Digest of all tensors with names, shapes and dtypes, the grid and the side data.
  Digest256 feature_digest() const;
};

// The operator's bounds, below or above the model's own configuration; 0 leaves it at that.
struct PreprocessLimits {
  // Height times width of a picture, or of a frame, as the model sees it.
  std::uint64_t max_pixels = 0;
  // The same of all frames of a clip together.
  std::uint64_t max_clip_pixels = 0;
  // The chunk_length of sounds.
  std::uint32_t max_sound_seconds = 0;
};

// One clip on its way to tensors: each frame is resized when it comes. May be used only while the
// preprocessor is there.
class ClipRun : public FrameSink {
 public:
  // After as many frames as begin() told.
  virtual PreprocessedItem finish(const ClipTimes& times) = 0;
};

class Preprocessor {
 public:
  virtual ~Preprocessor() = default;

  // "clip", "siglip", ...
  virtual std::string_view family() const = 0;

  // Every parameter with its effective value. `kwargs` is a JSON object (mm_processor_kwargs) or
  // empty. Throws Error{unsupported_format} for a modality that the family does not take.
  virtual ResolvedParams resolve(Modality modality, std::string_view kwargs) const = 0;

  // How many bytes run() takes beside a picture of these sides, tensors included: asked for before
  // the picture is decoded, since a small one may be blown up. Throws what run() would throw about
  // the sizes.
  virtual std::uint64_t bytes_beside(std::uint32_t width, std::uint32_t height,
                                     const ResolvedParams& params) const = 0;

  // How many times smaller a JPEG of these sides may be decoded, for DecodeContext::jpeg_reduction:
  // 1 unless `params` hold jpeg_scaled_decode. The picture keeps twice the size it is resized to at
  // least, and its grid, crop and token count.
  virtual std::uint32_t jpeg_reduction(std::uint32_t width, std::uint32_t height,
                                       const ResolvedParams& params) const;

  // `params` come from this object's resolve().
  virtual PreprocessedItem run(const RgbImage& image, const ResolvedParams& params) const = 0;

  // Clips: which frames to decode, what is needed beside a single one of them, and what is made of
  // them.
  virtual VideoSampling video_sampling(const ResolvedParams& params) const;
  virtual std::uint64_t video_bytes_beside(const MediaShape& shape,
                                           const ResolvedParams& params) const;
  virtual std::unique_ptr<ClipRun> start_video(const ResolvedParams& params) const;
  // The same of frames that are there already.
  PreprocessedItem run_video(const VideoClip& clip, const ResolvedParams& params) const;

  // Sounds: the rate to resample to, and the same.
  virtual std::uint32_t audio_rate(const ResolvedParams& params) const;
  virtual std::uint64_t audio_bytes_beside(std::uint64_t samples,
                                           const ResolvedParams& params) const;
  virtual PreprocessedItem run_audio(const AudioClip& clip, const ResolvedParams& params) const;

  // One integer, raised whenever the bytes of the tensors may change.
  virtual std::vector<PipelineVersion> versions() const = 0;
};

// The error for a modality that a family does not take.
[[noreturn]] void throw_no_such_modality(std::string_view family, Modality modality);

// `overrides` is what --mm-process-config takes: a JSON object {"image": {...}, "video": {...},
// "audio": {...}} whose parameters replace the file's, or empty. Throws Error{not_found} when the
// file cannot be read, Error{invalid_argument} when it names no family we know (the message lists
// them) or holds a value we cannot follow. A video_preprocessor_config.json beside the file holds
// the parameters of clips, where there is one; else they are the file's, too, as in the reference.
std::unique_ptr<Preprocessor> load_preprocessor(const std::filesystem::path& config_file,
                                                std::string_view overrides = {},
                                                const PreprocessLimits& limits = {});

// The same from the files' texts.
std::unique_ptr<Preprocessor> make_preprocessor(std::string_view config_json,
                                                std::string_view overrides = {},
                                                const PreprocessLimits& limits = {},
                                                std::string_view video_config_json = {});

// Keeps what was decoded as it is: one uint8 tensor "pixels" of shape [height, width, 3] or, for a
// clip, [frames, height, width, 3]; for a sound one float32 tensor "samples" of shape [samples], at
// 16 kHz. For encoders that want the media themselves, such as the stub. Takes no parameters but
// those of frame sampling (video.h): fps, num_frames, min_frames, max_frames; `video_defaults` is a
// JSON object of them, or empty.
std::unique_ptr<Preprocessor> make_raw_preprocessor(std::string_view video_defaults = {});

}  // namespace vitrove
