#include "preprocess/image_geometry.h"

#include <algorithm>
#include <string>

#include "vitrove/error.h"

namespace vitrove {
namespace {

// From here on ConvNeXT resizes straight to a square.
constexpr std::uint32_t convnext_uncropped = 384;

// Nobody's picture has such a side after resizing; weights and positions stay few.
constexpr double max_side = 1 << 24;

// The longer side is rounded down; it cannot vanish, being the longer one.
Size with_shortest_edge(const Size& picture, std::uint32_t edge) {
  const std::uint64_t shorter = std::min(picture.width, picture.height);
  const std::uint64_t longer = std::max(picture.width, picture.height);
  const double exact = static_cast<double>(edge * longer) / static_cast<double>(shorter);
  if (exact > max_side) {
    throw Error(ErrorCode::invalid_argument,
                "the sides of an image of " + std::to_string(picture.width) + " x " +
                    std::to_string(picture.height) +
                    " pixels are too unequal: with a shorter side of " + std::to_string(edge) +
                    " the longer one exceeds the limit of " +
                    std::to_string(static_cast<std::uint64_t>(max_side)) + " pixels");
  }
  const auto other = static_cast<std::uint32_t>(exact);
  return picture.width <= picture.height ? Size{edge, other} : Size{other, edge};
}

Size with_size(const Size& picture, const TargetSize& size) {
  if (size.shortest_edge) return with_shortest_edge(picture, *size.shortest_edge);
  return {size.width, size.height};
}

// One axis of a centre crop: what is kept of `size` pixels, and where it starts on the canvas.
struct AxisCrop {
  Range kept;
  std::uint32_t start = 0;
};

AxisCrop crop_axis(std::uint32_t size, std::uint32_t wanted) {
  if (wanted <= size) return {{(size - wanted) / 2, wanted}, 0};
  return {{0, size}, (wanted - size + 1) / 2};
}

Placement uncropped(const Size& resized) {
  return {resized, {{0, resized.width}, {0, resized.height}}, resized, 0, 0};
}

Placement cropped(const Size& resized, const Size& canvas) {
  const AxisCrop columns = crop_axis(resized.width, canvas.width);
  const AxisCrop rows = crop_axis(resized.height, canvas.height);
  return {resized, {columns.kept, rows.kept}, canvas, columns.start, rows.start};
}

Placement place_convnext(const Size& picture, const ImageParams& params) {
  const std::uint32_t edge = *params.size.shortest_edge;
  if (edge >= convnext_uncropped) return uncropped({edge, edge});
  const auto enlarged = static_cast<std::uint32_t>(edge / params.crop_pct);
  return cropped(with_shortest_edge(picture, enlarged), {edge, edge});
}

}  // namespace

Placement place(const Size& picture, const ImageParams& params, const ImageFamily& family) {
  if (params.do_resize && family.has_crop_pct) return place_convnext(picture, params);
  const Size resized = params.do_resize ? with_size(picture, params.size) : picture;
  if (!params.do_center_crop) return uncropped(resized);
  return cropped(resized, {params.crop_size.width, params.crop_size.height});
}

bool has_fixed_canvas(const ImageParams& params, const ImageFamily& family) {
  if (params.do_center_crop) return true;
  return params.do_resize && (family.has_crop_pct || !params.size.shortest_edge);
}

}  // namespace vitrove
