#include "media/tiff_source.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "media/decode_job.h"

namespace vitrove {
namespace {

// Of libtiff's own buffers; pixels are in ours, and tables are as large as they are in the file.
constexpr std::size_t largest_buffer = std::size_t{16} << 20;

struct FreeOptions {
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};

tmsize_t no_write(thandle_t, void*, tmsize_t) { return 0; }
int keep_open(thandle_t) { return 0; }
void keep_mapped(thandle_t, void*, toff_t) {}

// Codecs that go on with invented pixels and only warn (B06).
bool is_about_pixels(std::string_view module) {
  return module.starts_with("JPEG") || module.starts_with("Fax");
}

}  // namespace

TiffSource::TiffSource(std::span<const std::byte> bytes) : bytes_(bytes) {
  const std::unique_ptr<TIFFOpenOptions, FreeOptions> options(TIFFOpenOptionsAlloc());
  if (!options) throw std::bad_alloc();
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(),
                                      static_cast<tmsize_t>(bytes.size() + largest_buffer));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, this);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, this);
  tiff_.reset(TIFFClientOpenExt("item", "r", this, read, no_write, seek, keep_open, size, map,
                                keep_mapped, options.get()));
  if (!tiff_) throw_damaged_tiff();
}

void TiffSource::check() const {
  if (complaint_[0] != '\0') throw_damaged_tiff();
}

void TiffSource::throw_damaged_tiff() const { throw_damaged(MediaFormat::tiff, complaint_.data()); }

std::span<const std::byte> TiffSource::coded_block(std::uint32_t nth) const {
  const std::uint64_t from =
      std::min<std::uint64_t>(TIFFGetStrileOffset(tiff_.get(), nth), bytes_.size());
  const auto rest = bytes_.subspan(from);
  return rest.first(std::min<std::uint64_t>(TIFFGetStrileByteCount(tiff_.get(), nth), rest.size()));
}

int TiffSource::on_error(TIFF*, void* self, const char* module, const char* format,
                         std::va_list arguments) noexcept {
  auto& complaint = static_cast<TiffSource*>(self)->complaint_;
  if (complaint[0] != '\0') return 1;
  char text[200] = {};
  std::vsnprintf(text, sizeof text, format, arguments);
  std::snprintf(complaint.data(), complaint.size(), "%.30s: %s", module != nullptr ? module : "",
                text);
  return 1;
}

int TiffSource::on_warning(TIFF* tiff, void* self, const char* module, const char* format,
                           std::va_list arguments) noexcept {
  if (module != nullptr && is_about_pixels(module)) {
    return on_error(tiff, self, module, format, arguments);
  }
  return 1;
}

tmsize_t TiffSource::read(thandle_t self, void* to, tmsize_t size) {
  auto& source = *static_cast<TiffSource*>(self);
  const std::uint64_t left =
      source.bytes_.size() - std::min<std::uint64_t>(source.at_, source.bytes_.size());
  const auto count = std::min<std::uint64_t>(left, static_cast<std::uint64_t>(size));
  if (count > 0) std::memcpy(to, source.bytes_.data() + source.at_, count);
  source.at_ += count;
  return static_cast<tmsize_t>(count);
}

toff_t TiffSource::seek(thandle_t self, toff_t offset, int whence) {
  auto& source = *static_cast<TiffSource*>(self);
  if (whence == SEEK_CUR) offset += source.at_;
  if (whence == SEEK_END) offset += source.bytes_.size();
  source.at_ = offset;
  return offset;
}

toff_t TiffSource::size(thandle_t self) { return static_cast<TiffSource*>(self)->bytes_.size(); }

int TiffSource::map(thandle_t self, void** base, toff_t* size) {
  const auto& source = *static_cast<TiffSource*>(self);
  // Opened for reading: libtiff does not write there.
  *base = const_cast<std::byte*>(source.bytes_.data());
  *size = source.bytes_.size();
  return 1;
}

}  // namespace vitrove
