// JPEG through libjpeg(-turbo).
//
// libjpeg reports errors by a call that must not return. Ours jumps back to the function that
// entered the library; between the two there are only frames of C and of functions without
// destructors, so that nothing is skipped. Everything with a destructor lives outside `enter`.
//
// Settings that make bytes: the slow integer IDCT and "fancy" upsampling, libjpeg's defaults and
// Pillow's. Both are integer arithmetic with the same result on every architecture and in every
// SIMD version.
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it
#include <optional>
#include <string_view>

#include <jerror.h>
#include <jpeglib.h>

#include "media/decode_job.h"
#include "media/xmp.h"

namespace vitrove {
namespace {

enum class Fault : std::uint8_t { damaged, unsupported, too_many_scans, stopped, out_of_memory };

struct JpegSession {
  JpegSession() = default;
  // Good from the start, when there is nothing yet: creating may fail half-way.
  ~JpegSession() { jpeg_destroy_decompress(&info); }
  JpegSession(const JpegSession&) = delete;
  JpegSession& operator=(const JpegSession&) = delete;

  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf way_out{};
  Fault fault = Fault::damaged;
  char message[JMSG_LENGTH_MAX] = {};
  const DecodeJob* job = nullptr;
};

JpegSession& session_of(j_common_ptr info) { return *static_cast<JpegSession*>(info->client_data); }

// libjpeg is C: an exception cannot pass its frames, a jump may.
[[noreturn]] void leave(j_common_ptr info, Fault fault) {
  JpegSession& session = session_of(info);
  session.fault = fault;
  std::longjmp(session.way_out, 1);  // NOLINT(cert-err52-cpp): see above
}

// Nothing is wrong with these files; it is only that libjpeg does not know their kind.
bool is_unsupported(const JpegSession& session) {
  constexpr int twelve_bits = 12;
  switch (session.errors.msg_code) {
    case JERR_SOF_UNSUPPORTED:     // lossless, hierarchical
    case JERR_ARITH_NOTIMPL:       // where libjpeg is built without arithmetic coding
    case JERR_CONVERSION_NOTIMPL:  // two components, which no colours are agreed on for
      return true;
    case JERR_BAD_PRECISION:
      return session.errors.msg_parm.i[0] == twelve_bits;
    case JERR_EMPTY_IMAGE:  // the height comes in a DNL marker, behind the pixels
      return session.info.image_height == 0 && session.info.image_width > 0 &&
             session.info.num_components > 0;
    default:
      return false;
  }
}

Fault fault_of(const JpegSession& session) {
  if (session.errors.msg_code == JERR_OUT_OF_MEMORY) return Fault::out_of_memory;
  return is_unsupported(session) ? Fault::unsupported : Fault::damaged;
}

[[noreturn]] void on_error(j_common_ptr info) {
  info->err->format_message(info, session_of(info).message);
  leave(info, fault_of(session_of(info)));
}

// What was skipped before the marker that comes.
std::string_view skipped_bytes(const JpegSession& session) {
  const auto count = static_cast<std::size_t>(session.errors.msg_parm.i[0]);
  const JOCTET* const end = session.info.src->next_input_byte;
  return {reinterpret_cast<const char*>(end - count), count};
}

// Some cameras fill up with zeros before the next marker; nothing of the picture is lost there.
bool is_zero_padding(std::string_view skipped) {
  return skipped.find_first_not_of('\0') == std::string_view::npos;
}

// A segment whose marker is damaged: two bytes, its length, its contents. One that is empty says
// nothing.
bool is_lost_segment(std::string_view skipped) {
  for (const std::string_view name : {"Adobe", "JFIF", "Exif"}) {
    if (skipped.find(name) != std::string_view::npos) return true;
  }
  constexpr std::size_t empty_segment = 4;
  if (skipped.size() <= empty_segment) return false;
  const auto byte = [skipped](std::size_t at) { return static_cast<unsigned char>(skipped[at]); };
  return static_cast<std::size_t>(byte(2) << 8 | byte(3)) == skipped.size() - 2;
}

// Some writers leave a few bytes between the markers of the header. Tables are longer, and what
// else tells about the picture is no litter.
bool is_litter_in_the_header(const JpegSession& session, std::string_view skipped) {
  constexpr std::size_t shortest_table = 21;
  return session.info.input_scan_number == 0 && skipped.size() < shortest_table &&
         !is_lost_segment(skipped);
}

// A baseline scan has no choice of coefficients and bits; some writers leave zeros where it could
// be told.
bool has_no_scan_parameters(const jpeg_decompress_struct& info) {
  return info.Ss == 0 && info.Se == 0 && info.Ah == 0 && info.Al == 0;
}

bool is_harmless(const JpegSession& session) {
  switch (session.errors.msg_code) {
    case JWRN_ADOBE_XFORM:  // an unknown number in the Adobe marker
    case JWRN_JFIF_MAJOR:   // an unknown version of JFIF
      return true;
    case JWRN_NOT_SEQUENTIAL:
      return has_no_scan_parameters(session.info);
    case JWRN_EXTRANEOUS_DATA:
      return is_zero_padding(skipped_bytes(session)) ||
             is_litter_in_the_header(session, skipped_bytes(session));
    default:
      return false;
  }
}

// Level -1 is a warning: libjpeg would go on and invent pixels (B06).
void on_message(j_common_ptr info, int level) {
  if (level >= 0 || is_harmless(session_of(info))) return;
  on_error(info);
}

void on_output(j_common_ptr) {}

void on_progress(j_common_ptr info) {
  const JpegSession& session = session_of(info);
  if (session.job->must_stop()) leave(info, Fault::stopped);
  const auto most = static_cast<int>(session.job->limits().max_jpeg_scans);
  if (session.info.input_scan_number > most) leave(info, Fault::too_many_scans);
}

// Calls into libjpeg; false when it jumped out.
template <typename Step>
[[gnu::noinline]] bool enter(JpegSession& session, Step step) {
  if (setjmp(session.way_out) != 0) return false;  // NOLINT(cert-err52-cpp): see leave()
  step(session.info);
  return true;
}

// C for the fault: `detail` is libjpeg's own message.
[[noreturn]] void throw_fault(const JpegSession& session) {
  switch (session.fault) {
    case Fault::stopped:
      session.job->check_time();
      throw Error(ErrorCode::deadline_exceeded, "decoding took too long");
    case Fault::too_many_scans:
      throw Error(ErrorCode::too_large, "the jpeg file has more than " +
                                            std::to_string(session.job->limits().max_jpeg_scans) +
                                            " scans");
    case Fault::out_of_memory:
      throw std::bad_alloc();
    case Fault::unsupported:
      throw Error(ErrorCode::unsupported_format, "this kind of jpeg is not supported",
                  session.message);
    case Fault::damaged:
      break;
  }
  throw_damaged(MediaFormat::jpeg, session.message);
}

class JpegReader {
 public:
  JpegReader(std::span<const std::byte> bytes, const DecodeJob& job) : bytes_(bytes) {
    session_.job = &job;
    session_.info.err = jpeg_std_error(&session_.errors);
    session_.info.client_data = &session_;
    session_.errors.error_exit = on_error;
    session_.errors.emit_message = on_message;
    session_.errors.output_message = on_output;
    session_.progress.progress_monitor = on_progress;
    run([](jpeg_decompress_struct& info) { jpeg_create_decompress(&info); });
    session_.info.progress = &session_.progress;
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  void read_header() {
    run([this](jpeg_decompress_struct& info) {
      jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
      jpeg_save_markers(&info, JPEG_APP0 + 1, 0xffff);
      jpeg_read_header(&info, TRUE);
    });
  }

  std::uint32_t width() const { return session_.info.image_width; }
  std::uint32_t height() const { return session_.info.image_height; }
  bool has_inks() const { return session_.info.num_components == 4; }

  // Sides of what comes out, `times` smaller: 1, 2, 4 or 8.
  void reduce(std::uint32_t times) {
    run([times](jpeg_decompress_struct& info) {
      info.scale_num = 1;
      info.scale_denom = times;
      jpeg_calc_output_dimensions(&info);
    });
  }
  std::uint32_t reduced_width() const { return session_.info.output_width; }
  std::uint32_t reduced_height() const { return session_.info.output_height; }

  // What libjpeg allocates: all coefficients when the picture comes in several scans.
  std::uint64_t scratch_bytes() {
    constexpr std::uint64_t block_bytes = DCTSIZE2 * sizeof(JCOEF);
    constexpr std::uint64_t row_buffers = 64;  // bytes a pixel of width, generously
    std::uint64_t total = row_buffers * width();
    if (!jpeg_has_multiple_scans(&session_.info)) return total;
    for (int i = 0; i < session_.info.num_components; ++i) {
      const jpeg_component_info& component = session_.info.comp_info[i];
      total += block_bytes * component.width_in_blocks * component.height_in_blocks;
    }
    return total;
  }

  Orientation orientation() const {
    using namespace std::string_view_literals;
    std::optional<Orientation> exif;
    std::optional<Orientation> xmp;
    for (auto marker = session_.info.marker_list; marker != nullptr; marker = marker->next) {
      const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
      if (!exif && data.starts_with("Exif\0\0"sv)) {
        exif = exif_orientation(std::as_bytes(std::span(data)));
      }
      if (data.starts_with("http://ns.adobe.com/xap/1.0/\0"sv)) xmp = xmp_orientation(data);
    }
    return exif.value_or(xmp.value_or(Orientation::upright));
  }

  void read_rgb(RgbImage& image) {
    start(JCS_RGB);
    run([&image](jpeg_decompress_struct& info) {
      while (info.output_scanline < info.output_height) {
        JSAMPROW row = image.row(info.output_scanline);
        jpeg_read_scanlines(&info, &row, 1);
      }
      jpeg_finish_decompress(&info);
    });
  }

  void read_inks(RgbImage& image) {
    start(JCS_CMYK);
    std::vector<std::uint8_t> inks(std::size_t{4} * image.width);
    run([&image, buffer = inks.data()](jpeg_decompress_struct& info) {
      while (info.output_scanline < info.output_height) {
        std::uint8_t* to = image.row(info.output_scanline);
        JSAMPROW row = buffer;
        jpeg_read_scanlines(&info, &row, 1);
        inks_to_rgb(buffer, to, image.width);
      }
      jpeg_finish_decompress(&info);
    });
  }

 private:
  template <typename Step>
  void run(Step step) {
    if (!enter(session_, step)) throw_fault(session_);
  }

  void start(J_COLOR_SPACE colors) {
    run([colors](jpeg_decompress_struct& info) {
      info.out_color_space = colors;
      info.dct_method = JDCT_ISLOW;
      info.do_fancy_upsampling = TRUE;
      jpeg_start_decompress(&info);
    });
  }

  // Inks are stored inverted (255 is none); a colour is what its ink and black let through,
  // rounded like Pillow's conversion.
  static void inks_to_rgb(const std::uint8_t* inks, std::uint8_t* to, std::size_t pixels) {
    for (std::size_t i = 0; i < pixels; ++i, inks += 4, to += 3) {
      const unsigned black = inks[3];
      for (std::size_t c = 0; c < 3; ++c) {
        const unsigned ink = (255u - inks[c]) * black + 128u;
        const unsigned taken = (ink + (ink >> 8)) >> 8;
        to[c] = static_cast<std::uint8_t>(black - taken);
      }
    }
  }

  std::span<const std::byte> bytes_;
  JpegSession session_;
};

}  // namespace

DecodedImage decode_jpeg(std::span<const std::byte> bytes, DecodeJob& job) {
  JpegReader reader(bytes, job);
  reader.read_header();
  job.check_size(reader.width(), reader.height());
  const Orientation orientation = reader.orientation();
  reader.reduce(job.jpeg_reduction(reader.width(), reader.height(), orientation));
  job.reserve(reader.reduced_width(), reader.reduced_height(), orientation, reader.scratch_bytes());
  RgbImage image = allocate_image(reader.reduced_width(), reader.reduced_height());
  if (reader.has_inks()) {
    reader.read_inks(image);
  } else {
    reader.read_rgb(image);
  }
  return job.finish(std::move(image), MediaFormat::jpeg, orientation);
}

}  // namespace vitrove
