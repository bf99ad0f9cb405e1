#include "mooncake_helper/library_helper.h"

#include <algorithm>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>

#include <netdb.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stores/mooncake/results.h"

namespace vitrove::mooncake {
namespace {

constexpr std::int64_t internal_error = -1;

wire::Payload bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<wire::Answer> same_for_all(std::size_t count, std::int64_t code) {
  return std::vector<wire::Answer>(count, wire::Answer{code, 0});
}

// Mooncake blocks signals in the thread that creates a client.
class SignalMask {
 public:
  SignalMask() { pthread_sigmask(SIG_BLOCK, nullptr, &saved_); }
  ~SignalMask() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  SignalMask(const SignalMask&) = delete;
  SignalMask& operator=(const SignalMask&) = delete;

 private:
  sigset_t saved_{};
};

StoreHandle create(const MooncakeLibrary& library) {
  const SignalMask mask;
  return library.create();
}

std::string own_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// The address from which the master is reached, which is the one others reach us at.
std::string own_address(const std::string& master) {
  const std::size_t colon = master.rfind(':');
  if (colon == master.npos || master.find("://") != master.npos) return own_name();
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  std::string host = master.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (::getaddrinfo(host.c_str(), master.substr(colon + 1).c_str(), &hints, &found) != 0) {
    return own_name();
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  const UniqueFd fd(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage mine{};
  socklen_t length = sizeof mine;
  auto* const raw = reinterpret_cast<sockaddr*>(&mine);
  std::array<char, NI_MAXHOST> text{};
  if (::connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::getsockname(fd.get(), raw, &length) != 0 ||
      ::getnameinfo(raw, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return own_name();
  }
  return text.data();
}

}  // namespace

LibraryHelper::LibraryHelper(FrameSocket& socket, const MooncakeLibrary& library)
    : socket_(socket), library_(library), store_(create(library)) {
  if (store_ == nullptr) throw std::runtime_error("Mooncake made no client");
}

// --- set-up and memory ---

void LibraryHelper::set_up(const std::string& settings) {
  std::string trouble;
  try {
    trouble = connect(settings);
  } catch (const std::exception& error) {
    trouble = error.what();
  }
  if (trouble.empty()) {
    std::lock_guard lock(mutex_);
    ready_ = true;
    for (const auto& [call, number] : std::exchange(unanswered_, {})) {
      const wire::Answer code{register_region(number), 0};
      socket_.write(wire::Type::answer, call, wire::encode(std::span(&code, 1)));
    }
  }
  const nlohmann::json state{{"ok", trouble.empty()}, {"detail", trouble}};
  socket_.write(wire::Type::state, 0, bytes_of(state.dump()));
}

std::string LibraryHelper::connect(const std::string& settings) {
  const auto json = nlohmann::json::parse(settings);
  const auto text = [&](const char* name) { return json.at(name).get<std::string>(); };
  if (!text("tenant").empty()) return "Mooncake's C interface knows no tenants";
  config_.replica_num = json.at("replicas").get<std::size_t>();
  config_.with_soft_pin = json.at("soft_pin").get<bool>() ? 1 : 0;
  config_.with_hard_pin = json.at("hard_pin").get<bool>() ? 1 : 0;

  const std::string master = text("master");
  const std::string hostname = text("hostname").empty() ? own_address(master) : text("hostname");
  const SignalMask mask;
  const int code = library_.setup(store_, hostname.c_str(), text("metadata").c_str(),
                                  json.at("segment").get<std::uint64_t>(),
                                  json.at("local_buffer").get<std::uint64_t>(),
                                  text("protocol").c_str(), text("device").c_str(), master.c_str());
  lends_ = json.at("segment").get<std::uint64_t>() > 0;
  if (code == 0) return {};
  if (code == version_mismatch) {
    return "Mooncake's set-up failed: master and client are of different versions";
  }
  return "Mooncake's set-up failed with code " + std::to_string(code) +
         " (master, protocol and device right?)";
}

void LibraryHelper::map(const FrameSocket::Frame& frame) {
  const auto wanted = wire::decode_region(frame.payload);
  if (!wanted || !frame.descriptor) throw Nonsense("a region without its file");
  void* const address =
      ::mmap(nullptr, wanted->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, frame.descriptor.get(), 0);
  if (address == MAP_FAILED) throw Nonsense("a region that cannot be mapped");
  wire::Answer code;
  {
    std::lock_guard lock(mutex_);
    regions_[wanted->number] = {static_cast<std::byte*>(address), wanted->bytes, false};
    if (!ready_) {
      unanswered_.emplace_back(frame.header.call, wanted->number);
      return;
    }
    code.code = register_region(wanted->number);
  }
  socket_.write(wire::Type::answer, frame.header.call, wire::encode(std::span(&code, 1)));
}

int LibraryHelper::register_region(std::uint32_t number) {
  const auto found = regions_.find(number);
  if (found == regions_.end()) return bad_parameters;
  Region& region = found->second;
  const int code = library_.register_buffer(store_, region.address, region.bytes);
  region.registered = code == 0;
  return code;
}

void LibraryHelper::unmap(const FrameSocket::Frame& frame) {
  const auto wanted = wire::decode_region(frame.payload);
  if (!wanted) throw Nonsense("a region of another form");
  {
    std::lock_guard lock(mutex_);
    const auto found = regions_.find(wanted->number);
    if (found != regions_.end()) {
      const Region region = found->second;
      regions_.erase(found);
      if (region.registered) library_.unregister_buffer(store_, region.address);
      ::munmap(region.address, region.bytes);
    }
  }
  const wire::Answer done;
  socket_.write(wire::Type::answer, frame.header.call, wire::encode(std::span(&done, 1)));
}

void LibraryHelper::leave() {
  std::lock_guard lock(mutex_);
  // Nothing to take back from the cluster: no reason to wait for a client that closes slowly.
  if (!ready_ || !lends_) return;
  ready_ = false;  // other threads hear the end as well
  for (const auto& [number, region] : regions_) {
    if (region.registered) library_.unregister_buffer(store_, region.address);
  }
  library_.destroy(store_);
}

// --- questions ---

void LibraryHelper::serve() {
  for (;;) {
    std::optional<FrameSocket::Frame> frame;
    {
      std::lock_guard lock(reading_);
      frame = socket_.read();
      if (!frame) return;
      // In the order in which they came: a question may name a region just mapped.
      if (handle_in_order(*frame)) continue;
    }
    // Its memory may be that of a call which another thread answered: see `answered_`.
    static_cast<void>(answered_.load(std::memory_order_acquire));
    answer(*frame);
  }
}

bool LibraryHelper::handle_in_order(FrameSocket::Frame& frame) {
  switch (frame.header.type) {
    case wire::Type::map:
      map(frame);
      return true;
    case wire::Type::unmap:
      unmap(frame);
      return true;
    case wire::Type::setup: {
      std::string settings(reinterpret_cast<const char*>(frame.payload.data()),
                           frame.payload.size());
      // Nobody waits for it: it may take for ever, and the process ends without returning from
      // here.
      std::thread([this, settings = std::move(settings)] { set_up(settings); }).detach();
      return true;
    }
    default:
      return false;
  }
}

void LibraryHelper::answer(const FrameSocket::Frame& frame) {
  const auto items = wire::decode_items(frame.payload);
  if (!items) throw Nonsense("items that do not fit");
  bool ready = false;
  {
    std::lock_guard lock(mutex_);
    ready = ready_;
  }
  std::vector<wire::Answer> answers;
  if (!ready) {
    answers = same_for_all(items->size(), internal_error);
  } else {
    switch (frame.header.type) {
      case wire::Type::put:
        answers = put(*items);
        break;
      case wire::Type::get:
        answers = get(*items);
        break;
      case wire::Type::exist:
        answers = exist(*items);
        break;
      case wire::Type::remove:
        answers = remove(*items);
        break;
      default:
        throw Nonsense("a frame of unknown type");
    }
  }
  answered_.fetch_add(1, std::memory_order_release);
  socket_.write(wire::Type::answer, frame.header.call, wire::encode(answers));
}

LibraryHelper::Places LibraryHelper::places_of(const std::vector<wire::Item>& items) {
  Places places;
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].runs.size() != 1) continue;
    const wire::Run& run = items[i].runs.front();
    const auto region = regions_.find(run.region);
    if (region == regions_.end() || !wire::is_inside(run, region->second.bytes)) continue;
    places.items.push_back(i);
    places.keys.push_back(items[i].key.c_str());
    places.buffers.push_back(region->second.address + run.offset);
    places.sizes.push_back(run.bytes);
  }
  return places;
}

std::vector<wire::Answer> LibraryHelper::put(const std::vector<wire::Item>& items) {
  Places places = places_of(items);
  auto answers = same_for_all(items.size(), bad_parameters);
  std::vector<int> codes(places.items.size(), static_cast<int>(internal_error));
  const int failed = codes.empty() ? 0
                                   : library_.batch_put_from(
                                         store_, places.keys.data(), places.buffers.data(),
                                         places.sizes.data(), codes.size(), &config_, codes.data());
  for (std::size_t n = 0; n < codes.size(); ++n) {
    answers[places.items[n]].code = failed != 0 ? failed : codes[n];
  }
  return answers;
}

std::vector<wire::Answer> LibraryHelper::get(const std::vector<wire::Item>& items) {
  Places places = places_of(items);
  auto answers = same_for_all(items.size(), bad_parameters);
  std::vector<std::int64_t> codes(places.items.size(), internal_error);
  const int failed =
      codes.empty() ? 0
                    : library_.batch_get_into(store_, places.keys.data(), places.buffers.data(),
                                              places.sizes.data(), codes.size(), codes.data());
  for (std::size_t n = 0; n < codes.size(); ++n) {
    wire::Answer& answer = answers[places.items[n]];
    answer.code = failed != 0 ? failed : codes[n];
    // A buffer that is not of the value's size shows as one of these; only the size tells.
    const bool doubtful = answer.code == bad_parameters || answer.code == transfer_failed ||
                          answer.code == internal_error;
    if (doubtful) answer.size = size_of(items[places.items[n]].key);
  }
  return answers;
}

std::vector<wire::Answer> LibraryHelper::exist(const std::vector<wire::Item>& items) {
  std::vector<const char*> keys;
  keys.reserve(items.size());
  for (const wire::Item& item : items) keys.push_back(item.key.c_str());
  std::vector<int> codes(items.size(), static_cast<int>(internal_error));
  const int failed =
      keys.empty() ? 0 : library_.batch_is_exist(store_, keys.data(), keys.size(), codes.data());
  std::vector<wire::Answer> answers;
  for (std::size_t i = 0; i < items.size(); ++i) {
    wire::Answer answer{failed != 0 ? failed : codes[i], 0};
    if (answer.code == 1) answer.size = size_of(items[i].key);
    answers.push_back(answer);
  }
  return answers;
}

std::vector<wire::Answer> LibraryHelper::remove(const std::vector<wire::Item>& items) {
  std::vector<wire::Answer> answers;
  answers.reserve(items.size());
  for (const wire::Item& item : items) {
    answers.push_back({library_.remove(store_, item.key.c_str(), 1), 0});
  }
  return answers;
}

std::uint64_t LibraryHelper::size_of(const std::string& key) const {
  const std::int64_t size = library_.get_size(store_, key.c_str());
  return size > 0 ? static_cast<std::uint64_t>(size) : 0;
}

}  // namespace vitrove::mooncake
