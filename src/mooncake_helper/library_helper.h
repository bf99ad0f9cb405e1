// LibraryHelper: answers Vitrove's questions with a libmooncake_store.so.
//
// The C interface takes one buffer a value, so Vitrove sends one run a value, in staging memory
// that is registered here. The format of the questions is in stores/mooncake/wire.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "mooncake_helper/frame_socket.h"
#include "mooncake_helper/mooncake_library.h"

namespace vitrove::mooncake {

class LibraryHelper {
 public:
  LibraryHelper(FrameSocket& socket, const MooncakeLibrary& library);

  // Until Vitrove closes its end; may run on several threads at once. Throws Nonsense.
  void serve();
  // What is registered in the cluster is taken back, unless a call hangs.
  void leave();

 private:
  struct Region {
    std::byte* address = nullptr;
    std::uint64_t bytes = 0;
    bool registered = false;
  };
  struct Places {  // of the items that can be asked for
    std::vector<std::size_t> items;
    std::vector<const char*> keys;
    std::vector<void*> buffers;
    std::vector<std::size_t> sizes;
  };

  // Frames whose order matters; true when it was one.
  bool handle_in_order(FrameSocket::Frame& frame);
  void map(const FrameSocket::Frame& frame);
  void unmap(const FrameSocket::Frame& frame);
  void set_up(const std::string& settings);
  std::string connect(const std::string& settings);
  int register_region(std::uint32_t number);

  void answer(const FrameSocket::Frame& frame);
  std::vector<wire::Answer> put(const std::vector<wire::Item>& items);
  std::vector<wire::Answer> get(const std::vector<wire::Item>& items);
  std::vector<wire::Answer> exist(const std::vector<wire::Item>& items);
  std::vector<wire::Answer> remove(const std::vector<wire::Item>& items);
  Places places_of(const std::vector<wire::Item>& items);
  std::uint64_t size_of(const std::string& key) const;

  FrameSocket& socket_;
  const MooncakeLibrary& library_;
  const StoreHandle store_;
  std::mutex reading_;
  // Vitrove uses the memory of an answered call again. That what we did with it comes before the
  // next question about it is true by way of the other process, which the memory model does not
  // know.
  std::atomic<std::uint64_t> answered_{0};
  std::mutex mutex_;  // of what follows
  std::map<std::uint32_t, Region> regions_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> unanswered_;  // call and region
  bool ready_ = false;
  bool lends_ = false;  // memory to the cluster
  ReplicateConfig config_{};
};

}  // namespace vitrove::mooncake
