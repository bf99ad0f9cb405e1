// The few functions of libheif that we need, from a library opened at run time: AVIF and HEIC are
// worth having where the host has it, and not worth demanding it.
//
// The declarations are ours, for a C interface that has been stable since libheif 1.0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vitrove {

// Opaque to us.
struct HeifContext;
struct HeifHandle;
struct HeifImage;

struct HeifError {
  int code;
  int subcode;
  const char* message;
};

struct HeifLibrary {
  HeifContext* (*context_alloc)() = nullptr;
  void (*context_free)(HeifContext*) = nullptr;
  HeifError (*context_read_from_memory_without_copy)(HeifContext*, const void*, std::size_t,
                                                     const void*) = nullptr;
  HeifError (*context_get_primary_image_handle)(HeifContext*, HeifHandle**) = nullptr;
  int (*image_handle_get_width)(const HeifHandle*) = nullptr;
  int (*image_handle_get_height)(const HeifHandle*) = nullptr;
  int (*image_handle_has_alpha_channel)(const HeifHandle*) = nullptr;
  void (*image_handle_release)(const HeifHandle*) = nullptr;
  HeifError (*decode_image)(const HeifHandle*, HeifImage**, int colorspace, int chroma,
                            const void* options) = nullptr;
  int (*image_get_width)(const HeifImage*, int channel) = nullptr;
  int (*image_get_height)(const HeifImage*, int channel) = nullptr;
  const std::uint8_t* (*image_get_plane_readonly)(const HeifImage*, int channel,
                                                  int* stride) = nullptr;
  void (*image_release)(const HeifImage*) = nullptr;

  // Not in every version: null where it is missing.
  void (*context_set_max_decoding_threads)(HeifContext*, int) = nullptr;
  const char* (*get_version)() = nullptr;
};

// VITROVE_LIBHEIF_LIBRARY names another file than the system's libheif.so.1. Null when it cannot be
// opened or lacks one of the functions; looked for once.
const HeifLibrary* heif_library();

}  // namespace vitrove
