#include "media/ffmpeg_log.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstring>
#include <mutex>
#include <string_view>

extern "C" {
#include <libavutil/log.h>
}

namespace vitrove {
namespace {

// What cameras and editors write that is wrong and does no harm: bookkeeping of references that are
// gone already, and notes beside the picture. And what is not wrong: a packet of Vorbis may end
// wherever it likes, the rest of it is zeros.
constexpr std::array<std::string_view, 6> harmless{
    "mmco:", "SEI type", "unknown SEI", "Unknown SEI", "Truncated VUI", "Overread %d bits"};

bool is_harmless(std::string_view line) {
  return std::ranges::any_of(harmless,
                             [&](std::string_view begin) { return line.starts_with(begin); });
}

void on_line(void* context, int level, const char* format, std::va_list) {
  if (level <= AV_LOG_ERROR && !is_harmless(format)) ComplaintListener::hear(context, format);
}

}  // namespace

void take_over_ffmpeg_log() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(on_line); });
}

void Complaint::note(const char* text) noexcept {
  if (is_heard()) return;
  const std::size_t length = std::min(std::strcspn(text, "\n"), text_.size() - 1);
  std::copy_n(text, length, text_.data());
}

ComplaintListener::ComplaintListener(const void* context, Complaint& complaint) noexcept
    : context_(context), complaint_(complaint), outer_(innermost()) {
  innermost() = this;
}

ComplaintListener::~ComplaintListener() { innermost() = outer_; }

// The callback is given nothing of ours, and what the contexts of others hold is theirs.
ComplaintListener*& ComplaintListener::innermost() noexcept {
  thread_local ComplaintListener* listener = nullptr;
  return listener;
}

void ComplaintListener::hear(const void* context, const char* text) noexcept {
  for (ComplaintListener* one = innermost(); one != nullptr; one = one->outer_) {
    if (one->context_ == nullptr || one->context_ == context) one->complaint_.note(text);
  }
}

}  // namespace vitrove
