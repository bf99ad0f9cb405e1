// A libmooncake_store.so of ours: the C interface over files, with Mooncake's traps and faults on
// order.
//
// The "metadata server" is a directory that all clients share: values stand in it under the hex of
// their keys, and what goes wrong in the file "faults", which every call reads anew. A line of it
// is OPERATION ACTION [NUMBER]:
//
//   get code -800      every item gets this code      put hang        never returns
//   get short          claims one byte too few        exist abort     the process dies
//   get empty          claims success with 0 bytes    get exit        the process leaves with 7
//   get slow 300       so many milliseconds late      setup code -300
//   remove leased      unless it is forced
//   once get code -707 the first get of this client alone
//
// Beside the values it writes down what it was told: "segment", the memory that the client lends;
// "config", how the last batch was to be put; "left", how much memory was still registered when the
// client was destroyed. Where there is a file "tell-moves", "moves" holds a line for each value
// that it read or filled: the operation, the bytes, and what memory they were in.
//
// Like the real one it calls a put to an existing key a success and keeps the old bytes, fills only
// the last of two equal keys in a batch, wants buffers of exactly the value's size inside
// registered memory, takes no overlapping registrations and no empty values, crashes before its
// set-up, and blocks signals in the thread that creates a client.

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

namespace fs = std::filesystem;

// As Mooncake's header has it.
struct ReplicateConfig {
  std::size_t replica_num;
  int with_soft_pin;
  int with_hard_pin;
  const char** preferred_segments;
  std::size_t preferred_segments_count;
};

struct Fault {
  std::string action;
  long number = 0;
  bool once = false;
};

class Client {
 public:
  int set_up(const std::string& directory, std::uint64_t segment) {
    directory_ = directory;
    if (const auto fault = fault_of("setup")) {
      misbehave(*fault);
      if (fault->action == "code") return static_cast<int>(fault->number);
    }
    write_down("segment", std::to_string(segment));
    is_set_up_ = true;
    return 0;
  }

  int add_memory(char* address, std::size_t size) {
    std::lock_guard lock(mutex_);
    for (const auto& [other, length] : memory_) {
      if (address < other + length && other < address + size) return -600;
    }
    if (const auto fault = fault_of("register"); fault && fault->action == "code") {
      return static_cast<int>(fault->number);
    }
    memory_[address] = size;
    return 0;
  }
  int drop_memory(char* address) {
    if (const auto fault = fault_of("unregister")) misbehave(*fault);
    std::lock_guard lock(mutex_);
    return memory_.erase(address) == 1 ? 0 : -600;
  }

  void note_config(const ReplicateConfig& config) const {
    const char* const where = config.preferred_segments == nullptr ? "" : " at an address";
    write_down("config", "replicas " + std::to_string(config.replica_num) + " soft " +
                             std::to_string(config.with_soft_pin) + " hard " +
                             std::to_string(config.with_hard_pin) + " preferred " +
                             std::to_string(config.preferred_segments_count) + where);
  }
  void leave() {
    std::lock_guard lock(mutex_);
    if (is_set_up_) write_down("left", std::to_string(memory_.size()));
  }

  int put(const std::string& key, const char* buffer, std::size_t size) {
    if (size == 0 || !is_registered(buffer, size)) return -600;
    note_move("put", buffer, size);
    const fs::path place = path_of(key);
    const fs::path draft = fs::path(directory_) / ("draft-" + std::to_string(::getpid()) + "-" +
                                                   std::to_string(::gettid()));
    std::ofstream(draft, std::ios::binary).write(buffer, static_cast<std::streamsize>(size));
    const bool linked = ::link(draft.c_str(), place.c_str()) == 0 || errno == EEXIST;
    fs::remove(draft);
    return linked ? 0 : -500;
  }
  std::int64_t get(const std::string& key, char* buffer, std::size_t size, bool fill) {
    std::ifstream file(path_of(key), std::ios::binary);
    if (!file) return -704;
    std::stringstream content;
    content << file.rdbuf();
    const std::string value = content.str();
    if (!is_registered(buffer, size)) return -600;
    if (size < value.size()) return -600;
    if (size > value.size()) return -800;
    if (fill) value.copy(buffer, size);
    if (fill) note_move("get", buffer, size);
    return static_cast<std::int64_t>(size);
  }
  std::int64_t size_of(const std::string& key) const {
    std::error_code error;
    const auto size = fs::file_size(path_of(key), error);
    return error ? -704 : static_cast<std::int64_t>(size);
  }
  int remove(const std::string& key, bool force) {
    const auto fault = fault_of("remove");
    if (fault && fault->action == "leased" && !force) return -706;
    return fs::remove(path_of(key)) ? 0 : -704;
  }

  // The code that an operation gets without being tried, if any.
  std::optional<long> begin(const char* operation) {
    if (!is_set_up_) std::abort();
    const auto fault = fault_of(operation);
    if (!fault || (fault->once && !is_first(operation))) return std::nullopt;
    misbehave(*fault);
    if (fault->action == "code") return fault->number;
    return std::nullopt;
  }
  bool has_fault(const char* operation, const char* action) const {
    const auto fault = fault_of(operation);
    return fault && fault->action == action;
  }

