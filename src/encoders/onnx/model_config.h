// vitrove.json: what a model directory says about its graph (design section 7). Every field is
// checked, and a field that we do not know is refused: a misspelt name must not turn into a
// default. Whether the graph agrees is checked where the graph is loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrove/types.h"

namespace vitrove {

// How the rows of an item stand in the output.
enum class RowLayout : std::uint8_t {
  tokens,  // [N, tokens, dim]
  packed,  // [rows, dim], items one after the other
  chw,     // [N, C, H, W], read as H * W rows of C
};
std::string_view to_string(RowLayout layout);

// What Vitrove computes from the grids for graphs that cannot do so themselves.
enum class AuxInput : std::uint8_t {
  position_ids,
  cu_seqlens,
  segment_ids,
  window_index,
  pos_embed_index,
  pos_embed_weight,
};
std::string_view to_string(AuxInput kind);

// What some of them depend on beside the grids; named as in the model's own vision_config, but for
// num_grid_per_side, the square root of num_position_embeddings. 0 where not given.
struct AuxParams {
  std::uint32_t spatial_merge_size = 0;  // patches of a block's side
  std::uint32_t window_size = 0;         // pixels of a window's side
  std::uint32_t patch_size = 0;          // pixels of a patch's side
  std::uint32_t num_grid_per_side = 0;   // learned positions of a side

  // Blocks of a window's side.
  std::uint32_t window_side() const { return window_size / spatial_merge_size / patch_size; }
  // By name, those that are given.
  std::map<std::string, std::uint32_t> given() const;
};

struct ModelConfig {
  std::vector<Modality> modalities;
  std::string input;
  std::optional<std::string> grid_input;
  std::string output;
  RowLayout layout = RowLayout::tokens;
  std::map<std::string, AuxInput> aux_inputs;  // by the graph's input name
  AuxParams aux_params;                        // all that aux_inputs need
  DType dtype = DType::float32;
  std::string name;
  std::string revision;
};

// Throws Error{invalid_argument}: one line that names the field at fault.
ModelConfig parse_model_config(std::string_view json);

// `directory`/vitrove.json. Without a name the directory's own is taken.
ModelConfig load_model_config(const std::filesystem::path& directory);

}  // namespace vitrove
