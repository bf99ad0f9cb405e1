// FFmpeg tells of some damage by a line in its log and nothing else, and goes on with what it has:
// a GIF with broken LZW data, a picture that HEVC predicts from a missing one, a lost page of an
// Ogg. So the log is heard here. It is written nowhere: a program that uses FFmpeg itself sets its
// own callback (av_log_set_callback) after ours, and damage that is only logged is not seen then.
#pragma once

#include <array>

namespace vitrove {

// FFmpeg knows one log for the whole process; every use of it begins with this.
void take_over_ffmpeg_log();

// The first error that was heard. Of the line only what stands in FFmpeg's own source is kept, and
// nothing of the file.
class Complaint {
 public:
  bool is_heard() const { return text_[0] != '\0'; }
  const char* text() const { return text_.data(); }
  void note(const char* text) noexcept;

 private:
  std::array<char, 100> text_{};
};

// While it lives, the errors that `context` (null: any) logs on this thread are noted: FFmpeg logs
// where it is called. Others in the process may use FFmpeg too, and are not listened to.
class ComplaintListener {
 public:
  ComplaintListener(const void* context, Complaint& complaint) noexcept;
  ~ComplaintListener();
  ComplaintListener(const ComplaintListener&) = delete;
  ComplaintListener& operator=(const ComplaintListener&) = delete;

  static void hear(const void* context, const char* text) noexcept;

 private:
  static ComplaintListener*& innermost() noexcept;

  const void* context_;
  Complaint& complaint_;
  ComplaintListener* outer_;
};

}  // namespace vitrove
