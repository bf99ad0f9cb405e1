// What the kernel knows of a helper process.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <sys/types.h>

#include "vitrove/embedding_store.h"

namespace vitrove::testing {

// -1 when there is none.
inline pid_t helper_pid(const EmbeddingStore& store) {
  const std::string detail = store.health().detail;
  const std::string before = "helper process ";
  const std::size_t at = detail.find(before);
  return at == detail.npos ? -1 : std::stoi(detail.substr(at + before.size()));
}

inline std::filesystem::path proc_of(pid_t pid) { return "/proc/" + std::to_string(pid); }

// Zombies count as well.
inline bool exists_process(pid_t pid) { return std::filesystem::exists(proc_of(pid)); }

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What its descriptors are open on.
inline std::multiset<std::string> open_files(const std::filesystem::path& proc) {
  std::multiset<std::string> files;
  for (const auto& fd : std::filesystem::directory_iterator(proc / "fd")) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(fd.path(), error);
    if (!error) files.insert(target.string());
  }
  return files;
}

// The "SigBlk" lines of all its threads.
inline std::set<std::string> blocked_signals(pid_t pid) {
  std::set<std::string> masks;
  for (const auto& task : std::filesystem::directory_iterator(proc_of(pid) / "task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigBlk:")) masks.insert(line.substr(8));
    }
  }
  return masks;
}

}  // namespace vitrove::testing
