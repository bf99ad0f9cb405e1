// Which pixels of a picture a model sees: sizes and crops, rounded as Hugging Face's processors do.
#pragma once

#include "preprocess/image_params.h"
#include "preprocess/resize.h"

namespace vitrove {

// A picture of `resized` of which `window` is put at (left, top) on a black canvas.
struct Placement {
  Size resized;
  Window window;
  Size canvas;
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  bool operator==(const Placement&) const = default;
};

// Throws Error{invalid_argument} when a side becomes absurdly long.
Placement place(const Size& picture, const ImageParams& params, const ImageFamily& family);

// Whether every picture gets the same canvas.
bool has_fixed_canvas(const ImageParams& params, const ImageFamily& family);

}  // namespace vitrove
