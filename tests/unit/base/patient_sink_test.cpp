// A log that nobody reads stops nobody.
#include "base/patient_sink.h"

#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace vitrove {
namespace {

class PatientSinkTest : public ::testing::Test {
 protected:
  PatientSinkTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reader_ = UniqueFd(ends[0]);
    writer_ = UniqueFd(ends[1]);
    EXPECT_EQ(::fcntl(reader_.get(), F_SETFL, O_NONBLOCK), 0);
    log_ = std::make_unique<spdlog::logger>(
        "test", std::make_shared<PatientSink>(writer_.get(), std::chrono::milliseconds(1)));
    log_->set_pattern("%v");
  }

  std::string read_all() const {
    std::string text;
    std::array<char, 4096> piece;
    for (ssize_t got; (got = ::read(reader_.get(), piece.data(), piece.size())) > 0;)
      text.append(piece.data(), static_cast<std::size_t>(got));
    return text;
  }

  UniqueFd reader_;
  UniqueFd writer_;
  std::unique_ptr<spdlog::logger> log_;
};

TEST_F(PatientSinkTest, WritesLinesAsTheyCome) {
  log_->info("one");
  log_->info("two");
  EXPECT_EQ(read_all(), "one\ntwo\n");
}

TEST_F(PatientSinkTest, LongLinesComeWhole) {
  const std::string line(20'000, 'x');
  log_->info(line);
  EXPECT_EQ(read_all(), line + "\n");
}

TEST_F(PatientSinkTest, DropsWhatNobodyReadsAndSaysSoLater) {
  const int capacity = ::fcntl(writer_.get(), F_GETPIPE_SZ);
  ASSERT_GT(capacity, 0);
  const std::string line(1023, 'x');
  const int fitting = capacity / 1024;
  for (int i = 0; i < fitting + 100; ++i) log_->info(line);
  const std::string kept = read_all();
  EXPECT_EQ(kept.size() % 1024, 0U) << "no half lines";
  log_->info("after");
  const auto dropped = static_cast<std::size_t>(fitting) + 100 - kept.size() / 1024;
  EXPECT_EQ(read_all(), std::to_string(dropped) + " log lines could not be written\nafter\n");
}

TEST_F(PatientSinkTest, AReaderThatIsGoneIsNoTrouble) {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  reader_.reset();
  for (int i = 0; i < 3; ++i) log_->info("nobody hears this");
  ::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace vitrove
