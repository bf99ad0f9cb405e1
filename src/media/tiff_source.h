// A TIFF in memory, opened with libtiff: its first page.
#pragma once

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <tiffio.h>

namespace vitrove {

class TiffSource {
 public:
  // Throws Error when it is damaged.
  explicit TiffSource(std::span<const std::byte> bytes);
  TiffSource(const TiffSource&) = delete;
  TiffSource& operator=(const TiffSource&) = delete;

  TIFF* tiff() const { return tiff_.get(); }

  // Of one strip or tile, as far as the file holds it.
  std::span<const std::byte> coded_block(std::uint32_t nth) const;

  // Throws Error when libtiff has complained since it was opened.
  void check() const;
  [[noreturn]] void throw_damaged_tiff() const;

  template <typename Number>
  Number field(std::uint32_t tag, Number otherwise) const {
    Number value{};
    return TIFFGetFieldDefaulted(tiff_.get(), tag, &value) == 1 ? value : otherwise;
  }

 private:
  struct Close {
    void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  };

  static int on_error(TIFF* tiff, void* self, const char* module, const char* format,
                      std::va_list arguments) noexcept;
  static int on_warning(TIFF* tiff, void* self, const char* module, const char* format,
                        std::va_list arguments) noexcept;
  static tmsize_t read(thandle_t self, void* to, tmsize_t size);
  static toff_t seek(thandle_t self, toff_t offset, int whence);
  static toff_t size(thandle_t self);
  static int map(thandle_t self, void** base, toff_t* size);

  std::span<const std::byte> bytes_;
  std::uint64_t at_ = 0;
  std::array<char, 240> complaint_{};  // its frames are C, where nothing may be thrown
  std::unique_ptr<TIFF, Close> tiff_;
};

}  // namespace vitrove
