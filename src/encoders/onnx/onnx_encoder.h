// OnnxEncoder: a model directory (design section 7) run through ONNX Runtime.
//
// Loading checks the directory whole and, for models that take images, encodes one made-up picture:
// that finds the dim where the graph leaves it open, shows that preprocessing and graph fit, and
// warms the runtime up.
//
// The fingerprint covers the contents of model.onnx and of its external data, and every setting
// that can change a row: input, output, layout, dtype, auxiliary inputs and their parameters, the
// execution provider and the preprocessing family (its parameters are part of each key). Not the
// directory's name, and not the library's version or the number of threads, which only touch the
// low bits. A directory whose weights change while it is loaded is refused: rows of one model must
// never get another's keys. Later changes are the operator's business (ONNX Runtime maps external
// data): put a new version beside the old one, or move it into place; never write into files in
// use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "encoders/onnx/batch_inputs.h"
#include "encoders/onnx/model_config.h"
#include "encoders/onnx/model_files.h"
#include "encoders/onnx/onnx_graph.h"
#include "vitrove/encoder.h"

namespace vitrove {

class OnnxEncoder final : public Encoder {
 public:
  // With the preprocessor that preprocessor_config.json describes. Throws Error{invalid_argument}
  // for anything wrong with the directory, Error{unavailable} without ONNX Runtime.
  OnnxEncoder(const std::filesystem::path& directory, const EncoderOptions& options);
  OnnxEncoder(const std::filesystem::path& directory, const EncoderOptions& options,
              std::unique_ptr<Preprocessor> preprocessor);

  const EncoderInfo& info() const override { return info_; }
  const Preprocessor& preprocessor() const override { return *preprocessor_; }
  std::optional<std::uint32_t> token_count(const PreprocessedItem& item) const override;
  // Throws Error{invalid_argument} when the graph does not take an item of this shape.
  std::string batch_class(const PreprocessedItem& item) const override;
  std::vector<EncoderOutput> encode(std::span<const PreprocessedItem* const> batch) override;

  // Any output of the graph for one item, flat, as float32: for class scores in tests and tools.
  // Throws Error{invalid_argument} for an unknown output. Same thread rule as encode().
  std::vector<float> run_output(const PreprocessedItem& item, const std::string& output) const;

 private:
  void probe();
  Digest256 fingerprint(const std::string& provider) const;
  void learn(const PreprocessedItem& item, const EncoderOutput& output);
  std::vector<InputTensor> make_inputs(Batch batch) const;
  std::vector<EncoderOutput> encode_together(Batch batch) const;
  void require_dim(const OutputTensor& output) const;

  ModelConfig config_;
  std::unique_ptr<Preprocessor> preprocessor_;
  ModelFiles files_;
  OnnxGraph graph_;
  bool one_by_one_ = false;
  std::uint64_t patches_per_row_ = 0;  // of packed layouts; 0 when not known
  EncoderInfo info_;
};

}  // namespace vitrove
