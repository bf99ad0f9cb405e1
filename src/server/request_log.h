// RequestLog: one line a request, written by a thread of its own, since standard error may be a
// pipe that nobody empties, and an I/O thread must not wait for it. Lines beyond the bound are
// dropped and counted.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace vitrove {

class RequestLog {
 public:
  RequestLog();
  // Writes what is left.
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  struct Line {
    std::string req_id;
    std::string route;
    std::string method;
    int status = 0;
    std::uint32_t items = 0;
    std::string sources;
    double milliseconds = 0;
    bool is_probe = false;
  };
  void add(Line line);

 private:
  void run();
  void write(const std::vector<Line>& lines, std::uint64_t dropped);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Line> lines_;
  std::uint64_t dropped_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace vitrove
