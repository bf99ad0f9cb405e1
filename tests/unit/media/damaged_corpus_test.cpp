// Hundreds of damaged files, made from the good ones by a seeded rule, through all decoders at
// once: each is decoded or refused, in bounded time and memory, and leaves nothing behind (field
// cases B06, B13, B83). Under the sanitizers this is where memory errors of ours and of the
// libraries would show.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <random>
#include <set>
#include <thread>

#include "clips.h"

namespace vitrove::test {
namespace {

constexpr std::size_t variants = 640;
constexpr std::size_t workers = 8;

struct Sample {
  std::string name;
  Bytes bytes;
};

std::vector<Sample> good_files() {
  std::vector<Sample> files;
  for (const auto& folder : {media_dir(), source_dir() / "tests" / "data" / "clips"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".json") continue;
      files.push_back({entry.path().filename().string(), read_file(entry.path())});
    }
  }
  std::ranges::sort(files, {}, &Sample::name);
  return files;
}

using Random = std::mt19937;

std::size_t place_in(const Bytes& bytes, Random& random) { return random() % bytes.size(); }

void flip_bits(Bytes& bytes, Random& random) {
  for (unsigned i = 0, count = 1 + random() % 12; i < count; ++i) {
    bytes[place_in(bytes, random)] ^= static_cast<std::byte>(1U << random() % 8);
  }
}

void change_head(Bytes& bytes, Random& random) {
  for (unsigned i = 0; i < 4; ++i) {
    bytes[random() % std::min<std::size_t>(bytes.size(), 200)] = static_cast<std::byte>(random());
  }
}

void claim_much(Bytes& bytes, Random& random) {
  const std::size_t at = place_in(bytes, random);
  const std::size_t count = std::min<std::size_t>(4, bytes.size() - at);
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count,
              random() % 2 == 0 ? std::byte{0xff} : std::byte{0x7f});
}

void cut(Bytes& bytes, Random& random) { bytes.resize(1 + place_in(bytes, random)); }

void clear_range(Bytes& bytes, Random& random) {
  const std::size_t at = place_in(bytes, random);
  const std::size_t count = std::min<std::size_t>(1 + random() % 400, bytes.size() - at);
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count, std::byte{0});
}

void leave_out(Bytes& bytes, Random& random) {
  const std::size_t at = place_in(bytes, random);
  const std::size_t count = std::min<std::size_t>(1 + random() % 60, bytes.size() - at);
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  bytes.erase(first, first + static_cast<std::ptrdiff_t>(count));
}

void repeat_range(Bytes& bytes, Random& random) {
  const std::size_t at = place_in(bytes, random);
  const std::size_t count = std::min<std::size_t>(1 + random() % 200, bytes.size() - at);
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const Bytes again(first, first + static_cast<std::ptrdiff_t>(count));
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), again.begin(), again.end());
}

// Every file in turn, every kind of damage in turn; the same files on every run.
std::vector<Sample> damaged_files() {
  constexpr void (*kinds[])(Bytes&, Random&) = {flip_bits,   change_head, claim_much,  cut,
                                                clear_range, leave_out,   repeat_range};
  const std::vector<Sample> good = good_files();
  Random random(20261130);
  std::vector<Sample> damaged;
  while (damaged.size() < variants) {
    Sample sample = good[damaged.size() % good.size()];
    const std::size_t kind = (damaged.size() + damaged.size() / good.size()) % std::size(kinds);
    kinds[kind](sample.bytes, random);
    sample.name += " #" + std::to_string(damaged.size());
    damaged.push_back(std::move(sample));
  }
  return damaged;
}

struct Tally {
  std::atomic<int> decoded = 0;
  std::atomic<int> refused = 0;
};

std::chrono::nanoseconds used_by_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Of a few kilobytes; under the sanitizers on a slow machine it is a hundredth of this.
constexpr std::chrono::seconds longest{60};

template <typename Decode>
void try_to(const std::string& name, Tally& tally, Decode decode) {
  try {
    decode();
    ++tally.decoded;
  } catch (const Error& error) {
    const std::set<int> allowed{400, 413, 415};
    EXPECT_TRUE(allowed.contains(http_status(error.code()))) << name << ": " << error.what();
    expect_safe_for_clients(error.what());
    ++tally.refused;
  }
}

template <typename Decode>
void try_one(const std::string& name, Tally& tally, Decode decode) {
  const auto start = used_by_this_thread();
  try_to(name, tally, decode);
  EXPECT_LT(used_by_this_thread() - start, longest) << name;
}

void try_all(const Sample& sample, MemoryBudget& budget, Tally& tally) {
  const auto& bytes = sample.bytes;
  // Generous: it only keeps a hang from being one.
  const DecodeContext context{
      .budget = &budget, .deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5)};
  const MediaFormat format = sniff(bytes);
  const ImageLimits image{.max_pixels = 1 << 20};
  const VideoLimits video{.max_frame_pixels = 1 << 18, .max_source_frames = 10'000};
  if (!is_decodable(format, Modality::video) && !is_decodable(format, Modality::audio)) {
    try_one(sample.name, tally, [&] { decode_image(bytes, image, context); });
    return;
  }
  try_one(sample.name, tally, [&] { decode_video(bytes, {}, video, context); });
  try_one(sample.name, tally, [&] { decode_audio(bytes, 16'000, {}, context); });
  if (format != MediaFormat::gif) return;
  try_one(sample.name, tally, [&] { decode_image(bytes, image, context); });
}

std::size_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(DamagedCorpus, IsDecodedOrRefusedAndLeavesNothingBehind) {
  const std::vector<Sample> files = damaged_files();
  ASSERT_GE(files.size(), 500u);
  try_all(files[0], *std::make_unique<MemoryBudget>(std::uint64_t{1} << 30),
          *std::make_unique<Tally>());  // opens what stays open
  std::jthread([] {}).join();  // with the first one the thread sanitizer starts one of its own
  const std::size_t open_files = entries_of("/proc/self/fd");
  const std::size_t threads = entries_of("/proc/self/task");

  MemoryBudget budget(std::uint64_t{1} << 30);
  Tally tally;
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> pool;
    for (std::size_t i = 0; i < workers; ++i) {
      pool.emplace_back([&] {
        for (std::size_t at = next++; at < files.size(); at = next++) {
          try_all(files[at], budget, tally);
        }
      });
    }
  }
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(entries_of("/proc/self/fd"), open_files);
  EXPECT_EQ(entries_of("/proc/self/task"), threads);
  EXPECT_GT(tally.refused.load(), 300) << "the damage is seen";
  EXPECT_GT(tally.decoded.load(), 20) << "not all of it hits";
}

TEST(DamagedCorpus, GoodFilesAreDecodedByTheSameMeans) {
  MemoryBudget budget(std::uint64_t{1} << 30);
  Tally tally;
  for (const char* name : {"h264.mp4", "vp9.webm", "moving.gif", "stereo.mp3"}) {
    try_all({name, clip_file(name)}, budget, tally);
  }
  // Three clips, one sound, one picture; three without sound, one without frames.
  EXPECT_EQ(tally.decoded.load(), 5);
  EXPECT_EQ(tally.refused.load(), 4);
}

}  // namespace
}  // namespace vitrove::test