 private:
  // Whole, or not yet: tests wait for it.
  void write_down(const std::string& name, const std::string& text) const {
    const fs::path draft = fs::path(directory_) / (name + "-draft-" + std::to_string(::gettid()));
    std::ofstream(draft) << text;
    fs::rename(draft, fs::path(directory_) / name);
  }
  void note_move(const char* operation, const char* buffer, std::size_t size) const {
    if (!fs::exists(fs::path(directory_) / "tell-moves")) return;
    std::ofstream(fs::path(directory_) / "moves", std::ios::app)
        << operation << ' ' << size << ' ' << mapping_of(buffer) << '\n';
  }
  // The file that is mapped there, as the kernel names it.
  static std::string mapping_of(const char* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      std::istringstream words(line);
      std::uintptr_t begin = 0;
      std::uintptr_t end = 0;
      char dash = 0;
      std::string rights, offset, device, inode, name;
      words >> std::hex >> begin >> dash >> end >> rights >> offset >> device >> inode >> name;
      if (at >= begin && at < end) return name;
    }
    return "nothing";
  }
  fs::path path_of(const std::string& key) const {
    std::string name;
    for (const unsigned char c : key) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", c);
      name += digits;
    }
    return fs::path(directory_) / name;
  }
  std::optional<Fault> fault_of(const std::string& operation) const {
    std::ifstream file(fs::path(directory_) / "faults");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string name;
      Fault fault;
      words >> name;
      fault.once = name == "once";
      if (fault.once) words >> name;
      words >> fault.action >> fault.number;
      if (name == operation) return fault;
    }
    return std::nullopt;
  }
  static void misbehave(const Fault& fault) {
    if (fault.action == "abort") {
      std::fputs("fake Mooncake: a check failed\n", stderr);
      std::abort();
    }
    if (fault.action == "exit") std::_Exit(7);
    if (fault.action == "slow") ::usleep(static_cast<useconds_t>(fault.number * 1000));
    while (fault.action == "hang") ::pause();
  }
  bool is_first(const char* operation) {
    std::lock_guard lock(mutex_);
    return spent_.insert(operation).second;
  }
  bool is_registered(const char* buffer, std::size_t size) {
    std::lock_guard lock(mutex_);
    for (const auto& [address, length] : memory_) {
      if (buffer >= address && buffer + size <= address + length) return true;
    }
    return false;
  }

  std::string directory_;
  bool is_set_up_ = false;
  std::mutex mutex_;
  std::map<char*, std::size_t> memory_;
  std::set<std::string> spent_;  // operations that had their fault
};

Client* as_client(void* store) { return static_cast<Client*>(store); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void* mooncake_store_create() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return new Client;
}

void mooncake_store_destroy(void* store) {
  as_client(store)->leave();
  delete as_client(store);
}

int mooncake_store_setup(void* store, const char*, const char* metadata, std::uint64_t segment,
                         std::uint64_t, const char*, const char*, const char*) {
  return as_client(store)->set_up(metadata, segment);
}

int mooncake_store_register_buffer(void* store, void* buffer, std::size_t size) {
  return as_client(store)->add_memory(static_cast<char*>(buffer), size);
}

int mooncake_store_unregister_buffer(void* store, void* buffer) {
  return as_client(store)->drop_memory(static_cast<char*>(buffer));
}

int mooncake_store_batch_put_from(void* store, const char** keys, void** buffers,
                                  const std::size_t* sizes, std::size_t count, const void* config,
                                  int* results) {
  const auto code = as_client(store)->begin("put");
  as_client(store)->note_config(*static_cast<const ReplicateConfig*>(config));
  for (std::size_t i = 0; i < count; ++i) {
    results[i] = code ? static_cast<int>(*code)
                      : as_client(store)->put(keys[i], static_cast<char*>(buffers[i]), sizes[i]);
  }
  return 0;
}

int mooncake_store_batch_get_into(void* store, const char** keys, void** buffers,
                                  const std::size_t* sizes, std::size_t count,
                                  std::int64_t* results) {
  Client& client = *as_client(store);
  const auto code = client.begin("get");
  std::map<std::string, std::size_t> last;
  for (std::size_t i = 0; i < count; ++i) last[keys[i]] = i;
  for (std::size_t i = 0; i < count; ++i) {
    results[i] =
        code ? *code
             : client.get(keys[i], static_cast<char*>(buffers[i]), sizes[i], last[keys[i]] == i);
    if (client.has_fault("get", "short")) results[i] -= 1;
    if (client.has_fault("get", "empty")) results[i] = 0;
  }
  return 0;
}

int mooncake_store_batch_is_exist(void* store, const char** keys, std::size_t count, int* results) {
  const auto code = as_client(store)->begin("exist");
  for (std::size_t i = 0; i < count; ++i) {
    const bool there = as_client(store)->size_of(keys[i]) > 0;
    results[i] = code ? static_cast<int>(*code) : static_cast<int>(there);
  }
  return 0;
}

std::int64_t mooncake_store_get_size(void* store, const char* key) {
  const auto code = as_client(store)->begin("size");
  return code ? *code : as_client(store)->size_of(key);
}

int mooncake_store_remove(void* store, const char* key, int force) {
  const auto code = as_client(store)->begin("remove");
  return code ? static_cast<int>(*code) : as_client(store)->remove(key, force != 0);
}

}  // extern "C"
#pragma GCC visibility pop
